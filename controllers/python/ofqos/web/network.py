# SPDX-License-Identifier: Apache-2.0
"""All switches, the links between them, and what each view shows."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Collection, Dict, FrozenSet, List, Optional, Protocol, Sequence, Tuple

from ..channel import Channel
from ..ending import Tasks
from ..errors import Away
from ..history.recorder import Recorder
from ..units import parse_rate
from . import window
from .hub import Hub, View
from .watch import NOTHING, PORTS, QUEUES, Watch
from .window import ALL, Window

End = Tuple[int, int]           # datapath id, port


@dataclass(frozen=True)
class Link:
    """Both directions; `rate`: bit/s, 0: what the ports say."""
    a: End
    b: End
    rate: int = 0


class More(Protocol):
    """Views of another service, which live on one switch's queues"""
    kinds: Collection[str]

    @property
    def dpid(self) -> int: ...

    def show(self, view: View) -> Optional[Dict[str, Any]]: ...


def parse_end(text: str) -> End:
    """"0000000000000001:2" -> (1, 2)"""
    switch, _, port = text.rpartition(':')
    try:
        end = int(switch.replace(':', ''), 16), int(port)
    except ValueError:
        raise ValueError(f'{text!r} is no SWITCH:PORT, such as 0000000000000001:2') from None
    if not (0 <= end[0] < 1 << 64 and 0 < end[1] < 1 << 32):
        raise ValueError(f'{text!r} is no SWITCH:PORT, such as 0000000000000001:2')
    return end


def parse_link(words: Any) -> Link:
    """["1:2", "2:1"] or ["1:2", "2:1", "100mbit"]"""
    if not isinstance(words, list) or not 2 <= len(words) <= 3 or not all(isinstance(w, str) for w in words):
        raise ValueError(f'{words!r} is no link: write ["SWITCH:PORT", "SWITCH:PORT"], and its rate if it is known')
    return Link(parse_end(words[0]), parse_end(words[1]), parse_rate(words[2]) if len(words) > 2 else 0)


def links_of(topology: Any) -> List[Link]:
    """Of what ofqos-reserve's /topology answers; ValueError: it is none."""
    if not isinstance(topology, dict) or not isinstance(topology.get('links'), list):
        raise ValueError('no topology')
    found: Dict[Tuple[End, ...], Link] = {}
    for row in topology['links'][:4096]:
        if not isinstance(row, dict):
            raise ValueError('no topology')
        a, b = parse_end(str(row.get('from'))), parse_end(str(row.get('to')))
        rate = row.get('rate')
        found.setdefault(tuple(sorted((a, b))), Link(a, b, rate if isinstance(rate, int) else 0))
    return list(found.values())


class Network:
    """Made before its switches come; it is told of them by up(), down() and heard()."""

    def __init__(self, viewers: int, interval: float, names: Dict[str, str], links: Sequence[Link]) -> None:
        self.hub = Hub(viewers, self.render)
        self.hub.permitted = self.permitted
        self.labels: Callable[[int], Collection[str]] = lambda dpid: ()     # of a switch, where a policy gives it some
        self.interval, self.names = interval, names
        self.links, self.source = list(links), 'given' if links else 'none'
        self.watches: Dict[int, Watch] = {}
        self.known: Dict[int, str] = {}         # also those that are away: datapath id -> name
        self.recorder: Optional[Recorder] = None
        self._tasks = Tasks()
        self.more: Optional[More] = None

    # ------------------------------------------------------------------ switches come and go

    def up(self, channel: Channel) -> None:
        dpid = channel.datapath_id
        watch = Watch(channel, self.hub, self.names.get(f'{dpid:016x}', ''), self.interval,
                      lambda: self._level(dpid), lambda: self._changed(dpid), self.recorder)
        self.watches[dpid] = watch
        self._tasks.spawn(self._run(dpid, watch))

    async def _run(self, dpid: int, watch: Watch) -> None:
        try:
            await watch.run()
        except Exception as e:          # one switch's nonsense is not to end the others' service
            self.hub.tell('bad', 'switch', f'a fault of this service: {type(e).__name__}: {e}', dp=watch.dp,
                          switch=watch.name)
            watch.channel.close('a fault of this side')
            raise

    def down(self, channel: Channel, why: str) -> None:
        watch = self.watches.pop(channel.datapath_id, None)
        if watch:
            if len(self.known) < 4096 or channel.datapath_id in self.known:
                self.known[channel.datapath_id] = watch.name
            self.hub.tell('bad', 'switch', f'the switch is away: {why}', dp=watch.dp, switch=watch.name)
            self._changed(channel.datapath_id)

    def turned(self, why: str) -> None:
        self.hub.tell('warn', 'switch', f'not let in: {why}')

    def heard(self, channel: Channel, raw: bytes) -> None:
        watch = self.watches.get(channel.datapath_id)
        if watch and watch.channel is channel:
            watch.heard(raw)

    def set_links(self, links: List[Link], source: str) -> None:
        if (links, source) != (self.links, self.source):
            self.links, self.source = links, source
            self.hub.changed(lambda view: view.kind == 'network')

    def __getitem__(self, dp: str) -> Watch:
        """Away: it is not there."""
        try:
            return self.watches[int(dp, 16)]
        except (KeyError, ValueError):
            raise Away(f'switch {dp[:40]} is not connected') from None

    def permitted(self, dp: str, only: Optional[FrozenSet[str]]) -> bool:
        """Whether somebody who may see only those switches may see this one: by its id, the name that it was given here or a
        label; not by what it calls itself"""
        if only is None:
            return True
        try:
            dpid = int(dp, 16)
        except ValueError:
            return False                        # of no switch
        return not only.isdisjoint((dp, self.names.get(f'{dpid:016x}', dp), *self.labels(dpid)))

    # ------------------------------------------------------------------ who wants what

    def queues_of(self, view: View) -> Optional[int]:
        """The switch whose queues this view is of"""
        if view.kind == 'port':
            return int(view.path[1], 16)
        return self.more.dpid if self.more and view.kind in self.more.kinds else None

    def _level(self, dpid: int) -> int:
        dp, level = f'{dpid:016x}', NOTHING
        for view in self.hub.views():
            if self.queues_of(view) == dpid:
                return QUEUES
            if view.kind == 'network' or view.path == ('switch', dp):
                level = PORTS
        return level

    def _changed(self, dpid: int) -> None:
        dp = f'{dpid:016x}'
        self.hub.changed(lambda view: view.kind == 'network' or view.path[1:2] == (dp,) or self.queues_of(view) == dpid)

    # ------------------------------------------------------------------ views

    def render(self, view: View) -> Optional[Dict[str, Any]]:
        if view.kind == 'network':
            return self.show(view.window, view.only)
        if view.kind == 'events':
            return {'events': [event for event in self.hub.happened if self.hub.sees(view.only, event)]}
        if self.more and view.kind in self.more.kinds:
            return self.more.show(view)
        dp = view.path[1]
        try:
            watch = self[dp]
        except Away:
            return {'dp': dp, 'name': self._away_name(int(dp, 16)), 'up': False, 'ports': [], 'trees': [], 'port': None,
                    'first': 0, 'total': 0}
        return watch.show(view.window) if view.kind == 'switch' else watch.show_port(int(view.path[2]), view.window)

    def show(self, w: Window = ALL, only: Optional[FrozenSet[str]] = None) -> Dict[str, Any]:
        """The picture is of all that may be seen; tables are of those that the window shows."""
        ids = sorted(dpid for dpid in {*self.watches, *self.known, *(end[0] for link in self.links for end in (link.a, link.b))}
                     if self.permitted(f'{dpid:016x}', only))
        switches = [self._switch(dpid) for dpid in ids]
        links = [self._link(link) for link in self.links if {link.a[0], link.b[0]} <= set(ids)]
        place = {s['dp']: i for i, s in enumerate(switches)}
        picture = {'switches': [[s['dp'], s['name'], s['up'], s['ports'], s['queues']] for s in switches],
                   'links': [[place[k['a']['dp']], k['a']['name'], place[k['b']['dp']], k['b']['name'], k['up'],
                              _percent(k['a_load']), _percent(k['b_load'])] for k in links]}
        shown = window.cut(_chosen(switches, w), w.first, w)
        lines = window.cut(_fullest(links, {s['dp']: s['name'] for s in switches}, w.find), w.second, w)
        return {'picture': picture, 'away': sum(not s['up'] for s in switches),
                'switches': shown.pop('rows'), **shown,
                'links': lines['rows'], 'links_first': lines['first'], 'links_total': lines['total'],
                'links_from': self.source, 'interval': self.interval, 'viewers': len(self.hub),
                'viewers_most': self.hub.most}

    def _away_name(self, dpid: int) -> str:
        return self.known.get(dpid) or self.names.get(f'{dpid:016x}') or f'switch {dpid:x}'

    def _switch(self, dpid: int) -> Dict[str, Any]:
        watch, dp = self.watches.get(dpid), f'{dpid:016x}'
        if watch is None:
            return {'dp': dp, 'name': self._away_name(dpid), 'up': False, 'ports': 0, 'ports_down': 0, 'queues': 0,
                    'rx_bps': None, 'tx_bps': None, 'foreign': False}
        rows = [watch.port_row(p) for p in watch.ports.values()]

        def total(key: str) -> Optional[float]:
            known = [r[key] for r in rows if r[key] is not None]
            return sum(known) if known else None

        return {'dp': dp, 'name': watch.name, 'up': True, 'ports': len(rows),
                'ports_down': sum(not r['up'] for r in rows), 'queues': sum(r['queues'] for r in rows),
                'rx_bps': total('rx_bps'), 'tx_bps': total('tx_bps'), 'foreign': any(r['foreign'] for r in rows)}

    def _link(self, link: Link) -> Dict[str, Any]:
        ends, up = [], True
        rates: List[Optional[float]] = []
        sends, takes = [], []           # at most, bit/s; 0: unknown
        for dpid, number in (link.a, link.b):
            watch = self.watches.get(dpid)
            port = watch.ports.get(number) if watch else None
            up = up and bool(port and port.up)
            ends.append({'dp': f'{dpid:016x}', 'port': number, 'name': port.name if port else str(number)})
            rates.append(watch.rates_of(number)['tx_bps'] if watch and port else None)
            sends.append(watch.carries(port, 0) if watch and port else 0)
            takes.append(watch.carries(port, 1) if watch and port else 0)
        most = [min((n for n in (link.rate, sends[0], takes[1]) if n), default=0),
                min((n for n in (link.rate, sends[1], takes[0]) if n), default=0)]
        loads = [None if r is None or not m else round(r / m, 4) for r, m in zip(rates, most)]
        return {'a': ends[0], 'b': ends[1], 'up': up, 'capacity': max(most) or None, 'a_bps': rates[0],
                'b_bps': rates[1], 'a_load': loads[0], 'b_load': loads[1]}


def _percent(load: Optional[float]) -> Optional[int]:
    """Of a link in the picture; what is hardly anything is no change."""
    return None if load is None else 1 if 0 < load < 0.01 else round(load * 100)


def _chosen(switches: List[Dict[str, Any]], w: Window) -> List[Dict[str, Any]]:
    found = [s for s in switches if w.find in f"{s['name']} {s['dp']}".lower()]
    if not w.sort:
        return sorted(found, key=lambda s: (s['name'].lower(), s['dp']))
    return window.largest(found, lambda s: s[{'queues': 'queues', 'receives': 'rx_bps', 'sends': 'tx_bps'}[w.sort]])


def _fullest(links: List[Dict[str, Any]], names: Dict[str, str], find: str) -> List[Dict[str, Any]]:
    """Links with that word in an end's name, the fullest first."""
    for link in links:
        for end in (link['a'], link['b']):
            end['switch'] = names[end['dp']]
    found = [link for link in links if any(find in f"{end['switch']} {end['name']} {end['dp']}".lower()
                                           for end in (link['a'], link['b']))]
    return window.largest(found, lambda link: max(link['a_load'] or 0, link['b_load'] or 0))
