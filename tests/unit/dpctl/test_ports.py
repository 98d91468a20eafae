# SPDX-License-Identifier: Apache-2.0
"""port-desc and show: what an ofqos switch's STATUS says of a port stands behind it; other switches have none.

    test_ports.py PATH-OF-DPCTL
"""
import json
import struct

import fixture as base

from support import of13

STATUS = struct.pack('!II', 0x514f5346, 5)
PORTS = b''.join(struct.pack('!I4x6s2x16s8I', no, bytes(6), b'p%d' % no, 0, 0, 0, 0, 0, 0, 0, 0)
                 for no in (11, 3, 0xfffffffe))
TABLE = ['port   name         addr               state  conf  curr  curr_speed  max_speed',
         '3      p3           00:00:00:00:00:00  0      0     0     -           -',
         '11     p11          00:00:00:00:00:00  0      0     0     -           -',
         'local  p4294967294  00:00:00:00:00:00  0      0     0     -           -']


def switch(status):
    """Answers STATUS with `status`: its lines, or messages"""
    def reply(xid, body):
        data = PORTS if body[0:2] == b'\0\x0d' else STATUS + status if isinstance(status, bytes) else None
        if data is None:
            return status(xid, body)
        return [of13.message(base.MP_REPLY, struct.pack('!H6x', struct.unpack_from('!H', body)[0]) + data, xid)]
    features = lambda xid, _: [of13.message(6, struct.pack('!QIBB2xII', 1, 0, 4, 0, 0x4f, 0), xid)]
    return base.Switch({base.MP_REQUEST: reply, 5: features})


class Ports(base.Dpctl):
    def shown(self, status, *args):
        with switch(status) as s:
            done = self.check(base.run(s, '--timeout', '1', *(args or ('port-desc',))))
            self.assertEqual(done.stderr, '')
            return done.stdout.splitlines()

    def test_rows_stand_behind_their_port(self):
        rows = b'ports=3\nport.3.vlan=10\nport.11.cannot-carry=what: why\nport.3.shared-with=bridge br-lan\n' \
               b'port.33.vlan=1\nport.x=y\nport.4294967294.a=b\x1b\n'
        want = [TABLE[0] + '  status',
                TABLE[1] + '          vlan=10; shared-with=bridge br-lan',
                TABLE[2] + '          cannot-carry=what: why',
                TABLE[3] + '          a=b?']
        self.assertEqual(self.shown(rows), want)
        for command in 'show', 'dump-ports-desc':
            self.assertEqual(self.shown(rows, command)[-4:], want)
        self.assertNotIn('cannot', self.shown(rows, '--json', 'port-desc')[0])
        self.assertEqual(len(json.loads(self.shown(rows, '--json', 'port-desc')[0])['ports']), 3)

    def test_a_port_without_rows(self):
        self.assertEqual(self.shown(b'port.3.vlan=10\n'), [TABLE[0] + '  status', TABLE[1] + '          vlan=10', *TABLE[2:]])

    def test_nothing_to_say(self):
        for status in b'', b'ports=3\n', b'portal.3.x=1\n':
            self.assertEqual(self.shown(status), TABLE)

    def test_another_switch(self):
        """It refuses STATUS, answers something else, or nothing"""
        for answer in (base.error(1, 3, b''), lambda xid, _: [of13.message(base.MP_REPLY, struct.pack('!H6x', 0xffff), xid)],
                       lambda xid, _: []):
            self.assertEqual(self.shown(answer), TABLE)


if __name__ == '__main__':
    base.main()
