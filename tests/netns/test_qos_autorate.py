# SPDX-License-Identifier: Apache-2.0
"""dpctl qos-autorate: a class's rate follows the delay to a reflector.  What is waited for comes by
itself; how fast it comes is the control law's, whose tests are unit tests."""
import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import threading

import pytest

from support import qosmsg as q, tc
from support.load import Cbr
from support.qostree import MBIT, ask, killed, running
from support.reflector import DNS, Reflector
from support.topo import Switch, Topology, binary, eth, inside, udp4
from support.wait import until

LOAD = eth(udp4(bytes(958), dport=9))
PROBES = 10                     # their queue: this kernel may have no fq_codel that lets them pass
BOUNDS = 'min=2mbit,base=3mbit,max=8mbit,safe=2500kbit,limit=40ms,interval=50ms'


@pytest.fixture(name='topo')
def two_hosts():
    with Topology(2, ip=True) as t:
        yield t


class Autorate:
    """The program in host 1, and the events that it tells"""

    def __init__(self, topo, address, *words):
        self.process = subprocess.Popen(
            ['ip', 'netns', 'exec', topo.host_ns(1), binary('utils/dpctl/dpctl'), '--json',
             '--timeout=5', address, 'qos-autorate', *words], text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            # as where nobody ignores it: under nohup, dpctl does as well
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
        self.lines, self.errors = [], ''
        self.readers = [threading.Thread(target=read) for read in (self.read, self.read_errors)]
        for reader in self.readers:
            reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(json.loads(line))

    def read_errors(self):
        self.errors = self.process.stderr.read()

    def told(self, event):
        return [line for line in list(self.lines) if line['event'] == event]

    def end(self, signum=signal.SIGINT):
        """-> its exit status"""
        if self.process.poll() is None and signum:
            self.process.send_signal(signum)
        status = self.process.wait(60)
        for reader in self.readers:
            reader.join(60)
        assert 'Sanitizer' not in self.errors and 'runtime error' not in self.errors, self.errors
        return status

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
        self.process.stdout.close()
        self.process.stderr.close()


def forward(switch):
    switch.dpctl('flow-mod', 'cmd=add,table=0,prio=1', 'apply:output=normal')


def set_up(switch, conn):
    forward(switch)
    switch.dpctl('flow-mod', 'cmd=add,table=0,prio=9', 'eth_type=0x800,ip_proto=17,udp_dst=7',
                 f'apply:queue={PROBES},output=normal')
    ask(conn, q.htb_class(q.ADD, 2, PROBES, MBIT // 2))


def rates(topo, queue=0xffff):
    options = tc.classes(topo.switch_ns, 'p2')[queue]['options']
    assert options['rate'] == options['ceil']
    return options['rate']


@contextlib.contextmanager
def at_work(topo, *options):
    with running(topo, *options) as (switch, conn), Reflector(topo, 2) as reflector:
        set_up(switch, conn)
        with Autorate(topo, switch.address, f'port=2,{BOUNDS},reflector=udp:10.0.0.2:7') as it:
            until(lambda: rates(topo) == 3 * MBIT, 'the base')
            yield switch, reflector, it


def test_falls_with_the_delay_rises_under_load_and_ends_safely(topo):
    with at_work(topo) as (_, reflector, it):
        until(lambda: it.told('look') and it.told('look')[-1]['answering'] == 1, 'a line')
        reflector.delay = 0.2
        until(lambda: rates(topo) == 2 * MBIT, 'the least rate')
        reflector.delay = 0.0
        until(lambda: rates(topo) == 3 * MBIT, 'idle: back at the base')
        with Cbr(topo, 1, (LOAD, 1500), seconds=60):                  # 12 Mbit/s
            until(lambda: rates(topo) == 8 * MBIT, 'loaded: the highest rate')
        assert it.end() == 0, it.errors
        assert rates(topo) == 2_500_000
        last = it.lines[-1]
        assert (last['event'], last['rate_bps']) == ('end', 2_500_000)
        line = it.told('look')[-1]
        assert (line['port_no'], line['class_id'], line['reflectors']) == (2, 0, 1)
        assert {'sent_bps', 'delay_us', 'baseline_us', 'changes', 'state'} <= set(line)
        assert all(2 * MBIT <= each['rate_bps'] <= 8 * MBIT for each in it.lines)


@pytest.mark.long
@pytest.mark.parametrize('signum', [signal.SIGTERM, signal.SIGHUP])
def test_silence_and_other_signals_leave_the_safe_rate(topo, signum):
    with at_work(topo) as (_, reflector, it):
        until(lambda: it.told('look'), 'a line')
        reflector.delay = None
        until(lambda: it.told('silent'), 'silence is told')
        assert rates(topo) == 2_500_000
        reflector.delay = 0.0
        until(lambda: it.told('answers'), 'answers are told')
        assert it.end(signum) == 0
        assert rates(topo) == 2_500_000


def test_a_reader_that_goes_away_leaves_the_safe_rate(topo):
    with running(topo) as (switch, conn):
        set_up(switch, conn)
        read, write = os.pipe()
        process = subprocess.Popen(
            [binary('utils/dpctl/dpctl'), switch.address, 'qos-autorate',
             f'port=2,{BOUNDS},reflector=udp:127.0.0.1:7'], stdout=write, stderr=subprocess.PIPE,
            text=True)
        os.close(write)
        os.close(read)
        assert 'Broken pipe' in process.communicate(timeout=60)[1]
        assert process.returncode == 1
        assert rates(topo) == 2_500_000


def test_a_switch_that_goes_away_is_found_again(topo):
    with Switch(topo) as switch, Reflector(topo, 2):
        with switch.connect() as conn:
            set_up(switch, conn)
        with Autorate(topo, switch.address, f'port=2,{BOUNDS},reflector=udp:10.0.0.2:7') as it:
            until(lambda: rates(topo) == 3 * MBIT, 'the base')
            killed(switch)
            until(lambda: it.told('lost'), 'it says that the switch is gone')
            switch.log.close()
            switch.start()
            until(lambda: it.told('found'), 'and that it is there again')
            assert it.end() == 0
        assert rates(topo) == 2_500_000
        forward(switch)
        with Autorate(topo, switch.address, f'port=2,{BOUNDS},reflector=udp:10.0.0.2:7') as it:
            until(lambda: rates(topo) == 3 * MBIT, 'the base')
            killed(switch)
            until(lambda: it.told('lost'), 'it says that the switch is gone')
            assert it.end() == 1
            assert 'keeps the rate it had' in it.errors
        assert rates(topo) == 3 * MBIT
        switch.log.close()
        switch.start()


def test_of_a_queue_only_the_rates_change(topo):
    with running(topo) as (switch, conn):
        switch.dpctl('qos-htb', 'cmd=add,port=2,class=5,rate=9mbit,ceil=12mbit,prio=3,overhead=10')
        before = tc.classes(topo.switch_ns, 'p2')[5]['options']
        words = f'port=2,class=5,{BOUNDS},reflector=udp:127.0.0.1:7,count=1'
        switch.dpctl('qos-autorate', words)
        after = tc.classes(topo.switch_ns, 'p2')[5]['options']
        assert rates(topo, 5) == 2_500_000
        assert (after['prio'], after['overhead']) == (before['prio'], before['overhead']) == (3, 10)
        # TBF at the root of another port; a root class that isn't there is made.
        switch.dpctl('qos-tbf', 'cmd=add,port=1,rate=9mbit,latency=50ms')
        switch.dpctl('qos-autorate', words.replace('port=2,class=5', 'port=1'))
        assert tc.root(topo.switch_ns, 'p1')['options']['rate'] == 2_500_000
        switch.dpctl('qos-clear', '2')
        switch.dpctl('qos-autorate', words.replace('class=5', 'class=0'))
        assert rates(topo) == 2_500_000
        # A class that is deleted meanwhile: the end.
        switch.dpctl('qos-htb', 'cmd=add,port=2,class=5,rate=9mbit')
        with Autorate(topo, switch.address, words.replace(',count=1', '')) as it:
            until(lambda: it.told('silent'), 'silence is told')
            switch.dpctl('qos-htb', 'cmd=del,port=2,class=5')
            assert it.end(None) == 1
            assert 'class' in it.errors


def test_of_what_enters(topo):
    with running(topo) as (switch, _):
        switch.dpctl('qos-autorate', f'port=2,direction=in,{BOUNDS},reflector=udp:127.0.0.1:7,count=1')
        entry, = [e for e in json.loads(switch.dpctl('--json', 'qos-show').stdout)['qos']
                  if (e['object'], e['class_id'], e['direction']) == ('class', 0, 'in')]
        assert entry['config']['rate'] == 2_500_000
        assert not tc.root(topo.switch_ns, 'p2')


@pytest.mark.testkernel
def test_of_cake_only_the_bandwidth_changes(topo, need):
    need('cake')
    with running(topo) as (switch, _):
        switch.dpctl('qos-cake', 'cmd=add,port=2,bandwidth=9mbit,overhead=18,flow_mode=dual-dsthost')
        before = tc.root(topo.switch_ns, 'p2')['options']
        switch.dpctl('qos-autorate', f'port=2,{BOUNDS},reflector=127.0.0.1,count=1')
        after = tc.root(topo.switch_ns, 'p2')['options']
        assert (before.pop('rate'), after.pop('rate')) == (9 * MBIT, 2_500_000)
        assert after == before


def test_refusals_say_what_would_be_right(topo):
    with running(topo) as (switch, _):
        def refused(words):
            done = switch.dpctl('qos-autorate', words, check=False)
            assert done.returncode
            return done.stderr
        good = 'port=2,min=2mbit,max=8mbit,reflector=127.0.0.1'
        assert 'write port=1' in refused('min=2mbit,max=8mbit,reflector=127.0.0.1')
        assert 'min=5mbit,max=80mbit' in refused('port=2,reflector=127.0.0.1')
        assert 'reflector=ADDRESS' in refused('port=2,min=2mbit,max=8mbit')
        assert 'a reflector=, too' in refused('port=2,min=2mbit,max=8mbit,passive=yes,direction=in')
        assert 'min is above max' in refused('port=2,min=9mbit,max=8mbit,reflector=127.0.0.1')
        assert 'safe is above max' in refused(good + ',safe=9mbit')
        assert 'write a unit' in refused('port=2,min=5,max=8mbit,reflector=127.0.0.1')
        assert 'udp:10.0.0.1:7' in refused(good + ',www.example.org')
        assert 'udp:10.0.0.1:7' in refused('port=2,reflector=udp:10.0.0.1')
        assert 'at most 8 reflectors' in refused(good + ',127.0.0.2' * 8)
        assert '50ms to 2s' in refused(good + ',interval=1ms')
        assert 'limit must be 1ms to 5s' in refused(good + ',limit=1us')
        assert 'out or in' in refused(good + ',direction=up')
        assert "unknown word 'colour=red'" in refused(good + ',colour=red')
        assert 'make it first' in refused(good + ',class=7')
        assert not tc.root(topo.switch_ns, 'p2') or 'htb' != tc.root(topo.switch_ns, 'p2')['kind']


def test_passively_where_the_switch_measures_nothing(topo):
    """A reflector would do; without one it says why at once, and leaves the port as it is"""
    with running(topo, '--latency=off') as (switch, _):
        done = switch.dpctl('qos-autorate', 'port=2,min=2mbit,max=8mbit,passive=yes,count=1', check=False)
        assert done.returncode == 1 and 'was started with --latency=off' in done.stderr
        assert not tc.root(topo.switch_ns, 'p2') or 'htb' != tc.root(topo.switch_ns, 'p2')['kind']
        switch.dpctl('qos-autorate', 'port=2,min=2mbit,max=8mbit,passive=yes,reflector=127.0.0.1,count=1')


class Questions(threading.Thread):
    """Host 1 asks host 2's name server"""

    def __init__(self, topo):
        super().__init__(daemon=True)
        self.over = threading.Event()
        with inside(topo.host_ns(1)):
            self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def run(self):
        number = 0
        while not self.over.wait(0.02):
            number += 1
            self.socket.sendto(struct.pack('!6H', number & 0xffff, 0x100, 1, 0, 0, 0), ('10.0.0.2', DNS))

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join(10)
        self.socket.close()


def test_passively_by_round_trips_of_what_passes(topo):
    with running(topo) as (switch, conn), Reflector(topo, 2, DNS) as server, Questions(topo):
        forward(switch)
        switch.dpctl('flow-mod', 'cmd=add,table=0,prio=9', f'eth_type=0x800,ip_proto=17,udp_dst={DNS}',
                     f'apply:queue={PROBES},output=normal')
        ask(conn, q.htb_class(q.ADD, 2, PROBES, MBIT // 2))
        with Autorate(topo, switch.address, f'port=2,{BOUNDS},passive=yes') as it:
            until(lambda: any(line.get('pairs') == 1 for line in it.told('look')), 'a pair')
            server.delay = 0.2
            until(lambda: rates(topo) == 2 * MBIT, 'the least rate')
            server.delay = 0.0
            until(lambda: rates(topo) == 3 * MBIT, 'idle: back at the base')
            with Cbr(topo, 1, (LOAD, 1500), seconds=60):
                until(lambda: rates(topo) == 8 * MBIT, 'loaded: the highest rate')
                server.delay = None
                until(lambda: it.told('silent'), 'nothing to measure')
                until(lambda: rates(topo) == 2_500_000, 'the safe rate')
                server.delay = 0.0
                until(lambda: it.told('answers'), 'there are round trips again')
            assert it.end() == 0, it.errors
