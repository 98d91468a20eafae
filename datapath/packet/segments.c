/* SPDX-License-Identifier: Apache-2.0 */
/* Super-packets: how many segments they are, who can make them, and making them. */
#include "layers.h"

#include <packet/checksum.h>

#include <string.h>

#define FRAGMENT_HEADER PACKET_SEGMENT_ADDS
_Static_assert(PACKET_SEGMENT_HEADERS >= HEADERS_MAX + 60 + FRAGMENT_HEADER, "TCP has 60 bytes");

struct gso {
    struct layers layers;
    uint32_t l4;
    uint32_t headers; /* bytes that each segment repeats */
    uint32_t payload; /* bytes behind the headers */
    uint32_t mss;
    uint32_t added; /* bytes that each segment gets between headers and payload */
    uint32_t n;
    uint8_t kind; /* VIRTIO_NET_HDR_GSO_* */
};

static bool
fill_tcp(const struct packet *p, struct gso *g)
{
    uint32_t room = g->layers.ip.end - g->l4;
    if (room < TCP_HEADER)
        return false;
    uint32_t header = (p->data[g->l4 + TCP_OFFSET_AT] >> 4) * 4u;
    g->headers = g->l4 + header;
    return header >= TCP_HEADER && header <= room &&
           g->layers.ip.v6 == (g->kind == VIRTIO_NET_HDR_GSO_TCPV6);
}

/* UFO: the segments are the datagram's IP fragments. */
static bool
fill_udp(struct gso *g)
{
    bool ufo = g->kind == VIRTIO_NET_HDR_GSO_UDP;
    g->headers = ufo ? g->l4 : g->l4 + UDP_HEADER;
    if (ufo)
        g->mss &= ~7u;
    return g->layers.ip.end - g->l4 >= UDP_HEADER && g->mss;
}

/* How to cut the packet; false: `vnet` contradicts its headers. */
static bool
fill_gso(const struct packet *p, struct gso *g)
{
    uint8_t kind = gso_kind(p);
    bool tcp = kind == VIRTIO_NET_HDR_GSO_TCPV4 || kind == VIRTIO_NET_HDR_GSO_TCPV6;
    bool udp = kind == VIRTIO_NET_HDR_GSO_UDP || kind == VIRTIO_NET_HDR_GSO_UDP_L4;
    g->kind = kind;
    g->mss = p->vnet.gso_size;
    g->n = 1;
    g->added = 0;
    if (p->len < ETH_HEADER || !(tcp || udp) ||
        !layers_find(p, tcp ? PROTO_TCP : PROTO_UDP, &g->layers))
        return false;
    g->l4 = g->layers.ip.payload;
    if (!(tcp ? fill_tcp(p, g) : fill_udp(g)) ||
        (is_partial(p, g->l4) && p->vnet.csum_offset != (tcp ? TCP_CSUM_AT : UDP_CSUM_AT)))
        return false;
    g->payload = g->layers.ip.end - g->headers;
    if (g->payload > g->mss) {
        g->n = (g->payload + g->mss - 1) / g->mss;
        g->added = kind == VIRTIO_NET_HDR_GSO_UDP && g->layers.ip.v6 ? FRAGMENT_HEADER : 0;
    }
    return true;
}

/* The kernel segments what it finds behind the Ethernet header and at most one tag, 802.1Q or
 * 802.1ad, without knowing of a tunnel (net/core/gso.c).  Behind two tags it does, too, but a veth
 * loses segments longer than its MTU with one tag, and says so to nobody. */
#define LONGEST_TAGGED 1518 /* of the usual MTU with one tag */

static bool
kernel_can(const struct packet *p, const struct gso *g)
{
    uint32_t known = OFPIEH_HOP | OFPIEH_DEST | OFPIEH_ROUTER;
    if (p->l4 != g->l4 || g->layers.n || packet_is_inside(p) ||
        p->eth_type_at > ETH_TYPE_AT + 2 * VLAN_TAG || g->layers.ip.exthdr & ~known)
        return false;
    if (p->eth_type_at > ETH_TYPE_AT + VLAN_TAG && g->headers + g->mss > LONGEST_TAGGED)
        return false;
    if (g->kind == VIRTIO_NET_HDR_GSO_UDP_L4 && !is_partial(p, g->l4))
        return false;
    return of_get16(p->data + ETH_TYPE_AT) != TYPE_OLD_SVLAN;
}

struct packet_wire
packet_wire(const struct packet *p)
{
    struct gso g;
    struct packet_wire w = {.packets = 1, .bytes = p->len, .cut = PACKET_WHOLE};
    if (!is_super(p))
        return w;
    w.cut = PACKET_CUT_BY_NOBODY;
    if (!fill_gso(p, &g))
        return w;
    w.cut = kernel_can(p, &g) ? PACKET_CUT_BY_KERNEL : PACKET_CUT_BY_US;
    w.packets = g.n;
    w.bytes = g.n * (g.headers + g.added) + g.payload;
    return w;
}

/* ------------------------------------------------------------------ segments */

/* Points to the payload of segment i; returns the segment's length. */
static uint32_t
take_payload(const struct packet *p, const struct gso *g, uint32_t i, struct packet_segment *s)
{
    uint32_t from = i * g->mss, left = g->payload - from;
    s->payload = p->data + g->headers + from;
    s->payload_len = left < g->mss ? left : g->mss;
    return s->header_len + s->payload_len;
}

/* The sum of the pseudo-header without the length.  While a routing header has hops left, the
 * pseudo-header's destination is not the IP header's; then the packet's checksum yields the sum. */
static uint16_t
pseudo_without_length(const struct packet *p, const struct gso *g)
{
    const struct ip_view *v = &g->layers.ip;
    const uint8_t *l4 = p->data + g->l4;
    uint32_t len = v->end - g->l4;
    uint16_t sum;
    if (is_partial(p, g->l4))
        sum = of_get16(l4 + l4_csum_offset(v->proto));
    else if (v->routed)
        sum = (uint16_t)~csum_sum(l4, len);
    else
        return ip_pseudo_sum(p->data + v->at, v->v6, v->proto, 0);
    return csum_fold((uint64_t)sum + (uint16_t)~csum_fold(len));
}

/* Writes the transport header of segment i, except for its checksum. */
static void
edit_transport(const struct gso *g, uint8_t *l4, const uint8_t *before, uint32_t i, uint32_t len)
{
    if (g->kind == VIRTIO_NET_HDR_GSO_UDP_L4) {
        of_set16(l4 + UDP_LENGTH_AT, (uint16_t)len);
        return;
    }
    of_set32(l4 + TCP_SEQ_AT, of_get32(before + TCP_SEQ_AT) + i * g->mss);
    l4[TCP_FLAGS_AT] = before[TCP_FLAGS_AT];
    if (i + 1 < g->n)
        l4[TCP_FLAGS_AT] &= (uint8_t) ~(TCP_FIN | TCP_PSH);
    if (i)
        l4[TCP_FLAGS_AT] &= (uint8_t)~TCP_CWR;
}

/* The transport's checksum stays partial, so the payload is not read.  The checksums of outer
 * headers need the sum of all bytes from the transport on.  It is known without reading them:
 * once the checksum is completed, they sum up to the complement of the pseudo-header's. */
static void
cut_segments(const struct packet *p, const struct gso *g, uint8_t *header, packet_segment_each each,
             void *ctx)
{
    const struct ip_view *v = &g->layers.ip;
    uint8_t *l4 = header + g->l4, *csum = l4 + l4_csum_offset(v->proto);
    const uint8_t *before = p->data;
    uint16_t pseudo = pseudo_without_length(p, g), inner;
    bool none =
        v->proto == PROTO_UDP && !is_partial(p, g->l4) && !of_get16(before + g->l4 + UDP_CSUM_AT);
    struct packet_segment s = {.header = header, .header_len = g->headers, .packets = 1};
    if (!none)
        s.vnet = (struct virtio_net_hdr){.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
                                         .hdr_len = (uint16_t)g->headers,
                                         .csum_start = (uint16_t)g->l4,
                                         .csum_offset = (uint16_t)l4_csum_offset(v->proto)};
    for (uint32_t i = 0; i < g->n; i++) {
        uint32_t len = take_payload(p, g, i, &s), l4_len = len - g->l4;
        edit_transport(g, l4, before + g->l4, i, l4_len);
        layers_edit_ip(header, before, v->at, v->v6, i, len);
        if (none) {
            inner = csum_fold((uint64_t)csum_sum(l4, g->headers - g->l4) +
                              csum_sum(s.payload, s.payload_len));
        } else {
            inner = csum_fold((uint64_t)pseudo + l4_len);
            of_set16(csum, inner);
            inner = (uint16_t)~inner;
        }
        layers_edit(&g->layers, header, before, i, len, inner);
        each(ctx, &s);
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
put_fragment4(uint8_t *field, const uint8_t *before, bool whole, uint32_t offset, bool more)
{
    uint32_t flags = whole ? of_get16(before) & IPV4_DONT_FRAGMENT : more ? IPV4_MORE_FRAGMENTS : 0;
    of_set16(field, (uint16_t)(flags | offset / 8));
}

/* The 8-byte fragment header between the headers and the payload (RFC 8200, 4.5). */
static void
put_fragment6(uint8_t *header, const struct gso *g, uint32_t offset, bool more, uint32_t id)
{
    uint8_t *f = header + g->headers;
    header[g->layers.ip.proto_at] = PROTO_FRAGMENT;
    f[0] = g->layers.ip.proto;
    f[1] = 0;
    of_set16(f + 2, (uint16_t)(offset | more));
    of_set32(f + 4, id);
}

/* The datagram's checksum must be complete. */
static void
cut_fragments(const struct packet *p, const struct gso *g, uint8_t *header,
              packet_segment_each each, void *ctx)
{
    const struct ip_view *v = &g->layers.ip;
    uint32_t id = v->v6 ? fragment_id(p) : 0;
    struct packet_segment s = {.header = header, .header_len = g->headers + g->added, .packets = 1};
    for (uint32_t i = 0; i < g->n; i++) {
        uint32_t len = take_payload(p, g, i, &s), offset = i * g->mss;
        bool more = i + 1 < g->n;
        if (!v->v6)
            put_fragment4(header + v->at + IPV4_FRAGMENT_AT, p->data + v->at + IPV4_FRAGMENT_AT,
                          g->n == 1, offset, more);
        else if (g->added)
            put_fragment6(header, g, offset, more, id);
        layers_edit_ip(header, p->data, v->at, v->v6, 0, len); /* one datagram: one number */
        layers_edit(&g->layers, header, p->data, i, len,
                    csum_fold((uint64_t)csum_sum(header + g->l4, s.header_len - g->l4) +
                              csum_sum(s.payload, s.payload_len)));
        each(ctx, &s);
    }
}

int
packet_cut(struct packet *p, packet_segment_each each, void *ctx)
{
    struct gso g;
    uint8_t header[PACKET_SEGMENT_HEADERS];
    if (!is_super(p) || !fill_gso(p, &g))
        return EDIT_DROP(malformed);
    bool ufo = g.kind == VIRTIO_NET_HDR_GSO_UDP;
    if (ufo && !packet_complete_csum(p))
        return EDIT_DROP(no_memory);
    memcpy(header, p->data, g.headers);
    (ufo ? cut_fragments : cut_segments)(p, &g, header, each, ctx);
    return 0;
}
