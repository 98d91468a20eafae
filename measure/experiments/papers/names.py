# SPDX-License-Identifier: Apache-2.0
"""Names in queues: dpctl qos-names, which learns addresses from the DNS answers that pass through."""
import collections
import contextlib
import ipaddress
import signal
import socket
import struct
import time

from support import dns, load, topo as topology
from support.topo import binary, inside

from harness.experiment import Claim, Experiment, Figure, Judged, Part, Table
from harness.modem import percentile
from harness.network import Switch, Topology
from harness.plot import COLOURS
from harness.stalls import Stalls

MBIT = 1_000_000
LINK, PROMISED, BULK = 10 * MBIT, 6 * MBIT, 12 * MBIT    # of the port; of the name; what else is sent
PORT, SERVER = 2, '10.0.0.3'
NAMED, REST, AF41 = 20, 10, 34                  # queues; what the rule writes into the name's packets
SIZE, SMALL, BUFFER = 1000, 200, 50_000         # frames; bytes of the bulk traffic's FIFO
STEP, TRAIN = 0.0005, 200                       # seconds between the packets behind an answer; how many
BIN = 0.5
OTHER, VIDEO = '10.7.0.1', '10.7.0.2'
RATES, TIMES, TTLS = 'beside bulk traffic', 'behind an answer', 'until the TTL is over'
ASKED, LEAST, MOST = 5, 10, 20                  # when; qos-names' min= and max=, seconds
FAST = 0.020


def frame(address, size, payload=b''):
    packet = topology.udp4(payload.ljust(size - 42, b'\0'), dst=address)
    return topology.eth(packet, dst=2)


def number(address):
    return int(ipaddress.ip_address(address))


class Answerer(load.Background):
    """A DNS server for `names`, {name: (address, TTL)}; when each was answered last is in `at`."""

    def __init__(self, topo, names):
        super().__init__()
        self.names, self.at = names, {}
        with inside(topo.host_ns(3)):
            self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind((SERVER, 53))
        self.sock.settimeout(0.1)
        with inside(topo.host_ns(1)):
            self.client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.client.settimeout(10)

    def run(self):
        with self.sock, self.client:
            while not self.over:
                with contextlib.suppress(TimeoutError):
                    query, peer = self.sock.recvfrom(512)
                    for name, record in self.names.items():
                        if dns.name(name) in query:
                            reply = dns.answer(query, (name, *record))
                            self.at[name] = time.monotonic()
                            self.sock.sendto(reply, peer)

    def ask(self, name):
        """As the client does -> when the answer left its server, before it passes the switch"""
        self.client.sendto(dns.question(name), (SERVER, 53))
        self.client.recv(512)
        return self.at[name]


class Arrivals(load.Background):
    """What comes behind the port: rows (time, address, does it have the rule's DSCP?, payload's start)"""

    def __init__(self, topo):
        super().__init__()
        self.wire, self.rows = topo.host(2), []

    def run(self):
        sock = self.wire.sock
        sock.settimeout(0.1)
        with self.wire:
            while not self.over:
                with contextlib.suppress(TimeoutError):
                    got = sock.recv(2048)
                    if got[12:14] == b'\x08\x00' and got[23] == 17:
                        self.rows.append((time.monotonic(), socket.inet_ntoa(got[30:34]),
                                          got[15] >> 2 == AF41, got[42:46]))


class Names(Experiment):
    id = 'L6'
    title = 'Names in queues'
    source = 'as qosify\'s DNS mapping; not of a paper'
    svg = True
    set_up = (f'One switch; its port has {LINK // MBIT} Mbit/s and two queues, one for names with '
              f'{PROMISED // MBIT} Mbit/s and one for the rest with {(LINK - PROMISED) // MBIT}, which is sent '
              f'{BULK // MBIT}; each may borrow. `dpctl qos-names queue={NAMED},remark=af41,host=*.example.org '
              f'min={LEAST} max={MOST}` sees the answers of a DNS server at another port. The DSCP that the rule '
              'writes tells, behind the port, which packets were in the name\'s queue. First '
              f'{PROMISED // MBIT} Mbit/s are sent to an address that is answered once, at {ASKED} s. Then names '
              f'are asked for, one after the other, and {TRAIN} packets sent to each as soon as the '
              f'client has the answer, one every {STEP * 1000} ms. Then names are answered with different TTLs and '
              'not used; the flow table is looked at ten times a second.')
    full = {'names': 100, 'ttls': [10, 12, 14, 16, 18, 20], 'seconds': 35}
    quick = {'names': 20, 'ttls': [10, 12], 'seconds': 30}

    def parts(self, p):
        yield Part(RATES, p['seconds'] + 8)
        yield Part(TIMES, p['names'] * 0.3 + 8)
        yield Part(TTLS, 1.5 * max(p['ttls']) + 10)

    # ------------------------------------------------------------------------------ measurements

    def run(self, ctx, part):
        topo = ctx.enter(Topology(ports=3, ip=True, offload=False))
        switch = ctx.enter(Switch(topo))
        switch.dpctl('qos-htb', f'cmd=replace,port={PORT},class=0,rate={LINK}bit')
        for queue, rate in ((NAMED, PROMISED), (REST, LINK - PROMISED)):
            switch.dpctl('qos-htb', f'cmd=add,port={PORT},class={queue},rate={rate}bit,ceil={LINK}bit')
            switch.dpctl('qos-bfifo', f'cmd=add,port={PORT},class={queue},limit={BUFFER}')
        switch.dpctl('qos-htb', f'cmd=change,port={PORT},default={REST}')
        command = self.learn(ctx, topo, switch)
        for n in 1, 3:
            assert any(topo.pings(n, '10.0.0.2') for _ in range(10))    # the switch knows where they are
        assert topo.pings(1, SERVER)
        stalls = ctx.enter(Stalls())
        measure = {RATES: self.run_rates, TIMES: self.run_times, TTLS: self.run_ttls}[part.name]
        found = measure(ctx, topo, switch)
        command.send_signal(signal.SIGINT)
        learned = command.communicate(timeout=30)[0].count('"learned"')
        return {**found, 'learned': learned, 'stall': stalls.worst(0, time.monotonic())}

    @staticmethod
    def learn(ctx, topo, switch):
        command = ctx.start(topo.switch_ns, binary('utils/dpctl/dpctl'), switch.address, '--json',
                            'qos-names', f'queue={NAMED},remark=af41,host=*.example.org', 'then=normal',
                            f'server={SERVER}', f'min={LEAST}', f'max={MOST}')
        first = command.stdout.readline()
        if '"steps"' not in first:
            raise ChildProcessError(f'qos-names: {first}')
        return command

    @staticmethod
    def send(ctx, topo, address, bps, seconds):
        return ctx.enter(load.Cbr(topo, 1, (frame(address, SIZE), bps / 8 / SIZE), seconds=seconds))

    def run_rates(self, ctx, topo, switch):
        seconds = ctx.p['seconds']
        server = ctx.enter(Answerer(topo, {'video.example.org': (VIDEO, LEAST)}))
        arrivals, start = ctx.enter(Arrivals(topo)), time.monotonic()
        for address, bps in ((OTHER, BULK), (VIDEO, PROMISED)):
            self.send(ctx, topo, address, bps, seconds + 1)
        ctx.sleep_until(start + ASKED)
        asked = server.ask('video.example.org') - start
        ctx.sleep_until(start + seconds)
        stats = {q: s['tx_packets'] for (_, q), s in switch_stats(switch).items()}
        bins = collections.Counter((int((t - start) / BIN), address, marked)
                                   for t, address, marked, _ in list(arrivals.rows))
        times = [t - start for t, address, marked, _ in list(arrivals.rows)
                 if marked and address == VIDEO]
        wrong = sum(n for (_, address, marked), n in bins.items() if address == OTHER and marked)
        series = {address: [8 * SIZE * (bins[i, address, False] + bins[i, address, True]) / BIN
                            for i in range(int(seconds / BIN))] for address in (OTHER, VIDEO)}
        return {'asked': asked, 'began': min(times), 'ended': max(times), 'wrong': wrong,
                'bulk': series[OTHER], 'named': series[VIDEO], 'marked': len(times),
                'queue': stats[NAMED]}

    def run_times(self, ctx, topo, switch):
        n = ctx.p['names']
        names = {f'n{i}.example.org': (f'10.7.1.{i + 1}', 300) for i in range(n)}
        server = ctx.enter(Answerer(topo, names))
        arrivals = ctx.enter(Arrivals(topo))
        self.send(ctx, topo, OTHER, BULK, n * 0.4 + 8)
        wire, trains = ctx.enter(topo.host(1)), []
        time.sleep(1)
        for i, (name, (address, _)) in enumerate(names.items()):
            frames = [frame(address, SMALL, struct.pack('!HH', i, k)) for k in range(TRAIN)]
            asked, sent = server.ask(name), []
            begin = time.monotonic()
            for k, one in enumerate(frames):
                ctx.sleep_until(begin + k * STEP)
                sent.append(time.monotonic() - asked)
                wire.send(one)
            trains.append(sent)
            time.sleep(0.05)
        time.sleep(0.5)
        marked = collections.defaultdict(set)
        for _, address, good, payload in list(arrivals.rows):
            if good and address != OTHER:
                i, k = struct.unpack('!HH', payload)
                marked[i].add(k)
        return {'rows': [self.train(sent, marked[i]) for i, sent in enumerate(trains)]}

    @staticmethod
    def train(sent, marked):
        """[ms until a packet was sent that was in the queue, those before it, others that were not]"""
        first = min(marked, default=TRAIN)
        return [1000 * sent[first] if marked else None, first, TRAIN - first - len(marked)]

    def run_ttls(self, ctx, topo, switch):
        """Of each TTL one name that is answered once, and one that is again, half of the TTL later"""
        ttls = ctx.p['ttls']
        names = {f'{which}{ttl}.example.org': (f'10.7.{2 + k}.{ttl}', ttl)
                 for ttl in ttls for k, which in enumerate(('once', 'twice'))}
        server, conn, seen = ctx.enter(Answerer(topo, names)), ctx.enter(switch.connect()), {}
        for name in names:
            server.ask(name)
        start = time.monotonic()
        again = {f'twice{ttl}.example.org': start + ttl / 2 for ttl in ttls}
        while (now := time.monotonic()) < start + 1.5 * max(ttls) + 5:
            for name in [name for name, at in again.items() if at <= now]:
                server.ask(name)
                del again[name]
            before = time.monotonic()
            there = {f['match'].get('ipv4_dst') for f in conn.flows()}
            for name, (address, _) in names.items():
                if number(address) in there:
                    seen[name] = before
            ctx.sleep_until(now + 0.1)
        gone = {name for name, (address, _) in names.items() if number(address) not in there}
        return {'rows': [[ttl, name.startswith('twice'), seen[name] - server.at[name], name in gone]
                         for name, (_, ttl) in names.items()]}

    # ---------------------------------------------------------------------------------- verdicts

    def claims(self, p):
        yield Claim('traffic to the name has its rate beside bulk traffic, from the answer on',
                    'asked for: its queue\'s rate', lambda s: self.judge_rate(s[RATES]))
        yield Claim('before the answer, and when the flow is gone, it has not', '-',
                    lambda s: self.judge_without(s[RATES], p))
        yield Claim('bulk traffic to other addresses is never in the name\'s queue, and has the rest of the link',
                    'asked for', lambda s: self.judge_bulk(s[RATES]))
        yield Claim(f'95 of 100 names have their flow {FAST * 1000:.0f} ms after the answer left its server',
                    '-', lambda s: self.judge_time(s[TIMES]))
        yield Claim('from the first packet in the queue on, none misses it', 'asked for',
                    lambda s: self.judge_missed(s[TIMES]))
        yield Claim('an address that no answer names any more, and no packet uses, goes when its TTL is over '
                    '(to a second)', 'asked for: after its TTL', lambda s: self.judge_ttls(s[TTLS]))
        yield Claim(f'one that packets use goes {MOST} s (max=) after its last answer', 'asked for',
                    lambda s: Judged(f"{s[RATES]['ended'] - s[RATES]['asked']:.2f} s",
                                     abs(s[RATES]['ended'] - s[RATES]['asked'] - MOST) <= 1))

    @staticmethod
    def mean(sample, which, start, end):
        part = sample[which][int(start / BIN):int(end / BIN)]
        return sum(part) / len(part)

    def within(self, sample, which):
        """While the flow was there, but the second after the answer"""
        return self.mean(sample, which, sample['asked'] + 1, sample['ended'])

    def judge_rate(self, sample):
        got = self.within(sample, 'named')
        return Judged(f'{got / MBIT:.2f} Mbit/s of {PROMISED / MBIT:g} promised and sent',
                      got >= 0.97 * PROMISED)

    def judge_without(self, sample, p):
        found = [self.mean(sample, 'named', start, end) for start, end in (
            (1, ASKED), (sample['ended'] + 1, p['seconds']))]
        return Judged(' and '.join(f'{got / MBIT:.2f} Mbit/s' for got in found),
                      max(found) < 0.9 * PROMISED)

    def judge_bulk(self, sample):
        bulk, named = (self.within(sample, which) for which in ('bulk', 'named'))
        return Judged(f"{sample['wrong']} packets; {bulk / MBIT:.2f} Mbit/s, together "
                      f'{(bulk + named) / MBIT:.2f} of {LINK / MBIT:g}',
                      not sample['wrong'] and bulk + named >= 0.97 * LINK)

    @staticmethod
    def judge_time(sample):
        took = behind(sample)
        return Judged(f'{percentile(took, 0.95):.1f} ms; median {percentile(took, 0.5):.1f}, worst '
                      f'{max(took):.1f}', percentile(took, 0.95) <= 1000 * FAST,
                      f"{sample['learned']} names were learned; one packet every {STEP * 1000} ms shows it; "
                      f"the machine's longest pause was {sample['stall'] * 1000:.0f} ms")

    @staticmethod
    def judge_missed(sample):
        later = sum(row[2] for row in sample['rows'])
        first = [row[1] for row in sample['rows']]
        return Judged(f"{later} of {TRAIN * len(first)} packets; before the flow was there {sum(first)}: of a name "
                      f'{percentile(first, 0.5)} in the median, {max(first)} at most', later == 0)

    @staticmethod
    def judge_ttls(sample):
        off = [seconds - ttl for ttl, _, seconds, _ in sample['rows']]
        return Judged(f'{min(off):+.2f} to {max(off):+.2f} s from the TTL, {len(off)} addresses',
                      all(row[3] for row in sample['rows']) and max(map(abs, off)) <= 1)

    # ---------------------------------------------------------------------------- what is shown

    def tables(self, samples, p):
        rows = samples[TIMES]['rows']
        yield Table(f'Behind an answer, {len(rows)} names with {TRAIN} packets each',
                    ('', 'median', '95 %', 'worst'),
                    [(what, *(percentile(values, part) for part in (0.5, 0.95, 1)))
                     for what, values in (('ms until the flow is there', behind(samples[TIMES])),
                                          ('packets that missed the queue before', [r[1] for r in rows]),
                                          ('and after', [r[2] for r in rows]))])
        yield Table('Seconds from an address\' last answer until its flow was gone', ('TTL', 'answered once', 'twice'),
                    [(ttl, *(seconds for t, _, seconds, _ in samples[TTLS]['rows'] if t == ttl))
                     for ttl in p['ttls']])
        s = samples[RATES]
        yield Table('Packets beside bulk traffic', ('', ''),
                    [('of the name, with the rule\'s DSCP', s['marked']),
                     ('sent by its queue, by the switch\'s counter', s['queue']),
                     ('of other addresses with the DSCP', s['wrong'])])

    def figures(self, samples, p):
        yield Figure('rates', 'Rates at the port: the answer comes, and the flow goes', (7.5, 3.2),
                     lambda fig: self.draw_rates(fig.subplots(), samples[RATES]))
        yield Figure('times', 'Until the flow is there, and until it is gone', (7.5, 3.2),
                     lambda fig: self.draw_times(fig, samples))

    @staticmethod
    def draw_rates(axes, s):
        for colour, which, name in ((COLOURS[0], 'named', 'to the name'), (COLOURS[1], 'bulk', 'to others')):
            axes.plot([(i + 0.5) * BIN for i in range(len(s[which]))], [bps / MBIT for bps in s[which]],
                      color=colour, label=name)
        axes.axhline(PROMISED / MBIT, color='#888888', ls='--', lw=0.8)
        for at, text in ((s['asked'], ' answer'), (s['ended'], ' flow gone')):
            axes.axvline(at, color='#888888', ls=':', lw=0.8)
            axes.text(at, 0.3, text, fontsize=8)
        axes.set(xlabel='time (s); dashed: what the name\'s queue was promised', ylabel='Mbit/s',
                 ylim=(0, LINK / MBIT))
        axes.legend(loc='upper right')

    @staticmethod
    def draw_times(fig, samples):
        there, gone = fig.subplots(1, 2)
        took = sorted(ms for ms, *_ in samples[TIMES]['rows'] if ms is not None)
        there.plot(took, [(i + 1) / len(took) for i in range(len(took))], color=COLOURS[0])
        there.set(xlabel='ms from the answer', ylabel='part of the names', xlim=(0, None), ylim=(0, 1))
        rows = samples[TTLS]['rows']
        for colour, twice, mark, name in ((COLOURS[0], False, 'o', 'answered once'),
                                          (COLOURS[1], True, 'x', 'answered twice')):
            found = [(ttl, seconds) for ttl, t, seconds, _ in rows if t == twice]
            gone.plot(*zip(*found), mark, color=colour, label=name)
        ends = [min(r[0] for r in rows), max(r[0] for r in rows)]
        gone.plot(ends, ends, color='#888888', ls='--', lw=0.8)
        gone.set(xlabel='TTL (s)', ylabel='s from the last answer until it is gone')
        gone.legend()


def behind(sample):
    """Of each name, ms until its flow was there; the train may have been over"""
    return [float('inf') if ms is None else ms for ms, *_ in sample['rows']]


def switch_stats(switch):
    with switch.connect() as conn:
        return conn.queue_stats(PORT)


EXPERIMENT = Names()
