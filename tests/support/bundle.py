# SPDX-License-Identifier: Apache-2.0
"""Bundles (ONF EXT-230): messages, and a bundle to be filled and committed."""
import struct

from . import of13, qosmsg

ONF = 0x4f4e4600
CONTROL, ADD = 2300, 2301
(OPEN, OPEN_REPLY, CLOSE, CLOSE_REPLY, COMMIT, COMMIT_REPLY, DISCARD, DISCARD_REPLY) = range(8)
ATOMIC, ORDERED = 1, 2
BOTH = ATOMIC | ORDERED
(UNKNOWN, EPERM, BAD_ID, BUNDLE_EXIST, BUNDLE_CLOSED, OUT_OF_BUNDLES, BAD_TYPE, BAD_FLAGS,
 MSG_BAD_LEN, MSG_BAD_XID, MSG_UNSUP, MSG_CONFLICT, MSG_TOO_MANY, MSG_FAILED, TIMEOUT,
 BUNDLE_IN_PROGRESS) = range(16)


def experimenter(exp_type, body, xid, experimenter_id=ONF):
    return of13.message(of13.EXPERIMENTER, struct.pack('!II', experimenter_id, exp_type) + body,
                        xid)


def control(kind, xid, bundle=1, flags=BOTH, tail=b''):
    return experimenter(CONTROL, struct.pack('!IHH', bundle, kind, flags) + tail, xid)


def add(message, xid, bundle=1, flags=BOTH, tail=b''):
    return experimenter(ADD, struct.pack('!I2xH', bundle, flags) + message + tail, xid)


def bundle_code(msg):
    """The code of an error of bundles, or None."""
    etype, code, *rest = struct.unpack_from('!HHI', msg.body.ljust(8, b'\0'))
    return code - 2300 if (etype, rest[0]) == (0xffff, ONF) else None


def new_xid(conn):
    conn.next_xid = conn.next_xid + 1 & 0xffffffff
    return conn.next_xid


def answers(conn, raw):
    """Sends it, and a barrier; what came before the barrier's reply, without asynchronous
    messages."""
    conn.send_raw(raw)
    barrier = conn.send(of13.BARRIER_REQUEST)
    got = []
    while True:
        msg = conn.recv()
        if msg.type in (of13.PACKET_IN, of13.PORT_STATUS, of13.FLOW_REMOVED):
            conn.inbox.append(msg)
        elif msg.type == of13.BARRIER_REPLY and msg.xid == barrier:
            return got
        else:
            got.append(msg)


def told(conn, kind, **kw):
    """A control message's answer: the reply's type, or the error's code as -1 - code."""
    xid = new_xid(conn)
    got = answers(conn, control(kind, xid, **kw))
    assert len(got) == 1 and got[0].xid == xid, f'expected one answer, got {got}'
    msg = got[0]
    if msg.type == of13.ERROR:
        code = bundle_code(msg)
        assert code is not None, f'no error of bundles: {msg}'
        assert msg.body[8:] == control(kind, xid, **kw)[:64]
        return -1 - code
    exp, exp_type, bundle, reply, flags = struct.unpack('!IIIHH', msg.body)
    assert (exp, exp_type, bundle, flags) == (ONF, CONTROL, kw.get('bundle', 1),
                                              kw.get('flags', BOTH))
    return reply


class Bundle:
    """Filled and sent at once: open, messages, commit."""

    def __init__(self, conn, bundle=1, flags=BOTH):
        self.conn, self.bundle, self.flags = conn, bundle, flags
        self.messages = []      # (xid, the message in the envelope)

    def put(self, kind, body):
        xid = new_xid(self.conn)
        self.messages.append((xid, of13.message(kind, body, xid)))
        return self

    def flow(self, *instructions, **kw):
        return self.put(of13.FLOW_MOD, of13.flow_mod(instructions=instructions, **kw))

    def qos(self, content, envelope=None):
        kind, body = of13.EXPERIMENTER, struct.pack('!II', qosmsg.EXPERIMENTER_ID, 1) + content
        return self.put(30, content) if envelope == 'native' else self.put(kind, body)

    def raw(self, commit=True):
        first, last = new_xid(self.conn), new_xid(self.conn)
        self.commit_xid = last
        out = [control(OPEN, first, self.bundle, self.flags)]
        out += [add(m, xid, self.bundle, self.flags) for xid, m in self.messages]
        if commit:
            out.append(control(COMMIT, last, self.bundle, self.flags))
        return b''.join(out)

    def send(self, commit=True):
        """-> the answers but for the open's"""
        got = answers(self.conn, self.raw(commit))
        assert got and got[0].type == of13.EXPERIMENTER, f'not opened: {got}'
        return got[1:]

    def commit(self):
        got = self.send()
        assert len(got) == 1 and got[0].type == of13.EXPERIMENTER, f'not committed: {got}'
        assert got[0].xid == self.commit_xid

    def refused(self, at):
        """Committed in vain: the error of the message with index `at`, OfError."""
        got = self.send()
        assert [m.type for m in got] == [of13.ERROR] * 2, f'expected two errors, got {got}'
        xid, message = self.messages[at]
        assert got[0].xid == xid, f'another message is blamed: {got}'
        assert message[:64] in got[0].body
        assert (got[1].xid, bundle_code(got[1])) == (self.commit_xid, MSG_FAILED)
        return of13.OfError(got[0])
