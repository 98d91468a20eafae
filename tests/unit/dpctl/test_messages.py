# SPDX-License-Identifier: Apache-2.0
"""What dpctl sends for OpenFlow's own messages, and what it makes of the answers.

    test_messages.py PATH-OF-DPCTL
"""
import json
import struct

import fixture
from fixture import MP_REQUEST, Dpctl, Switch, error, multipart, port_stats, run
from support import of13


class Messages(Dpctl):
    def test_flow_mod(self):
        want = struct.pack('!QQBBHHHIIIH2x', 0x12, 0, 0, 0, 5, 0, 10, of13.NO_BUFFER, of13.P_ANY,
                           of13.G_ANY, 1)
        want += of13.match(in_port=1, eth_type=0x800, ip_proto=6, tcp_dst=666)
        want += of13.apply_actions(of13.set_queue(2), of13.output(2, 0)) + of13.goto_table(1)
        self.assertEqual(want, self.sent(
            'flow-mod', 'cmd=add,table=0,prio=10,idle=5,cookie=0x12,flags=0x0001',
            'tcp_dst=666,ip_proto=6,eth_type=0x800,in_port=1', 'apply:queue=2,output=2', 'goto:1',
            kind=14))

    def test_flow_mod_keys_and_match_may_be_mixed(self):
        a = self.sent('flow-mod', 'cmd=add,table=3,', 'eth_type=0x800', 'apply:output=ctrl',
                      kind=14)
        b = self.sent('flow-mod', 'cmd=add,eth_type=0x800,table=3', 'apply:output=controller',
                      kind=14)
        self.assertEqual(a, b)

    def test_delete_means_all_tables(self):
        self.assertEqual(self.sent('flow-mod', 'cmd=del', kind=14)[16], 0xff)
        self.assertEqual(self.sent('flow-mod', 'cmd=dels,table=2', kind=14)[16], 2)

    def test_group_mod(self):
        want = struct.pack('!HBxI', 0, 1, 7)
        want += of13.bucket(of13.output(1, 0), weight=1)
        want += of13.bucket(of13.output(2, 0), weight=2, watch_port=2)
        self.assertEqual(want, self.sent('group-mod', 'cmd=add,type=sel,group=7', 'weight=1',
                                         'output=1', 'weight=2,port=2,group=any', 'output=2',
                                         kind=15))

    def test_a_select_group_without_weights(self):
        want = struct.pack('!HBxI', 0, 1, 7) + of13.bucket(of13.output(1, 0), weight=1)
        want += of13.bucket(of13.output(2, 0), weight=1, watch_port=2)
        self.assertEqual(want, self.sent('group-mod', 'cmd=add,type=sel,group=7', 'group=any',
                                         'output=1', 'port=2', 'output=2', kind=15))

    def test_a_burst_brings_its_flag(self):
        want = struct.pack('!HHI', 0, 6, 3) + of13.band_drop(1000, 100)
        self.assertEqual(want, self.sent('meter-mod', 'cmd=add,flags=pktps,meter=3',
                                         'drop:rate=1000,burst=100', kind=29))

    def test_meter_mod(self):
        want = struct.pack('!HHI', 0, 5, 3) + of13.band_drop(1000, 100) + \
            of13.band_dscp(2000, 0, 1)
        self.assertEqual(want, self.sent('meter-mod', 'cmd=add,meter=3',
                                         'drop:rate=1000,burst=100',
                                         'dscp_remark:rate=2000,prec_level=1', kind=29))

    def test_packet_out(self):
        want = struct.pack('!IIH6x', of13.NO_BUFFER, 3, 16) + of13.output(1, 0) + b'\1\2\3'
        self.assertEqual(want, self.sent('packet-out', 'in_port=3', 'output=1', 'data=01:02:03',
                                         kind=13))

    def test_port_mod_asks_for_the_address(self):
        port = struct.pack('!I4x6s2x16s8I', 4, b'\2\0\0\0\0\4', b'p4', *[0] * 8)
        with Switch({MP_REQUEST: multipart(port)}) as switch:
            self.check(run(switch, 'port-mod', 'port=4,conf=no_fwd'))
        self.assertEqual(dict(switch.got)[16],
                         struct.pack('!I4x6s2xIII4x', 4, b'\2\0\0\0\0\4', 1 << 5, 0x65, 0))

    def test_errors(self):
        with Switch({14: error(5, 1, b'x' * 64)}) as switch:
            done = self.check(run(switch, '--json', 'flow-mod', 'cmd=add'), 1)
        self.assertIn('OFPET_FLOW_MOD_FAILED, OFPFMFC_TABLE_FULL', done.stderr)
        self.assertEqual(json.loads(done.stdout)['code_name'], 'OFPFMFC_TABLE_FULL')

    def test_multipart_in_parts(self):
        with Switch({MP_REQUEST: multipart(port_stats(1) + port_stats(2), port_stats(3))}) as s:
            done = self.check(run(s, '--json', 'stats-port'))
        reply = json.loads(done.stdout)
        self.assertEqual([p['port_no'] for p in reply['ports']], [1, 2, 3])
        self.assertNotIn('more', reply)
        self.assertEqual(s.got[0][1], struct.pack('!HH4xI4x', 4, 0, of13.P_ANY))
        self.assertIn((3, b'alive?'), s.got)
        with Switch({MP_REQUEST: multipart(port_stats(1), port_stats(2))}) as s:
            lines = self.check(run(s, 'stats-port', '1')).stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines], ['port', '1', '2'])
        self.assertEqual(lines[1].split()[-1], '1.500s')
        self.assertEqual(s.got[0][1], struct.pack('!HH4xI4x', 4, 0, 1))

    def test_bad_arguments(self):
        for args, word in (
                (['flow-mod'], 'cmd=add'),
                (['flow-mod', 'cmd=add', 'aply:output=1'], 'apply'),
                (['flow-mod', 'cmd=add', 'tcp_dst=1'], 'ip_proto=6'),
                (['stats-port', 'x'], 'controller'),
                (['features', 'x'], 'no arguments'),
                (['qos-htb', 'cmd=add,port=1,class=1,rte=5'], 'rate'),
                (['qos-clear'], 'port=any'),
                (['qos-show', 'prot=1'], 'port=N'),
                (['nonsense'], 'nonsense'),
                (['--dry-run', 'flow-mod', 'cmd=del'], 'dry-run'),
                (['--kernel', 'features'], 'kernel'), (['--openconfig', 'features'], 'openconfig'),
                (['--file=/'], 'Is a directory'),            # it can be opened, but not be read
                (['--atomic', '--file=/'], 'Is a directory'),
                (['add-flows', '/'], 'Is a directory'),
                (['--timeout', 'soon', 'features'], 'seconds')):
            ports = multipart(struct.pack('!I4x6s2x16s8I', 4, bytes(6), b'p4', *[0] * 8))
            with self.subTest(args), Switch({MP_REQUEST: ports}) as switch:
                done = self.check(run(switch, *args), 2)
                self.assertIn(word, done.stderr)
                self.assertEqual(done.stdout, '')


if __name__ == '__main__':
    fixture.main()
