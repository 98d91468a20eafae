/* SPDX-License-Identifier: Apache-2.0 */
/* Packet-ins that wait for a connection. */
#ifndef CONTROL_CONN_PACKET_IN_H
#define CONTROL_CONN_PACKET_IN_H

#include "conn.h"

void conn_packet_ins_run(struct conn *c); /* sends those whose turn has come, as there is room */
void conn_packet_ins_free(struct conn *c);
void channel_packet_ins_due(void *ch); /* the timer's */

#endif
