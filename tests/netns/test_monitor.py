# SPDX-License-Identifier: Apache-2.0
"""What the switch tells of unasked (docs/reference/extensions.md): MONITOR, QOS_CHANGED, ROLE_CHANGED; and
`dpctl monitor`, which shows all of it."""
import struct

import pytest

from support import monitor as m, of13, qosmsg as q, tc
from support.bundle import COMMIT, Bundle, answers, control, new_xid
from support.monitor import Monitor, nothing_told, subscribe, told
from support.of13 import apply_actions, flow_mod, match, output
from support.qostree import MBIT, ask, build, running
from support.topo import sh, udp_frame
from support.wait import until

CLASS = q.htb_class(q.ADD, 2, 10, 6 * MBIT, 10 * MBIT, 1)


# ------------------------------------------------------------------------------- the protocol

def test_refusals(conn):
    for body in (b'', bytes(4), bytes(7), bytes(9), bytes(12)):
        conn.expect_error(of13.ET_BAD_REQUEST, of13.BRC_BAD_LEN, of13.EXPERIMENTER,
                          struct.pack('!II', q.EXPERIMENTER_ID, m.MONITOR) + body)
    for what in (32, 63, 0x80000000):
        error = conn.expect_error(of13.ET_EXPERIMENTER, q.BAD_PARAM, of13.EXPERIMENTER,
                                  m.message(what))
        assert error.data[:4] == struct.pack('!I', q.EXPERIMENTER_ID)
        assert b'QOS is 1, ROLES is 2, PROMISES is 4, DROPS is 8, DELAYS is 16' in error.data
    for exp_type in (m.QOS_CHANGED, m.ROLE_CHANGED, m.QOS_PROMISE):       # of switches only
        conn.expect_error(of13.ET_BAD_REQUEST, of13.BRC_BAD_EXP_TYPE, of13.EXPERIMENTER,
                          struct.pack('!II', q.EXPERIMENTER_ID, exp_type) + bytes(16))
    ask(conn, CLASS)
    nothing_told(conn)


def test_a_request_is_told_as_it_was_asked(switch, conn):
    """To whoever subscribed, a slave and the one that asked included; not to others."""
    with switch.connect() as slave, switch.connect() as other:
        slave.role(of13.ROLE_SLAVE, 1)
        subscribe(slave)
        subscribe(conn, m.QOS)
        serial = None
        for envelope in q.ENVELOPES:
            for content in (CLASS, q.qdisc(q.PFIFO, q.ADD, 2, 10, 5),
                            q.htb_class(q.CHANGE, 2, 10, 7 * MBIT, parent=0, quantum=3000),
                            q.htb_class(q.DEL, 2, 10, with_children=1), q.clear()):
                q.send(conn, envelope, content)
                mine, theirs = told(conn, m.QOS_CHANGED), told(slave, m.QOS_CHANGED)
                assert mine == theirs
                assert (mine.cause, mine.objects, mine.content) == (m.REQUEST, 0, content)
                assert mine.port == struct.unpack_from('!I', content, 8)[0]
                assert serial is None or mine.serial == serial + 1
                serial = mine.serial
        with pytest.raises(q.SchedError):
            ask(conn, q.htb_class(q.DEL, 2, 10))
        nothing_told(conn)
        nothing_told(other)
        subscribe(conn, 0)
        ask(conn, CLASS)
        nothing_told(conn)
        assert told(slave, m.QOS_CHANGED).serial == serial + 1


def test_it_is_told_before_the_barrier_is_answered(conn):
    """And after the kernel has acknowledged."""
    subscribe(conn)
    conn.send(q.T_QOS, CLASS)
    conn.send(of13.BARRIER_REQUEST)
    assert [conn.recv().type for _ in range(2)] == [of13.EXPERIMENTER, of13.BARRIER_REPLY]


def test_bundles(conn):
    subscribe(conn)
    contents = [q.htb_class(q.ADD, 2, n, MBIT) for n in (1, 2, 3)]
    bundle = Bundle(conn)
    for n, content in enumerate(contents):
        bundle.qos(content, 'native' if n % 2 else None)
    bundle.flow(apply_actions(output(2)))
    bundle.conn.send_raw(bundle.raw(commit=False))
    nothing_told_but_the_reply(conn)
    changes = commit(conn, bundle)
    assert [c.content for c in changes] == contents
    assert [c.serial for c in changes] == list(range(changes[0].serial, changes[0].serial + 3))
    failing = Bundle(conn, bundle=2).qos(q.htb_class(q.ADD, 2, 4, MBIT)).qos(contents[0])
    assert failing.refused(1)
    nothing_told(conn)


def nothing_told_but_the_reply(conn):
    """A bundle's messages are experimenter's as well."""
    conn.barrier()
    kinds = [struct.unpack_from('!I', msg.body)[0] for msg in conn.inbox]
    assert q.EXPERIMENTER_ID not in kinds, conn.inbox
    conn.inbox.clear()


def commit(conn, bundle):
    """-> the changes that were told of"""
    got = answers(conn, control(COMMIT, new_xid(conn)))
    changes, reply = [], []
    for msg in got:
        if struct.unpack_from('!I', msg.body)[0] == q.EXPERIMENTER_ID:
            conn.inbox.append(msg)
            changes.append(told(conn, m.QOS_CHANGED))
        else:
            reply.append(msg)
    assert len(reply) == 1 and reply[0].type == of13.EXPERIMENTER, reply
    return changes


def test_roles(switch, conn):
    subscribe(conn, m.ROLES)
    with switch.connect() as a, switch.connect() as b:
        a.role(of13.ROLE_MASTER, 5)
        first = told(conn, m.ROLE_CHANGED)
        assert (first.role, first.generation) == (of13.ROLE_MASTER, 5) and first.peer
        a.role(of13.ROLE_MASTER, 6)                         # it is already
        b.role(of13.ROLE_MASTER, 7)
        demoted, master = told(conn, m.ROLE_CHANGED), told(conn, m.ROLE_CHANGED)
        assert demoted == (of13.ROLE_SLAVE, 7, first.peer)
        assert (master.role, master.generation) == (of13.ROLE_MASTER, 7)
        assert master.peer != first.peer
        with pytest.raises(of13.OfError):
            a.role(of13.ROLE_MASTER, 6)                     # stale
        a.role(of13.ROLE_NOCHANGE)
        b.role(of13.ROLE_EQUAL)
        assert told(conn, m.ROLE_CHANGED) == (of13.ROLE_EQUAL, 7, master.peer)
        ask(b, CLASS)
    nothing_told(conn)


# -------------------------------------------------------------------------- somebody else's tc

def changed_by_hand(ns, *commands):
    for words in commands:
        tc.tc(ns, *words.split())


def test_a_change_by_hand_is_told_as_requests(topo, ns):
    """With --qos-foreign=adopt: as the requests that would have done it."""
    with running(topo) as (_, conn):
        build(conn)
        subscribe(conn)
        changed_by_hand(ns, 'class change dev p2 parent 1:ffff classid 1:14 htb rate 3mbit '
                            'ceil 6mbit prio 7')
        change = told(conn, m.QOS_CHANGED)
        assert (change.cause, change.port) == (m.FOREIGN, 2)
        sched, obj, action, port, class_id = struct.unpack_from('!B3xBB2xII', change.content)
        assert (sched, obj, action, port, class_id) == (q.HTB, q.CLASS, q.CHANGE, 2, 20)
        assert struct.unpack_from('!QQ', change.content, 16) == (3 * MBIT, 6 * MBIT)
        changed_by_hand(ns, 'class add dev p2 parent 1:ffff classid 1:1e htb rate 2mbit',
                        'qdisc add dev p2 parent 1:1e handle 30: pfifo limit 9')
        heads = [struct.unpack_from('!B3xBB2xII', told(conn, m.QOS_CHANGED).content)
                 for _ in range(2)]
        assert heads == [(q.HTB, q.CLASS, q.ADD, 2, 30), (q.PFIFO, q.QDISC, q.ADD, 2, 30)]
        changed_by_hand(ns, 'qdisc del dev p2 root')
        change = told(conn, m.QOS_CHANGED)
        assert struct.unpack_from('!B3xBB2x', change.content) == (q.HTB, q.QDISC, q.DEL)
        nothing_told(conn)


@pytest.mark.parametrize('policy, cause', [('report', m.FOREIGN), ('repair', m.REPAIRED)])
def test_a_change_by_hand_that_is_not_taken_over(topo, ns, policy, cause):
    with running(topo, f'--qos-foreign={policy}') as (_, conn):
        build(conn)
        subscribe(conn)
        changed_by_hand(ns, 'class change dev p2 parent 1:ffff classid 1:14 htb rate 3mbit')
        change = told(conn, m.QOS_CHANGED)
        assert change[:3] == (cause, 2, 1) and change.content == b''


def test_an_interface_goes_and_comes_back(topo, ns):
    with running(topo) as (_, conn):
        build(conn)
        subscribe(conn)
        had = len(q.dump(conn, 2))
        sh('ip', '-n', ns, 'link', 'set', 'p2', 'netns', topo.host_ns(2))
        gone = told(conn, m.QOS_CHANGED)
        assert gone[:3] == (m.GONE, 2, 0) and gone.content == b''
        sh('ip', '-n', topo.host_ns(2), 'link', 'set', 'p2', 'netns', ns)
        back = told(conn, m.QOS_CHANGED)
        assert back[:3] == (m.BACK, 2, had) and back.content == b''
        assert back.serial == gone.serial + 1
        until(lambda: tc.root(ns, 'p2'), 'the queues')


# ------------------------------------------------------------------------------ dpctl monitor

def is_message(name, **fields):
    return lambda msg: msg['message'] == name and all(msg[k] == v for k, v in fields.items())


def test_dpctl_monitor_shows_everything(switch, conn, hosts):
    """A line is an object and is there at once."""
    conn.flow(apply_actions(output(of13.P_CONTROLLER)), match=match(in_port=1))
    with Monitor(switch) as monitor:
        got = monitor.until(is_message('packet_in'), lambda: hosts[1].send(udp_frame(1)))
        assert got['reason'] == 'action' and got['match'] == {'in_port': 1}
        conn.ok(of13.FLOW_MOD, flow_mod(match=match(in_port=3), flags=1, cookie=7))
        conn.ok(of13.FLOW_MOD, flow_mod(of13.DELETE, match=match(in_port=3)))
        got = monitor.until(is_message('flow_removed'))
        assert (got['cookie'], got['reason']) == ('0x7', 'delete')
        hw = conn.ports()[4]['hw_addr']
        conn.ok(of13.PORT_MOD, of13.port_mod(4, hw, 4, 4))          # NO_RECV
        got = monitor.until(is_message('port_status'))
        assert got['port_no'] == 4 and got['config'] == ['no_recv']
        conn.role(of13.ROLE_MASTER, 17)
        got = monitor.until(is_message('role_changed'))
        assert (got['role'], got['generation_id']) == ('master', '0x11') and got['peer']
        ask(conn, CLASS)
        got = monitor.until(is_message('qos_changed'))
        assert {k: got[k] for k in ('cause', 'port_no', 'action', 'object', 'sched', 'class_id',
                                    'direction')} == \
            {'cause': 'request', 'port_no': 2, 'action': 'add', 'object': 'class', 'sched': 'htb',
             'class_id': 10, 'direction': 'out'}
        assert got['config'] == {'rate': 6 * MBIT, 'ceil': 10 * MBIT, 'prio': 1}
        status, errors = monitor.interrupt()
        assert (status, errors) == (0, '')
        monitor.messages()


def test_dpctl_monitor_shows_what_is_asked_for(switch, conn, hosts):
    conn.flow(apply_actions(output(of13.P_CONTROLLER)))
    with Monitor(switch, 'qos,role', options=()) as monitor:
        def both():
            hosts[1].send(udp_frame(1))
            ask(conn, q.htb_class(q.REPLACE, 2, 10, 6 * MBIT, 10 * MBIT, 1))
            monitor.read(0.2)
        until(lambda: both() or monitor.lines, 'a line')
        assert monitor.interrupt()[0] == 0
    assert monitor.lines[0].startswith('qos_changed{cause=request, port=2, objects=0, serial=')
    assert monitor.lines[0].endswith(
        ', qos-htb cmd=replace,port=2,class=10,rate=6mbit,ceil=10mbit,prio=1}')
    assert all(line.startswith('qos_changed{') for line in monitor.lines)


def test_dpctl_monitor_refuses_what_it_does_not_know(switch):
    done = switch.dpctl('monitor', 'qos,everything', check=False)
    assert done.returncode == 2
    assert "unknown kind 'everything': use packet-in, flow-removed, port-status, role" in done.stderr


def test_dpctl_monitor_ends_when_the_switch_does(switch, conn):
    with Monitor(switch, 'qos') as monitor:
        monitor.until(is_message('qos_changed'),
                      lambda: ask(conn, q.htb_class(q.REPLACE, 2, 10, MBIT)))
        switch.stop()
        assert monitor.process.wait(20) == 1
