/* SPDX-License-Identifier: Apache-2.0 */
/* CBS, the credit-based shaper of IEEE 802.1Q (tc-cbs(8)). */
#include "rows.h"

#define KBIT      1000ull
#define SPEED     (10000 * KBIT)      /* the kernel's assumption if the link reports no speed */
#define SPEED_MAX (2000000000 * KBIT) /* the kernel keeps kbit/s in 31 bits */

static const struct qos_field fields[] = {
    {QOS_FIELD("rate|idleslope", RATE, RATE, QOS_QDISC_SET), QOS_PROP(RATE),
     QOS_RANGE(KBIT, SPEED_MAX), .kept = QOS_KEPT_KBIT,
     .help = "reserved rate (802.1Q's idleSlope), below the link's speed"},
    {QOS_FIELD("burst|hicredit", BURST, SIZE, QOS_QDISC_SET), QOS_PROP(BURST),
     QOS_RANGE(1, 0x7fffffff),
     .help = "most credit in bytes (hiCredit; default: a full frame's time at the rate)"},
    QOS_FIELD_OFFLOAD,
};

/* Also sets what is no parameter: the link's speed in PEAK_RATE, the least credit (negative) in
 * CBURST. */
static void
resolve(struct qos_values *v, const struct qos_env *env)
{
    uint64_t speed = env->speed ? env->speed : SPEED, rate = v->v[QOS_RATE];
    uint64_t frame = qos_env_frame(env);
    speed = speed < SPEED_MAX ? speed : SPEED_MAX;
    qos_put(v, QOS_PEAK_RATE, speed);
    qos_default(v, QOS_BURST, (frame * rate + speed - 1) / speed);
    qos_put(v, QOS_CBURST, rate < speed ? frame * (speed - rate) / speed : 0);
    qos_default(v, QOS_OFFLOAD, 0);
}

static int
check(const struct qos_values *v, const struct qos_values *given, struct qos_error *e)
{
    if (!v->v[QOS_RATE])
        return qos_fail(e, QOS_BAD_PARAM, "cbs needs a rate");
    if (v->v[QOS_RATE] >= v->v[QOS_PEAK_RATE])
        return qos_fail(
            e, QOS_BAD_PARAM, "rate %llu bit/s must be below the link's speed, %llu bit/s",
            (unsigned long long)v->v[QOS_RATE], (unsigned long long)v->v[QOS_PEAK_RATE]);
    return 0;
}

const struct qos_sched qos_sched_cbs = {
    .id = OFP_QOS_SCHED_CBS,
    .in_place = true,
    .name = "cbs",
    .help = "a reserved rate without bursts (802.1Qav)",
    .module = "sch_cbs",
    .package = "kmod-sched",
    QOS_FIELDS(fields),
    .resolve = resolve,
    .check = check,
};
