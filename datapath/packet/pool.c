/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for copies of packets: chunks that are filled from front to back and emptied all at once.
 * */
#include <packet/packet.h>

#include <stdlib.h>
#include <string.h>

#define CHUNK (4u * (PACKET_MAX + PACKET_HEADROOM))
#define ALIGN 16u

struct pool_chunk {
    struct pool_chunk *next;
    size_t size;
    size_t used;
    _Alignas(ALIGN) uint8_t bytes[];
};

struct packet_pool {
    size_t max;   /* bytes that all chunks may have */
    size_t total; /* bytes that they have */
    struct pool_chunk *first;
    struct pool_chunk *now; /* gives the next bytes; those before it are full */
};

struct packet_pool *
packet_pool_new(size_t max_bytes)
{
    struct packet_pool *p = calloc(1, sizeof *p);
    if (p)
        p->max = max_bytes;
    return p;
}

void
packet_pool_free(struct packet_pool *p)
{
    if (!p)
        return;
    for (struct pool_chunk *c = p->first, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    free(p);
}

void
packet_pool_reset(struct packet_pool *p)
{
    if (!p->now)
        return;
    for (struct pool_chunk *c = p->first; c; c = c->next) {
        c->used = 0;
        if (c == p->now)
            break;
    }
    p->now = p->first;
}

/* Adds a chunk with room for n bytes after `now`. */
static struct pool_chunk *
add_chunk(struct packet_pool *p, size_t n)
{
    size_t left = p->max - p->total, size = n > CHUNK ? n : CHUNK;
    if (size > left)
        size = left;
    if (n > size)
        return NULL;
    struct pool_chunk *c = malloc(sizeof *c + size);
    if (!c)
        return NULL;
    c->size = size;
    c->used = 0;
    c->next = p->now ? p->now->next : NULL;
    if (p->now)
        p->now->next = c;
    else
        p->first = c;
    p->total += size;
    return c;
}

uint8_t *
packet_pool_alloc(struct packet_pool *p, size_t n)
{
    if (n > p->max)
        return NULL;
    n = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    struct pool_chunk *c = p->now;
    while (c && c->size - c->used < n) {
        if (!c->next)
            break;
        c = p->now = c->next;
    }
    if (!c || c->size - c->used < n) {
        c = add_chunk(p, n);
        if (!c)
            return NULL;
        p->now = c;
    }
    uint8_t *bytes = c->bytes + c->used;
    c->used += n;
    return bytes;
}

void
packet_clone(struct packet *from, struct packet *to)
{
    from->shared = true;
    *to = *from;
}

bool
packet_own(struct packet *p, uint32_t headroom)
{
    if (!p->shared && p->headroom >= headroom)
        return true;
    if (headroom < PACKET_HEADROOM)
        headroom = PACKET_HEADROOM;
    uint8_t *bytes = p->pool ? packet_pool_alloc(p->pool, (size_t)headroom + p->len) : NULL;
    if (!bytes)
        return false;
    memcpy(bytes + headroom, p->data, p->len);
    p->data = bytes + headroom;
    p->headroom = headroom;
    p->shared = false;
    return true;
}
