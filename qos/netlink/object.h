/* SPDX-License-Identifier: Apache-2.0 */
/* Inside qos/netlink/: libnl-route's objects.
 *
 * libnl-route builds and parses the messages, netlink_call() carries them: libnl-route's own requests
 * answer one of libnl's codes and lose errno and the kernel's text. */
#ifndef QOS_NETLINK_OBJECT_H
#define QOS_NETLINK_OBJECT_H

#include "call.h"

#include <netlink/route/link.h>

/* The object that a message describes; NULL: none that libnl-route can read, or no memory.  Give it
 * back with nl_object_put(). */
struct nl_object *netlink_parse(struct nl_msg *msg);

/* The interface with this name, or with this index where name is NULL.  Give it back with
 * rtnl_link_put().  -errno; -ENODEV: there is none. */
int netlink_link_get(struct netlink *nl, int ifindex, const char *name, struct rtnl_link **out);

/* RTM_NEWLINK with what is set in `link`, which it gives back; NULL: no memory.  Without NLM_F_CREATE
 * in `flags` the interface with link's index is changed.  0 or -errno, also in *why, which may be
 * NULL. */
int netlink_link_set(struct netlink *nl, struct rtnl_link *link, int flags,
                     struct netlink_refusal *why);

#endif
