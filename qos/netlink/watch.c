/* SPDX-License-Identifier: Apache-2.0 */
/* News of interfaces and of their queues. */
#include <qos-netlink/link.h>

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROOM (1 << 16)

struct qos_link_watch {
    int fd;
    qos_link_fn *fn;
    void *ctx;
    _Alignas(struct nlmsghdr) char buf[ROOM];
};

int
qos_link_watch_open(struct qos_link_watch **w, qos_link_fn *fn, void *ctx)
{
    struct sockaddr_nl addr = {.nl_family = AF_NETLINK,
                               .nl_groups = 1u << (RTNLGRP_LINK - 1) | 1u << (RTNLGRP_TC - 1)};
    int room = 4 << 20;
    struct qos_link_watch *new = malloc(sizeof *new);
    if (!new)
        return -ENOMEM;
    new->fn = fn;
    new->ctx = ctx;
    new->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (new->fd >= 0 && setsockopt(new->fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room))
        setsockopt(new->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    if (new->fd < 0 || bind(new->fd, (struct sockaddr *)&addr, sizeof addr)) {
        int err = -errno;
        qos_link_watch_close(new);
        return err;
    }
    *w = new;
    return 0;
}

void
qos_link_watch_ignore(struct qos_link_watch *w, uint32_t portid)
{
    /* Loads are of big-endian numbers, what is there is in host order. */
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct nlmsghdr, nlmsg_pid)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(portid), 0, 5),
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, offsetof(struct nlmsghdr, nlmsg_type)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htons(RTM_NEWQDISC), 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htons(RTM_DELQDISC), 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htons(RTM_NEWTCLASS), 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htons(RTM_DELTCLASS), 1, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    struct sock_fprog filter = {sizeof code / sizeof code[0], code};
    setsockopt(w->fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter);
}

void
qos_link_watch_close(struct qos_link_watch *w)
{
    if (!w)
        return;
    if (w->fd >= 0)
        close(w->fd);
    free(w);
}

int
qos_link_watch_fd(const struct qos_link_watch *w)
{
    return w->fd;
}

static void
tell(struct qos_link_watch *w, const struct nlmsghdr *h)
{
    struct qos_link_event event = {.portid = h->nlmsg_pid};
    switch (h->nlmsg_type) {
    case RTM_NEWLINK:
    case RTM_DELLINK:
        if (h->nlmsg_len < NLMSG_LENGTH(sizeof(struct ifinfomsg)))
            return;
        event.kind = h->nlmsg_type == RTM_NEWLINK ? QOS_LINK_CHANGED : QOS_LINK_GONE;
        event.ifindex = ((const struct ifinfomsg *)NLMSG_DATA(h))->ifi_index;
        break;
    case RTM_NEWQDISC:
    case RTM_DELQDISC:
    case RTM_NEWTCLASS:
    case RTM_DELTCLASS:
        if (h->nlmsg_len < NLMSG_LENGTH(sizeof(struct tcmsg)))
            return;
        event.kind = QOS_LINK_TC;
        event.ifindex = ((const struct tcmsg *)NLMSG_DATA(h))->tcm_ifindex;
        break;
    default: return;
    }
    w->fn(w->ctx, &event);
}

int
qos_link_watch_read(struct qos_link_watch *w)
{
    for (;;) {
        struct sockaddr_nl from = {0};
        socklen_t from_len = sizeof from;
        ssize_t n = recvfrom(w->fd, w->buf, sizeof w->buf, 0, (struct sockaddr *)&from, &from_len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == ENOBUFS) {
            w->fn(w->ctx, &(struct qos_link_event){.kind = QOS_LINK_OVERRUN});
            continue;
        }
        if (n < 0)
            return errno == EAGAIN ? 0 : -errno;
        if (from.nl_pid != 0)
            continue; /* not the kernel */
        size_t left = (size_t)n;
        for (const struct nlmsghdr *h = (const void *)w->buf; NLMSG_OK(h, left);
             h = NLMSG_NEXT(h, left))
            tell(w, h);
    }
}
