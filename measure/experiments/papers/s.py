# SPDX-License-Identifier: Apache-2.0
"""Packet scheduling techniques: four disciplines, four flows, one bottleneck."""
import os
import re
import statistics
import tempfile
import time

from harness.context import Failure
from harness.experiment import Claim, Experiment, Figure, Judged, Missing, Part, Table
from harness.network import Line, forward, queue_bytes
from harness.plot import COLOURS, PUBLISHED
from harness.traffic import Flow
from support.topo import REPOSITORY

MBIT = 1_000_000
LINK = 8                        # Mbit/s of the bottleneck
FAR = 4                         # host n sends to host n + FAR
FLOWS = (1, 2, 3, 4)            # flow n: from host n, into queue n
ORDER = (4, 3, 2, 1)            # as they begin
BYTES = {4: 1470, 6: 1450}      # of UDP payload in a packet
HEADERS = {4: 42, 6: 62}        # Ethernet, IP, UDP: a queue's rate counts them
WITHIN = 0.05
SENT = 0.95                     # of what it was to send: less, and a flow can't be judged by
IDLE = 0.03                     # of the processors' time: less, and what a flow got is chance
PACE = {False: '1000', True: '4000'}    # us between a sender's bursts: the test kernel is slow
SPARE = 60                      # seconds by which flows may begin late: they are ended by us
OFFERED = {'SFQ': 8, 'PQ': 5, 'CBWFQ': 8, 'LLQ': 5}                # Mbit/s of each flow
# Mbit/s by the number of flows: {flows: {flow: published}}; what the text says in numbers
RATES = {'SFQ': {2: {4: 3.88, 3: 3.88}, 3: {4: 2.60, 3: 2.60, 2: 2.60}},
         'PQ': {3: {4: 0.07}, 4: {4: 0.07, 3: 1.35}},
         'CBWFQ': {2: {3: 3.29, 4: 4.68}},
         'LLQ': {}}
JITTER = {'SFQ': (1.26, 4.07, 1.27, 0.66), 'PQ': (0.80, 3.00, 3.88, 93.60),
          'CBWFQ': (6.89, 1.94, 2.00, 0.97), 'LLQ': (0.02, 9.28, 15.84, 3.78)}
# What tells what SFQ's jitter here is made of: its queues with FIFOs in this kernel, and another
# technique in the test kernel
FIFOS, ELSEWHERE = 'SFQ\'s queues with FIFOs, IPv4', 'CBWFQ in the test kernel, IPv4'
FAIR = 5                        # points by which what flows lose may differ
LOST = {('PQ', 1): 0, ('LLQ', 1): 0}                               # per cent, published
SHARES = {1: 0.1, 2: 0.2, 3: 0.3, 4: 0.4}                          # of cbwfq.qos
APPLICATIONS = {1: 'DSCP EF, UDP', 2: 'HTTPS, TCP port 443', 3: 'one 5-tuple, UDP',
                4: 'any other UDP'}


def payload(v):
    """Mbit/s that the link has for UDP payload"""
    return LINK * BYTES[v] / (BYTES[v] + HEADERS[v])


def payload_rate(a, b, flow, v):
    """Mbit/s between two looks at the queues"""
    sent = b['bytes'][str(flow)] - a['bytes'][str(flow)]
    return sent * 8 / (b['t'] - a['t']) / MBIT * BYTES[v] / (BYTES[v] + HEADERS[v])


def idle_seconds():
    """That the processors had nothing to do, since the start, divided by their number"""
    with open('/proc/stat') as f:
        return int(f.readline().split()[4]) / os.sysconf('SC_CLK_TCK') / os.cpu_count()


def expected(technique, n, v):
    """What the technique promises with n flows -> {flow: Mbit/s of payload}"""
    total = payload(v)
    least = {f: 0.08 * total / LINK for f in FLOWS}
    active = ORDER[:n]
    if technique == 'SFQ':
        return {f: total / n for f in active}
    if technique == 'CBWFQ':
        return {f: total * SHARES[f] / sum(SHARES[g] for g in active) for f in active}
    first = OFFERED[technique]
    if technique == 'PQ':
        return {4: {4: least[4], 3: (total - first - least[4]) / 2,
                    2: (total - first - least[4]) / 2, 1: first},
                3: {4: least[4], 3: (total - least[4]) / 2, 2: (total - least[4]) / 2},
                2: {4: total - first, 3: first}, 1: {4: first}}[n]
    rest = total - (first if n == 4 else 0)
    weights = {4: 3, 3: 2, 2: 1}
    shared = [f for f in active if f != 1]
    if n == 1:
        return {4: first}
    out = {f: rest * weights[f] / sum(weights[g] for g in shared) for f in shared}
    return {**out, **({1: first} if n == 4 else {})}


def jitter_of(sample, flow):
    """The mean of its reports, ms"""
    got = sample['flows'][str(flow)]['intervals']
    return statistics.fmean([i['jitter_ms'] for i in got if i['packets']] or [0])


def part_name(technique, v):
    return f'{technique}, IPv{v}'


class Watch:
    """The queues' byte counters over time"""

    def __init__(self, conn, port):
        self.conn, self.port, self.samples = conn, port, []
        self.start, _ = queue_bytes(conn, port, FLOWS)

    def look(self):
        at, counted = queue_bytes(self.conn, self.port, FLOWS)
        self.samples.append({'t': at - self.start, 'idle': idle_seconds(),
                             'bytes': {str(q): n for q, n in counted.items()}})
        return self.samples[-1]

    def begins(self, flow, patience=20):
        """Waits until packets leave its queue -> when"""
        first = self.look()
        while True:
            now = self.look()
            if now['bytes'][str(flow)] > first['bytes'][str(flow)] + 5000:
                return now['t']
            if now['t'] > first['t'] + patience:
                raise Failure(f'flow_{flow} does not begin')
            self.samples.pop()
            time.sleep(0.02)

    def until(self, ctx, moment, every):
        steps = round((moment - self.samples[-1]['t']) / every)
        for step in range(steps - 1, -1, -1):
            ctx.sleep_until(self.start + moment - step * every)
            self.look()


class S(Experiment):
    id = 'S'
    title = 'Four scheduling techniques, IPv4 and IPv6'
    source = '"Packet Scheduling techniques based on Software Defined Networking"'
    set_up = ('Eight hosts, host n sends UDP to host n + 4 over one port of 8 Mbit/s with four '
              'queues, one a flow (a second switch behind that port leads to hosts 5 to 8). flow_4 '
              'begins, then flow_3, flow_2 and flow_1 at equal intervals. The queues are the '
              'profiles docs/examples/sfq.qos, pq.qos, cbwfq.qos and llq.qos, applied by dpctl '
              'qos-apply. Rates are UDP payload, from the queues\' byte counters; the queues\' 8 '
              'Mbit/s are of Ethernet frames, which leaves 7.78 of payload over IPv4. Jitter (the '
              'mean of its reports) and loss are iperf3\'s. Then the same port, profile '
              'cbwfq.qos, with one host\'s applications told apart by dpctl qos-map: DSCP, port, '
              '5-tuple. Over IPv4 it goes on until 600 s after the first flow\'s begin, as the source\'s.')
    differs = ('The source\'s Table 3 numbers the flows the other way than its text and plots; ours go '
               'by the text. The source sends with iperf, whose jitter (RFC 1889) each packet changes by a '
               'sixteenth of how much later or sooner it came than the one before: it counts how a sender '
               'bunches its packets, and in which turns the queues are served. iperf3 computes the same '
               'and sends in steps of 1 ms, in the test kernel (SFQ, which this kernel may lack) of 4 ms. '
               'Its loss is told by the source for few flows in numbers: where there is none, ours stands '
               'alone. IPv6 is shorter: the source has none.')
    form = 5
    full = {'versions': [4, 6], 'interval': 10, 'flow_s': 600, 'report': 1, 'settle': 2,
            'applications_s': 12}
    quick = {'versions': [4], 'interval': 2, 'flow_s': 0, 'report': 0.5, 'settle': 0.8,
             'applications_s': 3}

    def parts(self, p):
        for v in p['versions']:
            for technique in OFFERED:
                needs = ('htb', 'sfq') if technique == 'SFQ' else ('htb',)
                begins = 24 if technique == 'SFQ' else 2       # seconds: in the test kernel, mostly
                lasts = max(4 * p['interval'], p['flow_s'] if v == 4 else 0)
                uses = ('interval', 'report') + ('flow_s',) * (v == 4)
                yield Part(part_name(technique, v), lasts + begins, needs, uses, lasts=lasts,
                           technique=technique, v=v)
        for v in p['versions']:
            yield Part(f'applications, IPv{v}', p['applications_s'] + 5, uses=('applications_s', 'settle'),
                       v=v, technique=None)
        for name, technique, needs in ((FIFOS, 'SFQ', ('htb',)), (ELSEWHERE, 'CBWFQ', ('htb', 'sfq'))):
            yield Part(name, 4 * p['interval'] + 10, needs, ('interval', 'report'), v=4,
                       lasts=4 * p['interval'], technique=technique)

    # ------------------------------------------------------------------------------ measuring

    def run(self, ctx, part):
        line = ctx.enter(Line(2, near=4, far=4, normal=False))
        forward(line.switches[1])
        if part.technique is None:
            return self.applications(ctx, line, part.v)
        self.profile(line, part.technique.lower(), fifos=part.name == FIFOS)
        for n in FLOWS:
            line.switches[0].dpctl(
                'flow-mod', 'cmd=add,table=0,prio=10', f'in_port={n},eth_type='
                f'{"0x86dd" if part.v == 6 else "0x800"},ip_proto=17',
                f'apply:queue={n},output=normal')
        forward(line.switches[0])
        return self.flows(ctx, line, part)

    @staticmethod
    def profile(line, name, fifos=False):
        path = os.path.join(REPOSITORY, f'docs/examples/{name}.qos')
        with open(path) as f, tempfile.NamedTemporaryFile('w', suffix='.qos') as changed:
            if fifos:
                changed.write(re.sub(r'^sfq (class=\d+).*', r'bfifo \1,limit=60000b', f.read(),
                                     flags=re.M))
                changed.flush()
                path = changed.name
            line.switches[0].dpctl('qos-apply', path, f'port={line.out_port[0]}')

    def flows(self, ctx, line, part):
        """The flows begin one after the other, each when the one before has been through its queue
        for an interval; meanwhile the queues' counters are read."""
        p, flows, phases = ctx.p, {}, []
        watched = Watch(ctx.enter(line.switches[0].connect()), line.out_port[0])
        for n in ORDER:
            flows[n] = Flow(ctx, line, n, n + FAR, 5200 + n, part.lasts + SPARE,
                            ('-u', '-b', f'{OFFERED[part.technique]}M', '-l', str(BYTES[part.v]),
                             '--pacing-timer', PACE['TESTKERNEL' in os.environ]),
                            v6=part.v == 6, report=p['report'])
            phases.append(watched.begins(n))
            ctx.say(f'flow_{n} has begun')
            watched.until(ctx, phases[-1] + p['interval'], p['report'])
        watched.until(ctx, phases[0] + part.lasts, p['report'])
        ended = [n for n, flow in flows.items() if not flow.alive()]
        if ended:
            raise Failure(f'flows {ended} ended before the others had begun')
        return {'phases': phases + [watched.samples[-1]['t']], 'queues': watched.samples,
                'flows': {n: flow.stop() for n, flow in flows.items()}}

    def applications(self, ctx, line, v):
        """One host sends all kinds; each kind is to get its queue's share"""
        self.profile(line, 'cbwfq')
        source, sink = ('fd00::1', 'fd00::5') if v == 6 else ('10.0.0.1', '10.0.0.5')
        line.switches[0].dpctl(
            'qos-map', 'then=normal', 'queue=1,dscp=ef', 'queue=2,app=https',
            f'queue=3,src={source},dst={sink},udp_src=6003,udp_dst=5303',
            'queue=4,ip_proto=udp,prio=900')          # after the others
        watched = Watch(ctx.enter(line.switches[0].connect()), line.out_port[0])
        udp = ('-u', '-b', '6M', '-l', str(BYTES[v]))
        kinds = {1: (5301, (*udp, '--dscp', 'ef')), 2: (443, ()),
                 3: (5303, (*udp, '--cport', '6003')), 4: (5304, udp)}
        seconds, flows = ctx.p['applications_s'], {}
        for n, (port, words) in kinds.items():
            flows[n] = Flow(ctx, line, 1, 1 + FAR, port, seconds + SPARE, words, v6=v == 6)
            watched.begins(n)
            ctx.say(f'{APPLICATIONS[n]}: has begun')
        ctx.sleep_until(time.monotonic() + ctx.p['settle'])
        first = watched.look()
        ctx.sleep_until(time.monotonic() + seconds)
        last = watched.look()
        return {'looks': [first, last], 'flows': {n: flow.stop() for n, flow in flows.items()}}

    # ------------------------------------------------------------------------------ judging

    @staticmethod
    def window(samples, p, technique, v, n):
        """The first and last look at the queues while n flows send, without the first seconds"""
        got = samples[part_name(technique, v)]
        start, end = got['phases'][n - 1] + p['settle'], got['phases'][n - 1] + p['interval']
        if n == len(FLOWS):                                  # until all are ended
            end = got['phases'][n]
        inside = [s for s in got['queues'] if start - 0.01 <= s['t'] <= end + 0.1]
        if len(inside) < 2:
            raise Missing(f'{part_name(technique, v)}: no two looks at the queues while {n} flows '
                          'sent: the machine stood still')
        return inside[0], inside[-1]

    def rate(self, samples, p, technique, v, n, flow):
        """Mbit/s of a flow's payload while n flows send"""
        return payload_rate(*self.window(samples, p, technique, v, n), flow, v)

    def idle(self, samples, p, technique, v, n):
        """The processors' share of that time without work"""
        first, last = self.window(samples, p, technique, v, n)
        return (last['idle'] - first['idle']) / (last['t'] - first['t'])

    @staticmethod
    def jitter(samples, technique, v, flow):
        return jitter_of(samples[part_name(technique, v)], flow)

    @staticmethod
    def lost(samples, technique, v, flow):
        """-> per cent"""
        return samples[part_name(technique, v)]['flows'][str(flow)]['lost_percent']

    def claims(self, p):
        for v in p['versions']:
            for technique in OFFERED:
                yield from self.claims_of(p, technique, v)
        for v in p['versions']:
            yield Claim(f'applications, IPv{v}: told apart by DSCP, port and 5-tuple, each gets '
                        'its queue\'s share (10, 20, 30, 40 %) within 5 %', 'left open',
                        lambda s, k=v: self.judge_applications(s, k))

    def claims_of(self, p, technique, v):
        where = f'{technique}, IPv{v}'
        texts = {'SFQ': {2: 'two flows share evenly', 3: 'three flows share evenly',
                         4: 'four flows share evenly'},
                 'PQ': {3: 'flow_4 falls to its least when flow_2 comes',
                        4: 'flow_1 gets what it asks for, flow_2 and flow_3 the rest, flow_4 its '
                           'least'},
                 'CBWFQ': {2: 'two flows share 3:4', 4: 'four flows share 1:2:3:4'},
                 'LLQ': {4: 'flow_1 gets what it asks for, the others share 1:2:3'}}[technique]
        said = {'SFQ': {4: 'equal'}, 'CBWFQ': {4: 'about 1:2:3:4'},
                'LLQ': {4: 'flow_1 all it asks for, the others by their minimum'}}
        for n, text in texts.items():
            published = ', '.join(f'flow_{f} {r}' for f, r in RATES[technique].get(n, {}).items()) \
                or said[technique][n]
            yield Claim(f'{where}: {text} (within 5 %)', published,
                        lambda s, k=n: self.judge_rates(s, p, technique, v, k))
        if technique in ('PQ', 'LLQ'):
            yield Claim(f'{where}: nothing of flow_1 is lost', 'no loss',
                        lambda s: self.judge_first(s, technique, v))
            yield Claim(f'{where}: flow_1 has the least jitter',
                        ', '.join(f'{j}' for j in JITTER[technique]) + ' ms',
                        lambda s: self.judge_jitter(s, p, technique, v))
        if technique == 'SFQ':
            yield Claim(f'{where}: fairness in packet loss: with four flows each loses as much, within '
                        f'{FAIR} points', 'fair', lambda s: self.judge_fair_loss(s, p, v))
        if v == 4:
            for f in FLOWS:
                yield Claim(f'{where}: average jitter of flow_{f} no more than published',
                            f'{JITTER[technique][f - 1]} ms',
                            lambda s, k=f: self.judge_cell(s, p, technique, k))
        if technique == 'CBWFQ':
            yield Claim(f'{where}: most is lost where least is allotted', 'so it is',
                        lambda s: self.judge_loss(s, p, technique, v))

    def judge_rates(self, samples, p, technique, v, n):
        wanted = expected(technique, n, v)
        got = {f: self.rate(samples, p, technique, v, n, f) for f in sorted(wanted)}
        # A queue of 80 kbit/s sends seven packets a second: none more or less can be asked for
        slack = BYTES[v] * 8 / (p['interval'] - p['settle']) / MBIT
        missed = {f: wanted[f] for f in got if abs(got[f] - wanted[f]) >
                  max(WITHIN * wanted[f], slack)}
        ours = ', '.join(f'flow_{f} {r:.2f}' for f, r in got.items())
        if not missed:
            return Judged(ours, True)
        idle = self.idle(samples, p, technique, v, n)
        why = ', '.join(f'flow_{f} should have {r:.2f}' for f, r in missed.items()) + \
            f'; all together {sum(got.values()):.2f} of {payload(v):.2f}; the processors were ' \
            f'idle for {idle:.0%} of the time'
        sent = {f: samples[part_name(technique, v)]['flows'][str(f)]['sent_bps'] / MBIT
                for f in got}
        slow = [f'flow_{f} sent {r:.2f} of {OFFERED[technique]} Mbit/s' for f, r in sent.items()
                if r < SENT * OFFERED[technique]]
        if slow or idle < IDLE:
            return Judged(ours, None, '; '.join([why, *slow])
                          + ': too slow a machine for the flows')
        return Judged(ours, False, why)

    def judge_first(self, samples, technique, v):
        lost = samples[part_name(technique, v)]['flows']['1']
        return Judged(f"{lost['lost_packets']} of {lost['packets']} packets",
                      lost['lost_packets'] == 0)

    def judge_jitter(self, samples, p, technique, v):
        got = {f: self.jitter(samples, technique, v, f) for f in FLOWS}
        holds = got[1] == min(got.values())
        return Judged(', '.join(f'{j:.2f}' for j in got.values()) + ' ms', holds, '' if holds else
                      'while all four sent, the processors were idle for '
                      f'{self.idle(samples, p, technique, v, len(FLOWS)):.0%} of the time')

    def judge_loss(self, samples, p, technique, v):
        """Of what is sent while all four send"""
        lost = {f: 1 - self.rate(samples, p, technique, v, 4, f) / OFFERED[technique]
                for f in FLOWS}
        return Judged(', '.join(f'flow_{f} {x:.0%}' for f, x in lost.items()),
                      lost[1] > lost[2] > lost[3] > lost[4])

    def judge_fair_loss(self, samples, p, v):
        lost = [100 * (1 - self.rate(samples, p, 'SFQ', v, 4, f) / OFFERED['SFQ']) for f in FLOWS]
        return Judged(', '.join(f'flow_{f} {x:.1f} %' for f, x in zip(FLOWS, lost)),
                      max(lost) - min(lost) <= FAIR)

    def judge_cell(self, samples, p, technique, flow):
        got, published = self.jitter(samples, technique, 4, flow), JITTER[technique][flow - 1]
        if got <= published:
            return Judged(f'{got:.2f} ms', True)
        sent = samples[part_name(technique, 4)]['flows'][str(flow)]['sent_bps'] / MBIT
        rate = self.rate(samples, p, technique, 4, len(FLOWS), flow)
        spacing = BYTES[4] * 8 / rate / 1000
        why = (f'sent {sent:.2f} Mbit/s, got {rate:.2f} while all four send: a packet every '
               f'{spacing:.1f} ms, one takes {(BYTES[4] + HEADERS[4]) * 8 / LINK / 1000:.2f} ms')
        if technique == 'SFQ':
            why += '; ' + self.explain(samples)
        return Judged(f'{got:.2f} ms', False, why)

    @staticmethod
    def explain(samples):
        """What is the test kernel's of SFQ's jitter"""
        fifos, here, there = (
            ', '.join(f'{jitter_of(samples[name], f):.2f}' for f in FLOWS)
            for name in (FIFOS, part_name('CBWFQ', 4), ELSEWHERE))
        return (f'the same queues with FIFOs in this kernel: {fifos} ms; CBWFQ has {here} ms here and '
                f'{there} in the test kernel, where SFQ was measured if this kernel lacks it: what is '
                'more there is its clock\'s')

    @staticmethod
    def judge_applications(samples, v):
        a, b = samples[f'applications, IPv{v}']['looks']
        got = {n: (b['bytes'][str(n)] - a['bytes'][str(n)]) * 8 / (b['t'] - a['t']) / MBIT
               for n in FLOWS}
        missed = [n for n in FLOWS if abs(got[n] / (SHARES[n] * LINK) - 1) > WITHIN]
        ours = ', '.join(f'{APPLICATIONS[n]}: {got[n]:.2f}' for n in FLOWS)
        why = '' if not missed else (
            f"outside: {', '.join(APPLICATIONS[n] for n in missed)}; all together "
            f'{sum(got.values()):.2f} of {LINK}; the processors were idle for '
            f"{(b['idle'] - a['idle']) / (b['t'] - a['t']):.0%} of the time")
        return Judged(ours + ' Mbit/s on the wire', not missed, why)

    # ------------------------------------------------------------------------------ showing

    def tables(self, samples, p):
        for v in p['versions']:
            rows = []
            for technique in OFFERED:
                for f in FLOWS:
                    rates = [self.rate(samples, p, technique, v, n, f) if f in ORDER[:n] else None
                             for n in FLOWS]
                    rows.append((technique, f'flow_{f}', *rates, JITTER[technique][f - 1],
                                 self.jitter(samples, technique, v, f),
                                 LOST.get((technique, f), 'not at hand'),
                                 f'{self.lost(samples, technique, v, f):.1f}'))
            yield Table(f'IPv{v}: Mbit/s of payload with one to four flows; jitter in ms; packets '
                        'lost in the whole run',
                        ('', '', '1 flow', '2', '3', '4', 'jitter published', 'jitter ours',
                         'lost % published', 'lost % ours'), rows)
        yield Table('What SFQ\'s jitter is made of: average jitter in ms',
                    ('', *(f'flow_{f}' for f in FLOWS)),
                    [(name, *(jitter_of(samples[name], f) for f in FLOWS)) for name in
                     (part_name('SFQ', 4), FIFOS, part_name('CBWFQ', 4), ELSEWHERE)])

    def figures(self, samples, p):
        for v in p['versions']:
            yield Figure(f'throughput-ipv{v}', f'As the source\'s throughput plots, IPv{v}; '
                         'dashed: what the source says in numbers', (9, 6),
                         lambda fig, k=v: self.draw_rates(fig, samples, k))
            yield Figure(f'time-ipv{v}', f'Bandwidth, jitter and loss over time, IPv{v}: as the receivers '
                         'report them', (11, 6.5), lambda fig, k=v: self.draw_time(fig, samples, k))
            yield Figure(f'jitter-loss-ipv{v}', f'Average jitter (logarithmic) and loss, IPv{v}; '
                         'grey: published', (9, 4.4),
                         lambda fig, k=v: self.draw_jitter(fig, samples, k))

    @staticmethod
    def draw_rates(fig, samples, v):
        for axes, technique in zip(fig.subplots(2, 2).flat, OFFERED):
            got = samples[part_name(technique, v)]
            pairs = list(zip(got['queues'], got['queues'][1:]))
            for i, f in enumerate(FLOWS):
                axes.plot([b['t'] for _, b in pairs],
                          [payload_rate(a, b, f, v) for a, b in pairs], color=COLOURS[i],
                          label=f'flow_{f}')
            for n, published in RATES[technique].items():
                for f, rate in published.items():
                    axes.hlines(rate, got['phases'][n - 1], got['phases'][n], ls='--', lw=0.9,
                                color=COLOURS[f - 1])
            axes.set(title=technique, xlabel='time (s)', ylabel='Mbit/s', ylim=(0, LINK + 0.5),
                     xlim=(0, got['phases'][-1]))
            axes.legend(ncols=2, loc='upper right')

    @staticmethod
    def draw_time(fig, samples, v):
        axes = fig.subplots(3, len(OFFERED), sharex='col', sharey='row')
        for column, technique in zip(axes.T, OFFERED):
            got = samples[part_name(technique, v)]
            for i, f in enumerate(FLOWS):
                begin = got['phases'][ORDER.index(f)]
                rows = [r for r in got['flows'][str(f)]['intervals'] if r['packets']]
                rows = rows[::max(1, len(rows) // 150)]
                for ax, values in zip(column, ([r['bps'] / MBIT for r in rows],
                                               [r['jitter_ms'] for r in rows],
                                               [100 * r['lost_packets'] / r['packets'] for r in rows])):
                    ax.plot([begin + r['end'] for r in rows], values, color=COLOURS[i], lw=0.8,
                            label=f'flow_{f}')
            column[0].set_title(technique)
            column[1].set_yscale('log')
            column[2].set_xlabel('time (s)')
        for ax, label in zip(axes[:, 0], ('Mbit/s', 'jitter (ms)', 'packets lost (%)')):
            ax.set_ylabel(label)
        axes[0][0].legend(ncols=2)

    def draw_jitter(self, fig, samples, v):
        top, bottom = fig.subplots(2, 4, sharex=True, sharey='row')
        for axes, below, technique in zip(top, bottom, OFFERED):
            axes.bar([f - 0.2 for f in FLOWS], JITTER[technique], 0.38, color=PUBLISHED)
            axes.bar([f + 0.2 for f in FLOWS],
                     [self.jitter(samples, technique, v, f) for f in FLOWS], 0.38,
                     color=COLOURS[0])
            axes.set_yscale('log')
            axes.set_title(technique)
            below.bar(FLOWS, [self.lost(samples, technique, v, f) for f in FLOWS], 0.5,
                      color=COLOURS[0])
            below.set(ylim=(0, 100), xlabel='flow', xticks=FLOWS)
        top[0].set_ylabel('jitter (ms)')
        bottom[0].set_ylabel('packets lost (%)')


EXPERIMENT = S()
