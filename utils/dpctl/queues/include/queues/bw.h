/* SPDX-License-Identifier: Apache-2.0 */
/* Bandwidth groups (docs/bandwidth-groups.md).  The switch has all of it: a port's total is the
 * rate of its HTB tree's root class; a group is a class below it whose rate is a share of the
 * total and whose ceiling is all of it; a connection belongs to a group by flows of the set
 * BW_SET that choose the group's queue. */
#ifndef DPCTL_QUEUES_BW_H
#define DPCTL_QUEUES_BW_H

#include <queues/map.h>

#define BW_SET "bw"

/* The flows of the set, without table-miss flows, in order of groups. */
struct bw_members {
    struct bw_member {
        const struct of_flow_stats *flow;
        uint32_t group; /* whose queue the flow chooses; 0: none */
    } * v;              /* in the arena */
    size_t n;
};

enum status bw_members(struct ctx *c, struct bw_members *out);

/* A class below the root class. */
bool bw_is_group(const struct qos_entry *e);

/* "2": 1 to 65519 */
enum status bw_take_group(struct ctx *c, const char *text, uint32_t *group);

#endif
