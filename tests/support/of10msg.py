# SPDX-License-Identifier: Apache-2.0
"""OpenFlow 1.0.1 from its specification alone: the messages as bytes, and a connection that speaks them.

    with Conn(switch.address) as c:
        c.flow(match(dl_type=0x0800, nw_src='10.0.0.0/8'), enqueue(2, 10), priority=5)
        c.flows()
"""
import ipaddress
import struct

from . import of13

VERSION = 1
(HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY, VENDOR, FEATURES_REQUEST, FEATURES_REPLY,
 GET_CONFIG_REQUEST, GET_CONFIG_REPLY, SET_CONFIG, PACKET_IN, FLOW_REMOVED, PORT_STATUS, PACKET_OUT,
 FLOW_MOD, PORT_MOD, STATS_REQUEST, STATS_REPLY, BARRIER_REQUEST, BARRIER_REPLY,
 QUEUE_GET_CONFIG_REQUEST, QUEUE_GET_CONFIG_REPLY) = range(22)
QOS = 22
ST_DESC, ST_FLOW, ST_AGGREGATE, ST_TABLE, ST_PORT, ST_QUEUE, ST_VENDOR = *range(6), 0xffff
(IN_PORT, TABLE, NORMAL, FLOOD, ALL, CONTROLLER, LOCAL, NONE) = range(0xfff8, 0x10000)
NO_BUFFER = 0xffffffff
ADD, MODIFY, MODIFY_STRICT, DELETE, DELETE_STRICT = range(5)
SEND_FLOW_REM, CHECK_OVERLAP, EMERG = 1, 2, 4
(ET_HELLO_FAILED, ET_BAD_REQUEST, ET_BAD_ACTION, ET_FLOW_MOD_FAILED, ET_PORT_MOD_FAILED,
 ET_QUEUE_OP_FAILED, ET_SCHED_FAILED) = range(7)
(BRC_BAD_VERSION, BRC_BAD_TYPE, BRC_BAD_STAT, BRC_BAD_VENDOR, BRC_BAD_SUBTYPE, BRC_EPERM, BRC_BAD_LEN,
 BRC_BUFFER_EMPTY, BRC_BUFFER_UNKNOWN) = range(9)
(BAC_BAD_TYPE, BAC_BAD_LEN, BAC_BAD_VENDOR, BAC_BAD_VENDOR_TYPE, BAC_BAD_OUT_PORT, BAC_BAD_ARGUMENT,
 BAC_EPERM, BAC_TOO_MANY, BAC_BAD_QUEUE) = range(9)
(FMFC_ALL_TABLES_FULL, FMFC_OVERLAP, FMFC_EPERM, FMFC_BAD_EMERG_TIMEOUT, FMFC_BAD_COMMAND,
 FMFC_UNSUPPORTED) = range(6)
VLAN_NONE = 0xffff
NICIRA, QOSF = 0x2320, 0x514f5346

# A match's fields: their wildcard's bit (NW_SRC, NW_DST: where their six bits begin) and place
WILDCARD = {'in_port': 0, 'dl_vlan': 1, 'dl_src': 2, 'dl_dst': 3, 'dl_type': 4, 'nw_proto': 5,
            'tp_src': 6, 'tp_dst': 7, 'dl_vlan_pcp': 20, 'nw_tos': 21}
MATCH = '!IH6s6sHBxHBB2x4s4sHH'
FIELDS = ('in_port', 'dl_src', 'dl_dst', 'dl_vlan', 'dl_vlan_pcp', 'dl_type', 'nw_tos', 'nw_proto',
          'nw_src', 'nw_dst', 'tp_src', 'tp_dst')


def mac(value):
    return value if isinstance(value, bytes) else bytes.fromhex(value.replace(':', ''))


def match(**fields):
    """nw_src and nw_dst may be prefixes"""
    wildcards = 0
    values = {name: bytes(6) if name.startswith('dl_s') or name == 'dl_dst' else 0 for name in FIELDS}
    for name, bit in WILDCARD.items():
        if name not in fields:
            wildcards |= 1 << bit
        elif name in ('dl_src', 'dl_dst'):
            values[name] = mac(fields[name])
        else:
            values[name] = fields[name]
    for name, shift in (('nw_src', 8), ('nw_dst', 14)):
        net = ipaddress.ip_network(fields.get(name, '0.0.0.0/0'), strict=False)
        values[name] = net.network_address.packed
        wildcards |= 32 - net.prefixlen << shift
    return struct.pack(MATCH, wildcards, *(values[name] for name in FIELDS))


def parse_match(raw):
    wildcards, *values = struct.unpack(MATCH, raw[:40])
    out = {}
    for name, value in zip(FIELDS, values):
        if name in ('nw_src', 'nw_dst'):
            left_out = wildcards >> (8 if name == 'nw_src' else 14) & 63
            if left_out < 32:
                out[name] = f'{ipaddress.ip_address(value)}/{32 - left_out}'
        elif not wildcards >> WILDCARD[name] & 1:
            out[name] = value.hex(':') if name in ('dl_src', 'dl_dst') else value
    return out


# ------------------------------------------------------------------------------------ actions

def output(port, max_len=0):
    return struct.pack('!HHHH', 0, 8, port, max_len)


def enqueue(port, queue):
    return struct.pack('!HHH6xI', 11, 16, port, queue)


def set_vlan_vid(vid):
    return struct.pack('!HHH2x', 1, 8, vid)


def set_vlan_pcp(pcp):
    return struct.pack('!HHB3x', 2, 8, pcp)


def strip_vlan():
    return struct.pack('!HH4x', 3, 8)


def set_dl(which, address):
    return struct.pack('!HH6s6x', 4 if which == 'src' else 5, 16, mac(address))


def set_nw(which, address):
    return struct.pack('!HH4s', 6 if which == 'src' else 7, 8, ipaddress.ip_address(address).packed)


def set_nw_tos(tos):
    return struct.pack('!HHB3x', 8, 8, tos)


def set_tp(which, port):
    return struct.pack('!HHH2x', 9 if which == 'src' else 10, 8, port)


# ------------------------------------------------------------------------------------ messages

def flow_mod(m, *actions, command=ADD, cookie=0, idle=0, hard=0, priority=0x8000, buffer_id=NO_BUFFER,
             out_port=NONE, flags=0):
    return m + struct.pack('!QHHHHIHH', cookie, command, idle, hard, priority, buffer_id, out_port,
                           flags) + b''.join(actions)


def packet_out(*actions, data=b'', in_port=NONE, buffer_id=NO_BUFFER):
    joined = b''.join(actions)
    return struct.pack('!IHH', buffer_id, in_port, len(joined)) + joined + data


def flow_request(m=None, table=0xff, out_port=NONE):
    return (m or match()) + struct.pack('!BxH', table, out_port)


def parse_port(raw):
    names = 'port_no hw_addr name config state curr advertised supported peer'.split()
    port = dict(zip(names, struct.unpack('!H6s16s6I', raw)))
    port['name'] = port['name'].rstrip(b'\0').decode()
    return port


def parse_packet_in(msg):
    names = 'buffer_id total_len in_port reason'.split()
    return dict(zip(names, struct.unpack_from('!IHHB', msg.body)), data=msg.body[10:])


def parse_flow_removed(msg):
    names = 'cookie priority reason sec nsec idle packets bytes'.split()
    return dict(zip(names, struct.unpack('!QHBxIIH2xQQ', msg.body[40:])), match=parse_match(msg.body))


def parse_flows(raw):
    """Statistics of flows; the actions as they are on the wire"""
    flows = []
    while raw:
        length, table = struct.unpack_from('!HB', raw)
        names = 'sec nsec priority idle hard cookie packets bytes'.split()
        flows.append(dict(zip(names, struct.unpack_from('!IIHHH6xQQQ', raw, 44)), table=table,
                          match=parse_match(raw[4:44]), actions=raw[88:length]))
        raw = raw[length:]
    return flows


def pieces(raw, fmt, names):
    size = struct.calcsize(fmt)
    assert len(raw) % size == 0
    return [dict(zip(names.split(), struct.unpack_from(fmt, raw, at))) for at in range(0, len(raw), size)]


class Conn(of13.Conn):
    """A connection of 1.0; what it inherits knows of messages no more than their header."""

    def __init__(self, target, hello=True, **kw):
        super().__init__(target, hello=False, **kw)
        if hello:
            self.send(HELLO)
            first = self.recv()
            assert first.type == HELLO, f'expected HELLO first, got {first}'
            self.barrier()

    def send(self, kind, body=b'', **header):
        return super().send(kind, body, **{'version': VERSION, **header})

    def recv(self, timeout=None):
        msg = super().recv(timeout)
        assert msg.type == HELLO or msg.version == VERSION, f'version {msg.version}'
        return msg

    def request(self, kind, body=b'', reply=None):
        return super().request(kind, body, reply)

    def barrier(self):
        self.request(BARRIER_REQUEST)

    def refused(self, kind, body=b''):
        """(type, code) of the error, whose data must be the request's beginning"""
        xid = self.send(kind, body)
        sent = struct.pack('!BBHI', VERSION, kind, 8 + len(body), xid) + body
        try:
            msg = self.wait(xid)
        except of13.OfError as error:
            n = min(64, len(sent))
            assert error.data[:n] == sent[:n]
            return error.type, error.code
        raise AssertionError(f'expected an error, got {msg}')

    def flow(self, m, *actions, **kw):
        self.ok(FLOW_MOD, flow_mod(m, *actions, **kw))

    def stats(self, kind, body=b''):
        xid = self.send(STATS_REQUEST, struct.pack('!HH', kind, 0) + body)
        parts = []
        while True:
            msg = self.wait(xid)
            got, flags = struct.unpack_from('!HH', msg.body)
            assert msg.type == STATS_REPLY and got == kind and not flags & ~1
            parts.append(msg.body[4:])
            if not flags:
                return parts

    def flows(self, *args, **kw):
        return [flow for part in self.stats(ST_FLOW, flow_request(*args, **kw)) for flow in parse_flows(part)]

    def aggregate(self, *args, **kw):
        raw = b''.join(self.stats(ST_AGGREGATE, flow_request(*args, **kw)))
        return dict(zip(('packets', 'bytes', 'flows'), struct.unpack('!QQI4x', raw)))

    def features(self):
        raw = self.request(FEATURES_REQUEST).body
        names = 'datapath_id n_buffers n_tables capabilities actions'.split()
        ports = [parse_port(raw[at:at + 48]) for at in range(24, len(raw), 48)]
        return dict(zip(names, struct.unpack_from('!QIB3xII', raw)), ports={p['port_no']: p for p in ports})

    def tables(self):
        return pieces(b''.join(self.stats(ST_TABLE)), '!B3x32sIIIQQ',
                      'table_id name wildcards max_entries active lookups matched')

    def port_stats(self, port=NONE):
        rows = pieces(b''.join(self.stats(ST_PORT, struct.pack('!H6x', port))), '!H6x12Q',
                      'port_no rx_packets tx_packets rx_bytes tx_bytes rx_dropped tx_dropped rx_errors '
                      'tx_errors rx_frame_err rx_over_err rx_crc_err collisions')
        return {row['port_no']: row for row in rows}

    def queue_stats(self, port=ALL, queue=0xffffffff):
        rows = pieces(b''.join(self.stats(ST_QUEUE, struct.pack('!H2xI', port, queue))), '!H2xIQQQ',
                      'port_no queue_id tx_bytes tx_packets tx_errors')
        return {(row['port_no'], row['queue_id']): row for row in rows}

    def queue_config(self, port):
        """{queue: the minimum rate in per mille}"""
        raw = self.request(QUEUE_GET_CONFIG_REQUEST, struct.pack('!H2x', port)).body
        assert struct.unpack_from('!H', raw)[0] == port
        queues, raw = {}, raw[8:]
        while raw:
            queue, length = struct.unpack_from('!IH', raw)
            kind, size, rate = struct.unpack_from('!HH4xH', raw, 8)
            assert (kind, size, length) == (1, 16, 24)
            queues[queue], raw = rate, raw[length:]
        return queues
