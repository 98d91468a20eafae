/* SPDX-License-Identifier: Apache-2.0 */
/* Packet-outs on their way from the control thread to the workers (7.3.7).
 *
 * The control thread never waits for a worker.  A packet-out for which there is no room waits in
 * its connection, and so does a barrier until the packet-outs before it have been sent; nobody
 * else waits.  A worker's ring takes few packet-outs, and even fewer of those that take long, so
 * that another controller's come soon.  Connections that wait for room get it in turn. */
#ifndef PUNT_PACKET_OUT_H
#define PUNT_PACKET_OUT_H

#include <control/channel.h>

struct program;
struct sw;

int sw_packet_outs_start(struct sw *sw);
void sw_packet_outs_stop(struct sw *sw);

/* Sends a packet through a worker and takes the program.  Where the worker's ring has no room, it waits here, before all
 * later ones; if too many wait already, it is dropped and counted.  c: the connection whose barriers wait for it; NULL:
 * none. */
void sw_packet_out(struct sw *sw, struct conn *c, struct program *program, uint32_t in_port,
                   const uint8_t *data, uint32_t len);

/* Whether there is room for one more; if not, the connections that wait are asked again when there
 * is. */
bool sw_packet_outs_have_room(struct sw *sw);
/* Whether all packet-outs of the connection have been sent; if not, it is asked again as above. */
bool sw_packet_outs_are_sent(struct sw *sw, struct conn *c);

/* A worker has sent some. */
void sw_packet_outs_go_on(void *sw);

#endif
