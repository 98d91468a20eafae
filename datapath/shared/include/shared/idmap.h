/* SPDX-License-Identifier: Apache-2.0 */
/* Groups and meters by number: objects that begin with their id, found by workers under RCU, and
 * exchanged as a whole.  While a change set (change-set.h) is open, the objects from before and
 * from after it are both here.  The map owns its objects.
 *
 * It is a pointer hash plus the marks of change sets, and as fast (pointer-hash.h has the figures
 * beside cds_lfht, measured with this map); with cds_lfht the marks would be the same code. */
#ifndef SHARED_IDMAP_H
#define SHARED_IDMAP_H

#include <shared/change-set.h>
#include <shared/pointer-hash.h>

/* The first members of every object. */
#define IDMAP_OBJECT                                                                               \
    uint32_t id;                                                                                   \
    uint8_t mark; /* change-set.h */                                                               \
    void *before; /* the object that this one replaces in the open change set, or NULL */

struct idmap_object {
    IDMAP_OBJECT
};

struct idmap_ops {
    void (*free)(void *o);
    /* The object begins (delta 1) or ceases (-1) to refer to others; may be NULL. */
    void (*refer)(void *owner, void *o, int delta);
    /* `o` has replaced `old`: it owns now what both use. */
    void (*inherit)(void *o, void *old);
};

struct idmap {
    struct ptr_hash tab;
    uint32_t leaving; /* objects in tab that the open change set removes */
    unsigned long
        changes; /* changes whenever idmap_find may have another answer (control thread) */
    const struct idmap_ops *ops;
    void *owner;
};

void idmap_init(struct idmap *m, const struct idmap_ops *ops, void *owner);
void idmap_free(struct idmap *m); /* with the objects; no readers */

static inline uint32_t
id_hash(uint32_t id)
{
    uint32_t h = id * 0x9e3779b1u;
    return h ^ h >> 15;
}

static inline uint32_t
id_hash_of(const void *p)
{
    return id_hash(*(const uint32_t *)p);
}

/* In a pointer hash of anything that begins with its id and was inserted with id_hash(id). */
static inline void *
id_find(const struct ptr_hash *t, uint32_t id)
{
    const struct ptr_hash_slots *s = rcu_dereference(t->slots);
    uint32_t hash = id_hash(id), pos = hash;
    for (void *p; s && (p = ptr_hash_probe(s, hash, &pos));)
        if (*(const uint32_t *)p == id)
            return p;
    return NULL;
}

/* idmap_find's answer where the object has a mark: the object that the reader sees, or NULL. */
void *idmap_seen(struct idmap_object *o, uint8_t mark);

/* Any thread, under RCU. */
static inline void *
idmap_find(const struct idmap *m, uint32_t id)
{
    struct idmap_object *o = id_find(&m->tab, id);
    uint8_t mark = o ? change_set_mark_of(&o->mark) : 0;
    return __builtin_expect(!mark, 1) ? o : idmap_seen(o, mark);
}

/* The rest is the control thread's. */
static inline uint32_t
idmap_count(const struct idmap *m)
{
    return m->tab.used - m->leaving;
}

void *idmap_each(const struct idmap *m, uint32_t *pos); /* in no order; *pos starts as 0 */

/* 0 or -ENOMEM: then nothing is changed and `o` is the caller's.  They note the change where a
 * change set is open; the ids of `old` and `o` are the same. */
int idmap_add(struct idmap *m, void *o);
int idmap_replace(struct idmap *m, void *old, void *o);
int idmap_drop(struct idmap *m, void *o);

#endif
