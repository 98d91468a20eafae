/* SPDX-License-Identifier: Apache-2.0 */
#include "blocking.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stddef.h>
#include <sys/ioctl.h>

static struct qos_netlink_blocking hooks;

void
qos_netlink_set_blocking(const struct qos_netlink_blocking *a)
{
    hooks = a ? *a : (struct qos_netlink_blocking){0};
}

static void
leave(void)
{
    if (hooks.leave)
        hooks.leave(hooks.ctx);
}

static void
back(void)
{
    int saved = errno;
    if (hooks.back)
        hooks.back(hooks.ctx);
    errno = saved;
}

int
netlink_blocking_sendmsg(int fd, const struct msghdr *h)
{
    leave();
    while (sendmsg(fd, h, 0) < 0) { /* LCOV_EXCL_START: tests/faults/run makes it fail */
        if (errno == EINTR)
            continue;
        back();
        return -errno;
    } /* LCOV_EXCL_STOP */
    back();
    return 0;
}

int
netlink_blocking_ethtool(int fd, void *ifr)
{
    leave();
    int r = ioctl(fd, SIOCETHTOOL, ifr);
    back();
    return r;
}

int
netlink_blocking_recv(struct nl_sock *sk, struct sockaddr_nl *from, unsigned char **buf,
                      struct ucred **creds)
{
    leave();
    int n = nl_recv(sk, from, buf, creds);
    back();
    return n;
}

void
netlink_blocking_silent(void)
{
    if (hooks.silent)
        hooks.silent(hooks.ctx);
}
