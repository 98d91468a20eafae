# SPDX-License-Identifier: Apache-2.0
"""Quality of Outcome: straight lines between perfect and useless, and the worst of them."""
import sys

from support.app import PACKAGE

sys.path.append(PACKAGE)
from ofqos.outcome import PROFILES, Need, least, outcomes  # noqa: E402


def test_a_straight_line():
    need = Need(100, 500)
    assert [need.score(v) for v in (0, 100, 200, 300, 500, 9999)] == [100, 100, 75, 50, 0, 0]


def test_the_worst_counts():
    assert outcomes(1000, 2000, 100, 0) == dict.fromkeys(PROFILES, 100)
    assert outcomes(None, 2000, 100, 0) is None and outcomes(1000, None, 100, 0) is None
    assert outcomes(1000, 2000, 0, 0)['voice'] == 100
    assert outcomes(120_000, 150_000, 100, 0) == {'web': 96, 'video': 100, 'voice': 100, 'gaming': 50}
    assert outcomes(1000, 180_000, 100, 0)['gaming'] == 50
    assert outcomes(1000, 2000, 95, 5) == {'web': 56, 'video': 43, 'voice': 56, 'gaming': 0}
    assert set(outcomes(10e6, 10e6, 1, 0).values()) == {0}


def test_the_least_of_them():
    for rtt in 0, 50_000, 120_000, 400_000:
        for rtt90 in rtt, 2 * rtt, 10 * rtt:
            for drops in 0, 1, 3, 50:
                assert least(rtt, rtt90, 100, drops) == min(outcomes(rtt, rtt90, 100, drops).values())
    assert least(None, 1, 1, 0) is None and least(1, 1, 0, 0) == 100


def test_profiles_make_sense():
    for p in PROFILES.values():
        assert all(0 < n.perfect < n.useless for n in p) and p.rtt.perfect <= p.rtt90.perfect
