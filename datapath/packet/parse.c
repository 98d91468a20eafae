/* SPDX-License-Identifier: Apache-2.0 */
#include <packet/headers.h>

#include <packet/checksum.h>

#include <endian.h>
#include <string.h>

/* ------------------------------------------------------------------ transport */

/* The offset of the 6-byte address in the first option of a kind; 0: none.  Lengths of options are
 * in units of 8 bytes; 0 is malformed (RFC 4861, 4.6). */
static uint32_t
nd_option(struct packet *p, uint32_t at, uint32_t end, uint8_t type)
{
    while (end - at >= 8) {
        const uint8_t *o = p->data + at;
        uint32_t n = o[1] * 8u;
        if (!n || n > end - at) {
            p->malformed = true;
            return 0;
        }
        if (o[0] == type && n == 8)
            return at + 2;
        at += n;
    }
    return 0;
}

static void
parse_nd(struct packet *p, uint32_t end)
{
    struct flow_key *k = &p->key;
    uint8_t type = p->data[p->l4];
    if (end - p->l4 < ND_HEADER) {
        p->malformed = true;
        return;
    }
    p->nd_target_at = p->l4 + 8;
    memcpy(k->nd_target, p->data + p->nd_target_at, 16);
    if (type == ND_SOLICIT) {
        if ((p->nd_sll_at = nd_option(p, p->l4 + ND_HEADER, end, ND_OPT_SLL)))
            memcpy(k->nd_sll, p->data + p->nd_sll_at, ETH_ADDR);
    } else if ((p->nd_tll_at = nd_option(p, p->l4 + ND_HEADER, end, ND_OPT_TLL)))
        memcpy(k->nd_tll, p->data + p->nd_tll_at, ETH_ADDR);
}

/* The fixed part of a transport header; 0: a protocol that no match has fields of. */
static inline uint32_t
l4_header(uint8_t proto, bool v6)
{
    switch (proto) {
    case PROTO_TCP: return TCP_HEADER;
    case PROTO_UDP: return UDP_HEADER;
    case PROTO_SCTP: return SCTP_HEADER;
    case PROTO_ICMP: return v6 ? 0 : 4;
    case PROTO_ICMPV6: return v6 ? 4 : 0;
    default: return 0;
    }
}

static void
parse_l4(struct packet *p, const struct ip_view *v)
{
    struct flow_key *k = &p->key;
    uint32_t n = l4_header(v->proto, v->v6);
    if (!n || !v->payload)
        return;
    if (v->end - v->payload < n) {
        p->malformed = true;
        return;
    }
    p->l4 = v->payload;
    const uint8_t *h = p->data + p->l4;
    if (v->proto != PROTO_ICMP && v->proto != PROTO_ICMPV6) {
        memcpy(k->tp_src, h, 2);
        memcpy(k->tp_dst, h + 2, 2);
        return;
    }
    memcpy(k->tp_src, h, 2);
    if (v->v6 && (h[0] == ND_SOLICIT || h[0] == ND_ADVERT))
        parse_nd(p, v->end);
}

/* ------------------------------------------------------------------ network */

static void
parse_ip(struct packet *p, uint32_t at, bool v6)
{
    struct flow_key *k = &p->key;
    struct ip_view v;
    if (!ip_view(p->data, p->len, at, v6, gso_kind(p), &v)) {
        p->malformed = true;
        return;
    }
    const uint8_t *h = p->data + at;
    p->l3 = at;
    p->malformed |= v.malformed;
    p->fragment = v.fragment;
    p->later_fragment = v.later_fragment;
    uint8_t tos = v6 ? (uint8_t)(h[0] << 4 | h[1] >> 4) : h[1];
    k->ip_dscp = tos >> 2;
    k->ip_ecn = tos & 3;
    k->ip_proto = v.proto;
    if (v6) {
        k->ipv6_flabel[1] = h[1] & 0xf;
        memcpy(k->ipv6_flabel + 2, h + 2, 2);
        of_set16(k->ipv6_exthdr, v.exthdr);
        memcpy(k->ip_src.v6, h + IPV6_SRC_AT, 16);
        memcpy(k->ip_dst.v6, h + IPV6_DST_AT, 16);
    } else {
        memcpy(k->ip_src.v4, h + IPV4_SRC_AT, 4);
        memcpy(k->ip_dst.v4, h + IPV4_DST_AT, 4);
    }
    parse_l4(p, &v);
}

/* ARP and RARP for Ethernet and IPv4 (RFC 826); for others the key has no fields. */
static void
parse_arp(struct packet *p, uint32_t at)
{
    static const uint8_t kind[6] = {0, 1, 8, 0, 6, 4};
    struct flow_key *k = &p->key;
    const uint8_t *h = p->data + at;
    if (p->len - at < ARP_HEADER) {
        p->malformed = true;
        return;
    }
    if (memcmp(h, kind, sizeof kind) != 0)
        return;
    p->l3 = at;
    memcpy(k->tp_src, h + ARP_OP_AT, 2);
    memcpy(k->nd_sll, h + ARP_SHA_AT, ETH_ADDR);
    memcpy(k->ip_src.v4, h + ARP_SPA_AT, 4);
    memcpy(k->nd_tll, h + ARP_THA_AT, ETH_ADDR);
    memcpy(k->ip_dst.v4, h + ARP_TPA_AT, 4);
}

static void
parse_mpls(struct packet *p, uint32_t at)
{
    struct flow_key *k = &p->key;
    if (p->len - at < MPLS_SHIM) {
        p->malformed = true;
        return;
    }
    uint32_t shim = of_get32(p->data + at);
    p->l3 = at;
    of_set32(k->mpls_label, shim >> 12);
    k->mpls_tc = shim >> 9 & 7;
    k->mpls_bos = shim >> 8 & 1;
}

static void
parse_pbb(struct packet *p, uint32_t at)
{
    if (p->len - at < PBB_ITAG) {
        p->malformed = true;
        return;
    }
    p->l3 = at;
    memcpy(p->key.pbb_isid, p->data + at + 1, 3);
}

/* ------------------------------------------------------------------ link */

/* The EtherType of the IP packet in a session's frame, which begins at `at`, and *header bytes in front of it; 0:
 * there is none. */
static uint16_t
in_session(const struct packet *p, uint32_t at, uint32_t *header)
{
    const uint8_t *h = p->data + at;
    if (p->len - at < PPPOE_HEADER || of_get16(h) != PPPOE_SESSION ||
        of_get16(h + PPPOE_LENGTH_AT) > p->len - at - PPPOE_PROTO_AT)
        return 0;
    uint16_t proto = of_get16(h + PPPOE_PROTO_AT);
    *header = PPPOE_HEADER;
    return proto == PPP_IPV4 ? TYPE_IPV4 : proto == PPP_IPV6 ? TYPE_IPV6 : 0;
}

/* The last label doesn't say what is behind it: IP's version does. */
static uint16_t
behind_labels(const struct packet *p, uint32_t at, uint32_t *header)
{
    for (*header = MPLS_SHIM; *header <= PACKET_LABELS * MPLS_SHIM; *header += MPLS_SHIM) {
        if (p->len - at <= *header)
            return 0;
        const uint8_t *next = p->data + at + *header;
        if (!(next[-2] & 1))
            continue;
        return next[0] >> 4 == 4 ? TYPE_IPV4 : next[0] >> 4 == 6 ? TYPE_IPV6 : 0;
    }
    return 0;
}

/* What the tables see of a frame of this type, and where that begins.  The kernel's programs do the same
 * (offload/bpf/frame.h). */
static uint16_t
look_inside(const struct packet *p, uint16_t type, uint32_t *at)
{
    uint32_t header;
    uint16_t found = 0;
    struct ip_view v;
    if (type == TYPE_PPPOE && p->inside & PACKET_INSIDE_PPPOE)
        found = in_session(p, *at, &header);
    else if (is_mpls_type(type) && p->inside & PACKET_INSIDE_MPLS)
        found = behind_labels(p, *at, &header);
    if (!found || !ip_view(p->data, p->len, *at + header, found == TYPE_IPV6, gso_kind(p), &v) ||
        v.malformed)
        return type;
    *at += header;
    return found;
}

/* 802.3: a length in the type's place, then LLC and perhaps SNAP. */
static uint16_t
parse_llc(struct packet *p)
{
    static const uint8_t snap[6] = {0xaa, 0xaa, 0x03, 0, 0, 0};
    uint32_t at = p->eth_type_at + 2;
    uint16_t type;
    if (p->len - at < 8 || memcmp(p->data + at, snap, sizeof snap) != 0)
        return ETH_NO_TYPE;
    type = of_get16(p->data + at + 6);
    if (type < ETH_MIN_TYPE)
        return ETH_NO_TYPE;
    p->snap = true;
    p->eth_type_at = at + 6;
    return type;
}

static void
parse_ethernet(struct packet *p)
{
    struct flow_key *k = &p->key;
    const uint8_t *d = p->data;
    uint32_t at = ETH_TYPE_AT;
    if (p->len < ETH_HEADER) {
        p->malformed = true;
        return;
    }
    memcpy(k->eth_dst, d, ETH_ADDR);
    memcpy(k->eth_src, d + ETH_ADDR, ETH_ADDR);
    if (vlan_tag_at(d, p->len, at)) {
        of_set16(k->vlan_vid, (of_get16(d + at + 2) & 0xfff) | OFPVID_PRESENT);
        k->vlan_pcp = d[at + 2] >> 5;
        while (vlan_tag_at(d, p->len, at))
            at += VLAN_TAG;
    }
    uint16_t type = of_get16(d + at);
    p->eth_type_at = at;
    if (type < ETH_MIN_TYPE)
        type = parse_llc(p);
    at = p->eth_type_at + 2;
    type = look_inside(p, type, &at);
    of_set16(k->eth_type, type);
    if (type == TYPE_IPV4 || type == TYPE_IPV6)
        parse_ip(p, at, type == TYPE_IPV6);
    else if (type == TYPE_ARP || type == TYPE_RARP)
        parse_arp(p, at);
    else if (is_mpls_type(type))
        parse_mpls(p, at);
    else if (type == TYPE_PBB)
        parse_pbb(p, at);
    else if (is_vlan_type(type))
        p->malformed = true; /* the frame ends within a tag */
}

/* ------------------------------------------------------------------ the usual packet */

/* A word of the key from its 8 bytes as a big-endian number. */
static inline uint64_t
key_word(uint64_t bytes)
{
    return htobe64(bytes);
}

/* The shortest frame that is looked at here: a VLAN tag, IPv4 and UDP.  What is behind it is read
 * only where the IP header's length says that it is there. */
#define STRAIGHT_LEAST (ETH_HEADER + VLAN_TAG + IPV4_HEADER + UDP_HEADER)

/* TCP's or UDP's fixed part; more than any packet has: another protocol. */
static inline uint32_t
straight_l4(uint8_t proto)
{
    return proto == PROTO_TCP ? TCP_HEADER : proto == PROTO_UDP ? UDP_HEADER : UINT32_MAX / 2;
}

/* Words 5 to 11 of the key.  Returns the IP header's length; 0: not a usual one. */
static inline uint32_t
straight_ipv4(struct flow_key *k, const uint8_t *h, uint32_t room, uint8_t pcp)
{
    uint8_t proto = h[IPV4_PROTO_AT];
    uint32_t total = of_get16(h + IPV4_LENGTH_AT);
    if (h[0] != (4 << 4 | IPV4_HEADER / 4) || total > room ||
        of_get16(h + IPV4_FRAGMENT_AT) & (IPV4_MORE_FRAGMENTS | IPV4_FRAGMENT_OFFSET) ||
        total < IPV4_HEADER + straight_l4(proto))
        return 0;
    k->w[5] =
        key_word((uint64_t)pcp << 56 | (uint64_t)(h[1] >> 2) << 48 | (uint64_t)(h[1] & 3) << 40 |
                 (uint64_t)proto << 32 | of_get32(h + IPV4_HEADER));
    k->w[6] = k->w[7] = 0;
    k->w[8] = key_word((uint64_t)of_get32(h + IPV4_SRC_AT) << 32);
    k->w[9] = 0;
    k->w[10] = key_word((uint64_t)of_get32(h + IPV4_DST_AT) << 32);
    k->w[11] = 0;
    return IPV4_HEADER;
}

static inline uint32_t
straight_ipv6(struct flow_key *k, const uint8_t *h, uint32_t room, uint8_t pcp)
{
    uint32_t head = of_get32(h), total = IPV6_HEADER + of_get16(h + IPV6_LENGTH_AT);
    uint8_t proto = h[IPV6_NEXT_AT];
    if (head >> 28 != 6 || total > room || total < IPV6_HEADER + straight_l4(proto))
        return 0;
    k->w[5] = key_word((uint64_t)pcp << 56 | (uint64_t)(head >> 22 & 0x3f) << 48 |
                       (uint64_t)(head >> 20 & 3) << 40 | (uint64_t)proto << 32 |
                       of_get32(h + IPV6_HEADER));
    k->w[6] = 0;
    k->w[7] = key_word((uint64_t)(head & 0xfffff) << 32);
    memcpy(&k->w[8], h + IPV6_SRC_AT, 32); /* both addresses */
    return IPV6_HEADER;
}

/* Most packets are TCP or UDP over IP, not fragments, without options or extension headers, and
 * with at most one VLAN tag.  For these the key is written in whole words, each once, and is the
 * same, byte by byte, as packet_reparse would make.  False: it is another kind of packet, and
 * nothing is set. */
static inline bool
parse_straight(struct packet *p)
{
    struct flow_key *k = &p->key;
    const uint8_t *d = p->data;
    uint32_t at = ETH_TYPE_AT;
    uint16_t vid = KEY_HAS;
    uint8_t pcp = 0;
    if (p->len < STRAIGHT_LEAST)
        return false;
    uint16_t type = of_get16(d + at);
    if (is_vlan_type(type)) {
        vid |= (of_get16(d + at + 2) & 0xfff) | OFPVID_PRESENT;
        pcp = d[at + 2] >> 5;
        at += VLAN_TAG;
        type = of_get16(d + at);
    }
    uint32_t l3 = at + 2, header = 0;
    if (type == TYPE_IPV4)
        header = straight_ipv4(k, d + l3, p->len - l3, pcp);
    else if (type == TYPE_IPV6)
        header = straight_ipv6(k, d + l3, p->len - l3, pcp);
    if (!header)
        return false;
    memcpy(&k->w[3], d, sizeof k->w[3]);
    k->w[4] = key_word((uint64_t)of_get32(d + 8) << 32 | (uint32_t)type << 16 | vid);
    k->w[12] = k->w[13] = k->w[14] = k->w[15] = 0;
    p->fragment = p->later_fragment = p->malformed = p->snap = false;
    p->eth_type_at = at;
    p->l3 = l3;
    p->l4 = l3 + header;
    p->nd_target_at = p->nd_sll_at = p->nd_tll_at = 0;
    return true;
}

/* ------------------------------------------------------------------ any packet */

void
packet_reparse(struct packet *p)
{
    memset(p->key.w + 3, 0, sizeof p->key - 3 * sizeof p->key.w[0]);
    p->fragment = p->later_fragment = p->malformed = p->snap = false;
    p->eth_type_at = ETH_TYPE_AT;
    p->l3 = p->l4 = p->nd_target_at = p->nd_sll_at = p->nd_tll_at = 0;
    parse_ethernet(p);
    struct flow_key *k = &p->key;
    of_set16(k->vlan_vid, (uint16_t)(of_get16(k->vlan_vid) | (p->l3 ? KEY_HAS_L3 : 0) |
                                     (p->l4 ? KEY_HAS_L4 : 0)));
    k->fragment = p->fragment;
    k->has_nd =
        (uint8_t)((p->nd_target_at ? KEY_HAS_ND_TARGET : 0) | (p->nd_sll_at ? KEY_HAS_ND_SLL : 0) |
                  (p->nd_tll_at ? KEY_HAS_ND_TLL : 0));
}

void
packet_parse(struct packet *p, uint32_t in_port)
{
    p->in_port = in_port;
    p->key.w[0] = key_word((uint64_t)in_port << 32 | in_port); /* in_phy_port too */
    p->key.w[1] = p->key.w[2] = 0;
    if (parse_straight(p))
        return;
    packet_reparse(p);
    if (p->l4 && p->key.ip_proto == PROTO_SCTP && is_partial(p, p->l4) &&
        p->vnet.csum_offset == SCTP_CSUM_AT)
        packet_complete_csum(p);
}

void
packet_describe(uint8_t *data, uint32_t len, uint32_t in_port, uint8_t inside, struct of_match *out)
{
    struct packet p = {.data = data, .len = len, .wire_len = len, .inside = inside};
    packet_parse(&p, in_port);
    key_describe(&p.key, out);
}
