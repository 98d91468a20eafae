# SPDX-License-Identifier: Apache-2.0
"""Quality of Outcome (draft-ietf-ippm-qoo): how far what a queue does is from what an application needs, 0 to 100.

A profile names round trips that are perfect for an application and ones that make it useless, at percentiles, and the
same for loss.  Between the two the score falls in a straight line; the worst of all is the outcome.  The draft leaves the
figures to who knows the application: these are this project's."""
from __future__ import annotations

from typing import Dict, Mapping, NamedTuple, Optional


class Need(NamedTuple):
    """Of a value: up to `perfect` the score is 100, from `useless` on 0."""
    perfect: float
    useless: float

    def score(self, value: float) -> float:
        return max(0.0, min(100.0, 100 * (self.useless - value) / (self.useless - self.perfect)))


class Profile(NamedTuple):
    """Round trips in microseconds at the median and the 90th percentile; the part of packets that is lost."""
    rtt: Need
    rtt90: Need
    loss: Need


PROFILES: Mapping[str, Profile] = {
    'web': Profile(Need(100_000, 600_000), Need(200_000, 1_500_000), Need(0.01, 0.10)),
    'video': Profile(Need(150_000, 1_000_000), Need(300_000, 3_000_000), Need(0.01, 0.08)),
    'voice': Profile(Need(150_000, 500_000), Need(200_000, 700_000), Need(0.01, 0.10)),
    'gaming': Profile(Need(40_000, 200_000), Need(60_000, 300_000), Need(0.005, 0.05))}


_NEEDS = tuple(zip(*PROFILES.values()))         # by value, of all profiles


def least(rtt_us: Optional[float], rtt90_us: Optional[float], packets: float, drops: float) -> Optional[int]:
    """Of all profiles; of thousands of queues"""
    if rtt_us is None or rtt90_us is None:
        return None
    score = 100.0
    for value, needs in zip((rtt_us, rtt90_us, drops / (drops + packets) if drops else 0.0), _NEEDS):
        for perfect, useless in needs:
            at = 100 * (useless - value) / (useless - perfect)
            if at < score:
                score = at
    return round(max(0.0, score))


def outcomes(rtt_us: Optional[float], rtt90_us: Optional[float], packets: float, drops: float) -> Optional[Dict[str, int]]:
    """By profile; None: no round trip is known.  `packets`, `drops`: sent and dropped, in the same time."""
    if rtt_us is None or rtt90_us is None:
        return None
    loss = drops / (drops + packets) if drops + packets else 0.0
    return {name: round(min(p.rtt.score(rtt_us), p.rtt90.score(rtt90_us), p.loss.score(loss))) for name, p in PROFILES.items()}
