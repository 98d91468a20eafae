/* SPDX-License-Identifier: Apache-2.0 */
/* What the files about ports share. */
#ifndef PORTS_PORT_ATTACH_H
#define PORTS_PORT_ATTACH_H

#include <switch/switch.h>

/* sw_ports_add, and with files for an interface. */
int sw_port_add(struct sw *sw, const char *name, uint32_t no, struct port_files *files,
                bool queues_only, char *why, size_t why_len);

/* Opens the port's interface and shows it to the workers; returns -errno and a sentence in `why`.
 */
int sw_port_attach(struct sw *sw, struct sw_port *p, char *why, size_t why_len);
/* The reverse, which needs no memory; the queues' model is the caller's business. */
void sw_port_detach(struct sw *sw, struct sw_port *p);

/* Tells the packet side the port's configuration and MTU. */
void sw_port_apply_flags(struct sw *sw, const struct sw_port *p);
void sw_port_forget_stations(struct sw *sw, const struct sw_port *p);
/* Sends OFPT_PORT_STATUS.  reason: OFPPR_ */
void sw_port_announce(struct sw *sw, const struct sw_port *p, uint8_t reason);

/* Lets packets that enter by the port pass a shaper, which has no queues yet; NULL: no longer. */
void sw_ports_set_shaper(struct sw *sw, uint32_t no, const struct qos_shaper *s);

#endif
