/* SPDX-License-Identifier: Apache-2.0 */
/* Which rings a worker reads in a round, and what it sleeps on.
 *
 * An epoll set costs a kernel callback per packet even while the worker is busy; poll() costs only
 * before a sleep, but then per descriptor.  So a ring that had packets lately is active: it is read
 * every round, and polled before a sleep.  The others are idle: they are in an epoll set, which is
 * one descriptor more to poll.  The set is looked at when the worker wakes up, and every
 * WATCH_LOOK_NS while it doesn't sleep.  A ring whose descriptor the kernel refuses to watch, or
 * that has an error for good, is blind: it is read every WATCH_BLIND_MS.
 *
 * A worker's own, for its thread only.  Whoever removes a port changes dp->watch_serial before a
 * grace period; the worker compares that at the beginning of each round, and then marks, sweeps and
 * adds, so no pointer here outlives its port. */
#ifndef DATAPLANE_WORKER_WATCH_H
#define DATAPLANE_WORKER_WATCH_H

#include <dataplane/worker-share.h>
#include <port/port.h>

#include <poll.h>

#define WATCH_ACTIVE   62 /* rings at most; further busy ones stay in the set */
#define WATCH_READY    64 /* others that a round reads, at most */
#define WATCH_LOOK_NS  100000
#define WATCH_TICK(ns) ((uint32_t)((ns) >> 20)) /* about a millisecond */
#define WATCH_REST     100                      /* ticks without a packet until a ring is idle */
#define WATCH_BLIND_MS 10

enum watch_state { WATCH_NONE, WATCH_IS_ACTIVE, WATCH_IS_IDLE, WATCH_IS_BLIND };

/* A port's ring, or its shaper's. */
struct watch_ring {
    struct port *port;
    int fd;
    uint32_t uid;  /* the port's: another port may get the same address and descriptor */
    uint32_t last; /* tick when it had something */
    uint8_t state;
    bool shaper; /* what comes out of the shaper of the port with this number */
    bool marked;
    bool full;      /* this round: the last batch was as many segments as it can be */
    uint32_t bytes; /* this round */
    struct share share;
};

struct watch {
    struct watch_ring *ring; /* by port number, two each; OFPP_LOCAL's are 0 and 1 */
    unsigned top;            /* beyond the last one in use */
    unsigned n_active, n_ready, n_idle, n_blind;
    uint16_t active[WATCH_ACTIVE];
    uint16_t ready[WATCH_READY];          /* idle and blind rings that this round reads */
    struct pollfd poll[2 + WATCH_ACTIVE]; /* the worker's own wake-up, the set, the active rings */
    int epoll_fd;
    uint32_t tick;        /* of this round */
    uint64_t looked;      /* at the set, ns */
    bool more;            /* the set had more ready rings than there was room for */
    uint32_t checked;     /* tick when active rings were last looked through */
    uint32_t blind_since; /* tick when the blind ones were last read */
    unsigned blind_next;
    uint64_t closed;      /* descriptors found closed: there should be none */
    uint64_t rests_until; /* the last of the rings */
};

/* wake_fd: an eventfd; it stays the caller's.  -ENOMEM or -errno of epoll_create1. */
int watch_open(struct watch *w, int wake_fd);
void watch_close(struct watch *w);

/* After a change of ports: watch_mark every ring there is, watch_sweep, then watch_add every ring.
 * Rings that were there before stay what they are.  no: the port's number (1 to PORT_MAX,
 * OFPP_LOCAL). */
void watch_mark(struct watch *w, uint32_t no, bool shaper, struct port *port, int fd);
void watch_sweep(struct watch *w, uint64_t now);
void watch_add(struct watch *w, uint32_t no, bool shaper, struct port *port, int fd);

/* At the beginning of a round. */
void watch_begin(struct watch *w, uint64_t now);

/* The i-th ring that this round reads, or NULL behind the last one. */
static inline struct watch_ring *
watch_read(struct watch *w, unsigned i)
{
    if (i < w->n_active)
        return &w->ring[w->active[i]];
    i -= w->n_active;
    return i < w->n_ready ? &w->ring[w->ready[i]] : NULL;
}

/* Whether the ring takes no time from others: none of them had anything lately. */
static inline bool
watch_is_alone(const struct watch *w)
{
    return w->n_active <= 1;
}

/* Sleeps until there is something to do, at most until `wake_at` (0: for ever).  An active ring that
 * rests ends the sleep when its time has come.  The ports may change meanwhile. */
void watch_sleep(struct watch *w, uint64_t now, uint64_t wake_at);
/* Notes what the sleep has found out about the rings; not to be called when the ports have changed
 * since watch_sleep. */
void watch_woken(struct watch *w);

#endif
