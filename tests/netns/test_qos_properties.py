# SPDX-License-Identifier: Apache-2.0
"""Properties 31 to 49, one at a time: set by message and by dpctl, read back from the kernel, changed by both,
as it was after a refusal.  (OFFLOAD needs hardware: test_qos_tx_queues.py.)"""
import pytest

from support import qosmsg as q, tc
from support.qostree import MBIT, ask
from support.undo import refuse, refusing

pytestmark = pytest.mark.testkernel

AF11, AF12 = (1, 1, 30_000, 60_000, 90_000, 20_000), (1, 1, 20_480, 40_960, 92_160, 50_000)
TBF, GRED = {'rate': 3 * MBIT}, {'limit': 100_000}

# (kind, property): (what else is needed, by message; a value and what the kernel then has;
#                    another in dpctl's words, as the dump tells it, and what the kernel then has)
ROWS = {
    ('htb', 'overhead'): ({}, 44, 44, 'overhead=20', 20, 20),
    ('htb', 'mpu'): ({}, 64, 64, 'mpu=96', 96, 96),
    ('htb', 'linklayer'): ({}, 1, 2, 'linklayer=ethernet', 0, 1),
    ('htb', 'name'): ({}, 'voice', None, 'name=B%C3%BCro', 'Büro', None),
    ('htb', 'promise'): ({}, 500, None, 'promise=2s', 2000, None),
    ('hfsc', 'name'): ({'service_curve': [(2, 0, 0, MBIT)]}, 'voice', None, 'name=data', 'data', None),
    ('hfsc', 'promise'): ({'service_curve': [(2, 0, 0, MBIT)]}, 500, None, 'promise=2s', 2000, None),
    ('drr', 'name'): ({}, 'voice', None, 'name=data', 'data', None),
    ('drr', 'promise'): ({}, 500, None, 'promise=2s', 2000, None),
    ('tbf', 'overhead'): (TBF, 44, 44, 'overhead=20', 20, 20),
    ('tbf', 'mpu'): (TBF, 64, 64, 'mpu=96', 96, 96),
    ('tbf', 'linklayer'): (TBF, 1, 2, 'linklayer=ethernet', 0, 1),
    ('cake', 'overhead'): ({}, 20, 20, 'overhead=-8', -8, -8),
    ('cake', 'mpu'): ({}, 64, 64, 'mpu=96', 96, 96),
    ('cake', 'linklayer'): ({}, 2, 2, 'linklayer=atm', 1, 1),
    ('cake', 'flow_mode'): ({}, 6, 6, 'flow_mode=dual-srchost', 5, 5),
    ('cake', 'nat'): ({}, 1, 1, 'nat=no', 0, 0),
    ('cake', 'wash'): ({}, 1, 1, 'wash=no', 0, 0),
    ('cake', 'ack_filter'): ({}, 1, 1, 'ack_filter=aggressive', 2, 2),
    ('cake', 'ingress'): ({}, 1, 1, 'ingress=no', 0, 0),
    ('cake', 'split_gso'): ({}, 0, 0, 'split_gso=yes', 1, 1),
    ('cake', 'memory_limit'): ({}, 500_000, 500_000, 'memory_limit=600kb', 614_400, 614_400),
    ('cake', 'fwmark'): ({}, 0xff00, 0xff00, 'fwmark=0xf', 15, 15),
    ('cake', 'autorate_ingress'): ({'rate': 7 * MBIT}, 1, 1, 'autorate_ingress=no', 0, 0),
    ('fq_codel', 'memory_limit'): ({}, 4_000_000, 4_000_000, 'memory_limit=8mb', 8 << 20, 8 << 20),
    ('fq_codel', 'ce_threshold_us'): ({}, 2000, 2000, 'ce_threshold=1ms', 1000, 1000),
    ('fq_codel', 'drop_batch'): ({}, 8, 8, 'drop_batch=16', 16, 16),
    ('fq_pie', 'memory_limit'): ({}, 4_000_000, 4_000_000, 'memory_limit=8mb', 8 << 20, 8 << 20),
    ('codel', 'ce_threshold_us'): ({}, 2000, 2000, 'ce_threshold=1ms', 1000, 1000),
    ('fq', 'ce_threshold_us'): ({}, 3000, 3000, 'ce_threshold=1ms', 1000, 1000),
    ('fq', 'max_rate'): ({}, 2 * MBIT, 2 * MBIT // 8, 'max_rate=4mbit', 4 * MBIT, 4 * MBIT // 8),
    ('gred', 'drop_precedence'): (GRED, [AF11], AF11[2:5], 'dp1=20kb/40kb/90kb/5%/1', [AF12], AF12[2:5]),
}
IN_KERNEL = {('cake', 'linklayer'): 'atm', ('cake', 'memory_limit'): 'memory',
             ('cake', 'autorate_ingress'): 'autorate',
             **{(kind, 'ce_threshold_us'): 'ce_threshold' for kind in ('codel', 'fq', 'fq_codel')}}
OF_CLASSES = 'htb', 'hfsc', 'drr'
NEEDED = {'htb': 'rate=1mbit,', 'hfsc': 'ls=1mbit,', 'tbf': 'rate=3mbit,', 'gred': 'limit=100000,',
          'cake autorate_ingress': 'bandwidth=7mbit,'}


class Place:
    """Queue 10 of port 2: its class, or what is below it"""

    def __init__(self, ns, conn, kind, name):
        self.ns, self.conn, self.kind, self.name = ns, conn, kind, name
        self.object = q.CLASS if kind in OF_CLASSES else q.QDISC
        if self.object == q.QDISC:
            ask(conn, q.htb_class(q.ADD, 2, 10, 5 * MBIT))

    def content(self, action, **properties):
        if self.kind == 'htb':
            return q.htb_class(action, 2, 10, MBIT, **properties)
        sched = q.SCHEDS.index(self.kind)
        return q.content(sched, self.object, action, 2, 10, b'', q.props(**properties))

    def dpctl(self, switch, action, word):
        needed = NEEDED.get(f'{self.kind} {self.name}', NEEDED.get(self.kind, ''))
        switch.dpctl(f'qos-{self.kind}', f'cmd={action},port=2,class=10,{needed}{word}')

    def is_(self, told, wanted):
        entry, = [e for e in q.dump(self.conn, 2, 10) if e['object_type'] == self.object]
        assert entry['properties'][self.name] == told
        if wanted is None:                     # the kernel has no place for it
            return
        row = tc.classes(self.ns, 'p2')[10] if self.object == q.CLASS else tc.leaf(self.ns, 'p2', 10)
        if self.kind == 'gred':
            got = row['options']['dps'][1][1:4]
        else:
            got = row['options'][IN_KERNEL.get((self.kind, self.name), self.name)]
        if self.name == 'ce_threshold_us':     # in 1.024 us
            wanted = pytest.approx(wanted, abs=2)
        assert got == wanted


@pytest.mark.parametrize('kind,name', ROWS)
def test_a_property(four_ports, need, kind, name):
    need(kind)
    more, first, in_kernel, word, second, then_in_kernel = ROWS[kind, name]
    with refusing(four_ports) as (switch, conn):
        place = Place(four_ports.switch_ns, conn, kind, name)
        ask(conn, place.content(q.ADD, **more, **{name: first}))
        place.is_(first, in_kernel)
        refuse(conn, place.content(q.DEL))
        place.is_(first, in_kernel)
        place.dpctl(switch, 'change', word)
        place.is_(second, then_in_kernel)
        refuse(conn, place.content(q.CHANGE, **more, **{name: first}))
        place.is_(second, then_in_kernel)
        ask(conn, place.content(q.CHANGE, **more, **{name: first}))
        place.is_(first, in_kernel)
        ask(conn, place.content(q.DEL))
        place.dpctl(switch, 'add', word)
        place.is_(second, then_in_kernel)
