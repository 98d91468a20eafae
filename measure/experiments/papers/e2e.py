# SPDX-License-Identifier: Apache-2.0
"""Rates promised from end to end over a ring whose links are cut: ofqos-reserve."""
import socket
import struct
import time

from support import topo
from support.load import Background, Cbr
from support.ring import HOST, Ring

from harness.context import Failure
from harness.experiment import Claim, Experiment, Figure, Judged, Part, Table
from harness.pauses import Pauses
from harness.plot import COLOURS

MBIT = 1_000_000
LINK, USE, REST = 20 * MBIT, 0.98, 0.1
# name: (from, to, rate, IPv6)
RESERVED = {'A': (1, 3, 6 * MBIT, False), 'B': (2, 4, 4 * MBIT, False), 'C': (5, 2, 4 * MBIT, False),
            'D': (4, 1, 3 * MBIT, True)}
FRAME, FLOOD_FRAME, PORT = 1000, 1400, 7000
OVER, FLOOD = 1.05, 18 * MBIT           # what is sent: of the promise; by each host each way besides
WITHIN, AFTER, STEP = 0.03, 1.0, 0.1    # the bound; seconds after a cut that don't count; of a look
SURE = 0.02                             # seconds: a look that took longer has no exact moment
CUTS = 'three links are cut'


def udp6(size, source, sink, dport):
    """A frame of this size; the checksum is one"""
    data = bytes(size - 62)
    addresses = b''.join(socket.inet_pton(socket.AF_INET6, f'fd00::{n}') for n in (source, sink))
    udp = struct.pack('!HHHH', 1000, dport, 8 + len(data), 0) + data
    total = topo.checksum(addresses + struct.pack('!I3xB', len(udp), 17) + udp)
    udp = udp[:6] + struct.pack('!H', total or 0xffff) + udp[8:]
    return topo.eth(struct.pack('!IHBB', 6 << 28, len(udp), 17, 64) + addresses + udp, sink, source,
                    0x86dd)


def udp4(size, source, sink, dport):
    return topo.eth(topo.udp4(bytes(size - 42), src=f'10.0.0.{source}', dst=f'10.0.0.{sink}',
                              dport=dport), sink, source)


class Where(Background):
    """Asks again and again where the reservations are: the controller may take its time."""

    def __init__(self, looker):
        super().__init__()
        self.looker = looker

    def run(self):
        while not self.over:
            self.looker.where()
            time.sleep(0.3)


class Looker:
    """The reservations' queues on all switches, by the switches' counters: [(t, {(switch, port, queue):
    bytes})], and where the reservations were: [(t, {name: path})]."""

    def __init__(self, ctx, ring, app):
        self.ctx, self.app = ctx, app
        self.conns = {n: ctx.enter(switch.connect()) for n, switch in ring.switches.items()}
        self.rows, self.paths, self.over = [], [], []
        self.queues = {}
        self.start = time.monotonic()

    def look(self):
        """Each switch's answer has its own moment; one that was long under way is not used."""
        found = {}
        for n, conn in self.conns.items():
            before = time.monotonic()
            stats = conn.queue_stats()
            took = time.monotonic() - before
            if took > SURE:
                continue
            at = before + took / 2 - self.start
            found.update({(n, port, queue): (at, row['tx_bytes'])
                          for (port, queue), row in stats.items() if queue in self.queues})
        self.rows.append(found)

    def where(self):
        """-> reservations whose path is whole; and links that have promised too much are noted"""
        at = time.monotonic() - self.start
        reserved = self.app.get('/reservations')
        self.queues = {row['queue']: row['name'] for row in reserved}
        self.paths.append((at, {row['name']: [(int(hop['switch'], 16), hop['out'])
                                              for hop in row['path']] for row in reserved}))
        self.over += [link for link in self.app.get('/topology')['links']
                      if link['promised'] > link['limit']]

    def until(self, t):
        """t: seconds from the start"""
        while (now := time.monotonic() - self.start) < t:
            self.look()
            self.ctx.sleep_until(self.start + (int(now / STEP) + 1) * STEP)


def series(rows, key):
    """[(t, bytes)] of one queue"""
    return [row[key] for row in rows if key in row]


def seen(sample):
    """The seconds and hops in which the counters were looked at"""
    return [row for row in sample['windows'] if row[3] is not None]


def rate(points, start, end):
    """Mean bit/s between the looks next to two moments; None: there are none, or far away"""
    first = min(points, key=lambda p: abs(p[0] - start), default=None)
    last = min(points, key=lambda p: abs(p[0] - end), default=None)
    if first is None or max(abs(first[0] - start), abs(last[0] - end)) > 0.25 * (end - start):
        return None
    return (last[1] - first[1]) * 8 / (last[0] - first[0])


class E2E(Experiment):
    id = 'E2E'
    title = 'A rate promised on the whole way, while links are cut'
    source = 'the outlooks of "Using Virtual Queue Simulation" and "Packet Scheduling techniques"'
    svg = True
    set_up = ('Five switches in a ring, a host at each; all links have 20 Mbit/s, of which ofqos-reserve '
              f'shares out {100 * USE:.0f} % and leaves {100 * REST:.0f} % of that for the rest. Four reservations, of '
              f'IPv4 and IPv6; each sends {100 * (OVER - 1):.0f} % more than it was promised, beside '
              f'{FLOOD // MBIT} Mbit/s of other traffic from each host to each of its neighbours. The '
              'link that most reservations use is cut (ip link set down), is mended later, and so three '
              'times. What the queue of each hop sends is read from the switches, ten times a second '
              f'(an answer that took longer than {1000 * SURE:.0f} ms is left out: nobody knows the moment of its '
              'counters); '
              'a second counts if the hop is on the path and no link was cut less than a second before.')
    full = {'seconds': 600, 'down': 100}
    quick = {'seconds': 60, 'down': 10}

    def parts(self, p):
        yield Part(CUTS, p['seconds'] + 25)

    # -------------------------------------------------------------------------------------- measuring

    def run(self, ctx, part):
        p = ctx.p
        ring = ctx.enter(Ring(5, rate=f'{LINK}bit', offload=False, use=USE, rest=REST))
        app = ctx.enter(ring.controller())
        self.reserve(ring, app)
        pauses = Pauses(ctx)
        for sender in self.senders(ring, p['seconds'] + 10):
            ctx.enter(sender)
        looker = Looker(ctx, ring, app)
        looker.where()
        ctx.enter(Where(looker))
        looker.until(3)                         # queues and floods have filled
        begin, cuts = 3.0, []
        for i in range(3):
            looker.until(begin + (i + 0.5) * p['seconds'] / 3 - p['down'] / 2)
            link = self.busiest(ring, looker)
            cuts.append((time.monotonic() - looker.start, link))
            ring.set_link(link, False)
            ctx.say(f'the link from switch {link} on is cut')
            looker.until(cuts[-1][0] + p['down'])
            ring.set_link(link, True)
        looker.until(begin + p['seconds'])
        return self.sample(looker, begin, cuts, app, pauses)

    @staticmethod
    def reserve(ring, app):
        for n in range(1, 6):
            ring.reaches(n, f'10.0.0.{n % 5 + 1}')
            ring.reaches(n, f'fd00::{n % 5 + 1}')
        for i, (name, (source, sink, bps, v6)) in enumerate(RESERVED.items()):
            form = 'fd00::{}' if v6 else '10.0.0.{}'
            status, made = app.add(name, f'{bps}bit', form.format(source), form.format(sink),
                                   match={'udp_dst': PORT + i})
            if status != 201:
                raise Failure(f'{name} is refused: {made}')

    @staticmethod
    def senders(ring, seconds):
        for i, (source, sink, bps, v6) in enumerate(RESERVED.values()):
            frame = (udp6 if v6 else udp4)(FRAME, source, sink, PORT + i)
            yield Cbr(ring, source, (frame, OVER * bps / 8 / FRAME), seconds=seconds)
        for n in range(1, 6):
            yield Cbr(ring, n, *((udp4(FLOOD_FRAME, n, other, 9), FLOOD / 8 / FLOOD_FRAME)
                                 for other in (n % 5 + 1, (n - 2) % 5 + 1)), seconds=seconds)

    @staticmethod
    def busiest(ring, looker):
        """The switch whose link to the next most reservations use, in either direction"""
        used = dict.fromkeys(ring.switches, 0)
        for path in looker.paths[-1][1].values():
            for switch, port in path[:-1]:
                used[switch if port == 2 else (switch - 2) % ring.n + 1] += 1
        return max(used, key=lambda n: (used[n], -n))

    def sample(self, looker, begin, cuts, app, pauses):
        end = max(at for row in looker.rows for at, _ in row.values())
        queue = {name: number for number, name in looker.queues.items()}
        windows, back, lines = [], [], {}
        for name, (_, sink, bps, _) in RESERVED.items():
            last = series(looker.rows, (sink, HOST, queue[name]))
            lines[name] = [(t, (rate(last, t, t + 1) or 0)) for t in range(int(end) - 1)]
            for second in range(int(begin), int(end) - 1):
                windows += self.window(looker, name, queue[name], second, cuts, pauses)
            for at, _ in cuts:
                back.append((name, at, self.holds_again(last, at, bps),
                             self.path_at(looker, name, at) != self.path_at(looker, name, at + 2)))
        return {'windows': windows, 'back': back, 'cuts': cuts, 'lines': lines, 'over': looker.over,
                'begin': begin, 'paused': max(pauses.within(looker.start + at, looker.start + at + 2)
                                              for at, _ in cuts),
                'paths': [(t, paths) for (t, paths), (_, before) in
                          zip(looker.paths[1:], looker.paths) if paths != before],
                'moves': sum(row['moves'] for row in app.get('/reservations'))}

    @staticmethod
    def path_at(looker, name, t):
        """The last that was known then"""
        return [paths[name] for at, paths in looker.paths if at <= t][-1]

    def window(self, looker, name, queue, second, cuts, pauses):
        """-> [(name, second, switch, share of the promise, the machine's pauses, ms)]"""
        if any(second - AFTER < at < second + 1 for at, _ in cuts):
            return
        path = self.path_at(looker, name, second + 1)
        for switch, port in path:
            found = rate(series(looker.rows, (switch, port, queue)), second, second + 1)
            late = pauses.within(looker.start + second, looker.start + second + 1)
            share = None if found is None else found / RESERVED[name][2]
            yield (name, second, switch, share, round(1000 * late, 1))
        if not path:
            yield name, second, 0, 0.0, 0.0

    @staticmethod
    def holds_again(points, cut, bps, width=0.5):
        """Seconds from the cut on to the moment from which half a second has the whole rate"""
        for t, _ in points:
            if t >= cut - STEP and (rate(points, t, t + width) or 0) >= (1 - WITHIN) * bps:
                return max(0.0, t - cut)
        return None

    # ---------------------------------------------------------------------------------------- verdict

    def claims(self, p):
        yield Claim(f'in every second, but the one after a cut, each hop sends what was promised within '
                    f'{100 * WITHIN:.0f} %', 'asked for: 3 %', lambda s: self.judge_held(s[CUTS]))
        yield Claim('a second after a cut the promise holds again', 'asked for: 1 s',
                    lambda s: self.judge_back(s[CUTS]))
        yield Claim('no link has ever promised more than it may', 'asked for', lambda s: Judged(
            f"{len(s[CUTS]['over'])} times", not s[CUTS]['over']))
        yield Claim('each cut moves reservations', '-', lambda s: Judged(
            f"{s[CUTS]['moves']} moves, {len(s[CUTS]['cuts'])} cuts",
            all(any(moved for _, at, _, moved in s[CUTS]['back'] if at == cut)
                for cut, _ in s[CUTS]['cuts'])))

    @staticmethod
    def outside(sample):
        return [row for row in seen(sample) if abs(row[3] - 1) > WITHIN]

    def judge_held(self, sample):
        bad, every = self.outside(sample), seen(sample)
        unseen = len(sample['windows']) - len(every)
        worst = max(every, key=lambda row: abs(row[3] - 1))
        why = '; '.join(f'{name} at switch {switch}, second {second}: {100 * share - 100:+.1f} % '
                        f'(the machine stood still for {late:.0f} ms)'
                        for name, second, switch, share, late in bad[:5])
        return Judged(f'{len(every) - len(bad)} of {len(every)} seconds and hops; worst '
                      f'{100 * worst[3] - 100:+.1f} %' + f'; {unseen} were not looked at' * bool(unseen),
                      not bad and unseen < 0.01 * len(every), why)

    @staticmethod
    def judge_back(sample):
        moved = [(name, took) for name, _, took, there in sample['back'] if there]
        if not moved or any(took is None for _, took in moved):
            return Judged('never', False)
        return Judged(f'{max(took for _, took in moved):.2f} s at most, '
                      f'{sorted(took for _, took in moved)[len(moved) // 2]:.2f} s in the median of '
                      f'{len(moved)} moves', max(took for _, took in moved) <= AFTER,
                      f"in the two seconds after a cut the machine stood still for "
                      f"{1000 * sample['paused']:.0f} ms at most")

    def tables(self, samples, p):
        sample, rows = samples[CUTS], []
        for name, (source, sink, bps, v6) in RESERVED.items():
            shares = [100 * row[3] - 100 for row in seen(sample) if row[0] == name]
            rows.append((name, f'{source} to {sink}', 'IPv6' if v6 else 'IPv4', bps / MBIT, len(shares),
                         min(shares), max(shares)))
        yield Table('What the hops send, of the promise, a second', (
            '', 'hosts', '', 'Mbit/s promised', 'seconds and hops', 'least, %', 'most, %'), rows)
        yield Table('After each cut', ('cut, s', 'link from switch', 'reservation', 'moved',
                                       'holds again after, s'), [
            (f'{at:.1f}', dict(sample['cuts'])[at], name, 'yes' if moved else 'no',
             'never' if took is None else f'{took:.2f}') for name, at, took, moved in
            sorted(sample['back'], key=lambda row: row[1])])

    def figures(self, samples, p):
        yield Figure('time', 'What arrives of each reservation, a second; dashed: a cut', (7.5, 3.4),
                     lambda fig: self.draw(fig, samples[CUTS]))

    @staticmethod
    def draw(fig, sample):
        axes = fig.subplots()
        for colour, (name, line) in zip(COLOURS, sample['lines'].items()):
            axes.plot([t - sample['begin'] for t, _ in line], [bps / MBIT for _, bps in line],
                      color=colour, label=f'{name}, {RESERVED[name][2] / MBIT:g} Mbit/s')
        for at, _ in sample['cuts']:
            axes.axvline(at - sample['begin'], color='#888888', ls='--', lw=0.8)
        axes.set(xlabel='time (s)', ylabel='Mbit/s', ylim=(0, 8))
        axes.legend(ncols=4, loc='upper center')


EXPERIMENT = E2E()
