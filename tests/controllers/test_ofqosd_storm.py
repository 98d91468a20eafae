# SPDX-License-Identifier: Apache-2.0
"""ofqosd before two hundred switches that come and go: what it keeps doesn't grow, and people are served meanwhile.

OFQOS_STORM=SECONDS: how long (default 60)."""
import asyncio
import os
import random
import sys
import time

import pytest

from support.app import PACKAGE
from support.daemon import Ofqosd
from support.fakeswitch import MULTIPART, StandIn, message
from support.wait import until

for module, package in ('aiohttp', 'aiohttp'), ('prometheus_client', 'prometheus-client'), ('yaml', 'yaml'):
    pytest.importorskip(module, reason=f'{module} is not installed (Debian: python3-{package})')
sys.path.append(PACKAGE)
from ofqos import users  # noqa: E402

SECONDS, SWITCHES = float(os.environ.get('OFQOS_STORM', '60')), 200
TOKEN, DIGEST = users.made()


def memory(process):
    with open(f'/proc/{process.pid}/status', encoding='ascii') as f:
        found = dict(line.split(':', 1) for line in f)
    return int(found['VmRSS'].split()[0]) / 1024, int(found['Threads'])


async def switch(port, number, over):
    """Connects, stays for a moment, is gone in one of several ways, comes again"""
    while not over.is_set():
        stand_in = StandIn(number, lambda s, kind, xid, body: b'' if kind == MULTIPART else None)    # never an answer
        try:
            task = await stand_in.connect(port)
            await asyncio.wait([task], timeout=random.uniform(0.05, 1.0))
            if random.random() < 0.3:
                stand_in.say(os.urandom(random.choice((1, 7, 8, 40))))      # garbage, or a part of a message
            if random.random() < 0.2:
                for _ in range(50):
                    stand_in.say(message(2, 1, b'x' * 64))                  # echo requests
                await asyncio.sleep(0.05)
            stand_in.drop()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        except OSError:
            await asyncio.sleep(0.1)
        await asyncio.sleep(random.uniform(0, 0.5))


@pytest.mark.long
def test_a_storm_of_connections():
    text = ('switches: {accept: [tcp:127.0.0.1:16653]}\nweb: {}\nhistory: {}\nmetrics: {}\nnetwork: {settle: 0.5}\n'
            'alerts: {hold: 0, webhook: {url: "http://127.0.0.1:1/"}}\n')
    with Ofqosd(text, f'alice: {{token: {DIGEST}, may: see}}\n') as daemon:
        seen, slowest, came = [], 0.0, 0

        async def work():
            nonlocal slowest, came
            over = asyncio.Event()
            tasks = [asyncio.ensure_future(switch(16653, n + 1, over)) for n in range(SWITCHES)]
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                await asyncio.sleep(SECONDS / 30)
                began = time.monotonic()
                await asyncio.to_thread(daemon.ask, 'GET', '/api/view?view=network', TOKEN)
                await asyncio.to_thread(daemon.ask, 'GET', '/metrics', TOKEN)
                slowest = max(slowest, time.monotonic() - began)
                seen.append(memory(daemon.process))
            over.set()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        asyncio.run(work())
        came = len(daemon.events('switch'))
        print(f'\n{SECONDS:g} s, {came} connections: memory {[round(m) for m, _ in seen]} MB, threads {sorted({t for _, t in seen})}, '
              f'slowest page and metrics {slowest:.1f} s')
        third = len(seen) // 3
        assert came > SWITCHES and max(m for m, _ in seen[third:]) < max(m for m, _ in seen[:third]) + 40
        assert max(t for _, t in seen) < 40
        until(lambda: daemon.ask('GET', '/metrics', TOKEN).decode().split('\nofqosd_switches_connected ')[1].split()[0], wanted=lambda n: n == '0.0')
