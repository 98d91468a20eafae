/* SPDX-License-Identifier: Apache-2.0 */
/* HTB, hierarchical token bucket (tc-htb(8)): classes with a guaranteed rate and a ceiling. */
#include "rows.h"

#include <qos/sched/delay.h>

#define QUANTUM_MAX  200000u /* beyond it the kernel calls a quantum big */
#define ROUND_MOST   60000u
#define ROUND_FRAMES 20u

static const struct qos_field fields[] = {
    {QOS_FIELD("rate|min_rate", RATE, RATE, QOS_CLASS_SET | QOS_NEEDED), .rival = QOS_RATE_SHARE,
     .fixed = 8, .max = QOS_RATE_MAX, .kept = QOS_KEPT_BYTES,
     .help = "guaranteed rate: 6mbit, or a share of the parent's: 30%"},
    {QOS_FIELD("ceil|max_rate", CEIL, RATE, QOS_CLASS_SET), .rival = QOS_CEIL_SHARE, .fixed = 8,
     .max = QOS_RATE_MAX, .kept = QOS_KEPT_BYTES,
     .help = "most it may borrow up to (default: the rate), or a share of the parent's: 60%"},
    {QOS_FIELD("prio|priority", PRIO, COUNT, QOS_CLASS_SET | QOS_LEAVES), .fixed = 4, .pad = 4,
     .max = 7, .help = "0 (default) is served first, 7 last"},
    {QOS_FIELD("parent", PARENT, CLASS, QOS_CLASS_SET), QOS_PROP(PARENT), .max = QOS_CLASS_MAX,
     .help = "class it hangs below (default 0: the port's root class)"},
    {QOS_FIELD("burst|buffer", BURST, SIZE, QOS_CLASS_SET), QOS_PROP(BURST),
     QOS_RANGE(1, QOS_U32_MAX), .kept = QOS_KEPT_TICKS, .kept_rate = QOS_RATE,
     .help = "bytes sent at once at the guaranteed rate (default: 4 ms of the rate, 10 from 10mbit "
             "on; a quarter of `delay` at most)"},
    {QOS_FIELD("cburst|cbuffer", CBURST, SIZE, QOS_CLASS_SET), QOS_PROP(CBURST),
     QOS_RANGE(1, QOS_U32_MAX), .kept = QOS_KEPT_TICKS, .kept_rate = QOS_CEIL,
     .help = "bytes sent at once at the ceiling (default: 4 ms of the ceiling, 10 from 10mbit on)"},
    {QOS_FIELD("quantum", QUANTUM, SIZE, QOS_CLASS_SET | QOS_LEAVES), QOS_PROP(QUANTUM),
     QOS_RANGE(64, QUANTUM_MAX),
     .help = "bytes a turn when borrowing (default: by the rate's part of the parent's)"},
    {QOS_FIELD("rate|min_rate", RATE_SHARE, SHARE, QOS_CLASS_SET), QOS_PROP(RATE_SHARE_PPM),
     QOS_RANGE(1, 1000000), .help = "as a share of the parent's rate"},
    {QOS_FIELD("ceil|max_rate", CEIL_SHARE, SHARE, QOS_CLASS_SET), QOS_PROP(CEIL_SHARE_PPM),
     QOS_RANGE(1, 1000000), .help = "as a share of the parent's ceiling"},
    QOS_FIELDS_LINK(QOS_CLASS_SET, 0, 0, 0),
    QOS_FIELD_NAME,
    QOS_FIELD_PROMISE,
    QOS_FIELD_DELAY,
    {QOS_FIELD("oversubscribe", OVERSUBSCRIBE, BOOL, QOS_CLASS_SET), QOS_PROP(OVERSUBSCRIBE),
     .max = 1, .none = 1,
     .help = "the classes below it may be promised more than its ceil (default no)"},
    {QOS_FIELD("offload", OFFLOAD, BOOL, QOS_QDISC_SET | QOS_AT_ADD), QOS_PROP(OFFLOAD), .max = 1,
     .help = "the whole tree in the interface's hardware (default no; object=qdisc)"},
};

static uint64_t
share(uint64_t of, uint64_t ppm)
{
    return of / 1000000 * ppm + of % 1000000 * ppm / 1000000;
}

static uint64_t
clamp(uint64_t v, uint64_t least, uint64_t most)
{
    return v < least ? least : v > most ? most : v;
}

/* Bytes that all classes of a parent send in one round of turns, if their rates add up to its rate:
 * 100 ms of that rate; at least 20 frames, or small classes would all have the same turn; at most
 * 60,000 bytes or 2 ms of the rate. */
static uint64_t
round_of(uint64_t parent, uint64_t frame)
{
    uint64_t most = clamp(parent / 500, ROUND_MOST, QUANTUM_MAX);
    uint64_t least = clamp(ROUND_FRAMES * frame, 0, QUANTUM_MAX);
    return clamp(parent / 10, least, most > least ? most : least);
}

/* Siblings borrow in proportion to their turns, so turns are in proportion to rates.  They depend
 * only on the class's rate and its parent's, so that one more sibling changes no other's.  Counted
 * in bytes/s, as the kernel keeps rates, so that a restart computes the same. */
static uint64_t
turn(uint64_t rate, uint64_t parent, uint64_t frame)
{
    rate /= 8;
    parent = parent / 8 ? parent / 8 : rate;
    double bytes = parent ? (double)round_of(parent, frame) * (double)rate / (double)parent : 0;
    return bytes < (double)QUANTUM_MAX ? clamp((uint64_t)bytes, frame, QUANTUM_MAX) : QUANTUM_MAX;
}

/* The bucket's size for one of the class's rates. */
static uint64_t
bucket(uint64_t rate, uint64_t delay, const struct qos_env *env)
{
    uint64_t burst = qos_default_burst(rate, env);
    uint64_t most = qos_delay_burst(rate, delay) + qos_env_longest(env);
    return delay && most < burst ? most : burst;
}

static void
resolve(struct qos_values *v, const struct qos_env *env)
{
    if (qos_has(v, QOS_RATE_SHARE))
        qos_put(v, QOS_RATE, share(env->parent_rate, v->v[QOS_RATE_SHARE]));
    if (qos_has(v, QOS_CEIL_SHARE))
        qos_put(v, QOS_CEIL, share(env->parent_ceil, v->v[QOS_CEIL_SHARE]));
    qos_unset(v, QOS_OVERSUBSCRIBE); /* the kernel doesn't ask */
    uint64_t rate = v->v[QOS_RATE];
    uint64_t ceil = qos_or(v, QOS_CEIL, rate);
    qos_put(v, QOS_CEIL, ceil);
    qos_put(v, QOS_PRIO, v->v[QOS_PRIO]);
    uint64_t delay = v->v[QOS_DELAY];
    qos_put(v, QOS_BURST, qos_or(v, QOS_BURST, bucket(rate, delay, env)));
    qos_put(v, QOS_CBURST, qos_or(v, QOS_CBURST, bucket(ceil, delay, env)));
    /* Hardware may have no turns, and the kernel then refuses a quantum that nobody asked for. */
    if (!env->offload)
        qos_put(v, QOS_QUANTUM,
                qos_or(v, QOS_QUANTUM, turn(rate, env->parent_rate, qos_env_frame(env))));
    /* A class's packets go over the same link as its parent's. */
    qos_default(v, QOS_OVERHEAD, env->parent_overhead);
    qos_default(v, QOS_MPU, env->parent_mpu);
    qos_default(v, QOS_LINKLAYER, env->parent_linklayer);
}

static int
check(const struct qos_values *v, const struct qos_values *given, struct qos_error *e)
{
    uint64_t rate = v->v[QOS_RATE], ceil = v->v[QOS_CEIL];
    if (qos_has(given, QOS_RATE_SHARE) && given->v[QOS_RATE])
        return qos_fail(e, QOS_BAD_PARAM,
                        "give a rate or a share of the parent's rate, not both: rate=6mbit or "
                        "rate=30%% (with RATE_SHARE_PPM the fixed rate is 0)");
    if (qos_has(given, QOS_CEIL_SHARE) && given->v[QOS_CEIL])
        return qos_fail(e, QOS_BAD_PARAM,
                        "give a ceil or a share of the parent's ceil, not both: ceil=10mbit or "
                        "ceil=60%% (with CEIL_SHARE_PPM the fixed ceil is 0)");
    if (!rate)
        return qos_fail(e, QOS_BAD_PARAM,
                        "no rate is given: it must be 8 bit/s or more, such as rate=6mbit");
    if (rate < QOS_RATE_MIN)
        return qos_fail(e, QOS_BAD_PARAM, "rate %llu bit/s is too low; it must be 8 bit/s or more",
                        (unsigned long long)rate);
    if (ceil < rate)
        return qos_fail(e, QOS_BAD_PARAM, "ceil %llu bit/s is below rate %llu bit/s",
                        (unsigned long long)ceil, (unsigned long long)rate);
    int err =
        qos_has(given, QOS_BURST) ? qos_check_burst("burst", given->v[QOS_BURST], rate, e) : 0;
    if (!err && qos_has(given, QOS_CBURST))
        err = qos_check_burst("cburst", given->v[QOS_CBURST], ceil, e);
    err = err ? err : qos_delay_check(v, e);
    return err ? err : qos_check_link(v, e);
}

static void
own(struct qos_values *config, bool root, uint64_t rate, uint64_t ceil)
{
    qos_put(config, QOS_RATE, rate);
    qos_put(config, QOS_CEIL, ceil);
    qos_put(config, QOS_PRIO, root ? 0 : 7);
}

const struct qos_sched qos_sched_htb = {
    .id = OFP_QOS_SCHED_HTB,
    .classful = true,
    .in_place = true,
    .name = "htb",
    .help = "queues with a guaranteed rate and a ceiling",
    .module = "sch_htb",
    .package = "kmod-sched-core",
    QOS_FIELDS(fields),
    .resolve = resolve,
    .check = check,
    .own = own,
};
