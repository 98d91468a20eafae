# SPDX-License-Identifier: Apache-2.0
"""BandwidthPolicy: its schema, and ofqos-operator between a switch and a stand-in for Kubernetes' API"""
import json
import os
import re
import subprocess
import sys

import pytest

from support import cni
from support.apiserver import PODS, POLICIES, ApiServer
from support.cni import Node
from support.load import comes_to
from support.served import PACKAGE
from support.topo import REPOSITORY, sh
from support.udp import PAYLOAD, Stream, measured
from support.wait import until

sys.path.insert(0, PACKAGE)

from ofqos.operator.policy import Pod, Policy, chosen, group_shares, quantity, selects, totals  # noqa: E402

MBIT = 1_000_000
needs_plugin = pytest.mark.skipif(not cni.there(), reason='this build has no ofqos-cni (it needs jansson)')


# ------------------------------------------------------------------------------ what objects say

@pytest.mark.parametrize('text, rate', [('100M', 100 * MBIT), ('1.5G', 1500 * MBIT), ('64Mi', 64 << 20), ('10000000', 10 * MBIT), (8000, 8000), ('8000000m', 8000)])
def test_quantities(text, rate):
    assert quantity(text) == rate


@pytest.mark.parametrize('text', ['', '100', '1e9', '-1M', '100 M', '100m', '11T', True, None, 1.5, [], '9' * 19, '1M ', '١M'])
def test_quantities_that_are_none(text):
    with pytest.raises(ValueError):
        quantity(text)


@pytest.mark.parametrize('selector, is_for', [
    ({}, True), ({'matchLabels': {'app': 'web'}}, True), ({'matchLabels': {'app': 'db'}}, False), ({'matchLabels': {'app': 'web', 'tier': 'x'}}, False),
    ({'matchExpressions': [{'key': 'app', 'operator': 'In', 'values': ['db', 'web']}]}, True),
    ({'matchExpressions': [{'key': 'app', 'operator': 'NotIn', 'values': ['web']}]}, False),
    ({'matchExpressions': [{'key': 'tier', 'operator': 'NotIn', 'values': ['web']}]}, True),
    ({'matchExpressions': [{'key': 'app', 'operator': 'Exists'}, {'key': 'tier', 'operator': 'DoesNotExist'}]}, True)], ids=str)
def test_selectors(selector, is_for):
    assert selects(selector, {'app': 'web'}) == is_for


def policy(name, namespace='default', **spec):
    return Policy.of({'metadata': {'namespace': namespace, 'name': name}, 'spec': spec})


def pod(**more):
    return Pod.of({'metadata': {'namespace': 'default', 'name': 'p', **more}})


def test_which_policy():
    every = [policy('b', ingress='20M'), policy('a', ingress='10M'), policy('z', ingress='30M', precedence=1, selector={'matchLabels': {'app': 'web'}}),
             policy('y', 'other', ingress='40M', precedence=9), policy('wrong', ingress='x', precedence=99)]
    assert chosen(pod(), every).name[1] == 'a' and chosen(pod(labels={'app': 'web'}), every).name[1] == 'z'
    assert chosen(pod(), []) is None and every[-1].wrong
    annotated = pod(annotations={'kubernetes.io/ingress-bandwidth': '5M', 'kubernetes.io/egress-bandwidth': '6M'})
    assert totals(annotated, every[1]) == {'out': 10 * MBIT, 'in': 6 * MBIT} and totals(annotated, None) == {'out': 5 * MBIT, 'in': 6 * MBIT}
    assert totals(pod(annotations={'kubernetes.io/ingress-bandwidth': 'x'}), None) == {}
    grouped = pod(annotations={'ofqos.io/groups': '[{"name": "a", "share": 60}, {"name": "b", "share": 0.5}]'})
    assert group_shares(grouped, policy('p', groups=[{'name': 'b', 'share': 40}])) == {'a': 600_000, 'b': 400_000}
    assert group_shares(grouped, None)['b'] == 5000 and group_shares(pod(annotations={'ofqos.io/groups': '{'}), None) == {}


@pytest.mark.parametrize('spec, words', [
    ({}, 'ingress, egress or groups'), ({'groups': {}}, 'must be a list'), ({'groups': [{'share': 1}]}, 'a name of its own'),
    ({'groups': [{'name': 'a', 'share': True}]}, '0.01 to 100'), ({'groups': [{'name': 'a', 'share': 60}, {'name': 'b', 'share': 41}]}, 'more than 100'),
    ({'ingress': '1'}, "'1' must be bits"), ({'egress': '1M', 'selector': {'matchLabels': ['x']}}, 'selector'),
    ({'egress': '1M', 'selector': {'matchExpressions': [{}]}}, 'selector'), ({'egress': '1M', 'selector': {'matchExpressions': [{'key': 'a', 'operator': 'Is'}]}}, 'operator'),
    ({'egress': '1M', 'precedence': 'x'}, 'precedence')], ids=str)
def test_policies_that_are_wrong(spec, words):
    assert words in policy('p', **spec).wrong


def test_the_schema_has_what_is_read():
    yaml = pytest.importorskip('yaml', reason='python3-yaml is not installed (scripts/install-deps test)')
    with open(os.path.join(REPOSITORY, 'packaging/kubernetes/policy.yaml'), encoding='utf-8') as f:
        crd = yaml.safe_load(f)
    version, = crd['spec']['versions']
    properties = version['schema']['openAPIV3Schema']['properties']
    assert set(properties['spec']['properties']) == {'selector', 'ingress', 'egress', 'groups', 'precedence'}
    assert crd['metadata']['name'] == f'{crd["spec"]["names"]["plural"]}.{crd["spec"]["group"]}' and POLICIES.endswith(crd['spec']['names']['plural'])
    pattern = properties['spec']['properties']['ingress']['pattern']
    assert pattern == properties['spec']['properties']['egress']['pattern']
    for text in '100M', '1.5G', '64Mi', '10000000':
        assert re.match(pattern, text) and quantity(text)
    for text in '1e9', '-1M', '100 M', '1M\n2', 'M':
        assert not re.match(pattern, text)


# ------------------------------------------------------------------------------ the operator

class Operator:
    def __init__(self, node, api, directory, *options):
        self.words = [sys.executable, '-m', 'ofqos.operator', '--switch', node.switch.address, '--node', 'n1', '--api', api.url, '--pods', str(directory),
                      '--interval', '0.3', *options]
        self.log = open(f'{directory}.log', 'w+', encoding='utf-8')

    def __enter__(self):
        self.process = subprocess.Popen(self.words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, text=True,
                                        env={**os.environ, 'PYTHONPATH': PACKAGE})
        assert self.process.stdout.readline().startswith('following '), self.said()
        return self

    def said(self):
        with open(self.log.name, encoding='utf-8') as f:
            return f.read()

    def __exit__(self, *_):
        self.process.terminate()
        code = self.process.wait(20)
        self.process.stdout.close()
        self.log.close()
        assert code == 0 and 'Traceback' not in self.said(), self.said()


@pytest.fixture(name='node')
def node_of_pods(tmp_path, need):
    need('htb')
    with Node(tmp_path, '--map=then=normal') as n:
        yield n
        assert n.switch.alive()


@pytest.fixture(name='api')
def api_server():
    with ApiServer() as a:
        yield a


def add(node, tmp_path, n, name, rates=None, namespace='default'):
    """A pod, as the runtime has it made -> its port"""
    before = set(node.ports())
    node.run('ADD', node.container(n), {'directory': str(tmp_path / 'pods'), 'runtimeConfig': {'bandwidth': rates or {}}},
             CNI_ARGS=f'IgnoreUnknown=1;K8S_POD_NAMESPACE={namespace};K8S_POD_NAME={name};K8S_POD_INFRA_CONTAINER_ID=x')
    made, = set(node.ports()) - before
    return node.ports()[made]


def roots(node, port):
    """(into, out of the pod), as dpctl shows them"""
    shown = node.switch.dpctl('qos-show', f'port={port}').stdout
    return tuple((re.findall(rf'^port {port}{way}\n(?:  .*\n)*?  root class rate (\w+)', shown, re.M) or [''])[0] for way in ('', ', in'))


@needs_plugin
def test_totals_follow_the_policy(node, api, tmp_path):
    one, two, other = (add(node, tmp_path, n, f'p{n}', namespace=ns) for n, ns in ((1, 'default'), (2, 'default'), (3, 'other')))
    api.pod('p1', labels={'app': 'web'}, annotations={'kubernetes.io/ingress-bandwidth': '9M'})
    api.pod('p2')
    api.pod('p3', 'other')
    api.pod('elsewhere', node='n2')
    api.policy('all', ingress='20M', egress='10M')
    api.policy('web', ingress='8M', precedence=5, selector={'matchLabels': {'app': 'web'}})
    with Operator(node, api, tmp_path / 'pods'):
        until(lambda: (roots(node, one), roots(node, two), roots(node, other)) == (('8mbit', ''), ('20mbit', '10mbit'), ('', '')), 'totals')
        api.policy('all', ingress='30M', egress='10M')
        until(lambda: roots(node, two) == ('30mbit', '10mbit'))
        comes_to(lambda: {'in': measured([Stream(node.topo, 2, 1, '10.9.0.2', 5001, 12 * MBIT)])[0]}, {'in': 8 * PAYLOAD / (PAYLOAD + 42)}, 0.05)
        api.policy('web', ingress='4M', precedence=5, selector={'matchLabels': {'app': 'web'}})
        until(lambda: roots(node, one)[0] == '4mbit')
        # Somebody else's change is taken back; a pod without a policy is nobody's business.
        node.switch.dpctl('qos-htb', f'cmd=change,port={two},class=0,rate=1mbit,ceil=1mbit')
        node.switch.dpctl('qos-htb', f'cmd=add,port={other},class=0,rate=1mbit,ceil=1mbit')
        until(lambda: roots(node, two)[0] == '30mbit')
        api.pod('p1')                            # its label is gone, and its annotation
        until(lambda: roots(node, one)[0] == '30mbit')
        api.pod('p1', annotations={'kubernetes.io/ingress-bandwidth': '9M'})
        for name in 'all', 'web':
            api.delete(POLICIES, name)
        until(lambda: roots(node, one)[0] == '9mbit')
        assert roots(node, other) == ('1mbit', '')


def shared(node, port):
    """{(direction, group): percent}"""
    entries = json.loads(node.switch.dpctl('--json', 'qos-show', f'port={port}').stdout)['qos']
    return {(e['direction'], e['name']): e['config']['rate_share_ppm'] / 10000 for e in entries if 'name' in e}


@needs_plugin
def test_shares_follow_the_policy(node, api, tmp_path):
    """Two that change places, in one step; a group that no pod has is nobody's; without a policy the annotation counts again"""
    asked = [{'name': 'web', 'share': 75, 'ports': ['80/tcp']}, {'name': 'rest', 'share': 20}]
    node.run('ADD', node.container(1), {'directory': str(tmp_path / 'pods'), 'runtimeConfig': {
        'bandwidth': {'ingressRate': 8 * MBIT, 'egressRate': 4 * MBIT}, 'ofqosGroups': asked}}, CNI_ARGS='K8S_POD_NAMESPACE=default;K8S_POD_NAME=p1')
    port, = node.ports().values()
    api.pod('p1', annotations={'ofqos.io/groups': json.dumps(asked)})
    api.policy('all', groups=[{'name': 'web', 'share': 20}, {'name': 'rest', 'share': 75}, {'name': 'none', 'share': 5}])
    with Operator(node, api, tmp_path / 'pods'):
        until(lambda: shared(node, port) == {(way, name): share for way in ('out', 'in') for name, share in (('web', 20), ('rest', 75))}, 'shares')
        assert roots(node, port) == ('8mbit', '4mbit')
        until(lambda: api.rows('all') and api.rows('all')[0]['limited'] == 1)
        api.policy('all', ingress='6M')
        until(lambda: (shared(node, port)['out', 'web'], roots(node, port)[0]) == (75, '6mbit'), 'the annotation')


@needs_plugin
def test_a_pod_of_another_plugin(node, api, tmp_path):
    """Its file says which interface is its port"""
    here, one = node.topo.switch_ns, node.container(1)
    sh('ip', '-n', here, 'link', 'add', 'veth1', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', one)
    sh('ip', '-n', here, 'link', 'set', 'veth1', 'up')
    node.run('ADD', one, {'ipam': None, 'chained': True, 'directory': str(tmp_path / 'pods'), 'prevResult': {'interfaces': [], 'ips': []}},
             CNI_ARGS='K8S_POD_NAMESPACE=default;K8S_POD_NAME=p1')
    api.pod('p1')
    api.policy('all', ingress='20M', egress='10M')
    with Operator(node, api, tmp_path / 'pods'):
        until(lambda: roots(node, 1) == ('20mbit', '10mbit'), 'totals')


@needs_plugin
def test_status(node, api, tmp_path):
    add(node, tmp_path, 1, 'p1', {'ingressRate': MBIT})
    api.pod('p1')
    api.pod('p2')                                # that has no port yet
    api.policy('all', ingress='20M')
    api.policy('none', ingress='20M', selector={'matchLabels': {'app': 'x'}})
    api.policy('bad', ingress='1')               # which the schema lets pass
    api.managers['default', 'all'] = {'ofqos-n2': [{'node': 'n2', 'pods': 7}]}
    api.policy('before', ingress='20M', selector={'matchLabels': {'app': 'x'}})         # had a pod here when the operator was told to end
    api.managers['default', 'before'] = {f'ofqos-{name}': [{'node': name, 'pods': 1}] for name in ('n1', 'n2')}
    api.objects[POLICIES]['default', 'before']['status'] = {'nodes': [{'node': name, 'pods': 1} for name in ('n1', 'n2')]}
    with Operator(node, api, tmp_path / 'pods'):
        until(lambda: [row['node'] for row in api.rows('before')] == ['n2'], 'the row of before to go')
        until(lambda: [row['node'] for row in api.rows('all')] == ['n1', 'n2'], 'both nodes\' rows')
        row = api.rows('all')[0]
        assert {key: row[key] for key in ('pods', 'limited', 'broken', 'kept')} == {'pods': 2, 'limited': 1, 'broken': 0, 'kept': '100.0%'}
        until(lambda: any("'1' must be bits" in row['message'] for row in api.rows('bad')))
        assert api.rows('none') == []
        before = row['observedGeneration']
        api.policy('all', ingress='21M')
        until(lambda: api.rows('all')[0]['observedGeneration'] > before)
        patches = len([line for line in api.asked if line.startswith('PATCH')])
        node.run('ADD', node.container(2), {'directory': str(tmp_path / 'pods')}, CNI_ARGS='K8S_POD_NAMESPACE=default;K8S_POD_NAME=p2')
        until(lambda: api.rows('all')[0]['limited'] == 2)
        assert len([line for line in api.asked if line.startswith('PATCH')]) <= patches + 2      # not with each look
        for name in 'p1', 'p2':
            api.delete(PODS, name)
        until(lambda: [row['node'] for row in api.rows('all')] == ['n2'], 'its row to go')


@needs_plugin
def test_the_api_and_the_switch_are_away(node, api, tmp_path):
    one = add(node, tmp_path, 1, 'p1')
    api.pod('p1')
    api.broken = 500
    with Operator(node, api, tmp_path / 'pods') as operator:
        until(lambda: '500: broken' in operator.said())
        api.broken = 0
        api.policy('all', ingress='20M')
        until(lambda: roots(node, one)[0] == '20mbit')
        api.end_watches()                        # as each server does after a while
        api.policy('all', ingress='21M')
        until(lambda: roots(node, one)[0] == '21mbit')
        api.end_watches({'type': 'ERROR', 'object': {'code': 410, 'message': 'too old resource version'}})
        api.policy('all', ingress='22M')
        until(lambda: roots(node, one)[0] == '22mbit')
        node.switch.process.kill()
        node.switch.process.wait()
        until(lambda: 'Away' in operator.said())
        api.policy('all', ingress='23M')
        node.switch.start()
        node.switch.wait_ready()
        host, = os.listdir(tmp_path / 'pods')
        node.switch.dpctl('port-add', host)
        until(lambda: roots(node, node.ports()[host])[0] == '23mbit')
        assert len(operator.said().splitlines()) < 12, operator.said()


def test_a_token_that_changes(tmp_path):
    (tmp_path / 'token').write_text('first\n')
    with ApiServer('first') as api:
        words = ['--switch', 'unix:/nowhere', '--node', 'n1', '--api', api.url, '--token', str(tmp_path / 'token'), '--interval', '0.1']
        process = subprocess.Popen([sys.executable, '-m', 'ofqos.operator', *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, 'PYTHONPATH': PACKAGE})
        try:
            until(lambda: len(api.watches) == 2)
            api.token = 'second'
            (tmp_path / 'token').write_text('second\n')
            api.end_watches()
            until(lambda: len(api.watches) == 2)
        finally:
            process.terminate()
            _, said = process.communicate(timeout=20)
        assert 'Traceback' not in said and 'nowhere' in said


@pytest.mark.parametrize('words, answer', [
    (['--switch', 'unix:/x', '--api', 'http://127.0.0.1:1'], '--node NAME is needed'), (['--switch', 'unix:/x', '--node', 'n'], '--api URL is needed'),
    (['--switch', 'unix:/x', '--node', 'n', '--api', 'http://127.0.0.1:1', '--interval', '0'], '--interval must be')])
def test_wrong_words(words, answer):
    done = subprocess.run([sys.executable, '-m', 'ofqos.operator', *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=60, env={'PATH': os.environ['PATH'], 'PYTHONPATH': PACKAGE}, check=False)
    assert done.returncode == 2 and answer in done.stderr, done.stderr
