# SPDX-License-Identifier: Apache-2.0
"""Random pipelines and packets through two switches, one with the kernel's cache and one without it:
each port of both says the same, byte by byte.  Each packet comes several times; the first goes through
user space, later ones through the kernel.  So a switch must also agree with itself."""
import collections
import contextlib
import os
import random
import socket
import struct
import time

import pytest

from support import of13, offload, qosmsg as q
from support.of13 import (apply_actions, bucket, dec_mpls_ttl, dec_nw_ttl, goto_table, group, group_mod, match, output,
                          pop_mpls, pop_pbb, pop_vlan, push_mpls, push_pbb, push_vlan, set_field, set_mpls_ttl, set_nw_ttl,
                          set_queue, write_actions)
from support.topo import Switch, Topology, checksum, mac
from support.virtio import VirtioWire, unfinished
from test_tunnels import USO

PORTS = 4
SEEDS = range(int(os.environ.get('OFQOS_SEEDS', 6)))
ROUNDS = 1, 12                 # of each turn: the first packets, and those behind them
PAUSE = 0.02                   # between rounds: time to make entries
TEMPLATES = 30
QUEUE = 7
MBIT = 1_000_000

# ------------------------------------------------------------------------------ packets

ADDRESSES4 = ['10.0.0.1', '10.0.0.2', '10.0.1.1', '192.0.2.7']
ADDRESSES6 = ['fd00::1', 'fd00::2', 'fd00:0:0:1::1', '2001:db8::7']


OPTIONS = [b'\1' * 4, b'\x94\4\0\0', b'\7\7\4' + bytes(4) + b'\0' + bytes(4), b'\1' * 40]


def ip_packet(chance, version, proto, transport_of, odd=False):
    """transport_of(pseudo) -> the transport header and payload, its checksum right.  odd: with options, extension
    headers, or as a fragment"""
    ttl, tos = chance.choice([64, 64, 64, 2, 1]), chance.choice([0, 0, 0x2e << 2, 1, 0xff])
    if version == 4:
        src, dst = (socket.inet_aton(chance.choice(ADDRESSES4)) for _ in range(2))
        body = transport_of(lambda n: src + dst + struct.pack('!BBH', 0, proto, n))
        options = chance.choice(OPTIONS) if odd and chance.random() < 0.5 else b''
        fragment = chance.choice([0x2000, 0x2010, 0x0007]) if odd and not options else 0x4000
        head = struct.pack('!BBHHHBBH', 0x45 + len(options) // 4, tos, 20 + len(options) + len(body),
                           chance.randrange(65536), fragment, ttl, proto, 0) + src + dst + options
        return head[:10] + struct.pack('!H', checksum(head)) + head[12:] + body
    src, dst = (socket.inet_pton(socket.AF_INET6, chance.choice(ADDRESSES6)) for _ in range(2))
    body = transport_of(lambda n: src + dst + struct.pack('!II', n, proto))
    if odd:
        proto, more = extensions(chance, proto)
        body = more + body
    return struct.pack('!IHBB', 6 << 28 | tos << 20 | chance.choice([0, 0x12345]), len(body), proto,
                       ttl) + src + dst + body


def extensions(chance, proto):
    """-> the first one's number, and their bytes; mostly in the usual order"""
    def options(after):
        n = chance.choice([0, 0, 1, 3])
        return struct.pack('!BBBB', after, n, 1, 4 + 8 * n) + bytes(4 + 8 * n)

    def fragment(after):
        return struct.pack('!BBHI', after, 0, chance.choice([1, 0, 0x18, 0x19]), 7)

    def routing(after):
        return struct.pack('!BBBB', after, 0, 4, chance.choice([0, 0, 1])) + bytes(4)

    chain = [(0, options), (60, options), (43, routing), (44, fragment), (60, options)]
    chain = [kind for kind in chain if chance.random() < 0.4] or [(44, fragment)]
    if chance.random() < 0.1:
        chance.shuffle(chain)
    out = b''
    for number, make in reversed(chain):
        proto, out = number, make(proto) + out
    return proto, out


def arp(chance):
    """Mostly of Ethernet and IPv4"""
    return struct.pack('!HHBBH', chance.choice([1, 1, 1, 6]), 0x800, 6, 4, chance.choice([1, 1, 2])) + \
        mac(chance.choice([0x11, 0x12])) + socket.inet_aton(chance.choice(ADDRESSES4)) + \
        mac(chance.choice([0, 1])) + socket.inet_aton(chance.choice(ADDRESSES4))


def neighbour(chance):
    """A solicitation or advertisement, and what it says of link layers"""
    kind = chance.choice([135, 136])
    option = struct.pack('!BB', kind - 134, 1) + mac(0x11) if chance.random() < 0.7 else b''
    head = struct.pack('!BBHI', kind, 0, 0, 0) + socket.inet_pton(socket.AF_INET6, chance.choice(ADDRESSES6)) + option
    return lambda pseudo: summed(head, 2, b'', pseudo)


def summed(head, at, payload, pseudo):
    whole = head + payload
    total = checksum(pseudo(len(whole)) + whole)
    return whole[:at] + struct.pack('!H', total or 0xffff) + whole[at + 2:]


def transport(chance, proto, payload):
    sport, dport = chance.choice([1000, 1001]), chance.choice([53, 80, 2000])
    if proto == 17:
        if chance.random() < 0.15:                     # no checksum; over IPv6 it is wrong, and stays so
            return lambda pseudo: struct.pack('!HHHH', sport, dport, 8 + len(payload), 0) + payload
        return lambda pseudo: summed(struct.pack('!HHHH', sport, dport, 8 + len(payload), 0), 6,
                                     payload, pseudo)
    if proto == 6:
        head = struct.pack('!HHIIBBHHH', sport, dport, chance.randrange(1 << 32), 1, 0x50,
                           chance.choice([0x10, 0x18, 0x11]), 1000, 0, 0)
        return lambda pseudo: summed(head, 16, payload, pseudo)
    return lambda pseudo: struct.pack('!BBHHH', 8, 0, checksum(payload), 1, 1) + payload


def tagged(chance, kind):
    out = b''
    for _ in range(chance.choice([0, 0, 0, 1, 1, 2])):
        out += struct.pack('!HH', chance.choice([0x8100, 0x8100, 0x88a8]),
                           chance.randrange(8) << 13 | chance.choice([5, 6, 0]))
    return out + struct.pack('!H', kind)


def labelled(chance, body):
    """One label more than the switch looks behind, too"""
    n, ttl = chance.randrange(1, 6), chance.choice([64, 64, 2, 1])
    return 0x8847, b''.join(struct.pack('!I', 16 + i << 12 | (i == n - 1) << 8 | ttl) for i in range(n)) + body


def backbone(chance, kind, body):
    """A customer's frame in PBB's"""
    return 0x88e7, struct.pack('!I', chance.randrange(1 << 28)) + mac(0x21) + mac(0x22) + tagged(chance, kind) + body


def hidden(chance, kind, body):
    """In a session of PPPoE, or behind labels"""
    if chance.random() < 0.7:
        proto = {0x800: 0x21, 0x86dd: 0x57}.get(kind, 0xc021)
        return 0x8864, struct.pack('!HHHH', 0x1100, chance.randrange(1, 5), len(body) + 2, proto) + body
    return labelled(chance, body)


class Template:
    """A packet, with its number where the payload begins: host, header, frame"""

    def __init__(self, chance, n, inside=False):
        self.host = chance.randrange(1, PORTS + 1)
        number = struct.pack('!4sI', b'NUMB', n)
        version, proto = chance.choice([4, 4, 6]), chance.choice([17, 17, 6, 6, 1])
        shape = 'whole' if proto == 1 else chance.choice(
            ['whole', 'whole', 'unfinished', 'super' if proto == 6 or USO else 'unfinished'])
        size = 1000 * chance.randrange(2, 6) + 17 if shape == 'super' else chance.choice([18, 100, 1200])
        payload = (number * (size // 8 + 1))[:size]         # in each segment
        if chance.random() < 0.06:                     # neither IPv4 nor IPv6
            body, kind, shape = number.ljust(60, b'-'), chance.choice([0x806, 0x88cc, 0x1234]), 'whole'
        elif chance.random() < 0.1:
            body, kind, shape = arp(chance) + number.ljust(32, b'-'), chance.choice([0x806, 0x806, 0x8035]), 'whole'
        elif chance.random() < 0.05:                   # what is behind the IP packet has the number
            body, kind, shape = ip_packet(chance, 6, 58, neighbour(chance)) + number, 0x86dd, 'whole'
        else:
            odd = shape == 'whole' and chance.random() < 0.3
            body = ip_packet(chance, version, proto, transport(chance, proto, payload), odd)
            kind = 0x800 if version == 4 else 0x86dd
        if inside and shape == 'whole' and chance.random() < 0.7:
            kind, body = hidden(chance, kind, body)
        elif shape == 'whole' and chance.random() < 0.2:
            kind, body = labelled(chance, body)
        elif shape == 'whole' and chance.random() < 0.2:
            kind, body = backbone(chance, kind, body)
        frame = mac(chance.choice([1, 2, 3])) + mac(0x11) + tagged(chance, kind) + body
        self.header, self.frame = bytes(10), frame.ljust(60, b'\0')
        if shape != 'whole':
            self.header, self.frame = unfinished(frame, 1000 if shape == 'super' else 0)


# ------------------------------------------------------------------------------ pipelines

EDITS = [
    lambda c: set_field(eth_src=f'02:00:00:00:01:0{c.randrange(9)}'),
    lambda c: set_field(eth_dst=f'02:00:00:00:02:0{c.randrange(9)}'),
    lambda c: push_vlan(c.choice([0x8100, 0x8100, 0x88a8])),
    lambda c: dec_nw_ttl(), lambda c: set_nw_ttl(c.choice([1, 9, 64])),
    lambda c: set_queue(c.choice([0, QUEUE, QUEUE])),
]
TAG = [lambda c: pop_vlan(), lambda c: set_field(vlan_vid=0x1000 | c.choice([5, 6, 77])),
       lambda c: set_field(vlan_pcp=c.randrange(8))]
PUSH = [lambda c: push_mpls(c.choice([0x8847, 0x8848])), lambda c: push_pbb()]
IP = [*PUSH, lambda c: set_field(ip_dscp=c.randrange(64)), lambda c: set_field(ip_ecn=c.randrange(4))]
IP4 = [lambda c: set_field(ipv4_src=c.choice(ADDRESSES4)), lambda c: set_field(ipv4_dst=c.choice(ADDRESSES4))]
ARP = [lambda c: set_field(arp_op=c.choice([1, 2])), lambda c: set_field(arp_spa=c.choice(ADDRESSES4)),
       lambda c: set_field(arp_tpa=c.choice(ADDRESSES4)), lambda c: set_field(arp_sha=mac(c.randrange(9))),
       lambda c: set_field(arp_tha=mac(c.randrange(9)))]
LABEL = [lambda c: pop_mpls(c.choice([0x800, 0x86dd, 0x8847])), lambda c: set_field(mpls_label=c.randrange(1 << 20)),
         *PUSH, lambda c: set_field(mpls_tc=c.randrange(8)), lambda c: set_mpls_ttl(c.choice([1, 9])), lambda c: dec_mpls_ttl()]
BACKBONE = [lambda c: pop_pbb(), lambda c: pop_pbb(), lambda c: set_field(pbb_isid=c.randrange(1 << 24)), *PUSH]
IP6 = [lambda c: set_field(ipv6_flabel=c.choice([0, 0x54321])), lambda c: set_field(ipv6_src=c.choice(ADDRESSES6)), lambda c: set_field(ipv6_dst=c.choice(ADDRESSES6))]
PORT = {proto: [lambda c, p=p: set_field(**{f'{p}_src': c.randrange(1, 65536)}),
                lambda c, p=p: set_field(**{f'{p}_dst': c.randrange(1, 65536)})]
        for proto, p in ((17, 'udp'), (6, 'tcp'))}
GROUPS = {1: of13.GT_INDIRECT, 2: of13.GT_ALL, 3: of13.GT_FF, 4: of13.GT_SELECT}


def random_match(chance):
    """-> (fields, the edits that go with them)"""
    fields, edits = {}, list(EDITS)
    if chance.random() < 0.4:
        fields['in_port'] = chance.randrange(1, PORTS + 1)
    if chance.random() < 0.2:
        fields['eth_dst'] = (mac(chance.choice([1, 2, 3])), b'\xff' * 6)[0]
    version = chance.choice([0, 4, 4, 6, 'arp', 'nd', 'mpls', 'pbb'])
    if version == 'arp':
        fields['eth_type'] = 0x806
        some = {'arp_op': chance.choice([1, 2]), 'arp_spa': chance.choice(ADDRESSES4),
                'arp_tpa': ('10.0.0.0', '255.255.255.0'), 'arp_sha': mac(0x11), 'arp_tha': (mac(1), b'\xff' * 6)}
        fields |= {k: some[k] for k in some if chance.random() < 0.4}
        edits += ARP + PUSH
    elif version == 'nd':
        fields |= {'eth_type': 0x86dd, 'ip_proto': 58, 'icmpv6_type': chance.choice([135, 136])}
        if chance.random() < 0.5:
            fields['ipv6_nd_target'] = chance.choice(ADDRESSES6)
    elif version == 'mpls':
        fields['eth_type'] = 0x8847
        edits += LABEL
    elif version == 'pbb':
        fields['eth_type'] = 0x88e7
        edits += BACKBONE
    elif version == 6 and chance.random() < 0.3:
        fields['ipv6_exthdr'] = chance.choice([0, 16, 64, (16, 16)])
    if version in ('arp', 'nd', 'mpls', 'pbb'):
        version = 0
    if version:
        fields['eth_type'] = 0x800 if version == 4 else 0x86dd
        edits += IP + (IP4 if version == 4 else IP6)
    tag = chance.random()
    if tag < 0.25:
        fields['vlan_vid'] = chance.choice([0x1005, 0x1006, (0x1000, 0x1000)])
        edits += TAG
    if version and chance.random() < 0.6:
        proto = chance.choice([17, 6])
        fields['ip_proto'] = proto
        edits += PORT[proto] * 2
        if chance.random() < 0.4:
            fields['udp_dst' if proto == 17 else 'tcp_dst'] = chance.choice([53, 80, 2000])
    if version and chance.random() < 0.4:
        if version == 4:
            fields['ipv4_dst'] = (chance.choice(['10.0.0.0', '10.0.1.0']), '255.255.255.0')
        else:
            fields['ipv6_dst'] = ('fd00::', 'ffff:ffff:ffff:ffff::')
    return fields, edits


def random_actions(chance, edits, groups, most=5):
    actions = []
    for _ in range(chance.randrange(1, most)):
        kind = chance.random()
        if kind < 0.6:
            actions.append(chance.choice(edits)(chance))
        elif kind < 0.85 or not groups:
            actions.append(output(chance.choice([1, 2, 3, 4, 2, 3, of13.P_IN_PORT, of13.P_ALL])))
        else:
            actions.append(group(chance.choice(groups)))
    if chance.random() < 0.8:
        actions.append(output(chance.randrange(1, PORTS + 1)))
    return actions


def pipeline(seed):
    """Messages that fill three tables; some of them the switch refuses, both in the same way"""
    chance, out = random.Random(seed), []
    for number, kind in GROUPS.items():
        buckets = []
        for _ in range(1 if kind == of13.GT_INDIRECT else chance.randrange(1, 4)):
            actions = random_actions(chance, EDITS, [], 3)
            watch = {'watch_port': chance.randrange(1, PORTS + 1)} if kind == of13.GT_FF else {}
            buckets.append(bucket(*actions, weight=int(kind == of13.GT_SELECT), **watch))
        out.append((of13.GROUP_MOD, group_mod(0, kind, number, *buckets)))
    for table in range(3):
        flows = [random_match(chance) for _ in range(6)] + [({}, EDITS)]
        for n, (fields, edits) in enumerate(flows):
            actions = random_actions(chance, edits, list(GROUPS))
            instructions = [chance.choice([apply_actions, apply_actions, write_actions])(
                *(actions[-1:] if chance.random() < 0.3 else actions))]
            if table < 2 and (n == len(flows) - 1 or chance.random() < 0.4):
                instructions.append(goto_table(chance.randrange(table + 1, 3)))
            priority = 0 if n == len(flows) - 1 else 10 + n
            order = {k: fields[k] for k in ('in_port', 'eth_dst', 'eth_type', 'vlan_vid', 'ip_proto', 'ipv6_exthdr',
                                            'ipv4_dst', 'ipv6_dst', 'udp_dst', 'tcp_dst', 'arp_op', 'arp_spa',
                                            'arp_tpa', 'arp_sha', 'arp_tha', 'icmpv6_type', 'ipv6_nd_target')
                     if k in fields}
            out.append((of13.FLOW_MOD, of13.flow_mod(match=match(**order), table_id=table,
                                                     priority=priority, instructions=instructions)))
    return out


# ------------------------------------------------------------------------------ both switches

class Side:
    """A switch, its hosts and what they heard"""

    def __init__(self, how, stack, ports_in, inside):
        self.topo, self.inside = stack.enter_context(Topology(PORTS)), inside
        looks = [f'--port-inside=p{n}:pppoe:mpls' for n in range(1, PORTS + 1) if inside]
        self.switch = stack.enter_context(Switch(self.topo, *offload.options(how), *looks))
        self.conn = stack.enter_context(self.switch.connect())
        self.wires = {n: stack.enter_context(VirtioWire(self.topo.host_ns(n), 'e0'))
                      for n in range(1, PORTS + 1)}
        for n in self.wires:
            q.send(self.conn, q.NATIVE, q.htb_class(q.ADD, n, QUEUE, 900 * MBIT))
        for n in ports_in:
            q.send(self.conn, q.NATIVE, q.htb_class(q.ADD, n, QUEUE, 900 * MBIT, direction=1))

    def fill(self, messages):
        """-> which were refused"""
        self.conn.ok(of13.FLOW_MOD, of13.flow_mod(of13.DELETE, table_id=of13.TT_ALL))
        self.conn.ok(of13.GROUP_MOD, group_mod(2, 0, of13.G_ALL))
        refused = []
        for n, (kind, body) in enumerate(messages):
            try:
                self.conn.ok(kind, body)
            except of13.OfError as e:
                refused.append((n, e.type, e.code))
        return refused

    def send(self, templates, rounds):
        for _ in range(rounds):
            for t in templates:
                self.wires[t.host].send(t.frame, t.header)
            time.sleep(PAUSE)
        self.conn.barrier()

    def counted(self):
        """What flows, tables and groups have counted since they were made, and ports so far"""
        traffic = 'rx_packets', 'rx_bytes', 'tx_packets', 'tx_bytes'
        return {'flows': sorted((f['table_id'], f['priority'], f['packet_count'], f['byte_count'])
                                for f in self.conn.flows()),
                'groups': sorted((g['group_id'], g['packet_count'], g['byte_count']) for g in self.conn.group_stats()),
                'ports': {n: [row[k] for k in traffic] for n, row in self.conn.port_stats().items() if n <= PORTS}}

    def heard(self):
        """{(port, number): the frames}"""
        found = collections.defaultdict(list)
        for n, wire in self.wires.items():
            for frame in wire.frames(0.05):
                at = frame.find(b'NUMB')
                assert at >= 0, f'port {n}: not one of ours: {frame.hex()}'
                found[n, struct.unpack_from('!I', frame, at + 4)[0]].append(frame)
        return found


@pytest.fixture(scope='module', params=[((), False), ((1, 2), False), ((1, ), True)], ids=['plain', 'queues-in', 'inside'])
def sides(request):
    """Without queues for what enters, and with such at two ports; with frames that ports look into"""
    if offload.has_option() and (why := offload.works()):
        pytest.skip(why)
    with contextlib.ExitStack() as stack:
        yield Side('off', stack, *request.param), Side('auto', stack, *request.param)


def difference(turn, one, other, templates):
    """A sentence about the first difference"""
    for key in sorted(set(one) | set(other)):
        # A packet may leave twice, in two queues: those have no order
        a, b = sorted(one.get(key, [])), sorted(other.get(key, []))
        if a != b:
            sent = templates[key[1]]
            first = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
            return (f'turn {turn}, port {key[0]}, packet {key[1]} '
                    f'(by port {sent.host}: {sent.header.hex()} {sent.frame[:90].hex()}): '
                    f'{len(a)} frames without, {len(b)} with the kernel; the {first}. is\n'
                    f'{a[first][:120].hex() if first < len(a) else "-"} without\n'
                    f'{b[first][:120].hex() if first < len(b) else "-"} with it')
    return None


@pytest.mark.long
@pytest.mark.parametrize('seed', SEEDS)
def test_both_say_the_same(sides, seed):
    chance = random.Random(1000 + seed)
    templates = [Template(chance, n, sides[0].inside) for n in range(TEMPLATES)]
    messages = pipeline(seed)
    refused = [side.fill(messages) for side in sides]
    assert refused[0] == refused[1]
    assert len(refused[0]) < len(messages) / 2
    before = offload.hits(sides[1].switch)
    for side in sides:
        side.heard()
    for turn, rounds in enumerate(ROUNDS):
        for side in sides:
            side.send(templates, rounds)
        found = [side.heard() for side in sides]
        assert not (why := difference(turn, *found, templates)), f'seed {seed}, ' + why
        if not turn:
            first = {key: sorted(frames) for key, frames in found[1].items()}
    counted = [side.counted() for side in sides]
    for what, rows in counted[0].items():
        assert rows == counted[1][what], f'seed {seed}: {what} count otherwise'
    last = {key: sorted(frames)[::ROUNDS[1]] for key, frames in found[1].items()}
    assert not (why := difference('last', first, last, templates)), \
        f'seed {seed}, the kernel does not as user space did: ' + why
    if offload.has_option():
        share = (offload.hits(sides[1].switch) - before) / (TEMPLATES * sum(ROUNDS))
        print(f'seed {seed}: the kernel handled {share:.0%}')
        assert share > 0.1, offload.counted(sides[1].switch)
