/* SPDX-License-Identifier: Apache-2.0 */
/* Segments inside UDP tunnels, packed for the kernel's UDP segmentation.
 *
 * The datagrams of a tunnel (VXLAN, Geneve, ...) that a super-packet becomes are alike in all
 * that the kernel needs to know.  So they are sent as one super-packet of UDP.  It goes out in
 * one piece; a host that receives it takes it apart only at its UDP socket, and joins the inner
 * segments again. */
#include "layers.h"

#include <string.h>

#define DATAGRAMS_MAX 64 /* what every kernel takes (UDP_MAX_SEGMENTS) */
#define IP_MAX        65535

struct pack {
    const struct packet *p;
    uint8_t *room;                          /* UDP payloads, one behind the other */
    uint8_t header[PACKET_SEGMENT_HEADERS]; /* of the first */
    uint32_t used, n, outer;
    uint32_t most; /* of a datagram: all but the last are as long */
    packet_segment_each each;
    void *ctx;
};

bool
packet_can_pack(const struct packet *p)
{
    uint16_t tpid = of_get16(p->data + ETH_TYPE_AT);
    return p->l4 && p->key.ip_proto == PROTO_UDP && !packet_is_inside(p) && !p->fragment &&
           !p->malformed && !of_get16(p->key.ipv6_exthdr) &&
           p->eth_type_at <= ETH_TYPE_AT + VLAN_TAG && !p->snap && tpid != TYPE_OLD_SVLAN &&
           gso_kind(p) != VIRTIO_NET_HDR_GSO_UDP && p->vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM &&
           p->vnet.csum_start > p->l4 + UDP_HEADER;
}

/* Hands over what is in the room, with one UDP header whose checksum is partial. */
static void
hand_over(struct pack *k)
{
    uint32_t l3 = k->p->l3, l4 = k->p->l4, len = k->outer + k->used, udp_len = len - l4;
    uint8_t *udp = k->header + l4;
    bool v6 = of_get16(k->p->key.eth_type) == TYPE_IPV6;
    if (!k->n)
        return;
    layers_edit_ip(k->header, k->header, l3, v6, 0, len);
    of_set16(udp + UDP_LENGTH_AT, (uint16_t)udp_len);
    of_set16(udp + UDP_CSUM_AT, ip_pseudo_sum(k->header + l3, v6, PROTO_UDP, udp_len));
    k->each(k->ctx, &(struct packet_segment){.header = k->header,
                                             .header_len = k->outer,
                                             .payload = k->room,
                                             .payload_len = k->used,
                                             .packets = k->n,
                                             .vnet = {.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
                                                      .gso_type = VIRTIO_NET_HDR_GSO_UDP_L4,
                                                      .gso_size = (uint16_t)k->most,
                                                      .hdr_len = (uint16_t)k->outer,
                                                      .csum_start = (uint16_t)l4,
                                                      .csum_offset = UDP_CSUM_AT}});
    k->room += k->used;
    k->used = k->n = 0;
}

static void
pack_segment(void *ctx, const struct packet_segment *s)
{
    struct pack *k = ctx;
    uint32_t head = s->header_len - k->outer, n = head + s->payload_len, l4;
    uint8_t *to;
    if (k->n == DATAGRAMS_MAX || k->outer - k->p->l3 + k->used + n > IP_MAX)
        hand_over(k);
    if (!k->n) {
        memcpy(k->header, s->header, k->outer);
        k->most = n;
    }
    to = k->room + k->used;
    memcpy(to, s->header + k->outer, head);
    memcpy(to + head, s->payload, s->payload_len);
    l4 = s->vnet.csum_start - k->outer;
    l4_csum_fill(to + l4, n - l4, s->vnet.csum_offset);
    k->used += n;
    k->n++;
}

int
packet_pack(struct packet *p, packet_segment_each each, void *ctx)
{
    struct packet_wire wire = packet_wire(p);
    struct pack k = {.p = p, .outer = p->l4 + UDP_HEADER, .each = each, .ctx = ctx};
    k.room = packet_pool_alloc(p->pool, wire.bytes);
    if (!k.room)
        return EDIT_DROP(no_memory);
    int drop = packet_cut(p, pack_segment, &k);
    if (!drop)
        hand_over(&k);
    return drop;
}
