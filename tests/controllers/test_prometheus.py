# SPDX-License-Identifier: Apache-2.0
"""Alert rules and the dashboard: what they name is exported, and Debian's prometheus does with them what is said."""
import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.parse
import urllib.request

import pytest

from support import qosmsg as q, tc
from support.exporter import PACKAGE, Exporter
from support.load import Cbr
from support.of13 import apply_actions, output, set_queue
from support.qostree import FRAME, MBIT, ask, running
from support.topo import REPOSITORY, Topology, build_directory
from support.wait import until

sys.path.insert(0, PACKAGE)
pytest.importorskip('prometheus_client', reason='prometheus-client is not installed (Debian: python3-prometheus-client)')
yaml = pytest.importorskip('yaml', reason='PyYAML is not installed (Debian: python3-yaml)')

from ofqos.exporter.families import FAMILIES  # noqa: E402
from ofqos.daemon.counts import Counts  # noqa: E402
from ofqos.exporter.service import Own  # noqa: E402
from ofqos.switches import Switches  # noqa: E402

RULES = os.path.join(REPOSITORY, 'packaging/prometheus/ofqos.rules.yml')
DASHBOARD = os.path.join(REPOSITORY, 'packaging/prometheus/ofqos-dashboard.json')
CASES = os.path.join(REPOSITORY, 'tests/controllers/prometheus/ofqos.test.yml')
LONG = 90           # seconds for what is sure to come


def tool(name):
    if not shutil.which(name):
        pytest.skip(f'{name} is not installed: scripts/install-deps test (Debian: prometheus)')
    return name


def promtool(*words, **kw):
    done = subprocess.run([tool('promtool'), *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=None if 'input' in kw else subprocess.DEVNULL, **kw)
    assert done.returncode == 0, done.stdout


def rules():
    with open(RULES, encoding='utf-8') as f:
        return yaml.safe_load(f)['groups'][0]['rules']


def dashboard():
    with open(DASHBOARD, encoding='utf-8') as f:
        return json.load(f)


def panels():
    return [panel for panel in dashboard()['panels'] if panel['type'] != 'row']


def labels():
    """Metric -> its labels; those of Prometheus itself are not in the text"""
    found = {family.sample: {'dp', *family.labels} for family in FAMILIES.values()}
    own = Own()
    Counts(own.registry, Switches(), lambda: 0).event('switch', {})
    found.update({sample.name: set(sample.labels) for family in own.registry.collect() for sample in family.samples})
    return {**found, 'ALERTS': {'alertname', 'alertstate'}}


def plain(expression):
    """With values in place of a dashboard's variables"""
    for name, value in (('$__rate_interval', '1m'), ('$dp', '.*'), ('$name', '.*'), ('$direction', '.*')):
        expression = expression.replace(name, value)
    assert '$' not in expression
    return expression


# -------------------------------------------------------------------------------- what it names

def test_metrics_and_labels():
    """Each metric that a rule or a panel names is exported, and so is each label of it."""
    known = labels()
    expressions = [rule['expr'] for rule in rules()]
    expressions += [target['expr'] for panel in panels() for target in panel['targets']]
    expressions += [variable['definition'] for variable in dashboard()['templating']['list'] if 'definition' in variable]
    assert len(expressions) > 40
    for expression in expressions:
        metrics = re.findall(r'\b(ofqosd?_\w+|ALERTS)\b(?:\{([^}]*)\})?', expression)
        assert metrics
        for metric, selector in metrics:
            assert metric in known, expression
            assert set(re.findall(r'(\w+)[=!]', selector)) <= known[metric], expression
    for what in [*(panel['targets'] for panel in panels())]:
        for target in what:
            metric = re.search(r'\b(ofqos_\w+|ALERTS)\b', target['expr'])[1]
            assert set(re.findall(r'\{\{(\w+)\}\}', target['legendFormat'])) <= known[metric], target


def test_rules():
    promtool('check', 'rules', RULES)
    promtool('test', 'rules', CASES)
    with open(CASES, encoding='utf-8') as f:
        cases = f.read()
    for rule in rules():
        assert f'alertname="{rule["alert"]}"' in cases, rule['alert']
        assert rule['labels']['severity'] in ('warning', 'critical') and rule['annotations']['summary']
        assert set(re.findall(r'\$labels\.(\w+)', json.dumps(rule['annotations']))) <= {'instance', *itertools.chain(
            *(labels()[metric] for metric in re.findall(r'ofqosd?_\w+', rule['expr'])))}


def test_dashboard(tmp_path):
    """Written by the script; has what Grafana requires; nothing is twice or lies over another; all expressions parse."""
    done = subprocess.run([sys.executable, os.path.join(REPOSITORY, 'scripts/dashboard'), '--check', DASHBOARD],
                          stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    board = dashboard()
    assert board['uid'] and board['title'] and board['schemaVersion'] >= 30 and 'id' not in board
    assert set(board['time']) == {'from', 'to'}
    for kind, field in (('panels', 'id'), ('panels', 'title')):
        values = [each[field] for each in board[kind]]
        assert len(set(values)) == len(values)
    names = [variable['name'] for variable in board['templating']['list']]
    assert len(set(names)) == len(names) and all(v['type'] for v in board['templating']['list'])
    taken = set()
    for panel in board['panels']:
        g = panel['gridPos']
        cells = {(x, y) for x in range(g['x'], g['x'] + g['w']) for y in range(g['y'], g['y'] + g['h'])}
        assert g['w'] > 0 and g['h'] > 0 and g['x'] >= 0 and g['x'] + g['w'] <= 24 and not cells & taken, panel['title']
        taken |= cells
    for panel in panels():
        assert panel['type'] in ('timeseries', 'stat', 'table', 'state-timeline')
        assert panel['fieldConfig']['defaults']['unit'] and panel['fieldConfig']['overrides'] == []
        references = [target['refId'] for target in panel['targets']]
        assert references and len(set(references)) == len(references)
        for target in panel['targets']:
            assert panel['datasource'] == target['datasource'] == {'type': 'prometheus', 'uid': '${source}'}
            assert set(re.findall(r'\$(\w+)', target['expr'])) <= {*names, '__rate_interval'}
    made = {'groups': [{'name': 'panels', 'rules': [
        {'record': f'panel_{i}', 'expr': plain(target['expr'])}
        for i, target in enumerate(target for panel in panels() for target in panel['targets'])]}]}
    (tmp_path / 'panels.yml').write_text(yaml.safe_dump(made))
    promtool('check', 'rules', str(tmp_path / 'panels.yml'))


# ------------------------------------------------------------------------------ a real prometheus

class Prometheus:
    """The program, with the rules, looking every second; get() asks its API."""

    def __init__(self, directory, exporter):
        with socket.socket() as s:
            s.bind(('127.0.0.1', 0))
            self.port = s.getsockname()[1]
        config = {'global': {'scrape_interval': '1s', 'evaluation_interval': '1s'}, 'rule_files': [RULES],
                  'scrape_configs': [{'job_name': 'ofqos', 'static_configs': [
                      {'targets': [f'127.0.0.1:{exporter.port}']}]}]}
        (directory / 'prometheus.yml').write_text(yaml.safe_dump(config))
        self.log = open(directory / 'log', 'w+', encoding='utf-8')
        self.process = subprocess.Popen(
            [tool('prometheus'), f'--config.file={directory}/prometheus.yml', f'--storage.tsdb.path={directory}/data',
             f'--web.listen-address=127.0.0.1:{self.port}'], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            cwd=directory)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(30)
        finally:
            self.process.kill()
            self.process.wait()
            self.log.close()

    def get(self, path, **query):
        url = f'http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(query)}'
        with urllib.request.urlopen(url, timeout=30) as answer:
            told = json.load(answer)
        assert told['status'] == 'success', told
        return told['data']

    def until(self, what, condition):
        def runs():
            assert self.process.poll() is None, f'prometheus ended before {what}'
        until(condition, what, LONG, not_yet=OSError, check=runs)

    def alert(self, alertname, state, **labels):
        """Whether there is such an alert"""
        return any(alert['state'] == state and {'alertname': alertname, **labels}.items() <= alert['labels'].items()
                   for alert in self.get('alerts')['alerts'])

    def query(self, expression):
        return self.get('query', query=expression)['result']


@pytest.mark.skipif(not build_directory() or os.geteuid(), reason='needs a build and root')
def test_a_queue_starves(tmp_path):
    """Debian's prometheus scrapes the exporter of a real switch.  What is below a class lets a quarter of its rate
    through: the alert fires, for this queue alone, and ends when all of it gets through.  Then the switch goes."""
    tool('prometheus')
    for kind in ('htb', 'tbf'):
        if not tc.has_scheduler(kind):
            pytest.skip(f'sch_{kind} is not in this kernel')
    with Topology(ports=2) as t, running(t) as (switch, conn), Exporter(switch.address) as exporter, \
            Prometheus(tmp_path, exporter) as prometheus:
        ask(conn, q.htb_class(q.ADD, 2, 10, 2 * MBIT, promise=300))
        ask(conn, q.htb_class(q.ADD, 2, 11, 2 * MBIT, promise=300))
        ask(conn, q.content(q.TBF, q.QDISC, q.ADD, 2, 10, b'', q.props(rate=MBIT // 2)))
        conn.flow(apply_actions(set_queue(10), output(2)))
        queue = {'port': '2', 'name': 'p2', 'direction': 'out', 'queue': '10', 'severity': 'critical'}
        with Cbr(t, 1, (FRAME, 1000), seconds=2 * LONG):
            prometheus.until('the alert fires', lambda: prometheus.alert('QueueStarves', 'firing', **queue))
            assert not prometheus.alert('QueueStarves', 'firing', queue='11')
            prometheus.until('it is denied its rate', lambda: prometheus.query(
                'rate(ofqos_queue_below_rate_seconds_total{queue="10"}[1m]) > 0'))
            for expression in (plain(target['expr']) for panel in panels() for target in panel['targets']):
                if 'meter' in expression or 'ofqos_drops' in expression:
                    assert prometheus.query(expression) == []               # there are none
                else:
                    prometheus.until(expression, lambda: prometheus.query(expression))
            ask(conn, q.content(q.TBF, q.QDISC, q.CHANGE, 2, 10, b'', q.props(rate=50 * MBIT)))
            prometheus.until('the alert ends', lambda: not prometheus.alert('QueueStarves', 'firing'))
        conn.close()
        switch.stop()
        prometheus.until('the switch is told as away', lambda: prometheus.alert('SwitchAway', 'pending'))
        assert prometheus.query('ofqos_up')[0]['value'][1] == '0'
