/* SPDX-License-Identifier: Apache-2.0 */
/* The headers of a frame, and how far they go in front of a super-packet's payload. */
#ifndef OFFLOAD_BPF_LAYERS_H
#define OFFLOAD_BPF_LAYERS_H

#include "maps.h"

#define ETH_HEADER    14
#define TYPE_AT       12
#define VLAN_TAG      4
#define IPV4_HEADER   20
#define IPV6_HEADER   40
#define IPV6_JUMBO    8 /* a hop-by-hop header with the jumbo payload option */
#define JUMBO_OPTION  0xc2
#define ARP_HEADER    28
#define ARP_SHA_AT    8
#define ARP_SPA_AT    14
#define ARP_THA_AT    18
#define ARP_TPA_AT    24
#define UDP_HEADER    8
#define SCTP_HEADER   12
#define UDP_SUM_AT    6
#define TCP_FLAGS_AT  13
#define TCP_ENDS      0x05   /* FIN, RST */
#define FRAGMENT      0x3fff /* more of them, or one that is not the first */
#define LATER         0x1fff /* not the first */
#define VID_PRESENT   0x1000
#define HAS_L3        0x8000 /* packet/key.h */
#define HAS_L4        0x4000
#define ND_SOLICIT    135
#define ND_ADVERT     136
#define TYPE_IPV4     0x0800
#define TYPE_ETH      0x6558 /* a frame in a tunnel */
#define TYPE_LEAST    0x0600 /* below it is a length (802.3) */
#define TYPE_ARP      0x0806
#define TYPE_RARP     0x8035
#define TYPE_VLAN     0x8100
#define TYPE_IPV6     0x86dd
#define TYPE_MPLS     0x8847
#define TYPE_MPLS_MC  0x8848
#define TYPE_SVLAN    0x88a8
#define TYPE_PBB      0x88e7
#define PBB_ITAG      4
#define PBB_PUSH      (ETH_HEADER + PBB_ITAG)
#define PBB_LEAST     (PBB_PUSH + IPV4_HEADER)
#define TYPE_PPPOE    0x8864
#define PPPOE_HEADER  8
#define PPP_IPV4      0x0021
#define PPP_IPV6      0x0057
#define INSIDE_PPPOE  1 /* packet/packet.h */
#define INSIDE_MPLS   2
#define LABELS        4
#define MPLS_BOS      0x100
#define TYPE_OLD_VLAN 0x9100
#define PROTO_HOP     0
#define PROTO_ICMP    1
#define PROTO_IPIP    4
#define PROTO_TCP     6
#define PROTO_UDP     17
#define PROTO_IPV6    41
#define PROTO_ROUTING 43
#define PROTO_GRE     47
#define PROTO_ICMPV6  58
#define PROTO_OPTIONS 60
#define PROTO_SCTP    132

#define GSO_BY_FRAGS 0xffff /* in place of a size: each segment has its own (SCTP) */

#define LAYERS   10              /* of headers in headers */
#define PROTO(p) (0x10000 | (p)) /* beside EtherTypes */
#define SCANNED  128 /* bytes behind a UDP header in which a tunnel's packet may begin */

static __always_inline __u32
half_at(const __u8 *h, int at)
{
    return (__u32)h[at] << 8 | h[at + 1];
}

static __always_inline __u64
next_is(__u32 layer, __u32 len)
{
    return (__u64)layer << 32 | len;
}

/* ------------------------------------------------------------------ what is in a datagram */

/* A datagram's payload, as far as it is looked at. */
struct payload {
    __u8 h[SCANNED];
};

static __always_inline int
may_be_next(__u8 proto)
{
    return proto == PROTO_TCP || proto == PROTO_UDP || proto == PROTO_SCTP || proto == PROTO_IPIP ||
           proto == PROTO_IPV6 || proto == PROTO_GRE;
}

/* As next_is: what begins at the first place behind which exactly as much follows as its header says.  0:
 * nothing does.  n: bytes of *p; left: of the datagram.  Not static, so that the verifier looks at
 * it once. */
__noinline __u64
ofqos_inside(const struct payload *p, __u32 n, __u32 left)
{
    if (!p)
        return 0;
    for (__u32 i = 0; i <= SCANNED - 10; i += 2) {
        const __u8 *h = p->h + i;
        if (i + 10 > n)
            return 0;
        if (h[0] >> 4 == 4 && (h[0] & 15) >= 5 && half_at(h, 2) == left - i && may_be_next(h[9]))
            return next_is(TYPE_IPV4, i);
        if (h[0] >> 4 == 6 && half_at(h, 4) + IPV6_HEADER == left - i && may_be_next(h[6]))
            return next_is(TYPE_IPV6, i);
    }
    return 0;
}

/* The packet in the payload that begins at `at`; 0: none, so it is no tunnel's.  Any port may be a tunnel's
 * (VXLAN, Geneve, GUE, FOU, bareudp), so only the lengths tell. */
static __noinline __u64
inside_of(struct __sk_buff *skb, __u32 at)
{
    struct payload p = {};
    __u32 left = skb->len - at, n = left;
    if (at >= skb->len)
        return 0;
    if (n > SCANNED)
        n = SCANNED;
    asm volatile("" : "+r"(n)); /* Linux 6.1's verifier has forgotten the bound */
    if (n < 10 || n > SCANNED || bpf_skb_load_bytes(skb, at, p.h, n))
        return 0;
    return ofqos_inside(&p, n, left);
}

/* ------------------------------------------------------------------ super-packets */

/* Room for a header's first bytes, as far as they tell what comes next. */
struct layer {
    __u8 h[ETH_HEADER];
};

/* The kind of header that comes next, << 32 (0: unknown, 1: the payload), and this one's length.
 * Not static, as ofqos_inside: so the verifier doesn't look at it for each way through the loop
 * below. */
__noinline __u64
ofqos_next_layer(const struct layer *l, __u32 layer)
{
    if (!l)
        return 0;
    const __u8 *h = l->h;
    switch (layer) {
    case TYPE_IPV4: return next_is(PROTO(h[9]), (h[0] & 15) * 4);
    case TYPE_IPV6: return next_is(PROTO(h[6]), IPV6_HEADER);
    case TYPE_ETH: return next_is(half_at(h, TYPE_AT), ETH_HEADER);
    case TYPE_VLAN:
    case TYPE_SVLAN: return next_is(half_at(h, 2), VLAN_TAG);
    case TYPE_PBB: return next_is(TYPE_ETH, 4);
    case TYPE_MPLS:
    case TYPE_MPLS_MC:
        layer = !(h[2] & 1) ? layer : h[4] >> 4 == 4 ? TYPE_IPV4 : h[4] >> 4 == 6 ? TYPE_IPV6 : 0;
        return next_is(layer, 4);
    case PROTO(PROTO_IPIP): return next_is(TYPE_IPV4, 0);
    case PROTO(PROTO_IPV6): return next_is(TYPE_IPV6, 0);
    case PROTO(PROTO_GRE): /* checksum, key and sequence number, if they are there */
        if (h[1] & 7)
            return 0;
        return next_is(half_at(h, 2), 4 + (h[0] >> 5 & 4) + (h[0] >> 3 & 4) + (h[0] >> 2 & 4));
    case PROTO(PROTO_HOP):
    case PROTO(PROTO_ROUTING):
    case PROTO(PROTO_OPTIONS): return next_is(PROTO(h[0]), 8 + h[1] * 8);
    case PROTO(PROTO_TCP): return next_is(1, (h[12] >> 4) * 4);
    case PROTO(PROTO_SCTP): return next_is(1, SCTP_HEADER);
    default: return 0;
    }
}

/* The bytes in front of a super-packet's payload, which each of its segments has (0: not known), and << 32 the
 * transport whose payload it is. */
static __noinline __u64
layers_of(struct __sk_buff *skb, __u32 layer, __u32 at)
{
    __u32 last = 0;
    for (int i = 0; i < LAYERS && layer > 1; i++) {
        struct layer l;
        __u64 next = 0;
        last = layer;
        if (layer == PROTO(PROTO_UDP)) {
            at += UDP_HEADER;
            next = inside_of(skb, at);
            next = next ? next : next_is(1, 0);
        } else if (bpf_skb_load_bytes(skb, at, l.h, sizeof l.h)) {
            return 0;
        } else {
            next = ofqos_next_layer(&l, layer);
        }
        layer = next >> 32;
        at += (__u32)next;
    }
    return layer == 1 && at < 256 ? next_is(last, at) : 0;
}

#endif
