/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table of pointers for one writer and many RCU readers.
 *
 * Open addressing over one array; a slot holds a pointer and, where pointers leave room, some bits
 * of its hash, so that a reader follows few wrong ones.  Growing publishes a new array; the old one
 * is handed to rcu_defer_free (rcu.h).  The same hash may be there many times.
 */
#ifndef DATAPATH_PTRTAB_H
#define DATAPATH_PTRTAB_H

#include "rcu.h"

#include <stdint.h>
#include <stdlib.h>

struct ptrtab_slots {
    uint32_t mask; /* slots - 1 */
    uintptr_t slot[];
};

struct ptrtab {
    struct ptrtab_slots *slots; /* NULL while empty */
    uint32_t used;              /* pointers */
    uint32_t dead;              /* slots whose pointer was removed */
    uint32_t (*hash_of)(const void *);
};

#if UINTPTR_MAX > 0xffffffffu
#define PTRTAB_TAG_BITS  16
#define PTRTAB_TAG(hash) ((uintptr_t)((hash) >> 16) << 48)
#define PTRTAB_PTR(slot) ((void *)((slot) & ((UINT64_C(1) << 48) - 1)))
#else
#define PTRTAB_TAG_BITS  0
#define PTRTAB_TAG(hash) ((uintptr_t)0)
#define PTRTAB_PTR(slot) ((void *)(slot))
#endif
#define PTRTAB_DEAD ((uintptr_t)1)

static inline void
ptrtab_init(struct ptrtab *t, uint32_t (*hash_of)(const void *))
{
    *t = (struct ptrtab){.hash_of = hash_of};
}

void ptrtab_free(struct ptrtab *t); /* at once: no reader may be left */

int ptrtab_insert(struct ptrtab *t, uint32_t hash, void *p); /* -ENOMEM */
void ptrtab_remove(struct ptrtab *t, uint32_t hash, const void *p);
void ptrtab_replace(struct ptrtab *t, uint32_t hash, const void *old, void *now);

/* All pointers: start with *pos 0, NULL at the end.  Not while the table is changed, except that
 * the pointer just returned may be removed. */
void *ptrtab_each(const struct ptrtab *t, uint32_t *pos);

/* Candidates for a hash: for (pos = START(hash); (p = ptrtab_probe(s, hash, &pos)); ) compare. */
static inline void *
ptrtab_probe(const struct ptrtab_slots *s, uint32_t hash, uint32_t *pos)
{
    uintptr_t tag = PTRTAB_TAG(hash);
    for (;;) {
        uintptr_t v = load_consume(&s->slot[*pos & s->mask]);
        if (!v)
            return NULL;
        ++*pos;
        if (v != PTRTAB_DEAD && (v & ~(uintptr_t)PTRTAB_PTR(~(uintptr_t)0)) == tag)
            return PTRTAB_PTR(v);
    }
}

#endif
