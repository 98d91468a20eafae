# SPDX-License-Identifier: Apache-2.0
"""What is read of the daemon every few seconds, and that none of its counters goes backwards."""
import os
import time

from support import of13, qosmsg as q

TICK = os.sysconf('SC_CLK_TCK')
GAUGES = ('.now', '_now', 'wake_ns', 'cache_used', 'cache_masks', 'cache_entries', 'kernel_entries', 'kernel_masks',
          'queue_sockets', 'ring_bytes', 'stack_size')


def keyed(path, names):
    """{name: value} of a file of /proc, in the file's units"""
    with open(path, encoding='ascii', errors='replace') as f:
        rows = (line.partition(':') for line in f)
        return {name: int(value.split()[0]) for name, _, value in rows if name in names}


def threads(pid):
    """{name of a thread: its processor time in seconds, all of one name together}"""
    found = {}
    for tid in os.listdir(f'/proc/{pid}/task'):
        try:
            with open(f'/proc/{pid}/task/{tid}/stat', encoding='ascii', errors='replace') as f:
                head, _, rest = f.read().rpartition(')')
        except OSError:
            continue                            # it has ended
        name, words = head.partition('(')[2], rest.split()
        name = 'control' if int(tid) == pid else name
        found[name] = found.get(name, 0) + (int(words[11]) + int(words[12])) / TICK
    return found


def process(pid):
    """Memory in bytes, descriptors, threads, processor time"""
    status = keyed(f'/proc/{pid}/status', ('VmRSS', 'RssAnon', 'Threads'))
    return {'rss': status['VmRSS'] * 1024, 'anon': status['RssAnon'] * 1024,
            'pss': keyed(f'/proc/{pid}/smaps_rollup', ('Pss',))['Pss'] * 1024,
            'descriptors': len(os.listdir(f'/proc/{pid}/fd')), 'threads': status['Threads'], 'cpu': threads(pid)}


class Forwards:
    """No counter goes backwards.  An object is the one that was read before if it is older than that reading."""

    def __init__(self):
        self.last, self.wrong, self.compared = {}, [], 0

    def objects(self, kind, rows, key, names, began, ended):
        """rows: dicts with duration_sec, duration_nsec and counters `names`, read between began and ended"""
        seen = {}
        for row in rows:
            age = row['duration_sec'] + row['duration_nsec'] / 1e9
            at = kind, key(row)
            before = self.last.get(at)
            values = [row[n] for n in names]
            if before and ended - age < before[0]:
                self.compare(at, names, before[1], values)
            seen[at] = began, values
        self.last = {at: v for at, v in self.last.items() if at[0] != kind}
        self.last.update(seen)

    def counters(self, found):
        """COUNTERS: since the switch's start"""
        for name, value in found.items():
            if name.endswith(GAUGES):
                continue
            before = self.last.get(('counter', name))
            if before:
                self.compare(('counter', name), ['value'], before[1], [value])
            self.last['counter', name] = 0, [value]

    def compare(self, at, names, before, values):
        for name, a, b in zip(names, before, values):
            self.compared += 1
            if b < a:
                self.wrong.append(f'{at[0]} {at[1]}: {name} was {a}, is {b}')


PORT_COUNTERS = ('rx_packets', 'tx_packets', 'rx_bytes', 'tx_bytes', 'rx_dropped', 'tx_dropped', 'rx_errors',
                 'tx_errors', 'collisions')
PACKETS = ('packet_count', 'byte_count')


class Samples:
    def __init__(self, switch):
        self.switch, self.conn = switch, switch.connect(timeout=60)
        self.forwards, self.rows, self.begun = Forwards(), [], time.monotonic()
        self.turn, self.rtts = 0, []

    def timed(self, ask, *words):
        """-> the answer, when it was asked for, when it had come"""
        began = time.monotonic()
        answer = ask(*words)
        return answer, began, time.monotonic()

    def objects(self, kind, ask, key, names):
        rows, began, ended = self.timed(ask)
        rows = list(rows.values()) if isinstance(rows, dict) else rows
        self.forwards.objects(kind, rows, key, names, began, ended)
        return rows

    def take(self, more):
        """One sample; every fifth has the flows, too"""
        _, began, ended = self.timed(lambda: self.conn.request(of13.ECHO_REQUEST))
        self.rtts.append((began, ended - began))
        counters = q.counters(self.conn)
        self.forwards.counters(counters)
        ports = self.objects('port', self.conn.port_stats, lambda r: r['port_no'], PORT_COUNTERS)
        queues = self.objects('queue', self.conn.queue_stats, lambda r: (r['port_no'], r['queue_id']),
                              ('tx_packets', 'tx_bytes', 'tx_errors'))
        self.objects('group', self.conn.group_stats, lambda r: r['group_id'], PACKETS)
        self.objects('meter', self.conn.meter_stats, lambda r: r['meter_id'], ('packet_in_count', 'byte_in_count'))
        tables = self.conn.table_stats()
        if self.turn % 5 == 0:
            self.objects('flow', self.conn.flows,
                         lambda r: (r['table_id'], r['priority'], tuple(sorted(r['match'].items()))), PACKETS)
        self.turn += 1
        self.rows.append({'at': ended - self.begun, **process(self.switch.process.pid), 'echo': ended - began,
                          'workers': sum(n.startswith('worker.') and n.endswith('.cpu_ns') for n in counters),
                          'flows': sum(t['active_count'] for t in tables.values()), 'queues': len(queues),
                          'rx_packets': sum(p['rx_packets'] for p in ports),
                          'tx_packets': sum(p['tx_packets'] for p in ports), **more,
                          'kernel_hits': counters.get('kernel_hits', 0),
                          'drops': {n[5:]: v for n, v in counters.items() if n.startswith('drop.') and v}})
        return self.rows[-1]
