# SPDX-License-Identifier: Apache-2.0
"""What ofqos-web changes (docs/how-to/web.md): rates, profiles, queues and rules, and how they are taken back; traces."""
import json
import os

import pytest

from support.webtree import (DP, PROFILE, RATE, TRACE, Stream, net, profiles, shown, switch, tree_of, until,  # noqa: F401
                             wanted, web)

pytest.importorskip('aiohttp', reason='aiohttp is not installed (Debian: python3-aiohttp)')
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason='needs root (network namespaces)')


# -------------------------------------------------------------------------------- rates, profiles

def test_a_rate_changed_and_taken_back(web, switch):
    plan = web.ask('POST', RATE, wanted(1, '30mbit', '100%', dry_run=True))
    assert [(s['name'], s['rate']) for s in plan['steps']] == [
        ('office', [24_000_000, 30_000_000]), ('voice', [4_800_000, 6_000_000]), ('work', [14_400_000, 18_000_000])]
    assert plan['command'] == 'qos-htb cmd=change,port=2,class=1,rate=30mbit,ceil=100%'
    assert '1:1 of p2' in plan['steps'][0]['kernel'] and not plan['warnings']
    before = shown(switch)
    assert tree_of(web)[1]['rate'] == 24_000_000            # a preview changes nothing
    change = web.ask('POST', RATE, wanted(1, '30mbit', '100%'))['change']
    assert 'office' in change['what'] and '60% to 30mbit' in change['what']
    found = until(lambda: (f := tree_of(web)) and f[1]['rate'] == 30_000_000 and f)
    assert (found[1]['rate'], found[10]['rate'], found[1]['asked']) == (30_000_000, 6_000_000, {'rate': '30mbit', 'ceil': '100%'})
    assert web.ask('GET', '/api/changes')['changes'][0] == change
    web.ask('POST', f'/api/changes/{change["id"]}/undo', {})
    assert shown(switch) == before
    assert 'already' in web.ask('POST', f'/api/changes/{change["id"]}/undo', {}, 400)['error']


def test_what_somebody_else_changed_is_not_taken_back(web, switch):
    change = web.ask('POST', RATE, wanted(30, '5mbit', '8mbit'))['change']
    switch.dpctl('qos-htb', 'cmd=change,port=2,class=30,rate=6mbit,ceil=7mbit')
    said = web.ask('POST', f'/api/changes/{change["id"]}/undo', {}, 409)
    assert 'somebody else' in said['error'] and '6mbit to 7mbit' in said['error']
    until(lambda: tree_of(web)[30]['rate'] == 6_000_000)


def test_of_two_who_look_the_second_is_told(web, switch):
    """What he decides by is not what is there any more."""
    seen = tree_of(web)[30]['asked']
    web.ask('POST', RATE, wanted(30, '3mbit', '8mbit', seen=seen))
    for dry in True, False:
        said = web.ask('POST', RATE, wanted(30, '4mbit', '8mbit', seen=seen, dry_run=dry), 409)
        assert 'somebody at 127.0.0.1 has changed it' in said['error'] and '3mbit to 8mbit' in said['error']
    web.ask('POST', RATE, wanted(30, '4mbit', '8mbit', seen={'rate': '3mbit', 'ceil': '8mbit'}))


def test_who_changed_it(web, switch):
    with open(web.token_file) as f:
        tokens = f.read()
    with open(web.token_file, 'w') as f:
        f.write(f'{tokens}0123456789abcdef alice\nread fedcba9876543210 bob\n')
    answer = web.request('POST', RATE, wanted(30, '5mbit', '7mbit'), {'Authorization': 'Bearer 0123456789abcdef'})
    assert answer.body['change']['by'] == 'alice'
    until(lambda: any(e['text'].startswith('alice changed') for e in web.view('events')['events']))
    assert web.request('POST', RATE, wanted(30, '5mbit', '8mbit'), {'Authorization': 'Bearer fedcba9876543210'}).status == 403
    assert web.ask('POST', RATE, wanted(30, '6mbit', '8mbit'))['change']['by'] == 'somebody at 127.0.0.1'


def test_a_port_carries_what_its_root_class_has(web, switch):
    def port():
        return next(p for p in web.view(f'switch/{DP}')['ports'] if p['no'] == 2)
    until(lambda: port()['tx_most'] == 40_000_000)              # its queues are asked for after the ports
    assert port()['speed'] == port()['rx_most'] > 40_000_000


@pytest.mark.parametrize('body, says', [
    (wanted(10, '9mbit', '8mbit'), 'below the rate'), (wanted(10, '0', '8mbit'), 'above 0'), (wanted(10, 'fast', '8mbit'), "'fast'"),
    (wanted(99, '1mbit', '2mbit'), 'no queue 99'), (wanted(10, '1mbit', '2mbit', port=77), 'no port 77'),
    (wanted(10, '1mbit', '2mbit', direction='up'), 'no queue'), (wanted(10, '20%', '100%'), 'already'),
    (wanted('10', '20%', '100%'), 'queue'), (wanted(True, '20%', '100%'), 'queue'), (wanted(10, 'x' * 99, '1mbit'), 'too large'),
    (wanted(10, '30', '100%'), 'rate 30: write its unit, as 30mbit'), (wanted(10, '1mbit', '99999999999gbit'), 'more than 18446744073709551615')])
def test_wrong_rates(web, body, says):
    assert says in web.ask('POST', RATE, body, 400)['error']


def test_warnings(web):
    plan = web.ask('POST', RATE, wanted(30, '30mbit', '50mbit', dry_run=True))
    assert len(plan['warnings']) == 2
    assert 'come to 56mbit, more than its 40mbit. HTB keeps each' in plan['warnings'][0] and 'above that of total' in plan['warnings'][1]


def test_profiles(web, switch):
    found = web.ask('GET', '/api/profiles')['profiles']
    assert [p['name'] for p in found] == ['tree.qos', 'two.qos', 'wrong.qos'] and found[0]['about'] == 'A tree.'
    assert found[1]['variables'] == [{'name': 'up', 'value': '20mbit'}]
    body = {'profile': 'two.qos', 'ports': [2, 3], 'values': {'up': '10mbit'}}
    before = json.loads(switch.dpctl('--json', 'qos-show').stdout)
    steps = web.ask('POST', PROFILE, {**body, 'dry_run': True})['steps']
    assert 'qos-htb cmd=add,port=3,class=0,rate=10mbit' in steps and 'qos-htb cmd=add,port=2,class=7,rate=1mbit' in steps
    assert json.loads(switch.dpctl('--json', 'qos-show').stdout) == before
    done = web.ask('POST', PROFILE, body)
    assert done['steps'] == steps and 'p2, p3' in done['change']['what']
    until(lambda: set(tree_of(web, 3)) == {0, 7, 0xfffe} and set(tree_of(web, 3, 'in')) >= {8})
    assert web.ask('POST', PROFILE, body) == {'steps': [], 'change': None}
    web.ask('POST', f'/api/changes/{done["change"]["id"]}/undo', {})
    names = [(e['port_no'], e['direction'], e['object'], e['class_id'], e.get('rate_bps'), e.get('name')) for e in
             json.loads(switch.dpctl('--json', 'qos-show').stdout)['qos']]
    assert names == [(e['port_no'], e['direction'], e['object'], e['class_id'], e.get('rate_bps'), e.get('name'))
                     for e in before['qos']]


@pytest.mark.parametrize('change, status, says', [
    ({'profile': 'wrong.qos'}, 422, 'wrong.qos:1'), ({'profile': '../tree.qos'}, 400, 'no profile'),
    ({'profile': 'hidden.txt'}, 400, 'no profile'), ({'values': {'nothing': '1'}}, 422, 'nothing'),
    ({'values': {'up': '1 --all'}}, 400, 'NAME=VALUE'), ({'ports': [99]}, 400, 'no port 99'), ({'ports': []}, 400, '1 to 256'),
    ({'ports': ['2']}, 400, 'numbers')])
def test_wrong_profiles(web, change, status, says):
    body = {'profile': 'two.qos', 'ports': [2], 'values': {}, 'dry_run': True, **change}
    said = web.ask('POST', PROFILE, body, status)['error']
    assert says in said and '/tmp/' not in said


def test_trace(web, switch):
    switch.dpctl('flow-mod', 'cmd=add,table=0,prio=0', 'apply:queue=10,output=2')
    said = web.ask('POST', TRACE, {'packet': 'in_port=1,eth_type=0x800,ip_proto=6,tcp_dst=80 len=100'})
    assert said['lines'][0] == {'depth': 0, 'text': said['lines'][0]['text']} and '100 bytes' in said['lines'][0]['text']
    assert any(line['depth'] for line in said['lines']) and said['summary'][0].startswith('Leaves by')
    for packet in ('in_port=1 /etc/passwd', '--help', 'eth_type=0x800', 'in_port=1,x', 'in_port=1 file=x', ''):
        web.ask('POST', TRACE, {'packet': packet}, 400)
    assert 'in_port' in web.ask('POST', TRACE, {'packet': 'in_port=1,no_such=1'}, 422)['error']


# ----------------------------------------------------------------------------- queues and rules added

QUEUE, RULE = f'/api/switches/{DP}/queue', f'/api/switches/{DP}/rule'


def rules(switch):
    return {row['rule'] for row in json.loads(switch.dpctl('--json', 'qos-map', 'show').stdout)['rules'] if 'rule' in row}


def test_a_queue_with_a_rule_added_and_taken_back(web, switch):
    before = shown(switch)
    new = {'port': 2, 'queue': 40, 'parent': 1, 'name': 'games', 'rate': '10%', 'ceil': '100%', 'rule': 'udp=5001,src=10.0.0.0/8', 'then': 'normal'}
    plan = web.ask('POST', QUEUE, {**new, 'dry_run': True})
    assert plan['command'] == 'qos-htb cmd=add,port=2,class=40,parent=1,rate=10%,ceil=100%,name=games', plan
    assert [(s['name'], s['rate'], s['ceil']) for s in plan['steps']] == [('games', [None, 2_400_000], [None, 40_000_000])]
    assert 'class 1:28 of p2: new, rate 2400kbit ceil 40mbit' in plan['steps'][0]['kernel']
    assert len(plan['flows']) == 3 and all('queue=40' in f for f in plan['flows'][:2])
    assert shown(switch) == before and not rules(switch)
    change = web.ask('POST', QUEUE, new)['change']
    assert change['what'] == 'queue games of port p2, added' and tree_of(web)[40]['name'] == 'games'
    assert rules(switch) == {'queue=40,udp=5001,src=10.0.0.0/8'}
    web.ask('POST', f"/api/changes/{change['id']}/undo", {})
    assert shown(switch) == before and not rules(switch)


def test_a_rule_alone(web, switch):
    said = web.ask('POST', RULE, {'port': 2, 'queue': 10, 'rule': 'app=sip', 'then': 'normal', 'dry_run': True})
    assert said['command'] == 'qos-map add queue=10,app=sip then=normal' and said['flows'] and not rules(switch)
    change = web.ask('POST', RULE, {'port': 2, 'queue': 10, 'rule': 'app=sip', 'then': 'normal'})['change']
    assert rules(switch) == {'queue=10,app=sip'}
    web.ask('POST', f"/api/changes/{change['id']}/undo", {})
    assert not rules(switch)


@pytest.mark.parametrize('wrong, field, said', [
    ({'queue': 10}, 'queue', 'queue 10 is there already; the next free one is 11'),
    ({'queue': 0}, 'queue', 'a number from 1 to'),
    ({'rate': ''}, 'rate', 'a guarantee is needed'), ({'rate': '6'}, 'rate', 'rate 6: write its unit, as 6mbit'),
    ({'rate': 'much'}, 'rate', 'much'), ({'ceil': '1kbit'}, 'ceil', 'the ceiling 1kbit is below the guarantee 6mbit'),
    ({'parent': 77}, 'parent', 'there is no queue 77'), ({'name': 'voice'}, 'name', 'has the name voice already'),
    ({'name': 'a,b'}, 'name', 'no comma'), ({'rule': 'upd=5001'}, 'rule', 'unknown key upd; did you mean udp?'),
    ({'rule': 'something'}, 'rule', 'write the rule as app=https'), ({'then': 'away'}, 'then', 'then is normal'),
    ({'direction': 'in'}, 'rule', 'a rule is for queues of what leaves')])
def test_queues_that_are_refused(web, switch, wrong, field, said):
    """At the field, and nothing is changed."""
    new = {'port': 2, 'queue': 40, 'rate': '6mbit', 'rule': 'udp=5001', 'then': 'normal', **wrong}
    before = shown(switch)
    for dry in (True, False):
        answer = web.request('POST', QUEUE, {**new, 'dry_run': dry}, {'Authorization': f'Bearer {web.token}'})
        assert answer.status == 400 and answer.body.get('field') == field and said in answer.body['error'], answer
    assert shown(switch) == before and not rules(switch)


def test_hosts(web, switch):
    assert web.ask('GET', f'/api/switches/{DP}/hosts?port=1') == {'hosts': []}
    switch.dpctl('qos-hosts', 'port=1', 'prefix=10.0.0.0/30,rate=1mbit,ceil=2mbit', 'then=normal')
    found = web.ask('GET', f'/api/switches/{DP}/hosts?port=1')['hosts']
    assert {(h['host'], h['rate'], h['ceil']) for h in found} == {('10.0.0.1', 1_000_000, 2_000_000), ('10.0.0.2', 1_000_000, 2_000_000)}
    assert 'port is missing' in web.ask('GET', f'/api/switches/{DP}/hosts', status=400)['error']


def test_what_came_of_a_change_is_measured(web, switch):
    """While somebody looks: what the queue did before, and ten seconds later."""
    stream = Stream(web, f'port/{DP}/2')
    stream.until(lambda name, d: name == 'view' and d['looked'] and d['trees'][0]['nodes'][0]['bps'] is not None)
    web.ask('POST', RATE, wanted(30, '5mbit', '8mbit'))
    event = stream.until(lambda name, d: name == 'happened' and '10 s later' in d['text'])
    assert event['kind'] == 'change' and 'rate 0 Mbit/s to 0 Mbit/s' in event['text']
    change, = web.ask('GET', '/api/changes')['changes']
    assert change['before']['bps'] == change['after']['bps'] == 0
    stream.close()
