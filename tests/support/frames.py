# SPDX-License-Identifier: Apache-2.0
"""One frame of each kind of traffic that hosts and switches put on an Ethernet, by name.

FRAMES = {name: frame} from host 1 to host 2, or to a group.  From the protocols' own specifications."""
import socket
import struct

from .topo import checksum, eth, ipv4, mac, udp4

HOSTS = ('10.0.0.1', '10.0.0.2')
HERE, THERE = (socket.inet_pton(socket.AF_INET6, f'fd00::{n}') for n in (1, 2))
PAYLOAD = b'ordinary traffic, byte by byte: '
INNER = eth(udp4(PAYLOAD), 4, 3)                  # of other hosts, in tunnels


def to(group, payload, ethertype):
    """Layer 2, to a MAC address given as text"""
    return (bytes.fromhex(group.replace(':', '')) + mac(1) + struct.pack('!H', ethertype) + payload).ljust(60, b'\0')


def llc(group, payload):
    """802.2: the length stands in the place of the EtherType"""
    return to(group, payload, len(payload))


def ip6(payload, proto=17, dst=THERE, src=HERE, hops=64, flow=0):
    return struct.pack('!IHBB', 6 << 28 | flow, len(payload), proto, hops) + src + dst + payload


def group6(address):
    """-> (the group's address, the MAC address that it is sent to)"""
    raw = socket.inet_pton(socket.AF_INET6, address)
    return raw, '33:33:' + ':'.join(f'{b:02x}' for b in raw[12:])


def icmp6(kind, body, dst=THERE, hops=255):
    raw = struct.pack('!BBH', kind, 0, 0) + body
    total = checksum(HERE + dst + struct.pack('!II', len(raw), 58) + raw)
    return ip6(raw[:2] + struct.pack('!H', total) + raw[4:], 58, dst, hops=hops)


def to_group6(address, make):
    raw, ether = group6(address)
    return to(ether, make(raw), 0x86dd)


def udp6(sport, dport, dst=THERE, payload=PAYLOAD):
    head = struct.pack('!HHHH', sport, dport, 8 + len(payload), 0)
    total = checksum(HERE + dst + struct.pack('!II', 8 + len(payload), 17) + head + payload) or 0xffff
    return ip6(head[:6] + struct.pack('!H', total) + payload, 17, dst)


def udp(sport, dport, payload=PAYLOAD, **kw):
    return eth(udp4(payload, sport, dport, **kw))


def group4(address, payload, proto, ttl=1):
    raw = socket.inet_aton(address)
    ether = '01:00:5e:' + ':'.join(f'{b:02x}' for b in (raw[1] & 0x7f, raw[2], raw[3]))
    return to(ether, ipv4(payload, proto, dst=address, ttl=ttl), 0x800)


def arp(operation, dst):
    return struct.pack('!HHBBH', 1, 0x800, 6, 4, operation) + mac(1) + socket.inet_aton(HOSTS[0]) + \
        (mac(2) if dst else bytes(6)) + socket.inet_aton(HOSTS[1])


def igmp(kind, group='224.0.0.251'):
    raw = struct.pack('!BBH4s', kind, 0, 0, socket.inet_aton(group))
    return raw[:2] + struct.pack('!H', checksum(raw)) + raw[4:]


def fragment(offset, more, payload):
    whole = ipv4(payload, 17)
    head = whole[:6] + struct.pack('!H', more << 13 | offset) + whole[8:10] + b'\0\0' + whole[12:20]
    return eth(head[:10] + struct.pack('!H', checksum(head)) + head[12:] + payload)


def options4(payload):
    """IPv4 with the router alert"""
    plain = ipv4(payload, 17)
    head = b'\x46' + plain[1:2] + struct.pack('!H', 24 + len(payload)) + plain[4:10] + b'\0\0' + plain[12:20] + \
        b'\x94\x04\0\0'
    return head[:10] + struct.pack('!H', checksum(head)) + head[12:] + payload


def tag(vlan, tpid=0x8100, inner=None, priority=0):
    frame = inner or udp(1000, 2000)
    return frame[:12] + struct.pack('!HH', tpid, priority << 13 | vlan) + frame[12:]


def mpls(*labels):
    stack = b''.join(struct.pack('!I', label << 12 | (n == len(labels) - 1) << 8 | 64) for n, label in enumerate(labels))
    return eth(stack + udp4(PAYLOAD), ethertype=0x8847)


def pppoe(code, session, payload, ethertype):
    return eth(struct.pack('!BBHH', 0x11, code, session, len(payload)) + payload, ethertype=ethertype)


def tcp(flags, options=b'', payload=b''):
    head = struct.pack('!HHIIBBHHH', 1000, 80, 1, 0, (20 + len(options)) // 4 << 4, flags, 65535, 0, 0) + options
    total = checksum(b''.join(map(socket.inet_aton, HOSTS)) + struct.pack('!BBH', 0, 6, len(head + payload)) + head + payload)
    return ipv4(head[:16] + struct.pack('!H', total) + head[18:] + payload, 6)


UDP6 = udp6(1000, 2000)[40:]
VXLAN = struct.pack('!II', 0x08000000, 5 << 8) + INNER

FRAMES = {
    'ARP request': to('ff:ff:ff:ff:ff:ff', arp(1, False), 0x806),
    'ARP reply': eth(arp(2, True), ethertype=0x806),
    'DHCP discover (broadcast)': to('ff:ff:ff:ff:ff:ff', udp4(b'\1\1\6\0' + bytes(240), 68, 67, '0.0.0.0', '255.255.255.255'), 0x800),
    'DHCP offer': udp(67, 68, b'\2\1\6\0' + bytes(240)),
    'ICMP echo': eth(ipv4(b'\x08\0\xf7\xff\0\0\0\0', 1)),
    'TCP SYN': eth(tcp(2, b'\2\4\5\xb4')),
    'UDP': udp(1000, 2000),
    'UDP without checksum': eth(ipv4(struct.pack('!HHHH', 1000, 2000, 8 + len(PAYLOAD), 0) + PAYLOAD)),
    'UDP-Lite': eth(ipv4(struct.pack('!HHHH', 1000, 2000, 8, 0) + PAYLOAD, 136)),
    'DNS': udp(1000, 53),
    'QUIC': udp(1000, 443, b'\xc0\0\0\0\1' + bytes(1195)),
    'SCTP INIT': eth(ipv4(struct.pack('!HHII', 1000, 2000, 0, 0) + b'\1\0\0\x14' + bytes(16), 132)),
    'DCCP': eth(ipv4(struct.pack('!HHBBHII', 1000, 2000, 5, 0, 0, 1, 0), 33)),
    'IPv4 with options': eth(options4(udp4(PAYLOAD)[20:])),
    'first fragment': fragment(0, 1, udp4(PAYLOAD)[20:]),
    'later fragment': fragment(185, 0, PAYLOAD),
    'IPv6 neighbour solicitation': to_group6('ff02::1:ff00:2', lambda g: icmp6(135, bytes(4) + THERE + b'\1\1' + mac(1), g)),
    'IPv6 neighbour advertisement': eth(icmp6(136, b'\x60\0\0\0' + HERE + b'\2\1' + mac(1)), ethertype=0x86dd),
    'IPv6 router solicitation': to_group6('ff02::2', lambda g: icmp6(133, bytes(4), g)),
    'IPv6 router advertisement': to_group6('ff02::1', lambda g: icmp6(134, b'\x40\0\x07\x08' + bytes(8), g)),
    'IPv6 UDP': eth(udp6(1000, 2000), ethertype=0x86dd),
    'IPv6 flow label': eth(ip6(UDP6, flow=0x12345), ethertype=0x86dd),
    'IPv6 fragment': eth(ip6(b'\x11\0\0\1\0\0\0\7' + UDP6, 44), ethertype=0x86dd),
    'IPv6 extension headers': eth(ip6(b'\x3c\0\1\4\0\0\0\0' + b'\x11\0\1\4\0\0\0\0' + UDP6, 0), ethertype=0x86dd),
    'MLD report': to_group6('ff02::16', lambda g: ip6(b'\x3a\0\5\2\0\0\1\0' + icmp6(143, b'\0\0\0\0', g)[40:], 0, g, hops=1)),
    'mDNS': group4('224.0.0.251', udp4(PAYLOAD, 5353, 5353, dst='224.0.0.251')[20:], 17, 255),
    'mDNS over IPv6': to_group6('ff02::fb', lambda g: udp6(5353, 5353, g)),
    'SSDP': group4('239.255.255.250', udp4(PAYLOAD, 1900, 1900, dst='239.255.255.250')[20:], 17, 2),
    'IGMP query': group4('224.0.0.1', igmp(0x11, '0.0.0.0'), 2),
    'IGMP report': group4('224.0.0.251', igmp(0x16), 2),
    'OSPF': group4('224.0.0.5', b'\2\1\0\x2c' + bytes(40), 89),
    'VRRP': group4('224.0.0.18', b'\x31\1\x64\1' + bytes(8), 112, 255),
    'PIM': group4('224.0.0.13', b'\x20\0\xdf\xff', 103),
    'BFD': udp(49152, 3784, b'\x20\x40\3\x18' + bytes(20), ttl=255),
    'PTP': to('01:1b:19:00:00:00', b'\0\2\0\x2c' + bytes(40), 0x88f7),
    'spanning tree BPDU': llc('01:80:c2:00:00:00', b'\x42\x42\3' + bytes(35)),
    'pause (01:80:c2:00:00:01)': to('01:80:c2:00:00:01', b'\0\1\xff\xff', 0x8808),
    'LACP (..:02)': to('01:80:c2:00:00:02', b'\1\1' + bytes(108), 0x8809),
    'EAPOL (..:03)': to('01:80:c2:00:00:03', b'\2\1\0\0', 0x888e),
    'LLDP (..:0e)': to('01:80:c2:00:00:0e', b'\2\7\4' + mac(1) + b'\4\2\7a\6\2\0\x78\0\0', 0x88cc),
    'MVRP (..:21)': to('01:80:c2:00:00:21', b'\0\1\4\0\1\0\1\0\0', 0x88f5),
    'CDP': llc('01:00:0c:cc:cc:cc', b'\xaa\xaa\3\0\0\x0c\x20\0\2\xb4' + bytes(20)),
    'IPX over 802.2': llc('ff:ff:ff:ff:ff:ff', b'\xe0\xe0\3\xff\xff' + bytes(40)),
    'wake on LAN': eth(b'\xff' * 6 + mac(2) * 16, ethertype=0x0842),
    'VLAN': tag(100),
    'VLAN 0 with a priority': tag(0, priority=5),
    'QinQ (802.1ad)': tag(200, 0x88a8, tag(100)),
    'two tags 8100': tag(200, 0x8100, tag(100)),
    'MPLS': mpls(77),
    'MPLS, three labels': mpls(77, 78, 79),
    'PPPoE discovery': pppoe(9, 0, b'\1\1\0\0', 0x8863),
    'PPPoE session, IPv4': pppoe(0, 7, b'\0\x21' + udp4(PAYLOAD), 0x8864),
    'provider backbone (PBB)': eth(b'\0\0\0\5' + INNER, ethertype=0x88e7),
    'MACsec': eth(b'\x2c\0\0\0\0\1' + bytes(46), ethertype=0x88e5),
    'EtherCAT': eth(b'\x0e\x10' + bytes(44), ethertype=0x88a4),
    'PROFINET': eth(b'\x80\0' + bytes(44), ethertype=0x8892),
    'RoCE version 1': eth(bytes(60), ethertype=0x8915),
    'unknown EtherType': eth(PAYLOAD, ethertype=0x88b5),
    'VXLAN': udp(5000, 4789, VXLAN),
    'VXLAN at port 5555': udp(5000, 5555, VXLAN),
    'VXLAN-GPE (4790)': udp(5000, 4790, struct.pack('!II', 0x0c000003, 5 << 8) + INNER),
    'Geneve': udp(5000, 6081, struct.pack('!BBHI', 0, 0, 0x6558, 5 << 8) + INNER),
    'FOU': udp(5000, 5555, udp4(PAYLOAD)),
    'GRE': eth(ipv4(b'\0\0\x08\0' + udp4(PAYLOAD), 47)),
    'GRE with Ethernet (gretap)': eth(ipv4(b'\0\0\x65\x58' + INNER, 47)),
    'IP in IP': eth(ipv4(udp4(PAYLOAD), 4)),
    'IPv6 in IPv4': eth(ipv4(udp6(1000, 2000), 41)),
    'IPsec ESP': eth(ipv4(struct.pack('!II', 0x1000, 1) + PAYLOAD, 50)),
    'IPsec AH': eth(ipv4(struct.pack('!BBHII', 17, 4, 0, 0x1000, 1) + bytes(12) + udp4(PAYLOAD)[20:], 51)),
    'IPsec through NAT': udp(4500, 4500, struct.pack('!II', 0x1000, 1) + PAYLOAD),
    'WireGuard': udp(51820, 51820, b'\4\0\0\0' + bytes(44)),
    'L2TP version 3': eth(ipv4(struct.pack('!II', 5, 0) + INNER, 115)),
    'full frame (1,514 bytes)': udp(1000, 2000, bytes(1472)),
}
