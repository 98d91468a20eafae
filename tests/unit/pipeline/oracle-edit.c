/* SPDX-License-Identifier: Apache-2.0 */
/* What actions do to a frame (5.12, 7.2.5). */
#include "oracle.h"

#include <stdlib.h>

/* ------------------------------------------------------------------ checksums */

uint32_t
oracle_sum(uint32_t start, const uint8_t *p, uint32_t n)
{
    uint32_t sum = start;
    for (uint32_t i = 0; i < n; i++)
        sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return sum;
}

uint32_t
oracle_crc32c(const uint8_t *p, uint32_t n)
{
    uint32_t crc = 0xffffffff;
    for (uint32_t i = 0; i < n * 8; i++) {
        uint32_t bit = (crc ^ p[i / 8] >> i % 8) & 1;
        crc = crc >> 1 ^ (bit ? 0x82f63b78 : 0);
    }
    return ~crc;
}

/* Everything that a checksum covers but itself: together they are the same after an edit as before
 * (0xffff where the checksum was right), so that right ones stay right, and those that can't be
 * judged, of fragments and packets cut off, are no more wrong than they were. */
struct sums {
    uint32_t ip_at, ip_header; /* 0: no IPv4 header */
    uint32_t l4_at, l4_csum;   /* offset of the field; 0: none */
    uint32_t sctp_at;
    uint32_t ip_total, l4_total, sctp_diff;
    uint8_t before[ORACLE_ROOM];
};

static uint32_t
ip_sum(const struct oracle_packet *p, const struct sums *s)
{
    return oracle_sum(oracle_sum(0, p->data + s->ip_at, 10), p->data + s->ip_at + 12,
                      s->ip_header - 12);
}

static uint32_t
l4_sum(const struct oracle_packet *p, const struct sums *s, const struct oracle_ip *ip)
{
    const uint8_t *d = p->data;
    uint32_t sum = oracle_sum(0, d + s->l4_at, s->l4_csum - s->l4_at), n = ip->v6 ? 16 : 4;
    sum = oracle_sum(sum, d + s->l4_csum + 2, ip->end - s->l4_csum - 2);
    if (ip->proto == 1)
        return sum;
    sum = oracle_sum(sum + d[ip->proto_at], d + ip->at + (ip->v6 ? 8 : 12), n);
    return ip->routed ? sum : oracle_sum(sum, d + ip->at + (ip->v6 ? 24 : 16), n);
}

static uint32_t
sctp_sum(const struct oracle_packet *p, const struct sums *s, const struct oracle_ip *ip)
{
    uint8_t copy[ORACLE_ROOM];
    uint32_t n = ip->end - s->sctp_at;
    memcpy(copy, p->data + s->sctp_at, n);
    memset(copy + 8, 0, 4);
    return oracle_crc32c(copy, n);
}

static uint32_t
little32(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* which: of the IP header at ip->at, and (l4) of what it carries */
static struct sums
sums_before(const struct oracle_packet *p, const struct oracle_ip *ip, uint32_t l4)
{
    struct sums s = {0};
    const uint8_t *d = p->data;
    memcpy(s.before, d, p->n);
    if (ip->there && !ip->v6) {
        s.ip_at = ip->at;
        s.ip_header = (d[ip->at] & 15u) * 4;
        s.ip_total = ip_sum(p, &s) + of_get16(d + s.ip_at + 10);
    }
    if (!l4)
        return s;
    s.l4_at = l4;
    s.l4_csum = l4 + (ip->proto == 6 ? 16 : ip->proto == 17 ? 6 : 2);
    if (ip->proto == 132) {
        s.sctp_at = ip->fragment ? 0 : l4;
        s.l4_csum = 0;
        if (s.sctp_at)
            s.sctp_diff = sctp_sum(p, &s, ip) ^ little32(d + l4 + 8);
    } else if (ip->proto == 17 && !of_get16(d + s.l4_csum)) {
        s.l4_csum = 0; /* the sender made none */
    } else {
        s.l4_total = l4_sum(p, &s, ip) + of_get16(d + s.l4_csum);
    }
    return s;
}

/* The checksum that makes sum + it the total again, in ones' complement; never 0xffff. */
static uint16_t
made_up(uint32_t total, uint32_t sum)
{
    return (uint16_t)((total + 0xffff - sum) % 0xffff);
}

static bool
changed(const struct oracle_packet *p, const struct sums *s, uint32_t at, uint32_t n)
{
    return memcmp(p->data + at, s->before + at, n) != 0;
}

/* Anything that the transport's checksum covers? */
static bool
l4_changed(const struct oracle_packet *p, const struct sums *s, const struct oracle_ip *ip)
{
    uint32_t n = ip->v6 ? 16 : 4, src = ip->at + (ip->v6 ? 8 : 12);
    return changed(p, s, s->l4_at, ip->end - s->l4_at) ||
           (ip->proto != 1 && (changed(p, s, src, n) || changed(p, s, ip->proto_at, 1) ||
                               (!ip->routed && changed(p, s, src + n, n))));
}

static void
sums_after(struct oracle_packet *p, const struct sums *s, const struct oracle_ip *ip)
{
    uint8_t *d = p->data;
    if (s->ip_header && changed(p, s, s->ip_at, s->ip_header))
        of_set16(d + s->ip_at + 10, made_up(s->ip_total, ip_sum(p, s)));
    if (s->l4_csum && l4_changed(p, s, ip)) {
        uint16_t c = made_up(s->l4_total, l4_sum(p, s, ip));
        of_set16(d + s->l4_csum, !c && ip->proto == 17 ? 0xffff : c);
    }
    for (uint32_t i = 0, c = s->sctp_at ? sctp_sum(p, s, ip) ^ s->sctp_diff : 0;
         s->sctp_at && i < 4; i++)
        d[s->sctp_at + 8 + i] = (uint8_t)(c >> 8 * i);
}

/* ------------------------------------------------------------------ set_field */

static void
set_field(struct oracle_packet *p, const struct of_oxm *o)
{
    enum oxm_field f = (enum oxm_field)o->row->field;
    struct oracle_view v;
    if (f == OXM_tunnel_id)
        p->tunnel_id = oxm_number(o->row, o->value);
    oracle_parse(p, &v);
    const struct oracle_place *pl = oracle_place(&v, f);
    if (!pl)
        return;
    struct oracle_ip ip = v.ip; /* for ip_proto: the checksum of what it was stays right */
    struct sums s = sums_before(p, &ip, v.l4);
    oracle_copy_bits(p->data + v.at[pl->h], pl->bit, o->value, o->row->bytes * 8u - pl->width,
                     pl->width);
    if (f != OXM_eth_type)
        sums_after(p, &s, &ip);
}

/* ------------------------------------------------------------------ room */

static void
insert(struct oracle_packet *p, uint32_t at, uint32_t n)
{
    if (p->n + n > ORACLE_ROOM)
        abort();
    memmove(p->data + at + n, p->data + at, p->n - at);
    memset(p->data + at, 0, n);
    p->n += n;
}

static void
take_out(struct oracle_packet *p, uint32_t at, uint32_t n)
{
    memmove(p->data + at, p->data + at + n, p->n - at - n);
    p->n -= n;
}

/* ------------------------------------------------------------------ TTL */

struct ttl {
    uint32_t at; /* 0: there is none */
    struct oracle_ip ip;
};

static struct ttl
ip_ttl(const struct oracle_ip *ip)
{
    struct ttl t = {.ip = *ip};
    if (ip->there)
        t.at = ip->at + (ip->v6 ? 7 : 8);
    return t;
}

static struct ttl
mpls_ttl(const struct oracle_view *v)
{
    struct ttl t = {0};
    if (v->there[H_MPLS])
        t.at = v->at[H_MPLS] + 3;
    return t;
}

static struct ttl
outer_ttl(const struct oracle_view *v)
{
    return v->there[H_MPLS] ? mpls_ttl(v) : ip_ttl(&v->ip);
}

static struct ttl
inner_ttl(const struct oracle_packet *p, const struct oracle_view *v)
{
    struct oracle_ip in = {0};
    if (v->there[H_MPLS]) {
        uint32_t next = v->at[H_MPLS] + 4;
        if (!(p->data[next - 2] & 1))
            return (struct ttl){.at = next + 4 <= p->n ? next + 3 : 0};
        if (next < p->n) /* it doesn't say what is behind it */
            in = oracle_parse_ip(p->data, p->n, next, p->data[next] >> 4 == 6);
    } else if (v->ip.there && v->ip.payload && (v->ip.proto == 4 || v->ip.proto == 41)) {
        in = oracle_parse_ip(p->data, v->ip.end, v->ip.payload, v->ip.proto == 41);
    }
    return ip_ttl(&in);
}

static void
set_ttl(struct oracle_packet *p, const struct ttl *t, uint8_t value)
{
    if (!t->at || p->data[t->at] == value)
        return;
    struct sums s = sums_before(p, &t->ip, 0);
    p->data[t->at] = value;
    sums_after(p, &s, &t->ip);
}

static enum oracle_end
count_down(struct oracle_packet *p, const struct ttl *t)
{
    if (t->at && p->data[t->at] <= 1)
        return ORACLE_TTL;
    if (t->at)
        set_ttl(p, t, (uint8_t)(p->data[t->at] - 1));
    return ORACLE_GOES_ON;
}

static enum oracle_end
ttl_action(struct oracle_packet *p, const struct of_tagged *t, const struct oracle_view *v)
{
    struct ttl mpls = mpls_ttl(v), nw = ip_ttl(&v->ip), outer = outer_ttl(v);
    struct ttl inner = inner_ttl(p, v);
    uint8_t value = 0;
    if (t->row->type == OFPAT_SET_MPLS_TTL || t->row->type == OFPAT_SET_NW_TTL)
        value = ((const struct of_action_ttl *)t)->ttl;
    switch (t->row->type) {
    case OFPAT_SET_MPLS_TTL: set_ttl(p, &mpls, value); break;
    case OFPAT_SET_NW_TTL: set_ttl(p, &nw, value); break;
    case OFPAT_DEC_MPLS_TTL: return count_down(p, &mpls);
    case OFPAT_DEC_NW_TTL: return count_down(p, &nw);
    case OFPAT_COPY_TTL_OUT:
        if (outer.at && inner.at)
            set_ttl(p, &outer, p->data[inner.at]);
        break;
    default:
        if (outer.at && inner.at)
            set_ttl(p, &inner, p->data[outer.at]);
    }
    return ORACLE_GOES_ON;
}

/* ------------------------------------------------------------------ tags */

static void
push_vlan(struct oracle_packet *p, uint16_t type, const struct oracle_view *v)
{
    uint16_t tci = v->there[H_TAG] ? of_get16(p->data + v->at[H_TAG]) & 0xefff : 0;
    insert(p, 12, 4);
    of_set16(p->data + 12, type);
    of_set16(p->data + 14, tci);
}

/* An 802.3 frame's length, when something behind it became longer or shorter. */
static void
llc_length(struct oracle_packet *p, uint32_t at, int by)
{
    int n = of_get16(p->data + at) + by;
    if (n >= 0 && n < 0x600)
        of_set16(p->data + at, (uint16_t)n);
}

static void
push_mpls(struct oracle_packet *p, uint16_t type, const struct oracle_view *v)
{
    uint32_t at = v->there[H_TAG] ? 12 : v->type_at, shim = 0;
    uint16_t under = of_get16(p->data + at);
    if (v->there[H_MPLS])
        shim = of_get32(p->data + v->at[H_MPLS]) & ~0x100u;
    else if (v->ip.there)
        shim = p->data[ip_ttl(&v->ip).at];
    if (under != 0x8847 && under != 0x8848)
        shim |= 0x100; /* the bottom of the stack */
    insert(p, at + 2, 4);
    of_set16(p->data + at, type);
    of_set32(p->data + at + 2, shim);
    if (v->llc_at && at == v->type_at)
        llc_length(p, v->llc_at, 4);
}

static void
pop_mpls(struct oracle_packet *p, uint16_t type, const struct oracle_view *v)
{
    take_out(p, v->at[H_MPLS], 4);
    of_set16(p->data + v->type_at, type);
    if (v->llc_at)
        llc_length(p, v->llc_at, -4);
}

static void
push_pbb(struct oracle_packet *p, uint16_t type, const struct oracle_view *v)
{
    uint32_t tag = v->there[H_PBB] ? of_get32(p->data + v->at[H_PBB]) & 0xffffff : 0;
    if (v->there[H_TAG])
        tag |= (uint32_t)(p->data[v->at[H_TAG]] >> 5) << 29;
    insert(p, 0, 18);
    memcpy(p->data, p->data + 18, 12);
    of_set16(p->data + 12, type);
    of_set32(p->data + 14, tag);
}

/* The backbone's tags stay (7.2.5), in front of the customer's. */
static enum oracle_end
pop_pbb(struct oracle_packet *p, const struct oracle_view *v)
{
    uint32_t customer = v->at[H_PBB] + 4;
    if (customer + 14 > p->n)
        return ORACLE_DROP;
    memcpy(p->data, p->data + customer, 12);
    take_out(p, v->type_at, customer + 12 - v->type_at);
    return ORACLE_GOES_ON;
}

enum oracle_end
oracle_edit(struct oracle_packet *p, const struct of_tagged *t)
{
    const struct of_action_push *push = (const struct of_action_push *)t;
    struct oracle_view v;
    oracle_parse(p, &v);
    switch (t->row->type) {
    case OFPAT_SET_FIELD:
        set_field(p, &((const struct of_action_set_field *)t)->field);
        return ORACLE_GOES_ON;
    case OFPAT_PUSH_VLAN: push_vlan(p, push->ethertype, &v); return ORACLE_GOES_ON;
    case OFPAT_POP_VLAN:
        if (v.there[H_TAG])
            take_out(p, 12, 4);
        return ORACLE_GOES_ON;
    case OFPAT_PUSH_MPLS: push_mpls(p, push->ethertype, &v); return ORACLE_GOES_ON;
    case OFPAT_POP_MPLS:
        if (v.there[H_MPLS])
            pop_mpls(p, push->ethertype, &v);
        return ORACLE_GOES_ON;
    case OFPAT_PUSH_PBB: push_pbb(p, push->ethertype, &v); return ORACLE_GOES_ON;
    case OFPAT_POP_PBB: return v.there[H_PBB] ? pop_pbb(p, &v) : ORACLE_GOES_ON;
    default: return ttl_action(p, t, &v);
    }
}

void
oracle_retag(struct oracle_packet *p, uint16_t vlan, bool tagged)
{
    struct oracle_view v;
    oracle_parse(p, &v);
    if (v.there[H_TAG] && !tagged)
        take_out(p, 12, 4);
    if (!tagged)
        return;
    if (!v.there[H_TAG]) {
        insert(p, 12, 4);
        p->data[12] = 0x81;
    }
    of_set16(p->data + 14, (uint16_t)((of_get16(p->data + 14) & 0xf000) | vlan));
}
