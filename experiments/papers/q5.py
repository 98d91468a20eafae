# SPDX-License-Identifier: Apache-2.0
"""QoSFlow's sixth figure: how videos look behind a FIFO and behind SFQ."""
import contextlib
import hashlib
import json
import os
import socket
import time

from support import topo

from harness.context import Failure
from harness.experiment import Claim, Experiment, Figure, Judged, Part, Table
from harness.network import Switch, Topology, forward
from harness.plot import COLOURS, bars
from harness.video import Arrived, Stream, Video, pump

MBIT = 1_000_000
SOURCE, SINK = 1, 2                     # hosts
PORT, QUEUE = SINK, 10
# name: what ffmpeg makes it of, the published gain
VIDEOS = {'video 1': ('mandelbrot=size=352x288:rate=25', 0.4857),
          'video 2': ('testsrc2=size=352x288:rate=25,noise=alls=4:allf=t', 0.6857)}
DISCIPLINES = {'FIFO': ('qos-pfifo', 'limit=127'), 'SFQ': ('qos-sfq', 'limit=127'),
               'fq_codel': ('qos-fq_codel', '')}
UNDISTURBED, DISTURBED = 'nothing lost', 'disturbed'
PAYLOAD, HEADERS, DISCARD = 1400, 42, 9
TRIES, LATE, FULL = 6, 1.05, 0.95
LEAD = 1                                # seconds that the disturbing traffic is there before, after


def tx_bytes(switch):
    """What the queue has sent"""
    with switch.connect() as conn:
        return conn.queue_stats(PORT)[PORT, QUEUE]['tx_bytes']


def udp(net, host, port=0):
    with topo.inside(net.host_ns(host)):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(('', port))
    return sock


def disturbing(sock, bps, seconds):
    """bps: of frames"""
    rate = bps / 8 / (PAYLOAD + HEADERS)
    return Stream(0, rate, int(rate * seconds),
                  lambda _: sock.sendto(bytes(PAYLOAD), (f'10.0.0.{SINK}', DISCARD)))


class Q5(Experiment):
    id = 'Q5'
    title = 'Quality of two videos'
    source = 'QoSFlow, figure 6'
    set_up = ('One switch, two hosts. Two videos (H.264 in an MPEG transport stream in RTP, '
              'constant rate) and UDP flows that disturb them, from one host, so that all packets '
              'come in the order in which they are due, go through one queue of 10 Mbit/s to the '
              'other. What arrived is decoded and each frame compared with the source\'s '
              '(luminance PSNR by ffmpeg); a frame that is lost is shown as the one before it. The '
              'queue is a FIFO, then SFQ, each of 127 packets; and, beyond the source, fq_codel. '
              'All three in the same kernel.')
    full = {'seconds': 30, 'video_bps': 1_200_000, 'queue_bps': 10 * MBIT,
            'disturbing_bps': [6 * MBIT] * 3}
    quick = {'seconds': 4}

    def parts(self, p):
        yield Part(UNDISTURBED, 2 * p['seconds'], needs=())
        yield Part(DISTURBED, 5 + len(DISCIPLINES) * (p['seconds'] + 5),
                   needs=('htb', 'sfq', 'fq_codel'))

    @staticmethod
    def videos(p):
        """Made once, and kept beside the build"""
        place = os.path.join(topo.build_directory(), 'videos')
        os.makedirs(place, exist_ok=True)
        found = {}
        for name, (source, _) in VIDEOS.items():
            what = (source, p['seconds'], p['video_bps'])
            key = hashlib.sha256(json.dumps(what).encode()).hexdigest()[:12]
            found[name] = Video.make(os.path.join(place, key), *what)
        return found

    # -------------------------------------------------------------------------------------- measure

    def run(self, ctx, part):
        """-> 'arrived': {video: numbers of the packets that arrived}, for each scheduler"""
        ctx.say('the videos')
        videos = self.videos(ctx.p)
        if part.name == UNDISTURBED:
            return {'arrived': {name: list(range(len(v.packets()))) for name, v in videos.items()}}
        net = ctx.enter(Topology(ports=2, ip=True))
        switch = ctx.enter(Switch(net))
        self.set_up_queue(ctx.p, net, switch)
        return {name: self.send_in_time(ctx, net, switch, videos, name) for name in DISCIPLINES}

    @staticmethod
    def set_up_queue(p, net, switch):
        forward(switch)
        net.exec(SOURCE, 'ping', '-c', '1', '-W', '5', f'10.0.0.{SINK}')
        switch.dpctl('qos-htb', f"cmd=add,port={PORT},class={QUEUE},rate={p['queue_bps']}bit")
        switch.dpctl('flow-mod', 'cmd=add,table=0,prio=10', 'eth_type=0x800,ip_proto=17',
                     f'apply:queue={QUEUE},output={PORT}')

    def send_in_time(self, ctx, net, switch, videos, name):
        """Again, when the machine could not send as fast as was meant, or stood still for so long
        that the queue was empty: then there is no overload, or one that is none of the queue's"""
        for attempt in range(TRIES):
            ctx.say(name + ', again' * bool(attempt))
            found = self.send(ctx, net, switch, videos, name)
            if found['took'] < LATE * found['meant'] and \
                    found['queue_bps'] > FULL * ctx.p['queue_bps']:
                return found
        raise Failure(f"what was to be sent in {found['meant']} s took {found['took']:.1f} s, the "
                      f"queue sent {found['queue_bps'] / MBIT:.1f} Mbit/s, and so {TRIES} times: "
                      'the machine is too slow, or too busy')

    def send(self, ctx, net, switch, videos, name):
        """Both videos, disturbed, with this scheduler in the queue"""
        command, words = DISCIPLINES[name]
        switch.dpctl(command, ','.join(filter(None, (f'cmd=replace,port={PORT},class={QUEUE}',
                                                     words))))
        with contextlib.ExitStack() as stack:
            stack.enter_context(udp(net, SINK, DISCARD))
            seconds, arrived, streams = ctx.p['seconds'] + 2 * LEAD, [], []
            for i, video in enumerate(videos.values()):
                arrived.append(Arrived(stack.enter_context(udp(net, SINK, 5004 + 2 * i))))
                streams.append(video.stream(stack.enter_context(udp(net, SOURCE)),
                                            (f'10.0.0.{SINK}', 5004 + 2 * i), LEAD))
            for bps in ctx.p['disturbing_bps']:
                streams.append(disturbing(stack.enter_context(udp(net, SOURCE)), bps, seconds))

            def drain():
                for each in arrived:
                    each.drain()
            before, start = tx_bytes(switch), time.monotonic()
            pump(streams, drain)
            took, sent = time.monotonic() - start, tx_bytes(switch) - before
            deadline = time.monotonic() + 0.5       # what waits in the queue
            while time.monotonic() < deadline:
                drain()
                time.sleep(0.01)
        return {'arrived': {video: a.numbers for video, a in zip(videos, arrived)},
                'queue_bps': sent * 8 / took, 'took': took, 'meant': seconds}

    def evaluate(self, p, part, sample):
        videos = self.videos(p)
        for of_one in [sample] if part.name == UNDISTURBED else sample.values():
            for name, numbers in of_one.pop('arrived').items():
                of_one[name] = {'sent': len(videos[name].packets()), 'arrived': len(set(numbers)),
                                'psnr': videos[name].quality(numbers)}
        return sample

    # --------------------------------------------------------------------------------------- verdict

    @staticmethod
    def of(samples, name):
        return samples[UNDISTURBED] if name == UNDISTURBED else samples[DISTURBED][name]

    def mean(self, samples, name, video):
        every = self.of(samples, name)[video]['psnr']
        return sum(every) / len(every)

    def gain(self, samples, video, name='SFQ'):
        return self.mean(samples, name, video) / self.mean(samples, 'FIFO', video) - 1

    def claims(self, p):
        for name, (_, published) in VIDEOS.items():
            yield Claim(f'SFQ in the place of the FIFO raises the PSNR of {name}',
                        f'{published:+.2%}', lambda s, v=name, g=published: self.judge(s, v, g))

    def judge(self, samples, video, published):
        fifo, sfq = (self.mean(samples, name, video) for name in ('FIFO', 'SFQ'))
        gain, most = self.gain(samples, video), self.mean(samples, UNDISTURBED, video)
        holds = gain >= published
        why = '' if holds else (f'undisturbed it has {most:.1f} dB, no more than '
                                f'{most / fifo - 1:+.0%} could be gained')
        return Judged(f'{gain:+.2%} ({fifo:.1f} to {sfq:.1f} dB)', holds, why)

    def tables(self, samples, p):
        rows = []
        for name in (UNDISTURBED, *DISCIPLINES):
            found = self.of(samples, name)
            for video in VIDEOS:
                lost = 1 - found[video]['arrived'] / found[video]['sent']
                rows.append((name, video, f'{lost:.1%}', self.mean(samples, name, video),
                             min(found[video]['psnr']), f'{self.gain(samples, video, name):+.1%}'))
        yield Table('PSNR in dB, mean of the frames', ('', '', 'packets lost', 'PSNR', 'worst frame',
                                                       'gain over FIFO'), rows)

    def figures(self, samples, p):
        yield Figure('psnr', 'As the source\'s figure 6: PSNR by the scheduler in the queue',
                     (6, 3.4), lambda fig: bars(
                         fig.subplots(), list(VIDEOS), {name: [self.mean(samples, name, v)
                                                               for v in VIDEOS]
                                                        for name in (*DISCIPLINES, UNDISTURBED)},
                         unit='dB'))
        yield Figure('frames', 'PSNR of every frame', (7.5, 4.6),
                     lambda fig: self.draw_frames(fig, samples))

    def draw_frames(self, fig, samples):
        for axes, video in zip(fig.subplots(len(VIDEOS), 1, sharex=True), VIDEOS):
            for colour, name in zip(COLOURS, DISCIPLINES):
                axes.plot(self.of(samples, name)[video]['psnr'], color=colour, lw=0.9, label=name)
            axes.set(ylabel='dB', title=video)
            axes.legend(ncols=3)
        axes.set_xlabel('frame')


EXPERIMENT = Q5()
