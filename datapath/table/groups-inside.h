/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the groups: what their own files share (groups.h is for everybody else). */
#ifndef TABLE_GROUPS_INSIDE_H
#define TABLE_GROUPS_INSIDE_H

#include <table/groups.h>
#include <table/refs.h>

struct groups {
    struct idmap map; /* struct group */
    struct refs refs;
    unsigned n_workers;
    struct limits limits;
    uint32_t n_buckets; /* of all groups, without those that a transaction takes out, */
    uint64_t bytes;     /* and what they take */
    struct groups_ops ops;
    uint64_t checks; /* walks through the chains so far */
};

/* The fields of a request, before the group is built. */
int groups_check(const struct groups *g, const struct of_group_mod *m);

/* A group that is built but not in the map yet: whether it would close a circle or make a chain
 * that is too deep, by what it leads to and by what leads to it. */
int groups_check_chains(struct groups *g, struct group *gr);

#endif
