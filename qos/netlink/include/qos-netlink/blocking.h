/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks around system calls that may block for seconds, so that other threads go on meanwhile.
 *
 * The kernel works on a request before the system call returns, and waits there for whoever has
 * the lock of all interfaces: a driver that restarts its hardware holds it for seconds. */
#ifndef QOS_NETLINK_BLOCKING_H
#define QOS_NETLINK_BLOCKING_H

struct qos_netlink_blocking {
    void (*leave)(void *ctx);  /* before a call that may block */
    void (*back)(void *ctx);   /* after it */
    void (*silent)(void *ctx); /* no answer came: the kernel's state is unknown */
    void *ctx;
};

/* Sets the hooks of all handles; NULL: none.  While no other thread uses one. */
void qos_netlink_set_blocking(const struct qos_netlink_blocking *hooks);

#endif
