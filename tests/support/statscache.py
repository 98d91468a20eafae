# SPDX-License-Identifier: Apache-2.0
"""STATS_CACHE, as docs/reference/extensions.md describes it."""
import struct

from . import of13

QOSF = 0x514f5346
STATS_CACHE = 12


def entry(body):
    e = of13.named('in_port packets bytes frames dropped dropped_bytes age_ns idle_ns meter_id',
                   '!IQQQQQQQI4x', body)
    e['match'], used = of13.parse_match(body[68:])
    e['actions'] = of13.parse_list(body[68 + used:], 'action')
    return e


def refused(body):
    e = {'in_port': struct.unpack_from('!I', body)[0], 'reason': of13.text(body[4:36])}
    e['match'], used = of13.parse_match(body[36:])
    assert body[36 + used:] == b''
    return e


def reason(body):
    assert body[:4] == bytes(4) and len(body) == 140
    return {'requests': struct.unpack_from('!Q', body, 4)[0], 'reason': of13.text(body[12:44]),
            'text': of13.text(body[44:140])}


def port(body):
    assert len(body) == 132
    return {'port_no': struct.unpack_from('!I', body)[0], 'reason': of13.text(body[4:36]),
            'text': of13.text(body[36:132])}


def worker(body):
    assert len(body) == 60
    return of13.named('worker packets hits misses bypassed withdrawn masks used entries',
                      '!IQQQQQIII4x', body)


def kernel(body):
    assert len(body) == 332
    e = of13.named('entries most masks left_out hits misses other held too_long host unclaimed no_verdict '
                   'failed asked inserted withdrawn aged all mended', '!IIII4xQQQQQQQQQQQQQQQ', body)
    e['reason'], e['text'] = of13.text(body[140:172]), of13.text(body[172:332])
    return e


KINDS = [None, entry, refused, reason, port, worker, kernel]


def request(port_no=of13.P_ANY, most=0):
    return struct.pack('!IIII', QOSF, STATS_CACHE, port_no, most)


def ask(conn, **kw):
    """-> {'entry': [...], 'refused': [...], 'reason': [...], 'port': [...], 'worker': [...],
    'kernel': [...]}"""
    found = {k.__name__: [] for k in KINDS if k}
    for part in conn.multipart_parts(of13.MP_EXPERIMENTER, request(**kw)):
        assert struct.unpack_from('!II', part) == (QOSF, STATS_CACHE)
        body = part[8:]
        while body:
            kind, length = struct.unpack_from('!HH', body)
            used = (length + 7) // 8 * 8
            assert body[length:used] == bytes(used - length), 'padding is not zero'
            found[KINDS[kind].__name__].append(KINDS[kind](body[4:length]))
            body = body[used:]
    return found
