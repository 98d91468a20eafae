/* SPDX-License-Identifier: Apache-2.0 */
#include "steer.h"

#include <qos/kernel/kernel.h>

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/tc_act/tc_skbedit.h>
#include <linux/tc_ematch/tc_em_meta.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#define CLSACT  0xffff0000u
#define INGRESS (CLSACT | TC_H_MIN_INGRESS)
#define EGRESS  (CLSACT | TC_H_MIN_EGRESS)

/* Filters are tried by preference, and the last one that matches decides: that of the first tree. */
#define PREFERENCE(band) (64u + QOS_TREES_MAX - (band))
#define KIND             "basic"
#define ACTION           "skbedit"

/* The handle tells whether clsact was made for them. */
#define HANDLE      0xf53u
#define HANDLE_MADE 0xf54u

#define FIRST_MAJOR 5u
#define FIRST_MINOR 19u

/* The handle of the switch's own program at clsact's ingress if it has made clsact
 * (datapath/offload/kernel-attach.c); at its end it leaves clsact to whoever has filters there. */
#define OFFLOAD_MADE 0xf106u

static bool
is_new_enough(void)
{
    struct utsname name;
    unsigned major, minor;
    return uname(&name) || sscanf(name.release, "%u.%u", &major, &minor) != 2 ||
           major > FIRST_MAJOR || (major == FIRST_MAJOR && minor >= FIRST_MINOR);
}

/* ------------------------------------------------------------------ the message */

/* Is the upper half of skb->priority this number? */
static int
put_match(struct nl_msg *msg, int number, uint32_t major, uint16_t relation)
{
    const struct tcf_meta_hdr meta = {
        .left = {.kind = TCF_META_TYPE_INT << 12 | TCF_META_ID_PRIORITY,
                 .shift = 16,
                 .op = TCF_EM_OPND_EQ},
        .right = {.kind = TCF_META_TYPE_INT << 12 | TCF_META_ID_VALUE}};
    const struct tcf_ematch_hdr head = {.kind = TCF_EM_META, .flags = relation};
    struct nlattr *match = nla_nest_start(msg, number);
    if (!match || nlmsg_append(msg, (void *)&head, sizeof head, 0) ||
        nla_put(msg, TCA_EM_META_HDR, sizeof meta, &meta) ||
        nla_put_u32(msg, TCA_EM_META_RVALUE, major))
        return -1;
    nla_nest_end(msg, match);
    match->nla_type = (uint16_t)number; /* the kernel takes it with no flag (NLA_F_NESTED) */
    return 0;
}

static int
put_matches(struct nl_msg *msg, uint32_t band)
{
    const struct tcf_ematch_tree_hdr head = {.nmatches = 2};
    struct nlattr *tree = nla_nest_start(msg, TCA_BASIC_EMATCHES), *list;
    if (!tree || nla_put(msg, TCA_EMATCH_TREE_HDR, sizeof head, &head) ||
        !(list = nla_nest_start(msg, TCA_EMATCH_TREE_LIST)) ||
        put_match(msg, 1, QOS_HANDLE_BAND(band) >> 16, TCF_EM_REL_OR) ||
        put_match(msg, 2, 0, TCF_EM_REL_END))
        return -1;
    nla_nest_end(msg, list);
    nla_nest_end(msg, tree);
    return 0;
}

static int
put_action(struct nl_msg *msg, uint32_t band)
{
    const struct tc_skbedit edit = {.action = TC_ACT_UNSPEC}; /* other filters are tried, too */
    struct nlattr *list = nla_nest_start(msg, TCA_BASIC_ACT), *action, *options;
    if (!list || !(action = nla_nest_start(msg, 1)) || nla_put_string(msg, TCA_ACT_KIND, ACTION) ||
        !(options = nla_nest_start(msg, TCA_ACT_OPTIONS)) ||
        nla_put(msg, TCA_SKBEDIT_PARMS, sizeof edit, &edit) ||
        nla_put_u16(msg, TCA_SKBEDIT_QUEUE_MAPPING, (uint16_t)(band - 1)))
        return -1;
    nla_nest_end(msg, options);
    nla_nest_end(msg, action);
    nla_nest_end(msg, list);
    return 0;
}

static struct tcmsg
head_of(int ifindex, uint32_t band, uint32_t handle)
{
    return (struct tcmsg){.tcm_ifindex = ifindex,
                          .tcm_handle = handle,
                          .tcm_parent = EGRESS,
                          .tcm_info = TC_H_MAKE(PREFERENCE(band) << 16, htons(ETH_P_ALL))};
}

static struct nl_msg *
filter_message(int ifindex, uint32_t band, uint32_t handle)
{
    const struct tcmsg tc = head_of(ifindex, band, handle);
    struct nl_msg *msg = netlink_kind_message(RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_EXCL, &tc, KIND);
    struct nlattr *options;
    if (msg && (!(options = nla_nest_start(msg, TCA_OPTIONS)) || put_matches(msg, band) ||
                put_action(msg, band))) {
        nlmsg_free(msg);
        return NULL;
    }
    if (msg)
        nla_nest_end(msg, options);
    return msg;
}

/* ------------------------------------------------------------------ what is there */

struct there {
    int ifindex;
    bool band[QOS_TREES_MAX + 1]; /* 0: any */
    bool made, others;
};

bool
netlink_steer_is(const struct tcmsg *tc)
{
    uint32_t pref = TC_H_MAJ(tc->tcm_info) >> 16;
    return tc->tcm_parent == EGRESS && pref >= PREFERENCE(QOS_TREES_MAX) && pref <= PREFERENCE(1) &&
           (!tc->tcm_handle || tc->tcm_handle == HANDLE || tc->tcm_handle == HANDLE_MADE);
}

static void
on_filter(void *ctx, struct nl_msg *msg)
{
    struct there *there = ctx;
    const struct tcmsg *tc = nlmsg_data(nlmsg_hdr(msg));
    if (nlmsg_hdr(msg)->nlmsg_type != RTM_NEWTFILTER ||
        !nlmsg_valid_hdr(nlmsg_hdr(msg), sizeof *tc) || tc->tcm_ifindex != there->ifindex ||
        !tc->tcm_handle) /* what the filters of a preference share */
        return;          /* LCOV_EXCL_LINE: a kernel with mq */
    if (!netlink_steer_is(tc)) {
        there->others = true;
        there->made |= tc->tcm_parent == INGRESS && tc->tcm_handle == OFFLOAD_MADE;
        return;
    }
    uint32_t pref = TC_H_MAJ(tc->tcm_info) >> 16;
    there->band[0] = there->band[QOS_TREES_MAX + 64u - pref] = true;
    there->made |= tc->tcm_handle == HANDLE_MADE;
}

static int
look(struct netlink *nl, int ifindex, uint32_t parent, struct there *there,
     struct netlink_refusal *why)
{
    const struct tcmsg tc = {.tcm_ifindex = ifindex, .tcm_parent = parent};
    there->ifindex = ifindex;
    return netlink_call(nl, netlink_tc_message(RTM_GETTFILTER, NLM_F_DUMP, &tc), on_filter, there,
                        why);
}

int
netlink_steer_get(struct netlink *nl, int ifindex, uint32_t band, bool *there,
                  struct netlink_refusal *why)
{
    struct there is = {0};
    int err = look(nl, ifindex, EGRESS, &is, why);
    *there = !err && band <= QOS_TREES_MAX && is.band[band];
    return err;
}

/* ------------------------------------------------------------------ making, removing */

int
netlink_steer_add(struct netlink *nl, int ifindex, uint32_t band, struct netlink_refusal *why)
{
    struct there there = {0};
    struct netlink_refusal mine;
    why = why ? why : &mine;
    if (!is_new_enough()) {
        *why = (struct netlink_refusal){.errnum = EOPNOTSUPP};
        return -EOPNOTSUPP;
    }
    int err = look(nl, ifindex, EGRESS, &there, why);
    err = err ? err : look(nl, ifindex, INGRESS, &there, why);
    if (err || there.band[band])
        return err;
    err = netlink_call(nl, netlink_clsact_message(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, ifindex),
                       NULL, NULL, why);
    if (err && err != -EEXIST)
        return err;
    bool made = !err;
    err = netlink_call(nl, filter_message(ifindex, band, made || there.made ? HANDLE_MADE : HANDLE),
                       NULL, NULL, why);
    if (err && made)
        netlink_call(nl, netlink_clsact_message(RTM_DELQDISC, 0, ifindex), NULL, NULL, NULL);
    return err;
}

static void
delete_filter(struct netlink *nl, int ifindex, uint32_t band)
{
    const struct tcmsg tc = head_of(ifindex, band, 0); /* and what keeps it */
    netlink_call(nl, netlink_kind_message(RTM_DELTFILTER, 0, &tc, KIND), NULL, NULL, NULL);
}

void
netlink_steer_del(struct netlink *nl, int ifindex, uint32_t band)
{
    struct there there = {0}, left = {0};
    if (look(nl, ifindex, EGRESS, &there, NULL) || !there.band[band])
        return;
    for (uint32_t b = 1; b <= QOS_TREES_MAX; b++) {
        if (there.band[b] && (!band || b == band))
            delete_filter(nl, ifindex, b);
    }
    if (there.made && !look(nl, ifindex, EGRESS, &left, NULL) &&
        !look(nl, ifindex, INGRESS, &left, NULL) && !left.band[0] && !left.others)
        netlink_call(nl, netlink_clsact_message(RTM_DELQDISC, 0, ifindex), NULL, NULL, NULL);
}
