# SPDX-License-Identifier: Apache-2.0
"""OpenFlow 1.3 messages: constants, builders that return bytes, parsers of replies.

Everything here is written from the OpenFlow Switch Specification 1.3.5 (section numbers in
comments) with struct.pack; it shares nothing with the C code, so that an error has to be made
twice to go unnoticed.
"""
import ipaddress
import struct

VERSION = 4

# 7.1: message types
(HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY, EXPERIMENTER, FEATURES_REQUEST, FEATURES_REPLY,
 GET_CONFIG_REQUEST, GET_CONFIG_REPLY, SET_CONFIG, PACKET_IN, FLOW_REMOVED, PORT_STATUS,
 PACKET_OUT, FLOW_MOD, GROUP_MOD, PORT_MOD, TABLE_MOD, MULTIPART_REQUEST, MULTIPART_REPLY,
 BARRIER_REQUEST, BARRIER_REPLY, QUEUE_GET_CONFIG_REQUEST, QUEUE_GET_CONFIG_REPLY,
 ROLE_REQUEST, ROLE_REPLY, GET_ASYNC_REQUEST, GET_ASYNC_REPLY, SET_ASYNC,
 METER_MOD) = range(30)

# 7.3.5: multipart types
(MP_DESC, MP_FLOW, MP_AGGREGATE, MP_TABLE, MP_PORT_STATS, MP_QUEUE, MP_GROUP, MP_GROUP_DESC,
 MP_GROUP_FEATURES, MP_METER, MP_METER_CONFIG, MP_METER_FEATURES, MP_TABLE_FEATURES,
 MP_PORT_DESC) = range(14)
MP_EXPERIMENTER = 0xffff

# 7.2.1: reserved ports
P_MAX = 0xffffff00
P_IN_PORT, P_TABLE, P_NORMAL, P_FLOOD, P_ALL, P_CONTROLLER, P_LOCAL, P_ANY = range(0xfffffff8,
                                                                                   0x100000000)
NO_BUFFER = 0xffffffff
G_ANY = 0xffffffff
G_ALL = 0xfffffffc
Q_ALL = 0xffffffff
M_ALL = 0xffffffff
TT_ALL = 0xff

ADD, MODIFY, MODIFY_STRICT, DELETE, DELETE_STRICT = range(5)           # flow_mod commands
FF_SEND_FLOW_REM, FF_CHECK_OVERLAP, FF_RESET_COUNTS, FF_NO_PKT_COUNTS, FF_NO_BYT_COUNTS = (
    1, 2, 4, 8, 16)
GT_ALL, GT_SELECT, GT_INDIRECT, GT_FF = range(4)
ROLE_NOCHANGE, ROLE_EQUAL, ROLE_MASTER, ROLE_SLAVE = range(4)

# 7.4.4: error types
(ET_HELLO_FAILED, ET_BAD_REQUEST, ET_BAD_ACTION, ET_BAD_INSTRUCTION, ET_BAD_MATCH,
 ET_FLOW_MOD_FAILED, ET_GROUP_MOD_FAILED, ET_PORT_MOD_FAILED, ET_TABLE_MOD_FAILED,
 ET_QUEUE_OP_FAILED, ET_SWITCH_CONFIG_FAILED, ET_ROLE_REQUEST_FAILED, ET_METER_MOD_FAILED,
 ET_TABLE_FEATURES_FAILED) = range(14)
ET_EXPERIMENTER = 0xffff

# Error codes, by type (the ones that tests name)
HFC_INCOMPATIBLE = 0
(BRC_BAD_VERSION, BRC_BAD_TYPE, BRC_BAD_MULTIPART, BRC_BAD_EXPERIMENTER, BRC_BAD_EXP_TYPE,
 BRC_EPERM, BRC_BAD_LEN, BRC_BUFFER_EMPTY, BRC_BUFFER_UNKNOWN, BRC_BAD_TABLE_ID, BRC_IS_SLAVE,
 BRC_BAD_PORT, BRC_BAD_PACKET, BRC_MULTIPART_BUFFER_OVERFLOW) = range(14)
(BAC_BAD_TYPE, BAC_BAD_LEN, BAC_BAD_EXPERIMENTER, BAC_BAD_EXP_TYPE, BAC_BAD_OUT_PORT,
 BAC_BAD_ARGUMENT, BAC_EPERM, BAC_TOO_MANY, BAC_BAD_QUEUE, BAC_BAD_OUT_GROUP,
 BAC_MATCH_INCONSISTENT, BAC_UNSUPPORTED_ORDER, BAC_BAD_TAG, BAC_BAD_SET_TYPE, BAC_BAD_SET_LEN,
 BAC_BAD_SET_ARGUMENT) = range(16)
(BIC_UNKNOWN_INST, BIC_UNSUP_INST, BIC_BAD_TABLE_ID, BIC_UNSUP_METADATA,
 BIC_UNSUP_METADATA_MASK, BIC_BAD_EXPERIMENTER, BIC_BAD_EXP_TYPE, BIC_BAD_LEN,
 BIC_EPERM) = range(9)
(BMC_BAD_TYPE, BMC_BAD_LEN, BMC_BAD_TAG, BMC_BAD_DL_ADDR_MASK, BMC_BAD_NW_ADDR_MASK,
 BMC_BAD_WILDCARDS, BMC_BAD_FIELD, BMC_BAD_VALUE, BMC_BAD_MASK, BMC_BAD_PREREQ,
 BMC_DUP_FIELD, BMC_EPERM) = range(12)
(FMFC_UNKNOWN, FMFC_TABLE_FULL, FMFC_BAD_TABLE_ID, FMFC_OVERLAP, FMFC_EPERM, FMFC_BAD_TIMEOUT,
 FMFC_BAD_COMMAND, FMFC_BAD_FLAGS) = range(8)
(GMFC_GROUP_EXISTS, GMFC_INVALID_GROUP, GMFC_WEIGHT_UNSUPPORTED, GMFC_OUT_OF_GROUPS,
 GMFC_OUT_OF_BUCKETS, GMFC_CHAINING_UNSUPPORTED, GMFC_WATCH_UNSUPPORTED, GMFC_LOOP,
 GMFC_UNKNOWN_GROUP, GMFC_CHAINED_GROUP, GMFC_BAD_TYPE, GMFC_BAD_COMMAND, GMFC_BAD_BUCKET,
 GMFC_BAD_WATCH, GMFC_EPERM) = range(15)
PMFC_BAD_PORT, PMFC_BAD_HW_ADDR, PMFC_BAD_CONFIG, PMFC_BAD_ADVERTISE, PMFC_EPERM = range(5)
TMFC_BAD_TABLE, TMFC_BAD_CONFIG, TMFC_EPERM = range(3)
QOFC_BAD_PORT, QOFC_BAD_QUEUE, QOFC_EPERM = range(3)
SCFC_BAD_FLAGS, SCFC_BAD_LEN, SCFC_EPERM = range(3)
RRFC_STALE, RRFC_UNSUP, RRFC_BAD_ROLE = range(3)
(MMFC_UNKNOWN, MMFC_METER_EXISTS, MMFC_INVALID_METER, MMFC_UNKNOWN_METER, MMFC_BAD_COMMAND,
 MMFC_BAD_FLAGS, MMFC_BAD_RATE, MMFC_BAD_BURST, MMFC_BAD_BAND, MMFC_BAD_BAND_VALUE,
 MMFC_OUT_OF_METERS, MMFC_OUT_OF_BANDS) = range(12)

# 7.2.3.7: OXM fields of class 0x8000: name -> (number, bytes)
OXM = {name: (number, size) for number, (name, size) in enumerate([
    ('in_port', 4), ('in_phy_port', 4), ('metadata', 8), ('eth_dst', 6), ('eth_src', 6),
    ('eth_type', 2), ('vlan_vid', 2), ('vlan_pcp', 1), ('ip_dscp', 1), ('ip_ecn', 1),
    ('ip_proto', 1), ('ipv4_src', 4), ('ipv4_dst', 4), ('tcp_src', 2), ('tcp_dst', 2),
    ('udp_src', 2), ('udp_dst', 2), ('sctp_src', 2), ('sctp_dst', 2), ('icmpv4_type', 1),
    ('icmpv4_code', 1), ('arp_op', 2), ('arp_spa', 4), ('arp_tpa', 4), ('arp_sha', 6),
    ('arp_tha', 6), ('ipv6_src', 16), ('ipv6_dst', 16), ('ipv6_flabel', 4), ('icmpv6_type', 1),
    ('icmpv6_code', 1), ('ipv6_nd_target', 16), ('ipv6_nd_sll', 6), ('ipv6_nd_tll', 6),
    ('mpls_label', 4), ('mpls_tc', 1), ('mpls_bos', 1), ('pbb_isid', 3), ('tunnel_id', 8),
    ('ipv6_exthdr', 2)])}
OXM_BY_NUMBER = {number: (name, size) for name, (number, size) in OXM.items()}


def pad8(data):
    return data + bytes(-len(data) % 8)


def message(kind, body=b'', xid=0, version=VERSION, length=None):
    return struct.pack('!BBHI', version, kind, 8 + len(body) if length is None else length,
                       xid) + body


# ------------------------------------------------------------------------------------- matches

def value_bytes(value, size):
    """An int, bytes, 'aa:bb:..', '10.0.0.1' or 'fe80::1' as `size` bytes."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        if size == 6:
            return bytes.fromhex(value.replace(':', ''))
        return ipaddress.ip_address(value).packed
    return value.to_bytes(size, 'big')


def oxm(name, value, mask=None, cls=0x8000):
    number, size = OXM[name]
    if isinstance(value, tuple):
        value, mask = value
    payload = value_bytes(value, size)
    if mask is not None:
        payload += value_bytes(mask, size)
    return struct.pack('!HBB', cls, number << 1 | (mask is not None), len(payload)) + payload


def match(raw=None, **fields):
    """struct ofp_match: match(in_port=1, ipv4_src=('10.0.0.0', '255.0.0.0'))."""
    body = raw if raw is not None else b''.join(oxm(n, v) for n, v in fields.items())
    return pad8(struct.pack('!HH', 1, 4 + len(body)) + body)


def parse_oxms(data):
    fields = {}
    while data:
        cls, number, size = struct.unpack_from('!HBB', data)
        payload, data = data[4:4 + size], data[4 + size:]
        name, width = OXM_BY_NUMBER.get(number >> 1, (f'{cls:#x}.{number >> 1}', size))
        assert cls == 0x8000, f'OXM class {cls:#x}'
        if number & 1:
            assert size == 2 * width, f'{name}: {size} bytes with a mask'
            fields[name] = (int.from_bytes(payload[:width], 'big'),
                            int.from_bytes(payload[width:], 'big'))
        else:
            assert size == width, f'{name}: {size} bytes'
            fields[name] = int.from_bytes(payload, 'big')
    return fields


def parse_match(data):
    """-> (fields, bytes used)"""
    kind, length = struct.unpack_from('!HH', data)
    assert kind == 1 and length >= 4, f'match type {kind} length {length}'
    used = (length + 7) // 8 * 8
    assert data[length:used] == bytes(used - length), 'match padding is not zero'
    return parse_oxms(data[4:length]), used


# --------------------------------------------------------------------- actions, instructions

def action(kind, body=b'\0\0\0\0'):
    return struct.pack('!HH', kind, 4 + len(body)) + body


def output(port, max_len=0xffff):
    return action(0, struct.pack('!IH6x', port, max_len))


def copy_ttl_out():
    return action(11)


def copy_ttl_in():
    return action(12)


def set_mpls_ttl(ttl):
    return action(15, struct.pack('!B3x', ttl))


def dec_mpls_ttl():
    return action(16)


def push_vlan(ethertype=0x8100):
    return action(17, struct.pack('!H2x', ethertype))


def pop_vlan():
    return action(18)


def push_mpls(ethertype=0x8847):
    return action(19, struct.pack('!H2x', ethertype))


def pop_mpls(ethertype):
    return action(20, struct.pack('!H2x', ethertype))


def set_queue(queue):
    return action(21, struct.pack('!I', queue))


def group(group_id):
    return action(22, struct.pack('!I', group_id))


def set_nw_ttl(ttl):
    return action(23, struct.pack('!B3x', ttl))


def dec_nw_ttl():
    return action(24)


def set_field(**field):
    (name, value), = field.items()
    body = oxm(name, value)
    return action(25, body + bytes(-(4 + len(body)) % 8))


def push_pbb(ethertype=0x88e7):
    return action(26, struct.pack('!H2x', ethertype))


def pop_pbb():
    return action(27)


def instruction(kind, body):
    return struct.pack('!HH', kind, 4 + len(body)) + body


def goto_table(table):
    return instruction(1, struct.pack('!B3x', table))


def write_metadata(value, mask=0xffffffffffffffff):
    return instruction(2, struct.pack('!4xQQ', value, mask))


def write_actions(*actions):
    return instruction(3, bytes(4) + b''.join(actions))


def apply_actions(*actions):
    return instruction(4, bytes(4) + b''.join(actions))


def clear_actions():
    return instruction(5, bytes(4))


def meter(meter_id):
    return instruction(6, struct.pack('!I', meter_id))


def parse_list(data, what):
    """Items of {u16 type, u16 length} -> [(type, body)]"""
    items = []
    while data:
        kind, length = struct.unpack_from('!HH', data)
        assert 4 <= length <= len(data), f'{what} of length {length} in {len(data)}'
        items.append((kind, data[4:length]))
        data = data[length:]
    return items


# ------------------------------------------------------------------------------- message bodies

def flow_mod(command=ADD, *, match=match(), instructions=(), table_id=0, priority=0x8000,
             cookie=0, cookie_mask=0, idle=0, hard=0, buffer_id=NO_BUFFER, out_port=P_ANY,
             out_group=G_ANY, flags=0):
    return struct.pack('!QQBBHHHIIIH2x', cookie, cookie_mask, table_id, command, idle, hard,
                       priority, buffer_id, out_port, out_group, flags) + match + \
        b''.join(instructions)


def packet_out(data, actions=(), in_port=P_CONTROLLER, buffer_id=NO_BUFFER):
    actions = b''.join(actions)
    return struct.pack('!IIH6x', buffer_id, in_port, len(actions)) + actions + data


def bucket(*actions, weight=0, watch_port=P_ANY, watch_group=G_ANY):
    actions = b''.join(actions)
    return struct.pack('!HHII4x', 16 + len(actions), weight, watch_port, watch_group) + actions


def group_mod(command, kind, group_id, *buckets):
    return struct.pack('!HBxI', command, kind, group_id) + b''.join(buckets)


def band_drop(rate, burst=0):
    return struct.pack('!HHII4x', 1, 16, rate, burst)


def band_dscp(rate, burst=0, prec_level=1):
    return struct.pack('!HHIIB3x', 2, 16, rate, burst, prec_level)


def meter_mod(command, meter_id, *bands, flags=1):
    return struct.pack('!HHI', command, flags, meter_id) + b''.join(bands)


def port_mod(port, hw, config=0, mask=0, advertise=0):
    return struct.pack('!I4x6s2xIII4x', port, hw, config, mask, advertise)


def table_mod(table, config=0):
    return struct.pack('!B3xI', table, config)


def role(kind, generation=0):
    return struct.pack('!I4xQ', kind, generation)


def flow_request(match=match(), table_id=TT_ALL, out_port=P_ANY, out_group=G_ANY, cookie=0,
                 cookie_mask=0):
    return struct.pack('!B3xII4xQQ', table_id, out_port, out_group, cookie, cookie_mask) + match


# ------------------------------------------------------------------------------ reply parsers

def named(names, fmt, data, offset=0):
    """struct.unpack into a dict."""
    return dict(zip(names.split(), struct.unpack_from(fmt, data, offset)))


def text(raw):
    assert b'\0' in raw, 'string without its terminating 0'
    return raw.split(b'\0')[0].decode()


def parse_features(body):
    assert len(body) == 24
    return named('datapath_id n_buffers n_tables auxiliary_id capabilities reserved',
                 '!QIBB2xII', body)


PORT = '!I4x6s2x16sIIIIIIII'


def parse_port(data):
    port = named('port_no hw_addr name config state curr advertised supported peer curr_speed '
                 'max_speed', PORT, data)
    port['name'] = text(port['name'])
    return port


def parse_ports(body):
    assert len(body) % 64 == 0
    return [parse_port(body[i:i + 64]) for i in range(0, len(body), 64)]


def parse_packet_in(body):
    msg = named('buffer_id total_len reason table_id cookie', '!IHBBQ', body)
    msg['match'], used = parse_match(body[16:])
    assert body[16 + used:18 + used] == b'\0\0'
    msg['data'] = body[18 + used:]
    return msg


def parse_flow_removed(body):
    msg = named('cookie priority reason table_id duration_sec duration_nsec idle_timeout '
                'hard_timeout packet_count byte_count', '!QHBBIIHHQQ', body)
    msg['match'], used = parse_match(body[40:])
    assert 40 + used == len(body)
    return msg


def parse_port_status(body):
    assert len(body) == 72
    return {'reason': body[0], 'port': parse_port(body[8:])}


def parse_flows(body):
    flows = []
    while body:
        length, = struct.unpack_from('!H', body)
        assert 56 <= length <= len(body) and length % 8 == 0, f'flow stats of length {length}'
        flow = named('length table_id duration_sec duration_nsec priority idle_timeout '
                     'hard_timeout flags cookie packet_count byte_count', '!HBxIIHHHH4xQQQ', body)
        flow['match'], used = parse_match(body[48:length])
        flow['raw_instructions'] = body[48 + used:length]
        flow['instructions'] = parse_list(flow['raw_instructions'], 'instruction')
        flows.append(flow)
        body = body[length:]
    return flows


def parse_rows(body, size, names, fmt):
    assert len(body) % size == 0 and struct.calcsize(fmt) == size
    return [named(names, fmt, body, i) for i in range(0, len(body), size)]


def parse_port_stats(body):
    return parse_rows(body, 112, 'port_no rx_packets tx_packets rx_bytes tx_bytes rx_dropped '
                      'tx_dropped rx_errors tx_errors rx_frame_err rx_over_err rx_crc_err '
                      'collisions duration_sec duration_nsec', '!I4x12QII')


def parse_queue_stats(body):
    return parse_rows(body, 40, 'port_no queue_id tx_bytes tx_packets tx_errors duration_sec '
                      'duration_nsec', '!IIQQQII')


def parse_table_stats(body):
    return parse_rows(body, 24, 'table_id active_count lookup_count matched_count', '!B3xIQQ')


def parse_aggregate(body):
    assert len(body) == 24
    return named('packet_count byte_count flow_count', '!QQI4x', body)


def parse_desc(body):
    assert len(body) == 1056
    names = ('mfr_desc', 'hw_desc', 'sw_desc', 'serial_num', 'dp_desc')
    return {n: text(raw) for n, raw in zip(names, struct.unpack('256s256s256s32s256s', body))}


def parse_buckets(data):
    buckets = []
    while data:
        b = named('length weight watch_port watch_group', '!HHII4x', data)
        assert 16 <= b['length'] <= len(data)
        b['actions'] = parse_list(data[16:b['length']], 'action')
        buckets.append(b)
        data = data[b['length']:]
    return buckets


def parse_group_stats(body):
    groups = []
    while body:
        g = named('length group_id ref_count packet_count byte_count duration_sec duration_nsec',
                  '!H2xII4xQQII', body)
        rest = body[40:g['length']]
        g['buckets'] = parse_rows(rest, 16, 'packet_count byte_count', '!QQ')
        groups.append(g)
        body = body[g['length']:]
    return groups


def parse_group_desc(body):
    groups = []
    while body:
        g = named('length type group_id', '!HBxI', body)
        g['buckets'] = parse_buckets(body[8:g['length']])
        groups.append(g)
        body = body[g['length']:]
    return groups


def parse_group_features(body):
    assert len(body) == 40
    values = struct.unpack('!10I', body)
    return {'types': values[0], 'capabilities': values[1], 'max_groups': values[2:6],
            'actions': values[6:10]}


def parse_bands(data):
    bands = []
    while data:
        b = named('type length rate burst_size', '!HHII', data)
        assert b['length'] == 16
        b['prec_level'] = data[12]
        bands.append(b)
        data = data[16:]
    return bands


def parse_meter_stats(body):
    meters = []
    while body:
        m = named('meter_id length flow_count packet_in_count byte_in_count duration_sec '
                  'duration_nsec', '!IH6xIQQII', body)
        m['bands'] = parse_rows(body[40:m['length']], 16, 'packet_count byte_count', '!QQ')
        meters.append(m)
        body = body[m['length']:]
    return meters


def parse_meter_config(body):
    meters = []
    while body:
        m = named('length flags meter_id', '!HHI', body)
        m['bands'] = parse_bands(body[8:m['length']])
        meters.append(m)
        body = body[m['length']:]
    return meters


def parse_meter_features(body):
    assert len(body) == 16
    return named('max_meter band_types capabilities max_bands max_color', '!IIIBB2x', body)


def parse_table_features(body):
    tables = []
    while body:
        t = named('length table_id name metadata_match metadata_write config max_entries',
                  '!HB5x32sQQII', body)
        t['name'] = text(t['name'])
        props, rest = {}, body[64:t['length']]
        while rest:
            kind, length = struct.unpack_from('!HH', rest)
            assert 4 <= length <= len(rest), f'table feature property of length {length}'
            props[kind] = rest[4:length]
            rest = rest[(length + 7) // 8 * 8:]
        t['properties'] = props
        tables.append(t)
        body = body[t['length']:]
    return tables


def parse_queue_config(body):
    """QUEUE_GET_CONFIG_REPLY -> {queue_id: {'port': n, 'min': per mille, 'max': per mille}}"""
    port, = struct.unpack_from('!I4x', body)
    queues, body = {}, body[8:]
    while body:
        queue_id, queue_port, length = struct.unpack_from('!IIH6x', body)
        assert 16 <= length <= len(body) and length % 8 == 0
        queue = {'port': queue_port}
        props = body[16:length]
        while props:
            kind, size = struct.unpack_from('!HH4x', props)
            assert size == 16, f'queue property {kind} of length {size}'
            queue[{1: 'min', 2: 'max'}[kind]], = struct.unpack_from('!H6x', props, 8)
            props = props[size:]
        queues[queue_id] = queue
        body = body[length:]
    return port, queues
