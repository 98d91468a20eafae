# SPDX-License-Identifier: Apache-2.0
"""Assured forwarding: meters that raise the drop precedence, and GRED, which heeds it."""
import collections
import socket
import time

from support import load, topo as topology
from support.topo import inside, sh

from harness.experiment import Claim, Experiment, Figure, Judged, Part, Table
from harness.network import Switch, Topology
from harness.plot import bars
from harness.stalls import Stalls

MBIT = 1_000_000
LINK, QUEUE, PORT, SIZE = 2_000_000, 10, 3, 1000        # so much the test kernel carries easily
ASSURED = {1: 1_000_000, 2: 400_000}            # of hosts 1 and 2
OFFERED = 1_600_000                             # by each
AF11, AF12 = 10, 12
GRED, FIFO = 'GRED', 'FIFO'
LIMIT = 200_000
# AF12 is dropped long before AF11 is.  Two thirds of it have to be: with less at its maximum, the queue
# swings between all of it and none.
GRED_WORDS = ('qos-gred', f'limit={LIMIT},dp1=120000/180000/200000/2%/1,dp2=5000/50000/100000/100%/2')
DROPS = {GRED: GRED_WORDS, FIFO: ('qos-bfifo', f'limit={LIMIT}')}
KEPT = 0.99


class Sink(load.Background):
    """What host 3 hears: {(host, DSCP): frames} between begin and end"""

    def __init__(self, topo):
        super().__init__()
        with inside(topo.host_ns(PORT)):
            self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self.socket.bind(('0.0.0.0', 2000))
        self.socket.settimeout(0.2)
        self.heard = collections.Counter()

    def run(self):
        while not self.over:
            try:
                _, more, _, (address, _) = self.socket.recvmsg(2048, 64)
            except TimeoutError:
                continue
            tos = next((value[0] for level, kind, value in more
                        if (level, kind) == (socket.IPPROTO_IP, socket.IP_TOS)), 0)
            self.heard[int(address.rsplit('.', 1)[1]), tos >> 2] += 1

    def __exit__(self, *what):
        super().__exit__(*what)
        self.socket.close()


class Assured(Experiment):
    id = 'L5'
    title = 'Assured forwarding'
    source = 'RFC 2597; not of a paper'
    svg = True
    set_up = (f'One switch. Two hosts send UDP of {OFFERED / MBIT:g} Mbit/s each, all AF11, to a third '
              f'behind a queue of {LINK / MBIT:g} Mbit/s. A meter for each host lets what it is assured '
              f'of ({ASSURED[1] / MBIT:g} and {ASSURED[2] / MBIT:g} Mbit/s) pass and makes the rest AF12 '
              '(dscp_remark). The queue has GRED with two drop precedences, which a filter chooses by '
              'DSCP (docs/reference/qos-extension.md), then a FIFO of the same length. The third host counts '
              f'what it hears, by sender and DSCP; frames of {SIZE} bytes.')
    full = {'seconds': 30}
    quick = {'seconds': 6}

    def parts(self, p):
        for name in GRED, FIFO:
            yield Part(name, p['seconds'] + 10, ('htb', 'gred'))

    def run(self, ctx, part):
        topo = ctx.enter(Topology(ports=3, ip=True, offload=False))
        switch = ctx.enter(Switch(topo))
        switch.dpctl('qos-htb', f'cmd=add,port={PORT},class={QUEUE},rate={LINK}bit')
        command, words = DROPS[part.name]
        switch.dpctl(command, f'cmd=add,port={PORT},class={QUEUE},{words}')
        if part.name == GRED:
            tc = 'tc', '-n', topo.switch_ns
            sh(*tc, 'qdisc', 'add', 'dev', f'p{PORT}', 'clsact', check=False)    # the switch may have made it
            for number, dscp in ((1, AF11), (2, AF12)):
                sh(*tc, 'filter', 'add', 'dev', f'p{PORT}', 'egress', 'protocol', 'ip', 'prio', '1',
                   'u32', 'match', 'ip', 'dsfield', hex(dscp << 2), '0xfc', 'classid', f'1:{number}')
        for host, bps in ASSURED.items():
            switch.dpctl('meter-mod', f'cmd=add,flags=kbps|burst,meter={host}',
                         f'dscp_remark:rate={bps // 1000},burst=400,prec_level=1')
            switch.dpctl('flow-mod', 'cmd=add,table=0,prio=10',
                         f'in_port={host},eth_type=0x800,ip_proto=17', f'meter:{host}',
                         f'apply:queue={QUEUE},output={PORT}')
        switch.dpctl('flow-mod', 'cmd=add,table=0,prio=1', 'apply:output=normal')
        conn = ctx.enter(switch.connect())
        sink, stalls = ctx.enter(Sink(topo)), ctx.enter(Stalls())
        seconds = ctx.p['seconds']
        for host in ASSURED:
            frame = topology.eth(topology.udp4(bytes(SIZE - 42), src=f'10.0.0.{host}',
                                               dst='10.0.0.3', tos=AF11 << 2), dst=3, src=host)
            frame = frame[:40] + bytes(2) + frame[42:]      # no checksum: Cbr numbers the frames
            ctx.enter(load.Cbr(topo, host, (frame, OFFERED / 8 / SIZE), seconds=seconds + 6))
        time.sleep(3)
        before = time.monotonic(), self.meters(conn), dict(sink.heard)
        time.sleep(seconds)
        after = time.monotonic(), self.meters(conn), dict(sink.heard)
        took, rows = after[0] - before[0], []
        for host in ASSURED:
            (n0, more0), (n1, more1) = before[1][host], after[1][host]
            for dscp, sent in ((AF11, n1 - n0 - more1 + more0), (AF12, more1 - more0)):
                got = after[2].get((host, dscp), 0) - before[2].get((host, dscp), 0)
                rows.append([host, dscp, sent * SIZE * 8 / took, got * SIZE * 8 / took])
        return {'rows': rows, 'stall': stalls.worst(0, time.monotonic())}

    @staticmethod
    def meters(conn):
        """{meter: (frames, those that were remarked)}"""
        return {m['meter_id']: (m['packet_in_count'], m['bands'][0]['packet_count'])
                for m in conn.meter_stats()}

    @staticmethod
    def of(sample):
        return {(host, dscp): (sent, got) for host, dscp, sent, got in sample['rows']}

    def claims(self, p):
        yield Claim('with GRED each host\'s assured packets (AF11) arrive, 99 % of them or more',
                    'RFC 2597: with high probability', lambda s: self.judge(s[GRED]))
        yield Claim('what is above that (AF12) is what is dropped, and fills the rest of the link',
                    'RFC 2597', lambda s: self.judge_rest(s[GRED]))
        yield Claim('a FIFO drops assured packets as well', '-', lambda s: self.judge_fifo(s[FIFO]))

    def judge(self, sample):
        found = self.of(sample)
        kept = {host: found[host, AF11][1] / found[host, AF11][0] for host in ASSURED}
        return Judged('; '.join(f'host {host}: {found[host, AF11][1] / MBIT:.2f} of '
                                f'{found[host, AF11][0] / MBIT:.2f} Mbit/s, {100 * part:.2f} %'
                                for host, part in kept.items()),
                      all(part >= KEPT for part in kept.values()))

    def judge_rest(self, sample):
        found = self.of(sample)
        sent, got = (sum(found[host, AF12][i] for host in ASSURED) for i in (0, 1))
        total = sum(row[1] for row in found.values())
        return Judged(f'{got / MBIT:.2f} of {sent / MBIT:.2f} Mbit/s of AF12 arrive; together '
                      f'{total / MBIT:.2f} of {LINK / MBIT:g}', got < sent and total >= 0.95 * LINK)

    def judge_fifo(self, sample):
        found = self.of(sample)
        kept = {host: found[host, AF11][1] / found[host, AF11][0] for host in ASSURED}
        return Judged('; '.join(f'host {host}: {100 * part:.0f} % arrive'
                                for host, part in kept.items()),
                      all(part < 0.9 for part in kept.values()))

    def tables(self, samples, p):
        yield Table('Mbit/s', ('', 'host', 'DSCP', 'sent to the queue', 'arrived'),
                    [(name, host, {AF11: 'AF11', AF12: 'AF12'}[dscp], sent / MBIT, got / MBIT)
                     for name in (GRED, FIFO) for host, dscp, sent, got in samples[name]['rows']])

    def figures(self, samples, p):
        def draw(fig):
            for axes, name in zip(fig.subplots(1, 2, sharey=True), (GRED, FIFO)):
                rows = samples[name]['rows']
                bars(axes, [f'host {host}\n{"AF11" if dscp == AF11 else "AF12"}'
                            for host, dscp, *_ in rows],
                     {'sent to the queue': [row[2] / MBIT for row in rows],
                      'arrived': [row[3] / MBIT for row in rows]}, unit='Mbit/s')
                axes.set_title(name, fontsize=9)
        yield Figure('precedences', 'What is sent to the queue, and what arrives', (7.5, 3.4), draw)


EXPERIMENT = Assured()
