/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes at the door of a connection of OpenFlow 1.0: as a request of the peer, whose messages of
 * 1.3 must be such, and as a message of 1.3 to it, whose messages of 1.0 must be such.  What decodes in
 * 1.0 must encode, and come to the same bytes when that is done again. */
#include "structure.h"

#include <of10/door.h>
#include <oflib/text.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

const struct fuzz_format fuzz_format = FUZZ_OPENFLOW(0);

static struct of_arena arena;

static void
must_decode(const struct of_dialect *d, struct of_bytes raw)
{
    struct of_wr w = of_wr_grow(1 << 20);
    struct of_msg m;
    of_arena_reset(&arena);
    if (of_decode_as(d, raw, &arena, &m))
        abort();
    of_print_msg(&w, &m);
    of_wr_free(&w);
}

static bool
round_trip(struct of_bytes raw, struct of_wr *w)
{
    struct of_msg m;
    of_arena_reset(&arena);
    if (of_decode_as(&of_dialect_10, raw, &arena, &m))
        return false;
    if (of_encode(w, &m))
        abort();
    return true;
}

static void
decode_twice(struct of_bytes raw)
{
    static uint8_t once[OF_MSG_MAX], twice[OF_MSG_MAX];
    struct of_wr w1 = of_wr_fixed(once, sizeof once), w2 = of_wr_fixed(twice, sizeof twice);
    if (!round_trip(raw, &w1))
        return;
    must_decode(&of_dialect_10, (struct of_bytes){once, w1.len});
    if (!round_trip((struct of_bytes){once, w1.len}, &w2) || w1.len != w2.len ||
        memcmp(once, twice, w1.len))
        abort();
}

/* Errors that answer it carry it. */
static void
answer(struct of10_door *d, uint32_t xid, int err)
{
    struct of_wr in = of_wr_grow(OF_MSG_MAX), out = of_wr_grow(OF_MSG_MAX);
    if (of_encode_error(&in, xid, err, (struct of_bytes){NULL, 0}, NULL) ||
        of10_reply(d, (struct of_bytes){in.buf, in.len}, &out))
        abort();
    must_decode(&of_dialect_10, (struct of_bytes){out.buf, out.len});
    of_wr_free(&in);
    of_wr_free(&out);
}

static void
request(struct of10_door *d, struct of_bytes frame)
{
    int err = of10_request(d, frame);
    for (struct of_bytes m; (m = of10_take(d)).n; of10_passed(d)) {
        if (err)
            abort();
        must_decode(&of_dialect_13, m);
    }
    if (err > 0)
        answer(d, of_get32(frame.p + 4), err);
}

static void
reply(struct of10_door *d, struct of_bytes message)
{
    struct of_wr w = of_wr_grow(4 * OF_MSG_MAX);
    struct of_msg m;
    of_arena_reset(&arena);
    if (!of_decode(message, &arena, &m) && !of10_reply(d, message, &w))
        for (size_t at = 0, n; at < w.len; at += n) {
            n = of_get16(w.buf + at + 2);
            must_decode(&of_dialect_10, (struct of_bytes){w.buf + at, n});
        }
    of_wr_free(&w);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < OFP_HEADER_LEN || size > OF_MSG_MAX)
        return 0;
    struct of10_door *d = of10_door_new();
    uint8_t *copy = malloc(size);
    if (!d || !copy)
        abort();
    if (!arena.max)
        of_arena_init(&arena, 16 << 20);
    memcpy(copy, data, size);
    of_set16(copy + 2, (uint16_t)size);
    struct of_bytes raw = {copy, size};
    copy[0] = OFP10_VERSION;
    decode_twice(raw);
    request(d, raw);
    copy[0] = OFP_VERSION;
    reply(d, raw);
    of10_door_free(d);
    free(copy);
    return 0;
}
