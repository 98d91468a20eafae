# SPDX-License-Identifier: Apache-2.0
"""The Wireshark dissector, by tshark: on packets made of the golden files and of random requests,
and on a capture of real traffic."""
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent.parent
SCRIPT = REPOSITORY / 'packaging/wireshark/ofqos.lua'
sys.path.insert(0, str(REPOSITORY / 'tests'))
sys.path.insert(0, str(REPOSITORY / 'tests/golden'))
sys.path.insert(0, str(REPOSITORY / 'controllers/python'))
import tobin  # noqa: E402

import ofqos  # noqa: E402
from ofqos import replies, table, wire  # noqa: E402
from ofqos.units import Curve, Precedence, Unit  # noqa: E402
from support import topo  # noqa: E402

FILES = dict(tobin.files())
CONTROLLER, SWITCH = 40000, 6653

pytestmark = pytest.mark.skipif(not shutil.which('tshark'),
                                reason='tshark is not installed (scripts/install-deps test)')


def write_pcap(path, segments):
    """Segments are (source port, destination port, bytes), each a packet."""
    seen = {}
    with open(path, 'wb') as out:
        out.write(struct.pack('<IHHiIII', 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for src, dst, data in segments:
            at = seen.get(src, 1)
            seen[src] = at + len(data)
            tcp = struct.pack('!HHIIBBHHH', src, dst, at, seen.get(dst, 1), 0x50, 0x18, 65535, 0,
                              0) + data
            frame = topo.eth(topo.ipv4(tcp, 6))
            out.write(struct.pack('<IIII', 1, 0, len(frame), len(frame)) + frame)


def tshark(path, *options):
    done = subprocess.run(['tshark', '-X', f'lua_script:{SCRIPT}', '-r', str(path), *options],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert 'Lua' not in done.stderr and 'Lua Error' not in done.stdout, done.stderr + done.stdout
    return done.stdout


class Tree(list):
    """A dissected message: (field, number or text) in order, without the prefix ofqos."""

    def __init__(self, proto):
        super().__init__((f.get('name')[6:], f.get('show')) for f in proto.iter('field')
                         if (f.get('name') or '').startswith('ofqos.'))
        self.title = proto.get('showname') or ''

    def first(self, name):
        return next(v for n, v in self if n == name)

    def numbers(self, *names):
        return [int(self.first(n), 0) for n in names]

    def all(self, name):
        return [v for n, v in self if n == name]


def dissected(path):
    """[the extension's messages of each packet]"""
    root = ElementTree.fromstring(tshark(path, '-T', 'pdml'))
    return [[Tree(proto) for proto in packet.iter('proto') if proto.get('name') == 'ofqos']
            for packet in root.iter('packet')]


def one_each(tmp_path, raws, port=CONTROLLER):
    path = tmp_path / 'x.pcap'
    write_pcap(path, [(port, SWITCH, raw) for raw in raws])
    return dissected(path)


# ------------------------------------------------------------------------------ golden files

def is_ours(raw):
    """A message that Wireshark's own dissector knows nothing of"""
    kind, body = raw[1], raw[8:]
    if kind == 1:
        return body[:2] in (b'\0\x0e', b'\xff\xff')
    if kind in (18, 19):
        return body[:2] == b'\xff\xff' and body[8:12] == b'QOSF'
    bundles = (struct.pack('!4sI', b'ONF', n) for n in (2300, 2301))
    return kind == 30 or (kind == 4 and (body[:4] == b'QOSF' or body[:8] in bundles))


def test_golden_files(tmp_path):
    names = [n for n in FILES if n[:2] in ('00', '01', '04', '14', '18', '19', '20', '30')]
    trees = dict(zip(names, one_each(tmp_path, [FILES[n] for n in names])))
    ours = {n for n, found in trees.items() if found}
    assert ours == {n for n in names if is_ours(FILES[n])} and len(ours) > 20
    assert all(not t.all('malformed') for n in ours for t in trees[n])
    htb, = trees['30-qos_queueing_discipline-htb']
    assert htb.numbers('type', 'length', 'xid', 'sched_type', 'object_type', 'action_type',
                       'port_no', 'class_id', 'rate', 'ceil', 'prio') == \
        [30, 48, 123, 1, 1, 0, 2, 10, 6_000_000, 10_000_000, 1]
    assert htb.title.endswith('QoS ADD HTB CLASS 10 on port 2')
    sfq, = trees['30-qos_queueing_discipline-sfq']
    assert sfq.numbers('perturb', 'quantum', 'prop_type', 'prop_length', 'sfq_depth') == \
        [10, 1514, 21, 8, 127]
    link, = trees['30-qos_queueing_discipline-link']
    assert link.numbers('overhead', 'mpu', 'linklayer') == [44, 64, 1]
    cake, = trees['30-qos_queueing_discipline-cake']
    assert cake.numbers('rate', 'overhead', 'flow_mode', 'nat', 'direction') == [
        20_000_000, -4, 6, 1, 1]
    name, = trees['30-qos_queueing_discipline-name']
    assert name.numbers('prop_type', 'prop_length') == [48, 11] and name.first('name') == 'Büro 1'
    clear, = trees['04-experimenter-qos']
    assert clear.numbers('experimenter', 'exp_type', 'sched_type', 'action_type', 'port_no') == \
        [0x514f5346, 1, 0, 1, 2]
    relay, = trees['04-experimenter-relay']
    assert relay.numbers('exp_type', 'relay_connected', 'relay_targets', 'relay_fail') == \
        [5, 1, 2, 1]
    assert relay.title.endswith('RELAY, 1 of 2 connected')
    status, = trees['19-multipart_reply-status']
    assert status.title.endswith('STATUS reply') and status.all('status')
    changed, = trees['04-experimenter-qos_changed']
    assert changed.numbers('exp_type', 'cause', 'serial', 'port_no', 'class_id', 'rate') == \
        [7, 1, 5, 2, 10, 6_000_000]
    assert changed.title.endswith('QOS_CHANGED (REQUEST) QoS ADD HTB CLASS 10 on port 2')
    gone, = trees['04-experimenter-qos_changed-gone']
    assert gone.numbers('cause', 'port_no', 'objects') == [4, 2, 0]
    promise, = trees['04-experimenter-qos_promise']
    assert promise.numbers('exp_type', 'port_no', 'class_id', 'promise_state', 'promise',
                           'promise_rate', 'promise_sent', 'promise_lasted') == \
        [15, 2, 10, 1, 500, 6_000_000, 4_000_000, 501_000]
    assert promise.title.endswith('QOS_PROMISE (BROKEN) class 10 of port 2')
    drops, = trees['04-experimenter-qos_promise-drops']
    assert drops.numbers('promise_kind', 'promise_state', 'promise_lasted', 'promise_dropped') == \
        [1, 2, 4_000_000, 120]
    assert drops.title.endswith('QOS_PROMISE (KEPT: drops) class 10 of port 2')
    role, = trees['04-experimenter-role_changed']
    assert role.numbers('role', 'generation_id') == [2, 17]
    assert role.title.endswith('ROLE_CHANGED tcp:10.0.0.9:40000 is MASTER')
    monitor, = trees['04-experimenter-monitor']
    assert monitor.numbers('exp_type', 'monitor') == [6, 3]
    capture, = trees['04-experimenter-capture']
    assert capture.numbers('capture_what', 'port_no', 'class_id', 'capture_limit') == [2, 2, 10, 100]
    captured, = trees['04-experimenter-captured']
    assert captured.numbers('capture_in_port', 'capture_cookie', 'capture_segment') == [1, 0x77, 1448]
    assert captured.title.endswith('CAPTURED OUT, 68 bytes')
    dump, = trees['18-multipart_request-experimenter']
    assert dump.numbers('mp_exp_type', 'port_no', 'class_id') == [1, 2, 0xffffffff]


def test_golden_errors(tmp_path):
    (native,), (exp,), (bundle,) = one_each(tmp_path, [
        FILES[n] for n in ('01-error-sched', '01-error-experimenter', '01-error-bundle')])
    assert native.numbers('error_type', 'error_code', 'errno') == [14, 12, 22]
    assert native.first('error_text') == 'Invalid argument'
    assert native.title.endswith('OFPSFC_KERNEL: Invalid argument')
    assert exp.numbers('error_type', 'error_code', 'experimenter', 'errno') == \
        [0xffff, 7, 0x514f5346, 17]
    assert exp.first('error_text') == 'there is one already'
    assert bundle.numbers('bundle_error_type') == [2310]
    assert 'MSG_UNSUP' in bundle.title


# ---------------------------------------------------------------------------------- requests

def value(r, field):
    if field.unit is Unit.CURVE:
        return Curve(r.getrandbits(40), r.getrandbits(30), r.getrandbits(40))
    if field.unit is Unit.PRECEDENCE:
        return Precedence(*(r.getrandbits(32) for _ in range(4)), r.getrandbits(8))
    if field.unit is Unit.NAME:
        return ''.join(r.choices('aZ9ü', k=r.randrange(1, 8)))
    if field.unit is Unit.PRIOMAP:
        return tuple(r.randrange(16) for _ in range(16))
    if field.unit is Unit.SIGNED:
        return r.randrange(-64, 257)
    size = struct.calcsize(field.format.replace('4x', ''))
    return r.getrandbits(min(8 * size, 60)) if size > 1 else r.randrange(2)


def expected(request):
    """The parameters as the dissector shows them, in the message's order."""
    found = []
    for row in sorted(request.fields(), key=lambda row: not row.fixed):
        if row.name not in request.params:
            continue
        its = request.params[row.name]
        if isinstance(its, Curve):
            found += [('curve', row.which), ('curve_m1', its.m1), ('curve_d', its.d),
                      ('curve_m2', its.m2)]
        elif isinstance(its, Precedence):
            found += [('dp', row.which - 1), ('dp_prio', its.prio), ('dp_min', its.min),
                      ('dp_max', its.max), ('dp_limit', its.limit),
                      ('dp_probability_ppm', its.probability)]
        elif isinstance(its, tuple):
            found.append(('priomap', bytes(its).hex()))
        else:
            found.append((row.name, its))
    return found


HEAD = {'version', 'type', 'length', 'xid', 'experimenter', 'exp_type', 'sched_type',
        'object_type', 'action_type', 'port_no', 'class_id', 'parent_id', 'entry_length',
        'prop_type', 'prop_length'} | {'count_' + n for n in replies.Counters.__annotations__}


def shown(pairs):
    return [(n, v if n == 'name' else v.replace(':', '') if n == 'priomap' else int(v, 0))
            for n, v in pairs
            if n not in HEAD]


def random_requests():
    r = random.Random(11)
    for sched in table.SCHEDULERS.values():
        for obj in ((table.QDISC, table.CLASS) if sched.classful else (table.QDISC,)):
            for action in range(4):
                params = {f.name: value(r, f) for f in sched.fields(obj, action)
                          if action == table.ADD or r.random() < 0.7}
                yield ofqos.request(sched, action, r.randrange(1, 99), r.randrange(99), obj,
                                    **params)


def test_every_scheduler_and_property(tmp_path):
    made = list(random_requests())
    raws = [ofqos.qos(q, i + 1, ('native', 'experimenter')[i % 2]) for i, q in enumerate(made)]
    for i, (q, trees) in enumerate(zip(made, one_each(tmp_path, raws))):
        tree, = trees
        assert tree.numbers('xid', 'sched_type', 'object_type', 'action_type', 'port_no',
                            'class_id') == [i + 1, q.scheduler.number, q.object, q.action, q.port,
                                            q.class_id]
        assert shown(tree) == expected(q), q
        name = q.scheduler.name.upper()
        assert f'{table.ACTIONS[q.action].upper()} {name} ' in tree.title


def test_dump_of_every_scheduler(tmp_path):
    entries = [replies.Entry(q, i, replies.Counters(*(range(i, i + 8))))
               for i, q in enumerate(q for q in random_requests() if q.action == table.ADD)]
    raw = wire.message(wire.T_MULTIPART_REPLY, 9, struct.pack(
        '!HH4xII', 0xffff, 1, wire.EXPERIMENTER, wire.QOS_DUMP) +
        b''.join(e.encode() for e in entries))
    # Cut into segments, so that it has to be put together again.
    path = tmp_path / 'dump.pcap'
    write_pcap(path, [(SWITCH, CONTROLLER, raw[i:i + 1000]) for i in range(0, len(raw), 1000)])
    tree, = [t for packet in dissected(path) for t in packet]
    assert tree.title.endswith(f'QOS_DUMP reply, {len(entries)} entries')
    assert not tree.all('malformed')
    assert [int(n) for n in tree.all('sched_type')] == [e.config.scheduler.number
                                                        for e in entries]
    assert [int(n) for n in tree.all('parent_id')] == [e.parent_id for e in entries]
    for name in replies.Counters.__annotations__:
        assert [int(n) for n in tree.all('count_' + name)] == [getattr(e.counters, name)
                                                               for e in entries]
    assert shown(p for p in tree if p[0] not in ('mp_flags', 'mp_exp_type')) == \
        [pair for e in entries for pair in expected(e.config)]


def test_several_messages_in_a_segment_and_over_two(tmp_path):
    add = ofqos.request('htb', 'add', 2, 10, rate=1)
    stream = ofqos.qos(add, 1) + wire.barrier(2) + ofqos.qos(add, 3, 'native')
    path = tmp_path / 's.pcap'
    write_pcap(path, [(CONTROLLER, SWITCH, stream[:80]), (CONTROLLER, SWITCH, stream[80:])])
    assert [t.numbers('xid')[0] for p in dissected(path) for t in p] == [1, 3]
    assert 'OFPT_BARRIER_REQUEST' in tshark(path)


def test_request_in_a_bundle(tmp_path):
    add = ofqos.qos(ofqos.request('pfifo', 'add', 2, 10, limit=50), 5)
    (outer, inner), = one_each(tmp_path, [wire.bundle_add(add, 77)])
    assert outer.numbers('bundle_exp_type', 'bundle_id', 'bundle_flags') == [2301, 77, 3]
    assert outer.title.endswith('bundle 77 ADD (QoS ADD PFIFO QDISC 10 on port 2)')
    assert inner.numbers('limit', 'xid') == [50, 5]


def test_malformed_messages_do_no_harm(tmp_path):
    """Cut and altered messages: no Lua error (tshark() looks for them), and what is too short for
    its kind is said to be malformed."""
    r = random.Random(3)
    good = [ofqos.qos(q, 1, 'native') for q in random_requests()] + [
        FILES[n] for n in ('01-error-sched', '01-error-experimenter', '01-error-bundle',
                           '04-experimenter-bundle_add', '04-experimenter-bundle_control',
                           '04-experimenter-capture', '04-experimenter-captured',
                           '04-experimenter-monitor', '04-experimenter-qos_changed',
                           '04-experimenter-role_changed', '04-experimenter-relay',
                           '19-multipart_reply-status', '18-multipart_request-experimenter')]
    raws = []
    for raw in good * 3:
        cut = raw[8:r.randrange(8, len(raw))]
        raws.append(wire.message(raw[1], 1, cut))
        bad = bytearray(raw)
        bad[r.randrange(8, len(bad))] ^= 1 << r.randrange(8)
        raws.append(bytes(bad))
    one_each(tmp_path, raws)
    for trees in one_each(tmp_path, [wire.message(30, 1, bytes(n)) for n in range(16)]):
        assert 'malformed' in [n for n, _ in trees[0]], trees


# --------------------------------------------------------------------------- our own traffic

@pytest.mark.skipif(os.geteuid() != 0, reason='needs root (network namespaces)')
def test_capture_of_real_traffic(tmp_path):
    path = tmp_path / 'real.pcap'
    with topo.Topology(ports=2) as t, topo.Switch(t, 'ptcp:6653:127.0.0.1'):
        capture = subprocess.Popen(
            ['ip', 'netns', 'exec', t.switch_ns, 'dumpcap', '-q', '-P', '-i', 'lo', '-f',
             'tcp port 6653', '-w', '-'],
            stdin=subprocess.DEVNULL, stdout=open(path, 'wb'), stderr=subprocess.PIPE)
        try:
            wait_for_dumpcap(capture)

            def dpctl(*words, check=True):
                return subprocess.run(
                    ['ip', 'netns', 'exec', t.switch_ns, topo.binary('utils/dpctl/dpctl'),
                     *words], check=check, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE, timeout=30)
            dpctl('tcp:127.0.0.1:6653', 'qos-htb',
                  'cmd=add,port=2,class=10,rate=6mbit,ceil=10mbit,prio=1')
            dpctl('--experimenter', 'tcp:127.0.0.1:6653', 'qos-htb',
                  'cmd=add,port=2,class=10,rate=7mbit', check=False)
            dpctl('tcp:127.0.0.1:6653', 'qos-pfifo', 'cmd=change,port=2,class=10,limit=9',
                  check=False)
            dpctl('tcp:127.0.0.1:6653', 'qos-show')
            time.sleep(1)
        finally:
            capture.send_signal(signal.SIGINT)
            capture.wait(20)
            capture.stderr.close()
    trees = [tree for packet in dissected(path) for tree in packet]
    assert not [tree.title for tree in trees if tree.all('malformed')]
    requests = [t for t in trees if t.title.split(': ')[-1].startswith('QoS ')]
    assert [(t.numbers('type', 'class_id')) for t in requests] == [[30, 10], [4, 10], [30, 10]]
    errors = [t for t in trees if t.all('error_code')]
    assert [t.numbers('error_type', 'error_code') for t in errors] == [[0xffff, 7], [14, 8]]
    assert all(t.first('error_text') for t in errors)
    assert [t.numbers('port_no', 'class_id') for t in errors] == [[2, 10], [2, 10]]
    dump = next(t for t in trees if 'QOS_DUMP reply' in t.title)
    queue = dump.all('class_id').index('10')
    assert dump.all('port_no')[queue] == '2'
    assert '6000000' in dump.all('rate') and '10000000' in dump.all('ceil')


def wait_for_dumpcap(process):
    """It says so when it has begun."""
    said, end = b'', time.monotonic() + 20
    os.set_blocking(process.stderr.fileno(), False)
    while b'Capturing on' not in said and b'File:' not in said:
        assert process.poll() is None, f'dumpcap ended: {said.decode()}'
        assert time.monotonic() < end, f'dumpcap does not begin: {said.decode()}'
        said += process.stderr.read() or b''
        time.sleep(0.05)
    time.sleep(0.5)
