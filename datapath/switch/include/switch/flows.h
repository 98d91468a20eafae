/* SPDX-License-Identifier: Apache-2.0 */
/* Flows as the control thread sees them beside requests: what their actions may name, timeouts,
 * flow-removed messages, and packet-outs. */
#ifndef SWITCH_FLOWS_H
#define SWITCH_FLOWS_H

#include <table/tables.h>

struct sw;

/* What actions may name: ports, groups and meters of this switch. */
struct compile_env sw_compile_env(struct sw *sw);

/* Sends a packet through a worker and takes the program.  If the worker's ring stays full for a
 * second the packet is dropped and counted. */
void sw_packet_out(struct sw *sw, struct program *program, uint32_t in_port, const uint8_t *data,
                   uint32_t len);

/* The flow as statistics have it.  Its match is in oxms (OXM_N of them), its instructions are bytes
 * of the flow's own. */
void sw_flow_describe(const struct sw *sw, const struct flow *f, struct of_oxm *oxms,
                      struct of_flow_stats *out);

/* Sends OFPT_FLOW_REMOVED (struct tables_ops). */
void sw_flow_removed(void *sw, struct flow *f, uint8_t reason, uint64_t now);

/* Removes flows whose time is over, and sets the timer for the next one.  To be called when a flow
 * with a timeout was added. */
void sw_flows_expire(void *sw);

#endif
