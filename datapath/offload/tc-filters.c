/* SPDX-License-Identifier: Apache-2.0 */
#include "tc-filters.h"

#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

/* Returns whether a filter is in the dump, -1: there is more to read. */
static int
look(const char *reply, ssize_t len)
{
    int found = -1;
    for (const struct nlmsghdr *h = (const void *)reply; NLMSG_OK(h, (size_t)len);
         h = NLMSG_NEXT(h, len)) {
        if (h->nlmsg_type == RTM_NEWTFILTER)
            return 1;
        if (h->nlmsg_type == NLMSG_DONE)
            found = 0;
        else if (h->nlmsg_type == NLMSG_ERROR)
            return 1;
    }
    return found;
}

static bool
is_there(int fd, int ifindex, uint32_t parent)
{
    struct {
        struct nlmsghdr head;
        struct tcmsg tc;
    } ask = {.head = {.nlmsg_len = sizeof ask,
                      .nlmsg_type = RTM_GETTFILTER,
                      .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
             .tc = {.tcm_ifindex = ifindex, .tcm_parent = parent}};
    if (send(fd, &ask, sizeof ask, 0) < 0)
        return true;
    bool found = false;
    for (;;) { /* to the end: the next dump has the same socket */
        _Alignas(struct nlmsghdr) char reply[32768];
        ssize_t len = recv(fd, reply, sizeof reply, 0);
        int said = len > 0 ? look(reply, len) : 0;
        found |= said > 0 || len <= 0;
        if (said >= 0)
            return found;
    }
}

bool
tc_filters_there(int ifindex)
{
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0)
        return true;
    bool found = is_there(fd, ifindex, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)) ||
                 is_there(fd, ifindex, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS));
    close(fd);
    return found;
}
