# SPDX-License-Identifier: Apache-2.0
"""The requests that tests/faults/run makes fail, and what the switch has besides."""
import socket
import struct
import time

from support import of13, qosmsg as q, tc
from support.bundle import Bundle, answers
from support.of13 import apply_actions, flow_mod, group_mod, match, meter_mod, output
from support.status import QOSF, connections, status
from support.topo import dpctl, inside, udp_frame

MBIT = 1_000_000
LEAVES = {'pfifo': (50,), 'bfifo': (50_000,), 'sfq': (7, 3000), 'red': (10_000, 60_000)}
PROPERTIES = {'tbf': {'rate': 3 * MBIT}, 'cbs': {'rate': 5 * MBIT},
              'gred': {'drop_precedence': [(1, 0, 9000, 20_000, 50_000, 20_000)]}}
AS_LEAF = ('pfifo', 'bfifo', 'sfq', 'red', 'tbf', 'codel', 'fq_codel', 'fq', 'pie', 'cake', 'netem',
           'fq_pie', 'dualpi2', 'choke', 'gred')
AS_ROOT = ('pfifo', 'tbf', 'prio', 'ets', 'fq_codel', 'fq', 'cake', 'netem')


class Refused(Exception):
    """A command was refused"""


class Lost(Exception):
    """A connection was lost"""


class Unsaid(Exception):
    """Nobody tells whether it was done; with a text: somebody should"""


def nothing(stage):
    """There is nothing to be taken back"""


class Step:
    """several: of more than one request; those before the refused one stay.  prepare: before the first time;
    always: undo even if nothing was done; told: the log may say what was left out (whole.TOLD)"""
    def __init__(self, name, do, undo=nothing, several=False, prepare=nothing, tidy=nothing, always=False,
                 told=False):
        self.name, self.do, self.undo, self.several = name, do, undo, several
        self.prepare, self.tidy, self.always, self.told = prepare, tidy, always, told


# What a second version of the configuration file has besides the first.
SECOND = """dp-desc = the second
listen = punix:{second}
controller = {controller}
map = then=normal
map = queue=10,dscp=ef
"""
SECTIONS = """queue = htb class=0,rate=20mbit
queue = htb class=10,rate=6mbit
[slice red]
may = ask
connection = punix:{second}
ports = 1
tables = 5
"""
CONTROLLER = 'tcp:127.0.0.1:6699'
BY_TLS = '127.0.0.1', 6698


def write_conf(stage, version):
    """1; 2: more of all kinds; 3: another port, and one that moves; 4: a controller by TLS"""
    first, second, third = stage.topo.port_names()
    more = {'second': stage.second, 'controller': CONTROLLER}
    lines = [f'interfaces = {first if version == 3 else f"{first},{second}"}', 'leaf = none',
             f'listen = punix:{stage.switch.path}', *(['listen = ptls:'] if stage.tls else []),
             *([SECOND.format(**more)] if version == 2 else []),
             *(['controller = tls:%s:%d' % BY_TLS] if version == 4 else []), f'[port {third}]',
             f'number = {9 if version == 3 else 3}', *([SECTIONS.format(**more)] if version == 2 else [])]
    with open(stage.conf, 'w', encoding='utf-8') as f:
        f.write('\n'.join(lines) + '\n')


# ------------------------------------------------------------------------------------ what there is

COUNTERS = ('bytes', 'packets', 'drops', 'overlimits', 'requeues', 'marked', 'backlog_bytes',
            'backlog_packets', 'length')


def unpadded(kind, data):
    """CAKE and GRED align counters with an attribute that may be missing"""
    if kind not in ('cake', 'gred'):
        return data
    found = []
    while len(data) >= 4:
        size, name = struct.unpack_from('=HH', data)
        if size > 4:
            found.append((name & 0x3fff, data[4:size]))
        data = data[(max(size, 4) + 3) & ~3:]
    return found


def kernel(ns, dev):
    """What an interface has in the kernel, but for counters and the handles below classes"""
    found = {}
    for kind in (tc.RTM_GETQDISC, tc.RTM_GETTCLASS):
        for row in tc.read(ns, kind, dev):
            leaf = kind == tc.RTM_GETQDISC and row['parent'] >> 16 == 1
            major = row['handle'] >> 16
            if kind == tc.RTM_GETTCLASS and major != 1:      # what schedulers make of themselves
                continue
            handle = 'below' if leaf or row['parent'] == tc.ROOT and major != 1 else row['handle']
            found[kind, row['parent'], handle] = row['kind'], unpadded(row['kind'], row['octets'])
    return found


def interfaces(ns):
    """How many the namespace has: those of incoming queues come and go, as do the switch's own pairs that cut"""
    with inside(ns):
        return sorted(name[:2] for _, name in socket.if_nameindex() if not name.startswith('of'))


def second(stage):
    """What is seen at the second version's address, which belongs to a slice"""
    try:
        with of13.Conn('unix:' + stage.second, timeout=20) as conn:
            return sorted(conn.ports())
    except OSError as error:
        return type(error).__name__


def settle(conn):
    """The configuration's rules follow its queues, which a thread makes: until nothing has changed for a moment"""
    last, now = None, len(conn.flows())
    while now != last:
        time.sleep(0.05)
        last, now = now, len(conn.flows())


def snapshot(stage):
    conn, ns = stage.conn, stage.topo.switch_ns
    settle(conn)
    flows = sorted((f['table_id'], f['priority'], f['cookie'], f['match'].items().__repr__(),
                    repr(f['instructions'])) for f in conn.flows())
    return {'flows': flows,
            'groups': sorted(map(repr, conn.group_desc())),
            'meters': sorted(map(repr, conn.meter_config())),
            'ports': sorted(map(repr, conn.ports())),
            'queues': [{k: v for k, v in e.items() if k not in COUNTERS} for e in q.dump(conn)],
            'interfaces': interfaces(ns), 'description': repr(conn.desc()), 'second address': second(stage),
            'controllers': [c['peer'] for c in connections(status(conn)) if c['peer'].startswith('tcp:')],
            **{f'kernel {dev}': kernel(ns, dev) for dev in stage.topo.port_names()}}


# ------------------------------------------------------------------------------------ requests

def asks(content, envelope=q.NATIVE):
    def do(stage):
        try:
            q.send(stage.conn, envelope, content)
        except q.SchedError as error:
            raise Refused(str(error)) from error
    return do


def says(kind, body):
    return lambda stage: stage.conn.ok(kind, body)


def many(*steps):
    def do(stage):
        for step in steps:
            step(stage)
    return do


RELOAD, RESTART = 12, 14                        # docs/reference/extensions.md


def own(kind):
    """A request of the switch's own"""
    return lambda stage: stage.conn.ok(of13.EXPERIMENTER, struct.pack('!II', QOSF, kind))


LOST = ('Connection reset', 'does not answer', 'closed the connection', 'sending: ', 'receiving: ')


def command(*words):
    def do(stage):
        done = dpctl(stage.switch.address, *words, check=False, timeout=60)
        if done.returncode:
            kind = Lost if any(text in done.stderr for text in LOST) else Refused
            raise kind(done.stderr.strip())
    return do


def dump(name):
    def do(stage):
        getattr(stage.conn, name)()
    return do


def plain_connection(stage):
    with stage.switch.connect(timeout=20) as conn:
        conn.features()


def tls_connection(stage):
    with inside(stage.topo.switch_ns):
        sock = socket.create_connection(('127.0.0.1', 6653), 20)
    try:
        with of13.Conn(stage.who.context().wrap_socket(sock), timeout=20) as conn:
            conn.features()
    except OSError as error:
        raise Lost(repr(error)) from error
    finally:
        sock.close()


def bundle(stage):
    b = Bundle(stage.conn)
    b.put(of13.GROUP_MOD, group_mod(0, of13.GT_ALL, 77, of13.bucket(output(2))))
    b.put(of13.METER_MOD, meter_mod(0, 77, of13.band_drop(1000)))
    for i in range(5):
        b.flow(apply_actions(output(2)), match=match(in_port=1), priority=i + 1, table_id=3)
    b.qos(q.htb_class(q.ADD, 1, 10, 5 * MBIT))
    b.qos(q.htb_class(q.ADD, 1, 20, 5 * MBIT))
    b.qos(q.qdisc(q.PFIFO, q.ADD, 1, 20, 77))
    commit(stage, b)


def commit(stage, b):
    """An open that was refused is made up for by the first message of the bundle."""
    got = answers(stage.conn, b.raw())
    if not any(m.type == of13.EXPERIMENTER and m.xid == b.commit_xid for m in got):
        raise of13.OfError(next(m for m in got if m.type == of13.ERROR))


def delete_flows(stage):
    stage.conn.ok(of13.FLOW_MOD, flow_mod(of13.DELETE, table_id=of13.TT_ALL))


def no_bundle(stage):
    delete_flows(stage)
    stage.conn.ok(of13.GROUP_MOD, group_mod(2, 0, 77))
    stage.conn.ok(of13.METER_MOD, meter_mod(2, 77))
    asks(q.clear(1))(stage)


def tables():
    flow = flow_mod(match=match(in_port=1, eth_type=0x800, ipv4_dst='10.0.0.2'),
                    instructions=(apply_actions(output(2)),), cookie=1)
    other = flow_mod(match=match(in_port=1, eth_type=0x800, ipv4_dst='10.0.0.2'),
                     instructions=(apply_actions(output(3)),), cookie=1)
    timed = flow_mod(match=match(in_port=3), instructions=(apply_actions(output(2)),), idle=600)
    group = group_mod(0, of13.GT_SELECT, 5, of13.bucket(output(1), weight=1), of13.bucket(output(2), weight=1))
    again = group_mod(1, of13.GT_ALL, 5, of13.bucket(output(3)))
    no_group = says(of13.GROUP_MOD, group_mod(2, 0, 5))
    meter = meter_mod(0, 5, of13.band_drop(1000), of13.band_dscp(500))
    no_meter = says(of13.METER_MOD, meter_mod(2, 5))
    yield Step('flow: add', says(of13.FLOW_MOD, flow), delete_flows)
    yield Step('flow: add with a timeout', says(of13.FLOW_MOD, timed), delete_flows)
    yield Step('flow: add and add again', many(says(of13.FLOW_MOD, flow), says(of13.FLOW_MOD, flow)),
               delete_flows, several=True)
    yield Step('flow: other', says(of13.FLOW_MOD, other), delete_flows)
    yield Step('group: add', says(of13.GROUP_MOD, group), no_group)
    yield Step('group: one that is replaced', lambda stage: stage.conn.ok(of13.GROUP_MOD, again)
               if stage.conn.group_desc() else stage.conn.ok(of13.GROUP_MOD, group), no_group)
    yield Step('meter: add', says(of13.METER_MOD, meter), no_meter)
    yield Step('bundle', bundle, no_bundle)
    yield Step('packet-out', says(of13.PACKET_OUT, of13.packet_out(udp_frame(), (output(2),))))


def schedulers():
    for kind in AS_ROOT:
        if tc.has_scheduler(kind):
            add = q.qdisc(q.SCHEDS.index(kind), q.ADD, 2, 0, *LEAVES.get(kind, ()), **PROPERTIES.get(kind, {}))
            yield Step(f'root: {kind}', asks(add), asks(q.clear(2)))
    yield Step('htb: class', asks(q.htb_class(q.ADD, 2, 10, 5 * MBIT)), asks(q.clear(2)))
    yield Step('htb: class in the experimenter envelope',
               asks(q.htb_class(q.ADD, 2, 10, 5 * MBIT), q.EXPERIMENTER), asks(q.clear(2)))
    yield Step('htb: incoming', asks(q.htb_class(q.ADD, 2, 10, 5 * MBIT, direction=1)),
               asks(q.clear(2, direction=1)))
    for kind, cls in (('hfsc', {'service_curve': [(2, 0, 0, 2 * MBIT)]}), ('drr', {'quantum': 3000})):
        if tc.has_scheduler(kind):
            add = q.content(q.SCHEDS.index(kind), q.CLASS, q.ADD, 2, 10, b'', q.props(**cls))
            yield Step(f'{kind}: class', asks(add), asks(q.clear(2)))


def in_a_tree():
    """One bundle that makes a tree and changes it"""
    def step(name, *requests):
        def do(stage):
            b = Bundle(stage.conn)
            for content in (q.htb_class(q.ADD, 2, 1, 9 * MBIT), q.htb_class(q.ADD, 2, 10, 5 * MBIT, parent=1),
                            q.qdisc(q.PFIFO, q.ADD, 2, 10, 9), *requests):
                b.qos(content)
            commit(stage, b)
        return Step(name, do, asks(q.clear(2)))

    yield step('tree: changed', q.htb_class(q.CHANGE, 2, 10, 6 * MBIT), q.htb_class(q.CHANGE, 2, 1, 8 * MBIT))
    yield step('tree: deleted again', q.htb_class(q.DEL, 2, 10), q.htb_class(q.DEL, 2, 1))
    yield step('tree: default class', q.qdisc(q.HTB, q.CHANGE, 2, 10))
    for kind in AS_LEAF:
        if tc.has_scheduler(kind):
            yield step(f'tree: {kind} replaces a leaf', q.qdisc(
                q.SCHEDS.index(kind), q.REPLACE, 2, 10, *LEAVES.get(kind, ()), **PROPERTIES.get(kind, {})))


def gone():
    """Queues that are there go"""
    queue = asks(q.htb_class(q.ADD, 2, 10, 5 * MBIT))
    yield Step('queues: cleared', asks(q.clear(2)), queue, prepare=queue, tidy=asks(q.clear(2)))
    ways = {}, {'direction': 1}
    queues = many(*(asks(q.htb_class(q.ADD, 3, 10, 5 * MBIT, **way)) for way in ways))
    yield Step('port: goes with its queues', command('port-del', 'p3'), many(command('port-add', 'p3'), queues),
               prepare=queues, tidy=many(*(asks(q.clear(3, **way)) for way in ways)))


def the_rest():
    for name in ('flows', 'aggregate', 'ports', 'port_stats', 'queue_stats', 'table_stats', 'desc', 'group_stats',
                 'group_desc', 'meter_stats', 'meter_config', 'table_features', 'queue_config', 'config',
                 'features'):
        yield Step(f'dump: {name}', dump(name))
    yield Step('dump: queues', lambda stage: q.dump(stage.conn))
    yield Step('dump: counters', lambda stage: q.counters(stage.conn))
    yield Step('dump: ports with queues', lambda stage: q.qos_ports(stage.conn))
    yield Step('trace', command('trace', 'in_port=1,eth_type=0x800,ipv4_dst=10.0.0.2'))
    yield Step('connection: plain', plain_connection)
    yield Step('connection: tls', tls_connection)
    yield Step('connection: role', lambda stage: stage.conn.role(of13.ROLE_EQUAL))
    yield Step('port: goes', command('port-del', 'p3'), command('port-add', 'p3'))


def steps(stage):
    return [*tables(), *schedulers(), *in_a_tree(), *gone(), *the_rest()]
