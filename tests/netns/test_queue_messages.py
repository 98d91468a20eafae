# SPDX-License-Identifier: Apache-2.0
"""BOFUSS's own queue messages and dpctl's commands that send them (docs/reference/extensions.md, Queue
messages): the kernel's classes are read back."""
import struct

import pytest

from support import bundle, of13, qosmsg as q, tc, topo
from support.topo import Switch, dpctl

ONE_SWITCH = True
MBIT = 1_000_000
SPEED = 10_000 * MBIT       # what a veth tells
OPENFLOW = 0x26e1
MODIFY, DELETE = 0, 1
MIN_RATE, MAX_RATE, EXPERIMENTER = 1, 2, 0xffff


def prop(kind, value):
    return struct.pack('!HH4xH6x', kind, 16, value)


def body(kind, port, queue, *props):
    props = b''.join(props)
    return struct.pack('!III4xI4xH6x', OPENFLOW, kind, port, queue, 16 + len(props)) + props


def modify(port, queue, least=None, most=None):
    props = [] if least is None else [prop(MIN_RATE, least)]
    return body(MODIFY, port, queue, *props, *([] if most is None else [prop(MAX_RATE, most)]))


def delete(port, queue):
    return body(DELETE, port, queue)


@pytest.fixture
def ask(conn):
    return lambda content: conn.ok(of13.EXPERIMENTER, content)


@pytest.fixture
def rates(four_ports):
    """rates(queue) -> (rate, ceil) of port 2's class, or None"""
    def look(queue, dev='p2'):
        row = tc.classes(four_ports.switch_ns, dev).get(queue)
        return row and (row['options']['rate'], row['options']['ceil'])
    return look


def refused(conn, code, content):
    """-> the sentence behind the request's first 64 bytes and errno"""
    error = conn.expect_error(of13.ET_QUEUE_OP_FAILED, code, of13.EXPERIMENTER, content)
    assert len(error.data) > 68
    return error.data[68:].decode()


# ---------------------------------------------------------------------------------- messages

def test_a_queue_is_a_class(conn, ask, rates):
    ask(modify(2, 5, 300))
    assert rates(5) == (SPEED * 300 // 1000, SPEED)     # without a most: all of the port's speed
    ask(modify(2, 5, 80, 500))
    assert rates(5) == (SPEED * 80 // 1000, SPEED // 2)
    assert conn.queue_config(2)[1] == {5: {'port': 2, 'min': 80, 'max': 500}}
    assert list(conn.queue_stats(2)) == [(2, 5)]
    ask(delete(2, 5))
    assert rates(5) is None and conn.queue_config(2)[1] == {}


def test_many_queues_of_one_port(conn, ask):
    """BOFUSS's queue-get-config failed from the second queue on, and had eight at most."""
    for queue in range(1, 41):
        ask(modify(2, queue, queue))
    assert conn.queue_config(2)[1] == {n: {'port': 2, 'min': n, 'max': 1000}
                                       for n in range(1, 41)}


@pytest.mark.parametrize('least', [None, 0, 1001, 0xffff])
def test_a_least_that_is_not_configured(ask, rates, least):
    ask(modify(2, 1, least, 200))
    assert rates(1) == (SPEED // 1000, SPEED // 5)


def test_the_most_is_forgotten_when_it_is_not_given(ask, rates):
    ask(modify(2, 1, 100, 200))
    ask(modify(2, 1, 100))
    assert rates(1) == (SPEED // 10, SPEED)


def test_shares_are_of_the_ports_total(conn, ask, rates):
    """A link of 10 Mbit/s behind an interface that tells more: the queues share what it has."""
    q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 0, 10 * MBIT, 10 * MBIT))
    ask(modify(2, 1, 600))
    assert rates(1) == (6 * MBIT, 10 * MBIT)


def test_a_fixed_rate_gives_way_to_a_share_and_back(conn, ask, rates):
    q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 1, 5 * MBIT, 6 * MBIT))
    ask(modify(2, 1, 10, 20))
    assert rates(1) == (100 * MBIT, 200 * MBIT)
    q.send(conn, q.NATIVE, q.htb_class(q.REPLACE, 2, 1, 5 * MBIT, 6 * MBIT))
    assert rates(1) == (5 * MBIT, 6 * MBIT)


def test_what_is_below_the_queue_stays(conn, ask, four_ports, need):
    need('bfifo')
    ask(modify(2, 1, 10))
    q.send(conn, q.NATIVE, q.qdisc(q.BFIFO, q.ADD, 2, 1, 30_000))
    ask(modify(2, 1, 20))
    assert tc.leaf(four_ports.switch_ns, 'p2', 1)['kind'] == 'bfifo'


def test_refusals(conn, ask, rates):
    ask(modify(2, 1, 10))
    assert 'port 9' in refused(conn, of13.QOFC_BAD_PORT, modify(9, 1, 10))
    assert 'port 9' in refused(conn, of13.QOFC_BAD_PORT, delete(9, 1))
    refused(conn, of13.QOFC_BAD_PORT, modify(of13.P_ANY, 1, 10))
    refused(conn, of13.QOFC_BAD_PORT, delete(of13.P_ANY, 1))
    assert '1 to 65519' in refused(conn, of13.QOFC_BAD_QUEUE, modify(2, 0, 10))
    refused(conn, of13.QOFC_BAD_QUEUE, modify(2, 0xfffe, 10))
    refused(conn, of13.QOFC_BAD_QUEUE, modify(2, 0xffffffff, 10))
    refused(conn, of13.QOFC_BAD_QUEUE, delete(2, 0xffffffff))
    refused(conn, of13.QOFC_BAD_QUEUE, delete(2, 7))
    assert 'below' in refused(conn, of13.QOFC_EPERM, modify(2, 2, 500, 400))
    exp = struct.pack('!HH4xI4x', EXPERIMENTER, 16, 7)
    refused(conn, of13.QOFC_EPERM, body(MODIFY, 2, 2, exp))
    assert rates(1) == (SPEED // 100, SPEED) and rates(2) is None


def test_lengths(conn, rates):
    def bad(content):
        conn.expect_error(of13.ET_BAD_REQUEST, of13.BRC_BAD_LEN, of13.EXPERIMENTER, content)
    whole = modify(2, 1, 10)
    for n in range(8, len(whole)):
        bad(whole[:n])
    bad(whole + bytes(8))
    bad(whole + whole[16:])                                   # two queues in one message
    bad(body(MODIFY, 2, 1, struct.pack('!HH4xH6x', 9, 16, 1)))   # a property that there is not
    conn.expect_error(of13.ET_BAD_REQUEST, of13.BRC_BAD_EXP_TYPE, of13.EXPERIMENTER,
                      struct.pack('!II', OPENFLOW, 3))
    assert rates(1) is None


def test_a_slave_is_refused(switch, conn, rates):
    with switch.connect() as master:
        master.role(of13.ROLE_MASTER, 1)
        conn.role(of13.ROLE_SLAVE, 1)
        for content in (modify(2, 1, 10), delete(2, 1)):
            conn.expect_error(of13.ET_BAD_REQUEST, of13.BRC_IS_SLAVE, of13.EXPERIMENTER, content)
    assert rates(1) is None


@pytest.mark.testkernel
def test_another_kind_of_tree_is_left_alone(conn, ask, need, four_ports):
    need('drr')
    q.send(conn, q.NATIVE, q.content(q.DRR, q.CLASS, q.ADD, 2, 1))
    refused(conn, of13.QOFC_EPERM, modify(2, 2, 10))
    assert tc.root(four_ports.switch_ns, 'p2')['kind'] == 'drr'


def test_in_a_bundle(conn, rates):
    b = bundle.Bundle(conn).put(of13.EXPERIMENTER, modify(2, 1, 10))
    b.put(of13.EXPERIMENTER, modify(2, 2, 20, 30)).commit()
    assert rates(1) == (SPEED // 100, SPEED) and rates(2) == (SPEED // 50, SPEED * 3 // 100)
    b = bundle.Bundle(conn).put(of13.EXPERIMENTER, modify(2, 3, 10))
    error = b.put(of13.EXPERIMENTER, delete(2, 4)).refused(1)
    assert (error.type, error.code) == (of13.ET_QUEUE_OP_FAILED, of13.QOFC_BAD_QUEUE)
    assert rates(3) is None


def test_packets_take_the_queue(ask, hosts, conn):
    """Without a queue 0, which BOFUSS's users had to make first."""
    ask(modify(2, 5, 300))
    conn.flow(of13.apply_actions(of13.set_queue(5), of13.output(2)), match=of13.match(in_port=1))
    for _ in range(5):
        hosts[1].send(topo.udp_frame(1))
        assert hosts[2].recv()
    assert conn.queue_stats(2, 5)[2, 5]['tx_packets'] == 5


# ------------------------------------------------------------------------------------- dpctl

def test_queue_mod_and_queue_del(switch, rates):
    switch.dpctl('queue-mod', '2', '1', '80')
    assert rates(1) == (SPEED * 80 // 1000, SPEED)
    switch.dpctl('queue-mod', '2', '1', '8.5%', '50%')
    assert rates(1) == (SPEED * 85 // 1000, SPEED // 2)
    switch.dpctl('queue-mod', 'p2', '1', '6mbit', '10mbit')
    assert rates(1) == (6 * MBIT, 10 * MBIT)
    switch.dpctl('queue-mod', 'p2', '1', '6mbit')
    assert rates(1) == (6 * MBIT, SPEED)
    switch.dpctl('queue-mod', '2', '1', '1', '2mbit', check=False)
    switch.dpctl('queue-del', '2', '1')
    assert rates(1) is None


def test_old_words(switch, rates):
    dpctl('add-queue', switch.address, '2', '1', '500')
    assert rates(1) == (SPEED // 2, SPEED)
    dpctl('add-queue', switch.address, '2', '2')
    assert rates(2) == (SPEED // 1000, SPEED)
    dpctl('add-queue', switch.address, '2', '3', '6mbit')
    assert rates(3) == (6 * MBIT, SPEED)
    dpctl('mod-queue', switch.address, '2', '1', '250')
    assert rates(1) == (SPEED // 4, SPEED)
    assert 'queue' in dpctl('dump-queue', switch.address, '2').stdout
    dpctl('del-queue', switch.address, '2', '1')
    assert rates(1) is None and rates(2)


@pytest.mark.parametrize('words, said', [
    (('queue-mod', '2', '1'), 'PORT QUEUE BW'),
    (('queue-mod', '2', '1', '2000'), 'a rate has a unit, such as 500kbit or 6mbit'),
    (('queue-mod', '2', '1', '0'), 'thousandths'),
    (('queue-mod', '2', '1', '0.05%'), 'tenths of a percent'),
    (('queue-mod', '2', '1', '101%'), 'above 100'),
    (('queue-mod', '2', '1', 'much'), 'not a number'),
    (('queue-mod', '2', '0', '10'), '1 to 65519'),
    (('queue-del', '2'), 'PORT QUEUE'),
    (('queue-mod', '2', '1', '500', '400'), 'below'),
    (('queue-mod', '9', '1', '500'), 'no port 9'),
    (('queue-mod', 'eth7', '1', '500'), 'eth7'),
])
def test_what_dpctl_says(switch, words, said):
    done = switch.dpctl(*words, check=False)
    assert done.returncode and said in done.stderr, done.stderr


def test_help_tells_the_unit():
    said = dpctl('help', 'queue-mod').stdout
    assert 'thousandths' in said and '6mbit' in said


def test_no_slicing_is_told(topo):
    """Mininet starts the switch so: BOFUSS's users got EPERM, and nothing else."""
    with Switch(topo, '--no-slicing') as s:
        done = s.dpctl('queue-mod', '1', '1', '80', check=False)
        assert done.returncode == 1
        assert '--no-slicing' in done.stderr and 'dpopts=' in done.stderr


def test_an_atomic_file(switch, rates, tmp_path):
    file = tmp_path / 'changes'
    file.write_text('queue-mod 2 1 100\nqueue-mod 2 2 6mbit\nqueue-del 2 9\n')
    done = switch.dpctl('-F', str(file), '--atomic', check=False)
    assert done.returncode == 1 and ':3' in done.stderr
    assert rates(1) is None
    file.write_text('queue-mod 2 1 100\nqueue-mod 2 2 6mbit\n')
    switch.dpctl('-F', str(file), '--atomic')
    assert rates(1) and rates(2)
