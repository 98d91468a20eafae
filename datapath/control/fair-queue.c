/* SPDX-License-Identifier: Apache-2.0 */
#include <control/fair-queue.h>

#define NONE UINT16_MAX

void
fair_queue_init(struct fair_queue *q)
{
    for (uint16_t i = 0; i < FAIR_QUEUE_PLACES; i++) {
        uint16_t next = i + 1 < FAIR_QUEUE_PLACES ? (uint16_t)(i + 1) : NONE;
        q->place[i].next = next;
        q->lane[i].next = next;
    }
    q->free = q->unused = 0;
    q->free_last = FAIR_QUEUE_PLACES - 1;
    q->turn = q->turn_last = NONE;
}

/* ------------------------------------------------------------------ the turns */

static void
turn_append(struct fair_queue *q, uint16_t lane)
{
    q->lane[lane].prev = q->turn_last;
    q->lane[lane].next = NONE;
    *(q->turn_last == NONE ? &q->turn : &q->lane[q->turn_last].next) = lane;
    q->turn_last = lane;
}

static void
turn_remove(struct fair_queue *q, uint16_t lane)
{
    uint16_t prev = q->lane[lane].prev, next = q->lane[lane].next;
    *(prev == NONE ? &q->turn : &q->lane[prev].next) = next;
    *(next == NONE ? &q->turn_last : &q->lane[next].prev) = prev;
}

/* The port's lane, a new one where it has none: there are as many as places. */
static uint16_t
lane_of(struct fair_queue *q, uint32_t port)
{
    for (uint16_t i = q->turn; i != NONE; i = q->lane[i].next)
        if (q->lane[i].port == port)
            return i;
    uint16_t lane = q->unused;
    q->unused = q->lane[lane].next;
    q->lane[lane].port = port;
    q->lane[lane].n = 0;
    q->lane[lane].first = q->lane[lane].last = NONE;
    turn_append(q, lane);
    return lane;
}

/* ------------------------------------------------------------------ the places */

int
fair_queue_put(struct fair_queue *q, uint32_t port)
{
    uint16_t place = q->free;
    if (place == NONE)
        return FAIR_QUEUE_NONE;
    q->free = q->place[place].next;
    uint16_t lane = lane_of(q, port), last = q->lane[lane].last;
    q->place[place].lane = lane;
    q->place[place].prev = last;
    q->place[place].next = NONE;
    *(last == NONE ? &q->lane[lane].first : &q->place[last].next) = place;
    q->lane[lane].last = place;
    q->lane[lane].n++;
    return place;
}

void
fair_queue_remove(struct fair_queue *q, int number)
{
    uint16_t place = (uint16_t)number, lane = q->place[place].lane;
    uint16_t prev = q->place[place].prev, next = q->place[place].next;
    *(prev == NONE ? &q->lane[lane].first : &q->place[prev].next) = next;
    *(next == NONE ? &q->lane[lane].last : &q->place[next].prev) = prev;
    if (!--q->lane[lane].n) {
        turn_remove(q, lane);
        q->lane[lane].next = q->unused;
        q->unused = lane;
    }
    q->place[place].next = NONE;
    *(q->free == NONE ? &q->free : &q->place[q->free_last].next) = place;
    q->free_last = place;
}

int
fair_queue_pop(struct fair_queue *q)
{
    int place = fair_queue_first(q);
    if (place == FAIR_QUEUE_NONE)
        return place;
    uint16_t lane = q->turn;
    turn_remove(q, lane);
    turn_append(q, lane);
    fair_queue_remove(q, place);
    return place;
}

int
fair_queue_longest(const struct fair_queue *q)
{
    uint16_t longest = q->turn;
    if (longest == NONE)
        return FAIR_QUEUE_NONE;
    for (uint16_t i = q->lane[longest].next; i != NONE; i = q->lane[i].next)
        if (q->lane[i].n > q->lane[longest].n)
            longest = i;
    return q->lane[longest].first;
}
