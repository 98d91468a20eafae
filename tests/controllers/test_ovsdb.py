# SPDX-License-Identifier: Apache-2.0
"""The OVSDB server without a switch: its stream, values, operations, monitors; and what rows of QoS mean."""
import asyncio
import json
import os
import random
import struct
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from support import app, fakeswitch  # noqa: E402

sys.path.insert(0, app.PACKAGE)

from ofqos.ovsdb import database, jsonrpc, model, monitors, operations, schema, server, session  # noqa: E402
from ofqos.channel import Limits as ChannelLimits  # noqa: E402
from ofqos.switches import Switches  # noqa: E402
from ofqos.ovsdb.bridges import Bridges  # noqa: E402
from ofqos.ovsdb.rows import Rows, View, new_id  # noqa: E402
from ofqos.request import Request  # noqa: E402

SCHEMA = schema.open_vswitch()


# ------------------------------------------------------------------------------- the stream

def random_json(r, depth=0):
    kind = r.randrange(7 if depth < 4 else 5)
    if kind == 5:
        return [random_json(r, depth + 1) for _ in range(r.randrange(4))]
    if kind == 6:
        return {random_text(r): random_json(r, depth + 1) for _ in range(r.randrange(4))}
    return [None, True, r.randrange(-1 << 63, 1 << 63), r.random(), random_text(r)][kind]


def random_text(r):
    return ''.join(r.choice('"\\{}[]:, aä€😀\n\t/u') for _ in range(r.randrange(8)))


@pytest.mark.parametrize('seed', range(40))
def test_messages_come_out_however_the_stream_is_cut(seed):
    r = random.Random(seed)
    sent = [{'id': i, 'params': random_json(r)} for i in range(r.randrange(1, 8))]
    data = b''.join(r.choice((b'', b' ', b'\n\t')) + json.dumps(m, ensure_ascii=bool(r.randrange(2))).encode()
                    for m in sent)
    stream, found = jsonrpc.Stream(), []
    while data:
        n = r.randrange(1, 1 + r.choice((1, 5, 100)))
        found += stream.feed(data[:n])
        data = data[n:]
    assert found == sent


@pytest.mark.parametrize('seed', range(40))
def test_damaged_streams_end_in_an_error_of_their_own(seed):
    r = random.Random(seed)
    data = bytearray(b''.join(json.dumps({'id': i, 'params': random_json(r)}).encode() for i in range(6)))
    for _ in range(r.randrange(1, 6)):
        data[r.randrange(len(data))] = r.randrange(256)
    stream = jsonrpc.Stream(10_000)
    try:
        for at in range(0, len(data), 7):
            assert all(isinstance(m, dict) for m in stream.feed(bytes(data[at:at + 7])))
    except jsonrpc.BadStream as e:
        assert str(e)


@pytest.mark.parametrize('data, word', [
    (b'[]', 'object'), (b'x', 'object'), (b'{"a":NaN}', 'NaN'), (b'{"a":1e999}', 'large'), (b'{"a":' + b'9' * 500 + b'}', 'long'),
    (b'{"a":' + b'[' * 40, 'deeper'), (b'{"a":"' + b'x' * 2000, 'more than'), (b'{"a":"\xff"}', 'JSON'), (b'{"a" 1}', 'JSON'),
    (b'}', 'object')])
def test_what_no_message_is(data, word):
    with pytest.raises(jsonrpc.BadStream, match=word):
        jsonrpc.Stream(1000).feed(data)


def test_bytes_are_looked_at_once():
    stream, big = jsonrpc.Stream(), json.dumps({'a': '\\"' * 200_000}).encode()
    found = []
    for at in range(0, len(big), 100):
        found += stream.feed(big[at:at + 100])
    assert len(found) == 1


# ------------------------------------------------------------------------------- operations

class Db:
    """transact(*operations) -> results"""

    def __init__(self):
        self.made = None

    def __call__(self, *operations, owns=lambda name: False):
        return asyncio.run(self.later(*operations, owns=owns))

    async def later(self, *operations, owns=lambda name: False):
        made = database.Database(SCHEMA)
        if self.made:
            made.rows = self.made
        self.made = made.rows
        return await made.transact(list(operations), owns)


@pytest.fixture
def db():
    made = Db()
    made.made = Rows(SCHEMA)
    view = View(made.made)
    view.insert('Open_vSwitch', new_id(), {})
    made.made.apply(view.finish())
    return made


def queue(name, **config):
    return {'op': 'insert', 'table': 'Queue', 'uuid-name': name,
            'row': {'other_config': ['map', [[k.replace('_', '-'), v] for k, v in config.items()]]}}


def all_of(table, *columns):
    return {'op': 'select', 'table': table, 'where': [], **({'columns': list(columns)} if columns else {})}


def test_insert_select_update_mutate_delete(db):
    made = db({'op': 'insert', 'table': 'QoS', 'row': {'type': 'linux-htb', 'queues': ['map', [[1, ['named-uuid', 'q']]]]}},
              queue('q', max_rate='5'), {'op': 'comment', 'comment': 'both'}, {'op': 'commit', 'durable': False})
    assert [set(m) for m in made] == [{'uuid'}, {'uuid'}, set(), set()]
    ref = made[1]['uuid']
    rows = db(all_of('QoS', 'type', 'queues'))[0]['rows']
    assert rows == [{'type': 'linux-htb', 'queues': ['map', [[1, ref]]]}]
    assert db({'op': 'update', 'table': 'Queue', 'where': [['_uuid', '==', ref]], 'row': {'dscp': 3}},
              {'op': 'mutate', 'table': 'Queue', 'where': [['dscp', '==', 3]], 'mutations': [
                  ['dscp', '+=', 4], ['other_config', 'insert', ['map', [['max-rate', '7'], ['min-rate', '1']]]],
                  ['other_config', 'delete', ['set', ['nothing']]]]},
              all_of('Queue', 'dscp', 'other_config')) == [
        {'count': 1}, {'count': 1},
        {'rows': [{'dscp': 7, 'other_config': ['map', [['max-rate', '5'], ['min-rate', '1']]]}]}]
    refused = db({'op': 'delete', 'table': 'Queue', 'where': []})
    assert refused[0] == {'count': 1} and refused[1]['error'] == 'referential integrity violation'
    assert db({'op': 'delete', 'table': 'QoS', 'where': []}, {'op': 'delete', 'table': 'Queue', 'where': []}) == [
        {'count': 1}, {'count': 1}]
    assert db(all_of('Queue'), all_of('QoS')) == [{'rows': []}] * 2


@pytest.mark.parametrize('operation, error', [
    ({'op': 'abort'}, 'aborted'), ({'op': 'commit', 'durable': True}, 'not supported'),
    ({'op': 'assert', 'lock': 'mine'}, 'not owner'), ({'op': 'fly'}, 'syntax error'), (7, 'syntax error'),
    ({'op': 'select', 'table': 'Nothing', 'where': []}, 'syntax error'), ({'op': 'select', 'table': 'QoS'}, 'syntax error'),
    ({'op': 'select', 'table': 'QoS', 'where': [['type', '~', 'x']]}, 'syntax error'),
    ({'op': 'select', 'table': 'QoS', 'where': [['type', '<', 'x']]}, 'syntax error'),
    ({'op': 'select', 'table': 'QoS', 'where': [], 'columns': ['type', 'type']}, 'syntax error'),
    ({'op': 'select', 'table': 'QoS', 'where': [['type', ['x'], 'y']]}, 'syntax error'),
    ({'op': 'insert', 'table': 'Queue', 'row': {'dscp': 64}}, 'constraint violation'),
    ({'op': 'insert', 'table': 'Queue', 'row': {'dscp': True}}, 'syntax error'),
    ({'op': 'insert', 'table': 'Queue', 'row': {'dscp': ['set', [1, 2]]}}, 'constraint violation'),
    ({'op': 'insert', 'table': 'Queue', 'row': {'other_config': ['map', [['a', 'b'], ['a', 'c']]]}}, 'syntax error'),
    ({'op': 'insert', 'table': 'Queue', 'row': {'other_config': ['map', [['a\0', 'b']]]}}, 'syntax error'),
    ({'op': 'insert', 'table': 'Queue', 'row': {'other_config': ['map', [['\ud800', 'b']]]}}, 'syntax error'),
    ({'op': 'insert', 'table': 'Queue', 'row': {'_uuid': ['uuid', str(new_id())]}}, 'constraint violation'),
    ({'op': 'insert', 'table': 'Queue', 'uuid-name': 5, 'row': {}}, 'duplicate uuid-name'),
    ({'op': 'insert', 'table': 'QoS', 'row': {'queues': ['map', [[1, ['named-uuid', 'no']]]]}}, 'syntax error'),
    ({'op': 'mutate', 'table': 'Open_vSwitch', 'where': [], 'mutations': [['next_cfg', '/=', 0]]}, 'domain error'),
    ({'op': 'mutate', 'table': 'Open_vSwitch', 'where': [], 'mutations': [['next_cfg', '-=', 1 << 62],
                                                                          ['next_cfg', '*=', 4]]}, 'range error'),
    ({'op': 'mutate', 'table': 'Open_vSwitch', 'where': [], 'mutations': [['next_cfg', 'insert', 4]]}, 'syntax error'),
    ({'op': 'wait', 'table': 'QoS', 'where': [], 'until': '!=', 'rows': [], 'timeout': 0}, 'timed out'),
    ({'op': 'wait', 'table': 'QoS', 'where': [], 'until': '<', 'rows': []}, 'syntax error')])
def test_errors_as_the_rfc_names_them(db, operation, error):
    before = db(all_of('Queue'), all_of('Open_vSwitch'))
    results = db({'op': 'comment', 'comment': ''}, queue('q'), operation, {'op': 'abort'})
    assert results[2]['error'] == error and results[2]['details'] and results[3:] == [None]
    assert db(all_of('Queue'), all_of('Open_vSwitch')) == before


@pytest.mark.parametrize('operations, error', [
    ([{'op': 'insert', 'table': 'Open_vSwitch', 'row': {}}], 'constraint violation'),
    ([{'op': 'insert', 'table': 'Bridge', 'row': {'name': 'b'}},
      {'op': 'update', 'table': 'Open_vSwitch', 'where': [], 'row': {'cur_cfg': 3}}], 'constraint violation'),
    ([{'op': 'insert', 'table': 'QoS', 'row': {'queues': ['map', [[1, ['uuid', str(new_id())]]]]}}],
     'referential integrity violation')])
def test_what_only_the_commit_finds(db, operations, error):
    results = db(*operations)
    assert len(results) == len(operations) + 1 and results[-1]['error'] == error


def test_rows_that_nothing_names_go(db):
    assert db({'op': 'insert', 'table': 'Bridge', 'row': {'name': 'b'}})[0].keys() == {'uuid'}
    assert db(all_of('Bridge')) == [{'rows': []}]


def test_a_wait_ends_with_the_change_that_it_waits_for():
    async def both():
        made = database.Database(SCHEMA)
        waits = asyncio.ensure_future(made.transact([
            {'op': 'wait', 'table': 'QoS', 'where': [], 'columns': ['type'], 'until': '==', 'rows': [{'type': 'x'}]},
            all_of('QoS', 'type')]))
        await asyncio.sleep(0)
        await made.transact([{'op': 'insert', 'table': 'QoS', 'row': {'type': 'y'}}])
        await made.transact([{'op': 'update', 'table': 'QoS', 'where': [], 'row': {'type': 'x'}}])
        return await asyncio.wait_for(waits, 10)
    assert asyncio.run(both()) == [{}, {'rows': [{'type': 'x'}]}]


# --------------------------------------------------------------------------------- monitors

def apply_old(table, updates):
    for ref, of in updates.get('QoS', {}).items():
        if 'new' in of:
            table[ref] = of['new']
        else:
            del table[ref]


def apply_new(table, updates):
    for ref, of in updates.get('QoS', {}).items():
        if 'delete' in of:
            del table[ref]
        for kind in ('initial', 'insert'):
            if kind in of:
                table[ref] = of[kind]
        for name, value in of.get('modify', {}).items():
            old = table[ref][name]
            if name == 'other_config':
                pairs, changed = dict(old[1]), dict(value[1])
                for k, v in changed.items():
                    if pairs.get(k) == v:
                        del pairs[k]
                    else:
                        pairs[k] = v
                table[ref][name] = ['map', sorted([k, v] for k, v in pairs.items())]
            else:
                table[ref][name] = value


@pytest.mark.parametrize('seed', range(20))
def test_both_kinds_of_updates_come_to_what_there_is(seed):
    """update's new values, and update2's differences, as their clients apply them"""
    r, made = random.Random(seed), database.Database(SCHEMA)
    wants = {'QoS': [{'columns': ['type', 'other_config']}]}
    plain, delta = monitors.Monitor(SCHEMA, wants, False), monitors.Monitor(SCHEMA, wants, True)
    one, two = {}, {}
    made.listeners.add(lambda changes: (apply_old(one, plain.updates(changes)), apply_new(two, delta.updates(changes))))

    async def run():
        for _ in range(60):
            config = ['map', [[k, r.choice('123')] for k in 'abc' if r.randrange(2)]]
            where = [['type', '==', r.choice('xyz')]]
            await made.transact([r.choice((
                {'op': 'insert', 'table': 'QoS', 'row': {'type': r.choice('xyz'), 'other_config': config}},
                {'op': 'update', 'table': 'QoS', 'where': where, 'row': {'type': r.choice('xyz'), 'other_config': config}},
                {'op': 'mutate', 'table': 'QoS', 'where': where, 'mutations': [['other_config', 'delete', ['set', ['a']]]]},
                {'op': 'delete', 'table': 'QoS', 'where': [*where, ['other_config', 'includes', config]]}))])
    asyncio.run(run())
    wanted = {ref: of['new'] for ref, of in plain.initial(made.rows).get('QoS', {}).items()}
    assert one == wanted and two == wanted
    assert {ref: of['initial'] for ref, of in delta.initial(made.rows).get('QoS', {}).items()} == wanted


def test_a_condition_makes_rows_come_and_go(db):
    made = database.Database(SCHEMA)
    monitor = monitors.Monitor(SCHEMA, {'QoS': [{'columns': ['type'], 'where': [['type', '==', 'x']]}]}, True)
    told = []
    made.listeners.add(lambda changes: told.append(monitor.updates(changes)))

    async def run():
        for kind in 'yxy':
            await made.transact([{'op': 'insert', 'table': 'QoS', 'row': {'type': kind}}] if not told else [
                {'op': 'update', 'table': 'QoS', 'where': [], 'row': {'type': kind}}])
    asyncio.run(run())
    assert [list(next(iter(t['QoS'].values()))) if t else [] for t in told] == [[], ['insert'], ['delete']]


@pytest.mark.parametrize('wants', [
    [], {'QoS': 3}, {'No': {}}, {'QoS': {'columns': ['no']}}, {'QoS': {'select': {'x': True}}}, {'QoS': {'what': 1}},
    {'QoS': [{'columns': ['type']}, {'columns': ['type']}]}, {'QoS': {'where': []}}])
def test_monitors_that_are_refused(wants):
    with pytest.raises(schema.Failed):
        monitors.Monitor(SCHEMA, wants, False)


# ------------------------------------------------------------------------------ connections

class Peer:
    def __init__(self, reader, writer):
        self.reader, self.writer, self.stream, self.heard = reader, writer, jsonrpc.Stream(), []

    def send(self, method, *params, number=1):
        self.writer.write(jsonrpc.encode({'id': number, 'method': method, 'params': list(params)}))

    async def hear(self):
        while not self.heard:
            try:
                data = await asyncio.wait_for(self.reader.read(65536), 10)
            except ConnectionError:
                return None
            if not data:
                return None
            self.heard += self.stream.feed(data)
        return self.heard.pop(0)

    async def ask(self, method, *params, number=1):
        self.send(method, *params, number=number)
        return await self.hear()


def talk(work, limits=session.LIMITS, peers=1):
    async def run():
        made = database.Database(SCHEMA)
        serves = server.Server(made, ['tcp:127.0.0.1:0'], limits=limits)
        await serves.start()
        try:
            opened = [Peer(*await asyncio.open_connection('127.0.0.1', serves.ports[0])) for _ in range(peers)]
            await asyncio.wait_for(work(*opened), 30)
            for peer in opened:
                peer.writer.close()
        finally:
            await serves.stop()
    asyncio.run(run())


def test_methods():
    async def work(peer):
        assert (await peer.ask('list_dbs'))['result'] == ['Open_vSwitch']
        assert (await peer.ask('get_schema', 'Open_vSwitch'))['result']['tables'].keys() == SCHEMA.tables.keys()
        assert (await peer.ask('get_schema', '_Server'))['error']['error'] == 'unknown database'
        assert (await peer.ask('monitor_cond_since', 'Open_vSwitch', None, {}, '0'))['error'] == 'unknown method'
        assert await peer.ask('echo', 1, 'x', number='n') == {'id': 'n', 'result': [1, 'x'], 'error': None}
        assert (await peer.ask('monitor', 'Open_vSwitch', ['m'], {'QoS': {}}))['result'] == {}
        assert (await peer.ask('monitor', 'Open_vSwitch', ['m'], {'QoS': {}}))['error']['error'] == 'syntax error'
        peer.send('transact', 'Open_vSwitch', {'op': 'insert', 'table': 'QoS', 'row': {'type': 'a'}}, number=5)
        update, reply = await peer.hear(), await peer.hear()
        assert (update['method'], update['params'][0], update['id']) == ('update', ['m'], None)
        assert reply['id'] == 5 and list(update['params'][1]['QoS']) == [reply['result'][0]['uuid'][1]]
        assert (await peer.ask('monitor_cancel', ['m']))['result'] == {}
        assert (await peer.ask('monitor_cancel', ['m']))['error']['error'] == 'unknown monitor'
    talk(work)


def test_cancel_and_what_is_under_way():
    async def work(peer):
        peer.send('transact', 'Open_vSwitch', {'op': 'wait', 'table': 'QoS', 'where': [], 'until': '!=', 'rows': []}, number=9)
        peer.send('echo', number=2)
        assert (await peer.hear())['id'] == 2                   # a wait keeps nobody up
        assert (await peer.ask('transact', 'Open_vSwitch', number=9))['error']['error'] == 'syntax error'
        peer.writer.write(jsonrpc.notification('cancel', [9]))
        assert await peer.hear() == {'id': 9, 'result': None, 'error': 'canceled'}
    talk(work)


def test_locks():
    async def work(one, two):
        assert (await one.ask('lock', 'l'))['result'] == {'locked': True}
        assert (await two.ask('lock', 'l'))['result'] == {'locked': False}
        assert (await two.ask('transact', 'Open_vSwitch', {'op': 'assert', 'lock': 'l'}))['result'][0]['error'] == 'not owner'
        assert (await one.ask('unlock', 'l'))['result'] == {}
        assert (await two.hear())['method'] == 'locked'
        assert (await two.ask('transact', 'Open_vSwitch', {'op': 'assert', 'lock': 'l'}))['result'] == [{}]
        assert (await one.ask('steal', 'l'))['result'] == {'locked': True}
        assert (await two.hear())['method'] == 'stolen'
        one.writer.close()
        assert (await two.hear())['method'] == 'locked'
    talk(work, peers=2)


def test_bounds():
    small = session.Limits(monitors=1, locks=1, clients=2, unread=4000)

    async def work(one, two):
        assert (await one.ask('monitor', 'Open_vSwitch', 1, {}))['result'] == {}
        assert (await one.ask('monitor', 'Open_vSwitch', 2, {}))['error']['error'] == 'resources exhausted'
        assert (await one.ask('lock', 'a'))['result']
        assert (await one.ask('lock', 'b'))['error']['error'] == 'resources exhausted'
        port = one.writer.get_extra_info('peername')[1]
        third = Peer(*await asyncio.open_connection('127.0.0.1', port))
        assert await third.ask('echo') is None
        two.writer.write(b'{"id": 1, "method": 3}')
        assert await two.hear() is None
        assert await one.ask('echo', 'x' * 20_000_000) is None      # 8 MB are the most
    talk(work, small, 2)


def test_too_many_operations(db):
    results = db(*[{'op': 'abort'}] * 20_001)
    assert results[0]['error'] == 'resources exhausted' and results[1] is None and len(results) == 20_001


LOOKS = {'select': {}, 'update': {'row': {'dscp': 7}}, 'delete': {},
         'mutate': {'mutations': [['external_ids', 'insert', ['map', [['a', 'b' * 1000]]]]] * 30},
         'wait': {'until': '!=', 'rows': [{'dscp': 9}]}}


@pytest.mark.parametrize('op', LOOKS)
@pytest.mark.parametrize('where', [[], [['dscp', '==', 5]] * 1000], ids=['all', 'none'])
def test_too_much_work(db, op, where, monkeypatch):
    """Few bytes that ask for much: before, 500 selects of 2,000 rows took the service for seconds, 20,000 for minutes."""
    db(*[{'op': 'insert', 'table': 'Queue', 'row': {}}] * 100)
    asked = {'op': op, 'table': 'Queue', 'where': where, **LOOKS[op]}
    monkeypatch.setattr(operations, 'MOST_WORK', 250_000)
    assert 'error' not in db(asked)[0]
    many = {'op': 'insert', 'table': 'Queue', 'row': {}}, asked
    results = db(*many * 2000)
    assert {'error': 'resources exhausted'}.items() <= next(r for r in results if r and 'error' in r).items()
    assert len(db({'op': 'select', 'table': 'Queue', 'where': []})[0]['rows']) == (0 if op == 'delete' and not where else 100)


def test_others_are_answered_during_a_long_transaction():
    async def work(one, two):
        await one.ask('transact', 'Open_vSwitch', *[{'op': 'insert', 'table': 'Queue', 'row': {}}] * 1000)
        one.send('transact', 'Open_vSwitch', *[{'op': 'select', 'table': 'Queue', 'where': [], 'columns': []}] * 500)
        two.send('echo')
        heard = [asyncio.ensure_future(peer.hear()) for peer in (one, two)]
        first, _ = await asyncio.wait(heard, return_when=asyncio.FIRST_COMPLETED)
        assert first == {heard[1]}
        assert len((await heard[0])['result']) == 500
    talk(work, session.Limits(), 2)


def test_who_is_silent_is_asked_and_let_go():
    async def work(peer):
        assert (await peer.hear())['method'] == 'echo'
        assert await peer.hear() is None
    talk(work, session.Limits(probe=0.2))


# -------------------------------------------------------------------------- what rows mean

GIGABIT = 10 ** 9


def want(kind, queues=None, speed=GIGABIT, **config):
    return model.wanted(kind, {k.replace('_', '-'): v for k, v in config.items()},
                        {n: ({k.replace('_', '-'): v for k, v in of.items()}, False) for n, of in (queues or {}).items()}, speed)


def test_rates_as_open_vswitch_has_them():
    tree = want('linux-htb', {0: {}, 1: {'min_rate': '800000'}, 2: {'max_rate': '500000', 'burst': '800000', 'priority': '1'},
                              3: {'min_rate': '5000000'}, 4: {'min_rate': '7', 'max_rate': '3', 'burst': '80'}},
                max_rate='1000000')
    assert (tree.kind, tree.total, tree.default) == ('htb', 1_000_000, model.DEFAULT)
    assert tree.queues == {
        model.DEFAULT: model.Queue(12_000, 1_000_000), 1: model.Queue(800_000, 1_000_000),
        2: model.Queue(12_000, 500_000, 1, 100_000), 3: model.Queue(1_000_000, 1_000_000), 4: model.Queue(7, 7)}
    assert want('linux-htb').total == GIGABIT and want('') is None
    ranks = want('linux-htb', {n: {'priority': str(p)} for n, p in enumerate((70, 5, 4_000_000_000, 5), 1)}).queues
    assert [q.prio for q in ranks.values()] == [1, 0, 2, 0]


@pytest.mark.parametrize('kind, queues, config, word', [
    ('linux-tbf', {}, {}, 'no QoS type'), ('linux-htb', {}, {'max_rate': '1m'}, 'whole number'),
    ('linux-htb', {}, {'max_rate': '0'}, 'from 1'), ('linux-htb', {}, {'rate': '5'}, 'means nothing'),
    ('linux-htb', {65519: {}}, {}, 'queue'), ('linux-htb', {1: {'min_rate': '-1'}}, {}, 'queue 1: '),
    ('linux-hfsc', {1: {'burst': '5'}}, {}, 'means nothing'), ('linux-sfq', {1: {}}, {}, 'has no queues'),
    ('linux-noop', {}, {'x': '1'}, 'means nothing'), ('ofqos-htb', {}, {}, 'no scheduler'),
    ('ofqos-pfifo', {}, {'limit': 'x'}, 'ofqos-pfifo'), ('ofqos-pfifo', {}, {'port': '7'}, 'ofqos-pfifo')])
def test_rows_that_mean_nothing(kind, queues, config, word):
    with pytest.raises(schema.Failed, match=word):
        want(kind, queues, **config)


def test_schedulers_without_queues():
    def requests(kind, **config):
        return [str(r) for r in model.plan(2, None, want(kind, **config))]
    assert requests('linux-sfq', perturb='10', quantum='1514') == ['qos-sfq cmd=add,port=2,perturb=10s,quantum=1514b']
    assert requests('linux-fq_codel', target='5000', limit='1000', flows='128') == [
        'qos-fq_codel cmd=add,port=2,limit=1000,target=5ms,flows=128']
    assert requests('linux-codel', interval='100000') == ['qos-codel cmd=add,port=2,interval=100ms']
    assert requests('linux-netem', latency='2000', loss='3') == ['qos-netem cmd=add,port=2,latency=2ms,loss=3%']
    assert requests('ofqos-pfifo', limit='30') == ['qos-pfifo cmd=add,port=2,limit=30']
    assert model.plan(2, model.Tree('htb'), want('linux-noop')) == []
    assert [str(r) for r in model.plan(2, want('linux-sfq'), want('linux-htb'))][0].startswith('qos-none')


class Port:
    """Does what a plan's requests say, and refuses what the switch would."""

    def __init__(self):
        self.tree = None

    def run(self, requests):
        for r in requests:
            assert Request.decode(r.encode()).text() == r.text()
            action, p = r.action, dict(r.params)
            if r.scheduler.name == 'none':
                self.tree = None
            elif r.object == 0:
                assert (action == 0) == (self.tree is None)
                self.tree = model.Tree(r.scheduler.name, self.tree.total if self.tree else GIGABIT,
                                       dict(self.tree.queues) if self.tree else {}, default=r.class_id)
            else:
                assert self.tree and self.tree.kind == r.scheduler.name
                queue = model.Queue(0, 0) if action == 1 else model.Queue(
                    *((p['rate'], p['ceil'], p['prio'], p.get('burst')) if r.scheduler.name == 'htb' else
                      (p['ls'].m2, p['ul'].m2)))
                self._class(r, action, queue)

    def _class(self, r, action, queue):
        if r.class_id == 0:
            self.tree = model.Tree(self.tree.kind, queue.ceil, self.tree.queues, default=self.tree.default)
        elif action == 1:
            del self.tree.queues[r.class_id]
        else:
            old = self.tree.queues.get(r.class_id)
            assert (old is None) == (action == 0) and queue.ceil <= self.tree.total
            if old and queue.burst is None and r.scheduler.name == 'htb':
                queue = model.Queue(queue.rate, queue.ceil, queue.prio, old.burst)
            self.tree.queues[r.class_id] = queue


@pytest.mark.parametrize('seed', range(100))
def test_plans_lead_from_anything_to_anything(seed):
    r, port = random.Random(seed), Port()
    for _ in range(12):
        kind = r.choice(('htb', 'htb', 'hfsc', ''))
        queues = {n: {k: str(r.randrange(1, 3_000_000)) for k in (('min_rate', 'max_rate', 'burst', 'priority') if kind == 'htb'
                                                                 else ('min_rate', 'max_rate')) if r.randrange(2)}
                  for n in r.sample(range(6), r.randrange(6))} if kind else {}
        config = {'max_rate': str(r.randrange(1000, 4_000_000))} if kind and r.randrange(3) else {}
        tree = want(f'linux-{kind}' if kind else '', queues, **config)
        port.run(model.plan(3, port.tree, tree))
        assert port.tree == tree, (port.tree, tree)
        assert model.plan(3, port.tree, tree) == []
        if tree:
            name, config, queues = model.described(tree)
            again = model.wanted(name, config, {n: (of, False) for n, of in queues.items()}, GIGABIT)
            assert again.is_met(tree)


# ------------------------------------------------------------------------------ any request

TEMPLATES = [
    {'op': 'insert', 'table': 'QoS', 'uuid-name': 'a', 'row': {'type': 'x', 'queues': ['map', [[1, ['named-uuid', 'b']]]]}},
    {'op': 'insert', 'table': 'Queue', 'uuid-name': 'b', 'row': {'dscp': 3, 'other_config': ['map', [['k', 'v']]]}},
    {'op': 'update', 'table': 'Queue', 'where': [['dscp', '>=', 3]], 'row': {'dscp': ['set', []]}},
    {'op': 'mutate', 'table': 'Open_vSwitch', 'where': [['_uuid', '!=', ['uuid', '0' * 8 + '-0000' * 3 + '-' + '0' * 12]]],
     'mutations': [['next_cfg', '%=', 7], ['external_ids', 'delete', ['set', ['k']]]]},
    {'op': 'select', 'table': 'QoS', 'where': [['queues', 'includes', ['map', []]]], 'columns': ['_uuid', 'type']},
    {'op': 'wait', 'table': 'QoS', 'where': [], 'columns': ['type'], 'until': '==', 'rows': [{'type': 'x'}], 'timeout': 0},
    {'op': 'delete', 'table': 'QoS', 'where': [['type', 'excludes', 'x']]}, {'op': 'assert', 'lock': 'l'},
]
ODD = [None, True, 0, -1, 1 << 63, 1.5, '', 'x', 'QoS', 'set', 'map', 'uuid', '_uuid', '_version', '==', '<', [], {}, ['set', []],
       ['map', []], ['uuid', 'x'], ['set', ['x', 'x']], ['map', [['a']]], [[]], {'x': 1}, ['named-uuid', 'c'], [['dscp', '==', 1]]]


def damaged(r, value):
    """A copy in which here and there something is another"""
    if r.randrange(25) == 0:
        return r.choice(ODD)
    if isinstance(value, list):
        return [damaged(r, v) for v in value if r.randrange(40)]
    if isinstance(value, dict):
        kept = {k: damaged(r, v) for k, v in value.items() if r.randrange(40)}
        return {**kept, r.choice(['x', 'row', 'where']): r.choice(ODD)} if r.randrange(30) == 0 else kept
    return value


@pytest.mark.parametrize('seed', range(60))
def test_damaged_transactions_end_in_errors_that_have_names(seed):
    r, made = random.Random(seed), database.Database(SCHEMA)
    view = View(made.rows)
    view.insert('Open_vSwitch', new_id(), {})
    made.commit(view)
    known = {'syntax error', 'constraint violation', 'referential integrity violation', 'duplicate uuid-name', 'domain error',
             'range error', 'not owner', 'timed out', 'not supported', 'aborted'}

    async def run():
        for _ in range(40):
            said = [damaged(r, r.choice(TEMPLATES)) for _ in range(r.randrange(1, 6))]
            before = {name: dict(rows) for name, rows in made.rows.tables.items()}
            if any(isinstance(op, dict) and op.get('op') == 'wait' and op.get('timeout', -1) != 0 for op in said):
                continue                                    # it would wait for ever
            results = await made.transact(json.loads(json.dumps(said)))
            errors = [result['error'] for result in results if result and 'error' in result]
            assert len(errors) <= 1 and set(errors) <= known and len(results) - len(said) in (0, len(errors))
            if errors:
                assert made.rows.tables == before
    asyncio.run(run())


@pytest.mark.parametrize('seed', range(20))
def test_damaged_requests_never_stop_the_server(seed):
    r = random.Random(seed)
    requests = [['list_dbs', []], ['get_schema', ['Open_vSwitch']], ['echo', [1]], ['monitor_cancel', ['m']], ['lock', ['l']],
                ['unlock', ['l']], ['steal', ['l']], ['monitor', ['Open_vSwitch', 'm', {'QoS': [{'columns': ['type'], 'select': {
                    'insert': False}}]}]], ['monitor_cond', ['Open_vSwitch', ['n'], {'QoS': [{'where': [['type', '==', 'x'], True]}]}]],
                ['transact', ['Open_vSwitch', *TEMPLATES[:2]]]]

    async def work(peer):
        for number in range(60):
            method, params = r.choice(requests)
            said = damaged(r, params)
            peer.send(method, *(said if isinstance(said, list) else [said]), number=number)
            while (heard := await peer.hear())['id'] != number:
                assert heard['method'] in ('update', 'update2', 'locked', 'stolen')
            assert 'internal error' not in json.dumps(heard['error']), heard
    talk(work)


# ---------------------------------------------------------------------------- many switches

def answers(name, mute):
    """Of a switch with one port and no queues"""
    def answer(_, kind, xid, body):
        if kind in (fakeswitch.MULTIPART, fakeswitch.BARRIER) and mute:
            return b''
        if kind != fakeswitch.MULTIPART:
            return None
        mp, = struct.unpack_from('!H', body)
        if mp == 0xffff:
            return fakeswitch.parts(xid, b'', exp_type=struct.unpack_from('!I', body, 12)[0])
        data = {0: struct.pack('!256s256s256s32s256s', b'', b'', b'1', b'', name.encode()),
                13: struct.pack('!I4x6s2x16s8I', 1, bytes(6), f'{name}p1'.encode(), *[0] * 8),
                4: struct.pack('!I4x12Q2I', 1, *[0] * 14)}[mp]
        return fakeswitch.parts(xid, data, mp)
    return answer


def test_a_stalled_switch_costs_the_others_nothing():
    """It is being looked at, and does not answer."""
    mute = []

    async def work():
        rows = database.Database(schema.open_vswitch())
        said = []
        bridges = Bridges(rows, said.append)
        async with fakeswitch.StandIn(1, answers('fast', [])) as fast, fakeswitch.StandIn(2, answers('slow', mute)) as slow:
            bridges.switches = Switches([fast.address, slow.address], up=bridges.up, down=bridges.down, heard=bridges.heard,
                                        limits=ChannelLimits(seconds=4, probe=30))
            rows.act = bridges.act
            async with bridges.switches:
                await fakeswitch.until(lambda: len(bridges._known) == 2)
                mute.append(True)
                before = len(slow.heard)
                polling = asyncio.ensure_future(bridges.poll(0.05))
                await fakeswitch.until(lambda: len(slow.heard) > before)
                looked = sum(kind == fakeswitch.MULTIPART for kind, *_ in fast.heard)
                for n in range(10):
                    results = await rows.transact([
                        {'op': 'update', 'table': 'Bridge', 'where': [['name', '==', 'fast']],
                         'row': {'external_ids': ['map', [['n', str(n)]]]}}])
                    assert results == [{'count': 1}]
                assert not any('no answer' in text for text in said), 'the others wait for the stalled one'
                mute.clear()
                await fakeswitch.until(lambda: any('no answer within 4 s' in text for text in said))
                await fakeswitch.until(lambda: sum(kind == fakeswitch.MULTIPART for kind, *_ in fast.heard) > looked + 8)
                polling.cancel()
    fakeswitch.run(work())
