/* SPDX-License-Identifier: Apache-2.0 */
/* Idle and hard timeouts: a wheel of an eighth of a second's slots.
 *
 * A packet does not touch the wheel: it leaves its time in the flow, and a flow whose turn comes
 * while it was used since is put in again for later.  Flows without timeouts cost nothing.
 */
#ifndef TABLE_TIMEOUTS_H
#define TABLE_TIMEOUTS_H

#include <table/flow.h>

struct timeouts;

struct timeouts *timeouts_new(void);
void timeouts_free(struct timeouts *t);

/* The clock of flow.used: milliseconds, wrapping. */
static inline uint32_t
timeouts_ms(uint64_t ns)
{
    return (uint32_t)(ns / 1000000);
}

/* Watches the flow by its present timeouts, created and used (again, if it was watched already). */
int timeouts_watch(struct timeouts *t, struct flow *f, uint64_t now);
void timeouts_forget(struct timeouts *t, struct flow *f);

/* The next flow that has timed out by `now`, and why (OFPRR_); NULL: no more.  It is forgotten. */
struct flow *timeouts_next(struct timeouts *t, uint64_t now, uint8_t *reason);

/* When to look again; 0: nothing is watched. */
uint64_t timeouts_due(const struct timeouts *t, uint64_t now);

#endif
