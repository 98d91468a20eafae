# SPDX-License-Identifier: Apache-2.0
"""NORMAL as other switches have it: access ports, trunks and native VLANs (docs/how-to/vlans.md), and the
addresses 01:80:c2:00:00:01 to 0f, which a bridge keeps to itself."""
import json
import re
import subprocess

import pytest

from support import of13, offload, qosmsg
from support.offload import hits
from support.of13 import apply_actions, match, output
from support.topo import Switch, eth, binary, sh, udp4
from support.wait import until

WAYS = ['off', 'auto']
# 1 and 2: access ports of VLAN 10; 3: a trunk of 10 and 20; 4: VLAN 20 without tags, 10 with them
PORTS = ['--port=p1,vlan=10', '--port=p2,vlan=10', '--port=p3:3,trunk=10:20', '--port=p4,vlan=20,trunk=10']
EVERYBODY = 'ff:ff:ff:ff:ff:ff'


@pytest.fixture(params=WAYS)
def how(request):
    if request.param == 'auto' and (why := offload.works()):
        pytest.skip(why)
    return request.param


@pytest.fixture
def vlans(four_ports, how):
    with Switch(four_ports, '--fail=open', *PORTS, *offload.options(how), interfaces=[]) as s:
        s.kernel = how == 'auto'
        yield s


def mac_bytes(text):
    return bytes(int(b, 16) for b in text.split(':'))


def frame(src, dst, vlan=None, n=1):
    """From host src, IPv4 and UDP; dst: a host's number or an address"""
    to = mac_bytes(dst) if isinstance(dst, str) else bytes((2, 0, 0, 0, 0, dst))
    return to + eth(udp4(n.to_bytes(4, 'big').ljust(40, b'\0')), src=src, vlan=vlan)[6:]


def got(wires, sent, timeout=0.3):
    """{host: VLAN of its tag, or None} of the hosts that the frame reached: its UDP payload tells"""
    found = {}
    for host, wire in wires.items():
        for f in wire.drain(timeout if not found else 0.05):
            if f[-48:] == sent[-48:]:
                assert host not in found, 'twice'
                found[host] = int.from_bytes(f[14:16], 'big') & 0xfff if f[12:14] == b'\x81\0' else None
    return found


# {what: (from host, its frame's tag, {host: the tag that it gets})} of a broadcast
BROADCASTS = {
    'access': (1, None, {2: None, 3: 10, 4: 10}),
    'trunk, VLAN 10': (3, 10, {1: None, 2: None, 4: 10}),
    'trunk, VLAN 20': (3, 20, {4: None}),
    'native': (4, None, {3: 20}),
    'tagged beside a native VLAN': (4, 10, {1: None, 2: None, 3: 10}),
    'a tag at an access port': (1, 10, {}),
    'no tag at a trunk': (3, None, {}),
    'another VLAN at a trunk': (3, 30, {}),
    'the native VLAN with a tag': (4, 20, {}),
    'a priority tag': (1, 0, {2: None, 3: 10, 4: 10}),
}


@pytest.mark.parametrize('what', BROADCASTS)
def test_floods_keep_to_their_vlan(vlans, wires, what):
    src, tag, wanted = BROADCASTS[what]
    with vlans.connect() as conn:
        before = qosmsg.counters(conn)['drop.vlan']
        sent = frame(src, EVERYBODY, tag)
        wires[src].send(sent)
        assert got(wires, sent) == wanted
        assert qosmsg.counters(conn)['drop.vlan'] - before == (not wanted)
        for n in range(200):        # so that there is an entry, if there ever is
            wires[src].send(frame(src, EVERYBODY, tag, n))
        for wire in wires.values():
            wire.drain(0.1)
        last = frame(src, EVERYBODY, tag, 1000)
        wires[src].send(last)
        assert got(wires, last) == wanted


# The tag of VLAN 10's frames at each host
TAGS = {1: None, 2: None, 3: 10, 4: 10}


def established(switch, wire, make):
    """Until the kernel handles such frames"""
    before = hits(switch)

    def handles():
        for n in range(20):
            wire.send(make(n))
        return not switch.kernel or hits(switch) > before
    until(handles, 'the kernel handles none')


@pytest.mark.parametrize('src,dst', [(1, 2), (1, 3), (3, 1), (3, 4), (4, 2)])
def test_stations_in_a_vlan(vlans, wires, src, dst):
    """Known unicast, with the tag that the output's port wants, in the kernel too"""
    for n in src, dst:
        wires[n].send(frame(n, EVERYBODY, TAGS[n]))
    for wire in wires.values():
        wire.drain(0.1)
    established(vlans, wires[src], lambda n: frame(src, dst, TAGS[src], n))
    for wire in wires.values():
        wire.drain(0.1)
    sent = frame(src, dst, TAGS[src], 1000)
    wires[src].send(sent)
    assert got(wires, sent) == {dst: TAGS[dst]}


def test_a_station_is_one_of_its_vlan(vlans, wires):
    """The same address in two VLANs are two stations."""
    wires[4].send(frame(9, EVERYBODY, None))        # VLAN 20 at port 4
    wires[2].send(frame(9, EVERYBODY, None))        # VLAN 10 at port 2
    for wire in wires.values():
        wire.drain(0.1)
    for tag, wanted in (10, {2: None}), (20, {4: None}):
        sent = frame(3, 9, tag, tag)
        wires[3].send(sent)
        assert got(wires, sent) == wanted


def test_flows_that_flood_know_no_vlans(vlans, wires):
    """As with Open vSwitch, VLANs are NORMAL's."""
    with vlans.connect() as conn:
        conn.flow(apply_actions(output(of13.P_FLOOD)), match=match(in_port=1))
        sent = frame(1, EVERYBODY)
        wires[1].send(sent)
        assert got(wires, sent) == {2: None, 3: None, 4: None}


# ------------------------------------------------------------------------------ where they are set

def words(switch):
    return dict(line.split('=', 1) for line in switch.dpctl('status').stdout.splitlines()
                if re.match(r'port\.\d', line))


def test_in_a_file_and_at_run_time(four_ports, wires, tmp_path):
    conf = tmp_path / 'br0.conf'
    conf.write_text('interfaces = p1,p2\nfail = open\n[port p1]\nvlan = 10\n[port p2]\nvlan = 10\n')
    with Switch(four_ports, f'--config={conf}', interfaces=[]) as s:
        assert words(s) == {'port.1.vlan': '10', 'port.2.vlan': '10'}
        s.dpctl('port-add', 'p3', 'trunk=10:20-29', 'vlan=7')
        assert words(s)['port.3.trunk'] == '10:20-29' and words(s)['port.3.vlan'] == '7'
        sent = frame(1, EVERYBODY)
        wires[1].send(sent)
        assert got(wires, sent) == {2: None, 3: 10}
        conf.write_text('interfaces = p1,p2\nfail = open\n[port p1]\nvlan = 10\n[port p2]\nvlan = 11\n')
        s.dpctl('reload')
        sent = frame(1, EVERYBODY, None, 2)
        wires[1].send(sent)
        assert got(wires, sent) == {3: 10}
        s.dpctl('port-del', 'p3')
        s.dpctl('port-add', 'p3')
        assert words(s) == {'port.1.vlan': '10', 'port.2.vlan': '11'}


def test_a_new_process_knows_them(four_ports):
    with Switch(four_ports, '--port=p1,vlan=10', interfaces=[]) as s:
        s.dpctl('port-add', 'p2', 'vlan=20', 'trunk=30:31')
        before = words(s)
        assert before == {'port.1.vlan': '10', 'port.2.vlan': '20', 'port.2.trunk': '30-31'}
        pid = json.loads(s.dpctl('--json', 'status').stdout)['pid']
        s.dpctl('restart')
        until(lambda: json.loads(s.dpctl('--json', 'status').stdout)['pid'] != pid, 'another process')
        assert words(s) == before
        sh('kill', '-TERM', str(json.loads(s.dpctl('--json', 'status').stdout)['pid']))


WRONG = {
    'vlan=0': 'vlan is one VLAN (1 to 4094)', 'vlan=4095': 'vlan is one VLAN', 'vlan=10:20': 'several are trunk=',
    'vlan=': 'vlan is one VLAN', 'trunk=': 'trunk is a list', 'trunk=20-10': 'trunk is a list',
    'trunk=10:': 'trunk is a list', 'trunk=5000': 'trunk is a list', 'vid=10': 'vlan=VLAN and trunk=VLAN',
}


@pytest.mark.parametrize('word', WRONG)
def test_wrong_words(word):
    done = subprocess.run([binary('datapath/ofdatapath'), f'--port=lo,{word}', 'punix:/nonexistent/x'], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    assert done.returncode and WRONG[word] in done.stdout, done.stdout


# ------------------------------------------------------------------------------ what a bridge keeps

PASS_ALWAYS = {0x00, 0x10, 0x20}        # spanning tree's, as this is no 802.1D bridge; GMRP and others


@pytest.mark.parametrize('option,forwarded', [(None, set()), ('lldp,eapol', {0x0e, 0x03}), ('all', set(range(16))), ('02,0f', {2, 15})])
def test_reserved_addresses(four_ports, wires, option, forwarded):
    options = [f'--forward-reserved={option}'] if option else []
    with Switch(four_ports, '--fail=open', *options) as s, s.connect() as conn:
        for last in [*range(16), 0x10, 0x20]:
            before = qosmsg.counters(conn)['drop.reserved']
            sent = frame(1, f'01:80:c2:00:00:{last:02x}', None, last)
            wires[1].send(sent)
            passes = last in forwarded | PASS_ALWAYS
            assert got(wires, sent, 0.1) == ({2: None, 3: None, 4: None} if passes else {}), hex(last)
            assert qosmsg.counters(conn)['drop.reserved'] - before == (not passes)


def test_a_wrong_reserved_address():
    done = subprocess.run([binary('datapath/ofdatapath'), '-i', 'lo', '--forward-reserved=lldpp', 'punix:/nonexistent/x'],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    assert done.returncode and "not 'lldpp'" in done.stdout, done.stdout
