/* SPDX-License-Identifier: Apache-2.0 */
/* CBS and ETF, the schedulers of one queue of a time-sensitive network. */
#include "fill.h"

#include <linux/pkt_sched.h>
#include <time.h>

#define NS_PER_US 1000
#define KBIT      1000

static int
cbs_fill(struct nl_msg *msg, const struct qos_values *v)
{
    int32_t idle = (int32_t)(v->v[QOS_RATE] / KBIT);
    struct tc_cbs_qopt opt = {.offload = v->v[QOS_OFFLOAD] != 0,
                              .hicredit = (int32_t)v->v[QOS_BURST],
                              .locredit = -(int32_t)v->v[QOS_CBURST],
                              .idleslope = idle,
                              .sendslope = idle - (int32_t)(v->v[QOS_PEAK_RATE] / KBIT)};
    return nla_put(msg, TCA_CBS_PARMS, sizeof opt, &opt);
}

static void
cbs_read(struct nlattr *options, struct qos_values *v)
{
    struct tc_cbs_qopt opt;
    if (!netlink_read_attr(options, TCA_CBS_PARMS, &opt, sizeof opt))
        return;
    qos_put(v, QOS_RATE, (uint64_t)(uint32_t)opt.idleslope * KBIT);
    qos_put(v, QOS_BURST, (uint32_t)opt.hicredit);
    qos_put(v, QOS_OFFLOAD, opt.offload != 0);
}

/* The kernel takes the clock TAI alone. */
static int
etf_fill(struct nl_msg *msg, const struct qos_values *v)
{
    struct tc_etf_qopt opt = {.delta = (int32_t)v->v[QOS_LATENCY] * NS_PER_US,
                              .clockid = CLOCK_TAI,
                              .flags = v->v[QOS_OFFLOAD] ? TC_ETF_OFFLOAD_ON : 0};
    return nla_put(msg, TCA_ETF_PARMS, sizeof opt, &opt);
}

static void
etf_read(struct nlattr *options, struct qos_values *v)
{
    struct tc_etf_qopt opt;
    if (!netlink_read_attr(options, TCA_ETF_PARMS, &opt, sizeof opt))
        return;
    qos_put(v, QOS_LATENCY, (uint32_t)opt.delta / NS_PER_US);
    qos_put(v, QOS_OFFLOAD, (opt.flags & TC_ETF_OFFLOAD_ON) != 0);
}

const struct filler netlink_fill_cbs = {cbs_fill, cbs_read, true};
const struct filler netlink_fill_etf = {etf_fill, etf_read, true};
