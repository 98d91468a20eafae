# SPDX-License-Identifier: Apache-2.0
"""What a customer sees, and whose fault it is: inside his home or on his line, his plan, a site that is full, our queue, or beyond.

The round trip of the queue to him begins and ends here on his side of the box; that of his upload's queue on the Internet's.  What a packet
waits in the queue is in it.  Likewise a TCP segment that was sent again was lost behind the box, in its queue or after it, or before the box."""
from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from ..outcome import outcomes
from ..replies import Latency, Segments
from ..units import format_rate

FULL = 0.9              # of a ceiling: from here on its packets wait because of it
WAITS = 10_000          # microseconds in our queue that somebody notices
LONGER = 30_000         # microseconds above the shortest round trip of ten minutes, likewise
LOST = 1.0              # percent of the segments: so many make a connection over a long way slow
LEAST = 200             # segments: of fewer nobody knows
NONE = Segments(0, 0, 0)
WAYS = 'download', 'upload'
_WHERE = 'behind this box to his devices', 'beyond this box to the Internet'
_WHOSE = 'his home or line', 'beyond'


class Way(NamedTuple):
    """Of one direction.  `sites` above him: name, bit/s, ceiling"""
    bits: Optional[float]
    ceiling: int
    sites: Sequence[Any]
    latency: Optional[Latency]
    delay_us: Optional[int]
    drops_ps: float
    packets_ps: float
    segments: Segments = NONE


def share(n: Segments) -> Optional[float]:
    """Percent that were sent again; None: none were counted."""
    return round(100 * (n.behind + n.before) / n.counted, 2) if n.counted else None


def sees(ways: Sequence[Way]) -> Optional[Dict[str, Any]]:
    """Both sides of the box together; None: a round trip is not known."""
    rtts = [way.latency.rtt for way in ways if way.latency]
    if len(rtts) < 2 or any(rtt.p50 is None or rtt.p90 is None for rtt in rtts):
        return None
    p50, p90 = (sum(getattr(rtt, key) for rtt in rtts) for key in ('p50', 'p90'))
    return {'rtt_us': p50, 'rtt90_us': p90, 'lost': [share(way.segments) for way in ways], 'outcome': outcomes(p50, p90, sum(way.packets_ps for way in ways), sum(way.drops_ps for way in ways))}


def faults(ways: Sequence[Way]) -> List[Dict[str, str]]:
    """Each with whose it is, and why; empty: none is seen."""
    found = []
    for i, way in enumerate(ways):
        found += _queue(WAYS[i], way)
        added = way.latency.added_us if way.latency else None
        if added is not None and way.latency and added - (way.delay_us or 0) > LONGER:
            found.append({'whose': _WHOSE[i], 'why': f'round trips {_WHERE[i]} take {_ms(way.latency.rtt.p50)}, and {_ms(way.latency.path_us)} at their shortest'})
        found += _lost(i, way)
    return found


def _lost(i: int, way: Way) -> List[Dict[str, str]]:
    """What our queue drops is told by its own counters; the rest of what was lost behind us was lost after it."""
    n = way.segments
    if n.counted < LEAST:
        return []
    dropped = 100 * way.drops_ps / (way.drops_ps + way.packets_ps) if way.drops_ps else 0.0
    behind, before = max(100 * n.behind / n.counted - dropped, 0), 100 * n.before / n.counted
    return [{'whose': _WHOSE[side], 'why': f'{lost:.2g} % of his {WAYS[i]}\'s TCP segments are lost {where}'}
            for side, lost, where in ((i, behind, 'after our queue'), (1 - i, before, 'before they reach this box')) if lost >= LOST]


def _queue(name: str, way: Way) -> List[Dict[str, str]]:
    waits = way.delay_us or 0
    if waits < WAITS and not way.drops_ps:
        return []
    what = ' and '.join([f'packets wait {_ms(waits)}'] * (waits >= WAITS) + [f'{way.drops_ps:g} packets a second are dropped'] * bool(way.drops_ps))
    if way.bits is not None and way.bits >= FULL * way.ceiling:
        return [{'whose': 'his plan', 'why': f'its {name} is full, {_of(way.bits, way.ceiling)}: {what}'}]
    full = next((site for site in way.sites if site[1] is not None and site[1] >= FULL * site[2]), None)
    if full:
        return [{'whose': 'the site', 'why': f'{full[0]} is full, {name} {_of(full[1], full[2])}: {what}'}]
    return [{'whose': 'our queue', 'why': f'{what} in his {name}, though neither his plan nor a site is full'}]


def _of(bits: float, ceiling: int) -> str:
    return f'{bits / 1e6:.3g} Mbit/s of {format_rate(ceiling)}'


def _ms(us: Optional[int]) -> str:
    return '?' if us is None else f'{us / 1000:.3g} ms'


__all__ = ['NONE', 'Way', 'faults', 'sees', 'share']
