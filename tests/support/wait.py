# SPDX-License-Identifier: Apache-2.0
"""How tests wait: for a condition, with a limit that only a defect reaches."""
import time

from .load import slowness

PAUSE = 0.02


def until(ask, what='', seconds=60, *, wanted=bool, not_yet=(), check=None):
    """Asks again and again until the answer is wanted -> the answer.  An exception of `not_yet` is no answer yet;
    check() raises where it need not be waited for any more."""
    began = time.monotonic()
    while True:
        try:
            if wanted(answer := ask()):
                return answer
        except not_yet as e:
            answer = e
        if check:
            check()
        took = time.monotonic() - began
        if took > seconds and took > seconds * slowness():
            raise AssertionError(f'not within {seconds} s: {what or "what was waited for"}; last: {answer!r}'[:2000])
        time.sleep(PAUSE)
