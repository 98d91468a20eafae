# SPDX-License-Identifier: Apache-2.0
"""The kernel's own view of the queues: `tc`, and rtnetlink read raw for exact values."""
import os
import re
import socket
import struct

from .topo import inside, sh

RTM_GETTCLASS, RTM_GETQDISC = 42, 38
RTM_NEWQDISC, RTM_DELQDISC, RTM_NEWTCLASS, RTM_DELTCLASS = 36, 37, 40, 41
RTNLGRP_TC = 4
NLM_F_REQUEST, NLM_F_DUMP = 1, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
TCA_KIND, TCA_OPTIONS, TCA_XSTATS, TCA_STATS2 = 1, 2, 4, 7
ROOT = 0xffffffff


def tc(netns, *args, check=True):
    return sh('tc', '-n', netns, *args, check=check)


def ifindex(netns, name):
    with inside(netns):
        return socket.if_nametoindex(name)


def attributes(data):
    found = {}
    while len(data) >= 4:
        size, kind = struct.unpack_from('=HH', data)
        if size < 4:
            break
        found[kind & 0x3fff] = data[4:size]
        data = data[(size + 3) & ~3:]
    return found


def read(netns, kind, dev):
    """RTM_GETQDISC or RTM_GETTCLASS, dumped for one interface -> [{handle, parent, kind, ...}]"""
    index = ifindex(netns, dev)
    with inside(netns):
        sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    with sock:
        sock.settimeout(10)
        tcmsg = struct.pack('=B3xiIII', 0, index, 0, 0, 0)
        sock.send(struct.pack('=IHHII', 16 + len(tcmsg), kind, NLM_F_REQUEST | NLM_F_DUMP, 1, 0)
                  + tcmsg)
        rows = []
        while True:
            data = sock.recv(1 << 20)
            while len(data) >= 16:
                size, mtype, _, _, _ = struct.unpack_from('=IHHII', data)
                body, data = data[16:size], data[(size + 3) & ~3:]
                if mtype == NLMSG_DONE:
                    return rows
                if mtype == NLMSG_ERROR:
                    raise OSError(-struct.unpack_from('=i', body)[0], 'rtnetlink dump')
                _, row_index, handle, parent, info = struct.unpack_from('=B3xiIII', body)
                if row_index == index:
                    rows.append(describe(handle, parent, info, attributes(body[20:])))


def describe(handle, parent, info, attrs):
    kind = attrs[TCA_KIND].rstrip(b'\0').decode()
    row = {'handle': handle, 'parent': parent, 'info': info, 'kind': kind}
    stats = attributes(attrs.get(TCA_STATS2, b''))
    if 1 in stats:                                                     # gnet_stats_basic
        row['bytes'], row['packets'] = struct.unpack_from('=QI', stats[1])
    if 3 in stats:                                                     # gnet_stats_queue
        row['qlen'], row['backlog'], row['drops'], row['requeues'], row['overlimits'] = \
            struct.unpack_from('=5I', stats[3])
    options = attrs.get(TCA_OPTIONS, b'')
    parse = OPTIONS.get(kind)
    row['octets'] = options
    row['options'] = parse(options) if parse and options else {}
    return row


def ratespec(data, offset):
    """struct tc_ratespec -> bit/s"""
    return struct.unpack_from('=I', data, offset + 8)[0] * 8


def link(data, offset=0):
    """The link layer in a struct tc_ratespec; linklayer is the kernel's: 1 ethernet, 2 atm"""
    layer, overhead, mpu = struct.unpack_from('=xBHxxH', data, offset)
    return {'overhead': overhead, 'mpu': mpu, 'linklayer': layer & 15}


def htb(options):
    attrs, out = attributes(options), {}
    if 1 in attrs:                                                     # TCA_HTB_PARMS
        p = attrs[1]
        out['rate'], out['ceil'] = ratespec(p, 0), ratespec(p, 12)
        out.update(link(p))
        out['ceil_link'] = link(p, 12)
        out['buffer'], out['cbuffer'], out['quantum'], out['level'], out['prio'] = \
            struct.unpack_from('=5I', p, 24)
        if 6 in attrs:                                                 # TCA_HTB_RATE64
            out['rate'] = struct.unpack('=Q', attrs[6])[0] * 8
        if 7 in attrs:                                                 # TCA_HTB_CEIL64
            out['ceil'] = struct.unpack('=Q', attrs[7])[0] * 8
    if 2 in attrs:                                                     # TCA_HTB_INIT
        _, out['rate2quantum'], out['default'] = struct.unpack_from('=3I', attrs[2])
    return out


def fifo(options):
    return {'limit': struct.unpack_from('=I', options)[0]} if len(options) >= 4 else {}


def sfq(options):
    names = ('quantum', 'perturb', 'limit', 'divisor', 'flows', 'depth', 'headdrop')
    return dict(zip(names, struct.unpack_from('=IiIIIII', options.ljust(28, b'\0'))))


def red(options):
    attrs = attributes(options)
    out = dict(zip(('limit', 'min', 'max', 'Wlog', 'Plog', 'Scell_log', 'flags'),
                   struct.unpack_from('=IIIBBBB', attrs[1])))
    if 3 in attrs:                                                     # probability x 2^32
        out['max_p'], = struct.unpack('=I', attrs[3])
    return out


def gred(options):
    """{'dps': {dp: (prio, min, max, limit, probability x 2^32)}, ...}"""
    attrs, dps = attributes(options), {}
    count, default, grio, flags = struct.unpack_from('=IIBB', attrs[3])
    max_p = struct.unpack_from('=16I', attrs[4])
    for i in range(16):
        limit, low, high, dp, *_ = struct.unpack_from('=4I', attrs[1], 52 * i)
        if dp == i:
            dps[dp] = (attrs[1][52 * i + 43], low, high, limit, max_p[i])
    return {'dps': dps, 'n': count, 'default': default, 'grio': grio, 'flags': flags,
            'limit': struct.unpack_from('=I', attrs[5])[0]}


def gred_packets(options):
    """{dp: packets that came}"""
    packets = attributes(options)[1]
    return {i: struct.unpack_from('=I', packets, 52 * i + 44)[0] for i in range(16)
            if struct.unpack_from('=I', packets, 52 * i + 12)[0] == i}


def numbers(*names):
    """Options that are a list of u32 attributes 1, 2, ..."""
    def parse(options):
        attrs = attributes(options)
        return {name: struct.unpack_from('=I', attrs[i])[0]
                for i, name in enumerate(names, 1) if name and i in attrs}
    return parse


def tbf(options):
    attrs = attributes(options)
    p = attrs[1]
    out = {'rate': ratespec(p, 0), 'peak_rate': ratespec(p, 12), **link(p)}
    out['peak_link'] = link(p, 12)
    out['limit'], out['buffer'], out['mtu'] = struct.unpack_from('=III', p, 24)
    for number, name in ((4, 'rate'), (5, 'peak_rate')):
        if number in attrs:
            out[name] = struct.unpack('=Q', attrs[number])[0] * 8
    return out


def prio(options):
    bands, = struct.unpack_from('=i', options)
    return {'bands': bands, 'priomap': options[4:20]}


def netem(options):
    out = dict(zip(('latency', 'limit', 'loss', 'gap', 'duplicate', 'jitter'),
                   struct.unpack_from('=6I', options)))
    attrs = attributes(options[24:])
    for number, name in ((10, 'latency_ns'), (11, 'jitter_ns')):
        if number in attrs:
            out[name], = struct.unpack('=q', attrs[number])
    if 6 in attrs:
        out['rate'] = struct.unpack_from('=I', attrs[6])[0] * 8
    if 8 in attrs:                                                     # TCA_NETEM_RATE64
        out['rate'] = struct.unpack('=Q', attrs[8])[0] * 8
    return out


def cake(options):
    attrs = attributes(options)
    out = {}
    if 2 in attrs:
        out['rate'] = struct.unpack('=Q', attrs[2])[0] * 8
    for number, name in ((3, 'diffserv'), (4, 'atm'), (5, 'flow_mode'), (6, 'overhead'), (7, 'rtt_us'),
                         (9, 'autorate'), (10, 'memory'), (11, 'nat'), (13, 'wash'), (14, 'mpu'),
                         (15, 'ingress'), (16, 'ack_filter'), (17, 'split_gso'), (18, 'fwmark')):
        if number in attrs:
            out[name], = struct.unpack_from('=i' if name == 'overhead' else '=I', attrs[number])
    out['raw'] = 12 in attrs                                           # no overhead is given
    return out


def hfsc(options):
    """class: {'rsc': (m1 bit/s, d us, m2 bit/s), ...}"""
    out = {}
    if len(options) == 2:
        return {'default': struct.unpack('=H', options)[0]}
    for number, name in ((1, 'rsc'), (2, 'fsc'), (3, 'usc')):
        attrs = attributes(options)
        if number in attrs:
            m1, d, m2 = struct.unpack('=III', attrs[number])
            out[name] = (m1 * 8, d, m2 * 8)
    return out


def ets(options):
    attrs = attributes(options)
    out = {'bands': attrs[1][0]} if 1 in attrs else {}
    data = attrs.get(5, b'')                                           # TCA_ETS_PRIOMAP: a u8 each
    if data:
        out['priomap'] = bytes(data[at + 4] for at in range(0, len(data), 8))
    return out


def mqprio(options):
    bands, = struct.unpack_from('=B', options)
    return {'bands': bands, 'priomap': options[1:17], 'hw': options[17],
            'count': struct.unpack_from('=16H', options, 18)[:bands],
            'offset': struct.unpack_from('=16H', options, 50)[:bands]}


def taprio(options):
    """'entries': [(gates, ns), ...]"""
    attrs = attributes(options)
    out = {**mqprio(attrs[1]), 'clock': struct.unpack_from('=i', attrs.get(5, b'\xff' * 4))[0]}
    soon = attributes(attrs.get(7, b''))                               # until its first cycle begins
    data, out['entries'] = soon.get(2) or attrs[2], []
    while len(data) >= 4:
        size = struct.unpack_from('=H', data)[0]
        entry = attributes(data[4:size])
        assert entry[2] == b'\0'                                       # SetGateStates
        out['entries'].append(struct.unpack('=I', entry[3]) + struct.unpack('=I', entry[4]))
        data = data[(size + 3) & ~3:]
    return out


def cbs(options):
    names = ('offload', 'hicredit', 'locredit', 'idleslope', 'sendslope')
    return dict(zip(names, struct.unpack_from('=B3xiiii', attributes(options)[1])))


def etf(options):
    names = 'delta', 'clock', 'flags'
    return dict(zip(names, struct.unpack_from('=iiI', attributes(options)[1])))


OPTIONS = {
    'htb': htb, 'pfifo': fifo, 'bfifo': fifo, 'sfq': sfq, 'red': red, 'tbf': tbf, 'prio': prio,
    'codel': numbers('target', 'limit', 'interval', 'ecn', 'ce_threshold'),
    'fq_codel': numbers('target', 'limit', 'interval', 'ecn', 'flows', 'quantum', 'ce_threshold',
                        'drop_batch', 'memory_limit'),
    'fq': numbers('limit', 'flow_limit', 'quantum', '', '', '', 'max_rate', '', '', '', '',
                  'ce_threshold'),
    'pie': numbers('target', 'limit', 'tupdate', 'alpha', 'beta', 'ecn'),
    'fq_pie': numbers('limit', 'flows', 'target', 'tupdate', 'alpha', 'beta', 'quantum',
                      'memory_limit', 'ecn_prob', 'ecn'),
    'dualpi2': numbers('limit', 'memory_limit', 'target', 'tupdate'), 'choke': red, 'gred': gred,
    'netem': netem, 'cake': cake, 'hfsc': hfsc, 'drr': numbers('quantum'), 'ets': ets,
    'mqprio': mqprio, 'taprio': taprio, 'cbs': cbs, 'etf': etf,
}


def qdiscs(netns, dev):
    """{parent: row} of an interface, the root's parent being ROOT."""
    return {row['parent']: row for row in read(netns, RTM_GETQDISC, dev)}


def classes(netns, dev):
    """{minor: row} of an interface's classes of qdisc 1:"""
    return {row['handle'] & 0xffff: row for row in read(netns, RTM_GETTCLASS, dev)
            if row['handle'] >> 16 == 1}


def leaf(netns, dev, queue):
    """The qdisc below class 1:queue, or None."""
    return qdiscs(netns, dev).get(1 << 16 | queue)


def root(netns, dev):
    """The root qdisc; None for the kernel's own default (noqueue, or handle 0)."""
    row = qdiscs(netns, dev).get(ROOT)
    return None if row is None or row['handle'] == 0 else row


def default_class(netns, dev):
    """Where the root sends what selects no class: a filter's class, else the qdisc's option"""
    filters = tc(netns, 'filter', 'show', 'dev', dev, 'parent', '1:')
    found = re.search(r'pref 65534 .*flowid 1:([0-9a-f]+)', filters)
    return int(found[1], 16) if found else root(netns, dev)['options'].get('default')


CLSACT = 0xffff0000


class Events:
    """What rtnetlink tells of an interface's queues while the block runs: [(message, handle)]"""

    def __init__(self, netns, dev):
        self.index = ifindex(netns, dev)
        with inside(netns):
            self.sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self.sock.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)           # SO_RCVBUFFORCE
        self.sock.setblocking(False)
        self.sock.bind((0, 1 << RTNLGRP_TC - 1))

    def seen(self):
        found = []
        while True:
            try:
                data = self.sock.recv(1 << 16)
            except BlockingIOError:
                return found
            while len(data) >= 16:
                size, mtype = struct.unpack_from('=IH', data)
                _, index, handle = struct.unpack_from('=B3xiI', data, 16)
                if index == self.index and mtype in (RTM_NEWQDISC, RTM_DELQDISC, RTM_NEWTCLASS,
                                                     RTM_DELTCLASS):
                    found.append((mtype, handle))
                data = data[(size + 3) & ~3:]

    def changes(self):
        """Of queues: without the programs' clsact, and RTM_NEWQDISC, which also tells that somebody asked for a qdisc"""
        return [event for event in self.seen() if event[0] != RTM_NEWQDISC and event[1] != CLSACT]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()


class KernelLog:
    """What the kernel's log gets from here on; `said` gives the lines with one of the words."""

    def __init__(self):
        self.fd = os.open('/dev/kmsg', os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(self.fd, 0, os.SEEK_END)

    def said(self, *words):
        lines = []
        while True:
            try:
                lines.append(os.read(self.fd, 8192).decode(errors='replace').strip())
            except BlockingIOError:
                return [line for line in lines if any(w in line for w in words)]
            except BrokenPipeError:                                    # some were overwritten
                continue

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)


TWO_QUEUES = ('num_tc', '2', 'map', *'0101010101010101', 'queues', '1@0', '1@1')


def has_scheduler(kind):
    """Does the running kernel know this qdisc?"""
    arguments = {'tbf': ['rate', '1mbit', 'burst', '10k', 'latency', '10ms'], 'ets': ['bands', '3'],
                 'red': ['limit', '60000', 'min', '10000', 'max', '30000', 'avpkt', '1000',
                         'burst', '20', 'bandwidth', '10mbit'],
                 'choke': ['limit', '1000', 'bandwidth', '10mbit'],
                 'gred': ['setup', 'DPs', '2', 'default', '0'],
                 'cbs': ['idleslope', '20000', 'sendslope', '-80000', 'hicredit', '300',
                         'locredit', '-1200'],
                 'etf': ['clockid', 'CLOCK_TAI'], 'mqprio': [*TWO_QUEUES, 'hw', '0'],
                 'taprio': [*TWO_QUEUES, 'base-time', '0', 'sched-entry', 'S', '03', '1000000',
                            'clockid', 'CLOCK_TAI']}.get(kind, [])
    name = f'oqprobe{os.getpid()}'
    sh('ip', 'netns', 'add', name, check=False)
    try:
        sh('ip', '-n', name, 'link', 'add', 'a0', 'numtxqueues', '2', 'type', 'veth', 'peer', 'name',
           'a1')
        tc(name, 'qdisc', 'add', 'dev', 'a0', 'root', 'handle', '1:', kind, *arguments)
        return True
    except AssertionError:
        return False
    finally:
        sh('ip', 'netns', 'del', name, check=False)
