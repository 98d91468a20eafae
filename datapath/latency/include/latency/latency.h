/* SPDX-License-Identifier: Apache-2.0 */
/* How long packets take, for each queue of a port: round trips (probes.h), and how long they wait in the queue itself.
 * Control thread.
 *
 * Percentiles are of the last LATENCY_SPAN_MS.  A window keeps LATENCY_KEPT values, so of many samples it takes one
 * in LATENCY_SPAN_MS / LATENCY_KEPT: every part of the time counts the same.  A value is kept to 0.1 %. */
#ifndef LATENCY_LATENCY_H
#define LATENCY_LATENCY_H

#include <oflib/openflow.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LATENCY_SPAN_MS 10000u
#define LATENCY_KEPT    128u
#define LATENCY_MOST    16384u     /* queues that are followed, at 2 KB each */
#define LATENCY_NONE    UINT32_MAX /* no sample in that time */
#define LATENCY_RECENT  4096u      /* round trips that latency_recent knows, at 40 bytes each */

struct latency;

/* Which queue. */
struct latency_key {
    uint32_t port_no, class_id; /* class_id 0: the port itself, which has no queues */
    uint8_t in;                 /* the queue is of what enters by the port */
};

/* Who says how long packets wait.  The numbers are QOS_LATENCY's. */
enum latency_source {
    LATENCY_SCHEDULER = 1, /* the scheduler itself */
    LATENCY_CLOCK = 2,     /* the kernel's clock, of packets that pass */
    LATENCY_BACKLOG = 3,   /* what waits, at the rate that the queue gets */
};

/* us; LATENCY_NONE. */
struct latency_figures {
    uint64_t samples; /* since the queue is followed */
    uint32_t min, p50, p90, p99;
};

/* How many samples took how long since the queue is followed: at most the bound of OFP_LATENCY_BOUNDS, of the last
 * place longer than all. */
struct latency_histogram {
    uint64_t sum; /* us */
    uint64_t n[OFP_LATENCY_BOUNDS_N + 1];
};

/* TCP segments that were counted (rtt.h), and those of them that were sent again: lost behind us, or before us. */
struct latency_segments {
    uint64_t counted, behind, before;
};

struct latency_view {
    struct latency_key key;
    struct latency_figures rtt, delay;
    const struct latency_histogram *all_rtt, *all_delay; /* while latency_each runs */
    struct latency_segments all_segments,
        segments;  /* since the queue is followed; in LATENCY_SPAN_MS */
    uint32_t path; /* least round trip of the last ten minutes */
    uint8_t source;
};

struct latency *latency_new(void); /* NULL: no memory */
void latency_free(struct latency *l);

/* A sample.  now: ns, never less than before.  Where there is no memory, or too many queues are followed already, it
 * is counted as lost.  pair: a number for the two hosts.  latency_rtt returns whether it is slow:
 * OFP_LATENCY_SLOW_US above the path's least. */
bool latency_rtt(struct latency *l, const struct latency_key *k, uint32_t us, uint32_t pair,
                 uint64_t now);
void latency_delay(struct latency *l, const struct latency_key *k, uint32_t us,
                   enum latency_source source, uint64_t now);
void latency_count(struct latency *l, const struct latency_key *k,
                   const struct latency_segments *more, uint64_t now);
uint64_t latency_lost(const struct latency *l);

/* The queue is gone: if there is one of this name again, it begins anew. */
void latency_forget(struct latency *l, const struct latency_key *k);
/* All of a port. */
void latency_forget_port(struct latency *l, uint32_t port_no);

/* Calls fn in the order of port, direction and class.  port_no, class_id: UINT32_MAX: all.  0 or -ENOMEM. */
typedef void latency_fn(void *ctx, const struct latency_view *v);
int latency_each(struct latency *l, uint32_t port_no, uint32_t class_id, uint64_t now,
                 latency_fn *fn, void *ctx);

/* A round trip by itself. */
struct latency_round_trip {
    uint64_t number; /* of all, from 1 */
    uint64_t at;     /* when it was read, ns */
    struct latency_key key;
    uint32_t us, pair;
};

/* Calls fn for those with a number above `after`, oldest first, as far back as LATENCY_RECENT.  port_no, class_id:
 * UINT32_MAX: all.  They are kept from the first call on.  0 or -ENOMEM. */
typedef void latency_recent_fn(void *ctx, const struct latency_round_trip *r);
int latency_recent(struct latency *l, uint32_t port_no, uint32_t class_id, uint64_t after,
                   latency_recent_fn *fn, void *ctx);

/* The p-th percentile (nearest rank) of n values, which it sorts.  LATENCY_NONE: n is 0. */
uint32_t latency_percentile(uint32_t *v, size_t n, unsigned p);

#endif
