/* SPDX-License-Identifier: Apache-2.0 */
/* From a frame to its key. */
#ifndef OFFLOAD_BPF_FRAME_H
#define OFFLOAD_BPF_FRAME_H

#include "exts.h"

#ifndef RTT_CLOCK_NS /* by tests that run the programs as a process */
#define RTT_CLOCK_NS()     bpf_ktime_get_ns()
#define RTT_INLINE         __always_inline
#define RTT_UNKNOWN(index) asm volatile("" : "+r"(index))
#endif
#include <latency/rtt.h>

#define ADDRESSES_AT 6 /* words: both IP addresses, to the end */

/* The words of a key, member by member. */
union key {
    __u64 w[OFFLOAD_WORDS];
    struct {
        __u32 in_if, zero0;
        __u8 eth[12]; /* both addresses */
        __be16 eth_type;
        __be16 vlan_vid;
        __u8 pcp, dscp, ecn, proto;
        __be16 tp_src, tp_dst;
        union {
            struct {
                __be32 mpls_label;
                __u8 mpls_tc, mpls_bos;
                __be16 exts;
                __be32 flabel;
                __u8 isid[3], fragment;
            };
            struct { /* ARP's */
                __u8 sha[6], zero1[2];
                __u8 tha[6], zero2[2];
            };
        };
        __u8 src[16], dst[16];
    };
};

/* What both programs must know of a frame; the filter passes it to the other one in 32 bits, `where`.  It is on the
 * stack, of which all calls have 512 bytes. */
struct frame {
    union key key;
    __u32 l3, l4; /* without the outermost tag, which is beside the bytes; l4 0: there is none */
    __u32 where;
    __u32 ttl;
    __u32 l4_len; /* with what follows, as the IP header says */
};

/* 8 bits: bytes in front of the payload; 0: no super-packet, or not known.  2 bits: tags.  8 bits: the protocol, 0: no
 * transport header is there.  5 bits: words of the IP header with what is between it and the transport's. */
#define WHERE_TAG      (1 << 8)
#define WHERE_V6       (1 << 10)
#define WHERE_PROTO    11        /* the shift */
#define WHERE_HOST     (1 << 19) /* the host gets the frame, too */
#define WHERE_JUMBO    (1 << 20) /* a header says a super-packet's length; no segment has it */
#define WHERE_WHOLE    (1 << 21) /* the datagram's checksum is not a partial one */
#define WHERE_MEASURED (1 << 22) /* a datagram whose round trip is measured */
#define WHERE_IP       23        /* the shift */
#define WHERE_FRAGMENT (1 << 28)
#define WHERE_AROUND                                                                               \
    29 /* the shift: words in front of l3 that the tables don't see (PACKET_INSIDE_) */

/* As probes_want. */
static __always_inline __u32
is_udp_measured(const struct frame *f)
{
    return f->key.proto == PROTO_UDP &&
           rtt_is_udp(bpf_ntohs(f->key.tp_src), bpf_ntohs(f->key.tp_dst));
}

static __always_inline __u32
where_of(const struct frame *f)
{
    return f->where | (is_udp_measured(f) ? WHERE_MEASURED : 0);
}

static __always_inline __u32
where_header(__u32 where)
{
    return where & 0xff;
}

static __always_inline __u32
where_tags(__u32 where)
{
    return where / WHERE_TAG & 3;
}

static __always_inline int
where_is_v6(__u32 where)
{
    return !!(where & WHERE_V6);
}

static __always_inline __u32
where_proto(__u32 where)
{
    return where >> WHERE_PROTO & 0xff;
}

static __always_inline __u32
where_jumbo(__u32 where)
{
    return where & WHERE_JUMBO ? IPV6_JUMBO : 0;
}

static __always_inline int
where_whole(__u32 where)
{
    return !!(where & WHERE_WHOLE);
}

static __always_inline int
where_measured(__u32 where)
{
    return !!(where & WHERE_MEASURED);
}

static __always_inline __u32
where_ip(__u32 where)
{
    return (where >> WHERE_IP & 31) << 2;
}

static __always_inline int
where_fragment(__u32 where)
{
    return !!(where & WHERE_FRAGMENT);
}

/* Where IP begins, without the outermost tag. */
static __always_inline __u32
where_l3(__u32 where, __u32 tags)
{
    return ETH_HEADER + (tags > 1 ? (tags - 1) * VLAN_TAG : 0) + (where >> WHERE_AROUND) * 4;
}

/* ------------------------------------------------------------------ parsing */

/* The transport's fields, as parse_l4 in packet/parse.c has them.  False: it is malformed. */
static __always_inline int
parse_l4(struct __sk_buff *skb, struct frame *f, __u32 room)
{
    __u8 proto = f->key.proto, v6 = where_is_v6(f->where);
    __be16 port[2];
    f->where |= (__u32)proto << WHERE_PROTO;
    f->l4_len = room;
    __u32 least = proto == PROTO_TCP ? 20 : proto == PROTO_UDP ? 8 : proto == PROTO_SCTP ? 12 : 4;
    if (proto != PROTO_TCP && proto != PROTO_UDP && proto != PROTO_SCTP &&
        proto != (v6 ? PROTO_ICMPV6 : PROTO_ICMP))
        return 1;
    if (room < least || bpf_skb_load_bytes(skb, f->l4, port, sizeof port))
        return 0;
    f->key.vlan_vid |= bpf_htons(HAS_L4);
    f->key.tp_src = port[0];
    if (proto == PROTO_ICMPV6) {
        __u8 type = bpf_ntohs(port[0]) >> 8;
        return (type != ND_SOLICIT && type != ND_ADVERT) ||
               ofqos_nd(skb, f->l4, room, type == ND_SOLICIT ? ND_OPT_SLL : ND_OPT_TLL);
    }
    if (proto != PROTO_ICMP)
        f->key.tp_dst = port[1];
    return 1;
}

/* A fragment is looked at as far as its headers go; none is a super-packet. */
static __always_inline int
parse_fragment(struct __sk_buff *skb, struct frame *f, int later, __u32 room)
{
    f->key.fragment = 1;
    f->where |= WHERE_FRAGMENT;
    if (skb->gso_size)
        return 0;
    if (!later)
        return parse_l4(skb, f, room);
    f->l4 = 0;
    return 1;
}

static __always_inline int
parse_ipv4(struct __sk_buff *skb, struct frame *f)
{
    struct {
        __u8 version, tos;
        __be16 total, id, fragment;
        __u8 ttl, proto;
        __be16 sum;
        __u32 src, dst;
    } ip;
    if (bpf_skb_load_bytes(skb, f->l3, &ip, sizeof ip) || ip.version >> 4 != 4)
        return 0;
    __u32 total = bpf_ntohs(ip.total), head = (ip.version & 15) * 4;
    if (!total && skb->gso_size) /* a super-packet that is longer than this can say */
        total = skb->len - f->l3;
    if (head < IPV4_HEADER || total < head || total > skb->len - f->l3)
        return 0;
    f->key.dscp = ip.tos >> 2;
    f->key.ecn = ip.tos & 3;
    f->key.proto = ip.proto;
    *(__u32 *)f->key.src = ip.src;
    *(__u32 *)f->key.dst = ip.dst;
    f->ttl = ip.ttl;
    f->where |= (head >> 2) << WHERE_IP;
    f->l4 = f->l3 + head;
    if (ip.fragment & bpf_htons(FRAGMENT))
        return parse_fragment(skb, f, ip.fragment & bpf_htons(LATER), total - head);
    return parse_l4(skb, f, total - head);
}

/* A super-packet that is longer than the IPv6 header can say: Linux puts the jumbo payload option (RFC 2675)
 * behind it, and takes it out again where it cuts. */
static __always_inline int
parse_jumbo(struct __sk_buff *skb, struct frame *f)
{
    struct {
        __u8 next, len, option, bytes;
        __be32 length;
    } hop;
    if (f->key.proto != PROTO_HOP)
        return 1;
    if (bpf_skb_load_bytes(skb, f->l4, &hop, sizeof hop) || hop.len || hop.option != JUMBO_OPTION)
        return 0;
    f->key.proto = hop.next;
    f->where += WHERE_JUMBO + ((IPV6_JUMBO >> 2) << WHERE_IP);
    f->l4 += IPV6_JUMBO;
    return 1;
}

static __always_inline int
parse_exts(struct __sk_buff *skb, struct frame *f, __u32 room)
{
    __u64 e = ofqos_exts(skb, f->l4, f->key.proto, room);
    __u32 len = exts_len(e);
    if (!e || where_ip(f->where) + len > OFFLOAD_IP_MOST)
        return 0;
    f->key.proto = exts_proto(e);
    f->key.exts = bpf_htons(exts_bits(e));
    f->where += (len >> 2) << WHERE_IP;
    f->l4 += len;
    if (exts_fragment(e))
        return parse_fragment(skb, f, exts_later(e), room - len);
    return parse_l4(skb, f, room - len);
}

static __always_inline int
parse_ipv6(struct __sk_buff *skb, struct frame *f)
{
    struct {
        __be32 head;
        __be16 length;
        __u8 next, ttl;
        __u8 addresses[32];
    } ip;
    if (bpf_skb_load_bytes(skb, f->l3, &ip, sizeof ip))
        return 0;
    __u32 head = bpf_ntohl(ip.head), room = bpf_ntohs(ip.length);
    if (head >> 28 != 6 || IPV6_HEADER + room > skb->len - f->l3)
        return 0;
    f->where |= WHERE_V6 | (IPV6_HEADER >> 2) << WHERE_IP;
    f->l4 = f->l3 + IPV6_HEADER;
    f->key.proto = ip.next;
    if (!room && skb->gso_size) {
        if (!parse_jumbo(skb, f))
            return 0;
        room = skb->len - f->l4;
    }
    f->key.dscp = head >> 22 & 0x3f;
    f->key.ecn = head >> 20 & 3;
    f->key.flabel = bpf_htonl(head & 0xfffff);
    __builtin_memcpy(f->key.src, ip.addresses, sizeof ip.addresses);
    f->ttl = ip.ttl;
    return is_ext(f->key.proto) ? parse_exts(skb, f, room) : parse_l4(skb, f, room);
}

/* As parse_arp in packet/parse.c.  The addresses go where they belong at once: all calls have 512 bytes of stack. */
static __always_inline int
parse_arp(struct __sk_buff *skb, struct frame *f)
{
    struct {
        __be16 hardware, protocol;
        __u8 sizes[2];
        __be16 op;
    } arp;
    if (bpf_skb_load_bytes(skb, f->l3, &arp, sizeof arp) || skb->len - f->l3 < ARP_HEADER)
        return 0;
    if (arp.hardware != bpf_htons(1) || arp.protocol != bpf_htons(TYPE_IPV4) || arp.sizes[0] != 6 ||
        arp.sizes[1] != 4) {
        f->key.vlan_vid &= bpf_htons((__u16)~HAS_L3);
        return 1;
    }
    f->key.tp_src = arp.op;
    return !bpf_skb_load_bytes(skb, f->l3 + ARP_SHA_AT, f->key.sha, 6) &&
           !bpf_skb_load_bytes(skb, f->l3 + ARP_SPA_AT, f->key.src, 4) &&
           !bpf_skb_load_bytes(skb, f->l3 + ARP_THA_AT, f->key.tha, 6) &&
           !bpf_skb_load_bytes(skb, f->l3 + ARP_TPA_AT, f->key.dst, 4);
}

static __always_inline int
parse_mpls(struct __sk_buff *skb, struct frame *f)
{
    __be32 shim;
    if (bpf_skb_load_bytes(skb, f->l3, &shim, sizeof shim))
        return 0;
    __u32 bits = bpf_ntohl(shim);
    f->key.mpls_label = bpf_htonl(bits >> 12);
    f->key.mpls_tc = bits >> 9 & 7;
    f->key.mpls_bos = bits >> 8 & 1;
    f->ttl = bits & 0xff;
    return 1;
}

/* Shorter ones, which user space handles, are none that a pop leaves something of (edit.h). */
static __always_inline int
parse_pbb(struct __sk_buff *skb, struct frame *f)
{
    __u8 tag[PBB_ITAG];
    if (skb->len - f->l3 < PBB_LEAST || bpf_skb_load_bytes(skb, f->l3, tag, sizeof tag))
        return 0;
    __builtin_memcpy(f->key.isid, tag + 1, sizeof f->key.isid);
    return 1;
}

/* ------------------------------------------------------------------ the frame */

static __always_inline int
is_vlan(__be16 type)
{
    return type == bpf_htons(TYPE_VLAN) || type == bpf_htons(TYPE_SVLAN);
}

/* Of other types the key has only what is in front. */
static __always_inline int
parse_type(struct __sk_buff *skb, struct frame *f, __be16 type)
{
    if (type == bpf_htons(TYPE_IPV4))
        return parse_ipv4(skb, f);
    if (type == bpf_htons(TYPE_IPV6))
        return parse_ipv6(skb, f);
    f->ttl = 255;
    if (type == bpf_htons(TYPE_ARP) || type == bpf_htons(TYPE_RARP))
        return parse_arp(skb, f);
    if (type == bpf_htons(TYPE_MPLS) || type == bpf_htons(TYPE_MPLS_MC))
        return parse_mpls(skb, f);
    if (type == bpf_htons(TYPE_PBB))
        return parse_pbb(skb, f);
    f->key.vlan_vid &= bpf_htons((__u16)~HAS_L3);
    return bpf_ntohs(type) >= TYPE_LEAST && !is_vlan(type) && type != bpf_htons(TYPE_OLD_VLAN);
}

/* As look_inside of packet/parse.c: next_is, with the type itself if there is nothing to see.  Not static, as
 * ofqos_next_layer. */
__noinline __u64
ofqos_look_inside(struct __sk_buff *skb, __u32 at, __u32 type, __u32 inside)
{
    __u8 h[PPPOE_HEADER];
    if (type == TYPE_PPPOE && inside & INSIDE_PPPOE) {
        if (bpf_skb_load_bytes(skb, at, h, sizeof h) || half_at(h, 0) != 0x1100 ||
            half_at(h, 4) > skb->len - at - 6)
            return next_is(type, 0);
        __u32 proto = half_at(h, 6);
        return proto == PPP_IPV4   ? next_is(TYPE_IPV4, PPPOE_HEADER)
               : proto == PPP_IPV6 ? next_is(TYPE_IPV6, PPPOE_HEADER)
                                   : next_is(type, 0);
    }
    if ((type != TYPE_MPLS && type != TYPE_MPLS_MC) || !(inside & INSIDE_MPLS))
        return next_is(type, 0);
    for (__u32 i = 0; i < LABELS; i++) {
        if (bpf_skb_load_bytes(skb, at + i * 4, h, 5))
            break;
        if (h[2] & 1)
            return h[4] >> 4 == 4   ? next_is(TYPE_IPV4, (i + 1) * 4)
                   : h[4] >> 4 == 6 ? next_is(TYPE_IPV6, (i + 1) * 4)
                                    : next_is(type, 0);
    }
    return next_is(type, 0);
}

/* False: a kind of frame that user space handles.  inside: as struct offload_port has it.  Little is kept while a type's
 * bytes are read: all calls have 512 bytes of stack, and Linux 6.1 counts each in steps of 32. */
static __always_inline int
parse(struct __sk_buff *skb, struct frame *f, __u32 inside)
{
    if (bpf_skb_load_bytes(skb, 0, f->key.eth, ETH_HEADER)) /* and the type, which follows */
        return 0;
    f->l3 = ETH_HEADER;
    f->key.vlan_vid = bpf_htons(HAS_L3);
    if (skb->vlan_present) {
        __u32 tci = skb->vlan_tci;
        f->key.vlan_vid = bpf_htons((tci & 0xfff) | VID_PRESENT | HAS_L3);
        f->key.pcp = tci >> 13 & 7;
        f->where = WHERE_TAG;
        if (is_vlan(f->key.eth_type)) { /* a second tag: the key has only the outermost */
            if (bpf_skb_load_bytes(skb, ETH_HEADER + 2, &f->key.eth_type, 2))
                return 0;
            f->l3 += VLAN_TAG;
            f->where = 2 * WHERE_TAG;
        }
    }
    if (skb->gso_size)
        f->where |= (__u8)layers_of(skb, bpf_ntohs(f->key.eth_type), f->l3);
    __u64 in = ofqos_look_inside(skb, f->l3, bpf_ntohs(f->key.eth_type), inside);
    f->where |= (__u32)in / 4 << WHERE_AROUND;
    f->l3 += (__u32)in;
    f->key.eth_type = bpf_htons(in >> 32);
    f->key.in_if = skb->ifindex;
    return skb->len > f->l3 && parse_type(skb, f, f->key.eth_type);
}

#endif
