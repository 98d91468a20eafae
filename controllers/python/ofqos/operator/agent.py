# SPDX-License-Identifier: Apache-2.0
"""On one node: gives its pods' ports the totals that policies want, and tells the API how they are kept."""
from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Callable, Dict, List, Mapping, Optional, Set

import aiohttp

from .. import containers
from ..errors import Away, Refused
from ..replies import Entry, Served
from ..request import Request, request
from ..tenant.link import Link
from ..tenant.model import root_rates
from .api import Api, ApiError, Followed
from .policy import GROUP, PLURAL, PPM, VERSION, Kept, Name, Pod, Policy, chosen, group_shares, rows, status, totals


def pods_ports(directory: str) -> Dict[Name, List[str]]:
    """The interfaces of each pod's ports, as ofqos-cni has written them down."""
    found: Dict[Name, List[str]] = {}
    for name in containers.names(directory):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            said = json.loads(containers.read(directory, name))
            pod = said['pod']
            found.setdefault((pod['namespace'], pod['name']), []).append(said.get('port', name))     # port: of a chained plugin
    return found


def changes(port: int, wanted: Mapping[str, int], there: Mapping[str, int]) -> List[Request]:
    """The kernel keeps bytes a second.  What a tenant was promised before its total became less stays until it ends."""
    return [request('htb', 'replace', port, 0, object='class', rate=rate, oversubscribe=1, direction=int(way == 'in'))
            for way, rate in wanted.items() if there.get(way, 0) // 8 != rate // 8]


def group_changes(port: int, wanted: Mapping[str, int], classes: List[Entry]) -> List[Request]:
    """First what becomes less, so that each step is within the total."""
    found = []
    for entry in classes:
        name, before = entry.config.params.get('name'), entry.config.params.get('rate_share_ppm')
        if not isinstance(name, str) or not isinstance(before, int):
            continue
        share = wanted.get(name, before)
        if share != before:
            found.append((share - before, request('htb', 'replace', port, entry.class_id, name=name, rate_share_ppm=share, ceil_share_ppm=PPM,
                                                  direction=int(entry.direction == 'in'))))
    return [change for _, change in sorted(found, key=lambda pair: pair[0])]


def count(kept: Kept, port: int, served: List[Served]) -> None:
    mine = [s for s in served if s.port == port and s.rated]
    kept.broken += any(s.broken for s in mine)
    kept.part = min([kept.part, *(s.kept for s in mine if s.kept is not None)])


class Agent:
    """directory: of ofqos-cni's files."""

    def __init__(self, api: Api, link: Link, node: str, directory: str, say: Callable[[str], None]) -> None:
        self.api, self.link, self.node, self.directory, self.say = api, link, node, directory, say
        self._turn = asyncio.Event()
        self.policies = Followed(api, f'/apis/{GROUP}/{VERSION}/{PLURAL}', {}, self._turn.set, say)
        self.pods = Followed(api, '/api/v1/pods', {'fieldSelector': f'spec.nodeName={node}'}, self._turn.set, say)
        self._governed: Set[Name] = set()       # pods that have, or had, a policy
        self._said = ''

    # ------------------------------------------------------------------ one look

    async def look(self) -> None:
        """Away, Refused, ApiError"""
        self._governed &= self.pods.every.keys()
        policies = [Policy.of(said) for said in self.policies.every.values()]
        pods = [Pod.of(said) for said in self.pods.every.values()]
        kept = {policy.name: Kept() for policy in policies}
        there = pods_ports(self.directory)
        ports, every = await self.link.ports(), await self.link.classes()
        served = await self.link.served()
        refused: Optional[Refused] = None
        for pod in pods:
            policy = chosen(pod, policies)
            if policy:
                self._governed.add(pod.name)
            mine = [ports[name] for name in there.get(pod.name, ()) if name in ports]
            try:
                if pod.name in self._governed:          # the others' totals are not this program's
                    for port in mine:
                        await self._limit(port, totals(pod, policy), group_shares(pod, policy), every)
                limited = len(mine) > 0
            except Refused as error:            # the others' turn comes nevertheless
                refused, limited = error, False
            if policy:
                kept[policy.name].pods += 1
                kept[policy.name].limited += limited
                for port in mine:
                    count(kept[policy.name], port, served)
        await self._tell(policies, kept)
        if refused:
            raise refused

    async def _limit(self, port: int, wanted: Mapping[str, int], groups: Mapping[str, int], every: List[Entry]) -> None:
        mine = [entry for entry in every if entry.port == port]
        await self.link.commit(changes(port, wanted, root_rates(mine)) + group_changes(port, groups, mine))

    async def _tell(self, policies: List[Policy], kept: Mapping[Name, Kept]) -> None:
        """Where the API has something else of this node, from an earlier process, too"""
        for policy in policies:
            said = status(self.node, policy, kept[policy.name])
            if said['status']['nodes'] == rows(self.policies.every.get(policy.name, {}), self.node):
                continue
            namespace, name = policy.name
            try:
                await self.api.apply_status(f'/apis/{GROUP}/{VERSION}/namespaces/{namespace}/{PLURAL}/{name}', said, f'ofqos-{self.node}')
            except ApiError as error:
                if error.status != 404:         # it was deleted meanwhile
                    raise

    # ------------------------------------------------------------------ again and again

    async def _work(self, interval: float) -> None:
        """After each change, and once in so many seconds: somebody else may have changed the switch."""
        await self.policies.known.wait()
        await self.pods.known.wait()
        while True:
            self._turn.clear()
            why = ''
            try:
                await self.look()
            except (Away, Refused, ApiError, aiohttp.ClientError, asyncio.TimeoutError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                why = f'{type(error).__name__}: {error}'
            if why and why != self._said:
                self.say(why)
            self._said = why
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._turn.wait(), interval)

    def tasks(self, interval: float) -> 'List[asyncio.Task[None]]':
        spawn = asyncio.get_running_loop().create_task
        return [spawn(self.policies.run(interval)), spawn(self.pods.run(interval)), spawn(self._work(interval))]


__all__ = ['Agent', 'changes', 'pods_ports']
