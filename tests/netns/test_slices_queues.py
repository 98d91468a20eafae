# SPDX-License-Identifier: Apache-2.0
"""What a slice's choice of a queue, and the metadata that it writes, do in the tables of others (docs/how-to/slices.md)."""
import json
import os
import tempfile

import pytest

from support import of13, offload, qosmsg
from support.bundle import Bundle
from support.of13 import (apply_actions, flow_mod, goto_table, match, output, packet_out, set_queue, write_actions,
                          write_metadata)
from support.qosmsg import ADD, NATIVE, htb_class
from support.topo import Topology, udp_frame
from support.wait import until
from test_slices import Sliced

BIC_EPERM = 8
QUEUE = 10                  # red's; at port 3 somebody else's
RED = {'ports': '1-2', 'tables': '1', 'shared-tables': '0,2', 'queues': '10-19', 'metadata': '0xff00'}


@pytest.fixture(scope='module')
def topo():
    with Topology(3) as t:
        yield t


@pytest.fixture(params=['off', 'auto'])
def switch(topo, request):
    with Sliced(topo, {'red': RED}, *offload.options(request.param)) as s:
        yield s


@pytest.fixture
def admin(switch):
    """The way of the packets of port 1: red's table 1, then one that red shares, where they leave by both"""
    with switch.connect() as conn:
        for port in 2, 3:
            qosmsg.send(conn, NATIVE, htb_class(ADD, port, QUEUE, rate=5_000_000))
        conn.flow(goto_table(1), match=match(in_port=1))
        conn.flow(apply_actions(output(2), output(3)), match=match(in_port=1), table_id=2)
        yield conn


def taken(conn):
    return [conn.queue_stats()[port, QUEUE]['tx_packets'] for port in (2, 3)]


def pass_by(switch, topo, admin, n=20):
    """-> how many of n packets were in the queue of ports 2 and 3; by the kernel, if it can"""
    with topo.host(1) as h1, topo.host(2) as h2, topo.host(3) as h3:
        def send(number):
            h1.send(udp_frame(number))
            assert h2.recv() == h3.recv() == udp_frame(number)
        if 'kernel_entries' in switch.dpctl('counters').stdout and not offload.works():
            def in_kernel():
                before = offload.hits(switch)
                send(0)
                return offload.hits(switch) > before
            until(in_kernel, 'the kernel to take the packets')
        before = taken(admin)
        for number in range(n):
            send(number)
        until(lambda: taken(admin)[0] - before[0] == n, 'all of them in red\'s queue')
        return [now - then for now, then in zip(taken(admin), before)]


@pytest.mark.parametrize('instructions', [(apply_actions(set_queue(QUEUE)), goto_table(2)),
                                          (apply_actions(set_queue(QUEUE), output(2)), goto_table(2))],
                         ids=['set_queue', 'used before'])
def test_a_queue_holds_at_the_slices_ports(switch, topo, admin, instructions):
    """Later tables may send to ports that aren't the slice's: there the packet has no queue."""
    with switch.of('red') as red:
        if len(instructions) == 2 and output(2) in instructions[0]:
            admin.flow(apply_actions(output(3)), match=match(in_port=1), table_id=2)
        red.flow(*instructions, table_id=1)
    assert pass_by(switch, topo, admin) == [20, 0]


def test_a_written_queue(switch, topo, admin):
    """In the action set it waits for whoever writes the output."""
    with switch.of('red') as red:
        red.flow(write_actions(set_queue(QUEUE)), goto_table(2), table_id=1)
    admin.flow(apply_actions(output(2)), write_actions(output(3)), match=match(in_port=1), table_id=2)
    with topo.host(1) as h1, topo.host(3) as h3:
        for n in range(20):
            h1.send(udp_frame(n))
            assert h3.recv() == udp_frame(n)
    assert taken(admin) == [0, 0]
    admin.flow(write_actions(output(2)), match=match(in_port=1), table_id=2)
    with topo.host(1) as h1, topo.host(2) as h2:
        for n in range(20):
            h1.send(udp_frame(n))
            assert h2.recv() == udp_frame(n)
    until(lambda: taken(admin) == [20, 0], "red's queue of its own port")


def test_a_packet_out_to_the_tables(switch, topo, admin):
    admin.flow(apply_actions(output(2), output(3)), match=match(in_port=1))
    with switch.of('red') as red, topo.host(2) as h2, topo.host(3) as h3:
        for n in range(20):
            red.ok(of13.PACKET_OUT, packet_out(udp_frame(n), [set_queue(QUEUE), output(of13.P_TABLE)], in_port=1))
            assert h2.recv() == h3.recv() == udp_frame(n)
        until(lambda: taken(admin) == [20, 0], "red's queue of its own port")


def test_an_operators_queue_holds_everywhere(switch, topo, admin):
    admin.flow(apply_actions(set_queue(QUEUE)), goto_table(2), table_id=1)
    assert pass_by(switch, topo, admin) == [20, 20]


def test_bundles_and_modifies(switch, topo, admin):
    """A program that replaces another is the slice's, too."""
    admin.flow(apply_actions(set_queue(QUEUE)), goto_table(2), table_id=1)
    with switch.of('red') as red:
        red.ok(of13.FLOW_MOD, flow_mod(instructions=[apply_actions(set_queue(QUEUE)), goto_table(2)], table_id=1,
                                       command=1))
        assert pass_by(switch, topo, admin) == [20, 0]
        bundle = Bundle(red)
        bundle.put(of13.FLOW_MOD, flow_mod(instructions=[apply_actions(set_queue(QUEUE)), goto_table(2)],
                                           table_id=1, priority=9))
        bundle.send()
    assert pass_by(switch, topo, admin) == [20, 0]


def test_after_a_restart(topo):
    """A saved state doesn't name whose a flow is."""
    with tempfile.TemporaryDirectory() as directory:
        state = os.path.join(directory, 'state')
        with Sliced(topo, {'red': RED}, f'--state={state}') as s, s.of('red') as red, s.connect() as admin:
            admin.flow(goto_table(1), match=match(in_port=1))
            admin.flow(apply_actions(output(2), output(3)), match=match(in_port=1), table_id=2)
            red.flow(apply_actions(set_queue(QUEUE)), goto_table(2), table_id=1)
        with Sliced(topo, {'red': RED}, f'--restore={state}') as s, s.connect() as admin:
            for port in 2, 3:
                qosmsg.send(admin, NATIVE, htb_class(ADD, port, QUEUE, rate=5_000_000))
            assert pass_by(s, topo, admin) == [20, 0]


def test_metadata_has_a_mask(switch, topo, admin):
    """Tables of others may tell packets by it, so a slice writes only the bits that are its own."""
    with switch.of('red') as red:
        red.flow(write_metadata(0x1200, 0xff00), goto_table(2), table_id=1)
        for mask in 0x1ff00, 1, 0xffffffffffffffff:
            red.expect_error(of13.ET_BAD_INSTRUCTION, BIC_EPERM, of13.FLOW_MOD, flow_mod(
                instructions=[write_metadata(0, mask), goto_table(2)], table_id=1))
    assert json.loads(switch.dpctl('--json', 'counters').stdout)['slice.red.refused'] == 3


def test_without_a_mask_no_metadata(topo):
    with Sliced(topo, {'red': {k: v for k, v in RED.items() if k != 'metadata'}}) as s, s.of('red') as red:
        red.expect_error(of13.ET_BAD_INSTRUCTION, BIC_EPERM, of13.FLOW_MOD, flow_mod(
            instructions=[write_metadata(1, 1), goto_table(2)], table_id=1))
