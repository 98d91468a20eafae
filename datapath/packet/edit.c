/* SPDX-License-Identifier: Apache-2.0 */
/* set_field: a row for each field in each header that has it. */
#include <packet/headers.h>

#include <packet/checksum.h>

#include <string.h>

/* ------------------------------------------------------------------ where a field is */

enum has {
    HAS_NOTHING, /* ends a field's rows */
    HAS_ETH,
    HAS_VLAN,
    HAS_MPLS,
    HAS_PBB,
    HAS_ARP,
    HAS_IPV4,
    HAS_IPV6,
    HAS_TCP,
    HAS_UDP,
    HAS_SCTP,
    HAS_ICMPV4,
    HAS_ICMPV6,
    HAS_ND_TARGET,
    HAS_ND_SLL,
    HAS_ND_TLL
};

static bool
has_l4(const struct packet *p, uint8_t proto)
{
    return p->l4 && p->key.ip_proto == proto;
}

/* Where the header begins; NONE: the packet lacks it. */
#define NONE UINT32_MAX
static uint32_t
header_at(const struct packet *p, enum has what)
{
    uint16_t type = of_get16(p->key.eth_type);
    uint8_t proto = 0;
    switch (what) {
    case HAS_NOTHING: return NONE;
    case HAS_ETH: return p->len < ETH_HEADER ? NONE : 0;
    case HAS_VLAN: return p->key.vlan_vid[0] & OFPVID_PRESENT >> 8 ? ETH_TYPE_AT : NONE;
    case HAS_MPLS: return p->l3 && is_mpls_type(type) ? p->l3 : NONE;
    case HAS_PBB: return p->l3 && type == TYPE_PBB ? p->l3 : NONE;
    case HAS_ARP: return p->l3 && type == TYPE_ARP ? p->l3 : NONE; /* not RARP, as OXM has it */
    case HAS_IPV4: return p->l3 && type == TYPE_IPV4 ? p->l3 : NONE;
    case HAS_IPV6: return p->l3 && type == TYPE_IPV6 ? p->l3 : NONE;
    case HAS_ND_TARGET: return p->nd_target_at ? p->nd_target_at : NONE;
    case HAS_ND_SLL: return p->nd_sll_at ? p->nd_sll_at : NONE;
    case HAS_ND_TLL: return p->nd_tll_at ? p->nd_tll_at : NONE;
    case HAS_TCP: proto = PROTO_TCP; break;
    case HAS_UDP: proto = PROTO_UDP; break;
    case HAS_SCTP: proto = PROTO_SCTP; break;
    case HAS_ICMPV4: proto = PROTO_ICMP; break;
    case HAS_ICMPV6: proto = PROTO_ICMPV6; break;
    }
    return has_l4(p, proto) ? p->l4 : NONE;
}

/* ------------------------------------------------------------------ checksums */

/* The transport header's 16-bit checksum; NULL: it has none. */
static uint8_t *
l4_csum(const struct packet *p)
{
    uint32_t at = l4_csum_offset(p->key.ip_proto);
    return p->l4 && at ? p->data + p->l4 + at : NULL;
}

static void
update_l4(const struct packet *p, uint8_t *field, const uint8_t *before, const uint8_t *after,
          size_t n)
{
    bool udp = p->key.ip_proto == PROTO_UDP;
    if (udp && !of_get16(field)) /* the sender made none (RFC 768; RFC 6935 for IPv6) */
        return;
    csum_update(field, before, after, n);
    if (udp && !of_get16(field))
        of_set16(field, 0xffff);
}

/* n bytes of the IP header that are also in the pseudo-header change. */
static void
pseudo_changes(const struct packet *p, const uint8_t *before, const uint8_t *after, size_t n)
{
    uint8_t *field = l4_csum(p);
    if (!field || p->key.ip_proto == PROTO_ICMP)
        return;
    if (is_partial(p, p->l4)) /* the field holds just the pseudo-header's sum */
        of_set16(field, csum_replace(of_get16(field), before, after, n));
    else
        update_l4(p, field, before, after, n);
}

/* SCTP's checksum covers the packet to its end, which a first fragment lacks. */
static void
update_sctp(const struct packet *p, uint32_t at, const uint8_t *before, const uint8_t *after,
            size_t n)
{
    struct ip_view v;
    bool v6 = of_get16(p->key.eth_type) == TYPE_IPV6;
    if (p->fragment || is_partial(p, p->l4) ||
        !ip_view(p->data, p->len, p->l3, v6, gso_kind(p), &v))
        return;
    uint8_t *field = p->data + p->l4 + SCTP_CSUM_AT;
    uint32_t change = crc32c_change(before, after, n, v.end - at - n);
    for (int i = 0; i < 4; i++)
        field[i] ^= (uint8_t)(change >> 8 * i);
}

/* n bytes at `at`, in the transport header or behind it, change; n and the distance from the header
 * are even. */
static void
l4_changes(const struct packet *p, uint32_t at, const uint8_t *after, size_t n)
{
    const uint8_t *before = p->data + at;
    if (p->key.ip_proto == PROTO_SCTP)
        update_sctp(p, at, before, after, n);
    else if (l4_csum(p) && !is_partial(p, p->l4))
        update_l4(p, l4_csum(p), before, after, n);
}

/* ------------------------------------------------------------------ ways of writing */

enum how {
    BYTES,     /* no checksum covers them */
    BITS,      /* by mask and shift, in the 32-bit word at `at` */
    IPV4_BITS, /* the same, with the IPv4 header checksum */
    L4_BYTES,  /* with the transport checksum */
    L4_BYTE,   /* the same for one byte */
    IPV4_ADDR,
    IPV6_SRC,
    IPV6_DST, /* in the pseudo-header only if it is the final destination */
    IPV6_PROTO,
    ETH_TYPE
};

struct edit {
    enum has has;
    enum how how;
    uint8_t at; /* from the header's first byte */
    uint8_t shift;
    bool reparse; /* the field says which header comes next */
    uint32_t mask;
};

/* Two rows: one for IPv4, one for IPv6. */
static const struct edit edits[OXM_N][2] = {
    [OXM_eth_dst] = {{HAS_ETH, BYTES, .at = 0}},
    [OXM_eth_src] = {{HAS_ETH, BYTES, .at = ETH_ADDR}},
    [OXM_eth_type] = {{HAS_ETH, ETH_TYPE, .reparse = true}},
    [OXM_vlan_vid] = {{HAS_VLAN, BITS, .mask = 0x0fff}},
    [OXM_vlan_pcp] = {{HAS_VLAN, BITS, .mask = 0xe000, .shift = 13}},
    [OXM_ip_dscp] = {{HAS_IPV4, IPV4_BITS, .mask = 0x00fc0000, .shift = 18},
                     {HAS_IPV6, BITS, .mask = 0x0fc00000, .shift = 22}},
    [OXM_ip_ecn] = {{HAS_IPV4, IPV4_BITS, .mask = 0x00030000, .shift = 16},
                    {HAS_IPV6, BITS, .mask = 0x00300000, .shift = 20}},
    [OXM_ip_proto] = {{HAS_IPV4, IPV4_BITS, .at = IPV4_TTL_AT, .mask = 0x00ff0000, .shift = 16,
                       .reparse = true},
                      {HAS_IPV6, IPV6_PROTO, .reparse = true}},
    [OXM_ipv4_src] = {{HAS_IPV4, IPV4_ADDR, .at = IPV4_SRC_AT}},
    [OXM_ipv4_dst] = {{HAS_IPV4, IPV4_ADDR, .at = IPV4_DST_AT}},
    [OXM_tcp_src] = {{HAS_TCP, L4_BYTES, .at = 0}},
    [OXM_tcp_dst] = {{HAS_TCP, L4_BYTES, .at = 2}},
    [OXM_udp_src] = {{HAS_UDP, L4_BYTES, .at = 0}},
    [OXM_udp_dst] = {{HAS_UDP, L4_BYTES, .at = 2}},
    [OXM_sctp_src] = {{HAS_SCTP, L4_BYTES, .at = 0}},
    [OXM_sctp_dst] = {{HAS_SCTP, L4_BYTES, .at = 2}},
    [OXM_icmpv4_type] = {{HAS_ICMPV4, L4_BYTE, .at = 0}},
    [OXM_icmpv4_code] = {{HAS_ICMPV4, L4_BYTE, .at = 1}},
    [OXM_arp_op] = {{HAS_ARP, BYTES, .at = ARP_OP_AT}},
    [OXM_arp_spa] = {{HAS_ARP, BYTES, .at = ARP_SPA_AT}},
    [OXM_arp_tpa] = {{HAS_ARP, BYTES, .at = ARP_TPA_AT}},
    [OXM_arp_sha] = {{HAS_ARP, BYTES, .at = ARP_SHA_AT}},
    [OXM_arp_tha] = {{HAS_ARP, BYTES, .at = ARP_THA_AT}},
    [OXM_ipv6_src] = {{HAS_IPV6, IPV6_SRC, .at = IPV6_SRC_AT}},
    [OXM_ipv6_dst] = {{HAS_IPV6, IPV6_DST, .at = IPV6_DST_AT}},
    [OXM_ipv6_flabel] = {{HAS_IPV6, BITS, .mask = 0x000fffff}},
    [OXM_icmpv6_type] = {{HAS_ICMPV6, L4_BYTE, .at = 0, .reparse = true}},
    [OXM_icmpv6_code] = {{HAS_ICMPV6, L4_BYTE, .at = 1}},
    [OXM_ipv6_nd_target] = {{HAS_ND_TARGET, L4_BYTES, .at = 0}},
    [OXM_ipv6_nd_sll] = {{HAS_ND_SLL, L4_BYTES, .at = 0}},
    [OXM_ipv6_nd_tll] = {{HAS_ND_TLL, L4_BYTES, .at = 0}},
    [OXM_mpls_label] = {{HAS_MPLS, BITS, .mask = 0xfffff000, .shift = 12}},
    [OXM_mpls_tc] = {{HAS_MPLS, BITS, .mask = 0x00000e00, .shift = 9}},
    [OXM_mpls_bos] = {{HAS_MPLS, BITS, .mask = 0x00000100, .shift = 8}},
    [OXM_pbb_isid] = {{HAS_PBB, BYTES, .at = 1}},
};

/* The pseudo-header has the new number: the transport header that is there needs a new checksum. */
static void
proto_changes(const struct packet *p, uint8_t to)
{
    const uint8_t before[2] = {0, p->key.ip_proto}, after[2] = {0, to};
    pseudo_changes(p, before, after, 2);
}

static void
write_bits(const struct packet *p, const struct edit *e, const struct oxm_row *row, uint32_t at,
           const uint8_t *value)
{
    uint32_t old = of_get32(p->data + at), field = (uint32_t)oxm_number(row, value) << e->shift;
    uint8_t after[4];
    of_set32(after, (old & ~e->mask) | (field & e->mask));
    if (e->how == IPV4_BITS)
        csum_update(p->data + p->l3 + IPV4_CSUM_AT, p->data + at, after, 4);
    if (row->field == OXM_ip_proto)
        proto_changes(p, *value);
    if (e->how == IPV4_BITS && e->at == IPV4_TTL_AT)
        memcpy(p->data + at, after, 2); /* the checksum is in the word's other half */
    else
        memcpy(p->data + at, after, 4);
}

static void
write_l4_byte(const struct packet *p, uint32_t at, uint8_t value)
{
    uint32_t odd = (at - p->l4) & 1, word = at - odd;
    uint8_t after[2];
    memcpy(after, p->data + word, 2);
    after[odd] = value;
    l4_changes(p, word, after, 2);
    p->data[at] = value;
}

/* Is the destination address the pseudo-header's?  Not while a routing header has hops to go. */
static bool
is_final_dst(const struct packet *p)
{
    struct ip_view v;
    if (!(of_get16(p->key.ipv6_exthdr) & OFPIEH_ROUTER))
        return true;
    return ip_view(p->data, p->len, p->l3, true, gso_kind(p), &v) && !v.routed;
}

static void
write_ipv6_proto(const struct packet *p, uint8_t value)
{
    struct ip_view v;
    if (ip_view(p->data, p->len, p->l3, true, gso_kind(p), &v))
        p->data[v.proto_at] = value;
}

static void
write_field(struct packet *p, const struct edit *e, const struct oxm_row *row, uint32_t at,
            const uint8_t *value)
{
    uint8_t *bytes = p->data + at;
    switch (e->how) {
    case BITS:
    case IPV4_BITS: write_bits(p, e, row, at, value); return;
    case L4_BYTE: write_l4_byte(p, at, *value); return;
    case IPV6_PROTO:
        proto_changes(p, *value);
        write_ipv6_proto(p, *value);
        return;
    case ETH_TYPE: bytes = p->data + p->eth_type_at; break;
    case L4_BYTES: l4_changes(p, at, value, row->bytes); break;
    case IPV4_ADDR:
        csum_update(p->data + p->l3 + IPV4_CSUM_AT, bytes, value, 4);
        pseudo_changes(p, bytes, value, 4);
        break;
    case IPV6_SRC: pseudo_changes(p, bytes, value, 16); break;
    case IPV6_DST:
        if (is_final_dst(p))
            pseudo_changes(p, bytes, value, 16);
        break;
    case BYTES: break;
    }
    memcpy(bytes, value, row->bytes);
}

static void
write_key(struct packet *p, const struct oxm_row *row, const uint8_t *value)
{
    if (row->field != OXM_vlan_vid)
        memcpy(key_field(&p->key, (enum oxm_field)row->field), value, row->bytes);
    else
        key_set_vid(&p->key, (of_get16(value) & 0xfff) | OFPVID_PRESENT);
}

int
packet_set_field(struct packet *p, enum oxm_field f, const uint8_t *value)
{
    if (f == OXM_metadata || f == OXM_tunnel_id) {
        write_key(p, &oxm_rows[f], value);
        return 0;
    }
    if ((unsigned)f >= OXM_N || !oxm_rows[f].settable)
        return EDIT_DROP(bad_action);
    const struct oxm_row *row = &oxm_rows[f];
    const struct edit *e = edits[f];
    uint32_t at = header_at(p, e->has);
    if (at == NONE)
        at = header_at(p, (++e)->has);
    bool hidden = f == OXM_eth_type && packet_is_inside(p); /* it is not IP's own */
    if (at == NONE || hidden || !memcmp(key_field(&p->key, f), value, row->bytes))
        return 0;
    if (!packet_own(p, 0))
        return EDIT_DROP(no_memory);
    write_field(p, e, row, at + e->at, value);
    write_key(p, row, value);
    if (e->reparse)
        packet_reparse(p);
    return 0;
}
