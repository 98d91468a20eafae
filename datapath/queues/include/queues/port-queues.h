/* SPDX-License-Identifier: Apache-2.0 */
/* A port's queues follow its interface.  One port at a time, and not while a commit is under way;
 * where the kernel has much to do it is a task (kernel-plan.h). */
#ifndef QUEUES_PORT_QUEUES_H
#define QUEUES_PORT_QUEUES_H

struct sw;
struct sw_port;

int sw_port_queues_init(struct sw *sw); /* -ENOMEM */
void sw_port_queues_free(struct sw *sw);

/* A new port takes over the queues that an earlier run left. */
void sw_port_queues_adopt(struct sw *sw, const struct sw_port *p);
/* The port's interface is back: makes its queues anew, then calls `made`. */
void sw_port_queues_back(struct sw *sw, struct sw_port *p,
                         void (*made)(struct sw *sw, struct sw_port *p));
/* Whether the last of these is not over. */
bool sw_port_queues_busy(const struct sw *sw);
/* Whether the port's are being made anew: it is not back before. */
bool sw_port_queues_returns(const struct sw *sw, const struct sw_port *p);
/* The link has another speed or MTU. */
void sw_port_queues_update(struct sw *sw, struct sw_port *p);

#endif
