# SPDX-License-Identifier: Apache-2.0
"""Which tests `tests/run` leaves to `tests/run --all`: those marked `long`.

Of a test with many variants two are enough to see that the feature works: the first and the last, which differ in every
parameter.  The others get the mark here, unless the test is marked `every`."""
import collections

import pytest

MARKERS = ('long: left to tests/run --all', 'every: none of its variants is left to tests/run --all')


def configure(config):
    for line in MARKERS:
        config.addinivalue_line('markers', line)


def mark_variants(items):
    variants = collections.defaultdict(list)
    for item in items:
        variants[item.path, item.cls, item.function].append(item)
    for same in variants.values():
        for item in same[1:-1]:
            if not item.get_closest_marker('every'):
                item.add_marker(pytest.mark.long)
