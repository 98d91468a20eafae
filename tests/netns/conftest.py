# SPDX-License-Identifier: Apache-2.0
import contextlib
import functools
import os
import subprocess

import pytest

from support import offload, selection, tc, topo
from support.adverse import Adverse
from support.one_switch import OneSwitch
from support.topo import Switch, Topology

SWITCH_OPTIONS = ['--leaf=none']        # a queue has what a test asks for, and no more


pytest_configure = selection.configure


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    selection.mark_variants(items)
    reason = None
    if os.geteuid() != 0:
        reason = 'needs root (network namespaces)'
    elif topo.build_directory() is None:
        reason = 'no build found: run tests/run, or set OFQOS_BUILD'
    if reason:
        for item in items:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope='session')
def four_ports():
    """Four hosts without addresses: nothing is on the wire but what a test sends."""
    with Topology(ports=4) as t:
        yield t


@pytest.fixture(name='topo')
def two_ports():
    """Two hosts of the test's own"""
    with Topology(2) as t:
        yield t


@pytest.fixture(scope='session')
def adverse_library(tmp_path_factory):
    return Adverse(tmp_path_factory.mktemp('adverse'))


@pytest.fixture
def world(adverse_library):
    with adverse_library:
        yield adverse_library


@pytest.fixture
def nobody():
    """The words that make a program of the build run as nobody"""
    words = ['setpriv', '--reuid=65534', '--clear-groups']
    if subprocess.run([*words, 'test', '-x', topo.binary('datapath/ofdatapath')], check=False).returncode:
        pytest.skip('the build is in a directory that only root may enter')
    return words


@pytest.fixture
def ns(topo):
    return topo.switch_ns


def links_up(t):
    """A failed test may have left a link down: the next one is not to suffer for it."""
    for n in range(1, t.ports + 1):
        topo.sh('ip', '-n', t.switch_ns, 'link', 'set', f'p{n}', 'up', check=False)
        topo.sh('ip', '-n', t.host_ns(n), 'link', 'set', 'e0', 'up', check=False)


def check_clean(t):
    """The switch is gone: so must be all that it had put on the interfaces."""
    left = [name for name in t.port_names() if tc.root(t.switch_ns, name)]
    for name in left:
        tc.tc(t.switch_ns, 'qdisc', 'del', 'dev', name, 'root', check=False)
    assert not left, f'queues left behind on {left}'
    left = {name: what for name in t.port_names() if (what := offload.attached(t.switch_ns, name))}
    assert not left, f'programs left behind: {left}'


@pytest.fixture(scope='module')
def one_switch(four_ports):
    one = OneSwitch(four_ports, *SWITCH_OPTIONS)
    yield one
    one.end()
    check_clean(four_ports)


@pytest.fixture(autouse=True)
def free_ports(request):
    """For a test that starts a switch itself"""
    if getattr(request.module, 'ONE_SWITCH', False) and 'switch' not in request.fixturenames:
        request.getfixturevalue('one_switch').end()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    report = (yield).get_result()
    item.bad = getattr(item, 'bad', False) or report.failed


@pytest.fixture
def switch(four_ports, request):
    links_up(four_ports)
    if getattr(request.module, 'ONE_SWITCH', False):
        one = request.getfixturevalue('one_switch')
        yield one.take()
        one.give_back(getattr(request.node, 'bad', False))
        return
    with Switch(four_ports, *SWITCH_OPTIONS) as s:
        yield s
    check_clean(four_ports)


@pytest.fixture
def conn(switch):
    with switch.connect() as c:
        yield c


@pytest.fixture
def wires(four_ports):
    """{n: Wire} of the four hosts"""
    with contextlib.ExitStack() as stack:
        yield {n: stack.enter_context(four_ports.host(n)) for n in range(1, 5)}


@pytest.fixture
def hosts(switch, wires):
    """The same where there is a switch"""
    return wires


@functools.lru_cache(None)
def kernel_has(kind):
    return kind == 'none' or tc.has_scheduler(kind)


@pytest.fixture
def need():
    """need('sfq') skips the test, saying why, where the kernel has no such scheduler."""
    def check(kind):
        if not kernel_has(kind):
            pytest.skip(f'sch_{kind} is not in this kernel')
    return check
