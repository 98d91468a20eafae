/* SPDX-License-Identifier: Apache-2.0 */
/* A filter with a preference after all others', for what is otherwise unclassified (tc-u32(8)). */
#include "filter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <string.h>

#define PREFERENCE 0xfffeu
#define KIND       "u32"

struct found {
    int ifindex;
    uint32_t qdisc;
    uint32_t handle, class;
};

static struct nl_msg *
message(int type, int flags, int ifindex, uint32_t handle, uint32_t qdisc)
{
    struct tcmsg tc = {.tcm_family = AF_UNSPEC,
                       .tcm_ifindex = ifindex,
                       .tcm_handle = handle,
                       .tcm_parent = qdisc,
                       .tcm_info = TC_H_MAKE(PREFERENCE << 16, htons(ETH_P_ALL))};
    struct nl_msg *msg = nlmsg_alloc_simple(type, flags);
    if (msg && nlmsg_append(msg, &tc, sizeof tc, NLMSG_ALIGNTO)) {
        nlmsg_free(msg);
        return NULL;
    }
    return msg;
}

/* The dump has the filter's hash table as well: that has no class. */
static void
on_filter(void *ctx, struct nlmsghdr *h)
{
    struct found *found = ctx;
    struct nlattr *tb[TCA_MAX + 1], *class;
    if (h->nlmsg_type != RTM_NEWTFILTER || nlmsg_parse(h, sizeof(struct tcmsg), tb, TCA_MAX, NULL))
        return;
    const struct tcmsg *tc = nlmsg_data(h);
    if (tc->tcm_ifindex != found->ifindex || tc->tcm_parent != found->qdisc ||
        tc->tcm_info >> 16 != PREFERENCE || !tb[TCA_KIND] || !tb[TCA_OPTIONS] ||
        nla_strcmp(tb[TCA_KIND], KIND))
        return;
    class = nla_find(nla_data(tb[TCA_OPTIONS]), nla_len(tb[TCA_OPTIONS]), TCA_U32_CLASSID);
    if (!class || nla_len(class) < 4)
        return;
    found->handle = tc->tcm_handle;
    found->class = nla_get_u32(class);
}

static int
find(struct netlink *nl, int ifindex, uint32_t qdisc, struct found *found,
     struct netlink_refusal *why)
{
    *found = (struct found){.ifindex = ifindex, .qdisc = qdisc};
    return netlink_call(nl, message(RTM_GETTFILTER, NLM_F_DUMP, ifindex, 0, qdisc), on_filter,
                        found, why);
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

int
netlink_filter_set(struct netlink *nl, int ifindex, uint32_t qdisc, uint32_t class, bool never,
                   struct netlink_refusal *why)
{
    /* No key matches everything; what never matches has the same byte both 0 and 1. */
    const struct tc_u32_sel head = {.flags = TC_U32_TERMINAL, .nkeys = never ? 2 : 0};
    const struct tc_u32_key keys[2] = {{.mask = htonl(0xff000000)},
                                       {.mask = htonl(0xff000000), .val = htonl(0x01000000)}};
    uint8_t sel[sizeof head + sizeof keys];
    size_t size = never ? sizeof sel : sizeof head;
    struct found found;
    memcpy(sel, &head, sizeof head);
    memcpy(sel + sizeof head, keys, sizeof keys);
    int err = find(nl, ifindex, qdisc, &found, why);
    if (err)
        return err;
    struct nl_msg *msg = message(RTM_NEWTFILTER, found.handle ? 0 : NLM_F_CREATE | NLM_F_EXCL,
                                 ifindex, found.handle, qdisc);
    struct nlattr *nest = NULL;
    bool ok = msg && nla_put_string(msg, TCA_KIND, KIND) == 0 &&
              (nest = nla_nest_start(msg, TCA_OPTIONS)) &&
              nla_put_u32(msg, TCA_U32_CLASSID, class) == 0 &&
              (found.handle || nla_put(msg, TCA_U32_SEL, (int)size, sel) == 0);
    if (!ok) {
        if (msg)
            nlmsg_free(msg);
        *why = (struct netlink_refusal){.errnum = ENOMEM};
        return -ENOMEM;
    }
    nla_nest_end(msg, nest);
    return netlink_call(nl, msg, NULL, NULL, why);
}

int
netlink_filter_del(struct netlink *nl, int ifindex, uint32_t qdisc, struct netlink_refusal *why)
{
    struct found found;
    int err = find(nl, ifindex, qdisc, &found, why);
    if (err || !found.handle)
        return err;
    return netlink_call(nl, message(RTM_DELTFILTER, 0, ifindex, 0, qdisc), NULL, NULL, why);
}
