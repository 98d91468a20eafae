/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of libnl-route.
 *
 * libnl-route builds and parses the messages; netlink_call() carries them, because libnl-route's
 * own requests lose errno and the kernel's text. */
#ifndef QOS_NETLINK_OBJECT_H
#define QOS_NETLINK_OBJECT_H

#include "call.h"

#include <netlink/route/link.h>

/* The interface with this name, or, if name is NULL, with this index.  The caller releases it with
 * rtnl_link_put().  -ENODEV: there is none; other -errno. */
int netlink_link_get(struct netlink *nl, int ifindex, const char *name, struct rtnl_link **out);

/* Creates the interface `link` (flags: NLM_F_CREATE), or sets what is set in `link` on the
 * interface with its index (flags: 0).  Releases `link`; NULL: -ENOMEM.  0 or -errno, also in
 * *why, which may be NULL. */
int netlink_link_set(struct netlink *nl, struct rtnl_link *link, int flags,
                     struct netlink_refusal *why);

#endif
