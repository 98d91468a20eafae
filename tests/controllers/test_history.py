# SPDX-License-Identifier: Apache-2.0
"""What ofqos.history keeps: the file, its bounds, clocks that jump, a disk that is full, a process that is killed."""
import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import sys
import textwrap

import pytest

from support.app import PACKAGE
from support.web import ofqos_web

sys.path.append(PACKAGE)
from ofqos.history import pictures, sample  # noqa: E402
from ofqos.history.recorder import Recorder, Seen, added  # noqa: E402
from ofqos.history.sample import QUEUE_OUT, RECEIVES, SENDS, Key, Sample  # noqa: E402
from ofqos.history.store import KEPT, Store  # noqa: E402

DP = '0000000000000001'
QUEUE, PORT = Key(1, QUEUE_OUT, 10), Key(1, SENDS)
NOON = 1_700_000_000 // 300 * 300


def one(size=1000, wait=None, keys=(QUEUE, PORT), seconds=10.0):
    return Sample(seconds, tuple(keys), [[size, size // 100, 1, 5, wait, None, 0]] * len(keys))


@pytest.fixture
def store(tmp_path):
    made = Store(str(tmp_path / 'history'), 64)
    yield made
    made.close()


def rows(store, coarse=False, dp=DP, since=0, until=1 << 40):
    return [(f.time, f.packed.seconds, dict(zip(f.keys, f.packed.rows()))) for f in store.read(dp, coarse, since, until)]


def test_a_sample_comes_back():
    """Also what is unknown, what is 0, and large numbers."""
    values = [[0, 1, 2, 3, None, 0, 7], [(1 << 62), 0, 0, 0, 1 << 31, None, None]]
    packed = sample.Packed(sample.pack(Sample(9.5, (QUEUE, PORT), values)), 2)
    assert packed.rows() == values and [packed.row(i) for i in range(2)] == values and packed.seconds == 9.5
    with pytest.raises(ValueError, match='are not those of 3 series'):
        sample.Packed(sample.pack(Sample(9.5, (QUEUE, PORT), values)), 3)


def test_counters_become_what_was_added():
    before = Seen(5.0, {QUEUE: (100, 10, 1), PORT: (500, 5, 5)})
    now = Seen(15.0, {QUEUE: (150, 12, 1), PORT: (40, 4, 0), Key(2, RECEIVES): (9, 9, 9)}, {QUEUE: (7, 1, 2, 3)})
    made = added(now, before)
    assert made.seconds == 10 and dict(zip(made.keys, made.rows)) == {
        QUEUE: [50, 2, 0, 7, 1, 2, 3],
        PORT: [40, 4, 0, 0, None, None, None]}      # it began anew; the other port is new, and counts from the next on


def test_ticks_and_five_minutes(store):
    for i in range(1, 65):
        store.write(NOON + 10 * i - 5, [(DP, one(1000 + i, i)), ('0000000000000002', one(7))])
    fine, coarse = rows(store), rows(store, True)
    assert len(fine) == 64 and fine[0][2][QUEUE] == [1001, 10, 1, 5, 1, None, 0]
    assert [(round(s), r[QUEUE][0], r[QUEUE][2], r[QUEUE][4]) for _, s, r in coarse] == [
        (300, sum(range(1001, 1031)), 30, 30), (300, sum(range(1031, 1061)), 30, 60)]
    assert rows(store, True, '0000000000000002')[1][2][PORT][0] == 210
    assert not rows(store, dp='0000000000000003') and len(rows(store, since=NOON + 100, until=NOON + 200)) == 10


def test_queues_come_and_go(store):
    other = Key(2, QUEUE_OUT, 20)
    for i, keys in enumerate([(QUEUE,), (QUEUE, other), (other,), (other,)]):
        store.write(NOON + 10 * i, [(DP, one(100, keys=keys))])
    store.write(NOON + 300, [(DP, one())])
    (_, _, found), = rows(store, True)
    assert found[QUEUE][0] == 200 and found[other][0] == 300


def test_a_clock_that_jumps(store):
    """Back by a year, to 1970, far ahead: nothing is overwritten, and nothing goes before its time."""
    times = [NOON, NOON + 10, NOON - 365 * 86400, 20, NOON + 50 * 365 * 86400, NOON + 20, NOON + 20]
    for t in times:
        store.write(t, [(DP, one())])
    assert sorted(t for t, _, _ in rows(store)) == sorted(times)
    assert len(pictures.line(store, pictures.Asked(DP, 1, 'out', 10, 'hour', 'wait_us', NOON + 60))['time']) == 3


def test_it_keeps_a_day_and_no_more(store, monkeypatch):
    monkeypatch.setitem(KEPT, 'fine', 50)
    monkeypatch.setitem(KEPT, 'coarse', 3)
    for i in range(400):
        store.write(NOON + 10 * i, [(DP, one())])
    assert len(rows(store)) == 50 and len(rows(store, True)) == 3


def test_a_file_has_its_size(tmp_path):
    """The least that may be given is 8 MB; the newest stay."""
    path, noise = tmp_path / 'history', random.Random(1)
    store = Store(str(path), 8)
    keys = tuple(Key(1, QUEUE_OUT, q) for q in range(1, 2001))
    for i in range(150):
        store.write(NOON + 10 * i, [(DP, Sample(10.0, keys, [[noise.getrandbits(60) for _ in range(7)] for _ in keys]))])
        assert store.size() <= 8 << 20
    assert rows(store)[-1][0] == NOON + 1490 and 10 < len(rows(store)) < 150 and len(rows(store, True)) > 2
    store.close()
    assert path.stat().st_size < 10 << 20


def test_files_that_are_none(tmp_path):
    (tmp_path / 'text').write_text('no database, but of some length: ' * 100)
    with pytest.raises(ValueError, match='text: file is not a database'):
        Store(str(tmp_path / 'text'), 64)
    with pytest.raises(ValueError, match='No such file or directory'):
        Store(str(tmp_path / 'there' / 'is' / 'none'), 64)
    first = Store(str(tmp_path / 'one'), 64)
    with pytest.raises(ValueError, match='another program has it'):
        Store(str(tmp_path / 'one'), 64)
    first.db.execute('PRAGMA user_version=9')
    first.close()
    with pytest.raises(ValueError, match='is of format 9, this program has 1: give another file'):
        Store(str(tmp_path / 'one'), 64)


def test_killed_while_it_writes(tmp_path):
    """SIGKILL at any moment: each tick that was told to be written is there, and the file goes on."""
    path = str(tmp_path / 'history')
    program = textwrap.dedent(f'''
        import sys
        sys.path.append({PACKAGE!r})
        from ofqos.history.store import Store
        from ofqos.history.sample import Key, Sample
        store = Store({path!r}, 64)
        time = (store.db.execute('SELECT max(time) FROM fine_ticks').fetchone()[0] or {NOON}) + 10
        while True:
            store.write(time, [({DP!r}, Sample(10.0, (Key(1, 0, 10), Key(1, 2, 0)), [[1000, 10, 1, 5, None, None, 0]] * 2))])
            print(time, flush=True)
            time += 10''')
    told = 0
    for kill in range(8):
        process = subprocess.Popen([sys.executable, '-c', program], stdout=subprocess.PIPE, text=True)
        for _ in range(20 + 7 * kill):
            told = float(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read().splitlines()
        process.wait()
        process.stdout.close()
        told = max([told, *(float(line) for line in rest if line.endswith('.0'))])
        store = Store(path, 64)
        times = [t for t, _, _ in rows(store)]
        assert times[-1] >= told and times == [NOON + 10 * i for i in range(1, len(times) + 1)]
        assert len(rows(store, True)) == int((times[-1] - NOON) // 300)
        store.close()


def recorder(path, told, **kw):
    return Recorder(str(path), 64, lambda level, text: told.append((level, text)), **kw)


async def tick(made, at, size):
    made.take(DP, Seen(at, {QUEUE: (size, size, 0)}))
    await made.flush()


@pytest.mark.skipif(os.geteuid() != 0, reason='needs root (a small file system)')
def test_a_disk_that_is_full(tmp_path):
    """It is told once, nothing that was written is lost, and it goes on when there is room."""
    small = tmp_path / 'small'
    small.mkdir()
    if subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=400k', 'none', str(small)], stderr=subprocess.DEVNULL).returncode:
        pytest.skip('this machine lets nobody mount a tmpfs')
    told = []

    async def work():
        made, now = recorder(small / 'history', told, clock=lambda: NOON + 10), 0
        await tick(made, 1.0, 1)
        await tick(made, 2.0, 2)
        fill = small / 'fill'
        with open(fill, 'wb', buffering=0) as f:
            try:
                while True:
                    f.write(bytes(4096))
            except OSError:
                pass
        for now in range(3, 2000):
            made.take(DP, Seen(float(now), {Key(1, QUEUE_OUT, q): (now * int.from_bytes(os.urandom(3), 'big'), 0, 0) for q in range(100)}))
            await made.flush()
            if told:
                break
        assert told and told[0][0] == 'bad' and 'full' in told[0][1], told
        for more in range(3):
            await tick(made, float(now + 10 + more), 5)
            await tick(made, float(now + 20 + more), 6)
        assert len(told) == 1, told
        fill.unlink()
        await tick(made, now + 100.0, 7)
        await tick(made, now + 101.0, 8)
        assert [level for level, _ in told] == ['bad', 'good'], told
        assert await made.ask(lambda store: len(rows(store))) >= 2
        await made.end()
    try:
        asyncio.run(work())
    finally:
        subprocess.run(['umount', str(small)], check=True)


def test_a_write_that_fails_leaves_no_number_behind(store):
    """A switch that was new in it gets its number with the next one."""
    store.db.execute('CREATE TEMP TRIGGER no BEFORE INSERT ON main.fine BEGIN SELECT RAISE(ABORT, "no"); END')
    with pytest.raises(sqlite3.Error):
        store.write(NOON, [(DP, one())])
    store.db.execute('DROP TRIGGER no')
    store.write(NOON + 10, [(DP, one())])
    assert len(rows(store)) == 1


def test_lines_and_heat(store):
    keys = (Key(1, QUEUE_OUT, 10), Key(1, QUEUE_OUT, 20), Key(1, SENDS), Key(2, SENDS), Key(1, RECEIVES))
    for i in range(1, 361):
        store.write(NOON + 10 * i, [(DP, Sample(10.0, keys, [
            [1000, 10, 0, 0, 100, None, None], [2000, 20, 5, 9, 5000 if i == 200 else 50, 10_000, 20_000],
            [3000, 30, 5, 0, None, None, None], [500, 5, 0, 0, None, None, None], [70, 7, 0, 0, None, None, None]]))])
    until = NOON + 3600
    queue = pictures.line(store, pictures.Asked(DP, 1, 'out', 20, 'hour', 'wait_us', until))
    assert len(queue['time']) == 360 and set(queue['bps']) == {1600} and set(queue['drops_ps']) == {0.5}
    assert set(queue['outcome']['gaming']) == {0} and set(queue['outcome']['web']) == {0}       # a fifth is dropped
    assert max(queue['wait_us']) == 5000 and set(queue['rtt90_us']) == {20_000}
    assert set(pictures.line(store, pictures.Asked(DP, 1, 'in', None, 'hour', 'wait_us', until))['bps']) == {56}
    assert set(pictures.line(store, pictures.Asked(DP, None, 'out', None, 'hour', 'wait_us', until))['bps']) == {2800}
    assert len(pictures.line(store, pictures.Asked(DP, 1, 'out', 20, 'day', 'wait_us', until))['time']) == 12
    assert pictures.line(store, pictures.Asked(DP, 9, 'out', 20, 'hour', 'wait_us', until))['time'] == []
    heat = pictures.heat(store, pictures.Asked(DP, 1, 'out', None, 'hour', 'wait_us', until))
    assert [(q['id'], q['worst']) for q in heat['queues']] == [(20, 5000), (10, 100)] and heat['total'] == 2
    assert heat['queues'][0]['values'].index(5000) == 33 and heat['queues'][1]['values'] == [100] * 60


def test_what_is_asked():
    fine = pictures.asked({'switch': DP, 'port': '1', 'queue': '10', 'of': 'day'})
    assert (fine.port, fine.queue, fine.direction, fine.of) == (1, 10, 'out', 'day')
    for words, said in (({}, 'switch is missing'), ({'switch': DP, 'queue': '1'}, 'port is missing'),
                        ({'switch': DP, 'of': 'week'}, "of is one of hour, day, month, not 'week'"),
                        ({'switch': DP, 'port': '-1'}, 'port is a number up to'),
                        ({'switch': DP, 'port': '1', 'what': 'x'}, 'what is one of wait_us')):
        with pytest.raises(pictures.Unclear, match=said):
            pictures.asked(words)


def test_the_command_says_what_is_wrong(tmp_path):
    pytest.importorskip('aiohttp', reason='aiohttp is not installed (Debian: python3-aiohttp)')
    token, config = tmp_path / 'token', tmp_path / 'web.json'
    assert ofqos_web('new-token', str(token)).returncode == 0
    config.write_text('{"history_mb": 1}')
    kept = token.read_bytes()
    for words, said in ((['--history', '/nonexistent/history'], '/nonexistent/history: No such file or directory'),
                        (['--history', str(token)], f'{token}: file is not a database'),
                        (['--history-mb=2'], '--history-mb=2: a history has at least 8 megabytes'),
                        (['--config', str(config)], 'history_mb is a number of megabytes, at least 8')):
        done = ofqos_web('serve', '--token', str(token), '--listen', '127.0.0.1:0', *words)
        assert done.returncode == 1 and said in done.stderr and not done.stdout, done
    assert token.read_bytes() == kept
