# SPDX-License-Identifier: Apache-2.0
"""TRACE, as docs/reference/extensions.md describes it."""
import struct

from . import of13, qosmsg

QOSF = 0x514f5346
TRACE = 7


def text(raw):
    return raw.rstrip(b'\0').decode()


def two_matches(event, body):
    event['before'], used = of13.parse_match(body)
    event['after'], more = of13.parse_match(body[used:])
    return body[used + more:]


def packet(event, body):
    event.update(of13.named('flags segments total_len ttl', '!xBHIB3x', body))
    event['fields'], used = of13.parse_match(body[12:])
    return body[12 + used:]


def table(event, body):
    event.update(of13.named('table_id priority result active higher not_compared cookie',
                            '!xBHB3xIIIQ', body))
    event['match'], used = of13.parse_match(body[28:])
    event['instructions'] = of13.parse_list(body[28 + used:], 'instruction')
    return b''


def missed(event, body):
    event.update(of13.named('table_id priority cookie', '!xBHQ', body))
    at = 12
    for name in ('match', 'wants', 'has'):
        event[name], used = of13.parse_match(body[at:])
        at += used
    return body[at:]


def meter(event, body):
    event.update(of13.named('verdict flags meter_id band', '!xBHII', body))
    rest = two_matches(event, body[12:])
    assert len(rest) % 32 == 0
    event['bands'] = [of13.named('type prec_level exceeded rate burst tokens wait_ns',
                                 '!HBBII4xQQ', rest[at:at + 32])
                      for at in range(0, len(rest), 32)]
    return b''


def action(event, body):
    event.update(of13.named('source ttl_before ttl_after', '!xBBB', body))
    event['actions'] = of13.parse_list(two_matches(event, body[4:]), 'action')
    return b''


def action_set(event, body):
    event['what'] = body[1]
    event['actions'] = of13.parse_list(body[4:], 'action')
    return b''


def metadata(event, body):
    event['metadata'], = struct.unpack_from('!Q', body, 4)
    return body[12:]


def group(event, body):
    event.update(of13.named('group_type found group_id buckets total_weight hash', '!xBBxIIII',
                            body))
    return body[20:]


def bucket(event, body):
    event.update(of13.named('state weight bucket watch_port watch_group', '!xBHIII4x', body))
    event['actions'] = of13.parse_list(body[20:], 'action')
    return b''


def flood(event, body):
    event.update(of13.named('in_port ports', '!4xII', body))
    return body[12:]


def normal(event, body):
    event.update(of13.named('learns vid port_no', '!xBHI', body))
    event['eth_dst'] = body[8:14].hex(':')
    assert body[14:20] == bytes(6)
    return body[20:]


def output(event, body):
    event.update(of13.named('goes segments port_no total_len queue_id class_id config state speed mtu',
                            '!xBHIIIIIIII', body))
    event['name'] = text(body[36:52])
    event['data'] = two_matches(event, body[52:])
    return b''


def queue(event, body):
    event.update(of13.named('rate ceil', '!4xQQ', body))
    event['entry'], = qosmsg.parse_entries(body[20:])
    return b''


def packet_in(event, body):
    event.update(of13.named('reason table_id suppressed cookie max_len total_len', '!xBBBQH2xI',
                            body))
    event['data'] = two_matches(event, body[20:])
    return b''


def controller(event, body):
    event.update(of13.named('wanted role', '!xB2xI4x', body))
    event['peer'] = text(body[12:140])
    return body[140:]


def ingress(event, body):
    event.update(of13.named('goes port_no queue_id', '!xB2xII', body))
    return body[12:]


def drop(event, body):
    event['reason'], event['text'] = text(body[4:36]), text(body[36:132])
    return body[132:]


def kernel(event, body):
    event.update(of13.named('handled', '!xB2x', body))
    event['reason'], event['text'] = text(body[4:36]), text(body[36:132])
    return body[132:]


def mark(event, body):
    assert body[1:4] == bytes(3)
    return body[4:]


KINDS = [None, packet, mark, table, missed, meter, action, action_set, metadata, group, bucket, flood,
         normal, output, queue, packet_in, controller, ingress, drop, mark, kernel]
NAMES = [None, 'packet', 'standalone', 'table', 'missed', 'meter', 'action', 'action_set', 'metadata',
         'group', 'bucket', 'flood', 'normal', 'output', 'queue', 'packet_in', 'controller', 'ingress',
         'drop', 'truncated', 'kernel']


def parse(body):
    """-> [{'type': name, 'depth': n, ...}]"""
    events = []
    while body:
        kind, length = struct.unpack_from('!HH', body)
        used = (length + 7) // 8 * 8
        assert 8 <= length and used <= len(body), f'event {kind} of length {length}'
        assert body[length:used] == bytes(used - length), 'padding is not zero'
        event = {'type': NAMES[kind], 'depth': body[4]}
        assert KINDS[kind](event, body[4:length]) == b'', f'{event} has more'
        events.append(event)
        body = body[used:]
    return events


def request(in_port, frame, queue_id=0, metadata_=0, tunnel_id=0, max_len=0xffff, gso=(0, 0)):
    return struct.pack('!IIIIQQHBxH2x', QOSF, TRACE, in_port, queue_id, metadata_, tunnel_id, max_len,
                       *gso) + frame


def trace(conn, in_port, frame, **kw):
    events = []
    for part in conn.multipart_parts(of13.MP_EXPERIMENTER, request(in_port, frame, **kw)):
        assert struct.unpack_from('!II', part) == (QOSF, TRACE)
        events += parse(part[8:])
    return events


def only(events, kind):
    """The events of one type"""
    return [e for e in events if e['type'] == kind]
