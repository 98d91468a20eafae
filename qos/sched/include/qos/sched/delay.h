/* SPDX-License-Identifier: Apache-2.0 */
/* What a class's promised delay (DELAY_US) decides by itself.  What a request or --leaf gives stays as it is.
 * Rates are bit/s, delays us, lengths bytes; a rate is the class's guaranteed one, the least that it can count on. */
#ifndef QOS_DELAY_H
#define QOS_DELAY_H

#include <qos/sched/sched.h>

/* Is that long enough for a scheduler that measures how long packets wait (fq_codel)?  It counts the memory of
 * packets, not their bytes, and with room for less than four full frames it would drop short ones in vain: then
 * bfifo is exact. */
bool qos_delay_measurable(uint64_t rate, uint64_t delay, uint32_t mtu);

/* The rate at which super-packets, which are cut to a millisecond of it, take an eighth of the delay; so they never
 * fill what may wait. */
uint64_t qos_delay_cut(uint64_t rate, uint64_t delay);

/* Most of a burst, beside one frame: what the rate sends in a quarter of the delay.  It waits behind the class, in a
 * device or a modem. */
uint64_t qos_delay_burst(uint64_t rate, uint64_t delay);

/* OFPSFC_BAD_PARAM: not even the shortest frame is sent in that time. */
int qos_delay_check(const struct qos_values *class, struct qos_error *e);

/* Why the class can't keep it while others are busy: how long one full frame takes.  Returns buf; "": it can. */
const char *qos_delay_doubt(const struct qos_values *class, uint32_t mtu, char *buf, size_t n);

/* What it comes to, for people: "fq_codel target=5ms,..., or bfifo limit=11250b; ..."; "" without a delay or a rate. */
const char *qos_delay_print(const struct qos_values *class, uint32_t mtu, char *buf, size_t n);

#endif
