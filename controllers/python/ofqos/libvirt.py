# SPDX-License-Identifier: Apache-2.0
"""ofqos-libvirt: makes the taps of libvirt's machines ports of this machine's switch, with their <bandwidth>.

libvirt runs it as a hook, /etc/libvirt/hooks/qemu.d/ofqos:

    #!/bin/sh
    exec ofqos-libvirt --switch br0 --bridge lan -- "$@"

By hand, after what libvirt runs no hook for (domiftune, attach-interface):

    virsh dumpxml red | ofqos-libvirt --switch br0 --bridge lan red reconnect begin -
"""
from __future__ import annotations

import argparse
import re
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from typing import BinaryIO, List, Optional, Sequence, Set

from . import commandline
from .hostports import HostPorts, PortError, Total, is_interface, run

XML_MOST, INTERFACES_MOST = 4 << 20, 256
MADE, REPEATED, GONE = ('started',), ('reconnect',), ('stopped', 'release')
_KB, _RATE_MOST = 8000, 1 << 32         # bit/s of a kilobyte a second, as tc's kbps; kilobytes/s
_CHOSEN = re.compile(r'vnet[0-9]+')     # by libvirt, which refuses such names from others


class DomainError(Exception):
    """What is wrong with the domain's XML."""


@dataclass(frozen=True)
class Tap:
    """into: what the machine receives, libvirt's inbound."""
    name: str
    into: Optional[Total]
    out: Optional[Total]


def _number(name: str, element: ElementTree.Element, key: str, most: int) -> int:
    text = element.get(key, '0')
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= most):
        raise DomainError(f'interface {name}: <{element.tag} {key}={text[:40]!r}> must be a whole number up to {most}')
    return int(text)


def _total(name: str, interface: ElementTree.Element, which: str) -> Optional[Total]:
    """KiB of a burst, as libvirt has it"""
    found = interface.find(f'bandwidth/{which}')
    if found is None:
        return None
    average = _number(name, found, 'average', _RATE_MOST)
    peak, burst = _number(name, found, 'peak', _RATE_MOST), _number(name, found, 'burst', (1 << 22) - 1)
    return Total(average * _KB, peak * _KB, burst * 1024) if average else None


def _tap(interface: ElementTree.Element, bridges: Sequence[str]) -> Optional[Tap]:
    """None: the interface is not the switch's."""
    target, source = interface.find('target'), interface.find('source')
    name = target.get('dev', '') if target is not None else ''
    bridge = source.get('bridge', '') if source is not None else ''
    if interface.get('type') == 'bridge' and bridge not in bridges:
        return None
    if interface.get('type') not in ('bridge', 'ethernet') or not name:
        return None
    if not is_interface(name):
        raise DomainError(f'<target dev={name[:40]!r}> must be letters, digits, _ . @ or -, at most 15')
    return Tap(name, _total(name, interface, 'inbound'), _total(name, interface, 'outbound'))


def interfaces(data: bytes) -> List[ElementTree.Element]:
    """Of a domain, as libvirt writes it.  DomainError"""
    if len(data) > XML_MOST or b'<!DOCTYPE' in data:
        raise DomainError(f"the domain's XML has more than {XML_MOST} bytes" if len(data) > XML_MOST else "the domain's XML has a DOCTYPE")
    try:
        root = ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError, LookupError) as error:      # the others: an encoding that is none
        raise DomainError(f'stdin is no XML: {error}') from None
    domain = root if root.tag == 'domain' else root.find('.//domain')
    if domain is None:
        raise DomainError(f'stdin must be a <domain>, not a <{root.tag[:40]}>')
    return domain.findall('devices/interface')


def taps(every: Sequence[ElementTree.Element], bridges: Sequence[str]) -> List[Tap]:
    """Those that are the switch's: type ethernet, and type bridge at one of `bridges`.  DomainError"""
    found = [_tap(interface, bridges) for interface in every]
    mine = [tap for tap in found if tap]
    if len(mine) > INTERFACES_MOST:
        raise DomainError(f'{len(mine)} interfaces; there may be {INTERFACES_MOST}')
    return mine


def connect(ports: HostPorts, every: Sequence[Tap]) -> None:
    """All of them or none.  What libvirt has set on a tap itself would be beside the switch's: its policer goes here, its
    root qdisc where the switch makes its own.  Off a bridge, so that packets have one way."""
    added: List[str] = []
    try:
        there = ports.names()
        for tap in every:
            run(['ip', 'link', 'set', 'dev', tap.name, 'nomaster', 'up'])
            if tap.name not in there:
                run(['tc', 'qdisc', 'del', 'dev', tap.name, 'ingress'], may_fail=True)
                ports.add(tap.name)
                added.append(tap.name)
            ports.limit(tap.name, tap.into, tap.out)
    except PortError:
        for name in added:
            ports.remove(name)
        raise


def named(every: Sequence[ElementTree.Element]) -> Set[str]:
    """What somebody called their taps"""
    return {target.get('dev', '') for interface in every for target in interface.findall('target')}


def disconnect(ports: HostPorts, every: Sequence[Tap], names: Set[str]) -> None:
    """A stopped domain's XML has no names that libvirt chose itself, and does not tell which bridge the network of an
    interface has; their interfaces are gone by then."""
    ports.remove_gone(lambda name: name in names or bool(_CHOSEN.fullmatch(name)))
    for tap in every:
        ports.remove(tap.name)


def parser() -> argparse.ArgumentParser:
    made = commandline.parser('ofqos-libvirt', __doc__)
    made.add_argument('--switch', default='', metavar='SWITCH', help="its name, or its socket's path; default: the only one of this machine")
    made.add_argument('--bridge', action='append', default=[], metavar='NAME',
                      help='interfaces of <source bridge=NAME> become ports, too; may be given again')
    made.add_argument('domain', metavar='DOMAIN', help="libvirt's arguments of a hook")
    made.add_argument('operation', metavar='OPERATION', help='started, reconnect, stopped, release; others do nothing')
    made.add_argument('rest', nargs='*', metavar='MORE')
    return made


def hook(args: argparse.Namespace, stdin: BinaryIO) -> None:
    """DomainError, PortError"""
    if args.operation not in MADE + REPEATED + GONE:
        return
    described = interfaces(stdin.read(XML_MOST + 1))
    every = taps(described, args.bridge)
    if args.operation in GONE:
        disconnect(HostPorts(args.switch), every, named(described))
    elif every:
        connect(HostPorts(args.switch), every)


def main(argv: Optional[Sequence[str]] = None) -> int:
    """1, which makes libvirt end the machine, only if a new one can't be connected."""
    args = parser().parse_args(argv)
    try:
        hook(args, sys.stdin.buffer)
    except (DomainError, PortError) as error:
        print(f'ofqos-libvirt: {args.domain[:80]}, {args.operation}: {error}', file=sys.stderr, flush=True)
        return int(args.operation in MADE)
    return 0


if __name__ == '__main__':
    sys.exit(main())
