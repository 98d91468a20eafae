/* SPDX-License-Identifier: Apache-2.0 */
/* RED, random early detection (tc-red(8)). */
#include "rows.h"

#include <qos/sched/red.h>

#include <linux/pkt_sched.h>
#include <math.h>

static const struct qos_field fields[] = {
    {.names = "threshold|min",
     .slot = QOS_THRESHOLD,
     .unit = QOS_U_SIZE,
     .where = QOS_QDISC_SET | QOS_NEEDED,
     .fixed = 4,
     .max = QOS_U32_MAX,
     .help = "average queue in bytes where marking begins"},
    {.names = "limit",
     .slot = QOS_LIMIT,
     .unit = QOS_U_SIZE,
     .where = QOS_QDISC_SET | QOS_NEEDED,
     .fixed = 4,
     QOS_PROP(LIMIT),
     .max = QOS_U32_MAX,
     .help = "hard limit of the real queue in bytes"},
    QOS_FIELD_ECN(0),
    {.names = "max",
     .slot = QOS_RED_MAX,
     .unit = QOS_U_SIZE,
     .where = QOS_QDISC_SET,
     QOS_PROP(RED_MAX),
     .min = 1,
     .max = QOS_U32_MAX,
     .help = "average queue where all is marked (default: 3 x threshold)"},
    {.names = "probability|prob",
     .slot = QOS_RED_PROBABILITY,
     .unit = QOS_U_PPM,
     .where = QOS_QDISC_SET,
     QOS_PROP(RED_PROBABILITY_PPM),
     .min = 1,
     .max = 1000000,
     .help = "probability of marking just below max: 0.02 (default) or 2%"},
    {.names = "avpkt",
     .slot = QOS_RED_AVPKT,
     .unit = QOS_U_SIZE,
     .where = QOS_QDISC_SET,
     QOS_PROP(RED_AVPKT),
     .min = 1,
     .max = 65535,
     .help = "average packet in bytes (default 1000)"},
    {.names = "burst",
     .slot = QOS_RED_BURST,
     .unit = QOS_U_PACKETS,
     .where = QOS_QDISC_SET,
     QOS_PROP(RED_BURST),
     .min = 1,
     .max = 1000000,
     .help = "packets that may come at once unmarked (default: (2 min + max) / (3 avpkt))"},
    {.names = "bandwidth",
     .slot = QOS_RED_BANDWIDTH,
     .unit = QOS_U_RATE,
     .where = QOS_QDISC_SET,
     QOS_PROP(RED_BANDWIDTH),
     .min = QOS_RATE_MIN,
     .max = QOS_RATE_MAX,
     .help = "of the link, for the average while idle (default: the class's ceil)"},
    {.names = "adaptive|adaptative",
     .slot = QOS_RED_ADAPTIVE,
     .unit = QOS_U_BOOL,
     .where = QOS_QDISC_SET,
     QOS_PROP(RED_ADAPTIVE),
     .max = 1,
     .help = "let the kernel find the probability"},
};

static void
resolve(struct qos_values *v, const struct qos_env *env)
{
    uint64_t min = v->v[QOS_THRESHOLD];
    uint64_t max = qos_or(v, QOS_RED_MAX, 3 * min < QOS_U32_MAX ? 3 * min : QOS_U32_MAX);
    uint64_t avpkt = qos_or(v, QOS_RED_AVPKT, 1000);
    uint64_t burst = (2 * min + max) / (3 * avpkt);
    uint64_t bandwidth = env->parent_ceil ? env->parent_ceil : env->speed ? env->speed : 10000000;
    qos_put(v, QOS_RED_MAX, max);
    qos_put(v, QOS_RED_AVPKT, avpkt);
    qos_put(v, QOS_RED_PROBABILITY, qos_or(v, QOS_RED_PROBABILITY, 20000));
    qos_put(v, QOS_RED_BURST, qos_or(v, QOS_RED_BURST, burst ? burst : 1));
    qos_put(v, QOS_RED_BANDWIDTH, qos_or(v, QOS_RED_BANDWIDTH, bandwidth));
    qos_put(v, QOS_ECN, v->v[QOS_ECN]);
    qos_put(v, QOS_RED_ADAPTIVE, v->v[QOS_RED_ADAPTIVE]);
}

static int
check(const struct qos_values *v, const struct qos_values *given, struct qos_error *e)
{
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
    if (!qos_red_derive(v, &red))
        return qos_fail(e, QOS_BAD_PARAM,
                        "burst %u is too large for threshold %u: no weight of the average lets it "
                        "pass unmarked",
                        (unsigned)v->v[QOS_RED_BURST], (unsigned)min);
    return 0;
}

/* The largest weight with which the average, starting at 0, stays below the threshold when
 * `burst` packets come at once (equation 3 of the paper). */
static unsigned
weight(const struct qos_values *v)
{
    double n = (double)v->v[QOS_RED_BURST];
    double threshold = (double)v->v[QOS_THRESHOLD] / (double)v->v[QOS_RED_AVPKT];
    unsigned most = 31;
    for (uint64_t min = v->v[QOS_THRESHOLD]; min; min >>= 1)
        most--; /* the kernel keeps min << wlog in 32 bits */
    for (unsigned wlog = 1; wlog <= most; wlog++) {
        double w = ldexp(1, -(int)wlog);
        if (n + 1 + expm1((n + 1) * log1p(-w)) / w < threshold)
            return wlog;
    }
    return 0;
}

bool
qos_red_derive(const struct qos_values *v, struct qos_red *out)
{
    unsigned wlog = weight(v);
    if (!wlog)
        return false;
    double p = (double)v->v[QOS_RED_PROBABILITY] / 1e6;
    double per_byte = p / (double)(v->v[QOS_RED_MAX] - v->v[QOS_THRESHOLD]);
    double packet_us = (double)v->v[QOS_RED_AVPKT] * 8e6 / (double)v->v[QOS_RED_BANDWIDTH];
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
