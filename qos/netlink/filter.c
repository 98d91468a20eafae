/* SPDX-License-Identifier: Apache-2.0 */
/* A u32 filter (tc-u32(8)).  Its preference is the last: it gets the packets that no other filter
 * classifies. */
#include "filter.h"
#include "object.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/rtnetlink.h>
#include <netlink/route/classifier.h>
#include <netlink/route/cls/u32.h>
#include <netlink/route/tc.h>
#include <string.h>

#define PREFERENCE 0xfffeu
#define KIND       "u32"

struct found {
    int ifindex;
    uint32_t qdisc;
    uint32_t handle, class;
};

/* NULL: no memory. */
static struct rtnl_cls *
filter_of(int ifindex, uint32_t qdisc)
{
    struct rtnl_cls *cls = rtnl_cls_alloc();
    if (!cls)
        return NULL;
    rtnl_tc_set_ifindex(TC_CAST(cls), ifindex);
    rtnl_tc_set_parent(TC_CAST(cls), qdisc);
    rtnl_cls_set_prio(cls, PREFERENCE);
    rtnl_cls_set_protocol(cls, ETH_P_ALL);
    return cls;
}

/* The dump also has the hash table that the kernel made for the filter: it has no class. */
static void
on_filter(void *ctx, struct nl_msg *msg)
{
    struct found *found = ctx;
    uint32_t class;
    if (nlmsg_hdr(msg)->nlmsg_type != RTM_NEWTFILTER)
        return;
    struct rtnl_cls *cls = (struct rtnl_cls *)netlink_parse(msg);
    if (!cls)
        return;
    struct rtnl_tc *tc = TC_CAST(cls);
    if (rtnl_tc_get_ifindex(tc) == found->ifindex && rtnl_tc_get_parent(tc) == found->qdisc &&
        rtnl_cls_get_prio(cls) == PREFERENCE && !strcmp(rtnl_tc_get_kind(tc), KIND) &&
        !rtnl_u32_get_classid(cls, &class)) {
        found->handle = rtnl_tc_get_handle(tc);
        found->class = class;
    }
    rtnl_cls_put(cls);
}

/* libnl-route can only ask for all filters of a qdisc.  With the preference in the request the
 * kernel leaves out the others. */
static int
find(struct netlink *nl, int ifindex, uint32_t qdisc, struct found *found,
     struct netlink_refusal *why)
{
    const struct tcmsg tc = {.tcm_ifindex = ifindex,
                             .tcm_parent = qdisc,
                             .tcm_info = TC_H_MAKE(PREFERENCE << 16, htons(ETH_P_ALL))};
    *found = (struct found){.ifindex = ifindex, .qdisc = qdisc};
    return netlink_call(nl, netlink_tc_message(RTM_GETTFILTER, NLM_F_DUMP, &tc), on_filter, found,
                        why);
}

int
netlink_filter_get(struct netlink *nl, int ifindex, uint32_t qdisc, uint32_t *class,
                   struct netlink_refusal *why)
{
    struct found found;
    int err = find(nl, ifindex, qdisc, &found, why);
    *class = found.class;
    return err;
}

/* Without keys it matches every packet; with two that contradict each other, none. */
static int
put_keys(struct rtnl_cls *cls, bool never)
{
    int err = rtnl_u32_set_flags(cls, TC_U32_TERMINAL);
    for (uint8_t byte = 0; !err && never && byte < 2; byte++)
        err = rtnl_u32_add_key_uint8(cls, byte, 0xff, 0, 0);
    return err;
}

int
netlink_filter_set(struct netlink *nl, int ifindex, uint32_t qdisc, uint32_t class, bool never,
                   struct netlink_refusal *why)
{
    struct found found;
    struct nl_msg *msg = NULL;
    int err = find(nl, ifindex, qdisc, &found, why);
    if (err)
        return err;
    struct rtnl_cls *cls = filter_of(ifindex, qdisc);
    const int flags = found.handle ? 0 : NLM_F_CREATE | NLM_F_EXCL;
    if (cls)
        rtnl_tc_set_handle(TC_CAST(cls), found.handle);
    if (!cls || rtnl_tc_set_kind(TC_CAST(cls), KIND) || rtnl_u32_set_classid(cls, class) ||
        (!found.handle && put_keys(cls, never)) || rtnl_cls_build_add_request(cls, flags, &msg))
        msg = NULL;
    rtnl_cls_put(cls);
    return netlink_call(nl, msg, NULL, NULL, why);
}

int
netlink_filter_del(struct netlink *nl, int ifindex, uint32_t qdisc, struct netlink_refusal *why)
{
    struct found found;
    struct nl_msg *msg = NULL;
    int err = find(nl, ifindex, qdisc, &found, why);
    if (err || !found.handle)
        return err;
    struct rtnl_cls *cls = filter_of(ifindex, qdisc);
    if (!cls || rtnl_cls_build_delete_request(cls, 0, &msg))
        msg = NULL;
    rtnl_cls_put(cls);
    return netlink_call(nl, msg, NULL, NULL, why);
}
