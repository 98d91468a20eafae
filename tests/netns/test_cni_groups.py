# SPDX-License-Identifier: Apache-2.0
"""Groups of a container: shares of its totals that its runtime asks ofqos-cni for (docs/how-to/containers.md)"""
import json
import os
import re
import time

import pytest

from support import cni
from support.cni import Failed, Node
from support.load import comes_to
from support.topo import REPOSITORY, sh
from support.udp import PAYLOAD, Stream, measured

pytestmark = pytest.mark.skipif(not cni.there(), reason='this build has no ofqos-cni (it needs jansson)')
MBIT = 1_000_000
WEB, REST = {'name': 'web', 'share': 75, 'ports': ['5001/udp', '80/tcp']}, {'name': 'rest', 'share': 20}
ANNOTATIONS = 'io.kubernetes.cri.pod-annotations'


@pytest.fixture(name='node')
def node_of_containers(tmp_path, need):
    need('htb')
    with Node(tmp_path, '--map=then=normal') as n:
        yield n
        assert n.switch.alive()


def asked(groups, into=8 * MBIT, out=4 * MBIT, **runtime):
    return {'runtimeConfig': {'bandwidth': {'ingressRate': into, 'egressRate': out}, 'ofqosGroups': groups, **runtime}}


def rules(node):
    return json.loads(node.switch.dpctl('--json', 'qos-map', 'show').stdout)['rules']


def classes(node, port):
    """{(direction, name): share in ppm}"""
    entries = json.loads(node.switch.dpctl('--json', 'qos-show', f'port={port}').stdout)['qos']
    return {(e['direction'], e['name']): e['config']['rate_share_ppm'] for e in entries if 'name' in e}


def nothing_but_the_switchs_own(node):
    return [rule for rule in rules(node) if rule.get('rule')] == [] and node.left() == []


def test_shares_are_kept_both_ways(node):
    one, two = node.container(1), node.container(2)
    conf = asked([WEB, REST])
    said = node.run('ADD', one, conf)
    node.run('ADD', two)
    payload = PAYLOAD / (PAYLOAD + 42)

    def measure():
        got = measured([Stream(node.topo, 2, 1, '10.9.0.2', port, 12 * MBIT) for port in (5001, 5002)] +
                       [Stream(node.topo, 1, 2, '10.9.0.3', port, 12 * MBIT) for port in (5001, 5002)])
        return dict(zip(('web in', 'rest in', 'web out', 'rest out'), got))
    # What borrows is shared as the rates are: 75 to 20
    comes_to(measure, {f'{name} {way}': total * share / 95 * payload for name, share in (('web', 75), ('rest', 20))
                       for way, total in (('in', 8), ('out', 4))}, 0.06)
    assert node.run('CHECK', one, {**conf, 'prevResult': said}) is None
    assert node.run('DEL', one, conf) is None
    node.run('DEL', two)
    assert nothing_but_the_switchs_own(node)
    assert [rule['then'] for rule in rules(node)] == ['normal']      # the switch's own map stays


def test_one_direction_dscp_and_ipv6(node):
    one = node.container(1)
    sh('ip', 'netns', 'exec', one, 'sysctl', '-qw', 'net.ipv6.conf.default.disable_ipv6=1')
    conf = {**asked([{'name': 'voice', 'share': 12.5, 'dscp': ['ef', 34]}], out=0),
            'ipam': {**node.conf['ipam'], 'subnet': 'fd09::/112', 'routes': []}}
    said = node.run('ADD', one, conf)
    port, = node.ports().values()
    assert classes(node, port) == {('out', 'voice'): 125000}
    texts = [rule['rule'] for rule in rules(node) if rule.get('rule')]
    assert len(texts) == 2 and all('dscp=ef' in text and 'fd09::2' in text for text in texts)
    node.run('CHECK', one, {**conf, 'prevResult': said})
    node.run('DEL', one, conf)
    assert nothing_but_the_switchs_own(node)


def test_where_groups_come_from(node):
    """The pod's annotation before the runtime's arguments, those before the network's usual groups"""
    one = node.container(1)
    mine = [{'name': 'mine', 'share': 10}]
    given = asked([WEB], **{ANNOTATIONS: {'ofqos.io/groups': json.dumps(mine), 'other': 'x'}})
    given['args'] = {'cni': {'ofqosGroups': [REST]}}
    for conf, name in ((given, 'mine'), ({**asked([WEB]), 'args': given['args']}, 'rest'), (asked([WEB]), 'web')):
        node.run('ADD', one, conf)               # anew: the last one's groups go
        port, = node.ports().values()
        assert {name for _, name in classes(node, port)} == {name}
        assert len({rule['queue'] for rule in rules(node) if rule.get('rule')}) == 1
    node.run('ADD', one, asked([]))
    assert not [rule for rule in rules(node) if rule.get('rule')]


def test_gc_and_a_port_that_is_gone(node):
    ids = [node.container(n) for n in (1, 2, 3)]
    for one in ids:
        node.run('ADD', one, asked([WEB]))
    sh('ip', 'netns', 'del', ids[0])
    node.run('DEL', ids[0], CNI_NETNS=None)
    node.run('GC', '', {'cni.dev/valid-attachments': [{'containerID': ids[1], 'ifname': 'eth0'}]})
    assert len({rule['set'] for rule in rules(node) if rule.get('rule')}) == 1 and len(node.ports()) == 1
    node.run('DEL', ids[1])
    assert nothing_but_the_switchs_own(node)


@pytest.mark.parametrize('what, words', [
    ('qos-map del set={host}', 'flows are missing'),
    ('flow-mod cmd=add,table=0,cookie={cookie},prio=9000 ip_proto=17,eth_type=0x800,udp_dst=9 apply:output=normal', 'too many'),
    ('qos-htb cmd=change,port={port},class={queue},rate=10%,ceil=100%', r'group web \(ingress\) has 10.00 % of the total and should have 75.00 %'),
    ('qos-htb cmd=del,port={port},class={queue},direction=in', r'no group web \(egress'),
])
def test_check_says_which(node, what, words):
    one = node.container(1)
    conf = asked([WEB])
    conf['prevResult'] = node.run('ADD', one, conf)
    (host, port), = node.ports().items()
    rule = next(rule for rule in rules(node) if rule.get('rule'))
    flows = json.loads(node.switch.dpctl('--json', 'stats-flow').stdout)['flows']
    cookie = next(flow['cookie'] for flow in flows if flow['priority'])
    node.switch.dpctl(*what.format(host=host, port=port, queue=rule['queue'], cookie=cookie).split())
    with pytest.raises(Failed, match=words) as e:
        node.run('CHECK', one, conf)
    assert e.value.code == 102
    node.run('DEL', one, conf)
    assert node.left() == [] and not [rule for rule in rules(node) if rule.get('rule')]


def test_killed_anywhere(node):
    """kill -9 at any moment, then DEL: no rule stays"""
    one, conf = node.container(1), asked([WEB, REST])
    began = time.monotonic()
    node.run('ADD', one, conf)
    node.run('DEL', one, conf)
    took, reached = time.monotonic() - began, set()
    for n in range(12):
        process = node.start('ADD', one, conf)
        time.sleep(took * (n + 1) / 14)
        process.kill()
        process.communicate()
        reached.add((bool(node.ports()), any(rule.get('rule') for rule in rules(node))))
        node.run('DEL', one, conf)
        assert nothing_but_the_switchs_own(node)
    assert len(reached) > 1, reached


GROUP = {'name': 'a', 'share': 1}
WRONG = [
    ({}, 'a list of at most 16'), ([GROUP] * 17, 'at most 16'), ([1], r'groups\[0\]: must be an object'),
    ([{'share': 1}], 'name must be'), ([{'name': 'a b', 'share': 1}], 'name must be'), ([{'name': 'x' * 32, 'share': 1}], 'name must be'),
    ([{'name': 'a'}], 'share must be'), ([{'name': 'a', 'share': '10'}], 'share must be'), ([{'name': 'a', 'share': 0}], 'share must be'),
    ([{'name': 'a', 'share': 1e300}], 'share must be'), ([{**GROUP, 'rate': 1}], 'no key rate'),
    ([{'name': 'a', 'share': 60}, {'name': 'b', 'share': 41, 'ports': ['1/tcp']}], r'groups\[1\]: the shares up to this one come to more than 100'),
    ([GROUP, GROUP], 'name a is that of'), ([GROUP, {'name': 'b', 'share': 1}], 'selects the same packets'),
    ([{**GROUP, 'ports': '80/tcp'}], 'ports must be a list'), ([{**GROUP, 'ports': []}], 'ports must be a list'),
    ([{**GROUP, 'ports': ['80']}], r'ports\[0\] must be'), ([{**GROUP, 'ports': ['80/icmp']}], r'ports\[0\] must be'),
    ([{**GROUP, 'ports': ['1/tcp', '80,queue=1/tcp']}], r'ports\[1\] must be'), ([{**GROUP, 'ports': ['70000/tcp']}], '0 to 65535'),
    ([{**GROUP, 'dscp': ['64']}], 'dscp'), ([{**GROUP, 'dscp': ['ef,queue=1']}], r'dscp\[0\] must be'), ([{**GROUP, 'dscp': [True]}], r'dscp\[0\] must be'),
    ([{**GROUP, 'ports': ['1-60000/udp']}], 'flows'),
]


def test_wrong_groups(node):
    one = node.container(1)
    for groups, words in WRONG:
        with pytest.raises(Failed, match=words) as e:
            node.run('ADD', one, asked(groups))
        assert e.value.code in (7, 100), (groups, e.value.code)
    for conf, words in [(asked([GROUP], into=0, out=0), 'ingressRate, egressRate or both'), ({**asked([GROUP]), 'ipam': None}, 'ipam is needed'),
                        (asked([], **{ANNOTATIONS: {'ofqos.io/groups': '[{'}}), 'annotation ofqos.io/groups, line 1'),
                        (asked([], **{ANNOTATIONS: {'ofqos.io/groups': [1]}}), 'must be a text')]:
        with pytest.raises(Failed, match=words):
            node.run('ADD', one, conf)
    assert nothing_but_the_switchs_own(node)


def test_the_pages_annotation(node):
    with open(os.path.join(REPOSITORY, 'docs/how-to/containers.md'), encoding='utf-8') as f:
        text = re.search(r'ofqos.io/groups: \|\n((?: {6}.*\n)+)', f.read())[1]
    conf = asked([], **{ANNOTATIONS: {'ofqos.io/groups': text}})
    said = node.run('ADD', node.container(1), conf)
    port, = node.ports().values()
    assert classes(node, port) == {(way, name): share * 10_000 for way in ('in', 'out') for name, share in (('web', 60), ('voice', 10), ('rest', 20))}
    node.run('CHECK', node.topo.host_ns(1), {**conf, 'prevResult': said})
