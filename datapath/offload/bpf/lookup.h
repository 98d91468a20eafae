/* SPDX-License-Identifier: Apache-2.0 */
/* From a frame to its key, and from the key to an entry. */
#ifndef OFFLOAD_BPF_LOOKUP_H
#define OFFLOAD_BPF_LOOKUP_H

#include "maps.h"

#define ETH_HEADER   14
#define TYPE_AT      12
#define VLAN_TAG     4
#define IPV4_HEADER  20
#define IPV6_HEADER  40
#define FRAGMENT     0x3fff /* more of them, or one that is not the first */
#define VID_PRESENT  0x1000
#define HAS_L3       0x8000 /* packet/key.h */
#define HAS_L4       0x4000
#define ND_FIRST     133 /* router solicitation to redirect */
#define ND_LAST      137
#define PROTO_ICMP   1
#define PROTO_TCP    6
#define PROTO_UDP    17
#define PROTO_ICMPV6 58
#define PROTO_SCTP   132

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
        __be32 flabel;
        __u32 zero1;
        __u8 src[16], dst[16];
    };
};

/* What both programs must know of a frame; the filter tells the other one in 32 bits. */
struct frame {
    union key key;
    __u32 l3, l4; /* offsets, without the outermost tag, which is beside the bytes */
    __u32 header; /* bytes in front of the payload; 0: not a super-packet */
    __u32 ttl;
    __u32 tags;
};

/* l4: 7 bits, header: 8, tags: 2, IPv6: 1, protocol: 8. */
static __always_inline __u32
where_of(const struct frame *f)
{
    return f->l4 | f->header << 7 | f->tags << 15 | (f->l4 - f->l3 == IPV6_HEADER) << 17 |
           (__u32)f->key.proto << 18;
}

static __always_inline __u32
where_l4(__u32 where)
{
    return where & 0x7f;
}

static __always_inline __u32
where_header(__u32 where)
{
    return where >> 7 & 0xff;
}

static __always_inline __u32
where_tags(__u32 where)
{
    return where >> 15 & 3;
}

static __always_inline int
where_is_v6(__u32 where)
{
    return where >> 17 & 1;
}

static __always_inline __u32
where_proto(__u32 where)
{
    return where >> 18 & 0xff;
}

/* ------------------------------------------------------------------ parsing */

/* The transport's fields, as parse_l4 in packet/parse.c has them.  False: user space is to look. */
static __always_inline int
parse_l4(struct __sk_buff *skb, struct frame *f, __u32 room)
{
    __u8 proto = f->key.proto, v6 = f->l4 - f->l3 == IPV6_HEADER;
    __be16 port[2];
    __u32 least = proto == PROTO_TCP ? 20 : proto == PROTO_UDP ? 8 : proto == PROTO_SCTP ? 12 : 4;
    if (proto != PROTO_TCP && proto != PROTO_UDP && proto != PROTO_SCTP &&
        proto != (v6 ? PROTO_ICMPV6 : PROTO_ICMP))
        return !v6; /* IPv6: it may be an extension header */
    if (room < least || bpf_skb_load_bytes(skb, f->l4, port, sizeof port))
        return 0;
    f->key.vlan_vid |= bpf_htons(HAS_L4);
    f->key.tp_src = port[0];
    if (proto == PROTO_ICMP || proto == PROTO_ICMPV6) {
        __u8 type = bpf_ntohs(port[0]) >> 8;
        return !v6 || type < ND_FIRST || type > ND_LAST;
    }
    f->key.tp_dst = port[1];
    if (!skb->gso_size)
        return 1;
    f->header = f->l4 + least;
    if (proto == PROTO_TCP) {
        __u8 offset;
        if (bpf_skb_load_bytes(skb, f->l4 + 12, &offset, 1) || (offset >> 2) < 20)
            return 0;
        f->header = f->l4 + (offset >> 2);
    }
    return proto != PROTO_SCTP;
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
    if (bpf_skb_load_bytes(skb, f->l3, &ip, sizeof ip) || ip.version != 0x45 ||
        ip.fragment & bpf_htons(FRAGMENT))
        return 0;
    __u32 total = bpf_ntohs(ip.total);
    if (total < IPV4_HEADER || total > skb->len - f->l3)
        return 0;
    f->key.dscp = ip.tos >> 2;
    f->key.ecn = ip.tos & 3;
    f->key.proto = ip.proto;
    *(__u32 *)f->key.src = ip.src;
    *(__u32 *)f->key.dst = ip.dst;
    f->ttl = ip.ttl;
    f->l4 = f->l3 + IPV4_HEADER;
    return parse_l4(skb, f, total - IPV4_HEADER);
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
    f->key.dscp = head >> 22 & 0x3f;
    f->key.ecn = head >> 20 & 3;
    f->key.proto = ip.next;
    f->key.flabel = bpf_htonl(head & 0xfffff);
    __builtin_memcpy(f->key.src, ip.addresses, sizeof ip.addresses);
    f->ttl = ip.ttl;
    f->l4 = f->l3 + IPV6_HEADER;
    return parse_l4(skb, f, room);
}

static __always_inline int
is_vlan(__be16 type)
{
    return type == bpf_htons(0x8100) || type == bpf_htons(0x88a8);
}

/* False: a kind of frame that user space handles. */
static __always_inline int
parse(struct __sk_buff *skb, struct frame *f)
{
    struct {
        __u8 eth[12];
        __be16 type;
    } head;
    if (bpf_skb_load_bytes(skb, 0, &head, sizeof head))
        return 0;
    f->l3 = ETH_HEADER;
    if (skb->vlan_present) {
        __u32 tci = skb->vlan_tci;
        f->key.vlan_vid = bpf_htons((tci & 0xfff) | VID_PRESENT);
        f->key.pcp = tci >> 13 & 7;
        f->tags = 1;
        if (is_vlan(head.type)) { /* a second tag: the key has only the outermost */
            if (bpf_skb_load_bytes(skb, ETH_HEADER + 2, &head.type, 2))
                return 0;
            f->l3 += VLAN_TAG;
            f->tags = 2;
        }
    }
    __builtin_memcpy(f->key.eth, head.eth, sizeof head.eth);
    f->key.eth_type = head.type;
    f->key.vlan_vid |= bpf_htons(HAS_L3);
    f->key.in_if = skb->ifindex;
    if (skb->len <= f->l3)
        return 0;
    return head.type == bpf_htons(0x0800)   ? parse_ipv4(skb, f)
           : head.type == bpf_htons(0x86dd) ? parse_ipv6(skb, f)
                                            : 0;
}

/* ------------------------------------------------------------------ finding */

/* As key_hash_words of packet/key-hash.h. */
static __always_inline __u32
hash_under(const struct offload_control *c, const struct offload_mask *m, const union key *key)
{
    __u64 sum = c->hash_sum;
#pragma unroll
    for (int i = 0; i < OFFLOAD_WORDS; i++) {
        __u64 w = key->w[i] & m->bits[i];
        sum += (c->hash_word[i][0] + (__u32)w) * (c->hash_word[i][1] + (w >> 32));
    }
    __u32 h = sum >> 32;
    h = (h ^ h >> 15) * 0x2c1b3c6du;
    return h ^ h >> 16;
}

static __always_inline int
is_entry_of(const struct offload_entry *e, const struct offload_mask *m, const union key *key)
{
    __u64 diff = 0;
#pragma unroll
    for (int i = 0; i < OFFLOAD_WORDS; i++)
        diff |= (key->w[i] & m->bits[i]) ^ e->key[i];
    return !diff && e->state == OFFLOAD_LIVE;
}

/* The entry of the key under the i-th mask; its number in *id. */
static __always_inline struct offload_entry *
find_under(const struct offload_control *c, __u32 i, const union key *key, __u32 *id)
{
    const struct offload_mask *m = &c->mask[i];
    if (!m->used)
        return 0;
    __u32 hash = hash_under(c, m, key), place = hash & c->sets;
    const struct offload_set *s = bpf_map_lookup_elem(&sets, &place);
    if (!s)
        return 0;
    for (int k = 0; k < OFFLOAD_WAYS; k++) {
        __u64 way = *(const volatile __u64 *)&s->way[k];
        if (way >> 32 != hash || !(__u32)way)
            continue;
        *id = (__u32)way - 1;
        struct offload_entry *e = bpf_map_lookup_elem(&entries, id);
        if (e && e->mask == i && is_entry_of(e, m, key))
            return e;
    }
    return 0;
}

/* The number + 1 of the key's entry, or 0.  Not static: the verifier then looks at it once. */
__noinline __u32
ofqos_find(const union key *key)
{
    const struct offload_control *c = the_control();
    __u32 id = 0;
    if (!c || !key)
        return 0;
    for (__u32 i = 0; i < OFFLOAD_MASKS; i++) {
        if (i >= c->n_masks)
            break;
        if (find_under(c, i, key, &id))
            return id + 1;
    }
    return 0;
}

static __always_inline struct offload_entry *
find(const union key *key, __u32 *id)
{
    __u32 found = ofqos_find(key);
    *id = found - 1;
    return found ? bpf_map_lookup_elem(&entries, id) : 0;
}

/* User space still has earlier packets of the entry, which this one must not overtake.  A long
 * stream may never let it: so there is an end. */
static __always_inline int
is_held(struct offload_entry *e, struct offload_port *p)
{
    if (e->hold_n >= OFFLOAD_HOLD)
        return 0;
    __u64 passed = *(volatile __u64 *)&p->passed, last = e->hold_last ? e->hold_last : passed;
    if ((__s64)(*(volatile __u64 *)&p->done - last) >= 0) {
        e->hold_n = OFFLOAD_HOLD;
        return 0;
    }
    e->hold_last = passed + 1;
    return ++e->hold_n < OFFLOAD_HOLD;
}

/* Too long for where it goes, or its TTL runs out: user space cuts, drops and tells. */
static __always_inline int
is_beyond(struct __sk_buff *skb, const struct frame *f, const struct offload_entry *e)
{
    __u32 len = skb->len + (f->tags ? VLAN_TAG : 0);
    if (f->ttl < e->min_ttl)
        return 1;
    if (!skb->gso_size)
        return len > e->longest;
    return !f->header || len > e->super ||
           f->header + (f->tags ? VLAN_TAG : 0) + skb->gso_size > e->longest;
}

#endif
