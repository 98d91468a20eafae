/* SPDX-License-Identifier: Apache-2.0 */
/* Super-packets that no packet socket takes: SCTP's, UDP's before Linux 6.2, and TCP's above 64 KB (BIG TCP).  The
 * programs in the kernel (offload/offload.h) send those that no entry knows by a pair of interfaces that
 * cuts them, and from there their segments to the port once more, where they are packets as others.  So
 * they need programs also where the switch handles no packets in the kernel (--offload=off).
 *
 * Control thread.  Without sw->cutter all of it does nothing. */
#ifndef SWITCH_OFFLOAD_CUT_H
#define SWITCH_OFFLOAD_CUT_H

#include <stdint.h>

struct offload;
struct sw;
struct sw_port;

/* o: the programs that are there; NULL: it has its own, or says in the log why it can't.  -ENOMEM. */
int sw_cutter_open(struct sw *sw, struct offload *o);
/* Before `o` is closed, and while the kernel's links are still open. */
void sw_cutter_close(struct sw *sw);

/* After the port's programs were attached, and before they are taken off. */
void sw_cutter_port_add(struct sw *sw, struct sw_port *p);
void sw_cutter_port_del(struct sw *sw, struct sw_port *p);

struct sw_cutter_counts {
    uint64_t cut, lost; /* super-packets */
};
struct sw_cutter_counts sw_cutter_counts(const struct sw *sw);

#endif
