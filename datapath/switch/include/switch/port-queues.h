/* SPDX-License-Identifier: Apache-2.0 */
/* A port's queues follow its interface.  One port at a time, and not while a commit is under way;
 * where the kernel has much to do it takes many turns of the loop (kernel-steps.h). */
#ifndef SWITCH_PORT_QUEUES_H
#define SWITCH_PORT_QUEUES_H

#include <switch/ports.h>
#include <switch/qos-notify.h>

struct port_catch_up {
    struct sw_port *p;
    bool back; /* the interface replaces one that went away */
    struct queue_snapshot before;
    uint32_t n_queues; /* that the port had */
    void (*done)(struct sw *sw);
};

/* A new port takes over the queues that an earlier run left. */
void sw_port_queues_adopt(struct sw *sw, const struct sw_port *p);
/* The port's interface is back: makes its queues anew and announces the port.  `done` is called if
 * that took more than this turn. */
void sw_port_queues_back(struct sw *sw, struct sw_port *p, void (*done)(struct sw *sw));
/* The link has another speed or MTU. */
void sw_port_queues_update(struct sw *sw, struct sw_port *p, void (*done)(struct sw *sw));

#endif
