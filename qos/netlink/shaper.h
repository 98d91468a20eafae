/* SPDX-License-Identifier: Apache-2.0 */
/* Inside qos/netlink/: the interfaces of struct qos_shaper. */
#ifndef QOS_NETLINK_SHAPER_H
#define QOS_NETLINK_SHAPER_H

#include "call.h"

#include <qos/model/kernel.h>

/* What enters by the interface with this index.  0 or -errno. */
int netlink_shaper_add(struct netlink *nl, int ifindex, struct qos_shaper *out,
                       struct netlink_refusal *why);
int netlink_shaper_find(struct netlink *nl, int ifindex, struct qos_shaper *out);
void netlink_shaper_del(struct netlink *nl, const struct qos_shaper *s);

#endif
