# SPDX-License-Identifier: Apache-2.0
"""dpctl metrics and top with a real switch: numbers that move, and how queues are served."""
import json

from support import qosmsg as q
from support.load import Cbr
from support.of13 import apply_actions, output, set_queue
from support.qostree import FRAME, MBIT, ask, running
from support.wait import until



def metrics(switch):
    """{(name, labels that matter): value}"""
    found = {}
    for family in json.loads(switch.dpctl('--json', 'metrics').stdout):
        for sample in family['samples'] if family['type'] != 'histogram' else ():
            labels = {k: v for k, v in sample['labels'].items() if k not in ('dp', 'name')}
            found[family['name'], tuple(labels.values())] = sample['value']
    return found



def test_a_queue_that_waits(topo, ns, need):
    """It gets its rate, so time passes in which packets wait, and none in which it gets too little."""
    need('htb')
    with running(topo) as (switch, conn):
        ask(conn, q.htb_class(q.ADD, 2, 10, 2 * MBIT))
        conn.flow(apply_actions(set_queue(10), output(2)))
        queue = ('2', 'out', '10')
        first = metrics(switch)
        assert first['ofqos_queue_backlogged_seconds_total', queue] == 0
        assert first['ofqos_queue_rate_bytes_per_second', queue] == 250000
        with Cbr(topo, 1, (FRAME, 1000)):
            until(lambda: metrics(switch)['ofqos_queue_backlogged_seconds_total', queue] >= 2,
                 'time in which packets waited')
            after = metrics(switch)
        waited = after['ofqos_queue_backlogged_seconds_total', queue]
        assert after['ofqos_queue_below_rate_seconds_total', queue] <= waited
        assert after['ofqos_queue_transmit_bytes_total', queue] > 100000
        assert after['ofqos_queue_lended_packets_total', queue] > 0
        assert after['ofqos_port_receive_packets_total', ('1',)] > 100
        # The kernel handles packets that are alike, where it can
        assert after['ofqos_cache_bypassed_total', ('0',)] + \
            after.get(('ofqos_kernel_hits_total', ()), 0) > 100
        assert after['ofqos_worker_cpu_seconds_total', ('0',)] > 0
        assert after['ofqos_table_matches_total', ('0',)] > 100
