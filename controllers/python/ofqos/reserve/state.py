# SPDX-License-Identifier: Apache-2.0
"""The file that keeps reservations over a restart of the controller."""
from __future__ import annotations

import json
from typing import Any, Dict, Iterable, Set, Tuple

from ..jsonfile import write
from .engine import Reservation
from .graph import Place


def save(path: str, reservations: Iterable[Reservation], gone: Set[int]) -> None:
    rows = [{'id': who.id, 'name': who.name, 'rate': who.rate, 'ceil': who.ceil,
             'source': str(who.source), 'sink': str(who.sink), 'asked': who.asked,
             'matches': [dict(match) for match in who.matches]} for who in reservations]
    write(path, {'reservations': rows, 'gone': sorted(gone)})


def load(path: str) -> Tuple[Dict[int, Reservation], Set[int]]:
    """Nothing where there is no file; ValueError where it is none of ours."""
    try:
        with open(path, encoding='utf-8') as f:
            found: Any = json.load(f)
    except FileNotFoundError:
        return {}, set()
    try:
        every = [Reservation(int(row['id']), str(row['name']), int(row['rate']), int(row['ceil']),
                             Place.parse(row['source']), Place.parse(row['sink']),
                             tuple(tuple(sorted(match.items())) for match in row['matches']),
                             dict(row['asked'])) for row in found['reservations']]
        return {who.id: who for who in every}, set(map(int, found['gone']))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f'{path} is no file of reservations: {error!r}') from error
