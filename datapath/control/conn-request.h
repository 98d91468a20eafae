/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of an open connection, on their way to their handlers. */
#ifndef CONTROL_CONN_REQUEST_H
#define CONTROL_CONN_REQUEST_H

#include "conn.h"

/* One whole frame, of which nothing is known but the length. */
void conn_frame(struct conn *c, struct of_bytes frame);

/* One of 1.3: conn_frame does this with it, or it comes out of the door. */
void conn_request(struct conn *c, struct of_bytes frame);

/* The first 8 bytes or more of a frame with an impossible length: the end, the framing is lost. */
void conn_bad_frame(struct conn *c, struct of_bytes head);

#endif
