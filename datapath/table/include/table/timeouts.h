/* SPDX-License-Identifier: Apache-2.0 */
/* Idle and hard timeouts: a timer wheel with slots of an eighth of a second.
 *
 * A packet doesn't touch the wheel: it stores its time in the flow, and a flow that is due but was
 * used meanwhile goes into a later slot.  Flows without timeouts cost nothing.  Control thread.
 */
#ifndef TABLE_TIMEOUTS_H
#define TABLE_TIMEOUTS_H

#include <flow/flow.h>

struct timeouts;

struct timeouts *timeouts_new(void);
void timeouts_free(struct timeouts *t);

/* Watches the flow by its timeouts, created and used as they are now, also if it was watched
 * before. 0 or -ENOMEM. */
int timeouts_watch(struct timeouts *t, struct flow *f, uint64_t now);
void timeouts_forget(struct timeouts *t, struct flow *f);

/* A flow that has timed out by `now`, and why (OFPRR_), or NULL.  It is no longer watched. */
struct flow *timeouts_next(struct timeouts *t, uint64_t now, uint8_t *reason);

/* When to call timeouts_next again, ns; 0: nothing is watched. */
uint64_t timeouts_due(const struct timeouts *t, uint64_t now);

#endif
