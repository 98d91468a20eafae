/* SPDX-License-Identifier: Apache-2.0 */
/* The counters of flows where several workers count.
 *
 * A flow has a place; each worker's counters of many places lie in a page of the worker's own.  If
 * the workers' counters of a flow lay side by side, in one cache line or in two that processors
 * fetch as a pair, workers would wait for each other for every packet.  A line for each worker and
 * flow would take four times the memory.  Control thread. */
#ifndef FLOW_FLOW_COUNTERS_H
#define FLOW_FLOW_COUNTERS_H

#include <flow/flow.h>

/* The first worker's zeroed counter; the others' are FLOW_COUNTERS_STRIDE bytes apart.  NULL: no
 * memory. */
struct flow_counter *flow_counters_place(unsigned workers);
void flow_counters_leave(struct flow_counter *first);

#endif
