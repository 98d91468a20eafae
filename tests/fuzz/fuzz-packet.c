/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a frame, any edits.  After each the packet is what a parser makes of its bytes;
 * nothing is read or written outside the frame and its headroom; segments come to what was said,
 * and are the same ones after they were merged and cut again.
 *
 * Input: 8 bytes (virtio header), number of edits, 4 bytes each, then the frame. */
#include "../unit/packet/check.c"
#include "field.h"

#include <oflib/wire.h>

#define MAX_EDITS 24
#define HEAD      9
#define SEGMENTS  64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
set_field(struct packet *p, const uint8_t *op)
{
    uint8_t value[OXM_MAX_LEN];
    enum oxm_field f = field_of(op, value);
    packet_set_field(p, f, value);
}

static void
edit(struct packet *p, const uint8_t *op)
{
    uint16_t type = of_get16(op + 2);
    switch (op[0] % 14) {
    case 0: packet_push_vlan(p, op[1] & 1 ? 0x8100 : 0x88a8); break;
    case 1: packet_pop_vlan(p); break;
    case 2: packet_push_mpls(p, op[1] & 1 ? 0x8847 : 0x8848); break;
    case 3: packet_pop_mpls(p, type); break;
    case 4: packet_push_pbb(p, 0x88e7); break;
    case 5: packet_pop_pbb(p); break;
    case 6:
        packet_set_mpls_ttl(p, op[1]);
        packet_dec_mpls_ttl(p);
        break;
    case 7:
        packet_set_nw_ttl(p, op[1]);
        packet_dec_nw_ttl(p);
        break;
    case 8: packet_copy_ttl_out(p); break;
    case 9: packet_copy_ttl_in(p); break;
    default: set_field(p, op);
    }
}

struct count {
    uint32_t n;
    uint64_t bytes;
};

static void
count_segment(void *ctx, const uint8_t *data, uint32_t len)
{
    struct count *c = ctx;
    c->n++;
    c->bytes += len;
    if (len && data[0] + data[len - 1] > 510) /* looked at */
        abort();
}

static void
count_packed(void *ctx, const struct packet_segment *s)
{
    struct count *c = ctx;
    c->n += s->packets;
    c->bytes += (uint64_t)s->packets * s->header_len + s->payload_len;
    if (s->header[0] + s->header[s->header_len - 1] > 510 ||
        (s->payload_len && s->payload[0] + s->payload[s->payload_len - 1] > 510))
        abort();
}

static void
cut(struct packet *p)
{
    struct count c = {0, 0}, packed = {0, 0};
    struct packet_wire wire = packet_wire(p);
    if (wire.cut != PACKET_CUT_BY_US || packet_cut(p, count_packed, &c))
        return;
    if (c.n != wire.packets || c.bytes != wire.bytes)
        abort();
    if (packet_can_pack(p) && !packet_pack(p, count_packed, &packed) &&
        (packed.n != c.n || packed.bytes != c.bytes))
        abort();
}

/* The segments as they are received elsewhere; and what they have to be after a merge. */
struct again {
    struct packet_pool *pool;
    uint8_t inside;
    struct packet p[SEGMENTS];
    const uint8_t *was[SEGMENTS];
    uint32_t len[SEGMENTS];
    unsigned n, seen;
};

static void
receive(void *ctx, const uint8_t *data, uint32_t len)
{
    struct again *a = ctx;
    uint8_t *room = packet_pool_alloc(a->pool, len), *was = packet_pool_alloc(a->pool, len);
    if (a->n == SEGMENTS || !room || !was)
        return;
    memcpy(room, data, len);
    a->was[a->n] = memcpy(was, data, len);
    a->len[a->n] = len;
    a->p[a->n] = (struct packet){
        .data = room, .len = len, .wire_len = len, .pool = a->pool, .inside = a->inside};
    packet_parse(&a->p[a->n++], 1);
}

static void
compare(void *ctx, const uint8_t *data, uint32_t len)
{
    struct again *a = ctx;
    if (a->seen == a->n || len != a->len[a->seen] || memcmp(data, a->was[a->seen], len) != 0)
        abort();
    a->seen++;
}

static void
merge(struct packet *p)
{
    static struct again a;
    a = (struct again){.pool = p->pool, .inside = p->inside};
    if (!is_super(p) || packet_segments(p) > SEGMENTS)
        return;
    struct packet copy;
    packet_clone(p, &copy);
    if (packet_finish(&copy, receive, &a))
        return;
    unsigned n = packet_coalesce(a.p, a.n);
    for (unsigned i = 0; i < n; i++)
        if (packet_finish(&a.p[i], compare, &a))
            return; /* no room */
    if (a.seen != a.n)
        abort();
}

static void
finish(struct packet *p)
{
    cut(p);
    merge(p);
    struct count c = {0, 0};
    uint32_t n = packet_segments(p);
    uint64_t bytes = packet_on_wire(p).bytes;
    bool super = p->vnet.gso_type && p->vnet.gso_size;
    if (packet_finish(p, count_segment, &c))
        return;
    if (c.n != n || (super && c.bytes != bytes) || (!super && c.bytes != p->len))
        abort();
}

/* What the tables see of the packet, as a match: it names what the key has. */
static void
describe(struct packet *p)
{
    struct of_oxm v[OXM_N];
    struct of_match m = {.v = v};
    struct flow_key key, mask;
    key_describe(&p->key, &m);
    key_of_match(&m, &key, &mask);
    for (int i = 0; i < KEY_WORDS; i++)
        if ((p->key.w[i] ^ key.w[i]) & mask.w[i])
            abort();
    packet_flow_hash_bits(p, &mask);
    packet_of_key(&p->key, &(struct packet){0});
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct packet_pool *pool;
    if (!pool)
        pool = packet_pool_new(1 << 22);
    if (size < HEAD || size > 8192)
        return 0;
    uint32_t n = data[8] % MAX_EDITS, len = (uint32_t)size - HEAD;
    if (len < n * 4)
        return 0;
    len -= n * 4;
    uint8_t *frame = malloc(len ? len : 1); /* no headroom, nothing behind */
    if (!frame)
        return 0;
    memcpy(frame, data + HEAD + n * 4, len);
    packet_pool_reset(pool);
    struct packet p = {.data = frame,
                       .len = len,
                       .shared = data[0] >> 7,
                       .inside = data[0] >> 4 & 3,
                       .pool = pool,
                       .vnet = {.flags = data[0] & 1,
                                .gso_type = data[1] & 0x87,
                                .csum_start = data[2],
                                .csum_offset = data[3] % 24,
                                .gso_size = of_get16(data + 4),
                                .hdr_len = of_get16(data + 6)}};
    packet_parse(&p, 1);
    if (check_reparse(&p))
        abort();
    for (uint32_t i = 0; i < n; i++) {
        edit(&p, data + HEAD + i * 4);
        if (check_reparse(&p))
            abort();
    }
    describe(&p);
    packet_flow_hash(&p);
    finish(&p);
    free(frame);
    return 0;
}
