/* SPDX-License-Identifier: Apache-2.0 */
/* A saved state: whatever passes the check can be walked, and each message is refused or decoded. */
#include <oflib/codec.h>
#include <oflib/state.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct of_arena arena;

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct of_bytes state = {data, n}, raw;
    struct of_state_mark mark;
    struct of_msg m;
    char why[200];
    size_t at = 0;
    uint32_t count = 0;
    if (!arena.max)
        of_arena_init(&arena, 1 << 24);
    if (of_state_check(state, &mark, why, sizeof why))
        return 0;
    for (; of_state_next(state, &at, &raw); count++) {
        of_decode(raw, &arena, &m);
        of_arena_reset(&arena);
    }
    if (count != mark.count)
        abort();
    return 0;
}
