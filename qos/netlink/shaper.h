/* SPDX-License-Identifier: Apache-2.0 */
/* Inside qos/netlink/: the interfaces of struct qos_shaper. */
#ifndef QOS_NETLINK_SHAPER_H
#define QOS_NETLINK_SHAPER_H

#include "nl.h"

#include <qos/model/kernel.h>

/* What enters by the interface with this index.  0 or -errno. */
int shaper_add(struct nl *nl, int ifindex, struct qos_shaper *out, struct nl_refusal *why);
int shaper_find(struct nl *nl, int ifindex, struct qos_shaper *out);
void shaper_del(struct nl *nl, const struct qos_shaper *s);

#endif
