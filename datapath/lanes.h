/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded number of places, which ports take one after the other, each in a lane of its own.
 * Lanes are served in turn; where all places are taken, the longest lane has to give.  So a port
 * that floods takes nothing from the others.  A place is a number: what is in it is the caller's. */
#ifndef DATAPATH_LANES_H
#define DATAPATH_LANES_H

#include <stdint.h>

#define LANES_PLACES 256

struct lanes {
    struct {
        uint16_t prev, next; /* in its lane, or among the free */
        uint16_t lane;
    } place[LANES_PLACES];
    struct {
        uint32_t port;
        uint16_t first, last, n; /* its places, the oldest first */
        uint16_t prev, next;     /* in the order of turns, or among the unused */
    } lane[LANES_PLACES];
    uint16_t free, free_last; /* places, that which has been free longest first */
    uint16_t unused;          /* lanes */
    uint16_t turn, turn_last; /* lanes in use; the first one's turn has come */
};

#define LANES_NONE (-1)

void lanes_init(struct lanes *l);

/* A place at the end of the port's lane; LANES_NONE: all are taken. */
int lanes_put(struct lanes *l, uint32_t port);

/* Takes out the oldest of the lane whose turn it is; LANES_NONE: all are free. */
int lanes_pop(struct lanes *l);

/* The oldest of the longest lane; LANES_NONE: all are free. */
int lanes_longest(const struct lanes *l);

/* The place, which is taken, is free again. */
void lanes_remove(struct lanes *l, int place);

/* Whose turn it is, without taking it out. */
static inline int
lanes_first(const struct lanes *l)
{
    return l->turn == UINT16_MAX ? LANES_NONE : l->lane[l->turn].first;
}

#endif
