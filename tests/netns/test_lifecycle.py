# SPDX-License-Identifier: Apache-2.0
"""Starting, ending, connecting: what ofdatapath leaves alone and what it says when it cannot."""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest

from support import of13, qosmsg as q, tc
from support.of13 import apply_actions, output
from support.topo import Switch, Topology, binary, inside, sh, udp_frame
from support.wait import until

MBIT = 1_000_000


def start_and_fail(topo, *args, timeout=60):
    """Run ofdatapath, which must refuse; -> what it said"""
    done = subprocess.run(['ip', 'netns', 'exec', topo.switch_ns, binary('datapath/ofdatapath'),
                           *args], text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=timeout)
    assert done.returncode not in (0, 99) and done.returncode > 0, done
    assert 'Sanitizer' not in done.stderr, done.stderr
    assert done.stderr.strip(), 'it ended without a word'
    return done.stderr


def network(topo):
    """Everything about the switch's interfaces but counters"""
    ns = topo.switch_ns
    links = re.sub(r'qdisc \S+ |qlen \d+|numtxqueues.*|promiscuity \d+ *|allmulti \d+ *|PROMISC,?',
                   '', sh('ip', '-n', ns, '-d', 'link', 'show'))
    return links, sh('ip', '-n', ns, 'address', 'show'), sh('ip', '-n', ns, 'route', 'show'), \
        tc.tc(ns, 'qdisc', 'show')


@pytest.mark.parametrize('signum', [signal.SIGTERM, signal.SIGINT])
def test_signal_removes_its_own_and_nothing_else(signum):
    with Topology(3) as topo:
        ns = topo.switch_ns
        sh('ip', '-n', ns, 'link', 'add', 'other', 'type', 'veth', 'peer', 'name', 'other2')
        sh('ip', '-n', ns, 'link', 'set', 'other', 'up')
        sh('ip', '-n', ns, 'address', 'add', '192.0.2.1/24', 'dev', 'other')
        sh('ip', '-n', ns, 'address', 'add', '198.51.100.1/24', 'dev', 'p1')
        tc.tc(ns, *'qdisc add dev other root handle 5: htb default 1'.split())
        tc.tc(ns, *'qdisc add dev p3 root handle 6: htb default 1'.split())
        tc.tc(ns, *'class add dev p3 parent 6: classid 6:1 htb rate 5mbit'.split())
        before = network(topo), tc.read(ns, tc.RTM_GETTCLASS, 'p3')
        switch = Switch(topo)
        switch.start()
        with switch.connect() as conn:
            for port in (1, 2):
                q.send(conn, q.NATIVE, q.htb_class(q.ADD, port, 10, MBIT))
                q.send(conn, q.NATIVE, q.qdisc(q.PFIFO, q.ADD, port, 10, 9))
            conn.flow(apply_actions(output(2)))
            assert tc.root(ns, 'p1') and tc.root(ns, 'p2')
            assert switch.stop(signum) == 0
        switch.check()
        assert not os.path.exists(switch.path), 'the socket was left behind'
        switch.abandon()
        assert (network(topo), tc.read(ns, tc.RTM_GETTCLASS, 'p3')) == before


def test_ends_soon_with_connections_and_traffic(switch, conn, hosts):
    conn.flow(apply_actions(output(2)))
    others = [switch.connect() for _ in range(5)]
    for i in range(1000):
        hosts[1].send(udp_frame(i))
    started = time.monotonic()
    assert switch.stop() == 0
    assert time.monotonic() - started < 10
    for c in others:
        c.close()


BAD_ARGUMENTS = {
    'no interface of that name': (['-i', 'p1,nosuch0', '-d', '1' * 16, 'punix:@'], 'nosuch0'),
    'name too long': (['-i', 'x' * 40, '-d', '1' * 16, 'punix:@'], 'x' * 40),
    'interface twice': (['-i', 'p1,p1', '-d', '1' * 16, 'punix:@'], 'p1'),
    'empty name': (['-i', 'p1,,p2', '-d', '1' * 16, 'punix:@'], ''),
    'dpid too short': (['-i', 'p1', '-d', '123', 'punix:@'], '123'),
    'dpid not hex': (['-i', 'p1', '-d', 'g' * 16, 'punix:@'], 'g' * 16),
    'unknown option': (['--nonsense'], 'nonsense'),
    'unknown connection': (['-i', 'p1', '-d', '1' * 16, 'carrier-pigeon:x'], 'carrier-pigeon'),
    'bad port': (['-i', 'p1', '-d', '1' * 16, 'ptcp:99999'], '99999'),
    'no such directory': (['-i', 'p1', '-d', '1' * 16, 'punix:/nonexistent/dir/s'],
                          '/nonexistent/dir/s'),
}


@pytest.mark.parametrize('name', BAD_ARGUMENTS)
def test_bad_arguments(four_ports, tmp_path, name):
    args, said = BAD_ARGUMENTS[name]
    args = [a.replace('punix:@', f'punix:{tmp_path}/s') for a in args]
    message = start_and_fail(four_ports, *args)
    assert said in message, f'the message does not name {said!r}: {message}'


def test_help_and_version():
    for option in ('--help', '--version'):
        done = subprocess.run([binary('datapath/ofdatapath'), option], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        assert done.returncode == 0 and done.stdout


def test_dpid_of_12_digits(four_ports):
    with Switch(four_ports, dpid='0000deadbeef') as s, s.connect() as c:
        assert c.features()['datapath_id'] == 0xdeadbeef


MACS = ['02:00:00:00:00:01', '00:00:5e:00:53:01', '0a:00:00:00:00:00', '00:00:00:00:00:09',
        'fe:dc:ba:98:76:54']


@pytest.mark.parametrize('address', MACS)
def test_datapath_id_is_the_first_ports_address(topo, address):
    """7.3.1: the lower 48 bits are the switch's MAC address; it is the same after a restart."""
    sh('ip', '-n', topo.switch_ns, 'link', 'set', 'p1', 'address', address)
    for _ in range(2):
        with Switch(topo, '-L', 'tap9', dpid=None) as s, s.connect() as c:
            assert c.features()['datapath_id'] == int(address.replace(':', ''), 16)


@pytest.mark.parametrize('more', [(), ('-L', 'tap9')], ids=['nothing', 'tap'])
def test_datapath_id_without_interfaces(topo, more):
    """A tap's address is another one each time, so that it would not do."""
    with Switch(topo, *more, dpid=None, interfaces=[]) as s, s.connect() as c:
        assert c.features()['datapath_id'] == 1
        assert '-d' in s.output()


def test_a_socket_left_by_a_crash_is_reused(four_ports):
    switch = Switch(four_ports)
    switch.start()
    switch.process.kill()
    switch.process.wait()
    assert os.path.exists(switch.path)
    switch.start()
    with switch.connect() as c:
        c.barrier()
    assert switch.stop() == 0
    switch.abandon()


def test_listens_on_tcp(four_ports):
    with Switch(four_ports, 'ptcp:16653:127.0.0.1'), inside(four_ports.switch_ns):
        with of13.Conn('tcp:127.0.0.1:16653') as c:
            assert c.features()['datapath_id'] == 1


def test_default_port_is_6653(four_ports):
    with Switch(four_ports, 'ptcp:'), inside(four_ports.switch_ns):
        with of13.Conn('tcp:127.0.0.1:6653') as c:
            c.barrier()


@pytest.mark.long
@pytest.mark.parametrize('kind', ['tcp', 'unix'])
def test_connects_and_reconnects(four_ports, tmp_path, kind):
    address = 'tcp:127.0.0.1:17653' if kind == 'tcp' else f'unix:{tmp_path}/c'
    with Switch(four_ports, address) as switch:
        time.sleep(0.5)                                    # nobody listens yet: it must try again
        with inside(four_ports.switch_ns):
            for _ in range(3):
                with of13.Listener(address) as listener:
                    with listener.accept(15) as c:
                        assert c.features()['datapath_id'] == 1
                        c.flow(apply_actions(output(2)))
                assert switch.alive()
        # fail secure mode or standalone: either way the flows are still there (6.4)
        with switch.connect() as c:
            assert len(c.flows()) == 1


def test_flows_outlive_their_connection(switch, hosts):
    with switch.connect() as c:
        c.flow(apply_actions(output(2)))
    hosts[1].send(udp_frame(1))
    assert hosts[2].recv() == udp_frame(1)


def test_an_interface_that_goes_away(four_ports):
    with Topology(2) as topo, Switch(topo) as switch, switch.connect() as conn:
        q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 10, MBIT))
        conn.flow(apply_actions(of13.set_queue(10), output(2)))
        sh('ip', '-n', topo.switch_ns, 'link', 'del', 'p2')
        conn.next_async(of13.PORT_STATUS)
        with topo.host(1) as wire:
            for i in range(100):
                wire.send(udp_frame(i))
        conn.barrier()
        with pytest.raises(q.SchedError):
            q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 11, MBIT))
        conn.ports()
        conn.port_stats()
        q.dump(conn)


def test_somebody_removes_the_queues_by_hand(switch, conn, four_ports):
    """tc qdisc del behind the switch's back: later requests must work again."""
    q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 10, MBIT))
    tc.tc(four_ports.switch_ns, 'qdisc', 'del', 'dev', 'p2', 'root')
    time.sleep(0.3)
    for _ in range(2):
        try:
            q.send(conn, q.NATIVE, q.htb_class(q.REPLACE, 2, 10, 2 * MBIT))
        except q.SchedError:
            q.send(conn, q.NATIVE, q.clear(2))
    assert tc.classes(four_ports.switch_ns, 'p2')[10]['options']['rate'] == 2 * MBIT


# --------------------------------------------------------------------------- signals, the log

@pytest.mark.parametrize('signum', [signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE,
                                    signal.SIGALRM])
def test_signals_that_end_nothing(switch, conn, signum):
    switch.process.send_signal(signum)
    time.sleep(0.2)
    assert switch.alive()
    conn.barrier()
    assert ('SIGHUP: ignored' in switch.output()) == (signum == signal.SIGHUP)


def test_sigquit_ends_it_as_sigterm_does():
    with Topology(1) as topo:
        switch = Switch(topo)
        switch.start()
        with switch.connect() as conn:
            q.send(conn, q.NATIVE, q.htb_class(q.ADD, 1, 10, MBIT))
        assert tc.root(topo.switch_ns, 'p1')
        assert switch.stop(signal.SIGQUIT) == 0
        switch.check()
        assert not os.path.exists(switch.path)
        switch.abandon()
        assert not tc.root(topo.switch_ns, 'p1')


@pytest.mark.parametrize('program', ['ofdatapath', 'ofprotocol'])
def test_sighup_opens_the_log_anew(tmp_path, program):
    """As logrotate does it: rename, SIGHUP"""
    log = tmp_path / 'log'
    with Topology(1) as topo, Switch(topo, f'--log-file={log}') as switch:
        process, other = switch.process, None
        if program == 'ofprotocol':
            log = tmp_path / 'other'
            process = other = subprocess.Popen([binary('utils/ofprotocol/ofprotocol'),
                                                f'--log-file={log}', switch.address])
        try:
            until(log.exists, 'a log file')
            log.rename(tmp_path / 'old')
            process.send_signal(signal.SIGHUP)
            until(lambda: log.exists() and log.read_text(), 'a new log file')
            assert ' notice: daemon: SIGHUP: the log goes on here\n' in log.read_text()
        finally:
            if other:
                other.terminate()
                assert other.wait(10) == 0


# --------------------------------------------------------------------------- names of controllers

@pytest.fixture
def names():
    """Names as the switch's namespace knows them (ip netns exec shows /etc/netns): a name server that
    never answers, and a hosts file -> (topology, hosts)"""
    with Topology(1) as topo:
        etc = pathlib.Path('/etc/netns', topo.switch_ns)
        etc.mkdir(parents=True)
        (etc / 'hosts').write_text('127.0.0.1 localhost\n')
        (etc / 'resolv.conf').write_text('nameserver 127.0.0.1\noptions timeout:1 attempts:1\n')
        (etc / 'nsswitch.conf').write_text('hosts: files dns\n')
        sh('ip', '-n', topo.switch_ns, 'link', 'set', 'lo', 'up')
        with inside(topo.switch_ns):
            deaf = socket.socket(type=socket.SOCK_DGRAM)
            deaf.bind(('127.0.0.1', 53))
        try:
            yield topo, etc / 'hosts'
        finally:
            deaf.close()
            shutil.rmtree(etc)


@pytest.mark.long
@pytest.mark.parametrize('program', ['ofdatapath', 'ofprotocol'])
def test_a_name_that_cannot_be_looked_up_yet(names, program):
    """It is looked up again and again, and nobody waits for the name server."""
    topo, hosts = names
    target = 'tcp:controller.example:6653'
    with inside(topo.switch_ns):
        controller = of13.Listener('tcp:127.0.0.1:6653')
    own = [target, '--max-backoff=0.5'] if program == 'ofdatapath' else []
    with controller, Switch(topo, *own) as switch, switch.connect() as conn:
        other = None
        if program == 'ofprotocol':
            other = subprocess.Popen(['ip', 'netns', 'exec', topo.switch_ns,
                                      binary('utils/ofprotocol/ofprotocol'), '--max-backoff=0.5',
                                      switch.address, target], stderr=subprocess.PIPE, text=True)
        try:
            deadline = time.monotonic() + 3
            while time.monotonic() < deadline:
                started = time.monotonic()
                conn.barrier()
                assert time.monotonic() - started < 0.9, 'it waits for the name server'
                time.sleep(0.02)
            hosts.write_text('127.0.0.1 localhost controller.example\n')
            controller.accept(20).close()
        finally:
            if other:
                other.terminate()
                assert other.wait(10) == 0
        said = other.stderr.read() if other else switch.output()
        assert 'the name controller.example can\'t be looked up: ' in said
