# SPDX-License-Identifier: Apache-2.0
"""The Python package's own connection to switches: stand-ins, peers that mean harm, the real switch."""
import asyncio
import os
import socket
import ssl
import struct
import sys

import pytest

from support import fakeswitch, pki
from support.fakeswitch import (BARRIER, ECHO, ERROR, FEATURES, MULTIPART, ROLE, StandIn, message, parts, run,
                                until)
from support.topo import REPOSITORY, Switch, Topology, build_directory

sys.path.insert(0, os.path.join(REPOSITORY, 'controllers/python'))

from ofqos import Refused, request, wire  # noqa: E402
from ofqos.address import parse_address  # noqa: E402
from ofqos.channel import Away, Channel, Limits, dial, joined  # noqa: E402
from ofqos.replies import parse_counters, parse_dump  # noqa: E402
from ofqos.switches import Switches, listening_socket  # noqa: E402

QUICK = Limits(seconds=0.5, probe=0.3, answer=200_000, asked=8)
SURE = Limits(seconds=20, probe=20)


# --------------------------------------------------------------------------------- addresses

@pytest.mark.parametrize('text,whole', [
    ('tcp:192.0.2.1', 'tcp:192.0.2.1:6653'), ('tcp:switch:99', 'tcp:switch:99'), ('tls:[2001:db8::1]',
     'tls:[2001:db8::1]:6653'), ('tcp:[::1]:7', 'tcp:[::1]:7'), ('unix:/run/a b', 'unix:/run/a b')])
def test_address(text, whole):
    assert str(parse_address(text)) == whole


@pytest.mark.parametrize('text', ['', 'tcp:', 'tcp', 'unix:', 'udp:a:1', 'tcp:a:b', 'tcp:a:65536', 'tcp:a:-1',
                                  'tcp:::1', 'tcp:[::1', 'tcp:[::1]x', 'tcp:a:١', '192.0.2.1', 'tcp::6653'])
def test_wrong_address(text):
    with pytest.raises(ValueError) as e:
        parse_address(text)
    assert repr(text) in str(e.value)


# --------------------------------------------------------------------------------- one switch

def counters(size):
    """A COUNTERS reply of about so many bytes"""
    entry = struct.pack('!H6xQ8s', 24, 7, b'drop.x')
    return entry * (size // len(entry))


def test_asks():
    """An answer in several parts, several at a time, each to who asked; echo requests are answered."""
    def answer(switch, kind, xid, body):
        if kind == MULTIPART:
            return message(ECHO, 99, b'alive?') + parts(xid, counters(100_000), exp_type=2, size=24_000)
        return None

    async def work():
        async with StandIn(0xabc, answer) as switch:
            channel = await dial(switch.address, limits=SURE)
            assert channel.datapath_id == 0xabc and channel.features.tables == 64
            answers = await asyncio.gather(*(channel.ask(lambda xid: wire.ask(wire.COUNTERS, xid))
                                             for _ in range(5)))
            assert all(parse_counters(joined(replies)) == {'drop.x': 7} and len(replies) == 5 for replies in answers)
            assert sum(kind == 3 and body == b'alive?' for kind, _, body in switch.heard) == 5
            channel.close()
            with pytest.raises(Away, match='closed on this side'):
                await channel.ask(wire.barrier)
    run(work())


def test_errors_and_the_unasked():
    def answer(switch, kind, xid, body):
        if kind == MULTIPART:
            return message(ERROR, xid, struct.pack('!HH', 13, 2) + bytes(8))
        return None

    async def work():
        heard = []
        async with StandIn(1, answer) as switch:
            channel = await dial(switch.address, heard=lambda c, raw: heard.append((c, raw)), limits=SURE)
            with pytest.raises(Refused) as e:
                await channel.ask(wire.ask_dump)
            assert (e.value.type, e.value.code) == (13, 2)
            switch.say(message(10, 0, b'packet-in') + message(19, 77, b'nobody asked'))
            await channel.ask(wire.barrier)
            assert heard == [(channel, message(10, 0, b'packet-in'))]
            channel.close()
    run(work())


def test_commits():
    """In a bundle; the index says which change was refused; an unanswered commit is no success."""
    refuse, silent = [], []

    def answer(switch, kind, xid, body):
        if kind == fakeswitch.EXPERIMENTER and struct.unpack_from('!I', body, 4)[0] == 2301:
            inner = body[16:]
            assert struct.unpack_from('!I', inner, 4)[0] == xid
            if b'\0\0\0\x0b' in inner and refuse:
                return message(ERROR, xid, struct.pack('!HHI', 0xffff, 2, 0x514f5346) + bytes(64) +
                               struct.pack('!I', 16) + b'no such class')
        if kind == fakeswitch.EXPERIMENTER and body[12:14] == b'\0\4' and silent:
            return b''
        return None

    async def work():
        async with StandIn(1, answer) as switch:
            channel = await dial(switch.address, limits=SURE)
            changes = [request('htb', 'add', port=1, class_id=number, rate='1mbit') for number in (10, 11)]
            await channel.commit([])
            await channel.commit(changes)
            refuse.append(True)
            with pytest.raises(Refused, match='no such class') as e:
                await channel.commit(changes)
            assert e.value.index == 1
            refuse.clear()
            silent.append(True)
            with pytest.raises(Away, match='commit'):
                await channel.commit(changes)
            channel.close()
    run(work())


@pytest.mark.parametrize('generation,roles', [(None, []), (41, [(3, 41)])])
def test_only_reads(generation, roles):
    async def work():
        async with StandIn(1) as switch:
            switch.generation = switch.generation if generation is None else generation
            channel = await dial(switch.address, limits=SURE)
            await channel.only_read()
            assert switch.roles == roles
            assert any(kind == fakeswitch.SET_ASYNC and struct.unpack('!6I', body)[:2] == (0, 0)
                       for kind, _, body in switch.heard)
            channel.close()
    run(work())


# ---------------------------------------------------------------------------- who means harm

HELLO = message(0, 1, struct.pack('!HHI', 1, 8, 1 << 4))
BAD = {
    'silent': (b'', None, 'no hand-shake'),
    'of version 1.0': (message(0, 1, version=1), None, 'does not speak OpenFlow 1.3'),
    'whose bitmap lacks 1.3': (message(0, 1, struct.pack('!HHI', 1, 8, 1 << 5), version=5), None, 'does not speak'),
    'that is no switch': (b'HTTP/1.1 400 Bad Request\r\n\r\n', None, 'version 72'),
    'with a length of 3': (HELLO + message(2, 1, length=3), None, 'type 2 and length 3'),
    'that leaves within a message': (HELLO, lambda s, *_: s.say(message(2, 1, length=500)) or s.drop(),
                                     'within|reset'),
    'of another version later': (HELLO + message(2, 1, version=6), None, 'version 6'),
    'with short features': (HELLO, lambda s, kind, xid, body: message(6, xid, b'abc') if kind == FEATURES else None,
                            'features'),
    'without features': (HELLO, lambda s, kind, xid, body: b'' if kind == FEATURES else None, 'features'),
    'that refuses features': (HELLO, lambda s, kind, xid, body: message(1, xid, bytes(12)) if kind == FEATURES
                              else None, 'error'),
    'whose error is cut off': (HELLO, lambda s, kind, xid, body: message(1, xid, b'x') if kind == FEATURES
                               else None, 'no error'),
    'with a long hello': (message(0, 1, bytes(1100)), None, 'type 0 and length 1108'),
    'that drips': (HELLO + message(2, 1, length=60_000), lambda *_: b'', 'no hand-shake'),
}


@pytest.mark.parametrize('kind', BAD)
def test_a_bad_peer(kind):
    hello, answer, why = BAD[kind]

    async def work():
        async with StandIn(1, answer or (lambda *_: None), hello) as switch:
            with pytest.raises(Away, match=why) as e:
                await dial(switch.address, limits=QUICK)
            assert switch.address in str(e.value)
            await until(lambda: not switch.writers)         # it was closed
    run(work())


def test_nobody_there():
    async def work():
        # The last is too long for a host's name: who keeps many switches is to try the others, and say so of it
        for address in ('tcp:127.0.0.1:1', 'unix:/nowhere', f'tcp:{"a" * 70}:1'):
            with pytest.raises(Away, match=address):
                await dial(address)
        with pytest.raises(ValueError, match='certificate'):
            await dial('tls:127.0.0.1:1')
    run(work())


def ask(channel):
    return channel.ask(lambda xid: wire.ask(wire.COUNTERS, xid))


@pytest.mark.parametrize('what,why', [
    (lambda xid: parts(xid, counters(210_000), exp_type=2), 'more than 200000 bytes'),
    (lambda xid: message(19, xid, struct.pack('!HH4xII', 0xffff, 1, 0x514f5346, 2)), 'in full'),
    (lambda xid: message(19, xid), 'in full'),
    (lambda xid: message(1, xid, b'xy'), 'no error'),
])
def test_a_bad_answer(what, why):
    async def work():
        async with StandIn(1, lambda s, kind, xid, body: what(xid) if kind == MULTIPART else None) as switch:
            channel = await dial(switch.address, limits=QUICK)
            with pytest.raises(Away, match=why):
                await ask(channel)
            channel.close()
    run(work())


def test_no_answer():
    """Who asks does not wait for ever, nor does too much wait; what comes late goes to nobody."""
    mute = []

    def answer(switch, kind, xid, body):
        return b'' if mute and kind in (MULTIPART, BARRIER) else None

    async def work():
        async with StandIn(1, answer) as switch:
            channel = await dial(switch.address, limits=Limits(seconds=20, probe=20, asked=8))
            mute.append(True)
            with pytest.raises(Away, match='no answer within'):
                await channel.ask(wire.ask_dump, 0.1)
            assert not await channel.alive(0.1)
            tasks = [asyncio.ensure_future(ask(channel)) for _ in range(9)]
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            assert [str(task.exception()) for task in done] == [
                f'the switch at {switch.address}: more than 8 requests at a time']
            switch.drop()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(e, Away) for e in ended)
            assert 'closed' in await channel.gone or 'reset' in await channel.gone
    run(work())


def test_a_long_answer():
    """What takes the switch long, such as the commit of 10,000 queues, keeps others waiting, and ends nobody's connection."""
    mute = []

    async def work():
        async with StandIn(1, lambda *_: b'' if mute else None) as switch:
            channel = await dial(switch.address, limits=Limits(seconds=0.2, probe=0.1))
            mute.append(True)
            tasks = [asyncio.ensure_future(channel.exchange([], seconds)) for seconds in (20, None)]
            with pytest.raises(Away, match='no answer within 0.1 s'):
                await channel.exchange([], 0.1)             # it may be waited less
            await asyncio.sleep(0.8)
            assert not channel.gone.done() and not any(task.done() for task in tasks)
            mute.clear()
            switch.say(b''.join(switch.usual(kind, xid, body) for kind, xid, body in switch.heard if kind == BARRIER))
            assert await asyncio.wait_for(asyncio.gather(*tasks), 5) == [[], []]
            mute.append(True)
            assert 'silent' in await asyncio.wait_for(channel.gone, 5)
    run(work())


def test_silence():
    """A peer that says nothing any more, half a message or not, is asked once and then let go."""
    async def work():
        for half in (b'', message(2, 1, length=9000)):
            mute = []
            async with StandIn(1, lambda *_: b'' if mute else None) as switch:
                channel = await dial(switch.address, limits=Limits(seconds=20, probe=0.2))
                await asyncio.sleep(1)
                assert not channel.gone.done()              # its echo replies keep it
                mute.append(True)
                switch.say(half)
                assert 'silent' in await channel.gone
    run(work())


def test_does_not_read():
    """Neither its echo requests nor ours fill the memory."""
    async def work():
        asked = message(ECHO, 1, bytes(60_000))

        async def flood(reader, writer):
            writer.write(HELLO)
            try:
                while True:
                    writer.write(asked)
                    await writer.drain()
            except OSError:
                writer.transport.abort()
        server = await asyncio.start_server(flood, '127.0.0.1', 0)
        sizes = []

        async def look():
            while True:
                sizes.extend(each.transport.get_write_buffer_size() for each in writers)
                await asyncio.sleep(0.01)
        writers = []
        looking = asyncio.ensure_future(look())
        reader, writer = await asyncio.open_connection('127.0.0.1', server.sockets[0].getsockname()[1])
        writers.append(writer)
        with pytest.raises(Away):
            await Channel(reader, writer, 'a flood', None, Limits(seconds=1)).open()
        looking.cancel()
        assert max(sizes) < 1 << 20
        server.close()
    run(work())


def test_what_nobody_waits_for():
    """It is sent in its order; a switch that reads none of it is let go before it fills the memory."""
    async def work():
        async with StandIn(1) as switch:
            channel = await dial(switch.address, limits=SURE)
            channel.post(wire.message(ECHO, 7))
            await ask(channel)
            assert [xid for kind, xid, _ in switch.heard if kind == ECHO] == [7]
            kinds = [kind for kind, _, _ in switch.heard]
            assert kinds.index(ECHO) < kinds.index(MULTIPART)
            channel.close()
            channel.post(wire.message(ECHO, 8))
        over = asyncio.Event()

        async def deaf(_reader, writer):
            await over.wait()
            writer.close()
        server = await asyncio.start_server(deaf, '127.0.0.1', 0, limit=1 << 10)
        channel = Channel(*await asyncio.open_connection(*server.sockets[0].getsockname()), 'a deaf switch', limits=SURE)
        for _ in range(1000):
            channel.post(wire.message(ECHO, 1, bytes(60_000)))
            await asyncio.sleep(0)
        assert 'has not read' in await channel.gone
        over.set()
        server.close()
    run(work())


def test_a_fault_of_the_callback_ends_the_connection(caplog):
    def fault(channel, raw):
        raise RuntimeError('oops')

    async def work():
        async with StandIn(1) as switch:
            channel = await dial(switch.address, heard=fault, limits=SURE)
            switch.say(message(10, 0))
            assert 'oops' in await channel.gone
    run(work())


# ------------------------------------------------------------------------------ many switches

def test_switches_come_and_go():
    async def work():
        ups, downs = [], []
        first, second = StandIn(1), StandIn(2)
        await first.listen()
        await second.listen()
        async with Switches([first.address, second.address, 'tcp:127.0.0.1:1'], only_read=True, limits=SURE,
                            up=lambda c: ups.append(c.datapath_id),
                            down=lambda c, why: downs.append((c.datapath_id, why))) as switches:
            await until(lambda: len(switches) == 2)
            assert list(switches) == [1, 2] and 1 in switches and 3 not in switches
            assert switches[1].peer == first.address
            with pytest.raises(Away, match='0000000000000003 is not connected'):
                switches[3]
            await until(lambda: 'tcp:127.0.0.1:1' in switches.places[2].why)
            first.drop()
            await until(lambda: ups == [1, 2, 1] or ups == [2, 1, 1])
            assert [d for d, _ in downs] == [1]
            await second.end()
            await until(lambda: len(switches) == 1)
            assert switches.places[1].datapath_id == 2 and switches.places[1].channel is None
            await second.listen(second.port)
            await until(lambda: len(switches) == 2)
        assert len(downs) == 4 and not len(switches)
        await first.end()
        await second.end()
    run(work())


def test_switches_connect():
    """By TCP; a second one with the same id is refused while the first is alive, then it has its place."""
    async def work():
        mute = []
        first = StandIn(5, lambda s, kind, xid, body: b'' if mute and kind == BARRIER else None)
        other, auxiliary = StandIn(5), StandIn(5, auxiliary=1)
        async with Switches(listen=['tcp:127.0.0.1:0'], limits=Limits(seconds=2, probe=20)) as switches:
            port, = switches.ports
            await first.connect(port)
            await until(lambda: 5 in switches)
            mine = switches[5]
            await (await other.connect(port))
            await until(lambda: 'is connected from' in (switches.refused or ''))
            await (await auxiliary.connect(port))
            await until(lambda: 'auxiliary' in switches.refused)
            assert switches[5] is mine
            mute.append(True)
            await other.connect(port)
            await until(lambda: 5 in switches and switches[5] is not mine)
            assert 'took its place' in mine.gone.result()
            assert await switches[5].alive(10)
    run(work())


def test_listens_at_a_unix_socket(tmp_path):
    """As one that its user alone may use, in place of one that was left."""
    path = tmp_path / 'switches'

    async def work():
        address = f'unix:{path}'
        for _ in range(2):
            async with Switches(listen=[address]):
                assert path.stat().st_mode & 0o777 == 0o600
                with pytest.raises(OSError, match='already'):
                    await Switches(listen=[address]).start()
            assert not path.exists()
            left = socket.socket(socket.AF_UNIX)
            left.bind(str(path))
            left.close()
        async with Switches(listen=[address]):
            pass
    run(work())


def test_tls(tmp_path):
    """Both ways; who shows no certificate of the CA is not let in."""
    ca = pki.Authority(tmp_path, 'ours')
    mine, theirs = ca.identity('controller'), ca.identity('switch')

    def context(identity, purpose):
        made = ssl.create_default_context(purpose, cafile=identity.ca)
        made.load_cert_chain(identity.cert, identity.key)
        made.verify_mode = ssl.CERT_REQUIRED
        return made

    async def work():
        async with StandIn(9, tls=context(theirs, ssl.Purpose.CLIENT_AUTH)) as switch:
            async with Switches([switch.address], ['tls:127.0.0.1:0'], tls=context(mine, ssl.Purpose.SERVER_AUTH),
                                listen_tls=context(mine, ssl.Purpose.CLIENT_AUTH), limits=SURE) as switches:
                await until(lambda: 9 in switches)
                plain = StandIn(8)
                await (await plain.connect(switches.ports[0]))
                await until(lambda: switches.refused)
                reader, writer = await asyncio.open_connection(
                    '127.0.0.1', switches.ports[0], ssl=context(theirs, ssl.Purpose.SERVER_AUTH))
                asyncio.ensure_future(plain.serve(reader, writer))
                await until(lambda: 8 in switches)
        with pytest.raises(ValueError, match='certificate'):
            Switches(['tls:127.0.0.1:1'])
    run(work())


# -------------------------------------------------------------------------------- the switch

@pytest.mark.skipif(not build_directory() or os.geteuid(), reason='needs a build and root')
def test_the_switch():
    """A real one: queues made by a bundle, asked for; a slave beside a master can't change anything."""
    async def work(address):
        async with Switches([address], only_read=True, limits=SURE) as readers:
            await until(lambda: len(readers))
            reader = readers[next(iter(readers))]
            channel = await dial(address, limits=SURE)
            assert channel.features == reader.features
            await channel.commit([request('htb', 'add', object='qdisc', port=1),
                                  request('htb', 'add', port=1, class_id=10, rate='1mbit')])
            entries = parse_dump(joined(await reader.ask(wire.ask_dump)))
            assert 10 in [e.class_id for e in entries if e.is_class]
            assert any(name.startswith('drop.') for name in parse_counters(joined(await ask(reader))))
            with pytest.raises(Refused) as e:
                await channel.commit([request('htb', 'change', port=1, class_id=10, rate='2mbit'),
                                      request('htb', 'change', port=1, class_id=11, rate='2mbit')])
            assert e.value.index == 1
            assert await channel.role(2, 7) == 7           # a master, as a controller would ask for it
            async with Switches([address], only_read=True, limits=SURE) as late:
                await until(lambda: len(late))
                slave = late[channel.datapath_id]
                assert len(parse_dump(joined(await slave.ask(wire.ask_dump)))) == len(entries)
                with pytest.raises(Refused):
                    await slave.commit([request('htb', 'delete', port=1, class_id=10)])
            await channel.commit([request('htb', 'delete', port=1, class_id=10)])
            channel.close()
    with Topology(ports=1) as t, Switch(t) as switch:
        run(work(switch.address))


def test_a_place_to_listen_that_is_no_socket(tmp_path):
    """It was taken for a socket that somebody had left, and was gone."""
    path = tmp_path / 'file'
    path.write_text('kept')
    with pytest.raises(OSError, match='is there already and no socket'):
        listening_socket(parse_address(f'unix:{path}'))
    assert path.read_text() == 'kept'
