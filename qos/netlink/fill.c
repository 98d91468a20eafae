/* SPDX-License-Identifier: Apache-2.0 */
/* The generic fill and the way to the others. */
#include "fill.h"

#include <errno.h>
#include <linux/pkt_sched.h>
#include <string.h>

/* Without such fields (DRR's qdisc) there are no options at all. */
static int
fill_options(struct nl_msg *msg, const struct qos_sched *sched, unsigned object,
             const struct qos_values *v)
{
    if (!netlink_has_fields(sched, object))
        return 0;
    struct nlattr *nest = nla_nest_start(msg, TCA_OPTIONS);
    int err = nest ? netlink_fill_fields(msg, sched, object, v) : -1;
    if (!err)
        nla_nest_end(msg, nest);
    return err;
}

/* -------------------------------------------------------------- the others */

static const struct filler *const fillers[OFP_QOS_SCHED_END][2] = {
#define ROW(sched, object, name) [OFP_QOS_SCHED_##sched][OFP_QOS_##object] = &netlink_fill_##name,
    NETLINK_FILL_ROWS(ROW)
#undef ROW
};

int
netlink_fill(struct nl_msg *msg, const struct qos_sched *sched, unsigned object,
             const struct qos_values *v)
{
    const struct filler *filler = fillers[sched->id][object];
    int err = filler ? filler->fill(msg, v) : fill_options(msg, sched, object, v);
    return err ? -EMSGSIZE : 0;
}

static const struct stepper *const steppers[OFP_QOS_SCHED_END] = {
    [OFP_QOS_SCHED_GRED] = &netlink_steps_gred,
};

unsigned
netlink_steps(const struct qos_sched *sched, const struct qos_values *v)
{
    const struct stepper *stepper = steppers[sched->id];
    return stepper ? stepper->count(v) : 0;
}

int
netlink_fill_step(struct nl_msg *msg, const struct qos_sched *sched, const struct qos_values *v,
                  unsigned step)
{
    return steppers[sched->id]->fill(msg, v, step) ? -EMSGSIZE : 0;
}

void
netlink_read(struct nlattr *options, const struct qos_sched *sched, unsigned object,
             struct qos_values *v)
{
    const struct filler *filler = fillers[sched->id][object];
    if (filler)
        filler->read(options, v);
    else
        netlink_read_fields(options, sched, object, v);
}

enum default_place
netlink_default_place(const struct qos_sched *sched)
{
    if (sched->id == OFP_QOS_SCHED_HTB)
        return DEFAULT_OVER;
    if (sched->id == OFP_QOS_SCHED_DRR)
        return DEFAULT_FILTER;
    return sched->bands ? DEFAULT_MARK : DEFAULT_OPTION;
}

/* --------------------------------------------------------- packets marked */

/* Of all its tins; they are numbered from 1. */
static uint64_t
cake_marked(struct nlattr *xstats)
{
    struct nlattr *tin, *n;
    struct nlattr *tins = nla_find(nla_data(xstats), nla_len(xstats), TCA_CAKE_STATS_TIN_STATS);
    uint64_t marked = 0;
    int left;
    if (!tins)
        return 0;
    nla_for_each_nested(tin, tins, left)
    {
        n = nla_find(nla_data(tin), nla_len(tin), TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS);
        if (n && nla_len(n) >= 4)
            marked += nla_get_u32(n);
    }
    return marked;
}

uint64_t
netlink_read_marked(struct nlattr *xstats, const struct qos_sched *sched)
{
    uint32_t marked;
    if (sched->id == OFP_QOS_SCHED_CAKE)
        return cake_marked(xstats);
    if (!sched->marked || nla_len(xstats) < (int)(sched->marked - 1 + sizeof marked))
        return 0;
    memcpy(&marked, (const char *)nla_data(xstats) + sched->marked - 1, sizeof marked);
    return marked;
}
