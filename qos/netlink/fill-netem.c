/* SPDX-License-Identifier: Apache-2.0 */
#include "fill.h"

#include <linux/pkt_sched.h>
#include <string.h>

/* Microseconds in ticks, as far as 32 bits go; the 64-bit attributes have the exact time. */
static uint32_t
time_ticks(uint64_t us)
{
    uint64_t ticks = us * 1000 / QOS_TICK_NS;
    return ticks < UINT32_MAX ? (uint32_t)ticks : UINT32_MAX;
}

static int
fill(struct nl_msg *msg, const struct qos_values *v)
{
    uint64_t latency = v->v[QOS_LATENCY], jitter = v->v[QOS_JITTER], rate = v->v[QOS_RATE] / 8;
    struct tc_netem_qopt opt = {.latency = time_ticks(latency),
                                .limit = (uint32_t)v->v[QOS_LIMIT],
                                .loss = (uint32_t)(v->v[QOS_LOSS] * UINT32_MAX / 1000000),
                                .jitter = time_ticks(jitter)};
    struct tc_netem_rate to = {.rate = rate < UINT32_MAX ? (uint32_t)rate : UINT32_MAX};
    /* The attributes follow the structure inside TCA_OPTIONS. */
    struct nlattr *options = nla_reserve(msg, TCA_OPTIONS, sizeof opt);
    if (!options)
        return -1;
    memcpy(nla_data(options), &opt, sizeof opt);
    if (nla_put_u64(msg, TCA_NETEM_LATENCY64, latency * 1000) ||
        nla_put_u64(msg, TCA_NETEM_JITTER64, jitter * 1000) ||
        nla_put(msg, TCA_NETEM_RATE, sizeof to, &to) ||
        (rate >= UINT32_MAX && nla_put_u64(msg, TCA_NETEM_RATE64, rate)))
        return -1;
    nla_nest_end(msg, options);
    return 0;
}

static void
read_options(struct nlattr *options, struct qos_values *v)
{
    struct tc_netem_qopt opt;
    struct tc_netem_rate rate;
    int n = nla_len(options), head = NLA_ALIGN((int)sizeof opt);
    if (n < (int)sizeof opt)
        return;
    memcpy(&opt, nla_data(options), sizeof opt);
    qos_put(v, QOS_LIMIT, opt.limit);
    qos_put(v, QOS_LATENCY, (uint64_t)opt.latency * QOS_TICK_NS / 1000);
    qos_put(v, QOS_JITTER, (uint64_t)opt.jitter * QOS_TICK_NS / 1000);
    qos_put(v, QOS_LOSS, ((uint64_t)opt.loss * 1000000 + UINT32_MAX / 2) / UINT32_MAX);
    struct nlattr *attrs = (struct nlattr *)(void *)((char *)nla_data(options) + head), *a;
    if ((a = nla_find(attrs, n - head, TCA_NETEM_LATENCY64)) && nla_len(a) >= 8)
        qos_put(v, QOS_LATENCY, nla_get_u64(a) / 1000);
    if ((a = nla_find(attrs, n - head, TCA_NETEM_JITTER64)) && nla_len(a) >= 8)
        qos_put(v, QOS_JITTER, nla_get_u64(a) / 1000);
    if ((a = nla_find(attrs, n - head, TCA_NETEM_RATE)) && nla_len(a) >= (int)sizeof rate) {
        memcpy(&rate, nla_data(a), sizeof rate);
        qos_put(v, QOS_RATE, (uint64_t)rate.rate * 8);
    }
    if ((a = nla_find(attrs, n - head, TCA_NETEM_RATE64)) && nla_len(a) >= 8)
        qos_put(v, QOS_RATE, nla_get_u64(a) * 8);
}

const struct filler netlink_fill_netem = {fill, read_options, false};
