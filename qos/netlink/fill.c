/* SPDX-License-Identifier: Apache-2.0 */
/* The generic fill and the way to the others. */
#include "fill.h"

#include <errno.h>
#include <linux/pkt_sched.h>
#include <string.h>

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
    if (!filler && !netlink_has_fields(sched, object)) /* no options at all: DRR's qdisc */
        return 0;
    bool nested = !filler || filler->nested;
    struct nlattr *nest = nested ? nla_nest_start(msg, TCA_OPTIONS) : NULL;
    if ((nested && !nest) ||
        (filler ? filler->fill(msg, v) : netlink_fill_fields(msg, sched, object, v)))
        return -EMSGSIZE;
    if (nest)
        nla_nest_end(msg, nest);
    return 0;
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
    struct nlattr *nest = nla_nest_start(msg, TCA_OPTIONS);
    if (!nest || steppers[sched->id]->fill(msg, v, step))
        return -EMSGSIZE;
    nla_nest_end(msg, nest);
    return 0;
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

/* --------------------------------------------------- a scheduler's own statistics */

static void
read_tin(struct nlattr *tin, struct qos_tin *out)
{
    struct nlattr *tb[TCA_CAKE_TIN_STATS_MAX + 1];
    if (nla_parse_nested(tb, TCA_CAKE_TIN_STATS_MAX, tin, NULL))
        return;
#define U32(n)                                                                                     \
    (tb[TCA_CAKE_TIN_STATS_##n] && nla_len(tb[TCA_CAKE_TIN_STATS_##n]) >= 4                        \
         ? nla_get_u32(tb[TCA_CAKE_TIN_STATS_##n])                                                 \
         : 0)
#define U64(n)                                                                                     \
    (tb[TCA_CAKE_TIN_STATS_##n] && nla_len(tb[TCA_CAKE_TIN_STATS_##n]) >= 8                        \
         ? nla_get_u64(tb[TCA_CAKE_TIN_STATS_##n])                                                 \
         : 0)
    *out = (struct qos_tin){
        .counters = {.bytes = U64(SENT_BYTES64),
                     .packets = U32(SENT_PACKETS),
                     .drops = (uint64_t)U32(DROPPED_PACKETS) + U32(ACKS_DROPPED_PACKETS),
                     .marked = U32(ECN_MARKED_PACKETS),
                     .backlog_bytes = U32(BACKLOG_BYTES)},
        .rate = U64(THRESHOLD_RATE64) * 8,
        .delay_us = U32(AVG_DELAY_US),
        .peak_us = U32(PEAK_DELAY_US)};
#undef U32
#undef U64
}

static void
read_tins(struct nlattr *xstats, struct qos_object *o)
{
    struct nlattr *tin;
    struct nlattr *tins = nla_find(nla_data(xstats), nla_len(xstats), TCA_CAKE_STATS_TIN_STATS);
    int left;
    if (!tins)
        return;
    nla_for_each_nested(tin, tins, left) {
        if (o->n_tins == QOS_TINS_MAX)
            break;
        read_tin(tin, &o->tins[o->n_tins]);
        o->has_delay = true;
        if (o->tins[o->n_tins].delay_us > o->delay_us)
            o->delay_us = o->tins[o->n_tins].delay_us;
        o->counters.marked += o->tins[o->n_tins++].counters.marked;
    }
}

/* place: an offset plus 1; 0: nowhere. */
static bool
read_u32(struct nlattr *xstats, unsigned place, uint32_t *out)
{
    if (!place || nla_len(xstats) < (int)(place - 1 + sizeof *out))
        return false;
    memcpy(out, (const char *)nla_data(xstats) + place - 1, sizeof *out);
    return true;
}

void
netlink_read_stats(struct nlattr *xstats, struct qos_object *o)
{
    uint32_t marked;
    const struct qos_sched *sched = o->sched;
    if (o->is_class) {
        o->has_delay = read_u32(xstats, sched->flow_delay, &o->delay_us);
        return;
    }
    if (sched->tins)
        read_tins(xstats, o);
    else
        o->has_delay = read_u32(xstats, sched->delay, &o->delay_us);
    if (read_u32(xstats, sched->marked, &marked))
        o->counters.marked = marked;
}
