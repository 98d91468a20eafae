# SPDX-License-Identifier: Apache-2.0
"""A few hours of tests/day: an ISP's box while plans change, a site degrades, and switch and ofqosd are killed and upgraded."""
import os
import random

import pytest

from support import offload

for module, package in ('aiohttp', 'aiohttp'), ('prometheus_client', 'prometheus-client'), ('yaml', 'yaml'):
    pytest.importorskip(module, reason=f'{module} is not installed (Debian: python3-{package})')
from support.day import HOURS, Day, table, verdicts  # noqa: E402

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason='needs root (network namespaces)')


@pytest.mark.parametrize('hours', [(1, 3, 4, 9, 12, 14), pytest.param(range(len(HOURS)), marks=pytest.mark.long)], ids=['some', 'all'])
def test_hours(hours):
    """No packet of customers within their plans is lost or doubled, the kernel has what the lists say, the log is whole.  Rates are for
    tests/day to judge, with a switch that is not sanitized."""
    if why := offload.works():
        pytest.skip(why)
    with Day(100, random.Random(1)) as day:
        for hour in hours:
            day.live(hour, 2)
        found = day.ended()
    print(table(found))
    assert not verdicts(found, rates=False)
