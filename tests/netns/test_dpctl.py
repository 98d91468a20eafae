# SPDX-License-Identifier: Apache-2.0
"""dpctl: its commands, what it says to bad ones, exit status, JSON."""
import json
import os
import re
import select
import signal
import subprocess
import time

import pytest

from support import of13, qosmsg as q, tc
from support.of13 import match
from support.topo import Switch, Topology, binary, dpctl, udp_frame

ONE_SWITCH = True
MBIT = 1_000_000


def refuses(switch, *args, says=''):
    done = switch.dpctl(*args, check=False)
    assert done.returncode != 0, f'accepted: {args}\n{done.stdout}'
    assert done.returncode > 0, f'dpctl died of signal {-done.returncode}'
    assert done.stderr.strip(), 'it failed without a word'
    assert says in done.stderr, f'{says!r} is not in: {done.stderr}'
    return done.stderr


def meaning(raw):
    """Instructions without what means nothing: max_len of an output to another port"""
    out = []
    for kind, body in of13.parse_list(raw, 'instruction'):
        if kind in (3, 4):
            body = [(act, data[:4] if act == 0 else data)
                    for act, data in of13.parse_list(body[4:], 'action')]
        out.append((kind, body))
    return sorted(out, key=lambda item: item[0])


def test_features_and_descriptions(switch):
    assert '0000000000000001' in switch.dpctl('features').stdout.replace('0x', '').lower() \
        or '0x1' in switch.dpctl('features').stdout
    text = switch.dpctl('port-desc').stdout
    assert all(f'p{n}' in text for n in range(1, 5))
    assert switch.dpctl('stats-desc').stdout.strip()
    for command in ('stats-flow', 'stats-port', 'stats-queue'):
        switch.dpctl(command)


@pytest.mark.parametrize('command', ['features', 'port-desc', 'stats-desc', 'stats-flow',
                                     'stats-port', 'stats-queue', 'qos-show'])
def test_json(switch, command):
    switch.dpctl('qos-htb', 'cmd=add,port=2,class=10,rate=6mbit')
    switch.dpctl('flow-mod', 'cmd=add,table=0', 'apply:output=2')
    assert json.loads(switch.dpctl('--json', command).stdout)


def test_address_first_or_last(switch):
    first = dpctl(switch.address, 'features').stdout
    assert dpctl('features', switch.address).stdout == first
    last = dpctl('qos-htb', 'cmd=add,port=2,class=10,rate=6mbit', switch.address)
    assert last.returncode == 0
    assert tc.classes(switch.topo.switch_ns, 'p2')[10]


def test_flow_mod(switch, conn):
    switch.dpctl('flow-mod', 'cmd=add,table=0,prio=10',
                 'in_port=1,eth_type=0x800,ip_proto=6,tcp_dst=666', 'apply:queue=2,output=2')
    flow, = conn.flows()
    assert flow['priority'] == 10
    assert flow['match'] == {'in_port': 1, 'eth_type': 0x800, 'ip_proto': 6, 'tcp_dst': 666}
    assert meaning(flow['raw_instructions']) == \
        meaning(of13.apply_actions(of13.set_queue(2), of13.output(2)))
    text = switch.dpctl('stats-flow').stdout
    assert 'tcp_dst' in text and '666' in text
    switch.dpctl('flow-mod', 'cmd=del,table=0', 'in_port=1')
    assert conn.flows() == []


@pytest.mark.parametrize('args,wanted', [
    (['cmd=add,table=0', 'apply:output=2'], of13.apply_actions(of13.output(2))),
    (['cmd=add,table=0', 'in_port=1', 'write:output=3', 'goto:1'],
     of13.write_actions(of13.output(3)) + of13.goto_table(1)),
    (['cmd=add,table=0', 'in_port=1', 'meta:0x10/0xf0', 'goto:2'],
     of13.write_metadata(0x10, 0xf0) + of13.goto_table(2)),
    (['cmd=add,table=0', 'vlan_vid=5', 'apply:pop_vlan,output=2'],
     of13.apply_actions(of13.pop_vlan(), of13.output(2))),
    (['cmd=add,table=0', 'in_port=1', 'apply:set_field=eth_dst:02:00:00:00:00:09,output=2'],
     of13.apply_actions(of13.set_field(eth_dst='02:00:00:00:00:09'), of13.output(2))),
    (['cmd=add,table=0,prio=0', 'apply:output=ctrl'], None),
])
def test_flow_mod_grammar(switch, conn, args, wanted):
    switch.dpctl('flow-mod', *args)
    flow, = conn.flows()
    if wanted is not None:
        assert meaning(flow['raw_instructions']) == meaning(wanted)


@pytest.mark.parametrize('text,fields', [
    ('ipv4_dst=10.1.0.0/255.255.0.0', dict(eth_type=0x800, ipv4_dst=('10.1.0.0', '255.255.0.0'))),
    ('eth_src=02:00:00:00:00:01', dict(eth_src='02:00:00:00:00:01')),
    ('ipv6_dst=fd00::1', dict(eth_type=0x86dd, ipv6_dst='fd00::1')),
    ('ip_dscp=46', dict(eth_type=0x800, ip_dscp=46))])
def test_flow_mod_fields(switch, conn, text, fields):
    full = f"eth_type={fields['eth_type']:#x},{text}" if 'eth_type' in fields else text
    switch.dpctl('flow-mod', 'cmd=add,table=0', full, 'apply:output=2')
    flow, = conn.flows()
    assert flow['match'] == of13.parse_match(match(**fields))[0]


QOS = [
    ('qos-htb', 'cmd=add,port=2,class=10,rate=6mbit,ceil=10mbit,prio=1', 'htb'),
    ('qos-pfifo', 'cmd=add,port=2,class=20,limit=50', 'pfifo'),
    ('qos-bfifo', 'cmd=add,port=2,class=20,limit=30kb', 'bfifo'),
    ('qos-sfq', 'cmd=add,port=2,class=20,perturb=10', 'sfq'),
    ('qos-red', 'cmd=add,port=2,class=20,threshold=10000,limit=60000', 'red'),
]


@pytest.mark.testkernel
@pytest.mark.parametrize('command,args,kind', QOS)
def test_qos(switch, conn, need, command, args, kind):
    need(kind)
    q.send(conn, q.NATIVE, q.htb_class(q.ADD, 2, 20, MBIT))
    switch.dpctl(command, args)
    ns = switch.topo.switch_ns
    if kind == 'htb':
        options = tc.classes(ns, 'p2')[10]['options']
        assert (options['rate'], options['ceil'], options['prio']) == (6 * MBIT, 10 * MBIT, 1)
    else:
        assert tc.leaf(ns, 'p2', 20)['kind'] == kind
    text = switch.dpctl('qos-show').stdout
    assert kind in text
    assert isinstance(json.loads(switch.dpctl('--json', 'qos-show').stdout), (list, dict))
    switch.dpctl('qos-clear', 'port=2')
    assert tc.root(ns, 'p2') is None


@pytest.mark.parametrize('text,bits', [
    ('6mbit', 6_000_000), ('6Mbit', 6_000_000), ('500kbit', 500_000), ('100kbps', 800_000),
    ('1gbit', 1_000_000_000), ('64000', 64_000), ('1mibit', 1 << 20)])
def test_tc_rate_units(switch, text, bits):
    switch.dpctl('qos-htb', f'cmd=add,port=2,class=1,rate={text}')
    assert tc.classes(switch.topo.switch_ns, 'p2')[1]['options']['rate'] == bits


@pytest.mark.parametrize('args,says', [
    (['nonsense'], 'nonsense'),
    (['flow-mod', 'cmd=nonsense,table=0', 'apply:output=2'], 'nonsense'),
    (['flow-mod', 'cmd=add,table=0', 'nosuchfield=1', 'apply:output=2'], 'nosuchfield'),
    (['flow-mod', 'cmd=add,table=0', 'ipv4_dst=10.0.0.300', 'apply:output=2'], '10.0.0.300'),
    (['flow-mod', 'cmd=add,table=0', 'in_port=1', 'apply:nosuchaction=1'], 'nosuchaction'),
    (['qos-htb', 'cmd=add,port=2,class=10,rate=6furlongs'], '6furlongs'),
    (['qos-htb', 'cmd=add,port=2,class=10,nosuchkey=6'], 'nosuchkey'),
    (['qos-htb', 'cmd=add,port=2,class=70000,rate=1mbit'], ''),
    (['qos-htb', 'cmd=add,port=77,class=10,rate=1mbit'], ''),
    (['qos-htb', 'cmd=add,port=2,class=10,rate=2mbit,ceil=1mbit'], ''),
    (['qos-sfq', 'cmd=del,port=2,class=999'], ''),
    (['qos-red', 'cmd=add,port=2'], ''),
    (['qos-htb'], ''),
])
def test_refusals(switch, args, says):
    refuses(switch, *args, says=says)
    assert tc.root(switch.topo.switch_ns, 'p2') is None


def test_the_switchs_own_words_are_shown(switch):
    switch.dpctl('qos-htb', 'cmd=add,port=2,class=10,rate=1mbit')
    said = refuses(switch, 'qos-htb', 'cmd=add,port=2,class=10,rate=1mbit')
    assert 'EXISTS' in said
    said = refuses(switch, 'qos-htb', 'cmd=del,port=2,class=11')
    assert 'NOT_FOUND' in said
    said = refuses(switch, 'flow-mod', 'cmd=add,table=0', 'in_port=1', 'apply:group=77')
    assert 'BAD_OUT_GROUP' in said


DEFAULT_SOCKET = '''
mount -t tmpfs none /run && ip link set lo up || exit 90
"$O" --socket-group=daemon punix: & P=$!
n=0
until [ -S /run/ofqos/ofdatapath.sock ] || [ $n = 100 ]; do sleep 0.1; n=$((n + 1)); done
unset DPCTL_SWITCH
"$D" features && "$D" unix: features
R=$?
[ "$(stat -c %U:%G:%a /run/ofqos/ofdatapath.sock)" = root:daemon:660 ] || R=92
"$O" --socket-group=nosuchgroup punix:/run/x
"$O" punix:
kill $P
wait $P
[ ! -e /run/ofqos/ofdatapath.sock ] || R=91
exit $R
'''


def test_default_socket():
    """ofdatapath punix: and dpctl without an address meet."""
    done = subprocess.run(['unshare', '-mn', 'sh', '-c', DEFAULT_SOCKET], text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          env=dict(os.environ, O=binary('datapath/ofdatapath'),
                                   D=binary('utils/dpctl/dpctl')))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('datapath_id') == 2
    assert 'listens there' in done.stderr
    assert 'must be the name or number of a group' in done.stderr


STALE = """
mount -t tmpfs none /run && mkdir /run/ofqos || exit 90
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("/run/ofqos/ofdatapath.sock")'
mount -o remount,ro /run || exit 91
exec "$O" punix:
"""


def test_a_stale_socket_that_stays():
    """Nobody listens there, and the directory does not let it be removed: the message says so, and names the path."""
    done = subprocess.run(['unshare', '-mn', 'sh', '-c', STALE], text=True, timeout=60, capture_output=True, check=False,
                          env=dict(os.environ, O=binary('datapath/ofdatapath')))
    assert done.returncode == 1
    assert done.stderr.endswith('/run/ofqos/ofdatapath.sock: Read-only file system\n'), done.stderr


def test_ports_by_name(switch, conn):
    switch.dpctl('flow-mod', 'cmd=add,table=0', 'in_port=p1', 'apply:output=p3')
    flow, = conn.flows()
    assert flow['match'] == {'in_port': 1}
    assert meaning(flow['raw_instructions']) == meaning(of13.apply_actions(of13.output(3)))
    assert len(switch.dpctl('stats-port', 'p2').stdout.splitlines()) == 2
    switch.dpctl('qos-htb', 'cmd=add,port=p2,class=10,rate=6mbit')
    assert tc.classes(switch.topo.switch_ns, 'p2')[10]
    refuses(switch, 'stats-port', 'p22', says='did you mean p2')
    switch.dpctl('port-del', 'p4')
    assert 4 not in conn.ports()


def test_prerequisites_are_named(switch):
    said = refuses(switch, 'flow-mod', 'cmd=add,table=0', 'tcp_dst=80', 'apply:output=2')
    assert 'tcp_dst' in said and 'ip_proto' in said


def test_no_switch_there(tmp_path):
    for address in (f'unix:{tmp_path}/none', 'tcp:127.0.0.1:1', 'nonsense:x'):
        done = dpctl(address, 'features', check=False)
        assert done.returncode > 0 and done.stderr.strip()


def test_help():
    done = dpctl('--help=all')
    for command in ('features', 'flow-mod', 'qos-htb', 'qos-show', 'monitor'):
        assert command in done.stdout
    assert dpctl(check=False).returncode > 0


def test_monitor_shows_packet_ins(switch, conn, hosts):
    conn.flow(of13.apply_actions(of13.output(of13.P_CONTROLLER)))
    process = subprocess.Popen([binary('utils/dpctl/dpctl'), switch.address, 'monitor'],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        seen, deadline = b'', time.monotonic() + 5
        while b'packet' not in seen.lower() and time.monotonic() < deadline:
            hosts[1].send(udp_frame(1))
            if select.select([process.stdout], [], [], 0.2)[0]:
                seen += os.read(process.stdout.fileno(), 65536)
        assert b'packet' in seen.lower(), seen
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(5)
        process.stdout.close()


def test_stats_queue_counts(switch, conn, hosts):
    switch.dpctl('qos-htb', 'cmd=add,port=2,class=10,rate=6mbit')
    switch.dpctl('flow-mod', 'cmd=add,table=0', 'in_port=1', 'apply:queue=10,output=2')
    for i in range(5):
        hosts[1].send(udp_frame(i))
        assert hosts[2].recv()
    found = json.dumps(json.loads(switch.dpctl('--json', 'stats-queue').stdout))
    assert '"tx_packets": 5' in found


def test_the_first_screen(tmp_path):
    """Each of its examples does what it says, in their order."""
    profile = tmp_path / 'x.qos'
    profile.write_text('set up=10mbit\nhtb class=0,rate=$up\nhtb class=10,rate=50%,ceil=100%\n')
    screen = subprocess.run([binary('utils/dpctl/dpctl'), 'help'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, check=False)
    examples = re.findall(r'^  (\S.*?)(?:  +| (?=a queue and its rate))\S.*$', screen.stdout, re.M)
    assert len(examples) == 20, examples
    with Topology(3) as topo, Switch(topo, '--fail=open', '--leaf=none', interfaces=['p1', 'p2']) as switch:
        for example in examples:
            words = example.replace('eth', 'p').replace('FILE', str(profile if 'apply' in example else tmp_path / 'state')).split()
            words += {'qos-watch': ['count=1'], 'top': ['--once']}.get(words[0], [])
            switch.dpctl(*words)
