# SPDX-License-Identifier: Apache-2.0
"""An OpenFlow 1.3 client: a connection that sends, receives and pairs replies with requests by
xid.  The messages themselves are those of ofmsg.py, which tests reach through this module."""
import os
import random
import select
import socket
import struct
import time

from .load import slowness
from .ofmsg import *  # noqa: F401,F403


class OfError(Exception):
    """The switch answered with OFPT_ERROR."""

    def __init__(self, msg):
        self.type, self.code = struct.unpack_from('!HH', msg.body)
        self.data = msg.body[4:]
        self.xid = msg.xid
        super().__init__(f'OFPT_ERROR type {self.type} code {self.code} data {self.data.hex()}')


class Closed(Exception):
    """The switch closed the connection."""


class Msg:
    def __init__(self, raw):
        self.version, self.type, self.length, self.xid = struct.unpack_from('!BBHI', raw)
        self.body = raw[8:]
        self.raw = raw

    def __repr__(self):
        return f'<type {self.type} xid {self.xid:#x} {self.body.hex()}>'


PATIENCE = 30       # seconds for what is sure to come: it only takes so long where something is wrong


def connect_socket(address, timeout=PATIENCE):
    """'unix:PATH' or 'tcp:HOST:PORT'"""
    kind, rest = address.split(':', 1)
    if kind == 'unix':
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(timeout)
        sock.connect(rest)
        return sock
    host, port = rest.rsplit(':', 1)
    return socket.create_connection((host.strip('[]'), int(port)), timeout)


class Conn:
    """One control connection.  Messages that nobody asked for wait in `inbox`."""

    def __init__(self, target, hello=True, timeout=PATIENCE, xid=None):
        self.sock = connect_socket(target) if isinstance(target, str) else target
        self.timeout = timeout
        self.buffer = b''
        self.inbox = []
        self.next_xid = random.getrandbits(31) if xid is None else xid
        if hello:
            self.send(HELLO, struct.pack('!HHI', 1, 8, 1 << VERSION))
            first = self.recv()
            assert first.type == HELLO, f'expected HELLO first, got {first}'
            assert first.version >= VERSION
            self.barrier()        # the switch has read the hello: it tells what happens from now on

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def send_raw(self, data):
        self.sock.settimeout(self.timeout)
        try:
            self.sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as e:
            raise Closed from e

    def send(self, kind, body=b'', **header):
        """-> xid"""
        if 'xid' not in header:
            self.next_xid = self.next_xid + 1 & 0xffffffff
            header['xid'] = self.next_xid
        self.send_raw(message(kind, body, **header))
        return header['xid']

    def recv(self, timeout=None):
        """The next message of the connection, in order; echo requests are answered."""
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        while True:
            if len(self.buffer) >= 8:
                length, = struct.unpack_from('!H', self.buffer, 2)
                assert length >= 8, f'message of length {length}'
                if len(self.buffer) >= length:
                    raw, self.buffer = self.buffer[:length], self.buffer[length:]
                    msg = Msg(raw)
                    if msg.type == ECHO_REQUEST:
                        self.send(ECHO_REPLY, msg.body, xid=msg.xid)
                        continue
                    return msg
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.sock], [], [], left)[0]:
                raise TimeoutError('no message from the switch')
            try:
                data = self.sock.recv(1 << 20)
            except ConnectionResetError as e:
                raise Closed from e
            if not data:
                raise Closed
            self.buffer += data

    def wait(self, xid, timeout=None):
        """The reply with this xid; an error with it raises OfError."""
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        while True:
            msg = self.recv(max(0, deadline - time.monotonic()))
            if msg.xid != xid or msg.type in (PACKET_IN, PORT_STATUS, FLOW_REMOVED):
                self.inbox.append(msg)
            elif msg.type == ERROR:
                raise OfError(msg)
            else:
                return msg

    def request(self, kind, body=b'', reply=None):
        msg = self.wait(self.send(kind, body))
        reply = kind + 1 if reply is None else reply
        assert msg.type == reply, f'expected type {reply}, got {msg}'
        return msg

    def barrier(self):
        self.request(BARRIER_REQUEST)

    def ok(self, kind, body=b''):
        """Send what isn't answered when all is well; a barrier shows whether it was."""
        xid = self.send(kind, body)
        self.barrier()
        for msg in self.inbox:
            if msg.type == ERROR and msg.xid == xid:
                self.inbox.remove(msg)
                raise OfError(msg)

    def expect_error(self, etype, code, kind, body=b'', **header):
        """Send a message that must be refused with exactly this error; -> OfError.

        7.4.4: data holds at least 64 bytes of the request, or all of it."""
        xid = self.send(kind, body, **header)
        try:
            msg = self.wait(xid)
        except OfError as error:
            assert (error.type, error.code) == (etype, code), \
                f'expected error type {etype} code {code}, got {error}'
            if 14 != etype != ET_EXPERIMENTER and etype != ET_HELLO_FAILED:
                sent = message(kind, body, **{'xid': xid, **header})
                n = min(64, len(sent))
                assert error.data[:n] == sent[:n], f'error data {error.data.hex()}'
            return error
        raise AssertionError(f'expected error {etype}/{code}, got {msg}')

    def flow(self, *instructions, **kw):
        """Add a flow (or another command) and wait until it's in force."""
        self.ok(FLOW_MOD, flow_mod(instructions=instructions, **kw))

    def multipart_parts(self, kind, body=b''):
        xid = self.send(MULTIPART_REQUEST, struct.pack('!HH4x', kind, 0) + body)
        parts = []
        while True:
            msg = self.wait(xid)
            assert msg.type == MULTIPART_REPLY, f'expected a multipart reply, got {msg}'
            got, flags = struct.unpack_from('!HH', msg.body)
            assert got == kind and flags & ~1 == 0
            assert msg.body[4:8] == bytes(4), 'multipart padding is not zero'
            parts.append(msg.body[8:])
            if not flags & 1:
                return parts

    def multipart(self, kind, body=b''):
        return b''.join(self.multipart_parts(kind, body))

    def rows(self, parse, kind, body=b''):
        """Parsed part by part: all in one piece would be copied for each row"""
        return [row for part in self.multipart_parts(kind, body) for row in parse(part)]

    # The requests, answered and parsed
    def features(self):
        return parse_features(self.request(FEATURES_REQUEST).body)

    def config(self):
        return struct.unpack('!HH', self.request(GET_CONFIG_REQUEST).body)

    def role(self, kind, generation=0):
        return struct.unpack('!I4xQ', self.request(ROLE_REQUEST, role(kind, generation)).body)

    def get_async(self):
        return struct.unpack('!6I', self.request(GET_ASYNC_REQUEST).body)

    def queue_config(self, port=P_ANY):
        msg = self.request(QUEUE_GET_CONFIG_REQUEST, struct.pack('!I4x', port))
        return parse_queue_config(msg.body)

    def flows(self, **kw):
        return self.rows(parse_flows, MP_FLOW, flow_request(**kw))

    def aggregate(self, **kw):
        return parse_aggregate(self.multipart(MP_AGGREGATE, flow_request(**kw)))

    def ports(self):
        return {p['port_no']: p for p in self.rows(parse_ports, MP_PORT_DESC)}

    def port_stats(self, port=P_ANY, until=None, timeout=PATIENCE):
        """until(stats): asked again until it is so, as the kernel counts a moment after it sends."""
        deadline = time.monotonic() + timeout
        while True:
            rows = self.rows(parse_port_stats, MP_PORT_STATS, struct.pack('!I4x', port))
            stats = {r['port_no']: r for r in rows}
            if not until or until(stats) or time.monotonic() > deadline:
                return stats
            time.sleep(0.02)

    def queue_stats(self, port=P_ANY, queue=Q_ALL):
        rows = self.rows(parse_queue_stats, MP_QUEUE, struct.pack('!II', port, queue))
        return {(r['port_no'], r['queue_id']): r for r in rows}

    def table_stats(self):
        return {r['table_id']: r for r in self.rows(parse_table_stats, MP_TABLE)}

    def desc(self):
        return parse_desc(self.multipart(MP_DESC))

    def group_stats(self, group_id=G_ALL):
        return self.rows(parse_group_stats, MP_GROUP, struct.pack('!I4x', group_id))

    def group_desc(self):
        return self.rows(parse_group_desc, MP_GROUP_DESC)

    def meter_stats(self, meter_id=M_ALL):
        return self.rows(parse_meter_stats, MP_METER, struct.pack('!I4x', meter_id))

    def meter_config(self, meter_id=M_ALL):
        return self.rows(parse_meter_config, MP_METER_CONFIG, struct.pack('!I4x', meter_id))

    def table_features(self):
        return self.rows(parse_table_features, MP_TABLE_FEATURES)

    # What comes unasked
    def next_async(self, kind, timeout=PATIENCE):
        """The next message of this type, from the inbox or the wire."""
        deadline = time.monotonic() + timeout
        for msg in self.inbox:
            if msg.type == kind:
                self.inbox.remove(msg)
                return msg
        while True:
            msg = self.recv(max(0, deadline - time.monotonic()))
            if msg.type == kind:
                return msg
            self.inbox.append(msg)

    def packet_in(self, timeout=PATIENCE):
        return parse_packet_in(self.next_async(PACKET_IN, timeout).body)

    def no_async(self, kind, timeout=0.3):
        try:
            msg = self.next_async(kind, timeout * slowness())
        except TimeoutError:
            return
        raise AssertionError(f'unexpected {msg}')

    def quiet_close(self):
        """True when the switch closes the connection within the timeout."""
        try:
            while True:
                self.recv(PATIENCE)
        except Closed:
            return True
        except TimeoutError:
            return False


class Listener:
    """A controller that waits for the switch to connect: unix path or TCP port."""

    def __init__(self, address):
        kind, rest = address.split(':', 1)
        if kind == 'unix':
            self.sock = socket.socket(socket.AF_UNIX)
            if os.path.exists(rest):
                os.unlink(rest)
            self.sock.bind(rest)
        else:
            self.sock = socket.socket()
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            host, port = rest.rsplit(':', 1)
            self.sock.bind((host, int(port)))
        self.sock.listen()

    def accept(self, timeout=PATIENCE):
        self.sock.settimeout(timeout)
        sock, _ = self.sock.accept()
        return Conn(sock)

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
