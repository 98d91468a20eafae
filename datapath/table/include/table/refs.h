/* SPDX-License-Identifier: Apache-2.0 */
/* Who refers to a group or a meter: how many, and which flows, so that deleting one looks at its
 * own flows and at no others.  Counted apart from the groups and meters, which are exchanged, and
 * which a set of changes puts back without knowing who refers to them.  Control thread. */
#ifndef TABLE_REFS_H
#define TABLE_REFS_H

#include <shared/pointer-hash.h>
#include <table/flow.h>

struct id_refs {
    uint32_t id;             /* first: id_find */
    uint32_t flows, buckets; /* that forward to it; a flow counts each time that it does */
    uint32_t watchers;       /* buckets that watch it */
    struct flow_use *users;  /* of those flows */
};

struct refs {
    struct ptr_hash tab;
    uint32_t sweep_at; /* so many ids are worth looking for those that nobody refers to any more */
};

void refs_init(struct refs *t);
void refs_free(struct refs *t);

const struct id_refs *refs_find(const struct refs *t, uint32_t id); /* NULL: nobody ever did */
struct id_refs *refs_get(struct refs *t, uint32_t id);              /* NULL: no memory */

/* A flow begins (delta 1) or ceases (-1) to refer to the id, by this use of its program. */
void refs_flow(struct refs *t, uint32_t id, struct flow *f, struct flow_use *use, int delta);

/* A flow that refers to it, or NULL. */
struct flow *refs_user(const struct refs *t, uint32_t id);

#endif
