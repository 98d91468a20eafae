# SPDX-License-Identifier: Apache-2.0
"""`dpctl log`: which lines the switch logs, changed while it runs; LOG and LOG_SET on the wire."""
import json
import re
import socket
import struct

import pytest
from support import of13
from support.status import QOSF
from support.topo import Switch, Topology
from support.wait import until

LOG_SET, LOG = 9, 6
LEVELS = {3: 'error', 4: 'warning', 5: 'notice', 6: 'info', 7: 'debug'}


@pytest.fixture
def switch():
    with Topology(1) as topo, Switch(topo) as s:
        yield s


def ask(conn):
    """-> where to, lost, {module: (level, then, seconds, lines, left out)}"""
    body = struct.pack('!II', QOSF, LOG)
    reply = b''.join(part[8:] for part in conn.multipart_parts(of13.MP_EXPERIMENTER, body))
    to, lost = struct.unpack_from('!16sQ', reply)
    modules = {}
    for name, level, then, seconds, lines, left in struct.iter_unpack('!16sBB2xIQQ', reply[24:]):
        modules[name.rstrip(b'\0').decode()] = (LEVELS[level], LEVELS[then], seconds, lines, left)
    return to.rstrip(b'\0').decode(), lost, modules


def set_levels(text, seconds=0):
    """A message's kind and body"""
    return of13.EXPERIMENTER, struct.pack('!III', QOSF, LOG_SET, seconds) + text.encode()


def test_levels_at_run_time(switch):
    shown = json.loads(switch.dpctl('--json', 'log').stdout)
    assert shown['to'] == 'stderr'
    assert shown['lost'] == 0
    assert {m['level'] for m in shown['modules']} == {'notice'}
    assert {'conn', 'flow', 'port', 'qos'} <= {m['module'] for m in shown['modules']}
    switch.dpctl('log', 'conn=debug,flow=info', 'for=1h')
    assert ' notice: daemon: unix:' in switch.output()
    assert ': log levels: conn=debug,flow=info for 3600 s\n' in switch.output()
    now = {m['module']: m for m in json.loads(switch.dpctl('--json', 'log').stdout)['modules']}
    assert now['conn']['level'] == 'debug'
    assert now['conn']['then'] == 'notice'
    assert 3500 < now['conn']['seconds'] <= 3600
    assert now['qos']['level'] == 'notice'
    assert 'seconds' not in now['qos']
    table = switch.dpctl('log').stdout
    assert 'debug (3' in table
    assert ', then notice)' in table
    switch.dpctl('log', 'all=warning')
    with switch.connect() as conn:
        to, lost, modules = ask(conn)
        assert (to, lost) == ('stderr', 0)
        assert {m[:3] for m in modules.values()} == {('warning', 'warning', 0)}
        conn.ok(*set_levels('flow=debug', 1))
        assert ask(conn)[2]['flow'][:2] == ('debug', 'warning')
        until(lambda: ask(conn)[2]['flow'][0] == 'warning', 'the level from before')


def test_wrong_levels(switch):
    for words, says in ((['con=debug'], "there is no module 'con': did you mean conn?"),
                        (['conn=dbg'], "there is no level 'dbg': did you mean debug?"),
                        (['all=debug', 'for=2d'], 'for= must be a time such as 60s, 5m or 1h'),
                        (['for=60s'], 'write which levels'),
                        (['conn=debug', 'for=25h'], 'at most 86400 seconds')):
        done = switch.dpctl('log', *words, check=False)
        assert done.returncode
        assert says in done.stderr
    with switch.connect() as conn:
        assert {m[0] for m in ask(conn)[2].values()} == {'notice'}


def test_a_slave_sets_no_levels(switch):
    with switch.connect() as conn:
        conn.role(of13.ROLE_SLAVE, 1)
        conn.expect_error(of13.ET_BAD_REQUEST, of13.BRC_IS_SLAVE, *set_levels('conn=debug'))
        assert {m[0] for m in ask(conn)[2].values()} == {'notice'}


# ------------------------------------------------------------------ the lines

def waits(switch, line):
    until(lambda: line in switch.output(), line)


def test_who_did_what(switch):
    """At info: each change with its connection and xid; what is refused, with the error's name."""
    switch.dpctl('flow-mod', 'cmd=add,table=0,prio=9', 'in_port=1', 'apply:output=1')
    assert 'flow_mod' not in switch.output(), 'off by default'
    switch.dpctl('log', 'info')
    switch.dpctl('flow-mod', 'cmd=add,table=0,prio=10', 'in_port=1', 'apply:output=1')
    switch.dpctl('group-mod', 'cmd=add,type=ind,group=7', 'output=1')
    switch.dpctl('meter-mod', 'cmd=add,flags=kbps,meter=3', 'drop:rate=1000')
    switch.dpctl('port-mod', 'port=1,conf=no_fwd')
    switch.dpctl('qos-htb', 'cmd=add,port=1,class=10,rate=5mbit')
    switch.dpctl('set-desc', 'in the cellar')
    for refused in (('group-mod', 'cmd=add,type=ind,group=7', 'output=1'),
                    ('qos-htb', 'cmd=del,port=1,class=77')):
        assert switch.dpctl(*refused, check=False).returncode
    said = switch.output()
    for words in ('info: conn: unix:', ': connected: process ', ' info: flow: unix:', ' xid ',
                  ': flow_mod{', 'prio=10', 'in_port=1', ' info: group: unix:', ': group_mod{',
                  ' info: meter: unix:', ': meter_mod{', ' info: port: unix:', ': port_mod{',
                  ' info: qos: unix:', ': qos-htb cmd=add,port=1,class=10,rate=5mbit',
                  'dp_desc is "in the cellar"',
                  ': refused OFPT_GROUP_MOD: OFPGMFC_GROUP_EXISTS', ': refused: '):
        assert words in said, words
    assert said.count('flow_mod{') == 1, 'one line for each'
    assert said.count('qos-htb cmd=add') == 1
    assert ' debug: ' not in said


def test_a_full_table_is_a_warning(tmp_path):
    with Topology(1) as topo, Switch(topo, '--max-groups=1') as s:
        s.dpctl('group-mod', 'cmd=add,type=ind,group=1', 'output=1')
        assert s.dpctl('group-mod', 'cmd=add,type=ind,group=2', 'output=1', check=False).returncode
        waits(s, ': refused OFPT_GROUP_MOD: OFPGMFC_OUT_OF_GROUPS')
        assert ' warning: conn: unix:' in s.output()


def test_each_message(switch):
    """At debug of conn: each message in and out, by its name."""
    switch.dpctl('log', 'conn=debug')
    switch.dpctl('features')
    for words in ('received OFPT_FEATURES_REQUEST, 8 bytes', 'sent OFPT_FEATURES_REPLY, 32 bytes'):
        waits(switch, words)


def test_each_operation_of_the_kernel(switch):
    """In tc's words, also those that it refuses"""
    switch.dpctl('log', 'qos=debug')
    dev = switch.interfaces[0]
    switch.dpctl('qos-htb', 'cmd=add,port=1,class=10,rate=6mbit,ceil=10mbit')
    switch.dpctl('qos-clear', 'port=1')
    for line in (f'tc qdisc add dev {dev} parent root handle 1: htb: done',
                 f'tc class add dev {dev} parent 1:ffff classid 1:a htb rate 6mbit ceil 10mbit',
                 f'tc qdisc del dev {dev} parent root handle 1: htb: done'):
        waits(switch, line)


def test_start_and_end():
    with Topology(1) as topo, Switch(topo, '--log=port=info') as s:
        waits(s, 'datapath id 0000000000000001, 1 port, 1 packet thread')
        waits(s, ' info: port: port 1 (p1): the link is ')
        s.stop()
        waits(s, ' notice: daemon: ends: Terminated')


def test_a_bundle_is_one_line(switch, tmp_path):
    changes = tmp_path / 'changes'
    changes.write_text('flow-mod cmd=add,prio=1 apply:output=1\nflow-mod cmd=add,prio=2 apply:output=1\n')
    switch.dpctl('log', 'all=info')
    switch.dpctl('-F', str(changes), '--atomic')
    waits(switch, ': committed a bundle of 2 messages')
    assert 'flow_mod{' not in switch.output()


def test_roles_and_ports(switch):
    with switch.connect() as one, switch.connect() as two:
        one.role(of13.ROLE_MASTER, 1)
        waits(switch, ': its role is master, and was equal')
        two.role(of13.ROLE_MASTER, 2)
        waits(switch, ': its role is slave, and was master')
    switch.dpctl('port-del', '1')
    waits(switch, ': removed port 1')


def test_no_controller_is_told_once(tmp_path):
    address = f'unix:{tmp_path}/controller'
    with Topology(1) as topo, of13.Listener(address) as listener, \
            Switch(topo, address, '--fail=open', '--max-backoff=0.2') as s:
        controller = listener.accept()
        waits(s, ' notice: switch: a controller is connected')
        controller.close()
        waits(s, ' warning: switch: no controller is connected: packets that match no flow go by NORMAL (--fail=open)')
        listener.accept()
        waits(s, ': packets go by the flow tables alone again')


# ------------------------------------------------------------------ where lines go

@pytest.fixture
def logger(tmp_path):
    """A logger's socket"""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(str(tmp_path / 'socket'))
        s.settimeout(of13.PATIENCE)
        yield s


def inside_a_mount_namespace(commands):
    """`ip netns exec` has made one, so that the machine doesn't see these mounts."""
    return 'sh', '-ec', commands + '\nexec "$@"', 'sh'


def lines_of(logger, wanted):
    """Datagrams up to the one that has this text; -> that one"""
    while wanted not in (line := logger.recv(4096).decode()):
        pass
    return line


def test_journal(logger, tmp_path):
    journal = inside_a_mount_namespace(f'mount -t tmpfs none /run\nmkdir -p /run/systemd\n'
                                       f'ln -s {tmp_path} /run/systemd/journal')
    with Topology(1) as topo, Switch(topo, '--log-to=journal', '--log=info', prefix=journal) as s:
        fields = lines_of(logger, 'MESSAGE=switch: ofqos ').splitlines()
        for field in ('PRIORITY=5', 'SYSLOG_IDENTIFIER=ofdatapath', 'OFQOS_MODULE=switch',
                      'CODE_FILE=datapath/main/main.c'):
            assert field in fields
        s.dpctl('flow-mod', 'cmd=add,table=0,prio=10', 'in_port=1', 'apply:output=1')
        fields = lines_of(logger, 'OFQOS_MODULE=flow').splitlines()
        assert 'PRIORITY=6' in fields
        assert 'OFQOS_XID=1' in fields
        assert [f for f in fields if f.startswith('OFQOS_PEER=unix:')]
        assert json.loads(s.dpctl('--json', 'log').stdout)['to'] == 'journal'
        assert s.output() == ''


def test_a_journal_that_nobody_reads(logger, tmp_path):
    """Nothing waits; what is lost is counted."""
    journal = inside_a_mount_namespace(f'mount -t tmpfs none /run\nmkdir -p /run/systemd\n'
                                       f'ln -s {tmp_path} /run/systemd/journal')
    with Topology(1) as topo, Switch(topo, '--log-to=journal', '--log=debug', prefix=journal) as s:
        with s.connect() as conn:
            for _ in range(500):
                conn.barrier()
            assert ask(conn)[1] > 0
        assert json.loads(s.dpctl('--json', 'counters').stdout)['log.lost'] > 0


def test_syslog(logger, tmp_path):
    syslog = inside_a_mount_namespace(f'mount -t tmpfs none /dev\nmknod -m 666 /dev/null c 1 3\n'
                                      f'mknod /dev/urandom c 1 9\nln -s {tmp_path}/socket /dev/log')
    with Topology(1) as topo, Switch(topo, '--log-to=syslog', prefix=syslog) as s:
        line = lines_of(logger, ']: switch: ofqos ')
        assert re.match(r'<29>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d ofdatapath\[\d+\]: switch: ofqos ', line)
        assert json.loads(s.dpctl('--json', 'log').stdout)['to'] == 'syslog'


def test_there_is_no_logger():
    with Topology(1) as topo:
        nowhere = inside_a_mount_namespace('mount -t tmpfs none /run')
        s = Switch(topo, '--log-to=journal', prefix=nowhere, wait=False)
        s.start()
        assert s.process.wait(of13.PATIENCE)
        assert '--log-to must be something else here, as /run/systemd/journal/socket' in s.output()
        s.abandon()
