# SPDX-License-Identifier: Apache-2.0
"""dpctl says what a tree can't keep: guarantees above a ceil, packets of a queue that gets classes below it."""
import pytest

from support import of13, qosmsg as q, tc
from support.topo import eth, udp4
from test_dpctl_rates import at_a_terminal

SUM = 'come to 16mbit, above its ceil of 10mbit'


@pytest.fixture(name='ten')
def with_ten_mbit(switch):
    switch.dpctl('qos-htb', 'cmd=add,port=2,class=0,rate=10mbit')
    assert switch.dpctl('qos-htb', 'cmd=add,port=2,class=11,rate=8mbit').stderr == ''
    return switch


def test_guarantees_above_the_ceil(ten):
    done = ten.dpctl('qos-htb', 'cmd=add,port=2,class=12,rate=8mbit')
    assert SUM in done.stderr and 'root class' in done.stderr
    assert ten.dpctl('qos-htb', 'cmd=change,port=2,class=12,rate=2mbit').stderr == ''
    assert '10mbit, above its ceil of 9mbit' in ten.dpctl('qos-htb', 'cmd=change,port=2,class=0,rate=9mbit').stderr
    assert '10.1mbit' not in ten.dpctl('qos-htb', 'cmd=change,port=2,class=0,rate=10mbit').stderr


def test_shares_above_the_ceil_in_a_profile(switch, tmp_path):
    profile = tmp_path / 'mine.qos'
    profile.write_text('htb class=0,rate=10mbit\nhtb class=1,rate=70%\nhtb class=2,rate=60%\n'
                       'in\nhtb class=0,rate=10mbit\nhtb class=1,rate=70%\nhtb class=2,rate=30%\n')
    done = switch.dpctl('qos-apply', str(profile), 'port=2')
    assert 'mine.qos:3: the guarantees below the root class come to 13mbit, above its ceil of 10mbit' in done.stderr
    assert done.stderr.count('guarantees') == 1


@pytest.mark.parametrize('answer', [b'y\n', b'n\n'])
def test_at_a_terminal_it_is_asked(ten, answer):
    status, shown = at_a_terminal(ten, answer, 'qos-htb', 'cmd=add,port=2,class=12,rate=8mbit')
    assert '16mbit' in shown and 'Go on?' in shown
    there = 12 in tc.classes(ten.topo.switch_ns, 'p2')
    assert (status, there) == ((0, True) if answer == b'y\n' else (2, False))


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
