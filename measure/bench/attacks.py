# SPDX-License-Identifier: Apache-2.0
"""What measure/bench/isolation does to a switch beside its tenant: a row an attack.

The attacker is host 3, behind port 3; what it sends leaves by port 4, or by port 2 in queue 2.  Or it
is a controller, measure/bench/hostile.py.  Each row says what bounds it (docs/explanation/isolation.md)."""
import os
import sys

from support import of13
from support.of13 import apply_actions, flow_mod, match, output

HERE = os.path.dirname(os.path.abspath(__file__))
COOKIE = 0xbad             # of all flows that an attack makes
LOWEST = ('nice', '-n', '19')


def flow(*instructions, priority=50, **fields):
    return of13.message(of13.FLOW_MOD, flow_mod(
        match=match(**(fields or {'in_port': 3})), instructions=instructions, cookie=COOKIE,
        priority=priority))


def add_group(kind, number, *buckets):
    return of13.message(of13.GROUP_MOD, of13.group_mod(of13.ADD, kind, number, *buckets))


def to_sink():
    return [flow(apply_actions(output(4)))]


def to_tenants_port():
    """In the queue beside the tenant's"""
    return [flow(apply_actions(of13.set_queue(2), output(2)))]


def to_controller():
    return [flow(apply_actions(output(of13.P_CONTROLLER)))]


def normal():
    return [flow(apply_actions(output(of13.P_NORMAL)))]


def prefix(address, bits):
    mask = 0xffffffff << 32 - bits & 0xffffffff
    return address & mask, mask


def many_masks(n=1024):
    """A mask each, above the tenant's flows, whose last bit (of the first eight) is wrong for every
    packet that the hosts send: all are in 10.0.0.0/8."""
    out = []
    for k in range(n):
        s, d = 1 + k % 32, 1 + k // 32 % 32
        wrong_src, wrong_dst = (0x0a000000 ^ 1 << 32 - min(b, 8) for b in (s, d))
        out.append(flow(apply_actions(output(4)), priority=200 + k, eth_type=0x800,
                        ipv4_src=prefix(wrong_src, s), ipv4_dst=prefix(wrong_dst, d)))
    return out + to_sink()


def chain(depth=16):
    """The longest chain of groups that may be, each of which edits the packet."""
    last = add_group(of13.GT_ALL, depth, of13.bucket(output(4)))
    rest = [add_group(of13.GT_ALL, n, of13.bucket(of13.set_field(ipv4_src=n), of13.group(n + 1)))
            for n in range(depth - 1, 0, -1)]
    return [last, *rest, flow(apply_actions(of13.group(1)), in_port=3, eth_type=0x800)]


def many_buckets(n=1024):
    """An ALL group with as many buckets as one may have"""
    return [add_group(of13.GT_ALL, 1, *[of13.bucket(output(4)) for _ in range(n)]),
            flow(apply_actions(of13.group(1)))]


def tree_of_buckets(n=64):
    """ALL groups in two stages: a packet runs through as many buckets as it may"""
    return [add_group(of13.GT_ALL, 2, *[of13.bucket(output(4)) for _ in range(n)]),
            add_group(of13.GT_ALL, 1, *[of13.bucket(of13.group(2)) for _ in range(n)]),
            flow(apply_actions(of13.group(1)))]


def many_flows(n=10000):
    import flowload
    return [flowload.simple(n)]


def many_meters(n=1000):
    return [of13.message(of13.METER_MOD, of13.meter_mod(of13.ADD, i + 1, of13.band_drop(1000)))
            for i in range(n)]


class Attack:
    """kind and rate: of the host's packets, or no rate where they are as many as rate bytes of
    the machine allow; controller: which of hostile.py's"""

    def __init__(self, what, setup=list, kind=None, rate=0, controller=None, tls=False):
        self.what, self.setup, self.kind, self.rate = what, setup, kind, rate
        self.controller, self.tls = controller, tls

    def commands(self, scene, seconds):
        """-> the words of the programs that carry it out, at a lower priority than all others"""
        out = []
        if self.kind:
            out.append(('ip', 'netns', 'exec', scene.topo.host_ns(3), *LOWEST,
                        os.path.join(scene.build, 'measure/bench/flood'), self.kind, str(self.rate),
                        str(seconds), 'e0'))
        if self.controller:
            address = scene.tls_address if self.tls else scene.switch.address
            out.append(('ip', 'netns', 'exec', scene.topo.switch_ns, *LOWEST, sys.executable,
                        os.path.join(HERE, 'hostile.py'), self.controller, address, str(seconds)))
        return out


# Packets a second: so many that the attack is felt, and few enough that this machine can make them
# beside the tenant (2 processors).  Those that are much work for the switch are more than it can do.
FAST, SLOW = 100_000, 20_000

ATTACKS = {
    'new-flows': Attack('each packet a new flow', to_sink, 'flows', FAST),
    'same-port': Attack('packets for the port that the tenant uses, in another queue',
                        to_tenants_port, 'flows', FAST),
    'misses': Attack('each packet goes to a controller that reads', to_controller, 'flows', FAST,
                     'listener'),
    'misses-deaf': Attack('the same, and the controller does not read', to_controller, 'flows',
                          FAST, 'deaf'),
    'fragments': Attack('fragments that overlap and never end', to_sink, 'fragments', FAST),
    'masks': Attack('1,024 masks to rule out, each packet a new flow', many_masks, 'flows', FAST),
    'macs': Attack('each packet from a new address, forwarded by NORMAL', normal, 'macs', SLOW),
    'chain': Attack('chains of 16 groups, each edits', chain, 'flows', FAST),
    'buckets': Attack('an ALL group of 1,024 buckets', many_buckets, 'same', SLOW),
    'bucket-tree': Attack('ALL groups, 4,096 buckets a packet', tree_of_buckets, 'same', SLOW),
    'echoes': Attack('8 controllers send echo requests', controller='echoes'),
    'flow-mods': Attack('4 controllers add and delete flows', controller='flow_mods'),
    'bundles': Attack('bundles of 20,000 flow-mods', controller='bundles'),
    'statistics': Attack('8 controllers ask for 1,000 meters, queues, groups, ports', many_meters,
                         controller='statistics'),
    'slow-readers': Attack('64 controllers ask for dumps of 10,000 flows, read nothing',
                           many_flows, controller='slow_readers'),
    'queue-mods': Attack("4 controllers change another port's queue", controller='queue_mods'),
    'packet-outs': Attack('4 controllers send packet-outs', controller='packet_outs'),
    'packet-outs-groups': Attack('4 controllers send packet-outs through 1,024 buckets',
                                 many_buckets, controller='packet_outs_to_groups'),
    'connections': Attack('connections come and go; 48 say nothing', controller='connections'),
    'tls': Attack('TLS handshakes that stop or fail', controller='tls', tls=True),
}
