# SPDX-License-Identifier: Apache-2.0
"""The end of tasks."""
from __future__ import annotations

import asyncio
from typing import Any, Iterable

AGAIN = 0.2                 # seconds


async def end(tasks: 'Iterable[asyncio.Future[Any]]') -> None:
    """Cancels them until they are over.  Once may go unheard: before Python 3.12 asyncio.wait_for() forgets it when what
    it waits for comes at the same time, and whoever waits for the task's end then waits for ever."""
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=AGAIN)


__all__ = ['end']
