# SPDX-License-Identifier: Apache-2.0
"""Saved state: dpctl save and restore, --state, --restore, and a new process that takes over."""
import json
import os
import signal
import struct
import subprocess
import time

import pytest

from support import of13, ofmsg, qosmsg as q, tc
from support.load import Cbr, Listener
from support.of13 import apply_actions, output, set_queue
from support.qostree import FRAME, asked_for, build, kernel, running
from support.status import status
from support.topo import Switch, binary, sh

QOSF = 0x514f5346
STATE, STATE_MARK = 11, 13
NEW_CLASS = 40                                                         # RTM_NEWTCLASS


def fill(switch, conn):
    """Something of everything"""
    build(conn)
    for number, kind, *buckets in (
            (9, ofmsg.GT_ALL, ofmsg.bucket(output(2))),
            (5, ofmsg.GT_FF, ofmsg.bucket(output(2), watch_port=2),
             ofmsg.bucket(ofmsg.group(9), watch_group=9)),
            (1, ofmsg.GT_SELECT, ofmsg.bucket(ofmsg.group(5), weight=3),
             ofmsg.bucket(output(3), weight=1))):
        conn.ok(of13.GROUP_MOD, ofmsg.group_mod(ofmsg.ADD, kind, number, *buckets))
    conn.ok(of13.METER_MOD, ofmsg.meter_mod(ofmsg.ADD, 7, ofmsg.band_drop(1000, 100), flags=1 | 4))
    conn.flow(apply_actions(set_queue(10), output(2)), match=ofmsg.match(in_port=1), priority=10,
              cookie=0xabc)
    conn.flow(apply_actions(ofmsg.group(1)), match=ofmsg.match(in_port=3), idle=1000,
              flags=1)
    conn.flow(ofmsg.meter(7), table_id=2, priority=0)
    switch.dpctl('port-mod', 'port=1,conf=no_fwd,mask=no_fwd')
    switch.dpctl('port-mod', 'port=2,conf=no_flood,mask=no_flood')


def shown(switch, conn):
    """What the switch has, without counters and times"""
    flows = [{k: v for k, v in f.items() if not k.startswith(('duration', 'packet', 'byte'))}
             for f in conn.flows()]
    asked = [json.loads(switch.dpctl('--json', what).stdout)
             for what in ('group-desc', 'meter-config')]
    ports = {no: p['config'] for no, p in conn.ports().items()}
    return sorted(flows, key=repr), asked, ports, asked_for(conn)


def parts(conn):
    """The reply to STATE: its messages [(type, bytes)]"""
    body = struct.pack('!II', QOSF, STATE)
    data = b''.join(p[8:] for p in conn.multipart_parts(of13.MP_EXPERIMENTER, body))
    messages = []
    while data:
        n, = struct.unpack_from('!H', data, 2)
        messages.append((data[1], data[:n]))
        data = data[n:]
    return messages


def test_the_reply(conn, switch):
    """Meters, groups in an order in which they can be made, flows, ports, queues, between marks"""
    fill(switch, conn)
    messages = parts(conn)
    kinds = [k for k, _ in messages]
    assert kinds[:8] == [4, 29, 15, 15, 15, 14, 14, 14]
    assert [struct.unpack_from('!I', m, 12)[0] for k, m in messages if k == 15] == [9, 5, 1]
    assert kinds[8:10] == [16, 16] and set(kinds[10:]) == {4}
    first, last = messages[0][1], messages[-1][1]
    for mark, end in ((first, 0), (last, 1)):
        experimenter, kind, is_end, version, count, dpid, when = \
            struct.unpack('!8xIIHHIQQ', mark)
        assert (experimenter, kind, is_end, version, dpid) == (QOSF, STATE_MARK, end, 1, 1)
        assert count == (len(messages) - 2 if end else 0)
        assert abs(when - time.time()) < 3600


@pytest.mark.parametrize('how', ['text', 'bytes'])
def test_restore(conn, switch, tmp_path, how):
    """What is missing, changed or too much is put right; the rest is left alone"""
    file = str(tmp_path / 'state')
    fill(switch, conn)
    before = shown(switch, conn)
    assert 'saved' in switch.dpctl('save', file, *(['format=bytes'] if how == 'bytes' else [])).stdout
    assert 'nothing to change' in switch.dpctl('restore', file).stdout
    stay = [f for f in conn.flows() if f['table_id'] == 2]
    switch.dpctl('flow-mod', 'cmd=del,table=0')
    switch.dpctl('flow-mod', 'cmd=add,table=9', 'in_port=4', 'apply:output=1')
    switch.dpctl('group-mod', 'cmd=mod,type=all,group=9', 'output=1', 'output=3')
    switch.dpctl('group-mod', 'cmd=add,type=all,group=77', 'group=1')
    switch.dpctl('meter-mod', 'cmd=add,meter=8,flags=kbps', 'drop:rate=5')
    switch.dpctl('port-mod', 'port=1,conf=0,mask=no_fwd')
    switch.dpctl('port-mod', 'port=2,conf=no_recv,mask=no_recv')
    switch.dpctl('qos-htb', 'cmd=del,port=2,class=11')
    switch.dpctl('qos-htb', 'cmd=change,port=2,class=10,rate=9mbit')
    switch.dpctl('qos-htb', 'cmd=add,port=3,class=2,rate=1mbit')
    changed = shown(switch, conn)
    dry = json.loads(switch.dpctl('--json', 'restore', file, '--dry-run').stdout)
    assert not dry['applied'] and len(dry['steps']) >= 11
    assert shown(switch, conn) == changed
    switch.dpctl('restore', file)
    assert shown(switch, conn) == before
    assert tc.root(switch.topo.switch_ns, 'p3') is None
    after = [f for f in conn.flows() if f['table_id'] == 2]
    age = [f['duration_sec'] + f['duration_nsec'] / 1e9 for f in stay + after]
    assert age[1] > age[0], 'a flow that did not differ was made anew'


def test_the_dry_run_is_a_file_of_commands(conn, switch, tmp_path):
    file, commands = str(tmp_path / 'state'), str(tmp_path / 'commands')
    fill(switch, conn)
    before = shown(switch, conn)
    switch.dpctl('save', file)
    for what in (('flow-mod', 'cmd=del,table=all'), ('group-mod', 'cmd=del,group=all'),
                 ('meter-mod', 'cmd=del,meter=all'), ('qos-clear', 'port=2'),
                 ('port-mod', 'port=1,conf=0,mask=no_fwd')):
        switch.dpctl(*what)
    with open(commands, 'w', encoding='utf-8') as f:
        f.write(switch.dpctl('restore', file, '--dry-run').stdout)
    switch.dpctl('-F', commands, '--atomic')
    now = shown(switch, conn)
    assert now[1:] == before[1:]
    assert [f['match'] for f in now[0]] == [f['match'] for f in before[0]]


def dpctl_here(switch, *words, **environ):
    """As one types it, without an address -> subprocess.CompletedProcess"""
    return subprocess.run([binary('utils/dpctl/dpctl'), *words], text=True, check=False, timeout=60,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=dict(os.environ, **environ))


def test_the_text(conn, switch, tmp_path):
    """save writes commands: people read them, -F carries them out, and restore does with the switch's number and time
    in front"""
    file = tmp_path / 'state'
    fill(switch, conn)
    before = shown(switch, conn)
    switch.dpctl('save', str(file))
    lines = file.read_text().splitlines()
    assert lines[0].startswith('# The state of switch 0000000000000001, 20')
    assert any(line.startswith('flow-mod cmd=add,table=0,prio=10,cookie=0xabc ') for line in lines), lines
    assert any(',idle=1000,flags=send_flow_rem ' in line for line in lines), lines
    for what in (('flow-mod', 'cmd=del,table=all'), ('group-mod', 'cmd=del,group=all'),
                 ('meter-mod', 'cmd=del,meter=all'), ('qos-clear', 'port=2'),
                 ('port-mod', 'port=1,conf=0,mask=no_fwd'), ('port-mod', 'port=2,conf=0,mask=no_flood')):
        switch.dpctl(*what)
    switch.dpctl('-F', str(file), '--atomic')
    assert shown(switch, conn) == before
    assert 'nothing to change' in switch.dpctl('restore', str(file)).stdout
    file.write_text('\n'.join(line for line in lines if 'table=2' not in line) + '\n# so\n')
    assert 'done: 1 request' in switch.dpctl('restore', str(file)).stdout
    assert not [f for f in conn.flows() if f['table_id'] == 2]
    assert file.read_text().splitlines()[1] in switch.dpctl('save', '-').stdout


@pytest.mark.parametrize('line,says', [('flow-mod cmd=addd', 'state:1: '), ('status', "can't be part"),
                                       ('set-config flags=drop', 'is no part of a state')])
def test_a_text_that_is_wrong(conn, switch, tmp_path, line, says):
    file = tmp_path / 'state'
    conn.flow(apply_actions(output(2)))
    file.write_text(line + '\n')
    said = switch.dpctl('restore', str(file), check=False)
    assert said.returncode and says in said.stderr, said.stderr
    assert len(conn.flows()) == 1


def test_a_path_is_the_switch_or_the_file(conn, switch, tmp_path):
    """dpctl save /var/lib/x.state: the file, as there is no socket; dpctl features /run/x: the switch"""
    file = str(tmp_path / 'state')
    conn.flow(apply_actions(output(2)))
    said = dpctl_here(switch, switch.address, 'save', file)
    assert said.returncode == 0, said.stderr
    os.unlink(file)
    said = dpctl_here(switch, 'save', file, switch.path)
    assert said.returncode == 0 and os.path.exists(file), said.stderr
    os.unlink(file)
    said = dpctl_here(switch, 'save', file)
    assert said.returncode == 1 and f'listens at {file}' not in said.stderr and not os.path.exists(file)
    said = dpctl_here(switch, 'restore', file)
    assert f'listens at {file}' not in said.stderr
    said = dpctl_here(switch, 'features', file)
    assert f'no switch listens at {file}' in said.stderr


def test_refused_as_a_whole(topo, tmp_path):
    """One message that the switch refuses: nothing is changed"""
    file = str(tmp_path / 'state')
    with running(topo, '--max-flows=2') as (switch, conn):
        with running_elsewhere(topo) as (other, there):
            for prio in range(3):
                there.flow(apply_actions(output(1)), priority=prio + 1)
            other.dpctl('save', file)
        conn.flow(apply_actions(output(2)), priority=77)
        refused = switch.dpctl('restore', file, check=False)
        assert refused.returncode == 1 and 'OFPFMFC_TABLE_FULL' in refused.stderr
        assert [f['priority'] for f in conn.flows()] == [77]


def running_elsewhere(topo):
    """A second switch without ports"""
    class Pair:
        def __enter__(self):
            self.switch = Switch(topo, interfaces=[], dpid='0000000000000002')
            self.switch.__enter__()
            self.conn = self.switch.connect()
            return self.switch, self.conn

        def __exit__(self, *error):
            self.conn.close()
            self.switch.__exit__(*error)
    return Pair()


@pytest.mark.long
@pytest.mark.parametrize('damage', ['empty', 'cut', 'text', 'twice', 'missing'])
def test_a_file_that_is_no_state(conn, switch, tmp_path, damage):
    file = tmp_path / 'state'
    conn.flow(apply_actions(output(2)))
    switch.dpctl('save', str(file), 'format=bytes')
    whole = file.read_bytes()
    if damage == 'missing':
        file.unlink()
    else:
        file.write_bytes({'empty': b'', 'cut': whole[:-1], 'text': b'flow-mod cmd=addd\n' * 9,
                          'twice': whole * 2}[damage])
    refused = switch.dpctl('restore', str(file), check=False)
    assert refused.returncode == (2 if damage == 'text' else 1) and str(file) in refused.stderr
    assert len(conn.flows()) == 1
    command = [*switch.command[:-1], 'punix:' + str(tmp_path / 's'), '--restore', str(file)]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
    assert ended.returncode == 1 and str(file) in ended.stdout


def test_state_across_restarts(topo, tmp_path):
    file = str(tmp_path / 'state')
    with running(topo, '--state=' + file) as (switch, conn):
        fill(switch, conn)
        before = shown(switch, conn)
        conn.close()
        assert switch.stop() == 0
        assert tc.root(topo.switch_ns, 'p2') is None
        for options in ([], ['--qos-keep']):
            switch.command = [*switch.command, *options]
            switch.start()
            with switch.connect() as again:
                assert shown(switch, again) == before
            assert switch.stop() == 0
        with open(file, 'wb') as f:
            f.write(b'not a state')
        switch.command = switch.command[:-1]
        switch.start()
        with switch.connect() as again:
            assert again.flows() == []
            assert 'starts without it' in switch.output()
        assert os.path.exists(file + '.bad')


def pid_of(file):
    with open(file, encoding='ascii') as f:
        return int(f.read())


@pytest.fixture
def taken_over(topo, tmp_path):
    """A switch whose process may change -> (switch, pidfile)"""
    pidfile = str(tmp_path / 'pid')
    with Switch(topo, '--pidfile=' + pidfile) as switch:
        first = switch.process.pid
        yield switch, pidfile
        now = pid_of(pidfile)
        if now != first:
            os.kill(now, signal.SIGTERM)
            deadline = time.monotonic() + 60
            while os.path.exists(f'/proc/{now}') and time.monotonic() < deadline:
                with open(f'/proc/{now}/stat', encoding='ascii') as f:
                    if f.read().split()[2] == 'Z':
                        break
                time.sleep(0.05)


def test_a_new_process_takes_over(topo, ns, taken_over):
    switch, pidfile = taken_over
    with switch.connect() as conn:
        fill(switch, conn)
        before, queues = shown(switch, conn), kernel(ns)
    with Listener(topo, 2, len(FRAME)) as heard, Cbr(topo, 1, (FRAME, 500)) as sender, \
            tc.Events(ns, 'p2') as events:
        heard.reaches(100)
        old = pid_of(pidfile)
        assert 'restarted' in switch.dpctl('restart').stdout
        assert switch.process.wait(60) == 0
        heard.reaches(len(heard.numbers) + 300)
        # The kernel does not know that class 11 has shares: it is told its rates once more.
        assert events.changes() in ([], [(NEW_CLASS, 0x1000b)])
        sent, = sender.stop()
        heard.quiet()
        assert heard.numbers == sorted(set(heard.numbers)), 'a packet came twice'
    with switch.connect() as conn:
        assert shown(switch, conn) == before and kernel(ns) == queues
        assert pid_of(pidfile) == int(status(conn)['pid']) != old
    assert 'packets stood still for' in switch.output()


def test_a_new_process_that_fails(topo, taken_over, tmp_path):
    """The old one goes on"""
    switch, pidfile = taken_over
    program = switch.command[switch.command.index(binary('datapath/ofdatapath'))]
    copy = tmp_path / 'ofdatapath'
    sh('cp', program, str(copy))
    switch.stop()
    switch.command[switch.command.index(program)] = str(copy)
    switch.start()
    copy.unlink()
    copy.write_text('#!/bin/sh\nexit 3\n')
    copy.chmod(0o755)
    with switch.connect() as conn:
        conn.flow(apply_actions(output(2)))
        refused = switch.dpctl('restart', check=False)
        assert refused.returncode == 1 and 'the old one goes on' in refused.stderr
        assert len(conn.flows()) == 1
    assert switch.alive()
    assert 'this process goes on' in switch.output()


def test_restart_only_at_a_unix_socket(topo):
    with Switch(topo, 'ptcp:7654:127.0.0.1') as switch:
        sh('ip', 'netns', 'exec', topo.switch_ns, 'ip', 'link', 'set', 'lo', 'up')
        refused = sh('ip', 'netns', 'exec', topo.switch_ns, 'sh', '-c',
                     binary('utils/dpctl/dpctl') + ' tcp:127.0.0.1:7654 restart 2>&1; true')
        assert 'Unix socket' in refused
        assert switch.alive()
