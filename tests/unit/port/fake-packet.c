/* SPDX-License-Identifier: Apache-2.0 */
/* As much of packet.h as packet I/O needs, for tests of packet I/O alone: nothing is parsed; a
 * packet that must be finished has its checksum filled in, and is not cut into segments.  A
 * super-packet of MPLS is cut into pieces of gso_size behind the Ethernet
 * header. */
#include <packet/packet.h>

#include <stdlib.h>
#include <string.h>

struct packet_pool {
    size_t max, used;
    uint8_t bytes[] __attribute__((aligned(16)));
};

struct packet_pool *
packet_pool_new(size_t max_bytes)
{
    struct packet_pool *p = malloc(sizeof *p + max_bytes);
    if (p)
        *p = (struct packet_pool){.max = max_bytes};
    return p;
}

/* Nothing is given back. */
uint8_t *
packet_pool_alloc(struct packet_pool *p, size_t n)
{
    size_t at = p->used;
    n = (n + 15) / 16 * 16;
    if (n > p->max - at)
        return NULL;
    p->used += n;
    return p->bytes + at;
}

void
packet_pool_free(struct packet_pool *p)
{
    free(p);
}

void
packet_parse(struct packet *p, uint32_t in_port)
{
    p->in_port = in_port;
}

#define FAKE_HEADER 14

struct packet_wire
packet_wire(const struct packet *p)
{
    uint32_t payload = p->len - FAKE_HEADER, mss = p->vnet.gso_size, n = (payload + mss - 1) / mss;
    if (!mss)
        return (struct packet_wire){1, p->len, PACKET_WHOLE};
    bool ours = p->data[12] == 0x88 && p->data[13] == 0x47; /* MPLS */
    return (struct packet_wire){n, n * FAKE_HEADER + payload,
                                ours ? PACKET_CUT_BY_US : PACKET_CUT_BY_KERNEL};
}

int
packet_cut(struct packet *p, packet_segment_each each, void *ctx)
{
    for (uint32_t at = FAKE_HEADER, n; at < p->len; at += n) {
        n = p->len - at < p->vnet.gso_size ? p->len - at : p->vnet.gso_size;
        each(ctx, &(struct packet_segment){.header = p->data,
                                           .header_len = FAKE_HEADER,
                                           .payload = p->data + at,
                                           .payload_len = n,
                                           .packets = 1});
    }
    return 0;
}

bool
packet_call_segment(struct packet *p)
{
    return false;
}

bool
packet_can_pack(const struct packet *p)
{
    return false;
}

int
packet_pack(struct packet *p, packet_segment_each each, void *ctx)
{
    return EDIT_DROP(malformed);
}

int
packet_finish(struct packet *p, packet_each each, void *ctx)
{
    uint32_t start = p->vnet.csum_start, at = start + p->vnet.csum_offset, sum = 0;
    uint8_t *copy = malloc(p->len);
    if (!copy)
        return EDIT_DROP(no_memory);
    memcpy(copy, p->data, p->len);
    if (p->vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM && at + 2 <= p->len) {
        for (uint32_t i = start; i < p->len; ++i)
            sum += (i - start) % 2 ? copy[i] : (uint32_t)copy[i] << 8;
        while (sum >> 16)
            sum = (sum & 0xffff) + (sum >> 16);
        copy[at] = (uint8_t)(~sum >> 8);
        copy[at + 1] = (uint8_t)~sum;
    }
    each(ctx, copy, p->len);
    free(copy);
    return 0;
}
