/* SPDX-License-Identifier: Apache-2.0 */
/* A connection's life: reading, framing, phases, silence, the end. */
#ifndef CONTROL_CONN_LIFE_H
#define CONTROL_CONN_LIFE_H

#include "conn.h"

/* A connection over a stream (it may be one that is connecting), which it owns; closed on failure.
 * `peer` is copied. */
int conn_new(struct channel *ch, struct stream *s, const char *peer, struct conn **out);

/* These two free c: for callbacks of the loop only. */
void conn_close(struct conn *c);
void conn_run(struct conn *c); /* sends, goes on with what was held up, closes where that is due */

#endif
