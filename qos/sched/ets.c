/* SPDX-License-Identifier: Apache-2.0 */
/* ETS, enhanced transmission selection: bands that share the bandwidth (tc-ets(8)). */
#include "rows.h"

static const struct qos_field fields[] = {
    {QOS_FIELD("bands", BANDS, COUNT, QOS_QDISC_SET), QOS_PROP(BANDS), QOS_RANGE(1, QOS_BANDS_MAX),
     .help = "number of bands (default 3)"},
    {QOS_FIELD("priomap", PRIOMAP, PRIOMAP, QOS_QDISC_SET), QOS_PROP(PRIOMAP), .max = 255,
     .help = "band of each of the 16 priorities (default: the last band)"},
};

static void
resolve(struct qos_values *v, const struct qos_env *env)
{
    qos_default(v, QOS_BANDS, 3);
    if (!qos_has(v, QOS_PRIOMAP)) {
        uint64_t last = (v->v[QOS_BANDS] - 1) * 0x0101010101010101ull;
        qos_put(v, QOS_PRIOMAP, last);
        qos_put(v, QOS_PRIOMAP + 1, last);
    }
}

const struct qos_sched qos_sched_ets = {
    .id = OFP_QOS_SCHED_ETS,
    .flat = true,
    .bands = true,
    .in_place = true,
    .name = "ets",
    .help = "bands that share",
    .module = "sch_ets",
    .package = "kmod-sched",
    QOS_FIELDS(fields),
    .resolve = resolve,
    .check = qos_check_priomap,
};
