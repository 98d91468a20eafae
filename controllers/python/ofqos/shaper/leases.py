# SPDX-License-Identifier: Apache-2.0
"""Files of leases as DHCP servers write them: dnsmasq's, and Kea's memfile (DHCPv4 and DHCPv6).

What is not understood is passed over and counted: the file is another program's, and may be half written."""
from __future__ import annotations

import ipaddress
import json
import math
import os
import re
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from ..watched import stamp
from .model import Prefix
from .sessions import MOST_NAMES, MOST_SESSIONS, Session, is_customers, name_of

MOST_BYTES = 64 << 20
_KEA4 = {'address', 'hwaddr', 'expire', 'hostname', 'state'}
_KEA6 = {'address', 'duid', 'expire', 'hostname', 'state', 'prefix_len', 'lease_type'}
Found = Tuple[Dict[str, Session], int]          # by address; and how many lines were not understood


def stamps(kind: str, path: str) -> Any:
    """What tells that it has changed"""
    return [stamp(each) for each in _files(kind, path)]


def read(kind: str, path: str, now: float) -> Found:
    """Leases that hold.  OSError, ValueError: all of it can't be read."""
    found: Dict[str, Session] = {}
    bad = 0
    for each in _files(kind, path):
        if each != path and not os.path.exists(each):
            continue
        with open(each, 'rb') as f:
            data = f.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise ValueError(f'{each} has more than {MOST_BYTES >> 20} MiB')
        bad += KINDS[kind](data.decode('utf-8', 'replace').splitlines(), found)
        if len(found) > MOST_SESSIONS:
            raise ValueError(f'{each} has more than {MOST_SESSIONS:,} leases')
    return {key: session for key, session in found.items() if not session.until or session.until > now}, bad


def _files(kind: str, path: str) -> List[str]:
    """Kea cleans up in files beside it: what it has cleaned, else what it is cleaning, and then what is new."""
    if kind != 'kea':
        return [path]
    return [f'{path}.completed', path] if os.path.exists(f'{path}.completed') else [f'{path}.2', f'{path}.1', path]


def _session(address: str, bits: int, names: Sequence[str], until: float) -> Optional[Session]:
    """None: it is no customer's.  `until` 0: for ever"""
    if not 0 <= until < math.inf:
        raise ValueError(f'{until}')
    ip = ipaddress.ip_network(f'{address}/{bits}', strict=False)
    prefix = Prefix(ip.version, int(ip.network_address), ip.prefixlen)
    given = tuple(dict.fromkeys(name_of(name)[:200] for name in names if name and name != '*'))[:MOST_NAMES]
    return Session(given, (prefix,), until or math.inf, until) if is_customers(prefix) else None


def _names(host: str) -> List[str]:
    """pc.example.net is known as pc, too."""
    return [host.rstrip('.'), host.partition('.')[0]]


def _of_duid(text: str) -> str:
    """The MAC address in it; empty: none"""
    digits = re.sub('[^0-9a-fA-F]', '', text)
    if digits[:8] == '00010001' and len(digits) == 28:
        return digits[16:]
    return digits[8:] if digits[:8] == '00030001' and len(digits) == 20 else ''


# --------------------------------------------------------------------------------------- dnsmasq

def _dnsmasq(lines: List[str], found: Dict[str, Session]) -> int:
    """expiry, MAC, address, name, client id; behind a line with the server's DUID: expiry, IAID, address, name, client's DUID"""
    bad, six = 0, False
    for line in lines:
        words = line.split()
        if words[:1] == ['duid'] and len(words) == 2:
            six = True
            continue
        try:
            until, second, address, host, client = words
            names = [_of_duid(client), client] if six else [second.rpartition('-')[2], client]
            session = _session(address, 128 if six else 32, [*names, *_names(host)], float(until))
            if session is None:
                raise ValueError(address)
            found[address] = session
        except ValueError:
            bad += 1
    return bad


# ------------------------------------------------------------------------------------------- Kea

def _kea(lines: List[str], found: Dict[str, Session]) -> int:
    """A later row of an address replaces an earlier one; one that has ended is there with another state, or a lifetime of 0."""
    bad = 0
    columns: List[str] = []
    for line in filter(None, map(str.strip, lines)):
        cells = [cell.replace('&#x2c', ',') for cell in line.split(',')]
        if cells[0] == 'address':
            columns = cells
            if not _KEA4 <= set(cells) and not _KEA6 <= set(cells):
                raise ValueError(f'no lease file of Kea: its columns are {", ".join(cells)[:200]}')
            continue
        if not columns:
            raise ValueError('no lease file of Kea: its first row names the columns: address,hwaddr,...')
        try:
            row = dict(zip(columns, cells))
            six = 'duid' in row
            key = f'{row["address"]}/{row["prefix_len"]}' if six else row['address']
            found.pop(key, None)
            if row['state'] != '0' or row.get('valid_lifetime') == '0':
                continue
            names = [row.get('hwaddr', ''), _of_duid(row['duid']) if six else '', row.get('client_id', ''), *_names(row['hostname']),
                     *_relay(row.get('user_context', ''))]
            # 4294967295: for ever
            session = _session(row['address'], int(row['prefix_len']) if six else 32, names, 0.0 if row.get('valid_lifetime') == '4294967295' else
                               float(row['expire']))
            if session is None:
                raise ValueError(key)
            found[key] = session
        except (ValueError, KeyError):
            bad += 1
    return bad


def _relay(context: str) -> List[str]:
    """Circuit id and remote id of option 82, where they are text.  Kea 2.4: below sub-options; before, the option itself"""
    try:
        found = json.loads(context)['ISC']['relay-agent-info']
        data = bytes.fromhex((found['sub-options'] if isinstance(found, dict) else found).removeprefix('0x'))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []
    made, at = [], 0
    while at + 2 <= len(data):
        value = data[at + 2:at + 2 + data[at + 1]]
        if data[at] in (1, 2):
            made.append(value.decode('ascii') if value.isascii() and value.decode('ascii').isprintable() else value.hex(':'))
        at += 2 + data[at + 1]
    return made


KINDS: Dict[str, Callable[[List[str], Dict[str, Session]], int]] = {'dnsmasq': _dnsmasq, 'kea': _kea}

__all__ = ['KINDS', 'read', 'stamps']
