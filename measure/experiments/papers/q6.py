# SPDX-License-Identifier: Apache-2.0
"""What QoSFlow leaves for later: policies in words, and slices of a network for experimenters."""
import os
import socket
import struct
import tempfile
import time

from support import qosmsg
from support.load import Cbr
from support.topo import Switch, Topology, binary, eth, inside, sh, udp4

from harness.experiment import Claim, Experiment, Judged, Part, Table
from harness.pauses import Pauses
from harness.stats import plus_minus

MBIT = 1_000_000
POLICY, SLICES = 'policy in words', 'slices'
TOTAL, SIZE, SETTLE = 10, 1250, 1.0
# UDP port: what the policy says, the least and the most (Mbit/s) of it, Mbit/s sent
LINES = {5301: ('guarantee 5mbit for udp_dst=5301', 5, TOTAL, 6),
         5302: ('guarantee 30% for udp_dst=5302', 3, TOTAL, 4),
         5303: ('limit 1mbit for udp_dst=5303', 0, 1, 3),
         5304: ('guarantee 10% for others', 1, TOTAL, 3)}
WITHIN = 0.03
SET = ('port_no', 'object_type', 'sched_type', 'class_id', 'parent_id', 'rate', 'ceil', 'prio',
       'properties')                        # of a queue: what is set, not what is counted
SLICE = {'red': {'ports': '1', 'tables': '1', 'shared-tables': '0', 'queues': '10-19', 'below': '100'},
         'blue': {'ports': '2', 'tables': '2', 'shared-tables': '0', 'queues': '20-29', 'below': '200'}}
# What red tries: with what is its own, and with what is blue's, the operator's or nobody's
OWN = (('a queue of its own', 'qos-htb', 'cmd=add,port=1,parent=100,class=10,rate=2mbit'),
       ('another rate for it', 'qos-htb', 'cmd=change,port=1,class=10,rate=1mbit'),
       ('a flow to its port', 'flow-mod', 'cmd=add,table=1,prio=5', 'in_port=1', 'apply:queue=10,output=1'))
BEYOND = (('a queue at blue\'s port', 'qos-htb', 'cmd=add,port=2,parent=200,class=11,rate=1mbit'),
          ('blue\'s queue', 'qos-htb', 'cmd=change,port=2,class=20,rate=9mbit'),
          ('blue\'s queue, away with it', 'qos-htb', 'cmd=del,port=2,class=20'),
          ('a queue with blue\'s number', 'qos-htb', 'cmd=add,port=1,parent=100,class=20,rate=1mbit'),
          ('more than its class has', 'qos-htb', 'cmd=change,port=1,class=10,rate=6mbit'),
          ('the class above it', 'qos-htb', 'cmd=change,port=1,class=100,rate=9mbit'),
          ('the port\'s total', 'qos-htb', 'cmd=change,port=1,class=0,rate=90mbit'),
          ('all of blue\'s queues', 'qos-clear', 'port=2'),
          ('a flow in blue\'s table', 'flow-mod', 'cmd=add,table=2,prio=5', '', 'apply:output=1'),
          ('a flow for blue\'s packets', 'flow-mod', 'cmd=add,table=0,prio=9', 'in_port=2', 'apply:output=1'),
          ('its packets to blue', 'flow-mod', 'cmd=add,table=1,prio=6', 'in_port=1', 'apply:output=2'),
          ('all flows', 'flow-mod', 'cmd=del'))


class Q6(Experiment):
    id = 'Q6'
    title = 'Policies in words, slices of experimenters'
    source = 'QoSFlow, what it leaves for later'
    set_up = ('Policy: a profile of four lines (guarantee, limit, others) is applied by dpctl qos-apply to '
              f'a port of {TOTAL} Mbit/s, and UDP of 16 Mbit/s is sent to it; what arrives is counted '
              'second by second at the host. Slices: two experimenters, red and blue, have a connection, '
              'a port, a table, queue numbers and a class each (docs/how-to/slices.md); red tries what is its '
              'own, and what is blue\'s or the operator\'s.')
    differs = ('The source has neither: it names a language for policies, and a backbone for experiments '
               'that many share, as what could be built with it.')
    full = {'seconds': 20}
    quick = {'seconds': 4}

    def parts(self, p):
        yield Part(POLICY, p['seconds'] + 4, run=policy)
        yield Part(SLICES, 3, uses=(), run=slices)

    def run(self, ctx, part):
        return part.run(ctx)

    def claims(self, p):
        yield Claim('policy in words: what is guaranteed arrives, what is limited stays below (3 %), in '
                    'the mean of the seconds', 'an outlook', self.judge_policy)
        yield Claim('slices: what an experimenter asks for beyond his own is refused and changes nothing; '
                    'his own is done', 'an outlook', self.judge_slices)

    @staticmethod
    def judge_policy(samples):
        s, ours, holds = samples[POLICY], [], True
        for port, (text, least, most, _) in LINES.items():
            got = [row[str(port)] for row in s['seconds']]
            mean = sum(got) / len(got)
            holds &= least * (1 - WITHIN) * (1 - s['paused']) <= mean <= most * (1 + WITHIN)
            ours.append(f'{text}: {plus_minus(got)}')
        return Judged('; '.join(ours) + ' Mbit/s', holds, '' if not s['paused'] else
                      f"the machine stood still for {s['paused']:.1%} of the time: not asked for")

    @staticmethod
    def judge_slices(samples):
        s = samples[SLICES]
        done = sum(not said for _, said in s['own'])
        refused = sum('lacks a right' in said or 'PERM' in said.upper() for _, said in s['beyond'])
        return Judged(f"{done} of {len(s['own'])} of its own are done, {refused} of {len(s['beyond'])} "
                      f"beyond refused; {'nothing' if s['same'] else 'something'} changed",
                      done == len(s['own']) and refused == len(s['beyond']) and s['same'],
                      '; '.join(f'{what}: {said}' for what, said in s['own'] if said))

    def tables(self, samples, p):
        yield Table('Red\'s requests and what came back', ('', 'answer'),
                    [(what, said or 'done') for key in ('own', 'beyond')
                     for what, said in samples[SLICES][key]])


def policy(ctx):
    """-> Mbit/s to each UDP port in every second, and for which part the machine stood still"""
    topo = ctx.enter(Topology(ports=2, ip=True, offload=False))
    switch, pauses = ctx.enter(Switch(topo)), Pauses(ctx)
    with tempfile.NamedTemporaryFile('w', suffix='.qos') as profile:
        profile.write('\n'.join(['map then=normal', f'total {TOTAL}mbit',
                                 *(line[0] for line in LINES.values())]) + '\n')
        profile.flush()
        switch.dpctl('qos-apply', profile.name, 'port=2')
    topo.exec(2, 'ping', '-c', '1', '-W', '5', '10.0.0.1')
    streams = [(eth(udp4(bytes(SIZE - 42), dport=port)), line[-1] * MBIT / 8 / SIZE)
               for port, line in LINES.items()]
    with inside(topo.host_ns(2)):
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x800))
    with sock, Cbr(topo, 1, *streams, seconds=ctx.p['seconds'] + SETTLE + 5) as sender:
        time.sleep(SETTLE)
        begin = time.monotonic()
        rows = [second(sock) for _ in range(ctx.p['seconds'])]
        end = time.monotonic()
        sender.stop()
    return {'seconds': rows, 'paused': pauses.within(begin, end) / (end - begin)}


def second(sock):
    """Mbit/s to each port until a second is over"""
    sock.settimeout(0)
    begin, count = time.monotonic(), dict.fromkeys(LINES, 0)
    while (now := time.monotonic()) < begin + 1:
        try:
            got = sock.recv(2048)
        except BlockingIOError:
            time.sleep(0.002)
            continue
        port, = struct.unpack_from('!H', got, 36)
        if port in count:
            count[port] += len(got)
    return {str(port): n * 8 / (now - begin) / MBIT for port, n in count.items()}


def slices(ctx):
    """-> what red's requests were answered, and whether anything changed by those beyond its own"""
    topo = ctx.enter(Topology(ports=3))
    sockets = ctx.enter(tempfile.TemporaryDirectory(prefix='ofqos-slices-'))
    options = []
    for name, keys in SLICE.items():
        address = f'punix:{sockets}/{name}'
        options += [address, f'--slice-connection={name}:{address}',
                    *(f'--slice-{key}={name}:{value}' for key, value in keys.items())]
    switch = ctx.enter(Switch(topo, *options))
    for port, above, queue in (1, 100, 19), (2, 200, 20):
        switch.dpctl('qos-htb', f'cmd=replace,port={port},class=0,rate=10mbit')
        switch.dpctl('qos-htb', f'cmd=add,port={port},class={above},rate=4mbit')
        switch.dpctl('qos-htb', f'cmd=add,port={port},parent={above},class={queue},rate=1mbit')
    red = f'unix:{os.path.join(sockets, "red")}'

    conn = ctx.enter(switch.connect())

    def state():
        queues = [{key: entry.get(key) for key in SET} for port in (1, 2)
                  for entry in qosmsg.dump(conn, port)]
        lines = [line.split() for line in switch.dpctl('stats-flow').stdout.splitlines()]
        return queues, [words[:2] + words[5:] for words in lines]      # no counters, no age
    own = [(what, answer(red, words)) for what, *words in OWN]
    before = state()
    beyond = [(what, answer(red, words)) for what, *words in BEYOND]
    return {'own': own, 'beyond': beyond, 'same': state() == before}


def answer(address, words):
    """'' when it is done, else what dpctl says"""
    try:
        sh(binary('utils/dpctl/dpctl'), address, *(w for w in words if w))
        return ''
    except AssertionError as refused:
        return str(refused).splitlines()[-1]


EXPERIMENT = Q6()
