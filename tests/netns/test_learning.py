# SPDX-License-Identifier: Apache-2.0
"""A learning switch (--fail=open without a controller, OFPP_NORMAL): the kernel forwards for it, tables,
maps and queues stay in force."""
import json
import time

import pytest

from support import of13, offload, ofmsg, qosmsg as q
from support.offload import hits
from support.load import comes_to
from support.of13 import apply_actions, goto_table, match, output, set_queue
from support.topo import Switch, Topology, udp4
from support.udp import Stream, measured
from support.wait import until

MBIT = 1_000_000
ABSENT = 'tcp:127.0.0.1:1'
CONTROLLERS = {'none': (), 'absent': (ABSENT,)}


@pytest.fixture(scope='module')
def hosts():
    with Topology(3, ip=True) as topo:
        yield topo


@pytest.fixture
def kernel(hosts):
    if why := offload.works():
        pytest.skip(why)
    return hosts


def entries(switch):
    return json.loads(switch.dpctl('--json', 'stats-cache').stdout)


def packets_of_host(topo, n):
    return int(topo.exec(n, 'cat', '/sys/class/net/e0/statistics/rx_packets'))


@pytest.mark.parametrize('controllers', CONTROLLERS)
def test_the_kernel_forwards(kernel, controllers):
    """Nearly all of a stream, to the station alone, with its queue; the others hear nothing of it."""
    with Switch(kernel, '--fail=open', *CONTROLLERS[controllers]) as s:
        assert kernel.pings(1, '10.0.0.2'), 'the first packet is forwarded'
        before = packets_of_host(kernel, 3)
        rate, = measured([Stream(kernel, 1, 2, '10.0.0.2', 5001, 8 * MBIT)], seconds=2)
        assert rate == pytest.approx(8, rel=0.05)
        assert hits(s) > 1500, s.dpctl('stats-cache').stdout
        assert packets_of_host(kernel, 3) - before < 50, 'host 3 gets what is for host 2'


# What leaves by port 2 with and without a flow: {name: (words of qos-map or None, flows)}
WAYS = {
    'a map': ('queue=10,udp=5001 then=goto:1', ()),
    'a map by NORMAL': ('queue=10,udp=5001 then=normal', ()),
    'a flow': (None, (((apply_actions(set_queue(10)), goto_table(1)), {'match': match(in_port=1)}),)),
}


@pytest.mark.long
@pytest.mark.parametrize('name,controllers,how', [('a map', 'none', 'auto'), ('a map', 'absent', 'off'),
                                                  ('a map by NORMAL', 'absent', 'auto'),
                                                  ('a flow', 'absent', 'auto')])
def test_queues_stay_in_force(hosts, name, controllers, how):
    """20 Mbit/s of UDP and a queue of 5 Mbit/s; what has no queue passes."""
    if how == 'auto' and (why := offload.works()):
        pytest.skip(why)
    rules, flows = WAYS[name]
    with Switch(hosts, '--fail=open', *offload.options(how), *CONTROLLERS[controllers]) as s, s.connect() as c:
        q.send(c, q.NATIVE, q.htb_class(q.ADD, 2, 10, 5 * MBIT))
        if rules:
            c.flow(apply_actions(output(2)), table_id=1)      # a map into an empty table is refused
            s.dpctl('qos-map', *rules.split())
            c.flow(table_id=1, command=ofmsg.DELETE)
        for instructions, kw in flows:
            c.flow(*instructions, **kw)
        assert hosts.pings(1, '10.0.0.2') and hosts.pings(3, '10.0.0.2')

        def rates():
            return dict(zip(('slow', 'fast'), measured([Stream(hosts, 1, 2, '10.0.0.2', 5001, 20 * MBIT),
                                                        Stream(hosts, 3, 2, '10.0.0.2', 5002, 8 * MBIT)])))
        comes_to(rates, {'slow': 5 * 1222 / 1264, 'fast': 8}, 0.05)
        assert c.queue_stats()[2, 10]['tx_packets'] > 500
        if how == 'auto':
            assert hits(s) > 2000, s.dpctl('stats-cache').stdout


def frames(src, dst, n=1):
    payload = n.to_bytes(4, 'big').ljust(40, b'\0')
    return bytes((2, 0, 0, 0, 1, dst, 2, 0, 0, 0, 0, src)) + b'\x08\0' + udp4(payload)


@pytest.mark.parametrize('flow', [False, True])
def test_many_stations_at_a_port(kernel, flow):
    """Each pair has its entry within a second or two, not one a second."""
    pairs = range(1, 51)
    with Switch(kernel, '--fail=open') as s, s.connect() as c, kernel.host(1) as one, kernel.host(2) as two:
        if flow:
            c.flow(apply_actions(output(of13.P_NORMAL)))
        for n in pairs:
            two.send(bytes((2, 0, 0, 0, 0, 250, 2, 0, 0, 0, 1, n)) + frames(1, 1)[12:])
            one.send(frames(n, 250))

        def all_there():
            for _ in range(10):
                for n in pairs:
                    one.send(frames(n, n))
                time.sleep(0.02)
            kinds = [e for e in entries(s)['entries'] if e.get('packets')]
            return len(kinds) >= len(pairs)
        until(all_there, 'not every pair has an entry', seconds=10)


def test_a_controller_takes_over(kernel, tmp_path):
    """What the kernel did for NORMAL ends when a controller connects: its tables are empty."""
    path = f'unix:{tmp_path}/controller'
    with Switch(kernel, '--fail=open', '--max-backoff=0.1', path) as s, \
            kernel.host(1) as one, kernel.host(2) as two:
        one.send(frames(1, 250))
        two.send(bytes((2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 1, 2)) + frames(1, 1)[12:])
        two.drain(0.2)

        def by_kernel():
            for n in range(20):
                one.send(frames(1, 2, n))
            time.sleep(0.02)
            return hits(s)
        until(by_kernel, 'the kernel forwards')
        with of13.Listener(path) as listener, listener.accept(20) as c:
            c.barrier()
            until(lambda: json.loads(s.dpctl('--json', 'status').stdout)['standalone'] is False, 'it is connected')
            two.drain(0.2)
            for n in range(20):
                one.send(frames(1, 2, 100 + n))
            assert not two.recv(0.3), 'forwarded beside the controller'
        until(lambda: (one.send(frames(1, 2, 7)), two.recv(0.1))[1], 'by NORMAL again')
