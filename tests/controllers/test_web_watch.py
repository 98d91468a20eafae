# SPDX-License-Identifier: Apache-2.0
"""What ofqos-web makes of switches that behave strangely: stand-ins, without a browser.  Needs no root."""
import asyncio
import json
import struct
import sys
import tempfile
from types import SimpleNamespace

import pytest

from support.app import PACKAGE
from support.fakeswitch import BARRIER, MULTIPART, Standing, StandIn, message, run, until
from support.longlists import LongLists
from support.webtree import patched

sys.path.append(PACKAGE)
from ofqos.channel import Limits  # noqa: E402
from ofqos.history.recorder import Recorder  # noqa: E402
from ofqos.history.sample import QUEUE_OUT, SENDS, Key  # noqa: E402
from ofqos.switches import Switches  # noqa: E402
from ofqos.web import add, tree  # noqa: E402
from ofqos.web.change import Bad, Desk, Profiles  # noqa: E402
from ofqos.web.hub import View  # noqa: E402
from ofqos.web.network import Link, Network  # noqa: E402
from ofqos.web.relay import Failed  # noqa: E402
from ofqos.web.window import NOTHING, Window, cut, difference, parse  # noqa: E402


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
                assert net.hub.enter(View(('network',)))
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
            viewer = net.hub.enter(View(('events',)))
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


# ------------------------------------------------------------------------- windows and differences

def test_a_difference_makes_the_new_of_the_old():
    """As the page (static/api.js) puts it together."""
    views = [{'a': 1, 'rows': [{'n': 1, 'v': None}, {'n': 2, 'v': 3.0}], 'up': True}, {'a': 1, 'rows': [{'n': 1, 'v': 4}, {'n': 2, 'v': 3.0}], 'up': True},
             {'a': None, 'rows': [{'n': 1, 'v': 4}], 'up': 1}, {'a': {}, 'rows': [], 'up': False}, {'a': {'x': [1]}, 'rows': [[]], 'up': False}, {'b': 1}]
    for old in views:
        for new in views:
            step = difference(old, new)
            assert (step is NOTHING) == (old is new)
            if old is not new:
                assert patched(old, json.loads(json.dumps(step))) == new, (old, new, step)
    assert difference(views[0], views[1]) == {'rows': {'0': {'v': 4}}}


def test_windows():
    assert parse('port', {'first': '70', 'sort': 'delay', 'find': ' User '}) == Window(70, 0, 60, 'user', 'delay')
    assert parse('port', {'sort': 'tree'}).sort == ''
    for words, said in (({'first': '-1'}, 'first is a number from 0'), ({'rows': '101'}, 'rows is a number from 1 to 100'),
                        ({'sort': 'x'}, 'sort is one of tree, name, rate'), ({'find': 'x' * 65}, 'find has at most 64'),
                        ({'rows': '１'}, 'rows is a number')):
        with pytest.raises(ValueError, match=said):
            parse('port', words)
    assert cut('abcdef', 4, Window(rows=3)) == {'rows': ['d', 'e', 'f'], 'first': 3, 'total': 6}
    assert cut('', 4, Window()) == {'rows': [], 'first': 0, 'total': 0}


PORT = ('port', f'{1:016x}', '1')


def test_ten_thousand_queues():
    """A view is below 50 kB, what differs below that; rows, search and order are the server's."""
    async def work():
        net = Network(8, 0.05, {}, [])
        with Standing(LongLists(10_000)) as switch:
            async with serving(net, [switch.address], limits=Limits(seconds=30, probe=60)):
                viewer = net.hub.enter(View(PORT))
                await until(lambda: 1 in net.watches and net.watches[1].look_before)
                whole = await net.hub.next(viewer)
                assert 'event: view' in whole and len(whole) < 50_000, len(whole)
                show = lambda **words: net.render(View(PORT, parse('port', words)))['trees'][0]
                assert [n['id'] for n in show()['nodes']] == list(range(60)) and show()['total'] == 10_001
                end = show(first=9_990)
                assert end['first'] == 9_941 and [n['id'] for n in end['nodes']][-1] == 10_000
                found = show(find='user-777')
                assert [n['name'] for n in found['nodes']] == ['user-777', *(f'user-777{i}' for i in range(10))] and found['total'] == 11
                assert {n['id'] % 97 for n in show(sort='rate')['nodes']} == {96}
                assert {n['delay_us'] for n in show(sort='delay')['nodes']} == {9_900}
                assert {n['id'] % 50 for n in show(sort='dropped')['nodes']} == {0}
                assert show()['nodes'][0]['backlog'] == 200 * 20 * 1000
                look = net.watches[1].look
                await until(lambda: net.watches[1].look is not look)
                step = await net.hub.next(viewer)
                assert step.startswith('event: difference') and len(step) < 20_000, len(step)
                net.hub.move(viewer, parse('port', {'first': '5000', 'rows': '20'}))
                moved = json.loads((await net.hub.next(viewer)).partition('data: ')[2])
                assert [n['id'] for n in moved['trees'][0]['nodes']] == list(range(5000, 5020))
                net.hub.leave(viewer)
                net.hub.move(viewer, parse('port', {}))             # it has gone: nothing is kept of it
                assert not net.hub.views() and len(net.hub) == 0
    run(work(), 120)


def test_two_hundred_switches():
    """The whole picture, and the first rows of the tables, are below 50 kB."""
    async def work():
        net = Network(8, 0.05, {f'{n:016x}': f'switch-{n}' for n in range(200)}, [Link((n, 1), (n // 5, n + 2), 10**8) for n in range(1, 200)])
        made = net.render(View(('network',)))
        assert len(json.dumps(made, separators=(',', ':'))) < 50_000
        assert len(made['picture']['switches']) == 200 and len(made['switches']) == 60 and made['total'] == 200
        found = net.render(View(('network',), parse('network', {'find': 'switch-19'})))
        assert found['total'] == 11 and found['links_total'] == 16 and len(found['picture']['switches']) == 200
        assert [s['name'] for s in found['switches']][:2] == ['switch-19', 'switch-190']
    run(work())


def test_history_asks_without_a_viewer():
    """Nobody looks: the switch is asked for history alone, and its queues are in the file."""
    async def work():
        net = Network(8, 0.05, {}, [])
        with tempfile.TemporaryDirectory() as directory, Standing(LongLists(20)) as switch:
            net.recorder = Recorder(f'{directory}/history', 64, lambda *_: None, every=0.1)
            async with serving(net, [switch.address]):
                net.recorder.start()

                async def samples():
                    return await net.recorder.ask(lambda store: [dict(zip(f.keys, f.packed.rows())) for f in store.read(f'{1:016x}', False, 0, 1e12)])
                while len(await samples()) < 3:
                    await asyncio.sleep(0.05)
                found = (await samples())[-1]
                assert found[Key(1, QUEUE_OUT, 10)][0] % 10_000 == 0 and found[Key(1, QUEUE_OUT, 10)][4] == 1000
                assert found[Key(1, QUEUE_OUT, 10)][5:] == [11_000, 12_000] and Key(1, SENDS) in found
                assert net.recorder.names(f'{1:016x}')[Key(1, QUEUE_OUT, 10)] == 'user-10'
                assert net.watches[1].look is None or net.recorder.due(f'{1:016x}') >= 0
            await net.recorder.end()
    run(work())


class Refusing:
    """dpctl: it plans rules, and does none."""

    async def run(self, channel, words, options=(), changes=False, files=None):
        if not changes:
            return '{"steps": ["flow-mod"]}'
        raise Failed('dpctl: qos-map: the table is full\nusage: ...')


def test_a_rule_that_is_refused_takes_its_queue_back(monkeypatch):
    """The queue was made when the switch refuses the flows: both or none."""
    committed = []

    async def commit(requests):
        committed.extend(str(r) for r in requests)

    async def no_queues(channel, port):
        return tree.look(0.0, [], [], [])

    async def work():
        net = Network(8, 0.05, {}, [])
        port = SimpleNamespace(name='eth1', speed=0)
        net.watches[1] = SimpleNamespace(name='one', ports={1: port}, channel=SimpleNamespace(commit=commit))
        monkeypatch.setattr(add, 'dump', no_queues)
        desk = Desk(net, Profiles(None), Refusing())
        with pytest.raises(Bad, match='^the table is full$') as said:
            await add.Adder(desk).queue(f'{1:016x}', add.New(1, 'out', 10, 0, '', '1mbit', '', 'udp=5001'), False, 'me')
        assert said.value.field == 'rule' and not desk.changes
        assert committed == ['qos-htb cmd=add,port=1,class=10,rate=1mbit', 'qos-htb cmd=del,port=1,class=10']
    run(work())
