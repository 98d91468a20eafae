# SPDX-License-Identifier: Apache-2.0
"""Quality of Outcome: straight lines between perfect and useless, and the worst of them."""
import sys

from support.app import PACKAGE

sys.path.append(PACKAGE)
from ofqos.outcome import PROFILES, Need, outcomes  # noqa: E402


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


def test_profiles_make_sense():
    for p in PROFILES.values():
        assert all(0 < n.perfect < n.useless for n in p) and p.rtt.perfect <= p.rtt90.perfect
