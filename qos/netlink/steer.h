/* SPDX-License-Identifier: Apache-2.0 */
/* Filters that lead packets to the trees below transmit queues (<qos/model/kernel.h>).
 *
 * At clsact's egress, by the upper half of skb->priority, tc-skbedit(8) sets the transmit queue, which
 * the kernel then doesn't choose (Linux 5.19).  Its own choice can't be used: drivers have theirs, and
 * that of mqprio has 4 bits of the priority.  They come before everybody else's filters, and these
 * still see the packets.  Those of no tree (0) go to the first one: its filter is the last.
 * All answer 0 or -errno, also in *why, which may be NULL. */
#ifndef QOS_NETLINK_STEER_H
#define QOS_NETLINK_STEER_H

#include "call.h"

#include <stdbool.h>

/* Makes it where it isn't there, clsact too.  -EOPNOTSUPP: the kernel hasn't what it takes. */
int netlink_steer_add(struct netlink *nl, int ifindex, uint32_t band, struct netlink_refusal *why);

/* Is it there? */
int netlink_steer_get(struct netlink *nl, int ifindex, uint32_t band, bool *there,
                      struct netlink_refusal *why);

/* Removes it (band 0: all of them), and clsact if it was made for them and nobody else uses it. */
void netlink_steer_del(struct netlink *nl, int ifindex, uint32_t band);

/* Is this the filter of one, or (handle 0) all that there is of it, as far as the header says? */
bool netlink_steer_is(const struct tcmsg *tc);

#endif
