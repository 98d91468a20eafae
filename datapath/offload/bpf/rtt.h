/* SPDX-License-Identifier: Apache-2.0 */
/* Round trips (latency/rtt.h) of what the kernel forwards: as latency/probes.c reads packets. */
#ifndef OFFLOAD_BPF_RTT_H
#define OFFLOAD_BPF_RTT_H

#include "lookup.h"

struct {
    SHARED_ARRAY(struct rtt_control, 1);
} rtt_control SEC(".maps");

struct {
    SHARED_ARRAY(struct rtt_slot, 1);
} rtt_slots SEC(".maps");

struct {
    SHARED_ARRAY(struct rtt_sample, RTT_RING);
} rtt_ring SEC(".maps");

/* Reads the addresses.  The length of the packet, as its header says, or 0. */
static __always_inline __u32
read_addresses(struct __sk_buff *skb, __u32 l3, int v6, struct rtt_ends *e)
{
    __be16 length;
    if (bpf_skb_load_bytes(skb, l3 + (v6 ? 4 : 2), &length, sizeof length))
        return 0;
    if (v6) {
        if (bpf_skb_load_bytes(skb, l3 + 8, e->src, 32)) /* dst follows */
            return 0;
        return bpf_ntohs(length) + IPV6_HEADER;
    }
    __u32 both[2];
    if (bpf_skb_load_bytes(skb, l3 + 12, both, sizeof both))
        return 0;
    e->src[0] = bpf_ntohl(both[0]);
    e->dst[0] = bpf_ntohl(both[1]);
    return bpf_ntohs(length);
}

/* The front of a TCP header. */
struct segment {
    __be16 sport, dport;
    __be32 seq, ack;
    __u8 offset, flags;
};

static __always_inline int
read_segment(struct __sk_buff *skb, const struct segment *tcp, __u32 room, struct rtt_ends *e,
             struct rtt_seen *p)
{
    __u32 header = (tcp->offset >> 4) * 4;
    if (header > room)
        return 0;
    e->sport = bpf_ntohs(tcp->sport);
    e->dport = bpf_ntohs(tcp->dport);
    p->syn = tcp->flags >> 1 & 1;
    p->acks = tcp->flags >> 4 & 1;
    p->seq = bpf_ntohl(tcp->seq);
    p->ack = bpf_ntohl(tcp->ack);
    p->len = room - header + p->syn + (tcp->flags & 1);
    p->first = skb->gso_size && skb->gso_size < p->len ? skb->gso_size : p->len;
    return 1;
}

static __always_inline int
read_echo(struct __sk_buff *skb, __u32 l4, int v6, struct rtt_ends *e, struct rtt_seen *p)
{
    struct {
        __u8 type, code;
        __be16 sum, id, seq;
    } icmp;
    if (bpf_skb_load_bytes(skb, l4, &icmp, sizeof icmp))
        return 0;
    int request = icmp.type == (v6 ? 128 : 8), reply = icmp.type == (v6 ? 129 : 0);
    if (!request && !reply)
        return 0;
    e->sport = e->dport = bpf_ntohs(icmp.id);
    p->kind = RTT_ECHO;
    p->acks = reply;
    p->len = p->first = request;
    p->seq = p->ack = bpf_ntohs(icmp.seq);
    return 1;
}

static __always_inline int
read_datagram(struct __sk_buff *skb, __u32 l4, struct rtt_ends *e, struct rtt_seen *p)
{
    __u8 b[RTT_UDP];
    return !bpf_skb_load_bytes(skb, l4, b, sizeof b) &&
           rtt_read_udp(b, (__u32)(b[4] << 8 | b[5]), e, p);
}

static __always_inline void
put_sample(struct rtt_control *c, const struct rtt_sample *s)
{
    __u32 before = __sync_fetch_and_add(&c->samples, 1), place = before % RTT_RING;
    volatile struct rtt_sample *at = bpf_map_lookup_elem(&rtt_ring, &place);
    if (!at)
        return;
    at->number = 0;
    at->us = s->us;
    at->ifindex = s->ifindex;
    at->queue = s->queue;
    at->pair = s->pair;
    at->tally = s->tally;
    at->number = before + 1;
}

/* What is looked at.  Not inlined, and not static, so that the verifier looks at it once. */
__noinline int
ofqos_round_trip(struct __sk_buff *skb, __u32 where, __u32 in, __u64 out, __u64 about)
{
    __u32 zero = 0, l3 = where_l3(where, where_tags(where));
    int v6 = where_is_v6(where), tcp = where_proto(where) == PROTO_TCP;
    struct rtt_control *c = bpf_map_lookup_elem(&rtt_control, &zero);
    if (!c)
        return 0;
    struct segment segment = {};
    struct rtt_ends e = {.ifindexes = in + (__u32)out};
    struct rtt_seen p = {.ifindex = (__u32)out, .queue = out >> 32, .about = about};
    __u32 length = read_addresses(skb, l3, v6, &e);
    __u32 head = where_ip(where);
    if (skb->gso_size || length > skb->len - l3)
        length = skb->len - l3;
    if (length < head)
        return 0;
    if (tcp) {
        if (bpf_skb_load_bytes(skb, l3 + head, &segment, 14) ||
            !read_segment(skb, &segment, length - head, &e, &p))
            return 0;
    } else if (where_proto(where) == PROTO_UDP) {
        if (!read_datagram(skb, l3 + head, &e, &p))
            return 0;
    } else if (!read_echo(skb, l3 + head, v6, &e, &p)) {
        return 0;
    }
    rtt_sign(c, &e, &p);
    __u32 place = p.sig >> 1 & c->slots;
    struct rtt_slot *s = bpf_map_lookup_elem(&rtt_slots, &place);
    struct rtt_sample sample = {};
    if (!s)
        return 0;
    rtt_enter(c, &e, s, &p);
    if (rtt_look(s, &p, &sample))
        sample.pair = rtt_pair(c, &e);
    if (sample.pair || sample.tally)
        put_sample(c, &sample);
    rtt_leave(c, &e, s, &p, sample.us);
    return 0;
}

/* Is the gate of the segment's or datagram's connection shut? */
static __always_inline int
is_shut(struct __sk_buff *skb, struct rtt_control *c, __u32 where, __u64 about)
{
    __u8 b[14], tcp = where_proto(where) == PROTO_TCP;
    __u32 l4 = where_l3(where, where_tags(where)) + where_ip(where);
    if (bpf_skb_load_bytes(skb, l4, b, sizeof b))
        return 1;
    if (!tcp && !rtt_is_spin(b))
        return 0;
    __u16 sport = (__u16)(b[0] << 8 | b[1]), dport = (__u16)(b[2] << 8 | b[3]);
    return rtt_is_shut(rtt_gate(c, tcp ? RTT_TCP : RTT_SPIN, sport, dport),
                       tcp && b[TCP_FLAGS_AT] & 2, about);
}

/* Might measure() look at it? */
static __always_inline int
is_measured(const struct offload_entry *e, __u32 where)
{
    __u32 proto = where_proto(where);
    __u32 echo = where_is_v6(where) ? PROTO_ICMPV6 : PROTO_ICMP;
    return (proto == PROTO_TCP || proto == echo || where_measured(where)) && !e->unmeasured &&
           !where_fragment(where);
}

/* Frames that leave by an entry which keeps their addresses, and where they are.  Not inlined: the stack of all calls is 512 bytes. */
static __noinline int
measure(struct __sk_buff *skb, const struct offload_entry *e, __u32 where, __u64 about)
{
    __u32 zero = 0, last = (e->n_ops - 1) & (OFFLOAD_OPS - 1);
    const struct offload_op *op = &e->op[last];
    struct rtt_control *c = bpf_map_lookup_elem(&rtt_control, &zero);
    if (op->kind != OFFLOAD_OUTPUT || !c || !c->on ||
        ((where_proto(where) == PROTO_TCP || where_measured(where)) &&
         is_shut(skb, c, where, about)))
        return 0;
    return ofqos_round_trip(skb, where, e->came_by, op->value >> 32 << 32 | op->arg, about);
}

#endif
