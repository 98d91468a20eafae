/* SPDX-License-Identifier: Apache-2.0 */
/* Bandwidth groups (docs/how-to/bandwidth-groups.md).  The switch has all of it: a port's total is the
 * rate of its HTB tree's root class; a group is a class below it whose rate is a share of the
 * total and whose ceiling is all of it; a connection belongs to a group by flows of the set
 * BW_SET that choose the group's queue. */
#ifndef DPCTL_QOS_BW_H
#define DPCTL_QOS_BW_H

#include <queues/map.h>

#define BW_SET "bw"

/* A class below the root class. */
static inline bool
bw_is_group(const struct qos_entry *e)
{
    const struct qos_request *r = &e->config;
    return r->object_type == OFP_QOS_CLASS && r->class_id && r->class_id <= QOS_CLASS_MAX &&
           !e->parent_id;
}

#endif
