# SPDX-License-Identifier: Apache-2.0
"""What a switch has, kept in memory while nobody else changes it: then a new plan is one message, and nothing is read back.

The proof are two numbers that the switch counts itself, one of its flows and one of its queues, whoever changes them.  They belong to
the connection: a switch that comes back is read again."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, List, NamedTuple, Optional, Set

from .. import wire
from ..channel import Channel, joined
from ..replies import parse_counters
from .difference import Difference, Found, Has, difference
from .model import Network
from .plan import Box, Wanted, kept_of, plan
from .read import Kept
from .state import Numbers


class Changes(NamedTuple):
    """Either differs from what it was once there was a change."""
    flows: int
    queues: int

    def after(self, made: Difference) -> Changes:
        """One bundle of these is a change of each flow, and one of queues."""
        flows = sum(step.what == 'flow' for step in made.steps)
        return Changes(self.flows + flows, self.queues + (flows < len(made.steps)))


async def ask_changes(channel: Channel) -> Optional[Changes]:
    """None: an older switch does not count them."""
    found = parse_counters(joined(await channel.ask(lambda xid: wire.ask(wire.COUNTERS, xid))))
    try:
        return Changes(found['changes.flows'], found['changes.queues'])
    except KeyError:
        return None


@dataclass
class Known:
    """`numbers` of `network`; `strangers`: numbers of queues that somebody else has made; `left`: how many there are"""
    channel: Channel
    box: Box
    network: Network
    numbers: Numbers
    changes: Changes
    strangers: Set[int] = field(default_factory=set)
    left: int = 0
    kept: Dict[str, Kept] = field(init=False)

    def __post_init__(self) -> None:
        self.kept = kept_of(self.network, self.box)

    async def holds(self, channel: Channel, network: Network, box: Box) -> bool:
        """Whether the switch has it still, and only circuits are to change.  Away, Refused."""
        return channel is self.channel and box == self.box and list(network.sites.items()) == list(self.network.sites.items()) and \
            await ask_changes(channel) == self.changes

    def difference(self, network: Network, numbers: Numbers) -> Difference:
        """As difference() of all makes it"""
        kept, old = kept_of(network, self.box), self.network.circuits
        squeezed = {name for name, each in kept.items() if each.percent != self.kept[name].percent}
        some = [id_ for id_, circuit in network.circuits.items() if old.get(id_) is not circuit and old.get(id_) != circuit]
        some += [id_ for id_ in old if id_ not in network.circuits]
        if squeezed:                        # guarantees below these sites, whosever they are
            some += [id_ for id_, circuit in network.circuits.items() if squeezed & set(_way(network, circuit.parent))]
        ids = dict.fromkeys(some)
        was = plan(self.network, self.box, self.numbers, self.kept, ids)
        made = difference(plan(network, self.box, numbers, kept, ids), _found(was, self.box), self.box,
                          {number: key for key, number in self.numbers.items()})
        made.left, made.strangers = self.left, self.strangers
        return made


def _way(network: Network, site: str) -> List[str]:
    """From a site to the top, which is ''"""
    made = [site]
    while made[-1]:
        made.append(network.sites[made[-1]].parent)
    return made


def _found(was: Wanted, box: Box) -> Found:
    """What the switch tells once it has that"""
    leaf = box.leaf != 'none'
    return Found([{each.number: Has(each.parent, each.rate, each.ceil, each.quantum, each.name) for each in tree.values()} for tree in was.trees],
                 [{each.number: box.leaf for each in tree.values() if each.leaf and leaf} for tree in was.trees], was.flows)


__all__ = ['Changes', 'Known', 'ask_changes']
