# SPDX-License-Identifier: Apache-2.0
"""Ports out of files (ofdatapath -i pcap:IN:OUT), and mirrors made of flows (docs/how-to/explain.md)"""
import os
import pathlib
import struct

import pytest

from support import capture as cap, of13, qosmsg as q
from support.of13 import apply_actions, goto_table, match, output, set_field
from support.topo import Switch, Topology, mac, udp_frame

FRAMES = [udp_frame(n) for n in range(1, 301)]


def start(conn, port=1):
    hw = conn.ports()[port]['hw_addr']
    conn.ok(of13.PORT_MOD, of13.port_mod(port, hw, 0, 1))


def files(directory, n=2):
    """-i pcap:in1:out1,...; the first reads FRAMES"""
    cap.write_pcap(directory / 'in1', FRAMES, 100)
    directory.chmod(0o777)
    return ','.join(f'pcap:{directory}/in1:{directory}/out1' if i == 1 else f'pcap::{directory}/out{i}'
                    for i in range(1, n + 1))


@pytest.mark.parametrize('workers', (1, 3))
def test_a_file_goes_through_the_switch(topo, tmp_path, workers):
    """What comes out is what flows make of it, byte for byte.  Such a port has no queues."""
    with Switch(topo, f'--workers={workers}', interfaces=[files(tmp_path, 3)]) as switch, \
            switch.connect() as conn:
        assert [p['name'] for p in conn.ports().values()] == ['pcap1', 'pcap2', 'pcap3']
        conn.flow(apply_actions(output(2), set_field(eth_dst=mac(9)), output(3), output(of13.P_IN_PORT)),
                  match=match(in_port=1))
        assert conn.port_stats()[1]['rx_packets'] == 0         # it waits
        start(conn)
        conn.port_stats(until=lambda s: s[1]['tx_packets'] == len(FRAMES))
        assert conn.port_stats()[1]['rx_packets'] == len(FRAMES)
        changed = [mac(9) + f[6:] for f in FRAMES]
        assert cap.read_pcap(tmp_path / 'out2') == FRAMES      # while it runs
        assert cap.read_pcap(tmp_path / 'out3') == changed
        assert cap.read_pcap(tmp_path / 'out1') == changed
        conn.ok(of13.PACKET_OUT, of13.packet_out(FRAMES[0], [output(2)]))
        conn.port_stats(until=lambda s: s[2]['tx_packets'] == len(FRAMES) + 1)
        conn.expect_error(of13.ET_EXPERIMENTER, q.BAD_PORT, of13.EXPERIMENTER,
                          struct.pack('!II', q.EXPERIMENTER_ID, 1) + q.htb_class(q.ADD, 1, 10, 1000000))
        conn.ok(of13.EXPERIMENTER, struct.pack('!III', q.EXPERIMENTER_ID, 3, 3))      # PORT_DEL
    assert len(cap.read_pcap(tmp_path / 'out2')) == len(FRAMES) + 1


def test_without_privileges(topo):
    if not os.path.exists('/usr/bin/setpriv'):
        pytest.skip('setpriv is not installed')
    s = Switch(topo, '--no-slicing', interfaces=[],
               prefix=('setpriv', '--reuid=65534', '--regid=65534', '--clear-groups',
                       '--bounding-set=-all', '--inh-caps=-all'))
    directory = pathlib.Path(s.directory)             # tmp_path is root's alone
    s.command += ['-i', files(directory)]
    with s as switch, switch.connect() as conn:
        conn.flow(apply_actions(output(2)), match=match(in_port=1))
        start(conn)
        conn.port_stats(until=lambda s: s[2]['tx_packets'] == len(FRAMES))
        assert cap.read_pcap(directory / 'out2') == FRAMES


def test_at_the_recorded_pace(topo, tmp_path):
    """300 packets, 100 us apart: the first is not followed by all at once."""
    ports = files(tmp_path).replace('out1', 'out1:recorded')
    with Switch(topo, '--no-slicing', interfaces=[ports]) as switch, switch.connect() as conn:
        conn.flow(apply_actions(output(2)), match=match(in_port=1))
        start(conn)
        conn.port_stats(until=lambda s: s[2]['tx_packets'] == len(FRAMES))
    with open(tmp_path / 'out2', 'rb') as f:
        data = f.read()
    first, last = (struct.unpack_from('<II', data, at)
                   for at in (24, 24 + (len(FRAMES) - 1) * (16 + len(FRAMES[0]))))
    assert last[0] + last[1] / 1e9 - first[0] - first[1] / 1e9 > 0.025


@pytest.mark.long
def test_mistakes(topo, tmp_path, conn):
    cap.write_pcap(tmp_path / 'in', FRAMES[:2])
    (tmp_path / 'broken').write_bytes(b'no pcap')
    for spec, why in (('pcap:', 'no port out of files'), ('pcap::', 'no port out of files'),
                      (f'pcap:{tmp_path}/in:{tmp_path}/in', 'two different files'),
                      (f'pcap:{tmp_path}/in:{tmp_path}/out:fast', 'no port out of files'),
                      (f'pcap:{tmp_path}/none:{tmp_path}/out', 'No such file'),
                      (f'pcap:{tmp_path}/broken:{tmp_path}/out', 'broken'),
                      (f'pcap:{tmp_path}/in:{tmp_path}/no/out', 'writing')):
        s = Switch(topo, interfaces=[spec], wait=False)
        s.start()
        assert s.process.wait(60) == 1 and why in s.output(), s.output()
        s.abandon()
    error = conn.expect_error(of13.ET_EXPERIMENTER, q.PERM, of13.EXPERIMENTER,
                              struct.pack('!III16s', q.EXPERIMENTER_ID, 2, 0, b'pcap:/etc/a:b'))
    assert b'where the switch is started' in error.data


def test_a_truncated_file(topo, tmp_path):
    """What is whole is replayed; the rest is not."""
    cap.write_pcap(tmp_path / 'in1', FRAMES[:10])
    whole = (tmp_path / 'in1').read_bytes()
    (tmp_path / 'in1').write_bytes(whole[:-5])
    with Switch(topo, '--no-slicing',
                interfaces=[f'pcap:{tmp_path}/in1:{tmp_path}/out1']) as switch, switch.connect() as conn:
        conn.flow(apply_actions(output(of13.P_IN_PORT)), match=match(in_port=1))
        start(conn)
        conn.port_stats(until=lambda s: s[1]['tx_packets'] == 9)
    assert cap.read_pcap(tmp_path / 'out1') == FRAMES[:9]


def test_a_mirror_made_of_flows():
    """The recipe of docs/how-to/explain.md: what enters and leaves port 1 goes to port 3 too."""
    with Topology(3) as topo, Switch(topo) as switch, topo.host(1) as one, topo.host(2) as two, \
            topo.host(3) as probe, switch.connect() as conn:
        for line in ('flow-mod cmd=add,table=0,prio=100 in_port=1 apply:output=3 goto:1',
                     'flow-mod cmd=add,table=0,prio=0 goto:1',
                     'group-mod cmd=add,type=all,group=1 weight=0 output=1 weight=0 output=3',
                     'flow-mod cmd=add,table=1,prio=10 in_port=1 apply:output=2',
                     'flow-mod cmd=add,table=1,prio=10 in_port=2 apply:group=1'):
            switch.dpctl(*line.split())
        one.send(FRAMES[0])
        assert two.recv() == FRAMES[0] and probe.recv() == FRAMES[0]
        two.send(FRAMES[1])
        assert one.recv() == FRAMES[1] and probe.recv() == FRAMES[1]
        assert conn.port_stats()[3]['rx_packets'] == 0
