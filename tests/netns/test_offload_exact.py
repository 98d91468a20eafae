# SPDX-License-Identifier: Apache-2.0
"""Numbered frames while flows change: none is lost, none comes twice, next to none overtakes another,
with the kernel's cache and without.  tests/exact does the same ten times as long."""
import signal
import time

import pytest

from support import offload
from support.topo import Switch, Topology

RATE = 100_000
FRAMES = 200_000
SEED = 20
MOST_REORDERED = 1e-4      # of the frames, while flows change

# changes a second, share of them that concerns the stream
CHANGES = {'nothing changes': (0, 0), 'unrelated': (1000, 0), 'now and then its own': (1000, 0.01),
           'half its own': (1000, 0.5)}
ASAN_RATE = 10_000         # what a sanitizer build forwards without an effort
ASAN_FRAMES = 40_000


def size():
    """(frames, rate): those of the release build where it is one"""
    from support.topo import build_directory
    slow = 'asan' in build_directory() or 'tsan' in build_directory()
    return (ASAN_FRAMES, ASAN_RATE) if slow else (FRAMES, RATE)


def ways():
    return [('off', 'user space')] + ([('auto', 'kernel')] if offload.has_option() else [])


@pytest.fixture(scope='module')
def two_hosts():
    with Topology(2) as topo:
        yield topo


def judge(told, most_reordered):
    r, text = told['result'], told['text']
    print(text)
    assert r['duplicated'] == 0 and r['damaged'] == 0, text
    assert told['uncounted'] == 0, text
    assert r['reordered'] <= most_reordered * r['sent'], text


@pytest.mark.parametrize('kind', CHANGES, ids=lambda k: k.replace(' ', '-'))
@pytest.mark.parametrize('how', [w for w, _ in ways()])
def test_numbered_frames(two_hosts, how, kind):
    rate, own = CHANGES[kind]
    frames, speed = size()
    with Switch(two_hosts, *offload.options(how)) as switch, switch.connect() as conn:
        offload.base_flows(conn)
        told = offload.stream_of(switch, conn, frames, speed, rate, own, SEED)
        judge(told, MOST_REORDERED if rate else 0)
        if how == 'auto' and offload.works() is None and own < 0.5:
            assert told['hits'] > told['result']['sent'] / 4, told['text']      # a busy machine is late with entries


@pytest.mark.long
@pytest.mark.parametrize('how', [w for w, _ in ways()])
def test_after_a_killed_daemon(two_hosts, how):
    """A new one takes over what a killed one left on the interfaces"""
    frames, speed = size()
    switch = Switch(two_hosts, *offload.options(how))
    with switch:
        with switch.connect() as conn:
            offload.base_flows(conn)
            with offload.Numbered(two_hosts, frames // 2, speed, quiet=5) as cut:
                time.sleep(cut.seconds / 2)
                switch.process.send_signal(signal.SIGKILL)
                switch.process.wait()
                switch.start()
                with switch.connect() as again:
                    offload.base_flows(again)
        assert cut.result['duplicated'] == 0 and cut.result['damaged'] == 0, \
            offload.sentence(cut.result)
        with switch.connect() as conn:
            for rate, own in CHANGES.values():
                told = offload.stream_of(switch, conn, frames // 2, speed, rate, own, SEED)
                judge(told, MOST_REORDERED if rate else 0)
