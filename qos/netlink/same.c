/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel keeps most values as they are; it rounds rates and times. */
#include "fill.h"

#define JIFFY_US 10000u /* at 100 a second, the fewest */

/* rate: bit/s. */
static bool
same_as(enum qos_kept kept, uint64_t given, uint64_t has, uint64_t rate)
{
    switch (kept) {
    case QOS_KEPT_EXACT: break;
    case QOS_KEPT_KBIT: return given / 1000 == has / 1000;
    case QOS_KEPT_BYTES: return given / 8 == has / 8;
    case QOS_KEPT_TICKS:
        return netlink_read_ticks(netlink_fill_ticks(given, rate), rate, false) == has;
    case QOS_KEPT_TICKS_CUT: break; /* LCOV_EXCL_LINE: same_bucket has compared it */
    case QOS_KEPT_CODEL_TIME: return given * 1000 / 1024 == has * 1000 / 1024;
    case QOS_KEPT_TICK_TIME: return given * 1000 / QOS_TICK_NS * QOS_TICK_NS / 1000 == has;
    case QOS_KEPT_JIFFIES: return has >= given && has - given < JIFFY_US;
    }
    return given == has;
}

/* The kernel keeps the time that the bytes take on the link.  Reading it back loses up to a tick
 * and the rate's own rounding, and that may be a whole cell. */
static bool
same_bucket(const struct qos_values *link, uint64_t given, uint64_t has, uint64_t rate)
{
    uint64_t lost = rate / 8 * (QOS_TICK_NS + 1) / 1000000000;
    given = netlink_link_size(link, given);
    has = netlink_link_size(link, has);
    if (link->v[QOS_LINKLAYER] == QOS_ATM)
        lost += netlink_link_size(&(struct qos_values){.v[QOS_LINKLAYER] = QOS_ATM}, 1);
    return has <= given && given - has <= lost;
}

bool
netlink_same_value(const struct qos_sched *sched, unsigned slot, const struct qos_values *given,
                   const struct qos_values *has)
{
    const struct qos_field *f = qos_sched_slot(sched, slot);
    bool time = f && f->unit == QOS_U_CURVE && slot == f->slot + 1u; /* a curve's d */
    enum qos_kept kept = f && !time ? f->kept : QOS_KEPT_EXACT;
    uint64_t rate = f && f->kept_rate ? given->v[f->kept_rate] : 0;
    if (kept == QOS_KEPT_TICKS_CUT)
        return same_bucket(given, given->v[slot], has->v[slot], rate);
    return same_as(kept, given->v[slot], has->v[slot], rate);
}
