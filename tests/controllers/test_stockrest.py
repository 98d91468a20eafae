# SPDX-License-Identifier: Apache-2.0
"""os-ken's REST applications, unchanged: every route of ofctl_rest that OpenFlow 1.3 has, and
rest_qos with its rules and meters, on queues that somebody else has made.  (With the database of Open vSwitch
that it makes queues by: test_ovsdb_restqos.py.)"""
import base64
import os
import re
import struct
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from support import app, tc, topo  # noqa: E402
from support.wait import until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason='needs root (network namespaces)')

DPID, DPID_NUMBER = f'{1:016x}', '1'


class Stats:
    """ofctl_rest on switch 1: get('flow') -> what stands there; post('flowentry/add', ...)"""

    def __init__(self, rest):
        self.rest = rest

    def get(self, what, *more, **body):
        path = '/'.join(('/stats', what, '1', *map(str, more)))
        status, answer = self.rest('POST' if body else 'GET', path, body or None)
        assert status == 200, (path, status, answer)
        return answer['1']

    def post(self, what, **body):
        status, answer = self.rest('POST', f'/stats/{what}', {'dpid': 1, **body})
        assert status == 200, (what, status, answer)


def stats_of(rest):
    """As soon as the application knows the switch"""
    rest.wait('/stats/switches')
    until(lambda: rest('GET', '/stats/switches')[1], wanted=lambda known: known == [1])
    return Stats(rest)


@pytest.fixture(scope='module')
def running(stock):
    """ofctl_rest and a switch that it knows -> (topology, Stats)"""
    with app.stock_with_switch(stock, 'os_ken.app.ofctl_rest') as (t, _, rest):
        yield t, stats_of(rest)


@pytest.fixture
def ofctl(running):
    """The same, with empty tables"""
    t, stats = running
    assert stats.rest('DELETE', '/stats/flowentry/clear/1')[0] == 200
    stats.post('groupentry/delete', group_id='ALL')
    stats.post('meterentry/delete', meter_id='ALL')
    assert [stats.get(what) for what in ('flow', 'groupdesc', 'meterconfig')] == [[], [], []]
    return t, stats


def wires():
    return [{'table_id': 0, 'priority': 10, 'cookie': 7, 'match': {'in_port': a},
             'actions': [{'type': 'OUTPUT', 'port': b}]} for a, b in ((1, 2), (2, 1))]


def test_what_the_switch_is(ofctl):
    t, stats = ofctl
    desc = stats.get('desc')
    assert 'ofqos' in (desc['mfr_desc'] + desc['hw_desc'] + desc['sw_desc']).lower(), desc
    ports = {p['port_no']: p for p in stats.get('portdesc')}
    assert {n: p['name'] for n, p in ports.items()} == {1: 'p1', 2: 'p2'}
    assert [p['port_no'] for p in stats.get('port')] == [1, 2]
    assert [p['port_no'] for p in stats.get('port', 2)] == [2]
    tables = stats.get('table')
    features = stats.get('tablefeatures')
    assert [f['table_id'] for f in features] == [t['table_id'] for t in tables] and len(tables) > 1
    kinds = {p['type'] for p in features[0]['properties']}
    assert {'INSTRUCTIONS', 'NEXT_TABLES', 'MATCH', 'WILDCARDS', 'APPLY_SETFIELD'} <= kinds
    meters, = stats.get('meterfeatures')
    assert meters['band_types'] == ['DROP', 'DSCP_REMARK'] and meters['max_meter'] > 0
    assert sorted(meters['capabilities']) == ['BURST', 'KBPS', 'PKTPS', 'STATS']
    groups, = stats.get('groupfeatures')
    assert groups['types'] == ['ALL', 'SELECT', 'INDIRECT', 'FF']


def test_flows(ofctl):
    t, stats = ofctl
    for flow in wires():
        stats.post('flowentry/add', **flow)
    t.exec(1, 'ping', '-c', '2', '-i', '0.2', '-W', '5', '10.0.0.2')
    one, = stats.get('flow', match={'in_port': 1})
    assert (one['actions'], one['match'], one['cookie']) == (['OUTPUT:2'], {'in_port': 1}, 7)
    assert one['packet_count'] >= 2 and one['byte_count'] >= 2 * 98
    assert stats.get('flowdesc', match={'in_port': 1})[0]['priority'] == 10
    total, = stats.get('aggregateflow')
    assert total['flow_count'] == 2 and total['packet_count'] >= 4
    assert stats.get('aggregateflow', cookie=8, cookie_mask=255)[0]['flow_count'] == 0
    table = stats.get('table')[0]
    assert table['active_count'] == 2 and table['matched_count'] >= 4
    # Modified by what it matches, then strictly; the other flow stays as it is.
    stats.post('flowentry/modify', match={'in_port': 1},
               actions=[{'type': 'SET_QUEUE', 'queue_id': 9}, {'type': 'OUTPUT', 'port': 2}])
    assert stats.get('flow', match={'in_port': 1})[0]['actions'] == ['SET_QUEUE:9', 'OUTPUT:2']
    stats.post('flowentry/modify_strict', priority=11, match={'in_port': 2}, actions=[])
    assert stats.get('flow', match={'in_port': 2})[0]['actions'] == ['OUTPUT:1']
    stats.post('flowentry/modify_strict', priority=10, match={'in_port': 2}, actions=[])
    assert stats.get('flow', match={'in_port': 2})[0]['actions'] == []
    stats.post('flowentry/delete_strict', priority=11, match={'in_port': 2})
    assert len(stats.get('flow')) == 2
    stats.post('flowentry/delete_strict', priority=10, match={'in_port': 2})
    assert [f['match'] for f in stats.get('flow')] == [{'in_port': 1}]
    stats.post('flowentry/delete', match={})
    assert stats.get('flow') == []
    for flow in wires():
        stats.post('flowentry/add', **flow)
    assert stats.rest('DELETE', '/stats/flowentry/clear/1')[0] == 200
    assert stats.get('flow') == []


# A flow as one writes it for ofctl_rest -> how it reads the switch's answer
FLOWS = [
    ({'match': {'dl_type': 0x800, 'nw_src': '10.0.0.0/255.255.255.0', 'nw_proto': 6, 'tp_dst': 80},
      'actions': [{'type': 'DEC_NW_TTL'}, {'type': 'OUTPUT', 'port': 'CONTROLLER'}]},
     {'dl_type': 0x800, 'nw_src': '10.0.0.0/255.255.255.0', 'nw_proto': 6, 'tp_dst': 80},
     ['DEC_NW_TTL', 'OUTPUT:CONTROLLER']),
    ({'match': {'dl_vlan': '5', 'dl_dst': '01:00:00:00:00:00/01:00:00:00:00:00'},
      'actions': [{'type': 'POP_VLAN'}, {'type': 'OUTPUT', 'port': 'FLOOD'}]},
     {'dl_vlan': '5', 'dl_dst': '01:00:00:00:00:00/01:00:00:00:00:00'},
     ['POP_VLAN', 'OUTPUT:FLOOD']),
    ({'match': {'in_port': 1}, 'actions': [
        {'type': 'PUSH_VLAN', 'ethertype': 0x8100},
        {'type': 'SET_FIELD', 'field': 'vlan_vid', 'value': 0x1005},
        {'type': 'OUTPUT', 'port': 'IN_PORT'}]},
     {'in_port': 1}, ['PUSH_VLAN:33024', 'SET_FIELD: {vlan_vid:4101}', 'OUTPUT:IN_PORT']),
    ({'match': {'eth_type': 0x86dd, 'ipv6_dst': 'fd00::2', 'ip_proto': 58, 'icmpv6_type': 135,
                'ipv6_nd_target': 'fd00::2'},
      'actions': [{'type': 'WRITE_ACTIONS', 'actions': [{'type': 'OUTPUT', 'port': 2}]}]},
     {'dl_type': 0x86dd, 'ipv6_dst': 'fd00::2', 'nw_proto': 58, 'icmpv6_type': 135,
      'ipv6_nd_target': 'fd00::2'}, [{'WRITE_ACTIONS': ['OUTPUT:2']}]),
    ({'match': {'eth_type': 0x806, 'arp_op': 1, 'arp_tpa': '10.0.0.2'},
      'actions': [{'type': 'WRITE_METADATA', 'metadata': 0x12, 'metadata_mask': 0xff},
                  {'type': 'GOTO_TABLE', 'table_id': 1}]},
     {'dl_type': 0x806, 'arp_op': 1, 'arp_tpa': '10.0.0.2'},
     ['WRITE_METADATA:0x12/0xff', 'GOTO_TABLE:1']),
    ({'match': {'eth_type': 0x8847, 'mpls_label': 100, 'mpls_bos': 1},
      'actions': [{'type': 'DEC_MPLS_TTL'}, {'type': 'POP_MPLS', 'ethertype': 0x800},
                  {'type': 'OUTPUT', 'port': 'ALL'}]},
     {'dl_type': 0x8847, 'mpls_label': 100, 'mpls_bos': 1},
     ['DEC_MPLS_TTL', 'POP_MPLS:2048', 'OUTPUT:ALL']),
    ({'match': {'eth_type': 0x88e7, 'pbb_isid': 5}, 'actions': [
        {'type': 'POP_PBB'}, {'type': 'CLEAR_ACTIONS'}]},
     {'dl_type': 0x88e7, 'pbb_isid': 5}, ['CLEAR_ACTIONS', 'POP_PBB']),
    ({'match': {'tunnel_id': '0x10/0xf0', 'metadata': '0x1/0x1'}, 'actions': []},
     {'tunnel_id': '16/240', 'metadata': '1/1'}, []),
]


def test_flows_come_back_as_written(ofctl):
    _, stats = ofctl
    for n, (flow, _, _) in enumerate(FLOWS, 1):
        stats.post('flowentry/add', cookie=n, priority=n, **flow)
    found = {f['cookie']: f for f in stats.get('flow')}
    for n, (_, match, actions) in enumerate(FLOWS, 1):
        assert found[n]['match'] == match
        assert sorted(map(str, found[n]['actions'])) == sorted(map(str, actions))


def test_groups(ofctl):
    t, stats = ofctl
    bucket = {'weight': 0, 'watch_port': 2, 'watch_group': 0xffffffff,
              'actions': [{'type': 'OUTPUT', 'port': 2}]}
    stats.post('groupentry/add', type='FF', group_id=1, buckets=[bucket])
    stats.post('groupentry/add', type='ALL', group_id=2,
               buckets=[{'actions': [{'type': 'OUTPUT', 'port': 2}]},
                        {'actions': [{'type': 'OUTPUT', 'port': 1}]}])
    first, second = sorted(stats.get('groupdesc'), key=lambda g: g['group_id'])
    assert (first['type'], first['group_id']) == ('FF', 1)
    assert first['buckets'] == [{**bucket, 'actions': ['OUTPUT:2']}]
    assert (second['type'], len(second['buckets'])) == ('ALL', 2)
    stats.post('flowentry/add', **dict(wires()[0], actions=[{'type': 'GROUP', 'group_id': 1}]))
    stats.post('flowentry/add', **wires()[1])
    t.exec(1, 'ping', '-c', '2', '-i', '0.2', '-W', '5', '10.0.0.2')
    used, = stats.get('group', 1)
    assert used['ref_count'] == 1 and used['packet_count'] >= 2
    assert used['bucket_stats'][0]['packet_count'] >= 2
    assert len(stats.get('group')) == 2
    stats.post('groupentry/modify', type='INDIRECT', group_id=2,
               buckets=[{'actions': [{'type': 'OUTPUT', 'port': 1}]}])
    assert {g['group_id']: g['type'] for g in stats.get('groupdesc')} == {1: 'FF', 2: 'INDIRECT'}
    stats.post('groupentry/delete', group_id=1)
    assert [g['group_id'] for g in stats.get('groupdesc')] == [2]
    assert [f['match'] for f in stats.get('flow')] == [{'in_port': 2}]      # 6.5.4: goes with it


def test_meters(ofctl):
    t, stats = ofctl
    bands = [{'type': 'DROP', 'rate': 1000, 'burst_size': 100},
             {'type': 'DSCP_REMARK', 'rate': 500, 'burst_size': 50, 'prec_level': 1}]
    stats.post('meterentry/add', meter_id=1, flags=['KBPS', 'STATS', 'BURST'], bands=bands)
    stats.post('meterentry/add', meter_id=2, flags='PKTPS',
               bands=[{'type': 'DROP', 'rate': 5, 'burst_size': 0}])
    config, = stats.get('meterconfig', 1)
    assert sorted(config['flags']) == ['BURST', 'KBPS', 'STATS'] and config['bands'] == bands
    assert {m['meter_id'] for m in stats.get('meterconfig')} == {1, 2}
    stats.post('flowentry/add', **dict(wires()[0], actions=[
        {'type': 'METER', 'meter_id': 1}, {'type': 'OUTPUT', 'port': 2}]))
    stats.post('flowentry/add', **wires()[1])
    t.exec(1, 'ping', '-c', '2', '-i', '0.2', '-W', '5', '10.0.0.2')
    used, = stats.get('meter', 1)
    assert used['flow_count'] == 1 and used['packet_in_count'] >= 2
    assert len(used['band_stats']) == 2
    stats.post('meterentry/modify', meter_id=2, flags='KBPS',
               bands=[{'type': 'DROP', 'rate': 9, 'burst_size': 0}])
    assert stats.get('meterconfig', 2)[0]['bands'][0]['rate'] == 9
    stats.post('meterentry/delete', meter_id=1)
    assert [m['meter_id'] for m in stats.get('meter')] == [2]
    assert [f['match'] for f in stats.get('flow')] == [{'in_port': 2}]      # 6.5.4: goes with it


def test_queues(ofctl):
    """A queue made by the QoS message of this switch, in the experimenter envelope"""
    t, stats = ofctl
    body = struct.pack('!B3xBB2xIIQQI4x', 1, 1, 0, 2, 3, 5_000_000, 0, 0)
    stats.post('experimenter/1', experimenter=0x514f5346, exp_type=1, data_type='base64',
               data=base64.b64encode(body).decode())
    queue, = stats.get('queue')
    assert (queue['port_no'], queue['queue_id'], queue['tx_errors']) == (2, 3, 0)
    assert tc.classes(t.switch_ns, 'p2')[3]['options']['rate'] == 5_000_000
    for asked in ((2,), (2, 3), ('ALL', 3)):
        assert [q['queue_id'] for q in stats.get('queue', *asked)] == [3]
    config, = stats.get('queueconfig', 2)
    assert (config['port'], [q['queue_id'] for q in config['queues']]) == (2, [3])
    assert [p['property'] for p in config['queues'][0]['properties']] == ['MIN_RATE', 'MAX_RATE']


def test_port_mod_and_role(ofctl):
    t, stats = ofctl

    def link():
        return topo.sh('ip', '-n', t.switch_ns, '-o', 'link', 'show', 'p1')
    for config in (1, 0):           # OFPPC_PORT_DOWN
        stats.post('portdesc/modify', port_no=1, config=config, mask=1)
        assert stats.get('portdesc')[0]['config'] == config
        assert (',UP' in link()) == (not config)
    for role in ('MASTER', 'SLAVE', 'EQUAL'):
        stats.post('role', role=role)
        assert stats.get('role')[0]['role'] == role


# ------------------------------------------------------------------------------ rest_qos

def udp(t, seconds=3, offered='10M'):
    """What arrives of UDP from host 1 to host 2, in Mbit/s"""
    server = subprocess.Popen(['ip', 'netns', 'exec', t.host_ns(2), 'iperf3', '-s', '-1'],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        until(lambda: t.exec(2, 'ss', '-Hltn', 'sport = 5201'))
        out = t.exec(1, 'timeout', '30', 'iperf3', '-c', '10.0.0.2', '-u', '-b', offered, '-l',
                     '1000', '-t', str(seconds), '-f', 'm')
        server.wait(10)
    finally:
        if server.poll() is None:
            server.kill()
        server.wait()
    return float(re.search(r'([\d.]+) Mbits/sec.*receiver', out)[1])


def test_rules_and_meters_of_rest_qos(stock):
    with app.stock_with_switch(stock, 'os_ken.app.rest_qos', 'os_ken.app.rest_conf_switch',
                               'os_ken.app.ofctl_rest') as (t, switch, rest):
        stats = stats_of(rest)
        until(lambda: [f['actions'] for f in stats.get('flow')],
              wanted=lambda found: found == [['GOTO_TABLE:1']])
        for wire in wires():
            stats.post('flowentry/add', **dict(wire, table_id=1))
        switch.dpctl('qos-htb', 'cmd=add,port=2,class=4,rate=100mbit')

        def qos(method, what, **body):
            status, answer = rest(method, f'/qos/{what}/{DPID}', body or None)
            assert status == 200, answer
            return answer[0]['command_result']
        assert qos('POST', 'meter', meter_id='1', flags='KBPS',
                   bands=[{'type': 'DROP', 'rate': '2000'}])[0]['result'] == 'success'
        assert qos('POST', 'rules', priority='5',
                   match={'nw_dst': '10.0.0.2', 'nw_proto': 'UDP', 'tp_dst': '5201'},
                   actions={'meter': '1', 'queue': '4'})[0]['result'] == 'success'
        assert qos('POST', 'rules', match={'ip_dscp': '26', 'dl_type': 'IPv4'},
                   actions={'mark': '10'})[0]['result'] == 'success'
        rules = qos('GET', 'rules')[0]['qos']
        assert {'qos_id': 1, 'priority': 5, 'dl_type': 'IPv4', 'nw_dst': '10.0.0.2',
                'nw_proto': 'UDP', 'tp_dst': 5201}.items() <= rules[0].items(), rules
        assert 1 <= udp(t) <= 2.3
        meter, = qos('GET', 'meter')[DPID_NUMBER]
        assert meter['packet_in_count'] > 1000 and meter['band_stats'][0]['packet_band_count'] > 500
        assert tc.classes(t.switch_ns, 'p2')[4]['bytes'] > 300_000
        status = rest('GET', f'/qos/queue/status/{DPID}')[1][0]['command_result'][DPID_NUMBER]
        assert [(q['port_no'], q['queue_id']) for q in status] == [(2, 4)]
        assert status[0]['tx_bytes'] > 300_000
        assert qos('DELETE', 'rules', qos_id='1')[0]['result'] == 'success'
        assert qos('DELETE', 'meter', meter_id='1')['result'] == 'success'
        assert udp(t, 2) > 8
        # Without the database the application says so, and goes on.
        assert qos('POST', 'queue', port_name='p1', type='linux-htb', max_rate='1000000',
                   queues=[{'max_rate': '500000'}])['result'] == 'failure'
