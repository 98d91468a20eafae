/* SPDX-License-Identifier: Apache-2.0 */
/* What is in a frame, by RFC and IEEE. */
#include "oracle.h"

static bool
is_tag(uint32_t type)
{
    return type == 0x8100 || type == 0x88a8 || type == 0x9100;
}

/* ------------------------------------------------------------------ IP */

static void
ipv4(const uint8_t *d, uint32_t n, uint32_t at, struct oracle_ip *ip)
{
    if (at + 20 > n || d[at] >> 4 != 4)
        return;
    uint32_t header = (d[at] & 15u) * 4, total = of_get16(d + at + 2);
    if (header < 20 || at + header > n)
        return;
    ip->there = true;
    ip->end = at + total > n ? n : at + (total < header ? header : total);
    ip->proto_at = at + 9;
    ip->proto = d[at + 9];
    uint16_t frag = of_get16(d + at + 6);
    ip->later = (frag & 0x1fff) != 0;
    ip->fragment = ip->later || (frag & 0x2000);
    ip->payload = ip->later ? 0 : at + header;
}

static int
rank_of(uint8_t proto)
{
    switch (proto) {
    case 0: return 1;
    case 43: return 3;
    case 44: return 4;
    case 51: return 5;
    case 50: return 6;
    default: return 7; /* destination options; rank 2 when before the routing header */
    }
}

/* In RFC 2460's order, one of the destination options (-1: none) being the early one? */
static bool
in_order(const uint8_t *seen, uint32_t n, int early)
{
    int last = 0;
    for (uint32_t i = 0; i < n; i++) {
        int rank = (int)i == early ? 2 : rank_of(seen[i]);
        if (rank < last)
            return false;
        last = rank;
    }
    return true;
}

static uint16_t
order_bits(const uint8_t *seen, uint32_t n)
{
    bool ordered = in_order(seen, n, -1), again = false;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t same = 0;
        for (uint32_t j = 0; j < n; j++)
            same += seen[j] == seen[i];
        again |= same > (seen[i] == 60 ? 2 : 1);
        if (seen[i] == 60)
            ordered |= in_order(seen, n, (int)i);
    }
    return (uint16_t)((again ? OFPIEH_UNREP : 0) | (ordered ? 0 : OFPIEH_UNSEQ));
}

static uint16_t
ext_bit(uint8_t proto)
{
    static const struct {
        uint8_t proto;
        uint16_t bit;
    } bits[] = {{0, OFPIEH_HOP},  {43, OFPIEH_ROUTER}, {44, OFPIEH_FRAG},
                {50, OFPIEH_ESP}, {51, OFPIEH_AUTH},   {60, OFPIEH_DEST}};
    for (uint32_t i = 0; i < sizeof bits / sizeof bits[0]; i++)
        if (bits[i].proto == proto)
            return bits[i].bit;
    return 0;
}

static uint32_t
ext_length(const uint8_t *d, uint32_t at, uint8_t proto)
{
    if (proto == 44)
        return 8;
    return proto == 51 ? (d[at + 1] + 2u) * 4 : (d[at + 1] + 1u) * 8;
}

static void
ipv6(const uint8_t *d, uint32_t n, uint32_t at, struct oracle_ip *ip)
{
    uint8_t seen[512];
    uint32_t n_seen = 0;
    if (at + 40 > n || d[at] >> 4 != 6)
        return;
    ip->there = true;
    ip->end = at + 40 + of_get16(d + at + 4);
    if (ip->end > n)
        ip->end = n;
    ip->proto_at = at + 6;
    at += 40;
    for (;;) {
        ip->proto = d[ip->proto_at];
        if (!ext_bit(ip->proto))
            break;
        ip->exthdr |= ext_bit(ip->proto);
        seen[n_seen++] = ip->proto;
        if (ip->proto == 50)
            break;
        if (at + 8 > ip->end || ext_length(d, at, ip->proto) < 8 ||
            at + ext_length(d, at, ip->proto) > ip->end) {
            ip->exthdr |= order_bits(seen, n_seen);
            return;
        }
        if (ip->proto == 44) {
            ip->later |= (of_get16(d + at + 2) >> 3) != 0;
            ip->fragment |= ip->later || (d[at + 3] & 1);
        }
        if (ip->proto == 43 && d[at + 3])
            ip->routed = true;
        uint32_t length = ext_length(d, at, ip->proto);
        ip->proto_at = at;
        ip->proto = d[at];
        at += length;
        if (ip->later)
            break;
    }
    if (ip->proto == 59 && !ip->later)
        ip->exthdr |= OFPIEH_NONEXT;
    ip->exthdr |= order_bits(seen, n_seen);
    ip->payload = ip->later ? 0 : at;
}

struct oracle_ip
oracle_parse_ip(const uint8_t *d, uint32_t n, uint32_t at, bool v6)
{
    struct oracle_ip ip = {.at = at, .v6 = v6};
    if (v6)
        ipv6(d, n, at, &ip);
    else
        ipv4(d, n, at, &ip);
    return ip;
}

/* ------------------------------------------------------------------ the headers of a frame */

static void
found(struct oracle_view *v, enum oracle_header h, uint32_t at)
{
    v->there[h] = true;
    v->at[h] = at;
}

static void
nd_options(const uint8_t *d, uint32_t at, uint32_t end, uint8_t kind, enum oracle_header h,
           struct oracle_view *v)
{
    while (at + 8 <= end && d[at + 1] && at + d[at + 1] * 8u <= end && !v->there[h]) {
        if (d[at] == kind && d[at + 1] == 1)
            found(v, h, at + 2);
        at += d[at + 1] * 8u;
    }
}

static void
transport(const uint8_t *d, struct oracle_view *v)
{
    static const struct {
        uint8_t proto, need;
        enum oracle_header h;
        bool v4, v6;
    } kinds[] = {{6, 20, H_TCP, 1, 1},
                 {17, 8, H_UDP, 1, 1},
                 {132, 12, H_SCTP, 1, 1},
                 {1, 4, H_ICMPV4, 1, 0},
                 {58, 4, H_ICMPV6, 0, 1}};
    const struct oracle_ip *ip = &v->ip;
    for (uint32_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (ip->payload && kinds[i].proto == ip->proto && (ip->v6 ? kinds[i].v6 : kinds[i].v4) &&
            ip->payload + kinds[i].need <= ip->end) {
            v->l4 = ip->payload;
            found(v, kinds[i].h, v->l4);
        }
    if (!v->there[H_ICMPV6] || v->l4 + 24 > ip->end)
        return;
    if (d[v->l4] == 135 || d[v->l4] == 136)
        found(v, H_ND_TARGET, v->l4 + 8);
    if (d[v->l4] == 135)
        nd_options(d, v->l4 + 24, ip->end, 1, H_ND_SLL, v);
    if (d[v->l4] == 136)
        nd_options(d, v->l4 + 24, ip->end, 2, H_ND_TLL, v);
}

static void
payload(const uint8_t *d, uint32_t n, uint32_t at, struct oracle_view *v)
{
    if (v->type == 0x800 || v->type == 0x86dd) {
        v->ip = oracle_parse_ip(d, n, at, v->type == 0x86dd);
        if (!v->ip.there)
            return;
        found(v, v->ip.v6 ? H_IPV6 : H_IPV4, at);
        found(v, H_PROTO, v->ip.proto_at);
        transport(d, v);
    } else if (v->type == 0x806 && at + 28 <= n && !memcmp(d + at, "\0\1\10\0\6\4", 6)) {
        found(v, H_ARP, at);
    } else if ((v->type == 0x8847 || v->type == 0x8848) && at + 4 <= n) {
        found(v, H_MPLS, at);
    } else if (v->type == 0x88e7 && at + 4 <= n) {
        found(v, H_PBB, at);
    }
}

void
oracle_parse(const struct oracle_packet *p, struct oracle_view *v)
{
    const uint8_t *d = p->data;
    uint32_t at = 12;
    memset(v, 0, sizeof *v);
    found(v, H_ETH, 0);
    while (at + 6 <= p->n && is_tag(of_get16(d + at))) {
        if (!v->there[H_TAG])
            found(v, H_TAG, at + 2);
        at += 4;
    }
    v->type = of_get16(d + at);
    if (v->type < 0x600) {
        uint32_t length_at = at;
        v->type = 0x5ff;
        if (at + 10 <= p->n && !memcmp(d + at + 2, "\xaa\xaa\3\0\0\0", 6) &&
            of_get16(d + at + 8) >= 0x600) {
            at += 8;
            v->type = of_get16(d + at);
            v->llc_at = length_at;
        }
    }
    v->type_at = at;
    found(v, H_TYPE, at);
    payload(d, p->n, at + 2, v);
}

/* ------------------------------------------------------------------ fields */

/* Of a field with two places one at most is there. */
static const struct oracle_place places[OXM_N][2] = {
    [OXM_eth_dst] = {{H_ETH, 0, 48}},
    [OXM_eth_src] = {{H_ETH, 48, 48}},
    [OXM_eth_type] = {{H_TYPE, 0, 16}},
    [OXM_vlan_vid] = {{H_TAG, 4, 12}},
    [OXM_vlan_pcp] = {{H_TAG, 0, 3}},
    [OXM_ip_dscp] = {{H_IPV4, 8, 6}, {H_IPV6, 4, 6}},
    [OXM_ip_ecn] = {{H_IPV4, 14, 2}, {H_IPV6, 10, 2}},
    [OXM_ip_proto] = {{H_PROTO, 0, 8}},
    [OXM_ipv4_src] = {{H_IPV4, 96, 32}},
    [OXM_ipv4_dst] = {{H_IPV4, 128, 32}},
    [OXM_tcp_src] = {{H_TCP, 0, 16}},
    [OXM_tcp_dst] = {{H_TCP, 16, 16}},
    [OXM_udp_src] = {{H_UDP, 0, 16}},
    [OXM_udp_dst] = {{H_UDP, 16, 16}},
    [OXM_sctp_src] = {{H_SCTP, 0, 16}},
    [OXM_sctp_dst] = {{H_SCTP, 16, 16}},
    [OXM_icmpv4_type] = {{H_ICMPV4, 0, 8}},
    [OXM_icmpv4_code] = {{H_ICMPV4, 8, 8}},
    [OXM_arp_op] = {{H_ARP, 48, 16}},
    [OXM_arp_sha] = {{H_ARP, 64, 48}},
    [OXM_arp_spa] = {{H_ARP, 112, 32}},
    [OXM_arp_tha] = {{H_ARP, 144, 48}},
    [OXM_arp_tpa] = {{H_ARP, 192, 32}},
    [OXM_ipv6_src] = {{H_IPV6, 64, 128}},
    [OXM_ipv6_dst] = {{H_IPV6, 192, 128}},
    [OXM_ipv6_flabel] = {{H_IPV6, 12, 20}},
    [OXM_icmpv6_type] = {{H_ICMPV6, 0, 8}},
    [OXM_icmpv6_code] = {{H_ICMPV6, 8, 8}},
    [OXM_ipv6_nd_target] = {{H_ND_TARGET, 0, 128}},
    [OXM_ipv6_nd_sll] = {{H_ND_SLL, 0, 48}},
    [OXM_ipv6_nd_tll] = {{H_ND_TLL, 0, 48}},
    [OXM_mpls_label] = {{H_MPLS, 0, 20}},
    [OXM_mpls_tc] = {{H_MPLS, 20, 3}},
    [OXM_mpls_bos] = {{H_MPLS, 23, 1}},
    [OXM_pbb_isid] = {{H_PBB, 8, 24}},
};

void
oracle_copy_bits(uint8_t *to, uint32_t to_bit, const uint8_t *from, uint32_t from_bit, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t t = to_bit + i, f = from_bit + i;
        uint8_t bit = (uint8_t)(0x80 >> t % 8);
        if (from[f / 8] << f % 8 & 0x80)
            to[t / 8] |= bit;
        else
            to[t / 8] &= (uint8_t)~bit;
    }
}

const struct oracle_place *
oracle_place(const struct oracle_view *v, enum oxm_field f)
{
    for (int i = 0; i < 2; i++)
        if (v->there[places[f][i].h])
            return &places[f][i];
    return NULL;
}

bool
oracle_field(const struct oracle_packet *p, enum oxm_field f, uint8_t *value)
{
    struct oracle_view v;
    const struct oxm_row *row = &oxm_rows[f];
    memset(value, 0, row->bytes);
    if (f == OXM_in_port || f == OXM_in_phy_port)
        return oxm_set_number(row, value, p->in_port), true;
    if (f == OXM_metadata || f == OXM_tunnel_id)
        return oxm_set_number(row, value, f == OXM_metadata ? p->metadata : p->tunnel_id), true;
    oracle_parse(p, &v);
    if (f == OXM_eth_type)
        return of_set16(value, v.type), true;
    if (f == OXM_ipv6_exthdr)
        return of_set16(value, v.ip.exthdr), v.there[H_IPV6];
    if (f == OXM_vlan_vid && !v.there[H_TAG])
        return true; /* OFPVID_NONE */
    const struct oracle_place *pl = oracle_place(&v, f);
    if (!pl)
        return false;
    oracle_copy_bits(value, row->bytes * 8u - pl->width, p->data + v.at[pl->h], pl->bit, pl->width);
    if (f == OXM_vlan_vid)
        value[0] |= 0x10;
    return true;
}

bool
oracle_is_fragment(const struct oracle_packet *p)
{
    struct oracle_view v;
    oracle_parse(p, &v);
    return v.ip.fragment;
}
