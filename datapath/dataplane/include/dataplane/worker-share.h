/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a worker's time a ring may take from the others.
 *
 * A worker reads its rings in turn, a batch each.  A packet that is sent to a thousand ports takes
 * as long as a thousand others, so turns that count packets would let one port take nearly all of
 * the time.  So a ring whose batch took long is read in smaller batches for a while.  A ring of
 * which a single packet takes long rests after it, until the packet's time is an eighth of all
 * time.  It does not rest while no other ring has had anything lately.
 *
 * What a batch took is measured in the thread's processor time, because a worker that the machine
 * interrupts is slow as well.  Reading it is a system call, so it is read only after slow batches,
 * and for some seconds after one once a millisecond.
 *
 * A worker's own; times are given in ns. */
#ifndef DATAPLANE_WORKER_SHARE_H
#define DATAPLANE_WORKER_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#define SHARE_BATCH_NS UINT64_C(64000)   /* what a batch of dear packets is to take */
#define SHARE_SLOW_NS  UINT64_C(4000000) /* more is slow; bulk TCP in smaller batches lost a tenth */
#define SHARE_BYTE_NS  4 /* a batch of super-packets may take longer, by its bytes */
#define SHARE_HOLD_NS  UINT64_C(100000000)   /* for so long after a slow batch they are smaller */
#define SHARE_MARK_NS  UINT64_C(1000000)     /* the clocks are compared so often */
#define SHARE_WARY_NS  UINT64_C(10000000000) /* for so long after a slow batch */
#define SHARE_RESTS    7                     /* times what it took */

/* Of a ring. */
struct share {
    uint64_t small_until, rests_until;
    uint32_t batch;
};

/* Of a worker: the two clocks at one moment. */
struct share_clocks {
    uint64_t wall, cpu;
    uint64_t wary_until;
};

/* How many packets the ring's next batch may have; most: for a ring that has not been slow. */
static inline unsigned
share_batch(const struct share *s, uint64_t now, unsigned most)
{
    return now < s->small_until && s->batch < most ? s->batch : most;
}

static inline bool
share_rests(const struct share *s, uint64_t now)
{
    return now < s->rests_until;
}

/* Whether it is time for share_mark. */
static inline bool
share_is_due(const struct share_clocks *c, uint64_t now)
{
    return now < c->wary_until && now - c->wall > SHARE_MARK_NS;
}

/* To be called after a sleep, in which time passes but no processor time: drops the last mark. */
static inline void
share_slept(struct share_clocks *c)
{
    c->wall = 0;
}

/* More than this is slow for a batch of so many bytes. */
static inline uint64_t
share_slow(uint32_t bytes)
{
    uint64_t may = (uint64_t)bytes * SHARE_BYTE_NS;
    return may > SHARE_SLOW_NS ? may : SHARE_SLOW_NS;
}

void share_mark(struct share_clocks *c, uint64_t now, uint64_t cpu);

/* A batch began at `began` and has been slow.  Returns the processor time that it has certainly
 * taken.  cpu: the thread's, now. */
uint64_t share_took(struct share_clocks *c, uint64_t began, uint64_t now, uint64_t cpu);

/* A batch of n packets, with so many bytes, took so much processor time. */
void share_charge(struct share *s, unsigned n, uint32_t bytes, uint64_t took, uint64_t now);

#endif
