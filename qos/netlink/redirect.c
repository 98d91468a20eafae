/* SPDX-License-Identifier: Apache-2.0 */
#include "redirect.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/tc_act/tc_mirred.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <stdbool.h>
#include <string.h>

#define PREFERENCE 0xfffeu /* the last one */
#define INGRESS    TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)
#define EGRESS     TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS)

static struct tcmsg
head_of(int ifindex, uint32_t parent)
{
    return (struct tcmsg){.tcm_ifindex = ifindex, .tcm_parent = parent};
}

static struct tcmsg
filter_head(int ifindex)
{
    struct tcmsg tc = head_of(ifindex, INGRESS);
    tc.tcm_info = TC_H_MAKE(PREFERENCE << 16, htons(ETH_P_ALL));
    return tc;
}

static int
put_action(struct nl_msg *msg, int to)
{
    const struct tc_mirred mirred = {
        .action = TC_ACT_STOLEN, .eaction = TCA_EGRESS_REDIR, .ifindex = (uint32_t)to};
    struct nlattr *all = nla_nest_start(msg, TCA_U32_ACT), *first, *options;
    if (!all || !(first = nla_nest_start(msg, 1)) || nla_put_string(msg, TCA_ACT_KIND, "mirred") ||
        !(options = nla_nest_start(msg, TCA_ACT_OPTIONS)) ||
        nla_put(msg, TCA_MIRRED_PARMS, sizeof mirred, &mirred))
        return -NLE_NOMEM;
    nla_nest_end(msg, options);
    nla_nest_end(msg, first);
    nla_nest_end(msg, all);
    return 0;
}

/* It matches every packet.  NULL: no memory. */
static struct nl_msg *
filter_message(int from, int to)
{
    const struct tc_u32_sel all = {.flags = TC_U32_TERMINAL};
    const struct tcmsg tc = filter_head(from);
    struct nl_msg *msg =
        netlink_kind_message(RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_EXCL, &tc, "u32");
    struct nlattr *options = NULL;
    if (msg && (!(options = nla_nest_start(msg, TCA_OPTIONS)) ||
                nla_put(msg, TCA_U32_SEL, sizeof all, &all) || put_action(msg, to))) {
        nlmsg_free(msg);
        return NULL;
    }
    if (msg)
        nla_nest_end(msg, options);
    return msg;
}

int
netlink_redirect_set(struct netlink *nl, int from, int to, struct netlink_refusal *why)
{
    int err = netlink_call(
        nl, netlink_clsact_message(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, from), NULL, NULL, why);
    if (err && err != -EEXIST) /* another program's is as good */
        return err;
    return netlink_call(nl, filter_message(from, to), NULL, NULL, why);
}

/* *to: the interface that the filter's first action redirects to; 0: it is gone.  False: it is no such action. */
static bool
redirects_to(struct nlattr *options, int *to)
{
    struct nlattr *u32[TCA_U32_MAX + 1], *actions[2], *action[TCA_ACT_MAX + 1],
        *mirred[TCA_MIRRED_MAX + 1];
    if (nla_parse_nested(u32, TCA_U32_MAX, options, NULL) || !u32[TCA_U32_ACT] ||
        nla_parse_nested(actions, 1, u32[TCA_U32_ACT], NULL) || !actions[1] ||
        nla_parse_nested(action, TCA_ACT_MAX, actions[1], NULL) || !action[TCA_ACT_KIND] ||
        nla_strcmp(action[TCA_ACT_KIND], "mirred") || !action[TCA_ACT_OPTIONS] ||
        nla_parse_nested(mirred, TCA_MIRRED_MAX, action[TCA_ACT_OPTIONS], NULL) ||
        !mirred[TCA_MIRRED_PARMS] ||
        nla_len(mirred[TCA_MIRRED_PARMS]) < (int)sizeof(struct tc_mirred))
        return false;
    struct tc_mirred parms;
    memcpy(&parms, nla_data(mirred[TCA_MIRRED_PARMS]), sizeof parms);
    *to = (int)parms.ifindex;
    return true;
}

struct found {
    int ifindex, to;
    bool ours, others;
};

static void
on_filter(void *ctx, struct nl_msg *msg)
{
    struct found *found = ctx;
    struct nlmsghdr *h = nlmsg_hdr(msg);
    const struct tcmsg *tc = nlmsg_data(h);
    struct nlattr *attrs[TCA_MAX + 1];
    if (h->nlmsg_type != RTM_NEWTFILTER || nlmsg_parse(h, sizeof *tc, attrs, TCA_MAX, NULL) ||
        tc->tcm_ifindex != found->ifindex)
        return;
    if (tc->tcm_info >> 16 != PREFERENCE || !attrs[TCA_KIND] || nla_strcmp(attrs[TCA_KIND], "u32"))
        found->others = true;
    else if (attrs[TCA_OPTIONS] && !found->ours)
        found->ours = redirects_to(attrs[TCA_OPTIONS], &found->to);
}

static int
look(struct netlink *nl, uint32_t parent, struct found *found)
{
    const struct tcmsg tc = head_of(found->ifindex, parent);
    return netlink_call(nl, netlink_tc_message(RTM_GETTFILTER, NLM_F_DUMP, &tc), on_filter, found,
                        NULL);
}

int
netlink_redirect_get(struct netlink *nl, int from, int *to)
{
    struct found found = {.ifindex = from};
    int err = look(nl, INGRESS, &found);
    *to = found.to;
    return err == -EINVAL ? 0 : err; /* there is no such qdisc */
}

int
netlink_redirect_del(struct netlink *nl, int from)
{
    struct found found = {.ifindex = from};
    const struct tcmsg filter = filter_head(from);
    int err = look(nl, INGRESS, &found);
    if (err || !found.ours)
        return err == -EINVAL ? 0 : err;
    err = netlink_call(nl, netlink_tc_message(RTM_DELTFILTER, 0, &filter), NULL, NULL, NULL);
    if (err || found.others || look(nl, EGRESS, &found) || found.others)
        return err;
    return netlink_call(nl, netlink_clsact_message(RTM_DELQDISC, 0, from), NULL, NULL, NULL);
}
