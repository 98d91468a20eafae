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
    """Its packets go to the default class: dpctl says so before, and qos-show as long as it is so."""
    with ten.connect() as c, ten.topo.host(1) as one, ten.topo.host(2) as two:
        c.flow(of13.apply_actions(of13.set_queue(11), of13.output(2)))

        def crosses():
            one.send(eth(udp4()))
            assert two.recv() == eth(udp4())
            classes = tc.classes(ten.topo.switch_ns, 'p2')
            return [n for n in (11, 111, q.DEFAULT_CLASS) if classes.get(n, {}).get('packets')]
        assert crosses() == [11]
        done = ten.dpctl('qos-htb', 'cmd=add,port=2,class=111,rate=1mbit,parent=11')
        assert 'class 11 gets its first class below it: packets for queue 11 then go to the default class' in done.stderr
        assert q.DEFAULT_CLASS in crosses()
        assert 'packets for queue 11 go to the default class' in ten.dpctl('qos-show').stdout
        assert ten.dpctl('qos-htb', 'cmd=add,port=2,class=112,rate=1mbit,parent=11').stderr == ''
        ten.dpctl('qos-htb', 'cmd=del,port=2,class=111')
        ten.dpctl('qos-htb', 'cmd=del,port=2,class=112')
        assert 'packets for queue' not in ten.dpctl('qos-show').stdout
