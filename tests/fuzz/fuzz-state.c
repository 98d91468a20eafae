/* SPDX-License-Identifier: Apache-2.0 */
/* A saved state: whatever passes the check can be walked, and each message is refused or decoded. */
#include "structure.h"

#include <oflib/codec.h>
#include <oflib/state.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

const struct fuzz_format fuzz_format = FUZZ_OPENFLOW(0);

static struct of_arena arena;

static void
try_state(struct of_bytes state)
{
    struct of_bytes raw;
    struct of_state_mark mark;
    struct of_msg m;
    char why[200];
    size_t at = 0;
    uint32_t count = 0;
    if (of_state_check(state, &mark, why, sizeof why))
        return;
    for (; of_state_next(state, &at, &raw); count++) {
        of_decode(raw, &arena, &m);
        of_arena_reset(&arena);
    }
    if (count != mark.count)
        abort();
}

/* How many messages there are stands in the last one: as it is, and so that it is right. */
static void
set_count(uint8_t *p, size_t n)
{
    uint32_t count = 0;
    for (size_t at = OF_STATE_MARK_LEN, len; at + OFP_HEADER_LEN <= n; at += len, count++) {
        len = of_get16(p + at + 2);
        if (len < OFP_HEADER_LEN || n - at <= len) {
            if (n - at >= OF_STATE_MARK_LEN)
                of_set32(p + at + 20, count);
            return;
        }
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    uint8_t *copy = malloc(n + 1);
    if (!arena.max)
        of_arena_init(&arena, 1 << 24);
    if (!copy)
        abort();
    try_state((struct of_bytes){data, n});
    memcpy(copy, data, n);
    set_count(copy, n);
    try_state((struct of_bytes){copy, n});
    free(copy);
    return 0;
}
