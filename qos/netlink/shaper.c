/* SPDX-License-Identifier: Apache-2.0 */
/* Packets that enter by interface 3 go into ofqi3, which has the queues, and out of ofqo3; or through the IFB ofqi3. */
#include "shaper.h"
#include "object.h"
#include "redirect.h"

#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <netlink/route/link/inet6.h>
#include <netlink/route/link/veth.h>
#include <stdio.h>
#include <string.h>

#define LEAST_SUPER 512 /* the smallest that kernels allow is about 300 */

#define FIFO 1000 /* packets, as of a veth */

#define MTU 65535 /* the largest: the interface's own MTU may change */

static struct qos_shaper
named(int ifindex, const char *tx, const char *rx)
{
    struct qos_shaper s = {0};
    snprintf(s.tx_name, sizeof s.tx_name, "%s%d", tx, ifindex);
    snprintf(s.rx_name, sizeof s.rx_name, "%s%d", rx, ifindex);
    return s;
}

static struct qos_shaper
shaper_named(int ifindex)
{
    return named(ifindex, "ofqi", "ofqo");
}

/* NULL: no memory. */
static struct rtnl_link *
pair(const struct qos_shaper *s)
{
    struct rtnl_link *tx = rtnl_link_veth_alloc();
    if (!tx)
        return NULL;
    struct rtnl_link *rx = rtnl_link_veth_get_peer(tx);
    rtnl_link_set_name(tx, s->tx_name);
    rtnl_link_set_name(rx, s->rx_name);
    rtnl_link_set_mtu(tx, MTU);
    rtnl_link_set_mtu(rx, MTU);
    rtnl_link_put(rx);
    return tx;
}

static struct rtnl_link *
indexed(int ifindex)
{
    struct rtnl_link *link = rtnl_link_alloc();
    if (link && ifindex)
        rtnl_link_set_ifindex(link, ifindex);
    return link;
}

/* The host must not send on it by itself: no IPv6 address, no ARP.  Without IPv6 in the kernel
 * the first request fails, which does no harm. */
static int
set_up(struct netlink *nl, int ifindex, struct netlink_refusal *why)
{
    struct rtnl_link *mute = indexed(ifindex), *up = indexed(ifindex);
    if (mute)
        rtnl_link_inet6_set_addr_gen_mode(mute, IN6_ADDR_GEN_MODE_NONE);
    netlink_link_set(nl, mute, 0, NULL);
    if (up)
        rtnl_link_set_flags(up, IFF_UP | IFF_NOARP);
    return netlink_link_set(nl, up, 0, why);
}

/* The index of this veth and of its peer, 0 if it is no veth. */
static int
look(struct netlink *nl, const char *name, int *ifindex, int *peer)
{
    struct rtnl_link *link;
    int err = netlink_link_get(nl, 0, name, &link);
    if (err)
        return err == -ENODEV ? -ENOENT : err;
    *ifindex = rtnl_link_is_veth(link) ? rtnl_link_get_ifindex(link) : 0;
    *peer = rtnl_link_get_link(link);
    rtnl_link_put(link);
    return 0;
}

/* Finds the pair of these names. */
static int
find(struct netlink *nl, struct qos_shaper s, struct qos_shaper *out)
{
    int tx_peer, rx_peer;
    int err = look(nl, s.tx_name, &s.tx_ifindex, &tx_peer);
    err = err ? err : look(nl, s.rx_name, &s.rx_ifindex, &rx_peer);
    if (err)
        return err;
    if (!s.tx_ifindex || tx_peer != s.rx_ifindex || rx_peer != s.tx_ifindex)
        return -ENOENT;
    *out = s;
    return 0;
}

/* The IFB of this name, whether anything goes there or not.  -ENOENT: there is none. */
static int
look_ifb(struct netlink *nl, int from, struct qos_shaper *out)
{
    struct rtnl_link *link;
    *out = named(from, "ofqi", "ofqi");
    out->from = from;
    int err = netlink_link_get(nl, 0, out->tx_name, &link);
    if (err)
        return err == -ENODEV ? -ENOENT : err;
    const char *kind = rtnl_link_get_type(link);
    err = kind && !strcmp(kind, "ifb") ? 0 : -ENOENT;
    out->tx_ifindex = out->rx_ifindex = rtnl_link_get_ifindex(link);
    rtnl_link_put(link);
    return err;
}

/* The IFB, if what enters by the interface goes there. */
static int
find_ifb(struct netlink *nl, int from, struct qos_shaper *out)
{
    struct qos_shaper s;
    int to = 0, err = look_ifb(nl, from, &s);
    err = err ? err : netlink_redirect_get(nl, from, &to);
    if (err || to != s.tx_ifindex)
        return err ? err : -ENOENT;
    *out = s;
    return 0;
}

int
netlink_shaper_find(struct netlink *nl, int ifindex, bool queues_only, struct qos_shaper *out)
{
    return queues_only ? find_ifb(nl, ifindex, out) : find(nl, shaper_named(ifindex), out);
}

/* Undoes a failed attempt.  If the answer was lost, the kernel may have made the pair. */
static int
take_back(struct netlink *nl, struct qos_shaper s, bool made, int err)
{
    if (made || !find(nl, s, &s))
        netlink_shaper_del(nl, &s);
    return err;
}

/* Makes the pair of these names. */
static int
add(struct netlink *nl, struct qos_shaper names, struct qos_shaper *out,
    struct netlink_refusal *why)
{
    struct qos_shaper s;
    int err = find(nl, names, &s);
    if (!err)
        netlink_shaper_del(nl, &s); /* left behind */
    *why = (struct netlink_refusal){.errnum = -err};
    if (err && err != -ENOENT)
        return err;
    err = netlink_link_set(nl, pair(&names), NLM_F_CREATE | NLM_F_EXCL, why);
    if (err)
        return take_back(nl, names, false, err);
    err = find(nl, names, &s);
    *why = (struct netlink_refusal){.errnum = -err};
    err = err ? err : set_up(nl, s.tx_ifindex, why);
    err = err ? err : set_up(nl, s.rx_ifindex, why);
    if (err)
        return take_back(nl, names, true, err);
    *out = s;
    return 0;
}

static int
make_ifb(struct netlink *nl, const struct qos_shaper *s, struct netlink_refusal *why)
{
    struct rtnl_link *link = rtnl_link_alloc();
    if (link) {
        rtnl_link_set_name(link, s->tx_name);
        rtnl_link_set_txqlen(link,
                             FIFO); /* of its kind: 32, and so long would be FIFOs of classes */
    }
    if (link && rtnl_link_set_type(link, "ifb")) {
        rtnl_link_put(link); /* LCOV_EXCL_LINE: no memory */
        link = NULL;         /* LCOV_EXCL_LINE: no memory */
    }
    return netlink_link_set(nl, link, NLM_F_CREATE | NLM_F_EXCL, why);
}

/* Last the redirection: what it leads to takes packets by then. */
static int
add_ifb(struct netlink *nl, int from, struct qos_shaper *out, struct netlink_refusal *why)
{
    struct qos_shaper s;
    int err = look_ifb(nl, from, &s);
    if (!err)
        netlink_shaper_del(nl, &s); /* left behind */
    else
        netlink_redirect_del(nl,
                             from); /* to one that somebody has removed: packets would be lost */
    err = make_ifb(nl, &s, why);
    if (err == -EEXIST || err == -EOPNOTSUPP)
        return err;
    if (!err) {
        err = look_ifb(nl, from, &s);
        *why = (struct netlink_refusal){.errnum = -err};
    }
    err = err ? err : set_up(nl, s.tx_ifindex, why);
    err = err ? err : netlink_redirect_set(nl, from, s.tx_ifindex, why);
    if (err && !look_ifb(nl, from, &s)) /* also where only the answer was lost */
        netlink_shaper_del(nl, &s);
    if (!err)
        *out = s;
    return err;
}

int
netlink_shaper_add(struct netlink *nl, int ifindex, bool queues_only, struct qos_shaper *out,
                   struct netlink_refusal *why)
{
    return queues_only ? add_ifb(nl, ifindex, out, why) : add(nl, shaper_named(ifindex), out, why);
}

/* The kernel cuts a super-packet that has more segments, or is longer, than the interface takes. */
static int
take_no_supers(struct netlink *nl, int ifindex, struct netlink_refusal *why)
{
    const struct ifinfomsg head = {.ifi_index = ifindex};
    struct nl_msg *msg = nlmsg_alloc_simple(RTM_NEWLINK, 0);
    if (msg && (nlmsg_append(msg, (void *)(uintptr_t)&head, sizeof head, NLMSG_ALIGNTO) ||
                nla_put_u32(msg, IFLA_GSO_MAX_SEGS, 1) ||
                nla_put_u32(msg, IFLA_GSO_MAX_SIZE, LEAST_SUPER))) {
        nlmsg_free(msg);
        msg = NULL;
    }
    return netlink_call(nl, msg, NULL, NULL, why);
}

int
netlink_cutter_add(struct netlink *nl, int ifindex, struct qos_shaper *out,
                   struct netlink_refusal *why)
{
    int err = add(nl, named(ifindex, "ofcut", "ofseg"), out, why);
    if (!err && (err = take_no_supers(nl, out->tx_ifindex, why)))
        netlink_shaper_del(nl, out); /* LCOV_EXCL_LINE: no memory */
    return err;
}

static int
delete_pair(struct netlink *nl, const struct qos_shaper *s)
{
    struct nl_msg *msg = NULL;
    struct rtnl_link *link = indexed(s->tx_ifindex);
    if (link && !s->tx_ifindex) /* only its name is known */
        rtnl_link_set_name(link, s->tx_name);
    if (link && rtnl_link_build_delete_request(link, &msg))
        msg = NULL;
    rtnl_link_put(link);
    return netlink_call(nl, msg, NULL, NULL, NULL);
}

/* A refusal is not reported, and memory or an answer may be missing for a moment only. */
void
netlink_shaper_del(struct netlink *nl, const struct qos_shaper *s)
{
    if (s->from) /* first: packets for an IFB that is gone would be lost */
        netlink_redirect_del(nl, s->from);
    int err = delete_pair(nl, s);
    if (err && err != -ENODEV)
        delete_pair(nl, s);
}
