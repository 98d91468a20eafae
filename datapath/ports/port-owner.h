/* SPDX-License-Identifier: Apache-2.0 */
/* Whose an interface is: another switch's, a bridge's, or this switch's. */
#ifndef PORTS_PORT_OWNER_H
#define PORTS_PORT_OWNER_H

#include <switch/switch.h>

/* Makes the interface ours: until sw_port_disown no other switch of this network namespace takes it.
 * -EBUSY and a sentence in `why`: it has another owner.  With sw->opt.force that is only logged. */
int sw_port_own(struct sw *sw, struct sw_port *p, const struct qos_link_info *link, char *why,
                size_t why_len);
void sw_port_disown(struct sw_port *p);

/* The interface as read again (p->link: as it was): logs a master that it got or lost. */
void sw_port_own_again(struct sw *sw, struct sw_port *p, const struct qos_link_info *link);

#endif
