/* SPDX-License-Identifier: Apache-2.0 */
#include "spsc.h"

#include <stdlib.h>

/* A record is its length and its source in 8 bytes, then its bytes rounded up to 8.  One that would
 * not fit before the ring's end is preceded by a skip to the start. */
#define SKIP UINT64_MAX

struct spsc {
    uint32_t size, sources;
    uint64_t head __attribute__((aligned(64))); /* written by the producer */
    uint64_t reserved;                          /* where head goes next */
    uint32_t source;                            /* of what is reserved */
    uint64_t *put;                              /* bytes, ever, by source */
    uint64_t tail __attribute__((aligned(64))); /* written by the consumer */
    uint64_t peeked;
    uint64_t *got; /* bytes, ever, by source */
    uint8_t bytes[] __attribute__((aligned(64)));
};

struct spsc *
spsc_new(uint32_t bytes, uint32_t sources)
{
    struct spsc *s = aligned_alloc(64, sizeof *s + bytes);
    if (!s)
        return NULL;
    *s = (struct spsc){.size = bytes, .sources = sources};
    s->put = sources ? calloc(sources, sizeof *s->put) : NULL;
    s->got = sources ? calloc(sources, sizeof *s->got) : NULL;
    if (!sources || (s->put && s->got))
        return s;
    spsc_free(s);
    return NULL;
}

void
spsc_free(struct spsc *s)
{
    if (!s)
        return;
    free(s->put);
    free(s->got);
    free(s);
}

static uint64_t *
word(struct spsc *s, uint64_t at)
{
    return (uint64_t *)(void *)(s->bytes + (at & (s->size - 1)));
}

static uint64_t
size_of(uint32_t n)
{
    return 8 + ((uint64_t)n + 7) / 8 * 8;
}

bool
spsc_fair(const struct spsc *s, uint32_t n, uint32_t source)
{
    if (!s->sources)
        return true;
    uint64_t free = s->size - (s->head - __atomic_load_n(&s->tail, __ATOMIC_ACQUIRE));
    uint64_t waiting = s->put[source] - __atomic_load_n(&s->got[source], __ATOMIC_RELAXED);
    return waiting + size_of(n) <= free;
}

void *
spsc_reserve(struct spsc *s, uint32_t n, uint32_t source)
{
    uint64_t need = size_of(n), at = s->head;
    uint64_t to_end = s->size - (at & (s->size - 1));
    uint64_t skip = need > to_end ? to_end : 0;
    uint64_t tail = __atomic_load_n(&s->tail, __ATOMIC_ACQUIRE);
    if (need + skip > s->size - (at - tail))
        return NULL;
    if (skip) {
        *word(s, at) = SKIP;
        at += skip;
    }
    *word(s, at) = (uint64_t)source << 32 | n;
    s->reserved = at + need;
    s->source = source;
    return word(s, at) + 1;
}

void
spsc_publish(struct spsc *s)
{
    if (s->sources)
        s->put[s->source] += s->reserved - s->head;
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
    s->peeked = at + size_of(*n);
    return word(s, at) + 1;
}

void
spsc_release(struct spsc *s)
{
    uint64_t at = s->tail;
    if (*word(s, at) == SKIP)
        at += s->size - (at & (s->size - 1));
    if (s->sources) { /* as much as was put: the skip as well */
        uint64_t *got = &s->got[*word(s, at) >> 32];
        __atomic_store_n(got, *got + (s->peeked - s->tail), __ATOMIC_RELAXED);
    }
    __atomic_store_n(&s->tail, s->peeked, __ATOMIC_RELEASE);
}

bool
spsc_empty(const struct spsc *s)
{
    return __atomic_load_n(&s->head, __ATOMIC_ACQUIRE) ==
           __atomic_load_n(&s->tail, __ATOMIC_ACQUIRE);
}
