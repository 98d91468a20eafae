/* SPDX-License-Identifier: Apache-2.0 */
/* Which ports are live, at once: a thread of its own reads interfaces' flags from rtnetlink, so that fast failover
 * does not wait for what the control thread does meanwhile.  For each port it writes the one word that workers
 * read (port_set_link), makes the kernel's entries that depend on the port stale, and lets NORMAL forget its
 * stations.  All else about a link is the control thread's (port-events.c).
 *
 * The functions here are the control thread's. */
#ifndef PORTS_LIVENESS_H
#define PORTS_LIVENESS_H

#include <switch/switch.h>

/* Begins to write the port's word, which is right when it returns.  The port has an interface. */
void sw_liveness_add(struct sw *sw, const struct sw_port *p);
/* To be called before the port is closed. */
void sw_liveness_del(struct sw *sw, const struct sw_port *p);

/* Writes what the kernel has reported so far: whoever acts on a later state of a link calls it first. */
void sw_liveness_sync(struct sw *sw);

#endif
