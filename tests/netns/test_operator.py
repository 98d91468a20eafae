# SPDX-License-Identifier: Apache-2.0
"""What an operator is told: why the switch can't start, and a line in its log for each thing that
has come, gone or been refused."""
import os
import re
import subprocess

import pytest

from support import of13, qosmsg as q
from support.bundle import Bundle
from support.of13 import apply_actions, output
from support.topo import Switch, binary, sh
from support.wait import until
from test_idle import carries, new_cable
from test_lifecycle import start_and_fail

MBIT = 1_000_000
PC_DOWN = 1


def says(switch, pattern, times=1):
    """The log has lines of this kind, and so many of them."""
    def lines():
        return [line for line in switch.output().splitlines() if re.search(pattern, line)]

    until(lambda: len(lines()) >= times, f'{pattern!r} is not in:\n{switch.output()}')
    assert len(lines()) == times, lines()
    return lines()[-1]


def shape(conn, port=1, queue=1, rate=MBIT, **kw):
    q.send(conn, q.NATIVE, q.htb_class(q.ADD, port, queue, rate, **kw))


# ------------------------------------------------------------------------------ it can't start

def without(capability, *args):
    return ['setpriv', f'--bounding-set=-{capability}', f'--inh-caps=-{capability}',
            binary('datapath/ofdatapath'), *args]


def fails(topo, *command):
    env = dict(os.environ, ASAN_OPTIONS='detect_leaks=0')
    done = subprocess.run(['ip', 'netns', 'exec', topo.switch_ns, *command], text=True, timeout=60,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=env)
    assert done.returncode == 1, done
    return done.stderr


@pytest.mark.parametrize('capability,args', [
    ('net_admin', ('-i', 'p1')), ('net_raw', ('-i', 'p1')), ('net_admin', ('-L', 'tap9')),
    ('net_admin', ('-i', 'p1', '--io=pcap')), ('net_raw', ('-i', 'p1', '--io=pcap'))],
    ids=lambda v: v if isinstance(v, str) else v[-1])
def test_a_missing_capability_is_named(topo, tmp_path, capability, args):
    if capability == 'net_admin':
        sh('ip', '-n', topo.switch_ns, 'link', 'set', 'p1', 'down')
    said = fails(topo, *without(capability, *args, f'punix:{tmp_path}/s'))
    assert args[1] in said and 'ermi' in said
    assert f'CAP_{capability.upper()} is missing' in said and 'setcap' in said, said


def test_both_capabilities_are_enough(topo, nobody):
    """Not root: what the message says suffices, also for queues and what enters."""
    rights = '+net_admin,+net_raw'
    switch = Switch(topo, prefix=[*nobody, f'--inh-caps={rights}',
                                  f'--ambient-caps={rights}'])
    os.chmod(switch.directory, 0o777)
    with switch, switch.connect() as conn:
        shape(conn)
        shape(conn, direction=1)
        carries(topo, conn)


def test_changes_without_the_capability(topo):
    """A port that is up already can be opened without CAP_NET_ADMIN; its queues can't be made."""
    with Switch(topo, prefix=['setpriv', '--bounding-set=-net_admin', '--inh-caps=-net_admin']) as s, \
            s.connect() as conn:
        with pytest.raises(q.SchedError) as caught:
            shape(conn)
        assert caught.value.code == q.PERM and 'CAP_NET_ADMIN' in caught.value.text
        assert 'CAP_NET_ADMIN' in says(s, 'the kernel refuses a queue request')
        before = conn.ports()
        conn.expect_error(of13.ET_PORT_MOD_FAILED, of13.PMFC_EPERM, of13.PORT_MOD,
                          of13.port_mod(1, before[1]['hw_addr'], PC_DOWN, PC_DOWN))
        assert conn.ports() == before
        assert 'not permitted' in says(s, r'port 1 \(p1\): the kernel refuses')


@pytest.mark.long
def test_what_is_there_is_named(topo, tmp_path):
    def listening_at(path):
        return start_and_fail(topo, '-i', 'p1', f'punix:{path}')

    (tmp_path / 'file').write_text('')
    (tmp_path / 'directory').mkdir()
    assert 'there is a file of this name' in listening_at(tmp_path / 'file')
    assert 'there is a directory of this name' in listening_at(tmp_path / 'directory')
    with Switch(topo, '--pidfile=' + str(tmp_path / 'pid')) as s:
        assert f'p1 belongs to process {s.process.pid}' in listening_at(s.path)
        said = start_and_fail(topo, '-i', 'p2', '--pidfile=' + str(tmp_path / 'pid'),
                              f'punix:{tmp_path}/s')
        assert f'in use by process {s.process.pid}' in said
    sh('ip', '-n', topo.switch_ns, 'link', 'add', 'tap9', 'type', 'veth', 'peer', 'name', 'x9')
    said = start_and_fail(topo, '-L', 'tap9', f'punix:{tmp_path}/s')
    assert 'tap9' in said and 'an interface of this name exists' in said


def test_somebody_elses_qdisc_is_named(topo):
    sh('tc', '-n', topo.switch_ns, 'qdisc', 'add', 'dev', 'p1', 'root', 'handle', '7:', 'tbf',
       'rate', '1gbit', 'burst', '64kb', 'latency', '50ms')
    with Switch(topo) as s, s.connect() as conn:
        with pytest.raises(q.SchedError) as caught:
            shape(conn)
        assert caught.value.code == q.BUSY and 'tbf 7:' in caught.value.text


# ------------------------------------------------------------------------------ the log

def test_a_port_goes_and_returns(topo):
    with Switch(topo) as s, s.connect() as conn:
        shape(conn)
        sh('ip', '-n', topo.switch_ns, 'link', 'del', 'p1')
        assert ' warning: port: ' in says(s, r'port 1 \(p1\): the interface is gone')
        new_cable(topo, 1)
        says(s, r'port 1 \(p1\): the interface is back')
        says(s, r'port 1 \(p1\): 1 queue made anew')


def test_a_port_returns_with_somebody_elses_qdisc(topo):
    with Switch(topo) as s, s.connect() as conn:
        shape(conn)
        shape(conn, queue=2)
        sh('ip', '-n', topo.switch_ns, 'link', 'del', 'p1')
        says(s, 'is gone')
        ns = topo.switch_ns
        sh('ip', '-n', ns, 'link', 'add', 'x1', 'type', 'veth', 'peer', 'name', 'x2')
        sh('tc', '-n', ns, 'qdisc', 'add', 'dev', 'x1', 'root', 'handle', '7:', 'tbf', 'rate',
           '1gbit', 'burst', '64kb', 'latency', '50ms')
        sh('ip', '-n', ns, 'link', 'set', 'x1', 'name', 'p1')
        says(s, 'the interface is back')
        assert 'tbf 7:' in says(s, r'port 1 \(p1\): 2 of its queues are lost')


def test_links_up_and_down(topo):
    with Switch(topo) as s, s.connect():
        sh('ip', '-n', topo.host_ns(1), 'link', 'set', 'e0', 'down')
        says(s, r'port 1 \(p1\): the link is down')
        sh('ip', '-n', topo.host_ns(1), 'link', 'set', 'e0', 'up')
        says(s, r'port 1 \(p1\): the link is up')


def test_queues_of_an_earlier_run(topo):
    s = Switch(topo)
    s.start()
    with s.connect() as conn:
        shape(conn)
        shape(conn, queue=2)
    s.process.kill()
    s.process.wait()
    s.start()
    says(s, r'port 1 \(p1\): 2 queues of an earlier run adopted')
    assert s.stop() == 0
    s.abandon()


@pytest.mark.parametrize('policy,words', [('adopt', 'adopted'), ('repair', 'repaired'),
                                          ('report', 'left as they are')])
def test_somebodys_changes(topo, policy, words):
    with Switch(topo, f'--qos-foreign={policy}') as s, s.connect() as conn:
        shape(conn)
        sh('tc', '-n', topo.switch_ns, 'class', 'change', 'dev', 'p1', 'parent', '1:ffff', 'classid',
           '1:1', 'htb', 'rate', '3mbit')
        assert words in says(s, r'port 1 \(p1\): another program changed 1 qdiscs or classes')


def test_a_refused_bundle(topo):
    with Switch(topo) as s, s.connect() as conn:
        Bundle(conn).flow(apply_actions(output(2))).flow(apply_actions(of13.group(9))).refused(1)
        assert 'OFPBAC_BAD_OUT_GROUP' in says(s, 'the bundle failed')
        wrong = Bundle(conn).qos(q.htb_class(q.ADD, 1, 5, MBIT))
        wrong.qos(q.htb_class(q.ADD, 1, 5, MBIT)).refused(1)
        assert 'class 5' in says(s, 'the bundle failed', 2)


def test_a_start_that_fails_leaves_no_pidfile(tmp_path):
    """Else `kill $(cat FILE)` ends whoever has that number then."""
    pidfile = tmp_path / 'pid'
    done = subprocess.run([binary('datapath/ofdatapath'), '-i', 'nowhere0', f'--pidfile={pidfile}', f'punix:{tmp_path}/s'],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
                          check=False)
    assert done.returncode == 1 and 'there is no such interface' in done.stderr
    assert not pidfile.exists()
