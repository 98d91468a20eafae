/* SPDX-License-Identifier: Apache-2.0 */
#include "random.h"

#include <stdlib.h>

uint32_t
random_below(struct random *c, uint32_t n)
{
    c->seed ^= c->seed << 13;
    c->seed ^= c->seed >> 7;
    c->seed ^= c->seed << 17;
    return (uint32_t)((c->seed >> 16 & 0xffffffff) * n >> 32);
}

/* ------------------------------------------------------------------ values */

static uint32_t
one_of(struct random *c, const uint32_t *v, uint32_t n)
{
    return v[random_below(c, n)];
}
#define ONE_OF(c, ...)                                                                             \
    one_of(c, (const uint32_t[]){__VA_ARGS__},                                                     \
           sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static uint32_t
small_number(struct random *c, enum oxm_field f)
{
    switch (f) {
    case OXM_in_port:
    case OXM_in_phy_port: return ONE_OF(c, 1, 2, 3, 4, 5, OFPP_LOCAL, OFPP_CONTROLLER);
    case OXM_metadata:
    case OXM_tunnel_id: return random_below(c, 4);
    case OXM_vlan_vid: return OFPVID_PRESENT | ONE_OF(c, 0, 1, 2, 0xfff);
    case OXM_eth_type:
        return ONE_OF(c, 0x800, 0x800, 0x86dd, 0x86dd, 0x806, 0x8847, 0x8848, 0x88e7, 0x88b5);
    case OXM_ip_proto: return ONE_OF(c, 1, 6, 6, 17, 17, 58, 58, 132, 4, 41, 60, 0, 47);
    case OXM_icmpv4_type: return ONE_OF(c, 0, 8);
    case OXM_icmpv6_type: return ONE_OF(c, 128, 135, 136, 0);
    case OXM_ipv6_exthdr: return random_below(c, 0x200);
    case OXM_tcp_src:
    case OXM_tcp_dst:
    case OXM_udp_src:
    case OXM_udp_dst:
    case OXM_sctp_src:
    case OXM_sctp_dst: return ONE_OF(c, 0, 80, 0xffff);
    case OXM_pbb_isid: return ONE_OF(c, 0, 1, 0xffffff);
    default: return ONE_OF(c, 0, 1, 3, 0xfffff) & ((1u << oxm_rows[f].bits) - 1);
    }
}

void
random_value(struct random *c, enum oxm_field f, uint8_t *out)
{
    const struct oxm_row *row = &oxm_rows[f];
    memset(out, 0, row->bytes);
    if (row->fmt == OXM_FMT_MAC) {
        out[5] = (uint8_t)random_below(c, 3);
        out[0] = once_in(c, 8) ? 0 : f == OXM_eth_dst && once_in(c, 8) ? 1 : 2;
    } else if (row->fmt == OXM_FMT_IPV4 && !once_in(c, 8)) {
        out[0] = 10;
        out[3] = (uint8_t)random_below(c, 3);
    } else if (row->fmt == OXM_FMT_IPV6 && !once_in(c, 8)) {
        out[0] = 0xfd;
        out[7] = (uint8_t)random_below(c, 2);
        out[15] = (uint8_t)random_below(c, 3);
    } else if (row->fmt != OXM_FMT_IPV4 && row->fmt != OXM_FMT_IPV6) {
        oxm_set_number(row, out, small_number(c, f));
    }
}

/* ------------------------------------------------------------------ building */

struct build {
    struct random *c;
    struct frame *f;
    bool tunnel; /* an IP packet in an IP packet */
};

static uint8_t *
put(struct build *b, uint32_t n)
{
    uint8_t *at = b->f->data + b->f->n;
    if (b->f->n + n > FRAME_ROOM)
        abort();
    for (uint32_t i = 0; i < n; i++)
        at[i] = (uint8_t)random_below(b->c, 256);
    b->f->n += n;
    return at;
}

static void
put16(struct build *b, uint16_t v)
{
    of_set16(put(b, 2), v);
}

static uint32_t
number(struct build *b, enum oxm_field f)
{
    return small_number(b->c, f);
}

static void
put_macs(struct build *b)
{
    static const uint8_t reserved[5] = {0x01, 0x80, 0xc2};
    uint8_t *dst = put(b, 6);
    random_value(b->c, OXM_eth_dst, dst);
    if (once_in(b->c, 16)) {
        memcpy(dst, reserved, sizeof reserved);
        dst[5] = (uint8_t)random_below(b->c, 17);
    }
    random_value(b->c, OXM_eth_src, put(b, 6));
}

static void
put_tags(struct build *b)
{
    while (once_in(b->c, b->c->tags ? 2 : 3)) {
        put16(b, (uint16_t)ONE_OF(b->c, 0x8100, 0x8100, 0x88a8, 0x9100));
        put16(b, (uint16_t)(number(b, OXM_vlan_pcp) << 13 | (number(b, OXM_vlan_vid) & 0xfff)));
    }
}

static uint8_t
ttl(struct build *b)
{
    return (uint8_t)ONE_OF(b->c, 0, 1, 2, 64, 64, 255);
}

/* ------------------------------------------------------------------ transport */

static void
put_nd(struct build *b, uint8_t type)
{
    random_value(b->c, OXM_ipv6_nd_target, put(b, 16));
    for (uint32_t n = random_below(b->c, 3); n; n--) {
        uint8_t *o = put(b, 8);
        uint32_t more = once_in(b->c, 4);
        o[0] = (uint8_t)ONE_OF(b->c, 1, 2, 5);
        o[1] = (uint8_t)(1 + more);
        random_value(b->c, type == 135 ? OXM_ipv6_nd_sll : OXM_ipv6_nd_tll, o + 2);
        put(b, more * 8);
    }
}

static void
put_l4(struct build *b, uint8_t proto, bool v6)
{
    uint8_t *h;
    uint32_t header = proto == 6 ? 20 : proto == 17 ? 8 : proto == 132 ? 12 : 8;
    h = put(b, header);
    if (proto == 6)
        h[12] = 0x50;
    if (proto == 6 || proto == 17 || proto == 132) {
        of_set16(h, (uint16_t)number(b, OXM_tcp_src));
        of_set16(h + 2, (uint16_t)number(b, OXM_tcp_dst));
    } else {
        h[0] = (uint8_t)number(b, v6 ? OXM_icmpv6_type : OXM_icmpv4_type);
        h[1] = (uint8_t)number(b, OXM_icmpv4_code);
    }
    if (v6 && proto == 58 && (h[0] == 135 || h[0] == 136))
        put_nd(b, h[0]);
    else
        put(b, random_below(b->c, 24));
}

/* The transport checksum from `ip` with addresses of `alen` bytes at `addr`. */
static void
finish_l4(struct build *b, uint32_t l4, uint8_t proto, uint32_t addr, uint32_t alen, bool partial)
{
    struct frame *f = b->f;
    uint32_t n = f->n - l4, off = proto == 6 ? 16 : proto == 17 ? 6 : 2;
    uint8_t pseudo[4] = {(uint8_t)(n >> 8), (uint8_t)n, 0, proto};
    if (proto == 132) {
        memset(f->data + l4 + 8, 0, 4);
        uint32_t crc = oracle_crc32c(f->data + l4, n);
        for (int i = 0; i < 4; i++)
            f->data[l4 + 8 + (uint32_t)i] = (uint8_t)(crc >> 8 * i);
        return;
    }
    of_set16(f->data + l4 + off, 0);
    if (proto == 17 && !partial && once_in(b->c, 5))
        return;
    uint32_t sum = proto == 1 ? 0 : oracle_sum(oracle_sum(0, pseudo, 4), f->data + addr, 2 * alen);
    uint16_t csum = (uint16_t)~oracle_sum(sum, f->data + l4, n);
    if (proto == 17 && n >= 10 && once_in(b->c, 4)) { /* on the edge of 0, which means none */
        uint16_t edge = (uint16_t)ONE_OF(b->c, 1, 2, 3, 4, 5, 80, 0xfffe);
        of_set16(f->data + l4 + 8, 0);
        csum = (uint16_t)~oracle_sum(sum, f->data + l4, n);
        of_set16(f->data + l4 + 8, (uint16_t)((csum + 0xffffu - edge) % 0xffff));
        csum = (uint16_t)~oracle_sum(sum, f->data + l4, n);
    }
    of_set16(f->data + l4 + off, proto == 17 && !csum ? 0xffff : csum);
    if (partial && (proto == 6 || proto == 17)) {
        f->csum_start = (uint16_t)l4;
        f->csum_offset = (uint16_t)off;
        f->csum_field = (uint16_t)sum;
    }
}

static bool
has_l4(uint8_t proto, bool v6)
{
    return proto == 6 || proto == 17 || proto == 132 || proto == (v6 ? 58 : 1);
}

/* ------------------------------------------------------------------ network */

static void put_ip(struct build *b, bool v6);

static void
put_payload(struct build *b, uint8_t proto, bool v6)
{
    if ((proto == 4 || proto == 41) && !b->tunnel) {
        b->tunnel = true;
        put_ip(b, proto == 41);
    } else if (has_l4(proto, v6)) {
        put_l4(b, proto, v6);
    } else {
        put(b, random_below(b->c, 40));
    }
}

static void
put_ipv4(struct build *b)
{
    struct frame *f = b->f;
    uint32_t at = f->n, header = 20 + 4 * (once_in(b->c, 4) ? random_below(b->c, 5) : 0);
    bool tunnel = b->tunnel, fragment = once_in(b->c, 8);
    uint8_t *h = put(b, header), proto = (uint8_t)number(b, OXM_ip_proto);
    h[0] = (uint8_t)(0x40 | header / 4);
    h[1] = (uint8_t)(number(b, OXM_ip_dscp) << 2 | number(b, OXM_ip_ecn));
    of_set16(h + 6, fragment ? (uint16_t)ONE_OF(b->c, 0x2000, 0x2003, 3) : 0x4000);
    h[8] = ttl(b);
    h[9] = proto;
    random_value(b->c, OXM_ipv4_src, h + 12);
    random_value(b->c, OXM_ipv4_dst, h + 16);
    put_payload(b, proto, false);
    of_set16(h + 2, (uint16_t)(f->n - at));
    of_set16(h + 10, 0);
    of_set16(h + 10, (uint16_t)~oracle_sum(0, h, header));
    if (has_l4(proto, false) && !(of_get16(h + 6) & 0x1fff))
        finish_l4(b, at + header, proto, at + 12, 4,
                  b->c->partial && !tunnel && !fragment && once_in(b->c, 3));
}

struct exts {
    bool routed, fragment, later;
};

/* An extension header; where its own next header is named. */
static uint8_t *
put_ext(struct build *b, uint8_t kind, struct exts *e)
{
    uint32_t more = random_below(b->c, 2);
    uint8_t *h = put(b, kind == 44 ? 8 : kind == 51 ? 12 + 4 * more : 8 + 8 * more);
    h[1] = (uint8_t)(kind == 51 ? 1 + more : more);
    if (kind == 44) {
        of_set16(h + 2, (uint16_t)ONE_OF(b->c, 0, 1, 0x10, 0x11));
        e->later |= of_get16(h + 2) >> 3;
        e->fragment |= of_get16(h + 2) != 0;
    }
    if (kind == 43) {
        h[3] = (uint8_t)random_below(b->c, 2);
        e->routed |= h[3];
    }
    return h;
}

static void
put_ipv6(struct build *b)
{
    static const uint8_t usual[] = {0, 60, 43, 44, 51, 60};
    struct frame *f = b->f;
    struct exts e = {0};
    bool tunnel = b->tunnel, odd = once_in(b->c, 6);
    uint32_t at = f->n;
    uint8_t *h = put(b, 40), *next = h + 6, proto = (uint8_t)number(b, OXM_ip_proto);
    if (proto == 0 || proto == 60)
        proto = (uint8_t)ONE_OF(b->c, 59, 50, 6);
    uint32_t tos = number(b, OXM_ip_dscp) << 2 | number(b, OXM_ip_ecn);
    of_set32(h, 6u << 28 | tos << 20 | number(b, OXM_ipv6_flabel));
    h[7] = ttl(b);
    random_value(b->c, OXM_ipv6_src, h + 8);
    random_value(b->c, OXM_ipv6_dst, h + 24);
    for (uint32_t i = 0; i < sizeof usual; i++)
        if (once_in(b->c, 5)) {
            *next = odd ? usual[random_below(b->c, sizeof usual)] : usual[i];
            next = put_ext(b, *next, &e);
        }
    *next = proto;
    uint32_t l4 = f->n;
    put_payload(b, proto, true);
    of_set16(h + 4, (uint16_t)(f->n - at - 40));
    if (has_l4(proto, true) && !e.later)
        finish_l4(b, l4, proto, at + 8, 16,
                  b->c->partial && !tunnel && !e.fragment && !e.routed && once_in(b->c, 3));
}

static void
put_ip(struct build *b, bool v6)
{
    if (v6)
        put_ipv6(b);
    else
        put_ipv4(b);
}

static void
put_arp(struct build *b)
{
    memcpy(put(b, 6), once_in(b->c, 8) ? "\0\6\10\0\6\4" : "\0\1\10\0\6\4", 6);
    put16(b, (uint16_t)ONE_OF(b->c, 0, 1, 2));
    random_value(b->c, OXM_arp_sha, put(b, 6));
    random_value(b->c, OXM_arp_spa, put(b, 4));
    random_value(b->c, OXM_arp_tha, put(b, 6));
    random_value(b->c, OXM_arp_tpa, put(b, 4));
}

static void
put_mpls(struct build *b)
{
    bool bottom = false;
    while (!bottom) {
        bottom = once_in(b->c, b->c->tags ? 4 : 2);
        of_set32(put(b, 4), number(b, OXM_mpls_label) << 12 | number(b, OXM_mpls_tc) << 9 |
                                (uint32_t)bottom << 8 | ttl(b));
    }
    if (once_in(b->c, 8))
        put(b, random_below(b->c, 30));
    else
        put_ip(b, once_in(b->c, 2));
}

/* ------------------------------------------------------------------ the frame */

static void
put_type(struct build *b)
{
    uint16_t type = (uint16_t)ONE_OF(b->c, 0x800, 0x800, 0x800, 0x86dd, 0x86dd, 0x86dd, 0x806,
                                     0x8847, 0x8848, 0x88b5);
    uint32_t length_at = 0;
    if (b->c->tags && once_in(b->c, 2))
        type = 0x8847;
    if (once_in(b->c, 16)) {
        length_at = b->f->n;
        put16(b, 0);
        memcpy(put(b, 6), once_in(b->c, 4) ? "\x42\x42\3\0\0\0" : "\xaa\xaa\3\0\0\0", 6);
    }
    put16(b, type);
    if (type == 0x806)
        put_arp(b);
    else if (type == 0x8847 || type == 0x8848)
        put_mpls(b);
    else if (type == 0x88b5)
        put(b, random_below(b->c, 30));
    else
        put_ip(b, type == 0x86dd);
    if (length_at)
        of_set16(b->f->data + length_at, (uint16_t)(b->f->n - length_at - 2));
}

void
random_frame(struct random *c, struct frame *f)
{
    struct build b = {.c = c, .f = f};
    f->n = 0;
    f->csum_start = 0;
    put_macs(&b);
    put_tags(&b);
    if (once_in(c, 6)) { /* in a backbone */
        put16(&b, 0x88e7);
        put(&b, 1);
        random_value(c, OXM_pbb_isid, put(&b, 3));
        put_macs(&b);
        put_tags(&b);
    }
    put_type(&b);
    if (f->csum_start)
        return;
    if (once_in(c, 12)) /* a byte somewhere is wrong */
        f->data[14 + random_below(c, f->n - 14)] ^= (uint8_t)(1 << random_below(c, 8));
    if (once_in(c, 10)) /* cut off */
        f->n = 14 + random_below(c, f->n - 13);
    else if (once_in(c, 8)) /* padded */
        put(&b, 1 + random_below(c, 6));
}

/* ------------------------------------------------------------------ siblings */

static bool
same_fields(const struct frame *a, const struct frame *b)
{
    struct oracle_packet x = {.n = a->n}, y = {.n = b->n};
    uint8_t xv[OXM_MAX_LEN], yv[OXM_MAX_LEN];
    memcpy(x.data, a->data, a->n);
    memcpy(y.data, b->data, b->n);
    for (int f = 0; f < OXM_N; f++)
        if (oracle_field(&x, (enum oxm_field)f, xv) != oracle_field(&y, (enum oxm_field)f, yv) ||
            memcmp(xv, yv, oxm_rows[f].bytes))
            return false;
    return true;
}

static void
another_tag(struct random *c, struct frame *f)
{
    memmove(f->data + 20, f->data + 16, f->n - 16);
    of_set16(f->data + 16, (uint16_t)ONE_OF(c, 0x8100, 0x88a8));
    of_set16(f->data + 18, (uint16_t)small_number(c, OXM_vlan_vid) & 0xfff);
    f->n += 4;
}

/* Where what no field tells begins. */
static uint32_t
hidden_from(const struct frame *f)
{
    struct oracle_packet p = {.n = f->n};
    struct oracle_view v;
    memcpy(p.data, f->data, f->n);
    oracle_parse(&p, &v);
    if (v.there[H_MPLS] || v.there[H_PBB])
        return v.at[v.there[H_MPLS] ? H_MPLS : H_PBB] + 4;
    return v.l4 ? v.l4 + 4 : v.ip.payload ? v.ip.payload : v.type_at + 2;
}

void
random_sibling(struct random *c, const struct frame *of, struct frame *f)
{
    uint32_t hidden = hidden_from(of);
    uint16_t type = of_get16(of->data + 12);
    for (int tries = 0; tries < 40; tries++) {
        *f = *of;
        f->csum_start = 0;
        bool tagged = (type == 0x8100 || type == 0x88a8) && f->n >= 18;
        if (tagged && f->n + 4 <= FRAME_ROOM && once_in(c, 3))
            another_tag(c, f);
        else
            for (uint32_t n = 1 + random_below(c, 4); n; n--) {
                uint32_t at =
                    once_in(c, 2) ? 18 + random_below(c, f->n) : hidden + random_below(c, 6);
                if (at < f->n)
                    f->data[at] =
                        (uint8_t)ONE_OF(c, 0, 1, 2, 6, 17, 58, 0x45, 0x60, 0x81, 0x88, 0xff);
            }
        if (same_fields(of, f))
            return;
    }
}
