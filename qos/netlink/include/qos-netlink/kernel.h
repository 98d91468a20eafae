/* SPDX-License-Identifier: Apache-2.0 */
/* struct qos_kernel over rtnetlink (rtnetlink(7)). */
#ifndef QOS_NETLINK_KERNEL_H
#define QOS_NETLINK_KERNEL_H

#include <qos/kernel/kernel.h>

/* In the current network namespace.  -errno. */
int qos_netlink_new(struct qos_kernel **k);

void qos_netlink_free(struct qos_kernel *k);

/* The socket's port id: struct qos_link_event carries it if this handle caused the event. */
uint32_t qos_netlink_portid(const struct qos_kernel *k);

#endif
