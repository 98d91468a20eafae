/* SPDX-License-Identifier: Apache-2.0 */
/* PRIO, bands served in strict order (tc-prio(8)). */
#include "rows.h"

static const struct qos_field fields[] = {
    {QOS_FIELD("bands", BANDS, COUNT, QOS_QDISC_SET), QOS_PROP(BANDS), QOS_RANGE(2, QOS_BANDS_MAX),
     .help = "number of bands (default 3)"},
    {QOS_FIELD("priomap", PRIOMAP, PRIOMAP, QOS_QDISC_SET), QOS_PROP(PRIOMAP), .max = 255,
     .help = "band of each of the 16 priorities (default: tc's)"},
};

/* Interactive 0, best effort 1, bulk 2, by the kernel's TC_PRIO_ values (tc-prio(8)). */
#define MAP_HI 0x0102020201020000ull
#define MAP_LO 0x0101010101010101ull

static void
resolve(struct qos_values *v, const struct qos_env *env)
{
    qos_put(v, QOS_BANDS, qos_or(v, QOS_BANDS, 3));
    if (!qos_has(v, QOS_PRIOMAP)) {
        bool two = v->v[QOS_BANDS] == 2; /* bulk goes with best effort */
        qos_put(v, QOS_PRIOMAP, two ? 0x0101010101010000ull : MAP_HI);
        qos_put(v, QOS_PRIOMAP + 1, MAP_LO);
    }
}

const struct qos_sched qos_sched_prio = {
    .id = OFP_QOS_SCHED_PRIO,
    .flat = true,
    .bands = true,
    .in_place = true,
    .name = "prio",
    .help = "bands, the first is served first",
    .module = "sch_prio",
    .package = "kmod-sched-prio",
    QOS_FIELDS(fields),
    .resolve = resolve,
    .check = qos_check_priomap,
};
