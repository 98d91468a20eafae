/* SPDX-License-Identifier: Apache-2.0 */
/* Mutations that keep lengths right.  An input is read as a tree of elements (structure.h); one of them goes,
 * comes twice, moves, or changes inside; the lengths of those around it follow, with their pads.  One time
 * in four libFuzzer changes the bytes as it likes, so that wrong lengths are tried, too. */
#include "structure.h"

#include <stdlib.h>
#include <string.h>

#define NODES_MAX 512
#define DEPTH_MAX 10
#define SCAN_MAX  192 /* bytes in front of the first element inside another */
#define BYTES_MAX (1 << 16)

struct node {
    uint32_t at, len; /* with its head, without its pad */
    uint32_t room;    /* with its pad, as far as it is there */
    int parent;       /* -1: none */
    const struct fuzz_rule *rule;
};

struct tree {
    unsigned n;
    struct node v[NODES_MAX];
};

static uint32_t state;

static uint32_t
below(uint32_t n)
{
    state = state * 1664525u + 1013904223u;
    return n ? (state >> 8) % n : 0;
}

static uint32_t
padded(const struct fuzz_rule *r, uint32_t len)
{
    return (len + r->align - 1u) & ~(r->align - 1u);
}

/* ------------------------------------------------------------------ lengths */

static uint32_t
get_len(const struct fuzz_rule *r, const uint8_t *p)
{
    uint32_t n = 0;
    for (unsigned i = 0; i < r->len_bytes; i++)
        n = n << 8 | p[r->len_at + (r->little ? r->len_bytes - 1u - i : i)];
    return r->body_only && n < BYTES_MAX ? n + r->head : n;
}

static bool
set_len(const struct fuzz_rule *r, uint8_t *p, uint32_t len)
{
    uint32_t n = r->body_only ? len - r->head : len;
    if (r->len_bytes < 4 && n >> (8 * r->len_bytes))
        return false;
    for (unsigned i = 0; i < r->len_bytes; i++, n >>= 8)
        p[r->len_at + (r->little ? i : r->len_bytes - 1u - i)] = (uint8_t)n;
    return true;
}

/* ------------------------------------------------------------------ the tree */

/* Do elements of this kind fill the bytes from `at` to `end`?  `loose`: the last one may be cut off. */
static bool
tiles(const uint8_t *p, const struct fuzz_rule *r, uint32_t at, uint32_t end, bool loose)
{
    while (at < end) {
        uint32_t len = end - at < r->head ? 0 : get_len(r, p + at);
        if (len < r->head || len > end - at)
            return loose;
        at += padded(r, len);
    }
    return true;
}

static void look_inside(struct tree *t, const uint8_t *p, uint32_t at, uint32_t end, int parent,
                        unsigned depth);

static void
add_row(struct tree *t, const uint8_t *p, const struct fuzz_rule *r, uint32_t at, uint32_t end,
        int parent, unsigned depth)
{
    while (at < end && t->n < NODES_MAX) {
        uint32_t len = end - at < r->head ? 0 : get_len(r, p + at);
        if (len < r->head || len > end - at)
            return;
        uint32_t room = padded(r, len) < end - at ? padded(r, len) : end - at;
        t->v[t->n++] = (struct node){at, len, room, parent, r};
        look_inside(t, p, at + r->head, at + len, (int)t->n - 1, depth + 1);
        at += room;
    }
}

/* Elements are found by their lengths: they have to come to the end exactly. */
static void
look_inside(struct tree *t, const uint8_t *p, uint32_t at, uint32_t end, int parent, unsigned depth)
{
    for (uint32_t skip = 0; depth < DEPTH_MAX && skip <= SCAN_MAX && at + skip + 4 <= end; skip++)
        for (unsigned i = 0; i < FUZZ_RULES && fuzz_format.inner[i].head; i++)
            if (tiles(p, &fuzz_format.inner[i], at + skip, end, false)) {
                add_row(t, p, &fuzz_format.inner[i], at + skip, end, parent, depth);
                return;
            }
}

static void
read_tree(struct tree *t, const uint8_t *p, size_t size)
{
    uint32_t skip = (uint32_t)fuzz_format.skip;
    t->n = 0;
    if (size <= skip || size > BYTES_MAX)
        return;
    if (fuzz_format.outer.head)
        add_row(t, p, &fuzz_format.outer, skip, (uint32_t)size, -1, 0);
    else
        look_inside(t, p, skip, (uint32_t)size, -1, 0);
}

/* ------------------------------------------------------------------ changes */

/* The bytes of an input, and how many may be there. */
struct bytes {
    uint8_t *p;
    size_t n, max;
};

static bool
splice(struct bytes *b, size_t at, size_t old, const uint8_t *new, size_t n)
{
    if (b->n - old + n > b->max)
        return false;
    memmove(b->p + at + n, b->p + at + old, b->n - at - old);
    if (new)
        memcpy(b->p + at, new, n);
    else
        memset(b->p + at, 0, n);
    b->n = b->n - old + n;
    return true;
}

/* Puts n bytes in the place of `old` ones inside of the element `around` (-1: in none), and makes it and those
 * around it as much longer.  False: there is no room; the bytes are spoilt then. */
static bool
put(struct bytes *b, const struct tree *t, int around, size_t at, size_t old, const uint8_t *new,
    size_t n)
{
    if (!splice(b, at, old, new, n))
        return false;
    for (int64_t more = (int64_t)n - (int64_t)old; around >= 0; around = t->v[around].parent) {
        const struct node *e = &t->v[around];
        uint32_t len = (uint32_t)(e->len + more), pad = padded(e->rule, len) - len;
        bool last_cut = e->room < padded(e->rule, e->len);
        size_t had = e->room - e->len, wants = last_cut ? 0 : pad;
        if (!set_len(e->rule, b->p + e->at, len) || !splice(b, e->at + len, had, NULL, wants))
            return false;
        more += (int64_t)wants - (int64_t)had;
    }
    return true;
}

/* An element with its pad. */
static size_t
copy_of(const struct bytes *b, const struct node *e, uint8_t *out)
{
    size_t room = padded(e->rule, e->len);
    memset(out, 0, room);
    memcpy(out, b->p + e->at, e->len);
    return room;
}

static bool
change_body(struct bytes *b, const struct tree *t, unsigned i)
{
    static uint8_t body[BYTES_MAX];
    const struct node *e = &t->v[i];
    size_t n = e->len - e->rule->head, max = n + 64 < sizeof body ? n + 64 : sizeof body;
    memcpy(body, b->p + e->at + e->rule->head, n);
    size_t now = LLVMFuzzerMutate(body, n, below(3) ? (n ? n : 1) : max);
    return put(b, t, (int)i, e->at + e->rule->head, n, body, now);
}

/* All of it but the length. */
static bool
change_head(struct bytes *b, const struct tree *t, unsigned i)
{
    const struct node *e = &t->v[i];
    uint8_t head[32];
    memcpy(head, b->p + e->at, e->rule->head);
    LLVMFuzzerMutate(head, e->rule->head, e->rule->head);
    memcpy(b->p + e->at, head, e->rule->head);
    return set_len(e->rule, b->p + e->at, e->len);
}

/* One element in the place of, or in front of, another one. */
static bool
place(struct bytes *b, const struct tree *t, unsigned i, bool instead, const uint8_t *new, size_t n)
{
    const struct node *e = &t->v[i];
    return put(b, t, e->parent, e->at, instead ? e->room : 0, new, n);
}

static bool
change(struct bytes *b, const struct tree *t)
{
    static uint8_t other[2 * BYTES_MAX];
    unsigned i = below(t->n), kind = below(8);
    if (kind == 0)
        return place(b, t, i, true, NULL, 0);
    if (kind == 1)
        return place(b, t, i, false, other, copy_of(b, &t->v[i], other));
    if (kind == 2)
        return place(b, t, i, below(2), other, copy_of(b, &t->v[below(t->n)], other));
    return kind == 3 ? change_head(b, t, i) : change_body(b, t, i);
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    static struct tree t;
    static uint8_t room[BYTES_MAX];
    struct bytes b = {room, size, max < sizeof room ? max : sizeof room};
    state = seed;
    if (size <= b.max && below(4)) {
        memcpy(room, data, size);
        read_tree(&t, room, size);
        if (t.n && change(&b, &t)) {
            memcpy(data, room, b.n);
            return b.n;
        }
    }
    return LLVMFuzzerMutate(data, size, max);
}

/* An element of the one in the other. */
size_t
LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t n_a, const uint8_t *b, size_t n_b, uint8_t *out,
                          size_t max, unsigned seed)
{
    static struct tree into, from;
    static uint8_t element[2 * BYTES_MAX];
    struct bytes of = {(uint8_t *)(uintptr_t)b, n_b, n_b}, to = {out, n_a, max};
    state = seed;
    read_tree(&into, a, n_a);
    read_tree(&from, b, n_b);
    if (!into.n || !from.n || n_a > max)
        return 0;
    memcpy(out, a, n_a);
    size_t n = copy_of(&of, &from.v[below(from.n)], element);
    return place(&to, &into, below(into.n), below(2), element, n) ? to.n : 0;
}
