/* SPDX-License-Identifier: Apache-2.0 */
/* MQPRIO and TAPRIO: bands that are transmit queues. */
#include "fill.h"

#include <linux/pkt_sched.h>
#include <string.h>
#include <time.h>

#define NS_PER_US    1000u
#define FULL_OFFLOAD 2u /* TCA_TAPRIO_ATTR_FLAG_FULL_OFFLOAD */

/* A transmit queue for each band. */
static struct tc_mqprio_qopt
fill_bands(const struct qos_values *v)
{
    struct tc_mqprio_qopt opt = {.num_tc = (uint8_t)v->v[QOS_BANDS]};
    netlink_fill_priomap(opt.prio_tc_map, v);
    for (uint16_t i = 0; i < opt.num_tc && i < TC_QOPT_MAX_QUEUE; i++) {
        opt.count[i] = 1;
        opt.offset[i] = i;
    }
    return opt;
}

static void
read_bands(const struct tc_mqprio_qopt *opt, struct qos_values *v)
{
    qos_put(v, QOS_BANDS, opt->num_tc);
    netlink_read_priomap(v, opt->prio_tc_map);
}

static int
mqprio_fill(struct nl_msg *msg, const struct qos_values *v)
{
    struct tc_mqprio_qopt opt = fill_bands(v);
    opt.hw = v->v[QOS_OFFLOAD] != 0;
    return nla_put(msg, TCA_OPTIONS, sizeof opt, &opt);
}

static void
mqprio_read(struct nlattr *options, struct qos_values *v)
{
    struct tc_mqprio_qopt opt;
    if (nla_len(options) < (int)sizeof opt)
        return;
    memcpy(&opt, nla_data(options), sizeof opt);
    read_bands(&opt, v);
    qos_put(v, QOS_OFFLOAD, opt.hw != 0);
}

/* Band i's gate, open from i / n to (i + 1) / n of the cycle. */
static int
fill_entry(struct nl_msg *msg, uint64_t cycle_ns, unsigned i, unsigned n)
{
    uint64_t ns = cycle_ns * (i + 1) / n - cycle_ns * i / n;
    struct nlattr *entry = nla_nest_start(msg, TCA_TAPRIO_SCHED_ENTRY);
    if (!entry || nla_put_u8(msg, TCA_TAPRIO_SCHED_ENTRY_CMD, 0) ||
        nla_put_u32(msg, TCA_TAPRIO_SCHED_ENTRY_GATE_MASK, 1u << i) ||
        nla_put_u32(msg, TCA_TAPRIO_SCHED_ENTRY_INTERVAL, (uint32_t)ns))
        return -1;
    nla_nest_end(msg, entry);
    return 0;
}

static int
fill_schedule(struct nl_msg *msg, const struct qos_values *v)
{
    unsigned n = (unsigned)v->v[QOS_BANDS];
    struct nlattr *list = nla_nest_start(msg, TCA_TAPRIO_ATTR_SCHED_ENTRY_LIST);
    for (unsigned i = 0; list && i < n; i++) {
        if (fill_entry(msg, v->v[QOS_INTERVAL] * NS_PER_US, i, n))
            return -1;
    }
    if (list)
        nla_nest_end(msg, list);
    return list ? 0 : -1;
}

/* Hardware has its own clock. */
static int
taprio_fill(struct nl_msg *msg, const struct qos_values *v)
{
    struct tc_mqprio_qopt opt = fill_bands(v);
    bool hw = v->v[QOS_OFFLOAD];
    return nla_put(msg, TCA_TAPRIO_ATTR_PRIOMAP, sizeof opt, &opt) || fill_schedule(msg, v) ||
           nla_put_u64(msg, TCA_TAPRIO_ATTR_SCHED_BASE_TIME, 0) ||
           (hw ? nla_put_u32(msg, TCA_TAPRIO_ATTR_FLAGS, FULL_OFFLOAD)
               : nla_put_u32(msg, TCA_TAPRIO_ATTR_SCHED_CLOCKID, CLOCK_TAI));
}

static uint64_t
read_cycle(struct nlattr *list)
{
    struct nlattr *entry, *a;
    uint64_t ns = 0;
    int left;
    nla_for_each_nested(entry, list, left) {
        a = nla_find(nla_data(entry), nla_len(entry), TCA_TAPRIO_SCHED_ENTRY_INTERVAL);
        if (a && nla_len(a) >= 4)
            ns += nla_get_u32(a);
    }
    return ns;
}

static void
taprio_read(struct nlattr *options, struct qos_values *v)
{
    struct nlattr *tb[TCA_TAPRIO_ATTR_MAX + 1];
    struct tc_mqprio_qopt opt;
    if (nla_parse_nested(tb, TCA_TAPRIO_ATTR_MAX, options, NULL))
        return;
    if (tb[TCA_TAPRIO_ATTR_PRIOMAP] && nla_len(tb[TCA_TAPRIO_ATTR_PRIOMAP]) >= (int)sizeof opt) {
        memcpy(&opt, nla_data(tb[TCA_TAPRIO_ATTR_PRIOMAP]), sizeof opt);
        read_bands(&opt, v);
    }
    struct nlattr *list = tb[TCA_TAPRIO_ATTR_SCHED_ENTRY_LIST];
    struct nlattr *soon = tb[TCA_TAPRIO_ATTR_ADMIN_SCHED]; /* until its first cycle begins */
    if (soon)
        list = nla_find(nla_data(soon), nla_len(soon), TCA_TAPRIO_ATTR_SCHED_ENTRY_LIST);
    if (list)
        qos_put(v, QOS_INTERVAL, read_cycle(list) / NS_PER_US);
    struct nlattr *flags = tb[TCA_TAPRIO_ATTR_FLAGS];
    bool hw = flags && nla_len(flags) >= 4 && nla_get_u32(flags) & FULL_OFFLOAD;
    qos_put(v, QOS_OFFLOAD, hw);
}

const struct filler netlink_fill_mqprio = {mqprio_fill, mqprio_read, false};
const struct filler netlink_fill_taprio = {taprio_fill, taprio_read, true};
