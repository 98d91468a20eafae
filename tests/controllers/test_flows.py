# SPDX-License-Identifier: Apache-2.0
"""ofqos.flows: what services send of flows, meters and packets, through the switch's own codec and back; and any bytes.
Needs no root."""
import struct
import subprocess
import sys

import pytest

from support.app import PACKAGE

sys.path.append(PACKAGE)
from ofqos import flows, wire  # noqa: E402

hypothesis = pytest.importorskip('hypothesis', reason='hypothesis is not installed (Debian: python3-hypothesis)')
from hypothesis import given, settings, strategies as st  # noqa: E402

MAC, FOUR, SIX = '02:00:00:00:00:01', '10.0.0.1', 'fd00::1'
FLOWS = (
    flows.Flow(0, 0, 7, {}, goto=1),
    flows.Flow(1, 0, 7, {}, out=flows.CONTROLLER, meter=5),
    flows.Flow(0, 9, 1 << 63, flows.exactly({'in_port': 3, 'eth_type': 0x800, 'ip_dscp': 46, 'ipv4_src': FOUR}), 20000, 2),
    flows.Flow(0, 9, 8, flows.exactly({'eth_type': 0x86dd, 'ip_proto': 6, 'ipv6_dst': SIX, 'tcp_dst': 80}), 1, flows.NORMAL),
    flows.Flow(2, 1, 8, flows.exactly({'in_port': 1, 'eth_src': MAC}), goto=2),
    flows.Flow(0, 5, 8, {'eth_type': (0x800, None), 'ipv4_dst': (0x0a000000, 0xff000000)}, out=4),
)


def statistics(flow):
    """As a switch tells of it: the flow-mod's own match and instructions behind the counters"""
    rest = flows.flow_mod(flows.ADD, flow, 1)[48:]
    return struct.pack('!HBxIIHHHH4xQQQ', 48 + len(rest), flow.table, 0, 0, flow.priority, 0, 0, 0, flow.cookie, 0, 0) + rest


@pytest.mark.parametrize('flow', FLOWS, ids=str)
def test_a_flow_comes_back(flow):
    assert flows.parse_flows(statistics(flow)) == [flow]
    assert flows.parse_flows(statistics(flow) * 2) == [flow, flow]


def test_the_switch_reads_it(codec_tool):
    """As the switch's own codec reads it and writes it again"""
    sent = [flows.flow_mod(command, flow, 7) for flow in FLOWS for command in (flows.ADD, flows.DELETE, flows.DELETE_STRICT)]
    sent += [flows.delete_meter(1, 5), flows.add_meter(1, 5, 200), flows.packet_out(1, [1, 2], b'x' * 60),
             flows.packet_out(1, [flows.NORMAL], b'x' * 60, 20000), flows.ask_flows(1, 7, 7)]
    done = subprocess.run([codec_tool], input='\n'.join(raw.hex() for raw in sent) + '\n', stdout=subprocess.PIPE, text=True,
                          check=True)
    assert done.stdout.splitlines() == [f'ok {raw.hex()}' for raw in sent]


def test_values():
    given_values = {'in_port': 1, 'eth_dst': MAC, 'ipv4_src': FOUR, 'ipv6_dst': SIX, 'udp_src': 5}
    assert flows.values(flows.exactly(given_values)) == given_values
    with pytest.raises(ValueError):
        flows.values({'ipv4_src': (1, 255)})


def packet_in(match, frame=b'f' * 20):
    whole = struct.pack('!HH', 1, 4 + len(match)) + match
    return wire.message(flows.PACKET_IN, 0, struct.pack('!IHBBQ', 0, len(frame), 0, 0, 0) + whole +
                        bytes(-len(whole) % 8) + b'\0\0' + frame)


def test_packet_ins():
    port = struct.pack('!HBBI', 0x8000, 0, 4, 9)
    meta = struct.pack('!HBBQ', 0x8000, 2 << 1, 8, 1)
    for match in port, port + meta, meta + port:
        assert flows.parse_packet_in(packet_in(match)) == (9, b'f' * 20)
    for wrong in packet_in(meta), packet_in(b''), packet_in(meta[:3]), wire.message(flows.PACKET_IN, 0), wire.message(2, 0):
        with pytest.raises(ValueError):
            flows.parse_packet_in(wrong)


@settings(max_examples=300, deadline=None, database=None)
@given(st.sampled_from(FLOWS), st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=4), st.integers(0, 200))
def test_any_bytes(flow, changes, cut):
    data = bytearray(statistics(flow))
    for at, byte in changes:
        data[at % len(data)] = byte
    for raw in bytes(data), bytes(data[:cut]):
        try:
            flows.parse_flows(raw)
        except ValueError:
            pass
        try:
            flows.parse_packet_in(wire.message(flows.PACKET_IN, 0, raw))
        except ValueError:
            pass
