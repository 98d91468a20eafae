/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's traffic control by rtnetlink (rtnetlink(7), linux/pkt_sched.h). */
#ifndef QOS_NETLINK_KERNEL_H
#define QOS_NETLINK_KERNEL_H

#include <qos/model/kernel.h>

/* Opens a NETLINK_ROUTE socket in the current network namespace.  -errno. */
int qos_netlink_new(struct qos_kernel **k);

/* Closes it. */
void qos_netlink_free(struct qos_kernel *k);

/* The socket's port id: what rtnetlink's events carry when they are echoes of our own requests
 * (link.h, qos_link_event). */
uint32_t qos_netlink_portid(const struct qos_kernel *k);

#endif
