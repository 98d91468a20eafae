/* SPDX-License-Identifier: Apache-2.0 */
/* Flows in the control thread, other than requests: what their actions may name, timeouts, and
 * flow-removed messages. */
#ifndef REQUESTS_FLOWS_H
#define REQUESTS_FLOWS_H

#include <table/tables.h>

struct slice;
struct sw;

/* What actions may name: ports, groups and meters of this switch. */
struct compile_env sw_compile_env(struct sw *sw);

/* What is compiled until the next call is the slice's (NULL: nobody's), whose choices of queues hold at
 * its ports only. */
void sw_bind_queues(struct sw *sw, const struct slice *s);

/* The flow as statistics have it.  Its match is in oxms (OXM_N of them), its instructions are bytes
 * of the flow's own. */
void sw_flow_describe(const struct sw *sw, const struct flow *f, struct of_oxm *oxms,
                      struct of_flow_stats *out);

/* Whether the slice's statistics include the flow. */
bool sw_slice_sees_flow(const struct sw *sw, const struct slice *s, const struct flow *f);

/* Sends OFPT_FLOW_REMOVED (struct tables_ops). */
void sw_flow_removed(void *sw, struct flow *f, uint8_t reason, uint64_t now);

/* A task that removes flows whose time is over, and sets the timer for the next one.  To be called when a flow
 * with a timeout was added. */
void sw_flows_expire(void *sw);

#endif
