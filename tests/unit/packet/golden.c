/* SPDX-License-Identifier: Apache-2.0 */
/* The frames are scapy's.  The matches were printed by the parser, then compared by hand with what
 * scapy was asked for. */
#include "golden.h"

const struct golden golden_frames[] = {
    {"tcp",
     "00112233445566778899aabb080045b90033000700002106c8540a010203c0a8040504d20050000000000000"
     "000060022000e51c0000020405b47061796c6f6164",
     "in_port=1,in_phy_port=1,metadata=0x0,eth_dst=00:11:22:33:44:55,"
     "eth_src=66:77:88:99:aa:bb,eth_type=0x0800,vlan_vid=none,ip_dscp=46,ip_ecn=1,ip_proto=6,"
     "ipv4_src=10.1.2.3,ipv4_dst=192.168.4.5,tcp_src=1234,tcp_dst=80,tunnel_id=0x0"},
    {"udp, options",
     "00112233445566778899aabb0800460000270001000040115eaf010203040506070807030400003514e9000f"
     "1d6f7061796c6f6164",
     "in_port=1,in_phy_port=1,metadata=0x0,eth_dst=00:11:22:33:44:55,"
     "eth_src=66:77:88:99:aa:bb,eth_type=0x0800,vlan_vid=none,ip_dscp=0,ip_ecn=0,ip_proto=17,"
     "ipv4_src=1.2.3.4,ipv4_dst=5.6.7.8,udp_src=53,udp_dst=5353,tunnel_id=0x0"},
    {"sctp",
     "00112233445566778899aabb080045b90034000700002184c7d50a010203c0a8040500070009000000010154"
     "7dd60000001400000000000000000000000061626364",
     "in_port=1,in_phy_port=1,metadata=0x0,eth_dst=00:11:22:33:44:55,"
     "eth_src=66:77:88:99:aa:bb,eth_type=0x0800,vlan_vid=none,ip_dscp=46,ip_ecn=1,"
     "ip_proto=132,ipv4_src=10.1.2.3,ipv4_dst=192.168.4.5,sctp_src=7,sctp_dst=9,tunnel_id=0x0"},
    {"icmp",
     "00112233445566778899aabb080045b90023000700002101c8690a010203c0a8040503043fcc000000007061"
     "796c6f6164",
     "in_port=1,in_phy_port=1,metadata=0x0,eth_dst=00:11:22:33:44:55,"
     "eth_src=66:77:88:99:aa:bb,eth_type=0x0800,vlan_vid=none,ip_dscp=46,ip_ecn=1,ip_proto=1,"
     "ipv4_src=10.1.2.3,ipv4_dst=192.168.4.5,icmpv4_type=3,icmpv4_code=4,tunnel_id=0x0"},
    {"vlan",
     "00112233445566778899aabb8100a064080045b9001c000700002111c8600a010203c0a80405000100020008"
     "2f2a",
     "in_port=1,in_phy_port=1,metadata=0x0,eth_dst=00:11:22:33:44:55,"
     "eth_src=66:77:88:99:aa:bb,eth_type=0x0800,vlan_vid=100,vlan_pcp=5,ip_dscp=46,ip_ecn=1,"
     "ip_proto=17,ipv4_src=10.1.2.3,ipv4_dst=192.168.4.5,udp_src=1,udp_dst=2,tunnel_id=0x0"},
    {"qinq",
     "00112233445566778899aabb88a840078100a06486dd62aabcde0014060920010db800000000000000000000"
     "0001fe80000000000000000000000000002200030004000000000000000050022000637f0000",
     "in_port=1,in_phy_port=1,metadata=0x0,eth_dst=00:11:22:33:44:55,"
     "eth_src=66:77:88:99:aa:bb,eth_type=0x86dd,vlan_vid=7,vlan_pcp=2,ip_dscp=10,ip_ecn=2,"
     "ip_proto=6,tcp_src=3,tcp_dst=4,ipv6_src=2001:db8::1,ipv6_dst=fe80::22,"
     "ipv6_flabel=0xabcde,tunnel_id=0x0,ipv6_exthdr=0x0000"},
    {"first fragment",
     "00112233445566778899aabb0800450000230001200040114ab60102030405060708000500060064322d7061"
     "796c6f6164",
     "in_port=1,in_phy_port=1,metadata=0x0,eth_dst=00:11:22:33:44:55,"
     "eth_src=66:77:88:99:aa:bb,eth_type=0x0800,vlan_vid=none,ip_dscp=0,ip_ecn=0,ip_proto=17,"
     "ipv4_src=1.2.3.4,ipv4_dst=5.6.7.8,udp_src=5,udp_dst=6,tunnel_id=0x0"},
    {"later fragment",
     "00112233445566778899aabb0800450000290001000340116aad01020304050607087061796c6f6164706179"
     "6c6f61647061796c6f6164",
     "in_port=1,in_phy_port=1,metadata=0x0,eth_dst=00:11:22:33:44:55,"
     "eth_src=66:77:88:99:aa:bb,eth_type=0x0800,vlan_vid=none,ip_dscp=0,ip_ecn=0,ip_proto=17,"
     "ipv4_src=1.2.3.4,ipv4_dst=5.6.7.8,tunnel_id=0x0"},
    {"arp", "00112233445566778899aabb080600010800060400020200000000010a0000010200000000020a000002",
     "in_port=1,in_phy_port=1,metadata=0x0,eth_dst=00:11:22:33:44:55,"
     "eth_src=66:77:88:99:aa:bb,eth_type=0x0806,vlan_vid=none,arp_op=2,arp_spa=10.0.0.1,"
     "arp_tpa=10.0.0.2,arp_sha=02:00:00:00:00:01,arp_tha=02:00:00:00:00:02,tunnel_id=0x0"},
    {"rarp", "00112233445566778899aabb803500010800060400030200000000010000000002000000000200000000",
     "in_port=1,in_phy_port=1,metadata=0x0,eth_dst=00:11:22:33:44:55,"
     "eth_src=66:77:88:99:aa:bb,eth_type=0x8035,vlan_vid=none,tunnel_id=0x0"},
    {"mpls",
     "00112233445566778899aabb8847000636050000410645b9001c000700002111c8600a010203c0a804050035"
     "003500082ec3",
     "in_port=1,in_phy_port=1,metadata=0x0,eth_dst=00:11:22:33:44:55,"
     "eth_src=66:77:88:99:aa:bb,eth_type=0x8847,vlan_vid=none,mpls_label=99,mpls_tc=3,"
     "mpls_bos=0,tunnel_id=0x0"},
    {"vlan, mpls",
     "00112233445566778899aabb810000018848ffffff0545b9001c000700002111c8600a010203c0a804050035"
     "003500082ec3",
     "in_port=1,in_phy_port=1,metadata=0x0,eth_dst=00:11:22:33:44:55,"
     "eth_src=66:77:88:99:aa:bb,eth_type=0x8848,vlan_vid=1,vlan_pcp=0,mpls_label=1048575,"
     "mpls_tc=7,mpls_bos=1,tunnel_id=0x0"},
    {"pbb",
     "00112233445566778899aabb88e72012345600112233445566778899aabb080045b9001c000700002111c860"
     "0a010203c0a804050035003500082ec3",
     "in_port=1,in_phy_port=1,metadata=0x0,eth_dst=00:11:22:33:44:55,"
     "eth_src=66:77:88:99:aa:bb,eth_type=0x88e7,vlan_vid=none,pbb_isid=0x123456,tunnel_id=0x0"},
    {"snap",
     "00112233445566778899aabb0024aaaa03000000080045b9001c000700002111c8600a010203c0a804050001"
     "000200082f2a",
     "in_port=1,in_phy_port=1,metadata=0x0,eth_dst=00:11:22:33:44:55,"
     "eth_src=66:77:88:99:aa:bb,eth_type=0x0800,vlan_vid=none,ip_dscp=46,ip_ecn=1,ip_proto=17,"
     "ipv4_src=10.1.2.3,ipv4_dst=192.168.4.5,udp_src=1,udp_dst=2,tunnel_id=0x0"},
    {"llc",
     "00112233445566778899aabb0026424203000000000000000000000000000000000000000000000000000000"
     "0100140002000f00",
     "in_port=1,in_phy_port=1,metadata=0x0,eth_dst=00:11:22:33:44:55,"
     "eth_src=66:77:88:99:aa:bb,eth_type=0x05ff,vlan_vid=none,tunnel_id=0x0"},
    {"ipv6 extension headers",
     "00112233445566778899aabb86dd62aabcde0038000920010db8000000000000000000000001fe8000000000"
     "000000000000000000223c000104000000002b000104000000003c0200010000000020010db8000000000000"
     "0000000000091100010400000000000800090008a451",
     "in_port=1,in_phy_port=1,metadata=0x0,eth_dst=00:11:22:33:44:55,"
     "eth_src=66:77:88:99:aa:bb,eth_type=0x86dd,vlan_vid=none,ip_dscp=10,ip_ecn=2,ip_proto=17,"
     "udp_src=8,udp_dst=9,ipv6_src=2001:db8::1,ipv6_dst=fe80::22,ipv6_flabel=0xabcde,"
     "tunnel_id=0x0,ipv6_exthdr=0x0068"},
    {"ipv6 unusual order",
     "00112233445566778899aabb86dd62aabcde00243c0920010db8000000000000000000000001fe8000000000"
     "0000000000000000002200000104000000000600010400000000000800090000000000000000500220006375"
     "0000",
     "in_port=1,in_phy_port=1,metadata=0x0,eth_dst=00:11:22:33:44:55,"
     "eth_src=66:77:88:99:aa:bb,eth_type=0x86dd,vlan_vid=none,ip_dscp=10,ip_ecn=2,ip_proto=6,"
     "tcp_src=8,tcp_dst=9,ipv6_src=2001:db8::1,ipv6_dst=fe80::22,ipv6_flabel=0xabcde,"
     "tunnel_id=0x0,ipv6_exthdr=0x0148"},
    {"ipv6 repeated",
     "00112233445566778899aabb86dd62aabcde0024000920010db8000000000000000000000001fe8000000000"
     "0000000000000000002200000104000000000600010400000000000800090000000000000000500220006375"
     "0000",
     "in_port=1,in_phy_port=1,metadata=0x0,eth_dst=00:11:22:33:44:55,"
     "eth_src=66:77:88:99:aa:bb,eth_type=0x86dd,vlan_vid=none,ip_dscp=10,ip_ecn=2,ip_proto=6,"
     "tcp_src=8,tcp_dst=9,ipv6_src=2001:db8::1,ipv6_dst=fe80::22,ipv6_flabel=0xabcde,"
     "tunnel_id=0x0,ipv6_exthdr=0x00c0"},
    {"ipv6 first fragment",
     "00112233445566778899aabb86dd62aabcde00172c0920010db8000000000000000000000001fe8000000000"
     "0000000000000000002211000001000000000008000903e8125a7061796c6f6164",
     "in_port=1,in_phy_port=1,metadata=0x0,eth_dst=00:11:22:33:44:55,"
     "eth_src=66:77:88:99:aa:bb,eth_type=0x86dd,vlan_vid=none,ip_dscp=10,ip_ecn=2,ip_proto=17,"
     "udp_src=8,udp_dst=9,ipv6_src=2001:db8::1,ipv6_dst=fe80::22,ipv6_flabel=0xabcde,"
     "tunnel_id=0x0,ipv6_exthdr=0x0010"},
    {"ipv6 later fragment",
     "00112233445566778899aabb86dd62aabcde000f2c0920010db8000000000000000000000001fe8000000000"
     "00000000000000000022110000a0000000007061796c6f6164",
     "in_port=1,in_phy_port=1,metadata=0x0,eth_dst=00:11:22:33:44:55,"
     "eth_src=66:77:88:99:aa:bb,eth_type=0x86dd,vlan_vid=none,ip_dscp=10,ip_ecn=2,ip_proto=17,"
     "ipv6_src=2001:db8::1,ipv6_dst=fe80::22,ipv6_flabel=0xabcde,"
     "tunnel_id=0x0,ipv6_exthdr=0x0010"},
    {"ipv6 no next header",
     "00112233445566778899aabb86dd6000000000003b4000000000000000000000000000000001000000000000"
     "00000000000000000002",
     "in_port=1,in_phy_port=1,metadata=0x0,eth_dst=00:11:22:33:44:55,"
     "eth_src=66:77:88:99:aa:bb,eth_type=0x86dd,vlan_vid=none,ip_dscp=0,ip_ecn=0,ip_proto=59,"
     "ipv6_src=::1,ipv6_dst=::2,ipv6_flabel=0x0,tunnel_id=0x0,ipv6_exthdr=0x0001"},
    {"ipv6 esp",
     "00112233445566778899aabb86dd60000000001c324000000000000000000000000000000001000000000000"
     "0000000000000000000200000102000000017878787878787878787878787878787878787878",
     "in_port=1,in_phy_port=1,metadata=0x0,eth_dst=00:11:22:33:44:55,"
     "eth_src=66:77:88:99:aa:bb,eth_type=0x86dd,vlan_vid=none,ip_dscp=0,ip_ecn=0,ip_proto=50,"
     "ipv6_src=::1,ipv6_dst=::2,ipv6_flabel=0x0,tunnel_id=0x0,ipv6_exthdr=0x0002"},
    {"icmpv6",
     "00112233445566778899aabb86dd62aabcde00083a0920010db8000000000000000000000001fe8000000000"
     "000000000000000000228000535f00010000",
     "in_port=1,in_phy_port=1,metadata=0x0,eth_dst=00:11:22:33:44:55,"
     "eth_src=66:77:88:99:aa:bb,eth_type=0x86dd,vlan_vid=none,ip_dscp=10,ip_ecn=2,ip_proto=58,"
     "ipv6_src=2001:db8::1,ipv6_dst=fe80::22,ipv6_flabel=0xabcde,icmpv6_type=128,"
     "icmpv6_code=0,tunnel_id=0x0,ipv6_exthdr=0x0000"},
    {"nd solicitation",
     "00112233445566778899aabb86dd62aabcde00283a0920010db8000000000000000000000001fe8000000000"
     "000000000000000000228700403d00000000fe80000000000000000000000000007705010000000005000101"
     "020000000009",
     "in_port=1,in_phy_port=1,metadata=0x0,eth_dst=00:11:22:33:44:55,"
     "eth_src=66:77:88:99:aa:bb,eth_type=0x86dd,vlan_vid=none,ip_dscp=10,ip_ecn=2,ip_proto=58,"
     "ipv6_src=2001:db8::1,ipv6_dst=fe80::22,ipv6_flabel=0xabcde,icmpv6_type=135,"
     "icmpv6_code=0,ipv6_nd_target=fe80::77,ipv6_nd_sll=02:00:00:00:00:09,tunnel_id=0x0,"
     "ipv6_exthdr=0x0000"},
    {"nd advertisement",
     "00112233445566778899aabb86dd62aabcde00203a0920010db8000000000000000000000001fe8000000000"
     "000000000000000000228800a844a0000000fe800000000000000000000000000077020102000000000a",
     "in_port=1,in_phy_port=1,metadata=0x0,eth_dst=00:11:22:33:44:55,"
     "eth_src=66:77:88:99:aa:bb,eth_type=0x86dd,vlan_vid=none,ip_dscp=10,ip_ecn=2,ip_proto=58,"
     "ipv6_src=2001:db8::1,ipv6_dst=fe80::22,ipv6_flabel=0xabcde,icmpv6_type=136,"
     "icmpv6_code=0,ipv6_nd_target=fe80::77,ipv6_nd_tll=02:00:00:00:00:0a,tunnel_id=0x0,"
     "ipv6_exthdr=0x0000"},
    {"nd without options",
     "00112233445566778899aabb86dd62aabcde00183a0920010db8000000000000000000000001fe8000000000"
     "0000000000000000002287004d5800000000fe800000000000000000000000000077",
     "in_port=1,in_phy_port=1,metadata=0x0,eth_dst=00:11:22:33:44:55,"
     "eth_src=66:77:88:99:aa:bb,eth_type=0x86dd,vlan_vid=none,ip_dscp=10,ip_ecn=2,ip_proto=58,"
     "ipv6_src=2001:db8::1,ipv6_dst=fe80::22,ipv6_flabel=0xabcde,icmpv6_type=135,"
     "icmpv6_code=0,ipv6_nd_target=fe80::77,tunnel_id=0x0,"
     "ipv6_exthdr=0x0000"},
    {"unknown type", "00112233445566778899aabb88cc616263",
     "in_port=1,in_phy_port=1,metadata=0x0,eth_dst=00:11:22:33:44:55,"
     "eth_src=66:77:88:99:aa:bb,eth_type=0x88cc,vlan_vid=none,tunnel_id=0x0"},
};

const unsigned n_golden_frames = sizeof golden_frames / sizeof *golden_frames;
