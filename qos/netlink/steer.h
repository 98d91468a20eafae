/* SPDX-License-Identifier: Apache-2.0 */
/* Filters that lead packets to the trees below transmit queues (<qos/kernel/kernel.h>).
 *
 * They are at clsact's egress.  Each matches the upper half of skb->priority and sets the transmit
 * queue by tc-skbedit(8), so that the kernel doesn't choose one itself (Linux 5.19).  The kernel's
 * own choice can't be used: drivers make theirs, and mqprio's looks at 4 bits of the priority
 * only.  These filters come before everybody else's, which still see the packets.  The last one
 * leads packets of no tree (0) to the first tree.  All functions: 0 or -errno, also in *why, which
 * may be NULL. */
#ifndef QOS_NETLINK_STEER_H
#define QOS_NETLINK_STEER_H

#include "call.h"

#include <stdbool.h>

/* Makes the filter, and clsact, unless they are there.  -EOPNOTSUPP: the kernel lacks one of the
 * two, or what the filter uses. */
int netlink_steer_add(struct netlink *nl, int ifindex, uint32_t band, struct netlink_refusal *why);

/* Is it there? */
int netlink_steer_get(struct netlink *nl, int ifindex, uint32_t band, bool *there,
                      struct netlink_refusal *why);

/* Removes the filter (band 0: all of them), and clsact if it was made for them and nobody else
 * uses it. */
void netlink_steer_del(struct netlink *nl, int ifindex, uint32_t band);

/* Is this one of these filters?  Or, with handle 0, a notice about all filters of its preference?
 * Judges by the header alone. */
bool netlink_steer_is(const struct tcmsg *tc);

#endif
