/* SPDX-License-Identifier: Apache-2.0 */
/* What is behind an IPv6 header before the transport's, and in neighbour discovery.  Neither function is static, so
 * that the verifier looks at each once. */
#ifndef OFFLOAD_BPF_EXTS_H
#define OFFLOAD_BPF_EXTS_H

#include "layers.h"

#define PROTO_FRAGMENT 44
#define PROTO_ESP      50
#define PROTO_AH       51
#define PROTO_NONE     59

#define EXT_UNIT   8      /* bytes */
#define EXT_MORE   0xfff9 /* of a fragment header: it is a fragment, */
#define EXT_OFFSET 0xfff8 /* and not the first */

/* As OFPIEH_ in OpenFlow. */
#define EXT_NONE_BIT     (1 << 0)
#define EXT_ESP_BIT      (1 << 1)
#define EXT_AH_BIT       (1 << 2)
#define EXT_OPTIONS_BIT  (1 << 3)
#define EXT_FRAGMENT_BIT (1 << 4)
#define EXT_ROUTING_BIT  (1 << 5)
#define EXT_HOP_BIT      (1 << 6)

#define ND_HEADER  24
#define ND_OPT_SLL 1
#define ND_OPT_TLL 2
#define ND_OPTIONS 4 /* that are looked at */

static __always_inline int
is_ext(__u8 proto)
{
    const __u64 exts = 1ull << PROTO_HOP | 1ull << PROTO_ROUTING | 1ull << PROTO_FRAGMENT |
                       1ull << PROTO_ESP | 1ull << PROTO_AH | 1ull << PROTO_NONE |
                       1ull << PROTO_OPTIONS;
    return proto < 64 && exts >> proto & 1;
}

/* ------------------------------------------------------------------ what ofqos_exts returns */

/* The next protocol: 8 bits, length: 8, EXT_: 16, a fragment: 1, not the first: 1, and that it is valid: 1. */
#define EXTS_FRAGMENT (1ull << 32)
#define EXTS_LATER    (1ull << 33)
#define EXTS_VALID    (1ull << 34)

static __always_inline __u8
exts_proto(__u64 e)
{
    return e;
}

static __always_inline __u32
exts_len(__u64 e)
{
    return e >> 8 & 0xff;
}

static __always_inline __u16
exts_bits(__u64 e)
{
    return e >> 16;
}

static __always_inline int
exts_fragment(__u64 e)
{
    return !!(e & EXTS_FRAGMENT);
}

static __always_inline int
exts_later(__u64 e)
{
    return !!(e & EXTS_LATER);
}

/* ------------------------------------------------------------------ extension headers */

/* The header's rank in the usual order (packet/headers.c), and << 8 its bit; 0: it is none. */
static __always_inline __u32
rank_of(__u32 proto, __u32 before)
{
    switch (proto) {
    case PROTO_HOP: return 1 | EXT_HOP_BIT << 8;
    case PROTO_ROUTING: return 3 | EXT_ROUTING_BIT << 8;
    case PROTO_FRAGMENT: return 4 | EXT_FRAGMENT_BIT << 8;
    case PROTO_AH: return 5 | EXT_AH_BIT << 8;
    case PROTO_ESP: return 6 | EXT_ESP_BIT << 8;
    case PROTO_OPTIONS: return (before < 2 ? 2 : 7) | EXT_OPTIONS_BIT << 8;
    default: return 0;
    }
}

/* The chain of headers that begins at `at` with this protocol.  0: user space is to look: it is out of order,
 * repeated, malformed, has many, or hops to go. */
__noinline __u64
ofqos_exts(struct __sk_buff *skb, __u32 at, __u32 proto, __u32 room)
{
    __u32 len = 0, before = 0;
    __u64 found = EXTS_VALID;
    for (int i = 0; i <= OFFLOAD_EXTS; i++) {
        __u8 h[4];
        __u32 rank = rank_of(proto, before);
        if (proto == PROTO_NONE)
            found |= EXT_NONE_BIT << 16;
        found |= (__u64)(rank >> 8) << 16;
        if (!rank || proto == PROTO_ESP)
            return (rank & 0xff) > before || !rank ? found | len << 8 | proto : 0;
        if ((rank & 0xff) <= before || room - len < EXT_UNIT ||
            bpf_skb_load_bytes(skb, at + len, h, sizeof h))
            return 0;
        __u32 n = proto == PROTO_FRAGMENT ? EXT_UNIT
                  : proto == PROTO_AH     ? (h[1] + 2) * 4
                                          : (h[1] + 1) * EXT_UNIT;
        if (n > room - len || n < EXT_UNIT || len + n > OFFLOAD_IP_MOST ||
            (proto == PROTO_ROUTING && h[3]))
            return 0;
        __u32 offset = proto == PROTO_FRAGMENT ? half_at(h, 2) : 0;
        if (offset & EXT_MORE)
            found |= EXTS_FRAGMENT;
        before = rank & 0xff;
        len += n;
        proto = h[0];
        if (offset & EXT_OFFSET)
            return found | EXTS_LATER | len << 8 | proto;
    }
    return 0;
}

/* ------------------------------------------------------------------ neighbour discovery */

/* Whether the message is well-formed as far as user space looks (parse_nd in packet/parse.c): to the first option
 * of the kind.  0 also where that is behind many others. */
__noinline int
ofqos_nd(struct __sk_buff *skb, __u32 at, __u32 room, __u32 kind)
{
    __u32 done = ND_HEADER;
    if (room < ND_HEADER)
        return 0;
#pragma clang loop unroll(disable) /* the filter has to be short (set_filter in kernel-attach.c) */
    for (int i = 0; i <= ND_OPTIONS; i++) {
        __u8 o[2];
        if (room - done < EXT_UNIT)
            return 1;
        if (bpf_skb_load_bytes(skb, at + done, o, sizeof o))
            return 0;
        __u32 n = o[1] * EXT_UNIT;
        if (!n || n > room - done)
            return 0;
        if (o[0] == kind && n == EXT_UNIT)
            return 1;
        done += n;
    }
    return 0;
}

#endif
