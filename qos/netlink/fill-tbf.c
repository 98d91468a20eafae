/* SPDX-License-Identifier: Apache-2.0 */
#include "fill.h"

#include <linux/pkt_sched.h>
#include <string.h>

static int
fill(struct nl_msg *msg, const struct qos_values *v)
{
    uint64_t rate = v->v[QOS_RATE], peak = v->v[QOS_PEAK_RATE];
    uint32_t burst = (uint32_t)v->v[QOS_BURST], peak_burst = (uint32_t)v->v[QOS_CBURST];
    struct tc_tbf_qopt opt = {.limit = (uint32_t)v->v[QOS_LIMIT],
                              .buffer = netlink_fill_ticks(burst, rate),
                              .mtu = peak ? netlink_fill_ticks(peak_burst, peak) : 0};
    netlink_fill_rate(&opt.rate, rate, v);
    if (peak)
        netlink_fill_rate(&opt.peakrate, peak, v);
    return nla_put(msg, TCA_TBF_PARMS, sizeof opt, &opt) ||
           nla_put_u32(msg, TCA_TBF_BURST, burst) ||
           netlink_fill_rate64(msg, TCA_TBF_RATE64, rate) ||
           (peak && (netlink_fill_rate64(msg, TCA_TBF_PRATE64, peak) ||
                     nla_put_u32(msg, TCA_TBF_PBURST, peak_burst)));
}

static void
read_options(struct nlattr *options, struct qos_values *v)
{
    struct tc_tbf_qopt opt;
    if (!netlink_read_attr(options, TCA_TBF_PARMS, &opt, sizeof opt))
        return;
    uint64_t rate = netlink_read_rate(&opt.rate, options, TCA_TBF_RATE64);
    netlink_read_link(&opt.rate, v);
    qos_put(v, QOS_RATE, rate);
    qos_put(v, QOS_LIMIT, opt.limit);
    qos_put(v, QOS_BURST, netlink_link_room(v, netlink_read_ticks(opt.buffer, rate, true)));
    qos_put(v, QOS_PEAK_RATE,
            opt.peakrate.rate ? netlink_read_rate(&opt.peakrate, options, TCA_TBF_PRATE64) : 0);
}

const struct filler netlink_fill_tbf = {fill, read_options, true};
