/* SPDX-License-Identifier: Apache-2.0 */
#include <shared/pointer-hash.h>

#include <shared/rcu.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define FIRST_SLOTS 8

void
ptr_hash_free(struct ptr_hash *t)
{
    free(t->slots);
    ptr_hash_init(t, t->hash_of);
}

static void
put(struct ptr_hash_slots *s, uint32_t hash, void *p)
{
    uint32_t i = hash;
    while (s->slot[i & s->mask])
        i++;
    store_release(&s->slot[i & s->mask], (uintptr_t)p | PTR_HASH_TAG(hash));
}

#define AHEAD 16 /* slots */

/* hash_of reads the object; most are not in the cache when a large table grows. */
static void
prefetch(const void *p)
{
    __builtin_prefetch(p);
    __builtin_prefetch((const void *)((uintptr_t)p + 64)); /* p may be NULL */
}

#define HUGE_PAGE (2u << 20)

/* Zeroed.  Lookups in a large array miss the TLB, so it gets huge pages where there are any. */
static struct ptr_hash_slots *
new_slots(uint32_t n)
{
    size_t bytes = sizeof(struct ptr_hash_slots) + n * sizeof(uintptr_t);
    if (bytes < 2 * HUGE_PAGE)
        return calloc(1, bytes);
    bytes = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    void *s = aligned_alloc(HUGE_PAGE, bytes);
    if (!s)
        return NULL;
    madvise(s, bytes, MADV_HUGEPAGE);
    return memset(s, 0, bytes);
}

/* A new array for one more pointer: at most half full, without dead slots. */
static int
rebuild(struct ptr_hash *t)
{
    uint32_t n = FIRST_SLOTS;
    while (n < (t->used + 1) * 2)
        n *= 2;
    struct ptr_hash_slots *s = new_slots(n), *old = t->slots;
    if (!s)
        return -ENOMEM;
    s->mask = n - 1;
    uint32_t pos = 0;
    for (void *p; (p = ptr_hash_each(t, &pos));) {
        prefetch(PTR_HASH_PTR(old->slot[(pos + AHEAD) & old->mask]));
        put(s, t->hash_of(p), p);
    }
    t->dead = 0;
    rcu_assign_pointer(t->slots, s);
    if (old)
        rcu_defer_free(old);
    return 0;
}

int
ptr_hash_insert(struct ptr_hash *t, uint32_t hash, void *p)
{
    /* A quarter of the slots stays empty, so that probes are short. */
    if (!t->slots || (uint64_t)(t->used + t->dead + 1) * 4 > (uint64_t)(t->slots->mask + 1) * 3) {
        int err = rebuild(t);
        if (err)
            return err;
    }
    put(t->slots, hash, p);
    t->used++;
    return 0;
}

static uintptr_t *
find(struct ptr_hash *t, uint32_t hash, const void *p)
{
    uintptr_t want = (uintptr_t)p | PTR_HASH_TAG(hash);
    for (uint32_t i = hash; t->slots && t->slots->slot[i & t->slots->mask]; i++)
        if (t->slots->slot[i & t->slots->mask] == want)
            return &t->slots->slot[i & t->slots->mask];
    return NULL;
}

void
ptr_hash_remove(struct ptr_hash *t, uint32_t hash, const void *p)
{
    uintptr_t *slot = find(t, hash, p);
    if (!slot)
        return;
    store_release(slot, PTR_HASH_DEAD);
    t->used--;
    t->dead++;
}

void
ptr_hash_replace(struct ptr_hash *t, uint32_t hash, const void *old, void *now)
{
    uintptr_t *slot = find(t, hash, old);
    if (slot)
        store_release(slot, (uintptr_t)now | PTR_HASH_TAG(hash));
}

void *
ptr_hash_each(const struct ptr_hash *t, uint32_t *pos)
{
    while (t->slots && *pos <= t->slots->mask) {
        uintptr_t v = t->slots->slot[(*pos)++];
        if (v && v != PTR_HASH_DEAD)
            return PTR_HASH_PTR(v);
    }
    return NULL;
}
