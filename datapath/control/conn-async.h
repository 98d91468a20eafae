/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous messages: which a connection gets, and how they wait for it. */
#ifndef CONTROL_CONN_ASYNC_H
#define CONTROL_CONN_ASYNC_H

#include "conn.h"

/* Bytes that may wait for a peer that reads, and for one that hasn't for ASYNC_STUCK_NS. */
#define ASYNC_MAX       (64u << 20)
#define ASYNC_STUCK_MAX (4u << 20)
#define ASYNC_STUCK_NS  UINT64_C(5000000000)

bool conn_wants(const struct conn *c, enum async_kind kind, uint8_t reason);
void conn_async_run(struct conn *c); /* sends those that wait, as far as there is room */
void channel_async_due(void *ch);    /* the timer's */

#endif
