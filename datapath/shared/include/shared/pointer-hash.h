/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table of pointers for one writer (the control thread) and many RCU readers.
 *
 * Open addressing over one array; a slot holds a pointer and, where pointers leave room, some bits
 * of its hash, so that a reader follows few wrong ones.  Growing publishes a new array; the old one
 * goes to rcu_defer_free (rcu.h).  Several pointers may have the same hash.  The table never looks
 * at what its pointers point to, except by hash_of when it grows.
 *
 * Why not liburcu's cds_lfht, which takes several writers and may grow during a walk: nothing here
 * needs that, and a lookup costs a third to a sixth.  measure/bench/hash-bench, with 1,024, 65,536 and
 * 1,048,576 entries: 2.6, 16 and 45 ns beside 15, 53 and 164 (4.7, 10 and 23 in batches, whose
 * slots are prefetched: cds_lfht hides its buckets); a walk, per entry, 16, 16 and 24 ns beside 20,
 * 113 and 376; 16 to 20 bytes an entry beside 32, none of them in the object.
 */
#ifndef SHARED_POINTER_HASH_H
#define SHARED_POINTER_HASH_H

#include <shared/rcu.h>

#include <stdint.h>
#include <stdlib.h>

struct ptr_hash_slots {
    uint32_t mask; /* slots - 1 */
    uintptr_t slot[];
};

struct ptr_hash {
    struct ptr_hash_slots *slots; /* NULL while empty */
    uint32_t used;                /* pointers */
    uint32_t dead;                /* slots whose pointer was removed */
    uint32_t (*hash_of)(const void *);
};

#if UINTPTR_MAX > 0xffffffffu
#define PTR_HASH_TAG_BITS  16
#define PTR_HASH_TAG(hash) ((uintptr_t)((hash) >> 16) << 48)
#define PTR_HASH_PTR(slot) ((void *)((slot) & ((UINT64_C(1) << 48) - 1)))
#else
#define PTR_HASH_TAG_BITS  0
#define PTR_HASH_TAG(hash) ((uintptr_t)0)
#define PTR_HASH_PTR(slot) ((void *)(slot))
#endif
#define PTR_HASH_DEAD ((uintptr_t)1)

static inline void
ptr_hash_init(struct ptr_hash *t, uint32_t (*hash_of)(const void *))
{
    *t = (struct ptr_hash){.hash_of = hash_of};
}

void ptr_hash_free(struct ptr_hash *t); /* at once: no readers; the pointers are the caller's */

int ptr_hash_insert(struct ptr_hash *t, uint32_t hash, void *p); /* -ENOMEM */
void ptr_hash_remove(struct ptr_hash *t, uint32_t hash, const void *p);
void ptr_hash_replace(struct ptr_hash *t, uint32_t hash, const void *old, void *now);

/* All pointers: start with *pos 0, NULL at the end.  The table may not change meanwhile, except
 * that the pointer just returned may be removed. */
void *ptr_hash_each(const struct ptr_hash *t, uint32_t *pos);

/* The next pointer that may have this hash, or NULL; the caller compares.  *pos starts as hash. */
static inline void *
ptr_hash_probe(const struct ptr_hash_slots *s, uint32_t hash, uint32_t *pos)
{
    uintptr_t tag = PTR_HASH_TAG(hash);
    for (;;) {
        uintptr_t v = load_consume(&s->slot[*pos & s->mask]);
        if (!v)
            return NULL;
        ++*pos;
        if (v != PTR_HASH_DEAD && (v & ~(uintptr_t)PTR_HASH_PTR(~(uintptr_t)0)) == tag)
            return PTR_HASH_PTR(v);
    }
}

#endif
