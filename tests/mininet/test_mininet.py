# SPDX-License-Identifier: Apache-2.0
"""Debian's Mininet, unchanged, with our ofdatapath, ofprotocol and dpctl."""
import importlib.util
import json
import os
import re
import shutil
import subprocess

import pytest

from support import offload, topo

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 10.0                                              # Mbit/s, as links.py asks for


def lacking():
    if os.geteuid() != 0:
        return 'needs root (network namespaces)'
    if not topo.build_directory():
        return 'no build found: run tests/run, or set OFQOS_BUILD'
    if not shutil.which('mn') or not importlib.util.find_spec('mininet'):
        return 'needs Mininet (scripts/install-deps test)'
    return None


pytestmark = pytest.mark.skipif(lacking() is not None, reason=str(lacking()))


@pytest.fixture(name='inside')
def run_inside(tmp_path):
    """inside(COMMAND...) -> what it printed; the programs' logs must be without reproach."""
    def run(*command):
        env = dict(os.environ, ASAN_OPTIONS='exitcode=99', UBSAN_OPTIONS='print_stacktrace=1')
        build = os.path.abspath(topo.build_directory())
        done = subprocess.run(['timeout', '-k', '5', '150', os.path.join(HERE, 'inside'),
                               str(tmp_path), topo.REPOSITORY, build, *command], env=env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        logs = {p.name: p.read_text() for p in sorted(tmp_path.glob('*.log'))}
        said = done.stdout + ''.join(f'--- {name}\n{text}' for name, text in logs.items())
        print(said)
        assert done.returncode == 0, said[-3000:]
        assert not re.search(r'Sanitizer|runtime error:|Traceback', said), said[-6000:]
        return done.stdout
    return run


def script(inside, name):
    """What a script of this directory found, and all it printed"""
    out = inside('/usr/bin/python3', f'/tmp/repository/tests/mininet/{name}')
    return json.loads(re.search('^FOUND (.*)$', out, re.M)[1]), out


def test_the_command(inside):
    out = inside('mn', '--switch', 'user', '--controller', 'remote', '--topo', 'linear,3',
                 '--wait', '--test', 'pingall+iperf')
    assert 'Results: 0% dropped (6/6 received)' in out
    assert re.search(r"Results: \['[\d.]+ [GM]bits/sec', '[\d.]+ [GM]bits/sec'\]", out)


def test_the_api(inside):
    found, out = script(inside, 'api.py')
    assert found['connected'] == [True] * 3
    assert found['dropped'] == 0
    assert found['dropped after'] == 0
    print(f"iperf {found['iperf']:.0f} Mbit/s, segmented and summed by the hosts "
          f"{found['iperf segmented']:.0f}: {found['iperf'] / found['iperf segmented']:.1f} times")
    assert found['iperf'] > found['iperf segmented'] > 0
    for name in ('s1', 's2', 's3'):
        assert re.search(rf'\*\*\* {name} -+\ntable +prio', out), 'dpctl of all switches'
    assert re.search(r'^1 +s2-eth1 ', out, re.M), 'sh dpctl show'
    assert re.search(r'7 .* eth_type=0x0800,ipv4_dst=10.0.0.9,ip_proto=6,tcp_dst=80 +'
                     r'apply:set_field=eth_dst:00:00:00:00:00:05,output=flood', out) or \
        re.search(r'7 .* eth_type=0x0800,ip_proto=6,ipv4_dst=10.0.0.9,tcp_dst=80 +'
                  r'apply:set_field=eth_dst:00:00:00:00:00:05,output=flood', out)


def test_limited_links(inside):
    found, _ = script(inside, 'links.py')
    place = {'5:1': 'root', '1:ffff': 'root', '1:fffe': '1:ffff'}
    assert found['place'] == place
    assert LIMIT / 2 < found['limited'] < LIMIT * 1.1
    assert (found['flow'], found['cleared']) == ('', '')
    assert found['classes'] == {**place, '1:a': '1:ffff'}
    assert 2 < found['in a queue'] < 4.4
    assert found['left'] == {'5:1': 'root'}
    assert LIMIT / 2 < found['limited without slicing'] < LIMIT * 1.1
    assert 'OFPSFC_PERM' in found['no slicing'] and '--no-slicing' in found['no slicing']


def test_the_class_of_python3_ofqos(inside):
    found, _ = script(inside, 'ofqos_switch.py')
    assert found['dropped'] == 0 and found['address'] == 'unix:/tmp/s1.sock'
    assert found['place'] == {'5:1': 'root', '1:ffff': 'root', '1:fffe': '1:ffff'}
    assert LIMIT / 2 < found['limited'] < LIMIT * 1.1
    assert (found['queue'], found['flow'], found['cleared']) == ('', '', '')
    assert 2 < found['in a queue'] < 4.4
    assert found['left'] == {'5:1': 'root'} and found['ended']
    assert 'ofdatapath is neither in PATH nor in' in found['lacking'] and 'install ofqos' in found['lacking']
    if not offload.works():
        assert int(re.search(r'kernel_hits +(\d+)', found['counters'])[1]) > 100


def test_the_class_with_the_command(inside):
    """Each dpctl line of the documents, at the addresses that mn makes"""
    with_class = ('--custom', '/tmp/repository/controllers/python/ofqos/mininet.py', '--switch', 'ofqos')
    for switch in (('--switch', 'user,dpopts='), with_class):
        out = inside('sh', '-c', 'printf "sh dpctl tcp:127.0.0.1:6654 show\\nsh dpctl tcp:127.0.0.1:6655 show\\n" '
                     '>/tmp/lines; mn "$@"', 'mn', *switch, '--controller', 'remote', '--topo', 'linear,2', '--wait',
                     '--post', '/tmp/lines', '--test', 'pingall')
        assert 'Results: 0% dropped (2/2 received)' in out
        assert ' s1-eth1 ' in out and ' s2-eth1 ' in out
    out = inside('mn', *with_class, '--controller', 'none', '--topo', 'linear,2', '--test', 'pingall')
    assert 'Results: 0% dropped (2/2 received)' in out


@pytest.mark.long
def test_the_kernel_as_cache(inside):
    """Nothing here says how fast the machine is, so only that the kernel does the work"""
    found, _ = script(inside, 'offload.py')
    print(f"linear,3: iperf {found['on']:.0f} Mbit/s, {found['on'] / found['off']:.1f} times user space "
          f"alone, {found['on'] / found['bridge']:.1f} times Linux bridges")
    if why := offload.works():
        pytest.skip(why)
    for of_round in found['hits']:
        assert min(of_round) > 1000, 'each switch left its packets to the kernel'
