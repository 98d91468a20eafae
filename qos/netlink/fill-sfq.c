/* SPDX-License-Identifier: Apache-2.0 */
#include "fill.h"

#include <linux/pkt_sched.h>
#include <string.h>

static int
fill(struct nl_msg *msg, const struct qos_values *v)
{
    struct tc_sfq_qopt_v1 opt = {.v0 = {.quantum = (uint32_t)v->v[QOS_QUANTUM],
                                        .perturb_period = (int)v->v[QOS_PERTURB],
                                        .limit = (uint32_t)v->v[QOS_LIMIT],
                                        .divisor = (uint32_t)v->v[QOS_SFQ_DIVISOR],
                                        .flows = (uint32_t)v->v[QOS_FLOWS]},
                                 .depth = (uint32_t)v->v[QOS_SFQ_DEPTH]};
    return nla_put(msg, TCA_OPTIONS, sizeof opt, &opt);
}

static void
read_options(struct nlattr *options, struct qos_values *v)
{
    struct tc_sfq_qopt_v1 opt = {0};
    size_t n = (size_t)nla_len(options);
    if (n < sizeof opt.v0)
        return;
    memcpy(&opt, nla_data(options), n < sizeof opt ? n : sizeof opt);
    qos_put(v, QOS_QUANTUM, opt.v0.quantum);
    qos_put(v, QOS_PERTURB, (uint32_t)opt.v0.perturb_period);
    qos_put(v, QOS_LIMIT, opt.v0.limit);
    qos_put(v, QOS_SFQ_DIVISOR, opt.v0.divisor);
    qos_put(v, QOS_FLOWS, opt.v0.flows);
    if (n >= sizeof opt)
        qos_put(v, QOS_SFQ_DEPTH, opt.depth);
}

const struct filler netlink_fill_sfq = {fill, read_options, false};
