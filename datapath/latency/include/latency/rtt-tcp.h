/* SPDX-License-Identifier: Apache-2.0 */
/* Round trips of TCP, and segments that were sent again (rtt.h).
 *
 * Segments are counted from the first acknowledged probe of an opening on: since then every segment was seen, so a lower
 * number than the highest is one sent again.  It was lost
 * - before it came here, if a gap in the numbers came first: that many bytes are missing until they come or all is
 *   acknowledged.  What comes within RTT_LATE of the gap only came late, and isn't counted;
 * - behind us otherwise, as we had seen it: in the queue or on the way after it.
 * They are counted when they pass, not when they are lost; so their share of all segments counted in the same
 * time is that of the connection.  Not counted are a SYN, and a byte before the highest number: a keep-alive, or a
 * probe of a shut window. */
#ifndef LATENCY_RTT_TCP_H
#define LATENCY_RTT_TCP_H

#include <latency/rtt-place.h>

/* Of so many of the packet's bytes. */
static RTT_INLINE __u32
rtt_segments(const struct rtt_seen *p, __u32 bytes)
{
    __u32 n = p->first < bytes ? (bytes - 1) / p->first + 1 : 1;
    return n < RTT_TALLY_MOST ? n : RTT_TALLY_MOST;
}

/* A segment before the highest number, of which so many bytes were sent before.  What it adds to the tally. */
static RTT_INLINE __u32
rtt_count_again(struct rtt_way *w, const struct rtt_seen *p, __u32 old)
{
    __u32 n = rtt_segments(p, old);
    if (!w->missing)
        return n << RTT_BEHIND;
    w->missing = w->missing > old ? w->missing - old : 0;
    return rtt_fine(RTT_CLOCK_NS()) - w->since < RTT_LATE ? 0 : n << RTT_BEFORE;
}

/* A segment, before which bytes are missing, or (ahead is negative) which was sent before. */
static RTT_INLINE void
rtt_count(struct rtt_way *w, const struct rtt_seen *p, __s32 ahead, __u32 *tally)
{
    __u32 n = rtt_segments(p, p->len), old = -(__u32)ahead;
    if (ahead == -1 && p->len == 1)
        return;
    if (ahead > 0)
        w->missing += (__u32)ahead;
    else if (ahead)
        n += rtt_count_again(w, p, old < p->len ? old : p->len);
    if (!(*tally & RTT_TALLY_FULL))
        *tally += n;
}

/* Sent again, or something is missing. */
static RTT_INLINE void
rtt_disorder(struct rtt_way *w, const struct rtt_seen *p, __s32 ahead)
{
    if (w->state != RTT_AGAIN)
        w->missing = 0;
    if (w->state != RTT_AGAIN || (ahead > 0 && !w->missing))
        w->since = rtt_fine(RTT_CLOCK_NS());
    w->ifindex = p->ifindex;
    w->queue = p->queue;
    w->state = RTT_AGAIN;
}

/* A segment with data, SYN or FIN. */
static RTT_INLINE void
rtt_segment(struct rtt_way *w, const struct rtt_seen *p, __u32 *tally)
{
    __u32 end = p->seq + p->len;
    __s32 ahead = (__s32)(p->seq - w->high);
    int follows = !ahead || w->state == RTT_NONE || (p->syn && w->state <= RTT_ARMED);
    if (p->syn)
        w->sure = 0;
    if (!follows)
        rtt_disorder(w, p, ahead);
    if (w->sure)
        rtt_count(w, p, ahead, tally);
    if (follows || (__s32)(end - w->high) > 0)
        w->high = end;
    if (!follows)
        w->end = w->high;
    else if (p->syn && w->state <= RTT_ARMED)
        rtt_begin(w, p, end, RTT_FLYING);
    else if (w->state == RTT_NONE)
        w->state = RTT_ARMED;
    else if (w->state == RTT_ARMED)
        rtt_begin(w, p, p->seq + p->first, p->first != p->len ? RTT_FLYING : RTT_ALONE);
    else if (w->state == RTT_ALONE)
        w->state = RTT_CLOCK_NS() - w->sent_at < RTT_FOLLOWS_NS ? RTT_FLYING
                   : w->sure                                    ? RTT_ARMED
                                                                : RTT_NONE;
    else if (w->state == RTT_FLYING &&
             (__s64)(p->about - w->sent_at) > (__s64)RTT_MOST_NS) { /* nobody answers */
        w->state = RTT_NONE;
        w->sure = 0;
    }
}

/* A segment that acknowledges.  The other way goes on from there: all that was sent before has come. */
static RTT_INLINE int
rtt_acknowledges(struct rtt_slot *s, struct rtt_way *other, const struct rtt_seen *p,
                 struct rtt_sample *out)
{
    __u8 was = other->state;
    if (was <= RTT_ARMED || (__s32)(p->ack - other->end) < 0)
        return 0;
    int ends = rtt_answer(s, other, out);
    if (was == RTT_AGAIN)
        out->us = rtt_fine(RTT_CLOCK_NS()) - other->since;
    out->us |= !out->us; /* also of what is no sample, for rtt_leave */
    s->answers++;
    other->state = RTT_ARMED;
    other->sure = (__s32)(p->ack - other->high) <= 0;
    return ends;
}

/* What was counted of a way, with its sample or without. */
static RTT_INLINE void
rtt_take_tally(const struct rtt_way *w, __u32 *tally, struct rtt_sample *out)
{
    out->tally = *tally;
    out->ifindex = w->ifindex;
    out->queue = w->queue;
    *tally = 0;
}

static RTT_INLINE int
rtt_tcp(struct rtt_slot *s, __u32 dir, const struct rtt_seen *p, struct rtt_sample *out)
{
    struct rtt_way *mine = &s->way[dir & 1], *other = &s->way[~dir & 1];
    __u32 *tally = &s->tally[dir & 1];
    int ends = p->acks && rtt_acknowledges(s, other, p, out);
    if (out->us)
        rtt_take_tally(other, &s->tally[~dir & 1], out);
    if (p->len)
        rtt_segment(mine, p, tally);
    if (!out->us && *tally & RTT_TALLY_FULL)
        rtt_take_tally(mine, tally, out);
    return ends;
}

#endif
