/* SPDX-License-Identifier: Apache-2.0 */
/* A u32 filter (tc-u32(8)).  Its preference is the last: it gets the packets that no other filter
 * classifies. */
#include "filter.h"
#include "call.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <string.h>

#define PREFERENCE 0xfffeu
#define KIND       "u32"

struct found {
    int ifindex;
    uint32_t qdisc;
    uint32_t handle, class;
};

static struct tcmsg
head_of(int ifindex, uint32_t qdisc, uint32_t handle)
{
    return (struct tcmsg){.tcm_ifindex = ifindex,
                          .tcm_handle = handle,
                          .tcm_parent = qdisc,
                          .tcm_info = TC_H_MAKE(PREFERENCE << 16, htons(ETH_P_ALL))};
}

/* The dump also has the hash table that the kernel made for the filter: it has no class. */
static void
on_filter(void *ctx, struct nl_msg *msg)
{
    struct found *found = ctx;
    struct nlmsghdr *h = nlmsg_hdr(msg);
    const struct tcmsg *tc = nlmsg_data(h);
    struct nlattr *attrs[TCA_MAX + 1], *options[TCA_U32_MAX + 1];
    if (h->nlmsg_type != RTM_NEWTFILTER || nlmsg_parse(h, sizeof *tc, attrs, TCA_MAX, NULL) ||
        tc->tcm_ifindex != found->ifindex || tc->tcm_parent != found->qdisc ||
        tc->tcm_info >> 16 != PREFERENCE || !attrs[TCA_KIND] || !attrs[TCA_OPTIONS] ||
        nla_strcmp(attrs[TCA_KIND], KIND) ||
        nla_parse_nested(options, TCA_U32_MAX, attrs[TCA_OPTIONS], NULL) ||
        !options[TCA_U32_CLASSID] || nla_len(options[TCA_U32_CLASSID]) < 4)
        return;
    found->handle = tc->tcm_handle;
    found->class = nla_get_u32(options[TCA_U32_CLASSID]);
}

/* With the preference in the request the kernel leaves out the others. */
static int
find(struct netlink *nl, int ifindex, uint32_t qdisc, struct found *found,
     struct netlink_refusal *why)
{
    const struct tcmsg tc = head_of(ifindex, qdisc, 0);
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
put_keys(struct nl_msg *msg, bool never)
{
    const unsigned n = never ? 2 : 0;
    struct nlattr *attr = nla_reserve(
        msg, TCA_U32_SEL, (int)(sizeof(struct tc_u32_sel) + n * sizeof(struct tc_u32_key)));
    if (!attr)
        return -NLE_NOMEM;
    struct tc_u32_sel *sel = nla_data(attr);
    *sel = (struct tc_u32_sel){.flags = TC_U32_TERMINAL, .nkeys = (uint8_t)n};
    for (unsigned i = 0; i < n; i++) /* the packet's first byte */
        sel->keys[i] = (struct tc_u32_key){.mask = htonl(0xff000000), .val = htonl(i << 24)};
    return 0;
}

/* By hand: without memory libnl-route 3.7.0 crashes (rtnl_u32_set_flags).  NULL: no memory.  A
 * filter that is there (handle) keeps its keys. */
static struct nl_msg *
filter_message(int ifindex, uint32_t qdisc, uint32_t handle, uint32_t class, bool never)
{
    const struct tcmsg tc = head_of(ifindex, qdisc, handle);
    struct nl_msg *msg =
        netlink_kind_message(RTM_NEWTFILTER, handle ? 0 : NLM_F_CREATE | NLM_F_EXCL, &tc, KIND);
    struct nlattr *options = NULL;
    if (msg && (!(options = nla_nest_start(msg, TCA_OPTIONS)) ||
                nla_put_u32(msg, TCA_U32_CLASSID, class) || (!handle && put_keys(msg, never)))) {
        nlmsg_free(msg);
        return NULL;
    }
    if (msg)
        nla_nest_end(msg, options);
    return msg;
}

int
netlink_filter_set(struct netlink *nl, int ifindex, uint32_t qdisc, uint32_t class, bool never,
                   struct netlink_refusal *why)
{
    struct found found;
    int err = find(nl, ifindex, qdisc, &found, why);
    return err ? err
               : netlink_call(nl, filter_message(ifindex, qdisc, found.handle, class, never), NULL,
                              NULL, why);
}

int
netlink_filter_del(struct netlink *nl, int ifindex, uint32_t qdisc, struct netlink_refusal *why)
{
    struct found found;
    const struct tcmsg tc = head_of(ifindex, qdisc, 0);
    int err = find(nl, ifindex, qdisc, &found, why);
    return err || !found.handle
               ? err
               : netlink_call(nl, netlink_tc_message(RTM_DELTFILTER, 0, &tc), NULL, NULL, why);
}
