/* SPDX-License-Identifier: Apache-2.0 */
#include "ethtool.h"
#include "object.h"
#include "shaper.h"

#include <qos-netlink/link.h>

#include <errno.h>
#include <stdio.h>
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

static struct qos_link_stats
stats_of(struct rtnl_link *link)
{
    return (struct qos_link_stats){
        .rx_packets = rtnl_link_get_stat(link, RTNL_LINK_RX_PACKETS),
        .tx_packets = rtnl_link_get_stat(link, RTNL_LINK_TX_PACKETS),
        .rx_bytes = rtnl_link_get_stat(link, RTNL_LINK_RX_BYTES),
        .tx_bytes = rtnl_link_get_stat(link, RTNL_LINK_TX_BYTES),
        .rx_dropped = rtnl_link_get_stat(link, RTNL_LINK_RX_DROPPED),
        .tx_dropped = rtnl_link_get_stat(link, RTNL_LINK_TX_DROPPED),
        .rx_errors = rtnl_link_get_stat(link, RTNL_LINK_RX_ERRORS),
        .tx_errors = rtnl_link_get_stat(link, RTNL_LINK_TX_ERRORS),
        .rx_frame_err = rtnl_link_get_stat(link, RTNL_LINK_RX_FRAME_ERR),
        .rx_over_err = rtnl_link_get_stat(link, RTNL_LINK_RX_OVER_ERR),
        .rx_crc_err = rtnl_link_get_stat(link, RTNL_LINK_RX_CRC_ERR),
        .collisions = rtnl_link_get_stat(link, RTNL_LINK_COLLISIONS),
    };
}

static int
linked_to(struct rtnl_link *link)
{
    int netns;
    return rtnl_link_get_link_netnsid(link, &netns) ? rtnl_link_get_link(link) : 0;
}

static struct qos_link_info
info_of(struct rtnl_link *link)
{
    const struct nl_addr *mac = rtnl_link_get_addr(link);
    const char *name = rtnl_link_get_name(link), *kind = rtnl_link_get_type(link);
    struct qos_link_info info = {
        .ifindex = rtnl_link_get_ifindex(link),
        .master = rtnl_link_get_master(link),
        .linked = linked_to(link),
        .mtu = rtnl_link_get_mtu(link),
        .txqueuelen = rtnl_link_get_txqlen(link),
        .tx_queues = rtnl_link_get_num_tx_queues(link),
        .flags = rtnl_link_get_flags(link),
        .is_virtual = rtnl_link_get_type(link) != NULL,
        .stats = stats_of(link),
    };
    snprintf(info.name, sizeof info.name, "%s", name ? name : "");
    snprintf(info.kind, sizeof info.kind, "%s", kind ? kind : "");
    if (mac && nl_addr_get_len(mac) == sizeof info.mac)
        memcpy(info.mac, nl_addr_get_binary_addr(mac), sizeof info.mac);
    return info;
}

static int
get(struct qos_link *l, int ifindex, const char *name, struct qos_link_info *out)
{
    struct rtnl_link *link;
    int err = netlink_link_get(&l->nl, ifindex, name, &link);
    if (err)
        return err;
    *out = info_of(link);
    rtnl_link_put(link);
    netlink_ethtool_get(l->fd, out);
    return 0;
}

int
qos_link_get_by_name(struct qos_link *l, const char *name, struct qos_link_info *out)
{
    return *name && strlen(name) < IFNAMSIZ ? get(l, 0, name, out) : -ENODEV;
}

int
qos_link_get_by_index(struct qos_link *l, int ifindex, struct qos_link_info *out)
{
    return ifindex > 0 ? get(l, ifindex, NULL, out) : -ENODEV;
}

int
qos_link_get_stats(struct qos_link *l, int ifindex, struct qos_link_stats *out)
{
    struct rtnl_link *link;
    int err = ifindex > 0 ? netlink_link_get(&l->nl, ifindex, NULL, &link) : -ENODEV;
    if (err)
        return err;
    *out = stats_of(link);
    rtnl_link_put(link);
    return 0;
}

int
qos_link_cutter_add(struct qos_link *l, int ifindex, struct qos_link_cutter *out, char *why,
                    size_t why_len)
{
    struct qos_shaper s;
    struct netlink_refusal refusal = {0};
    int err = netlink_cutter_add(&l->nl, ifindex, &s, &refusal);
    if (err) {
        snprintf(why, why_len, "%s", *refusal.text ? refusal.text : strerror(-err));
        return err;
    }
    *out = (struct qos_link_cutter){s.tx_ifindex, s.rx_ifindex};
    return 0;
}

void
qos_link_cutter_del(struct qos_link *l, const struct qos_link_cutter *c)
{
    const struct qos_shaper s = {.tx_ifindex = c->tx_ifindex, .rx_ifindex = c->rx_ifindex};
    netlink_shaper_del(&l->nl, &s);
}

int
qos_link_set_flag(struct qos_link *l, int ifindex, unsigned flag, bool on)
{
    if (ifindex <= 0)
        return -ENODEV; /* LCOV_EXCL_LINE: luck: the interface goes at once */
    struct rtnl_link *link = rtnl_link_alloc();
    if (!link)
        return -ENOMEM;
    rtnl_link_set_ifindex(link, ifindex);
    (on ? rtnl_link_set_flags : rtnl_link_unset_flags)(link, flag);
    return netlink_link_set(&l->nl, link, 0, NULL);
}
