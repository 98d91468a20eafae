/* SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

#include <qos-netlink/flags.h>

#include <errno.h>
#include <netlink/socket.h>
#include <stdlib.h>
#include <sys/socket.h>

#define ROOM (1 << 20) /* receive buffer, bytes: some 500 events */

struct qos_flags_monitor {
    struct netlink nl;
    qos_flags_fn *fn;
    void *ctx;
};

/* All that is read of a datagram, which is one message: the rest may be 100 KB of virtual functions. */
struct message {
    struct nlmsghdr h;
    struct ifinfomsg info;
};

int
qos_flags_monitor_open(struct qos_flags_monitor **w, qos_flags_fn *fn, void *ctx)
{
    struct qos_flags_monitor *new = calloc(1, sizeof *new);
    const int room = ROOM;
    if (!new)
        return -ENOMEM;
    new->fn = fn;
    new->ctx = ctx;
    int err = netlink_open(&new->nl);
    if (!err)
        err = netlink_error(nl_socket_add_memberships(new->nl.sk, RTNLGRP_LINK, 0));
    if (err) {
        qos_flags_monitor_close(new);
        return err;
    }
    if (setsockopt(qos_flags_monitor_fd(new), SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room))
        setsockopt(qos_flags_monitor_fd(new), SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    *w = new;
    return 0;
}

void
qos_flags_monitor_close(struct qos_flags_monitor *w)
{
    if (!w)
        return;
    netlink_close(&w->nl);
    free(w);
}

int
qos_flags_monitor_fd(const struct qos_flags_monitor *w)
{
    return nl_socket_get_fd(w->nl.sk);
}

/* A bridge reports an interface that leaves it as deleted, with its own family. */
static void
read_message(struct qos_flags_monitor *w, const struct message *m)
{
    uint16_t type = m->h.nlmsg_type;
    if ((type == RTM_NEWLINK || type == RTM_DELLINK) && m->info.ifi_family == AF_UNSPEC)
        w->fn(w->ctx, m->info.ifi_index, m->info.ifi_flags, type == RTM_DELLINK);
}

int
qos_flags_monitor_read(struct qos_flags_monitor *w)
{
    for (;;) {
        struct message m;
        struct sockaddr_nl from = {0};
        socklen_t from_len = sizeof from;
        ssize_t n = recvfrom(qos_flags_monitor_fd(w), &m, sizeof m, MSG_DONTWAIT,
                             (struct sockaddr *)&from, &from_len);
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n < 0 && errno == ENOBUFS)
            w->fn(w->ctx, 0, 0, 0);
        else if (n < 0 && errno != EINTR)
            return -errno;
        if (n == sizeof m && !from.nl_pid) /* only the kernel knows */
            read_message(w, &m);
    }
}

int
qos_flags_monitor_ask(struct qos_flags_monitor *w, int ifindex)
{
    const struct message m = {
        {.nlmsg_len = sizeof m, .nlmsg_type = RTM_GETLINK, .nlmsg_flags = NLM_F_REQUEST},
        {.ifi_family = AF_UNSPEC, .ifi_index = ifindex}};
    const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    ssize_t n;
    do
        n = sendto(qos_flags_monitor_fd(w), &m, sizeof m, 0, (const struct sockaddr *)&kernel,
                   sizeof kernel);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}
