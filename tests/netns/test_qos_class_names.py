# SPDX-License-Identifier: Apache-2.0
"""Names of classes (NAME): shown with the queue, kept by the switch because the kernel has no place for
them."""
import json

import pytest

from support import qosmsg as q, tc
from support.qostree import MBIT, ask, killed, running
from support.topo import Switch
from support.wait import until

ONE_SWITCH = True
pytestmark = pytest.mark.testkernel

NAME = 'Büro, 2. Stock (50 %)'
LONGEST = 'ü' * 15 + 'x'                                               # 31 bytes


def named(conn, port=2):
    """{class: its name} of classes, by a dump"""
    return {e['class_id']: e['properties'].get('name') for e in q.dump(conn, port)
            if e['object_type'] == q.CLASS}


@pytest.mark.parametrize('envelope', q.ENVELOPES)
def test_by_message(four_ports, conn, envelope):
    """The kernel's class is as it would be without; a refused request changes nothing of the name."""
    ns = four_ports.switch_ns
    q.send(conn, envelope, q.htb_class(q.ADD, 2, 10, MBIT, 2 * MBIT))
    before = tc.classes(ns, 'p2')[10]['options']
    q.send(conn, envelope, q.htb_class(q.CHANGE, 2, 10, MBIT, 2 * MBIT, name=NAME))
    q.send(conn, envelope, q.htb_class(q.ADD, 2, 11, MBIT, name=LONGEST))
    assert named(conn) == {0: None, 10: NAME, 11: LONGEST, q.DEFAULT_CLASS: None}
    assert tc.classes(ns, 'p2')[10]['options'] == before
    q.send(conn, envelope, q.htb_class(q.CHANGE, 2, 10, 2 * MBIT))                # keeps it
    q.send(conn, envelope, q.htb_class(q.REPLACE, 2, 11, MBIT, name='other'))
    q.refused(conn, envelope, q.htb_class(q.CHANGE, 2, 10, 3 * MBIT, MBIT, name='no'), q.BAD_PARAM)
    for wrong in 'a\0', '\x1b[2J', 'a\nb', 'a\x7f', 'a\x85b':
        q.refused(conn, envelope, q.htb_class(q.CHANGE, 2, 10, 2 * MBIT, name=wrong), q.BAD_PARAM)
    for wrong, code in ((b'\xff', q.BAD_PARAM), (b'\xc3', q.BAD_PARAM), (b'a' * 32, q.BAD_PROPERTY)):
        content = q.htb_class(q.CHANGE, 2, 10, 2 * MBIT) + q.raw_prop(48, wrong)
        q.refused(conn, envelope, content, code)
    q.refused(conn, envelope, q.qdisc(q.PFIFO, q.ADD, 2, 10, 5, name='a'), q.BAD_PROPERTY)
    assert named(conn) == {0: None, 10: NAME, 11: 'other', q.DEFAULT_CLASS: None}
    q.send(conn, envelope, q.htb_class(q.CHANGE, 2, 10, 2 * MBIT, name=''))
    assert named(conn)[10] is None
    q.send(conn, envelope, q.htb_class(q.ADD, 2, 12, MBIT, name=''))
    assert named(conn)[12] is None


@pytest.mark.parametrize('kind', ['hfsc', 'drr'])
def test_of_other_kinds(conn, need, kind):
    need(kind)
    sched, values = {'hfsc': (q.HFSC, {'service_curve': [(2, 0, 0, MBIT)]}),
                     'drr': (q.DRR, {'quantum': 2000})}[kind]
    ask(conn, q.content(sched, q.CLASS, q.ADD, 2, 10, b'', q.props(name='voice', **values)))
    ask(conn, q.content(sched, q.CLASS, q.CHANGE, 2, 10, b'', q.props(**values)))
    assert named(conn)[10] == 'voice'
    ask(conn, q.content(sched, q.CLASS, q.CHANGE, 2, 10, b'', q.props(name='')))
    assert named(conn)[10] is None


def test_by_dpctl(switch, conn):
    """Shown wherever the queue is; in commands without what their grammar uses."""
    switch.dpctl('qos-htb', 'cmd=add,port=2,class=0,rate=50mbit,name=total')
    switch.dpctl('qos-htb', 'cmd=add,port=2,class=10,rate=1mbit,name=B%C3%BCro%2C%202.%20Stock%20(50%20%25)')
    assert named(conn) == {0: 'total', 10: NAME, q.DEFAULT_CLASS: None}
    shown = switch.dpctl('qos-show').stdout
    assert f'class 10 "{NAME}"' in shown and 'root class "total"' in shown
    rows = json.loads(switch.dpctl('--json', 'qos-show', 'class=10').stdout)['qos']
    assert rows[0]['name'] == rows[0]['config']['name'] == NAME
    watched = switch.dpctl('qos-watch', 'port=2', 'interval=100ms', 'count=1').stdout
    assert 'class 10 "Büro' in watched
    columns = {line.index(' ', 19) for line in watched.splitlines() if 'class' in line[:20]}
    assert columns == {19}, watched
    rows = [json.loads(line) for line in switch.dpctl(
        '--json', 'qos-watch', 'port=2', 'interval=100ms', 'count=1').stdout.splitlines()]
    assert NAME in json.dumps(rows, ensure_ascii=False)
    families = json.loads(switch.dpctl('--json', 'metrics').stdout)
    info = next(f for f in families if f['name'] == 'ofqos_queue_info')
    assert {s['labels']['queue']: s['labels']['queue_name'] for s in info['samples']} == \
        {'root': 'total', '10': NAME, 'default': ''}
    done = switch.dpctl('qos-htb', 'cmd=change,port=2,class=10,rate=1mbit,name=50%', check=False)
    assert done.returncode and '%25' in done.stderr
    switch.dpctl('qos-htb', 'cmd=change,port=2,class=10,rate=1mbit,name=')
    assert named(conn)[10] is None


def parents(conn, port=2):
    return {e['class_id']: e['parent_id'] for e in q.dump(conn, port) if e['object_type'] == q.CLASS}


def test_a_class_by_its_name(switch, conn, tmp_path):
    """parent=, class= and default= take the name that name= has given, also earlier in the same bundle"""
    switch.dpctl('qos-htb', 'cmd=add,port=2,class=10,rate=4mbit,name=voice')
    switch.dpctl('qos-htb', 'cmd=add,port=2,class=11,parent=voice,rate=1mbit,name=B%C3%BCro')
    switch.dpctl('qos-htb', 'cmd=change,class=B%C3%BCro,rate=2mbit,port=2')
    switch.dpctl('qos-pfifo', 'cmd=add,port=2,class=Büro,limit=5')
    assert (parents(conn)[11], named(conn)[11]) == (10, 'Büro')
    assert next(e['rate'] for e in q.dump(conn, 2, 11)) == 2 * MBIT
    commands = tmp_path / 'commands'
    commands.write_text('qos-htb cmd=add,port=3,class=20,rate=4mbit,name=office\n'
                        'qos-htb cmd=add,port=3,class=21,parent=office,rate=1mbit\n')
    switch.dpctl('-F', str(commands), '--atomic')
    assert parents(conn, 3)[21] == 20
    for port, says in (2, 'it has voice, Büro'), (1, 'name= gives it a name'):
        done = switch.dpctl('qos-htb', f'cmd=add,port={port},class=12,parent=office,rate=1mbit', check=False)
        assert done.returncode == 2 and f'port {port} has no class of the name office' in done.stderr
        assert says in done.stderr


def test_of_a_profile(switch, conn, tmp_path):
    """A profile's names are the classes'; the commands of --dry-run can be typed."""
    profile, commands = tmp_path / 'names.qos', tmp_path / 'commands'
    profile.write_text('htb class=10,name=voice,rate=2mbit\nhtb class=11,parent=voice,rate=1mbit\n')
    commands.write_text(switch.dpctl('--dry-run', 'qos-apply', str(profile), 'port=2').stdout)
    switch.dpctl('-F', str(commands), '--atomic')
    assert named(conn) == {0: None, 10: 'voice', 11: None, q.DEFAULT_CLASS: None}
    assert 'nothing to change' in switch.dpctl('--dry-run', 'qos-apply', str(profile), 'port=2').stdout
    profile.write_text(profile.read_text().replace('voice', 'speech'))
    switch.dpctl('qos-apply', str(profile), 'port=2')
    assert named(conn)[10] == 'speech'


def test_somebody_else_s_change_keeps_it(four_ports, switch, conn):
    ns = four_ports.switch_ns
    ask(conn, q.htb_class(q.ADD, 2, 10, MBIT, name=NAME))
    tc.tc(ns, *'class change dev p2 parent 1:ffff classid 1:a htb rate 3mbit'.split())
    until(lambda: next(e['rate'] for e in q.dump(conn, 2, 10)) == 3 * MBIT, 'it is adopted')
    assert named(conn)[10] == NAME


@pytest.mark.long
def test_over_restarts(topo, tmp_path):
    """In --state's file; queues that a daemon leaves and the next one finds have none without it."""
    file = tmp_path / 'state'
    with running(topo, f'--state={file}', '--qos-keep') as (switch, conn):
        ask(conn, q.htb_class(q.ADD, 2, 10, MBIT, name=NAME))
        ask(conn, q.htb_class(q.ADD, 2, 11, MBIT))
        conn.close()
        assert switch.stop() == 0
        with tc.Events(topo.switch_ns, 'p2') as events:
            switch.start()
            with switch.connect() as again:
                assert named(again)[10] == NAME and named(again)[11] is None
            assert not [e for e in events.changes() if e[0] != tc.RTM_NEWTCLASS]
        killed(switch)
        switch.start()
        with switch.connect() as again:
            assert named(again)[10] == NAME
    with Switch(topo) as switch:                                       # found, and removed at its end
        with switch.connect() as again:
            assert named(again)[10] is None


def test_saved_and_restored(switch, conn, tmp_path):
    file = str(tmp_path / 'saved')
    ask(conn, q.htb_class(q.ADD, 2, 10, MBIT, name=NAME))
    switch.dpctl('save', file)
    ask(conn, q.htb_class(q.CHANGE, 2, 10, MBIT, name='other'))
    switch.dpctl('restore', file)
    assert named(conn)[10] == NAME
    ask(conn, q.clear(2))
    switch.dpctl('restore', file)
    assert named(conn)[10] == NAME
