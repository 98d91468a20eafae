# SPDX-License-Identifier: Apache-2.0
"""ofqos-gauge: Faucet's Gauge, unchanged, with our watchers for queues (docs/how-to/network.md)."""
import contextlib
import os
import re
import socket
import sys
import urllib.request

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from support import app, topo  # noqa: E402
from support.wait import until

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason='needs root (network namespaces)'),
    pytest.mark.long]

FAUCET = """
vlans: {office: {vid: 100}}
dps:
  s1:
    dp_id: 1
    hardware: "Open vSwitch"
    interfaces:
      1: {native_vlan: office, name: desk}
      2: {native_vlan: office, name: uplink, description: "to the world"}
"""
GAUGE = """
faucet_configs: [{directory}/faucet.yaml]
watchers:
  ports: {{type: port_stats, all_dps: true, interval: 1, db: metrics}}
  queues: {{type: queue_stats, all_dps: true, interval: 1, dbs: [metrics, file]}}
  state: {{type: queue_state, dps: [s1], interval: 1, dbs: [metrics, {state}]}}
dbs:
  metrics: {{type: prometheus, prometheus_addr: 127.0.0.1, prometheus_port: 9303}}
  file: {{type: text, file: {directory}/queues}}
  flows: {{type: gzip, file: {directory}/flows}}
"""
LABELS = '{{direction="{}",dp_id="0x1",dp_name="s1",port="{}",port_description="{}",queue_id="{}",queue_name="{}"}}'


@contextlib.contextmanager
def gauge(faucet, directory, netns, state='file'):
    """-> the application"""
    (directory / 'faucet.yaml').write_text(FAUCET)
    (directory / 'gauge.yaml').write_text(GAUGE.format(directory=directory, state=state))
    env = {'GAUGE_CONFIG': f'{directory}/gauge.yaml', 'GAUGE_LOG': f'{directory}/log',
           'GAUGE_EXCEPTION_LOG': f'{directory}/exceptions', 'FAUCET_EXCEPTION_LOG': f'{directory}/exceptions'}
    with app.Application(netns, sys.executable, '-m', 'ofqos.gauge.cli', '--ryu-ofp-listen-host=127.0.0.1',
                         '--ryu-ofp-tcp-listen-port=6653', path=[faucet, app.PACKAGE], env=env) as it:
        it.wait_listening()
        yield it
        it.check()
    exceptions = directory / 'exceptions'
    assert not exceptions.exists() or not exceptions.read_text(), exceptions.read_text()


@pytest.fixture
def network(faucet, tmp_path):
    with topo.Topology(2, ip=True) as t, gauge(faucet, tmp_path, t.switch_ns), \
            topo.Switch(t, '--fail=open', 'tcp:127.0.0.1') as switch:
        yield t, switch, tmp_path


def scrape(t):
    """{series: value}"""
    with topo.inside(t.switch_ns):
        try:
            with urllib.request.urlopen('http://127.0.0.1:9303/metrics', timeout=20) as reply:
                text = reply.read().decode()
        except OSError:
            return {}
    return {line.rpartition(' ')[0]: float(line.rpartition(' ')[2])
            for line in text.splitlines() if not line.startswith('#')}


def test_queues_in_gauge(network):
    """Both watchers, into both databases; a queue that goes is gone there, too."""
    t, switch, directory = network
    switch.dpctl('qos-htb', 'cmd=add,port=2,class=10,rate=6mbit,ceil=10mbit,name=voice')
    switch.dpctl('qos-htb', 'cmd=add,port=1,class=0,rate=100mbit,direction=in')
    switch.dpctl('flow-mod', 'cmd=add,table=0,prio=9', 'in_port=1', 'apply:queue=10,output=2')
    with topo.inside(t.host_ns(1)):
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    topo.sh('ip', '-n', t.host_ns(1), 'neighbor', 'replace', '10.0.0.2', 'lladdr', '02:00:00:00:00:02',
            'dev', 'e0', 'nud', 'permanent')
    with sender:
        for _ in range(5):
            sender.sendto(bytes(58), ('10.0.0.2', 9))           # frames of 100 bytes
    stats = LABELS.format('out', 'uplink', 'to the world', 10, '')
    state = LABELS.format('out', 'uplink', 'to the world', 10, 'voice')
    found = until(lambda: scrape(t), wanted=lambda s: s.get('of_queue_tx_packets' + stats, 0) >= 5 and
                  'of_queue_rate' + state in s)
    assert found['of_queue_tx_bytes' + stats] >= 500 and found['of_queue_tx_errors' + stats] == 0
    assert (found['of_queue_rate' + state], found['of_queue_ceil' + state]) == (6e6, 10e6)
    assert (found['of_queue_drops' + state], found['of_queue_backlog_bytes' + state]) == (0, 0)
    assert found['of_queue_rate' + LABELS.format('in', 'desk', 'desk', 'root', '')] == 100e6
    assert found['of_port_tx_packets{dp_id="0x1",dp_name="s1",port="uplink",port_description="to the world"}'] >= 5
    until(lambda: (directory / 'queues').exists() and (directory / 'queues').read_text(), wanted=lambda text: all(
        re.search(rf'\ts1-uplink-queue10-{name}\t', text or '') for name in ('tx-packets', 'drops', 'backlog-bytes')))
    switch.dpctl('qos-clear', 'port=2')
    until(lambda: scrape(t), wanted=lambda s: s and not any('queue_id="10"' in series for series in s))


def test_a_database_that_it_has_not(faucet, tmp_path):
    """Gauge says what is wrong, and goes on without settings, as for its own."""
    with topo.Topology(1) as t, gauge(faucet, tmp_path, t.switch_ns, state='flows'):
        until(lambda: 'queue_state goes to text or prometheus, not gzip' in (tmp_path / 'log').read_text())


def test_without_faucet(tmp_path):
    env = dict(os.environ, PYTHONPATH=app.PACKAGE)
    said = topo.sh('sh', '-c', f'{sys.executable} -m ofqos.gauge.cli 2>&1 || true', env=env, cwd=tmp_path)
    assert said.strip() == "ofqos-gauge: Faucet is not installed here: pip install 'faucet>=1.10,<2'"
