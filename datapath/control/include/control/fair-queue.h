/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded number of places, which ports take one after the other, each in a lane of its own.
 * Lanes are served in turn; where all places are taken, the longest lane has to give.  So a port
 * that floods takes nothing from the others.  A place is a number: what is in it is the caller's. */
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
    uint16_t free, free_last; /* places, that which has been free longest first */
    uint16_t unused;          /* lanes */
    uint16_t turn, turn_last; /* lanes in use; the first one's turn has come */
};

#define FAIR_QUEUE_NONE (-1)

void fair_queue_init(struct fair_queue *q);

/* A place at the end of the port's lane; FAIR_QUEUE_NONE: all are taken. */
int fair_queue_put(struct fair_queue *q, uint32_t port);

/* Takes out the oldest of the lane whose turn it is; FAIR_QUEUE_NONE: all are free. */
int fair_queue_pop(struct fair_queue *q);

/* The oldest of the longest lane; FAIR_QUEUE_NONE: all are free. */
int fair_queue_longest(const struct fair_queue *q);

/* The place, which is taken, is free again. */
void fair_queue_remove(struct fair_queue *q, int place);

/* Whose turn it is, without taking it out. */
static inline int
fair_queue_first(const struct fair_queue *q)
{
    return q->turn == UINT16_MAX ? FAIR_QUEUE_NONE : q->lane[q->turn].first;
}

#endif
