# SPDX-License-Identifier: Apache-2.0
"""A controller as a process of its own: the switch connects to it, and it never stops asking.

    controller.py ADDRESS NUMBER SEED RATE

It sends RATE valid random messages a second (flows, groups, meters, queues; some in bundles), asks for every
dump in turn, becomes master in turn with the others, closes its connection now and then, and asks for an echo
ten times a second.  A line on stdin is a command: storm, calm (no queue is changed, no connection closed), rest
(answers {"rests": true} when everything is answered), end.  A line a second on stdout is a JSON object of what
happened; {"late": [begin, round trip, its own share]} tells of an echo that took more than half a second.
"""
import collections
import json
import os
import random
import select
import struct
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from support import bundle, of13, qosmsg as q  # noqa: E402
from support.requests import MBIT, Requests  # noqa: E402

CONTROLLERS = 3
PORTS, TABLES = 4, 4
TURN = 5                    # seconds that one is master
ECHO_EVERY, LATE = 0.1, 0.5
ECHO_XID = 0xec000000
BATCH, WINDOW = 25, 8       # messages in front of a barrier, barriers under way
DUMPS = [(of13.MP_FLOW, of13.flow_request()), (of13.MP_AGGREGATE, of13.flow_request()),
         (of13.MP_TABLE, b''), (of13.MP_PORT_STATS, struct.pack('!I4x', of13.P_ANY)),
         (of13.MP_QUEUE, struct.pack('!II', of13.P_ANY, of13.Q_ALL)), (of13.MP_PORT_DESC, b''),
         (of13.MP_GROUP, struct.pack('!I4x', of13.G_ALL)), (of13.MP_GROUP_DESC, b''),
         (of13.MP_METER, struct.pack('!I4x', of13.M_ALL)), (of13.MP_METER_CONFIG, struct.pack('!I4x', of13.M_ALL)),
         (of13.MP_EXPERIMENTER, struct.pack('!IIII', q.EXPERIMENTER_ID, 1, of13.P_ANY, q.ALL_CLASSES)),
         (of13.MP_EXPERIMENTER, struct.pack('!II', q.EXPERIMENTER_ID, 2)), (of13.MP_DESC, b'')]


class Wide(Requests):
    """For what measure/bench/relay -g sends: 10.1.0.0/16 to 10.2.0.0/16, from ports 1024 on to port 2000 and more"""

    def match(self):
        r, fields = self.r, {}
        if r.random() < 0.6:
            fields['in_port'] = r.randint(1, self.ports)
        if r.random() < 0.7:
            fields['eth_type'] = 0x800
            if r.random() < 0.6:
                bits = r.choice([17, 20, 24, 32])
                mask = 0xffffffff << 32 - bits & 0xffffffff
                fields['ipv4_dst'] = (0x0a020000 + r.randrange(1 << 16) & mask, mask)
            if r.random() < 0.4:
                fields['ip_proto'] = 17
                fields['udp_src'] = 1024 + r.randrange(64)
        return of13.match(**fields)

    def meter(self):
        return of13.METER_MOD, of13.meter_mod(self.r.choice([0, 0, 1, 1, 2]), self.r.randint(1, 4),
                                              of13.band_drop(self.r.randint(1000, 1_000_000)))

    def queue(self):
        """Few are slow: what the kernel forwards waits in them on its sender's account"""
        r = self.r
        if r.random() < 0.3:
            return super().queue()
        ceil = r.choice([1000] * 9 + [50]) * MBIT
        return q.htb_class(r.choice([q.ADD, q.CHANGE, q.REPLACE]), r.randint(1, PORTS), r.randint(10, 13),
                           r.randint(1, 50) * MBIT, ceil, r.randint(0, 7))


class Controller:
    def __init__(self, address, number, seed, rate):
        self.number, self.rate = number, rate
        self.r = random.Random(f'{seed} {number}')
        self.requests = Wide(self.r, PORTS, TABLES)
        self.listener = of13.Listener(address)
        self.conn, self.mode, self.ends = None, 'storm', False
        self.commands = b''
        self.totals = collections.Counter()
        self.fresh()

    def fresh(self):
        """Nothing is under way"""
        self.out, self.barriers, self.dump, self.last_dump = bytearray(), 0, None, 0.0
        self.since_barrier, self.due, self.echoes = 0, time.monotonic(), {}
        self.next_echo, self.told_rest, self.turn = 0.0, False, -1
        self.opened = time.monotonic()
        self.stays = 20 + self.r.random() * 60

    # ------------------------------------------------------------------ the connection

    def accept(self):
        try:
            self.listener.sock.settimeout(0.2)
            sock, _ = self.listener.sock.accept()
        except TimeoutError:
            return
        sock.settimeout(10)
        self.conn = of13.Conn(sock, timeout=10)
        self.conn.sock.setblocking(False)
        self.fresh()
        self.totals['connections'] += 1

    def close(self):
        self.conn.close()
        self.conn = None

    def put(self, kind, body=b'', xid=None):
        if xid is None:
            xid = bundle.new_xid(self.conn) & 0x7fffffff
        self.out += of13.message(kind, body, xid)

    # ------------------------------------------------------------------ what it asks

    def ask(self, now):
        if now >= self.next_echo:
            self.next_echo = now + ECHO_EVERY
            xid = ECHO_XID + self.totals['echoes'] % 0x10000
            self.echoes[xid] = now, 0.0
            self.totals['echoes'] += 1
            self.put(of13.ECHO_REQUEST, b'soak', xid)
        if self.mode == 'rest':
            self.rest()
            return
        if self.dump is None and now - self.last_dump > 1:
            self.last_dump = now
            kind, body = self.r.choice(DUMPS)
            self.dump = kind
            self.put(of13.MULTIPART_REQUEST, struct.pack('!HH4x', kind, 0) + body)
        self.role(now)
        while self.due < now and self.barriers < WINDOW:
            self.due += self.some() / self.rate
            if self.since_barrier >= BATCH:
                self.barrier()
        self.due = max(self.due, now - 1)
        if self.mode == 'storm' and now - self.opened > self.stays and not self.out:
            self.close()

    def barrier(self):
        self.since_barrier = 0
        self.barriers += 1
        self.put(of13.BARRIER_REQUEST)

    def rest(self):
        if self.since_barrier:
            self.barrier()
        if not (self.out or self.barriers or self.dump is not None or self.told_rest):
            self.told_rest = True
            print('{"rests": true}', flush=True)

    def role(self, now):
        """They share a clock, so each turn has a number that all know"""
        turn = int(now / TURN)
        if turn == self.turn:
            return
        self.turn = turn
        if turn % CONTROLLERS == self.number:
            wanted = of13.ROLE_MASTER
        else:
            wanted = self.r.choice([of13.ROLE_EQUAL, of13.ROLE_EQUAL, of13.ROLE_SLAVE])
        self.put(of13.ROLE_REQUEST, of13.role(wanted, turn))

    def content(self):
        """No queue changes while it is calm, so that what they drop can be counted"""
        while True:
            kind, body = self.requests.message()
            if kind != q.T_QOS or self.mode == 'storm':
                return kind, body

    def some(self):
        """-> how many messages"""
        if self.r.random() > 0.02:
            self.put(*self.content())
            self.since_barrier += 1
            return 1
        b = bundle.Bundle(self.conn, bundle=self.r.randint(1, 1 << 30))
        n = self.r.randint(1, 15)
        for _ in range(n):
            b.put(*self.content())
        self.out += b.raw(commit=self.r.random() < 0.9)
        self.since_barrier += n + 2
        self.totals['bundles'] += 1
        return n + 2

    # ------------------------------------------------------------------ what it hears

    def hear(self, msg, now):
        self.totals['heard'] += 1
        if msg.type == of13.ECHO_REPLY and msg.xid in self.echoes:
            begun, own = self.echoes.pop(msg.xid)
            took = now - begun
            self.rtts.append(took)
            if took > LATE:
                print(json.dumps({'late': [begun, took, own]}), flush=True)
        elif msg.type == of13.BARRIER_REPLY:
            self.barriers -= 1
        elif msg.type == of13.MULTIPART_REPLY:
            if not struct.unpack_from('!H', msg.body, 2)[0] & 1:
                self.dump = None
                self.totals['dumps'] += 1
        elif msg.type == of13.ERROR:
            kind, code = struct.unpack_from('!HH', msg.body)
            self.totals[f'error {kind}/{code}'] += 1
            if msg.xid and kind == of13.ET_BAD_REQUEST and code != of13.BRC_IS_SLAVE:
                self.dump = None            # it may have been that
        elif msg.type in (of13.FLOW_REMOVED, of13.PORT_STATUS, of13.PACKET_IN):
            self.totals[{of13.FLOW_REMOVED: 'flow_removed', of13.PORT_STATUS: 'port_status',
                         of13.PACKET_IN: 'packet_in'}[msg.type]] += 1

    def exchange(self, now):
        """Sends what goes, reads what is there; returns after 10 ms at most"""
        sock = self.conn.sock
        r, w, _ = select.select([sock, sys.stdin], [sock] if self.out else [], [], 0.01)
        if sys.stdin in r:
            self.obey()
        try:
            if w:
                self.totals['bytes'] += (n := sock.send(self.out[:1 << 18]))
                del self.out[:n]
            if sock in r:
                if not (data := sock.recv(1 << 20)):
                    raise of13.Closed
                self.conn.buffer += data
        except BlockingIOError:
            pass
        now = time.monotonic()
        buffer, at = self.conn.buffer, 0
        while len(buffer) - at >= 8:
            length, = struct.unpack_from('!H', buffer, at + 2)
            if len(buffer) - at < length:
                break
            msg = of13.Msg(buffer[at:at + length])
            at += length
            if msg.type == of13.ECHO_REQUEST:
                self.put(of13.ECHO_REPLY, msg.body, msg.xid)
            else:
                self.hear(msg, now)
        self.conn.buffer = buffer[at:]

    def obey(self):
        data = os.read(0, 4096)
        if not data:
            self.ends = True
        self.commands += data
        while b'\n' in self.commands:
            word, self.commands = self.commands.split(b'\n', 1)
            self.ends |= word == b'end'
            self.mode, self.told_rest = word.decode(), False

    # ------------------------------------------------------------------ its life

    def tell(self, now):
        rtts = sorted(self.rtts)
        overdue = max((now - begun for begun, _ in self.echoes.values()), default=0)
        print(json.dumps({'at': now, 'controller': self.number, 'connected': bool(self.conn),
                          'echo_p50': rtts[len(rtts) // 2] if rtts else None,
                          'echo_max': max(rtts, default=None), 'echo_waits': overdue, **self.totals}), flush=True)
        self.rtts = []

    def live(self):
        self.rtts, told, before = [], time.monotonic(), time.monotonic()
        while not self.ends:
            try:
                if self.conn:
                    self.exchange(before)
                    if self.conn:
                        self.ask(time.monotonic())
                else:
                    if select.select([sys.stdin], [], [], 0)[0]:
                        self.obey()
                    if self.mode == 'rest' and not self.told_rest:
                        self.told_rest = True
                        print('{"rests": true}', flush=True)
                    self.accept()
            except (of13.Closed, OSError, TimeoutError) as error:
                self.totals['lost'] += 1
                if self.conn:
                    self.close()
            now = time.monotonic()
            if now - before > 0.1:          # its own process was late: that is nobody else's time
                self.echoes = {x: (begun, own + now - before) for x, (begun, own) in self.echoes.items()}
            before = now
            if now - told >= 1:
                told = now
                self.tell(now)


def main():
    address, number, seed, rate = sys.argv[1:]
    Controller(address, int(number), seed, float(rate)).live()


if __name__ == '__main__':
    main()
