# SPDX-License-Identifier: Apache-2.0
"""What ofqos-web makes of switches that behave strangely: stand-ins, without a browser.  Needs no root."""
import asyncio
import struct
import sys

from support.app import PACKAGE
from support.fakeswitch import BARRIER, MULTIPART, StandIn, message, run, until

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


def port_status(number):
    return message(12, 0, struct.pack('!B7x', 0) + struct.pack('!I4x6s2x16s8I', number, bytes(6), b'eth', *[0] * 8))


def test_one_switch_floods():
    """It tells of ever more ports: what is kept of it is bounded, and the others' events stay."""
    async def work():
        net = Network(8, 0.05, {}, [])
        async with StandIn(1) as loud, StandIn(2) as quiet, serving(net, [loud.address, quiet.address]):
            viewer = net.hub.enter(('events',))
            await until(lambda: texts(net).count('the switch is connected') == 2)
            for at in range(0, 20_000, 1000):
                loud.say(b''.join(port_status(n) for n in range(at, at + 1000)))
                await asyncio.sleep(0.01)
            quiet.say(port_status(7))
            await until(lambda: any(e['dp'][-1] == '2' and e['kind'] == 'port' for e in net.hub.happened))
            assert len(net.watches[1].ports) < 100 and len(net.hub.happened) <= 500 and len(viewer.news) <= 64
            assert [e for e in net.hub.happened if e['dp'][-1] == '2' and 'connected' in e['text']]
    run(work())


def test_events_of_many_switches():
    """The one with the most events loses its own."""
    async def work():
        net = Network(8, 0.05, {}, [])
        net.hub.tell('good', 'switch', 'of the first', dp='1')
        for n in range(600):
            net.hub.tell('info', 'port', str(n), dp=f'{2 + n % 20}')
        assert len(net.hub.happened) == 500 and 'of the first' in texts(net)
    run(work())
