# SPDX-License-Identifier: Apache-2.0
"""A fair part for each host, however many connections it has: dpctl qos-hosts."""
import json
import time

from support.topo import sh

from harness.bulk import Bulk
from harness.experiment import Claim, Experiment, Figure, Judged, Part, Table
from harness.network import Switch, Topology, forward
from harness.plot import COLOURS

MBIT = 1_000_000
LINK, HOSTS, MANY, BUFFER = 32 * MBIT, 32, 64, 100_000
PORT, PREFIXES, SENDERS = 2, ('10.0.1.0/27', '10.0.2.0/30'), ('10.0.1.62', '10.0.2.62')
EACH, HALF, ONE = 'a queue for each host', 'the same, half of the rate', 'one queue'
RATES = {EACH: LINK // HOSTS, HALF: LINK // HOSTS // 2}
WITHIN = 0.05


def address(host):
    return f'10.0.1.{host + 1}' if host < 30 else f'10.0.2.{host - 29}'


class Hosts(Experiment):
    id = 'L3'
    title = 'Fair to hosts: 32 of them, one with 64 connections'
    source = 'as LibreQoS and CAKE\'s dual-dsthost; not of a paper'
    svg = True
    set_up = (f'One switch; its port has {LINK // MBIT} Mbit/s. {HOSTS} hosts receive TCP, one of them '
              f'by {MANY} connections, the others by one; each host could take more than its part. '
              'First all are in one queue (the default class), then each has its own: `dpctl '
              f'qos-hosts port=2 prefix={PREFIXES[0]},rate=1mbit,ceil=32mbit`, its part of the link; then with '
              'rate=500kbit, so that half of what each gets is borrowed. What each queue '
              'has sent is counted (frames), and what arrives (payload); every queue is a FIFO of '
              f'{BUFFER // 1000} KB.')
    full = {'seconds': 30, 'settle': 5}
    quick = {'seconds': 6, 'settle': 3}

    def parts(self, p):
        for name in ONE, EACH, HALF:
            yield Part(name, p['seconds'] + p['settle'] + 8)

    def run(self, ctx, part):
        p = ctx.p
        topo = ctx.enter(Topology(ports=2, ip=True, offload=False))
        for n, own in ((1, SENDERS), (2, [address(host) for host in range(HOSTS)])):
            for one in own:
                sh('ip', '-n', topo.host_ns(n), 'address', 'add', f'{one}/24', 'dev', 'e0')
        switch = ctx.enter(Switch(topo, f'--leaf=bfifo,limit={BUFFER}'))
        switch.dpctl('qos-htb', f'cmd=replace,port={PORT},class=0,rate={LINK}bit')
        if part.name in RATES:
            for i, prefix in enumerate(PREFIXES):
                switch.dpctl('qos-hosts', f'port={PORT},prefix={prefix},first={1 + 100 * i},'
                             f'rate={RATES[part.name]}bit,ceil={LINK}bit', 'then=normal')
        else:
            forward(switch)
        connections = {address(host): 1 if host else MANY for host in range(HOSTS)}
        load = Bulk(ctx, topo.host_ns(1), topo.host_ns(2), connections, p['settle'], p['seconds'])
        looks = []
        for at in p['settle'], p['settle'] + p['seconds']:
            ctx.sleep_until(load.start + at)
            shown = switch.dpctl('--json', 'qos-hosts', f'port={PORT}', 'show').stdout
            looks.append((time.monotonic(), {h['host']: h['bytes'] for h in json.loads(shown)}))
        (begin, before), (end, after) = looks
        got = load.result()
        return {'bps': [8 * got.get(one, 0) for one in connections],
                'sent': [8 * (after[one] - before[one]) / (end - begin) for one in connections
                         if one in after]}

    @staticmethod
    def parts_of(sample):
        """Of each host, by an equal part: of frames, where each has its queue, else of payload"""
        found = sample['sent'] or sample['bps']
        return [bps * HOSTS / sum(found) for bps in found]

    def claims(self, p):
        yield Claim('each of 32 hosts gets its part within 5 %, the one with 64 connections too',
                    'asked for: within 5 %', lambda s: self.judge(s[EACH]))
        yield Claim('the same when the queues\' rates are half of that and the rest is borrowed',
                    'asked for: within 5 %', lambda s: self.judge(s[HALF]))
        yield Claim('in one queue the host with 64 connections takes more', '-',
                    lambda s: Judged(f'{self.parts_of(s[ONE])[0]:.1f} times its part',
                                     self.parts_of(s[ONE])[0] > 1.5))
        yield Claim('the queues of their own lose nothing of the link', '-', self.judge_total)

    def judge(self, sample):
        found = self.parts_of(sample)
        got = [bps * HOSTS / sum(sample['bps']) for bps in sample['bps']]
        return Judged(f'{min(found):.3f} to {max(found):.3f} of an equal part; the one with 64: '
                      f'{found[0]:.3f}. Received: {min(got):.3f} to {max(got):.3f}',
                      all(abs(share - 1) <= WITHIN for share in found))

    @staticmethod
    def judge_total(samples):
        one, each = (sum(samples[name]['bps']) / MBIT for name in (ONE, EACH))
        return Judged(f'{each:.1f} Mbit/s of payload, {one:.1f} in one queue', each >= 0.98 * one)

    def tables(self, samples, p):
        yield Table('Sent, of an equal part (in one queue: received)', ('', 'host with 64 connections', 'least of the others',
                                                   'most', 'Mbit/s of payload together'),
                    [(name, found[0], min(found[1:]), max(found[1:]),
                      sum(samples[name]['bps']) / MBIT)
                     for name in (ONE, EACH, HALF) for found in [self.parts_of(samples[name])]])

    def figures(self, samples, p):
        def draw(fig):
            axes = fig.subplots()
            for colour, name in zip((COLOURS[1], COLOURS[0], COLOURS[2]), (ONE, EACH, HALF)):
                axes.plot(range(HOSTS), self.parts_of(samples[name]), 'o', ms=4, color=colour,
                          label=name)
            for at in 1 - WITHIN, 1 + WITHIN:
                axes.axhline(at, color='#888888', ls='--', lw=0.8)
            axes.set(xlabel='host (0 has 64 connections)', ylabel='of an equal part', ylim=(0, None))
            axes.legend()
        yield Figure('hosts', 'What each host is sent; dashed: 5 % from an equal part', (7.5, 3.4), draw)


EXPERIMENT = Hosts()
