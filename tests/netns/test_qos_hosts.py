# SPDX-License-Identifier: Apache-2.0
"""qos-hosts: a queue and a flow for each host of a prefix."""
import json

import pytest

from support import qosmsg as q, tc
from support.qostree import MBIT, ask, running
from support.topo import udp_frame

RATES = 'rate=1mbit,ceil=2mbit,then=normal'


def flows(conn):
    return sorted((str(f['match']), str(f['instructions'])) for f in conn.flows())


def queues(ns, dev='p2'):
    return {n for n in tc.classes(ns, dev) if n <= 0xffef} if tc.root(ns, dev) else set()


def hosts(switch, *words):
    return json.loads(switch.dpctl('--json', 'qos-hosts', 'port=2', 'show', *words).stdout)


def refused(switch, *words):
    done = switch.dpctl('qos-hosts', *words, check=False)
    assert done.returncode
    return done.stderr


def test_a_queue_and_a_flow_for_each(topo, ns):
    with running(topo) as (switch, conn), topo.host(1) as one, topo.host(2) as two:
        switch.dpctl('qos-hosts', f'port=2,prefix=10.0.0.0/28,first=100,{RATES}', 'then=output:2')
        assert queues(ns) == set(range(100, 114))
        found = hosts(switch)
        assert [(h['host'], h['queue'], h['by']) for h in found] == \
            [(f'10.0.0.{i}', 99 + i, 'dst') for i in range(1, 15)]
        assert {(h['rate'], h['ceil']) for h in found} == {(MBIT, 2 * MBIT)}
        frame = udp_frame(dst=7)
        one.send(frame)
        assert two.recv(2, lambda f: f == frame)
        assert [h['host'] for h in hosts(switch) if h['packets']] == ['10.0.0.7']
        text = switch.dpctl('qos-hosts', 'port=2', 'show').stdout
        assert '10.0.0.14' in text and '2mbit' in text

        # Again with another rate: the queues change, flows and numbers stay.
        before = [h['queue'] for h in hosts(switch)]
        switch.dpctl('qos-hosts', 'port=2,prefix=10.0.0.0/28,rate=3mbit', 'then=output:2')
        assert {(h['rate'], h['ceil']) for h in hosts(switch)} == {(3 * MBIT, 3 * MBIT)}
        assert [h['queue'] for h in hosts(switch)] == before

        # Two prefixes, one goes.
        switch.dpctl('qos-hosts', f'port=2,prefix=2001:db8::/124,by=src,{RATES}', 'then=output:2')
        assert len(hosts(switch)) == 14 + 16
        assert len(hosts(switch, 'prefix=10.0.0.0/29')) == 6
        switch.dpctl('qos-hosts', 'port=2', 'del', 'prefix=10.0.0.0/28')
        assert [h['by'] for h in hosts(switch)] == ['src'] * 16
        switch.dpctl('qos-hosts', 'port=2', 'del')
        assert not hosts(switch) and not queues(ns) and not conn.flows()


def test_refusals_say_what_would_be_right(topo, ns):
    with running(topo) as (switch, conn):
        ask(conn, q.htb_class(q.ADD, 2, 5, MBIT))
        add = f'port=2,prefix=10.0.0.0/28,{RATES}'
        assert 'write first=6' in refused(switch, add)
        switch.dpctl('qos-hosts', add + ',first=6')
        assert 'write first=6' in refused(switch, add + ',first=50')
        assert "another host's: write first=20" in \
            refused(switch, f'port=2,prefix=10.0.1.0/28,first=10,{RATES}')
        assert 'no rate given' in refused(switch, 'port=2,prefix=10.0.0.0/28')
        assert 'no prefix given' in refused(switch, 'port=2,' + RATES)
        assert 'no port given' in refused(switch, 'prefix=10.0.0.0/28')
        assert 'write prefix=10.0.0.0/24' in refused(switch, f'port=2,prefix=10.0.0.3/24,{RATES}')
        assert 'prefix of /20 or longer' in refused(switch, f'port=2,prefix=10.0.0.0/8,{RATES}')
        assert 'each=64' in refused(switch, f'port=2,prefix=2001:db8::/48,{RATES}')
        assert 'first=65506' in \
            refused(switch, f'port=2,prefix=10.1.0.0/28,first=65519,{RATES}')
        assert 'by must be dst or src' in refused(switch, add + ',by=mac')
        assert 'no meaning here' in refused(switch, add + ',direction=in')
        assert 'qos-hosts port=1 show' in refused(switch, 'port=1', 'del')
        assert len(hosts(switch)) == 14 and queues(ns) == {5, *range(6, 20)}


def test_all_or_nothing(topo, ns):
    """A queue that the switch refuses: no other queue, no flow."""
    with running(topo) as (switch, conn):
        ask(conn, q.htb_class(q.ADD, 2, 1000, MBIT))
        ask(conn, q.qdisc(q.PFIFO, q.ADD, 2, 1000, 9))
        assert 'parent' in refused(switch, f'port=2,prefix=10.0.0.0/28,parent=1000,{RATES}')
        assert queues(ns) == {1000} and not conn.flows()


def test_dry_run(topo, ns):
    with running(topo) as (switch, conn):
        said = switch.dpctl('--dry-run', 'qos-hosts',
                            f'port=2,prefix=2001:db8::/60,each=64,first=7,{RATES}').stdout
        assert 'ipv6_dst=2001:db8:0:f::/64' in said
        assert said.count('qos-htb cmd=replace') == 16 and not queues(ns) and not conn.flows()


@pytest.mark.long
def test_the_most_there_can_be(topo, ns):
    with running(topo) as (switch, conn):
        switch.dpctl('qos-hosts', f'port=2,prefix=2001:db8::/116,{RATES}')
        assert len(queues(ns)) == 4096 and len(hosts(switch)) == 4096
        switch.dpctl('qos-hosts', 'port=2', 'del')
        assert not queues(ns)
