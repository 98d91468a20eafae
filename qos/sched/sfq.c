/* SPDX-License-Identifier: Apache-2.0 */
/* SFQ, stochastic fairness queueing (tc-sfq(8)). */
#include "rows.h"

/* The kernel's limits and defaults (net/sched/sch_sfq.c). */
#define DEPTH_MAX       127u
#define FLOWS_MAX       65408u
#define FLOWS_DEFAULT   127u
#define DIVISOR_MAX     65536u
#define LIMIT_DEFAULT   127u
#define DIVISOR_DEFAULT 1024u
#define QUANTUM_MAX     262136u
#define PERTURB_MAX     2147483u /* seconds: 2^31 / HZ of 1000 */

static const struct qos_field fields[] = {
    {QOS_FIELD("perturb", PERTURB, SEC, QOS_QDISC_SET), .fixed = 4, .max = PERTURB_MAX,
     .help = "seconds between changes of the hash (default 10)"},
    {QOS_FIELD("quantum", QUANTUM, SIZE, QOS_QDISC_SET), .fixed = 4, .max = QUANTUM_MAX,
     .help = "bytes a flow sends in its turn (default: the MTU)"},
    {QOS_FIELD("limit", LIMIT, PACKETS, QOS_QDISC_SET), QOS_PROP(LIMIT),
     QOS_RANGE(2, DEPTH_MAX *FLOWS_MAX),
     .help = "longest queue in packets, at most depth x flows (default 127)"},
    {QOS_FIELD("flows", FLOWS, COUNT, QOS_QDISC_SET), QOS_PROP(FLOWS), QOS_RANGE(1, FLOWS_MAX),
     .help = "flows at a time (default 127)"},
    {QOS_FIELD("depth", SFQ_DEPTH, PACKETS, QOS_QDISC_SET), QOS_PROP(SFQ_DEPTH),
     QOS_RANGE(1, DEPTH_MAX), .help = "packets a flow may have waiting (default 127)"},
    {QOS_FIELD("divisor", SFQ_DIVISOR, COUNT, QOS_QDISC_SET), QOS_PROP(SFQ_DIVISOR),
     QOS_RANGE(1, DIVISOR_MAX), .help = "size of the hash table, a power of two (default 1024)"},
};

static uint64_t
least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Flows, depth and limit bound each other as in the kernel (sfq_change). */
static void
resolve(struct qos_values *v, const struct qos_env *env)
{
    uint32_t mtu = qos_env_mtu(env);
    qos_put(v, QOS_PERTURB, qos_or(v, QOS_PERTURB, 10));
    qos_put(v, QOS_QUANTUM, qos_or(v, QOS_QUANTUM, mtu < QUANTUM_MAX ? mtu : QUANTUM_MAX));
    qos_default(v, QOS_SFQ_DEPTH, DEPTH_MAX);
    qos_default(v, QOS_SFQ_DIVISOR, DIVISOR_DEFAULT);
    qos_default(v, QOS_FLOWS, FLOWS_DEFAULT);
    uint64_t flows = least(v->v[QOS_FLOWS], v->v[QOS_SFQ_DIVISOR]);
    qos_put(v, QOS_LIMIT, least(qos_or(v, QOS_LIMIT, LIMIT_DEFAULT), v->v[QOS_SFQ_DEPTH] * flows));
    qos_put(v, QOS_FLOWS, least(flows, v->v[QOS_LIMIT]));
}

static int
check(const struct qos_values *v, const struct qos_values *given, struct qos_error *e)
{
    uint64_t divisor = v->v[QOS_SFQ_DIVISOR];
    uint64_t room = v->v[QOS_SFQ_DEPTH] * qos_or(given, QOS_FLOWS, FLOWS_DEFAULT);
    if (divisor & (divisor - 1))
        return qos_fail(e, QOS_BAD_PARAM, "divisor %u is not a power of two", (unsigned)divisor);
    if (room < 2)
        return qos_fail(e, QOS_BAD_PARAM, "depth x flows must be 2 or more");
    if (given->v[QOS_LIMIT] > room)
        return qos_fail(e, QOS_BAD_PARAM, "limit %u is above depth x flows, %u",
                        (unsigned)given->v[QOS_LIMIT], (unsigned)room);
    return 0;
}

const struct qos_sched qos_sched_sfq = {
    .id = OFP_QOS_SCHED_SFQ,
    .name = "sfq",
    .help = "flows take turns",
    .module = "sch_sfq",
    .package = "kmod-sched",
    QOS_FIELDS(fields),
    .resolve = resolve,
    .check = check,
};
