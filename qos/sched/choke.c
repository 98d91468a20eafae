/* SPDX-License-Identifier: Apache-2.0 */
/* CHOKe, RED that also drops from flows that have much waiting (tc-choke(8)); it counts packets. */
#include "rows.h"

#include <qos/sched/red.h>

#include <linux/pkt_sched.h>

#define LIMIT_MAX 131071 /* the kernel's CHOKE_MAX_QUEUE */

static const struct qos_field fields[] = {
    {QOS_FIELD("limit", LIMIT, PACKETS, QOS_QDISC_SET), QOS_PROP(LIMIT), QOS_RANGE(1, LIMIT_MAX),
     .help = "longest queue in packets (default 1000)"},
    QOS_FIELD_ECN(0),
    {QOS_FIELD("max", RED_MAX, PACKETS, QOS_QDISC_SET), QOS_PROP(RED_MAX), QOS_RANGE(2, LIMIT_MAX),
     .help = "average queue where all is marked (default: limit / 4); marking begins at a third"},
    QOS_FIELDS_RED_AVERAGE("5 / 9 of max"),
};

static void
resolve(struct qos_values *v, const struct qos_env *env)
{
    qos_default(v, QOS_LIMIT, 1000);
    uint64_t quarter = v->v[QOS_LIMIT] / 4;
    qos_default(v, QOS_RED_MAX, quarter > 2 ? quarter : 2);
    uint64_t max = v->v[QOS_RED_MAX], min = max / 3 ? max / 3 : 1;
    qos_put(v, QOS_THRESHOLD, min);
    qos_default(v, QOS_ECN, 0);
    qos_default(v, QOS_RED_AVPKT, 1000);
    qos_default(v, QOS_RED_PROBABILITY, QOS_RED_PPM_DEFAULT);
    qos_default(v, QOS_RED_BURST, (2 * min + max) / 3);
    qos_default(v, QOS_RED_BANDWIDTH, qos_red_bandwidth(env));
}

bool
qos_choke_derive(const struct qos_values *v, struct qos_red *out)
{
    struct qos_red_of of = qos_red_of_values(v);
    of.packets = true;
    return qos_red_derive(&of, out);
}

static int
check(const struct qos_values *v, const struct qos_values *given, struct qos_error *e)
{
    struct qos_red red;
    if (v->v[QOS_RED_MAX] > v->v[QOS_LIMIT] && v->v[QOS_LIMIT] > 1)
        return qos_fail(e, QOS_BAD_PARAM, "max %u is above limit %u", (unsigned)v->v[QOS_RED_MAX],
                        (unsigned)v->v[QOS_LIMIT]);
    if (qos_choke_derive(v, &red))
        return 0;
    return qos_fail(e, QOS_BAD_PARAM,
                    "burst %u is too large for max %u: no weight of the average lets it pass "
                    "unmarked",
                    (unsigned)v->v[QOS_RED_BURST], (unsigned)v->v[QOS_RED_MAX]);
}

const struct qos_sched qos_sched_choke = {
    .id = OFP_QOS_SCHED_CHOKE,
    .in_place = true,
    .name = "choke",
    .help = "RED that drops most from flows that send most",
    .module = "sch_choke",
    .package = "kmod-sched",
    QOS_FIELDS(fields),
    .marked = 1 + offsetof(struct tc_choke_xstats, marked),
    .resolve = resolve,
    .check = check,
};
