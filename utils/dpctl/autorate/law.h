/* SPDX-License-Identifier: Apache-2.0 */
/* The control law of qos-autorate: computes the class's rate from what was measured in a turn.
 * Whole numbers and no clock, so the same measurements always give the same rates.
 * tests/unit/dpctl/autorate.txt has what it made of 1,200 turns.
 *
 * Lower: the delay was above the limit, or about to be, in two turns that followed each other,
 * or far above it in one.  The rate becomes 10 to 25 % less than the link carried, the more the
 * higher the delay; then the link gets time to empty its buffer.  Raise: the class uses three
 * quarters of its rate and the delay is below half the limit; 12 % a second near the rate that
 * was last too much, 70 % a second elsewhere.  Idle (below a quarter of its rate for two
 * seconds): back to the base, 10 % a second. */
#ifndef DPCTL_AUTORATE_LAW_H
#define DPCTL_AUTORATE_LAW_H

#include <stdint.h>

/* Rates in bit/s, times in microseconds. */
struct autorate_bounds {
    uint64_t min, base, max;
    int64_t limit; /* of the delay above the baseline */
};

enum autorate_state {
    AUTORATE_HOLD,
    AUTORATE_RAISE,
    AUTORATE_LOWER,
    AUTORATE_DRAIN, /* lowered: the link empties its buffer */
    AUTORATE_IDLE
};

struct autorate_law {
    struct autorate_bounds bounds;
    uint64_t rate;
    uint64_t too_much;                /* the rate that was last too much; 0: none was */
    int64_t drain_least, drain_until; /* 0: the link isn't emptying its buffer */
    int64_t drain_from;               /* the delay when it began */
    int64_t idle_since;               /* -1: the class isn't idle */
    int64_t at, delay;                /* of the turn before; -1: there was none */
    unsigned bad;                     /* how often the delay was above the limit, to 2 */
};

struct autorate_turn {
    int64_t at;    /* when: a clock that never goes back */
    uint64_t sent; /* bit/s that the class sent since the turn before */
    int64_t delay; /* above the baseline; -1: not known */
};

/* The rate begins at the base. */
void autorate_begin(struct autorate_law *law, const struct autorate_bounds *bounds);

/* A turn: sets law->rate, always between min and max. */
enum autorate_state autorate_step(struct autorate_law *law, const struct autorate_turn *turn);

const char *autorate_state_name(enum autorate_state state); /* "raise" */

/* A reflector's delay while nothing waits: follows the least round trip at once, and a longer one by a
 * thousandth of the difference (of 100 ms at most), because a route may have become longer.  *baseline: 0 at
 * first. */
void autorate_baseline(int64_t *baseline, int64_t rtt);

/* The delay of all, from those of the n reflectors that answer: the median (of an even number the lower one), so
 * that one slow reflector lowers nothing.  Sorts v.  -1: n is 0. */
int64_t autorate_delay(int64_t *v, unsigned n);

#endif
