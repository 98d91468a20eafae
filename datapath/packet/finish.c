/* SPDX-License-Identifier: Apache-2.0 */
/* Does what hardware or the kernel would do on sending: fills in checksums and cuts super-packets
 * (virtio_net_hdr: VIRTIO 1.2, 5.1.6). */
#include <packet/headers.h>

#include <packet/checksum.h>

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ one checksum */

static void
fill_sctp(uint8_t *l4, size_t n)
{
    uint32_t crc = crc32c_add(CRC32C_START, l4, SCTP_CSUM_AT);
    crc = crc32c_end(crc32c_add(crc32c_zeros(crc, 4), l4 + SCTP_HEADER, n - SCTP_HEADER));
    for (int i = 0; i < 4; i++)
        l4[SCTP_CSUM_AT + i] = (uint8_t)(crc >> 8 * i);
}

/* The end of the bytes under a transport checksum that starts at `start`: before Ethernet padding.
 * */
static uint32_t
csum_end(const struct packet *p, uint32_t start)
{
    struct ip_view v;
    bool v6 = of_get16(p->key.eth_type) == TYPE_IPV6;
    if (p->l4 == start && ip_view(p->data, p->len, p->l3, v6, false, &v))
        return v.end;
    return p->len;
}

bool
packet_complete_csum(struct packet *p)
{
    uint32_t start = p->vnet.csum_start, at = start + p->vnet.csum_offset;
    if (!(p->vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM))
        return true;
    if (at + 2 > p->len || !packet_own(p, 0))
        return false;
    uint32_t end = csum_end(p, start);
    if (at + 2 > end)
        end = p->len;
    if (p->l4 == start && p->key.ip_proto == PROTO_SCTP && p->vnet.csum_offset == SCTP_CSUM_AT)
        fill_sctp(p->data + start, end - start);
    else {
        uint16_t csum = (uint16_t)~csum_sum(p->data + start, end - start);
        /* A UDP checksum of 0 means that there is none. */
        of_set16(p->data + at, !csum && p->vnet.csum_offset == UDP_CSUM_AT ? 0xffff : csum);
    }
    p->vnet.flags &= (uint8_t)~VIRTIO_NET_HDR_F_NEEDS_CSUM;
    p->vnet.csum_start = p->vnet.csum_offset = 0;
    return true;
}

/* ------------------------------------------------------------------ super-packets */

struct gso {
    struct ip_view ip;
    uint32_t l4;
    uint32_t headers; /* bytes that each segment repeats */
    uint32_t payload; /* bytes behind the headers */
    uint32_t mss;
    uint32_t added; /* bytes that each segment gets between headers and payload */
    uint32_t n;
    uint8_t kind; /* VIRTIO_NET_HDR_GSO_* */
};

/* Finds the IP header, also behind VLAN, MPLS and PBB tags. */
static bool
find_ip(const struct packet *p, struct ip_view *v)
{
    const uint8_t *d = p->data;
    uint32_t at = p->eth_type_at;
    while (p->len >= 2 && at <= p->len - 2) {
        uint16_t type = of_get16(d + at);
        if (type == TYPE_IPV4 || type == TYPE_IPV6)
            return ip_view(d, p->len, at + 2, type == TYPE_IPV6, true, v);
        if (is_vlan_type(type))
            at += VLAN_TAG;
        else if (type == TYPE_PBB)
            at += 2 + PBB_ITAG + ETH_TYPE_AT;
        else if (is_mpls_type(type)) {
            for (at += 2; p->len >= 4 && at <= p->len - 4; at += MPLS_SHIM)
                if (d[at + 2] & 1)
                    return ip_view_guess(d, p->len, at + MPLS_SHIM, true, v);
            return false;
        } else
            return false;
    }
    return false;
}

static bool
fill_gso_tcp(const struct packet *p, struct gso *g)
{
    uint32_t room = g->ip.end - g->l4, header;
    if (g->ip.proto != PROTO_TCP || room < TCP_HEADER)
        return false;
    header = (p->data[g->l4 + TCP_OFFSET_AT] >> 4) * 4u;
    if (header < TCP_HEADER || header > room)
        return false;
    g->headers = g->l4 + header;
    return true;
}

/* UFO: the segments are the datagram's IP fragments. */
static bool
fill_gso_ufo(struct gso *g)
{
    if (g->ip.proto != PROTO_UDP || g->ip.end - g->l4 < UDP_HEADER)
        return false;
    g->headers = g->l4;
    g->mss &= ~7u;
    return true;
}

static bool
fill_gso_udp(struct gso *g)
{
    if (g->ip.proto != PROTO_UDP || g->ip.end - g->l4 < UDP_HEADER)
        return false;
    g->headers = g->l4 + UDP_HEADER;
    return true;
}

/* How to cut the packet; false: `vnet` contradicts its headers. */
static bool
fill_gso(const struct packet *p, struct gso *g)
{
    bool ok;
    *g = (struct gso){.kind = gso_kind(p), .mss = p->vnet.gso_size, .n = 1};
    if (!g->mss || p->len < ETH_HEADER || !find_ip(p, &g->ip) || g->ip.malformed ||
        g->ip.fragment || !g->ip.payload)
        return false;
    g->l4 = g->ip.payload;
    if (p->vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM && p->vnet.csum_start != g->l4)
        return false;
    if (g->kind == VIRTIO_NET_HDR_GSO_UDP)
        ok = fill_gso_ufo(g);
    else if (g->kind == VIRTIO_NET_HDR_GSO_UDP_L4)
        ok = fill_gso_udp(g);
    else
        ok = g->ip.v6 == (g->kind == VIRTIO_NET_HDR_GSO_TCPV6) && fill_gso_tcp(p, g);
    if (!ok || !g->mss)
        return false;
    g->payload = g->ip.end - g->headers;
    if (g->payload > g->mss) {
        g->n = (g->payload + g->mss - 1) / g->mss;
        g->added = g->kind == VIRTIO_NET_HDR_GSO_UDP && g->ip.v6 ? 8 : 0;
    }
    return true;
}

static bool
is_super(const struct packet *p)
{
    return gso_kind(p) != VIRTIO_NET_HDR_GSO_NONE && p->vnet.gso_size;
}

uint32_t
packet_segments(const struct packet *p)
{
    struct gso g;
    return is_super(p) && fill_gso(p, &g) ? g.n : 1;
}

uint64_t
packet_wire_bytes(const struct packet *p)
{
    struct gso g;
    if (!is_super(p) || !fill_gso(p, &g))
        return p->len;
    return (uint64_t)g.n * (g.headers + g.added) + g.payload;
}

/* ------------------------------------------------------------------ segments */

static void
set_ip_length(uint8_t *seg, const struct ip_view *v, uint32_t len, uint16_t id)
{
    uint8_t *ip = seg + v->at;
    if (v->v6) {
        of_set16(ip + IPV6_LENGTH_AT, (uint16_t)(len - v->at - IPV6_HEADER));
        return;
    }
    of_set16(ip + IPV4_LENGTH_AT, (uint16_t)(len - v->at));
    of_set16(ip + IPV4_ID_AT, id);
    of_set16(ip + IPV4_CSUM_AT, 0);
    of_set16(ip + IPV4_CSUM_AT, (uint16_t)~csum_sum(ip, (ip[0] & 0xfu) * 4));
}

/* The sum of the pseudo-header without the length.  While a routing header has hops left, the
 * pseudo-header's destination is not the IP header's; then the packet's checksum yields the sum. */
static uint16_t
pseudo_without_length(const struct packet *p, const struct gso *g)
{
    const uint8_t *ip = p->data + g->ip.at, *l4 = p->data + g->l4;
    uint32_t len = g->ip.end - g->l4;
    uint16_t sum;
    if (is_partial(p, g->l4))
        sum = of_get16(l4 + l4_csum_offset(g->ip.proto));
    else if (g->ip.routed)
        sum = (uint16_t)~csum_sum(l4, len);
    else
        return g->ip.v6 ? csum_pseudo(ip + IPV6_SRC_AT, ip + IPV6_DST_AT, 16, g->ip.proto, 0)
                        : csum_pseudo(ip + IPV4_SRC_AT, ip + IPV4_DST_AT, 4, g->ip.proto, 0);
    return csum_fold((uint64_t)sum + (uint16_t)~csum_fold(len));
}

/* Sets the fields of segment i that differ from the super-packet's, except transport checksums. */
static void
edit_segment(uint8_t *seg, const struct gso *g, uint32_t i, uint32_t len)
{
    uint8_t *l4 = seg + g->l4;
    set_ip_length(seg, &g->ip, len, (uint16_t)(of_get16(seg + g->ip.at + IPV4_ID_AT) + i));
    if (g->kind == VIRTIO_NET_HDR_GSO_UDP_L4) {
        of_set16(l4 + UDP_LENGTH_AT, (uint16_t)(len - g->l4));
        return;
    }
    of_set32(l4 + TCP_SEQ_AT, of_get32(l4 + TCP_SEQ_AT) + i * g->mss);
    if (i + 1 < g->n)
        l4[TCP_FLAGS_AT] &= (uint8_t) ~(TCP_FIN | TCP_PSH);
    if (i)
        l4[TCP_FLAGS_AT] &= (uint8_t)~TCP_CWR;
}

static void
send_segments(const struct packet *p, const struct gso *g, uint8_t *seg, packet_each each,
              void *ctx)
{
    bool udp = g->kind == VIRTIO_NET_HDR_GSO_UDP_L4;
    uint8_t *csum = seg + g->l4 + l4_csum_offset(g->ip.proto);
    uint16_t pseudo = pseudo_without_length(p, g);
    bool none = udp && !is_partial(p, g->l4) && !of_get16(p->data + g->l4 + UDP_CSUM_AT);
    for (uint32_t i = 0; i < g->n; i++) {
        uint32_t from = i * g->mss, n = g->payload - from < g->mss ? g->payload - from : g->mss;
        uint32_t len = g->headers + n;
        memcpy(seg, p->data, g->headers);
        memcpy(seg + g->headers, p->data + g->headers + from, n);
        edit_segment(seg, g, i, len);
        of_set16(csum, 0);
        if (!none) {
            uint32_t l4_len = len - g->l4;
            uint16_t c =
                (uint16_t)~csum_fold((uint64_t)pseudo + l4_len + csum_sum(seg + g->l4, l4_len));
            of_set16(csum, udp && !c ? 0xffff : c);
        }
        each(ctx, seg, len);
    }
}

/* ------------------------------------------------------------------ fragments */

/* Consecutive identifications of IPv6 datagrams; where they start depends on the addresses. */
static uint32_t
fragment_id(const struct packet *p)
{
    static __thread uint32_t count;
    return packet_flow_hash(p) + ++count;
}

/* A datagram that stays whole keeps its flag. */
static void
put_fragment4(uint8_t *field, bool whole, uint32_t offset, bool more)
{
    uint32_t flags = whole ? of_get16(field) & IPV4_DONT_FRAGMENT : more ? IPV4_MORE_FRAGMENTS : 0;
    of_set16(field, (uint16_t)(flags | offset / 8));
}

/* The 8-byte fragment header between the headers and the payload (RFC 8200, 4.5). */
static void
put_fragment6(uint8_t *seg, const struct gso *g, uint32_t offset, bool more, uint32_t id)
{
    uint8_t *f = seg + g->headers;
    seg[g->ip.proto_at] = PROTO_FRAGMENT;
    f[0] = g->ip.proto;
    f[1] = 0;
    of_set16(f + 2, (uint16_t)(offset | more));
    of_set32(f + 4, id);
}

/* The datagram's checksum must be complete. */
static void
send_fragments(const struct packet *p, const struct gso *g, uint8_t *seg, packet_each each,
               void *ctx)
{
    uint32_t id = g->ip.v6 ? fragment_id(p) : of_get16(p->data + g->ip.at + IPV4_ID_AT);
    for (uint32_t i = 0; i < g->n; i++) {
        uint32_t from = i * g->mss, n = g->payload - from < g->mss ? g->payload - from : g->mss;
        uint32_t len = g->headers + g->added + n;
        bool more = i + 1 < g->n;
        memcpy(seg, p->data, g->headers);
        memcpy(seg + g->headers + g->added, p->data + g->headers + from, n);
        if (g->ip.v6 && g->added)
            put_fragment6(seg, g, from, more, id);
        else if (!g->ip.v6)
            put_fragment4(seg + g->ip.at + IPV4_FRAGMENT_AT, g->n == 1, from, more);
        set_ip_length(seg, &g->ip, len, (uint16_t)id);
        each(ctx, seg, len);
    }
}

/* ------------------------------------------------------------------ finish */

int
packet_finish(struct packet *p, packet_each each, void *ctx)
{
    struct gso g;
    if (!is_super(p)) {
        if (!packet_complete_csum(p))
            return p->len < (uint32_t)p->vnet.csum_start + p->vnet.csum_offset + 2
                       ? EDIT_DROP(malformed)
                       : EDIT_DROP(no_memory);
        each(ctx, p->data, p->len);
        return 0;
    }
    if (!fill_gso(p, &g))
        return EDIT_DROP(malformed);
    bool ufo = g.kind == VIRTIO_NET_HDR_GSO_UDP;
    if (ufo && !packet_complete_csum(p))
        return EDIT_DROP(no_memory);
    size_t most = g.headers + g.added + (g.payload < g.mss ? g.payload : g.mss);
    uint8_t *mine = p->pool ? NULL : malloc(most);
    uint8_t *seg = p->pool ? packet_pool_alloc(p->pool, most) : mine;
    if (!seg)
        return EDIT_DROP(no_memory);
    (ufo ? send_fragments : send_segments)(p, &g, seg, each, ctx);
    free(mine);
    return 0;
}
