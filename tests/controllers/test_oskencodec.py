# SPDX-License-Identifier: Apache-2.0
"""The codec beside os-ken's: what one of them writes, the other reads alike.

os-ken reads what switches send (and flow_mod), and writes what controllers send.
"""
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

GOLDEN = Path(__file__).resolve().parent.parent / 'golden'
sys.path.insert(0, str(GOLDEN))
import tobin  # noqa: E402

FILES = dict(tobin.files())

# Golden files that os-ken loops on for ever.
OSKEN_HANGS = {
    '00-hello-bitmap2': "does not skip an element's padding",
    '14-flow_mod-instruction-experimenter': 'does not know experimenter instructions',
}
# Types that os-ken both reads and writes.
WRITES_AGAIN = {1, 2, 3, 4, 14, 21}

# What os-ken is to read in what switches send.  A path leads through attributes and indices.
EXPECT = {
    '00-hello-bitmap': {'elements.0.versions': [1, 4]},
    '06-features_reply': {'datapath_id': 0x0000a1b2c3d4e5f6, 'n_buffers': 0, 'n_tables': 254,
                          'auxiliary_id': 0, 'capabilities': 0x16f},
    '08-get_config_reply': {'flags': 0, 'miss_send_len': 128},
    '10-packet_in': {'buffer_id': 0xffffffff, 'total_len': 42, 'reason': 0, 'table_id': 0,
                     'cookie': 2**64 - 1, 'match.in_port': 1, 'len:data': 42},
    '10-packet_in-action': {'buffer_id': 256, 'total_len': 1500, 'reason': 1, 'table_id': 3,
                            'cookie': 0x1234, 'match.in_port': 5, 'match.in_phy_port': 2,
                            'match.metadata': 0x55aa, 'match.tunnel_id': 7, 'len:data': 16},
    '10-packet_in-no_data': {'reason': 2, 'len:data': 0},
    '11-flow_removed': {'cookie': 0xabcdef, 'priority': 100, 'reason': 0, 'table_id': 1,
                        'duration_sec': 61, 'duration_nsec': 500000000, 'idle_timeout': 60,
                        'hard_timeout': 0, 'packet_count': 10, 'byte_count': 840,
                        'match.in_port': 1, 'match.eth_type': 0x800},
    '11-flow_removed-delete': {'reason': 2},
    '12-port_status': {'reason': 2, 'desc.port_no': 3, 'desc.hw_addr': '02:00:00:00:00:03',
                       'desc.name': b'eth3', 'desc.config': 0, 'desc.state': 1,
                       'desc.curr': 0x2820, 'desc.advertised': 0x282f, 'desc.supported': 0x282f,
                       'desc.peer': 0x2820, 'desc.curr_speed': 1000000,
                       'desc.max_speed': 1000000},
    '12-port_status-add': {'reason': 0, 'desc.name': b'abcdefghijklmno', 'desc.config': 0x65},
    '19-multipart_reply-desc': {'body.mfr_desc': b'ofqos', 'body.hw_desc': b'Linux',
                                'body.sw_desc': b'0.1.0', 'body.serial_num': b'none',
                                'body.dp_desc': b's1'},
    '19-multipart_reply-flow': {
        'flags': 1, 'len:body': 2, 'body.0.table_id': 0, 'body.0.duration_sec': 3,
        'body.0.duration_nsec': 4, 'body.0.priority': 1, 'body.0.idle_timeout': 5,
        'body.0.hard_timeout': 6, 'body.0.flags': 1, 'body.0.cookie': 7,
        'body.0.packet_count': 8, 'body.0.byte_count': 9, 'body.0.match.in_port': 1,
        'body.0.instructions.0.actions.0.port': 2, 'body.1.table_id': 1,
        'body.1.instructions': []},
    '19-multipart_reply-flow-none': {'flags': 0, 'len:body': 0},
    '19-multipart_reply-aggregate': {'body.packet_count': 100, 'body.byte_count': 6400,
                                     'body.flow_count': 3},
    '19-multipart_reply-table': {'len:body': 2, 'body.1.table_id': 1, 'body.1.active_count': 6,
                                 'body.1.lookup_count': 1000, 'body.1.matched_count': 900},
    '19-multipart_reply-port_stats': {
        'body.0.port_no': 1, 'body.0.rx_packets': 1, 'body.0.tx_packets': 2,
        'body.0.rx_bytes': 3, 'body.0.tx_bytes': 4, 'body.0.rx_dropped': 5,
        'body.0.tx_dropped': 6, 'body.0.rx_errors': 7, 'body.0.tx_errors': 8,
        'body.0.rx_frame_err': 9, 'body.0.rx_over_err': 10, 'body.0.rx_crc_err': 11,
        'body.0.collisions': 12, 'body.0.duration_sec': 13, 'body.0.duration_nsec': 14},
    '19-multipart_reply-queue': {
        'len:body': 2, 'body.1.port_no': 2, 'body.1.queue_id': 10, 'body.1.tx_bytes': 15000,
        'body.1.tx_packets': 10, 'body.1.tx_errors': 1, 'body.1.duration_sec': 60,
        'body.1.duration_nsec': 1},
    '19-multipart_reply-group': {
        'len:body': 2, 'body.0.group_id': 1, 'body.0.ref_count': 1, 'body.0.packet_count': 30,
        'body.0.byte_count': 3000, 'body.0.duration_sec': 9, 'body.0.duration_nsec': 8,
        'body.0.bucket_stats.1.packet_count': 20, 'body.0.bucket_stats.1.byte_count': 2000,
        'body.1.bucket_stats': []},
    '19-multipart_reply-group_desc': {
        'len:body': 2, 'body.0.type': 0, 'body.0.group_id': 1, 'len:body.0.buckets': 2,
        'body.0.buckets.1.actions.0.port': 2, 'body.1.type': 1, 'body.1.group_id': 2},
    '19-multipart_reply-group_features': {
        'body.types': 15, 'body.capabilities': 15, 'body.max_groups': [1000, 1001, 1002, 1003],
        'body.actions': [0x0fff9801, 0x0fff9802, 0x0fff9803, 0x0fff9804]},
    '19-multipart_reply-meter': {
        'len:body': 2, 'body.0.meter_id': 1, 'body.0.flow_count': 2,
        'body.0.packet_in_count': 50, 'body.0.byte_in_count': 5000, 'body.0.duration_sec': 7,
        'body.0.duration_nsec': 6, 'body.0.band_stats.0.packet_band_count': 3,
        'body.0.band_stats.0.byte_band_count': 300, 'body.1.meter_id': 2},
    '19-multipart_reply-meter_config': {
        'len:body': 2, 'body.0.flags': 13, 'body.0.meter_id': 1, 'body.0.bands.0.rate': 1000,
        'body.0.bands.0.burst_size': 100, 'body.0.bands.1.prec_level': 1, 'body.1.flags': 2},
    '19-multipart_reply-meter_features': {
        'body.0.max_meter': 0xffff, 'body.0.band_types': 6, 'body.0.capabilities': 15,
        'body.0.max_bands': 8, 'body.0.max_color': 0},
    '19-multipart_reply-table_features': {
        'len:body': 2, 'body.0.table_id': 0, 'body.0.name': b'classifier',
        'body.0.metadata_match': 2**64 - 1, 'body.0.config': 3, 'body.0.max_entries': 65536,
        'len:body.0.properties': 16, 'len:body.0.properties.0.instruction_ids': 6,
        'body.0.properties.2.table_ids': [1, 2, 3], 'len:body.0.properties.4.action_ids': 16,
        'body.0.properties.8.oxm_ids.2.type': 'ipv4_src',
        'body.0.properties.8.oxm_ids.2.hasmask': 1, 'body.1.name': b'b'},
    '19-multipart_reply-port_desc': {'len:body': 2, 'body.0.name': b'eth0',
                                     'body.1.port_no': 0xfffffffe, 'body.1.name': b'local'},
    '19-multipart_reply-experimenter': {'body.experimenter': 0x514f5346, 'body.exp_type': 1},
    '19-multipart_reply-status': {'body.experimenter': 0x514f5346, 'body.exp_type': 5},
    '19-multipart_reply-log': {'body.experimenter': 0x514f5346, 'body.exp_type': 6},
    '19-multipart_reply-trace': {'body.experimenter': 0x514f5346, 'body.exp_type': 7},
    '19-multipart_reply-stats_cache': {'body.experimenter': 0x514f5346, 'body.exp_type': 12},
    '19-multipart_reply-tins': {'body.experimenter': 0x514f5346, 'body.exp_type': 13},
    '19-multipart_reply-histograms': {'body.experimenter': 0x514f5346, 'body.exp_type': 16},
    '19-multipart_reply-retransmissions': {'body.experimenter': 0x514f5346, 'body.exp_type': 17},
    '19-multipart_reply-round_trips': {'body.experimenter': 0x514f5346, 'body.exp_type': 15},
    '19-multipart_reply-qos_latency': {'body.experimenter': 0x514f5346, 'body.exp_type': 14},
    '23-queue_get_config_reply': {
        'port': 2, 'len:queues': 3, 'queues.0.queue_id': 1, 'queues.0.port': 2,
        'queues.0.properties.0.property': 1, 'queues.0.properties.0.rate': 100,
        'queues.0.properties.1.property': 2, 'queues.0.properties.1.rate': 1000,
        'queues.1.properties.0.rate': 0xffff, 'queues.2.queue_id': 11,
        'queues.2.properties': []},
    '23-queue_get_config_reply-none': {'port': 2, 'queues': []},
    '23-queue_get_config_reply-experimenter': {
        'queues.0.properties.0.experimenter': 0x514f5346,
        'queues.0.properties.0.data': list(range(8))},
    '25-role_reply-nochange': {'role': 0, 'generation_id': 0},
    '25-role_reply-equal': {'role': 1},
    '25-role_reply-master': {'role': 2, 'generation_id': 0x8000000000000001},
    '25-role_reply-slave': {'role': 3},
    '27-get_async_reply': {'packet_in_mask': [7, 0], 'port_status_mask': [7, 7],
                           'flow_removed_mask': [15, 0]},
}


@pytest.fixture(scope='session')
def dp(osken):
    class Datapath:
        ofproto, ofproto_parser = osken
        id = 1
    return Datapath


def parse(dp, data):
    from os_ken.ofproto import ofproto_parser
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail('os-ken loops'))
    signal.alarm(10)
    try:
        return ofproto_parser.msg(dp, *ofproto_parser.header(data), data)
    finally:
        signal.alarm(0)


def lookup(obj, path):
    """'body.0.match.in_port'; 'len:body' counts."""
    if path.startswith('len:'):
        return len(lookup(obj, path[4:]))
    for step in path.split('.'):
        if step.isdigit():
            obj = obj[int(step)]
        elif type(obj).__name__ == 'OFPMatch':
            obj = obj[step]
        else:
            obj = getattr(obj, step)
    if isinstance(obj, (tuple, list)):
        return [x for x in obj]
    return obj.rstrip(b'\0') if isinstance(obj, bytes) and not path.endswith('data') else obj


def ask(tool, lines):
    done = subprocess.run([tool], input='\n'.join(lines) + '\n', stdout=subprocess.PIPE,
                          text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize('name', [n for n, d in FILES.items() if d[1] in WRITES_AGAIN])
def test_osken_writes_golden_again(dp, name):
    if name in OSKEN_HANGS:
        pytest.skip(f'os-ken {OSKEN_HANGS[name]}')
    msg = parse(dp, FILES[name])
    assert msg is not None, 'os-ken refused it'
    msg.buf = None
    msg.serialize()
    assert bytes(msg.buf).hex() == FILES[name].hex()


@pytest.mark.parametrize('name', EXPECT)
def test_osken_reads_golden(dp, name):
    msg = parse(dp, FILES[name])
    assert msg is not None, 'os-ken refused it'
    assert {path: lookup(msg, path) for path in EXPECT[name]} == EXPECT[name]


def test_golden_covers_every_message():
    """Every type, every multipart both ways, and for what switches send what os-ken reads."""
    types = {d[1] for d in FILES.values()}
    assert types == set(range(31))
    kinds = {(d[1], int.from_bytes(d[8:10], 'big')) for d in FILES.values() if d[1] in (18, 19)}
    assert kinds == {(t, mp) for t in (18, 19) for mp in [*range(14), 0xffff]}
    from_switch = {n for n, d in FILES.items() if d[1] in (6, 8, 10, 11, 12, 19, 23, 25, 27)}
    assert from_switch == {n for n in EXPECT if FILES[n][1] != 0}


def test_codec_encodes_golden_again(codec_tool):
    answers = ask(codec_tool, [d.hex() for d in FILES.values()])
    assert dict(zip(FILES, answers)) == {n: f'ok {d.hex()}' for n, d in FILES.items()}


def test_constants(osken, codec_tool):
    """Every constant that both know has the same value."""
    ofproto, _ = osken
    ours = dict(line.split() for line in subprocess.run(
        [codec_tool, '--constants'], stdout=subprocess.PIPE, text=True,
        check=True).stdout.splitlines())
    both = {n for n in ours if hasattr(ofproto, n)}
    assert len(both) > 250
    assert {n: int(ours[n]) for n in both} == {n: getattr(ofproto, n) for n in both}


class Maker:
    """Random messages of all the kinds that controllers send."""

    def __init__(self, dp, seed):
        self.dp, self.o, self.p = dp, dp.ofproto, dp.ofproto_parser
        self.r = random.Random(seed)

    def u(self, bits):
        return self.r.choice([0, 1, (1 << bits) - 1, self.r.getrandbits(bits)])

    def data(self, most=64, multiple=1):
        return self.r.randbytes(self.r.randrange(most // multiple) * multiple)

    def mac(self):
        return ':'.join(f'{b:02x}' for b in self.r.randbytes(6))

    def ipv4(self):
        return '.'.join(str(b) for b in self.r.randbytes(4))

    def ipv6(self):
        return ':'.join(f'{self.r.getrandbits(16) | 1:x}' for _ in range(8))

    def maybe_masked_number(self, bits):
        if self.r.random() < .5:
            return self.u(bits)
        mask = self.u(bits)
        return self.u(bits) & mask, mask

    def maybe_masked_mac(self):
        if self.r.random() < .5:
            return self.mac()
        mask, value = self.r.randbytes(6), self.r.randbytes(6)
        value = bytes(a & b for a, b in zip(mask, value))
        return tuple(':'.join(f'{b:02x}' for b in x) for x in (value, mask))

    def maybe_masked_ipv4(self):
        return self.r.choice([self.ipv4(), ('10.2.0.0', '255.255.0.0'), ('0.0.0.1', '0.0.0.7')])

    def maybe_masked_ipv6(self):
        return self.r.choice([self.ipv6(), ('2001:db8::', 'ffff:ffff::'), ('::1', '::f')])

    def transport(self):
        """Fields above ip_proto."""
        r = self.r
        proto = r.choice([6, 17, 132, 1, 58, 47])
        f = {'ip_proto': proto}
        for number, names in ((6, 'tcp_src tcp_dst'), (17, 'udp_src udp_dst'),
                              (132, 'sctp_src sctp_dst')):
            if proto == number:
                f.update({n: self.u(16) for n in names.split() if r.random() < .7})
        if proto == 1:
            f.update({n: self.u(8) for n in ('icmpv4_type', 'icmpv4_code') if r.random() < .7})
        return f

    def network(self):
        """Fields above eth_type."""
        kind = self.r.choice(['ipv4', 'ipv6', 'arp', 'mpls', 'pbb', 'none'])
        if kind == 'none':
            return {}
        f = {'eth_type': {'ipv4': 0x800, 'ipv6': 0x86dd, 'arp': 0x806, 'mpls': 0x8847,
                          'pbb': 0x88e7}[kind]}
        if kind in ('ipv4', 'ipv6'):
            f.update(ip_dscp=self.u(6), ip_ecn=self.u(2), **self.transport())
        more = {
            'ipv4': {'ipv4_src': self.maybe_masked_ipv4, 'ipv4_dst': self.maybe_masked_ipv4},
            'ipv6': {'ipv6_src': self.maybe_masked_ipv6, 'ipv6_dst': self.maybe_masked_ipv6,
                     'ipv6_flabel': lambda: self.maybe_masked_number(20),
                     'ipv6_exthdr': lambda: self.maybe_masked_number(9)},
            'arp': {'arp_op': lambda: self.u(16), 'arp_spa': self.maybe_masked_ipv4,
                    'arp_tpa': self.maybe_masked_ipv4, 'arp_sha': self.maybe_masked_mac,
                    'arp_tha': self.maybe_masked_mac},
            'mpls': {'mpls_label': lambda: self.u(20), 'mpls_tc': lambda: self.u(3),
                     'mpls_bos': lambda: self.u(1)},
            'pbb': {'pbb_isid': lambda: self.maybe_masked_number(24)},
        }[kind]
        f.update({n: make() for n, make in more.items() if self.r.random() < .6})
        if kind == 'ipv6' and f['ip_proto'] == 58:
            f['icmpv6_type'] = self.r.choice([128, 135, 136])
            if f['icmpv6_type'] != 128:
                f['ipv6_nd_target'] = self.ipv6()
                f['ipv6_nd_sll' if f['icmpv6_type'] == 135 else 'ipv6_nd_tll'] = self.mac()
        return f

    def match(self):
        r, f = self.r, self.network()
        for name, make in (('in_port', lambda: self.u(32)), ('eth_dst', self.maybe_masked_mac),
                           ('eth_src', self.maybe_masked_mac),
                           ('metadata', lambda: self.maybe_masked_number(64)),
                           ('tunnel_id', lambda: self.maybe_masked_number(64))):
            if r.random() < .3:
                f[name] = make()
        if 'in_port' in f and r.random() < .3:
            f['in_phy_port'] = self.u(32)
        if r.random() < .3:
            f['vlan_vid'] = r.choice([0, (0x1000, 0x1000), 0x1000 | self.u(12)])
            if f['vlan_vid']:
                f['vlan_pcp'] = self.u(3)
        return self.p.OFPMatch(**f)

    def set_field(self):
        name, value = self.r.choice([
            ('eth_dst', self.mac()), ('eth_src', self.mac()), ('eth_type', self.u(16)),
            ('vlan_vid', 0x1000 | self.u(12)), ('vlan_pcp', self.u(3)), ('ip_dscp', self.u(6)),
            ('ip_ecn', self.u(2)), ('ip_proto', self.u(8)), ('ipv4_src', self.ipv4()),
            ('tcp_dst', self.u(16)), ('udp_src', self.u(16)), ('icmpv4_type', self.u(8)),
            ('arp_sha', self.mac()), ('ipv6_dst', self.ipv6()), ('ipv6_flabel', self.u(20)),
            ('ipv6_nd_target', self.ipv6()), ('mpls_label', self.u(20)), ('mpls_bos', self.u(1)),
            ('pbb_isid', self.u(24)), ('tunnel_id', self.u(64))])
        return self.p.OFPActionSetField(**{name: value})

    def action(self):
        p, u = self.p, self.u
        return self.r.choice([
            lambda: p.OFPActionOutput(u(32), u(16)), lambda: p.OFPActionGroup(u(32)),
            lambda: p.OFPActionSetQueue(u(32)), lambda: p.OFPActionSetMplsTtl(u(8)),
            p.OFPActionDecMplsTtl, lambda: p.OFPActionSetNwTtl(u(8)), p.OFPActionDecNwTtl,
            p.OFPActionCopyTtlOut, p.OFPActionCopyTtlIn, lambda: p.OFPActionPushVlan(u(16)),
            lambda: p.OFPActionPushMpls(u(16)), p.OFPActionPopVlan,
            lambda: p.OFPActionPopMpls(u(16)), self.set_field,
            lambda: p.OFPActionPushPbb(u(16)), p.OFPActionPopPbb,
            lambda: p.OFPActionExperimenterUnknown(0x12345678, self.data(multiple=8)),
        ])()

    def some(self, make, most=5):
        return [make() for _ in range(self.r.randrange(most))]

    def instruction(self):
        p, o, u = self.p, self.o, self.u
        return self.r.choice([
            lambda: p.OFPInstructionGotoTable(u(8)),
            lambda: p.OFPInstructionWriteMetadata(u(64), u(64)),
            lambda: p.OFPInstructionActions(o.OFPIT_APPLY_ACTIONS, self.some(self.action)),
            lambda: p.OFPInstructionActions(o.OFPIT_WRITE_ACTIONS, self.some(self.action)),
            lambda: p.OFPInstructionActions(o.OFPIT_CLEAR_ACTIONS, []),
            lambda: p.OFPInstructionMeter(u(32))])()

    def flow_mod(self):
        u = self.u
        return self.p.OFPFlowMod(
            self.dp, cookie=u(64), cookie_mask=u(64), table_id=u(8),
            command=self.r.randrange(5), idle_timeout=u(16), hard_timeout=u(16), priority=u(16),
            buffer_id=u(32), out_port=u(32), out_group=u(32), flags=u(5), match=self.match(),
            instructions=self.some(self.instruction))

    def packet_out(self):
        return self.p.OFPPacketOut(self.dp, buffer_id=self.o.OFP_NO_BUFFER, in_port=self.u(32),
                                   actions=self.some(self.action), data=self.data(200))

    def bucket(self):
        return self.p.OFPBucket(self.u(16), self.u(32), self.u(32), self.some(self.action))

    def group_mod(self):
        return self.p.OFPGroupMod(self.dp, self.r.randrange(3), self.r.randrange(4), self.u(32),
                                  self.some(self.bucket))

    def band(self):
        p, u = self.p, self.u
        return self.r.choice([
            lambda: p.OFPMeterBandDrop(u(32), u(32)),
            lambda: p.OFPMeterBandDscpRemark(u(32), u(32), u(8)),
            lambda: p.OFPMeterBandExperimenter(u(32), u(32), u(32))])()

    def meter_mod(self):
        return self.p.OFPMeterMod(self.dp, self.r.randrange(3), self.u(4), self.u(32),
                                  self.some(self.band))

    def table_features(self):
        p, o = self.p, self.o
        ids = {
            p.OFPTableFeaturePropInstructions:
                (range(2), lambda: {'instruction_ids': self.some(
                    lambda: p.OFPInstructionId(self.r.randrange(1, 7)))}),
            p.OFPTableFeaturePropNextTables:
                (range(2, 4), lambda: {'table_ids': self.some(lambda: self.u(8), 20)}),
            p.OFPTableFeaturePropActions:
                (range(4, 8), lambda: {'action_ids': self.some(
                    lambda: p.OFPActionId(self.r.randrange(11, 27)))}),
            p.OFPTableFeaturePropOxm:
                ([8, 10, 12, 13, 14, 15], lambda: {'oxm_ids': self.some(
                    lambda: p.OFPOxmId(self.r.choice(['in_port', 'eth_dst', 'ipv6_src']),
                                       hasmask=self.r.randrange(2)))}),
        }
        props = [cls(type_=t, **make()) for cls, (types, make) in ids.items() for t in types
                 if self.r.random() < .6]
        assert o.OFPTFPT_APPLY_SETFIELD_MISS == 15
        return p.OFPTableFeaturesStats(
            table_id=self.u(8), name=self.r.choice([b'', b'a', b'n' * 31]),
            metadata_match=self.u(64), metadata_write=self.u(64), config=self.u(32),
            max_entries=self.u(32), properties=props)

    def flow_request(self, cls):
        return cls(self.dp, 0, self.u(8), self.u(32), self.u(32), self.u(64), self.u(64),
                   self.match())

    def messages(self):
        dp, p, u = self.dp, self.p, self.u
        return [
            p.OFPHello(dp), p.OFPEchoRequest(dp, self.data()), p.OFPEchoReply(dp, self.data()),
            p.OFPErrorMsg(dp, u(16) & 0x7fff, u(16), self.data()),
            p.OFPExperimenter(dp, u(32), u(32), self.data()), p.OFPFeaturesRequest(dp),
            p.OFPGetConfigRequest(dp), p.OFPSetConfig(dp, u(2), u(16)), p.OFPBarrierRequest(dp),
            self.packet_out(), *[self.flow_mod() for _ in range(20)],
            *[self.group_mod() for _ in range(5)], *[self.meter_mod() for _ in range(5)],
            p.OFPPortMod(dp, u(32), self.mac(), u(32), u(32), u(32)),
            p.OFPTableMod(dp, u(8), u(32)), p.OFPQueueGetConfigRequest(dp, u(32)),
            p.OFPRoleRequest(dp, self.r.randrange(4), u(64)), p.OFPGetAsyncRequest(dp),
            p.OFPSetAsync(dp, [u(32), u(32)], [u(32), u(32)], [u(32), u(32)]),
            p.OFPDescStatsRequest(dp), self.flow_request(p.OFPFlowStatsRequest),
            self.flow_request(p.OFPAggregateStatsRequest), p.OFPTableStatsRequest(dp),
            p.OFPPortStatsRequest(dp, 0, u(32)), p.OFPQueueStatsRequest(dp, 0, u(32), u(32)),
            p.OFPGroupStatsRequest(dp, 0, u(32)), p.OFPGroupDescStatsRequest(dp),
            p.OFPGroupFeaturesStatsRequest(dp), p.OFPMeterStatsRequest(dp, 0, u(32)),
            p.OFPMeterConfigStatsRequest(dp, 0, u(32)), p.OFPMeterFeaturesStatsRequest(dp),
            p.OFPTableFeaturesStatsRequest(dp, 0, []),
            p.OFPTableFeaturesStatsRequest(dp, u(1), self.some(self.table_features)),
            p.OFPPortDescStatsRequest(dp),
            p.OFPExperimenterStatsRequest(dp, 0, u(32), u(32), bytearray(self.data())),
        ]


@pytest.mark.parametrize('seed', range(40))
def test_codec_reads_what_osken_writes(dp, codec_tool, seed):
    sent = []
    for msg in Maker(dp, seed).messages():
        msg.set_xid(seed)
        msg.serialize()
        sent.append((type(msg).__name__, bytes(msg.buf).hex()))
    answers = ask(codec_tool, [h for _, h in sent])
    assert len(answers) == len(sent)
    wrong = [(name, h, a) for (name, h), a in zip(sent, answers) if a != f'ok {h}']
    assert not wrong
