# SPDX-License-Identifier: Apache-2.0
"""OpenConfig's models: the document has nothing that the models haven't, and the exporter's is that of dpctl --openconfig."""
import asyncio
import json
import os
import shutil
import struct
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from support import app, topo  # noqa: E402
from support.exporter import Exporter  # noqa: E402
from support.wait import until  # noqa: E402

sys.path.insert(0, app.PACKAGE)

from ofqos import dpctl, wire  # noqa: E402
from ofqos.exporter.openconfig import OpenConfig  # noqa: E402
from ofqos.ports import PORT_DESC, PORT_STATS  # noqa: E402
from ofqos.replies import Counters, Entry  # noqa: E402
from ofqos.request import Request  # noqa: E402

# The parts of the models that are used: leaf -> type; a list is [key, what an entry has].
# openconfig-qos 0.7.0 (2022-12-20), openconfig-interfaces 3.x, openconfig-qos-types 1.0.0
U8, U32, U64, TEXT, FLAG = 'uint8', 'uint32', 'uint64', 'string', 'boolean'
COUNTERS = {f'{way}-{what}': U64 for way in ('in', 'out') for what in ('octets', 'pkts', 'discards', 'errors')}
UP = ('UP', 'DOWN', 'TESTING')
NAME = {'name': TEXT}
QUEUES = {'queue': ['name', {**NAME, 'config': NAME, 'state': {
    **NAME, 'max-queue-len': U64, 'avg-queue-len': U64, 'transmit-pkts': U64, 'transmit-octets': U64, 'dropped-pkts': U64,
    'dropped-octets': U64}}]}
SIDE = {'queues': QUEUES, 'scheduler-policy': {'config': NAME, 'state': NAME}}
INPUT = {'id': TEXT, 'input-type': ('QUEUE', 'IN_PROFILE', 'OUT_PROFILE'), 'queue': TEXT, 'weight': U64}
TYPES = tuple(f'openconfig-qos-types:{t}' for t in ('ONE_RATE_TWO_COLOR', 'TWO_RATE_THREE_COLOR'))
SCHEDULER = {
    'sequence': U32, 'config': {'sequence': U32}, 'state': {'sequence': U32, 'type': TYPES},
    'inputs': {'input': ['id', {'id': TEXT, 'config': INPUT, 'state': INPUT}]},
    'output': {'state': {'output-type': ('SCHEDULER', 'FWD_GROUP', 'INTERFACE'), 'child-scheduler': TEXT}},
    'one-rate-two-color': {'state': {'cir': U64, 'bc': U32, 'queuing-behavior': ('SHAPE', 'POLICE')}},
    'two-rate-three-color': {'state': {'cir': U64, 'pir': U64, 'bc': U32, 'be': U32}}}
ID = {'interface-id': TEXT}
MODEL = {
    'openconfig-interfaces:interfaces': {'interface': ['name', {**NAME, 'config': NAME, 'state': {
        **NAME, 'type': ('iana-if-type:ethernetCsmacd',), 'enabled': FLAG, 'admin-status': UP, 'oper-status': UP,
        'counters': COUNTERS}}]},
    'openconfig-qos:qos': {
        'interfaces': {'interface': ['interface-id', {**ID, 'config': ID, 'state': ID, 'output': SIDE, 'input': SIDE}]},
        'queues': {'queue': ['name', {**NAME, 'config': NAME, 'state': {**NAME, 'queue-id': U8}}]},
        'scheduler-policies': {'scheduler-policy': ['name', {**NAME, 'config': NAME, 'state': NAME, 'schedulers': {
            'scheduler': ['sequence', SCHEDULER]}}]}}}


def check(value, model, path=''):
    """RFC 7951: 5.4 lists, 6.1 numbers"""
    if isinstance(model, dict):
        assert isinstance(value, dict) and value.keys() <= model.keys(), (path, value)
        for name in value:
            check(value[name], model[name], f'{path}/{name}')
    elif isinstance(model, list):
        key, entry = model
        assert isinstance(value, list), path
        keys = [each[key] for each in value]
        assert len(set(keys)) == len(keys) and all(each['config'][key] == each[key] for each in value), (path, keys)
        for each in value:
            check(each, entry, path)
    elif isinstance(model, tuple):
        assert value in model, (path, value)
    elif model == U64:
        assert isinstance(value, str) and str(int(value)) == value and 0 <= int(value) < 1 << 64, (path, value)
    elif model in (U8, U32):
        assert type(value) is int and 0 <= value < 1 << (8 if model == U8 else 32), (path, value)
    else:
        assert type(value) is {TEXT: str, FLAG: bool}[model], (path, value)


def references(document):
    """Each leafref names something that is there."""
    qos = document['openconfig-qos:qos']
    queues = {q['name'] for q in qos['queues']['queue']}
    policies = {p['name']: p['schedulers']['scheduler'] for p in qos['scheduler-policies']['scheduler-policy']}
    for schedulers in policies.values():
        for s in schedulers:
            assert s['output']['state'].get('child-scheduler', 'none') in {*policies, 'none'}
            for i in s.get('inputs', {}).get('input', []):
                assert i['state']['queue'] in queues
    for interface in qos['interfaces']['interface']:
        for side in (interface.get('input', {}), interface.get('output', {})):
            assert {q['name'] for q in side.get('queues', {}).get('queue', [])} <= queues
            assert 'scheduler-policy' not in side or side['scheduler-policy']['state']['name'] in policies


def checked(document):
    check(document, MODEL)
    references(document)
    return document


def made(text, parent=0, **counters):
    kind, words = text.split(' ', 1)
    zero = dict.fromkeys(Counters._fields, 0)
    return Entry(Request.from_text(kind, f'cmd=add,port=1,{words}'), parent, Counters(**{**zero, **counters}))


PORTS = b''.join(struct.pack('!I4x6s2x16sIIIIIIII', number, bytes([2, 0, 0, 0, 0, number]), b'eth%d' % number, down, down,
                             0, 0, 0, 0, speed, speed) for number, down, speed in ((1, 0, 1_000_000), (2, 1, 0)))
TOTALS = struct.pack('!I4x12QII', 1, 1 << 63, *range(2, 13), 1, 1)


def asked(answers):
    """The document of a switch that answers so"""
    return json.loads(asyncio.run(OpenConfig(topo.binary('utils/dpctl/dpctl')).document(answers)))


def openconfig(ports, totals, entries):
    return asked({(False, PORT_DESC): ports, (False, PORT_STATS): totals,
                  (True, wire.QOS_DUMP): b''.join(entry.encode() for entry in entries)})


def test_a_tree():
    entries = [made('htb default=0'), made('htb class=0,rate=1gbit'), made('htb class=10,rate=6mbit,ceil=10mbit,prio=1,name=voice'),
               made('htb class=20,rate=50%,burst=10kb', bytes=7, packets=3, drops=2), made('sfq class=20,perturb=10', 20, drops=5),
               made('htb class=30,rate=1mbit,parent=10', 10), made('htb class=400,rate=5mbit')]
    document = checked(openconfig(PORTS, TOTALS, entries))
    one, two = document['openconfig-interfaces:interfaces']['interface']
    assert one['state']['counters']['in-pkts'] == str(1 << 63) and one['state']['oper-status'] == 'UP'
    assert (two['state']['admin-status'], two['state']['oper-status'], 'counters' in two['state']) == ('DOWN', 'DOWN', False)
    qos = document['openconfig-qos:qos']
    interface, = qos['interfaces']['interface']
    queues = {q['name']: q['state'] for q in interface['output']['queues']['queue']}
    assert set(queues) == {'20', '30', '400'}
    assert queues['20'] == {'name': '20', 'transmit-pkts': '3', 'transmit-octets': '7', 'dropped-pkts': '5'}
    assert [q['state'].get('queue-id') for q in qos['queues']['queue']] == [30, 20, None]
    policies = {p['name']: p['schedulers']['scheduler'] for p in qos['scheduler-policies']['scheduler-policy']}
    assert list(policies) == ['eth1:out', 'eth1:out:root', 'eth1:out:10']
    assert policies['eth1:out:10'][0]['two-rate-three-color'] == {'state': {'cir': '6000000', 'pir': '10000000'}}
    assert policies['eth1:out:10'][0]['output'] == {'state': {'output-type': 'SCHEDULER', 'child-scheduler': 'eth1:out:root'}}
    by_queue = {s['inputs']['input'][0]['state']['queue']: s for s in policies['eth1:out']}
    assert by_queue['20']['one-rate-two-color']['state'] == {'cir': '500000000', 'bc': 10240, 'queuing-behavior': 'SHAPE'}
    assert by_queue['30']['output']['state']['child-scheduler'] == 'eth1:out:10'
    assert policies['eth1:out:root'][0]['output'] == {'state': {'output-type': 'INTERFACE'}}


def test_other_kinds():
    hfsc = [made('hfsc default=0'), made('hfsc class=0,ls=1gbit,ul=1gbit'), made('hfsc class=1,rt=5mbit,ul=9mbit')]
    document = checked(openconfig(PORTS, b'', hfsc))
    scheduler = document['openconfig-qos:qos']['scheduler-policies']['scheduler-policy'][0]['schedulers']['scheduler'][0]
    assert scheduler['two-rate-three-color']['state'] == {'cir': '5000000', 'pir': '9000000'}
    drr = checked(openconfig(PORTS, b'', [made('drr default=0'), made('drr class=4,quantum=3000')]))
    scheduler, = drr['openconfig-qos:qos']['scheduler-policies']['scheduler-policy'][0]['schedulers']['scheduler']
    assert scheduler['inputs']['input'][0]['state']['weight'] == '3000' and 'type' not in scheduler['state']
    alone = checked(openconfig(PORTS, b'', [made('fq_codel limit=1000')]))['openconfig-qos:qos']
    assert [q['name'] for q in alone['queues']['queue']] == ['port'] and alone['scheduler-policies']['scheduler-policy'] == []
    entering = checked(openconfig(PORTS, b'', [made('htb class=0,rate=1mbit,direction=in'),
                                          made('htb class=7,rate=1mbit,direction=in')]))
    assert 'output' not in entering['openconfig-qos:qos']['interfaces']['interface'][0]


def test_switches_that_have_no_queues_or_talk_nonsense():
    other = checked(asked({(False, PORT_DESC): PORTS, (False, PORT_STATS): TOTALS}))    # another maker's
    assert len(other['openconfig-interfaces:interfaces']['interface']) == 2
    assert other['openconfig-qos:qos']['queues'] == {'queue': []}
    with pytest.raises(dpctl.Failed, match='malformed'):
        asked({(True, wire.QOS_DUMP): bytes(71)})
    with pytest.raises(dpctl.Failed, match='not installed here'):
        none = OpenConfig()
        none.path = ''
        asyncio.run(none.document({}))


def test_many_queues_take_no_square_of_time():
    entries = [made('htb class=0,rate=1gbit')] + [made(f'htb class={n},rate=1mbit') for n in range(1, 5_000)]
    document = openconfig(PORTS, TOTALS, entries)
    assert len(document['openconfig-qos:qos']['queues']['queue']) == 4_999


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which('ip'), reason='needs root (network namespaces)')
def test_dpctl_and_the_exporter_say_the_same():
    pytest.importorskip('prometheus_client')
    with topo.Topology(ports=3) as t, topo.Switch(t) as switch:
        def document(*words):
            return checked(json.loads(switch.dpctl(*words).stdout))
        empty = document('--openconfig')
        assert [i['name'] for i in empty['openconfig-interfaces:interfaces']['interface']] == ['p1', 'p2', 'p3']
        assert empty['openconfig-qos:qos']['interfaces'] == {'interface': []}
        for words in ('htb port=1,class=0,rate=100mbit', 'htb port=1,class=10,rate=6mbit,ceil=10mbit,prio=1,name=voice',
                      'pfifo port=1,class=10,limit=30', 'htb port=1,class=300,rate=20%,ceil=50%',
                      'htb port=1,class=31,rate=1mbit,parent=300', 'htb port=1,class=32,rate=10%,parent=300,burst=20kb',
                      'htb port=2,class=10,rate=1mbit', 'pfifo port=3,limit=40',
                      'htb port=2,class=0,rate=10mbit,direction=in', 'htb port=2,class=5,rate=1mbit,direction=in'):
            kind, settings = words.split()
            switch.dpctl(f'qos-{kind}', f'cmd=add,{settings}')
        whole = document('--openconfig')
        assert whole == document('qos-show', '--openconfig') == document('qos-show', '--openconfig', '--json')
        one = document('qos-show', '--openconfig', 'port=p1')
        assert [i['interface-id'] for i in one['openconfig-qos:qos']['interfaces']['interface']] == ['p1']
        assert switch.dpctl('qos-show', '--openconfig', 'class=3', check=False).returncode == 2
        assert switch.dpctl('features', '--openconfig', check=False).returncode == 2
        with Exporter('--dpctl', topo.binary('utils/dpctl/dpctl'), switch.address) as exporter:
            wanted = until(lambda: json.loads(exporter.get('/openconfig/')[2])['switches'])
            assert wanted == [switch.dpid]
            status, kind, text = exporter.get(f'/openconfig/{switch.dpid}')
            assert (status, kind) == (200, 'application/yang-data+json')
            assert exporter.get('/openconfig/00000000000000ff')[0] == 404
        assert without_counters(checked(json.loads(text))) == without_counters(whole)


def without_counters(document):
    """What moves by itself: a port hears its neighbours."""
    for interface in document['openconfig-interfaces:interfaces']['interface']:
        assert interface['state'].pop('counters')
    for interface in document['openconfig-qos:qos']['interfaces']['interface']:
        for side in (interface.get('input', {}), interface.get('output', {})):
            for queue in side.get('queues', {}).get('queue', []):
                queue['state'] = sorted(queue['state'])
    return document
