# SPDX-License-Identifier: Apache-2.0
"""--leaf: the scheduler below a queue that nobody gave one."""
import subprocess

import pytest

from support import qosmsg as q, tc
from support.qostree import MBIT, ask, asked_for, kernel, running
from support.topo import binary

FIFO = '--leaf=pfifo,limit=33'
DEFAULT = 0xfffe


def below(ns, queue, dev='p2'):
    """Kind and options of what is below the class; None: the kernel's own"""
    leaf = tc.leaf(ns, dev, queue)
    return (leaf['kind'], leaf['options']) if leaf and leaf['handle'] else None


OWN = ('pfifo', {'limit': 33})


def test_comes_and_gives_way(topo, ns):
    with running(topo, FIFO) as (switch, conn):
        ask(conn, q.htb_class(q.ADD, 2, 10, MBIT))
        assert below(ns, 10) == below(ns, DEFAULT) == OWN
        assert [e['class_id'] for e in q.dump(conn, 2) if e['object_type'] == q.QDISC] == [0]
        assert 'pfifo' not in switch.dpctl('qos-show', 'port=2').stdout
        q.refused(conn, q.NATIVE, q.qdisc(q.PFIFO, q.DEL, 2, 10), q.NOT_FOUND)
        ask(conn, q.qdisc(q.BFIFO, q.ADD, 2, 10, 50_000))
        assert below(ns, 10) == ('bfifo', {'limit': 50_000})
        ask(conn, q.qdisc(q.BFIFO, q.DEL, 2, 10))
        assert below(ns, 10) == OWN
        ask(conn, q.htb_class(q.ADD, 2, 11, MBIT, parent=10))
        assert (below(ns, 10), below(ns, 11)) == (None, OWN)
        ask(conn, q.htb_class(q.DEL, 2, 11))
        assert below(ns, 10) == OWN
        ask(conn, q.htb_class(q.DEL, 2, 10))
        assert tc.root(ns, 'p2') is None


def test_restart_and_drift(topo, ns):
    with running(topo, FIFO, '--qos-foreign=repair') as (switch, conn):
        ask(conn, q.htb_class(q.ADD, 2, 10, MBIT))
        ask(conn, q.htb_class(q.ADD, 2, 20, MBIT))
        ask(conn, q.qdisc(q.PFIFO, q.ADD, 2, 20, 7))
        before, shown = kernel(ns), asked_for(conn)
        switch.process.kill()
        switch.process.wait()
        with tc.Events(ns, 'p2') as events:
            switch.start()
            with switch.connect() as again:
                assert asked_for(again) == shown and kernel(ns) == before
                assert q.qos_ports(again)[2, 0]['foreign_changes'] == 0
                assert events.changes() == []
                ask(again, q.qdisc(q.PFIFO, q.DEL, 2, 20))
                assert below(ns, 20) == OWN


def test_a_profile_asks_for_nothing_more(topo, ns, tmp_path):
    profile = tmp_path / 'two.qos'
    profile.write_text('htb class=10,rate=1mbit\nhtb class=20,rate=2mbit\npfifo class=20,limit=7\n')
    with running(topo, FIFO) as (switch, conn):
        switch.dpctl('qos-apply', str(profile), 'port=2')
        assert (below(ns, 10), below(ns, 20)) == (OWN, ('pfifo', {'limit': 7}))
        with tc.Events(ns, 'p2') as events:
            switch.dpctl('qos-apply', str(profile), 'port=2')
            assert events.changes() == []


def test_none(topo, ns):
    with running(topo, '--leaf=none') as (_, conn):
        ask(conn, q.htb_class(q.ADD, 2, 10, MBIT))
        assert below(ns, 10) is None and below(ns, DEFAULT) is None


@pytest.mark.testkernel
@pytest.mark.parametrize('kind', ['htb', 'hfsc', 'drr'])
def test_fq_codel_is_the_default(four_ports, need, kind):
    need('fq_codel')
    need(kind)
    ns = four_ports.switch_ns
    with running(four_ports) as (switch, _):
        words = {'htb': 'rate=1mbit', 'hfsc': 'ls=1mbit', 'drr': 'quantum=1514'}[kind]
        switch.dpctl(f'qos-{kind}', f'cmd=add,port=2,class=10,{words}')
        for queue in 10, DEFAULT:
            found, options = below(ns, queue)
            assert found == 'fq_codel' and options['flows'] == 128
        assert 'fq_codel' not in switch.dpctl('qos-show', 'port=2').stdout
        switch.dpctl('qos-fq_codel', 'cmd=add,port=2,class=10,flows=64')
        assert below(ns, 10)[1]['flows'] == 64
        switch.dpctl('qos-fq_codel', 'cmd=del,port=2,class=10')
        assert below(ns, 10)[1]['flows'] == 128


@pytest.mark.parametrize('value, said', [
    ('htb', 'a scheduler without classes'), ('nonsense', 'a scheduler without classes'),
    ('pfifo,limit=x', 'limit'), ('pfifo,bogus=1', 'bogus'), ('pfifo,' + 'x' * 300, 'too long')])
def test_wrong_words(value, said):
    done = subprocess.run([binary('datapath/ofdatapath'), '--check', f'--leaf={value}'], text=True,
                          capture_output=True, check=False)
    assert done.returncode and said in done.stdout + done.stderr
