/* SPDX-License-Identifier: Apache-2.0 */
/* GRED: the kernel takes the table first, then each drop precedence in a message of its own. */
#include "fill.h"

#include <qos/sched/precedence.h>

#include <linux/pkt_sched.h>

/* A packet whose precedence doesn't exist gets the lowest one that does. */
static int
fill(struct nl_msg *msg, const struct qos_values *v)
{
    struct tc_gred_sopt opt = {.flags = v->v[QOS_ECN] ? TC_RED_ECN : 0};
    for (unsigned dp = QOS_PRECEDENCES; dp--;) {
        unsigned slot = QOS_PRECEDENCE_SLOT(dp);
        if (!qos_has(v, slot))
            continue;
        opt.DPs = opt.DPs ? opt.DPs : dp + 1;
        opt.def_DP = dp;
        opt.grio = qos_precedence_get(&v->v[slot]).prio != 0;
    }
    return nla_put(msg, TCA_GRED_DPS, sizeof opt, &opt) ||
           nla_put_u32(msg, TCA_GRED_LIMIT, (uint32_t)v->v[QOS_LIMIT]);
}

static unsigned
steps(const struct qos_values *v)
{
    unsigned n = 0;
    for (unsigned dp = 0; dp < QOS_PRECEDENCES; dp++)
        n += qos_has(v, QOS_PRECEDENCE_SLOT(dp));
    return n;
}

static unsigned
nth(const struct qos_values *v, unsigned n)
{
    unsigned dp = 0;
    while (dp < QOS_PRECEDENCES - 1 && !(qos_has(v, QOS_PRECEDENCE_SLOT(dp)) && n-- == 0))
        dp++;
    return dp;
}

static int
fill_step(struct nl_msg *msg, const struct qos_values *v, unsigned step)
{
    unsigned dp = nth(v, step);
    struct qos_precedence p;
    struct qos_red red;
    if (!qos_gred_derive(v, dp, &p, &red))
        return -1; /* the scheduler's check refuses such values */
    struct tc_gred_qopt opt = {.limit = p.limit,
                               .qth_min = p.min,
                               .qth_max = p.max,
                               .DP = dp,
                               .Wlog = red.wlog,
                               .Plog = red.plog,
                               .Scell_log = red.cell_log,
                               .prio = (uint8_t)p.prio};
    return nla_put(msg, TCA_GRED_PARMS, sizeof opt, &opt) ||
           nla_put(msg, TCA_GRED_STAB, sizeof red.idle, red.idle) ||
           nla_put_u32(msg, TCA_GRED_MAX_P, red.max_p);
}

/* The kernel reports all 16; those that don't exist have a number beyond 15. */
static void
read_options(struct nlattr *options, struct qos_values *v)
{
    struct tc_gred_qopt opt[QOS_PRECEDENCES];
    struct tc_gred_sopt table;
    uint32_t max_p[QOS_PRECEDENCES], limit;
    if (!netlink_read_attr(options, TCA_GRED_PARMS, opt, sizeof opt) ||
        !netlink_read_attr(options, TCA_GRED_DPS, &table, sizeof table) ||
        !netlink_read_attr(options, TCA_GRED_MAX_P, max_p, sizeof max_p) ||
        !netlink_read_attr(options, TCA_GRED_LIMIT, &limit, sizeof limit))
        return;
    qos_put(v, QOS_LIMIT, limit);
    qos_put(v, QOS_ECN, (table.flags & TC_RED_ECN) != 0);
    for (unsigned dp = 0; dp < QOS_PRECEDENCES; dp++) {
        uint64_t slots[QOS_PRECEDENCE_SLOTS];
        if (opt[dp].DP != dp)
            continue;
        qos_precedence_put(slots, &(struct qos_precedence){.prio = table.grio ? opt[dp].prio : 0,
                                                           .min = opt[dp].qth_min,
                                                           .max = opt[dp].qth_max,
                                                           .limit = opt[dp].limit,
                                                           .ppm = netlink_read_red_ppm(max_p[dp])});
        qos_put_slots(v, QOS_PRECEDENCE_SLOT(dp), slots, QOS_PRECEDENCE_SLOTS);
    }
}

const struct filler netlink_fill_gred = {fill, read_options, true};
const struct stepper netlink_steps_gred = {steps, fill_step};
