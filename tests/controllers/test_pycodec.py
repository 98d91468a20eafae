# SPDX-License-Identifier: Apache-2.0
"""The Python package for controllers (controllers/python) beside the C codec: byte for byte."""
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(REPOSITORY / 'tests/golden'))
sys.path.insert(0, str(REPOSITORY / 'controllers/python'))
import tobin  # noqa: E402

import ofqos  # noqa: E402
from ofqos import errors, replies, table, wire  # noqa: E402
from ofqos.units import Curve, Precedence, Unit  # noqa: E402

FILES = dict(tobin.files())
# Units as qos/sched/include/qos/sched/sched.h numbers them.
C_UNITS = [Unit.COUNT, Unit.PACKETS, Unit.RATE, Unit.SIZE, Unit.SIGNED, Unit.SECONDS,
           Unit.MICROSECONDS, Unit.PPM, Unit.SHARE, Unit.BOOL, Unit.CLASS, Unit.WORD, Unit.PRIOMAP,
           Unit.CURVE, Unit.PRECEDENCE, Unit.NAME, Unit.MILLISECONDS]
ON_QDISC, ON_CLASS, ON_SET, ON_DEL, NEEDED = 1, 2, 4, 8, 16


@pytest.fixture(scope='module')
def tool(codec_tool):
    path = os.path.join(os.path.dirname(codec_tool), 'qos-tool')
    assert os.path.exists(path), 'the build has no tests/qos-tool: build it anew'
    return path


@pytest.fixture(scope='module')
def ask(tool):
    def run(lines):
        done = subprocess.run([tool], input='\n'.join(lines) + '\n', text=True, check=True,
                              stdout=subprocess.PIPE, timeout=60)
        answers = done.stdout.splitlines()
        assert len(answers) == len(lines)
        return answers
    return run


class Row(dict):
    """A field as the C library has it."""
    def __init__(self, line):
        number, self.sched, self.key, *rest = line.split(' ')
        super().__init__(word.split('=', 1) for word in rest)
        self.number = int(number)
        self.words = tuple(w for w in self.pop('words').split('|') if w)
        self.update({k: int(v) for k, v in self.items()})
        if C_UNITS[self['unit']] is Unit.SIGNED:
            self['min'] -= 1 << 64

    def applies(self, obj, action):
        need = (ON_CLASS if obj == table.CLASS else ON_QDISC) | \
            (ON_DEL if action == table.DEL else ON_SET)
        return self['where'] & need == need


@pytest.fixture(scope='module')
def rows(tool):
    done = subprocess.run([tool, '--fields'], text=True, check=True, stdout=subprocess.PIPE)
    return [Row(line) for line in done.stdout.splitlines()]


SHAPES = [(s, obj, action) for s in table.SCHEDULERS.values()
          for obj in ((table.QDISC, table.CLASS) if s.classful else (table.QDISC,))
          for action in ((table.DEL,) if s.number == 0 else range(4))]
SHAPE_NAMES = [f'{s.name}-{table.OBJECTS[o]}-{table.ACTIONS[a]}' for s, o, a in SHAPES]


# --------------------------------------------------------------------------------- the table

def test_all_schedulers_are_there(rows):
    assert {(r.number, r.sched) for r in rows} == \
        {(s.number, s.name) for s in table.SCHEDULERS.values()}


@pytest.mark.parametrize('shape', SHAPES, ids=SHAPE_NAMES)
def test_fields_are_those_of_the_switch(rows, shape):
    """Names, order, types, sizes, units and words."""
    sched, obj, action = shape
    theirs = [(r.key, C_UNITS[r['unit']], bool(r['fixed']), r['size'] + r['pad'], r['prop'],
               r['sub'], r.words, bool(r['where'] & NEEDED))
              for r in rows if r.number == sched.number and r.applies(obj, action)]
    ours = [(f.key, f.unit, f.fixed, wire.struct.calcsize(f.format), f.type or 0, f.which,
             f.words, f.needed) for f in sched.fields(obj, action)]
    assert ours == theirs


def test_properties_have_names(rows):
    used = {r['prop'] for r in rows} - {0}
    assert used == set(table.PROPERTY_NAMES)


# ------------------------------------------------------------------------------ golden files

@pytest.mark.parametrize('name, envelope, made', [
    ('30-qos_queueing_discipline-htb', 'native',
     ofqos.request('htb', 'add', 2, 10, rate='6mbit', ceil=10_000_000, prio=1)),
    ('30-qos_queueing_discipline-sfq', 'native',
     ofqos.request('sfq', 'add', 2, 10, perturb=10, quantum=1514, sfq_depth=127)),
    ('30-qos_queueing_discipline-link', 'native',
     ofqos.request('htb', 'replace', 2, 0, rate='10mbit', ceil=0, prio=0, overhead=44, mpu=64,
                   linklayer='atm')),
    ('30-qos_queueing_discipline-cake', 'native',
     ofqos.request('cake', 'add', 2, 0, rate='20mbit', overhead=-4, flow_mode='dual-dsthost',
                   nat=1, direction='in')),
    ('30-qos_queueing_discipline-fq', 'native',
     ofqos.request('fq', 'add', 2, 10, max_rate='2mbit', ce_threshold_us='1ms')),
    ('30-qos_queueing_discipline-fq_codel', 'native',
     ofqos.request('fq_codel', 'add', 2, 10, ce_threshold_us='1ms', drop_batch=16,
                   memory_limit='4mb')),
    ('30-qos_queueing_discipline-fq_pie', 'native',
     ofqos.request('fq_pie', 'add', 2, 10, target_us='20ms', memory_limit='4mb')),
    ('30-qos_queueing_discipline-dualpi2', 'native',
     ofqos.request('dualpi2', 'add', 2, 10, target_us='20ms', interval_us='16ms')),
    ('30-qos_queueing_discipline-choke', 'native',
     ofqos.request('choke', 'add', 2, 10, limit=600, ecn='yes', red_max=150)),
    ('30-qos_queueing_discipline-gred', 'native',
     ofqos.request('gred', 'add', 2, 10, limit=100_000, dp1=(30_000, 60_000, 90_000, 20_000, 1),
                   dp2=(20_000, 40_000, 90_000, 50_000, 2))),
    ('30-qos_queueing_discipline-htb-offload', 'native',
     ofqos.request('htb', 'add', 2, object='qdisc', offload='yes')),
    ('30-qos_queueing_discipline-mq', 'native', ofqos.request('mq', 'add', 2)),
    ('30-qos_queueing_discipline-tree', 'native',
     ofqos.request('htb', 'add', 2, 100, rate=5_000_000, ceil=50_000_000, parent=2)),
    ('30-qos_queueing_discipline-mqprio', 'native', ofqos.request('mqprio', 'add', 2, bands=4)),
    ('30-qos_queueing_discipline-etf', 'native',
     ofqos.request('etf', 'add', 2, 10, latency_us='300us')),
    ('30-qos_queueing_discipline-taprio', 'native',
     ofqos.request('taprio', 'add', 2, interval_us='2ms', bands=3)),
    ('30-qos_queueing_discipline-cbs', 'native',
     ofqos.request('cbs', 'add', 2, 2, rate='20mbit', offload='yes')),
    ('30-qos_queueing_discipline-bpf', 'native', ofqos.request('bpf', 'add', 2, 2, name='bpf_fq')),
    ('30-qos_queueing_discipline-name', 'native',
     ofqos.request('htb', 'add', 2, 10, rate='6mbit', name='Büro 1')),
    ('30-qos_queueing_discipline-promise', 'native',
     ofqos.request('htb', 'add', 2, 10, rate='6mbit', promise='500ms')),
    ('30-qos_queueing_discipline-none', 'native', ofqos.request('none', 'del', 2)),
    ('04-experimenter-qos', 'experimenter', ofqos.request('none', 'del', 2))])
def test_golden_requests(name, envelope, made):
    raw = FILES[name]
    request, xid, its_envelope = ofqos.parse_qos(raw)
    assert (request, its_envelope) == (made, envelope)
    assert ofqos.qos(made, xid, envelope) == raw


def test_golden_errors():
    for name, etype, code, errno, text, sched in (
            ('01-error-sched', 14, 12, 22, 'Invalid argument', 'OFPSFC_KERNEL'),
            ('01-error-experimenter', 0xffff, 7, 17, 'there is one already', 'OFPSFC_EXISTS')):
        error = ofqos.parse_error(FILES[name])
        assert isinstance(error, ofqos.SchedFailed)
        assert (error.type, error.code, error.errno, error.text, error.name) == \
            (etype, code, errno, text, sched)
        assert len(error.request) == 64
        assert text in str(error) and sched in str(error)
    error = ofqos.parse_error(FILES['01-error-bundle'])
    assert isinstance(error, ofqos.BundleFailed)
    assert (error.code, error.name, error.xid) == (10, 'MSG_UNSUP', 7)
    plain = ofqos.parse_error(FILES['01-error-bad_len'])
    assert type(plain) is ofqos.Refused and (plain.type, plain.code) == (1, 6)


def test_golden_multipart_and_bundles():
    assert wire.ask_dump(0x65, 2) == FILES['18-multipart_request-experimenter']
    part = wire.parse_part(FILES['19-multipart_reply-experimenter'])
    assert (part.xid, part.exp_type, part.more, ofqos.parse_dump(part.data)) == \
        (0x66, wire.QOS_DUMP, False, [])
    assert wire.bundle_control(wire.OPEN_REQUEST, 1, 17) == \
        FILES['04-experimenter-bundle_control']
    add = FILES['04-experimenter-bundle_add']
    assert wire.bundle_add(add[24:], 1) == add


def test_golden_changes():
    assert ofqos.monitor(21) == FILES['04-experimenter-monitor']
    assert ofqos.parse_change(FILES['04-experimenter-qos_changed']) == ofqos.QosChange(
        'request', 2, 0, 5, ofqos.request('htb', 'add', 2, 10, rate='6mbit', ceil='10mbit', prio=1))
    assert ofqos.parse_change(FILES['04-experimenter-qos_changed-gone']) == \
        ofqos.QosChange('gone', 2, 0, 6, None)
    assert ofqos.parse_change(FILES['04-experimenter-role_changed']) == \
        ofqos.RoleChange('master', 17, 'tcp:10.0.0.9:40000')
    assert ofqos.parse_change(FILES['04-experimenter-qos_promise']) == \
        ofqos.PromiseChange(2, 10, False, True, 'rate', 500, 6_000_000, 4_000_000, 501_000, 0)
    assert ofqos.parse_change(FILES['04-experimenter-qos_promise-drops']) == \
        ofqos.PromiseChange(2, 10, False, False, 'drops', 500, 6_000_000, 4_000_000, 4_000_000, 120)
    for name in '04-experimenter-monitor', '04-experimenter-qos', '00-hello':
        with pytest.raises(ValueError):
            ofqos.parse_change(FILES[name])


def test_codes_have_the_headers_names():
    text = (REPOSITORY / 'oflib/include/oflib/errors.h').read_text()
    for i, name in enumerate(errors.SCHED_CODES):
        assert f'(OFPSFC_{name}, {i},' in text


# -------------------------------------------------------------------------------- at random

class Maker:
    """Requests that the switch's codec accepts, out of the ranges that it tells."""

    def __init__(self, rows, seed):
        self.r, self.rows = random.Random(seed), rows

    def number(self, low, high):
        """Small ones, large ones, and all sizes between."""
        kind = self.r.randrange(6)
        if kind == 0:
            return self.r.choice([low, high])
        if kind == 1:
            step = 10 ** self.r.randrange(7)
            return min(high, max(low, self.r.randrange(1, 2000) * step))
        top = min(high, low + (1 << self.r.randrange(1, 54)))
        return self.r.randint(low, top)

    def value(self, field, row):
        if field.unit is Unit.CURVE:
            return Curve(self.number(0, row['max']), self.number(0, 3_600_000_000),
                         self.number(0, row['max']))
        if field.unit is Unit.PRECEDENCE:
            low = self.number(1, row['max'] - 1)
            return Precedence(low, self.number(low + 1, row['max']), self.number(low, row['max']),
                              self.number(1, 1_000_000), self.number(0, 255))
        if field.unit is Unit.NAME:
            return ''.join(self.r.choices('aZ9 ,%#$"\'\\=/äü漢😀', k=self.r.randrange(8)))
        if field.unit is Unit.PRIOMAP:
            return tuple(self.r.randrange(16) for _ in range(16))
        return self.number(row['min'], row['max'])

    def request(self, sched, obj, action, density=0.6):
        known = {(r['prop'], r['sub'], r['fixed'] > 0, r.key): r for r in self.rows
                 if r.number == sched.number and r.applies(obj, action)}
        params = {f.name: self.value(f, known[f.type or 0, f.which, f.fixed, f.key])
                  for f in sched.fields(obj, action) if self.r.random() < density}
        port = self.r.choice([1, 0xffffff00, table.PORT_LOCAL, self.number(1, 0xffff)])
        if sched.number == 0:
            port = self.r.choice([port, table.PORT_ANY])
        class_id = 0 if sched.number == 0 else self.number(0, table.MAX_QUEUE)
        return ofqos.request(sched, action, port, class_id, obj, **params)


@pytest.mark.parametrize('shape', SHAPES, ids=SHAPE_NAMES)
def test_random_requests_through_the_switchs_codec(rows, ask, shape):
    maker = Maker(rows, f'requests {shape[0].name} {shape[1:]}')
    made = [maker.request(*shape) for _ in range(200)] + [maker.request(*shape, density=1)]
    answers = ask(['request ' + r.encode().hex() for r in made])
    for request, answer in zip(made, answers):
        assert answer.startswith('ok '), f'{request}: {answer}'
        _, encoded, text = answer.split(' ', 2)
        assert encoded == request.encode().hex(), request
        assert text == request.text()
        assert ofqos.Request.decode(bytes.fromhex(encoded)) == request
        assert ofqos.Request.from_text(request.scheduler.name, text) == request


@pytest.mark.parametrize('shape', [s for s in SHAPES if s[2] == table.ADD],
                         ids=[n for n in SHAPE_NAMES if n.endswith('-add')])
def test_text_means_to_dpctl_what_it_means_here(rows, ask, shape):
    """What dpctl needs is given; the switch's parser makes the same bytes of the text."""
    maker = Maker(rows, f'text {shape[0].name} {shape[1:]}')
    made = [maker.request(*shape, density=1) for _ in range(50)]
    for request, answer in zip(made, ask([f'text {r.scheduler.name} {r.text()}' for r in made])):
        assert answer.startswith(f'ok {request.encode().hex()} '), f'{request}: {answer}'


@pytest.mark.parametrize('shape', [s for s in SHAPES if s[2] == table.ADD],
                         ids=[n for n in SHAPE_NAMES if n.endswith('-add')])
def test_random_dump_entries_through_the_switchs_codec(rows, ask, shape):
    maker = Maker(rows, f'entries {shape[0].name} {shape[1:]}')
    made = [replies.Entry(maker.request(*shape), maker.number(0, 0xffff), replies.Counters(
        *(maker.r.getrandbits(64) for _ in range(6)), maker.r.getrandbits(32),
        maker.r.getrandbits(32))) for _ in range(50)]
    for entry, answer in zip(made, ask(['entry ' + e.encode().hex() for e in made])):
        assert answer.startswith(f'ok {entry.encode().hex()} '), f'{entry}: {answer}'
    assert ofqos.parse_dump(b''.join(e.encode() for e in made)) == made


def test_damaged_requests_are_refused_by_both(rows, ask):
    """What the switch takes, this reads; what this can't read, the switch refuses."""
    maker = Maker(rows, 'damage')
    damaged = []
    for shape in SHAPES:
        for _ in range(60):
            raw = bytearray(maker.request(*shape).encode())
            for _ in range(maker.r.randrange(1, 3)):
                raw[maker.r.randrange(len(raw))] = maker.r.choice([0, 1, 4, 8, 255])
            damaged.append(bytes(raw[:maker.r.choice([len(raw), maker.r.randrange(len(raw))])]))
    refused = 0
    for raw, answer in zip(damaged, ask(['request ' + (r.hex() or '00') for r in damaged])):
        try:
            ofqos.Request.decode(raw)
        except ValueError:
            assert not answer.startswith('ok '), raw.hex()
            refused += 1
    assert refused > 100


# ------------------------------------------------------------------------------------ others

@pytest.mark.parametrize('call, why', [
    (lambda: ofqos.request('htp', 'add', 1), 'htp'),
    (lambda: ofqos.request('htb', 'put', 1), 'put'),
    (lambda: ofqos.request('htb', 'add', 1, 1, speed=3), 'speed'),
    (lambda: ofqos.request('htb', 'add', 1, 1, rate='6furlongs'), '6furlongs'),
    (lambda: ofqos.request('htb', 'add', 1, 1, prio=1 << 32), 'prio'),
    (lambda: ofqos.request('htb', 'add', 1, 1, burst=-1), 'burst'),
    (lambda: ofqos.request('htb', 'del', 1, 1, rate=5), 'rate'),
    (lambda: ofqos.request('prio', 'add', 1, priomap=(1, 2)), 'priomap'),
    (lambda: ofqos.request('hfsc', 'add', 1, 1, ls=5), 'ls'),
    (lambda: ofqos.request('sfq', 'add', 1 << 32), 'port'),
    (lambda: ofqos.Request.from_text('htb', 'cmd=add,port=x'), 'x'),
    (lambda: ofqos.Request.from_text('htb', 'cmd=add,port=1,class=2,rate'), 'rate'),
    (lambda: ofqos.parse_dump(bytes(80)), 'length'),
    (lambda: ofqos.parse_kernel(bytes(10)), 'KERNEL'),
    (lambda: ofqos.parse_service(bytes(47)), 'SERVICE'),
    (lambda: ofqos.parse_latency(bytes(72)), 'length'),
    (lambda: ofqos.parse_latency(b'\0\x48' + bytes(70) + b'\0'), 'length'),
    (lambda: ofqos.parse_error(FILES['00-hello']), 'no error')])
def test_mistakes_are_told(call, why):
    with pytest.raises(ValueError, match=why):
        call()


def test_the_other_replies():
    port = wire.struct.pack('!IBBHIIQQ', 3, 1, 13, 6, 20, 7, 8, 9)
    assert ofqos.parse_ports(port) == [ofqos.PortQueues(3, 'in', 'hfsc', False, True, True, 20, 7,
                                                        8, 9)]
    kernel = b'6.1.0'.ljust(64, b'\0') + bytes([1, 1, 0, 0, 4, 0, 0, 0, 5, 2, 0, 0, 99, 1, 0, 0])
    assert ofqos.parse_kernel(kernel) == ofqos.Kernel(
        '6.1.0', {'htb': True, 'sfq': False, 'red': None})
    served = wire.struct.pack('!IIBBHIQQQQ', 2, 10, 1, 29, 250, 31000, 1, 2, 4, 1)
    idle = wire.struct.pack('!IIBB6xQQQQ', 2, 11, 0, 3, 0, 0, 0, 0)
    assert ofqos.parse_service(served + idle) == [
        ofqos.Served(2, 10, 'in', True, False, True, True, True, 1, 2, 4, 1, 0.75, 31000),
        ofqos.Served(2, 11, 'out', True, True, False, False, False, 0, 0, 0, 0)]
    assert [s.kept for s in ofqos.parse_service(served + idle)] == [0.75, None]
    none = 0xffffffff
    queue = wire.struct.pack('!HBxIIIQIIIIIB3xQIIII', 80, 1, 2, 10, 10, 7, 1, 30, 3, 4, 20, 3, 0, none, none, none, none)
    assert ofqos.parse_latency(queue + bytes(8)) == [ofqos.Latency(
        2, 10, 'in', 10, ofqos.Figures(7, 1, 30, 3, 4), 20, ofqos.Figures(0, None, None, None, None), 'backlog')]
    assert ofqos.parse_latency(queue + bytes(8))[0].added_us == 10
    counter = wire.struct.pack('!H6xQ', 24, 5) + b'drop.x\0\0'
    assert ofqos.parse_counters(counter * 2) == {'drop.x': 5}


def test_words_for_a_line():
    for scheduler, overhead in (('cake', 18), ('htb', 4)):
        found = ofqos.Request.from_text(scheduler, 'cmd=change,port=1,class=2,linklayer=docsis').params
        assert {k: found[k] for k in ('linklayer', 'overhead', 'mpu')} == \
            {'linklayer': 0, 'overhead': overhead, 'mpu': 64}
    assert ofqos.Request.from_text('cake', 'cmd=add,port=1,linklayer=pppoe-llcsnap').params == \
        {'linklayer': 1, 'overhead': 40}
    assert ofqos.Request.from_text('cake', 'cmd=add,port=1,overhead=44,atm').params == \
        {'linklayer': 1, 'overhead': 44}


@pytest.mark.skipif(not shutil.which('mypy'), reason='mypy is not installed')
def test_types():
    done = subprocess.run(['mypy', '--cache-dir', os.devnull], text=True,
                          cwd=REPOSITORY / 'controllers/python', stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout


def test_what_is_read_again_and_again():
    """As read once, whatever changes; and what did not change is the same object."""
    rng = random.Random(5)
    shapes = [ofqos.request('htb', 'add', port=n % 2 + 1, class_id=n + 1, rate='1mbit', ceil=10 ** 7 + n % 3, name=f'c{n}') for n in range(40)]
    shapes += [ofqos.request('fq_codel', 'add', port=1, class_id=n + 1, flows=128) for n in range(10)]
    counters = [[0] * 8 for _ in shapes]
    again = replies.dumps()
    before = []
    for turn in range(40):
        for n in rng.sample(range(len(shapes)), 5):
            counters[n][rng.randrange(8)] += 1
        if turn % 7 == 6:
            shapes.pop(), counters.pop()
        data = b''.join(replies.Entry(shape, 7, replies.Counters(*each)).encode() for shape, each in zip(shapes, counters))
        found = again(data)
        assert found == replies.parse_dump(data)
        assert len(found) != len(before) or sum(new is old for new, old in zip(found, before)) >= len(found) - 5
        before = found
    with pytest.raises(ValueError, match='an entry of length'):
        again(b'\0\1' + bytes(80))
    assert again(data) == found
