# SPDX-License-Identifier: Apache-2.0
"""Clocks that jump, a disk that is full, no more descriptors, no more memory."""
import contextlib
import os
import resource
import struct
import subprocess
import time

import pytest

from support import capture, of13, qosmsg as q, tc
from support.adverse import YEAR
from support.load import slowness
from support.of13 import apply_actions, band_drop, match, meter, output, set_queue
from support.status import status
from support.topo import REPOSITORY, Switch, Topology, binary, inside, sh, udp_frame
from support.wait import until
from test_ports_runtime import port_add

MBIT = 1_000_000


# ------------------------------------------------------------------------------------- clocks

TIMES = '--offload=off', '--inactivity-probe=1', 'ptcp:16653:127.0.0.1'


def removed(conn, timeout=of13.PATIENCE):
    return of13.parse_flow_removed(conn.next_async(of13.FLOW_REMOVED, timeout).body)


def test_the_time_of_day_jumps(four_ports, world):
    """By years, forwards and backwards: nothing that lasts takes longer or shorter."""
    with Switch(four_ports, *TIMES, prefix=world.environment()) as switch, inside(four_ports.switch_ns), \
            of13.Conn('tcp:127.0.0.1:16653') as conn, four_ports.host(1) as a, four_ports.host(2) as b:
        conn.ok(of13.METER_MOD, of13.meter_mod(0, 1, band_drop(1000, 10), flags=1 | 4))
        conn.flow(apply_actions(output(2)), match=match(in_port=1), idle=60, cookie=1)
        conn.flow(meter(1), apply_actions(output(2)), priority=1, cookie=2)
        for jump in 10, -20, 30, -25:
            before = time.monotonic()
            conn.flow(match=match(in_port=3), hard=1, flags=1, cookie=3)
            world.realtime = world.realtime + jump * YEAR
            gone = removed(conn)
            assert gone['cookie'] == 3 and gone['reason'] == 1
            took = time.monotonic() - before
            assert 1 <= took and 1 <= gone['duration_sec'] <= took + 1, gone
            a.send(udp_frame(1))
            assert b.recv() == udp_frame(1)
            told = {f['cookie']: f['duration_sec'] for f in conn.flows()}
            assert sorted(told) == [1, 2] and max(told.values()) < 600, told
            assert conn.meter_stats()[0]['duration_sec'] < 600
            assert conn.port_stats()[1]['duration_sec'] < 600
        assert 'connection lost' not in switch.output()


def test_the_clock_that_measures_jumps(four_ports, world):
    """By an hour, as of a machine that stood still and was woken: what was due is done once, and peers are asked
    whether they are there before they are given up."""
    with Switch(four_ports, *TIMES, prefix=world.environment()) as switch, inside(four_ports.switch_ns), \
            of13.Conn('tcp:127.0.0.1:16653') as conn, four_ports.host(1) as a, four_ports.host(2) as b:
        conn.ok(of13.METER_MOD, of13.meter_mod(0, 1, band_drop(8, 8)))       # kbit/s, kbit: 16 frames of 60 bytes
        conn.flow(apply_actions(output(2)), match=match(in_port=3), idle=1800, flags=1, cookie=1)
        conn.flow(meter(1), apply_actions(output(2)), match=match(in_port=1), cookie=2)
        world.monotonic = 3600
        assert removed(conn)['cookie'] == 1
        conn.barrier()                              # answers the echo request that comes first
        conn.flow(match=match(in_port=4), hard=1, flags=1, cookie=3)
        assert removed(conn)['cookie'] == 3
        assert switch.output().count('connection lost') == 0
        for _ in range(100):
            a.send(udp_frame(1))
        assert 1 <= len(b.drain()) <= 60, 'an hour of tokens is no more than a burst'
        world.monotonic = 3600 + YEAR
        conn.barrier()
        assert [f['cookie'] for f in conn.flows()] == [2]


# --------------------------------------------------------------------------------------- disk

@pytest.fixture
def small(tmp_path):
    """A file system of some pages -> (directory, fill, free)"""
    where = tmp_path / 'small'
    where.mkdir()
    sh('mount', '-t', 'tmpfs', '-o', 'size=256k,mode=755', 'tmpfs', str(where))
    filler = where / 'filler'

    def fill():
        with contextlib.suppress(OSError), open(filler, 'wb', buffering=0) as f:
            while f.write(bytes(4096)):
                pass

    def free():
        filler.unlink()
    try:
        yield where, fill, free
    finally:
        sh('umount', '-l', str(where))


def add_flows(conn, first, count):
    for n in range(first, first + count):
        conn.send(of13.FLOW_MOD, of13.flow_mod(priority=n, cookie=n, instructions=[apply_actions(output(2))]))
    conn.barrier()


@pytest.mark.long
def test_no_room_for_the_state(four_ports, small):
    """What was there stays whole; with room again, it is written."""
    directory, fill, free = small
    file = directory / 'state'
    with Switch(four_ports, f'--state={file}') as s, s.connect() as conn:
        add_flows(conn, 1, 50)
    whole = file.read_bytes()
    assert whole
    with Switch(four_ports, f'--state={file}') as s, s.connect() as conn:
        assert len(conn.flows()) == 50
        add_flows(conn, 100, 1500)
        fill()
        assert s.stop() == 0
        assert s.output().count('the state is not saved: ') == 1 and 'No space left' in s.output()
    assert file.read_bytes() == whole
    assert sorted(os.listdir(directory)) == ['filler', 'state']
    with Switch(four_ports, f'--state={file}') as s, s.connect() as conn:
        assert len(conn.flows()) == 50
        add_flows(conn, 100, 10)
        free()
    with Switch(four_ports, f'--state={file}') as s, s.connect() as conn:
        assert len(conn.flows()) == 60


def test_no_room_for_what_dpctl_saves(conn, switch, small):
    directory, fill, _ = small
    file = directory / 'state'
    add_flows(conn, 1, 20)
    switch.dpctl('save', str(file))
    whole = file.read_bytes()
    add_flows(conn, 100, 1500)
    fill()
    done = switch.dpctl('save', str(file), check=False)
    assert done.returncode == 1 and 'No space left' in done.stderr
    assert file.read_bytes() == whole
    assert sorted(os.listdir(directory)) == ['filler', 'state']


def test_no_room_for_the_log(four_ports, small):
    """The switch goes on; with room again each line is whole, and how many are missing is said."""
    directory, fill, free = small
    log = directory / 'log'
    with Switch(four_ports, f'--log-file={log}') as s, s.connect() as conn:
        until(log.exists, 'a log file')
        with open(log, 'ab') as padding:
            padding.truncate((os.path.getsize(log) // 4096 + 1) * 4096 - 40)     # the next line will be torn
            fill()
            for n in range(4):
                sh('ip', '-n', four_ports.switch_ns, 'link', 'set', 'p4', 'down' if n % 2 == 0 else 'up')
                conn.next_async(of13.PORT_STATUS)
                conn.barrier()
        free()
        sh('ip', '-n', four_ports.switch_ns, 'link', 'set', 'p4', 'down')
        conn.next_async(of13.PORT_STATUS)
        sh('ip', '-n', four_ports.switch_ns, 'link', 'set', 'p4', 'up')
        conn.next_async(of13.PORT_STATUS)
        conn.barrier()
    lines = log.read_text(errors='replace').replace('\0', '').splitlines()
    after = [line for line in lines if 'port 4 (p4): the link is' in line]
    assert after and all(line.startswith('20') and line.count('Z ') == 1 for line in after), lines[-12:]
    assert any('were left out' in line for line in lines), lines[-12:]


def test_no_room_for_a_file_port(four_ports, small):
    """What can't be written is counted as dropped; what is in the file is whole."""
    directory, fill, free = small
    file = directory / 'out'
    with Switch(four_ports, interfaces=['p1', f'pcap::{file}']) as s, s.connect() as conn, \
            four_ports.host(1) as a:
        conn.flow(apply_actions(output(2)), match=match(in_port=1))
        frame = udp_frame(1).ljust(1000, b'x')

        def send(count):
            before = conn.port_stats()[1]['rx_packets']
            for n in range(count):
                a.send(frame)
                if n % 20 == 19:
                    time.sleep(0.005)
            conn.port_stats(until=lambda p: p[1]['rx_packets'] == before + count)
            conn.barrier()
        send(5)
        fill()
        send(40)
        free()
        send(7)
        dropped = q.counters(conn)['drop.tx_error'] + q.counters(conn)['drop.tx_full']
        assert 30 < dropped <= 40
        got = capture.read_pcap(file)
        assert set(got) == {frame} and len(got) == 52 - dropped
        assert conn.port_stats()[2]['tx_dropped'] == dropped


def test_no_room_for_the_pid(four_ports, small):
    directory, fill, free = small
    fill()
    switch = Switch(four_ports, f'--pidfile={directory}/pid', wait=False)
    switch.start()
    assert switch.process.wait(60) == 1 and 'No space left' in switch.output()
    free()
    switch.abandon()
    with Switch(four_ports, f'--pidfile={directory}/pid') as s, s.connect():
        assert int((directory / 'pid').read_text()) == s.process.pid


# -------------------------------------------------------------------------------- descriptors

def descriptors(pid):
    return sorted(int(n) for n in os.listdir(f'/proc/{pid}/fd'))


@contextlib.contextmanager
def no_more(pid):
    """It has as many descriptors as it may have."""
    used = descriptors(pid)
    free = next(n for n in range(len(used) + 1) if n not in used)
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE, (free, resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def busy(pid):
    """Seconds of processor time"""
    with open(f'/proc/{pid}/stat', encoding='ascii') as f:
        fields = f.read().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def waiting_peers(switch, count):
    return [of13.Conn(switch.address, hello=False) for _ in range(count)]


def test_no_more_connections(four_ports):
    """Who is there is served, who waits costs nothing, and is served when it can be."""
    with Switch(four_ports, '--leaf=none') as switch, switch.connect() as conn:
        pid = switch.process.pid
        conn.barrier()
        with no_more(pid):
            waiting = waiting_peers(switch, 5)
            begun, clock = busy(pid), time.monotonic()
            while time.monotonic() < clock + 2:
                conn.barrier()
                q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 10, MBIT))
                q.send(conn, q.NATIVE, q.htb_class(q.DEL, 2, 10))
                time.sleep(0.1)
            assert busy(pid) - begun < 1, 'it spins'
            assert switch.output().count('no more descriptors') == 1, switch.output()
        for peer in waiting:
            peer.send(of13.HELLO, struct.pack('!HHI', 1, 8, 1 << of13.VERSION))
            assert peer.recv().type == of13.HELLO
            peer.barrier()
            peer.close()
        with no_more(pid):
            waiting = waiting_peers(switch, 1)
            until(lambda: switch.output().count('no more descriptors') == 2, 'said again')
            waiting[0].close()
        with switch.connect() as again:
            again.features()


def test_no_more_connections_of_the_relay(four_ports, tmp_path):
    """ofprotocol, too"""
    path = f'{tmp_path}/relay'
    with Switch(four_ports) as switch, subprocess.Popen(
            [binary('utils/ofprotocol/ofprotocol'), f'--listen=punix:{path}', switch.address], stderr=subprocess.PIPE,
            text=True) as relay:
        try:
            until(lambda: any('LISTEN' in line and path in line for line in sh('ss', '-Hlx').splitlines()),
                  'it listens')
            with of13.Conn(f'unix:{path}') as conn:
                conn.features()
                with no_more(relay.pid):
                    peer = of13.Conn(f'unix:{path}', hello=False)
                    begun, clock = busy(relay.pid), time.monotonic()
                    while time.monotonic() < clock + 2:
                        conn.barrier()
                        time.sleep(0.1)
                    assert busy(relay.pid) - begun < 1, 'it spins'
                with peer:
                    peer.send(of13.HELLO, struct.pack('!HHI', 1, 8, 1 << of13.VERSION))
                    assert peer.recv().type == of13.HELLO
        finally:
            relay.terminate()
            assert relay.wait(20) == 0, relay.stderr.read()


def test_no_descriptor_for_a_port_or_a_queue(four_ports):
    """A port is refused whole; packets of a queue are sent or counted, and go by it when they can."""
    with Switch(four_ports, '--offload=off', interfaces=['p1', 'p2']) as switch, switch.connect() as conn, \
            four_ports.host(1) as a, four_ports.host(2) as b:
        q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 10, MBIT))
        conn.flow(apply_actions(set_queue(10), output(2)), match=match(in_port=1))
        with no_more(switch.process.pid):
            with pytest.raises(q.SchedError) as refused:
                port_add(conn, 'p3')
            assert refused.value.code == q.KERNEL and 'open files' in refused.value.text
            assert sorted(conn.ports()) == [1, 2]
            for n in range(5):
                a.send(udp_frame(n))
            heard = b.drain()
            dropped = sum(n for name, n in q.counters(conn).items() if name.startswith('drop.'))
            assert len(heard) + dropped == 5
        a.send(udp_frame(9))
        assert b.recv(wanted=lambda f: f == udp_frame(9))
        assert conn.queue_stats(2, 10)[2, 10]['tx_packets'] >= 1
        port_add(conn, 'p3')
        assert sorted(conn.ports()) == [1, 2, 3]


# ------------------------------------------------------------------------------------- memory

def release():
    build = os.path.join(REPOSITORY, 'build-release')
    return build if os.path.exists(os.path.join(build, 'datapath/ofdatapath')) else None


@pytest.fixture
def plain_build(monkeypatch):
    """A limit of memory is none to a program with sanitizers."""
    if not release():
        pytest.skip('needs build-release: a limit of memory is none to a program with sanitizers')
    monkeypatch.setenv('OFQOS_BUILD', release())


def data_of(pid):
    with open(f'/proc/{pid}/status', encoding='ascii') as f:
        return next(int(line.split()[1]) for line in f if line.startswith('VmData')) * 1024


@pytest.mark.long
def test_no_more_memory(four_ports, plain_build):
    """A controller that fills tables is refused; packets, other requests and other controllers are not."""
    with Switch(four_ports, '--leaf=none', '--max-flows=4000000', '--max-table-flows=4000000') as switch, \
            switch.connect(timeout=60) as conn, switch.connect() as other, \
            four_ports.host(1) as a, four_ports.host(2) as b:
        conn.flow(apply_actions(output(2)), match=match(in_port=1), table_id=0, priority=9)
        pid = switch.process.pid
        resource.prlimit(pid, resource.RLIMIT_DATA, (data_of(pid) + (24 << 20),) * 2)
        refused, n = [], 0
        while not refused and n < 400_000:
            batch = b''.join(of13.message(of13.FLOW_MOD, of13.flow_mod(
                match=match(in_port=n + i, metadata=n + i), table_id=3,
                instructions=[apply_actions(output(2), output(1))]), n + i) for i in range(1000))
            conn.send_raw(batch)
            n += 1000
            conn.barrier()
            refused = [m for m in conn.inbox if m.type == of13.ERROR]
        assert refused, f'{n} flows in 24 MB?'
        codes = {struct.unpack_from('!HH', m.body) for m in refused}
        assert codes <= {(of13.ET_FLOW_MOD_FAILED, of13.FMFC_TABLE_FULL), (of13.ET_FLOW_MOD_FAILED, 0)}, codes
        a.send(udp_frame(1))
        assert b.recv() == udp_frame(1)
        other.barrier()
        conn.ok(of13.FLOW_MOD, of13.flow_mod(command=of13.DELETE, table_id=3))
        assert len(conn.flows()) == 1
        q.send(other, q.NATIVE, q.htb_class(q.ADD, 2, 10, MBIT))
        other.flow(apply_actions(output(1)), match=match(in_port=2))
        b.send(udp_frame(2, dst=1, src=2))
        assert a.recv() == udp_frame(2, dst=1, src=2)


MEMORY = '/sys/fs/cgroup/memory'


@pytest.mark.long
def test_a_control_group_without_memory(four_ports, plain_build):
    """Memory is overcommitted: malloc succeeds, and the kernel kills.  As after any kill -9, the kernel keeps the
    queues, and the next daemon knows them."""
    if not os.path.exists(f'{MEMORY}/memory.limit_in_bytes'):
        pytest.skip('no memory controller of version 1 at /sys/fs/cgroup/memory')
    group = f'{MEMORY}/ofqos-{os.getpid()}'
    os.mkdir(group)
    switch = Switch(four_ports, '--leaf=none', '--max-flows=4000000', '--max-table-flows=4000000')
    try:
        switch.start()
        with switch.connect(timeout=60) as conn:
            q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 10, MBIT))
            with open(f'{group}/cgroup.procs', 'w', encoding='ascii') as f:
                f.write(str(switch.process.pid))
            with open(f'{group}/memory.limit_in_bytes', 'w', encoding='ascii') as f:
                f.write(str(24 << 20))
            n = 0
            with contextlib.suppress(of13.Closed, OSError):
                while switch.alive() and n < 400_000:
                    conn.send_raw(b''.join(of13.message(of13.FLOW_MOD, of13.flow_mod(
                        match=match(in_port=n + i, metadata=n + i), table_id=3), n + i) for i in range(1000)))
                    n += 1000
                    conn.barrier()
        assert switch.process.wait(30) == -9, 'neither refused nor killed'
        assert 10 in tc.classes(four_ports.switch_ns, 'p2')
        with Switch(four_ports, '--leaf=none') as again, again.connect() as conn:
            assert (2, 10) in conn.queue_stats()
            q.send(conn, q.NATIVE, q.htb_class(q.CHANGE, 2, 10, 2 * MBIT))
    finally:
        switch.abandon()
        until(lambda: not open(f'{group}/cgroup.procs', encoding='ascii').read(), 'the group is empty')
        os.rmdir(group)
