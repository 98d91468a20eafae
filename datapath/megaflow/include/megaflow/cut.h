/* SPDX-License-Identifier: Apache-2.0 */
/* Super-packets that no packet socket takes: SCTP's, UDP's before Linux 6.2, and TCP's above 64 KB (BIG TCP).  The
 * programs in the kernel (offload/offload.h) send those that no entry knows by a pair of interfaces that
 * cuts them, and from there their segments to the port once more, where they are packets as others.  So
 * they need programs also where the switch handles no packets in the kernel (--offload=off).
 *
 * Under the loop's lock.  Without programs, or without the pair, such super-packets are lost, and the log and STATUS say
 * at which ports. */
#ifndef MEGAFLOW_CUT_H
#define MEGAFLOW_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct offload;
struct sw;
struct sw_port;

/* o: the programs that are there; NULL: there are none because of `why`, or it has its own (why NULL).  -ENOMEM. */
int sw_cutter_open(struct sw *sw, struct offload *o, const char *why);
/* Before `o` is closed, and while the kernel's links are still open. */
void sw_cutter_close(struct sw *sw);

/* Puts the programs on the port's interface.  False, and a sentence in p->uncut: the kernel refused; "": the port has
 * no packet sockets, or there are no programs. */
bool sw_cutter_attach(struct sw *sw, struct sw_port *p);
/* After that, with --offload=off instead of it; and before the programs are taken off. */
void sw_cutter_learn_senders(struct sw *sw, struct sw_port *p); /* asks the kernel */
void sw_cutter_port_add(struct sw *sw, struct sw_port *p);
void sw_cutter_port_del(struct sw *sw, struct sw_port *p);

/* Which packets that hosts may send by the port it loses, and why: "super-packets of SCTP ...: WHY".  False: none. */
#define SW_LOSS_LEN 320
bool sw_cutter_loss(const struct sw *sw, const struct sw_port *p, char *out, size_t n);

struct sw_cutter_counts {
    uint64_t cut, lost; /* super-packets */
    uint64_t around,
        back; /* packets on the way around of those that are cut for a queue, and of these that came again */
    uint64_t
        whole; /* super-packets too long for a queue that were not cut, because too many were on the way */
};
struct sw_cutter_counts sw_cutter_counts(const struct sw *sw);

#endif
