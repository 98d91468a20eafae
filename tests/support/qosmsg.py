# SPDX-License-Identifier: Apache-2.0
"""The QoS message of docs/reference/qos-extension.md, encoded and decoded from that page alone.

    content = htb_class(ADD, port=2, queue=10, rate=6_000_000)
    send(conn, NATIVE, content)       raises SchedError when the switch refuses
"""
import struct

from . import of13
from .of13 import pad8

NATIVE, EXPERIMENTER = 'native', 'experimenter'
ENVELOPES = (NATIVE, EXPERIMENTER)
EXPERIMENTER_ID = 0x514f5346
T_QOS = 30
ET_SCHED_FAILED = 14

SCHEDS = ('none', 'htb', 'pfifo', 'bfifo', 'sfq', 'red', 'tbf', 'prio', 'codel', 'fq_codel', 'fq',
          'pie', 'cake', 'hfsc', 'drr', 'netem', 'ets', 'fq_pie', 'dualpi2', 'choke', 'gred',
          'mq', 'mqprio', 'etf', 'taprio', 'cbs', 'bpf')
NONE, HTB, PFIFO, BFIFO, SFQ, RED, TBF, PRIO, CODEL, FQ_CODEL, FQ, PIE, CAKE, HFSC, DRR, NETEM, \
    ETS, FQ_PIE, DUALPI2, CHOKE, GRED, MQ, MQPRIO, ETF, TAPRIO, CBS, BPF = range(27)
QDISC, CLASS = 0, 1
ADD, DEL, CHANGE, REPLACE = range(4)

(BAD_SCHED, BAD_OBJECT, BAD_ACTION, BAD_PORT, BAD_CLASS, BAD_PARAM, BAD_PROPERTY, EXISTS,
 NOT_FOUND, BUSY, UNSUPPORTED, PERM, KERNEL) = range(13)

ROOT_CLASS, DEFAULT_CLASS, MAX_QUEUE = 0xffff, 0xfffe, 0xffef
ALL_CLASSES = 0xffffffff

TEXT = 'text'                                 # UTF-8, as many bytes as there are

# Properties: name -> (type, format of the value)
PROPS = {
    'parent': (1, '!I'), 'burst': (2, '!I'), 'cburst': (3, '!I'), 'quantum': (4, '!I'),
    'rate': (5, '!Q'), 'peak_rate': (6, '!Q'), 'limit': (7, '!I'), 'latency_us': (8, '!I'),
    'jitter_us': (9, '!I'), 'loss_ppm': (10, '!I'), 'target_us': (11, '!I'),
    'interval_us': (12, '!I'), 'flows': (13, '!I'), 'ecn': (14, '!B'), 'red_max': (15, '!I'),
    'red_probability_ppm': (16, '!I'), 'red_avpkt': (17, '!I'), 'red_burst': (18, '!I'),
    'red_bandwidth': (19, '!Q'), 'red_adaptive': (20, '!B'), 'sfq_depth': (21, '!I'),
    'sfq_divisor': (22, '!I'), 'bands': (23, '!B'), 'priomap': (24, '!16s'),
    'service_curve': (25, '!B7xQQQ'), 'rate_share_ppm': (26, '!I'), 'ceil_share_ppm': (27, '!I'),
    'diffserv': (28, '!B'), 'direction': (29, '!B'), 'with_children': (30, '!B'),
    'overhead': (31, '!i'), 'mpu': (32, '!I'), 'linklayer': (33, '!B'), 'flow_mode': (34, '!B'),
    'nat': (35, '!B'), 'wash': (36, '!B'), 'ack_filter': (37, '!B'), 'ingress': (38, '!B'),
    'split_gso': (39, '!B'), 'memory_limit': (40, '!I'), 'fwmark': (41, '!I'),
    'autorate_ingress': (42, '!B'),
    'max_rate': (43, '!Q'), 'ce_threshold_us': (44, '!I'), 'drop_batch': (45, '!I'),
    'offload': (46, '!B'), 'drop_precedence': (47, '!BB2xIIII'), 'name': (48, TEXT),
    'promise': (49, '!I'), 'delay_us': (50, '!I'),
    'oversubscribe': (51, '!B'),
}
PROP_NAMES = {number: (name, fmt) for name, (number, fmt) in PROPS.items()}

# Fixed parameters after class_id, padded to 8 in a dump: (sched, object) -> (names, format)
FIXED = {
    (HTB, CLASS): ('rate ceil prio', '!QQI4x'),
    (PFIFO, QDISC): ('limit', '!I'),
    (BFIFO, QDISC): ('limit', '!I'),
    (SFQ, QDISC): ('perturb quantum', '!II'),
    (RED, QDISC): ('threshold limit', '!II'),
}


class SchedError(Exception):
    """A request was refused: the code of docs/reference/qos-extension.md, errno and the sentence."""

    def __init__(self, error, envelope, request):
        super().__init__(str(error))
        self.error = error
        self.type, data = error.type, error.data
        self.code = self.errno = self.text = None
        if error.type == of13.ET_EXPERIMENTER:
            assert envelope == EXPERIMENTER, 'experimenter error to a native request'
            self.code = error.code
            experimenter, = struct.unpack_from('!I', data)
            assert experimenter == EXPERIMENTER_ID, f'experimenter {experimenter:#x}'
            data = data[4:]
        elif error.type == ET_SCHED_FAILED:
            assert envelope == NATIVE, 'native error to a request in the experimenter envelope'
            self.code = error.code
        else:
            return
        assert len(data) >= 68, f'error data of {len(data)} bytes: {data.hex()}'
        assert data[:64] == request[:64].ljust(64, b'\0'), f'error data {data.hex()}'
        self.errno, = struct.unpack_from('!I', data, 64)
        self.text = data[68:].decode('utf-8')
        self.args = (f'OFPSFC {self.code}, errno {self.errno}: {self.text}',)


def prop(name, *values):
    number, fmt = PROPS[name]
    return raw_prop(number, values[0].encode() if fmt == TEXT else struct.pack(fmt, *values))


def raw_prop(number, value, length=None):
    return pad8(struct.pack('!HH', number, 4 + len(value) if length is None else length) + value)


def props(**kw):
    """props(parent=1, service_curve=[(1, m1, d, m2), ...])"""
    out = b''
    for name, value in kw.items():
        if isinstance(value, list):
            out += b''.join(prop(name, *v) for v in value)
        else:
            out += prop(name, value)
    return out


def content(sched, obj, action, port, class_id, fixed=b'', properties=b'', pad1=b'\0\0\0',
            pad2=b'\0\0'):
    return struct.pack('!B3sBB2sII', sched, pad1, obj, action, pad2, port, class_id) + fixed + \
        properties


def htb_class(action, port, queue, rate=0, ceil=0, prio=0, **properties):
    fixed = b'' if action == DEL else struct.pack('!QQI4x', rate, ceil, prio)
    return content(HTB, CLASS, action, port, queue, fixed, props(**properties))


def qdisc(sched, action, port, queue=0, *fixed, **properties):
    """qdisc(SFQ, ADD, 2, 10, 10, 1514): the fixed parameters in the page's order."""
    packed = b''
    if action != DEL and (sched, QDISC) in FIXED:
        names, fmt = FIXED[sched, QDISC]
        packed = struct.pack(fmt, *(fixed or (0,) * len(names.split())))
    return content(sched, QDISC, action, port, queue, packed, props(**properties))


def clear(port=of13.P_ANY, **properties):
    return content(NONE, QDISC, DEL, port, 0, b'', props(**properties))


def envelop(envelope, body, xid, length=None):
    if envelope == NATIVE:
        return of13.message(T_QOS, body, xid, length=length)
    return of13.message(of13.EXPERIMENTER, struct.pack('!II', EXPERIMENTER_ID, 1) + body, xid,
                        length=length)


def post(conn, envelope, body):
    """Send without waiting -> the message"""
    conn.next_xid = conn.next_xid + 1 & 0xffffffff
    raw = envelop(envelope, body, conn.next_xid)
    conn.send_raw(raw)
    return raw


def send(conn, envelope, body):
    """Send and wait for the barrier; a refusal raises SchedError."""
    raw = post(conn, envelope, body)
    xid = conn.next_xid
    conn.barrier()
    for msg in [m for m in conn.inbox if m.xid == xid]:
        conn.inbox.remove(msg)
        assert msg.type == of13.ERROR, f'a QoS request was answered with {msg}'
        raise SchedError(of13.OfError(msg), envelope, raw)


def refused(conn, envelope, body, code, etype=None):
    """Send what must be refused with this OFPSFC code (or the plain error etype/code)."""
    try:
        send(conn, envelope, body)
    except SchedError as error:
        if etype is not None:
            assert (error.type, error.error.code) == (etype, code), \
                f'expected error {etype}/{code}, got {error}'
        else:
            assert error.code == code, f'expected OFPSFC {code}, got {error}'
            assert error.text, 'an error without a sentence for people'
        return error
    raise AssertionError(f'expected the request to be refused with {code}, it was accepted')


ENTRY = '!HBBIIIQQQQQQII'
ENTRY_NAMES = ('length object_type sched_type port_no class_id parent_id bytes packets drops '
               'overlimits requeues marked backlog_bytes backlog_packets')


def parse_entries(body):
    entries = []
    while body:
        e = of13.named(ENTRY_NAMES, ENTRY, body)
        assert 72 <= e['length'] <= len(body) and e['length'] % 8 == 0, f"length {e['length']}"
        rest = body[72:e['length']]
        body = body[e['length']:]
        key = e['sched_type'], e['object_type']
        if key in FIXED:
            names, fmt = FIXED[key]
            e.update(zip(names.split(), struct.unpack_from(fmt, rest)))
            size = (struct.calcsize(fmt) + 7) // 8 * 8
            assert rest[struct.calcsize(fmt):size] == bytes(size - struct.calcsize(fmt))
            rest = rest[size:]
        found = {}
        while rest:
            number, length = struct.unpack_from('!HH', rest)
            assert 4 <= length <= len(rest), f'property {number} of length {length}'
            name, fmt = PROP_NAMES[number]
            value = (rest[4:length].decode(),) if fmt == TEXT else \
                struct.unpack(fmt, rest[4:length])
            several = name in ('service_curve', 'drop_precedence')
            assert name not in found or several, f'{name} is given twice'
            if several:
                found.setdefault(name, []).append(value)
            else:
                found[name], = value
            rest = rest[(length + 7) // 8 * 8:]
        e['properties'] = found
        entries.append(e)
    return entries


def dump(conn, port=of13.P_ANY, class_id=ALL_CLASSES):
    """QOS_DUMP -> entries; every part of the reply has its own experimenter header."""
    parts = conn.multipart_parts(of13.MP_EXPERIMENTER,
                                 struct.pack('!IIII', EXPERIMENTER_ID, 1, port, class_id))
    return [e for part in parts for e in parse_entries(split_experimenter(part))]


def split_experimenter(body):
    """Every multipart message starts with ofp_experimenter_multipart_header."""
    experimenter, exp_type = struct.unpack_from('!II', body)
    assert (experimenter, exp_type) == (EXPERIMENTER_ID, 1)
    return body[8:]


KEPT, DIFFERS, AWAY, OTHER_ROOT = 1, 2, 4, 8                 # flags of QOS_PORTS


def qos_ports(conn):
    """QOS_PORTS of docs/reference/extensions.md -> {(port, direction): entry}"""
    found = {}
    for part in conn.multipart_parts(of13.MP_EXPERIMENTER,
                                     struct.pack('!II', EXPERIMENTER_ID, 4)):
        assert struct.unpack_from('!II', part) == (EXPERIMENTER_ID, 4)
        for at in range(8, len(part), 32):
            e = of13.named('port_no direction sched_type flags default_class queues '
                           'foreign_changes foreign_repaired', '!IBBHIIQQ', part[at:at + 32])
            found[e['port_no'], e['direction']] = e
    return found


def counters(conn):
    """COUNTERS of docs/reference/extensions.md -> {name: value}"""
    found = {}
    for part in conn.multipart_parts(of13.MP_EXPERIMENTER,
                                     struct.pack('!II', EXPERIMENTER_ID, 2)):
        body = part[8:]
        while body:
            length, value = struct.unpack_from('!H6xQ', body)
            found[body[16:length].split(b'\0')[0].decode()] = value
            body = body[length:]
    return found
