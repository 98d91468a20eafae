# SPDX-License-Identifier: Apache-2.0
"""CAPTURE and DROPS (docs/reference/extensions.md); dpctl capture and why-dropped"""
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading

import pytest

from support import capture as cap, of13, offload, qosmsg as q
from support.of13 import apply_actions, match, output, set_queue
from support.qostree import MBIT, ask
from support.topo import Switch, Topology, binary, inside, sh, udp_frame

A = udp_frame(1)


def forward(conn, *actions, in_port=1, **kw):
    conn.flow(apply_actions(*actions), match=match(in_port=in_port), cookie=0x77, **kw)


# ------------------------------------------------------------------------------- the protocol

def test_refusals(switch, conn):
    for n in (0, 8, 31, 33):
        conn.expect_error(of13.ET_BAD_REQUEST, of13.BRC_BAD_LEN, of13.EXPERIMENTER,
                          cap.request(1)[:8] + bytes(n))
    for bad in (cap.request(16), cap.request(cap.DROP, reason=1000)):
        conn.expect_error(of13.ET_EXPERIMENTER, q.BAD_PARAM, of13.EXPERIMENTER, bad)
    conn.expect_error(of13.ET_BAD_REQUEST, of13.BRC_BAD_EXP_TYPE, of13.EXPERIMENTER,
                      struct.pack('!II', q.EXPERIMENTER_ID, cap.CAPTURED) + bytes(48))
    with switch.connect() as slave:
        slave.role(of13.ROLE_SLAVE, 1)
        slave.expect_error(of13.ET_BAD_REQUEST, of13.BRC_IS_SLAVE, of13.EXPERIMENTER, cap.request(1))
    others = [switch.connect() for _ in range(8)]
    for c in others:
        cap.subscribe(c, cap.IN)
    error = conn.expect_error(of13.ET_EXPERIMENTER, q.PERM, of13.EXPERIMENTER, cap.request(1))
    assert b'8 connections capture' in error.data
    others.pop().close()                            # ends its capture
    for _ in range(100):
        try:
            cap.subscribe(conn, cap.IN)
            break
        except of13.OfError:
            pass
    for c in others:
        c.close()
    cap.subscribe(conn, 0)
    assert cap.captured(conn)[0].point == cap.END
    cap.subscribe(conn, 0)                          # nothing to end, and no answer
    conn.no_async(of13.EXPERIMENTER)


def test_in_out_miss_and_drop(conn, hosts):
    ask(conn, q.htb_class(q.ADD, 2, 10, 6 * MBIT))
    forward(conn, set_queue(10), output(2))
    forward(conn, output(1), in_port=3, table_id=0)
    cap.subscribe(conn, cap.IN | cap.OUT | cap.MISS | cap.DROP, limit=4)
    hosts[1].send(A)
    came, left = cap.captured(conn, 2)
    assert (came.point, came.in_port, came.out_port, came.data, came.len) == (
        cap.IN, 1, cap.ANY, A, len(A))
    assert (left.point, left.in_port, left.out_port, left.queue, left.table, left.cookie) == (
        cap.OUT, 1, 2, 10, 0, 0x77)
    assert came.time <= left.time
    assert left.match['udp_dst'] == 2000 and left.match['in_port'] == 1
    hosts[4].send(A)                                # no flow: a miss, and a drop; that is the limit
    came, missed = cap.captured(conn, 2)
    assert (came.point, missed.point, missed.table, missed.in_port) == (cap.IN, cap.MISS, 0, 4)
    last, = cap.captured(conn)
    assert (last.point, last.lost) == (cap.END, 0)
    hosts[1].send(A)
    conn.no_async(of13.EXPERIMENTER)


def test_filters(conn, hosts):
    ask(conn, q.htb_class(q.ADD, 2, 10, 6 * MBIT))
    forward(conn, output(2), set_queue(10), output(2), output(3), of13.output(9))
    cap.subscribe(conn, cap.OUT, port=2, queue=10, snaplen=20)
    hosts[1].send(A)
    only, = cap.captured(conn)
    assert (only.out_port, only.queue, only.data, only.len) == (2, 10, A[:20], len(A))
    cap.subscribe(conn, cap.DROP, reason=cap.drops(conn)['no_port']['reason'])    # instead of that
    hosts[1].send(A)
    only, = cap.captured(conn)
    assert (only.point, only.out_port, only.in_port) == (cap.DROP, 9, 1)
    cap.subscribe(conn, cap.IN, port=4)
    hosts[1].send(A)
    hosts[4].send(A)
    assert [c.in_port for c in cap.captured(conn)] == [4]
    conn.no_async(of13.EXPERIMENTER)


def test_a_flood_and_a_reader_that_does_not_read(switch, conn, hosts):
    """It loses packets, which are counted; nobody else notices."""
    forward(conn, output(2))
    with switch.connect() as lazy:
        cap.subscribe(lazy, cap.IN)
        cap.subscribe(conn, cap.IN, rate=10)
        for _ in range(3000):
            hosts[1].send(A.ljust(1400, b'x'))
        def dropped():          # in front of the switch, on a busy machine
            return conn.port_stats(1)[1]['rx_dropped']
        conn.port_stats(2, until=lambda s: s[2]['tx_packets'] + dropped() >= 3000)
        cap.subscribe(conn, 0)
        mine = []
        while not mine or mine[-1].point != cap.END:
            mine += cap.captured(conn)
        assert 10 <= len(mine) < 1000 and mine[-1].lost + len(mine) - 1 == 3000 - dropped()
        theirs = q.counters(conn)
        assert theirs['capture.lost'] >= mine[-1].lost and theirs['capture.sent'] > 0


def test_a_slave_captures_no_more(switch, conn, hosts):
    with switch.connect() as other:
        cap.subscribe(other, cap.IN)
        other.role(of13.ROLE_SLAVE, 1)
        hosts[1].send(A)
        assert cap.captured(other)[0].point == cap.END


def test_a_port_that_comes_later(switch, conn, hosts):
    """Also a port that was not there when the capture began is watched."""
    conn.ok(of13.EXPERIMENTER, struct.pack('!III', q.EXPERIMENTER_ID, 3, 2))            # PORT_DEL
    forward(conn, output(2))
    cap.subscribe(conn, cap.OUT)
    conn.ok(of13.EXPERIMENTER, struct.pack('!III16s', q.EXPERIMENTER_ID, 2, 2, b'p2'))  # PORT_ADD
    hosts[1].send(A)
    assert cap.captured(conn)[0].out_port == 2


def test_super_packets():
    """They are captured whole, with their segments' length."""
    with Topology(2, ip=True) as topo, Switch(topo) as switch, switch.connect() as conn:
        for a, b in ((1, 2), (2, 1)):
            conn.flow(apply_actions(output(b)), match=match(in_port=a))
        with inside(topo.host_ns(2)):
            listener = socket.create_server(('10.0.0.2', 5000))
        with inside(topo.host_ns(1)):
            sender = socket.create_connection(('10.0.0.2', 5000), 30)
        receiver, _ = listener.accept()
        cap.subscribe(conn, cap.IN | cap.OUT, port=1, snaplen=64)
        left = 1 << 20
        threading.Thread(target=sender.sendall, args=(bytes(left),)).start()
        while left:
            left -= len(receiver.recv(1 << 20))
        big = next(c for c in iter(lambda: cap.captured(conn)[0], None) if c.segment)
        assert big.len > 1514 and 500 < big.segment < 1500 and len(big.data) == 64
        for s in (sender, receiver, listener):
            s.close()


def test_drops(conn, hosts):
    before = cap.drops(conn)
    assert len({d['reason'] for d in before.values()}) == len(before)
    assert all(d['text'] and d['help'].endswith('.') and not d['samples'] for d in before.values())
    for n in range(10):
        hosts[1].send(udp_frame(n))
    conn.port_stats(1, until=lambda s: s[1]['rx_packets'] >= 10)
    for _ in range(200):
        now = cap.drops(conn)['no_match']
        if now['packets'] == 10:
            break
    assert now['packets'] == 10 and 1 <= len(now['samples']) <= 4
    for s in now['samples']:
        assert (s['in_port'], s['out_port'], s['table'], s['cookie'], s['len']) == (
            1, cap.ANY, 0, 2 ** 64 - 1, len(A))
        assert s['data'][:34] == A[:34] and s['match']['ipv4_src'] == 0x0a000001
    times = [s['time'] for s in now['samples']]
    assert times == sorted(times, reverse=True) and times[0] - times[-1] < 60e9


# ------------------------------------------------------------------------------- dpctl

class Capture:
    """dpctl capture in the background"""

    def __init__(self, switch, *words):
        self.process = subprocess.Popen([binary('utils/dpctl/dpctl'), switch.address, 'capture', *words],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        assert b'capturing' in self.process.stderr.readline()

    def end(self, interrupt=True):
        """-> (stdout, stderr)"""
        if interrupt:
            self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, err
        return out.decode('latin-1'), err.decode()


def test_dpctl_capture_lines(switch, conn, hosts):
    forward(conn, output(2))
    c = Capture(switch, 'port=p1', 'count=1')
    hosts[1].send(A)
    out, err = c.end(interrupt=False)
    assert re.match(r'\d\d:\d\d:\d\d\.\d{6} in   in_port=1 68 bytes: in_port=1,eth_', out), out
    assert '1 packet captured, 0 lost' in err
    for port in 'p1', '1':                      # alone it is a port
        c = Capture(switch, port, 'in', 'count=1')
        hosts[2].send(A)
        hosts[1].send(A)
        out, err = c.end(interrupt=False)
        assert re.fullmatch(r'.* in   in_port=1 68 bytes: .*\n', out), out
    said = switch.dpctl('capture', 'p9', check=False).stderr
    assert "unknown word 'p9'" in said and 'did you mean p1' in said
    assert 'the switch has no port 9: nothing comes until it has' in switch.dpctl('capture', 'port=9', 'seconds=1', check=False).stderr
    c = Capture(switch, 'out', 'port=2', '--json')
    hosts[1].send(A)
    first = json.loads(c.process.stdout.readline())
    out, err = c.end()
    assert first['packet']['out_port'] == 2 and first['packet']['cookie'] == '0x77' and not out
    done = switch.dpctl('capture', 'drop=no_mach', check=False)
    assert done.returncode == 2 and 'no_match' in done.stderr
    for words in ((), ('count=1',), ('queue=2',), ('port=1', 'until=3'), ('nonsense',)):
        assert switch.dpctl('capture', *words, check=False).returncode == 2


def test_dpctl_capture_to_a_file(switch, conn, hosts, tmp_path):
    ask(conn, q.htb_class(q.ADD, 2, 10, 6 * MBIT))
    forward(conn, set_queue(10), output(2))
    path = str(tmp_path / 'all.pcapng')
    c = Capture(switch, 'all', 'drop', 'count=3', '--to', path)
    hosts[1].send(A)
    assert hosts[2].recv() == A                      # two ports' packets have no order
    hosts[3].send(A)                                 # the in of it, or the drop, is over the limit
    _, err = c.end(interrupt=False)
    assert '3 packets captured' in err
    names, packets = cap.read_pcapng(path)
    assert names == ['p1', 'p2', 'p3', 'p4']
    assert [(i, f, o[1].decode(), struct.unpack('=I', o[2])[0]) for i, f, o in packets[:2]] == [
        (0, A, 'in_port=1', 1), (1, A, 'in_port=1 table=0 cookie=0x77 out=2 queue=10', 2)]
    if not shutil.which('tshark'):
        pytest.skip('tshark is not installed')
    shown = sh('tshark', '-r', path, '-T', 'fields', '-e', 'frame.interface_name', '-e',
               'frame.comment', '-e', 'udp.dstport', env={**os.environ, 'HOME': str(tmp_path)})
    assert shown.splitlines()[1].split('\t') == [
        'p2', 'in_port=1 table=0 cookie=0x77 out=2 queue=10', '2000'], shown


def test_dpctl_capture_into_a_pipe(switch, conn, hosts):
    """Each packet is there at once; the reader may leave first."""
    forward(conn, output(2))
    c = Capture(switch, 'in', 'port=1', '--to', '-')
    head = os.read(c.process.stdout.fileno(), 65536)
    hosts[1].send(A)
    while A not in head:
        more = os.read(c.process.stdout.fileno(), 65536)
        assert more
        head += more
    c.process.stdout.close()
    hosts[1].send(A)
    assert c.process.wait(60) == 0 and b'captured' in c.process.stderr.read()


def test_dpctl_why_dropped(switch, conn, hosts):
    assert switch.dpctl('why-dropped').stdout == 'nothing was dropped\n'
    hosts[1].send(A)
    forward(conn, output(9), in_port=2)
    hosts[2].send(A)
    for _ in range(200):
        if cap.drops(conn)['no_port']['packets']:
            break
    said = switch.dpctl('why-dropped').stdout
    assert re.search(r'^no_match: 1 packet: no flow matched\n    Add a flow .*\n    \d\d:\d\d:\d\d\.'
                     r'\d{6} in_port=1 table=0 68 bytes: in_port=1,eth_', said, re.M), said
    assert re.search(r'in_port=2 table=0 cookie=0x77 out=9 68 bytes', said), said
    said = switch.dpctl('why-dropped', 'no_port').stdout
    assert 'no_port: 1' in said and 'no_match' not in said
    assert 'no_port' not in switch.dpctl('why-dropped', 'port=1').stdout
    assert 'meter: 0 packets' in switch.dpctl('why-dropped', 'all=yes').stdout
    said = json.loads(switch.dpctl('--json', 'why-dropped').stdout)
    assert {r['reason']: r['packets'] for r in said['reasons']} == {'no_match': 1, 'no_port': 1}
    assert said['reasons'][0]['samples'][0]['match']['udp_dst'] == 2000
    assert 'did you mean no_match' in switch.dpctl('why-dropped', 'no_mach', check=False).stderr


def test_the_advice_names_commands_that_there_are(switch, conn):
    named = {w for d in cap.drops(conn).values() for w in re.findall(r'dpctl ([a-z-]+)', d['help'])}
    assert len(named) > 5
    assert not [w for w in named if switch.dpctl('help', w, check=False).returncode]


def test_the_advice_names_options_that_there_are(conn):
    said = subprocess.run([binary('datapath/ofdatapath'), '--help'], capture_output=True, text=True, timeout=60, check=True).stdout
    named = {w for d in cap.drops(conn).values() for w in re.findall(r'--[a-z][a-z-]+', d['help'])}
    assert named and not [w for w in named if not re.search(rf'{w}\b(?!-)', said)]


@pytest.mark.parametrize('how', ['auto', 'off'])
def test_dpctl_why_dropped_names_the_kernels_queues(four_ports, wires, how):
    """A full queue drops what user space sent, which is told, or what the kernel handled."""
    with Switch(four_ports, *offload.options(how)) as switch, switch.connect() as conn:
        ask(conn, q.htb_class(q.ADD, 2, 10, MBIT))
        ask(conn, q.qdisc(q.PFIFO, q.ADD, 2, 10, 2))
        forward(conn, set_queue(10), output(2))
        for n in range(50):
            wires[1].send(udp_frame(n).ljust(1400, b'x'))
        conn.port_stats(2, until=lambda s: s[2]['tx_packets'] + s[2]['tx_dropped'] >= 50)
        said = switch.dpctl('why-dropped', 'port=2').stdout
        assert re.search(r"^the kernel's queues, port 2 out, class 10: \d+ packets", said, re.M), said
        if how == 'off':
            assert re.search(r'^tx_full: \d+ packets', said, re.M), said
            assert re.search(r' out=2 queue=10 \d+ bytes: eth_', said), said
            assert re.search(r'^port 2 and its interface: 0 dropped on receiving, \d+ on sending',
                             said, re.M), said
