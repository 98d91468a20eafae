/* SPDX-License-Identifier: Apache-2.0 */
/* Interfaces: what they are, and their counters. */
#include "call.h"
#include "ethtool.h"

#include <qos-netlink/link.h>

#include <errno.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct qos_link {
    struct netlink nl;
    int fd; /* for ethtool's ioctl */
};

int
qos_link_open(struct qos_link **l)
{
    struct qos_link *new = calloc(1, sizeof *new);
    if (!new)
        return -ENOMEM;
    int err = netlink_open(&new->nl);
    new->fd = err ? -1 : socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (!err && new->fd < 0)
        err = -errno;
    if (err) {
        netlink_close(&new->nl);
        free(new);
        return err;
    }
    *l = new;
    return 0;
}

void
qos_link_close(struct qos_link *l)
{
    if (!l)
        return;
    netlink_close(&l->nl);
    close(l->fd);
    free(l);
}

static void
read_stats(struct nlattr *a, struct qos_link_stats *out)
{
    struct rtnl_link_stats64 s = {0};
    nla_memcpy(&s, a, sizeof s);
    *out = (struct qos_link_stats){.rx_packets = s.rx_packets,
                                   .tx_packets = s.tx_packets,
                                   .rx_bytes = s.rx_bytes,
                                   .tx_bytes = s.tx_bytes,
                                   .rx_dropped = s.rx_dropped,
                                   .tx_dropped = s.tx_dropped,
                                   .rx_errors = s.rx_errors,
                                   .tx_errors = s.tx_errors,
                                   .rx_frame_err = s.rx_frame_errors,
                                   .rx_over_err = s.rx_over_errors,
                                   .rx_crc_err = s.rx_crc_errors,
                                   .collisions = s.collisions};
}

static void
on_link(void *ctx, struct nlmsghdr *h)
{
    struct qos_link_info *out = ctx;
    struct nlattr *tb[IFLA_MAX + 1];
    if (h->nlmsg_type != RTM_NEWLINK ||
        nlmsg_parse(h, sizeof(struct ifinfomsg), tb, IFLA_MAX, NULL))
        return;
    const struct ifinfomsg *info = nlmsg_data(h);
    out->ifindex = info->ifi_index;
    out->flags = info->ifi_flags;
    if (tb[IFLA_IFNAME])
        nla_strlcpy(out->name, tb[IFLA_IFNAME], sizeof out->name);
    if (tb[IFLA_ADDRESS] && nla_len(tb[IFLA_ADDRESS]) == sizeof out->mac)
        nla_memcpy(out->mac, tb[IFLA_ADDRESS], sizeof out->mac);
    if (tb[IFLA_MTU] && nla_len(tb[IFLA_MTU]) >= 4)
        out->mtu = nla_get_u32(tb[IFLA_MTU]);
    if (tb[IFLA_TXQLEN] && nla_len(tb[IFLA_TXQLEN]) >= 4)
        out->txqueuelen = nla_get_u32(tb[IFLA_TXQLEN]);
    if (tb[IFLA_STATS64])
        read_stats(tb[IFLA_STATS64], &out->stats);
}

static int
get(struct qos_link *l, const char *name, int ifindex, struct qos_link_info *out)
{
    struct nl_msg *msg = netlink_link_message(RTM_GETLINK, 0, ifindex, name, 0, 0);
    memset(out, 0, sizeof *out);
    int err = netlink_call(&l->nl, msg, on_link, out, NULL);
    return !err && !out->ifindex ? -ENODEV : err;
}

static int
get_all(struct qos_link *l, const char *name, int ifindex, struct qos_link_info *out)
{
    struct qos_link_info info;
    int err = get(l, name, ifindex, &info);
    if (err)
        return err;
    netlink_ethtool_get(l->fd, &info);
    *out = info;
    return 0;
}

int
qos_link_get_by_name(struct qos_link *l, const char *name, struct qos_link_info *out)
{
    if (!*name || strlen(name) >= IFNAMSIZ)
        return -ENODEV;
    return get_all(l, name, 0, out);
}

int
qos_link_get_by_index(struct qos_link *l, int ifindex, struct qos_link_info *out)
{
    return ifindex > 0 ? get_all(l, NULL, ifindex, out) : -ENODEV;
}

int
qos_link_get_stats(struct qos_link *l, int ifindex, struct qos_link_stats *out)
{
    struct qos_link_info info;
    int err = ifindex > 0 ? get(l, NULL, ifindex, &info) : -ENODEV;
    if (!err)
        *out = info.stats;
    return err;
}

int
qos_link_set_up(struct qos_link *l, int ifindex, bool up)
{
    if (ifindex <= 0)
        return -ENODEV;
    return netlink_call(
        &l->nl, netlink_link_message(RTM_NEWLINK, 0, ifindex, NULL, up ? IFF_UP : 0, IFF_UP), NULL,
        NULL, NULL);
}
