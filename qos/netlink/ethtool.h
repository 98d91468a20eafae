/* SPDX-License-Identifier: Apache-2.0 */
/* Inside qos/netlink/: a link's speed and features by ethtool's ioctl. */
#ifndef QOS_ETHTOOL_H
#define QOS_ETHTOOL_H

#include <qos-netlink/link.h>

/* Fills in speed, full_duplex, curr, advertised, supported, peer of the interface out->name; leaves
 * them 0 where the driver doesn't tell.  fd is any socket. */
void netlink_ethtool_get(int fd, struct qos_link_info *out);

#endif
