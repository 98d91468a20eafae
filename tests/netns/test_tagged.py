# SPDX-License-Identifier: Apache-2.0
"""Full frames with tags of all kinds, as a bridge takes them: a packet socket by itself allows for one of 802.1Q."""
import pytest

from support import of13, qosmsg as q, tc
from support.frames import tag, tcp
from support.of13 import apply_actions, match, output, set_queue
from support.topo import Switch, Topology, eth, ipv4, sh, udp4

pytestmark = pytest.mark.debiankernel

MBIT = 1_000_000
TPIDS = {'802.1ad': [0x88a8], 'QinQ': [0x88a8, 0x8100], '802.1Q twice': [0x8100, 0x8100]}


def frame(tpids, payload):
    tagged = eth(payload)
    for tpid in reversed(tpids):
        tagged = tag(100, tpid, tagged)
    return tagged


@pytest.fixture(scope='module')
def network():
    with Topology(2) as topo:
        for ns, name in (topo.host_ns(1), 'e0'), (topo.switch_ns, 'p1'), (topo.host_ns(2), 'e0'):
            sh('ip', '-n', ns, 'link', 'set', name, 'mtu', '2000')      # all but the interface that sends
        sh('ip', 'netns', 'exec', topo.switch_ns, 'ethtool', '-K', 'p2', 'tx', 'off')
        with Switch(topo, '--offload=off') as switch, switch.connect() as conn:
            q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 10, MBIT))
            yield topo, switch, conn


PAYLOADS = {
    'TCP': lambda: tcp(0x10, payload=b't' * 1460),
    'TCP, its checksum wrong': lambda: tcp(0x10, payload=b't' * 1460)[:-1] + b'x',
    'UDP': lambda: udp4(b'u' * 1472)}


@pytest.mark.parametrize('kind', PAYLOADS)
@pytest.mark.parametrize('tags', TPIDS)
@pytest.mark.parametrize('queue', [0, 10])
def test_full_frames_pass(network, tags, kind, queue):
    """To the bit, a wrong checksum too, by the queue that was asked for"""
    topo, _, conn = network
    sent = frame(TPIDS[tags], PAYLOADS[kind]())
    assert len(sent) == 1514 + 4 * len(TPIDS[tags])
    conn.flow(apply_actions(*([set_queue(queue)] if queue else []), output(2)), match=match(in_port=1))
    with topo.host(1) as one, topo.host(2) as two:
        before = tc.classes(topo.switch_ns, 'p2')[10]['packets']
        for _ in range(3):
            one.send(sent)
            assert two.recv(2, lambda f: len(f) > 1000) == sent
        assert tc.classes(topo.switch_ns, 'p2')[10]['packets'] - before == (3 if queue else 0)


@pytest.mark.parametrize('why,payload', [('longer than the MTU', lambda: udp4(b'u' * 1473)),
                                         ('no TCP or UDP', lambda: ipv4(b'e' * 1480, proto=50))])
def test_what_does_not_pass_is_counted(network, why, payload):
    topo, _, conn = network
    conn.flow(apply_actions(output(2)), match=match(in_port=1))
    before = q.counters(conn)['drop.too_long']
    with topo.host(1) as one, topo.host(2) as two:
        one.send(frame([0x88a8], payload()))
        assert two.drain(0.3) == []
    assert q.counters(conn)['drop.too_long'] == before + 1, why
