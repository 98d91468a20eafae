/* SPDX-License-Identifier: Apache-2.0 */
/* Fail to wire (--fail-to-wire): two ports that the kernel forwards between while no switch serves them: its process
 * has ended or was killed, its workers hang, or it is not ready yet.  The programs at the ports
 * (offload/offload.h) do it.  They stay there when the process ends, and the next one's take their place.
 *
 * Control thread.  Ports are known by their interfaces' names, so they may come and go. */
#ifndef MEGAFLOW_WIRE_H
#define MEGAFLOW_WIRE_H

#include <offload/layout.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sw;
struct sw_offload;
struct sw_port;

/* Has the port of that name a wire that works? */
bool sw_wire_has(const struct sw *sw, const char *name);
/* Has it one that its queues, and those of the other end, stay for at the switch's end? */
bool sw_wire_keeps_queues(const struct sw *sw, const char *name);

/* Workers are alive, and the switch is ready: they serve the ports for the next seconds.  To be called
 * four times a second, first when the switch is ready.  now: loop_clock. */
void sw_wires_serve(struct sw *sw, uint64_t now);
/* The wires take over at once: the switch ends. */
void sw_wires_take_over(struct sw *sw);

/* "eth2", "eth2:unshaped", or why there is none; false: none is wanted. */
#define SW_WIRE_TEXT 256
bool sw_wire_text(const struct sw *sw, const struct sw_port *p, char *out, size_t n);

/* ------------------------------------------------------------------ inside megaflow/ */

/* Where the port's frames go; NULL: it has no wire.  *out may be returned. */
const struct offload_wire *sw_wire_of(const struct sw *sw, const struct sw_port *p,
                                      struct offload_wire *out);
/* The port has its programs, or loses them: the other end follows. */
void sw_wire_follow(struct sw *sw, const struct sw_port *p, bool there);
/* The switch's part in the kernel could not be had, because of `why`: says so. */
void sw_wires_refused(const struct sw *sw, const char *why);

#endif
