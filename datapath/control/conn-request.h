/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of an open connection, on their way to their handlers. */
#ifndef CONTROL_CONN_REQUEST_H
#define CONTROL_CONN_REQUEST_H

#include "conn.h"

/* Whether messages of this type are handled here, at any time: hello, echoes, errors. */
bool conn_is_ours(uint8_t type);

/* Takes one whole frame; only its length has been checked. */
void conn_frame(struct conn *c, struct of_bytes frame);

/* Takes a frame of 1.3: from conn_frame, or translated by the door (of10/door.h). */
void conn_request(struct conn *c, struct of_bytes frame);

/* Takes the first 8 bytes or more of a frame with an impossible length.  The framing is lost, so
 * the connection ends. */
void conn_bad_frame(struct conn *c, struct of_bytes head);

#endif
