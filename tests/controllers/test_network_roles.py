# SPDX-License-Identifier: Apache-2.0
"""Which of several ofqos-networks is in force: what switches compare, over any order of events."""
import random
import sys

from support.app import PACKAGE

sys.path.append(PACKAGE)
from ofqos.network import roles  # noqa: E402
from ofqos.network.roles import Standing  # noqa: E402


class Switches:
    """What their last generation ids are; they refuse smaller ones."""

    def __init__(self, n):
        self.last = [None] * n

    def seen(self):
        return [roles.NONE if one is None else one for one in self.last]

    def ask(self, generation):
        """-> what each has then"""
        self.last = [last if last is not None and roles.is_after(last, generation) else generation for last in self.last]
        return self.last


def beat(standing, switches, now):
    """As the engine does"""
    if standing.active:
        own = standing.renew()
        if roles.is_after(roles.agreed(switches.ask(own)), own):
            standing.see(switches.seen(), now)
            standing.give_up(now)
        return
    standing.see(switches.seen(), now)
    if standing.may_claim(now, len(switches.last)):
        switches.ask(standing.claim())


def test_alone_and_again():
    switches, first = Switches(3), Standing(7)
    beat(first, switches, 0)
    assert first.active and roles.revision(first.own) == 7
    for now in range(2, 20, 2):
        beat(first, switches, now)
    again = Standing(7, first.own + 64)         # it has kept its count, and some more
    beat(again, switches, 20)
    assert again.active
    newer = Standing(8)
    beat(newer, switches, 22)
    assert newer.active
    beat(again, switches, 24)
    assert not again.active
    beat(again, switches, 1000)
    assert not again.active and 'revision 8 is in force elsewhere, ours is 7' in again.why


def test_a_reserve_waits():
    switches, first, second = Switches(3), Standing(7), Standing(7)
    for now in range(0, 60, 2):
        beat(first, switches, now)
        beat(second, switches, now + 1)
        assert first.active and not second.active
    took = None
    for now in range(60, 100, 2):
        beat(second, switches, now)
        took = took or (now if second.active else None)
    assert 60 + 8 <= took <= 60 + 14
    beat(first, switches, 101)                  # it was only asleep
    assert second.active and not first.active


def test_never_two_for_long():
    """Any number of them, which sleep and come back, some with newer files: in the end one is in force, and of
    the greatest revision that is there."""
    for seed in range(200):
        chance = random.Random(seed)
        switches = Switches(4)
        several = [Standing(chance.choice((3, 3, 4))) for _ in range(3)]
        for now in range(0, 60, 2):
            for one in chance.sample(several, 3):
                if chance.random() < 0.6:
                    beat(one, switches, now)
        for now in range(60, 200, 2):
            for one in several:
                beat(one, switches, now)
        active = [one for one in several if one.active]
        assert len(active) == 1, seed
        assert active[0].revision == max(one.revision for one in several), seed


def test_more_than_half_count():
    """Whatever a single switch says, the one in force stays so, and a reserve is not misled."""
    assert roles.agreed([]) is roles.agreed([roles.NONE]) is None
    assert roles.agreed([9]) == 9 and roles.agreed([9, 5]) == 5 and roles.agreed([5, roles.NONE]) == 5
    assert roles.agreed([9, 5, 6]) == 6 and roles.agreed([9, 9, 5, 5]) == 5 and roles.agreed([5, 9, 9]) == 9
    for n in 2, 3, 4:
        switches, first, second = Switches(n), Standing(7), Standing(7)
        beat(first, switches, 0)
        for now in range(2, 40, 2):
            switches.last[0] = 0x7ffffff000000000
            beat(first, switches, now)
            beat(second, switches, now + 1)
            assert first.active and not second.active
        for now in range(40, 60, 2):
            beat(second, switches, now)
        assert second.active and roles.revision(second.own) == 7


def test_distance():
    assert roles.is_after(1, 0) and not roles.is_after(0, 1) and not roles.is_after(5, 5)
    assert roles.is_after(0, roles.NONE) and not roles.is_after(roles.NONE, 0)
    assert Standing(1).beat(10) == roles.BEAT and Standing(1).beat(1000) == 10
