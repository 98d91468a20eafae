/* SPDX-License-Identifier: Apache-2.0 */
/* Inside qos/netlink/: the one filter that we put on a root qdisc (qos/kernel.h). */
#ifndef QOS_FILTER_H
#define QOS_FILTER_H

#include "call.h"

#include <stdbool.h>

/* Our filter on this qdisc: 0 and its class's handle in *class (0: there is none), or -errno. */
int netlink_filter_get(struct netlink *nl, int ifindex, uint32_t qdisc, uint32_t *class,
                       struct netlink_refusal *why);

/* Makes the filter, or has it lead to another class.  `never`: it matches no packet. */
int netlink_filter_set(struct netlink *nl, int ifindex, uint32_t qdisc, uint32_t class, bool never,
                       struct netlink_refusal *why);

/* Deletes it; there may be none. */
int netlink_filter_del(struct netlink *nl, int ifindex, uint32_t qdisc,
                       struct netlink_refusal *why);

#endif
