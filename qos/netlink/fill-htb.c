/* SPDX-License-Identifier: Apache-2.0 */
#include "fill.h"

#include <linux/pkt_sched.h>
#include <string.h>

#define HTB_VERSION 3 /* TC_HTB_PROTOVER */

/* The kernel can't change these options: a filter sets another default (DEFAULT_OVER). */
static int
fill(struct nl_msg *msg, const struct qos_values *v)
{
    struct tc_htb_glob glob = {
        .version = HTB_VERSION, .rate2quantum = 10, .defcls = QOS_CLASS_DEFAULT};
    struct nlattr *nest = nla_nest_start(msg, TCA_OPTIONS);
    if (!nest || nla_put(msg, TCA_HTB_INIT, sizeof glob, &glob) ||
        (v->v[QOS_OFFLOAD] && nla_put_flag(msg, TCA_HTB_OFFLOAD)))
        return -1;
    nla_nest_end(msg, nest);
    return 0;
}

static void
read_options(struct nlattr *options, struct qos_values *v)
{
    struct tc_htb_glob glob;
    struct nlattr *init = nla_find(nla_data(options), nla_len(options), TCA_HTB_INIT);
    if (!init || nla_len(init) < (int)sizeof glob)
        return;
    memcpy(&glob, nla_data(init), sizeof glob);
    qos_put(v, QOS_DEFAULT, glob.defcls);
    qos_put(v, QOS_OFFLOAD, nla_find(nla_data(options), nla_len(options), TCA_HTB_OFFLOAD) != NULL);
}

static int
fill_one(struct nl_msg *msg, const struct qos_values *v)
{
    uint64_t rate = v->v[QOS_RATE], ceil = v->v[QOS_CEIL];
    struct tc_htb_opt opt = {.buffer = netlink_fill_ticks(v->v[QOS_BURST], rate),
                             .cbuffer = netlink_fill_ticks(v->v[QOS_CBURST], ceil),
                             .quantum = (uint32_t)v->v[QOS_QUANTUM],
                             .prio = (uint32_t)v->v[QOS_PRIO]};
    netlink_fill_rate(&opt.rate, rate, v);
    netlink_fill_rate(&opt.ceil, ceil, v);
    struct nlattr *nest = nla_nest_start(msg, TCA_OPTIONS);
    if (!nest || nla_put(msg, TCA_HTB_PARMS, sizeof opt, &opt) ||
        netlink_fill_rate64(msg, TCA_HTB_RATE64, rate) ||
        netlink_fill_rate64(msg, TCA_HTB_CEIL64, ceil))
        return -1;
    nla_nest_end(msg, nest);
    return 0;
}

static void
read_one(struct nlattr *options, struct qos_values *v)
{
    struct nlattr *tb[TCA_HTB_MAX + 1];
    struct tc_htb_opt opt;
    if (nla_parse_nested(tb, TCA_HTB_MAX, options, NULL) || !tb[TCA_HTB_PARMS] ||
        nla_len(tb[TCA_HTB_PARMS]) < (int)sizeof opt)
        return;
    memcpy(&opt, nla_data(tb[TCA_HTB_PARMS]), sizeof opt);
    uint64_t rate = netlink_read_rate(&opt.rate, tb[TCA_HTB_RATE64]);
    uint64_t ceil = netlink_read_rate(&opt.ceil, tb[TCA_HTB_CEIL64]);
    netlink_read_link(&opt.rate, v);
    qos_put(v, QOS_RATE, rate);
    qos_put(v, QOS_CEIL, ceil);
    qos_put(v, QOS_PRIO, opt.prio);
    qos_put(v, QOS_BURST, netlink_read_ticks(opt.buffer, rate, false));
    qos_put(v, QOS_CBURST, netlink_read_ticks(opt.cbuffer, ceil, false));
    if (!tb[TCA_HTB_OFFLOAD]) /* with offload the kernel reports one that it doesn't use */
        qos_put(v, QOS_QUANTUM, opt.quantum);
}

const struct filler netlink_fill_htb = {fill, read_options};
const struct filler netlink_fill_htb_class = {fill_one, read_one};
