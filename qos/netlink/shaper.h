/* SPDX-License-Identifier: Apache-2.0 */
/* The veth pair of struct qos_shaper (<qos/kernel/kernel.h>); all packets that enter by an interface
 * pass through its queues. */
#ifndef QOS_NETLINK_SHAPER_H
#define QOS_NETLINK_SHAPER_H

#include "call.h"

#include <qos/kernel/kernel.h>

/* ifindex is the interface that the packets enter by; queues_only: an IFB instead of the pair.  0 or -errno; find:
 * -ENOENT if there is no such pair or IFB.  What was left behind is replaced by add. */
int netlink_shaper_add(struct netlink *nl, int ifindex, bool queues_only, struct qos_shaper *out,
                       struct netlink_refusal *why);
int netlink_shaper_find(struct netlink *nl, int ifindex, bool queues_only, struct qos_shaper *out);
void netlink_shaper_del(struct netlink *nl, const struct qos_shaper *s);

/* A pair that the kernel cuts super-packets at: one that is sent by its first interface comes in by the second
 * one as its segments.  Its names have the interface's index; to be removed by netlink_shaper_del. */
int netlink_cutter_add(struct netlink *nl, int ifindex, struct qos_shaper *out,
                       struct netlink_refusal *why);

#endif
