# SPDX-License-Identifier: Apache-2.0
"""What the pages and the API show of subscribers: the shaper's tree, with what the page's watch has of their queues."""
from __future__ import annotations

import heapq
import ipaddress
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median_low
from typing import Any, Callable, Collection, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ..outcome import least
from ..replies import Entry, Latency, Segments
from ..shaper.model import Circuit, Prefix, Site
from ..shaper.overlay import shown_values
from ..shaper.read import covers, text_of
from ..shaper.service import Shaper
from ..shaper.state import State, circuit_key, site_key
from ..web import window
from ..web.hub import View
from ..web.network import Network
from ..web.rows import Between, per_second
from ..web.tree import Look
from ..web.watch import Watch
from ..web.window import ALL, Window
from .fault import NONE, Way, faults, sees, share

WORST = 10
Pairs = Sequence[Optional[float]]        # by way: to the customers, and from them


class Place(NamedTuple):
    """A site in the order of the tree; its circuits are `first` to `end`, those of sites below it, too; `last`: behind the last
    site below it."""
    site: Site
    depth: int
    number: int
    first: int
    end: int
    last: int


class Index:
    """Of what is in force: sites and circuits in the order of the tree.  Made once for each state."""

    def __init__(self, state: State) -> None:
        self.state, network = state, state.network
        self.sites: List[Place] = []
        self.circuits: List[Circuit] = []
        self.by_name: Dict[str, int] = {}
        self._below: Dict[str, Tuple[List[Site], List[Circuit]]] = {}
        for site in network.sites.values():
            self._below.setdefault(site.parent, ([], []))[0].append(site)
        for circuit in network.circuits.values():
            self._below.setdefault(circuit.parent, ([], []))[1].append(circuit)
        self._walk('', 0)
        self.numbers = [state.numbers[circuit_key(each.id)] for each in self.circuits]
        self.place = {number: i for i, number in enumerate(self.numbers)}
        self.texts = [' '.join((each.id, each.name, *map(text_of, each.addresses))).lower() for each in self.circuits]
        self._found: Tuple[str, List[int]] = '', []

    def _walk(self, name: str, depth: int) -> None:
        """As deep as sites are, which is bounded"""
        sites, circuits = self._below.get(name, ([], []))
        self.circuits += circuits
        for site in sites:
            at, first = len(self.sites), len(self.circuits)
            number = self.state.numbers[site_key(site.name)]
            self.sites.append(Place(site, depth, number, first, first, at))
            self._walk(site.name, depth + 1)
            self.sites[at] = Place(site, depth, number, first, len(self.circuits), len(self.sites))
            self.by_name[site.name] = at

    def found(self, word: str) -> List[int]:
        """The circuits with that word in their names, or with that address"""
        if self._found[0] != word:
            wanted = _prefix(word)
            self._found = word, [i for i, text in enumerate(self.texts) if word in text or wanted and any(
                covers(each, wanted) for each in self.circuits[i].addresses)]
        return self._found[1]

    def way_to(self, name: str) -> List[str]:
        """The sites from the top to this one"""
        made: List[str] = []
        while name:
            made.insert(0, name)
            name = self.state.network.sites[name].parent
        return made


def _prefix(text: str) -> Optional[Prefix]:
    try:
        net = ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None
    return Prefix(net.version, int(net.network_address), net.prefixlen)


@dataclass
class Figures:
    """Of one look at the switch, and the one before; `ports`: by way, what the packets leave by.  Only what is asked for is
    worked out."""
    index: Index
    ports: Tuple[int, int]
    now: Look
    before: Optional[Look]
    estimated: Set[Tuple[int, int]] = field(default_factory=set)

    @cached_property
    def between(self) -> Between:
        return Between(self.now, self.before, 0)

    def entry(self, way: int, number: int, is_class: bool = True) -> Optional[Entry]:
        return self.now.entries.get((self.ports[way], 0, is_class, number))

    @cached_property
    def rtt(self) -> Sequence[Dict[int, int]]:
        """By way and queue: microseconds, half of the round trips are shorter"""
        made: Tuple[Dict[int, int], Dict[int, int]] = {}, {}
        for (port, direction, number), latency in self.now.latencies.items():
            if latency.rtt.p50 is not None and port in self.ports and direction == 'out':
                made[self.ports.index(port)][number] = latency.rtt.p50
        return made

    @cached_property
    def delay(self) -> Sequence[Dict[int, int]]:
        made: Tuple[Dict[int, int], Dict[int, int]] = {}, {}
        for (port, direction, number), latency in self.now.latencies.items():
            if latency.delay.p50 is not None and latency.source == 'scheduler' and port in self.ports and direction == 'out':
                made[self.ports.index(port)][number] = latency.delay.p50
        tins = self.now.tins
        for (port, way, is_class, number), e in self.now.entries.items():
            if not tins and not e.counters.backlog_bytes or not is_class or way or port not in self.ports:
                continue
            ours = made[self.ports.index(port)]
            if (port, way, number) in tins or e.counters.backlog_bytes and number not in ours:
                found = self.between.waits(e)
                if found['delay_us'] is not None:
                    ours[number] = found['delay_us']
                    if found['delay_by'] == 'estimated':
                        self.estimated.add((self.ports.index(port), number))
        return made

    def packets_ps(self, way: int, number: int) -> float:
        e = self.entry(way, number)
        then = self.between.then(e) if e else None
        return (per_second(e.counters.packets, then.packets, self.between.seconds) if e and then else None) or 0.0

    def latency(self, way: int, number: int) -> Optional[Latency]:
        return self.now.latencies.get((self.ports[way], 'out', number))

    @cached_property
    def segments(self) -> Sequence[Dict[int, Segments]]:
        """By way and queue: TCP of late"""
        made: Tuple[Dict[int, Segments], Dict[int, Segments]] = {}, {}
        for (port, direction, number), found in self.now.segments.items():
            if found.late.counted and port in self.ports and direction == 'out':
                made[self.ports.index(port)][number] = found.late
        return made

    def lost(self, number: int) -> Pairs:
        """Percent of his TCP segments, on both sides of the box"""
        return [share(ways.get(number, NONE)) for ways in self.segments]

    def all_segments(self, number: int) -> List[Optional[int]]:
        """Since the queue is there: counted, lost behind the box, and before it; each of both ways"""
        found = [self.now.segments.get((port, 'out', number)) for port in self.ports]
        return [each.total[i] if each else None for i in range(3) for each in found]

    @cached_property
    def outcome(self) -> Sequence[Dict[int, int]]:
        """Quality of Outcome by way and queue, of the application that has it worst"""
        made: Tuple[Dict[int, int], Dict[int, int]] = {}, {}
        for way in 0, 1:
            for number in self.rtt[way]:
                measured = self.latency(way, number)
                value = least(measured.rtt.p50, measured.rtt.p90, self.packets_ps(way, number), self.drops[way].get(number, 0)) if measured else None
                if value is not None:
                    made[way][number] = value
        return made

    def is_guess(self, way: int, number: int) -> bool:
        """What waits, at the present rate; not measured by the scheduler"""
        return number in self.delay[way] and (way, number) in self.estimated

    @cached_property
    def drops(self) -> Sequence[Dict[int, float]]:
        """A second; only of those that drop"""
        made: Tuple[Dict[int, float], Dict[int, float]] = {}, {}
        old = self.before.entries if self.before else {}
        for key, e in self.now.entries.items():
            if not e.counters.drops or key[1] or key[0] not in self.ports or key not in old or old[key].counters.drops == e.counters.drops:
                continue
            at, number = self.ports.index(key[0]), key[3]
            of = self.entry(at, number)
            value = self.between.drops_ps(of, self.entry(at, number, False)) if of else None
            if value:
                made[at][number] = round(value, 1)
        return made

    def bits(self, number: int) -> Pairs:
        found = []
        for way in 0, 1:
            e = self.entry(way, number)
            value = self.between.bits(e) if e else None
            found.append(None if value is None else int(value))
        return found

    def bytes(self, number: int) -> Pairs:
        entries = [self.entry(way, number) for way in (0, 1)]
        return [e.counters.bytes if e else None for e in entries]

    def dropped(self, number: int) -> Pairs:
        entries = [(self.entry(way, number), self.entry(way, number, False)) for way in (0, 1)]
        return [self.between.drops(e, leaf) if e else None for e, leaf in entries]

    # ------------------------------------------------------------------ of many

    def of_site(self, place: Place) -> Dict[str, Any]:
        """Round trips: of half of its circuits they are shorter; waiting: of the one that waits longest; drops, lost segments: of all; outcome: of half
        of its circuits it is better"""
        numbers = self.index.numbers[place.first:place.end]
        made: Dict[str, Any] = {'rtt_us': [], 'delay_us': [], 'guess': [], 'drops_ps': [], 'lost': [], 'outcome': []}
        for way in 0, 1:
            rtt, delay, drops = self.rtt[way], self.delay[way], self.drops[way]
            known = [rtt[n] for n in numbers if n in rtt] if rtt else []
            made['rtt_us'].append(median_low(known) if known else None)
            longest = max((n for n in numbers if n in delay), key=delay.__getitem__, default=None) if delay else None
            made['delay_us'].append(None if longest is None else delay[longest])
            made['guess'].append(longest is not None and self.is_guess(way, longest))
            made['drops_ps'].append(round(sum(drops.get(n, 0) for n in numbers), 1) if drops else 0)
            counted = [self.segments[way][n] for n in numbers if n in self.segments[way]]
            made['lost'].append(share(Segments(*map(sum, zip(*counted)))) if counted else None)
            scores = [self.outcome[way][n] for n in numbers if n in self.outcome[way]] if known else []
            made['outcome'].append(median_low(scores) if scores else None)
        return made

    @cached_property
    def worst(self) -> Dict[str, List[List[Any]]]:
        """Circuits, each once: [id, name, way, value, whether it is a guess]"""
        place = self.index.place
        made: Dict[str, List[List[Any]]] = {}
        measured: Dict[str, Sequence[Mapping[int, float]]] = {'rtt_us': self.rtt, 'delay_us': self.delay, 'drops_ps': self.drops,
                                                              'outcome': [{n: 100 - score for n, score in ways.items()} for ways in self.outcome]}
        for key, ways in measured.items():
            best: Dict[int, Tuple[float, int]] = {}
            for way in 0, 1:
                for number, value in ways[way].items():
                    if number in place and value > best.get(number, (0, 0))[0]:
                        best[number] = value, way
            top = heapq.nsmallest(WORST, best.items(), key=lambda item: (-item[1][0], item[0]))
            made[key] = [[self.index.circuits[place[number]].id, self.index.circuits[place[number]].name, way, value,
                          key == 'delay_us' and self.is_guess(way, number)] for number, (value, way) in top]
        return made


class Subscribers:
    """Without a page there are no figures."""
    kinds: Collection[str] = ('subscribers', 'site', 'subscriber')

    def __init__(self, shaper: Shaper, net: Optional[Network]) -> None:
        self.shaper, self.net = shaper, net
        self._index: Optional[Index] = None
        self._figures: Optional[Figures] = None

    @property
    def dpid(self) -> int:
        return self.shaper.set.switch

    def watch(self) -> Optional[Watch]:
        return self.net.watches.get(self.dpid) if self.net else None

    def index(self) -> Index:
        if self._index is None or self._index.state is not self.shaper.state:
            self._index = Index(self.shaper.state)
        return self._index

    def ports(self) -> Optional[Tuple[int, int]]:
        """By way: downloads leave by `edge`"""
        watch, options = self.watch(), self.shaper.set.options
        named = {text: port.number for port in watch.ports.values() for text in (str(port.number), port.name)} if watch else {}
        edge, core = named.get(options['edge']), named.get(options['core'])
        return (edge, core) if edge is not None and core is not None else None

    def figures(self) -> Optional[Figures]:
        watch, ports, index = self.watch(), self.ports(), self.index()
        if watch is None or watch.look is None or ports is None:
            return None
        old = self._figures
        if old is None or old.now is not watch.look or old.index is not index or old.ports != ports:
            self._figures = Figures(index, ports, watch.look, watch.look_before)
        return self._figures

    # ------------------------------------------------------------------ rows

    def row(self, circuit: Circuit, number: int, figures: Optional[Figures]) -> Dict[str, Any]:
        own = self.shaper.own.get(circuit.id)
        made: Dict[str, Any] = {'id': circuit.id, 'name': circuit.name, 'at': circuit.parent, 'rate': list(circuit.guarantee),
                                'ceil': list(circuit.ceiling), 'here': own is not None}
        none: Pairs = [None, None]
        if figures is None:
            return {**made, 'bps': none, 'rtt_us': none, 'delay_us': none, 'guess': [False, False], 'drops_ps': none, 'drops': none, 'lost': none, 'outcome': none}
        return {**made, 'bps': figures.bits(number), 'rtt_us': [ways.get(number) for ways in figures.rtt],
                'delay_us': [ways.get(number) for ways in figures.delay], 'guess': [figures.is_guess(way, number) for way in (0, 1)],
                'drops_ps': [ways.get(number, 0) for ways in figures.drops],
                'drops': figures.dropped(number), 'lost': figures.lost(number), 'outcome': [ways.get(number) for ways in figures.outcome]}

    @staticmethod
    def site_row(place: Place, figures: Optional[Figures]) -> Dict[str, Any]:
        none: Pairs = [None, None]
        return {'name': place.site.name, 'kind': place.site.kind, 'depth': place.depth, 'circuits': place.end - place.first,
                'ceil': list(place.site.ceiling), **({'bps': figures.bits(place.number), **figures.of_site(place)} if figures else
                                                     {'bps': none, 'rtt_us': none, 'delay_us': none, 'guess': [False, False], 'drops_ps': none, 'lost': none, 'outcome': none})}

    def _order(self, chosen: List[int], sort: str, figures: Optional[Figures]) -> List[int]:
        index = self.index()
        if sort == 'name':
            return sorted(chosen, key=lambda i: (index.circuits[i].name or index.circuits[i].id).lower())
        if sort == 'changed':
            return sorted(chosen, key=lambda i: index.circuits[i].id not in self.shaper.own)
        if not sort or figures is None:
            return chosen
        numbers, shown = index.numbers, figures
        by: Dict[str, Callable[[int], Any]] = {
            'down': lambda i: shown.bits(numbers[i])[0], 'up': lambda i: shown.bits(numbers[i])[1],
            'rtt': lambda i: max(way.get(numbers[i], 0) for way in shown.rtt),
            'delay': lambda i: max(way.get(numbers[i], 0) for way in shown.delay),
            'dropped': lambda i: max(way.get(numbers[i], 0) for way in shown.drops),
            'lost': lambda i: max(each or 0 for each in shown.lost(numbers[i])),
            'outcome': lambda i: max(100 - way.get(numbers[i], 100) for way in shown.outcome)}
        return window.largest(chosen, by[sort])

    # ------------------------------------------------------------------ views

    def show(self, view: View) -> Optional[Dict[str, Any]]:
        """None: there is no such site or circuit."""
        if view.kind == 'subscriber':
            return self.one(view.path[1])
        return self.list(view.path[1] if view.kind == 'site' else None, view.window)

    def _head(self) -> Dict[str, Any]:
        watch, shaper = self.watch(), self.shaper
        ports = self.ports()
        return {'dp': shaper.dp, 'name': watch.name if watch else shaper.dp, 'up': shaper.set.switch in shaper.switches,
                'ports': list(ports) if ports else None, 'trouble': [text[:300] for text in shaper.trouble[:WORST]],
                'warnings': [text[:300] for text in shaper.warnings[:WORST]]}

    def list(self, site: Optional[str], w: Window = ALL) -> Optional[Dict[str, Any]]:
        index = self.index()
        if site is not None and site not in index.by_name:
            return None
        figures = self.figures()
        place = index.sites[index.by_name[site]] if site is not None else None
        sites = index.sites[index.by_name[place.site.name] + 1:place.last] if place else index.sites
        chosen = list(range(place.first, place.end) if place else range(len(index.circuits)))
        if w.find:
            wanted = index.found(w.find)
            chosen = [i for i in wanted if place.first <= i < place.end] if place else wanted
            sites = [each for each in sites if w.find in each.site.name.lower()]
        upper = window.cut(sites, w.first, w)
        lower = window.cut(self._order(chosen, w.sort, figures), w.second, w)
        return {**self._head(), 'of': self._site(place, figures), 'worst': figures.worst if figures and not place else None,
                'sources': self.shaper.sources.show() if self.shaper.sources else None, 'here': len(self.shaper.own), 'all': len(index.circuits), 'applied': self.shaper.applied_at,
                'sites': [self.site_row(each, figures) for each in upper['rows']], 'first': upper['first'], 'total': upper['total'],
                'circuits': [self.row(index.circuits[i], index.numbers[i], figures) for i in lower['rows']],
                'circuits_first': lower['first'], 'circuits_total': lower['total']}

    def _site(self, place: Optional[Place], figures: Optional[Figures]) -> Optional[Dict[str, Any]]:
        if place is None:
            return None
        return {**self.site_row(place, figures), 'way': self.index().way_to(place.site.parent)}

    def one(self, id_: str) -> Optional[Dict[str, Any]]:
        circuit = self.shaper.state.network.circuits.get(id_)
        if circuit is None:
            return None
        number, own = self.shaper.state.numbers[circuit_key(id_)], self.shaper.own.get(id_)
        listed = self.shaper.lists.circuits.get(id_) if self.shaper.lists else None
        figures = self.figures()
        return {**self._head(), 'circuit': self.row(circuit, number, figures), 'queue': number, 'way': self.index().way_to(circuit.parent),
                'addresses': [text_of(each) for each in circuit.addresses], 'bytes': figures.bytes(number) if figures else [None, None],
                **self._judged(circuit, number, figures), 'changed': {'by': own.by, 'at': own.at, **shown_values(own)} if own else None,
                'listed': {'name': listed.name, 'parent': listed.parent, 'guarantee': list(listed.guarantee), 'ceiling': list(listed.ceiling),
                           'addresses': [text_of(each) for each in listed.addresses], 'line': listed.line} if listed else None}

    def _judged(self, circuit: Circuit, number: int, figures: Optional[Figures]) -> Dict[str, Any]:
        """What he sees, and whose fault it is; None: nobody has looked yet"""
        if figures is None:
            return {'sees': None, 'faults': None}
        above = [self.index().sites[self.index().by_name[name]] for name in reversed(self.index().way_to(circuit.parent))]
        ways = [Way(figures.bits(number)[way], circuit.ceiling[way], [(place.site.name, figures.bits(place.number)[way], place.site.ceiling[way]) for place in above],
                    figures.latency(way, number), figures.delay[way].get(number), figures.drops[way].get(number, 0.0), figures.packets_ps(way, number),
                    figures.segments[way].get(number, NONE))
                for way in (0, 1)]
        return {'sees': sees(ways), 'faults': faults(ways)}

    def table(self) -> Iterator[Sequence[Any]]:
        """Rows of a CSV, with the header"""
        yield ('circuit', 'name', 'parent', 'guarantee_down', 'guarantee_up', 'ceiling_down', 'ceiling_up', 'bytes_down', 'bytes_up', 'bps_down',
               'bps_up', 'dropped_down', 'dropped_up', 'segments_down', 'segments_up', 'lost_behind_down', 'lost_behind_up', 'lost_before_down', 'lost_before_up')
        index, figures = self.index(), self.figures()
        none: List[Optional[float]] = [None, None]
        for circuit, number in zip(index.circuits, index.numbers):
            measured = ((*figures.bytes(number), *figures.bits(number), *figures.dropped(number), *figures.all_segments(number)) if figures
                        else none * 6)
            yield (circuit.id, circuit.name, circuit.parent, *circuit.guarantee, *circuit.ceiling, *('' if each is None else each for each in measured))


__all__ = ['Subscribers']
