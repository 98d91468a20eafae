/* SPDX-License-Identifier: Apache-2.0 */
/* A fair queue: a fixed number of places, shared by ports.  Each port has a lane, which is first
 * in, first out; the lanes are served in turn.  When all places are taken, the caller drops from
 * the longest lane, so a port that floods takes nothing from the others.  A place is a number: what
 * waits in it is the caller's. */
#ifndef CONTROL_FAIR_QUEUE_H
#define CONTROL_FAIR_QUEUE_H

#include <stdint.h>

#define FAIR_QUEUE_PLACES 256

struct fair_queue {
    struct {
        uint16_t prev, next; /* in its lane, or among the free */
        uint16_t lane;
    } place[FAIR_QUEUE_PLACES];
    struct {
        uint32_t port;
        uint16_t first, last, n; /* its places, the oldest first */
        uint16_t prev, next;     /* in the order of turns, or among the unused */
    } lane[FAIR_QUEUE_PLACES];
    uint16_t free, free_last; /* places, the one longest free first */
    uint16_t unused;          /* lanes */
    uint16_t turn, turn_last; /* lanes in use, in the order of their turns */
};

#define FAIR_QUEUE_NONE (-1)

void fair_queue_init(struct fair_queue *q);

/* A place at the end of the port's lane; FAIR_QUEUE_NONE: all are taken. */
int fair_queue_put(struct fair_queue *q, uint32_t port);

/* Takes out the oldest of the lane whose turn it is; FAIR_QUEUE_NONE: all are free. */
int fair_queue_pop(struct fair_queue *q);

/* The oldest of the longest lane; FAIR_QUEUE_NONE: all are free. */
int fair_queue_longest(const struct fair_queue *q);

/* Frees a place that is taken. */
void fair_queue_remove(struct fair_queue *q, int place);

/* The one that fair_queue_pop would take. */
static inline int
fair_queue_first(const struct fair_queue *q)
{
    return q->turn == UINT16_MAX ? FAIR_QUEUE_NONE : q->lane[q->turn].first;
}

#endif
