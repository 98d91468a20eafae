/* SPDX-License-Identifier: Apache-2.0 */
/* System calls that may block for seconds, each between the hooks `leave` and `back`
 * (qos-netlink/away.h). */
#ifndef QOS_NETLINK_AWAY_INSIDE_H
#define QOS_NETLINK_AWAY_INSIDE_H

#include <qos-netlink/away.h>

#include <netlink/netlink.h>

#include <sys/socket.h>

/* As sendmsg(2): -errno. */
int netlink_away_sendmsg(int fd, const struct msghdr *h);

/* As ioctl(2) with SIOCETHTOOL: 0 or -1. */
int netlink_away_ethtool(int fd, void *ifr);

/* As nl_recv, for nl_cb_overwrite_recv. */
int netlink_away_recv(struct nl_sock *sk, struct sockaddr_nl *from, unsigned char **buf,
                      struct ucred **creds);

void netlink_away_silent(void);

#endif
