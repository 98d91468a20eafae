/* SPDX-License-Identifier: Apache-2.0 */
/* Partial checksums, which the sender left to hardware. */
#include <packet/headers.h>

#include <packet/checksum.h>

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
    else
        l4_csum_fill(p->data + start, end - start, p->vnet.csum_offset);
    p->vnet.flags &= (uint8_t)~VIRTIO_NET_HDR_F_NEEDS_CSUM;
    p->vnet.csum_start = p->vnet.csum_offset = 0;
    return true;
}

/* Leaves the checksum to the kernel: the field gets what makes the sum come out as it is. */
static bool
uncomplete_csum(struct packet *p, uint16_t offset)
{
    uint32_t at = p->l4 + offset, end = csum_end(p, p->l4);
    if (at + 2 > end || !packet_own(p, 0))
        return false;
    uint16_t csum = of_get16(p->data + at);
    if (!csum && offset == UDP_CSUM_AT)
        return false; /* there is none, and none is to be made */
    of_set16(p->data + at, 0);
    uint16_t others = csum_fold(csum_sum(p->data + p->l4, end - p->l4));
    of_set16(p->data + at, csum_fold((uint64_t)(uint16_t)~csum + (uint16_t)~others));
    p->vnet = (struct virtio_net_hdr){
        .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .csum_start = (uint16_t)p->l4, .csum_offset = offset};
    return true;
}

bool
packet_call_segment(struct packet *p)
{
    enum {
        MORE_THAN_ANY = 0xfffe
    }; /* 0xffff has a meaning of its own in the kernel (GSO_BY_FRAGS) */
    bool tcp = p->key.ip_proto == PROTO_TCP;
    if (!p->l4 || p->fragment || p->malformed || is_super(p) ||
        (!tcp && p->key.ip_proto != PROTO_UDP))
        return false;
    if (!(p->vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) &&
        !uncomplete_csum(p, tcp ? TCP_CSUM_AT : UDP_CSUM_AT))
        return false;
    if (p->vnet.csum_offset == TCP_CSUM_AT)
        p->vnet.gso_type = of_get16(p->key.eth_type) == TYPE_IPV6 ? VIRTIO_NET_HDR_GSO_TCPV6
                                                                  : VIRTIO_NET_HDR_GSO_TCPV4;
    else if (p->vnet.csum_offset == UDP_CSUM_AT)
        p->vnet.gso_type = VIRTIO_NET_HDR_GSO_UDP;
    else
        return false;
    p->vnet.gso_size = MORE_THAN_ANY;
    return true;
}
