/* SPDX-License-Identifier: Apache-2.0 */
/* RED, random early detection (tc-red(8)). */
#include "rows.h"

#include <qos/sched/red.h>

#include <linux/pkt_sched.h>
#include <math.h>

static const struct qos_field fields[] = {
    {QOS_FIELD("threshold|min", THRESHOLD, SIZE, QOS_QDISC_SET | QOS_NEEDED), .fixed = 4,
     .max = QOS_U32_MAX, .help = "average queue in bytes where marking begins"},
    {QOS_FIELD("limit", LIMIT, SIZE, QOS_QDISC_SET | QOS_NEEDED), .fixed = 4, QOS_PROP(LIMIT),
     .max = QOS_U32_MAX, .help = "hard limit of the real queue in bytes"},
    QOS_FIELD_ECN(0),
    {QOS_FIELD("max", RED_MAX, SIZE, QOS_QDISC_SET), QOS_PROP(RED_MAX), QOS_RANGE(1, QOS_U32_MAX),
     .help = "average queue where all is marked (default: 3 x threshold)"},
    QOS_FIELDS_RED_AVERAGE("(2 min + max) / (3 avpkt)"),
    {QOS_FIELD("adaptive|adaptative", RED_ADAPTIVE, BOOL, QOS_QDISC_SET), QOS_PROP(RED_ADAPTIVE),
     .max = 1, .help = "let the kernel find the probability"},
};

uint64_t
qos_red_bandwidth(const struct qos_env *env)
{
    return env->parent_ceil ? env->parent_ceil : env->speed ? env->speed : 10000000;
}

static void
resolve(struct qos_values *v, const struct qos_env *env)
{
    uint64_t min = v->v[QOS_THRESHOLD];
    uint64_t max = qos_or(v, QOS_RED_MAX, 3 * min < QOS_U32_MAX ? 3 * min : QOS_U32_MAX);
    uint64_t avpkt = qos_or(v, QOS_RED_AVPKT, 1000);
    uint64_t burst = (2 * min + max) / (3 * avpkt);
    qos_put(v, QOS_RED_MAX, max);
    qos_put(v, QOS_RED_AVPKT, avpkt);
    qos_put(v, QOS_RED_PROBABILITY, qos_or(v, QOS_RED_PROBABILITY, QOS_RED_PPM_DEFAULT));
    qos_put(v, QOS_RED_BURST, qos_or(v, QOS_RED_BURST, burst ? burst : 1));
    qos_put(v, QOS_RED_BANDWIDTH, qos_or(v, QOS_RED_BANDWIDTH, qos_red_bandwidth(env)));
    qos_put(v, QOS_ECN, v->v[QOS_ECN]);
    qos_put(v, QOS_RED_ADAPTIVE, v->v[QOS_RED_ADAPTIVE]);
}

struct qos_red_of
qos_red_of_values(const struct qos_values *v)
{
    return (struct qos_red_of){QOS_RANGE(v->v[QOS_THRESHOLD], v->v[QOS_RED_MAX]),
                               .avpkt = v->v[QOS_RED_AVPKT], .burst = v->v[QOS_RED_BURST],
                               .bandwidth = v->v[QOS_RED_BANDWIDTH],
                               .ppm = v->v[QOS_RED_PROBABILITY]};
}

static int
check(const struct qos_values *v, const struct qos_values *given, struct qos_error *e)
{
    struct qos_red_of of = qos_red_of_values(v);
    struct qos_red red;
    uint64_t min = v->v[QOS_THRESHOLD], limit = v->v[QOS_LIMIT];
    if (!min)
        return qos_fail(e, QOS_BAD_PARAM, "threshold must be above 0");
    if (min > limit)
        return qos_fail(e, QOS_BAD_PARAM, "threshold %u is above limit %u", (unsigned)min,
                        (unsigned)limit);
    if (v->v[QOS_RED_MAX] <= min)
        return qos_fail(e, QOS_BAD_PARAM, "max %u is not above threshold %u",
                        (unsigned)v->v[QOS_RED_MAX], (unsigned)min);
    if (!qos_red_derive(&of, &red))
        return qos_fail(e, QOS_BAD_PARAM,
                        "burst %u is too large for threshold %u: no weight of the average lets it "
                        "pass unmarked",
                        (unsigned)v->v[QOS_RED_BURST], (unsigned)min);
    return 0;
}

/* The largest weight with which the average, starting at 0, stays below the threshold when
 * `burst` packets come at once (equation 3 of the paper). */
static unsigned
weight(const struct qos_red_of *of)
{
    double n = (double)of->burst;
    double threshold = (double)of->min / (of->packets ? 1 : (double)of->avpkt);
    unsigned most = 31;
    for (uint64_t max = of->max; max && most; max >>= 1)
        most--; /* the kernel keeps max << wlog in 32 bits */
    for (unsigned wlog = 1; wlog <= most; wlog++) {
        double w = ldexp(1, -(int)wlog);
        if (n + 1 + expm1((n + 1) * log1p(-w)) / w < threshold)
            return wlog;
    }
    return 0;
}

bool
qos_red_derive(const struct qos_red_of *of, struct qos_red *out)
{
    unsigned wlog = weight(of);
    if (!wlog)
        return false;
    double p = (double)of->ppm / 1e6;
    double per_byte = p / (double)(of->max - of->min);
    double packet_us = (double)of->avpkt * 8e6 / (double)of->bandwidth;
    double halvings = -log1p(-ldexp(1, -(int)wlog)) / M_LN2 / packet_us; /* in a microsecond */
    unsigned cell = 0;
    while (cell < 31 && halvings * ldexp(QOS_RED_CELLS - 1, (int)cell) < 31)
        cell++;
    double plog = ceil(-log2(per_byte));
    *out = (struct qos_red){.wlog = (uint8_t)wlog,
                            .plog = (uint8_t)(plog < 1    ? 1
                                              : plog > 31 ? 31
                                                          : plog),
                            .cell_log = (uint8_t)cell,
                            .max_p = p >= 1 ? UINT32_MAX : (uint32_t)(p * 4294967296.0)};
    for (unsigned i = 1; i < QOS_RED_CELLS; i++) {
        double shift = halvings * ldexp(i, (int)cell);
        out->idle[i] = (uint8_t)(shift < 31 ? shift : 31);
    }
    return true;
}

const struct qos_sched qos_sched_red = {
    .id = OFP_QOS_SCHED_RED,
    .in_place = true,
    .name = "red",
    .help = "marks or drops early, by the average queue",
    .module = "sch_red",
    .package = "kmod-sched-red",
    QOS_FIELDS(fields),
    .marked = 1 + offsetof(struct tc_red_xstats, marked),
    .resolve = resolve,
    .check = check,
};
