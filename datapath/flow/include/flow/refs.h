/* SPDX-License-Identifier: Apache-2.0 */
/* The references to a group or a meter: how many there are, and from which flows, so that deleting
 * one visits its own flows only.  They are kept by id, apart from the groups and meters: these are
 * replaced as a whole, and a failed change set puts the old ones back.  Control thread. */
#ifndef FLOW_REFS_H
#define FLOW_REFS_H

#include <flow/flow.h>
#include <shared/pointer-hash.h>

struct id_refs {
    uint32_t id;             /* first: id_find */
    uint32_t flows, buckets; /* that forward to it; a flow counts once for each of its actions */
    uint32_t watchers;       /* buckets that watch it */
    struct flow_use *users;  /* the flows' */
};

struct refs {
    struct ptr_hash tab;
    uint32_t sweep_at; /* number of ids at which the unused ones are freed */
};

void refs_init(struct refs *t);
void refs_free(struct refs *t);

const struct id_refs *refs_find(const struct refs *t, uint32_t id); /* NULL: nobody refers to it */
struct id_refs *refs_get(struct refs *t, uint32_t id);              /* NULL: no memory */

/* A flow begins (delta 1) or ceases (-1) to refer to the id; `use` is its program's. */
void refs_flow(struct refs *t, uint32_t id, struct flow *f, struct flow_use *use, int delta);

/* Removes the flows that refer to it, by `remove`.  *most is counted down by each.
 * -EAGAIN: it was 0, and there are more; or remove's error. */
int refs_remove_users(const struct refs *t, uint32_t id, uint32_t *most,
                      int (*remove)(void *ctx, struct flow *f), void *ctx);

#endif
