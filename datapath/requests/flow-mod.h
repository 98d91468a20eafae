/* SPDX-License-Identifier: Apache-2.0 */
/* A flow-mod, by itself or in a bundle. */
#ifndef REQUESTS_FLOW_MOD_H
#define REQUESTS_FLOW_MOD_H

#include <switch/switch.h>

int sw_flow_mod(struct sw *sw, const struct of_flow_mod *q);
/* To be called when the flow-mod is in effect: starts its timeouts and sends the packet that it
 * named.  c: whose flow-mod it is, or NULL: the connection has gone. */
int sw_flow_mod_done(struct sw *sw, struct conn *c, const struct of_flow_mod *q);

/* The packet goes through the tables, unless another flow-mod has used it already. */
int sw_buffer_release(struct sw *sw, struct conn *c, uint32_t id);

/* A non-strict delete or modify outside of a bundle; a long one goes on after the function returns
 * (task/task.h).  *none: the modify has found no flow. */
int sw_flow_delete(struct sw *sw, struct conn *c, const struct of_msg *m);
int sw_flow_modify(struct sw *sw, struct conn *c, const struct of_msg *m, bool *none);

/* Deletes a group or meter, and all flows that use it, in the same way. */
int sw_delete_with_flows(struct sw *sw, struct conn *c, const struct of_msg *m);

#endif
