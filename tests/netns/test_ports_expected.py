# SPDX-License-Identifier: Apache-2.0
"""--wait-for-interfaces: ports whose interfaces come after the switch has started."""
from support.topo import Switch, Topology, sh, udp_frame
from support.wait import until


def test_an_interface_that_comes_later():
    with Topology(2) as topo:
        sh('ip', '-n', topo.switch_ns, 'link', 'set', 'p2', 'name', 'elsewhere')
        with Switch(topo, '--wait-for-interfaces', interfaces=['p1', 'p2']) as switch, \
                topo.host(1) as h1, topo.host(2) as h2:
            assert 'port 2 (p2): there is no such interface; the port waits for it' in switch.output()
            ports = switch.dpctl('port-desc').stdout
            assert 'p1' in ports and 'p2' in ports
            switch.dpctl('flow-mod', 'cmd=add,table=0', 'in_port=1', 'apply:output=2')
            h1.send(udp_frame(1))
            assert h2.recv(0.2) is None
            refused = switch.dpctl('qos-htb', 'cmd=add,port=2,class=10,rate=6mbit', check=False)
            assert refused.returncode == 1

            sh('ip', '-n', topo.switch_ns, 'link', 'set', 'elsewhere', 'down')
            sh('ip', '-n', topo.switch_ns, 'link', 'set', 'elsewhere', 'name', 'p2')
            sh('ip', '-n', topo.switch_ns, 'link', 'set', 'p2', 'up')
            until(lambda: 'port 2 (p2): the interface has come' in switch.output(), 'p2')
            until(lambda: passes(h1, h2), 'packets to p2')
            switch.dpctl('qos-htb', 'cmd=add,port=2,class=10,rate=6mbit')
            assert 'class 10' in switch.dpctl('qos-show').stdout

            # Lost and back again, as any other.
            sh('ip', '-n', topo.switch_ns, 'link', 'del', 'p2')
            until(lambda: 'port 2 (p2): the interface is gone' in switch.output(), 'gone')


def passes(h1, h2):
    h1.send(udp_frame(1))
    return h2.recv(0.2) is not None


def test_without_the_option_it_is_an_error():
    with Topology(1) as topo, Switch(topo, interfaces=['p1', 'nosuch'], wait=False) as switch:
        assert switch.process.wait(60) == 1
        assert 'interface nosuch: there is no such interface' in switch.output()
        switch.process.returncode = 0               # so it should end


def test_an_expected_port_can_be_removed():
    with Topology(1) as topo, \
            Switch(topo, '--wait-for-interfaces', interfaces=['late', 'p1']) as switch:
        switch.dpctl('port-del', '1')
        assert 'late' not in switch.dpctl('port-desc').stdout
