/* SPDX-License-Identifier: Apache-2.0 */
/* RED, and CHOKE, whose attributes have the same numbers. */
#include "fill.h"

#include <qos/sched/red.h>

#include <linux/pkt_sched.h>
#include <string.h>

uint32_t
netlink_read_red_ppm(uint32_t max_p)
{
    uint64_t ppm = ((uint64_t)max_p * 1000000 + (1u << 31)) >> 32;
    return ppm ? (uint32_t)ppm : 1;
}

static int
fill(struct nl_msg *msg, const struct qos_values *v)
{
    struct qos_red_of of = qos_red_of_values(v);
    struct qos_red red;
    if (!qos_red_derive(&of, &red))
        return -1; /* the scheduler's check refuses such values */
    struct tc_red_qopt opt = {.limit = (uint32_t)v->v[QOS_LIMIT],
                              .qth_min = (uint32_t)v->v[QOS_THRESHOLD],
                              .qth_max = (uint32_t)v->v[QOS_RED_MAX],
                              .Wlog = red.wlog,
                              .Plog = red.plog,
                              .Scell_log = red.cell_log};
    if (v->v[QOS_ECN])
        opt.flags |= TC_RED_ECN;
    if (v->v[QOS_RED_ADAPTIVE])
        opt.flags |= TC_RED_ADAPTATIVE;
    return nla_put(msg, TCA_RED_PARMS, sizeof opt, &opt) ||
           nla_put(msg, TCA_RED_STAB, sizeof red.idle, red.idle) ||
           nla_put_u32(msg, TCA_RED_MAX_P, red.max_p);
}

static void
read_options(struct nlattr *options, struct qos_values *v)
{
    struct tc_red_qopt opt;
    uint32_t max_p;
    if (!netlink_read_attr(options, TCA_RED_PARMS, &opt, sizeof opt))
        return;
    qos_put(v, QOS_LIMIT, opt.limit);
    qos_put(v, QOS_THRESHOLD, opt.qth_min);
    qos_put(v, QOS_RED_MAX, opt.qth_max);
    qos_put(v, QOS_ECN, (opt.flags & TC_RED_ECN) != 0);
    qos_put(v, QOS_RED_ADAPTIVE, (opt.flags & TC_RED_ADAPTATIVE) != 0);
    /* An adaptive RED changes its probability, so it is not what was given. */
    if (!(opt.flags & TC_RED_ADAPTATIVE) &&
        netlink_read_attr(options, TCA_RED_MAX_P, &max_p, sizeof max_p))
        qos_put(v, QOS_RED_PROBABILITY, netlink_read_red_ppm(max_p));
}

static int
choke_fill(struct nl_msg *msg, const struct qos_values *v)
{
    struct qos_red red;
    if (!qos_choke_derive(v, &red))
        return -1; /* the scheduler's check refuses such values */
    struct tc_choke_qopt opt = {.limit = (uint32_t)v->v[QOS_LIMIT],
                                .qth_min = (uint32_t)v->v[QOS_THRESHOLD],
                                .qth_max = (uint32_t)v->v[QOS_RED_MAX],
                                .Wlog = red.wlog,
                                .Plog = red.plog,
                                .Scell_log = red.cell_log,
                                .flags = v->v[QOS_ECN] ? TC_RED_ECN : 0};
    return nla_put(msg, TCA_CHOKE_PARMS, sizeof opt, &opt) ||
           nla_put(msg, TCA_CHOKE_STAB, sizeof red.idle, red.idle) ||
           nla_put_u32(msg, TCA_CHOKE_MAX_P, red.max_p);
}

static void
choke_read(struct nlattr *options, struct qos_values *v)
{
    struct tc_choke_qopt opt;
    uint32_t max_p;
    if (!netlink_read_attr(options, TCA_CHOKE_PARMS, &opt, sizeof opt))
        return;
    qos_put(v, QOS_LIMIT, opt.limit);
    qos_put(v, QOS_RED_MAX, opt.qth_max);
    qos_put(v, QOS_ECN, (opt.flags & TC_RED_ECN) != 0);
    if (netlink_read_attr(options, TCA_CHOKE_MAX_P, &max_p, sizeof max_p))
        qos_put(v, QOS_RED_PROBABILITY, netlink_read_red_ppm(max_p));
}

const struct filler netlink_fill_red = {fill, read_options, true};
const struct filler netlink_fill_choke = {choke_fill, choke_read, true};
