# SPDX-License-Identifier: Apache-2.0
"""Reads LibreQoS's ShapedDevices.csv: a row for each device; rows of the same circuit are one circuit."""
from __future__ import annotations

import csv
import io
import ipaddress
import os
import socket
from dataclasses import replace
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from .model import MOST_CLASSES, Circuit, Pair, Prefix, Problems, rate, read_text, shown, word

NEEDED = ('circuit id', 'ipv4', 'ipv6', 'parent node', 'download min mbps', 'upload min mbps', 'download max mbps',
          'upload max mbps')
_LATER = ('parent node id', 'anchor node id')       # columns that rows of older lists lack below a newer header
_NAMES = 'device id', 'device name', 'mac'
MOST_ADDRESSES = 64                                 # of a device
_MOST_ROWS = 4 * MOST_CLASSES


class _Row(NamedTuple):
    line: int
    cells: Dict[str, str]


def read(path: str, problems: Problems) -> Dict[str, Circuit]:
    """What is right in it; the other in `problems`."""
    file = os.path.basename(path)
    try:
        text = read_text(path)
    except (OSError, ValueError) as error:
        problems.error(file, 0, '', getattr(error, 'strerror', None) or str(error))
        return {}
    found: Dict[str, Circuit] = {}
    for row in _rows(file, text, problems):
        made = _circuit(file, row, problems)
        if made is not None:
            found[made.id] = _joined(file, found[made.id], made, problems) if made.id in found else made
    if len(found) > MOST_CLASSES:
        problems.error(file, 0, '', f'{len(found):,} circuits; the most is {MOST_CLASSES:,}')
    return found


# --------------------------------------------------------------------------------------- rows

def _lines(text: str) -> Iterator[Tuple[int, List[str]]]:
    """The line where each row begins, and its cells; csv.Error"""
    reader, at = csv.reader(io.StringIO(text, newline=''), strict=True), 1
    for cells in reader:
        line, at = at, reader.line_num + 1
        if any(cell.strip() for cell in cells) and not cells[0].lstrip().startswith('#'):
            yield line, [cell.strip() for cell in cells]


def _rows(file: str, text: str, problems: Problems) -> Iterator[_Row]:
    columns: Optional[List[str]] = None
    line = 0
    try:
        for count, (line, cells) in enumerate(_lines(text)):
            if columns is None:
                columns = _header(file, line, cells, problems)
                if not columns:
                    return
            elif count > _MOST_ROWS:
                problems.error(file, line, '', f'more than {_MOST_ROWS:,} rows')
                return
            else:
                named = _named(columns, cells)
                if named is None:
                    problems.error(file, line, '', f'{len(cells)} cells; the header has {len(columns)}')
                else:
                    yield _Row(line, named)
    except csv.Error as error:
        problems.error(file, line + 1, '', f'no CSV from here on: {error}')
    if columns is None:
        problems.error(file, 0, '', 'no header; its first row names the columns: Circuit ID, Circuit Name, ...')


def _header(file: str, line: int, cells: List[str], problems: Problems) -> List[str]:
    """Empty: it is none."""
    columns = [cell.lower() for cell in cells]
    lacks = [name for name in NEEDED if name not in columns]
    twice = {name for name in columns if name and columns.count(name) > 1}
    if lacks:
        problems.error(file, line, '', f'the header lacks {", ".join(lacks)}')
    if twice:
        problems.error(file, line, '', f'the header has twice: {", ".join(sorted(twice))}')
    return [] if lacks or twice else columns


def _named(columns: List[str], cells: List[str]) -> Optional[Dict[str, str]]:
    """None: they do not fit."""
    while len(cells) > len(columns) and not cells[-1]:
        cells = cells[:-1]
    older = [name for name in columns if name not in _LATER]
    if len(cells) == len(older):
        columns = older
    return dict(zip(columns, cells)) if len(cells) == len(columns) else None


# ----------------------------------------------------------------------------------- circuits

def _circuit(file: str, row: _Row, problems: Problems) -> Optional[Circuit]:
    """None: the row is wrong."""
    before = len(problems.errors)
    rates: Dict[str, int] = {}
    for column in NEEDED[4:]:
        try:
            rates[column] = rate(row.cells[column])
        except ValueError as error:
            problems.error(file, row.line, column.title(), str(error))
    for way in 'download', 'upload':
        least, most = rates.get(f'{way} min mbps', 0), rates.get(f'{way} max mbps', 0)
        if least > most > 0:
            problems.error(file, row.line, f'{way} min mbps'.title(), f'{row.cells[f"{way} min mbps"]} is more than '
                           f'{way.title()} Max Mbps, {row.cells[f"{way} max mbps"]}')
    try:
        word(row.cells['circuit id'])
    except ValueError as error:
        problems.error(file, row.line, 'Circuit ID', str(error))
    addresses = [*_addresses(file, row, 4, problems), *_addresses(file, row, 6, problems)]
    if len(problems.errors) > before:
        return None
    return Circuit(row.cells['circuit id'], row.cells.get('circuit name', ''), row.cells['parent node'],
                   Pair(rates['download min mbps'], rates['upload min mbps']),
                   Pair(rates['download max mbps'], rates['upload max mbps']), tuple(dict.fromkeys(addresses)), row.line,
                   tuple(text.strip().lower() for column in _NAMES for text in row.cells.get(column, '').split(',') if text))


def _addresses(file: str, row: _Row, version: int, problems: Problems) -> List[Prefix]:
    found, column = [], f'IPv{version}'
    texts = [text.strip() for text in row.cells[column.lower()].split(',') if text.strip()]
    if len(texts) > MOST_ADDRESSES:
        problems.error(file, row.line, column, f'{len(texts)} addresses; a device has {MOST_ADDRESSES} at most')
        return []
    for text in texts:
        try:
            made = prefix_of(text)
            if made.version != version:
                raise ValueError(f'{shown(text)} is not right: it belongs into the column IPv{made.version}')
            found.append(made)
        except ValueError as error:
            problems.error(file, row.line, column, str(error))
    return found


def prefix_of(text: str) -> Prefix:
    """ValueError says what is wrong."""
    quick = _quick(text)
    if quick:
        return quick
    try:
        net = ipaddress.ip_network(text)
    except ValueError as error:
        why = f'its network is {ipaddress.ip_network(text, strict=False)}' if 'host bits' in str(error) else str(error)
        raise ValueError(f'{shown(text)} is not right: {why}') from None
    return Prefix(net.version, int(net.network_address), net.prefixlen)


def _quick(text: str) -> Optional[Prefix]:
    """Of a list's 20,000 nearly all are right as they are; what is not, ipaddress has a word for."""
    address, slash, length = text.partition('/')
    version, most = (6, 128) if ':' in address else (4, 32)
    try:
        number = int.from_bytes(socket.inet_pton(socket.AF_INET6 if version == 6 else socket.AF_INET, address), 'big')
    except (OSError, ValueError):           # ValueError: a zero byte
        return None
    bits = int(length) if length.isdecimal() and length.isascii() and len(length) <= 3 else None if slash else most
    if bits is None or bits > most or number & (1 << most - bits) - 1:
        return None
    return Prefix(version, number, bits)


def _joined(file: str, first: Circuit, more: Circuit, problems: Problems) -> Circuit:
    """Another device of the circuit: the first row says its rates."""
    if more.parent != first.parent:
        problems.error(file, more.line, 'Parent Node', f'circuit {shown(first.id)} is below {shown(first.parent)} in line {first.line}')
    if (more.guarantee, more.ceiling) != (first.guarantee, first.ceiling):
        problems.warn(file, more.line, 'Download Max Mbps', f'circuit {shown(first.id)} has other rates in line {first.line}, which hold')
    return replace(first, addresses=tuple(dict.fromkeys(first.addresses + more.addresses)), names=first.names + more.names)
