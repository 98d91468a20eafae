#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists of an invented ISP's customers, as LibreQoS has them: ShapedDevices.csv and network.json.

    python3 tests/support/isplist.py DIRECTORY                            # 10,000 circuits, 300 access points, 30 sites
    python3 tests/support/isplist.py DIRECTORY --circuits 1000 --aps 30 --sites 3 --seed 7
"""
import argparse
import csv
import ipaddress
import json
import os
import random

HEADER = ['Circuit ID', 'Circuit Name', 'Device ID', 'Device Name', 'Parent Node', 'MAC', 'IPv4', 'IPv6', 'Download Min Mbps',
          'Upload Min Mbps', 'Download Max Mbps', 'Upload Max Mbps', 'Comment']
# download and upload guarantee, ceilings, how many of a hundred have it
PLANS = [((0.25, 0.25), (25, 5), 30), ((0.5, 0.25), (50, 10), 35), ((0.5, 0.5), (100, 20), 25), ((1, 1), (300, 50), 8), ((5, 5), (500, 500), 2)]
V4, V6 = ipaddress.ip_address('100.64.0.0'), ipaddress.ip_address('2001:db8::')


def network(rng, sites, aps):
    """Sites below a few others, access points below sites"""
    tree, nodes = {}, []
    for n in range(1, sites + 1):
        made = {'downloadBandwidthMbps': rng.choice((1000, 2000, 5000)), 'uploadBandwidthMbps': 1000, 'type': 'site', 'children': {}}
        above = rng.choice(nodes)['children'] if nodes and n % 3 == 0 else tree
        above[f'Site_{n}'] = made
        if above is tree:
            nodes.append(made)
    every = nodes + [child for node in nodes for child in node['children'].values()]
    for n in range(1, aps + 1):
        every[n % len(every)]['children'][f'AP_{n}'] = {
            'downloadBandwidthMbps': rng.choice((200, 300, 600)), 'uploadBandwidthMbps': rng.choice((100, 150)), 'type': 'ap'}
    return tree


def rows(rng, circuits, aps):
    for n in range(1, circuits + 1):
        least, most, _ = rng.choices(PLANS, [plan[2] for plan in PLANS])[0]
        ap = f'AP_{(n - 1) % aps + 1}' if aps else ''
        for device in range(2 if n % 50 == 0 else 1):
            v6 = f'{V6 + (n << 72)}/56' if device == 0 else ''
            v4 = str(V4 + 2 * n + device)
            yield [10000 + n, f'{n} Example Street, Springfield', f'{n}-{device}', f'Router {n}', ap, '', v4, v6,
                   least[0], least[1], most[0], most[1], '']


def write(directory, circuits=10_000, aps=300, sites=30, seed=1):
    """-> the paths of both files"""
    rng = random.Random(seed)
    os.makedirs(directory, exist_ok=True)
    paths = [os.path.join(directory, name) for name in ('ShapedDevices.csv', 'network.json')]
    with open(paths[1], 'w', encoding='utf-8') as f:
        json.dump(network(rng, sites, aps), f, indent='\t')
    with open(paths[0], 'w', encoding='utf-8', newline='') as f:
        out = csv.writer(f)
        f.write('# Invented: no such customers\n')
        out.writerow(HEADER)
        out.writerows(rows(rng, circuits, aps))
    return paths


def main():
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument('directory')
    for name, default in (('circuits', 10_000), ('aps', 300), ('sites', 30), ('seed', 1)):
        made.add_argument(f'--{name}', type=int, default=default)
    args = made.parse_args()
    print('\n'.join(write(args.directory, args.circuits, args.aps, args.sites, args.seed)))


if __name__ == '__main__':
    main()
