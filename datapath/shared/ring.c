/* SPDX-License-Identifier: Apache-2.0 */
#include <shared/ring.h>

#include <shared/atomics.h>

#include <stdlib.h>

/* A record is 8 bytes with its length and source, then its bytes rounded up to 8.  One that doesn't
 * fit before the ring's end begins at the ring's start, and a SKIP fills the rest. */
#define SKIP UINT64_MAX

/* Positions count all bytes ever, modulo 2^32, so that they are single words on any
 * processor.  They start one round before they wrap, so that every ring and every test does it. */

struct ring {
    uint32_t size, sources;
    uint32_t head __attribute__((aligned(64))); /* written by the producer */
    uint32_t reserved;                          /* where head goes next */
    uint32_t source;                            /* of what is reserved */
    uint32_t *put;                              /* by source: bytes ever */
    uint32_t tail __attribute__((aligned(64))); /* written by the consumer */
    uint32_t peeked;
    uint32_t *got; /* by source: bytes ever */
    uint8_t bytes[] __attribute__((aligned(64)));
};

struct ring *
ring_new(uint32_t bytes, uint32_t sources)
{
    struct ring *s = aligned_alloc(64, sizeof *s + bytes);
    if (!s)
        return NULL;
    *s = (struct ring){.size = bytes, .sources = sources, .head = 0 - bytes, .tail = 0 - bytes};
    s->put = sources ? calloc(sources, sizeof *s->put) : NULL;
    s->got = sources ? calloc(sources, sizeof *s->got) : NULL;
    if (!sources || (s->put && s->got))
        return s;
    ring_free(s);
    return NULL;
}

void
ring_free(struct ring *s)
{
    if (!s)
        return;
    free(s->put);
    free(s->got);
    free(s);
}

static uint64_t *
word(struct ring *s, uint32_t at)
{
    return (uint64_t *)(void *)(s->bytes + (at & (s->size - 1)));
}

static uint64_t
size_of(uint32_t n)
{
    return 8 + ((uint64_t)n + 7) / 8 * 8;
}

bool
ring_fair(const struct ring *s, uint32_t n, uint32_t source)
{
    if (!s->sources)
        return true;
    uint32_t free = s->size - (s->head - load_acquire(&s->tail));
    uint32_t waiting = s->put[source] - load_relaxed(&s->got[source]);
    return waiting + size_of(n) <= free;
}

void *
ring_reserve(struct ring *s, uint32_t n, uint32_t source)
{
    uint64_t need = size_of(n);
    uint32_t at = s->head, to_end = s->size - (at & (s->size - 1));
    uint32_t skip = need > to_end ? to_end : 0;
    uint32_t tail = load_acquire(&s->tail);
    if (need + skip > s->size - (at - tail))
        return NULL;
    if (skip) {
        *word(s, at) = SKIP;
        at += skip;
    }
    *word(s, at) = (uint64_t)source << 32 | n;
    s->reserved = at + (uint32_t)need;
    s->source = source;
    return word(s, at) + 1;
}

void
ring_publish(struct ring *s)
{
    if (s->sources)
        s->put[s->source] += s->reserved - s->head;
    store_release(&s->head, s->reserved);
}

void *
ring_peek(struct ring *s, uint32_t *n)
{
    uint32_t at = s->tail;
    if (at == load_acquire(&s->head))
        return NULL;
    if (*word(s, at) == SKIP)
        at += s->size - (at & (s->size - 1));
    *n = (uint32_t)*word(s, at);
    s->peeked = at + (uint32_t)size_of(*n);
    return word(s, at) + 1;
}

void
ring_release(struct ring *s)
{
    uint32_t at = s->tail;
    if (*word(s, at) == SKIP)
        at += s->size - (at & (s->size - 1));
    if (s->sources) { /* as ring_publish counted: with the skip */
        uint32_t *got = &s->got[*word(s, at) >> 32];
        store_relaxed(got, *got + (s->peeked - s->tail));
    }
    store_release(&s->tail, s->peeked);
}

bool
ring_empty(const struct ring *s)
{
    return load_acquire(&s->head) == load_acquire(&s->tail);
}
