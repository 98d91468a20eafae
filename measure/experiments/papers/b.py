# SPDX-License-Identifier: Apache-2.0
"""Bandwidth as a service: a tenant's total for each direction, divided into groups in percent."""
import json
import socket
import subprocess
import tempfile
import time

from harness.experiment import Claim, Experiment, Figure, Judged, Part, Table
from harness.network import Switch, Topology, forward
from harness.paced import FRAME, Paced, Stream
from harness.plot import COLOURS
from harness.stalls import Stalls
from harness.stats import plus_minus
from support.topo import binary

from . import b_ecn

TOTAL = 100_000                            # byte/s, each direction
SHARES = (10, 20, 30, 40)                  # percent, of groups 1 to 4
FIRST, STEP, LAST = 10_000, 5_000, 30_000  # byte/s of a connection
ASSURED = [TOTAL * share // 100 for share in SHARES]
WITHIN = [n for n, assured in enumerate(ASSURED) if assured >= LAST]   # in the last state, too
WAYS = ('out', 'in')                       # what the tenant receives, what it sends
PORTS = {'out': 7000, 'in': 7100}          # of the tenant, and the connection's number
QUEUE = 50                                 # packets a group
SETTLE = 3                                 # seconds of a state that the queues may take to fill
PLAIN = 'TCP out, plain'


def states():
    """The source's: [(byte/s of each connection)]"""
    rates = [FIRST] * len(SHARES)
    out = [tuple(rates)]
    while min(rates) < LAST:
        for n, _ in enumerate(SHARES):
            rates[n] += STEP
            out.append(tuple(rates))
    return out


def frames(rates):
    return [rate / FRAME for rate in rates]


def schedule(p):
    """[(second, byte/s of each connection)], and when it ends"""
    times = [n * p['step'] for n in range(len(states()))]
    return list(zip(times, states())), times[-1] + p['last']


class Tenant:
    """Host 1 behind port 1, with a total both ways; a connection is a port of its for each way.
    Host 2 is the world."""

    def __init__(self, ctx, groups=True, proto='udp'):
        self.ctx, self.proto = ctx, proto
        self.topo = ctx.enter(Topology(ports=2, ip=True, offload=False))
        self.switch = ctx.enter(Switch(self.topo))
        self.dpctl = self.switch.dpctl
        rate = f'{TOTAL}Bps'
        self.dpctl('bw-total', f'port=1,in={rate},out={rate}')
        if groups:
            self.divide(dict(enumerate(SHARES, 1)))
            for n in range(1, len(SHARES) + 1):
                self.assign(n, n)
                self.limit(n, QUEUE)
        else:
            forward(self.switch)
            for way in WAYS:
                self.dpctl('qos-htb', f'cmd=change,port=1,default=1,direction={way}')
                self.dpctl('qos-htb', f'cmd=add,port=1,class=1,rate=100%,direction={way}')
            self.limit(1, QUEUE * len(SHARES))

    def divide(self, shares):
        self.dpctl('bw-group', 'port=1', *(f'group={n},share={s}%' for n, s in shares.items()))

    def assign(self, connection, group):
        self.dpctl('bw-assign', f'group={group}', 'then=normal', *self.flows(connection))

    def flows(self, connection):
        return [f'ip_dst=10.0.0.1,{self.proto}_dst={PORTS[way] + connection}' for way in WAYS]

    def limit(self, group, packets):
        for way in WAYS:
            self.dpctl('qos-pfifo', f'cmd=add,port=1,class={group},limit={packets},'
                                    f'direction={way}')

    def streams(self, way):
        """Of each connection"""
        inside, outside = self.topo.host_ns(1), self.topo.host_ns(2)
        for n in range(1, len(SHARES) + 1):
            if way == 'out':
                yield Stream(outside, inside, '10.0.0.1', PORTS[way] + 1000 + n, PORTS[way] + n)
            else:
                yield Stream(inside, outside, '10.0.0.2', PORTS[way] + n, PORTS[way] + 1000 + n)

    def load(self, plan, seconds, ways=WAYS, **kw):
        """plan: [(second, byte/s of each connection)], the same both ways"""
        both = [(t, frames(rates) * len(ways)) for t, rates in plan]
        streams = [s for way in ways for s in self.streams(way)]
        return Paced(self.ctx, self.proto, streams, both, seconds, **kw)

    def watch(self, seconds):
        """bw-watch --json, once a second -> (process, file of its lines)"""
        lines = self.ctx.enter(tempfile.TemporaryFile('w+'))
        return self.ctx.start(self.topo.switch_ns, binary('utils/dpctl/dpctl'), '--json',
                              self.switch.address, 'bw-watch', 'port=1', 'interval=1s',
                              f'count={seconds:.0f}', stdout=lines), lines


def watched(watch, start):
    """-> {way: [{t, of each group: used, borrowed, lent, dropped}]}, t at the interval's end"""
    child, lines = watch
    child.wait(120)
    lines.seek(0)
    offset = time.time() - time.monotonic() + start
    out = {way: [] for way in WAYS}
    for line in lines:
        look = json.loads(line)
        groups = [g for g in look['groups'] if g['group']]
        out[look['direction']].append(
            {'t': look['time'] - offset,
             **{key: [g[key] for g in groups]
                for key in ('used_bps', 'borrowed_bps', 'lent_bps', 'dropped')}})
    return out


def split(counts, ways=WAYS):
    """Rows of all streams -> {way: rows}"""
    n = len(SHARES)
    return {way: [row[k * n:(k + 1) * n] for row in counts] for k, way in enumerate(ways)}


def sums(rows):
    return [sum(column) for column in zip(*rows)]


def last_state(sample, way, p):
    """Rows of the seconds of the last state, when its queues have filled"""
    begin = schedule(p)[0][-1][0]
    return sample['heard'][way][int(begin + SETTLE):int(begin + p['last'])]


def mean_rates(rows):
    """byte/s of each connection"""
    return [n * FRAME / len(rows) for n in sums(rows)]


def kilo(values):
    return ', '.join(f'{v / 1000:.2f}' for v in values)


class B(Experiment):
    id = 'B'
    title = 'Bandwidth as a service'
    source = '"Bandwidth as a Service", its experiment with four groups'
    headline = 2
    set_up = (
        'One switch, a tenant\'s host behind port 1, one host outside. The port has a total of '
        '100,000 byte/s in each direction, four groups of 10, 20, 30 and 40 % (bw-total, bw-group), '
        'one connection each (bw-assign), 50 packets of room a group. UDP, 500 bytes a frame; all '
        'begin at 10,000 byte/s, then connection 0, 1, 2, 3 in turn rises by 5,000 up to 30,000 '
        'each: 120,000 in all. What the tenant receives and what it sends at once, the same both '
        'ways. The receivers count frames (with all headers) and gaps in their numbers. Plain '
        'limiting: the same total, no groups, one queue of 200 packets.')
    differs = ('The thesis ran in three computers, with a module of its own in the kernel that counted '
               'once a second; here HTB decides about every packet. An SCTP stream within an association '
               'has its ports with all the others, so OpenFlow can\'t tell it from them: each association '
               'is a group\'s. Groups have 50 packets of room, which the source does not tell. What '
               'Gatekeeper and Amamou measured, which the source compares itself with, is not at hand.')
    full = {'step': 30, 'last': 300, 'tcp': 120, 'sctp': 60, 'sctp_ways': WAYS, 'cycles': 10,
            'ecn': 20}
    quick = {'step': 0.5, 'last': 7, 'tcp': 8, 'sctp': 7, 'sctp_ways': ['out'], 'cycles': 1,
             'ecn': 4}

    def parts(self, p):
        seconds = schedule(p)[1] + 8
        uses = ('step', 'last')
        yield Part('groups', seconds, uses=uses, run=self.run_schedule, groups=True)
        yield Part('plain', seconds, uses=uses, run=self.run_schedule, groups=False)
        yield Part('lending', 4 * p['cycles'] + 10, uses=('cycles',), run=self.run_lending)
        yield Part('changes', 18, uses=(), run=self.run_changes)
        for name, way, groups in (*((f'TCP {way}', way, True) for way in WAYS), (PLAIN, 'out', False)):
            yield Part(name, p['tcp'] + 8, uses=('tcp',), form=2, run=self.run_streams, proto='tcp',
                       way=way, groups=groups)
        for way in p['sctp_ways']:
            yield Part(f'SCTP {way}', p['sctp'] + 8, needs=('htb', 'sctp'), uses=('sctp',), form=2,
                       run=self.run_streams, proto='sctp', way=way, groups=True)
        yield from b_ecn.parts(p)

    def run(self, ctx, part):
        return part.run(ctx, part)

    # ------------------------------------------------------------------------------- measuring

    @staticmethod
    def run_schedule(ctx, part):
        tenant, stalls = Tenant(ctx, part.groups), ctx.enter(Stalls())
        plan, seconds = schedule(ctx.p)
        load = tenant.load(plan, seconds)
        watch = tenant.watch(seconds + 2)
        for begin, rates in plan:
            ctx.sleep_until(load.start + begin)
            ctx.say(f'{sum(rates):,} byte/s offered')
        sent, heard = load.result()
        return {'sent': split(sent['frames']), 'heard': split(heard['frames']),
                'lost': split(heard['lost']), 'watched': watched(watch, load.start),
                'stall': stalls.worst(load.start, load.start + seconds)}

    @staticmethod
    def run_lending(ctx, _):
        """Group 1 asks for everything; group 4 sends its 40 % for 2 s, then nothing for 2 s"""
        tenant, stalls = Tenant(ctx), ctx.enter(Stalls())
        plan, step = [], 0.05
        for n in range(ctx.p['cycles']):
            plan += [(4 * n, (TOTAL * 2, 0, 0, 0)), (4 * n + 2, (TOTAL * 2, 0, 0, ASSURED[3]))]
        plan.append((4 * ctx.p['cycles'], (TOTAL * 2, 0, 0, 0)))
        load = tenant.load(plan, plan[-1][0] + 2, step=step)
        sent, heard = load.result()
        return {'step': step, 'sent': split(sent['frames']), 'heard': split(heard['frames']),
                'lost': split(heard['lost']), 'stalls': [
                    stalls.worst(load.start + t - 0.1, load.start + t + 1) for t, _ in plan]}

    @staticmethod
    def run_changes(ctx, _):
        """Every kind of change, while four connections send what stays within their shares"""
        tenant = Tenant(ctx)
        changes = [
            ('total to 150,000', lambda: tenant.dpctl('bw-total', 'port=1,in=150kBps,out=150kBps')),
            ('total back', lambda: tenant.dpctl('bw-total', 'port=1,in=100kBps,out=100kBps')),
            ('shares 15, 15, 30, 40', lambda: tenant.divide({1: 15, 2: 15, 3: 30, 4: 40})),
            ('shares back', lambda: tenant.divide(dict(enumerate(SHARES, 1)))),
            ('connection 0 to group 4', lambda: tenant.assign(1, 4)),
            ('and back', lambda: tenant.assign(1, 1)),
            ('connection 3 to no group', lambda: tenant.dpctl('bw-unassign', *tenant.flows(4))),
            ('and back', lambda: tenant.assign(4, 4)),
            ('a fifth group of 0 % of what is left', lambda: tenant.divide({4: 35, 5: 5})),
            ('and away', lambda: tenant.dpctl('bw-del', 'port=1,group=5'))]
        load = tenant.load([(0, (9_000, 15_000, 20_000, 25_000))], len(changes) + 1, step=0.5)
        for n, (name, change) in enumerate(changes):
            ctx.sleep_until(load.start + n + 0.5)
            ctx.say(name)
            change()
        sent, heard = load.result()
        return {'changes': [name for name, _ in changes], 'sent': split(sent['frames']),
                'heard': split(heard['frames'])}

    @staticmethod
    def run_streams(ctx, part):
        """The last state with connections that keep themselves back"""
        if part.proto == 'sctp':
            subprocess.run(['modprobe', '-q', 'sctp'], check=False)
            socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_SCTP).close()
        tenant, stalls = Tenant(ctx, part.groups, proto=part.proto), ctx.enter(Stalls())
        seconds = ctx.p[part.proto]
        load = tenant.load([(0, (LAST,) * len(SHARES))], seconds, ways=(part.way,))
        watch = tenant.watch(seconds + 2)
        sent, heard = load.result()
        return {'sent': sent['frames'], 'heard': heard['frames'],
                'cwnd': sent['cwnd'], 'retransmits': sent['retransmits'],
                'watched': watched(watch, load.start)[part.way],
                'paused': sum(late for at, late in stalls.seen
                              if load.start <= at <= load.start + seconds)}

    # --------------------------------------------------------------------------------- judging

    def claims(self, p):
        for way in WAYS:
            yield Claim(f'{TEXT[way]}: at the limit groups 2 and 3 keep their 30,000, groups 0 and 1 '
                        'get their 10,000 and 20,000 at least',
                        'about 10,000 and 20,000 (with spikes), 30,000 and 30,000',
                        lambda s, w=way: self.judge_shares(s, p, w))
            yield Claim(f'{TEXT[way]}: the sum is the total, within 2 %', 'stays under 100,000',
                        lambda s, w=way: self.judge_sum(s, p, w))
            yield Claim(f'{TEXT[way]}: no loss in a group that stays within its share, from beginning '
                        'to end (no covetous bandwidth effect)',
                        'a handful of losses in groups 2 and 3',
                        lambda s, w=way: self.judge_covetous(s, w))
            yield Claim(f'{TEXT[way]}: nobody loses anything while all that is offered fits the '
                        'total, whatever the shares', '(not told)',
                        lambda s, w=way: self.judge_below(s, p, w))
            yield Claim(f'{TEXT[way]}: what a group leaves is lent, and what it wants back returned, '
                        'within 0.2 s, without a loss to it', 'every second (the quantum)',
                        lambda s, w=way: self.judge_lending(s, p, w))
            yield Claim(f'{TEXT[way]}: changes of total, shares and membership lose nothing',
                        '(not told)', lambda s, w=way: self.judge_changes(s, w))
        yield Claim('plain limiting protects nobody: connections 2 and 3, which ask for no more '
                    'than 30 and 40 % of the total, lose', '"bursty and stochastic"',
                    lambda s: self.judge_plain(s, p))
        for proto, ways in ('TCP', WAYS), ('SCTP', p['sctp_ways']):
            for way in ways:
                yield Claim(f'{proto}, {TEXT[way]}: each connection has its assured share or all it '
                            'asks for, the total is kept within 2 %, groups 2 and 3 lose nothing',
                            'as with UDP', lambda s, w=way, x=proto: self.judge_streams(s, x, w))
        yield Claim('retransmissions: TCP connections 2 and 3, within their shares, repeat nothing',
                    'figures V.2 to V.18; figures: not at hand',
                    self.judge_retransmits)
        yield from b_ecn.claims()

    @staticmethod
    def judge_shares(samples, p, way):
        got = mean_rates(last_state(samples['groups'], way, p))
        holds = all(rate >= min(LAST, assured) * 0.98 for rate, assured in zip(got, ASSURED))
        return Judged(kilo(got) + ' kB/s', holds, why_not(holds, samples['groups']))

    @staticmethod
    def judge_sum(samples, p, way):
        rows = last_state(samples['groups'], way, p)
        total = sum(mean_rates(rows))
        each = [sum(row) * FRAME for row in rows]
        holds = abs(total / TOTAL - 1) <= 0.02
        return Judged(f'{total:,.0f} byte/s; single seconds {min(each):,.0f} to {max(each):,.0f}',
                      holds, why_not(holds, samples['groups']))

    @staticmethod
    def judge_covetous(samples, way):
        sent, heard = (sums(samples['groups'][x][way]) for x in ('sent', 'heard'))
        lost = [sent[n] - heard[n] for n in WITHIN]
        return Judged(f'{lost[0]} and {lost[1]} of {sent[2]:,} and {sent[3]:,} frames',
                      not any(lost), why_not(not any(lost), samples['groups']))

    @staticmethod
    def judge_below(samples, p, way):
        end = next(t for t, rates in schedule(p)[0] if sum(rates) > TOTAL)
        rows = samples['groups']['lost'][way][:int(end)]
        lost = sum(sums(rows))
        return Judged(f'{lost} of {sum(sums(samples["groups"]["heard"][way][:int(end)])):,} frames',
                      lost == 0, why_not(not lost, samples['groups']))

    @staticmethod
    def judge_lending(samples, p, way):
        s = samples['lending']
        heard, step = s['heard'][way], s['step']
        lent = [delay(heard, step, 4 * n, 0, TOTAL) for n in range(1, p['cycles'] + 1)]
        back = [delay(heard, step, 4 * n + 2, 3, ASSURED[3]) for n in range(p['cycles'])]
        lost = sums(s['sent'][way])[3] - sums(s['heard'][way])[3]
        holds = max(lent + back) <= 0.2 and not lost
        return Judged(f'lent within {max(lent):.2f} s, back within {max(back):.2f} s in the worst of '
                      f'{p["cycles"]} times; {lost} frames lost', holds,
                      '' if holds else
                      f'longest pause of the machine then: {max(s["stalls"]) * 1000:.0f} ms')

    @staticmethod
    def judge_changes(samples, way):
        s = samples['changes']
        lost = sum(sums(s['sent'][way])) - sum(sums(s['heard'][way]))
        return Judged(f'{lost} of {sum(sums(s["sent"][way])):,} frames lost by '
                      f'{len(s["changes"])} changes', lost == 0)

    @staticmethod
    def judge_plain(samples, p):
        ours = []
        for way in WAYS:
            sent, heard = (sums(samples['plain'][x][way]) for x in ('sent', 'heard'))
            ours.append([sent[n] - heard[n] for n in WITHIN])
        got = mean_rates(last_state(samples['plain'], 'out', p))
        return Judged(f'frames lost by connections 2 and 3: {ours[0]} {TEXT["out"]}, {ours[1]} '
                      f'{TEXT["in"]}; the four get {kilo(got)} kB/s',
                      all(any(lost) for lost in ours))

    @staticmethod
    def judge_streams(samples, proto, way):
        s = samples[f'{proto} {way}']
        seconds = len(s['sent']) - 1
        looks = [look for look in s['watched'] if SETTLE + 1 < look['t'] < seconds]
        got = [sum(look['used_bps'][n] for look in looks) / len(looks) / 8 for n in range(4)]
        dropped = [sum(look['dropped'][n] for look in looks) for n in range(4)]
        holds = abs(sum(got) / TOTAL - 1) <= 0.02 and not any(dropped[n] for n in WITHIN) and \
            all(rate >= min(LAST, assured) * 0.98 for rate, assured in zip(got, ASSURED))
        return Judged(f'{kilo(got)} kB/s, {sum(got) / 1000:.2f} in all; dropped by the queues: '
                      f'{dropped}', holds, '' if holds else
                      f'the senders had nothing to send in {s["sent"][:seconds].count([0] * 4)} of '
                      f'{seconds} seconds; the machine stood still for {s["paused"]:.1f} s of them')

    @staticmethod
    def judge_retransmits(samples):
        s = samples['TCP out']
        groups, plain = s['retransmits'][-1], samples[PLAIN]['retransmits'][-1]
        repeated = any(groups[n] for n in WITHIN)
        dropped = [sum(look['dropped'][n] for look in s['watched']) for n in range(len(SHARES))]
        # What no queue dropped is repeated by TCP's own timers
        holds = not repeated or (False if any(dropped[n] for n in WITHIN) else None)
        return Judged(f'with groups {groups}, plain {plain} packets repeated by connections 0 to 3',
                      holds, '' if not repeated else
                      f'dropped by the queues: {dropped}; the machine stood still for '
                      f"{s['paused']:.1f} s, in which TCP's timers run out")

    # --------------------------------------------------------------------------------- showing

    def tables(self, samples, p):
        rows = [(name, n, *cwnd_of(samples[name], n), samples[name]['retransmits'][-1][n])
                for name in ('TCP out', 'TCP in', PLAIN, *(f'SCTP {w}' for w in p['sctp_ways']))
                for n in range(len(SHARES))]
        yield Table('Congestion windows in bytes, packets (SCTP: chunks) repeated',
                    ('', 'connection', 'window, mean and 95 %', 'least', 'most', 'repeated'), rows)
        rows = []
        for way in WAYS:
            for kind in 'groups', 'plain':
                s = samples[kind]
                sent, heard = sums(s['sent'][way]), sums(s['heard'][way])
                for n, rate in enumerate(mean_rates(last_state(s, way, p))):
                    rows.append((TEXT[way], kind, n, f'{SHARES[n]} %', LAST, rate,
                                 PUBLISHED[n] if kind == 'groups' else '', sent[n],
                                 sent[n] - heard[n]))
        yield Table('byte/s in the last state; frames of the whole run',
                    ('', '', 'connection', 'share', 'offered', 'got', 'published', 'frames sent',
                     'lost'), rows)
        rows = []
        for look in samples['groups']['watched']['out'][-6:]:
            rows.append([round(look['t'])] + [
                f'{used / 8000:.1f} ({"+" if borrowed else "-"}{(borrowed or lent) / 8000:.1f})'
                for used, borrowed, lent in zip(look['used_bps'], look['borrowed_bps'],
                                                look['lent_bps'])])
        yield Table('What bw-watch shows at the end: kB/s, in brackets what is borrowed (+) or lent '
                    '(-)', ('second', *(f'group of {share} %' for share in SHARES)), rows)

    def figures(self, samples, p):
        for way in WAYS:
            yield Figure(f'groups-{way}', f'{TEXT[way].capitalize()}: the four connections over time, '
                         'with groups and with a plain limit; below, the frames lost',
                         (8.5, 5), lambda fig, w=way: draw(fig, samples, p, w))
        yield Figure('windows', 'As the source\'s figures V.2 to V.18: congestion windows and what has '
                     'been repeated, with groups and with a plain limit', (8.5, 5),
                     lambda fig: draw_windows(fig, samples))


TEXT = {'out': 'what the tenant receives', 'in': 'what the tenant sends'}
PUBLISHED = (10_000, 20_000, 30_000, 30_000)


def delay(heard, step, at, connection, rate):
    """From second `at` on, how long at most until the connection has 90 % of the rate for 0.2 s"""
    wide = round(0.2 / step)
    first = round(at / step)
    for k in range(first, len(heard) - wide):
        got = sum(row[connection] for row in heard[k:k + wide]) * FRAME / (wide * step)
        if got >= 0.9 * rate:
            return (k - first + 1) * step
    return float('inf')


def cwnd_of(sample, n):
    got = [row[n] for row in sample['cwnd'][SETTLE:]]
    return plus_minus(got, ',.0f'), f'{min(got):,}', f'{max(got):,}'


def draw_windows(fig, samples):
    axes = fig.subplots(2, 2, sharex=True, sharey='row')
    for column, name in zip(axes.T, ('TCP out', PLAIN)):
        for ax, key, scale in zip(column, ('cwnd', 'retransmits'), (1000, 1)):
            for n, colour in zip(range(len(SHARES)), COLOURS):
                ax.plot([row[n] / scale for row in samples[name][key]], color=colour,
                        label=f'connection {n}, {SHARES[n]} %')
        column[0].set_title('groups' if name != PLAIN else 'plain limit')
        column[1].set_xlabel('time (s)')
    axes[0][0].set_ylabel('congestion window (kB)')
    axes[1][0].set_ylabel('repeated (packets)')
    axes[0][0].legend()


def why_not(holds, sample):
    return '' if holds else f'longest pause of the machine: {sample["stall"] * 1000:.0f} ms'


def draw(fig, samples, p, way):
    """Rates above, losses below; groups left, plain right"""
    axes = fig.subplots(2, 2, sharex=True, sharey='row', height_ratios=(2, 1))
    plan, seconds = schedule(p)
    for column, kind in enumerate(('groups', 'plain')):
        s, wide = samples[kind], max(1, p['step'] // 3)
        for n, colour in zip(range(len(SHARES)), COLOURS):
            for row, key, scale in ((0, 'heard', FRAME / 1000), (1, 'lost', 1)):
                counts = [counts[n] for counts in s[key][way]][:int(seconds)]
                means = [sum(counts[k:k + wide]) / wide * scale
                         for k in range(0, len(counts) - wide + 1, wide)]
                axes[row][column].plot([(k + 0.5) * wide for k in range(len(means))], means,
                                       color=colour,
                                       label=f'connection {n}, {SHARES[n]} %' if not row else None)
            if kind == 'groups':
                axes[0][0].hlines(PUBLISHED[n] / 1000, plan[-1][0], seconds, color=colour, ls='--',
                                  lw=0.8, label='published' if not n else None)
        axes[0][column].set_title(kind if kind == 'groups' else 'plain limit')
        axes[1][column].set_xlabel('time (s)')
    axes[0][0].set(ylabel='kB/s', ylim=(0, 38))
    axes[1][0].set_ylabel('frames lost/s')
    axes[0][0].legend(loc='lower right', ncols=2)


EXPERIMENT = B()
