# SPDX-License-Identifier: Apache-2.0
"""Packet sockets that send and hear super-packets and unfinished checksums (PACKET_VNET_HDR), and the
frames that these are on the wire.  From the headers' specifications alone, as support/ is."""
import socket
import struct

from .topo import Wire, checksum

NEEDS_CSUM = 1
GSO_NONE, GSO_TCPV4, GSO_TCPV6, GSO_UDP_L4 = 0, 1, 4, 5
HEADER = '=BBHHHH'          # flags, gso_type, hdr_len, gso_size, csum_start, csum_offset
FIN, PSH, CWR = 1, 8, 0x80
TAGS = (0x8100, 0x88a8)
PACKET_VNET_HDR = 15


class VirtioWire(Wire):
    """send() takes a header with the frame; frames() gives those of the wire, cut and finished"""

    def __init__(self, netns, ifname):
        super().__init__(netns, ifname)
        self.sock.setsockopt(263, PACKET_VNET_HDR, 1)
        self.sock.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)          # SO_RCVBUFFORCE

    def send(self, frame, header=bytes(10)):
        self.sock.send(header + frame)

    def frames(self, quiet=0.1):
        return [f for frame in self.drain(quiet) for f in finished(frame)]

    @staticmethod
    def put_tag(frame, tag):
        flags, kind, length, size, start, at = struct.unpack_from(HEADER, frame)
        return struct.pack(HEADER, flags, kind, length + 4 if length else 0, size,
                           start + 4 if flags & NEEDS_CSUM else 0, at) + frame[10:22] + tag + \
            frame[22:]


# ------------------------------------------------------------------------------ on the wire

def network_header(frame):
    """-> (EtherType behind the tags, where what it names begins)"""
    at = 12
    while struct.unpack_from('!H', frame, at)[0] in TAGS:
        at += 4
    return struct.unpack_from('!H', frame, at)[0], at + 2


def finished(data):
    """[header and frame] -> the frames of the wire"""
    flags, kind, _, size, start, at = struct.unpack_from(HEADER, data)
    frame = data[10:]
    kind &= ~0x80                                                      # ECN
    if kind == GSO_NONE:
        return [finish(frame, start, at) if flags & NEEDS_CSUM else frame]
    return segments(frame, kind, size, start)


def finish(frame, start, at):
    """The field has the sum of the pseudo-header"""
    total = checksum(frame[start:])
    return frame[:start + at] + struct.pack('!H', total) + frame[start + at + 2:]


def segments(frame, kind, size, l4):
    ethertype, l3 = network_header(frame)
    head = 8 if kind == GSO_UDP_L4 else (frame[l4 + 12] >> 4) * 4
    payload, out = frame[l4 + head:], []
    for n, at in enumerate(range(0, len(payload), size)):
        part = payload[at:at + size]
        last = at + size >= len(payload)
        transport = bytearray(frame[l4:l4 + head])
        if kind == GSO_UDP_L4:
            struct.pack_into('!H', transport, 4, 8 + len(part))
        else:
            seq, = struct.unpack_from('!I', transport, 4)
            struct.pack_into('!I', transport, 4, seq + at & 0xffffffff)
            transport[13] &= ~0 if last else ~(FIN | PSH)
            transport[13] &= ~0 if not n else ~CWR
        network = bytearray(frame[l3:l4])
        length = l4 - l3 + head + len(part)
        if ethertype == 0x800:
            number, = struct.unpack_from('!H', network, 4)
            struct.pack_into('!HH', network, 2, length, number + n & 0xffff)
            network[10:12] = bytes(2)
            network[10:12] = struct.pack('!H', checksum(bytes(network)))
            pseudo = bytes(network[12:20]) + struct.pack('!BBH', 0, network[9], head + len(part))
        else:
            struct.pack_into('!H', network, 4, length - 40)
            pseudo = bytes(network[8:40]) + struct.pack('!II', head + len(part), network[6])
        field = 6 if kind == GSO_UDP_L4 else 16
        transport[field:field + 2] = bytes(2)
        total = checksum(pseudo + bytes(transport) + part)
        transport[field:field + 2] = struct.pack('!H', total or 0xffff if kind == GSO_UDP_L4 else total)
        out.append(frame[:l3] + bytes(network) + bytes(transport) + part)
    return out


def pseudo_sum(frame, l3, l4, proto):
    """What a host leaves in the checksum's place for the hardware"""
    n = len(frame) - l4
    addresses = frame[l3 + 12:l3 + 20] if frame[l3] >> 4 == 4 else frame[l3 + 8:l3 + 40]
    return ~checksum(addresses + struct.pack('!II', n, proto)) & 0xffff


def unfinished(frame, gso_size=0):
    """A TCP or UDP frame as a host with offloads hands it over -> (header, frame)"""
    ethertype, l3 = network_header(frame)
    if ethertype == 0x800:
        l4, proto = l3 + (frame[l3] & 15) * 4, frame[l3 + 9]
    else:
        l4, proto = l3 + 40, frame[l3 + 6]
    at = 16 if proto == 6 else 6
    frame = frame[:l4 + at] + bytes(2) + frame[l4 + at + 2:]
    frame = frame[:l4 + at] + struct.pack('!H', pseudo_sum(frame, l3, l4, proto)) + frame[l4 + at + 2:]
    kind, head = GSO_NONE, 0
    if gso_size:
        kind = GSO_UDP_L4 if proto == 17 else GSO_TCPV4 if ethertype == 0x800 else GSO_TCPV6
        head = l4 + (8 if proto == 17 else (frame[l4 + 12] >> 4) * 4)
    return struct.pack(HEADER, NEEDS_CSUM, kind, head, gso_size, l4, at), frame
