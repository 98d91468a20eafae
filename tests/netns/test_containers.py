# SPDX-License-Identifier: Apache-2.0
"""packaging/container without an engine: each service's command in namespaces, with its capabilities; the Containerfile's names"""
import contextlib
import json
import os
import re
import shlex
import subprocess

import pytest

from support.topo import REPOSITORY, build_directory, sh
from support.wait import until

yaml = pytest.importorskip('yaml', reason='python3-yaml is not installed (scripts/install-deps test)')

CONTAINER = os.path.join(REPOSITORY, 'packaging/container')
UNDER = 'ofqos-under'
# What is in a container: our programs by the names that the image gives them, a /run of its own, and the capabilities.
INSIDE = '''
mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /mnt && mkdir /mnt/bin && ip link set lo up || exit 3
ln -s "$BUILD/datapath/ofdatapath" "$BUILD/utils/dpctl/dpctl" /mnt/bin
ln -s "$CONTAINER/switch" /mnt/bin/ofqos-switch; ln -s "$CONTAINER/cable" /mnt/bin/ofqos-cable
export PATH=/mnt/bin:$PATH
exec setpriv --inh-caps=-all --bounding-set=-all,$CAPS "$@"
'''


def read(path):
    with open(os.path.join(REPOSITORY, path), encoding='utf-8') as f:
        return f.read()


@pytest.fixture(name='compose', scope='module')
def compose_file():
    return yaml.safe_load(read('packaging/container/compose.yaml'))


class Container:
    def __init__(self, name, service, number):
        self.ns = f'ofqos-{name}'
        sh('ip', 'netns', 'add', self.ns)
        sh('ip', 'link', 'add', f'u{number}', 'netns', UNDER, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', self.ns)
        sh('ip', '-n', UNDER, 'link', 'set', f'u{number}', 'master', 'under', 'up')
        sh('ip', '-n', self.ns, 'address', 'add', f'10.98.0.{number}/24', 'dev', 'eth0')
        sh('ip', '-n', self.ns, 'link', 'set', 'eth0', 'up')
        sh('ip', '-n', self.ns, 'route', 'add', 'default', 'dev', 'eth0')
        assert service['cap_drop'] == ['ALL']
        caps = ','.join('+' + c.lower() for c in service['cap_add'])
        self.process = subprocess.Popen(
            ['ip', 'netns', 'exec', self.ns, 'bash', '-c', INSIDE, 'container', *service['command']], stdin=subprocess.DEVNULL,
            env={**os.environ, 'BUILD': os.path.abspath(build_directory()), 'CONTAINER': os.path.abspath(CONTAINER), 'CAPS': caps})

    def exec(self, *command):
        """What `docker compose exec` does"""
        done = subprocess.run(['nsenter', '--target', str(self.process.pid), '--mount', '--net', 'env', f'PATH=/mnt/bin:{os.environ["PATH"]}',
                               *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=60, check=False)
        return done.returncode, done.stdout

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        finally:
            self.process.kill()
            sh('ip', 'netns', 'del', self.ns, check=False)


@pytest.fixture(name='lab')
def lab_of_containers(compose):
    with contextlib.ExitStack() as stack:
        sh('ip', 'netns', 'add', UNDER)
        stack.callback(sh, 'ip', 'netns', 'del', UNDER, check=False)
        sh('ip', '-n', UNDER, 'link', 'add', 'under', 'up', 'type', 'bridge')
        if subprocess.run(['ip', '-n', UNDER, 'link', 'add', 'tried', 'type', 'vxlan', 'id', '1', 'dstport', '4789'], check=False,
                          stderr=subprocess.DEVNULL).returncode:
            pytest.skip('this kernel has no VXLAN')
        made = {}
        for number, (name, service) in enumerate(compose['services'].items(), start=11):
            made[name] = Container(name, service, number)
            stack.callback(made[name].end)
        for name in ('s1', 's2', 's3'):
            until(lambda name=name: made[name].exec('dpctl', 'features')[0] == 0)
        yield made


def commands():
    """-> [(container, its words)] of the page"""
    text = read('docs/how-to/containers.md')
    return [(found[1], shlex.split(found[2])) for found in
            re.finditer(r'^    docker compose --file packaging/container/compose\.yaml exec (\w+) (.*)$', text, re.M)]


def test_the_page_on_the_lab(lab):
    words = commands()
    assert len(words) == 5
    until(lambda: lab['h1'].exec('ping', '-c', '1', '-W', '1', '10.99.0.2')[0] == 0)
    for name, command in words:
        status, said = lab[name].exec(*command)
        assert status == 0, f'{command}: {said}'
        if command[0] == 'ping':
            assert ' 0% packet loss' in said
    _, said = lab['s2'].exec('dpctl', '--json', 'stats-queue')
    assert {q['queue_id']: q['tx_packets'] for q in json.loads(said)['queues']}[10] == 3
    assert lab['s1'].exec('dpctl', 'features')[0] == 0       # the healthcheck


def test_the_compose_file(compose):
    assert compose['services'].keys() == {'s1', 's2', 's3', 'h1', 'h2'}
    ends = [word for s in compose['services'].values() for word in re.findall(r'\w+=(\d+)', ' '.join(s['command'][:-1]))]
    assert sorted(ends) == sorted(2 * list(set(ends))), 'a cable has two ends'
    for name, service in compose['services'].items():
        wanted = {'NET_ADMIN', 'NET_RAW'} | ({'BPF', 'PERFMON'} if name.startswith('s') else set())
        assert set(service['cap_add']) == wanted
        build = service.get('build')
        if build:
            context = os.path.join(CONTAINER, build['context'])
            assert os.path.isfile(os.path.join(context, build['dockerfile']))


def test_the_containerfile():
    text = read('packaging/container/Containerfile').replace('\\\n', ' ')
    for path in re.findall(r'^COPY ([\w/-]+) ', text, re.M):
        assert os.path.exists(os.path.join(REPOSITORY, path)), path
    options = re.findall(r"option\('(\w+)'", read('meson_options.txt'))
    for option in re.findall(r' -D(\w+)=', text):
        assert option in options, option
    installed = read('tests/unit/run/installed.txt')
    for path in re.findall(r'^COPY --from=build /installed/usr/(\S+)', text, re.M):
        assert path in installed, path


def test_the_libraries_of_the_containerfile():
    """Those that the packages' programs need, by Debian's own list of which package has which library"""
    text = read('packaging/container/Containerfile').replace('\\\n', ' ')
    packages = set(re.findall(r'\blib[\w.+-]+', ' '.join(re.findall(r'apt-get install --yes --no-install-recommends (.*?)&&', text))))
    for package in packages:
        if subprocess.run(['dpkg-query', '-W', package], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode:
            pytest.skip(f'this machine is not Debian 12, or has no {package}')
    files = subprocess.run(['dpkg', '-L', *packages], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    there = {os.path.basename(f) for f in files}
    for program in ('datapath/ofdatapath', 'utils/dpctl/dpctl'):
        said = subprocess.run(['readelf', '-d', os.path.join(build_directory(), program)], stdout=subprocess.PIPE, text=True, check=True)
        needed = set(re.findall(r'NEEDED.*\[(lib\S+)\]', said.stdout))
        ours = {n for n in needed if not re.match(r'lib(c|m|asan|ubsan|gcc_s|tsan|pthread)\.', n)}
        depends = {'libnl-3.so.200', 'libz.so.1', 'libelf.so.1', 'libdbus-1.so.3', 'libatomic.so.1', 'libsystemd.so.0'}    # of these packages
        assert ours - there - depends == set(), program
