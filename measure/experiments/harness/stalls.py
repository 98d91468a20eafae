# SPDX-License-Identifier: Apache-2.0
"""When the machine stood still: how much later than asked for a sleeping thread is woken.

What a noisy machine does to a measurement is told by this beside it, not guessed.
"""
import time

from support.load import Background

STEP, WORTH = 0.001, 0.003          # seconds: of a sleep; later than that is noted


class Stalls(Background):
    """with Stalls() as stalls: ...; stalls.worst(start, end) -> seconds"""

    def __init__(self):
        super().__init__()
        self.seen = []

    def run(self):
        before = time.monotonic()
        while not self.over:
            time.sleep(STEP)
            now = time.monotonic()
            if now - before - STEP > WORTH:
                self.seen.append((now, now - before - STEP))
            before = now

    def worst(self, start, end):
        """The longest that ended within start .. end, of time.monotonic()"""
        return max((late for at, late in self.seen if start <= at <= end), default=0.0)
