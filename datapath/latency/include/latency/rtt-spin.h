/* SPDX-License-Identifier: Apache-2.0 */
/* QUIC's spin bit (rtt.h). */
#ifndef LATENCY_RTT_SPIN_H
#define LATENCY_RTT_SPIN_H

#include <latency/rtt-place.h>

/* What is not as it should be: random bits, or packets that came late.  The gate is shut for a while. */
static RTT_INLINE void
rtt_disbelieve(struct rtt_slot *s, struct rtt_way *mine, struct rtt_way *other,
               const struct rtt_seen *p)
{
    s->turns = 0;
    s->since = rtt_ticks(p->about) - RTT_PATIENCE - 1;
    mine->state = RTT_OVER;
    if (other->state > RTT_OVER)
        other->state = RTT_OVER;
}

/* The first packet of an edge, if it is one. */
static RTT_INLINE void
rtt_turning(struct rtt_way *mine, struct rtt_way *other, const struct rtt_seen *p, __u32 gap)
{
    __u32 took = 0;
    if (other->state >= RTT_STILL && other->turning)
        took = mine->last - other->turning;
    else if (other->state == RTT_TURNED)
        took = mine->last - other->turned;
    mine->turning = mine->last | 1;
    mine->took = gap <= took / 8 && took <= rtt_fine(RTT_MOST_NS) ? took : 0;
    if (mine->ifindex != p->ifindex || mine->queue != p->queue)
        other->took = 0;
    mine->ifindex = p->ifindex;
    mine->queue = p->queue;
}

/* The second one: *out is what the edge before this one ended. */
static RTT_INLINE int
rtt_turned(struct rtt_slot *s, struct rtt_way *mine, struct rtt_way *other,
           const struct rtt_seen *p, struct rtt_sample *out)
{
    int ends = 0;
    if (other->turning &&
        (mine->spin ^ other->spin) != p->server) { /* who answers it has seen it */
        other->spin ^= 1;
        other->turned = other->turning;
        other->turning = 0;
        other->state = RTT_TURNED;
    }
    int in_turn = (mine->spin ^ other->spin) == p->server;
    if (in_turn && mine->state == RTT_TURNED && other->state == RTT_TURNED) {
        ends = s->turns == RTT_PROVEN && other->took;
        if (s->turns < RTT_PROVEN) {
            s->turns++;
            s->since = rtt_ticks(p->about);
        }
    }
    if (ends) {
        s->answered = 1;
        out->us = other->took * 128 / 125;
        out->ifindex = mine->ifindex;
        out->queue = mine->queue;
    }
    other->took = 0;
    mine->spin ^= 1;
    mine->turned = mine->turning;
    mine->turning = 0;
    mine->state = RTT_TURNED;
    if (!in_turn)
        rtt_disbelieve(s, mine, other, p);
    return ends;
}

/* Returns 1 if it ends a round trip. */
static RTT_INLINE int
rtt_spin(struct rtt_slot *s, struct rtt_way *mine, struct rtt_way *other, const struct rtt_seen *p,
         struct rtt_sample *out)
{
    __u32 now = rtt_fine(RTT_CLOCK_NS()), gap = now - mine->last;
    mine->last = now;
    if (mine->state < RTT_STILL || gap > RTT_GAP) { /* what came before isn't known */
        mine->state = RTT_STILL;
        mine->spin = p->spin;
        mine->turning = mine->took = 0;
        if (other->state >= RTT_STILL)
            other->took = 0;
    } else if (p->spin == mine->spin) {
        if (mine->turning)
            rtt_disbelieve(s, mine, other, p);
        mine->turning = 0;
    } else if (!mine->turning) {
        rtt_turning(mine, other, p, gap);
    } else if (other->state >= RTT_STILL && now - other->last <= RTT_GAP) {
        return rtt_turned(s, mine, other, p, out);
    } else { /* the other's bit isn't known */
        mine->state = RTT_STILL;
        mine->spin = p->spin;
        mine->turning = mine->took = 0;
    }
    return 0;
}

#endif
