# SPDX-License-Identifier: Apache-2.0
"""Each error of docs/reference/qos-extension.md, in both envelopes; what is refused changes nothing."""
import struct

import pytest

from support import of13, qosmsg as q, tc
from support.topo import Switch

ONE_SWITCH = True
MBIT = 1_000_000


@pytest.fixture(params=q.ENVELOPES)
def refuse(request, conn, four_ports):
    """refuse(content, code): refused with that code, kernel and switch stay as they were."""
    ns = four_ports.switch_ns

    def state():
        kernel = [(tc.qdiscs(ns, d), tc.classes(ns, d)) for d in four_ports.port_names()]
        return kernel, q.dump(conn)

    def attempt(content, code, etype=None, errno=0):
        before = state()
        error = q.refused(conn, request.param, content, code, etype)
        assert state() == before, 'a refused request changed something'
        if error.code is not None and errno is not None:
            assert error.errno == errno, f'errno {error.errno}: {error.text}'
        return error
    attempt.conn, attempt.envelope = conn, request.param
    q.send(conn, request.param, q.htb_class(q.ADD, 2, 10, 5 * MBIT))
    q.send(conn, request.param, q.htb_class(q.ADD, 2, 11, 2 * MBIT, parent=10))
    q.send(conn, request.param, q.htb_class(q.ADD, 2, 20, 5 * MBIT))
    q.send(conn, request.param, q.qdisc(q.PFIFO, q.ADD, 2, 20, 30))
    return attempt


def htb(action=q.ADD, port=2, queue=30, rate=MBIT, ceil=0, prio=0, **kw):
    return q.htb_class(action, port, queue, rate, ceil, prio, **kw)


REFUSED = {
    'scheduler unknown': (q.BAD_SCHED, q.content(200, q.QDISC, q.ADD, 2, 20)),
    'scheduler 255': (q.BAD_SCHED, q.content(255, q.QDISC, q.ADD, 2, 20)),
    'pfifo has no classes': (q.BAD_SCHED, q.content(q.PFIFO, q.CLASS, q.ADD, 2, 30,
                                                    struct.pack('!I', 5))),
    'red has no classes': (q.BAD_SCHED, q.content(q.RED, q.CLASS, q.ADD, 2, 30,
                                                  struct.pack('!II', 5, 6))),
    'object unknown': (q.BAD_OBJECT, q.content(q.HTB, 2, q.ADD, 2, 30, struct.pack(
        '!QQI4x', MBIT, 0, 0))),
    'action unknown': (q.BAD_ACTION, q.content(q.HTB, q.CLASS, 4, 2, 30, struct.pack(
        '!QQI4x', MBIT, 0, 0))),
    'port unknown': (q.BAD_PORT, htb(port=77)),
    'port 0': (q.BAD_PORT, htb(port=0)),
    'port any': (q.BAD_PORT, htb(port=of13.P_ANY)),
    'port local': (q.BAD_PORT, htb(port=of13.P_LOCAL)),
    'clear of an unknown port': (q.BAD_PORT, q.clear(77)),
    'class reserved': (q.BAD_CLASS, htb(queue=0xfff0)),
    'class default': (q.BAD_CLASS, htb(queue=q.DEFAULT_CLASS)),
    'class root': (q.BAD_CLASS, htb(queue=q.ROOT_CLASS)),
    'class of 17 bits': (q.BAD_CLASS, htb(queue=0x10001)),
    'class all': (q.BAD_CLASS, htb(queue=0xffffffff)),
    'rate 0': (q.BAD_PARAM, htb(rate=0)),
    'ceil below rate': (q.BAD_PARAM, htb(rate=2 * MBIT, ceil=MBIT)),
    'prio 8': (q.BAD_PARAM, htb(prio=8)),
    'share above 100 %': (q.BAD_PARAM, htb(rate=0, rate_share_ppm=1_000_001)),
    'share and rate': (q.BAD_PARAM, htb(rate=MBIT, rate_share_ppm=1000)),
    'red threshold 0': (q.BAD_PARAM, q.qdisc(q.RED, q.ADD, 2, 11, 0, 1000)),
    'red threshold above limit': (q.BAD_PARAM, q.qdisc(q.RED, q.ADD, 2, 11, 2000, 1000)),
    'sfq divisor': (q.BAD_PARAM, q.qdisc(q.SFQ, q.ADD, 2, 11, 10, 1514, sfq_divisor=1000)),
    'ecn 2': (q.BAD_PARAM, q.qdisc(q.RED, q.ADD, 2, 11, 1000, 9000, ecn=2)),
    'pad 1': (q.BAD_PARAM, q.content(q.HTB, q.CLASS, q.ADD, 2, 30, struct.pack(
        '!QQI4x', MBIT, 0, 0), pad1=b'\0\1\0')),
    'pad 2': (q.BAD_PARAM, q.content(q.HTB, q.CLASS, q.ADD, 2, 30, struct.pack(
        '!QQI4x', MBIT, 0, 0), pad2=b'\0\1')),
    'pad 3': (q.BAD_PARAM, q.content(q.HTB, q.CLASS, q.ADD, 2, 30, struct.pack(
        '!QQII', MBIT, 0, 0, 1))),
    'property unknown': (q.BAD_PROPERTY, htb() + q.raw_prop(200, b'\0\0\0\1')),
    'property 0': (q.BAD_PROPERTY, htb() + q.raw_prop(0, b'\0\0\0\1')),
    'property of no use': (q.BAD_PROPERTY, htb(red_max=5)),
    'property twice': (q.BAD_PROPERTY, htb() + q.prop('burst', 9000) * 2),
    'add of what is there': (q.EXISTS, htb(queue=10)),
    'leaf of what is there': (q.EXISTS, q.qdisc(q.PFIFO, q.ADD, 2, 20, 40)),
    'change of what is not there': (q.NOT_FOUND, htb(q.CHANGE)),
    'delete of what is not there': (q.NOT_FOUND, htb(q.DEL)),
    'parent that is not there': (q.NOT_FOUND, htb(parent=999)),
    'leaf of no class': (q.NOT_FOUND, q.qdisc(q.PFIFO, q.ADD, 2, 999, 40)),
    'delete of no leaf': (q.NOT_FOUND, q.qdisc(q.PFIFO, q.DEL, 2, 11)),
    'delete with children': (q.BUSY, htb(q.DEL, queue=10)),
    'root scheduler beside queues': (q.BUSY, q.qdisc(q.BFIFO, q.ADD, 2, 0, 9000)),
}


@pytest.mark.parametrize('name', REFUSED)
def test_refused(refuse, name):
    code, content = REFUSED[name]
    refuse(content, code)


LENGTHS = {
    'empty': b'',
    'half a head': htb()[:8],
    'no class id': htb()[:12],
    'no parameters': htb()[:16],
    'parameters cut': htb()[:-8],
    'pfifo cut': q.qdisc(q.PFIFO, q.ADD, 2, 10, 5)[:-2],
    'property head cut': htb() + b'\0\2',
    'property cut': htb() + struct.pack('!HHI', 2, 12, 5)[:8],
    'property too long': htb() + q.raw_prop(2, b'\0\0\0\5', length=4000),
    'property length 0': htb() + q.raw_prop(2, b'\0\0\0\5', length=0),
    'property length 3': htb() + q.raw_prop(2, b'\0\0\0\5', length=3),
    'property not padded': htb() + struct.pack('!HHB', 29, 5, 0),
}


@pytest.mark.parametrize('name', LENGTHS)
def test_bad_length(refuse, name):
    refuse(LENGTHS[name], of13.BRC_BAD_LEN, of13.ET_BAD_REQUEST)


@pytest.mark.parametrize('length', [5, 6, 7, 9, 12])
def test_property_of_the_wrong_size(refuse, length):
    """BURST has 4 bytes of value; the page leaves open which of two errors that is."""
    content = htb() + q.raw_prop(2, bytes(length - 4))
    with pytest.raises(q.SchedError) as e:
        q.send(refuse.conn, refuse.envelope, content)
    assert e.value.code == q.BAD_PROPERTY or \
        (e.value.type, e.value.error.code) == (of13.ET_BAD_REQUEST, of13.BRC_BAD_LEN)


def test_property_padding_must_be_zero(refuse):
    content = htb() + struct.pack('!HHB3s', 29, 5, 0, b'\0\0\1')
    with pytest.raises(q.SchedError) as e:
        q.send(refuse.conn, refuse.envelope, content)
    assert e.value.code in (q.BAD_PARAM, q.BAD_PROPERTY)


def test_foreign_root(refuse, four_ports):
    ns = four_ports.switch_ns
    tc.tc(ns, *'qdisc add dev p3 root handle 77: htb default 1'.split())
    try:
        refuse(htb(port=3), q.BUSY)
        refuse(q.qdisc(q.PFIFO, q.ADD, 3, 0, 10), q.BUSY)
        q.send(refuse.conn, refuse.envelope, q.clear())
        assert tc.root(ns, 'p3')['handle'] == 0x770000, 'a foreign qdisc was removed'
    finally:
        tc.tc(ns, *'qdisc del dev p3 root'.split())


def test_unsupported(refuse, four_ports):
    """A scheduler the kernel does not have: refused, and the sentence names what is missing."""
    lacking = [k for k in ('sfq', 'codel', 'fq_codel') if not tc.has_scheduler(k)]
    if not lacking:
        pytest.skip('this kernel has every scheduler')
    for kind in lacking:
        fixed = (10, 1514) if kind == 'sfq' else ()
        error = refuse(q.qdisc(q.SCHEDS.index(kind), q.ADD, 2, 11, *fixed), q.UNSUPPORTED,
                       errno=None)
        assert kind in error.text


@pytest.mark.parametrize('envelope', q.ENVELOPES)
def test_without_permission(four_ports, envelope):
    """The daemon runs with CAP_NET_RAW alone: rtnetlink answers EPERM."""
    prefix = ('capsh', '--drop=cap_net_admin', '--', '-c', 'exec "$0" "$@"')
    switch = Switch(four_ports, prefix=prefix)
    switch.start()
    with switch.connect() as c:
        error = q.refused(c, envelope, htb(), q.PERM)
        assert error.errno in (1, 13)
        assert tc.root(four_ports.switch_ns, 'p2') is None
    assert switch.stop() == 0
    switch.check()
    switch.abandon()


@pytest.mark.parametrize('envelope', q.ENVELOPES)
def test_a_slave_may_only_look(switch, conn, envelope):
    conn.role(of13.ROLE_SLAVE, 1)
    q.refused(conn, envelope, htb(), of13.BRC_IS_SLAVE, of13.ET_BAD_REQUEST)
    assert q.dump(conn) == []


def test_queue_of_a_removed_class_is_gone(conn, four_ports):
    q.send(conn, q.NATIVE, htb(queue=5))
    q.send(conn, q.NATIVE, htb(q.DEL, queue=5))
    assert not [k for k in conn.queue_stats(2) if k[1] == 5]


@pytest.mark.parametrize('port,class_id,etype,code', [
    (77, q.ALL_CLASSES, None, None), (2, 999, None, None)])
def test_dump_of_what_is_not_there(conn, port, class_id, etype, code):
    """Answered with nothing or refused as bad port / not found; never with something else."""
    try:
        assert q.dump(conn, port, class_id) == []
    except of13.OfError as e:
        assert (e.type, e.code) in ((of13.ET_EXPERIMENTER, q.BAD_PORT),
                                    (of13.ET_EXPERIMENTER, q.NOT_FOUND),
                                    (14, q.BAD_PORT), (14, q.NOT_FOUND),
                                    (of13.ET_BAD_REQUEST, of13.BRC_BAD_PORT))


def test_dump_of_bad_length(conn):
    body = struct.pack('!HH4xIII', of13.MP_EXPERIMENTER, 0, q.EXPERIMENTER_ID, 1, 2)
    conn.expect_error(of13.ET_BAD_REQUEST, of13.BRC_BAD_LEN, of13.MULTIPART_REQUEST, body)


def test_dump_of_unknown_type(conn):
    body = struct.pack('!HH4xIIII', of13.MP_EXPERIMENTER, 0, q.EXPERIMENTER_ID, 99, 2, 2)
    conn.expect_error(of13.ET_BAD_REQUEST, of13.BRC_BAD_EXP_TYPE, of13.MULTIPART_REQUEST, body)


def test_long_request_is_quoted_by_its_first_64_bytes(conn):
    content = htb(queue=0xfff0, parent=1, burst=9000, cburst=9000, quantum=2000)
    for envelope in q.ENVELOPES:
        error = q.refused(conn, envelope, content, q.BAD_CLASS)
        assert len(error.error.data) > 68
