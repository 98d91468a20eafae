# SPDX-License-Identifier: Apache-2.0
"""The links of ofqos-web's page, as ofqos-reserve finds them by LLDP between real switches."""
import os

import pytest

from support import topo
from support.ring import NEXT, Ring
from support.wait import until
from support.web import Web

pytest.importorskip('aiohttp', reason='aiohttp is not installed (Debian: python3-aiohttp)')
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason='needs root (network namespaces)')
N, USABLE = 3, 19_600_000           # of 20 Mbit/s, ofqos-reserve shares out 98 %


def ends(link):
    return {(int(link[end]['dp'], 16), link[end]['port']) for end in 'ab'}


def test_links_found_by_lldp():
    """Each link of a ring is shown once, with both ends; one that is cut is not shown as up, and comes back."""
    with Ring(N) as ring, ring.controller(), topo.inside(ring.switch_ns), \
            Web(*ring.switches.values(), config={'topology': 'http://127.0.0.1:8080/topology'}, allow=False) as web:
        def shown(wanted):
            return until(lambda: web.view('network'), wanted=wanted)['links']

        def up(view):
            return [link for link in view['links'] if link['up']]

        links = shown(lambda view: view['links_from'] == 'lldp' and len(up(view)) == N)
        assert len(links) == N
        assert sorted(map(sorted, map(ends, links))) == [[(1, 2), (2, 3)], [(1, 3), (3, 2)], [(2, 2), (3, 3)]]
        assert {link['capacity'] for link in links} == {USABLE}
        ring.set_link(1, False)
        left = shown(lambda view: len(up(view)) == N - 1)
        assert not any(link['up'] and (1, NEXT) in ends(link) for link in left)
        ring.set_link(1, True)
        shown(lambda view: len(up(view)) == N)
