/* SPDX-License-Identifier: Apache-2.0 */
#include <control/fair-queue.h>

#define NONE UINT16_MAX

void
fair_queue_init(struct fair_queue *l)
{
    for (uint16_t i = 0; i < LANES_PLACES; i++) {
        uint16_t next = i + 1 < LANES_PLACES ? (uint16_t)(i + 1) : NONE;
        l->place[i].next = next;
        l->lane[i].next = next;
    }
    l->free = l->unused = 0;
    l->free_last = LANES_PLACES - 1;
    l->turn = l->turn_last = NONE;
}

/* ------------------------------------------------------------------ the turns */

static void
turn_append(struct fair_queue *l, uint16_t lane)
{
    l->lane[lane].prev = l->turn_last;
    l->lane[lane].next = NONE;
    *(l->turn_last == NONE ? &l->turn : &l->lane[l->turn_last].next) = lane;
    l->turn_last = lane;
}

static void
turn_remove(struct fair_queue *l, uint16_t lane)
{
    uint16_t prev = l->lane[lane].prev, next = l->lane[lane].next;
    *(prev == NONE ? &l->turn : &l->lane[prev].next) = next;
    *(next == NONE ? &l->turn_last : &l->lane[next].prev) = prev;
}

/* The port's lane, a new one where it has none: there are as many as places. */
static uint16_t
lane_of(struct fair_queue *l, uint32_t port)
{
    for (uint16_t i = l->turn; i != NONE; i = l->lane[i].next)
        if (l->lane[i].port == port)
            return i;
    uint16_t lane = l->unused;
    l->unused = l->lane[lane].next;
    l->lane[lane].port = port;
    l->lane[lane].n = 0;
    l->lane[lane].first = l->lane[lane].last = NONE;
    turn_append(l, lane);
    return lane;
}

/* ------------------------------------------------------------------ the places */

int
fair_queue_put(struct fair_queue *l, uint32_t port)
{
    uint16_t place = l->free;
    if (place == NONE)
        return LANES_NONE;
    l->free = l->place[place].next;
    uint16_t lane = lane_of(l, port), last = l->lane[lane].last;
    l->place[place].lane = lane;
    l->place[place].prev = last;
    l->place[place].next = NONE;
    *(last == NONE ? &l->lane[lane].first : &l->place[last].next) = place;
    l->lane[lane].last = place;
    l->lane[lane].n++;
    return place;
}

void
fair_queue_remove(struct fair_queue *l, int number)
{
    uint16_t place = (uint16_t)number, lane = l->place[place].lane;
    uint16_t prev = l->place[place].prev, next = l->place[place].next;
    *(prev == NONE ? &l->lane[lane].first : &l->place[prev].next) = next;
    *(next == NONE ? &l->lane[lane].last : &l->place[next].prev) = prev;
    if (!--l->lane[lane].n) {
        turn_remove(l, lane);
        l->lane[lane].next = l->unused;
        l->unused = lane;
    }
    l->place[place].next = NONE;
    *(l->free == NONE ? &l->free : &l->place[l->free_last].next) = place;
    l->free_last = place;
}

int
fair_queue_pop(struct fair_queue *l)
{
    int place = fair_queue_first(l);
    if (place == LANES_NONE)
        return place;
    uint16_t lane = l->turn;
    turn_remove(l, lane);
    turn_append(l, lane);
    fair_queue_remove(l, place);
    return place;
}

int
fair_queue_longest(const struct fair_queue *l)
{
    uint16_t longest = l->turn;
    if (longest == NONE)
        return LANES_NONE;
    for (uint16_t i = l->lane[longest].next; i != NONE; i = l->lane[i].next)
        if (l->lane[i].n > l->lane[longest].n)
            longest = i;
    return l->lane[longest].first;
}
