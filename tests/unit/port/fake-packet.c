/* SPDX-License-Identifier: Apache-2.0 */
/* As much of packet.h as packet I/O needs, for tests of packet I/O alone: nothing is parsed; a
 * packet that must be finished has its checksum filled in, and is not cut into segments. */
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

uint32_t
packet_segments(const struct packet *p)
{
    return p->vnet.gso_size ? (p->len + p->vnet.gso_size - 1u) / p->vnet.gso_size : 1;
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
