/* SPDX-License-Identifier: Apache-2.0 */
/* A frame with given fields, for a packet that nobody has captured. */
#include "trace-parts.h"

#include <core/say.h>

enum { ARP = 0x0806, IPV4 = 0x0800, IPV6 = 0x86dd, MPLS = 0x8847, MPLS_MC = 0x8848, PBB = 0x88e7 };
enum { ICMP = 1, TCP = 6, UDP = 17, ICMPV6 = 58, SCTP = 132 };
enum { SOLICIT = 135, ADVERT = 136, ETHERNET_MIN = 60, DEFAULT_TTL = 64 };

/* Documentation's addresses (RFC 5737, 3849), locally administered MAC addresses, a dynamic port
 * and "discard". */
static const uint8_t mac_dst[6] = {2, 0, 0, 0, 0, 2}, mac_src[6] = {2, 0, 0, 0, 0, 1};
static const uint8_t ip4_src[4] = {192, 0, 2, 1}, ip4_dst[4] = {192, 0, 2, 2};
static const uint8_t ip6_src[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 1};
static const uint8_t ip6_dst[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 2};
static const uint8_t zeros[16];
enum { PORT_SRC = 49152, PORT_DST = 9 };

struct making {
    const struct of_match *m;
    const struct trace_made *how;
    struct of_wr w;
    size_t l3, l4; /* of IP and what it carries; 0: there is none */
    bool v6;
    uint8_t proto;
};

static uint64_t
number(const struct making *k, enum oxm_field f, uint64_t otherwise)
{
    const struct of_oxm *o = of_match_find(k->m, f);
    return o ? oxm_number(o->row, o->value) : otherwise;
}

static void
put_bytes(struct making *k, enum oxm_field f, const uint8_t *otherwise)
{
    const struct of_oxm *o = of_match_find(k->m, f);
    of_wr_bytes(&k->w, o ? o->value : otherwise, oxm_rows[f].bytes);
}

static void
put_port(struct making *k, enum oxm_field f, uint16_t otherwise)
{
    of_wr16(&k->w, (uint16_t)number(k, f, otherwise));
}

/* ------------------------------------------------------------------ sums */

static uint32_t
sum16(const uint8_t *p, size_t n)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < n; i += 2)
        sum += (uint32_t)p[i] << 8 | (i + 1 < n ? p[i + 1] : 0);
    return sum;
}

static uint16_t
folded(uint32_t sum)
{
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

static uint32_t
crc32c(const uint8_t *p, size_t n)
{
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int b = 0; b < 8; b++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
    }
    return ~crc;
}

/* The checksum of what IP carries, over the pseudo-header where it has one. */
static uint16_t
l4_sum(const struct making *k)
{
    const uint8_t *ip = k->w.buf + k->l3, *l4 = k->w.buf + k->l4;
    size_t n = k->w.len - k->l4;
    uint32_t pseudo = (uint32_t)n + k->proto + (k->v6 ? sum16(ip + 8, 32) : sum16(ip + 12, 8));
    return folded(sum16(l4, n) + (k->proto == ICMP ? 0 : pseudo));
}

static void
finish_l4(struct making *k)
{
    uint8_t *l4 = k->w.buf + k->l4;
    uint32_t crc;
    switch (k->proto) {
    case TCP: of_set16(l4 + 16, l4_sum(k)); break;
    case UDP:
        of_set16(l4 + 4, (uint16_t)(k->w.len - k->l4));
        of_set16(l4 + 6, l4_sum(k));
        if (!of_get16(l4 + 6))
            of_set16(l4 + 6, 0xffff);
        break;
    case ICMP:
    case ICMPV6: of_set16(l4 + 2, l4_sum(k)); break;
    case SCTP:
        crc = crc32c(l4, k->w.len - k->l4);
        for (int i = 0; i < 4; i++)
            l4[8 + i] = (uint8_t)(crc >> 8 * i);
    }
}

/* ------------------------------------------------------------------ what IP carries */

static void
put_icmp4(struct making *k)
{
    of_wr8(&k->w, (uint8_t)number(k, OXM_icmpv4_type, 8));
    of_wr8(&k->w, (uint8_t)number(k, OXM_icmpv4_code, 0));
    of_wr_add(&k->w, 6);
}

static void
put_icmp6(struct making *k)
{
    uint8_t type = (uint8_t)number(k, OXM_icmpv6_type, 128);
    enum oxm_field address = type == SOLICIT ? OXM_ipv6_nd_sll : OXM_ipv6_nd_tll;
    of_wr8(&k->w, type);
    of_wr8(&k->w, (uint8_t)number(k, OXM_icmpv6_code, 0));
    of_wr_add(&k->w, 6);
    if (type != SOLICIT && type != ADVERT)
        return;
    put_bytes(k, OXM_ipv6_nd_target, ip6_dst);
    of_wr16(&k->w, (uint16_t)((type == SOLICIT ? 1 : 2) << 8 | 1));
    put_bytes(k, address, type == SOLICIT ? mac_src : mac_dst);
}

static void
put_l4(struct making *k)
{
    k->l4 = k->w.len;
    switch (k->proto) {
    case TCP:
        put_port(k, OXM_tcp_src, PORT_SRC);
        put_port(k, OXM_tcp_dst, PORT_DST);
        of_wr_add(&k->w, 8);
        of_wr16(&k->w, 0x5002); /* five words, SYN */
        of_wr16(&k->w, 0xffff);
        of_wr_add(&k->w, 4);
        break;
    case UDP:
        put_port(k, OXM_udp_src, PORT_SRC);
        put_port(k, OXM_udp_dst, PORT_DST);
        of_wr_add(&k->w, 4);
        break;
    case SCTP:
        put_port(k, OXM_sctp_src, PORT_SRC);
        put_port(k, OXM_sctp_dst, PORT_DST);
        of_wr_add(&k->w, 8);
        break;
    case ICMP: put_icmp4(k); break;
    case ICMPV6: put_icmp6(k); break;
    }
}

/* ------------------------------------------------------------------ headers */

static uint8_t
ttl(const struct making *k)
{
    return k->how->ttl ? k->how->ttl : DEFAULT_TTL;
}

static uint8_t
traffic_class(const struct making *k)
{
    return (uint8_t)(number(k, OXM_ip_dscp, 0) << 2 | number(k, OXM_ip_ecn, 0));
}

static void
put_ipv4(struct making *k)
{
    k->l3 = k->w.len;
    k->proto = (uint8_t)number(k, OXM_ip_proto, UDP);
    of_wr8(&k->w, 0x45);
    of_wr8(&k->w, traffic_class(k));
    of_wr_add(&k->w, 6);
    of_wr8(&k->w, ttl(k));
    of_wr8(&k->w, k->proto);
    of_wr_add(&k->w, 2);
    put_bytes(k, OXM_ipv4_src, ip4_src);
    put_bytes(k, OXM_ipv4_dst, ip4_dst);
    put_l4(k);
}

static void
put_ipv6(struct making *k)
{
    k->l3 = k->w.len;
    k->v6 = true;
    k->proto = (uint8_t)number(k, OXM_ip_proto, UDP);
    of_wr32(&k->w,
            6u << 28 | (uint32_t)traffic_class(k) << 20 | (uint32_t)number(k, OXM_ipv6_flabel, 0));
    of_wr_add(&k->w, 2);
    of_wr8(&k->w, k->proto);
    of_wr8(&k->w, ttl(k));
    put_bytes(k, OXM_ipv6_src, ip6_src);
    put_bytes(k, OXM_ipv6_dst, ip6_dst);
    put_l4(k);
}

static void
put_arp(struct making *k)
{
    of_wr32(&k->w, 0x00010800);
    of_wr16(&k->w, 0x0604);
    of_wr16(&k->w, (uint16_t)number(k, OXM_arp_op, 1));
    put_bytes(k, OXM_arp_sha, mac_src);
    put_bytes(k, OXM_arp_spa, ip4_src);
    put_bytes(k, OXM_arp_tha, zeros);
    put_bytes(k, OXM_arp_tpa, ip4_dst);
}

/* Behind the last label there is an IPv4 packet, which no match can name. */
static void
put_mpls(struct making *k)
{
    uint32_t bottom = (uint32_t)number(k, OXM_mpls_bos, 1);
    of_wr32(&k->w, (uint32_t)number(k, OXM_mpls_label, 16) << 12 |
                       (uint32_t)number(k, OXM_mpls_tc, 0) << 9 | bottom << 8 | ttl(k));
    if (!bottom)
        of_wr32(&k->w, 17u << 12 | 1u << 8 | ttl(k));
    put_ipv4(k);
}

static void
put_pbb(struct making *k)
{
    of_wr32(&k->w, (uint32_t)number(k, OXM_pbb_isid, 1));
    of_wr_bytes(&k->w, mac_dst, sizeof mac_dst);
    of_wr_bytes(&k->w, mac_src, sizeof mac_src);
    of_wr16(&k->w, IPV4);
    put_ipv4(k);
}

static void
put_frame(struct making *k)
{
    uint16_t type = (uint16_t)number(k, OXM_eth_type, IPV4);
    uint16_t vid = (uint16_t)number(k, OXM_vlan_vid, 0);
    put_bytes(k, OXM_eth_dst, mac_dst);
    put_bytes(k, OXM_eth_src, mac_src);
    if (vid & OFPVID_PRESENT) {
        of_wr16(&k->w, 0x8100);
        of_wr16(&k->w, (uint16_t)(number(k, OXM_vlan_pcp, 0) << 13 | (vid & 0xfff)));
    }
    of_wr16(&k->w, type);
    switch (type) {
    case IPV4: put_ipv4(k); break;
    case IPV6: put_ipv6(k); break;
    case ARP: put_arp(k); break;
    case MPLS:
    case MPLS_MC: put_mpls(k); break;
    case PBB: put_pbb(k); break;
    }
}

/* Lengths and sums, inner ones first. */
static void
finish(struct making *k)
{
    uint8_t *ip = k->w.buf + k->l3;
    if (k->l4)
        finish_l4(k);
    if (k->l3 && k->v6) {
        of_set16(ip + 4, (uint16_t)(k->w.len - k->l3 - 40));
    } else if (k->l3) {
        of_set16(ip + 2, (uint16_t)(k->w.len - k->l3));
        of_set16(ip + 10, folded(sum16(ip, 20)));
    }
    if (k->w.len < ETHERNET_MIN)
        of_wr_add(&k->w, ETHERNET_MIN - k->w.len);
}

static enum status
check(struct ctx *c, const struct of_match *m)
{
    for (uint32_t i = 0; i < m->n; i++) {
        const struct of_oxm *o = &m->v[i];
        if (o->has_mask)
            return say_usage(c, "%s: a packet has one value, so leave out the mask", o->row->name);
        if (o->row->field == OXM_ipv6_exthdr && oxm_number(o->row, o->value))
            return say_usage(c, "ipv6_exthdr: trace makes no extension headers; take a packet that "
                                "has them from a file: trace in_port=1 FILE.pcap");
    }
    return DPCTL_OK;
}

enum status
trace_make_frame(struct ctx *c, const struct of_match *match, const struct trace_made *how,
                 struct of_bytes *out)
{
    uint8_t *room = of_arena_alloc(&c->arena, TRACE_FRAME_MAX);
    struct making k = {.m = match, .how = how, .w = of_wr_fixed(room, TRACE_FRAME_MAX)};
    enum status st = check(c, match);
    if (st || !room)
        return st ? st : say_memory(c);
    put_frame(&k);
    if (k.w.len < how->len)
        of_wr_add(&k.w, how->len - k.w.len);
    finish(&k);
    *out = (struct of_bytes){room, k.w.len};
    return k.w.overflow ? say_usage(c, "len: a packet has up to %u bytes", TRACE_FRAME_MAX)
                        : DPCTL_OK;
}
