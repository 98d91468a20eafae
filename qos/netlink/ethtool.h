/* SPDX-License-Identifier: Apache-2.0 */
/* Speed and features of an interface, by ethtool's ioctl: rtnetlink does not have them. */
#ifndef QOS_NETLINK_ETHTOOL_H
#define QOS_NETLINK_ETHTOOL_H

#include <qos-netlink/link.h>

/* Fills in speed, full_duplex, curr, advertised, supported, peer, tx_queues and cuts_tcp of the interface
 * out->name.  They stay as they were if the driver does not report them.  fd is any socket. */
void netlink_ethtool_get(int fd, struct qos_link_info *out);

#endif
