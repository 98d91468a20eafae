# SPDX-License-Identifier: Apache-2.0
"""Many ports that come and go together: the kernel's waits in each of them don't add up, and nobody waits for them."""
import threading
import time

import pytest

from support import statscache
from support.topo import Topology
from support.wait import until
from test_adversity_kernel import echo
from test_config import Configured
from test_rings import ports

MANY = 60
AT_ONCE = 16               # programs that are attached without delay
LATE = 1.0                 # s: an echo


class Slow(Configured):
    """In a world that is told how long the kernel takes"""

    def __init__(self, topo, conf, world, *options):
        super().__init__(topo, conf)
        at = self.command.index(topo.switch_ns) + 1
        self.command[at:at] = world.environment()
        self.command += options


def conf_of(names):
    return ''.join(f'port = {name}:{n}\n' for n, name in enumerate(names, 1))


@pytest.fixture
def names():
    with Topology(0) as topo, ports(topo, MANY) as made:
        yield topo, made


def count(conn):
    return len(conn.ports())


def test_reload_makes_rings_together(world, names):
    topo, all_of_them = names
    world.ring_ms = 100
    with Slow(topo, conf_of(all_of_them[:2]), world, '--offload=off') as s, s.connect() as conn:
        world.rings_at_once = 0
        s.write(conf_of(all_of_them))
        s.reload()
        assert world.rings_at_once >= 10
        assert count(conn) == MANY


class Echoes(threading.Thread):
    """The longest echo until the block ends"""

    def __init__(self, switch):
        super().__init__(daemon=True)
        self.conn, self.worst, self.over = switch.connect(), 0, threading.Event()

    def run(self):
        while not self.over.wait(0.02):
            begun = time.monotonic()
            echo(self.conn)
            self.worst = max(self.worst, time.monotonic() - begun)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()
        self.conn.close()


@pytest.mark.long
def test_programs_are_attached_after_the_start(world, names):
    """In each attachment the kernel waits for its readers, with all interfaces locked: one after the other by nature"""
    topo, all_of_them = names
    world.link_ms = 150
    with Slow(topo, conf_of(all_of_them), world) as s, s.connect():
        if 'not handled in the kernel' in s.output():
            pytest.skip('no kernel part here')
        assert world.links < AT_ONCE + 20
        with Echoes(s) as echoes:
            until(lambda: world.links >= MANY, 'all programs', seconds=60)     # one more cuts
        assert echoes.worst < LATE


def all_are_attached(conn):
    return [p['reason'] for p in statscache.ask(conn)['port']] == [''] * MANY


def test_ports_removed_and_added_again_keep_their_programs(world, names):
    topo, all_of_them = names
    with Slow(topo, conf_of(all_of_them), world) as s, s.connect() as conn:
        if 'not handled in the kernel' in s.output():
            pytest.skip('no kernel part here')
        until(lambda: world.links >= MANY, 'all programs', seconds=60)     # one more cuts
        s.write(conf_of(all_of_them[:30]))
        s.reload()
        assert count(conn) == 30
        s.write(conf_of(all_of_them))
        s.reload()
        assert count(conn) == MANY
        until(lambda: all_are_attached(conn), 'all programs')
        assert 'not handled' not in s.output()
