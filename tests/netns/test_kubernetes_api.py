# SPDX-License-Identifier: Apache-2.0
"""packaging/kubernetes and ofqos-operator at Kubernetes' own API server (tests/kubernetes/fetch): what it takes, what it refuses, whom it lets
do what, and policies to their end.  Pods are objects that no kubelet runs; their interfaces are real."""
import json
import os
import shutil
import subprocess

import pytest

from support import cni, kubernetes
from support.kubernetes import Kubernetes, Refused
from support.topo import REPOSITORY, binary
from support.wait import until
from test_kubernetes_policy import MBIT, Operator, add, node_of_pods, roots  # noqa: F401

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(kubernetes.missing()), reason=kubernetes.missing())]
needs_plugin = pytest.mark.skipif(not cni.there(), reason='this build has no ofqos-cni (it needs jansson)')


@pytest.fixture(scope='module', name='api')
def api_server(tmp_path_factory):
    with Kubernetes(tmp_path_factory.mktemp('kubernetes')) as k:
        k.kubectl('create', 'namespace', 'ofqos')
        k.kubectl('apply', '--validate=strict', '--kustomize', os.path.join(REPOSITORY, 'packaging/kubernetes'))
        k.kubectl('wait', '--for=condition=Established', 'crd/bandwidthpolicies.ofqos.io', '--timeout=60s')
        for namespace in 'default', 'other':
            if namespace != 'default':
                k.kubectl('create', 'namespace', namespace)
            k.apply({'apiVersion': 'v1', 'kind': 'ServiceAccount', 'metadata': {'name': 'default', 'namespace': namespace}})
        k.apply({'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': 'n1'}, 'spec': {'podCIDR': '10.9.0.0/24', 'podCIDRs': ['10.9.0.0/24']}})
        yield k


def policy(name, namespace='default', **spec):
    return {'apiVersion': 'ofqos.io/v1alpha1', 'kind': 'BandwidthPolicy', 'metadata': {'name': name, 'namespace': namespace}, 'spec': spec}


def pod(name, namespace='default', node='n1', **meta):
    return {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': name, 'namespace': namespace, **meta},
            'spec': {'nodeName': node, 'containers': [{'name': 'c', 'image': 'registry.example/none'}]}}


@pytest.fixture(name='account')
def the_operators_account(api, tmp_path):
    """Files as in a container: the ServiceAccount's token, which is all that the operator has, and the server's certificate"""
    directory = tmp_path / 'account'
    directory.mkdir()
    (directory / 'token').write_text(api.kubectl('create', 'token', 'ofqos', '--namespace=ofqos'))
    shutil.copy(api.ca, directory / 'ca.crt')
    yield directory
    for namespace in 'default', 'other':
        api.kubectl('delete', 'bwp,pods', '--all', '--namespace', namespace, '--force', '--grace-period=0')


# ------------------------------------------------------------------------------ what it takes

@pytest.mark.parametrize('directory', ['kubernetes', 'kubernetes-chained'])
def test_the_objects_are_taken(api, directory):
    said = api.kubectl('apply', '--validate=strict', '--dry-run=server', '--kustomize', os.path.join(REPOSITORY, 'packaging', directory))
    assert said.count('(server dry run)') == len(said.splitlines()) == 7
    crd = api.get('crd', 'bandwidthpolicies.ofqos.io')
    conditions = {c['type']: c['status'] for c in crd['status']['conditions']}
    assert conditions['NamesAccepted'] == conditions['Established'] == 'True' and conditions.get('NonStructuralSchema', 'False') == 'False'


GOOD = [{'ingress': '100M'}, {'egress': '64Mi', 'precedence': -1000}, {'groups': [{'name': 'web', 'share': 0.01}, {'name': 'rest', 'share': 99}]},
        {'ingress': '1.5G', 'selector': {'matchLabels': {'app': 'web'}, 'matchExpressions': [{'key': 'tier', 'operator': 'In', 'values': ['a']}]}}]
WRONG = [
    ({}, 'spec.ingress: Required value'), ({'ingress': '1e9'}, 'spec.ingress: Invalid value: "1e9"'), ({'egress': '100 M'}, 'spec.egress: Invalid value'),
    ({'egress': 100}, 'spec.egress: Invalid value: "integer"'), ({'ingress': '1M', 'precedence': 1001}, 'spec.precedence: Invalid value: 1001'),
    ({'ingress': '1M', 'precedence': 'first'}, 'spec.precedence: Invalid value: "string"'),
    ({'groups': [{'name': 'web', 'share': 0}]}, 'spec.groups[0].share: Invalid value: 0'), ({'groups': [{'name': 'web', 'share': 0.001}]}, 'spec.groups[0].share: Invalid value: 0.001'),
    ({'groups': [{'name': 'web'}]}, 'spec.groups[0].share: Required value'),
    ({'groups': []}, 'spec.groups: Invalid value'), ({'groups': [{'name': 'web', 'share': 1}] * 2}, 'spec.groups[1]: Duplicate value'),
    ({'groups': [{'name': f'g{n}', 'share': 1} for n in range(17)]}, 'spec.groups: Too many: 17'),
    ({'ingress': '1M', 'selector': {'matchExpressions': [{'key': 'a', 'operator': 'Is'}]}}, 'spec.selector.matchExpressions[0].operator: Unsupported value: "Is"'),
    ({'ingress': '1M', 'egres': '1M'}, 'unknown field "spec.egres"'),
]


def test_what_is_taken_and_what_is_refused(api):
    """A refusal names the field"""
    for n, spec in enumerate(GOOD):
        api.kubectl('create', '--validate=strict', '--dry-run=server', '--filename=-', text=json.dumps(policy(f'good{n}', **spec)))
    for spec, words in WRONG:
        try:
            said = api.kubectl('create', '--validate=strict', '--dry-run=server', '--filename=-', text=json.dumps(policy('wrong', **spec)))
        except Refused as refused:
            said = str(refused)
        assert words in said, (spec, said)
    made = json.loads(api.kubectl('create', '--dry-run=server', '--output=json', '--filename=-', text=json.dumps(policy('good', ingress='1M'))))
    assert made['spec']['precedence'] == 0       # the schema's default


def test_what_the_account_may(api):
    who = '--as=system:serviceaccount:ofqos:ofqos'
    for verb, what, may in (('list', 'pods', True), ('watch', 'bandwidthpolicies.ofqos.io', True), ('patch', 'bandwidthpolicies.ofqos.io/status', True), ('get', 'nodes/n1', True),
                            ('patch', 'bandwidthpolicies.ofqos.io', False), ('delete', 'pods', False), ('list', 'secrets', False), ('list', 'nodes', False)):
        words = [verb, *(['nodes/n1'] if what == 'nodes/n1' else [what.split('/')[0], *(['--subresource=' + what.split('/')[1]] if '/' in what else [])])]
        try:
            said = api.kubectl('auth', 'can-i', *words, '--all-namespaces', who)
        except Refused as error:
            said = f'no {error}'
        assert said.startswith('yes') == may, (verb, what, said)


@needs_plugin
@pytest.mark.skipif(not shutil.which('jq') or not shutil.which('curl'), reason='jq or curl is not installed')
def test_a_node_asks_for_its_range(api, account, tmp_path):
    """As the container `install` does, with its account"""
    for directory in 'opt/cni/bin', 'etc/cni/net.d', 'opt/ofqos':
        (tmp_path / 'host' / directory).mkdir(parents=True)
    (tmp_path / 'network.json').write_text(api.get('configmap', 'ofqos', '--namespace=ofqos')['data']['network.json'])
    env = {'PATH': os.environ['PATH'], 'HOST': str(tmp_path / 'host'), 'PLUGIN': binary(cni.PLUGIN), 'ACCOUNT': str(account), 'NODE_NAME': 'n1',
           'KUBERNETES_SERVICE_HOST': '127.0.0.1', 'KUBERNETES_SERVICE_PORT': str(api.port)}
    words = [os.path.join(REPOSITORY, 'packaging/container/install-cni'), str(tmp_path / 'network.json')]
    done = subprocess.run(words, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, '')
    network = json.loads((tmp_path / 'host/etc/cni/net.d/10-ofqos.conflist').read_text())
    assert network['plugins'][0]['ipam']['ranges'] == [[{'subnet': '10.9.0.0/24'}]]
    done = subprocess.run(words, env={**env, 'NODE_NAME': 'n9'}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
    assert done.returncode and '404' in done.stdout and 'the API does not tell of node n9' in done.stdout


# ------------------------------------------------------------------------------ policies to their end

def rows(api, name):
    return api.get('bwp', name, '--namespace=default').get('status', {}).get('nodes', [])


@needs_plugin
def test_a_policys_life(api, account, node, tmp_path):
    one, two = add(node, tmp_path, 1, 'p1'), add(node, tmp_path, 2, 'p2', namespace='other')
    api.apply(pod('p1', labels={'app': 'web'}, annotations={'kubernetes.io/ingress-bandwidth': '9M'}), pod('p2', 'other'), pod('p3', node='n2'),
              policy('all', ingress='20M', egress='10M'), policy('web', ingress='8M', precedence=5, selector={'matchLabels': {'app': 'web'}}))
    with Operator(node, api, tmp_path / 'pods', '--token', str(account / 'token'), '--ca-cert', str(account / 'ca.crt')) as operator:
        until(lambda: (roots(node, one), roots(node, two)) == (('8mbit', ''), ('', '')), 'totals')
        until(lambda: rows(api, 'web'), 'its status')
        row, = rows(api, 'web')
        assert {key: row[key] for key in ('node', 'pods', 'limited', 'broken')} == {'node': 'n1', 'pods': 1, 'limited': 1, 'broken': 0}
        assert row['observedGeneration'] == api.get('bwp', 'web', '--namespace=default')['metadata']['generation'] == 1 and rows(api, 'all') == []
        shown = api.kubectl('get', 'bwp', 'web', '--namespace=default').splitlines()
        assert shown[0].split() == ['NAME', 'INGRESS', 'EGRESS', 'PODS', 'KEPT'] and shown[1].split() == ['web', '8M', '1', '100.0%']

        api.apply(policy('web', ingress='4M', precedence=5, selector={'matchLabels': {'app': 'web'}}))
        until(lambda: roots(node, one)[0] == '4mbit')
        until(lambda: rows(api, 'web')[0]['observedGeneration'] == 2)
        # Another node's row stays beside this one's.
        api.kubectl('patch', 'bwp', 'web', '--namespace=default', '--subresource=status', '--type=json', '--patch',
                    json.dumps([{'op': 'add', 'path': '/status/nodes/-', 'value': {'node': 'n2', 'pods': 7}}]))
        api.kubectl('label', 'pod', 'p1', '--namespace=default', 'app-')
        until(lambda: roots(node, one) == ('20mbit', '10mbit'), 'the other policy')
        until(lambda: [row['node'] for row in rows(api, 'web')] == ['n2'], 'its row to go')
        until(lambda: [(row['pods'], row['limited']) for row in rows(api, 'all')] == [(1, 1)])

        api.kill()                               # totals stay meanwhile
        until(lambda: 'Cannot connect' in operator.said(), 'it to notice')
        assert roots(node, one) == ('20mbit', '10mbit')
        api.start()
        api.apply(policy('all', ingress='21M', egress='10M'))
        until(lambda: roots(node, one)[0] == '21mbit', 'the operator to come back', seconds=30)

        api.kubectl('delete', 'bwp', 'all', 'web', '--namespace=default')
        until(lambda: roots(node, one)[0] == '9mbit', "the annotation's")
        assert len(operator.said().splitlines()) < 12, operator.said()


@needs_plugin
def test_what_the_schema_lets_pass_is_said_in_the_status(api, account, node, tmp_path):
    """100 bits a second, and shares of more than 100 together"""
    add(node, tmp_path, 1, 'p1')
    api.apply(pod('p1'), policy('low', ingress='100'), policy('much', groups=[{'name': 'a', 'share': 60}, {'name': 'b', 'share': 41}]))
    with Operator(node, api, tmp_path / 'pods', '--token', str(account / 'token'), '--ca-cert', str(account / 'ca.crt')):
        for name, words in ('low', "'100' must be bits a second from 8k"), ('much', 'the shares come to more than 100'):
            until(lambda name=name, words=words: words in ''.join(row['message'] for row in rows(api, name)), f'the status of {name}')


def test_a_token_that_is_no_good(api, account, node, tmp_path):
    (account / 'token').write_text('x.y.z')
    with Operator(node, api, tmp_path / 'pods', '--token', str(account / 'token'), '--ca-cert', str(account / 'ca.crt')) as operator:
        until(lambda: '401' in operator.said(), 'its refusal')
        (account / 'token').write_text(api.kubectl('create', 'token', 'ofqos', '--namespace=ofqos'))
        api.apply(policy('low', ingress='100'))
        until(lambda: rows(api, 'low'), 'the status', seconds=30)
