# SPDX-License-Identifier: Apache-2.0
"""Both files, and what is wrong between them."""
from __future__ import annotations

import difflib
import ipaddress
import math
import os
from typing import Dict, List, Optional, Tuple

from . import devices, ownlist, sites
from .model import MBIT, MOST_CLASSES, Circuit, Network, Pair, Prefix, Problems, shown

SITE_RATE = 8_000           # bit/s: HTB wants a guarantee of each class; a site has none of its own, its circuits have
UNLISTED_RATE = 1_000_000   # guaranteed to what is not in the list, together


def read(devices_path: str, sites_path: str) -> Tuple[Network, Problems]:
    network, problems = lists(devices_path, sites_path)
    check(network, devices_path, sites_path, problems)
    return network, problems


def lists(devices_path: str, sites_path: str) -> Tuple[Network, Problems]:
    """As they are: what is wrong between them is found by check().  A YAML file has both.  ValueError: it can't be read here."""
    problems = Problems()
    if ownlist.is_own(devices_path):
        return ownlist.read(devices_path, problems), problems
    return Network(sites.read(sites_path, problems), devices.read(devices_path, problems)), problems


def check(network: Network, devices_path: str, sites_path: str, problems: Problems, addresses_come: bool = False) -> None:
    """`addresses_come`: a circuit may have none as long as its customer is away"""
    file = os.path.basename(devices_path)
    for circuit in network.circuits.values():
        if not circuit.addresses and not addresses_come:
            problems.warn(file, circuit.line, 'IPv4', f'circuit {shown(circuit.id)} has no address: nothing gets into its queue')
    _parents(file, network, problems)
    _overlaps(file, network, problems)
    if len(network.sites) + len(network.circuits) > MOST_CLASSES:
        problems.error(file, 0, '', f'{len(network.sites) + len(network.circuits):,} sites and circuits; the most is {MOST_CLASSES:,}')
    if not problems.errors:
        kept = guarantees(network)
        for name, site in network.sites.items():
            _oversold(os.path.basename(sites_path), site.line, name, site.ceiling, kept[name], problems)
    problems.sort()


def _place(circuit: Circuit) -> str:
    """Of a circuit, in a message about another one"""
    return f'line {circuit.line}' if circuit.line else 'changed over the API'


def whose(circuit: Circuit) -> str:
    """What is not in a line of the list says whose it is."""
    return '' if circuit.line else f'circuit {shown(circuit.id)}, changed over the API: '


def _parents(file: str, network: Network, problems: Problems) -> None:
    for circuit in network.circuits.values():
        if circuit.parent and circuit.parent not in network.sites:
            near = difflib.get_close_matches(circuit.parent, network.sites, 1) if len(problems.errors) < 100 else []
            problems.error(file, circuit.line, 'site' if ownlist.is_own(file) else 'Parent Node', f'{whose(circuit)}there is no node {shown(circuit.parent)}' +
                           (f': did you mean {near[0]}?' if near else ''))


def text_of(prefix: Prefix) -> str:
    address = ipaddress.IPv4Address(prefix.number) if prefix.version == 4 else ipaddress.IPv6Address(prefix.number)
    return f'{address}' if prefix.bits == address.max_prefixlen else f'{address}/{prefix.bits}'


def covers(outer: Prefix, inner: Prefix) -> bool:
    shift = (32 if outer.version == 4 else 128) - outer.bits
    return outer.version == inner.version and outer.bits <= inner.bits and outer.number >> shift == inner.number >> shift


def _overlaps(file: str, network: Network, problems: Problems) -> None:
    """In order, a prefix comes behind those that cover it."""
    every = [(prefix, circuit) for circuit in network.circuits.values() for prefix in circuit.addresses]
    every.sort(key=lambda each: (each[0], each[1].line))
    open_: List[Tuple[Prefix, Circuit]] = []
    for prefix, circuit in every:
        while open_ and not covers(open_[-1][0], prefix):
            open_.pop()
        for outer, other in reversed(open_):
            if other is not circuit:
                first, second = sorted(((circuit, prefix), (other, outer)), key=lambda each: each[0].line or math.inf)
                problems.error(file, second[0].line, f'IPv{prefix.version}', f'{whose(second[0])}{text_of(second[1])} is circuit {shown(first[0].id)}\'s, too'
                               f' ({_place(first[0])}: {text_of(first[1])})')
                break
        open_.append((prefix, circuit))


# --------------------------------------------------------------------------------- guarantees

class Kept:
    """What a site can keep of the guarantees directly below it, in percent of them; both ways.  `sum` of them."""

    def __init__(self) -> None:
        self.sum, self.own, self.percent = [0, 0], [0, 0], [100, 100]


def guarantees(network: Network, total: Optional[Pair] = None) -> Dict[str, Kept]:
    """By site; '': the whole, where there is a total.

    HTB gives each class its guarantee, whatever the classes above may send.  So those that are more than a site's
    ceiling are cut down to it, each by the same part: whole percents, so that a new plan seldom changes its neighbours."""
    found = {name: Kept() for name in ('', *network.sites)}
    for circuit in network.circuits.values():
        for way in 0, 1:
            found[circuit.parent].sum[way] += circuit.guarantee[way]
    for site in reversed(network.sites.values()):       # each before its parent
        kept, above = found[site.name], found[site.parent]
        _cut(kept, site.ceiling)
        for way in 0, 1:
            above.sum[way] += kept.sum[way] * kept.percent[way] // 100
            above.own[way] += SITE_RATE
    if total:
        found[''].own = [UNLISTED_RATE, UNLISTED_RATE]
        _cut(found[''], total)
    return found


def _cut(kept: Kept, ceiling: Pair) -> None:
    for way in 0, 1:
        room = max(0, ceiling[way] - kept.own[way])
        if kept.sum[way] > room:
            kept.percent[way] = max(1, room * 100 // kept.sum[way])


def _oversold(file: str, line: int, name: str, ceiling: Pair, kept: Kept, problems: Problems) -> None:
    for way, key in enumerate(('downloadBandwidthMbps', 'uploadBandwidthMbps')):
        if kept.percent[way] < 100:
            problems.warn(file, line, f'{name}.{key}', f'{_mbit(kept.sum[way])} are guaranteed below it, and it has '
                          f'{_mbit(ceiling[way])}: each guarantee there becomes {kept.percent[way]} % of what it was')


def _mbit(value: int) -> str:
    return f'{value / MBIT:,.10g} Mbit/s'


def oversold_whole(network: Network, total: Pair, dash: str = '--') -> List[str]:
    """What to say where the box's own ceilings are too low."""
    kept = guarantees(network, total)['']
    return [f'{_mbit(kept.sum[way])} of {name} are guaranteed, and {dash}{name} is {_mbit(total[way])}: each guarantee becomes '
            f'{kept.percent[way]} % of what it was' for way, name in enumerate(('download', 'upload')) if kept.percent[way] < 100]
