/* SPDX-License-Identifier: Apache-2.0 */
#include "away.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stddef.h>
#include <sys/ioctl.h>

static struct qos_netlink_away away;

void
qos_netlink_set_away(const struct qos_netlink_away *a)
{
    away = a ? *a : (struct qos_netlink_away){0};
}

static void
leave(void)
{
    if (away.leave)
        away.leave(away.ctx);
}

static void
back(void)
{
    int saved = errno;
    if (away.back)
        away.back(away.ctx);
    errno = saved;
}

int
netlink_away_sendmsg(int fd, const struct msghdr *h)
{
    leave();
    while (sendmsg(fd, h, 0) < 0) {
        if (errno == EINTR)
            continue;
        back();
        return -errno;
    }
    back();
    return 0;
}

int
netlink_away_ethtool(int fd, void *ifr)
{
    leave();
    int r = ioctl(fd, SIOCETHTOOL, ifr);
    back();
    return r;
}

int
netlink_away_recv(struct nl_sock *sk, struct sockaddr_nl *from, unsigned char **buf,
                  struct ucred **creds)
{
    leave();
    int n = nl_recv(sk, from, buf, creds);
    back();
    return n;
}

void
netlink_away_silent(void)
{
    if (away.silent)
        away.silent(away.ctx);
}
