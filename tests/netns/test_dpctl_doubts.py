# SPDX-License-Identifier: Apache-2.0
"""dpctl says where packets of a queue go that gets classes below it."""
import pytest

from support import of13, qosmsg as q, tc
from support.topo import eth, udp4


@pytest.fixture(name='ten')
def with_ten_mbit(switch):
    switch.dpctl('qos-htb', 'cmd=add,port=2,class=0,rate=10mbit')
    assert switch.dpctl('qos-htb', 'cmd=add,port=2,class=11,rate=8mbit').stderr == ''
    return switch


def test_a_queue_that_gets_classes_below_it(ten):
    """The first of these, the one with the lowest id, takes its packets: dpctl says so."""
    with ten.connect() as c, ten.topo.host(1) as one, ten.topo.host(2) as two:
        c.flow(of13.apply_actions(of13.set_queue(11), of13.output(2)))

        def crosses():
            before = tc.classes(ten.topo.switch_ns, 'p2')
            one.send(eth(udp4()))
            assert two.recv() == eth(udp4())
            classes = tc.classes(ten.topo.switch_ns, 'p2')
            return [n for n in (11, 111, 112, q.DEFAULT_CLASS) if n in classes and
                    classes[n]['packets'] > before.get(n, {}).get('packets', 0)]
        assert crosses() == [11]
        assert ten.dpctl('qos-htb', 'cmd=add,port=2,class=112,rate=1mbit,parent=11').stderr == ''
        assert crosses() == [11, 112]
        assert ten.dpctl('qos-htb', 'cmd=add,port=2,class=111,rate=1mbit,parent=11').stderr == ''
        assert crosses() == [11, 111]
        assert 'packets for queue 11 go to class 111' in ten.dpctl('qos-show').stdout
        said = ten.dpctl('trace', 'in_port=1').stdout
        assert 'queue 11: class 111 below it takes it' in said and 'is not there' not in said
        assert 'queue 11 by class 111 below it: at least 1 Mbit/s' in said
        ten.dpctl('qos-htb', 'cmd=del,port=2,class=111')
        assert crosses() == [11, 112]
        ten.dpctl('qos-htb', 'cmd=del,port=2,class=112')
        assert crosses() == [11]
        assert 'packets for queue' not in ten.dpctl('qos-show').stdout
