# SPDX-License-Identifier: Apache-2.0
"""ofqos-exporter (docs/how-to/exporter.md): stand-ins, switches that are away, slow or mean harm, the real switch."""
import asyncio
import json
import os
import re
import ssl
import struct
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from random import Random

import pytest

from support import pki
from support.exporter import PACKAGE, Exporter
from support.fakeswitch import MULTIPART, Standing, StandIn, message, parts, run, until
from support.topo import REPOSITORY, Switch, Topology, build_directory

sys.path.insert(0, PACKAGE)
pytest.importorskip('prometheus_client', reason='prometheus-client is not installed (Debian: python3-prometheus-client)')

from prometheus_client import parser  # noqa: E402
from prometheus_client.openmetrics import parser as openmetrics  # noqa: E402

from ofqos.channel import Limits  # noqa: E402
from ofqos.exporter.cli import main, read_addresses  # noqa: E402
from ofqos.exporter.collect import Busy, Collector, Switch as Answered, _Source  # noqa: E402
from ofqos.exporter.families import FAMILIES, OWN  # noqa: E402
from ofqos.exporter.lines import escaped, rate_text  # noqa: E402
from ofqos.exporter.service import Own  # noqa: E402
from ofqos.replies import parse_dump  # noqa: E402
from ofqos.switches import Switches  # noqa: E402
from ofqos.wire import QOS_DUMP  # noqa: E402
from support.manyqueues import ManyQueues  # noqa: E402

SURE = Limits(seconds=30, probe=30)


def samples(text, of=parser):
    """(name, labels): value"""
    return {(s.name, tuple(sorted(s.labels.items()))): s.value
            for family in of.text_string_to_metric_families(text) for s in family.samples}


def value(found, metric, **labels):
    """Of the one sample that has these labels"""
    has = [v for (name, its), v in found.items() if name == metric and set(labels.items()) <= set(its)]
    assert len(has) == 1, (metric, labels, has)
    return has[0]


def text_of(snapshot, is_open=False):
    return b''.join(snapshot.text(is_open)).decode() + '# EOF\n' * is_open


async def collected(*answers, times=1, **kw):
    """What is told of stand-ins that answer so, as text"""
    stand_ins = [StandIn(i + 1, answer) for i, answer in enumerate(answers)]
    for stand_in in stand_ins:
        await stand_in.listen()
    async with Switches([s.address for s in stand_ins], only_read=True, limits=SURE) as switches:
        await until(lambda: len(switches) == len(stand_ins))
        collector = Collector(switches, 20, 1e-9, **kw)
        for _ in range(times):
            snapshot = await collector.snapshot()
    for stand_in in stand_ins:
        await stand_in.end()
    return snapshot


# ------------------------------------------------------------------------------ what there is

def table(page):
    """The metrics that a page lists: name -> type, labels, help"""
    with open(os.path.join(REPOSITORY, 'docs', page), encoding='utf-8') as f:
        rows = re.findall(r'^\| `(ofqos_\w+)` \| (\w+) \| (.*?) \| (.*) \|$', f.read(), re.M)
    return {name: (kind, tuple(re.findall(r'`(\w+)`', labels)), text) for name, kind, labels, text in rows}


def own_families():
    own = Own()
    own.answers.labels('200')
    return {family.name: family for family in own.registry.collect() if family.name.startswith('ofqos_')}


def test_the_list_is_the_documents():
    """docs/reference/metrics.md has those of dpctl (a test of its own compares), docs/how-to/exporter.md those of the exporter alone."""
    listed = {f.sample: (f.type, f.labels, f.help) for name, f in FAMILIES.items() if name not in OWN}
    assert listed == table('reference/metrics.md')
    alone = {f.sample: (f.type, f.labels, f.help) for f in OWN.values()}
    alone.update({s.name: (f.type, tuple(s.labels), f.documentation) for f in own_families().values()
                  for s in f.samples if not s.name.endswith('_created')})
    assert alone == table('how-to/exporter.md')


def test_rates_and_labels():
    assert [rate_text(bits) for bits in (6_000_000, 1, 8, 12, 1 << 63)] == [
        '750000', '0.125', '1', '1.500', '1152921504606846976']
    assert escaped('a"b\\c\nd\0é') == 'a\\"b\\\\c?d?é'


# -------------------------------------------------------------------------------- stand-ins

def test_many_queues():
    """Every number at its queue, in both formats, and again when only counters have moved."""
    answers = ManyQueues(50, ports=5)
    snapshot = run(collected(answers, times=3))
    found = samples(text_of(snapshot))
    assert found == samples(text_of(snapshot, True), openmetrics)
    turn = answers.asked % 2
    for q in range(50):
        labels = {'dp': '0000000000000001', 'port': str(q % 5 + 1), 'name': f'eth{q % 5 + 1}', 'direction': 'out',
                  'queue': str(q + 1)}
        packets = 1_000_000 * (q + 1) + turn * 77
        for metric, expected in (
                ('transmit_packets_total', packets), ('transmit_bytes_total', packets * 1000),
                ('drops_total', q * 3 + turn), ('overlimits_total', q * 5 + turn), ('marks_total', 0),
                ('backlog_bytes', 1500 * (q % 7)), ('backlog_packets', q % 7), ('prio', q % 8),
                ('rate_bytes_per_second', (1_000_000 + 8 * (q % 50)) / 8), ('ceil_bytes_per_second', 125_000_000),
                ('borrowed_packets_total', q), ('lended_packets_total', q),
                ('backlogged_seconds_total', (10_000_000 + q) / 1e6), ('below_rate_seconds_total', q / 1e6)):
            assert value(found, f'ofqos_queue_{metric}', **labels) == expected, (q, metric)
        assert value(found, 'ofqos_queue_info', **labels, parent='root', kind='htb', sched='fq_codel',
                     queue_name=f'q{q}') == 1
        promised = [name for name, its in found if 'promise' in name and set(labels.items()) <= set(its)]
        assert len(promised) == (0 if q % 10 else 4)
    assert value(found, 'ofqos_queue_promise_kept_ratio', queue='11') == pytest.approx(1 - 10 / 10_000_010, abs=1e-6)
    assert value(found, 'ofqos_port_speed_bytes_per_second', port='3') == 125_000_000
    assert value(found, 'ofqos_up', dp='0000000000000001') == 1
    assert len(parse_dump(snapshot.switches[0].models[True, QOS_DUMP])) == 100


def test_what_changes_is_seen():
    """A queue more, one less, another rate, a port's new name."""
    one, two = ManyQueues(3, ports=1), ManyQueues(4, ports=1)
    now = [one]

    async def work():
        def answer(*words):
            return now[0](*words)
        async with StandIn(1, answer) as stand_in, Switches([stand_in.address], limits=SURE) as switches:
            await until(lambda: len(switches))
            collector, counts = Collector(switches, 20, 1e-9), []
            for answers in (one, two, two, one):
                now[0] = answers
                text = text_of(await collector.snapshot())
                counts.append((text.count('ofqos_queue_drops_total{'), text.count('ofqos_queue_info{')))
            assert counts == [(3, 3), (4, 4), (4, 4), (3, 3)]
            one.standard = lambda mp: None if mp == 13 else two.standard(mp)
            assert 'name="eth1"' not in text_of(await collector.snapshot())
    run(work())


def test_another_maker():
    """Queues are what OFPMP_QUEUE tells; what it refuses is left out."""
    def answer(switch, kind, xid, body):
        if kind != MULTIPART:
            return None
        mp, = struct.unpack_from('!H', body)
        if mp == 5:
            return parts(xid, struct.pack('!IIQQQII', 1, 7, 1000, 10, 2, 0, 0), 5)
        if mp in (3, 4, 13):
            return parts(xid, ManyQueues(0, 1).standard(mp), mp)
        return message(1, xid, struct.pack('!HH', 1, 2))
    found = samples(text_of(run(collected(answer))))
    queue = {'port': '1', 'name': 'eth1', 'direction': 'out', 'queue': '7'}
    assert value(found, 'ofqos_queue_transmit_bytes_total', **queue) == 1000
    assert value(found, 'ofqos_queue_drops_total', **queue) == 2
    assert value(found, 'ofqos_switch_flows') == 3
    assert not any('group' in name or 'switch_uptime' in name for name, _ in found)


def test_meters_and_groups():
    def answer(switch, kind, xid, body):
        if kind != MULTIPART:
            return None
        mp, = struct.unpack_from('!H', body)
        told = {
            6: struct.pack('!H2xII4xQQII', 72, 9, 2, 100, 5000, 1, 1) + struct.pack('!4Q', 60, 3000, 40, 2000),
            9: b''.join(struct.pack('!IH6xIQQIIQQ', m, 56, 1, 10, 1000, 1, 1, 4, 400) for m in (1, 2, 3)),
            10: struct.pack('!HHIHHIIB3x', 24, 1, 1, 2, 16, 1000, 100, 1) + struct.pack('!HHIHHII4x', 24, 2, 2, 1, 16,
                                                                                       500, 0)}
        return parts(xid, told[mp], mp) if mp in told else message(1, xid, struct.pack('!HH', 1, 2))
    found = samples(text_of(run(collected(answer))))
    assert value(found, 'ofqos_group_bucket_bytes_total', group='9', bucket='1') == 2000
    assert value(found, 'ofqos_meter_band_rate_bytes_per_second', meter='1', type='dscp_remark') == 125_000
    assert value(found, 'ofqos_meter_band_rate_packets_per_second', meter='2', type='drop') == 500
    assert value(found, 'ofqos_meter_packets_total', meter='3') == 10
    assert sum(name == 'ofqos_meter_band_bytes_total' for name, _ in found) == 2


# ------------------------------------------------------------------ away, slow, who means harm

def test_away_and_silent():
    """up is 0; a silent one delays the first scrape alone, and by the timeout; nobody else misses a number."""
    async def work():
        mute, good = StandIn(2, lambda s, kind, xid, body: b'' if kind in (MULTIPART, 20) and s.ready else None), StandIn(
            1, ManyQueues(5))
        mute.ready = False
        async with mute, good, Switches([good.address, mute.address, 'tcp:127.0.0.1:1'], limits=SURE) as switches:
            await until(lambda: len(switches) == 2)
            mute.ready = True
            collector = Collector(switches, 0.5, 1e-9)
            for _ in range(3):
                snapshot = await collector.snapshot()
                found = samples(text_of(snapshot))
                ups = {dict(labels)['address']: v for (name, labels), v in found.items() if name == 'ofqos_up'}
                assert ups == {good.address: 1, mute.address: 0, 'tcp:127.0.0.1:1': 0}
                assert value(found, 'ofqos_queue_prio', queue='3') == 2
            whys = {switch.address: switch.why for switch in snapshot.switches}
            assert 'last collection' in whys[mute.address] and '127.0.0.1:1' in whys['tcp:127.0.0.1:1']
            assert snapshot.seconds < 0.4               # it did not wait again
            await collector.stop()
    run(work())


def test_one_that_connected_and_is_gone():
    async def work():
        async with Switches(listen=['tcp:127.0.0.1:0'], limits=SURE) as switches:
            stand_in = StandIn(0xbeef, ManyQueues(2))
            await stand_in.connect(switches.ports[0])
            await until(lambda: len(switches))
            collector = Collector(switches, 20, 1e-9)
            first = samples(text_of(await collector.snapshot()))
            stand_in.drop()
            await until(lambda: not len(switches))
            second = samples(text_of(await collector.snapshot()))
            for found, up in (first, 1), (second, 0):
                assert value(found, 'ofqos_up', dp='000000000000beef', address='tcp:127.0.0.1') == up
    run(work())


@pytest.mark.parametrize('data', [b'\0', b'\xff' * 7, bytes(80), b'\xff' * 90, struct.pack('!H', 72) + b'\xff' * 70],
                         ids=['short', 'ones', 'zeros', 'long', 'entry'])
def test_garbage(data):
    """An answer that can't be read costs its own metrics, is counted, and harms nothing else."""
    def answer(switch, kind, xid, body):
        if kind != MULTIPART:
            return None
        mp, = struct.unpack_from('!H', body)
        return parts(xid, data, mp, exp_type=struct.unpack_from('!I', body, 12)[0] if mp == 0xffff else None)
    seen = []
    snapshot = run(collected(answer, ManyQueues(4), done=seen.append))
    found = samples(text_of(snapshot))
    bad, good = snapshot.switches
    assert bad.faults and not good.faults and seen == [snapshot]
    assert value(found, 'ofqos_up', dp=bad.dp) == value(found, 'ofqos_up', dp=good.dp) == 1
    assert value(found, 'ofqos_queue_prio', dp=good.dp, queue='3') == 2
    own = Own()
    own.collected(snapshot)
    assert own.registry.get_sample_value('ofqos_exporter_unreadable_replies_total') == len(bad.faults)


@pytest.mark.parametrize('ours,data,what', [
    (2, b''.join(struct.pack('!H6xQ8s', 24, i, b'drop.%d' % (i % 1000)) for i in range(100)) * 10, None),
    (2, b''.join(struct.pack('!H6xQ16s', 32, i, b'drop.%d' % i) for i in range(101_000)), 'more than 100000 samples'),
    (5, b'key=value\n' * 110_000, 'STATUS: 1100000 bytes'),
    (1, struct.pack('!HBBIII56x', 72, 0, 0, 1, 0, 0) * 150_001, 'more than 150000 entries'),
    (9, bytes(48) * 150_001, 'SERVICE: 7200048 bytes')], ids=['enough', 'counters', 'status', 'dump', 'service'])
def test_too_much(ours, data, what):
    """A switch that makes up metrics is told of without them."""
    answers = ManyQueues(2)
    usual, answers.ours = answers.ours, lambda exp_type: data if exp_type == ours else usual(exp_type)
    switch, = run(collected(answers)).switches
    assert switch.up and [fault for fault in switch.faults if not what or what in fault] == switch.faults
    assert bool(switch.faults) == bool(what)


def test_the_measurement():
    done = subprocess.run([sys.executable, os.path.join(REPOSITORY, 'measure/bench/exporter'), '--switches', '12', '--queues', '30',
                           '--scrapes', '1', '--json'], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=120)
    told = json.loads(done.stdout)
    assert told['up'] == 12 and len(told['cpu_seconds']) == 1 and told['samples'] > 12 * 30 * 12


def mutated(random, data):
    """A few bytes of it changed, its end cut off, or something inserted"""
    data = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 8))):
        at = random.randrange(len(data) + 1)
        data[at:at + random.choice((0, 1, 1, 8))] = random.randbytes(random.choice((0, 1, 1, 8)))
    return bytes(data[:random.randrange(len(data) + 1)] if random.random() < 0.1 else data)


def test_any_bytes():
    """Whatever a switch says, it is read or refused by a ValueError, and what is told is well-formed."""
    random, source, refused = Random(18), _Source('x'), 0
    good = ManyQueues(12, ports=2)
    told = {(True, n): good.ours(n) for n in (1, 2, 5, 9)}
    told.update({(False, n): good.standard(n) for n in (2, 3, 4, 13)})
    told[False, 6] = struct.pack('!H2xII4xQQII', 72, 9, 2, 100, 5000, 1, 1) + struct.pack('!4Q', 60, 3000, 40, 2000)
    told[False, 9] = struct.pack('!IH6xIQQIIQQ', 1, 56, 1, 10, 1000, 1, 1, 4, 400)
    told[False, 10] = struct.pack('!HHIHHIIB3x', 24, 1, 1, 2, 16, 1000, 100, 1)
    for turn in range(1500):
        found, key = Answered('', 'x', up=True), random.choice(list(told))
        lines = source._take(found, {**told, key: mutated(random, told[key])}).texts()
        refused += bool(found.faults)
        if turn % 100 == 0:
            samples(b''.join(lines.values()).decode())
    assert 150 < refused < 1450
    found = Answered('', 'x', up=True)
    source._take(found, told)
    assert not found.faults


def test_a_fault_of_ours(caplog):
    """It costs one switch's metrics, is logged and counted."""
    async def work():
        async with StandIn(1, ManyQueues(2)) as one, StandIn(2, ManyQueues(2)) as two, \
                Switches([one.address, two.address], limits=SURE) as switches:
            await until(lambda: len(switches) == 2)
            collector = Collector(switches, 20)
            collector._dialed[0]._take = lambda found, answers: 1 / 0
            return await collector.snapshot()
    bad, good = run(work()).switches
    assert good.up and not bad.up and 'ZeroDivisionError' in bad.why and bad.faults and 'ZeroDivision' in caplog.text


def test_unsafe_names():
    """No label ends early, whatever a port is called."""
    answers = ManyQueues(2, ports=1)
    desc = struct.pack('!I4x6s2x16sIIIIIIII', 1, bytes(6), b'a"} 1\n# \\\xff', *(0,) * 8)
    usual, answers.standard = answers.standard, lambda mp: desc if mp == 13 else usual(mp)
    text = text_of(run(collected(answers)))
    found = samples(text)
    assert value(found, 'ofqos_queue_prio', queue='2') == 1
    assert {dict(labels).get('name') for _, labels in found} == {None, 'a"} 1?# \\\ufffd'}


def test_shared_and_bounded():
    """Scrapers at the same time share a collection, later ones for max_age; snapshots that are being read are few."""
    async def work():
        answers, held = ManyQueues(5), []
        async with StandIn(1, answers) as stand_in, Switches([stand_in.address], limits=SURE) as switches:
            await until(lambda: len(switches))
            collector = Collector(switches, 20, 1000)
            found = await asyncio.gather(*(collector.snapshot() for _ in range(50)))
            assert len(set(map(id, found))) == 1 and answers.asked == 1
            assert await collector.snapshot() is found[0]
            collector.max_age = 1e-9
            held += [found[0], await collector.snapshot(), await collector.snapshot()]
            with pytest.raises(Busy):
                await collector.snapshot()
            found.clear()
            del held[0]
            await collector.snapshot()
            # One that gives up does not take the collection from the others
            first = asyncio.ensure_future(collector.snapshot())
            second = asyncio.ensure_future(collector.snapshot())
            held.clear()
            await asyncio.sleep(0)
            first.cancel()
            assert (await second).switches[0].up
    run(work())


# -------------------------------------------------------------------------------- the program

def test_http():
    """Both formats with its own metrics, other paths, other methods."""
    with Standing(ManyQueues(5)) as stand_in, Exporter(stand_in.address) as exporter:
        exporter.up()
        status, kind, text = exporter.get()
        found = samples(text)
        assert status == 200 and kind.startswith('text/plain; version=0.0.4')
        assert value(found, 'process_cpu_seconds_total') > 0 and value(found, 'ofqos_exporter_collections_total') > 0
        assert value(found, 'ofqos_queue_prio', queue='3') == 2
        status, kind, text = exporter.get(Accept='application/openmetrics-text;version=1.0.0')
        assert kind.startswith('application/openmetrics-text') and text.endswith('# EOF\n')
        assert value(samples(text, openmetrics), 'ofqos_queue_prio', queue='3') == 2
        assert exporter.get('/')[0] == 200 and ' of 1 switches of 1.' in exporter.get('/')[2]
        assert exporter.get('/nothing')[0] == 404 and '/metrics' in exporter.get('/nothing')[2]
        request = urllib.request.Request(exporter.url + '/metrics', data=b'x', method='POST')
        with pytest.raises(urllib.error.HTTPError) as e:
            urllib.request.urlopen(request, timeout=60)
        assert e.value.code == 405


def test_many_scrapers():
    """More than there are places: some are told to come again, nobody waits for ever."""
    with Standing(ManyQueues(300)) as stand_in, Exporter(stand_in.address) as exporter:
        exporter.up()
        codes = []
        threads = [threading.Thread(target=lambda: codes.append(exporter.get()[0])) for _ in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(codes) == 40 and set(codes) <= {200, 429, 503} and 200 in codes


def test_tokens_and_certificates(tmp_path):
    token = tmp_path / 'token'
    token.write_text('0123456789abcdef\nfedcba9876543210\n')
    token.chmod(0o600)
    with Exporter('--token-file', str(token), 'tcp:127.0.0.1:1') as exporter:
        assert exporter.get()[0] == exporter.get(Authorization='Bearer 0123456789abcdeF')[0] == 401
        for good in ('0123456789abcdef', 'fedcba9876543210'):
            assert exporter.get(Authorization=f'Bearer {good}')[0] == 200
        token.write_text('another-token-of-ours\n')
        assert exporter.get(Authorization='Bearer 0123456789abcdef')[0] == 401
        assert exporter.get(Authorization='Bearer another-token-of-ours')[0] == 200
    ca = pki.Authority(tmp_path, 'ours')
    mine, theirs = ca.identity('exporter'), ca.identity('prometheus')
    plain = ssl.create_default_context(cafile=ca.ca)
    shown = ssl.create_default_context(cafile=ca.ca)
    shown.load_cert_chain(theirs.cert, theirs.key)
    tls = ['--private-key', mine.key, '--certificate', mine.cert]
    with Exporter(*tls, '--ca-cert', ca.ca, 'tcp:127.0.0.1:1') as exporter:
        assert exporter.get(context=shown)[0] == 200 and exporter.get(context=plain)[0] == 401
    with Exporter(*tls, 'tcp:127.0.0.1:1') as exporter:
        assert exporter.get(context=plain)[0] == 200


@pytest.mark.parametrize('words,said', [
    ([], 'name a switch'), (['tcp:a:b'], "'tcp:a:b' is no"), (['--listen', 'here', 'tcp:a'], '--listen must be HOST:PORT'),
    (['--timeout', '0', 'tcp:a'], '--timeout must be'), (['tls:a'], 'certificate'),
    (['--switches', '/nowhere'], '/nowhere'), (['--token-file', '/etc/passwd', 'tcp:a'], 'chmod 600')])
def test_wrong_words(words, said, capsys):
    assert main(words) in (1, 2)
    assert said in capsys.readouterr().err


def test_addresses_in_a_file(tmp_path):
    path = tmp_path / 'switches'
    path.write_text('# all of them\ntcp:192.0.2.1   # the first\n\nunix:/run/s\n')
    assert read_addresses(str(path)) == ['tcp:192.0.2.1', 'unix:/run/s']
    path.write_text('tcp:192.0.2.1\ntcp:::1\n')
    with pytest.raises(ValueError, match=f'{path}:2: '):
        read_addresses(str(path))


# -------------------------------------------------------------------------------- the switch

@pytest.mark.skipif(not build_directory() or os.geteuid(), reason='needs a build and root')
def test_the_switch():
    """All that dpctl tells of a real one, by the same names and labels, and nothing else but its own."""
    with Topology(ports=2) as t, Switch(t) as switch:
        for words in ('cmd=add,port=2,class=10,rate=6mbit,name=voice,promise=500ms,delay=20ms', 'cmd=add,port=2,class=11,rate=1mbit',
                      'cmd=add,port=2,class=12,rate=25%,parent=10', 'cmd=add,port=1,class=11,rate=1mbit,direction=in'):
            switch.dpctl('qos-htb', words)
        switch.dpctl('meter-mod', 'cmd=add,flags=1,meter=1', 'drop:rate=1000')
        switch.dpctl('flow-mod', 'cmd=add,table=0,prio=5', 'in_port=1', 'meter:1', 'apply:queue=10,output=2')
        alone, end = {family.sample for family in OWN.values()}, time.monotonic() + 30
        while True:                     # the switch looks once a second at how classes are served
            done = subprocess.run([sys.executable, '-m', 'ofqos.exporter', '--once', switch.address], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=60,
                                  env={**os.environ, 'PYTHONPATH': PACKAGE})
            assert done.returncode == 0 and not done.stderr
            ours, theirs = samples(done.stdout), samples(switch.dpctl('metrics', 'format=prometheus').stdout)
            if {key for key in ours if key[0] not in alone} == set(theirs):
                break
            assert time.monotonic() < end, {key for key in ours if key[0] not in alone} ^ set(theirs)
            time.sleep(0.2)
    for name in ('queue_rate_bytes_per_second', 'queue_ceil_bytes_per_second', 'queue_prio', 'queue_promise_seconds',
                 'queue_info', 'port_up', 'port_speed_bytes_per_second', 'meter_band_rate_bytes_per_second',
                 'switch_info', 'cache_size_entries', 'table_flows'):
        pairs = [(ours[key], v) for key, v in theirs.items() if key[0] == f'ofqos_{name}']
        assert pairs and all(a == b for a, b in pairs), (name, pairs)
    assert value(ours, 'ofqos_queue_rate_bytes_per_second', port='2', queue='12') == 187_500


@pytest.mark.skipif(not build_directory() or os.geteuid(), reason='needs a build and root')
def test_the_switch_connects(tmp_path):
    """It comes to the exporter as to a controller, again to the next one; it is told as away while it is."""
    place = f'unix:{tmp_path}/switches'
    with Topology(ports=1) as t, Switch(t, place, '--max-backoff=1') as switch:
        for turn in range(2):
            with Exporter('--accept', place, '--max-age', '0.001') as exporter:
                found = samples(exporter.up())
                assert value(found, 'ofqos_up', dp=switch.dpid, address=place) == 1
                assert value(found, 'ofqos_controller_connected', peer=place) == 1
                if turn:
                    switch.stop()
                    end = time.monotonic() + 60
                    while value(samples(exporter.get()[2]), 'ofqos_up', dp=switch.dpid) != 0:
                        assert time.monotonic() < end
                        time.sleep(0.1)


def test_an_address_that_nobody_is_at():
    """It is said once, however often it is tried"""
    said = []

    async def go():
        async with Switches(['unix:/nobody'], away=lambda address, why: said.append((str(address), why))) as switches:
            while switches.places[0].untried:
                await asyncio.sleep(0.01)
            await asyncio.sleep(1.5)            # tried again
    asyncio.run(go())
    assert said == [('unix:/nobody', said[0][1])] and 'No such file' in said[0][1]
