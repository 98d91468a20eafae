# SPDX-License-Identifier: Apache-2.0
"""What a reservation is asked for with, as people and JSON say it: ends, applications, DSCP, header
fields."""
from __future__ import annotations

import ipaddress
import re
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple, Union

from ..names import APPS, DSCPS, PROTOCOLS
from ..units import parse_rate
from .graph import Place
from .parts import Match

# Header fields that a match may have, and how many bits each has.
FIELDS = {'ip_proto': 8, 'tcp_src': 16, 'tcp_dst': 16, 'udp_src': 16, 'udp_dst': 16, 'sctp_src': 16,
          'sctp_dst': 16, 'ip_ecn': 2, 'eth_type': 16}
_MAC = re.compile(r'([0-9a-f]{2}:){5}[0-9a-f]{2}')
_MOST = 64                                  # flows of a reservation on a switch


class Asked(NamedTuple):
    """`ends`: addresses, or places; `body`: what is shown."""
    name: str
    rate: int
    ceil: int
    ends: Tuple[Union[str, Place], Union[str, Place]]
    matches: Tuple[Match, ...]
    body: Dict[str, Any]


def address(text: Any) -> str:
    """An IPv4, IPv6 or MAC address as it is kept; ValueError"""
    if isinstance(text, str) and _MAC.fullmatch(text.lower()):
        return text.lower()
    try:
        return str(ipaddress.ip_address(str(text)))
    except ValueError:
        raise ValueError(f'{text!r} is no address of a host (192.0.2.1, fd00::1, '
                         '02:00:00:00:00:01) and no SWITCH:PORT') from None


def is_mac(text: str) -> bool:
    return bool(_MAC.fullmatch(text))


def end(text: Any) -> Union[str, Place]:
    """An address, or SWITCH:PORT; ValueError"""
    if isinstance(text, str) and re.fullmatch(r'[0-9a-fA-F]{1,16}:\d{1,10}', text):
        return Place.parse(text)
    return address(text)


def parse(body: Dict[str, Any]) -> Asked:
    """What a client asks for; ValueError says what is wrong with it."""
    unknown = set(body) - {'name', 'rate', 'ceil', 'from', 'to', 'app', 'dscp', 'match'}
    if unknown:
        raise ValueError(f'unknown: {", ".join(sorted(unknown))}')
    name = body.get('name')
    if not isinstance(name, str) or not re.fullmatch(r'[^\x00-\x1f\x7f/]+', name) or \
            len(name.encode()) > 31:
        raise ValueError('a name of at most 31 bytes without a slash is needed')
    rate = parse_rate(str(body.get('rate', '')))
    ceil = parse_rate(str(body['ceil'])) if body.get('ceil') else rate
    if not 8000 <= rate <= ceil:
        raise ValueError('the rate is at least 8kbit, and the ceil not below it')
    for key in 'from', 'to':
        if key not in body:
            raise ValueError(f'{key} is needed: an address, or SWITCH:PORT')
    ends = end(body['from']), end(body['to'])
    made = matches(ends, body)
    shown = {key: body[key] for key in ('from', 'to', 'app', 'dscp', 'match') if body.get(key)}
    return Asked(name, rate, ceil, ends, made, shown)


def _list(value: Any) -> List[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def matches(ends: Tuple[Union[str, Place], Union[str, Place]],
            body: Dict[str, Any]) -> Tuple[Match, ...]:
    """The flows' matches: of several applications and DSCPs a packet fits one."""
    base, versions = _addresses(ends)
    fields = _fields(body.get('match'))
    dscps: List[Optional[int]] = [_dscp(word) for word in _list(body.get('dscp'))] or [None]
    ports = [row for word in _list(body.get('app')) for row in _app(word)] or [{}]
    found = set()
    for row in ports:
        for dscp in dscps:
            upper = {**fields, **row, **({'ip_dscp': dscp} if dscp is not None else {})}
            if set(fields) & set(row):
                raise ValueError('app and match name the same header fields')
            for version in versions if upper else versions[:1] if base.get('eth_type') else [0]:
                whole = {**base, **upper, **({'eth_type': version} if version else {})}
                found.add(tuple(sorted(whole.items())))
    if found == {()}:
        raise ValueError('an address, app, dscp or match is needed beside the places')
    if len(found) > _MOST:
        raise ValueError(f'that makes {len(found)} flows, of at most {_MOST}')
    return tuple(sorted(found))


def _addresses(ends: Tuple[Union[str, Place], Union[str, Place]]
               ) -> Tuple[Dict[str, Any], List[int]]:
    """What the ends' addresses match, and which versions of IP are meant."""
    base: Dict[str, Any] = {}
    for which, each in zip(('src', 'dst'), ends):
        if isinstance(each, Place):
            continue
        if _MAC.fullmatch(each):
            base[f'eth_{which}'] = each
            continue
        version = ipaddress.ip_address(each).version
        eth_type = 0x0800 if version == 4 else 0x86dd
        if base.setdefault('eth_type', eth_type) != eth_type:
            raise ValueError('one end is IPv4, the other IPv6')
        base[f'ipv{version}_{which}'] = each
    return base, [base['eth_type']] if 'eth_type' in base else [0x0800, 0x86dd]


def _fields(match: Any) -> Dict[str, int]:
    if match is None:
        return {}
    if not isinstance(match, dict):
        raise ValueError('match is an object with header fields')
    found = {}
    for name, value in match.items():
        if name not in FIELDS or name == 'eth_type':
            raise ValueError(f'{name} is unknown in a match: '
                             f'{", ".join(sorted(set(FIELDS) - {"eth_type"}))}')
        if isinstance(value, bool) or not isinstance(value, int) or value < 0 or \
                value >> FIELDS[name]:
            raise ValueError(f'{name}={value!r} is no number of {FIELDS[name]} bits')
        found[name] = value
    for protocol, number in PROTOCOLS.items():
        if any(name.startswith(protocol + '_') for name in match) and \
                found.setdefault('ip_proto', number) != number:
            raise ValueError(f'ports of {protocol}, and ip_proto={found["ip_proto"]}')
    return found


def _dscp(word: Any) -> int:
    number: Optional[int] = DSCPS.get(str(word).lower())
    if number is None and str(word).isdigit() and int(word) < 64:
        number = int(word)
    if number is None:
        raise ValueError(f'dscp {word!r} is unknown: 0 to 63, {", ".join(DSCPS)}')
    return number


def _app(word: Any) -> Iterator[Dict[str, int]]:
    """By its ports on either side"""
    rows = APPS.get(str(word).lower())
    if rows is None:
        raise ValueError(f'app {word!r} is unknown: {", ".join(APPS)}')
    for protocol, first, last in rows:
        for port in range(first, last + 1):
            for side in 'src', 'dst':
                yield {'ip_proto': PROTOCOLS[protocol], f'{protocol}_{side}': port}
