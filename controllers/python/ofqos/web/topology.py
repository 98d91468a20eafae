# SPDX-License-Identifier: Apache-2.0
"""Links between switches, from another service."""
from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp

from .network import Network, links_of

MOST, EVERY = 4 << 20, 5.0      # bytes, seconds


async def _whole(stream: Any, most: int) -> bytes:
    """A body; read() gives what has come so far only.  ValueError: it is too long."""
    data = bytearray()
    while piece := await stream.read(most):
        data += piece
        if len(data) > most:
            raise ValueError(f'more than {most} bytes')
    return bytes(data)


async def follow(url: str, net: Network) -> None:
    """Links as ofqos-reserve (or whoever answers alike) knows them; while it is away, the last ones."""
    timeout = aiohttp.ClientTimeout(total=EVERY)
    said = ''
    async with aiohttp.ClientSession(timeout=timeout) as session:
        while True:
            try:
                async with session.get(url) as answer:
                    data = await _whole(answer.content, MOST)
                net.set_links(links_of(json.loads(data)), 'lldp')
                why = ''
            except (aiohttp.ClientError, asyncio.TimeoutError, OSError, RecursionError, ValueError) as e:
                why = f'no topology from {url}: {e or type(e).__name__}'
            if why and why != said:
                net.hub.tell('warn', 'topology', why)
            said = why
            await asyncio.sleep(EVERY)
