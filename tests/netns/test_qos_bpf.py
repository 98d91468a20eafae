# SPDX-License-Identifier: Apache-2.0
"""BPF: a qdisc by the kind that a BPF program has registered, which no kernel of these tests has."""
import json
import pathlib

import pytest

from support import qosmsg as q, tc
from support.qostree import MBIT, ask

ONE_SWITCH = True
pytestmark = pytest.mark.testkernel
FREE = ('x', 'ofqos_no_such_k')                                 # 1 and 15 characters
TAKEN = ('', 'sixteen_letters_', 'a' * 31, 'Upper', 'a-b', '../x', 'fq_codel', 'htb', 'mq', 'bpf', 'none',
         'ingress', 'clsact', 'noqueue', 'noop', 'pfifo_fast', 'hhf', 'qfq', 'teql0')


@pytest.mark.parametrize('envelope', q.ENVELOPES)
@pytest.mark.parametrize('action', [q.ADD, q.REPLACE])
def test_refused(four_ports, conn, envelope, action):
    """With the reason; nothing has changed, also where something else is there."""
    ns = four_ports.switch_ns
    ask(conn, q.htb_class(q.ADD, 2, 10, MBIT))
    ask(conn, q.htb_class(q.ADD, 2, 11, MBIT))
    ask(conn, q.qdisc(q.PFIFO, q.ADD, 2, 11, 50))
    before = tc.qdiscs(ns, 'p2'), tc.classes(ns, 'p2'), q.dump(conn)
    for port, queue in ((2, 10), (1, 0)) + (((2, 11),) if action == q.REPLACE else ()):
        for name in TAKEN:
            error = q.refused(conn, envelope, q.qdisc(q.BPF, action, port, queue, name=name), q.BAD_PARAM)
            assert error.errno == 0
        error = q.refused(conn, envelope, q.qdisc(q.BPF, action, port, queue), q.BAD_PARAM)
        assert 'needs a name' in error.text
        for name in FREE:
            error = q.refused(conn, envelope, q.qdisc(q.BPF, action, port, queue, name=name), q.UNSUPPORTED)
            assert error.errno == 2 and f'no qdisc {name};' in error.text and 'BPF program' in error.text
    q.refused(conn, envelope, q.qdisc(q.BPF, action, 2, 10, name='x', limit=5), q.BAD_PROPERTY)
    q.refused(conn, envelope, q.qdisc(q.BPF, q.CHANGE, 2, 10, name='x'), q.NOT_FOUND)
    q.refused(conn, envelope, q.qdisc(q.BPF, q.DEL, 2, 10), q.NOT_FOUND)
    assert (tc.qdiscs(ns, 'p2'), tc.classes(ns, 'p2'), q.dump(conn)) == before


def test_somebody_elses_root_stays(four_ports, conn):
    """It has the handle that the switch's would get, so it would have to go first."""
    ns = four_ports.switch_ns
    tc.tc(ns, 'qdisc', 'add', 'dev', 'p2', 'root', 'handle', 'f51:', 'pfifo', 'limit', '7')
    try:
        q.refused(conn, q.NATIVE, q.qdisc(q.BPF, q.REPLACE, 2, name='x'), q.UNSUPPORTED)
        assert tc.root(ns, 'p2')['kind'] == 'pfifo'
    finally:
        tc.tc(ns, 'qdisc', 'del', 'dev', 'p2', 'root')


def test_by_dpctl(switch, conn):
    for word in 'name=ofqos_none', 'kind=ofqos_none':
        done = switch.dpctl('qos-bpf', 'cmd=add,port=2,class=0', word, check=False)
        assert done.returncode and 'no qdisc ofqos_none' in done.stderr
    done = switch.dpctl('qos-bpf', 'cmd=add,port=2,class=0', check=False)
    assert done.returncode and 'name' in done.stderr
    has = json.loads(switch.dpctl('--json', 'qos-show', '--kernel').stdout)['schedulers']
    types = pathlib.Path('/sys/kernel/btf/vmlinux')
    there = types.exists() and b'\0bpf_struct_ops_Qdisc_ops\0' in types.read_bytes()
    assert {s['sched']: s['state'] for s in has}['bpf'] == ('yes' if there else 'no')
    assert not q.dump(conn, 2)
