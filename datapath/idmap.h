/* SPDX-License-Identifier: Apache-2.0 */
/* Groups and meters by number: objects that begin with their id, found by workers under RCU. */
#ifndef DATAPATH_IDMAP_H
#define DATAPATH_IDMAP_H

#include "ptrtab.h"

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

static inline void *
idmap_find(const struct ptrtab *t, uint32_t id)
{
    const struct ptrtab_slots *s = rcu_dereference(t->slots);
    uint32_t hash = id_hash(id), pos = hash;
    for (void *p; s && (p = ptrtab_probe(s, hash, &pos));)
        if (*(const uint32_t *)p == id)
            return p;
    return NULL;
}

#endif
