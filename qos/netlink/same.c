/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel makes of a value: most it keeps as they are, rates and times it rounds. */
#include "fill.h"

#include <qos-netlink/kernel.h>

#define JIFFY_US 10000u /* at 100 a second, the fewest */

enum how { EXACT, BYTES_A_SECOND, TICKS, TICKS_CUT, CODEL_TIME, TICKS_OF_TIME, JIFFIES };

static const struct {
    uint8_t sched, object, slot, how;
    uint8_t rate; /* the slot of the rate at which it is a time */
} rounded[] = {
    {OFP_QOS_SCHED_HTB, OFP_QOS_CLASS, QOS_RATE, BYTES_A_SECOND, 0},
    {OFP_QOS_SCHED_HTB, OFP_QOS_CLASS, QOS_CEIL, BYTES_A_SECOND, 0},
    {OFP_QOS_SCHED_HTB, OFP_QOS_CLASS, QOS_BURST, TICKS, QOS_RATE},
    {OFP_QOS_SCHED_HTB, OFP_QOS_CLASS, QOS_CBURST, TICKS, QOS_CEIL},
    {OFP_QOS_SCHED_HFSC, OFP_QOS_CLASS, QOS_RSC, BYTES_A_SECOND, 0},
    {OFP_QOS_SCHED_HFSC, OFP_QOS_CLASS, QOS_RSC + 2, BYTES_A_SECOND, 0},
    {OFP_QOS_SCHED_HFSC, OFP_QOS_CLASS, QOS_FSC, BYTES_A_SECOND, 0},
    {OFP_QOS_SCHED_HFSC, OFP_QOS_CLASS, QOS_FSC + 2, BYTES_A_SECOND, 0},
    {OFP_QOS_SCHED_HFSC, OFP_QOS_CLASS, QOS_USC, BYTES_A_SECOND, 0},
    {OFP_QOS_SCHED_HFSC, OFP_QOS_CLASS, QOS_USC + 2, BYTES_A_SECOND, 0},
    {OFP_QOS_SCHED_TBF, OFP_QOS_QDISC, QOS_RATE, BYTES_A_SECOND, 0},
    {OFP_QOS_SCHED_TBF, OFP_QOS_QDISC, QOS_PEAK_RATE, BYTES_A_SECOND, 0},
    {OFP_QOS_SCHED_TBF, OFP_QOS_QDISC, QOS_BURST, TICKS_CUT, QOS_RATE},
    {OFP_QOS_SCHED_CAKE, OFP_QOS_QDISC, QOS_RATE, BYTES_A_SECOND, 0},
    {OFP_QOS_SCHED_NETEM, OFP_QOS_QDISC, QOS_RATE, BYTES_A_SECOND, 0},
    {OFP_QOS_SCHED_CODEL, OFP_QOS_QDISC, QOS_TARGET, CODEL_TIME, 0},
    {OFP_QOS_SCHED_CODEL, OFP_QOS_QDISC, QOS_INTERVAL, CODEL_TIME, 0},
    {OFP_QOS_SCHED_FQ_CODEL, OFP_QOS_QDISC, QOS_TARGET, CODEL_TIME, 0},
    {OFP_QOS_SCHED_FQ_CODEL, OFP_QOS_QDISC, QOS_INTERVAL, CODEL_TIME, 0},
    {OFP_QOS_SCHED_PIE, OFP_QOS_QDISC, QOS_TARGET, TICKS_OF_TIME, 0},
    {OFP_QOS_SCHED_PIE, OFP_QOS_QDISC, QOS_INTERVAL, JIFFIES, 0},
};

/* told: what it was given; has: what it tells; rate: bit/s. */
static bool
same_as(enum how how, uint64_t told, uint64_t has, uint64_t rate)
{
    switch (how) {
    case EXACT: break;
    case BYTES_A_SECOND: return told / 8 == has / 8;
    case TICKS: return read_ticks(fill_ticks(told, rate), rate, false) == has;
    case TICKS_CUT: /* a tick less, and the rate's own rounding */
        return has <= told && told - has <= rate / 8 * (QOS_TICK_NS + 1) / 1000000000;
    case CODEL_TIME: return told * 1000 / 1024 == has * 1000 / 1024;
    case TICKS_OF_TIME: return told * 1000 / QOS_TICK_NS * QOS_TICK_NS / 1000 == has;
    case JIFFIES: return has >= told && has - told < JIFFY_US;
    }
    return told == has;
}

bool
same_value(const struct qos_sched *sched, unsigned object, unsigned slot,
           const struct qos_values *told, const struct qos_values *has)
{
    for (size_t i = 0; i < sizeof rounded / sizeof rounded[0]; i++) {
        if (rounded[i].sched == sched->id && rounded[i].object == object && rounded[i].slot == slot)
            return same_as(rounded[i].how, told->v[slot], has->v[slot],
                           rounded[i].rate ? told->v[rounded[i].rate] : 0);
    }
    return told->v[slot] == has->v[slot];
}
