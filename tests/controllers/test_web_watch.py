# SPDX-License-Identifier: Apache-2.0
"""What ofqos-web makes of switches that behave strangely: stand-ins, without a browser.  Needs no root."""
import asyncio
import sys

from support.app import PACKAGE
from support.fakeswitch import BARRIER, MULTIPART, StandIn, run, until

sys.path.append(PACKAGE)
from ofqos.channel import Limits  # noqa: E402
from ofqos.switches import Switches  # noqa: E402
from ofqos.web.network import Network  # noqa: E402


def serving(net, dial=(), listen=(), limits=Limits(seconds=0.5, probe=20)):
    return Switches(dial, listen, up=net.up, down=net.down, heard=net.heard, limits=limits)


def texts(net):
    return [event['text'] for event in net.hub.happened]


def test_a_switch_that_stalled_is_looked_at_again():
    """It is silent for longer than an answer may take, as if it were stopped, and goes on."""
    mute = []

    async def work():
        net = Network(8, 0.05, {}, [])
        async with StandIn(1, lambda s, kind, xid, body: b'' if mute and kind in (MULTIPART, BARRIER) else None) as switch:
            async with serving(net, [switch.address]):
                assert net.hub.enter(('network',))
                await until(lambda: 1 in net.watches and net.watches[1].stats[0])
                mute.append(True)
                await until(lambda: 'the switch is away: no answer within 0.5 s' in texts(net))
                assert not net.show()['switches'][0]['up']
                mute.clear()
                await until(lambda: texts(net).count('the switch is connected') == 2)
                first = net.watches[1].stats[0]
                await until(lambda: net.watches[1].stats[0] > first)
                assert net.show()['switches'][0]['up']
                await asyncio.sleep(0)
    run(work())
