/* SPDX-License-Identifier: Apache-2.0 */
/* All packets that enter by an interface go through another one first (an IFB), and on from there as if they had just
 * entered: a u32 filter at its ingress with the action mirred (tc-mirred(8)).  Other programs' filters there come
 * first. */
#ifndef QOS_NETLINK_REDIRECT_H
#define QOS_NETLINK_REDIRECT_H

#include "call.h"

/* from, to: interfaces.  0 or -errno, also in *why, which may be NULL. */
int netlink_redirect_set(struct netlink *nl, int from, int to, struct netlink_refusal *why);
/* 0 in *to: there is none. */
int netlink_redirect_get(struct netlink *nl, int from, int *to);
/* With the clsact qdisc, if no other filter needs it.  0 too if there is none. */
int netlink_redirect_del(struct netlink *nl, int from);

#endif
