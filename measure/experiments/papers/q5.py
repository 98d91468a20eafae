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
from harness.network import Line
from harness.plot import COLOURS, bars
from harness.stats import plus_minus
from harness.video import Arrived, Stream, Video, pump

MBIT = 1_000_000
SOURCE, SINK = 1, 2                     # hosts
QUEUE = 10
# name: what ffmpeg makes it of, the published gain
VIDEOS = {'video 1': ('mandelbrot=size=352x288:rate=25', 0.4857),
          'video 2': ('testsrc2=size=352x288:rate=25,noise=alls=4:allf=t', 0.6857)}
DISCIPLINES = {'FIFO': ('qos-pfifo', 'limit=127'), 'SFQ': ('qos-sfq', 'limit=127'),
               'fq_codel': ('qos-fq_codel', '')}
UNDISTURBED, DISTURBED, LINE = 'nothing lost', 'disturbed', 'disturbed, three switches'
WHERE = {DISTURBED: ('one switch', 1), LINE: ('three switches in a line', 3)}
PAYLOAD, HEADERS, DISCARD = 1400, 42, 9
TRIES, LATE, FULL = 6, 1.05, 0.95
LEAD = 1                                # seconds that the disturbing traffic is there before, after


def tx_bytes(net):
    """What the last switch's queue has sent"""
    port = net.out_port[-1]
    with net.switches[-1].connect() as conn:
        return conn.queue_stats(port)[port, QUEUE]['tx_bytes']


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
    set_up = ('Two hosts, one switch between them, then three in a line. Two videos (H.264 in an MPEG transport stream in RTP, '
              'constant rate) and UDP flows that disturb them, from one host, so that all packets '
              'come in the order in which they are due, go through one queue of 10 Mbit/s (on every '
              'switch) to the other. What arrived is decoded and each frame compared with the source\'s '
              '(luminance PSNR by ffmpeg); a frame that is lost is shown as the one before it. The '
              'queue is a FIFO, then SFQ, each of 127 packets; and, beyond the source, fq_codel. '
              'All three in the same kernel.')
    differs = ('The source\'s videos, their rates and what disturbed them are not at hand: two made '
               'by ffmpeg (a zoom into a fractal, a test picture with noise), each of 1.2 Mbit/s, '
               'beside UDP of 18 Mbit/s. How much is gained depends on them, so it is judged as a '
               'least. The source compares with a tool of its own; here the PSNR is ffmpeg\'s.')
    full = {'seconds': 30, 'video_bps': 1_200_000, 'queue_bps': 10 * MBIT,
            'disturbing_bps': [6 * MBIT] * 3}
    quick = {'seconds': 4}

    def parts(self, p):
        yield Part(UNDISTURBED, 2 * p['seconds'], needs=())
        for name, (_, switches) in WHERE.items():
            yield Part(name, 5 + len(DISCIPLINES) * (p['seconds'] + 5),
                       needs=('htb', 'sfq', 'fq_codel'), switches=switches)

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
        net = ctx.enter(Line(part.switches))
        self.set_up_queues(ctx.p, net)
        return {name: self.send_in_time(ctx, net, videos, name) for name in DISCIPLINES}

    @staticmethod
    def set_up_queues(p, net):
        net.exec(SOURCE, 'ping', '-c', '1', '-W', '5', f'10.0.0.{SINK}')
        for switch, port in zip(net.switches, net.out_port):
            switch.dpctl('qos-htb', f"cmd=add,port={port},class={QUEUE},rate={p['queue_bps']}bit")
            switch.dpctl('flow-mod', 'cmd=add,table=0,prio=10', 'eth_type=0x800,ip_proto=17',
                         f'apply:queue={QUEUE},output={port}')

    def send_in_time(self, ctx, net, videos, name):
        """Again, when the machine could not send as fast as was meant, or stood still for so long
        that the queue was empty: then there is no overload, or one that is none of the queue's"""
        for attempt in range(TRIES):
            ctx.say(name + ', again' * bool(attempt))
            found = self.send(ctx, net, videos, name)
            if found['took'] < LATE * found['meant'] and \
                    found['queue_bps'] > FULL * ctx.p['queue_bps']:
                return found
        raise Failure(f"what was to be sent in {found['meant']} s took {found['took']:.1f} s, the "
                      f"queue sent {found['queue_bps'] / MBIT:.1f} Mbit/s, and so {TRIES} times: "
                      'the machine is too slow, or too busy')

    def send(self, ctx, net, videos, name):
        """Both videos, disturbed, with this scheduler in the queue"""
        command, words = DISCIPLINES[name]
        for switch, port in zip(net.switches, net.out_port):
            switch.dpctl(command, ','.join(filter(None, (f'cmd=replace,port={port},class={QUEUE}',
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
            before, start = tx_bytes(net), time.monotonic()
            pump(streams, drain)
            took, sent = time.monotonic() - start, tx_bytes(net) - before
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
    def of(samples, where, name):
        return samples[UNDISTURBED] if name == UNDISTURBED else samples[where][name]

    def mean(self, samples, where, name, video):
        every = self.of(samples, where, name)[video]['psnr']
        return sum(every) / len(every)

    def gain(self, samples, where, video, name='SFQ'):
        return self.mean(samples, where, name, video) / \
            self.mean(samples, where, 'FIFO', video) - 1

    def claims(self, p):
        for where, (title, _) in WHERE.items():
            for name, (_, published) in VIDEOS.items():
                yield Claim(f'SFQ in the place of the FIFO raises the PSNR of {name} by at least as '
                            f'much: {title}', f'{published:+.2%}',
                            lambda s, w=where, v=name, g=published: self.judge(s, w, v, g))

    def judge(self, samples, where, video, published):
        fifo, sfq = (self.mean(samples, where, name, video) for name in ('FIFO', 'SFQ'))
        gain, most = self.gain(samples, where, video), self.mean(samples, where, UNDISTURBED, video)
        holds = gain >= published
        why = '' if holds else (f'undisturbed it has {most:.1f} dB, no more than '
                                f'{most / fifo - 1:+.0%} could be gained')
        return Judged(f'{gain:+.2%} ({fifo:.1f} to {sfq:.1f} dB)', holds, why)

    def tables(self, samples, p):
        for where, (title, _) in WHERE.items():
            rows = []
            for name in (UNDISTURBED, *DISCIPLINES):
                found = self.of(samples, where, name)
                for video in VIDEOS:
                    lost = 1 - found[video]['arrived'] / found[video]['sent']
                    rows.append((name, video, f'{lost:.1%}', plus_minus(found[video]['psnr']),
                                 min(found[video]['psnr']),
                                 f'{self.gain(samples, where, video, name):+.1%}'))
            yield Table(f'{title[0].upper()}{title[1:]}: PSNR in dB, mean of the frames and 95 % (as if '
                        'they were independent)', ('', '', 'packets lost', 'PSNR', 'worst frame',
                                                   'gain over FIFO'), rows)

    def figures(self, samples, p):
        for number, (where, (title, _)) in enumerate(WHERE.items()):
            yield Figure('psnr' + f'-{number + 1}' * bool(number), 'As the source\'s figure 6: PSNR by '
                         f'the scheduler in the queue; {title}', (6, 3.4),
                         lambda fig, w=where: bars(
                             fig.subplots(), list(VIDEOS),
                             {name: [self.mean(samples, w, name, v) for v in VIDEOS]
                              for name in (*DISCIPLINES, UNDISTURBED)}, unit='dB'))
        yield Figure('frames', 'PSNR of every frame, one switch', (7.5, 4.6),
                     lambda fig: self.draw_frames(fig, samples))

    def draw_frames(self, fig, samples):
        for axes, video in zip(fig.subplots(len(VIDEOS), 1, sharex=True), VIDEOS):
            for colour, name in zip(COLOURS, DISCIPLINES):
                axes.plot(self.of(samples, DISTURBED, name)[video]['psnr'], color=colour, lw=0.9, label=name)
            axes.set(ylabel='dB', title=video)
            axes.legend(ncols=3)
        axes.set_xlabel('frame')


EXPERIMENT = Q5()
