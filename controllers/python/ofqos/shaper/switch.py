# SPDX-License-Identifier: Apache-2.0
"""The one switch: how it is reached, what it has, and the bundle that it gets."""
from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from typing import Any, Callable, List, Optional, Sequence, Tuple

from .. import flows, ports, wire
from ..channel import Channel, Limits, joined
from ..errors import Away, Refused
from ..flows import Flow
from ..replies import Entry, parse_dump
from ..switches import Switches
from .difference import Difference, Found
from .model import Pair
from .plan import COOKIE, COOKIE_MASK

ASK, COMMIT = 120.0, 1800.0             # seconds
LIMITS = Limits(answer=256 << 20)       # 65,000 circuits, both ways, are some 60 MB


class Failure(Exception):
    """Nothing was changed: why."""


class Unsure(Exception):
    """The switch went away in the middle."""


@dataclass(frozen=True)
class Place:
    """`connect`, `accept`: an address, or empty; `tls`: to the switch, and for one that comes"""
    connect: str
    accept: str
    tls: Tuple[Optional[ssl.SSLContext], Optional[ssl.SSLContext]]
    wait: float


def with_switch(place: Place, do: Callable[[Channel], Any]) -> Any:
    """What `do` returns, once it has been awaited.  Failure, ValueError, OSError."""
    async def whole() -> Any:
        switches = Switches([place.connect] * bool(place.connect), [place.accept] * bool(place.accept), tls=place.tls[0],
                            listen_tls=place.tls[1], limits=LIMITS)
        async with switches:
            return await do(await _first(switches, place))
    try:
        return asyncio.run(whole())
    except (Away, Refused) as error:
        raise Failure(str(error)) from None


async def _first(switches: Switches, place: Place) -> Channel:
    loop = asyncio.get_running_loop()
    end = loop.time() + place.wait
    while not len(switches):
        tried = [dialed for dialed in switches.places if not dialed.untried]
        if loop.time() > end or tried and not place.accept:
            raise Failure(tried[0].why if tried else f'no switch has connected to {place.accept} within {place.wait:g} s' +
                          (f' ({switches.refused})' if switches.refused else ''))
        await asyncio.sleep(0.01)
    return switches[next(iter(switches))]


async def find_ports(channel: Channel, edge: str, core: str, dash: str = '--') -> Tuple[Pair, Pair]:
    """By name or number -> their numbers and speeds, by way: downloads leave by `edge`.  ValueError."""
    found = ports.parse_ports(joined(await channel.ask(ports.ask_ports), 8)).values()
    made = []
    for option, text in ('edge', edge), ('core', core):
        port = next((p for p in found if text in (p.name, str(p.number))), None)
        if port is None:
            raise ValueError(f'the switch has no port {text!r}: {dash}{option} is one of {", ".join(p.name for p in found) or "none"}')
        made.append(port)
    if made[0].number == made[1].number:
        raise ValueError(f'{dash}edge and {dash}core are the same port, {made[0].name}')
    return Pair(made[0].number, made[1].number), Pair(made[0].speed, made[1].speed)


async def look(channel: Channel, numbers: Pair) -> Found:
    """ValueError: queues of another kind."""
    found = Found()
    for way, port in enumerate(numbers):
        found.add(way, await _dump(channel, port))
    found.flows = await _flows(channel)
    return found


async def _dump(channel: Channel, port: int) -> List[Entry]:
    asked = await channel.ask(lambda xid: wire.ask_dump(xid, port), ASK)
    return await asyncio.to_thread(lambda: [entry for raw in asked for entry in parse_dump(raw[wire.HEADER.size + 16:])])


async def _flows(channel: Channel) -> List[Flow]:
    asked = await channel.ask(lambda xid: flows.ask_flows(xid, COOKIE, COOKIE_MASK), ASK)
    return await asyncio.to_thread(lambda: [flow for raw in asked for flow in flows.parse_flows(raw[wire.HEADER.size + 8:])])


async def carry_out(channel: Channel, made: Difference) -> None:
    """One bundle.  Failure: the switch has refused it, and is as it was.  Unsure."""
    try:
        await channel.commit([step.build for step in made.steps], COMMIT)
    except Away as error:
        raise Unsure(f'{error}: whether the change was made is not known; ofqos shaper plan tells') from None
    except Refused as error:
        step = made.steps[error.index] if error.index is not None else None
        more = '; --leaf none leaves the choice to the switch' if step and step.what == 'leaf' else ''
        raise Failure((f'{step.key or "the port"}, {step.what} {step.text}: ' if step else '') + str(error) + more) from None


async def measure(channel: Channel, numbers: Pair, seconds: float) -> Sequence[Any]:
    """By way: class -> bit/s, and packets dropped in that time"""
    looks = [await _counters(channel, numbers)]
    began = asyncio.get_running_loop().time()
    await asyncio.sleep(seconds)
    took = asyncio.get_running_loop().time() - began
    looks.append(await _counters(channel, numbers))
    return [{number: (round(max(0, now[0] - first.get(number, now)[0]) * 8 / took), max(0, now[1] - first.get(number, now)[1]))
             for number, now in second.items()} for first, second in zip(*looks)]


async def _counters(channel: Channel, numbers: Pair) -> Sequence[Any]:
    made = []
    for port in numbers:
        made.append({entry.class_id: (entry.counters.bytes, entry.counters.drops) for entry in await _dump(channel, port)
                     if entry.is_class and not entry.config.params.get('direction')})
    return made
