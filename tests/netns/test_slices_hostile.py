# SPDX-License-Identifier: Apache-2.0
"""Two slices that ask at random for whatever there is, both at once: nobody's part is touched but their own."""
import random
import struct
import threading

import pytest

from support import of13, qosmsg
from support.bundle import Bundle
from support.of13 import (apply_actions, bucket, flow_mod, goto_table, group_mod, match, meter, meter_mod, output,
                          packet_out, port_mod, set_queue, write_actions)
from support.qosmsg import ADD, NATIVE, REPLACE, htb_class, qdisc
from support.topo import Topology, udp_frame
from test_slices import BLUE, RED, Sliced

PORTS = [0, 1, 2, 3, 4, of13.P_IN_PORT, of13.P_TABLE, of13.P_NORMAL, of13.P_FLOOD, of13.P_ALL, of13.P_CONTROLLER,
         of13.P_LOCAL, of13.P_ANY]
TABLES = [0, 1, 2, 3, 253, of13.TT_ALL]
NUMBERS = [0, 1, 9, 10, 15, 19, 20, 25, 29, 30, 100, 200]
TRIES = 1500


class Random:
    """Requests, most of them well formed"""

    def __init__(self, seed):
        self.r = random.Random(seed)

    def port(self):
        return self.r.choice(PORTS)

    def number(self):
        return self.r.choice(NUMBERS)

    def match(self):
        return match(**({'in_port': self.r.randrange(1, 5)} if self.r.random() < .6 else {}))

    def actions(self):
        kinds = (lambda: output(self.port()), lambda: set_queue(self.number()), lambda: of13.group(self.number()),
                 lambda: of13.set_field(eth_src=b'\2\0\0\0\0\1'))
        return [self.r.choice(kinds)() for _ in range(self.r.randrange(3))]

    def instructions(self):
        out = [self.r.choice((apply_actions, write_actions))(*self.actions())]
        if self.r.random() < .3:
            out.append(goto_table(self.r.choice(TABLES)))
        if self.r.random() < .2:
            out.append(meter(self.number() or 1))
        return out

    def flow_mod(self):
        return of13.FLOW_MOD, flow_mod(self.r.randrange(5), match=self.match(), instructions=self.instructions(),
                                       table_id=self.r.choice(TABLES), priority=self.r.choice((1, 0x8000)))

    def group_mod(self):
        return of13.GROUP_MOD, group_mod(
            self.r.randrange(3), self.r.choice((0, 2, 3)), self.r.choice([*NUMBERS, of13.G_ALL]),
            bucket(*self.actions(), watch_port=self.r.choice((of13.P_ANY, 1, 3)),
                   watch_group=self.r.choice((of13.G_ANY, of13.G_ANY, 10, 20))))

    def meter_mod(self):
        return of13.METER_MOD, meter_mod(self.r.randrange(3), self.r.choice([*NUMBERS, of13.M_ALL]),
                                         of13.band_drop(self.r.randrange(1, 1000)))

    def port_mod(self):
        mac = bytes.fromhex('0200000000') + bytes([self.r.randrange(5)])
        return of13.PORT_MOD, port_mod(self.r.randrange(1, 5), mac, self.r.choice((0, 4)), 4)

    def packet_out(self):
        return of13.PACKET_OUT, packet_out(udp_frame(9), self.actions(), in_port=self.port(),
                                           buffer_id=self.r.choice((of13.NO_BUFFER, 1, 0x100)))

    def qos(self):
        port, queue = self.r.choice((1, 2, 3, 4, of13.P_ANY)), self.number()
        bodies = (lambda: htb_class(self.r.randrange(4), port, queue, rate=self.r.choice((8, 10 ** 6, 10 ** 9)),
                                    parent=self.number()),
                  lambda: htb_class(self.r.randrange(4), port, queue, rate_share_ppm=self.r.randrange(1, 2 * 10 ** 6),
                                    parent=self.number()),
                  lambda: htb_class(self.r.randrange(4), port, queue, rate=1000),
                  lambda: qdisc(self.r.choice((qosmsg.HTB, qosmsg.PFIFO, qosmsg.SFQ)), self.r.randrange(4), port, queue),
                  lambda: qosmsg.clear(port))
        return qosmsg.T_QOS, self.r.choice(bodies)()

    def other(self):
        return self.r.choice(((of13.SET_CONFIG, struct.pack('!HH', 1, 9)),
                              (of13.TABLE_MOD, of13.table_mod(self.r.choice(TABLES))),
                              (of13.ROLE_REQUEST, of13.role(self.r.randrange(4), self.r.getrandbits(63)))))

    def request(self):
        kind = self.r.choice((self.flow_mod, self.flow_mod, self.group_mod, self.meter_mod, self.port_mod,
                              self.packet_out, self.qos, self.qos, self.other))
        return kind()

    def run(self, conn):
        for n in range(TRIES):
            if n % 20:
                conn.send(*self.request())
                continue
            bundle = Bundle(conn, bundle=n + 1)
            for _ in range(self.r.randrange(1, 4)):
                bundle.put(*self.r.choice((self.flow_mod, self.qos, self.group_mod))())
            conn.send_raw(bundle.raw())
        conn.barrier()


def others(conn, slices):
    """What no slice may touch"""
    def flow_is_theirs(f):
        return any(str(f['table_id']) == s['tables'] or
                   (f['table_id'] == 0 and str(f['match'].get('in_port', 0)) in s['ports'].split(','))
                   for s in slices)

    def within(number, key):
        return any(int(s[key].split('-')[0]) <= number <= int(s[key].split('-')[1]) for s in slices)
    flows = [{k: v for k, v in f.items() if not k.startswith(('duration', 'packet', 'byte'))}
             for f in conn.flows() if not flow_is_theirs(f)]
    classes = [(e['port_no'], e['class_id'], e['parent_id'], e.get('rate'), e.get('ceil'))
               for e in qosmsg.dump(conn) if not within(e['class_id'], 'queues')]
    ports = {n: p['config'] for n, p in conn.ports().items() if n == 4}
    groups = [g for g in conn.group_desc() if not within(g['group_id'], 'groups')]
    meters = [m for m in conn.meter_config() if not within(m['meter_id'], 'meters')]
    return sorted(map(str, flows)), sorted(map(str, classes)), ports, groups, meters, conn.config(), conn.role(0)[0]


@pytest.mark.parametrize('seed', range(3))
def test_at_random(seed):
    with Topology(4) as topo, Sliced(topo, {'red': RED, 'blue': BLUE}) as switch, switch.connect() as admin, \
            topo.host(4) as h4:
        admin.role(2, 1)
        admin.ok(of13.METER_MOD, meter_mod(0, 1, of13.band_drop(1000)))
        admin.ok(of13.GROUP_MOD, group_mod(0, 0, 1, bucket(output(4))))
        admin.flow(apply_actions(output(1)), meter(1), match=match(in_port=4))
        admin.flow(apply_actions(of13.group(1)), table_id=3)
        for port, parent in ((1, 100), (2, 100), (3, 200), (4, 30)):
            qosmsg.send(admin, NATIVE, htb_class(REPLACE, port, 0, rate=10_000_000))
            qosmsg.send(admin, NATIVE, htb_class(ADD, port, parent, rate=4_000_000))
        before = others(admin, (RED, BLUE))
        with switch.of('red') as red, switch.of('blue') as blue:
            threads = [threading.Thread(target=Random(f'{seed} {name}').run, args=(conn,))
                       for name, conn in (('red', red), ('blue', blue))]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        assert others(admin, (RED, BLUE)) == before
        refused = qosmsg.counters(admin)
        assert refused['slice.red.refused'] > TRIES / 4 and refused['slice.blue.refused'] > TRIES / 4
        assert refused['channel.messages_in'] > 2 * TRIES
        # And each could do what is its: the last word was whatever came last.
        for name, keys in (('red', RED), ('blue', BLUE)):
            with switch.of(name) as conn:
                conn.flow(match=match(in_port=int(keys['ports'][0])), priority=7)
                conn.flow(table_id=int(keys['tables']), priority=7)
                assert len([f for f in conn.flows() if f['priority'] == 7]) == 2
        own = {1: range(10, 20), 2: range(10, 20), 3: range(20, 30), 4: ()}
        assert not [e for e in qosmsg.dump(admin) if 10 <= e['class_id'] < 30
                    and e['class_id'] not in own[e['port_no']]]
        # Below each parent no more is promised than it has.
        for port in (1, 2, 3):
            classes = {e['class_id']: e for e in qosmsg.dump(admin, port) if e['object_type'] == qosmsg.CLASS}
            for number, c in classes.items():
                kids = [k for k in classes.values() if k['parent_id'] == number and k['class_id'] != number]
                if number in (100, 200):
                    assert sum(rate_of(k, c['rate']) for k in kids) <= c['rate'], (port, number, kids)
            assert all(c['parent_id'] in (10, 15, 19, 20, 25, 29, 100, 200)
                       for n, c in classes.items() if n in (10, 15, 19, 20, 25, 29))
        frames = h4.drain()
        assert not [f for f in frames if f == udp_frame(9)], 'a packet-out came by a port that is nobody\'s'


def rate_of(entry, parent):
    share = entry['properties'].get('rate_share_ppm', 0)
    return share * parent // 10 ** 6 if share else entry['rate']
