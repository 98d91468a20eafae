# SPDX-License-Identifier: Apache-2.0
"""What runs inside Mininet for experiment M: measure.py PART PARAMETERS(JSON) prints its finding.

Mininet's own topologies and classes; our programs under the names that it starts for
`--switch user`.  Hosts are h1, h2, ...; hN is at port N of the only switch, s1."""
import json
import math
import os
import re
import socket
import subprocess
import sys
import time
from functools import partial

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path[:0] = [os.path.join(REPOSITORY, 'tests/mininet'), os.path.join(REPOSITORY, 'tests'),
                os.path.join(REPOSITORY, 'measure/experiments')]
from mininet.link import TCLink  # noqa: E402
from mininet.node import UserSwitch  # noqa: E402
from mininet.topo import SingleSwitchTopo, Topo  # noqa: E402
from harness.congestion import congestion  # noqa: E402
from net import network, offloads, tell, until  # noqa: E402
from support import of13  # noqa: E402

MBIT = 1_000_000
PORT = 3                        # towards h3, where all queues are
ETH_P_ALL = 3
PRIORITY, COOKIE = 50_000, 77   # of our flows; above the controller's
ROOM = 50                       # packets that wait for a link which two flows share
AT_ONCE = 4                     # connections of a flow: of two alone one may be locked out
TOTAL = 9.5                     # Mbit/s of a link of 10 Mbit/s that queues share out
UNLIMITED = '40gbit'            # more than goes through; the port says that it has 10 Gbit/s


class TwoSwitches(Topo):
    """Three hosts: h1 and h3 at s1, h4 behind s2, which is at s1's port 2"""

    def build(self):
        first, second = self.addSwitch('s1'), self.addSwitch('s2')
        for n in 1, 3:
            self.addLink(self.addHost(f'h{n}', ip=f'10.0.0.{n}/8'), first, port2=n)
        self.addLink(second, first, port1=1, port2=2)
        self.addLink(self.addHost('h4', ip='10.0.0.4/8'), second, port2=2)


class Net:
    """SingleSwitchTopo (0 hosts: TwoSwitches) with queues allowed; bw: of every link, Mbit/s.  Hosts of
    slow links send frames, not super-packets of 64 kB: one takes 50 ms at 10 Mbit/s."""

    def __init__(self, hosts, bw=None):
        words = {'link': partial(TCLink, bw=bw)} if bw else {}
        self.net = network(SingleSwitchTopo(hosts) if hosts else TwoSwitches(),
                           switch=partial(UserSwitch, dpopts=''), **words)
        self.switch, self.h4 = self.net['s1'], 4 if hosts else 2      # the port that leads to h4
        if bw:
            offloads(self.net, 'off')
        self.net.pingAll()

    def dpctl(self, *words):
        said = self.switch.dpctl(*words).strip()
        assert 'error' not in said.lower() and 'refused' not in said.lower(), f'{words}: {said}'
        return said

    def queue(self, number, words):
        self.dpctl('qos-htb', f'cmd=replace,port={PORT},class={number},{words}')

    def into(self, queue, match, preferred=0):
        """match: in dpctl's grammar; preferred: before others that match"""
        self.dpctl('flow-mod', f'cmd=add,table=0,prio={PRIORITY + preferred},cookie={COOKIE}', match,
                   f'apply:queue={queue},output={PORT}')

    def clear(self):
        self.dpctl('qos-clear', f'port={PORT}')
        self.dpctl('flow-mod', f'cmd=del,table=0,cookie={COOKIE},cookie_mask=0xffffffff')

    def guarantee(self, words=''):
        """M3: 7 and 2.5 Mbit/s of TOTAL, and all of it if the other wants nothing"""
        self.queue(0, f'rate={TOTAL}mbit{words}')
        for queue, rate, host in (10, 7, 1), (20, 2.5, 2):
            self.queue(queue, f'rate={rate}mbit,ceil={TOTAL}mbit{words}')
            self.into(queue, f'in_port={host},eth_type=0x800')

    @staticmethod
    def guarantee_by_tc():
        """The same for one flow at a time, by tc's own defaults: without queues there is one class"""
        dev = f's1-eth{PORT}'
        for words in (f'qdisc replace dev {dev} root handle 1: htb default 10',
                      f'class add dev {dev} parent 1: classid 1:1 htb rate {TOTAL}mbit',
                      f'class add dev {dev} parent 1:1 classid 1:10 htb rate 7mbit '
                      f'ceil {TOTAL}mbit'):
            subprocess.run(['tc', *words.split()], check=True)

    def by_tc(self):
        """M2's classes by tc, and no flow of ours into them, until `not_by_tc`"""
        self.clear()
        dev = f's1-eth{PORT}'
        for words in (f'qdisc add dev {dev} root handle 1: htb default 20',
                      f'class add dev {dev} parent 1: classid 1:1 htb rate {UNLIMITED} burst 5m '
                      'cburst 5m quantum 60000',
                      f'class add dev {dev} parent 1:1 classid 1:10 htb rate 4mbit',
                      f'class add dev {dev} parent 1:1 classid 1:20 htb rate 1gbit '
                      f'ceil {UNLIMITED} burst 1m cburst 5m quantum 60000'):
            subprocess.run(['tc', *words.split()], check=True)

    @staticmethod
    def not_by_tc():
        subprocess.run(['tc', 'qdisc', 'del', 'dev', f's1-eth{PORT}', 'root'], check=True)

    def flow(self, source, sink, port, seconds, words=()):
        """A TCP flow that begins now -> Flow"""
        return Flow(self.net[f'h{source}'], self.net[f'h{sink}'], port, seconds, words)

    def watch(self, queues, seconds, look):
        """-> [(t, {queue: bytes on the wire})], every `look` seconds"""
        with of13.Conn('unix:/tmp/s1.listen') as conn:
            start, rows = time.monotonic(), []
            while (now := time.monotonic() - start) <= seconds:
                stats = conn.queue_stats(PORT)
                rows.append((now, {str(q): stats[PORT, q]['tx_bytes'] for q in queues}))
                time.sleep(look)
            return rows


def frame_sizes(count=100, seconds=3):
    """Bytes of the frames that the switch puts into the queues of the port; a super-packet is one."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) as sock:
        sock.bind((f's1-eth{PORT}', ETH_P_ALL))
        sock.settimeout(seconds)
        found = []
        while len(found) < count:
            try:
                data, address = sock.recvfrom(66_000)
            except TimeoutError:
                break
            if address[2] == socket.PACKET_OUTGOING:
                found.append(len(data))
    return found


class Flow:
    def __init__(self, source, sink, port, seconds, words=()):
        self.server = sink.popen('iperf3', '-s', '-1', '-p', str(port), '-J')
        until(lambda: f':{port} ' in sink.cmd('ss -Hltn'), f'iperf3 listens on {port}')
        self.client = source.popen('iperf3', '-c', sink.IP(), '-p', str(port), '-t',
                                   str(math.ceil(seconds)), '-C', congestion(), *words)
        self.patience = 2 * seconds + 60

    def end(self):
        for process in self.client, self.server:
            process.terminate()
            process.communicate()

    def bps(self):
        """What the receiver got, of payload"""
        self.client.communicate(timeout=self.patience)
        said = json.loads(self.server.communicate(timeout=20)[0])
        return said['end']['sum_received']['bits_per_second']


def pinned():
    """iperf3's words for sender and receiver on a processor each, always the same"""
    cpus = sorted(os.sched_getaffinity(0))
    return ('-A', f'{cpus[0]},{cpus[-1]}')


def beside_a_queue(net, p, what, configure, others):
    """A queue of 4 Mbit/s for `what` (a flow's source, sink and port), and how fast the other flows
    are alone, without it, with it, and with classes by tc that the switch knows nothing of, in
    turn."""
    states = {'without': net.clear, 'with': configure, 'by tc': net.by_tc}
    found = {name: {n: [] for n in others} for name in states}
    for turn in range(p['repetitions']):
        # Every other time in the opposite order
        for name in list(states)[::-1 if turn % 2 else 1]:
            states[name]()
            for each, flow in others.items():
                found[name][each].append(net.flow(*flow, p['seconds'], pinned()).bps())
            if name == 'by tc':
                net.not_by_tc()
    configure()
    offloads(net.net, 'off')
    limited = net.flow(*what, p['settle'] + p['watch'] + 0.5)
    rows = net.watch([10], p['settle'] + p['watch'], p['look'])
    return {**found, 'rows': rows, 'payload': limited.bps()}


def m1(p, hosts=4):
    """What h4 sends to h3's server.  Not the acknowledgements of the other way: at several Gbit/s
    they are more than 4 Mbit/s."""
    net = Net(hosts)

    def configure():
        net.queue(0, f'rate={UNLIMITED}')
        net.queue(10, 'rate=4mbit')
        net.into(10, f'in_port={net.h4},eth_type=0x800,ip_proto=6,tcp_dst=5001')
    return beside_a_queue(net, p, (4, 3, 5001), configure, {'other way': (3, 4, 5002)})


def m2(p, hosts=4):
    """TCP port 666, and a second queue for the rest"""
    net = Net(hosts)

    def configure():
        net.queue(0, f'rate={UNLIMITED}')
        net.queue(10, 'rate=4mbit')
        net.queue(20, f'rate=1gbit,ceil={UNLIMITED}')
        net.into(20, f'in_port={net.h4},eth_type=0x800,ipv4_dst=10.0.0.3')
        net.into(10, f'in_port={net.h4},eth_type=0x800,ip_proto=6,tcp_dst=666', preferred=1)
    return beside_a_queue(net, p, (4, 3, 666), configure,
                               {'the rest': (4, 3, 5001), 'other way': (3, 4, 5002)})


def two_m1(p):
    return m1(p, hosts=0)


def two_m2(p):
    return m2(p, hosts=0)


def together(net, p, flows, queues):
    """flows: [(source, sink, port)], all at once -> the queues' bytes, the sizes of packets"""
    running = [net.flow(*flow, p['settle'] + p['watch'] + 5) for flow in flows]
    found = {'began': time.monotonic(),
             'rows': net.watch(queues, p['settle'] + p['watch'], p['look']),
             'frames': frame_sizes()}
    for flow in running:
        flow.end()
    return found


def m3(p):
    """Both at once, then each alone, also with bursts that outlast the machine's pauses, and with
    the same classes by tc"""
    net, flows = Net(3, bw=10), [(1, 3, 5001), (2, 3, 5002)]
    net.guarantee()
    found = {'both': together(net, p, flows, (10, 20)),
             'alone': [together(net, p, [flow], (10, 20)) for flow in flows]}
    net.guarantee(',burst=24kb,cburst=24kb')
    found['alone, bursts'] = [together(net, p, [flow], (10, 20)) for flow in flows]
    net.clear()
    net.guarantee_by_tc()
    found['alone, by tc'] = [net.flow(*flow, p['watch'], ('-O', str(p['settle']))).bps()
                             for flow in flows]
    return found


def m3_even(p):
    """Links of 10 Mbit/s shared by two flows that no queue divides: before there are queues, and in the
    other way than M3's -> Mbit/s of payload of each flow, each time.  With the 1,000 packets of room that
    Linux gives, more than a second's, nothing is ever lost and the first flow keeps the link."""
    net, found = Net(3, bw=10), {'no queues': [], 'other way': []}
    room = f'parent 5:1 pfifo limit {ROOM}'             # 5:1 is TCLink's class
    subprocess.run(f'tc qdisc replace dev s1-eth{PORT} {room}'.split(), check=True)
    said = net.net['h3'].cmd(f'tc qdisc replace dev h3-eth0 {room}')
    assert not said.strip(), said

    def both(flows):
        words = ('-O', str(p['skip']), '-P', str(AT_ONCE))
        running = [net.flow(*flow, p['share'], words) for flow in flows]
        return [flow.bps() / MBIT for flow in running]
    for name, rows in found.items():
        if name == 'other way':
            net.guarantee()
        for _ in range(p['shares']):
            rows.append(both([(3, 1, 5001), (3, 2, 5002)] if name == 'other way' else
                             [(1, 3, 5001), (2, 3, 5002)]))
    return found


def m4(p):
    net = Net(3, bw=10)
    net.dpctl('qos-apply', os.path.join(REPOSITORY, 'docs/examples/tenants.qos'), f'port={PORT}')
    users = {11: 1, 12: 2, 21: 1, 22: 2}                # queue: host
    for queue, host in users.items():
        net.into(queue, f'in_port={host},eth_type=0x800,ip_proto=6,tcp_dst={5000 + queue}')
    flows = [(host, 3, 5000 + queue) for queue, host in users.items()]
    return {'all': together(net, p, flows, users), 'without 11': together(net, p, flows[1:], users)}


def m5(p):
    """Round trips of h1's pings to h3 while h2 fills the link to it"""
    net = Net(3, bw=10)
    net.queue(0, f'rate={TOTAL}mbit')
    net.queue(20, f'rate=1mbit,ceil={TOTAL}mbit,prio=7')
    net.into(20, 'in_port=2,eth_type=0x800')
    found = {}
    for name in 'same queue', 'priority queue':
        if name == 'priority queue':
            net.queue(10, f'rate=100kbit,ceil={TOTAL}mbit,prio=0')
        net.into(10 if name == 'priority queue' else 20, 'in_port=1,eth_type=0x800,ip_proto=1')
        load = net.flow(2, 3, 5001, p['watch'] + p['settle'] + 2)
        time.sleep(p['settle'])
        said = net.net['h1'].cmd(f"ping -i {p['ping']} -w {p['watch']} {net.net['h3'].IP()}")
        found[name + ', frames'] = frame_sizes()
        found[name] = [float(ms) for ms in re.findall(r'time=([\d.]+) ms', said)]
        found[name + ', load'] = load.bps()
    return found


if __name__ == '__main__':
    tell(globals()[sys.argv[1]](json.loads(sys.argv[2])))       # the network ends with `inside`
