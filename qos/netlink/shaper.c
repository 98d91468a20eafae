/* SPDX-License-Identifier: Apache-2.0 */
/* Where what enters by an interface waits: a pair of virtual interfaces (veth), one of which has the
 * queues.  They are named by the interface's index: ofqi3 is sent to, ofqo3 is heard. */
#include "shaper.h"
#include "call.h"

#include <errno.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#define MTU 65535 /* whatever the interface's is, and becomes */

static void
name_them(int ifindex, struct qos_shaper *s)
{
    *s = (struct qos_shaper){0};
    snprintf(s->tx_name, sizeof s->tx_name, "ofqi%d", ifindex);
    snprintf(s->rx_name, sizeof s->rx_name, "ofqo%d", ifindex);
}

static int
put_pair(struct nl_msg *msg, const struct qos_shaper *s)
{
    struct ifinfomsg other = {.ifi_family = AF_UNSPEC};
    struct nlattr *info, *data, *peer;
    if (nla_put_u32(msg, IFLA_MTU, MTU) || !(info = nla_nest_start(msg, IFLA_LINKINFO)) ||
        nla_put_string(msg, IFLA_INFO_KIND, "veth") ||
        !(data = nla_nest_start(msg, IFLA_INFO_DATA)) ||
        !(peer = nla_nest_start(msg, VETH_INFO_PEER)) ||
        nlmsg_append(msg, &other, sizeof other, NLMSG_ALIGNTO) ||
        nla_put_string(msg, IFLA_IFNAME, s->rx_name) || nla_put_u32(msg, IFLA_MTU, MTU))
        return -EMSGSIZE;
    nla_nest_end(msg, peer);
    nla_nest_end(msg, data);
    nla_nest_end(msg, info);
    return 0;
}

/* Nobody on the host talks through it: no IPv6 address (where there is IPv6), no ARP. */
static int
set_up(struct netlink *nl, int ifindex, struct netlink_refusal *why)
{
    struct nlattr *spec, *inet6;
    struct nl_msg *msg = netlink_link_message(RTM_SETLINK, 0, ifindex, NULL, 0, 0);
    if (msg &&
        (!(spec = nla_nest_start(msg, IFLA_AF_SPEC)) || !(inet6 = nla_nest_start(msg, AF_INET6)) ||
         nla_put_u8(msg, IFLA_INET6_ADDR_GEN_MODE, IN6_ADDR_GEN_MODE_NONE))) {
        nlmsg_free(msg);
        msg = NULL;
    } else if (msg) {
        nla_nest_end(msg, inet6);
        nla_nest_end(msg, spec);
    }
    netlink_call(nl, msg, NULL, NULL, NULL);
    const unsigned flags = IFF_UP | IFF_NOARP;
    return netlink_call(nl, netlink_link_message(RTM_SETLINK, 0, ifindex, NULL, flags, flags), NULL,
                        NULL, why);
}

struct seen {
    int ifindex, peer;
    char kind[16];
};

static void
on_link(void *ctx, struct nlmsghdr *h)
{
    struct seen *seen = ctx;
    struct nlattr *tb[IFLA_MAX + 1], *info[IFLA_INFO_MAX + 1];
    if (h->nlmsg_type != RTM_NEWLINK ||
        nlmsg_parse(h, sizeof(struct ifinfomsg), tb, IFLA_MAX, NULL))
        return;
    seen->ifindex = ((const struct ifinfomsg *)nlmsg_data(h))->ifi_index;
    if (tb[IFLA_LINK])
        seen->peer = (int)nla_get_u32(tb[IFLA_LINK]);
    if (tb[IFLA_LINKINFO] && !nla_parse_nested(info, IFLA_INFO_MAX, tb[IFLA_LINKINFO], NULL) &&
        info[IFLA_INFO_KIND])
        nla_strlcpy(seen->kind, info[IFLA_INFO_KIND], sizeof seen->kind);
}

static int
look(struct netlink *nl, const char *name, struct seen *seen)
{
    *seen = (struct seen){0};
    int err =
        netlink_call(nl, netlink_link_message(RTM_GETLINK, 0, 0, name, 0, 0), on_link, seen, NULL);
    return err ? err : seen->ifindex ? 0 : -ENODEV;
}

int
netlink_shaper_find(struct netlink *nl, int ifindex, struct qos_shaper *out)
{
    struct seen tx, rx;
    struct qos_shaper s;
    name_them(ifindex, &s);
    if (look(nl, s.tx_name, &tx) || look(nl, s.rx_name, &rx) || strcmp(tx.kind, "veth") != 0 ||
        tx.peer != rx.ifindex || rx.peer != tx.ifindex)
        return -ENOENT;
    s.tx_ifindex = tx.ifindex;
    s.rx_ifindex = rx.ifindex;
    *out = s;
    return 0;
}

int
netlink_shaper_add(struct netlink *nl, int ifindex, struct qos_shaper *out,
                   struct netlink_refusal *why)
{
    struct qos_shaper s;
    name_them(ifindex, &s);
    if (!netlink_shaper_find(nl, ifindex, &s))
        netlink_shaper_del(nl, &s); /* left behind */
    struct nl_msg *msg =
        netlink_link_message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, 0, s.tx_name, 0, 0);
    if (msg && put_pair(msg, &s)) {
        nlmsg_free(msg);
        msg = NULL;
    }
    int err = netlink_call(nl, msg, NULL, NULL, why);
    if (err)
        return err;
    err = netlink_shaper_find(nl, ifindex, &s);
    *why = (struct netlink_refusal){.errnum = -err};
    err = err ? err : set_up(nl, s.tx_ifindex, why);
    err = err ? err : set_up(nl, s.rx_ifindex, why);
    if (err)
        netlink_shaper_del(nl, &s);
    else
        *out = s;
    return err;
}

void
netlink_shaper_del(struct netlink *nl, const struct qos_shaper *s)
{
    netlink_call(nl, netlink_link_message(RTM_DELLINK, 0, s->tx_ifindex, NULL, 0, 0), NULL, NULL,
                 NULL);
}
