/* SPDX-License-Identifier: Apache-2.0 */
/* Does what hardware or the kernel would do on sending (virtio_net_hdr: VIRTIO 1.2, 5.1.6): fills in
 * checksums, makes whole segments. */
#include <packet/headers.h>

#include <stdlib.h>
#include <string.h>

struct whole {
    uint8_t *bytes; /* of one segment */
    packet_each each;
    void *ctx;
};

static void
put_together(void *ctx, const struct packet_segment *s)
{
    const struct whole *w = ctx;
    uint32_t len = s->header_len + s->payload_len, l4 = s->vnet.csum_start;
    memcpy(w->bytes, s->header, s->header_len);
    memcpy(w->bytes + s->header_len, s->payload, s->payload_len);
    if (s->vnet.flags)
        l4_csum_fill(w->bytes + l4, len - l4, s->vnet.csum_offset);
    w->each(w->ctx, w->bytes, len);
}

static int
finish_super(struct packet *p, packet_each each, void *ctx)
{
    uint32_t most = PACKET_SEGMENT_HEADERS + p->vnet.gso_size;
    if (most > p->len + PACKET_SEGMENT_ADDS)
        most = p->len + PACKET_SEGMENT_ADDS;
    uint8_t *mine = p->pool ? NULL : malloc(most);
    struct whole w = {p->pool ? packet_pool_alloc(p->pool, most) : mine, each, ctx};
    int drop = w.bytes ? packet_cut(p, put_together, &w) : EDIT_DROP(no_memory);
    free(mine);
    return drop;
}

int
packet_finish(struct packet *p, packet_each each, void *ctx)
{
    if (is_super(p))
        return finish_super(p, each, ctx);
    if (!packet_complete_csum(p))
        return p->len < (uint32_t)p->vnet.csum_start + p->vnet.csum_offset + 2
                   ? EDIT_DROP(malformed)
                   : EDIT_DROP(no_memory);
    each(ctx, p->data, p->len);
    return 0;
}
