/* SPDX-License-Identifier: Apache-2.0 */
/* What edits do to the packet, its key and the bits that matter, in step with packet/edit.c and
 * packet/tags.c.
 *
 * The kernel's programs read only packets that are whole and well-formed.  An op on a header adds to the bits that
 * matter what makes it sure that the header is there. */
#include "plan-inside.h"

#include <packet/headers.h>

#include <string.h>

bool
plan_look(struct plan_way *w, const struct flow_key *bits)
{
    for (int i = 0; i < KEY_WORDS; i++) {
        if (bits->w[i] & w->now.lost.w[i])
            return plan_refuse(w, OFFLOAD_WHY_unknown_key);
        w->bits.w[i] |= bits->w[i] & ~w->now.known.w[i];
    }
    return true;
}

bool
plan_look_vlan(struct plan_way *w, uint16_t bits)
{
    struct flow_key b = {0};
    of_set16(b.vlan_vid, bits);
    return plan_look(w, &b);
}

/* Whether the op is for IP's header or for what is behind it. */
static bool
is_for_ip(uint32_t kind)
{
    switch (kind) {
    case OFFLOAD_OUTPUT:
    case OFFLOAD_METER:
    case OFFLOAD_SET_ETH_DST:
    case OFFLOAD_SET_ETH_SRC:
    case OFFLOAD_PUSH_VLAN:
    case OFFLOAD_POP_VLAN:
    case OFFLOAD_SET_VLAN:
    case OFFLOAD_SET_HEAD:
    case OFFLOAD_PUSH_MPLS:
    case OFFLOAD_POP_MPLS:
    case OFFLOAD_SET_MPLS_TTL:
    case OFFLOAD_DEC_MPLS_TTL:
    case OFFLOAD_PUSH_PBB:
    case OFFLOAD_POP_PBB:
    case OFFLOAD_SET_ARP: return false;
    default: return true;
    }
}

static bool
has_ip(struct plan_way *w)
{
    struct flow_key b = {0};
    uint16_t type = of_get16(w->now.key.eth_type);
    of_set16(b.eth_type, UINT16_MAX);
    if (!plan_look(w, &b) || !plan_look_vlan(w, KEY_HAS_L3))
        return false;
    return type == TYPE_IPV4 || type == TYPE_IPV6 || plan_refuse(w, OFFLOAD_WHY_action);
}

bool
plan_op(struct plan_way *w, uint32_t kind, uint32_t arg, uint64_t value)
{
    struct offload_op op = {.kind = kind, .arg = arg, .value = value};
    if (is_for_ip(kind) && !has_ip(w))
        return false;
    return offload_rule_op(&w->out->rule, op) || plan_refuse(w, OFFLOAD_WHY_ops);
}

/* ------------------------------------------------------------------ what the packet has */

static bool
has_tag(const struct plan_way *w)
{
    return of_get16(w->now.key.vlan_vid) & OFPVID_PRESENT;
}

/* An IP header of this type?  False also if w->why is set. */
static bool
is_type(struct plan_way *w, uint16_t type)
{
    struct flow_key b = {0};
    of_set16(b.eth_type, UINT16_MAX);
    return plan_look(w, &b) && of_get16(w->now.key.eth_type) == type;
}

static bool
is_proto(struct plan_way *w, uint8_t proto)
{
    struct flow_key b = {.ip_proto = 0xff};
    return plan_look(w, &b) && w->now.key.ip_proto == proto;
}

static bool
has_l3(struct plan_way *w)
{
    return plan_look_vlan(w, KEY_HAS_L3) && of_get16(w->now.key.vlan_vid) & KEY_HAS_L3;
}

static bool
has_l4(struct plan_way *w, uint8_t proto)
{
    return is_proto(w, proto) && plan_look_vlan(w, KEY_HAS_L4) &&
           of_get16(w->now.key.vlan_vid) & KEY_HAS_L4;
}

static bool
has_mpls(struct plan_way *w)
{
    return (is_type(w, TYPE_MPLS) || is_type(w, TYPE_MPLS_MC)) && has_l3(w);
}

/* ------------------------------------------------------------------ set_field */

/* The first n bytes as they are in memory. */
static uint64_t
memory(const uint8_t *v, unsigned n)
{
    uint64_t word = 0;
    memcpy(&word, v, n);
    return word;
}

static uint32_t
memory32(const uint8_t *v, unsigned n)
{
    uint32_t word = 0;
    memcpy(&word, v, n);
    return word;
}

static void
know_vid(struct planned *p, uint16_t vid, uint16_t bits)
{
    of_set16(p->key.vlan_vid, (uint16_t)((of_get16(p->key.vlan_vid) & ~bits) | vid));
    of_set16(p->known.vlan_vid, of_get16(p->known.vlan_vid) | bits);
    of_set16(p->lost.vlan_vid, of_get16(p->lost.vlan_vid) & (uint16_t)~bits);
}

static void
know(struct planned *p, enum oxm_field f, const uint8_t *value)
{
    unsigned n = oxm_rows[f].bytes;
    if (f == OXM_vlan_vid) {
        know_vid(p, of_get16(value) & 0xfff, 0xfff);
        return;
    }
    memcpy(key_field(&p->key, f), value, n);
    memset(key_field(&p->known, f), 0xff, n);
    memset(key_field(&p->lost, f), 0, n);
}

static bool
set_ipv6(struct plan_way *w, uint32_t half, const uint8_t *v)
{
    return plan_op(w, OFFLOAD_SET_IPV6, half, memory(v, 8)) &&
           plan_op(w, OFFLOAD_SET_IPV6, half + 1, memory(v + 8, 8));
}

/* shift: of the field in the first four bytes of its header. */
static bool
set_head(struct plan_way *w, enum oxm_field f, uint32_t bits, unsigned shift, const uint8_t *v)
{
    uint8_t both[8];
    of_set32(both, (uint32_t)oxm_number(&oxm_rows[f], v) << shift & bits);
    of_set32(both + 4, bits);
    return plan_op(w, OFFLOAD_SET_HEAD, f,
                   (uint64_t)memory32(both + 4, 4) << 32 | memory32(both, 4));
}

static bool
set_arp(struct plan_way *w, enum oxm_field f, uint32_t at, const uint8_t *v)
{
    uint32_t n = oxm_rows[f].bytes;
    return plan_op(w, OFFLOAD_SET_ARP, f | n << 8 | at << 16, memory(v, n));
}

/* The field's op.  The packet has the field. */
static bool
set_op(struct plan_way *w, enum oxm_field f, const uint8_t *v)
{
    switch (f) {
    case OXM_eth_dst: return plan_op(w, OFFLOAD_SET_ETH_DST, 0, memory(v, ETH_ADDR));
    case OXM_eth_src: return plan_op(w, OFFLOAD_SET_ETH_SRC, 0, memory(v, ETH_ADDR));
    case OXM_vlan_vid: return plan_op(w, OFFLOAD_SET_VLAN, 0x0fff, of_get16(v) & 0xfff);
    case OXM_vlan_pcp: return plan_op(w, OFFLOAD_SET_VLAN, 0xe000, (v[0] & 7u) << 13);
    case OXM_ip_dscp: return plan_op(w, OFFLOAD_SET_TOS, 0xfc, (v[0] & 0x3fu) << 2);
    case OXM_ip_ecn: return plan_op(w, OFFLOAD_SET_TOS, 0x03, v[0] & 3);
    case OXM_ipv4_src: return plan_op(w, OFFLOAD_SET_IPV4_SRC, memory32(v, 4), 0);
    case OXM_ipv4_dst: return plan_op(w, OFFLOAD_SET_IPV4_DST, memory32(v, 4), 0);
    case OXM_ipv6_src: return set_ipv6(w, 0, v);
    case OXM_ipv6_dst: return set_ipv6(w, 2, v);
    case OXM_tcp_src:
    case OXM_udp_src: return plan_op(w, OFFLOAD_SET_TP_SRC, memory32(v, 2), 0);
    case OXM_tcp_dst:
    case OXM_udp_dst: return plan_op(w, OFFLOAD_SET_TP_DST, memory32(v, 2), 0);
    case OXM_ipv6_flabel: return set_head(w, f, 0x000fffff, 0, v);
    case OXM_mpls_label: return set_head(w, f, 0xfffff000, 12, v);
    case OXM_mpls_tc: return set_head(w, f, 0x00000e00, 9, v);
    case OXM_mpls_bos: return set_head(w, f, MPLS_BOS, 8, v);
    case OXM_pbb_isid: return set_head(w, f, 0x00ffffff, 0, v);
    case OXM_arp_op: return set_arp(w, f, ARP_OP_AT, v);
    case OXM_arp_spa: return set_arp(w, f, ARP_SPA_AT, v);
    case OXM_arp_tpa: return set_arp(w, f, ARP_TPA_AT, v);
    case OXM_arp_sha: return set_arp(w, f, ARP_SHA_AT, v);
    case OXM_arp_tha: return set_arp(w, f, ARP_THA_AT, v);
    default: return plan_refuse(w, OFFLOAD_WHY_set_field);
    }
}

/* False also if w->why is set. */
static bool
has_field(struct plan_way *w, enum oxm_field f)
{
    switch (f) {
    case OXM_vlan_vid:
    case OXM_vlan_pcp: return plan_look_vlan(w, OFPVID_PRESENT) && has_tag(w);
    case OXM_ipv4_src:
    case OXM_ipv4_dst: return is_type(w, TYPE_IPV4);
    case OXM_ipv6_src:
    case OXM_ipv6_dst: return is_type(w, TYPE_IPV6);
    case OXM_ipv6_flabel: return is_type(w, TYPE_IPV6) && has_l3(w);
    case OXM_tcp_src:
    case OXM_tcp_dst: return has_l4(w, PROTO_TCP);
    case OXM_udp_src:
    case OXM_udp_dst: return has_l4(w, PROTO_UDP);
    case OXM_sctp_src:
    case OXM_sctp_dst: return has_l4(w, PROTO_SCTP);
    case OXM_icmpv4_type:
    case OXM_icmpv4_code: return has_l4(w, PROTO_ICMP);
    case OXM_icmpv6_type:
    case OXM_icmpv6_code: return has_l4(w, PROTO_ICMPV6);
    case OXM_arp_op:
    case OXM_arp_spa:
    case OXM_arp_tpa:
    case OXM_arp_sha:
    case OXM_arp_tha: return is_type(w, TYPE_ARP) && has_l3(w);
    case OXM_ipv6_nd_target:
    case OXM_ipv6_nd_sll:
    case OXM_ipv6_nd_tll: return is_type(w, TYPE_IPV6) && has_l4(w, PROTO_ICMPV6);
    case OXM_mpls_label:
    case OXM_mpls_tc:
    case OXM_mpls_bos: return has_mpls(w);
    case OXM_pbb_isid: return is_type(w, TYPE_PBB) && has_l3(w);
    default: return true;
    }
}

static bool
set_field(struct plan_way *w, enum oxm_field f, const uint8_t *value)
{
    if (f == OXM_metadata ||
        f == OXM_tunnel_id) /* not in the packet; tables were looked up already */
        return true;
    if (!has_field(w, f))
        return w->why == OFFLOADED;
    if (!set_op(w, f, value))
        return false;
    know(&w->now, f, value);
    return true;
}

/* ------------------------------------------------------------------ tags */

static void
hide(struct planned *p)
{
    const struct flow_key *k[3] = {&p->key, &p->known, &p->lost};
    struct hidden_tag *h = &p->hidden[p->n_pushed++];
    for (int i = 0; i < 3; i++) {
        h->vid[i] = key_vid(k[i]);
        h->pcp[i] = k[i]->vlan_pcp;
    }
    h->type = p->tag_type;
}

static void
bring_to_light(struct planned *p)
{
    struct flow_key *k[3] = {&p->key, &p->known, &p->lost};
    const struct hidden_tag *h = &p->hidden[--p->n_pushed];
    for (int i = 0; i < 3; i++) {
        key_set_vid(k[i], h->vid[i]);
        k[i]->vlan_pcp = h->pcp[i];
    }
    p->tag_type = h->type;
}

/* The new tag has VID and PCP of the old one, known or not. */
static bool
push_vlan(struct plan_way *w, uint16_t type)
{
    struct planned *p = &w->now;
    if (!plan_op(w, OFFLOAD_PUSH_VLAN, type, 0))
        return false;
    if (p->n_pushed == OFFLOAD_OPS)
        return plan_refuse(w, OFFLOAD_WHY_ops);
    hide(p);
    know_vid(p, OFPVID_PRESENT, OFPVID_PRESENT);
    p->tag_type = type;
    p->added += VLAN_TAG;
    return true;
}

/* After the packet's own outermost tag is gone, the key doesn't tell what is behind it. */
static void
lose_tag(struct planned *p)
{
    key_set_vid(&p->key, 0);
    key_set_vid(&p->known, 0);
    key_set_vid(&p->lost, OFPVID_PRESENT | 0xfff);
    p->key.vlan_pcp = p->known.vlan_pcp = 0;
    p->lost.vlan_pcp = 0xff;
}

static bool
pop_vlan(struct plan_way *w)
{
    struct planned *p = &w->now;
    if (!plan_look_vlan(w, OFPVID_PRESENT))
        return false;
    if (!has_tag(w))
        return true;
    if (!plan_op(w, OFFLOAD_POP_VLAN, 0, 0))
        return false;
    p->added -= VLAN_TAG;
    if (p->n_pushed)
        bring_to_light(p);
    else
        lose_tag(p);
    return true;
}

/* ------------------------------------------------------------------ TTL */

static bool
set_ttl(struct plan_way *w, uint32_t kind, uint8_t ttl)
{
    w->now.ttl = ttl;
    return plan_op(w, kind, ttl, 0);
}

static bool
dec_ttl(struct plan_way *w, uint32_t kind)
{
    struct planned *p = &w->now;
    struct offload_rule *r = &w->out->rule;
    if (p->ttl < 0) {
        p->decrements++; /* each takes an op, so they are few */
        if (r->min_ttl <= p->decrements)
            r->min_ttl = p->decrements + 1u;
    } else if (p->ttl-- <= 1) {
        return plan_refuse(w, OFFLOAD_WHY_ttl);
    }
    return plan_op(w, kind, 0, 0);
}

/* From one IP header to the next, if that is an IP header. */
static bool
copy_ttl(struct plan_way *w)
{
    if (!has_ip(w))
        return false;
    if (is_proto(w, PROTO_IPIP) || is_proto(w, PROTO_IPV6))
        return plan_refuse(w, OFFLOAD_WHY_action);
    return w->why == OFFLOADED;
}

/* Only where there is no tag. */
static bool
push_missing(struct plan_way *w, uint16_t type)
{
    return plan_look_vlan(w, OFPVID_PRESENT) && (has_tag(w) || push_vlan(w, type));
}

/* ------------------------------------------------------------------ MPLS, PBB */

#define FIRST_BEHIND                                                                               \
    5 /* word of a key: from it on it tells of what is behind the EtherType, and PCP */
#define MOST_PUSHED                                                                                \
    2 /* tags in front of what is popped: the programs put four aside, two of them the packet's own */

/* Where the port looks inside, the key doesn't tell whether labels are in front.  super: the programs do it to
 * super-packets, too. */
static bool
may_move(struct plan_way *w, bool super)
{
    if (w->inside || !plan_look_vlan(w, OFPVID_PRESENT))
        return plan_refuse(w, w->why == OFFLOADED ? OFFLOAD_WHY_action : w->why);
    if (!super)
        w->out->rule.super = 0;
    return true;
}

static void
set_behind(struct flow_key *k, uint8_t byte)
{
    uint8_t pcp = k->vlan_pcp;
    memset(&k->w[FIRST_BEHIND], byte, (KEY_WORDS - FIRST_BEHIND) * sizeof k->w[0]);
    k->vlan_pcp = pcp;
}

static void
set_has(struct flow_key *k, uint16_t has)
{
    of_set16(k->vlan_vid, (uint16_t)(key_vid(k) | has));
}

/* The frame's type is this one now.  has: KEY_HAS_ of the key; told: those that are known. */
static void
retype(struct planned *p, uint16_t type, uint16_t has, uint16_t told)
{
    of_set16(p->key.eth_type, type);
    of_set16(p->known.eth_type, UINT16_MAX);
    of_set16(p->lost.eth_type, 0);
    set_has(&p->key, has);
    set_has(&p->known, told);
    set_has(&p->lost, (uint16_t)(KEY_HAS & ~told));
}

/* What a pop has uncovered. */
static void
lose_behind(struct planned *p)
{
    set_behind(&p->key, 0);
    set_behind(&p->known, 0);
    set_behind(&p->lost, 0xff);
}

static void
lose_eth(struct planned *p)
{
    struct flow_key *k[3] = {&p->key, &p->known, &p->lost};
    for (int i = 0; i < 3; i++) {
        const uint8_t all = i == 2 ? 0xff : 0;
        memset(k[i]->eth_dst, all, sizeof k[i]->eth_dst);
        memset(k[i]->eth_src, all, sizeof k[i]->eth_src);
        memset(k[i]->eth_type, all, sizeof k[i]->eth_type);
    }
}

/* What is pushed is in front of the tags, which are no longer the frame's. */
static void
cover_tags(struct planned *p)
{
    const uint16_t all = OFPVID_PRESENT | 0xfff;
    know_vid(p, 0, all);
    p->key.vlan_pcp = p->lost.vlan_pcp = 0;
    p->known.vlan_pcp = 0xff;
    p->n_pushed = 0;
    p->tag_type = 0;
}

/* A label in front of another one has its fields but for the last one, "bottom of stack". */
static void
put_label(struct planned *p, bool another, bool bottom)
{
    struct flow_key *k[3] = {&p->key, &p->known, &p->lost};
    const uint8_t all[3] = {0, 0xff, 0};
    for (int i = 0; i < 3; i++) {
        uint64_t label = k[i]->w[6];
        set_behind(k[i], all[i]);
        if (another)
            k[i]->w[6] = label;
        k[i]->mpls_bos = all[i];
        memset(k[i]->ipv6_exthdr, all[i], sizeof k[i]->ipv6_exthdr);
    }
    p->key.mpls_bos = bottom;
}

static bool
push_mpls(struct plan_way *w, uint16_t type)
{
    struct planned *p = &w->now;
    bool another = has_mpls(w), ip = !another && (is_type(w, TYPE_IPV4) || is_type(w, TYPE_IPV6));
    if (w->why != OFFLOADED || (ip && !has_ip(w)) || !may_move(w, !has_tag(w)))
        return false;
    if (p->has_itag) /* the kernel's checksum of the frame begins somewhere in it (bpf/edit.h) */
        return plan_refuse(w, OFFLOAD_WHY_action);
    if (!plan_op(w, OFFLOAD_PUSH_MPLS, type, of_get16(p->key.eth_type)))
        return false;
    if (!another && !ip)
        p->ttl = 0;
    w->out->rule.labels = true;
    put_label(p, another, !another || has_tag(w));
    cover_tags(p);
    retype(p, type, KEY_HAS_L3, KEY_HAS);
    p->added += MPLS_SHIM;
    return true;
}

/* Is the outermost label, or the I-TAG, not the packet's own? */
static bool
is_pushed(const struct planned *p)
{
    return of_get16(p->known.eth_type);
}

/* The key doesn't tell what is behind the label. */
static bool
pop_mpls(struct plan_way *w, uint16_t type)
{
    struct planned *p = &w->now;
    if (type < ETH_MIN_TYPE || is_vlan_type(type))
        return plan_refuse(w, OFFLOAD_WHY_unknown_key);
    if (p->n_pushed > MOST_PUSHED)
        return plan_refuse(w, OFFLOAD_WHY_ops);
    if (!may_move(w, !is_pushed(p)) || !plan_op(w, OFFLOAD_POP_MPLS, type, 0))
        return false;
    lose_behind(p);
    retype(p, type, 0, 0);
    p->added -= MPLS_SHIM;
    return true;
}

static bool
has_pbb(struct plan_way *w)
{
    return is_type(w, TYPE_PBB) && has_l3(w);
}

/* The customer's addresses are those that the frame has now. */
static bool
push_pbb(struct plan_way *w)
{
    struct planned *p = &w->now;
    struct flow_key *k[3] = {&p->key, &p->known, &p->lost};
    bool another = has_pbb(w);
    if (w->why != OFFLOADED || !may_move(w, false) ||
        !plan_op(w, OFFLOAD_PUSH_PBB, TYPE_PBB, of_get16(p->key.eth_type)))
        return false;
    for (int i = 0; i < 3; i++) {
        uint8_t isid[3], all = i == 1 ? 0xff : 0;
        memcpy(isid, k[i]->pbb_isid, sizeof isid);
        set_behind(k[i], all);
        if (another)
            memcpy(k[i]->pbb_isid, isid, sizeof isid);
    }
    cover_tags(p);
    retype(p, TYPE_PBB, KEY_HAS_L3, KEY_HAS);
    p->added += PBB_PUSH;
    p->has_itag = true;
    return true;
}

/* Nor does the key tell of the customer's header, whose tag is the outermost one if there is none in front. */
static bool
pop_pbb(struct plan_way *w)
{
    struct planned *p = &w->now;
    if (!has_pbb(w))
        return w->why == OFFLOADED;
    if (p->has_itag)
        return plan_refuse(w, OFFLOAD_WHY_unknown_key);
    if (p->n_pushed > MOST_PUSHED)
        return plan_refuse(w, OFFLOAD_WHY_ops);
    if (!may_move(w, false) || !plan_op(w, OFFLOAD_POP_PBB, 0, 0))
        return false;
    lose_behind(p);
    retype(p, 0, 0, 0);
    lose_eth(p);
    if (!has_tag(w))
        lose_tag(p);
    p->added -= PBB_PUSH;
    return true;
}

bool
plan_edit(struct plan_way *w, const struct act *a)
{
    switch (a->op) {
    case OFPAT_SET_FIELD: return set_field(w, (enum oxm_field)a->extra, a->data);
    case OFPAT_PUSH_VLAN:
        return a->extra ? push_missing(w, (uint16_t)a->arg) : push_vlan(w, (uint16_t)a->arg);
    case OFPAT_POP_VLAN: return pop_vlan(w);
    case OFPAT_SET_NW_TTL: return set_ttl(w, OFFLOAD_SET_TTL, (uint8_t)a->arg);
    case OFPAT_DEC_NW_TTL: return dec_ttl(w, OFFLOAD_DEC_TTL);
    case OFPAT_COPY_TTL_IN:
    case OFPAT_COPY_TTL_OUT: return copy_ttl(w);
    case OFPAT_PUSH_MPLS: return push_mpls(w, (uint16_t)a->arg);
    case OFPAT_POP_MPLS: return has_mpls(w) ? pop_mpls(w, (uint16_t)a->arg) : w->why == OFFLOADED;
    case OFPAT_SET_MPLS_TTL:
        return has_mpls(w) ? set_ttl(w, OFFLOAD_SET_MPLS_TTL, (uint8_t)a->arg)
                           : w->why == OFFLOADED;
    case OFPAT_DEC_MPLS_TTL:
        return has_mpls(w) ? dec_ttl(w, OFFLOAD_DEC_MPLS_TTL) : w->why == OFFLOADED;
    case OFPAT_PUSH_PBB: return push_pbb(w);
    case OFPAT_POP_PBB: return pop_pbb(w);
    default: return plan_refuse(w, OFFLOAD_WHY_action);
    }
}
