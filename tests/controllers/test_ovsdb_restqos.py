# SPDX-License-Identifier: Apache-2.0
"""The walk-through of rest_qos's documentation (the chapter "QoS" of Ryu's book) with os-ken's rest_qos, unchanged,
and ofqos-ovsdb in the place of Open vSwitch's database: queues by flow, DiffServ, meters."""
import contextlib
import os
import re
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from support import app, tc, topo, udp  # noqa: E402
from support.wait import until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason='needs root (network namespaces)')

OVSDB = 'tcp:127.0.0.1:6632'


def dpid(n):
    return f'{n:016x}'


def edited(stock, tmp_path, name, pattern, old, new):
    """As the book says: the application with its flows in table 1, made by sed's `/pattern(/,/)/s/old/new/`"""
    with open(os.path.join(stock, f'os_ken/app/{name}.py'), encoding='utf-8') as f:
        text = f.read()
    text = re.sub(re.escape(pattern) + r'\([^)]*\)', lambda found: found[0].replace(old, new, 1), text)
    (tmp_path / f'qos_{name}.py').write_text(text)
    return f'qos_{name}'


@contextlib.contextmanager
def database(t, *switches):
    words = [word for s in switches for word in ('--switch', s.address)]
    with app.Application(t.switch_ns, sys.executable, '-m', 'ofqos.ovsdb', *words, '--listen', OVSDB,
                         path=[app.PACKAGE]) as ovsdb:
        ovsdb.said_until('listening')
        yield ovsdb
        ovsdb.check()
        assert 'Traceback' not in ovsdb.errors() and 'a fault' not in ovsdb.errors()


def link(t, a, b):
    topo.sh('ip', '-n', t.switch_ns, 'link', 'add', a, 'type', 'veth', 'peer', 'name', b)
    for end in (a, b):
        topo.sh('ip', '-n', t.switch_ns, 'link', 'set', end, 'up')


class Qos:
    """rest_qos by HTTP; each call gives the one command_result"""

    def __init__(self, t):
        self.rest = app.Rest(t.switch_ns)

    def joined(self, *switches):
        self.rest.wait('/v1.0/conf/switches')
        for n in switches:
            until(lambda n=n: self.rest('GET', f'/qos/rules/{dpid(n)}')[0], wanted=lambda status: status == 200)

    def __call__(self, method, what, switch, **body):
        status, answer = self.rest(method, f'/{what}/{dpid(switch)}', body or None)
        assert status == 200, (what, status, answer)
        one, = answer
        assert one['switch_id'] == dpid(switch)
        return one['command_result']

    def rule(self, switch, match, **actions):
        done, = self('POST', 'qos/rules', switch, match=match, actions=actions)
        assert done['result'] == 'success', done

    def use_database(self, t, switch):
        """Until the database knows the switch; the application does not try again by itself"""
        def known():
            done = subprocess.run(['ip', 'netns', 'exec', t.switch_ns, 'ovs-vsctl', f'--db={OVSDB}', '--bare', 'find',
                                   'bridge', f'datapath_id={dpid(switch)}'], stdin=subprocess.DEVNULL, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=30, check=False)
            return done.stdout.strip()
        until(known)
        status, answer = self.rest('PUT', f'/v1.0/conf/switches/{dpid(switch)}/ovsdb_addr', OVSDB)
        assert status == 201, answer
        # The application goes there when it comes to it.
        until(lambda: self('POST', 'qos/queue', switch, queues=[], port_name='p1')['result'],
              wanted=lambda result: result == 'success')
        assert self.rest('GET', f'/v1.0/conf/switches/{dpid(switch)}/ovsdb_addr') == (200, OVSDB)

    def queues(self, switch, port, max_rate, *queues):
        done = self('POST', 'qos/queue', switch, port_name=port, type='linux-htb', max_rate=max_rate, queues=list(queues))
        assert done['result'] == 'success', done
        return done['details']


def rates(t, port):
    """queue -> (rate, ceil) in the kernel; 65519 is Open vSwitch's queue 0"""
    return {n: (c['options']['rate'], c['options']['ceil']) for n, c in tc.classes(t.switch_ns, port).items() if n < 65520}


def test_queues_by_flow(stock, ovs_python, tmp_path):
    switching = edited(stock, tmp_path, 'simple_switch_13', 'OFPFlowMod', ')', ', table_id=1)')
    with topo.Topology(ports=2, ip=True) as t, \
            app.stock(stock, t.switch_ns, 'os_ken.app.rest_qos', switching, 'os_ken.app.rest_conf_switch',
                      path=[ovs_python, str(tmp_path)]), \
            topo.Switch(t, 'tcp:127.0.0.1') as switch, database(t, switch):
        qos = Qos(t)
        qos.joined(1)
        assert qos('GET', 'qos/queue', 1)['result'] == 'failure'        # "Queue is not exists."
        qos.use_database(t, 1)
        assert qos.queues(1, 'p1', '1000000', {'max_rate': '500000'}, {'min_rate': '800000'}) == {
            '0': {'config': {'max-rate': '500000'}}, '1': {'config': {'min-rate': '800000'}}}
        assert rates(t, 'p1') == {65519: (12_000, 500_000), 1: (800_000, 1_000_000)}
        assert rates(t, 'p2') == {}
        assert qos('GET', 'qos/queue', 1)['details'] == {'p1': {
            '0': {'config': {'max-rate': '500000'}}, '1': {'config': {'min-rate': '800000'}}}}
        qos.rule(1, {'nw_dst': '10.0.0.1', 'nw_proto': 'UDP', 'tp_dst': '5002'}, queue='1')
        assert qos('GET', 'qos/rules', 1) == [{'qos': [
            {'priority': 1, 'dl_type': 'IPv4', 'nw_proto': 'UDP', 'tp_dst': 5002, 'qos_id': 1, 'nw_dst': '10.0.0.1',
             'actions': [{'queue': '1'}]}]}]
        until(lambda: t.pings(2, '10.0.0.1'))
        alone, = udp.measured([udp.Stream(t, 2, 1, '10.0.0.1', 5001, 1e6)], seconds=2)
        plain, promised = udp.measured([udp.Stream(t, 2, 1, '10.0.0.1', port, 1e6) for port in (5001, 5002)])
        assert 0.4 < alone < 0.55 and 0 < plain < 0.3 and 0.75 < promised < 1.05, (alone, plain, promised)
        status = {q['queue_id']: q['tx_bytes'] for q in qos('GET', 'qos/queue/status', 1)['1']}
        assert set(status) == {1, 65519} and status[1] > status[65519] > 0

        # Another POST changes what is there; packets and counters of the queues stay.
        qos.queues(1, 'p1', '2000000', {'max_rate': '600000'}, {'min_rate': '900000', 'max_rate': '1500000'})
        assert rates(t, 'p1') == {65519: (12_000, 600_000), 1: (900_000, 1_500_000)}
        assert tc.classes(t.switch_ns, 'p1')[1]['bytes'] >= status[1]
        # All ports, of which one can't: the application says so, and that port stays as it is.
        code, answer = qos.rest('POST', f'/qos/queue/{dpid(1)}', {
            'port_name': 'p2', 'type': 'linux-sfq', 'queues': [{'max_rate': '600000'}]})
        assert code == 400 and 'has no queues' in answer, answer
        assert rates(t, 'p2') == {}

        assert qos('DELETE', 'qos/queue', 1) == 'success'
        assert rates(t, 'p1') == {}
        done, = qos('DELETE', 'qos/rules', 1, qos_id='1')
        assert done['result'] == 'success'
        assert qos('GET', 'qos/rules', 1) == [{'qos': []}] or qos('GET', 'qos/rules', 1) == []


def test_diffserv(stock, ovs_python, tmp_path):
    router = edited(stock, tmp_path, 'rest_router', 'OFPFlowMod', '0, cmd', '1, cmd')
    with topo.Topology(ports=2) as t:
        for host, own, gateway in ((1, '172.16.20.10', '172.16.20.1'), (2, '172.16.10.10', '172.16.10.1')):
            topo.sh('ip', '-n', t.host_ns(host), 'address', 'add', f'{own}/24', 'dev', 'e0')
            topo.sh('ip', '-n', t.host_ns(host), 'route', 'add', 'default', 'via', gateway)
        link(t, 's1s2', 's2s1')
        with app.stock(stock, t.switch_ns, 'os_ken.app.rest_qos', router, 'os_ken.app.rest_conf_switch',
                       path=[ovs_python, str(tmp_path)]), \
                topo.Switch(t, 'tcp:127.0.0.1', interfaces=['p1', 's1s2'], dpid=dpid(1)) as s1, \
                topo.Switch(t, 'tcp:127.0.0.1', interfaces=['p2', 's2s1'], dpid=dpid(2)) as s2, database(t, s1, s2):
            qos = Qos(t)
            qos.joined(1, 2)
            qos.use_database(t, 1)
            qos.queues(1, 'p1', '1000000', {'max_rate': '1000000'}, {'min_rate': '200000'}, {'min_rate': '500000'})
            assert rates(t, 'p1') == {65519: (12_000, 1_000_000), 1: (200_000, 1_000_000), 2: (500_000, 1_000_000)}
            for switch, body in ((1, {'address': '172.16.20.1/24'}), (1, {'address': '172.16.30.10/24'}),
                                 (1, {'gateway': '172.16.30.1'}), (2, {'address': '172.16.10.1/24'}),
                                 (2, {'address': '172.16.30.1/24'}), (2, {'gateway': '172.16.30.10'})):
                done, = qos('POST', 'router', switch, **body)
                assert done['result'] == 'success', done
            qos.rule(1, {'ip_dscp': '26'}, queue='1')
            qos.rule(1, {'ip_dscp': '34'}, queue='2')
            qos.rule(2, {'nw_dst': '172.16.20.10', 'nw_proto': 'UDP', 'tp_dst': '5002'}, mark='26')
            qos.rule(2, {'nw_dst': '172.16.20.10', 'nw_proto': 'UDP', 'tp_dst': '5003'}, mark='34')
            found = qos('GET', 'qos/rules', 1)[0]['qos']
            assert {(r['ip_dscp'], r['actions'][0]['queue']) for r in found} == {(26, '1'), (34, '2')}
            found = qos('GET', 'qos/rules', 2)[0]['qos']
            assert {(r['tp_dst'], r['actions'][0]['mark']) for r in found} == {(5002, '26'), (5003, '34')}
            until(lambda: t.pings(2, '172.16.20.10'), seconds=90)
            plain, af31, af41 = udp.measured([udp.Stream(t, 2, 1, '172.16.20.10', port, rate) for port, rate in (
                (5001, 1e6), (5002, 3e5), (5003, 6e5))])
            assert plain < 0.25 and af31 > 0.25 and af41 > 0.5, (plain, af31, af41)


def test_meters(stock, tmp_path):
    """Here the book has no Open vSwitch: queues are made by `dpctl queue-mod`, on links of 1 Mbit/s.  It adds a
    rule before the meter that it names, which OpenFlow refuses (OFPMMFC_UNKNOWN_METER): the other way round."""
    switching = edited(stock, tmp_path, 'simple_switch_13', 'OFPFlowMod', ')', ', table_id=1)')
    with topo.Topology(ports=3, ip=True) as t:
        link(t, 's1s2', 's2s1')
        link(t, 's1s3', 's3s1')
        with app.stock(stock, t.switch_ns, 'os_ken.app.rest_qos', switching, 'os_ken.app.rest_conf_switch',
                       path=[str(tmp_path)]), \
                topo.Switch(t, 'tcp:127.0.0.1', interfaces=['p1', 's1s2', 's1s3'], dpid=dpid(1)) as s1, \
                topo.Switch(t, 'tcp:127.0.0.1', interfaces=['s2s1', 'p2'], dpid=dpid(2)), \
                topo.Switch(t, 'tcp:127.0.0.1', interfaces=['s3s1', 'p3'], dpid=dpid(3)):
            qos = Qos(t)
            qos.joined(1, 2, 3)
            s1.dpctl('qos-htb', 'cmd=replace,port=1,class=0,rate=1mbit')
            for queue, share in ((1, 80), (2, 120), (3, 800)):
                s1.dpctl('queue-mod', '1', str(queue), str(share))
            for port in ('2', '3'):
                for dscp, queue in (('0', '1'), ('10', '3'), ('12', '2')):
                    qos.rule(1, {'ip_dscp': dscp, 'in_port': port}, queue=queue)
            for switch in (2, 3):
                done = qos('POST', 'qos/meter', switch, meter_id='1', flags='KBPS',
                           bands=[{'type': 'DSCP_REMARK', 'rate': '400', 'prec_level': '1'}])
                assert done[0]['result'] == 'success', done
                qos.rule(switch, {'ip_dscp': '10'}, meter='1')
            assert len(qos('GET', 'qos/rules', 1)[0]['qos']) == 6
            assert qos('GET', 'qos/rules', 2)[0]['qos'][0]['actions'] == [{'meter': '1'}]
            for host in (2, 3):
                until(lambda host=host: t.pings(host, '10.0.0.1'))
            plain, af11 = udp.measured([udp.Stream(t, 2, 1, '10.0.0.1', 5001, 8e5),
                                        udp.Stream(t, 3, 1, '10.0.0.1', 5002, 6e5, tos=0x28)])
            assert plain < 0.5 and af11 > 0.5, (plain, af11)
            meter, = qos('GET', 'qos/meter', 3)['3']
            assert meter['band_stats'][0]['packet_band_count'] > 50
