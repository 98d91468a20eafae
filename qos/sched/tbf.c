/* SPDX-License-Identifier: Apache-2.0 */
/* TBF, token bucket filter (tc-tbf(8)). */
#include "rows.h"

static const struct qos_field fields[] = {
    {QOS_FIELD("burst|buffer", BURST, SIZE, QOS_QDISC_SET), QOS_PROP(BURST),
     QOS_RANGE(1, QOS_U32_MAX), .kept = QOS_KEPT_TICKS_CUT, .kept_rate = QOS_RATE,
     .help = "bytes sent at once, a full frame at least (default: 4 ms of the rate, 10 from 10mbit "
             "on)"},
    {QOS_FIELD("rate", RATE, RATE, QOS_QDISC_SET), QOS_PROP(RATE),
     QOS_RANGE(QOS_RATE_MIN, QOS_RATE_MAX), .kept = QOS_KEPT_BYTES, .help = "rate"},
    {QOS_FIELD("peak_rate|peakrate", PEAK_RATE, RATE, QOS_QDISC_SET), QOS_PROP(PEAK_RATE),
     QOS_RANGE(QOS_RATE_MIN, QOS_RATE_MAX), .kept = QOS_KEPT_BYTES,
     .help = "rate within a burst (default: none)"},
    {QOS_FIELD("limit", LIMIT, SIZE, QOS_QDISC_SET), QOS_PROP(LIMIT), .rival = QOS_LATENCY,
     QOS_RANGE(1, QOS_U32_MAX), .help = "bytes that may wait (default: by the latency)"},
    {QOS_FIELD("latency", LATENCY, USEC, QOS_QDISC_SET), QOS_PROP(LATENCY_US), .rival = QOS_LIMIT,
     QOS_RANGE(1, QOS_U32_MAX), .help = "longest wait, in place of the limit (default 50 ms)"},
    QOS_FIELDS_LINK(QOS_QDISC_SET, 0, 0, 0),
};

static void
resolve(struct qos_values *v, const struct qos_env *env)
{
    uint64_t rate = v->v[QOS_RATE];
    uint64_t burst = qos_or(v, QOS_BURST, qos_default_burst(rate, env));
    uint64_t longest = qos_env_longest(env); /* tbf drops what its buckets can't hold */
    uint64_t latency = qos_or(v, QOS_LATENCY, 50000);
    burst = burst > longest ? burst : longest;
    uint64_t limit = (uint64_t)((double)rate / 8e6 * (double)latency) + burst;
    qos_put(v, QOS_BURST, burst);
    qos_put(v, QOS_LIMIT, qos_or(v, QOS_LIMIT, limit < QOS_U32_MAX ? limit : QOS_U32_MAX));
    qos_unset(v, QOS_LATENCY); /* the kernel gets the limit */
    qos_default(v, QOS_PEAK_RATE, 0);
    qos_put(v, QOS_CBURST, v->v[QOS_PEAK_RATE] ? longest : 0); /* its own bucket */
    qos_default(v, QOS_OVERHEAD, 0);
    qos_default(v, QOS_MPU, 0);
    qos_default(v, QOS_LINKLAYER, QOS_ETHERNET);
}

static int
check(const struct qos_values *v, const struct qos_values *given, struct qos_error *e)
{
    if (!v->v[QOS_RATE])
        return qos_fail(e, QOS_BAD_PARAM, "tbf needs a rate, such as rate=6mbit");
    if (qos_has(given, QOS_LIMIT) && qos_has(given, QOS_LATENCY))
        return qos_fail(e, QOS_BAD_PARAM, "give limit or latency, not both");
    if (v->v[QOS_PEAK_RATE] && v->v[QOS_PEAK_RATE] <= v->v[QOS_RATE])
        return qos_fail(e, QOS_BAD_PARAM, "peak_rate must be above rate");
    int err = qos_check_link(v, e);
    return err ? err : qos_check_burst("burst", v->v[QOS_BURST], v->v[QOS_RATE], e);
}

const struct qos_sched qos_sched_tbf = {
    .id = OFP_QOS_SCHED_TBF,
    .in_place = true,
    .name = "tbf",
    .help = "one rate for all",
    .module = "sch_tbf",
    .package = "kmod-sched-core",
    QOS_FIELDS(fields),
    .resolve = resolve,
    .check = check,
};
