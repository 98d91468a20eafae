/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the groups: what their files share. */
#ifndef GROUP_GROUPS_INSIDE_H
#define GROUP_GROUPS_INSIDE_H

#include <flow/refs.h>
#include <group/groups.h>

struct groups {
    struct idmap map; /* struct group */
    struct refs refs;
    unsigned n_workers;
    struct limits limits;
    uint32_t n_buckets; /* of all groups but those that the open change set removes */
    uint64_t bytes;     /* of the same groups */
    struct groups_ops ops;
    uint64_t checks; /* walks through the chains so far: the number of the current one */
};

/* Checks the fields of a request, before the group is built.  0 or an OpenFlow error. */
int groups_check(const struct groups *g, const struct of_group_mod *m);

/* Checks whether a group that is built, but not in the map yet, would close a circle or make a
 * chain that is too deep.  0 or an OpenFlow error. */
int groups_check_chains(struct groups *g, struct group *gr);

#endif
