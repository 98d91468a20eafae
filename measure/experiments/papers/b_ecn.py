# SPDX-License-Identifier: Apache-2.0
"""ECN in a tenant's group: a packet that waits for longer than two full frames take is marked."""
import socket
import statistics
import time

from support import tc
from support.topo import inside

from harness.experiment import Claim, Judged, Part
from harness.network import Switch, Topology, forward
from harness.traffic import Flow

NAME = 'ECN'
RATE, MTU = 1_000_000, 1514                        # bit/s of the queue; bytes of a full frame
THRESHOLD_MS = round(2 * MTU * 8 / RATE * 1000)
CE, ECT = 3, (1, 2)


def parts(p):
    yield Part(NAME, p['ecn'] + 4, needs=('htb', 'fq_codel'), uses=('ecn',), form=1, run=run)


def run(ctx, _):
    """-> how many frames came with which mark, what was repeated, what waited in the queue"""
    topo = ctx.enter(Topology(ports=2, ip=True, offload=False))
    switch = ctx.enter(Switch(topo))
    forward(switch)
    for host in 1, 2:
        topo.sysctl(topo.host_ns(host), 'net.ipv4.tcp_ecn=1')
    switch.dpctl('qos-htb', f'cmd=add,port=2,class=10,rate={RATE}bit')
    # CoDel's own marks come from a target that one never reaches
    switch.dpctl('qos-fq_codel', f'cmd=replace,port=2,class=10,ecn=yes,target=500ms,interval=1s,'
                                 f'ce_threshold={THRESHOLD_MS}ms')
    switch.dpctl('flow-mod', 'cmd=add,table=0,prio=10', 'in_port=1,eth_type=0x800,ip_proto=6',
                 'apply:queue=10,output=2')
    topo.exec(1, 'ping', '-c', '1', '-W', '5', '10.0.0.2')
    with inside(topo.host_ns(2)):
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x800))
    with sock:
        flow = Flow(ctx, topo, 1, 2, 5201, ctx.p['ecn'])
        marks, waits = listen(topo, sock, flow.began + ctx.p['ecn'])
    got = flow.result()
    return {'marks': marks, 'backlog': waits, 'bps': got['bps'], 'retransmits': got['retransmits']}


def listen(topo, sock, end):
    """-> {mark: data frames}, [bytes that wait in the queue, every 50 ms]"""
    marks, waits, look = dict.fromkeys(map(str, range(4)), 0), [], 0.0
    while (now := time.monotonic()) < end:
        if now >= look:
            waits.append(tc.leaf(topo.switch_ns, 'p2', 10)['backlog'])
            look = now + 0.05
        sock.settimeout(0.05)
        try:
            got = sock.recv(2048)
        except TimeoutError:
            continue
        if len(got) > 1000:
            marks[str(got[15] & 3)] += 1
    return marks, waits


def judge(samples):
    s = samples[NAME]
    every, marked = sum(s['marks'].values()), s['marks'][str(CE)]
    waits = statistics.median(s['backlog']) / MTU
    return Judged(f"{marked:,} of {every:,} frames marked, {s['retransmits']} repeated, "
                  f"{s['bps'] / 1e6:.2f} Mbit/s of payload; {waits:.1f} full frames wait (median)",
                  marked > 0 and s['retransmits'] == 0 and s['bps'] >= 0.9 * RATE)


def claims():
    yield Claim(f'ECN engaged within two MTU: what waits for longer than {THRESHOLD_MS} ms at '
                f'{RATE // 1_000_000} Mbit/s is marked, and nothing is lost', 'named; figures: not at '
                'hand', judge)
