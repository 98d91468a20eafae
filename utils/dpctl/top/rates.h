/* SPDX-License-Identifier: Apache-2.0 */
/* The items of two looks, and how fast their counters grew between them; no I/O. */
#ifndef TOP_RATES_H
#define TOP_RATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOP_VALUES 9

/* A port, a queue, a flow ... at one look.  `v` are counters and states; a switch says all ones
 * where it does not count (TOP_UNKNOWN). */
#define TOP_UNKNOWN UINT64_MAX
struct top_item {
    uint64_t key[2];
    uint64_t age_us; /* how long it exists, by the switch's clock; 0: not known */
    uint64_t v[TOP_VALUES];
    double rate[TOP_VALUES]; /* of v, per second; of states it means nothing */
    bool measured;           /* there was a look before */
    const char *name;
    const char *detail;  /* NULL: it is made of `wire` when it is shown */
    const uint8_t *wire; /* of a flow: its entry in the reply */
};

/* The counters of the look before, sorted by key. */
struct top_last {
    struct top_past {
        uint64_t key[2], age_us, v[TOP_VALUES];
    } * v;
    size_t n;
    int64_t at_us; /* CLOCK_MONOTONIC; 0: there was none */
};

/* Fills in `rate` and `measured`. The time between two looks is how much the item has aged by
 * the switch's own report, or else the time between the looks here.  An item that is younger, or
 * counts less, than before was made anew: it has no rate yet. */
void top_rates(struct top_item *v, size_t n, const struct top_last *last, int64_t now_us);

/* Keeps the counters for the next look.  False: no memory. */
bool top_remember(struct top_last *last, const struct top_item *v, size_t n, int64_t now_us);

/* By this value, or its rate, the highest first; equal ones by key.  value -1: by key alone. */
void top_sort(struct top_item *v, size_t n, int value, bool by_rate, bool reverse);

/* Two words for a key out of any bytes. */
void top_hash(const void *p, size_t n, uint64_t key[2]);

#endif
