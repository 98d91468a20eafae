# SPDX-License-Identifier: Apache-2.0
"""Reservations along paths: what is decided, over random networks and switches that fail.

No framework, no switch: switches are tables here, which may refuse, or go away before or after they
have done what they were told."""
import asyncio
import inspect
import itertools
import random
import sys

import pytest

from support.app import PACKAGE

sys.path.append(PACKAGE)

from ofqos.reserve import books, parts  # noqa: E402
from ofqos.reserve.engine import Engine, Refuse  # noqa: E402
from ofqos.reserve.graph import Graph, Place  # noqa: E402
from ofqos.transaction import Rejected, Unknown  # noqa: E402

LOOP = asyncio.new_event_loop()
MBIT = 1_000_000
HOST = 1                    # the port of each switch where its host is


def match(n):
    return (('eth_type', 0x800), ('udp_dst', n))


class Tables:
    """Switches, as tables; a gate to them."""

    def __init__(self, switches):
        self.parts = {s: {} for s in switches}
        self.waiting = {}                       # (switch, port, queue): packets
        self.refuse = set()                     # switches that refuse when asked to commit
        self.unfit = set()                      # already when a bundle is prepared
        self.die = {}                           # switch: 'before' or 'after' it has committed
        self.on_commit = lambda: None
        self.prepared = 0

    async def prepare(self, switch, steps):
        if switch in self.unfit:
            raise Rejected('unfit')
        self.prepared += 1
        return switch, steps

    async def discard(self, ticket):
        self.prepared -= 1

    async def commit(self, ticket):
        switch, steps = ticket
        self.prepared -= 1
        how = self.die.get(switch)
        if how == 'before':
            raise Unknown('gone')
        if switch in self.refuse:
            raise Rejected('refused')
        now = dict(self.parts[switch])
        for verb, part in steps:
            there = part.key in now
            if verb == 'del':
                if not there:
                    raise Rejected(f'{part} is not there')
                del now[part.key]
            elif verb == 'add' and there and part.key[0] == 'queue':
                raise Rejected(f'{part} is there')
            else:
                now[part.key] = part
        self.parts[switch] = now
        self.on_commit()
        if how == 'after':
            raise Unknown('gone')

    async def read(self, switch):
        if switch in self.die:
            raise Unknown('gone')
        return list(self.parts[switch].values())

    async def backlog(self, switch, port, queue):
        return self.waiting.get((switch, port, queue), 0)


class Now:
    """An engine whose coroutines are carried out at once"""

    def __init__(self, gate):
        self.engine = Engine(gate, rest=0.1)

    def __getattr__(self, name):
        found = getattr(self.engine, name)
        return (lambda *words: LOOP.run_until_complete(found(*words))) if inspect.iscoroutinefunction(found) else found


class Net:
    """A random network, an engine, and what is true of both."""

    def __init__(self, rng, switches=6, more_links=4, capacity=10 * MBIT, edges=None):
        self.rng, self.switches = rng, list(range(1, switches + 1))
        self.tables = Tables(self.switches)
        pairs = edges or self.random_pairs(more_links)
        self.ports = {s: {HOST: capacity * (10 if edges else 1)} for s in self.switches}
        self.links = []
        for a, b in pairs:
            ends = [Place(s, max(self.ports[s]) + 1) for s in (a, b)]
            for end in ends:
                self.ports[end.switch][end.port] = rng.choice([5, 10, 20]) * MBIT \
                    if edges is None else capacity
            self.links.append(tuple(ends))
        self.cut = set()
        self.start()

    def random_pairs(self, more):
        pairs = [(s, self.rng.choice(self.switches[:i]))
                 for i, s in enumerate(self.switches) if i]
        every = list(itertools.combinations(self.switches, 2))
        return pairs + [self.rng.choice(every) for _ in range(more)]

    def start(self):
        """A controller that knows nothing"""
        self.engine = Now(self.tables)
        for s in self.switches:
            self.engine.switch_up(s, self.ports[s], self.down(s))
        self.hear()
        self.engine.turn()
        self.engine.settle()
        self.engine.turn()

    def down(self, s):
        return [end.port for link in self.cut for end in link if end.switch == s]

    def hear(self):
        for a, b in self.links:
            if (a, b) not in self.cut and {a.switch, b.switch} <= self.engine.switches:
                self.engine.heard(a, b)
                self.engine.heard(b, a)

    def set_link(self, link, up):
        (self.cut.discard if up else self.cut.add)(link)
        for end in link:
            if end.switch in self.engine.switches:
                self.engine.port(end, up, self.ports[end.switch][end.port])
        self.hear()

    def leave(self, s):
        self.tables.die.setdefault(s, 'before')
        self.engine.switch_down(s)
        self.engine.lost(s)

    def come(self, s, empty=False):
        self.tables.die.pop(s, None)
        if empty:
            self.tables.parts[s] = {}
        self.engine.switch_up(s, self.ports[s], self.down(s))
        self.hear()

    def mend(self):
        """Everything is there and well; then all must be as it was meant."""
        self.tables.refuse.clear()
        self.tables.unfit.clear()
        for s in self.switches:
            if s in self.tables.die or s not in self.engine.switches:
                self.come(s)
        self.tables.waiting.clear()
        for _ in range(3):
            self.engine.retry()
            self.engine.turn()
        self.engine.settle()
        self.empty()

    def empty(self):
        """What was left goes"""
        self.engine.turn()
        while self.engine.leave():
            pass
        self.engine.turn()

    def trace(self, who):
        """Where a packet of it comes out"""
        at, seen = who.source, []
        while True:
            flow = self.tables.parts[at.switch].get(('flow', at.port, who.matches[0]))
            if flow is None or at in seen:
                return None
            seen.append(at)
            queue = self.tables.parts[at.switch].get(('queue', flow.out_port, flow.id))
            assert queue and queue.rate == who.rate, f'{who.name}: no queue at {at}'
            out = Place(at.switch, flow.out_port)
            if out == who.sink:
                return out
            at = self.peer(out)
            if at is None:
                return None

    def peer(self, place):
        for a, b in self.links:
            if place in (a, b) and (a, b) not in self.cut:
                return b if place == a else a
        return None

    def check_books(self):
        assert not self.engine.books.over()
        for s in self.engine.switches - self.engine.dirty - self.engine.later - set(self.tables.die):
            for port, capacity in self.ports[s].items():
                sum_ = sum(p.rate for p in self.tables.parts[s].values()
                           if p.key[0] == 'queue' and p.port == port)
                assert sum_ <= 0.9 * capacity, f'switch {s} port {port} promises {sum_}'

    def check_whole(self):
        """After mend(): each reservation is on its whole path, or nowhere; nothing else is there."""
        assert self.tables.prepared == 0 and not self.engine.dirty | self.engine.later
        wanted = {s: parts.by_key(self.engine.wanted(s)) for s in self.switches}
        assert self.tables.parts == wanted
        for who in self.engine.reservations.values():
            assert self.trace(who) == (who.sink if who.path else None)
            assert not who.old


def add(net, name, rate, source, sink):
    return net.engine.add(name, rate, rate, Place(source, HOST), Place(sink, HOST),
                          (match(int(name)),))


@pytest.mark.parametrize('seed', range(60))
def test_never_too_much_and_all_or_none(seed):
    rng = random.Random(seed)
    net = Net(rng, rng.randint(2, 8), rng.randint(0, 6))
    names = iter(map(str, itertools.count()))
    for _ in range(60):
        one_of = list(net.engine.reservations.values())
        what = rng.choice(['add'] * 4 + ['del', 'move', 'link', 'link', 'leave', 'come', 'turn', 'turn',
                           'refuse', 'die', 'restart', 'well'])
        try:
            if what == 'add':
                before = set(net.engine.reservations)
                try:
                    add(net, next(names), rng.randint(1, 6) * MBIT, *rng.sample(net.switches, 2))
                except Refuse:
                    assert set(net.engine.reservations) == before
            elif what == 'del' and one_of:
                net.engine.remove(rng.choice(one_of))
            elif what == 'move' and one_of:
                net.engine.move(rng.choice(one_of), frozenset(rng.choice(net.links)))
            elif what == 'link':
                link = rng.choice(net.links)
                net.set_link(link, link in net.cut)
            elif what == 'leave':
                net.leave(rng.choice(net.switches))
            elif what == 'come':
                net.come(rng.choice(net.switches), rng.random() < 0.5)
            elif what == 'refuse':
                rng.choice([net.tables.refuse, net.tables.unfit]).add(rng.choice(net.switches))
            elif what == 'die':
                net.tables.die[rng.choice(net.switches)] = rng.choice(['before', 'after'])
            elif what == 'restart':
                net.mend()
                net.check_whole()
                kept = {(w.name, w.rate, w.path) for w in net.engine.reservations.values() if w.path}
                net.start()
                assert {(w.name, w.rate, w.path) for w in net.engine.reservations.values()} == kept
            elif what == 'well':
                net.mend()
                net.check_whole()
            else:
                net.engine.turn()
                net.engine.leave()
        except Refuse:
            pass
        net.check_books()
    net.mend()
    net.check_books()
    net.check_whole()


@pytest.mark.parametrize('seed', range(30))
def test_no_packet_is_without_a_way_while_paths_move(seed):
    """Looked at after each commit at each switch, with links that are left but still stand."""
    rng = random.Random(seed)
    net = Net(rng, 7, 8)
    for name in range(8):
        try:
            add(net, str(name), rng.randint(1, 3) * MBIT, *rng.sample(net.switches, 2))
        except Refuse:
            pass
    looked = []

    def look():
        for who in net.engine.reservations.values():
            assert net.trace(who) == who.sink
            looked.append(who)
    net.tables.on_commit = look
    for _ in range(40):
        who = rng.choice(list(net.engine.reservations.values()))
        if rng.random() < 0.5 and who.path:
            for hop in who.path:
                net.tables.waiting[hop.switch, hop.out_port, who.id] = rng.randint(0, 3)
        try:
            net.engine.move(who, frozenset(rng.choice(net.links)))
        except Refuse:
            pass
        if rng.random() < 0.5:
            net.engine.leave()
        net.tables.waiting.clear()
        net.engine.turn()
    net.empty()
    net.check_whole()
    assert looked or not any(who.moves for who in net.engine.reservations.values())


RING = [(1, 2), (2, 3), (3, 4), (4, 5), (5, 1)]


def ring(**words):
    return Net(random.Random(1), 5, capacity=10 * MBIT, edges=RING, **words)


def switches(who):
    return [hop.switch for hop in who.path]


def test_the_shortest_that_can_promise():
    net = ring()
    assert switches(add(net, '1', 5 * MBIT, 1, 3)) == [1, 2, 3]
    assert switches(add(net, '2', 5 * MBIT, 1, 3)) == [1, 5, 4, 3]
    assert switches(add(net, '3', 4 * MBIT, 1, 3)) == [1, 2, 3]
    with pytest.raises(Refuse) as refused:
        add(net, '4', 5 * MBIT, 1, 3)
    assert refused.value.status == 409 and refused.value.more['free'] == 0
    assert refused.value.more['link'] in ('1:2', '2:3') and 'has 0 bit/s left' in str(refused.value)
    net.engine.port(Place(2, HOST), True, 5 * MBIT)
    with pytest.raises(Refuse) as refused:          # the host's own link, not a wire between switches
        add(net, '5', 5 * MBIT, 2, 3)
    assert refused.value.more['link'] == '2:1' and refused.value.more['direction'] == 'in'
    add(net, '6', 4 * MBIT, 3, 2)                   # each direction for itself
    net.check_books()


@pytest.mark.parametrize('refuser', (1, 2, 3))
@pytest.mark.parametrize('when', ('unfit', 'refuse'))
def test_one_that_refuses(refuser, when):
    net = ring()
    getattr(net.tables, when).add(refuser)
    with pytest.raises(Refuse) as refused:
        add(net, '1', MBIT, 1, 3)
    assert refused.value.more['switch'] == f'{refuser:x}'
    assert not any(net.tables.parts.values()) and not net.tables.prepared and not net.engine.dirty
    assert not net.engine.books.used()


@pytest.mark.parametrize('how', ('before', 'after'))
@pytest.mark.parametrize('dead', (1, 2, 3))
def test_one_that_dies_between_the_commits(dead, how):
    net = ring()
    net.tables.die[dead] = how
    with pytest.raises(Refuse) as refused:
        add(net, '1', MBIT, 1, 3)
    assert refused.value.status == 503
    assert not any(p for s, p in net.tables.parts.items() if s != dead)
    net.engine.switch_down(dead)
    net.mend()
    assert not any(net.tables.parts.values())
    net.check_whole()


def test_a_link_that_goes_and_one_that_has_no_room():
    net = ring()
    first, second = add(net, '1', 6 * MBIT, 1, 2), add(net, '2', 3 * MBIT, 3, 1)
    assert switches(second) == [3, 2, 1]
    third = add(net, '3', 6 * MBIT, 1, 3 + 2)
    net.set_link(net.links[0], False)               # 1 - 2
    net.engine.turn()
    assert switches(second) == [3, 4, 5, 1]
    assert first.path is None and 'has 3000000 bit/s left' in first.why
    net.check_books()
    net.engine.remove(third)
    net.engine.turn()
    assert switches(first) == [1, 5, 4, 3, 2]
    net.empty()
    net.check_whole()


def test_links_that_are_silent():
    """Another path is taken where there is one; where there is none it stays."""
    net = ring()
    who = add(net, '1', MBIT, 1, 3)
    net.engine.silent({Place(1, 2)})
    net.engine.turn()
    assert switches(who) == [1, 5, 4, 3]
    net.engine.silent({Place(1, 3), Place(5, 2)})
    net.engine.turn()
    assert switches(who) == [1, 5, 4, 3] and 'no way' in who.why
    net.cut.add(net.links[4])
    net.engine.port(Place(1, 3), False, 10 * MBIT)
    net.engine.turn()
    assert who.path is None                         # that is certain
    net.cut.clear()
    net.engine.port(Place(1, 3), True, 10 * MBIT)
    net.hear()
    net.engine.turn()
    assert switches(who) == [1, 2, 3] and not who.why
    net.empty()
    net.check_whole()


def test_a_link_that_becomes_slower():
    net = ring()
    old, new = add(net, '1', 4 * MBIT, 1, 2), add(net, '2', 4 * MBIT, 1, 2)
    net.ports[1][2] = 5 * MBIT
    net.engine.port(Place(1, 2), True, 5 * MBIT)
    net.engine.turn()
    assert switches(old) == [1, 2] and switches(new) == [1, 5, 4, 3, 2]
    net.empty()
    net.check_books()


def test_a_switch_in_the_middle_and_one_at_the_end_go():
    net = ring()
    through, to = add(net, '1', MBIT, 1, 3), add(net, '2', MBIT, 1, 2)
    net.leave(2)
    net.engine.turn()
    assert switches(through) == [1, 5, 4, 3]
    assert switches(to) == [1, 2]                   # waits for it
    net.come(2, empty=True)
    net.engine.turn()
    assert switches(to) == [1, 2] and net.trace(to) == to.sink
    net.empty()
    net.check_whole()


def test_old_queues_are_emptied_before_they_go():
    net = ring()
    who = add(net, '1', MBIT, 1, 3)
    net.tables.waiting[2, 3, who.id] = 5
    net.engine.move(who, frozenset({Place(1, 2)}))
    assert switches(who) == [1, 5, 4, 3]
    for _ in range(3):
        net.engine.leave()
    assert ('queue', 2, who.id) not in net.tables.parts[1]
    assert ('queue', 3, who.id) in net.tables.parts[2]
    assert net.engine.books.promised(books.Lane(Place(2, 3))) == MBIT
    net.tables.waiting.clear()
    net.empty()
    net.check_whole()
    assert not net.engine.books.promised(books.Lane(Place(2, 3)))


@pytest.mark.parametrize('missing,stays', ((1, False), (2, True), (3, True)))
def test_what_is_not_whole_after_a_restart(missing, stays):
    """Without the first hop it was never whole; without another one that is made again."""
    net = ring()
    add(net, '1', MBIT, 1, 3)
    net.tables.parts[missing] = {}
    if missing == 3:        # where it goes to is not known to anybody else
        stays = False
    net.start()
    for _ in range(3):
        net.engine.turn()
    assert [switches(w) for w in net.engine.reservations.values()] == [[1, 2, 3]] * stays
    net.check_whole()


def test_nothing_is_added_before_all_was_read():
    net = ring()
    add(net, '1', MBIT, 1, 3)
    net.engine = Now(net.tables)
    with pytest.raises(Refuse) as refused:
        add(net, '1', MBIT, 2, 3)
    assert refused.value.status == 503
    net.start()
    with pytest.raises(Refuse) as refused:
        add(net, '1', MBIT, 2, 3)
    assert refused.value.status == 409


def test_paths_by_hops():
    graph = Graph()
    for a, b in ((Place(1, 1), Place(2, 1)), (Place(1, 2), Place(2, 2)), (Place(2, 3), Place(3, 1)),
                 (Place(1, 3), Place(3, 2))):
        graph.hear(a, b)
        graph.hear(b, a)
    graph.hear(Place(3, 9), Place(1, 9))            # one direction is no link
    found = list(graph.shortest(1, 3, 9))
    assert found == [(Place(1, 3),), (Place(1, 1), Place(2, 3)), (Place(1, 2), Place(2, 3))]
    assert list(graph.shortest(1, 1, 9)) == [()] and not list(graph.shortest(1, 7, 9))
    assert graph.trees(3) == {1: 3, 2: 3} and not graph.is_edge(Place(1, 9))


@pytest.mark.parametrize('seed', range(30))
def test_all_paths_of_small_networks(seed):
    """Beside a search that tries everything"""
    rng = random.Random(seed)
    net = Net(rng, rng.randint(2, 6), rng.randint(0, 5))
    start, end = rng.sample(net.switches, 2)

    def every(here, seen):
        if here == end:
            yield ()
        for a, b in net.engine.graph.links() if here != end else ():
            if a.switch == here and b.switch not in seen:
                for way in every(b.switch, seen | {b.switch}):
                    yield (a, *way)
    wanted = sorted(every(start, {start}), key=lambda way: (len(way), way))
    found = list(net.engine.graph.shortest(start, end, 1000))
    assert sorted(found) == sorted(wanted) and list(map(len, found)) == list(map(len, wanted))
