/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of protocols: EtherTypes and the next-header numbers of IP (IANA). */
#ifndef OFLIB_PROTOCOLS_H
#define OFLIB_PROTOCOLS_H

enum {
    TYPE_IPV4 = 0x0800,
    TYPE_ARP = 0x0806,
    TYPE_RARP = 0x8035,
    TYPE_ETHERNET = 0x6558, /* a frame inside a tunnel (RFC 1701) */
    TYPE_VLAN = 0x8100,
    TYPE_IPV6 = 0x86dd,
    TYPE_MPLS = 0x8847,
    TYPE_MPLS_MC = 0x8848,
    TYPE_PPPOE = 0x8864, /* a session's frame (RFC 2516) */
    TYPE_SVLAN = 0x88a8,
    TYPE_PBB = 0x88e7,
    TYPE_OLD_SVLAN = 0x9100
};

enum {
    PROTO_HOPOPTS = 0,
    PROTO_ICMP = 1,
    PROTO_IPIP = 4,
    PROTO_TCP = 6,
    PROTO_UDP = 17,
    PROTO_IPV6 = 41,
    PROTO_ROUTING = 43,
    PROTO_FRAGMENT = 44,
    PROTO_GRE = 47,
    PROTO_ESP = 50,
    PROTO_AH = 51,
    PROTO_ICMPV6 = 58,
    PROTO_NONE = 59,
    PROTO_DSTOPTS = 60,
    PROTO_SCTP = 132,
    PROTO_MPLS = 137
};

/* What a frame of PPP carries (RFC 1332, RFC 5072). */
enum { PPP_IPV4 = 0x0021, PPP_IPV6 = 0x0057 };

#endif
