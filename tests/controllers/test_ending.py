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
from ofqos import dpctl, switches  # noqa: E402
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


def test_a_child_when_all_tasks_are_cancelled(caplog, tmp_path):
    async def work():
        before = asyncio.all_tasks()
        task = asyncio.ensure_future(dpctl.run('/bin/sh', ['-c', 'exec sleep 60'], [], str(tmp_path), None, 60, 1000))
        await asyncio.sleep(0.3)
        for each in asyncio.all_tasks() - before:
            each.cancel()
        assert isinstance((await asyncio.gather(task, return_exceptions=True))[0], asyncio.CancelledError)
        gc.collect()
    run(work(), 20)
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
