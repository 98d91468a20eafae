# SPDX-License-Identifier: Apache-2.0
"""Where every frame of an interval is, when all rests."""
import json
import time

from support import qosmsg as q, tc
from support.topo import sh

LIVE = 4                    # OFPPS_LIVE


def link_stats(ns, name):
    stats = json.loads(sh('ip', '-n', ns, '-j', '-s', 'link', 'show', 'dev', name))[0]['stats64']
    return stats['rx'], stats['tx']


class Account:
    """close() compares what has happened since the last time"""

    def __init__(self, topo, conn):
        self.topo, self.conn, self.rows = topo, conn, []
        self.last = None

    def ports_are_there(self, patience=30):
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            ports = self.conn.ports()
            if all(ports[n]['state'] & LIVE for n in range(1, self.topo.ports + 1)):
                return True
            time.sleep(0.05)
        return False

    def counted(self):
        """By the switch: frames that came in, rings that were full, frames sent, dropped"""
        stats = [row for no, row in self.conn.port_stats().items() if no <= self.topo.ports]
        drops = {n: v for n, v in q.counters(self.conn).items() if n.startswith('drop.')}
        return {'received': sum(r['rx_packets'] for r in stats), 'rx_dropped': sum(r['rx_dropped'] for r in stats),
                'sent': sum(r['tx_packets'] for r in stats), 'dropped': sum(drops.values()),
                'full': drops['drop.tx_full']}

    def outside(self):
        """By the interfaces: what hosts sent and heard, what the switch's interfaces and queues dropped"""
        found = {'hosts_sent': 0, 'heard': 0, 'interface_drops': 0, 'queue_drops': 0}
        for n in range(1, self.topo.ports + 1):
            heard, sent = link_stats(self.topo.host_ns(n), 'e0')
            into, out = link_stats(self.topo.switch_ns, f'p{n}')
            found['hosts_sent'] += sent['packets']
            found['heard'] += heard['packets']
            found['interface_drops'] += out['dropped'] + into['dropped']
            root = tc.root(self.topo.switch_ns, f'p{n}')       # also has what those below it drop
            found['queue_drops'] += root['drops'] if root else 0
        return found

    def settled(self, patience=60):
        """Both, once they no longer change"""
        before, deadline = None, time.monotonic() + patience
        while True:
            now = {**self.counted(), **self.outside()}
            if now == before or time.monotonic() > deadline:
                return now, now == before
            before = now
            time.sleep(0.3)

    def close(self, calm):
        """-> sentences of what is wrong.  calm: no queue was changed and no port flapped since the last time, so
        that also what was sent must have arrived or be counted by a queue or an interface."""
        if not self.ports_are_there():
            return ['a port is not live although its interface is up']
        now, still = self.settled()
        found = [] if still else [f'it does not come to rest: {now}']
        if self.last:
            d = {k: now[k] - self.last[k] for k in now}
            found += self.compare(d, calm)
            self.rows.append({'calm': calm, **d})
        self.last = now
        return found

    @staticmethod
    def compare(d, calm):
        found = []
        if d['received'] != d['sent'] + d['dropped']:
            found.append(f"{d['received']} received, but {d['sent']} sent and {d['dropped']} dropped: "
                         f"{d['received'] - d['sent'] - d['dropped']} are missing")
        if d['heard'] > d['sent']:
            found.append(f"{d['heard']} arrived, but only {d['sent']} were sent")
        if calm and d['hosts_sent'] != d['received'] + d['rx_dropped']:
            found.append(f"hosts sent {d['hosts_sent']}, but {d['received']} were received and {d['rx_dropped']} found "
                         'the ring full')
        lost = d['sent'] - d['heard']
        if calm and lost > d['queue_drops'] + d['interface_drops']:
            found.append(f"{lost} of {d['sent']} sent frames did not arrive, but queues dropped {d['queue_drops']} and "
                         f"interfaces {d['interface_drops']}")
        return found
