# SPDX-License-Identifier: Apache-2.0
"""Random valid messages: flows, groups, meters and queues, as several controllers might send them.

    kind, body = Requests(random.Random(1)).message()
"""
from . import of13, qosmsg as q, tc
from .of13 import (apply_actions, band_drop, bucket, flow_mod, goto_table, group_mod, match, meter_mod, output,
                   set_field, set_queue, write_actions)

MBIT = 1_000_000
LEAVES = {q.PFIFO: (50,), q.BFIFO: (50_000,), q.SFQ: (7, 3000), q.FQ_CODEL: (), q.FQ: (), q.CAKE: ()}


class Requests:
    """Random valid messages: (type, body).  A frame is never sent twice, so that frames can be counted."""

    def __init__(self, r, ports=4, tables=4):
        self.r, self.ports, self.tables = r, ports, tables
        self.leaves = [s for s in LEAVES if tc.has_scheduler(q.SCHEDS[s])]

    def match(self):
        r, fields = self.r, {}
        if r.random() < 0.6:
            fields['in_port'] = r.randint(1, self.ports)
        if r.random() < 0.5:
            fields['eth_type'] = 0x800
            if r.random() < 0.7:
                fields['ipv4_dst'] = (f'10.0.0.{r.randint(1, self.ports)}', r.choice(['255.255.255.255', '255.255.255.0']))
            if r.random() < 0.3:
                fields['ip_proto'] = 17
                if r.random() < 0.5:
                    fields['udp_dst'] = r.choice([7, 2000])
        return match(**{k: v for k, v in fields.items() if k != 'ipv4_dst'},
                     **({'ipv4_dst': fields['ipv4_dst']} if 'ipv4_dst' in fields else {}))

    def sends(self):
        """Actions that send a packet at most once"""
        r, actions = self.r, []
        if r.random() < 0.3:
            actions.append(set_queue(r.randint(10, 13)))
        if r.random() < 0.2:
            actions.append(set_field(eth_dst=bytes([2, 0, 0, 0, 0, r.randint(1, 9)])))
        if r.random() < 0.25:
            actions.append(of13.group(r.randint(1, 8)))
        elif r.random() < 0.85:
            actions.append(output(r.randint(1, self.ports)))
        return actions

    def instructions(self, table):
        r, found = self.r, []
        if r.random() < 0.25:
            found.append(of13.meter(r.randint(1, 4)))
        if r.random() < 0.35 and table + 1 < self.tables:
            return (*found, goto_table(r.randint(table + 1, self.tables - 1)))
        return (*found, r.choice([apply_actions, write_actions])(*self.sends()))

    def flow(self):
        r, table = self.r, self.r.randrange(self.tables)
        command = r.choice([of13.ADD] * 6 + [of13.MODIFY, of13.MODIFY_STRICT, of13.DELETE, of13.DELETE_STRICT])
        if command == of13.DELETE and r.random() < 0.7:
            command = of13.DELETE_STRICT
        return of13.FLOW_MOD, flow_mod(command, match=self.match(), table_id=table, priority=r.randint(0, 20),
                                       cookie=r.randint(0, 9), instructions=self.instructions(table),
                                       idle=r.choice([0, 0, 0, 1]), hard=r.choice([0, 0, 0, 0, 1]))

    def group(self):
        """One that selects, one of one bucket or none: a packet leaves once"""
        r, number = self.r, self.r.randint(1, 8)
        kind = r.choice([of13.GT_SELECT, of13.GT_INDIRECT, of13.GT_FF])
        n = 1 if kind == of13.GT_INDIRECT else r.randint(1, 4)
        buckets = []
        for _ in range(n):
            to = output(r.randint(1, self.ports)) if r.random() < 0.8 or number == 8 else \
                of13.group(r.randint(number + 1, 8))
            watch = {'watch_port': r.randint(1, self.ports)} if kind == of13.GT_FF else {}
            buckets.append(bucket(to, weight=1 if kind == of13.GT_SELECT else 0, **watch))
        command = r.choice([0, 0, 1, 1, 2])
        return of13.GROUP_MOD, group_mod(command, kind, number, *(buckets if command < 2 else ()))

    def meter(self):
        return of13.METER_MOD, meter_mod(self.r.choice([0, 0, 1, 1, 2]), self.r.randint(1, 4),
                                         band_drop(self.r.randint(1, 1000)))

    def queue(self):
        r = self.r
        port, number = r.randint(1, self.ports), r.randint(10, 13)
        action = r.choice([q.ADD, q.ADD, q.CHANGE, q.REPLACE, q.DEL])
        if r.random() < 0.6:
            parent = {'parent': r.randint(10, 13)} if r.random() < 0.2 and action != q.DEL else {}
            return q.htb_class(action, port, number, r.randint(100, 900) * MBIT, 1000 * MBIT, r.randint(0, 7),
                               **parent)
        sched = r.choice(self.leaves)
        return q.qdisc(sched, action, port, number, *LEAVES[sched])

    def message(self):
        what = self.r.random()
        if what < 0.55:
            return self.flow()
        if what < 0.7:
            return self.group()
        if what < 0.8:
            return self.meter()
        return q.T_QOS, self.queue()
