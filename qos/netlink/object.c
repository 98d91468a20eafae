/* SPDX-License-Identifier: Apache-2.0 */
#include "object.h"

#include <errno.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <string.h>

static void
take(struct nl_object *object, void *arg)
{
    struct nl_object **out = arg;
    nl_object_get(object);
    *out = object;
}

/* The object in a message; NULL if libnl-route cannot read it, or for lack of memory.  The caller
 * releases it with nl_object_put(). */
static struct nl_object *
parse_object(struct nl_msg *msg)
{
    struct nl_object *object = NULL;
    nl_msg_parse(msg, take, &object);
    return object;
}

/* libnl asks for an adapter's virtual functions too: the kernel calls the driver for each of them,
 * and a few hundred do not fit into the answer.  Ask for neither them nor IPv6's counters, which
 * the kernel sums over all processors. */
static struct nl_msg *
get_request(int ifindex, const char *name)
{
    const uint32_t mask = RTEXT_FILTER_SKIP_STATS;
    struct nl_msg *msg;
    if (rtnl_link_build_get_request(ifindex, name, &msg))
        return NULL;
    struct nlattr *ext = nlmsg_find_attr(nlmsg_hdr(msg), sizeof(struct ifinfomsg), IFLA_EXT_MASK);
    if (ext)
        memcpy(nla_data(ext), &mask, sizeof mask);
    return msg;
}

/* libnl-route's parsers of kinds read the kind's data unchecked where an interface has only counters
 * of its kind.  These counters have no use here. */
static void
hide_counters(struct nlmsghdr *h)
{
    struct nlattr *info, *part;
    int left, inner;
    nlmsg_for_each_attr(info, h, sizeof(struct ifinfomsg), left)
        if (nla_type(info) == IFLA_LINKINFO)
            nla_for_each_nested(part, info, inner)
                if (nla_type(part) == IFLA_INFO_XSTATS)
                    part->nla_type = IFLA_INFO_UNSPEC;
}

static void
on_link(void *ctx, struct nl_msg *msg)
{
    struct rtnl_link **link = ctx;
    if (nlmsg_hdr(msg)->nlmsg_type != RTM_NEWLINK || *link)
        return;
    hide_counters(nlmsg_hdr(msg));
    *link = (struct rtnl_link *)parse_object(msg);
}

int
netlink_link_get(struct netlink *nl, int ifindex, const char *name, struct rtnl_link **out)
{
    struct rtnl_link *link = NULL;
    int err = netlink_get(nl, get_request(ifindex, name), on_link, &link);
    if (err || !link) {
        rtnl_link_put(link);
        return err ? err : -ENOMEM; /* it is there, but could not be read */
    }
    *out = link;
    return 0;
}

int
netlink_link_set(struct netlink *nl, struct rtnl_link *link, int flags, struct netlink_refusal *why)
{
    struct nl_msg *msg;
    if (!link || rtnl_link_build_add_request(link, flags, &msg))
        msg = NULL;
    rtnl_link_put(link);
    return netlink_call(nl, msg, NULL, NULL, why);
}
