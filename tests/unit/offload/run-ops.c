/* SPDX-License-Identifier: Apache-2.0 */
#include "run-ops.h"

#include <packet/checksum.h>
#include <packet/headers.h>

#include <stdlib.h>
#include <string.h>

struct run {
    uint8_t data[RUN_ROOM];
    uint32_t n, tags;
    bool v6;
    uint8_t proto;
};

/* ------------------------------------------------------------------ keys */

static bool
l4_of(struct flow_key *k, const uint8_t *h, uint32_t room, bool v6)
{
    uint8_t proto = k->ip_proto;
    uint32_t least = proto == PROTO_TCP    ? TCP_HEADER
                     : proto == PROTO_UDP  ? UDP_HEADER
                     : proto == PROTO_SCTP ? SCTP_HEADER
                                           : 4;
    if (proto != PROTO_TCP && proto != PROTO_UDP && proto != PROTO_SCTP &&
        proto != (v6 ? PROTO_ICMPV6 : PROTO_ICMP))
        return !v6;
    if (room < least || (proto == PROTO_ICMPV6 && h[0] >= 133 && h[0] <= 137))
        return false;
    of_set16(k->vlan_vid, of_get16(k->vlan_vid) | KEY_HAS_L4);
    memcpy(k->tp_src, h, proto == PROTO_ICMP || proto == PROTO_ICMPV6 ? 2 : 4);
    return true;
}

static bool
ip_of(struct flow_key *k, const uint8_t *h, uint32_t room, bool v6, uint8_t *ttl)
{
    uint32_t header = v6 ? IPV6_HEADER : IPV4_HEADER;
    if (room < header || h[0] >> 4 != (v6 ? 6 : 4) || (!v6 && (h[0] & 15) != 5))
        return false;
    uint32_t total = v6 ? IPV6_HEADER + of_get16(h + IPV6_LENGTH_AT) : of_get16(h + IPV4_LENGTH_AT);
    if (total < header || total > room ||
        (!v6 && of_get16(h + IPV4_FRAGMENT_AT) & (IPV4_MORE_FRAGMENTS | IPV4_FRAGMENT_OFFSET)))
        return false;
    uint8_t tos = v6 ? (uint8_t)(h[0] << 4 | h[1] >> 4) : h[1];
    k->ip_dscp = tos >> 2;
    k->ip_ecn = tos & 3;
    k->ip_proto = h[v6 ? IPV6_NEXT_AT : IPV4_PROTO_AT];
    *ttl = h[v6 ? IPV6_HOPS_AT : IPV4_TTL_AT];
    if (v6) {
        of_set32(k->ipv6_flabel, of_get32(h) & 0xfffff);
        memcpy(k->ip_src.v6, h + IPV6_SRC_AT, 32);
    } else {
        memcpy(k->ip_src.v4, h + IPV4_SRC_AT, 4);
        memcpy(k->ip_dst.v4, h + IPV4_DST_AT, 4);
    }
    return l4_of(k, h + header, total - header, v6);
}

static bool
is_tag(const uint8_t *type)
{
    return of_get16(type) == TYPE_VLAN || of_get16(type) == TYPE_SVLAN;
}

#define WORD_OF_KEY(i, w) (w),
static const uint8_t words[OFFLOAD_WORDS] = {OFFLOAD_WORD_ROWS(WORD_OF_KEY)};

bool
run_key(const uint8_t *f, uint32_t n, uint64_t key[OFFLOAD_WORDS], uint8_t *ttl)
{
    struct flow_key k = {0};
    uint32_t at = ETH_TYPE_AT;
    if (n < ETH_HEADER)
        return false;
    memcpy(k.eth_dst, f, 2 * ETH_ADDR);
    for (int i = 0; i < 2 && at + 6 <= n && is_tag(f + at); i++, at += VLAN_TAG)
        if (!i) {
            of_set16(k.vlan_vid, (of_get16(f + at + 2) & 0xfff) | OFPVID_PRESENT);
            k.vlan_pcp = f[at + 2] >> 5;
        }
    memcpy(k.eth_type, f + at, 2);
    of_set16(k.vlan_vid, of_get16(k.vlan_vid) | KEY_HAS_L3);
    uint16_t type = of_get16(f + at);
    if ((type != TYPE_IPV4 && type != TYPE_IPV6) ||
        !ip_of(&k, f + at + 2, n - at - 2, type == TYPE_IPV6, ttl))
        return false;
    for (int i = 0; i < OFFLOAD_WORDS; i++)
        key[i] = k.w[words[i]];
    return true;
}

bool
run_matches(const struct offload_rule *r, const uint64_t key[OFFLOAD_WORDS])
{
    for (int i = 1; i < OFFLOAD_WORDS; i++)
        if ((key[i] ^ r->key[i]) & r->mask[i])
            return false;
    return true;
}

/* ------------------------------------------------------------------ edits */

static uint8_t *
l3(struct run *u)
{
    return u->data + ETH_HEADER + u->tags * VLAN_TAG;
}

static uint8_t *
l4(struct run *u)
{
    return l3(u) + (u->v6 ? IPV6_HEADER : IPV4_HEADER);
}

/* Bytes that the transport's checksum covers. */
static void
l4_sum(struct run *u, const void *before, const void *after, size_t n)
{
    uint32_t at = u->proto == PROTO_TCP               ? TCP_CSUM_AT
                  : u->proto == PROTO_UDP             ? UDP_CSUM_AT
                  : u->v6 && u->proto == PROTO_ICMPV6 ? ICMP_CSUM_AT
                                                      : 0;
    uint8_t *sum = l4(u) + at;
    bool udp = u->proto == PROTO_UDP;
    if (!at || (udp && !of_get16(sum)))
        return;
    csum_update(sum, before, after, n);
    if (udp && !of_get16(sum))
        of_set16(sum, 0xffff);
}

static void
ipv4_half(struct run *u, uint32_t at, const uint8_t *after)
{
    csum_update(l3(u) + IPV4_CSUM_AT, l3(u) + at, after, 2);
    memcpy(l3(u) + at, after, 2);
}

static void
set_tos(struct run *u, uint32_t bits, uint32_t value)
{
    uint8_t after[2];
    uint32_t shift = u->v6 ? 4 : 0;
    of_set16(after, (uint16_t)((of_get16(l3(u)) & ~(bits << shift)) | value << shift));
    if (u->v6)
        memcpy(l3(u), after, 2);
    else
        ipv4_half(u, 0, after);
}

static void
set_ttl(struct run *u, uint8_t ttl)
{
    uint8_t after[2] = {ttl, l3(u)[IPV4_PROTO_AT]};
    if (u->v6)
        l3(u)[IPV6_HOPS_AT] = ttl;
    else
        ipv4_half(u, IPV4_TTL_AT, after);
}

static void
set_ipv4(struct run *u, uint32_t at, uint32_t to)
{
    uint8_t *field = l3(u) + at;
    l4_sum(u, field, &to, 4);
    csum_update(l3(u) + IPV4_CSUM_AT, field, &to, 4);
    memcpy(field, &to, 4);
}

static void
set_ipv6(struct run *u, uint32_t half, uint64_t to)
{
    uint8_t *field = l3(u) + IPV6_SRC_AT + half * 8;
    l4_sum(u, field, &to, 8);
    memcpy(field, &to, 8);
}

static void
set_port(struct run *u, uint32_t at, uint32_t to)
{
    l4_sum(u, l4(u) + at, &to, 2);
    memcpy(l4(u) + at, &to, 2);
}

static void
push(struct run *u, uint32_t type)
{
    uint16_t tci = u->tags ? of_get16(u->data + ETH_TYPE_AT + 2) & 0xefff : 0;
    memmove(u->data + ETH_TYPE_AT + VLAN_TAG, u->data + ETH_TYPE_AT, u->n - ETH_TYPE_AT);
    of_set16(u->data + ETH_TYPE_AT, (uint16_t)type);
    of_set16(u->data + ETH_TYPE_AT + 2, tci);
    u->n += VLAN_TAG;
    u->tags++;
}

static void
pop(struct run *u)
{
    if (!u->tags)
        abort(); /* a plan pops only what is there */
    u->n -= VLAN_TAG;
    u->tags--;
    memmove(u->data + ETH_TYPE_AT, u->data + ETH_TYPE_AT + VLAN_TAG, u->n - ETH_TYPE_AT);
}

static void
set_vlan(struct run *u, uint32_t bits, uint64_t value)
{
    uint8_t *tci = u->data + ETH_TYPE_AT + 2;
    if (!u->tags)
        abort();
    of_set16(tci, (uint16_t)((of_get16(tci) & ~bits) | value));
}

static void
set_head(struct run *u, uint64_t value)
{
    uint32_t head;
    memcpy(&head, l3(u), sizeof head);
    head = (head & ~(uint32_t)(value >> 32)) | (uint32_t)value;
    memcpy(l3(u), &head, sizeof head);
}

/* What is pushed comes in front of the tags, over the type that is there. */
static void
push_label(struct run *u, uint32_t type, uint64_t behind)
{
    uint8_t label[MPLS_SHIM] = {0};
    if (behind != of_get16(l3(u) - 2))
        abort();
    if (is_mpls_type((uint16_t)behind)) {
        memcpy(label, l3(u), MPLS_SHIM);
        label[2] = (uint8_t)((label[2] & 0xfe) | (u->tags != 0));
    } else {
        label[2] = 1;
        label[3] = behind == TYPE_IPV4   ? l3(u)[IPV4_TTL_AT]
                   : behind == TYPE_IPV6 ? l3(u)[IPV6_HOPS_AT]
                                         : 0;
    }
    u->tags = 0;
    memmove(l3(u) + MPLS_SHIM, l3(u), u->n - ETH_HEADER);
    of_set16(u->data + ETH_TYPE_AT, (uint16_t)type);
    memcpy(l3(u), label, MPLS_SHIM);
    u->n += MPLS_SHIM;
}

static void
pop_label(struct run *u, uint32_t type)
{
    if (!is_mpls_type(of_get16(l3(u) - 2)))
        abort();
    u->n -= MPLS_SHIM;
    memmove(l3(u), l3(u) + MPLS_SHIM, u->n - (uint32_t)(l3(u) - u->data));
    of_set16(l3(u) - 2, (uint16_t)type);
}

static void
push_pbb(struct run *u, uint64_t behind)
{
    uint32_t pcp = u->tags ? u->data[ETH_TYPE_AT + 2] >> 5 : 0;
    uint32_t isid = behind == TYPE_PBB ? of_get32(l3(u)) & 0xffffff : 0;
    if (behind != of_get16(l3(u) - 2))
        abort();
    memmove(u->data + PBB_PUSH, u->data, u->n);
    of_set16(u->data + ETH_TYPE_AT, TYPE_PBB);
    of_set32(u->data + ETH_HEADER, pcp << 29 | isid);
    u->n += PBB_PUSH;
    u->tags = 0;
}

static void
pop_pbb(struct run *u)
{
    uint8_t *type = l3(u) - 2;
    if (of_get16(type) != TYPE_PBB)
        abort();
    memcpy(u->data, l3(u) + PBB_ITAG, 2 * ETH_ADDR);
    u->n -= PBB_PUSH;
    memmove(type, type + PBB_PUSH, u->n - (uint32_t)(type - u->data));
}

static void
edit(struct run *u, const struct offload_op *op)
{
    switch (op->kind) {
    case OFFLOAD_METER: return;
    case OFFLOAD_SET_ETH_DST: memcpy(u->data, &op->value, ETH_ADDR); return;
    case OFFLOAD_SET_ETH_SRC: memcpy(u->data + ETH_ADDR, &op->value, ETH_ADDR); return;
    case OFFLOAD_PUSH_VLAN: push(u, op->arg); return;
    case OFFLOAD_POP_VLAN: pop(u); return;
    case OFFLOAD_SET_VLAN: set_vlan(u, op->arg, op->value); return;
    case OFFLOAD_SET_TOS: set_tos(u, op->arg, (uint32_t)op->value); return;
    case OFFLOAD_SET_IPV4_SRC: set_ipv4(u, IPV4_SRC_AT, op->arg); return;
    case OFFLOAD_SET_IPV4_DST: set_ipv4(u, IPV4_DST_AT, op->arg); return;
    case OFFLOAD_SET_IPV6: set_ipv6(u, op->arg, op->value); return;
    case OFFLOAD_SET_TTL: set_ttl(u, (uint8_t)op->arg); return;
    case OFFLOAD_DEC_TTL:
        set_ttl(u, (uint8_t)(l3(u)[u->v6 ? IPV6_HOPS_AT : IPV4_TTL_AT] - 1));
        return;
    case OFFLOAD_SET_TP_SRC: set_port(u, 0, op->arg); return;
    case OFFLOAD_SET_TP_DST: set_port(u, 2, op->arg); return;
    case OFFLOAD_SET_HEAD: set_head(u, op->value); return;
    case OFFLOAD_PUSH_MPLS: push_label(u, op->arg, op->value); return;
    case OFFLOAD_POP_MPLS: pop_label(u, op->arg); return;
    case OFFLOAD_PUSH_PBB: push_pbb(u, op->value); return;
    case OFFLOAD_POP_PBB: pop_pbb(u); return;
    case OFFLOAD_SET_MPLS_TTL: l3(u)[MPLS_TTL_AT] = (uint8_t)op->arg; return;
    case OFFLOAD_DEC_MPLS_TTL: l3(u)[MPLS_TTL_AT]--; return;
    case OFFLOAD_SET_ARP: memcpy(l3(u) + (op->arg >> 16), &op->value, op->arg >> 8 & 0xff); return;
    default: abort();
    }
}

void
run_ops(const struct offload_rule *r, const uint8_t *frame, uint32_t n, struct ran *out)
{
    struct run u = {.n = n};
    memcpy(u.data, frame, n);
    while (is_tag(u.data + ETH_TYPE_AT + u.tags * VLAN_TAG))
        u.tags++;
    u.v6 = of_get16(u.data + ETH_TYPE_AT + u.tags * VLAN_TAG) == TYPE_IPV6;
    u.proto = l3(&u)[u.v6 ? IPV6_NEXT_AT : IPV4_PROTO_AT];
    out->n = 0;
    for (uint32_t i = 0; i < r->n_ops; i++) {
        if (r->op[i].kind != OFFLOAD_OUTPUT) {
            edit(&u, &r->op[i]);
            continue;
        }
        struct ran_out *o = &out->out[out->n++];
        o->ifindex = r->op[i].arg;
        o->priority = (uint32_t)r->op[i].value;
        o->n = u.n;
        memcpy(o->data, u.data, u.n);
    }
}
