/* SPDX-License-Identifier: Apache-2.0 */
/* The one filter that the switch puts on a root qdisc (<qos/kernel/kernel.h>).
 * All answer 0 or -errno, also in *why. */
#ifndef QOS_NETLINK_FILTER_H
#define QOS_NETLINK_FILTER_H

#include "call.h"

#include <stdbool.h>

/* The class that the filter on this qdisc selects, 0 if there is no filter. */
int netlink_filter_get(struct netlink *nl, int ifindex, uint32_t qdisc, uint32_t *class,
                       struct netlink_refusal *why);

/* Creates the filter, or changes its class.  `never`: it matches no packet. */
int netlink_filter_set(struct netlink *nl, int ifindex, uint32_t qdisc, uint32_t class, bool never,
                       struct netlink_refusal *why);

/* Deletes the filter, if there is one. */
int netlink_filter_del(struct netlink *nl, int ifindex, uint32_t qdisc,
                       struct netlink_refusal *why);

#endif
