/* SPDX-License-Identifier: Apache-2.0 */
/* What entries do to packets.  Checksums follow the edits, whole and partial ones.  Functions return
 * 0, or not: there was no memory. */
#ifndef OFFLOAD_BPF_EDIT_H
#define OFFLOAD_BPF_EDIT_H

#include "lookup.h"

#define IPV4_TOS_AT  0 /* two bytes: with the version */
#define IPV4_TTL_AT  8 /* two bytes: with the protocol */
#define IPV4_SUM_AT  10
#define IPV4_SRC_AT  12
#define IPV6_TTL_AT  7
#define IPV6_SRC_AT  8
#define MPLS_TTL_AT  3
#define TCP_SUM_AT   16
#define ICMP6_SUM_AT 2

/* The outermost tag is beside the bytes. */
static __always_inline __u32
l3_of(const struct offload_at *at)
{
    return where_l3(at->where, at->tags);
}

static __always_inline __u32
l4_of(const struct offload_at *at)
{
    return l3_of(at) + where_ip(at->where);
}

/* Where the transport's checksum is; 0: it has none that covers addresses and ports. */
static __always_inline __u32
sum_at(const struct offload_at *at)
{
    switch (where_proto(at->where)) {
    case PROTO_TCP: return l4_of(at) + TCP_SUM_AT;
    case PROTO_UDP: return l4_of(at) + UDP_SUM_AT;
    case PROTO_ICMPV6: return where_is_v6(at->where) ? l4_of(at) + ICMP6_SUM_AT : 0;
    default: return 0;
    }
}

/* UDP without a checksum stays so, and a sum of 0 is written as its other form. */
static __always_inline __u64
sum_flags(const struct offload_at *at)
{
    return where_proto(at->where) == PROTO_UDP ? BPF_F_MARK_MANGLED_0 : 0;
}

/* Must the program itself keep the checksum right (lookup.h, tell_sum)?  The kernel does where it has checked
 * the sum, or has it of the whole frame: then none is partial. */
static __always_inline int
is_whole(struct __sk_buff *skb, const struct offload_at *at)
{
    return where_whole(at->where) && bpf_csum_level(skb, BPF_CSUM_LEVEL_QUERY) < 0 &&
           (__s64)bpf_csum_update(skb, 0) < 0;
}

static __noinline int
set_eth(struct __sk_buff *skb, __u32 at, __u64 value)
{
    return bpf_skb_store_bytes(skb, at & 6, &value, 6, 0);
}

/* A frame has at least 60 bytes on the wire, also behind a veth or a pop (port/send.c). */
static __always_inline int
pad(struct __sk_buff *skb)
{
    __u32 least = 60 - (skb->vlan_present ? VLAN_TAG : 0);
    return skb->len >= least || skb->gso_size ? 0 : bpf_skb_change_tail(skb, least, 0);
}

/* Sends a copy as it is. */
static __noinline int
queue_copy(struct __sk_buff *skb, __u32 ifindex, __u32 priority)
{
    __u32 was = skb->priority;
    skb->priority = priority;
    int err = bpf_clone_redirect(skb, ifindex, 0);
    skb->priority = was;
    return err < 0 ? err : 0;
}

/* Sends a copy.  What its port's queue drops (a positive result) concerns no other output.  The padding
 * is the copy's alone: edits that follow may make the frame longer. */
static __noinline int
output_copy(struct __sk_buff *skb, __u32 ifindex, __u32 priority)
{
    __u32 len = skb->len;
    if (pad(skb))
        return -1;
    int err = queue_copy(skb, ifindex, priority);
    return skb->len != len && bpf_skb_change_tail(skb, len, 0) ? -1 : err;
}

static __noinline int
push_vlan(struct __sk_buff *skb, __u32 type)
{
    __u16 tci = skb->vlan_present ? skb->vlan_tci : 0;
    return bpf_skb_vlan_push(skb, bpf_htons(type), tci & ~0x1000);
}

static __noinline int
set_vlan(struct __sk_buff *skb, __u32 bits, __u32 value)
{
    if (!skb->vlan_present)
        return 0;
    __u16 tci = (skb->vlan_tci & ~bits) | value, type = skb->vlan_proto;
    int err = bpf_skb_vlan_pop(skb);
    return err ? err : bpf_skb_vlan_push(skb, type, tci);
}

/* ------------------------------------------------------------------ labels
 *
 * No helper makes room in any frame, or tells the kernel that the frame is of another type now: its queueing
 * disciplines and drivers go by that.  Pushing and popping VLAN tags does both: a tag that is not the last one is
 * in the bytes, and where the kernel takes one out of them, the type behind it becomes the frame's.  So what is to be
 * there is written over tags before they are popped. */

/* The new label takes what the outermost one has, else the IP header's TTL (new_shim in packet/tags.c). */
static __always_inline int
new_label(struct __sk_buff *skb, __u32 l3, __u32 behind, __be32 *label)
{
    __u8 ttl;
    if (behind == TYPE_MPLS || behind == TYPE_MPLS_MC) {
        if (bpf_skb_load_bytes(skb, l3, label, sizeof *label))
            return -1;
        *label &= ~bpf_htonl(MPLS_BOS);
        if (skb->vlan_present)
            *label |= bpf_htonl(MPLS_BOS);
        return 0;
    }
    *label = bpf_htonl(MPLS_BOS);
    if (behind != TYPE_IPV4 && behind != TYPE_IPV6)
        return 0;
    if (bpf_skb_load_bytes(skb, l3 + (behind == TYPE_IPV6 ? IPV6_TTL_AT : IPV4_TTL_AT), &ttl, 1))
        return -1;
    *label = bpf_htonl(MPLS_BOS | ttl);
    return 0;
}

/* Puts n tags, two at least, in front of the frame; the last one is beside the bytes.  Since Linux 6.10 and in later
 * releases of older series, the kernel's checksum of the frame has the others; before, it begins behind them: the
 * last one of them tells, as it changes the sum.  Negative: there was no memory; else flags to write over them. */
static __always_inline int
push_tags(struct __sk_buff *skb, int n)
{
    for (int i = 1; i < n; i++)
        if (bpf_skb_vlan_push(skb, bpf_htons(TYPE_VLAN), 0))
            return -1;
    __s64 sum = bpf_csum_update(skb, 0);
    if (bpf_skb_vlan_push(skb, bpf_htons(TYPE_VLAN), 0))
        return -1;
    return (__s64)bpf_csum_update(skb, 0) == sum ? 0 : BPF_F_RECOMPUTE_CSUM;
}

/* Tags that were put aside, the outermost one first.  0: there is none */
struct aside {
    __u32 tag[4]; /* type, TCI */
};

static __always_inline int
tag_aside(struct __sk_buff *skb, __u32 *tag)
{
    *tag = 0;
    if (!skb->vlan_present)
        return 0;
    *tag = (__u32)skb->vlan_proto << 16 | (skb->vlan_tci & 0xffff);
    return bpf_skb_vlan_pop(skb);
}

static __always_inline int
tag_back(struct __sk_buff *skb, __u32 tag)
{
    return tag ? bpf_skb_vlan_push(skb, tag >> 16, tag & 0xffff) : 0;
}

static __always_inline int
put_aside(struct __sk_buff *skb, struct aside *a)
{
    return tag_aside(skb, &a->tag[0]) || tag_aside(skb, &a->tag[1]) || tag_aside(skb, &a->tag[2]) ||
           tag_aside(skb, &a->tag[3]);
}

static __always_inline int
put_back(struct __sk_buff *skb, const struct aside *a)
{
    return tag_back(skb, a->tag[3]) || tag_back(skb, a->tag[2]) || tag_back(skb, a->tag[1]) ||
           tag_back(skb, a->tag[0]);
}

/* The frame, which has no tag, is of this type now: addresses, type of a TAG, type  */
static __always_inline int
set_type(struct __sk_buff *skb, __be16 type)
{
    int flags = push_tags(skb, 2);
    return flags < 0 || bpf_skb_store_bytes(skb, ETH_HEADER + 2, &type, sizeof type, flags) ||
           bpf_skb_vlan_pop(skb) || bpf_skb_vlan_pop(skb);
}

/* The kernel cuts a super-packet behind labels if it knows where these begin and where the IP header is.  The helper
 * that makes room for an IP header in front of another one tells it so; the type that follows says that it is a label.
 * In front of another label the frame says for a moment that it is IPv4.
 * addresses, TAG, type, room  ->  addresses, TAG, type of the label, label */
static __always_inline int
push_mpls_super(struct __sk_buff *skb, struct offload_at *at, __be16 type, __u32 behind,
                __be32 label)
{
    __u64 in = behind == TYPE_IPV4   ? BPF_F_ADJ_ROOM_ENCAP_L3_IPV4
               : behind == TYPE_IPV6 ? BPF_F_ADJ_ROOM_ENCAP_L3_IPV6
                                     : 0;
    if ((!in && set_type(skb, bpf_htons(TYPE_IPV4))) ||
        bpf_skb_adjust_room(skb, sizeof label, BPF_ADJ_ROOM_MAC,
                            in | BPF_F_ADJ_ROOM_FIXED_GSO | BPF_F_ADJ_ROOM_NO_CSUM_RESET))
        return -1;
    int flags = push_tags(skb, 2);
    if (flags < 0 || bpf_skb_store_bytes(skb, ETH_HEADER + 2, &type, 2, flags) ||
        bpf_skb_store_bytes(skb, ETH_HEADER + VLAN_TAG, &label, sizeof label,
                            BPF_F_RECOMPUTE_CSUM) ||
        bpf_skb_vlan_pop(skb))
        return -1;
    at->summed = BPF_F_RECOMPUTE_CSUM;
    return bpf_skb_vlan_pop(skb);
}

/* addresses, TAG, TAG, type  ->  addresses, TAG, type of the label, label, type.  The type is that of the frame's own
 * tag, if it has one. */
static __noinline int
push_mpls(struct __sk_buff *skb, struct offload_at *at, __u32 type, __u32 behind)
{
    __be16 label_type = bpf_htons(type);
    __be32 label;
    if (new_label(skb, l3_of(at), behind, &label))
        return -1;
    if (skb->gso_size)
        return push_mpls_super(skb, at, label_type, behind, label);
    int flags = push_tags(skb, 3);
    if (flags < 0 || bpf_skb_store_bytes(skb, ETH_HEADER + 2, &label_type, 2, flags) ||
        bpf_skb_store_bytes(skb, ETH_HEADER + VLAN_TAG, &label, sizeof label, flags) ||
        bpf_skb_vlan_pop(skb))
        return -1;
    at->tags = 0;
    at->summed = flags;
    return bpf_skb_vlan_pop(skb);
}

/* Is what the label hides of this type?  Else the kernel could not cut it. */
static __always_inline int
is_behind(struct __sk_buff *skb, __u32 l3, __u32 type)
{
    __u8 h[5];
    if (bpf_skb_load_bytes(skb, l3, h, sizeof h))
        return 0;
    __u32 ip = h[4] >> 4 == 4 ? TYPE_IPV4 : h[4] >> 4 == 6 ? TYPE_IPV6 : 0;
    return h[2] & 1 ? type == ip : type == TYPE_MPLS || type == TYPE_MPLS_MC;
}

/* addresses, TAG, type of the label, label  ->  addresses, TAG, TAG, type */
static __noinline int
pop_mpls(struct __sk_buff *skb, struct offload_at *at, __u32 type)
{
    __be16 tag = bpf_htons(TYPE_VLAN), behind[2] = {0, bpf_htons(type)};
    struct aside a;
    if ((skb->gso_size && !is_behind(skb, l3_of(at), type)) || put_aside(skb, &a))
        return -1;
    int flags = push_tags(skb, 2);
    if (flags < 0 || bpf_skb_store_bytes(skb, ETH_HEADER + 2, &tag, sizeof tag, flags) ||
        bpf_skb_store_bytes(skb, ETH_HEADER + VLAN_TAG, behind, sizeof behind, at->summed) ||
        bpf_skb_vlan_pop(skb) || bpf_skb_vlan_pop(skb) || bpf_skb_vlan_pop(skb))
        return -1;
    return put_back(skb, &a);
}

/* ------------------------------------------------------------------ PBB
 *
 * What comes and goes is 18 bytes, no multiple of a tag's four.  One helper makes room in front of any frame.  The one
 * that takes bytes away does so of IPv4 and IPv6 only, so for a moment the frame says that it is such a one. */

/* addresses, I-TAG and the whole of the old frame, as it would be on the wire */
static __noinline int
push_pbb(struct __sk_buff *skb, struct offload_at *at, __u32 type, __u32 behind)
{
    struct {
        __u8 addresses[TYPE_AT];
        __be16 tag[2], type, itag[2];
    } h = {.tag = {bpf_htons(TYPE_VLAN)}, .type = bpf_htons(type)};
    __u32 pcp = skb->vlan_present ? skb->vlan_tci >> 13 & 7 : 0;
    if (bpf_skb_load_bytes(skb, 0, h.addresses, sizeof h.addresses) ||
        (behind == TYPE_PBB && bpf_skb_load_bytes(skb, l3_of(at), h.itag, sizeof h.itag)))
        return -1;
    h.itag[0] = (h.itag[0] & bpf_htons(0xff)) | bpf_htons(pcp << 13);
    if (bpf_skb_vlan_push(skb, bpf_htons(TYPE_VLAN), 0) || bpf_skb_change_head(skb, PBB_PUSH, 0) ||
        bpf_skb_vlan_push(skb, bpf_htons(TYPE_VLAN), 0) ||
        bpf_skb_store_bytes(skb, 0, &h, sizeof h, 0) || bpf_skb_vlan_pop(skb))
        return -1;
    at->tags = 0;
    at->summed = 0;
    return bpf_skb_vlan_pop(skb);
}

static __noinline int
pop_pbb(struct __sk_buff *skb)
{
    struct {
        __u8 addresses[TYPE_AT];
        __be16 type;
    } customer;
    struct aside a;
    if (put_aside(skb, &a) ||
        bpf_skb_load_bytes(skb, ETH_HEADER + PBB_ITAG, &customer, sizeof customer) ||
        set_type(skb, bpf_htons(TYPE_IPV4)) ||
        bpf_skb_adjust_room(skb, -PBB_PUSH, BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_NO_CSUM_RESET) ||
        bpf_skb_store_bytes(skb, 0, customer.addresses, sizeof customer.addresses, 0) ||
        set_type(skb, customer.type))
        return -1;
    return put_back(skb, &a);
}

/* ------------------------------------------------------------------ IP, ARP */

/* Two bytes of the IPv4 header. */
static __always_inline int
set_ipv4_half(struct __sk_buff *skb, __u32 l3, __u32 at, __u16 old, __u16 now)
{
    int err = bpf_l3_csum_replace(skb, l3 + IPV4_SUM_AT, old, now, 2);
    return err ? err : bpf_skb_store_bytes(skb, l3 + at, &now, 2, 0);
}

static __noinline int
set_tos(struct __sk_buff *skb, __u32 l3, __u32 v6, __u32 bits_value)
{
    __u8 bits = bits_value >> 8, value = bits_value;
    __be16 old, now;
    if (bpf_skb_load_bytes(skb, l3, &old, 2))
        return -1;
    if (v6)
        now = bpf_htons((bpf_ntohs(old) & ~(bits << 4)) | value << 4);
    else
        now = bpf_htons((bpf_ntohs(old) & ~(__u32)bits) | value);
    if (v6)
        return bpf_skb_store_bytes(skb, l3, &now, 2, BPF_F_RECOMPUTE_CSUM);
    return set_ipv4_half(skb, l3, IPV4_TOS_AT, old, now);
}

/* ttl: above 255: one less than it is. */
static __noinline int
set_ttl(struct __sk_buff *skb, __u32 l3, __u32 v6, __u32 ttl)
{
    __be16 old, now;
    if (bpf_skb_load_bytes(skb, l3 + (v6 ? IPV6_TTL_AT - 1 : IPV4_TTL_AT), &old, 2))
        return -1;
    __u16 h = bpf_ntohs(old);
    if (v6) {
        __u8 limit = ttl > 255 ? h - 1 : ttl;
        return bpf_skb_store_bytes(skb, l3 + IPV6_TTL_AT, &limit, 1, BPF_F_RECOMPUTE_CSUM);
    }
    now = bpf_htons((h & 0xff) | ((ttl > 255 ? (h >> 8) - 1 : ttl) & 0xff) << 8);
    return set_ipv4_half(skb, l3, IPV4_TTL_AT, old, now);
}

/* Labels, service numbers, the flow label: no header's checksum covers them. */
static __noinline int
set_head(struct __sk_buff *skb, struct offload_at *at, __be32 bits, __be32 value)
{
    __be32 head;
    __u32 l3 = l3_of(at);
    if (bpf_skb_load_bytes(skb, l3, &head, sizeof head))
        return -1;
    head = (head & ~bits) | value;
    return bpf_skb_store_bytes(skb, l3, &head, sizeof head, at->summed);
}

static __noinline int
dec_mpls_ttl(struct __sk_buff *skb, struct offload_at *at)
{
    __u8 ttl;
    __u32 offset = l3_of(at) + MPLS_TTL_AT;
    if (bpf_skb_load_bytes(skb, offset, &ttl, 1))
        return -1;
    ttl--;
    return bpf_skb_store_bytes(skb, offset, &ttl, 1, at->summed);
}

static __noinline int
set_arp(struct __sk_buff *skb, __u32 at, __u32 n, __u64 value)
{
    switch (n) {
    case 2: return bpf_skb_store_bytes(skb, at, &value, 2, BPF_F_RECOMPUTE_CSUM);
    case 4: return bpf_skb_store_bytes(skb, at, &value, 4, BPF_F_RECOMPUTE_CSUM);
    default: return bpf_skb_store_bytes(skb, at, &value, 6, BPF_F_RECOMPUTE_CSUM);
    }
}

/* The transport's checksum follows a change.  size: 2 or 4; 0: `now` is the difference.  address: of the
 * pseudo-header. */
static __noinline int
follow(struct __sk_buff *skb, struct offload_at *at, __u64 old, __u64 now, __u32 size_address)
{
    __u32 sum = sum_at(at), size = size_address & 0xf, address = size_address & BPF_F_PSEUDO_HDR;
    __u16 is, zero = 0xffff; /* its other form: 0 says that there is none */
    if (!sum)
        return 0;
    if (!is_whole(skb, at))
        return bpf_l4_csum_replace(skb, sum, old, now, size | address | sum_flags(at));
    int err = bpf_l3_csum_replace(skb, sum, old, now, size);
    if (err || bpf_skb_load_bytes(skb, sum, &is, sizeof is) || is)
        return err;
    return bpf_skb_store_bytes(skb, sum, &zero, sizeof zero, 0);
}

static __noinline int
set_ipv4(struct __sk_buff *skb, struct offload_at *at, __u32 which, __u32 now)
{
    __u32 old, l3 = l3_of(at), offset = l3 + IPV4_SRC_AT + (which & 4);
    int err = bpf_skb_load_bytes(skb, offset, &old, 4);
    if (!err)
        err = follow(skb, at, old, now, 4 | BPF_F_PSEUDO_HDR);
    if (!err)
        err = bpf_l3_csum_replace(skb, l3 + IPV4_SUM_AT, old, now, 4);
    return err ? err : bpf_skb_store_bytes(skb, offset, &now, 4, 0);
}

/* half: 8 of the addresses' 32 bytes. */
static __noinline int
set_ipv6(struct __sk_buff *skb, struct offload_at *at, __u32 half, __u64 now)
{
    __u64 old;
    __u32 offset = l3_of(at) + IPV6_SRC_AT + (half & 3) * 8;
    int err = bpf_skb_load_bytes(skb, offset, &old, 8);
    if (!err)
        err = follow(skb, at, 0, bpf_csum_diff((__be32 *)&old, 8, (__be32 *)&now, 8, 0),
                     BPF_F_PSEUDO_HDR);
    return err ? err : bpf_skb_store_bytes(skb, offset, &now, 8, 0);
}

static __noinline int
set_tp(struct __sk_buff *skb, struct offload_at *at, __u32 which, __u32 now)
{
    __u16 old, port = *(__u16 *)&now; /* in its first two bytes */
    __u32 offset = l4_of(at) + (which & 2);
    int err = bpf_skb_load_bytes(skb, offset, &old, 2);
    if (!err)
        err = follow(skb, at, old, port, 2);
    return err ? err : bpf_skb_store_bytes(skb, offset, &port, 2, 0);
}

#endif
