/* SPDX-License-Identifier: Apache-2.0 */
/* GRED, one queue with a RED for each drop precedence (the kernel's sch_gred.c; tc has no page about it). */
#include "rows.h"

#include <qos/sched/precedence.h>

#define AVPKT 1000

#define PRECEDENCE(dp, h)                                                                          \
    {                                                                                              \
        .names = "dp" #dp, .slot = QOS_PRECEDENCE_SLOT(dp), .unit = QOS_U_PRECEDENCE,              \
        .where = QOS_QDISC_SET | QOS_STAYS, QOS_PROP(DROP_PRECEDENCE), .sub = (dp) + 1,            \
        .max = QOS_U32_MAX, .help = (h)                                                            \
    }

static const struct qos_field fields[] = {
    {QOS_FIELD("limit", LIMIT, SIZE, QOS_QDISC_SET), QOS_PROP(LIMIT), QOS_RANGE(1, QOS_U32_MAX),
     .help = "bytes that may wait in all (default: txqueuelen x MTU, and the largest of dp0 to "
             "dp15)"},
    QOS_FIELD_ECN(0),
    PRECEDENCE(
        0, "drop precedence 0: min/max/limit/probability, such as 10kb/30kb/60kb/2%, and /prio"),
    PRECEDENCE(1, "as dp0"),
    PRECEDENCE(2, "as dp0"),
    PRECEDENCE(3, "as dp0"),
    PRECEDENCE(4, "as dp0"),
    PRECEDENCE(5, "as dp0"),
    PRECEDENCE(6, "as dp0"),
    PRECEDENCE(7, "as dp0"),
    PRECEDENCE(8, "as dp0"),
    PRECEDENCE(9, "as dp0"),
    PRECEDENCE(10, "as dp0"),
    PRECEDENCE(11, "as dp0"),
    PRECEDENCE(12, "as dp0"),
    PRECEDENCE(13, "as dp0"),
    PRECEDENCE(14, "as dp0"),
    PRECEDENCE(15, "as dp0"),
};

static void
resolve(struct qos_values *v, const struct qos_env *env)
{
    uint64_t most = (uint64_t)qos_env_packets(env) * qos_env_mtu(env);
    for (unsigned dp = 0; dp < QOS_PRECEDENCES; dp++) {
        struct qos_precedence p = qos_precedence_get(&v->v[QOS_PRECEDENCE_SLOT(dp)]);
        most = p.limit > most ? p.limit : most;
    }
    qos_default(v, QOS_LIMIT, most < QOS_U32_MAX ? most : QOS_U32_MAX);
    qos_default(v, QOS_ECN, 0);
    qos_put(v, QOS_RED_BANDWIDTH, qos_red_bandwidth(env));
}

bool
qos_gred_derive(const struct qos_values *v, unsigned dp, struct qos_precedence *p,
                struct qos_red *red)
{
    unsigned slot = QOS_PRECEDENCE_SLOT(dp);
    if (!qos_has(v, slot))
        return false; /* LCOV_EXCL_LINE: asked for those that are there */
    *p = qos_precedence_get(&v->v[slot]);
    uint64_t burst = (2ull * p->min + p->max) / (3 * AVPKT);
    struct qos_red_of of = {QOS_RANGE(p->min, p->max), .avpkt = AVPKT, .burst = burst ? burst : 1,
                            .bandwidth = v->v[QOS_RED_BANDWIDTH], .ppm = p->ppm};
    return qos_red_derive(&of, red);
}

static int
check(const struct qos_values *v, const struct qos_values *given, struct qos_error *e)
{
    unsigned n = 0, with_prio = 0;
    for (unsigned dp = 0; dp < QOS_PRECEDENCES; dp++) {
        struct qos_precedence p = {0};
        struct qos_red red;
        if (!qos_has(v, QOS_PRECEDENCE_SLOT(dp)))
            continue;
        if (!qos_gred_derive(v, dp, &p, &red))
            return qos_fail(e, QOS_BAD_PARAM,
                            "dp%u: min %u and max %u are beyond what the kernel can count", dp,
                            p.min, p.max);
        if (p.limit > v->v[QOS_LIMIT])
            return qos_fail(e, QOS_BAD_PARAM, "dp%u: limit %u is above the limit of all, %u", dp,
                            p.limit, (unsigned)v->v[QOS_LIMIT]);
        n++;
        with_prio += p.prio != 0;
    }
    if (!n)
        return qos_fail(e, QOS_BAD_PARAM,
                        "a drop precedence is missing; give one or more, such as "
                        "dp0=10kb/30kb/60kb/2%%");
    if (with_prio && with_prio < n)
        return qos_fail(e, QOS_BAD_PARAM, "give all drop precedences a prio above 0, or none");
    return 0;
}

const struct qos_sched qos_sched_gred = {
    .id = OFP_QOS_SCHED_GRED,
    .in_place = true,
    .name = "gred",
    .help = "one queue, a RED for each drop precedence",
    .module = "sch_gred",
    .package = "kmod-sched",
    QOS_FIELDS(fields),
    .resolve = resolve,
    .check = check,
};
