/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is freed all at once: holds what one message decodes to.
 *
 * An arena grows by chunks up to a limit and keeps its largest chunk over a reset, so that
 * decoding message after message allocates nothing.  What it hands out is zeroed and aligned
 * for any type.
 */
#ifndef OFLIB_ARENA_H
#define OFLIB_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct of_arena_chunk;

struct of_arena {
    struct of_arena_chunk *chunks; /* newest first */
    size_t total;                  /* bytes in all chunks */
    size_t max;                    /* more than this is refused */
    bool refused;                  /* something was, since init or reset */
};

#define OF_ARENA_MESSAGE                                                                           \
    (32u << 20) /* more than any message decodes to that passes the decoder's checks */

void of_arena_init(struct of_arena *a, size_t max);
void of_arena_free(struct of_arena *a);

/* Frees everything handed out; keeps the largest chunk. */
void of_arena_reset(struct of_arena *a);

/* NULL: over the limit, or out of memory. */
void *of_arena_alloc(struct of_arena *a, size_t n);

/* n elements of `size` bytes; NULL also where the product overflows. */
void *of_arena_array(struct of_arena *a, size_t n, size_t size);

/* The first n characters, terminated. */
char *of_arena_text(struct of_arena *a, const char *text, size_t n);

/* An array with room for one element more than the n it has: v, or a larger copy, whose *room is
 * updated. */
void *of_arena_room(struct of_arena *a, void *v, size_t n, size_t *room, size_t size);

#endif
