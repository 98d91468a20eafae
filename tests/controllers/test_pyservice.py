# SPDX-License-Identifier: Apache-2.0
"""The Python package for controllers inside os-ken and Ryu, and its example application, with real
traffic."""
import json
import os
import platform
import subprocess
import sys
import time

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from support import app, tc, topo  # noqa: E402
from support.wait import until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason='needs root (network namespaces)')


def test_every_call_of_the_service(framework):
    with topo.Topology(ports=2) as t, framework.run(t.switch_ns, 'servicecheck') as check, \
            topo.Switch(t, 'tcp:127.0.0.1'):
        said = [json.loads(line) for line in check.said_until('"end"').splitlines()]
    steps = {}
    for line in said:
        steps.setdefault(line.pop('step'), line)
    assert steps['end'] == {'framework': framework.name}
    assert 'failed' not in steps, steps['failed']['why']
    first = [[1, 3], [1, 4], [2, 5]]
    assert steps['send'] == {'queues': first}
    assert (steps['exists']['refused'], steps['exists']['index']) == ('OFPSFC_EXISTS', 1)
    assert steps['exists']['text']
    assert (steps['native']['refused'], steps['native']['index']) == ('OFPSFC_NOT_FOUND', 0)
    assert steps['results'] == {'results': ['OFPSFC_EXISTS', None, 'OFPSFC_BAD_PORT']}
    full = sorted(first + [[2, 6], [2, 11]])
    assert steps['bundle'] == {'queues': full}
    assert (steps['bundle refused']['refused'], steps['bundle refused']['index']) == \
        ('OFPSFC_EXISTS', 2)
    assert steps['bundle undone'] == {'queues': full}
    assert (steps['bundle malformed']['refused'], steps['bundle malformed']['index']) == \
        ('OFPSFC_BAD_PARAM', 1)
    (one, config), (two, leaf) = steps['dump']['dump']
    assert (one, two) == (11, 11)
    assert config.startswith('qos-htb cmd=add,port=2,class=11,rate=1mbit,ceil=1mbit')
    assert leaf == 'qos-pfifo cmd=add,port=2,class=11,limit=50'
    assert steps['dump refused']['refused'] == 'OFPSFC_BAD_PORT'
    assert steps['ports'] == {'ports': [[1, 'out', 'htb', 2], [2, 'out', 'htb', 3]]}
    assert steps['kernel'] == {'release': platform.release(), 'htb': True}
    assert steps['served'] == {'ratios': [None]}
    assert steps['counters'] == {'some': True}
    assert steps['clear'] == {'queues': []}
    assert steps['many'] == {'queues': 300}
    assert steps['gone']['error'] in ('Disconnected', 'TimeoutError')


@pytest.fixture
def example(framework):
    with topo.Topology(ports=2, ip=True) as t, framework.run(t.switch_ns, 'appqueues'), \
            topo.Switch(t, 'tcp:127.0.0.1') as switch:
        rest = app.Rest(t.switch_ns)
        rest.wait('/apps')
        until(lambda: switch.dpctl('stats-flow').stdout,
              wanted=lambda said: 'output=controller' in said)
        t.exec(1, 'ping', '-c', '3', '-i', '0.2', '-W', '2', '10.0.0.2')
        yield t, switch, rest


def measured(t, *options, host='10.0.0.2'):
    """What iperf3's receiver got, in Mbit/s, from host 1 to host 2."""
    server = subprocess.Popen(['ip', 'netns', 'exec', t.host_ns(2), 'iperf3', '-s', '-1'],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        time.sleep(0.5)
        out = t.exec(1, 'timeout', '30', 'iperf3', '-c', host, '--connect-timeout', '3000',
                     '-t', '3', '-J', *options)
        server.wait(10)
    finally:
        if server.poll() is None:
            server.kill()
        server.wait()
    return json.loads(out)['end']['sum_received']['bits_per_second'] / 1e6


def test_application_into_a_queue(example):
    t, switch, rest = example
    free = measured(t)
    assert free > 30
    status, made = rest('POST', '/apps', {'name': 'iperf', 'rate': '8mbit',
                                          'match': {'tcp_dst': 5201}})
    assert (status, made['queue'], made['ceil']) == (201, 1, 8_000_000)
    for port in ('p1', 'p2'):
        assert tc.classes(t.switch_ns, port)[1]['options']['rate'] == 8_000_000
    assert 5.5 <= measured(t) <= 8.2
    assert 5.5 <= measured(t, host='fd00::2') <= 8.2        # IPv6 is meant as well
    status, shown = rest('GET', '/apps/iperf')
    by_port = {q['port']: q for q in shown['queues']}
    assert status == 200 and set(by_port) == {1, 2}
    assert by_port[2]['bytes'] > 2_000_000 > by_port[1]['bytes']
    # UDP is not what the application was said to be
    assert measured(t, '-u', '-b', '20M') > 15
    assert rest('DELETE', '/apps/iperf') == (204, None)
    assert tc.classes(t.switch_ns, 'p2') == {}
    assert measured(t) > 30
    assert rest('GET', '/apps') == (200, [])


def test_udp_application_on_one_port(example):
    t, _, rest = example
    status, _ = rest('POST', '/apps', {'name': 'u', 'rate': '3mbit', 'ceil': '4mbit', 'port': 2,
                                       'match': {'udp_dst': 5201, 'ipv4_dst': '10.0.0.2'}})
    assert status == 201
    assert tc.classes(t.switch_ns, 'p1') == {}
    assert 3 <= measured(t, '-u', '-b', '12M', '-l', '1000') <= 4.2
    assert rest('DELETE', '/apps/u') == (204, None)
    assert measured(t, '-u', '-b', '12M', '-l', '1000') > 10


def test_switch_that_comes_back_gets_its_queues(example):
    t, switch, rest = example
    assert rest('POST', '/apps', {'name': 'a', 'rate': '7mbit', 'match': {'tcp_dst': 80}})[0] == 201
    assert switch.stop() == 0
    switch.log.close()
    assert tc.classes(t.switch_ns, 'p1') == {}
    switch.start()
    classes = until(lambda: tc.classes(t.switch_ns, 'p2'), wanted=lambda c: 1 in c, seconds=40)
    assert classes[1]['options']['rate'] == 7_000_000
    assert 'apply:queue=1' in switch.dpctl('stats-flow').stdout
    assert rest('DELETE', '/apps/a')[0] == 204


def test_what_rest_refuses(example):
    t, switch, rest = example
    good = {'name': 'a', 'rate': '1mbit', 'match': {'tcp_dst': 80}}
    for body, word in ((dict(good, rate='1furlong'), 'rate'), (dict(good, name=''), 'name'),
                       (dict(good, match={}), 'match'), (dict(good, speed=1), 'speed'),
                       (dict(good, match={'no_such': 1}), 'match'),
                       (dict(good, match={'ipv4_dst': 'x'}), 'match'),
                       (dict(good, match={'tcp_dst': 'x'}), 'match'),
                       (dict(good, match={'tcp_dst': 70000}), 'match'), ([], 'object')):
        status, answer = rest('POST', '/apps', body)
        assert status == 400 and word in answer['error'], (body, status, answer)
    status, answer = rest('POST', '/apps', dict(good, port=77))
    assert status == 409 and 'OFPSFC_BAD_PORT' in answer['error']
    assert rest('POST', '/apps', good)[0] == 201
    assert rest('POST', '/apps', good)[0] == 409
    assert rest('DELETE', '/apps/b')[0] == 404
    assert rest('GET', '/other')[0] == 404
    assert rest('DELETE', '/apps')[0] == 405
    assert rest('DELETE', '/apps/a')[0] == 204
    assert tc.classes(t.switch_ns, 'p1') == {}


def test_command_line(example):
    t, switch, _ = example

    def appctl(*args, check=True):
        done = subprocess.run(['ip', 'netns', 'exec', t.switch_ns, sys.executable,
                               os.path.join(app.EXAMPLES, 'appctl.py'), *args], text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=60)
        assert not check or done.returncode == 0, done.stderr
        return done
    assert appctl('add', 'web', '2mbit', 'tcp_dst=80', 'ipv4_dst=10.0.0.2', '--port',
                  '2').stdout == 'web: queue 1\n'
    appctl('add', 'dns', '1mbit', 'udp_dst=53', 'ipv4_dst=10.0.0.0/255.255.255.0')
    listed = appctl('list').stdout
    assert 'web: queue 1, 2000000 to 2000000 bit/s, tcp_dst=80 ipv4_dst=10.0.0.2' in listed
    assert 'ipv4_dst=10.0.0.0/24,udp_dst=53' in switch.dpctl('stats-flow').stdout
    assert 'dns: queue 2' in listed and 'port 2: 0 bytes' in listed
    failed = appctl('add', 'web', '2mbit', 'tcp_dst=80', check=False)
    assert failed.returncode == 1 and 'there already' in failed.stderr
    assert sorted(tc.classes(t.switch_ns, 'p2'))[:2] == [1, 2]
    appctl('del', 'web')
    appctl('del', 'dns')
    assert appctl('list').stdout == ''
    assert tc.classes(t.switch_ns, 'p2') == {}
