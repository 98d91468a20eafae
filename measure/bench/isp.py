# SPDX-License-Identifier: Apache-2.0
"""An ISP's customers for measure/bench/subscribers: the lists, the switch with `ofqos shaper`, and the same tree made by hand
with tc on a Linux bridge."""
import csv
import ipaddress
import json
import os
import random
import subprocess
import sys
import time

from net import Failure, run
from subjects import Bridge, Ofqos
from support import isplist, tc

from ofqos.shaper.model import Pair
from ofqos.shaper.plan import LEAVES, Box, plan
from ofqos.shaper.read import read
from ofqos.shaper.state import assigned, circuit_key, site_key

MBIT = 1_000_000
TOTAL = '100gbit'
PYTHON = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), 'controllers', 'python')


def address(n):
    """Of circuit n: what the nth microflow of `relay -g` goes to (generate.c)"""
    return str(ipaddress.ip_address('10.2.0.0') + (n * 40503 & 0xffff))


class Lists:
    """Circuit 0 may have all there is, and has a site of its own.  The others are isplist's below its access points, of which the
    first two have 200 Mbit/s; of `full` the plan is 10 Mbit/s."""

    def __init__(self, directory, circuits, full):
        rng, aps = random.Random(1), max(6, circuits * 3 // 100)
        tree = isplist.network(rng, max(2, aps // 10), aps)
        self.paths = [os.path.join(directory, name) for name in ('ShapedDevices.csv', 'network.json')]
        self.ap, self.down = {}, {0: 40_000}
        self.full = range(circuits - full, circuits)
        rows = [[0, 'all', 0, '', 'Fast', '', address(0), '', 1, 1, 40_000, 40_000, '']]
        for n, row in enumerate(isplist.rows(rng, circuits - 1, aps), 1):
            if n >= circuits:
                break
            row[0] = n
            row[6], row[2] = address(n), n
            if n in self.full:
                row[8:12] = 0.25, 0.25, 10, 2
            self.ap[n], self.down[n] = row[4], row[10]
            rows.append(row)
        for node in nodes(tree):
            for name, child in node['children'].items():
                if name in self.full_aps():
                    child.update(downloadBandwidthMbps=200, uploadBandwidthMbps=100)
                    rows_here = [n for n, ap in self.ap.items() if ap == name]
                    assert sum(self.down[n] for n in rows_here) > 200
        tree['Fast'] = {'downloadBandwidthMbps': 50_000, 'uploadBandwidthMbps': 50_000, 'type': 'site', 'children': {}}
        with open(self.paths[1], 'w', encoding='utf-8') as f:
            json.dump(tree, f)
        with open(self.paths[0], 'w', encoding='utf-8', newline='') as f:
            csv.writer(f).writerows([isplist.HEADER, *rows])
        self.circuits = range(circuits)

    @staticmethod
    def full_aps():
        return 'AP_1', 'AP_2'

    def in_full_aps(self):
        return [n for n, ap in self.ap.items() if ap in self.full_aps()]

    def sampled(self, many):
        """One in each access point, as far as there are so many"""
        chosen = {}
        for n, ap in self.ap.items():
            if ap not in self.full_aps() and n not in self.full and self.down[n] <= 100:
                chosen.setdefault(ap, n)
        return list(chosen.values())[:many]


def nodes(tree):
    for node in tree.values():
        if 'children' in node:
            yield node
            yield from nodes(node['children'])


class Shaped:
    """What both have in common; `numbers`: of classes, as {'circuit 7': 23}"""
    numbers = {}

    def bytes_of(self, keys):
        """Of these on the way down, and when"""
        found, at = tc.classes(self.net.ns['sw'], 's2'), time.monotonic()
        return {key: found[self.numbers[key]]['bytes'] for key in keys}, at


class Ours(Shaped, Ofqos):
    title = 'ofdatapath, ofqos shaper'

    def load(self, messages):
        pass                            # the shaper makes the flows

    def shaper(self, *words):
        state = f'{self.directory}/state.json'
        done = subprocess.run([sys.executable, '-m', 'ofqos.command', 'shaper', '--json', '--state', state, 'apply', *words], text=True, timeout=3600,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, 'PYTHONPATH': PYTHON}, check=False)
        if done.returncode:
            raise Failure(f'ofqos shaper apply: {done.stdout[-500:]} {done.stderr[-500:]}')
        with open(state, encoding='utf-8') as f:
            self.numbers = json.load(f)['numbers']
        return json.loads(done.stdout)

    def fill(self, lists, leaf):
        self.shaper(*lists.paths, '--connect', self.address, '--core', 's1', '--edge', 's2', '--leaf', leaf, '--download', TOTAL, '--upload', TOTAL)

    def change(self, n, mbit):
        """One plan both ways, by one command"""
        number = self.numbers[circuit_key(str(n))]
        for port in 2, 1:
            run(f'{self.build}/utils/dpctl/dpctl', self.address, 'qos-htb', f'cmd=change,port={port},class={number},rate=250kbit,ceil={mbit}mbit')


class Plain(Shaped, Bridge):
    """The same classes; filters that an expert would make: `classifier` u32 in hash tables, or flower"""
    classifier = 'u32'

    @property
    def title(self):
        return f'bridge, tc htb and {self.classifier}'

    def tc(self, lines):
        done = subprocess.run(self.net.inside('sw', 'tc', '-batch', '-'), input='\n'.join(lines) + '\n', text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
        if done.returncode:
            raise Failure(f'tc: {done.stderr[:500]}')

    def fill(self, lists, leaf):
        network, problems = read(*lists.paths)
        if problems.errors:
            raise Failure(str(problems.errors[0]))
        self.numbers = assigned(network, {}, [])
        total = Pair(100_000 * MBIT, 100_000 * MBIT)
        wanted = plan(network, Box(Pair(2, 1), total, total, leaf), self.numbers)
        lines = []
        for dev, tree in zip(('s2', 's1'), wanted.trees):
            lines.append(f'qdisc add dev {dev} root handle 1: htb default {self.numbers["unlisted"]:x}')
            for each in tree.values():
                number, parent = (each.number or 0xfffe), '1:' if not each.number else f'1:{each.parent or 0xfffe:x}'
                burst = max(16_000, each.ceil // 8000)
                lines.append(f'class add dev {dev} parent {parent} classid 1:{number:x} htb rate {each.rate}bit ceil {each.ceil}bit '
                             f'burst {burst} cburst {burst} quantum {each.quantum or 60_000}')
                if each.leaf and leaf != 'none':
                    options = ' '.join(f'{key} {value}' for key, value in LEAVES[leaf].items())
                    lines.append(f'qdisc add dev {dev} parent 1:{number:x} {leaf} {options}')
        makes = {'u32': u32, 'flower': flower}[self.classifier]
        for way, dev in enumerate(('s2', 's1')):
            addresses = [(prefix, self.numbers[circuit_key(c.id)]) for c in network.circuits.values() for prefix in c.addresses]
            lines += makes(dev, way, addresses)
        self.tc(lines)

    def change(self, n, mbit):
        number = self.numbers[circuit_key(str(n))]
        for dev in 's2', 's1':
            run(*self.net.inside('sw', 'tc', 'class', 'change', 'dev', dev, 'classid', f'1:{number:x}', 'htb', 'rate', '250kbit', 'ceil', f'{mbit}mbit',
                                 'burst', '16000', 'cburst', '16000', 'quantum', '1600'))


class Flower(Plain):
    classifier = 'flower'


def u32(dev, way, addresses):
    """Two hash tables deep: by the last two bytes of an IPv4 address, by the sixth and seventh of an IPv6 prefix"""
    made, word = [], f'filter add dev {dev} parent 1:'
    for version, protocol, root, at, masks, shift in ((4, 'ip', 0x800, (16, 12)[way], ('0000ff00', '000000ff'), 0),
                                                      (6, 'ipv6', 0x801, (24, 8)[way] + 4, ('00ff0000', '0000ff00'), 72)):
        here = [(prefix, number) for prefix, number in addresses if prefix.version == version]
        base, prio = {4: 0x100, 6: 0x500}[version], {4: 1, 6: 2}[version]
        if not here:
            continue
        uppers = sorted({prefix.number >> shift + 8 & 255 for prefix, _ in here})
        made.append(f'{word} prio {prio} protocol {protocol} handle {base:x}: u32 divisor 256')
        made += [f'{word} prio {prio} protocol {protocol} handle {base + 1 + upper:x}: u32 divisor 256' for upper in uppers]
        made.append(f'{word} prio {prio} protocol {protocol} u32 ht {root:x}: match u32 0 0 at 0 hashkey mask 0x{masks[0]} at {at} link {base:x}:')
        made += [f'{word} prio {prio} protocol {protocol} u32 ht {base:x}:{upper:x}: match u32 0 0 at 0 hashkey mask 0x{masks[1]} at {at} '
                 f'link {base + 1 + upper:x}:' for upper in uppers]
        for prefix, number in here:
            upper, lower = prefix.number >> shift + 8 & 255, prefix.number >> shift & 255
            address_ = str(ipaddress.ip_address(prefix.number) if version == 4 else ipaddress.IPv6Address(prefix.number))
            field = f'{"ip" if version == 4 else "ip6"} {("dst", "src")[way]}'
            made.append(f'{word} prio {prio} protocol {protocol} u32 ht {base + 1 + upper:x}:{lower:x}: match {field} {address_}/{prefix.bits} '
                        f'flowid 1:{number:x}')
    return made


def flower(dev, way, addresses):
    made = []
    for prefix, number in addresses:
        address_ = ipaddress.ip_address(prefix.number) if prefix.version == 4 else ipaddress.IPv6Address(prefix.number)
        made.append(f'filter add dev {dev} parent 1: prio {1 if prefix.version == 4 else 2} protocol {"ip" if prefix.version == 4 else "ipv6"} flower '
                    f'{("dst_ip", "src_ip")[way]} {address_}/{prefix.bits} classid 1:{number:x}')
    return made


__all__ = ['Flower', 'Lists', 'MBIT', 'Ours', 'Plain', 'address', 'circuit_key', 'site_key']
