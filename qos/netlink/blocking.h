/* SPDX-License-Identifier: Apache-2.0 */
/* System calls that may block for seconds, each between the hooks `leave` and `back`
 * (qos-netlink/blocking.h). */
#ifndef QOS_NETLINK_BLOCKING_INSIDE_H
#define QOS_NETLINK_BLOCKING_INSIDE_H

#include <qos-netlink/blocking.h>

#include <netlink/netlink.h>

#include <sys/socket.h>

/* As sendmsg(2): -errno. */
int netlink_blocking_sendmsg(int fd, const struct msghdr *h);

/* As ioctl(2) with SIOCETHTOOL: 0 or -1. */
int netlink_blocking_ethtool(int fd, void *ifr);

/* As nl_recv, for nl_cb_overwrite_recv. */
int netlink_blocking_recv(struct nl_sock *sk, struct sockaddr_nl *from, unsigned char **buf,
                          struct ucred **creds);

void netlink_blocking_silent(void);

#endif
