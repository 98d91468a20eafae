# SPDX-License-Identifier: Apache-2.0
"""A service that is told to end does, also where a task does not hear the first time that it is cancelled, as it happens
before Python 3.12 in asyncio.wait_for().  Needs no root."""
import asyncio
import contextlib
import gc
import sys

from support.app import PACKAGE
from support.fakeswitch import run

sys.path.append(PACKAGE)
from ofqos import switches  # noqa: E402
from ofqos.ending import end  # noqa: E402
from ofqos.errors import Away  # noqa: E402


async def deaf(times):
    """Does not hear of its end so often"""
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            times -= 1
            if times < 0:
                raise


def test_tasks():
    async def work():
        tasks = [asyncio.ensure_future(deaf(n)) for n in (0, 1, 3)]
        await asyncio.sleep(0)
        await end(tasks)
        assert all(task.cancelled() for task in tasks)
        await end(tasks)
        await end([])
    run(work())


def test_nothing_is_left_to_be_looked_at(caplog):
    """What gather() makes of a cancellation is an exception, of which asyncio complained when nobody had asked for it."""
    async def work():
        await end([asyncio.gather(deaf(0), deaf(0))])
        gc.collect()
    run(work())
    assert not caplog.records


def test_switches_that_are_being_dialed(monkeypatch):
    """ofqos-web stayed for ever, in one of thirty ends."""
    async def dial(*_):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)
        raise Away('it does not answer')
    monkeypatch.setattr(switches, 'dial', dial)

    async def work():
        async with switches.Switches(['tcp:127.0.0.1:1']):
            await asyncio.sleep(0.01)
    run(work(), 20)
