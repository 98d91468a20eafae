/* SPDX-License-Identifier: Apache-2.0 */
#include "spsc.h"

#include <stdlib.h>

/* A record is its length in 8 bytes, then its bytes rounded up to 8.  One that would not fit
 * before the ring's end is preceded by a skip to the start. */
#define SKIP UINT64_MAX

struct spsc {
    uint32_t size;
    uint64_t head __attribute__((aligned(64))); /* written by the producer */
    uint64_t reserved;                          /* where head goes next */
    uint64_t tail __attribute__((aligned(64))); /* written by the consumer */
    uint64_t peeked;
    uint8_t bytes[] __attribute__((aligned(64)));
};

struct spsc *
spsc_new(uint32_t bytes)
{
    struct spsc *s = aligned_alloc(64, sizeof *s + bytes);
    if (!s)
        return NULL;
    *s = (struct spsc){.size = bytes};
    return s;
}

void
spsc_free(struct spsc *s)
{
    free(s);
}

static uint64_t *
word(struct spsc *s, uint64_t at)
{
    return (uint64_t *)(void *)(s->bytes + (at & (s->size - 1)));
}

void *
spsc_reserve(struct spsc *s, uint32_t n)
{
    uint64_t need = 8 + ((uint64_t)n + 7) / 8 * 8, at = s->head;
    uint64_t to_end = s->size - (at & (s->size - 1));
    uint64_t skip = need > to_end ? to_end : 0;
    uint64_t tail = __atomic_load_n(&s->tail, __ATOMIC_ACQUIRE);
    if (need + skip > s->size - (at - tail))
        return NULL;
    if (skip) {
        *word(s, at) = SKIP;
        at += skip;
    }
    *word(s, at) = n;
    s->reserved = at + need;
    return word(s, at) + 1;
}

void
spsc_publish(struct spsc *s)
{
    __atomic_store_n(&s->head, s->reserved, __ATOMIC_RELEASE);
}

void *
spsc_peek(struct spsc *s, uint32_t *n)
{
    uint64_t at = s->tail;
    if (at == __atomic_load_n(&s->head, __ATOMIC_ACQUIRE))
        return NULL;
    if (*word(s, at) == SKIP)
        at += s->size - (at & (s->size - 1));
    *n = (uint32_t)*word(s, at);
    s->peeked = at + 8 + ((uint64_t)*n + 7) / 8 * 8;
    return word(s, at) + 1;
}

void
spsc_release(struct spsc *s)
{
    __atomic_store_n(&s->tail, s->peeked, __ATOMIC_RELEASE);
}

bool
spsc_empty(const struct spsc *s)
{
    return __atomic_load_n(&s->head, __ATOMIC_ACQUIRE) ==
           __atomic_load_n(&s->tail, __ATOMIC_ACQUIRE);
}
