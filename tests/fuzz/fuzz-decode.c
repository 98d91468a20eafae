/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a message.  What decodes must encode, and encoding, decoding, encoding again must
 * come to the same bytes; text and JSON must not fall over. */
#include "structure.h"

#include <oflib/codec.h>
#include <oflib/text.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

const struct fuzz_format fuzz_format = FUZZ_OPENFLOW(0);

static void
print(void (*fn)(struct of_wr *, const struct of_msg *), const struct of_msg *m)
{
    struct of_wr w = of_wr_grow(1 << 20);
    fn(&w, m);
    if (!w.len)
        abort();
    of_wr_free(&w);
}

/* Decodes and encodes into `w`; false: the message was refused. */
static bool
round_trip(struct of_bytes raw, struct of_arena *arena, struct of_msg *m, struct of_wr *w)
{
    if (of_decode(raw, arena, m))
        return false;
    if (of_encode(w, m) || w->len > OF_MSG_MAX || of_frame_len(w->buf, w->len) != (int)w->len)
        abort();
    return true;
}

static void
one_message(struct of_bytes raw)
{
    static uint8_t once[OF_MSG_MAX], twice[OF_MSG_MAX];
    static struct of_arena arena;
    struct of_wr w1 = of_wr_fixed(once, sizeof once), w2 = of_wr_fixed(twice, sizeof twice);
    struct of_msg m;
    if (!arena.max)
        of_arena_init(&arena, 16 << 20);
    of_arena_reset(&arena);
    if (!round_trip(raw, &arena, &m, &w1))
        return;
    print(of_print_msg, &m);
    print(of_json_msg, &m);
    if (!round_trip((struct of_bytes){once, w1.len}, &arena, &m, &w2))
        abort();
    if (w1.len != w2.len || memcmp(once, twice, w1.len))
        abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    one_message((struct of_bytes){data, size});
    if (size < OFP_HEADER_LEN || size > OF_MSG_MAX || of_get16(data + 2) == size)
        return 0;
    /* A wrong length ends it early: once more with the right one. */
    uint8_t *copy = malloc(size);
    if (!copy)
        abort();
    memcpy(copy, data, size);
    of_set16(copy + 2, (uint16_t)size);
    one_message((struct of_bytes){copy, size});
    free(copy);
    return 0;
}
