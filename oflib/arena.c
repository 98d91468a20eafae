/* SPDX-License-Identifier: Apache-2.0 */
#include <oflib/arena.h>

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CHUNK 4096

struct of_arena_chunk {
    struct of_arena_chunk *next;
    size_t cap;
    size_t used;
    alignas(max_align_t) uint8_t bytes[];
};

void
of_arena_init(struct of_arena *a, size_t max)
{
    *a = (struct of_arena){.max = max};
}

static void
free_chunks(struct of_arena_chunk *c)
{
    while (c) {
        struct of_arena_chunk *next = c->next;
        free(c);
        c = next;
    }
}

void
of_arena_free(struct of_arena *a)
{
    free_chunks(a->chunks);
    of_arena_init(a, a->max);
}

void
of_arena_reset(struct of_arena *a)
{
    a->refused = false;
    if (!a->chunks)
        return;
    /* The newest chunk is the largest: each is at least twice the one before. */
    free_chunks(a->chunks->next);
    a->chunks->next = NULL;
    a->chunks->used = 0;
    a->total = a->chunks->cap;
}

#define ALIGN alignof(max_align_t)

static struct of_arena_chunk *
add_chunk(struct of_arena *a, size_t n)
{
    if (n > a->max)
        return NULL;
    size_t cap = a->chunks ? a->chunks->cap * 2 : FIRST_CHUNK;
    while (cap < n)
        cap *= 2;
    if (a->total + cap > a->max) {
        cap = (a->max - a->total) / ALIGN * ALIGN;
        if (cap < n)
            return NULL;
    }
    struct of_arena_chunk *c = malloc(sizeof *c + cap);
    if (!c)
        return NULL;
    *c = (struct of_arena_chunk){.next = a->chunks, .cap = cap};
    a->chunks = c;
    a->total += cap;
    return c;
}

void *
of_arena_alloc(struct of_arena *a, size_t n)
{
    struct of_arena_chunk *c = a->chunks;
    if ((!c || c->cap - c->used < n) && !(c = add_chunk(a, n))) {
        a->refused = true;
        return NULL;
    }
    void *p = c->bytes + c->used;
    c->used += (n + ALIGN - 1) / ALIGN * ALIGN; /* a chunk is a multiple of it */
    return memset(p, 0, n);
}

void *
of_arena_array(struct of_arena *a, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes))
        bytes = SIZE_MAX - sizeof(max_align_t); /* beyond every limit */
    return of_arena_alloc(a, bytes);
}

char *
of_arena_text(struct of_arena *a, const char *text, size_t n)
{
    char *p = of_arena_alloc(a, n + 1);
    if (p) {
        if (n)
            memcpy(p, text, n);
        p[n] = '\0';
    }
    return p;
}

void *
of_arena_room(struct of_arena *a, void *v, size_t n, size_t *room, size_t size)
{
    if (n < *room)
        return v;
    size_t more = *room * 2 + 32;
    void *larger = of_arena_array(a, more, size);
    if (!larger)
        return NULL;
    if (n)
        memcpy(larger, v, n * size);
    *room = more;
    return larger;
}
