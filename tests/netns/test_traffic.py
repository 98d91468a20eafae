# SPDX-License-Identifier: Apache-2.0
"""What hosts send each other passes as through a Linux bridge: each kind of frame, each kind of stream, with the
kernel as the switch's cache and without.  docs/explanation/traffic.md is made of the same by tests/traffic."""
import functools
import os
import re

import pytest

from support.frames import FRAMES
from support.topo import REPOSITORY
from support.traffic import SENT, STREAMS, Box

pytestmark = pytest.mark.debiankernel


@functools.lru_cache(None)
def frames(way):
    with Box(way) as box:
        return box.frames()


@functools.lru_cache(None)
def stream(way, kind):
    with Box(way) as box:
        return box.streams([kind])[kind]


@pytest.mark.parametrize('way', ['auto', 'off'])
def test_frames(way):
    """Also what a bridge keeps back is kept back"""
    bridge, ours = frames('bridge'), frames(way)
    assert bridge['UDP'] == SENT and bridge['LLDP (..:0e)'] == 0
    assert {k: (n, bridge[k]) for k, n in ours.items() if n != bridge[k]} == {}


@pytest.mark.long
@pytest.mark.parametrize('way', ['auto', 'off'])
@pytest.mark.parametrize('kind', STREAMS)
def test_streams(way, kind):
    bridge = stream('bridge', kind)
    if isinstance(bridge, str):
        pytest.skip(f'{kind}: {bridge}')
    assert bridge == 1
    assert stream(way, kind) >= 0.95          # datagrams that met no entry yet may be lost, streams are whole


def test_the_page_has_each_kind():
    with open(os.path.join(REPOSITORY, 'docs/explanation/traffic.md'), encoding='utf-8') as f:
        rows = re.findall(r'^\| ([^|]+?) \|', f.read(), flags=re.M)
    assert [r for r in rows if r in FRAMES or r in STREAMS] == [*FRAMES, *STREAMS]
