# SPDX-License-Identifier: Apache-2.0
"""--fail-to-wire (docs/how-to/fail-to-wire.md): while no switch serves two ports, the kernel forwards between them. What is lost
and doubled when the switch is killed, hangs, ends and comes back; the queues; what a neighbour sees."""
import contextlib
import os
import signal
import subprocess

import pytest

from support import offload, tc
from support.documents import titles_and_commands
from support.of13 import apply_actions, match, output, set_queue
from support.offload import Frames, Numbered, established, frame, number, numbers, sentence
from support.topo import Switch, Topology, Wire, binary, eth, sh, udp_frame
from support.wait import until

OWN = 1_000_000         # numbers of frames from here on
WIRE = '--fail-to-wire=p1:p2'
QUEUES = ('--queue=p2:htb class=10,rate=50mbit,ceil=900mbit', '--leaf=none')


@pytest.fixture(scope='module', autouse=True)
def programs():
    if why := offload.works():
        pytest.skip(why)


@pytest.fixture(name='topo')
def three_hosts():
    with Topology(3) as t:
        yield t


@pytest.fixture(name='wires')
def raw(topo):
    with contextlib.ExitStack() as stack:
        yield {n: stack.enter_context(topo.host(n)) for n in (1, 2, 3)}


class Wired(Switch):
    kernel = True           # it handles packets there (support/offload.py)


def status(switch):
    return dict(line.split('=', 1) for line in switch.dpctl('status').stdout.splitlines())


def wired(switch):
    return offload.counted(switch)['wired']


def forward(switch, *actions):
    with switch.connect() as conn:
        conn.flow(apply_actions(*actions, output(2)), match=match(in_port=1))
        conn.flow(apply_actions(output(1)), match=match(in_port=2))
        conn.barrier()


def kill(switch):
    switch.process.send_signal(signal.SIGKILL)
    switch.process.wait()


def served_again(switch, wire):
    """Frames go by the switch, not by the wire"""
    def asked():
        before = wired(switch)
        for n in range(5):
            wire.send(frame(n))
        return wired(switch) == before
    until(asked, 'the switch serves its ports')


def pass_once(here, there, count):
    """So many frames, apart from those that are still on their way, arrive in order, each once"""
    wanted = [OWN + n for n in range(count)]
    for n in wanted:
        here.send(frame(n))
    got = [number(f) for f in there.drain(0.3) if (number(f) or 0) >= OWN]
    while len(got) < count and (f := there.recv(wanted=lambda f: (number(f) or 0) >= OWN)):
        got.append(number(f))
    assert got == wanted


@contextlib.contextmanager
def handed_over(switch):
    """To a new process, which ends with the block"""
    switch.dpctl('restart')
    assert switch.process.wait(60) == 0
    new = int(status(switch)['pid'])
    try:
        yield
    finally:
        os.kill(new, signal.SIGTERM)
        until(lambda: not os.path.exists(f'/proc/{new}'), 'its end')


def flags(topo, port):
    return sh('ip', '-n', topo.switch_ns, 'link', 'show', 'dev', port).split('<')[1].split('>')[0].split(',')


# ------------------------------------------------------------------------------ who forwards

def test_nothing_is_lost_or_doubled(topo, wires, tmp_path):
    """A stream that the kernel knows goes on while the switch is killed, started, ended, started, handed over.  Its flows are saved
    and restored as subscribers.md says"""
    with Wired(topo, WIRE) as switch:
        forward(switch)
        save, start = (command.replace('/var/lib/ofqos', str(tmp_path)).split() for command in
                       dict(titles_and_commands('docs/how-to/subscribers.md', '#+', tables=False))['While-the-switch-is-down'])
        assert save[:2] == ['dpctl', 'br0']
        assert switch.dpctl(*save[2:]).returncode == 0
        switch.command.append(next(word for word in start if word.startswith('--restore=')))
        established(switch, wires[1])
        with Numbered(topo, 10_000, 1000, quiet=5) as stream:
            for end in (signal.SIGKILL, signal.SIGTERM):
                switch.process.send_signal(end)
                switch.process.wait()
                switch.start()
                until(lambda: offload.hits(switch), 'the kernel handles them')
            with handed_over(switch):
                assert stream.running(), 'the stream was too short'
                assert offload.hits(switch)
        print(sentence(stream.result))
        assert not stream.result['lost'] and not stream.result['damaged'], sentence(stream.result)
        assert not stream.result['duplicated'], sentence(stream.result)


@pytest.mark.parametrize('end', [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_whatever_ends_it(topo, wires, end):
    """No entry is there: the wire itself, both ways, and for a stranger's frames"""
    with Wired(topo, WIRE, '--port-offload=p1:off', '--port-offload=p2:off') as switch:
        switch.process.send_signal(end)
        switch.process.wait()
        for here, there in ((1, 2), (2, 1)):
            pass_once(wires[here], wires[there], 100)
        assert not numbers(wires[3], 0.05), 'the third port is in no wire'
        for port in ('p1', 'p2'):
            assert 'PROMISC' in flags(topo, port), 'a network card hears only what is for itself'
        assert 'PROMISC' not in flags(topo, 'p3')
        switch.start()
        forward(switch)
        served_again(switch, wires[1])


def test_a_switch_that_hangs(topo, wires):
    with Wired(topo, WIRE, '--port-offload=p1:off') as switch:
        forward(switch)
        served_again(switch, wires[1])
        switch.process.send_signal(signal.SIGSTOP)
        try:
            wires[2].drain(0.05)

            def arrives():
                wires[1].send(frame(7))
                return numbers(wires[2], 0.05)
            until(arrives, 'the wire takes over')
        finally:
            switch.process.send_signal(signal.SIGCONT)
        until(lambda: 'the switch stood still for' in switch.output(), 'the log says so')
        served_again(switch, wires[1])


def test_it_does_not_drop_while_it_starts(topo, wires):
    """Rules that the switch lacks at its start drop all: until it is ready, the wire forwards"""
    with Wired(topo, WIRE, '--port-offload=p1:off') as switch:
        kill(switch)
        with Frames(wires[1]):
            switch.start()
            until(lambda: wired(switch), 'frames went by the wire')
            served_again(switch, wires[1])
            wires[2].drain(0.05)
        assert not numbers(wires[2], 0.05), 'no flow forwards them'


def test_without_it_the_next_switch_takes_the_wire_away(topo, wires):
    with Wired(topo, WIRE) as switch:
        kill(switch)
        switch.command.remove(WIRE)
        switch.start()
        kill(switch)
        wires[2].drain(0.05)
        wires[1].send(frame(1))
        assert not numbers(wires[2], 0.3)
        switch.start()
    assert not offload.attached(topo.switch_ns, 'p1')


# ------------------------------------------------------------------------------ ports come and go

def test_a_port_that_is_removed(topo, wires):
    with Wired(topo, WIRE, '--port-offload=p1:off') as switch:
        assert status(switch)['port.1.fail-to-wire'] == 'p2'
        assert status(switch)['port.2.fail-to-wire'] == 'p1'
        assert 'port.3.fail-to-wire' not in status(switch)
        switch.dpctl('port-del', '2')
        assert 'PROMISC' not in flags(topo, 'p2')
        kill(switch)
        wires[2].drain(0.05)
        wires[1].send(frame(1))
        assert not numbers(wires[2], 0.3), 'p2 was no port any more'
        switch.start()


def test_an_interface_that_comes_again(topo, wires):
    ns = topo.switch_ns
    with Wired(topo, WIRE, '--port-offload=p1:off') as switch:
        sh('ip', '-n', ns, 'link', 'del', 'p3')
        sh('ip', '-n', ns, 'link', 'set', 'p2', 'name', 'gone')
        sh('ip', '-n', ns, 'link', 'del', 'gone')
        until(lambda: 'p2' not in topo_interfaces(topo), 'it is gone')
        sh('ip', '-n', ns, 'link', 'add', 'p2', 'type', 'veth', 'peer', 'name', 'there')
        for name in ('p2', 'there'):
            sh('ip', '-n', ns, 'link', 'set', name, 'up')
        until(lambda: 'PROMISC' in flags(topo, 'p2'), 'the port has it again')
        kill(switch)
        with Wire(topo.switch_ns, 'there') as there:
            pass_once(wires[1], there, 10)
        switch.command = [o.replace('p1,p2,p3', 'p1,p2') for o in switch.command]
        switch.start()


def topo_interfaces(topo):
    return sh('ip', '-n', topo.switch_ns, '-o', 'link')


# ------------------------------------------------------------------------------ queues

def packets_of(topo, minor):
    rows = tc.read(topo.switch_ns, tc.RTM_GETTCLASS, 'p2')
    return next(row['packets'] for row in rows if row['handle'] & 0xffff == minor)


@pytest.mark.parametrize('end', [signal.SIGKILL, signal.SIGTERM])
def test_queues_stay(topo, wires, end):
    """A kind of packets that the kernel knew goes by its queue, others by the port's default class"""
    with Wired(topo, WIRE, *QUEUES) as switch:
        forward(switch, set_queue(10))
        established(switch, wires[1])
        switch.process.send_signal(end)
        switch.process.wait()
        before = packets_of(topo, 10)
        pass_once(wires[1], wires[2], 50)
        assert packets_of(topo, 10) == before + 50
        strange = eth(b'\1' * 60, ethertype=60)        # a length: 802.3, which no entry is for
        wires[1].send(strange)
        assert wires[2].recv(wanted=lambda f: f == strange)
        assert packets_of(topo, 10) == before + 50
        switch.start()
        assert 'class 10 rate 50mbit' in switch.dpctl('qos-show', 'port=2').stdout


def test_unshaped_goes_past_the_queues(topo, wires):
    with Wired(topo, WIRE + ':unshaped', *QUEUES) as switch:
        assert status(switch)['port.1.fail-to-wire'] == 'p2:unshaped'
        forward(switch, set_queue(10))
        established(switch, wires[1])
        kill(switch)
        before = {row['handle']: row['packets'] for row in tc.read(topo.switch_ns, tc.RTM_GETTCLASS, 'p2')}
        pass_once(wires[1], wires[2], 50)
        assert before == {row['handle']: row['packets'] for row in tc.read(topo.switch_ns, tc.RTM_GETTCLASS, 'p2')}
        switch.start()
        assert switch.stop() == 0
        assert 'htb' not in tc.tc(topo.switch_ns, 'qdisc', 'show', 'dev', 'p2')
        wires[1].send(frame(3))
        assert numbers(wires[2], least=1) == [3]
        switch.start()


# ------------------------------------------------------------------------------ what a neighbour sees

def group(last, ethertype, payload):
    return bytes((1, 0x80, 0xc2, 0, 0, last, 2, 0, 0, 0, 0, 1)) + ethertype.to_bytes(2, 'big') + payload.ljust(60, b'\0')


def bpdu():
    llc = b'\x42\x42\x03' + bytes(4) + bytes(31)
    return bytes((1, 0x80, 0xc2, 0, 0, 0, 2, 0, 0, 0, 0, 1)) + len(llc).to_bytes(2, 'big') + llc.ljust(46, b'\0')


NEIGHBOURS = {'STP': bpdu(), 'LLDP': group(0x0e, 0x88cc, b'\x02\x07\x04\2\0\0\0\0\1'), 'LACP': group(2, 0x8809, b'\1\1'),
              'EAPOL': group(3, 0x888e, b'\1\1'),
              'OSPF': bytes.fromhex('01005e000005') + udp_frame(1)[6:],
              'PPPoE': eth(bytes.fromhex('110000070016') + b'\0\x21' + b'\x45' + bytes(40), ethertype=0x8864),
              'MPLS': eth(bytes.fromhex('00010140') + b'\x45' + bytes(60), ethertype=0x8847),
              'QinQ': eth(bytes.fromhex('00648100000a0800') + b'\x45' + bytes(60), ethertype=0x88a8)}


def test_what_a_neighbour_sees(topo, wires):
    """The same whether the switch forwards from port to port or the wire does: all frames, unchanged, once"""
    with Wired(topo, WIRE) as switch:
        forward(switch)

        def all_pass(by):
            for here, there in ((1, 2), (2, 1)):
                wires[there].drain(0.05)
                for name, sent in NEIGHBOURS.items():
                    wires[here].send(sent)
                    assert wires[there].recv(wanted=lambda f, sent=sent: f == sent), f'{name} by {by}'
                assert not [f for f in wires[there].drain(0.1) if f in NEIGHBOURS.values()], f'doubled by {by}'
        all_pass('the switch')
        kill(switch)
        all_pass('the wire')
        sh('ip', '-n', topo.host_ns(1), 'link', 'set', 'e0', 'down')     # the cable to host 1 is pulled
        assert 'LOWER_UP' not in flags(topo, 'p1')
        assert 'LOWER_UP' in flags(topo, 'p2'), 'as host 2 sees it'
        sh('ip', '-n', topo.host_ns(1), 'link', 'set', 'e0', 'up')
        switch.start()


# ------------------------------------------------------------------------------ wrong options

WRONG = {'--fail-to-wire=p1': 'must be two ports, such as eth1:eth2',
         '--fail-to-wire=p1:p2:fast': 'must be two ports, such as eth1:eth2 or eth1:eth2:unshaped',
         '--fail-to-wire=p1:p1': 'not one with itself',
         '--fail-to-wire=p1:q2': 'there is no port q2; did you mean p2',
         '--fail-to-wire=p1:p2 --fail-to-wire=p2:p3': 'joins p2 with p1 already',
         '--fail-to-wire=p1:p2 --offload=off': 'needs offload=auto',
         '--fail-to-wire=p1:p2 --io=pcap': 'needs io=packet'}


@pytest.mark.parametrize('options', WRONG)
def test_wrong_options(topo, options):
    done = subprocess.run(['ip', 'netns', 'exec', topo.switch_ns, binary('datapath/ofdatapath'), '-i', 'p1,p2,p3',
                           f'punix:/tmp/ofqos-wire-{os.getpid()}', *options.split()], text=True, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    assert done.returncode == 1 and WRONG[options] in done.stdout, done.stdout


@pytest.mark.parametrize(('key', 'said'), {
    'fail-to-wire = p1:p2': "fail-to-wire must be the other port, such as eth2 or eth2:unshaped, not 'p1:p2'",
    'fail-to-wire = p1': "fail-to-wire joins two ports, not one with itself, as 'p1' says",
    'inside = p1:pppoe': "inside must be pppoe, mpls or pppoe:mpls, not 'p1:pppoe'"}.items())
def test_wrong_lines_of_the_file(topo, tmp_path, key, said):
    """They name what stands there, without the section's port"""
    conf = tmp_path / 's.conf'
    conf.write_text(f'interfaces = p1,p2\n[port p1]\n{key}\n', encoding='utf-8')
    done = subprocess.run(['ip', 'netns', 'exec', topo.switch_ns, binary('datapath/ofdatapath'), f'--check={conf}'], text=True,
                          check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    assert (done.returncode, done.stdout) == (1, f'{conf}:3: {said}\n')


def test_in_the_file(topo, wires, tmp_path):
    conf = tmp_path / 's.conf'
    conf.write_text('interfaces = p1,p2\n[port p1]\nfail-to-wire = p2:unshaped\n', encoding='utf-8')
    with Wired(topo, f'--config={conf}', interfaces=[]) as switch:
        assert status(switch)['port.2.fail-to-wire'] == 'p1:unshaped'
        conf.write_text('interfaces = p1,p2\n', encoding='utf-8')
        switch.dpctl('reload')
        assert 'fail-to-wire has changed, and needs a restart' in switch.output()
        forward(switch)
        established(switch, wires[1])
        with handed_over(switch):
            assert 'port.2.fail-to-wire' not in status(switch)
    assert not offload.attached(topo.switch_ns, 'p1')
