/* SPDX-License-Identifier: Apache-2.0 */
/* Round trips of what passes the port, in place of probes: those of each pair of hosts as a reflector's
 * (ROUND_TRIPS of docs/reference/extensions.md). */
#ifndef DPCTL_AUTORATE_PASSIVE_H
#define DPCTL_AUTORATE_PASSIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PASSIVE_PAIRS 64 /* that are remembered: those heard of last */

#define PASSIVE_FRESH 1000000 /* us: what was read longer ago is not of this turn */

/* Times in microseconds of CLOCK_MONOTONIC. */
struct passive_pair {
    uint32_t id;
    int64_t baseline;
    int64_t delay;    /* the least since the turn began; -1: no round trip */
    int64_t heard_at; /* -1: the place is free */
};

struct passive {
    bool on;
    uint64_t after; /* the number of the last round trip that was read */
    int64_t heard_at;
    struct passive_pair v[PASSIVE_PAIRS];
};

void passive_begin(struct passive *p, int64_t now);

/* Round trips from here on are of a new turn. */
void passive_turn(struct passive *p);

/* A round trip.  wait: what of it was spent in the queues whose rate is set. */
void passive_take(struct passive *p, uint32_t pair, int64_t rtt, int64_t wait, int64_t now);

/* The delay above the baselines in this turn, over all pairs (autorate_delay).  -1: there was no round trip.
 * *pairs: of how many; *baseline: the least of theirs. */
int64_t passive_delay(const struct passive *p, unsigned *pairs, int64_t *baseline);

#endif
