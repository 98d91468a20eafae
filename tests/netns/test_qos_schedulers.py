# SPDX-License-Identifier: Apache-2.0
"""Every scheduler: set on a queue and on a port's root, read back from the kernel, changed,
replaced, deleted, by both envelopes.

These run in the kernel at hand as far as it has the schedulers, and again in the test kernel."""
import struct

import pytest

from support import qosmsg as q, tc
from support.of13 import apply_actions, output, set_queue
from support.topo import eth, udp4

ONE_SWITCH = True
pytestmark = pytest.mark.testkernel
MBIT = 1_000_000
PPM32 = (1 << 32) / 1_000_000
U32_MAX = 0xffffffff

# name: (fixed parameters, properties, what the kernel must then have). Two settings of each, for
# add and change.  docs/reference/qos-extension.md gives the units; the kernel's are in support/tc.py.
SETTINGS = {
    'pfifo': [((77,), {}, {'limit': 77}), ((5,), {}, {'limit': 5})],
    'bfifo': [((30000,), {}, {'limit': 30000}), ((9000,), {}, {'limit': 9000})],
    'sfq': [((7, 3000), {'limit': 100, 'flows': 64, 'sfq_depth': 20, 'sfq_divisor': 256},
             {'perturb': 7, 'quantum': 3000, 'limit': 100, 'flows': 64, 'depth': 20,
              'divisor': 256}),
            ((0, 0), {}, {'perturb': 10, 'quantum': 1500})],
    'red': [((10000, 60000), {'red_max': 25000, 'red_probability_ppm': 50000, 'ecn': 1},
             {'min': 10000, 'max': 25000, 'limit': 60000, 'max_p': 50000, 'flags': 1}),
            ((8000, 40000), {'red_max': 20000, 'red_probability_ppm': 10000, 'ecn': 0},
             {'min': 8000, 'max': 20000, 'limit': 40000, 'max_p': 10000, 'flags': 0})],
    'tbf': [((), {'rate': 3 * MBIT, 'burst': 8000, 'limit': 20000},
             {'rate': 3 * MBIT, 'limit': 20000}),
            ((), {'rate': 5 * MBIT, 'burst': 10000, 'latency_us': 20000},
             {'rate': 5 * MBIT, 'limit': 5 * MBIT // 8 // 50 + 10000})],
    'prio': [((), {'bands': 4, 'priomap': bytes([3, 2, 1, 0] * 4)},
              {'bands': 4, 'priomap': bytes([3, 2, 1, 0] * 4)}),
             ((), {'bands': 3, 'priomap': bytes([0] * 16)},
              {'bands': 3, 'priomap': bytes([0] * 16)})],
    'codel': [((), {'limit': 500, 'target_us': 4000, 'interval_us': 90000, 'ecn': 1,
                    'ce_threshold_us': 2000},
               {'limit': 500, 'target': 4000, 'interval': 90000, 'ecn': 1, 'ce_threshold': 2000}),
              ((), {'target_us': 8000, 'ce_threshold_us': 0},
               {'target': 8000, 'ce_threshold': None})],
    'fq_codel': [((), {'limit': 2000, 'target_us': 4000, 'interval_us': 90000, 'ecn': 0,
                       'flows': 512, 'quantum': 600, 'ce_threshold_us': 2000, 'drop_batch': 8,
                       'memory_limit': 4_000_000},
                  {'limit': 2000, 'target': 4000, 'interval': 90000, 'ecn': 0, 'flows': 512,
                   'quantum': 600, 'ce_threshold': 2000, 'drop_batch': 8,
                   'memory_limit': 4_000_000}),
                 ((), {'target_us': 8000, 'flows': 512, 'ce_threshold_us': 0, 'drop_batch': 16,
                       'memory_limit': 8_000_000},
                  {'target': 8000, 'flows': 512, 'ce_threshold': None, 'drop_batch': 16,
                   'memory_limit': 8_000_000})],
    'fq': [((), {'limit': 300, 'quantum': 4000, 'max_rate': 2 * MBIT, 'ce_threshold_us': 3000},
            {'limit': 300, 'quantum': 4000, 'max_rate': 2 * MBIT // 8, 'ce_threshold': 3000}),
           ((), {'limit': 600, 'max_rate': 0, 'ce_threshold_us': 0},
            {'limit': 600, 'max_rate': U32_MAX, 'ce_threshold': U32_MAX})],
    'pie': [((), {'limit': 300, 'target_us': 20000, 'interval_us': 20000, 'ecn': 1},
             {'limit': 300, 'target': 20000, 'tupdate': 20000, 'ecn': 1}),
            ((), {'target_us': 30000}, {'target': 30000})],
    'cake': [((), {'rate': 7 * MBIT, 'interval_us': 50000, 'diffserv': 0, 'flow_mode': 6, 'wash': 1,
                   'overhead': 20, 'nat': 1, 'memory_limit': 500_000},
              {'rate': 7 * MBIT, 'rtt_us': 50000, 'diffserv': 3, 'flow_mode': 6, 'wash': 1,
               'overhead': 20, 'nat': 1, 'memory': 500_000}),
             ((), {'rate': 9 * MBIT, 'flow_mode': 5, 'wash': 0, 'overhead': -8, 'nat': 0,
                   'memory_limit': 600_000},
              {'rate': 9 * MBIT, 'flow_mode': 5, 'wash': 0, 'overhead': -8, 'nat': 0,
               'memory': 600_000})],
    'netem': [((), {'latency_us': 30000, 'jitter_us': 5000, 'loss_ppm': 10000, 'limit': 500},
               {'latency_ns': 30_000_000, 'jitter_ns': 5_000_000, 'limit': 500, 'loss': 10000}),
              ((), {'latency_us': 10000, 'rate': 4 * MBIT},
               {'latency_ns': 10_000_000, 'rate': 4 * MBIT})],
    'ets': [((), {'bands': 3}, {'bands': 3}), ((), {'bands': 5}, {'bands': 5})],
    'fq_pie': [((), {'limit': 300, 'target_us': 20000, 'interval_us': 20000, 'ecn': 1, 'flows': 512,
                     'quantum': 600, 'memory_limit': 4_000_000},
                {'limit': 300, 'target': 20000, 'tupdate': 20000, 'ecn': 1, 'flows': 512,
                 'quantum': 600, 'memory_limit': 4_000_000}),
               ((), {'target_us': 30000, 'flows': 512, 'memory_limit': 8_000_000},
                {'target': 30000, 'flows': 512, 'memory_limit': 8_000_000})],
    'dualpi2': [((), {'limit': 300, 'target_us': 20000, 'interval_us': 20000},
                 {'limit': 300, 'target': 20000, 'tupdate': 20000}),
                ((), {'target_us': 30000}, {'target': 30000})],
    'choke': [((), {'limit': 600, 'red_max': 150, 'red_probability_ppm': 50000, 'ecn': 1},
               {'limit': 600, 'min': 50, 'max': 150, 'max_p': 50000, 'flags': 1}),
              ((), {'limit': 400, 'red_max': 90, 'red_probability_ppm': 10000, 'ecn': 0},
               {'limit': 400, 'min': 30, 'max': 90, 'max_p': 10000, 'flags': 0})],
    'etf': [((), {'latency_us': 300}, {'delta': 300_000, 'clock': 11, 'flags': 0}),
            ((), {'latency_us': 500}, {'delta': 500_000, 'clock': 11, 'flags': 0})],
    'cbs': [((), {'rate': 20 * MBIT, 'burst': 300},
             {'idleslope': 20_000, 'sendslope': 20_000 - 10_000_000, 'hicredit': 300, 'offload': 0}),
            ((), {'rate': 30 * MBIT, 'burst': 400},
             {'idleslope': 30_000, 'sendslope': 30_000 - 10_000_000, 'hicredit': 400,
              'offload': 0})],
}
BANDS = ('prio', 'ets')                       # at a port's root alone
# What the kernel keeps coarser than asked: times in 1.024 us (PIE's in its clock ticks, here a
# multiple of all usual ones), probabilities in 2^-32.
ROUNDED = {'target', 'interval', 'tupdate', 'ce_threshold'}


def check(row, kind, wanted):
    assert row is not None and row['kind'] == kind, f'{kind} is not there: {row}'
    for key, value in wanted.items():
        got = row['options'].get(key)
        if key in ('max_p', 'loss'):
            assert got == pytest.approx(value * PPM32, rel=1e-3), f'{key}: {got}'
        elif key in ROUNDED and value is not None:
            assert got == pytest.approx(value, abs=2), f'{key}: {got}'
        else:
            assert got == value, f'{key}: {got}, expected {value}, all: {row["options"]}'


def asking(conn, envelope):
    def send(content):
        q.send(conn, envelope, content)
    send.conn = conn
    send.envelope = envelope
    return send


@pytest.fixture(params=q.ENVELOPES)
def ask(request, conn):
    return asking(conn, request.param)


@pytest.fixture
def native(conn):
    """What is the same in both envelopes, by one of them: the test kernel is slow"""
    return asking(conn, q.NATIVE)


def request_of(kind, action, setting, queue):
    fixed, properties, _ = SETTINGS[kind][setting]
    return q.qdisc(q.SCHEDS.index(kind), action, 2, queue, *fixed, **properties)


@pytest.mark.every
@pytest.mark.parametrize('kind', SETTINGS)
def test_on_a_queue(ask, four_ports, need, kind):
    need(kind)
    ns, sched = four_ports.switch_ns, q.SCHEDS.index(kind)
    ask(q.htb_class(q.ADD, 2, 10, 5 * MBIT))
    if kind in BANDS:
        error = q.refused(ask.conn, ask.envelope, request_of(kind, q.ADD, 0, 10), q.UNSUPPORTED)
        assert "a port's root" in error.text and 'parent=10' in error.text
        assert tc.leaf(ns, 'p2', 10) is None
        return
    ask(request_of(kind, q.ADD, 0, 10))
    check(tc.leaf(ns, 'p2', 10), kind, SETTINGS[kind][0][2])
    assert f'qdisc {kind}' in tc.tc(ns, 'qdisc', 'show', 'dev', 'p2', 'parent', '1:a')
    q.refused(ask.conn, ask.envelope, request_of(kind, q.ADD, 1, 10), q.EXISTS)
    check(tc.leaf(ns, 'p2', 10), kind, SETTINGS[kind][0][2])
    ask(request_of(kind, q.CHANGE, 1, 10))
    check(tc.leaf(ns, 'p2', 10), kind, SETTINGS[kind][1][2])
    ask(request_of(kind, q.REPLACE, 0, 10))
    check(tc.leaf(ns, 'p2', 10), kind, SETTINGS[kind][0][2])
    entry, = [e for e in q.dump(ask.conn, 2, 10) if e['object_type'] == q.QDISC]
    assert entry['sched_type'] == sched
    ask(q.qdisc(sched, q.DEL, 2, 10))
    left = tc.leaf(ns, 'p2', 10)
    assert left is None or left['kind'] == 'pfifo' and kind != 'pfifo' or left['handle'] == 0
    q.refused(ask.conn, ask.envelope, q.qdisc(sched, q.DEL, 2, 10), q.NOT_FOUND)
    q.refused(ask.conn, ask.envelope, request_of(kind, q.CHANGE, 0, 10), q.NOT_FOUND)


@pytest.mark.parametrize('kind', SETTINGS)
def test_on_the_port(ask, four_ports, need, kind):
    """class_id 0: the scheduler is the port's root."""
    need(kind)
    ns = four_ports.switch_ns
    ask(request_of(kind, q.ADD, 0, 0))
    check(tc.root(ns, 'p2'), kind, SETTINGS[kind][0][2])
    ask(request_of(kind, q.REPLACE, 1, 0))
    check(tc.root(ns, 'p2'), kind, SETTINGS[kind][1][2])
    ask(q.qdisc(q.SCHEDS.index(kind), q.DEL, 2, 0))
    assert tc.root(ns, 'p2') is None


# One property at a time, as far as SETTINGS has it not: (kind, fixed, properties, in the kernel).
# cake's modes are numbered differently there.
PROPERTIES = [
    ('pfifo', (0,), {'limit': 33}, {'limit': 33}),
    ('bfifo', (0,), {'limit': 3300}, {'limit': 3300}),
    ('red', (10_000, 0), {'limit': 50_000}, {'min': 10_000, 'max': 30_000, 'limit': 50_000}),
    ('red', (10_000, 60_000), {'red_adaptive': 1}, {'flags': 4}),
    ('red', (10_000, 60_000), {'red_adaptive': 1, 'ecn': 1}, {'flags': 5}),
    ('red', (10_000, 60_000), {'red_probability_ppm': 1_000_000}, {'min': 10_000}),
    ('tbf', (), {'rate': 3 * MBIT, 'burst': 8000, 'limit': 20_000, 'peak_rate': 6 * MBIT},
     {'rate': 3 * MBIT, 'peak_rate': 6 * MBIT, 'limit': 20_000}),
    ('tbf', (), {'rate': 8 * MBIT, 'burst': 16_000, 'limit': 20_000}, {'buffer': 16_000_000 // 64}),
    ('tbf', (), {'rate': 3 * MBIT, 'overhead': 44, 'mpu': 96, 'linklayer': 1},
     {'overhead': 44, 'mpu': 96, 'linklayer': 2}),
    ('tbf', (), {'rate': 3 * MBIT, 'peak_rate': 6 * MBIT, 'overhead': 20},
     {'overhead': 20, 'linklayer': 1, 'peak_link': {'overhead': 20, 'mpu': 0, 'linklayer': 1}}),
    ('cake', (), {'rate': 7 * MBIT, 'limit': 2_000_000}, {'rate': 7 * MBIT, 'memory': 2_000_000}),
    ('cake', (), {}, {'overhead': 0, 'raw': True, 'mpu': 0, 'atm': 0, 'flow_mode': 7, 'nat': 0,
                      'wash': 0, 'ack_filter': 0, 'ingress': 0, 'split_gso': 1, 'memory': 0,
                      'fwmark': 0, 'autorate': 0}),
    ('cake', (), {'rate': 7 * MBIT, 'overhead': -4, 'mpu': 64, 'linklayer': 2},
     {'overhead': -4, 'raw': False, 'mpu': 64, 'atm': 2}),
    ('cake', (), {'overhead': 44, 'linklayer': 1}, {'overhead': 44, 'raw': False, 'atm': 1}),
    ('cake', (), {'overhead': 0}, {'overhead': 0, 'raw': False}),
    *(('cake', (), {'flow_mode': n}, {'flow_mode': n}) for n in range(8)),
    ('cake', (), {'flow_mode': 5, 'nat': 1}, {'flow_mode': 5, 'nat': 1}),
    ('cake', (), {'wash': 1}, {'wash': 1}),
    ('cake', (), {'ack_filter': 1}, {'ack_filter': 1}),
    ('cake', (), {'ack_filter': 2}, {'ack_filter': 2}),
    ('cake', (), {'ingress': 1}, {'ingress': 1}),
    ('cake', (), {'split_gso': 0}, {'split_gso': 0}),
    ('cake', (), {'memory_limit': 3_000_000}, {'memory': 3_000_000}),
    ('cake', (), {'fwmark': 0xff00}, {'fwmark': 0xff00}),
    ('cake', (), {'rate': 7 * MBIT, 'autorate_ingress': 1}, {'autorate': 1}),
    ('cake', (), {'diffserv': 0}, {'diffserv': 3}),
    ('cake', (), {'diffserv': 1}, {'diffserv': 0}),
    ('cake', (), {'diffserv': 2}, {'diffserv': 1}),
    ('cake', (), {'diffserv': 3}, {'diffserv': 2}),
    ('netem', (), {'loss_ppm': 1_000_000}, {'loss': 1_000_000}),
    ('netem', (), {'latency_us': 0, 'loss_ppm': 0}, {'latency': 0, 'loss': 0}),
    ('prio', (), {'bands': 16, 'priomap': bytes(range(16))},
     {'bands': 16, 'priomap': bytes(range(16))}),
    ('prio', (), {'bands': 2}, {'bands': 2}),
    ('ets', (), {'bands': 4, 'priomap': bytes([3, 2, 1, 0] * 4)},
     {'bands': 4, 'priomap': bytes([3, 2, 1, 0] * 4)}),
    ('sfq', (0, 0), {'limit': 2}, {'limit': 2}),
    ('sfq', (0, 0), {'sfq_divisor': 65_536}, {'divisor': 65_536}),
    ('fq_codel', (), {'flows': 65_536}, {'flows': 65_536}),
    ('fq_codel', (), {'ce_threshold_us': 1000}, {'ce_threshold': 1000}),
    ('fq_codel', (), {'ce_threshold_us': 2_000_000_000}, {'ce_threshold': 2_000_000_000}),
    ('fq_codel', (), {'drop_batch': U32_MAX}, {'drop_batch': U32_MAX}),
    ('fq_codel', (), {'memory_limit': 1 << 31}, {'memory_limit': 1 << 31}),
    ('codel', (), {'ce_threshold_us': 1}, {'ce_threshold': 0}),
    ('codel', (), {'ce_threshold_us': 0}, {'ce_threshold': None}),
    ('choke', (), {}, {'limit': 1000, 'min': 83, 'max': 250, 'max_p': 20000, 'flags': 0}),
    ('choke', (), {'red_max': 2, 'red_burst': 1}, {'min': 1, 'max': 2}),
    ('choke', (), {'limit': 131_071}, {'limit': 131_071, 'min': 10_922, 'max': 32_767}),
    ('etf', (), {}, {'delta': 0, 'clock': 11, 'flags': 0}),
    ('etf', (), {'latency_us': 2_147_483}, {'delta': 2_147_483_000}),
    ('cbs', (), {'rate': 5 * MBIT}, {'idleslope': 5_000, 'hicredit': 1, 'locredit': -1513}),
    ('cbs', (), {'rate': 1000}, {'idleslope': 1}),
    ('cbs', (), {'rate': 9_000 * MBIT}, {'idleslope': 9_000_000, 'sendslope': -1_000_000,
                                         'hicredit': 1363, 'locredit': -151}),
    ('fq', (), {'max_rate': 8}, {'max_rate': 1, 'ce_threshold': U32_MAX}),
    ('fq', (), {'max_rate': 8 * (U32_MAX - 1)}, {'max_rate': U32_MAX - 1}),
    ('fq', (), {'ce_threshold_us': 1}, {'ce_threshold': 1, 'max_rate': U32_MAX}),
]


@pytest.mark.parametrize('case', range(len(PROPERTIES)))
def test_each_property(native, four_ports, need, case):
    """In the kernel, and told in the dump, as it was given."""
    kind, fixed, properties, wanted = PROPERTIES[case]
    need(kind)
    sched, queue = q.SCHEDS.index(kind), 0 if kind in BANDS else 10
    if queue:
        native(q.htb_class(q.ADD, 2, 10, 5 * MBIT))
    native(q.qdisc(sched, q.ADD, 2, queue, *fixed, **properties))
    check((tc.leaf(four_ports.switch_ns, 'p2', 10) if queue else
           tc.root(four_ports.switch_ns, 'p2')), kind, wanted)
    entry, = [e for e in q.dump(native.conn, 2, queue) if e['object_type'] == q.QDISC]
    told = {**entry['properties'], **{k: v for k, v in entry.items() if k in ('limit',)}}
    assert {k: told[k] for k in properties} == properties


def test_red_is_what_tc_makes_of_it(native, four_ports, need):
    """AVPKT and BURST become the kernel's weight of the average."""
    need('red')
    ns = four_ports.switch_ns
    for minimum, maximum, avpkt, burst, mbit in ((10_000, 30_000, 1000, 20, 10),
                                                 (20_000, 60_000, 500, 60, 100),
                                                 (30_000, 90_000, 1500, 40, 1)):
        native(q.htb_class(q.REPLACE, 2, 10, 5 * MBIT))
        native(q.qdisc(q.RED, q.REPLACE, 2, 10, minimum, 120_000, red_max=maximum, red_avpkt=avpkt,
                    red_burst=burst, red_bandwidth=mbit * MBIT))
        tc.tc(ns, *f'qdisc replace dev p3 root handle 5: red limit 120000 min {minimum} max '
              f'{maximum} avpkt {avpkt} burst {burst} bandwidth {mbit}mbit probability '
              '0.02'.split())
        ours, theirs = tc.leaf(ns, 'p2', 10)['options'], tc.root(ns, 'p3')['options']
        tc.tc(ns, *'qdisc del dev p3 root'.split())
        for key in 'min', 'max', 'limit', 'Plog', 'flags':
            assert ours[key] == theirs[key], key
        assert abs(ours['Wlog'] - theirs['Wlog']) <= 1
        entry, = [e for e in q.dump(native.conn, 2, 10) if e['object_type'] == q.QDISC]
        assert entry['properties'] | {'red_avpkt': avpkt, 'red_burst': burst,
                                      'red_bandwidth': mbit * MBIT} == entry['properties']


WRONG = {
    'pfifo': [((5,), {'burst': 1}, q.BAD_PROPERTY), ((5,), {'flows': 4}, q.BAD_PROPERTY)],
    'bfifo': [((5000,), {'ecn': 1}, q.BAD_PROPERTY)],
    'sfq': [((10, 1514), {'sfq_divisor': 1000}, q.BAD_PARAM),
            ((10, 1514), {'sfq_divisor': 131_072}, q.BAD_PARAM),
            ((10, 1514), {'sfq_divisor': 0}, q.BAD_PARAM),
            ((10, 1514), {'limit': 1}, q.BAD_PARAM),
            ((10, 1514), {'limit': 1000, 'flows': 4, 'sfq_depth': 4}, q.BAD_PARAM),
            ((10, 1514), {'flows': 0}, q.BAD_PARAM),
            ((10, 1514), {'sfq_depth': 0}, q.BAD_PARAM),
            ((10, 1514), {'sfq_depth': 128}, q.BAD_PARAM),
            ((0xffffffff, 1514), {}, q.BAD_PARAM),
            ((10, 0xffffffff), {}, q.BAD_PARAM),
            ((10, 1514), {'ecn': 1}, q.BAD_PROPERTY)],
    'red': [((0, 60_000), {}, q.BAD_PARAM), ((60_001, 60_000), {}, q.BAD_PARAM),
            ((10_000, 0), {}, q.BAD_PARAM),
            ((10_000, 60_000), {'red_max': 10_000}, q.BAD_PARAM),
            ((10_000, 60_000), {'red_probability_ppm': 0}, q.BAD_PARAM),
            ((10_000, 60_000), {'red_probability_ppm': 1_000_001}, q.BAD_PARAM),
            ((10_000, 60_000), {'red_avpkt': 0}, q.BAD_PARAM),
            ((10_000, 60_000), {'red_burst': 0}, q.BAD_PARAM),
            ((10_000, 60_000), {'red_burst': 1_000_000}, q.BAD_PARAM),
            ((10_000, 60_000), {'red_bandwidth': 0}, q.BAD_PARAM),
            ((10_000, 60_000), {'red_adaptive': 2}, q.BAD_PARAM),
            ((10_000, 60_000), {'ecn': 2}, q.BAD_PARAM),
            ((10_000, 60_000), {'quantum': 1500}, q.BAD_PROPERTY)],
    'tbf': [((), {}, q.BAD_PARAM), ((), {'rate': 0}, q.BAD_PARAM), ((), {'rate': 7}, q.BAD_PARAM),
            ((), {'rate': MBIT, 'limit': 5000, 'latency_us': 5000}, q.BAD_PARAM),
            ((), {'rate': MBIT, 'limit': 5000, 'peak_rate': MBIT}, q.BAD_PARAM),
            ((), {'rate': MBIT, 'burst': 0}, q.BAD_PARAM),
            ((), {'rate': 8, 'burst': 1000}, q.BAD_PARAM),             # more than 273 s
            ((), {'rate': MBIT, 'limit': 0}, q.BAD_PARAM),
            ((), {'rate': MBIT, 'latency_us': 0}, q.BAD_PARAM),
            ((), {'rate': MBIT, 'overhead': -65}, q.BAD_PARAM),
            ((), {'rate': MBIT, 'overhead': 257}, q.BAD_PARAM),
            ((), {'rate': MBIT, 'overhead': -1}, q.UNSUPPORTED),
            ((), {'rate': MBIT, 'mpu': 257}, q.BAD_PARAM),
            ((), {'rate': MBIT, 'linklayer': 3}, q.BAD_PARAM),
            ((), {'rate': MBIT, 'linklayer': 2}, q.UNSUPPORTED),
            ((), {'rate': MBIT, 'ecn': 1}, q.BAD_PROPERTY)],
    'prio': [((), {'bands': 1}, q.BAD_PARAM), ((), {'bands': 17}, q.BAD_PARAM),
             ((), {'bands': 3, 'priomap': bytes([3] * 16)}, q.BAD_PARAM),
             ((), {'limit': 5}, q.BAD_PROPERTY)],
    'codel': [((), {'target_us': 0}, q.BAD_PARAM), ((), {'interval_us': 0}, q.BAD_PARAM),
              ((), {'limit': 0}, q.BAD_PARAM), ((), {'ecn': 2}, q.BAD_PARAM),
              ((), {'ce_threshold_us': 2_000_000_001}, q.BAD_PARAM),
              ((), {'memory_limit': 4}, q.BAD_PROPERTY), ((), {'flows': 4}, q.BAD_PROPERTY)],
    'fq_codel': [((), {'flows': 0}, q.BAD_PARAM), ((), {'flows': 65_537}, q.BAD_PARAM),
                 ((), {'quantum': 0}, q.BAD_PARAM), ((), {'limit': 0}, q.BAD_PARAM),
                 ((), {'target_us': 0}, q.BAD_PARAM), ((), {'interval_us': 0}, q.BAD_PARAM),
                 ((), {'ecn': 255}, q.BAD_PARAM), ((), {'rate': MBIT}, q.BAD_PROPERTY),
                 ((), {'drop_batch': 0}, q.BAD_PARAM), ((), {'memory_limit': 0}, q.BAD_PARAM),
                 ((), {'memory_limit': (1 << 31) + 1}, q.BAD_PARAM),
                 ((), {'max_rate': MBIT}, q.BAD_PROPERTY)],
    'fq': [((), {'quantum': 0}, q.BAD_PARAM), ((), {'limit': 0}, q.BAD_PARAM),
           ((), {'quantum': 0xffffffff}, q.BAD_PARAM), ((), {'ecn': 1}, q.BAD_PROPERTY),
           ((), {'max_rate': 7}, q.BAD_PARAM), ((), {'max_rate': 8 * U32_MAX}, q.BAD_PARAM),
           ((), {'drop_batch': 4}, q.BAD_PROPERTY)],
    'pie': [((), {'limit': 0}, q.BAD_PARAM), ((), {'target_us': 0}, q.BAD_PARAM),
            ((), {'interval_us': 0}, q.BAD_PARAM), ((), {'ecn': 2}, q.BAD_PARAM),
            ((), {'flows': 4}, q.BAD_PROPERTY)],
    'cake': [((), {'diffserv': 4}, q.BAD_PARAM), ((), {'rate': 7}, q.BAD_PARAM),
             ((), {'limit': 0}, q.BAD_PARAM), ((), {'interval_us': 0}, q.BAD_PARAM),
             *(((), {name: value}, q.BAD_PARAM) for name, value in {
                 'overhead': -65, 'mpu': 257, 'linklayer': 3, 'flow_mode': 8, 'nat': 2, 'wash': 2,
                 'ack_filter': 3, 'ingress': 2, 'split_gso': 2, 'memory_limit': 0,
                 'autorate_ingress': 2}.items()),
             ((), {'limit': 5, 'memory_limit': 5}, q.BAD_PARAM),
             ((), {'ecn': 1}, q.BAD_PROPERTY)],
    'netem': [((), {'loss_ppm': 1_000_001}, q.BAD_PARAM), ((), {'jitter_us': 5}, q.BAD_PARAM),
              ((), {'rate': 7}, q.BAD_PARAM), ((), {'limit': 0}, q.BAD_PARAM),
              ((), {'burst': 5}, q.BAD_PROPERTY)],
    'fq_pie': [((), {'flows': 65_537}, q.BAD_PARAM), ((), {'quantum': 0}, q.BAD_PARAM),
               ((), {'memory_limit': 0}, q.BAD_PARAM), ((), {'limit': 0}, q.BAD_PARAM),
               ((), {'target_us': 0}, q.BAD_PARAM), ((), {'interval_us': 0}, q.BAD_PARAM),
               ((), {'ecn': 2}, q.BAD_PARAM), ((), {'drop_batch': 4}, q.BAD_PROPERTY)],
    'dualpi2': [((), {'limit': 0}, q.BAD_PARAM), ((), {'target_us': 0}, q.BAD_PARAM),
                ((), {'interval_us': 4_000_001}, q.BAD_PARAM),
                ((), {'memory_limit': 4}, q.BAD_PROPERTY), ((), {'ecn': 1}, q.BAD_PROPERTY)],
    'choke': [((), {'limit': 0}, q.BAD_PARAM), ((), {'limit': 131_072}, q.BAD_PARAM),
              ((), {'limit': 600, 'red_max': 601}, q.BAD_PARAM), ((), {'red_max': 1}, q.BAD_PARAM),
              ((), {'red_max': 150, 'red_burst': 1_000_000}, q.BAD_PARAM),
              ((), {'red_probability_ppm': 0}, q.BAD_PARAM), ((), {'red_avpkt': 0}, q.BAD_PARAM),
              ((), {'red_bandwidth': 0}, q.BAD_PARAM), ((), {'ecn': 2}, q.BAD_PARAM),
              ((), {'red_adaptive': 1}, q.BAD_PROPERTY)],
    'etf': [((), {'latency_us': 2_147_484}, q.BAD_PARAM), ((), {'offload': 2}, q.BAD_PARAM),
            ((), {'rate': MBIT}, q.BAD_PROPERTY)],
    'cbs': [((), {}, q.BAD_PARAM), ((), {'rate': 999}, q.BAD_PARAM),
            ((), {'rate': 10_000 * MBIT}, q.BAD_PARAM),
            ((), {'rate': MBIT, 'burst': 0}, q.BAD_PARAM),
            ((), {'rate': MBIT, 'offload': 2}, q.BAD_PARAM),
            ((), {'rate': MBIT, 'ecn': 1}, q.BAD_PROPERTY)],
    'ets': [((), {'bands': 0}, q.BAD_PARAM), ((), {'bands': 17}, q.BAD_PARAM),
            ((), {'bands': 3, 'priomap': bytes([3] * 16)}, q.BAD_PARAM),
            ((), {'quantum': 1500}, q.BAD_PROPERTY)],
}


@pytest.mark.parametrize('there', [False, True], ids=['add', 'change'])
@pytest.mark.parametrize('kind', WRONG)
def test_wrong_values(native, four_ports, need, kind, there):
    """Refused with its code, by a first request and as a change; nothing has changed."""
    ns, sched = four_ports.switch_ns, q.SCHEDS.index(kind)
    at = 0 if kind in BANDS else 10
    if at:
        native(q.htb_class(q.ADD, 2, 10, 5 * MBIT))
    if there:
        need(kind)
        native(request_of(kind, q.ADD, 0, at))
    before = tc.qdiscs(ns, 'p2'), tc.classes(ns, 'p2'), q.dump(native.conn)
    for fixed, properties, code in WRONG[kind]:
        if there and (kind, properties) in KEPT:
            continue
        action = q.CHANGE if there else q.ADD
        error = q.refused(native.conn, native.envelope, q.qdisc(sched, action, 2, at, *fixed,
                                                          **properties), code)
        assert error.errno == 0, f'the kernel was asked for {properties}'
        assert (tc.qdiscs(ns, 'p2'), tc.classes(ns, 'p2'), q.dump(native.conn)) == before
    for queue in 0, 10:                                # the same scheduler's properties on a DEL
        q.refused(native.conn, native.envelope, q.qdisc(sched, q.DEL, 2, queue, rate=MBIT),
                  q.BAD_PROPERTY)


# Not wrong in a change: what isn't given stays as it is.
KEPT = [('tbf', {}), ('cbs', {}), ('netem', {'jitter_us': 5})]


def test_one_kind_replaces_another(ask, four_ports, need):
    ns = four_ports.switch_ns
    ask(q.htb_class(q.ADD, 2, 10, 5 * MBIT))
    for kind in ('pfifo', 'bfifo', 'tbf', 'pfifo'):
        ask(request_of(kind, q.REPLACE, 0, 10))
        check(tc.leaf(ns, 'p2', 10), kind, SETTINGS[kind][0][2])


def test_fifo_defaults(ask, four_ports):
    """0: the interface's txqueuelen, in packets, or times the MTU in bytes"""
    ns = four_ports.switch_ns
    ask(q.htb_class(q.ADD, 2, 1, MBIT))
    ask(q.htb_class(q.ADD, 2, 2, MBIT))
    ask(q.qdisc(q.PFIFO, q.ADD, 2, 1, 0))
    ask(q.qdisc(q.BFIFO, q.ADD, 2, 2, 0))
    assert tc.leaf(ns, 'p2', 1)['options']['limit'] == 1000
    assert tc.leaf(ns, 'p2', 2)['options']['limit'] in (1000 * 1500, 1000 * 1514)


def test_leaf_goes_with_its_class(ask, four_ports):
    ns = four_ports.switch_ns
    ask(q.htb_class(q.ADD, 2, 10, MBIT))
    ask(q.qdisc(q.PFIFO, q.ADD, 2, 10, 9))
    ask(q.htb_class(q.DEL, 2, 10, with_children=1))
    assert 10 not in tc.classes(ns, 'p2')
    assert tc.leaf(ns, 'p2', 10) is None
    assert not [e for e in q.dump(ask.conn, 2) if e['class_id'] == 10]


def test_root_scheduler_and_queues_exclude_each_other(ask, four_ports):
    ask(q.htb_class(q.ADD, 2, 10, MBIT))
    q.refused(ask.conn, ask.envelope, q.qdisc(q.PFIFO, q.ADD, 2, 0, 9), q.BUSY)
    assert tc.root(four_ports.switch_ns, 'p2')['kind'] == 'htb'


def test_red_defaults_reach_the_kernel(ask, four_ports, need):
    """A RED of QoSFlow's two parameters alone: the rest is derived as the page says."""
    need('red')
    ask(q.htb_class(q.ADD, 2, 10, 10 * MBIT))
    ask(q.qdisc(q.RED, q.ADD, 2, 10, 20000, 100000))
    text = tc.tc(four_ports.switch_ns, '-d', 'qdisc', 'show', 'dev', 'p2', 'parent', '1:a')
    assert 'limit 100000b min 20000b max 60000b' in text and 'probability 0.02' in text


def test_a_change_leaves_what_it_does_not_name(ask, four_ports, need):
    need('red')
    ask(q.htb_class(q.ADD, 2, 10, 10 * MBIT))
    ask(q.qdisc(q.RED, q.ADD, 2, 10, 10000, 60000, red_max=25000, ecn=1))
    ask(q.qdisc(q.RED, q.CHANGE, 2, 10, 8000, 50000))
    check(tc.leaf(four_ports.switch_ns, 'p2', 10), 'red',
          {'min': 8000, 'max': 25000, 'limit': 50000, 'flags': 1})


def test_sfq_shares_a_queue(ask, four_ports, hosts, need):
    """SFQ in a slow queue: a flow of few packets gets through beside one that floods."""
    need('sfq')
    ask(q.htb_class(q.ADD, 2, 10, 400_000))
    ask(q.qdisc(q.SFQ, q.ADD, 2, 10, 0, 1514, limit=60))
    ask.conn.flow(apply_actions(set_queue(10), output(2)))
    for _ in range(300):
        hosts[1].send(eth(udp4(bytes(1400), dport=1)))
    for _ in range(3):
        hosts[1].send(eth(udp4(bytes(1400), dport=2)))
    ports = [struct.unpack_from('!H', f, 36)[0] for f in hosts[2].drain(0.5)[:30]]
    assert ports.count(2) == 3, f'the small flow was not served among the first 30: {ports}'


CLASSES = {
    'hfsc': ({'service_curve': [(1, 4 * MBIT, 10000, 2 * MBIT), (2, 0, 0, 2 * MBIT)]},
             {'rsc': (4 * MBIT, 10000, 2 * MBIT), 'fsc': (0, 0, 2 * MBIT)},
             {'service_curve': [(3, 0, 0, 5 * MBIT)]},
             {'rsc': (4 * MBIT, 10000, 2 * MBIT), 'fsc': (0, 0, 2 * MBIT),
              'usc': (0, 0, 5 * MBIT)}),
    'drr': ({'quantum': 3000}, {'quantum': 3000}, {'quantum': 1600}, {'quantum': 1600}),
}


def class_request(kind, action, queue, properties=None, port=2):
    return q.content(q.SCHEDS.index(kind), q.CLASS, action, port, queue, b'',
                     q.props(**(properties or {})))


def check_class(ns, kind, queue, wanted):
    row = tc.classes(ns, 'p2')[queue]
    assert row['kind'] == kind
    for key, value in wanted.items():
        assert row['options'][key] == value


@pytest.mark.every
@pytest.mark.parametrize('kind', CLASSES)
def test_other_classful_schedulers(ask, four_ports, need, kind):
    need(kind)
    ns, (added, wanted, changed, then) = four_ports.switch_ns, CLASSES[kind]
    ask(class_request(kind, q.ADD, 10, added))
    assert (tc.root(ns, 'p2')['kind'], tc.root(ns, 'p2')['handle']) == (kind, 0x10000)
    check_class(ns, kind, 10, wanted)
    assert q.DEFAULT_CLASS in tc.classes(ns, 'p2')
    q.refused(ask.conn, ask.envelope, class_request(kind, q.ADD, 10, added), q.EXISTS)
    q.refused(ask.conn, ask.envelope, class_request(kind, q.CHANGE, 11, added), q.NOT_FOUND)
    q.refused(ask.conn, ask.envelope, q.htb_class(q.ADD, 2, 11, MBIT), q.BUSY)
    ask(class_request(kind, q.CHANGE, 10, changed))
    check_class(ns, kind, 10, then)
    ask(q.qdisc(q.PFIFO, q.ADD, 2, 10, 7))
    check(tc.leaf(ns, 'p2', 10), 'pfifo', {'limit': 7})
    entries = q.dump(ask.conn, 2)
    entry, = [e for e in entries if e['class_id'] == 10 and e['object_type'] == q.CLASS]
    assert entry['sched_type'] == q.SCHEDS.index(kind)
    if kind == 'drr':
        assert entry['properties']['quantum'] == 1600
    assert list(ask.conn.queue_stats(2)) == [(2, 10)]
    ask(class_request(kind, q.DEL, 10))
    assert tc.root(ns, 'p2') is None


@pytest.mark.parametrize('kind', CLASSES)
def test_other_classful_schedulers_are_steered(ask, four_ports, hosts, need, kind):
    """Each packet in its queue; what has none, or one that isn't there, in the default class."""
    need(kind)
    ns, properties = four_ports.switch_ns, CLASSES[kind][0]
    for queue in (10, 20):
        ask(class_request(kind, q.ADD, queue, properties))
    for queue, packets in ((10, 3), (20, 5), (30, 2), (None, 4)):
        actions = ([set_queue(queue)] if queue else []) + [output(2)]
        ask.conn.flow(apply_actions(*actions))
        ask.conn.barrier()
        for _ in range(packets):
            hosts[1].send(eth(udp4(bytes(100))))
        for _ in range(packets):
            assert hosts[2].recv() is not None
    found = tc.classes(ns, 'p2')
    assert [found[n]['packets'] for n in (10, 20, q.DEFAULT_CLASS)] == [3, 5, 6]
    assert ask.conn.queue_stats(2, 20)[2, 20]['tx_packets'] == 5
    # Another default class, then without it.
    sched = q.SCHEDS.index(kind)
    ask(q.content(sched, q.QDISC, q.CHANGE, 2, 20))
    hosts[1].send(eth(udp4(bytes(100))))
    assert hosts[2].recv() is not None
    assert tc.classes(ns, 'p2')[20]['packets'] == 6
    ask(class_request(kind, q.DEL, 20))
    hosts[1].send(eth(udp4(bytes(100))))
    assert hosts[2].recv() is not None
    assert tc.classes(ns, 'p2')[q.DEFAULT_CLASS]['packets'] == 7


def curves(*given):
    return {'service_curve': list(given)}


LS = (2, 0, 0, MBIT)
WRONG_CLASSES = {
    'hfsc': [({}, q.BAD_PARAM), (curves((3, 0, 0, MBIT)), q.BAD_PARAM),
             (curves((1, 0, 0, MBIT), (3, 0, 0, MBIT)), q.BAD_PARAM),
             (curves((2, 0, 0, 0)), q.BAD_PARAM), (curves((2, 2 * MBIT, 0, MBIT)), q.BAD_PARAM),
             (curves((2, 0, 0, 7)), q.BAD_PARAM), (curves((2, 0, 0, 35_000 * MBIT)), q.BAD_PARAM),
             (curves((0, 0, 0, MBIT)), q.BAD_PARAM), (curves((4, 0, 0, MBIT)), q.BAD_PARAM),
             (curves(LS, LS), q.BAD_PROPERTY), (curves(LS) | {'quantum': 1500}, q.BAD_PROPERTY),
             (curves(LS) | {'parent': 77}, q.NOT_FOUND)],
    'drr': [({'quantum': 63}, q.BAD_PARAM), ({'quantum': 1_048_577}, q.BAD_PARAM),
            ({'parent': 20}, q.UNSUPPORTED), ({'burst': 5}, q.BAD_PROPERTY),
            ({'rate': MBIT}, q.BAD_PROPERTY)],
}


@pytest.mark.parametrize('kind', WRONG_CLASSES)
def test_wrong_classes(native, four_ports, need, kind):
    need(kind)
    ns = four_ports.switch_ns
    native(class_request(kind, q.ADD, 20, CLASSES[kind][0]))
    before = tc.qdiscs(ns, 'p2'), tc.classes(ns, 'p2'), q.dump(native.conn)
    for properties, code in WRONG_CLASSES[kind]:
        q.refused(native.conn, native.envelope, class_request(kind, q.ADD, 10, properties), code)
        assert (tc.qdiscs(ns, 'p2'), tc.classes(ns, 'p2'), q.dump(native.conn)) == before
    if kind == 'drr':
        q.refused(native.conn, native.envelope, class_request(kind, q.ADD, 0, {}), q.BAD_CLASS)
    else:
        native(class_request(kind, q.ADD, 21, curves((1, 0, 0, MBIT))))
        q.refused(native.conn, native.envelope,
                  class_request(kind, q.ADD, 10, curves(LS) | {'parent': 21}), q.BAD_CLASS)


@pytest.mark.parametrize('kind', ['prio', 'ets'])
def test_bands_have_no_classes(native, four_ports, kind):
    q.refused(native.conn, native.envelope, class_request(kind, q.ADD, 10), q.BAD_SCHED)
    assert tc.root(four_ports.switch_ns, 'p2') is None


def test_hfsc_tree(ask, four_ports, need):
    need('hfsc')
    ns = four_ports.switch_ns
    ask(class_request('hfsc', q.ADD, 1, {'service_curve': [(2, 0, 0, 10 * MBIT)]}))
    ask(class_request('hfsc', q.ADD, 2, {'parent': 1, 'service_curve': [(1, 0, 0, MBIT)]}))
    assert tc.classes(ns, 'p2')[2]['parent'] == 0x10001
    q.refused(ask.conn, ask.envelope, class_request('hfsc', q.DEL, 1), q.BUSY)
    q.refused(ask.conn, ask.envelope, class_request('hfsc', q.ADD, 3), q.BAD_PARAM)
    ask(class_request('hfsc', q.DEL, 1, {'with_children': 1}))
    assert tc.root(ns, 'p2') is None


@pytest.mark.parametrize('kind', ['prio', 'ets'])
def test_bands_are_queues(ask, four_ports, hosts, need, kind):
    """As a port's root: queue n is band n, and may have a scheduler below it."""
    need(kind)
    ns, sched = four_ports.switch_ns, q.SCHEDS.index(kind)
    ask(q.qdisc(sched, q.ADD, 2, 0, bands=3, priomap=bytes([1] * 16)))
    assert tc.root(ns, 'p2')['handle'] == 0x10000
    ask(q.qdisc(q.PFIFO, q.ADD, 2, 3, 9))
    check(tc.leaf(ns, 'p2', 3), 'pfifo', {'limit': 9})
    assert sorted(ask.conn.queue_stats(2)) == [(2, 1), (2, 2), (2, 3)]
    q.refused(ask.conn, ask.envelope, q.qdisc(q.PFIFO, q.ADD, 2, 4, 9), q.NOT_FOUND)
    for queue, packets in ((1, 1), (3, 4), (None, 2)):
        actions = ([set_queue(queue)] if queue else []) + [output(2)]
        ask.conn.flow(apply_actions(*actions))
        ask.conn.barrier()
        for _ in range(packets):
            hosts[1].send(eth(udp4(bytes(100))))
        for _ in range(packets):
            assert hosts[2].recv() is not None
    assert [ask.conn.queue_stats(2, n)[2, n]['tx_packets'] for n in (1, 2, 3)] == [1, 2, 4]
    ask(q.qdisc(sched, q.DEL, 2, 0))
    assert tc.root(ns, 'p2') is None
    assert ask.conn.queue_stats(2) == {}


def test_cake_counts_marks(ask, four_ports, hosts, need):
    """Packets that may be marked are, and a QOS_DUMP tells how many of all tins."""
    need('cake')
    ask(q.htb_class(q.ADD, 2, 10, 50 * MBIT))
    ask(q.qdisc(q.CAKE, q.ADD, 2, 10, rate=MBIT, interval_us=1000))
    ask.conn.flow(apply_actions(set_queue(10), output(2)))
    ask.conn.barrier()
    for _ in range(60):
        hosts[1].send(eth(udp4(bytes(1400), tos=2)))
    frames = hosts[2].drain(0.5)
    marked = sum(frame[15] & 3 == 3 for frame in frames)
    entry, = [e for e in q.dump(ask.conn, 2, 10) if e['object_type'] == q.QDISC]
    assert marked > 0
    assert entry['marked'] >= marked
