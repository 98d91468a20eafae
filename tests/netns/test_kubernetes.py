# SPDX-License-Identifier: Apache-2.0
"""packaging/kubernetes without a cluster: its objects, what it installs onto a node, and its switch"""
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from support import cni, topo
from support.cni import Node
from support.served import PACKAGE
from support.topo import REPOSITORY, Topology, binary, sh
from support.wait import until

yaml = pytest.importorskip('yaml', reason='python3-yaml is not installed (scripts/install-deps test)')
sys.path.insert(0, PACKAGE)
HERE = os.path.join(REPOSITORY, 'packaging/kubernetes')
CHAINED = HERE + '-chained'
CAPABILITIES = ['NET_ADMIN', 'NET_RAW', 'BPF', 'PERFMON']


def objects():
    with open(os.path.join(HERE, 'kustomization.yaml'), encoding='utf-8') as f:
        kustomization = yaml.safe_load(f)
    names = kustomization['resources']
    assert set(os.listdir(HERE)) == {'kustomization.yaml', *names}
    return kustomization, [o for name in names for o in yaml.safe_load_all(open(os.path.join(HERE, name), encoding='utf-8'))]


def found(kind):
    one, = [o for o in objects()[1] if o['kind'] == kind]
    return one


# ------------------------------------------------------------------------------ the objects

def test_they_belong_together():
    kustomization, every = objects()
    pod = found('DaemonSet')['spec']['template']['spec']
    assert all(o['metadata'].get('namespace', 'ofqos') == kustomization['namespace'] == 'ofqos' for o in every)
    assert found('DaemonSet')['spec']['selector']['matchLabels'].items() <= found('DaemonSet')['spec']['template']['metadata']['labels'].items()
    assert pod['serviceAccountName'] == found('ServiceAccount')['metadata']['name'] == found('ClusterRoleBinding')['subjects'][0]['name']
    assert found('ClusterRoleBinding')['roleRef']['name'] == found('ClusterRole')['metadata']['name']
    assert {(r, v) for rule in found('ClusterRole')['rules'] for r in rule['resources'] for v in rule['verbs']} == {
        ('nodes', 'get'), ('pods', 'list'), ('pods', 'watch'), ('bandwidthpolicies', 'list'), ('bandwidthpolicies', 'watch'), ('bandwidthpolicies/status', 'patch')}
    volumes = {v['name'] for v in pod['volumes']}
    for container in pod['initContainers'] + pod['containers']:
        assert {m['name'] for m in container['volumeMounts']} <= volumes
        assert container['image'] in {image['name'] for image in kustomization['images']}
    with open(os.path.join(REPOSITORY, 'packaging/container/Containerfile'), encoding='utf-8') as f:
        image = f.read()
    for container in pod['initContainers'] + pod['containers']:
        command = container['command']
        if command[0] == 'python3':
            assert 'COPY controllers/python/ofqos /usr/lib/python3/dist-packages/ofqos' in image and importlib.util.find_spec(command[2])
        else:
            assert f'/usr/bin/{command[0]}\n' in image


def test_no_right_but_named_ones():
    pod = found('DaemonSet')['spec']['template']['spec']
    for container, expected in (pod['initContainers'][0], None), (pod['containers'][0], CAPABILITIES), (pod['containers'][1], None):
        rights = container['securityContext']
        assert rights['capabilities'] == {'drop': ['ALL'], **({'add': expected} if expected else {})}
        assert not rights['allowPrivilegeEscalation'] and rights['readOnlyRootFilesystem'] and 'privileged' not in rights
    assert not pod['automountServiceAccountToken'] and 'hostPID' not in pod
    assert 'token' not in {m['name'] for m in pod['containers'][0]['volumeMounts']}


def test_against_kubernetes_own_schemas():
    validate = shutil.which('kubernetes-validate')
    if not validate:
        pytest.skip('kubernetes-validate is not installed (pip install kubernetes-validate)')
    files = [os.path.join(HERE, name) for name in objects()[0]['resources']]
    done = subprocess.run([validate, '--strict', *files], text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, done.stdout


# ------------------------------------------------------------------------------ the node

def install(tmp_path, node='{"spec": {"podCIDR": "10.9.0.0/24", "podCIDRs": ["10.9.0.0/24"]}}', code=0, network=None):
    """Runs ofqos-install-cni, with an API server that is a file -> the node's directory"""
    host, account, programs = tmp_path / 'host', tmp_path / 'account', tmp_path / 'bin'
    for directory in (host / 'opt/cni/bin', host / 'etc/cni/net.d', host / 'opt/ofqos', account, programs):
        directory.mkdir(parents=True, exist_ok=True)
    (account / 'token').write_text('secret')
    curl = programs / 'curl'
    curl.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\n[ {code} = 0 ] && cat {tmp_path}/node\nexit {code}\n')
    curl.chmod(0o755)
    (tmp_path / 'node').write_text(node)
    (tmp_path / 'network.json').write_text(network or found('ConfigMap')['data']['network.json'])
    done = subprocess.run([os.path.join(REPOSITORY, 'packaging/container/install-cni'), str(tmp_path / 'network.json')], text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False,
                          env={'PATH': f'{programs}:{os.environ["PATH"]}', 'HOST': str(host), 'PLUGIN': binary(cni.PLUGIN), 'ACCOUNT': str(account),
                               'NODE_NAME': 'n1', 'KUBERNETES_SERVICE_HOST': '192.0.2.1'})
    return host, done.returncode, done.stdout


needs_plugin = pytest.mark.skipif(not cni.there(), reason='this build has no ofqos-cni (it needs jansson)')
needs_jq = pytest.mark.skipif(not shutil.which('jq'), reason='jq is not installed')


@needs_plugin
@needs_jq
def test_install(tmp_path):
    for _ in range(2):                           # a second time, over what is there
        host, code, said = install(tmp_path)
        assert (code, said) == (0, '')
    assert 'https://192.0.2.1:443/api/v1/nodes/n1' in (tmp_path / 'asked').read_text()
    network = json.loads((host / 'etc/cni/net.d/10-ofqos.conflist').read_text())
    assert network['plugins'][0]['ipam'] == {'type': 'host-local', 'ranges': [[{'subnet': '10.9.0.0/24'}]]}
    assert (host / 'opt/ofqos/gateways').read_text() == '10.9.0.1/24\n'
    assert not [name for _, _, names in os.walk(host) for name in names if name.endswith('.new')]
    assert {'loader', 'ofqos-cni', 'libc.so.6'} <= set(os.listdir(host / 'opt/ofqos'))
    install(tmp_path, '{"spec": {"podCIDRs": ["10.9.0.64/26", "fd09:1::/64"]}}')
    assert (host / 'opt/ofqos/gateways').read_text() == '10.9.0.65/26\nfd09:1::1/64\n'
    before = (host / 'etc/cni/net.d/10-ofqos.conflist').read_text()
    for node, wrong, words in ('{"spec": {}}', 0, 'node n1 has no podCIDR'), ('', 22, 'the API does not tell of node n1'), ('<html>', 0, 'parse error'):
        _, code, said = install(tmp_path, node, wrong)
        assert code and words in said, said
    assert (host / 'etc/cni/net.d/10-ofqos.conflist').read_text() == before


FLANNEL = {'name': 'cbr0', 'cniVersion': '0.3.1', 'plugins': [
    {'type': 'flannel', 'delegate': {'hairpinMode': True, 'isDefaultGateway': True}}, {'type': 'portmap', 'capabilities': {'portMappings': True}},
    {'type': 'bandwidth', 'capabilities': {'bandwidth': True}}]}


def chained():
    """The overlay's ConfigMap"""
    with open(os.path.join(CHAINED, 'config.yaml'), encoding='utf-8') as f:
        return yaml.safe_load(f)


@needs_plugin
@needs_jq
def test_install_behind_another_plugin(tmp_path):
    network = chained()['data']['network.json']
    _, code, said = install(tmp_path, network=network)
    assert code and 'there is no list of plugins' in said
    lists = tmp_path / 'host/etc/cni/net.d'
    (lists / '10-flannel.conflist').write_text(json.dumps(FLANNEL))
    (lists / '20-later.conflist').write_text('{}')
    for _ in range(2):
        host, code, said = install(tmp_path, network=network)
        assert (code, said) == (0, '')
    made = json.loads((lists / '00-ofqos.conflist').read_text())
    assert (made['name'], made['cniVersion']) == ('cbr0', '0.4.0')
    assert made['plugins'] == [*FLANNEL['plugins'][:2], *json.loads(network)['plugins']]
    assert json.loads((lists / '10-flannel.conflist').read_text()) == FLANNEL and sorted(os.listdir(lists)) == ['00-ofqos.conflist', '10-flannel.conflist', '20-later.conflist']
    assert not (host / 'opt/ofqos/gateways').exists() and not (tmp_path / 'asked').exists()
    before = (lists / '00-ofqos.conflist').read_text()
    (lists / '10-flannel.conflist').write_text('{')
    _, code, said = install(tmp_path, network=network)
    assert code and 'parse error' in said and (lists / '00-ofqos.conflist').read_text() == before
    assert install(tmp_path)[1] == 0             # alone again
    assert sorted(os.listdir(lists)) == ['10-flannel.conflist', '10-ofqos.conflist', '20-later.conflist']


@pytest.mark.skipif(not shutil.which('kubectl'), reason='kubectl is not installed')
@pytest.mark.parametrize('directory', ['kubernetes', 'kubernetes-chained'])
def test_kustomize_builds(directory):
    done = subprocess.run(['kubectl', 'kustomize', os.path.join(REPOSITORY, 'packaging', directory)], text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    assert done.returncode == 0, done.stderr
    every = {(o['kind'], o['metadata']['name']): o for o in yaml.safe_load_all(done.stdout)}
    assert {kind for kind, _ in every} == {o['kind'] for o in objects()[1]}
    images = {c['image'] for c in every['DaemonSet', 'ofqos']['spec']['template']['spec']['containers']}
    assert all(image.startswith('registry.example/') for image in images)
    data = every['ConfigMap', 'ofqos']['data']
    plugin, = json.loads(data['network.json'])['plugins']
    assert plugin.get('chained', False) == ('local-port' not in data['br0.conf']) == (directory == 'kubernetes-chained')


@needs_plugin
@needs_jq
def test_the_installed_plugin_needs_nothing_of_the_node(tmp_path):
    """In a root that has what was installed alone; the shell's part is done here"""
    host, code, said = install(tmp_path)
    assert code == 0, said
    if 'libasan' in subprocess.run(['ldd', binary(cni.PLUGIN)], text=True, stdout=subprocess.PIPE, check=True).stdout:
        pytest.skip('a program with the address sanitizer does not start by its loader')
    words = (host / 'opt/cni/bin/ofqos-cni').read_text().splitlines()[1].split()
    assert words.pop(0) == 'exec' and words.pop() == '"$@"'
    done = subprocess.run([shutil.which('chroot'), str(host), *words], input='{"cniVersion": "1.0.0"}', text=True, stdout=subprocess.PIPE,
                          env={'CNI_COMMAND': 'VERSION'}, check=True)
    assert json.loads(done.stdout)['cniVersion'] == '1.0.0'


# What a switch's container has: the node's network, a /run of its own, its capabilities
INSIDE = '''
mount -t tmpfs tmpfs /run && mkdir /run/bin /run/ofqos || exit 3
ln -s "$BUILD/datapath/ofdatapath" "$BUILD/utils/dpctl/dpctl" /run/bin
export PATH=/run/bin:$PATH
exec setpriv --inh-caps=-all --bounding-set=-all,$CAPS "$@"
'''


def test_the_switch_of_a_node(tmp_path):
    """It has the ports and the gateway again that its predecessor had, and ends when it is told to"""
    config = found('ConfigMap')['data']['br0.conf']
    (tmp_path / 'br0.conf').write_text(config)
    (tmp_path / 'gateways').write_text('10.9.0.1/24\n')
    socket = str(tmp_path / 'br0.sock')
    command = found('DaemonSet')['spec']['template']['spec']['containers'][0]['command']
    assert command == ['ofqos-node', '--config=/config/br0.conf']
    with Topology(ports=0) as t:
        ns = t.switch_ns
        sh('ip', '-n', ns, 'link', 'add', 'ofpabcd12345678', 'type', 'veth', 'peer', 'name', 'inside')
        sh('ip', '-n', ns, 'link', 'add', 'veth1', 'type', 'veth', 'peer', 'name', 'inside1')
        (tmp_path / 'containers').mkdir()
        for name, said in ('ofpabcd12345678', {'pod': {}}), ('ofpabcd87654321', {'port': 'veth1'}), ('ofpabcd00000000', {'port': 'gone'}):
            (tmp_path / 'containers' / name).write_text(json.dumps(said))
        for _ in range(2):
            process = subprocess.Popen(['ip', 'netns', 'exec', ns, 'unshare', '--mount', 'bash', '-c', INSIDE, 'container',
                                        os.path.join(REPOSITORY, 'packaging/container/node'), f'--config={tmp_path}/br0.conf'], stdin=subprocess.DEVNULL,
                                       env={**os.environ, 'BUILD': os.path.abspath(topo.build_directory()), 'SOCKET': socket, 'GATEWAYS': str(tmp_path / 'gateways'),
                                            'CONTAINERS': str(tmp_path / 'containers'),
                                            'CAPS': ','.join('+' + c.lower() for c in CAPABILITIES)})
            try:
                until(lambda: 'ofpabcd12345678' in topo.dpctl(f'unix:{socket}', 'port-desc', check=False).stdout, seconds=30)
                if shutil.which('jq'):
                    until(lambda: 'queues-only=true' in topo.dpctl(f'unix:{socket}', 'port-desc').stdout)
                assert '02:00:0a:09:00:01' in sh('ip', '-n', ns, 'link', 'show', 'of0') and '10.9.0.1/24' in sh('ip', '-n', ns, 'address', 'show', 'of0')
            finally:
                process.terminate()
                assert process.wait(30) == 0
            assert 'of0' not in sh('ip', '-n', ns, 'link')
        (tmp_path / 'br0.conf').write_text('no-such-key = 1\n')
        done = subprocess.run(['ip', 'netns', 'exec', ns, 'unshare', '--mount', 'bash', '-c', INSIDE, 'container',
                               os.path.join(REPOSITORY, 'packaging/container/node'), f'--config={tmp_path}/br0.conf'], stdin=subprocess.DEVNULL, timeout=60,
                              stderr=subprocess.PIPE, text=True, check=False,
                              env={**os.environ, 'BUILD': os.path.abspath(topo.build_directory()), 'SOCKET': socket, 'CAPS': '+net_admin,+net_raw'})
        assert done.returncode and 'no-such-key' in done.stderr


@needs_plugin
@needs_jq
def test_the_network_with_the_plugin(tmp_path, need):
    """The configured network, as a runtime makes it of the list, with a pod's annotations"""
    need('htb')
    host, code, said = install(tmp_path)
    assert code == 0, said
    shown = json.loads((host / 'etc/cni/net.d/10-ofqos.conflist').read_text())
    plugin, = shown.pop('plugins')
    directory = tmp_path / 'node1'
    directory.mkdir()
    with Node(directory, '--local-port=of0', '--map=then=normal', '--qos-keep') as node:
        ranges = plugin['ipam']['ranges']
        groups = [{'name': 'web', 'share': 60, 'ports': ['443/tcp']}]
        node.conf = {**plugin, **shown, 'switch': node.switch.path, 'ipam': {**node.conf['ipam'], 'subnet': ranges[0][0]['subnet'], 'routes': []},
                     'runtimeConfig': {'bandwidth': {'ingressRate': 8_000_000}, 'io.kubernetes.cri.pod-annotations': {'ofqos.io/groups': json.dumps(groups)}}}
        one = node.container(1)
        said = node.run('ADD', one)
        sh('ip', 'netns', 'exec', one, 'ping', '-c1', '-W5', '10.9.0.1')
        assert re.search('"web"', node.switch.dpctl('qos-show').stdout)
        node.run('CHECK', one, {'prevResult': said})
        node.run('DEL', one)
        assert node.left() == []
