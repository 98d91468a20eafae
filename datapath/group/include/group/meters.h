/* SPDX-License-Identifier: Apache-2.0 */
/* Meters (5.7, 6.5): token buckets that refill continuously.
 *
 * A band stores the time at which its bucket will be full again, in sixteenths of a nanosecond.
 * Workers move it by compare-and-swap, so they share the bucket without a lock.  A packet passes
 * while the bucket is not in debt, and may put it there.  So a burst size below a packet's length
 * does not stop large packets, and the rate over time is exact.
 *
 * Several workers would wait for each other's cache line at each packet.  So each takes a slice
 * more than its packet costs, and pays the next packets with that.  All slices together are a
 * sixteenth of the burst, and the bucket is smaller by as much: what passes in any time is bounded
 * as it is with one worker.
 *
 * A bucket may lie in memory that the kernel's programs share (meters_share).  They take what a packet
 * costs, without a slice.  The bounds hold, since all compare and swap the same word.
 */
#ifndef GROUP_METERS_H
#define GROUP_METERS_H

#include <flow/flow.h>
#include <flow/limits.h>
#include <packet/packet.h>
#include <shared/idmap.h>

#define METER_MAX_BANDS 16

struct band {
    uint16_t type; /* OFPMBT_ */
    uint8_t prec_level;
    uint32_t rate;     /* kbit/s or packets/s */
    uint32_t burst;    /* kbit or packets */
    uint64_t depth;    /* the burst as time, 1/16 ns */
    uint64_t slice;    /* what a worker takes beyond a packet's cost, 1/16 ns; 0: only one worker */
    uint64_t room;     /* the depth without what the workers may hold */
    uint64_t *full_at; /* 1/16 ns; shared by the workers, and perhaps by the kernel */
    uint64_t own;      /* that, unless the kernel shares it */
};

struct meter {
    IDMAP_OBJECT
    uint16_t flags; /* OFPMF_ */
    uint32_t n_bands;
    uint64_t created;
    struct flow_counter *total; /* the meter's, for each worker: a modify hands it on (6.5) */
    /* For each worker: the bands', then what it holds of each band (credit_of). */
    struct flow_counter *counters;
    uint32_t total_stride, stride; /* counters from one worker to the next */
    bool owns_total;               /* frees it */
    const struct meter_sharing *sharing;
    int kernel_place; /* -1: the kernel doesn't share its buckets */
    struct band bands[];
};

struct meters;

#define METER_SHARED_BANDS 2

/* Where the buckets are that the kernel's programs share. */
struct meter_sharing {
    /* A meter is made, by an add or a modify, whose bands are 1 to METER_SHARED_BANDS that drop: their
     * `rate` and `room` and the meter's flags are final.  Returns a place, and each band's full_at
     * there, which is 8-aligned and 0; -1: none is free. */
    int (*take)(void *ctx, const struct meter *mt, uint64_t *full_at[METER_SHARED_BANDS]);
    /* The meter is freed: after the grace period that follows its removal, or what has replaced
     * it; also by rcu_wait after meters_free. */
    void (*leave)(void *ctx, int place);
    void *ctx;
};

struct meters *meters_new(unsigned n_workers); /* NULL: no memory */
void meters_free(struct meters *m);

/* Call it before there are meters; the default is the most that the switch can have. */
void meters_limit(struct meters *m, const struct limits *l);
uint32_t meters_most(const struct meters *m);

/* Call it before there are meters: each meter and band then has a counter more, and sharing (which
 * outlives them) says where the buckets are. */
void meters_share(struct meters *m, const struct meter_sharing *sharing);

/* 0 or an OpenFlow error, with nothing changed.  A delete leaves the flows that use the meter
 * (tables_meter_mod).  now: loop time, ns. */
int meters_mod(struct meters *m, const struct of_meter_mod *req, uint64_t now);

/* As refs_remove_users, for the flows that use the meter, or any (OFPM_ALL). */
int meters_remove_users(const struct meters *m, uint32_t id, uint32_t most,
                        int (*remove)(void *ctx, struct flow *f), void *ctx);

/* The flow begins (delta 1) or ceases (-1) to refer to its program's meter. */
void meters_refer(struct meters *m, struct flow *f, struct program *p, int delta);
uint32_t meters_refs(const struct meters *m, uint32_t id); /* flows that use it */

/* Any thread, under RCU. */
struct meter *meters_find(const struct meters *m, uint32_t id);

/* Worker: counts the packet and applies the band with the highest rate that it exceeds.  0 or
 * EDIT_DROP(meter).  now: monotonic, ns. */
int meter_run(struct meter *m, unsigned worker, struct packet *p, uint64_t now);

/* A band as it is now. */
struct band_look {
    bool exceeded;    /* the packet would not pass it */
    uint64_t tokens;  /* left: bits, or thousandths of a packet */
    uint64_t wait_ns; /* until the bucket is out of debt */
};

/* Control thread: what meter_run would do to the packet, without counting or taking anything.
 * bands: METER_MAX_BANDS; *band: the one that applies, -1: none. */
int meter_look(const struct meter *m, struct packet *p, uint64_t now, struct band_look *bands,
               int *band);

uint32_t meters_count(const struct meters *m);
unsigned long
meters_changes(const struct meters *m); /* differs whenever one came, went or changed */
struct meter *meters_each(const struct meters *m, uint32_t *pos);
/* Summed over the workers and the kernel; band -1: the meter's own. */
struct flow_counter meters_counter(const struct meters *m, const struct meter *mt, int band);
/* Adds what the kernel did since the last call. */
void meters_kernel_count(const struct meters *m, const struct meter *mt, int band, uint64_t packets,
                         uint64_t bytes);

/* The place of the meter's buckets; -1: none, so the kernel can't do what the meter does. */
static inline int
meters_kernel_place(const struct meter *mt)
{
    return mt->kernel_place;
}

#endif
