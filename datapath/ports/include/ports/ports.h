/* SPDX-License-Identifier: Apache-2.0 */
/* A port's life: interface, link, features, its place in the switch (switch/port.h). */
#ifndef PORTS_PORTS_H
#define PORTS_PORTS_H

#include <oflib/messages.h>

#include <switch/switch.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct qos_shaper;
struct vlans;

/* Adds an interface as a port, or returns -errno and a sentence in `why`.  no 0: the lowest free
 * number. */
int sw_ports_add(struct sw *sw, const char *name, uint32_t no, char *why, size_t why_len);
/* The same for an interface whose packets stay the kernel's, which may be in a bridge: the switch has its queues only. */
int sw_ports_add_queues(struct sw *sw, const char *name, uint32_t no, char *why, size_t why_len);
/* Adds a port whose interface is not there: it is down until one of that name comes. */
int sw_ports_expect(struct sw *sw, const char *name, uint32_t no, char *why, size_t why_len);
/* The same with files instead of an interface: spec is pcap:IN:OUT[:recorded] (port-files.c).  Only
 * for whoever started the switch: it reads and writes files with the switch's rights. */
bool sw_ports_is_files(const char *spec);
int sw_ports_add_files(struct sw *sw, const char *spec, char *why, size_t why_len);
/* Removes a port with its queues and frees its number.  An error (>0): there is none, or the kernel keeps the
 * queues; then the port stays. */
int sw_ports_del(struct sw *sw, uint32_t no, struct qos_error *e);
void sw_ports_close_all(struct sw *sw);
void sw_ports_close_local(struct sw *sw);

/* The VLANs of NORMAL that the port of this number has, or is to have; NULL: all (normal/vlans.h).  NORMAL
 * forgets its stations.  -ENOMEM: as before. */
int sw_ports_set_vlans(struct sw *sw, uint32_t no, const struct vlans *v);

/* Also true while the port waits for its interface. */
bool sw_port_is_down(const struct sw_port *p);
void sw_ports_describe(const struct sw_port *p, struct of_port *out);
int sw_ports_mod(struct sw *sw, const struct of_port_mod *m);

/* What the switch has counted since it became a port, over all interfaces that it has had. */
void sw_port_read_counters(const struct sw_port *p, struct port_counters *out);
/* What the interface itself has counted in that time; the names are those of port statistics. */
#define SW_LINK_LOSSES(X)                                                                          \
    X(tx_dropped)                                                                                  \
    X(rx_errors)                                                                                   \
    X(tx_errors)                                                                                   \
    X(rx_frame_err)                                                                                \
    X(rx_over_err)                                                                                 \
    X(rx_crc_err)                                                                                  \
    X(collisions)
void sw_port_read_losses(struct sw *sw, struct sw_port *p);    /* asks the kernel */
struct qos_link_stats sw_port_losses(const struct sw_port *p); /* as last read */

/* Who has the interface besides this switch: "bridge br0", "process 4711 (ofdatapath ...)".  False: nobody. */
bool sw_port_shared_with(const struct sw *sw, const struct sw_port *p, char *out, size_t n);
/* Other switches may have the interfaces from now on. */
void sw_ports_disown_all(struct sw *sw);
/* To be called now and then: forgets those who asked whose the interfaces are. */
void sw_ports_forget_askers(const struct sw *sw);

/* By which ports, and what depends on them, follow their queues. */
struct qos_events sw_ports_qos_events(struct sw *sw);

/* The thread that tells workers and the kernel's entries which ports are live.  -errno. */
int sw_liveness_start(struct sw *sw);
void sw_liveness_stop(struct sw *sw);

/* Starts handling rtnetlink events. */
int sw_ports_watch(struct sw *sw);
/* Between two steps of work that takes long in one turn of the loop: controllers hear at once of ports that went
 * up or down.  The rest of these events waits for the work's end.  It leaves tables and queues as they are. */
void sw_ports_hear(struct sw *sw);
int sw_ports_watch_fd(
    const struct sw *sw); /* readable: sw_ports_hear has to do.  -1: they are not watched */
/* To be called when an answer of the kernel was lost: reads all interfaces and queues again, in a
 * moment. */
void sw_ports_look_again(struct sw *sw);

#endif
