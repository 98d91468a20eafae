/* SPDX-License-Identifier: Apache-2.0 */
/* What the control thread leaves to others while it is in the kernel.
 *
 * The kernel works on a request before the system call returns, and waits there for whoever has the lock of
 * all interfaces: a driver that restarts its hardware holds it for seconds. */
#ifndef QOS_NETLINK_AWAY_H
#define QOS_NETLINK_AWAY_H

struct qos_netlink_away {
    void (*leave)(void *ctx);  /* before a call that may last */
    void (*back)(void *ctx);   /* after it */
    void (*silent)(void *ctx); /* an answer has not come: what the kernel has is not known */
    void *ctx;
};

/* For all handles; NULL: nobody wants to know.  By the control thread. */
void qos_netlink_set_away(const struct qos_netlink_away *away);

#endif
