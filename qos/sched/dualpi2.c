/* SPDX-License-Identifier: Apache-2.0 */
/* DualPI2, a queue for L4S traffic beside one for the classic kind (RFC 9332). */
#include "rows.h"

/* Linux 6.17's; older headers lack them. */
enum { DUALPI2_LIMIT = 1, DUALPI2_TARGET = 3, DUALPI2_TUPDATE = 4 };
#define XSTATS_ECN_MARK 24 /* in struct tc_dualpi2_xstats */

#define TUPDATE_MAX 4000000u /* the kernel keeps nanoseconds in 32 bits */

static const struct qos_field fields[] = {
    QOS_FIELD_LIMIT(DUALPI2_LIMIT, "10000"),
    QOS_FIELD_TARGET(DUALPI2_TARGET, "of classic traffic ", QOS_USEC_OF_32BIT_NS, QOS_KEPT_EXACT,
                     "15 ms"),
    QOS_FIELD_TUPDATE(DUALPI2_TUPDATE, TUPDATE_MAX, QOS_KEPT_EXACT, "16 ms"),
};

static void
resolve(struct qos_values *v, const struct qos_env *env)
{
    qos_default(v, QOS_LIMIT, 10000);
    qos_default(v, QOS_TARGET, 15000);
    qos_default(v, QOS_INTERVAL, 16000);
}

const struct qos_sched qos_sched_dualpi2 = {
    .id = OFP_QOS_SCHED_DUALPI2,
    .in_place = true,
    .name = "dualpi2",
    .help = "low delay for L4S beside classic traffic",
    .module = "sch_dualpi2",
    .package = "kmod-sched",
    QOS_FIELDS(fields),
    .marked = 1 + XSTATS_ECN_MARK,
    .resolve = resolve,
};
