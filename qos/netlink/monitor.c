/* SPDX-License-Identifier: Apache-2.0 */
#include "object.h"
#include "steer.h"

#include <qos-netlink/link.h>

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netlink/errno.h>
#include <netlink/socket.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define ROOM (4 << 20) /* receive buffer, bytes */

/* Events handled in one call: somebody who changes interfaces without a pause must not keep the
 * control thread busy. */
#define EVENTS_MAX 1024

struct qos_link_monitor {
    struct netlink nl;
    qos_link_fn *fn;
    void *ctx;
};

/* The name tells which port a returning interface belongs to.  Attributes are read by hand: an
 * object of libnl-route costs as much as the rest of the event, and the library may refuse an
 * event for attributes that nobody here needs. */
static void
changed(struct nl_msg *msg, struct qos_link_event *event)
{
    struct nlmsghdr *h = nlmsg_hdr(msg);
    const struct ifinfomsg *info = nlmsg_data(h);
    if (!nlmsg_valid_hdr(h, sizeof *info))
        return; /* LCOV_EXCL_LINE: no kernel sends it */
    const struct nlattr *name = nlmsg_find_attr(h, sizeof *info, IFLA_IFNAME);
    event->kind = QOS_LINK_CHANGED;
    event->ifindex = info->ifi_index;
    event->flags = info->ifi_flags;
    if (name)
        nla_strlcpy(event->name, name, sizeof event->name);
}

/* An interface that leaves a Linux bridge is reported as deleted, too, but with the bridge's
 * family. */
static void
gone(struct nl_msg *msg, struct qos_link_event *event)
{
    const struct ifinfomsg *info = nlmsg_data(nlmsg_hdr(msg));
    changed(msg, event);
    if (event->ifindex && info->ifi_family != AF_BRIDGE)
        event->kind = QOS_LINK_GONE;
}

static void
tc_changed(struct nl_msg *msg, struct qos_link_event *event)
{
    const struct tcmsg *tc = nlmsg_data(nlmsg_hdr(msg));
    if (!nlmsg_valid_hdr(nlmsg_hdr(msg), sizeof *tc))
        return;
    event->kind = QOS_LINK_TC;
    event->ifindex = tc->tcm_ifindex;
}

/* A filter that led packets to a tree. */
static void
filter_gone(struct nl_msg *msg, struct qos_link_event *event)
{
    const struct tcmsg *tc = nlmsg_data(nlmsg_hdr(msg));
    if (nlmsg_valid_hdr(nlmsg_hdr(msg), sizeof *tc) && netlink_steer_is(tc))
        tc_changed(msg, event);
}

static int
on_message(struct nl_msg *msg, void *arg)
{
    struct qos_link_monitor *w = arg;
    struct qos_link_event event = {.portid = nlmsg_hdr(msg)->nlmsg_pid};
    if (nlmsg_get_src(msg)->nl_pid != 0)
        return NL_OK; /* not the kernel */
    switch (nlmsg_hdr(msg)->nlmsg_type) {
    case RTM_NEWLINK: changed(msg, &event); break;
    case RTM_DELLINK: gone(msg, &event); break;
    case RTM_NEWQDISC:
    case RTM_DELQDISC:
    case RTM_NEWTCLASS:
    case RTM_DELTCLASS: tc_changed(msg, &event); break;
    case RTM_DELTFILTER: filter_gone(msg, &event); break;
    default: break;
    }
    if (event.ifindex)
        w->fn(w->ctx, &event);
    return NL_OK;
}

static int
subscribe(struct qos_link_monitor *w)
{
    struct nl_sock *sk = w->nl.sk;
    const int fd = nl_socket_get_fd(sk), room = ROOM;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room))
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    nl_socket_disable_seq_check(sk);
    int err = nl_socket_modify_cb(sk, NL_CB_VALID, NL_CB_CUSTOM, on_message, w);
    err = err ? err : nl_socket_set_nonblocking(sk);
    err = err ? err : nl_socket_add_memberships(sk, RTNLGRP_LINK, RTNLGRP_TC, 0);
    return netlink_error(err);
}

int
qos_link_monitor_open(struct qos_link_monitor **w, qos_link_fn *fn, void *ctx)
{
    struct qos_link_monitor *new = calloc(1, sizeof *new);
    if (!new)
        return -ENOMEM;
    new->fn = fn;
    new->ctx = ctx;
    int err = netlink_open(&new->nl);
    err = err ? err : subscribe(new);
    if (err) {
        qos_link_monitor_close(new);
        return err;
    }
    *w = new;
    return 0;
}

void
qos_link_monitor_ignore(struct qos_link_monitor *w, uint32_t portid)
{
    /* BPF loads numbers as big-endian; netlink's are in host order. */
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct nlmsghdr, nlmsg_pid)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(portid), 0, 6),
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, offsetof(struct nlmsghdr, nlmsg_type)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htons(RTM_NEWQDISC), 5, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htons(RTM_DELQDISC), 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htons(RTM_NEWTCLASS), 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htons(RTM_DELTCLASS), 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htons(RTM_DELTFILTER), 1, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    struct sock_fprog filter = {sizeof code / sizeof code[0], code};
    setsockopt(qos_link_monitor_fd(w), SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter);
}

void
qos_link_monitor_close(struct qos_link_monitor *w)
{
    if (!w)
        return;
    netlink_close(&w->nl);
    free(w);
}

int
qos_link_monitor_fd(const struct qos_link_monitor *w)
{
    return nl_socket_get_fd(w->nl.sk);
}

int
qos_link_monitor_read(struct qos_link_monitor *w)
{
    int err = 0;
    for (unsigned i = 0; !err && i < EVENTS_MAX; i++)
        err = nl_recvmsgs_default(w->nl.sk);
    switch (-err) {
    case 0: /* the others are read when the socket is looked at again */
    case NLE_AGAIN: return 0;
    case NLE_NOMEM: /* ENOBUFS; what came after stays in the socket for the next call */
    case NLE_MSG_TRUNC: w->fn(w->ctx, &(struct qos_link_event){.kind = QOS_LINK_OVERRUN}); return 0;
    default: return netlink_error(err);
    }
}
