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
    return nla_put(msg, TCA_HTB_INIT, sizeof glob, &glob) ||
           (v->v[QOS_OFFLOAD] && nla_put_flag(msg, TCA_HTB_OFFLOAD));
}

static void
read_options(struct nlattr *options, struct qos_values *v)
{
    struct tc_htb_glob glob;
    if (!netlink_read_attr(options, TCA_HTB_INIT, &glob, sizeof glob))
        return;
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
    return nla_put(msg, TCA_HTB_PARMS, sizeof opt, &opt) ||
           netlink_fill_rate64(msg, TCA_HTB_RATE64, rate) ||
           netlink_fill_rate64(msg, TCA_HTB_CEIL64, ceil);
}

static void
read_one(struct nlattr *options, struct qos_values *v)
{
    struct tc_htb_opt opt;
    if (!netlink_read_attr(options, TCA_HTB_PARMS, &opt, sizeof opt))
        return;
    uint64_t rate = netlink_read_rate(&opt.rate, options, TCA_HTB_RATE64);
    uint64_t ceil = netlink_read_rate(&opt.ceil, options, TCA_HTB_CEIL64);
    netlink_read_link(&opt.rate, v);
    qos_put(v, QOS_RATE, rate);
    qos_put(v, QOS_CEIL, ceil);
    qos_put(v, QOS_PRIO, opt.prio);
    qos_put(v, QOS_BURST, netlink_read_ticks(opt.buffer, rate, false));
    qos_put(v, QOS_CBURST, netlink_read_ticks(opt.cbuffer, ceil, false));
    /* With offload the kernel reports a quantum that it doesn't use. */
    if (!nla_find(nla_data(options), nla_len(options), TCA_HTB_OFFLOAD))
        qos_put(v, QOS_QUANTUM, opt.quantum);
}

const struct filler netlink_fill_htb = {fill, read_options, true};
const struct filler netlink_fill_htb_class = {fill_one, read_one, true};
