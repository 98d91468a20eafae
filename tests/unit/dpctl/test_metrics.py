# SPDX-License-Identifier: Apache-2.0
"""dpctl metrics: both formats, the file, the table in docs/reference/metrics.md, the CGI program.

    test_metrics.py PATH-OF-DPCTL
"""
import json
import os
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import unittest

import fixture
from fixture import MP_REPLY, MP_REQUEST, Dpctl, Switch, entry, error, run
from support import of13, qosmsg

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../..')
QOSF = 0x514f5346
TABLE, PORT_STATS, QUEUE, GROUP, METER, METER_CONFIG, PORT_DESC = 3, 4, 5, 6, 9, 10, 13
DP = '00000000000000ab'

STATUS = b'''controllers=1
standalone=false
version=1.2
uptime=77
memory=1000000
memory.limit=4000000
flows=3
ring-memory=5
connection.1.peer=tcp:192.0.2.1:6653
connection.1.state=open
connection.1.role=master
connection.1.aux=0
connection.1.messages-in=5
connection.1.messages-out=6
connection.1.dropped=7
connection.2.peer=unix:/run/s#4
connection.2.state=open
connection.3.peer=tcp:[2001:db8::1]:4000
connection.3.state=open
connection.4.peer=tcp:[2001:db8::1]:4001
connection.4.state=open
'''
COUNTERS = {'drop.no_match': 9, 'channel.messages_in': 5, 'port.a"b.c.tx_no_queue': 4,
            'worker.stack_used': 100, 'worker.wakeups': 2, 'worker.0.cpu_ns': 1_500_000_001,
            'worker.0.cache_hits': 8, 'kernel_hits': 11, 'kernel_entries': 2, 'kernel_held': 6,
            'kernel_refused.normal': 12, 'log.lost': 3, 'connection.x.async_dropped': 1}


def counter(name, value):
    text = name.encode() + b'\0'
    text += bytes(-len(text) % 8)
    return struct.pack('!H6xQ', 16 + len(text), value) + text


def describe(number, name):
    return struct.pack('!I4x6s2x16sIIIIIIII', number, bytes(6), name, 0, 0, 0, 0, 0, 0, 100_000, 0)


HISTOGRAM = 0, 0, 0, 0, 1, 2, 1, 0, 0, 0, 0, 0, 5      # of round trips: up to 10 ms one, ...


class Small(Switch):
    """A switch with one of each."""

    def __init__(self, ours=True):
        self.ours = ours
        super().__init__({5: self.features, MP_REQUEST: self.answer})

    def features(self, xid, _):
        return [of13.message(6, struct.pack('!QIBB2xII', 0xab, 256, 64, 0, 0, 0), xid)]

    def own(self, exp_type):
        htb = struct.pack('!QQI4x', 6_000_001, 10_000_000, 1) + qosmsg.props(promise=500, delay_us=20_000)
        return {1: entry(1, 1, 2, 10, 0, htb) + entry(0, 2, 2, 10, 10, struct.pack('!I4x', 5)),
                2: b''.join(counter(*c) for c in COUNTERS.items()), 5: STATUS,
                9: struct.pack('!IIBBHIQQQQ', 2, 10, 0, 23, 250, 31_000, 11, 12, 4_000_000, 1_000_000),
                14: struct.pack('!HBxIIIQIIIIIB3xQIIII', 72, 0, 2, 10, 10, 9, 1, 25_000, 30_000, 40_000, 20_000, 3,
                                5, 0, 1000, 2000, 0xffffffff),
                16: struct.pack('!IIB7xQQ13Q13Q', 2, 10, 0, 100_000, 2_500, *HISTOGRAM, 3, *[0] * 11, 1),
                17: struct.pack('!IIB3xIQQQIII4x', 2, 10, 0, 10, 4000, 12, 4, 1000, 11, 4)}[exp_type]

    def answer(self, xid, body):
        kind = struct.unpack_from('!H', body)[0]
        if kind == 0xffff and not self.ours:
            return error(1, 3, b'')(xid, body)
        bodies = {
            PORT_DESC: describe(2, b'a"b.c'),
            PORT_STATS: struct.pack('!I4x12QII', 2, *range(1, 13), 1, 0),
            TABLE: struct.pack('!B3xIQQ', 0, 1, 2, 1) + struct.pack('!B3xIQQ', 5, 0, 0, 0),
            QUEUE: struct.pack('!IIQQQII', 2, 7, 70, 71, 72, 1, 0),
            GROUP: struct.pack('!H2xII4xQQII', 56, 1, 2, 3, 4, 5, 6) + struct.pack('!QQ', 1, 2),
            METER: struct.pack('!IH6xIQQII', 4, 56, 1, 2, 3, 4, 5) + struct.pack('!QQ', 6, 7),
            METER_CONFIG: struct.pack('!HHI', 24, 1, 4) + struct.pack('!HHII4x', 1, 16, 800, 0),
        }
        data = body[8:16] + self.own(struct.unpack_from('!I', body, 12)[0]) if kind == 0xffff \
            else bodies[kind]
        return [of13.message(MP_REPLY, struct.pack('!HH4x', kind, 0) + data, xid)]


def promtool():
    return shutil.which('promtool')


class Metrics(Dpctl):
    def text(self, *words, ours=True):
        with Small(ours) as switch:
            return self.check(run(switch, 'metrics', *words)).stdout

    def value(self, text, name, /, **labels):
        found = [line.rsplit(' ', 1)[1] for line in text.splitlines()
                 if line.startswith(f'ofqos_{name}{{dp="{DP}"') and
                 all(f'{k}="{v}"' in line for k, v in labels.items())]
        self.assertEqual(len(found), 1, (name, labels))
        return found[0]

    def test_values(self):
        text = self.text()
        queue = {'port': 2, 'name': r'a\"b.c', 'direction': 'out', 'queue': 10}
        for name, value in (('rate_bytes_per_second', '750000.125'), ('prio', '1'),
                            ('ceil_bytes_per_second', '1250000.000'),
                            ('transmit_bytes_total', '1010'), ('transmit_packets_total', '10'),
                            ('drops_total', '2'), ('overlimits_total', '1'), ('marks_total', '0'),
                            ('backlog_bytes', '64'), ('backlog_packets', '1'),
                            ('lended_packets_total', '11'), ('borrowed_packets_total', '12'),
                            ('backlogged_seconds_total', '4.000000'),
                            ('promise_seconds', '0.500'), ('promise_kept_ratio', '0.750000'),
                            ('promise_broken', '1'), ('promise_dropping', '0'),
                            ('delay_promise_seconds', '0.020000'), ('delay_promise_broken', '1'),
                            ('delay_promise_kept_ratio', '0.750'), ('rtt_samples_total', '9'),
                            ('rtt_median_seconds', '0.025000'), ('rtt_p90_seconds', '0.030000'),
                            ('rtt_p99_seconds', '0.040000'),
                            ('segments_total', '4000'), ('segments_lost_behind_total', '12'), ('segments_lost_before_total', '4'), ('rtt_path_seconds', '0.020000'),
                            ('delay_median_seconds', '0.001000'), ('delay_p90_seconds', '0.002000'),
                            ('below_rate_seconds_total', '1.000000')):
            self.assertEqual(self.value(text, 'queue_' + name, **queue), value, name)
        self.value(text, 'queue_info', kind='htb', parent='root', **queue)
        for name, value, labels in (
                ('switch_info', '1', {'version': '1.2'}), ('switch_uptime_seconds', '77', {}),
                ('switch_memory_bytes', '1000000', {}), ('switch_standalone', '0', {}),
                ('switch_worker_stack_used_bytes', '100', {}), ('port_up', '1', {'port': 2}),
                ('port_speed_bytes_per_second', '12500000.000', {}),
                ('port_receive_packets_total', '1', {}), ('port_transmit_bytes_total', '4', {}),
                ('port_transmit_no_queue_packets_total', '4', {}),
                ('table_lookups_total', '2', {'table': 0}), ('group_bytes_total', '4', {'group': 1}),
                ('group_bucket_packets_total', '1', {'bucket': 0}),
                ('meter_packets_total', '2', {'meter': 4}),
                ('meter_band_bytes_total', '7', {'band': 0, 'type': 'drop'}),
                ('meter_band_rate_bytes_per_second', '100000.000', {}),
                ('worker_cpu_seconds_total', '1.500000001', {'worker': 0}),
                ('cache_hits_total', '8', {'worker': 0}), ('drops_total', '9', {'reason': 'no_match'}),
                ('kernel_hits_total', '11', {}), ('kernel_entries', '2', {}),
                ('kernel_events_total', '6', {'event': 'held'}),
                ('kernel_refused_total', '12', {'reason': 'normal'}),
                ('channel_events_total', '5', {'event': 'messages_in'}),
                ('events_total', '3', {'event': 'log.lost'}),
                ('controller_connected', '1', {'peer': 'tcp:192.0.2.1:6653'}),
                ('controller_role', '1', {'role': 'master'}),
                ('controller_role', '0', {'role': 'slave'}),
                ('controller_messages_dropped_total', '7', {}),
                ('connections', '1', {'peer': 'unix:/run/s'}),
                ('connections', '2', {'peer': 'tcp:[2001:db8::1]'})):
            self.assertEqual(self.value(text, name, **labels), value, name)
        self.assertNotIn('table="5"', text)

    def test_histograms(self):
        text = self.text()
        for name, le, n in (('rtt', '0.0005', 0), ('rtt', '0.01', 1), ('rtt', '0.02', 3), ('rtt', '2.0', 4), ('rtt', '+Inf', 9),
                            ('delay', '0.0005', 3), ('delay', '1.0', 3), ('delay', '+Inf', 4)):
            self.assertEqual(self.value(text, f'queue_{name}_seconds_bucket', queue=10, le=le), str(n), (name, le))
        self.assertEqual(self.value(text, 'queue_rtt_seconds_count', queue=10), '9')
        self.assertEqual(self.value(text, 'queue_rtt_seconds_sum', queue=10), '0.100000')
        self.assertEqual(self.value(text, 'queue_delay_seconds_sum', queue=10), '0.002500')
        told = next(f for f in json.loads(self.text('--json')) if f['name'] == 'ofqos_queue_rtt_seconds')
        self.assertEqual(told['type'], 'histogram')
        self.assertEqual(told['samples'][0]['buckets']['0.02'], 2)
        self.assertEqual(told['samples'][0]['sum'], 0.1)

    def test_openmetrics(self):
        text = self.text()
        self.assertTrue(text.endswith('\n# EOF\n'))
        try:
            from prometheus_client.openmetrics.parser import text_string_to_metric_families
        except ImportError:
            self.skipTest('prometheus_client is missing: apt-get install python3-prometheus-client')
        families = list(text_string_to_metric_families(text))
        self.assertGreater(len(families), 50)
        self.assertEqual(len(families), len({f.name for f in families}))

    def test_prometheus(self):
        text = self.text('format=prometheus')
        self.assertNotIn('# EOF', text)
        self.assertNotIn('# UNIT', text)
        self.assertIn('\n# TYPE ofqos_drops_total counter\n', text)
        self.assertIn('# TYPE ofqos_switch_info gauge\n', text)
        if not promtool():
            self.skipTest('promtool is missing: scripts/install-deps test')
        done = subprocess.run([promtool(), 'check', 'metrics'], input=text, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ''))

    def test_json(self):
        with Small() as switch:
            families = json.loads(self.check(run(switch, '--json', 'metrics')).stdout)
        queue, = [f for f in families if f['name'] == 'ofqos_queue_drops_total']
        self.assertEqual((queue['type'], queue['samples']), ('counter', [
            {'labels': {'dp': DP, 'port': '2', 'name': 'a"b.c', 'direction': 'out', 'queue': '10'},
             'value': 2}]))

    def test_of_another_maker(self):
        text = self.text(ours=False)
        self.assertEqual(self.value(text, 'queue_drops_total', queue=7), '72')
        self.assertEqual(self.value(text, 'table_flows', table=0), '1')
        self.assertNotIn('ofqos_switch_', text)

    def test_a_file(self):
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, 'x.prom')
            with open(path, 'w', encoding='utf-8') as old:
                old.write('old')
                inode = os.fstat(old.fileno()).st_ino
            with Small() as switch:
                self.check(run(switch, 'metrics', '--to', path))
            self.assertNotEqual(os.stat(path).st_ino, inode, 'not replaced as a whole')
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode) & 0o044, 0o044)
            self.assertEqual(os.listdir(d), ['x.prom'])
            with open(path, encoding='utf-8') as f:
                self.assertNotIn('# EOF', f.read())      # a .prom is for node_exporter
            with Small() as switch:
                done = self.check(run(switch, 'metrics', '--to', d + '/no/x'), 1)
            self.assertIn('/no/x: No such file', done.stderr)
            with Small() as switch:
                self.check(run(switch, 'metrics', '--to', d), 1)
            with Small(ours=False) as switch:
                self.check(run(switch, 'status', '--to', path), 2)
        with Small() as switch:
            self.check(run(switch, 'metrics', 'format=xml'), 2)

    def test_a_switch_that_goes_away(self):
        """No half file"""
        with tempfile.TemporaryDirectory() as d:
            with Switch({5: lambda xid, _: []}) as switch:
                self.check(run(switch, '--timeout', '1', 'metrics', '--to', d + '/x'), 1)
            self.assertEqual(os.listdir(d), [])

    def test_the_document_and_the_exporters_rows(self):
        done = subprocess.run([sys.executable, ROOT + '/scripts/metrics-table', '--check', fixture.DPCTL,
                               ROOT + '/docs/reference/metrics.md', ROOT + '/controllers/python/ofqos/exporter/families.py'], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ''))

    def test_cgi(self):
        with tempfile.TemporaryDirectory() as d, Small() as switch:
            os.symlink(fixture.DPCTL, d + '/dpctl')
            env = {'PATH': d + ':' + os.environ['PATH'], 'DPCTL_SWITCH': 'unix:' + switch.path}
            cgi = ['sh', ROOT + '/docs/examples/ofqos-metrics.cgi']
            done = subprocess.run(cgi, env={**env, 'HTTP_ACCEPT': 'application/openmetrics-text'},
                                  stdout=subprocess.PIPE, text=True, check=True)
            head, _, body = done.stdout.partition('\n\n')
            self.assertIn('application/openmetrics-text; version=1.0.0', head)
            self.assertTrue(body.endswith('# EOF\n'), body[-100:])
            done = subprocess.run(cgi, env={**env, 'DPCTL_SWITCH': d + '/none'},
                                  stdout=subprocess.PIPE, text=True, check=True)
            self.assertIn('Status: 503', done.stdout)
            self.assertIn('no switch listens', done.stdout)


if __name__ == '__main__':
    fixture.main()
