# SPDX-License-Identifier: Apache-2.0
"""The end of tasks, and of the process."""
from __future__ import annotations

import asyncio
import signal
from typing import Any, Coroutine, Iterable, Set, TypeVar

Made = TypeVar('Made')

AGAIN = 0.2                 # seconds


async def end(tasks: 'Iterable[asyncio.Future[Any]]') -> None:
    """Cancels them until they are over.  Once may go unheard: before Python 3.12 asyncio.wait_for() forgets it when what
    it waits for comes at the same time, and whoever waits for the task's end then waits for ever."""
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=AGAIN)


class Tasks(Set['asyncio.Task[Any]']):
    """Those that nobody waits for, until end()"""

    def spawn(self, work: 'Coroutine[Any, Any, Made]') -> 'asyncio.Task[Made]':
        task = asyncio.get_running_loop().create_task(work)
        self.add(task)
        task.add_done_callback(self.discard)
        return task


def told() -> asyncio.Event:
    """Is set when the process is told to end."""
    over = asyncio.Event()
    for number in signal.SIGTERM, signal.SIGINT:
        asyncio.get_running_loop().add_signal_handler(number, over.set)
    return over


__all__ = ['Tasks', 'end', 'told']
