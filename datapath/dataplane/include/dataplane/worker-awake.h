/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a worker that has nothing to do sleeps at once, or stays awake for the next packet
 * (docs/explanation/latency.md).
 *
 * A packet waits while its worker wakes up: 2 us on the packet's processor, 20 to 40 on one that had
 * halted.  A sender that waits for an answer before it sends again loses that time twice a round
 * trip.  One that sends on anyway gains nothing, and staying awake takes a processor.  So a worker
 * whose packets come close together tries both in turn, and stays awake only if more comes because
 * of it.
 *
 * A worker's own; no input or output, times are given in ns. */
#ifndef DATAPLANE_WORKER_AWAKE_H
#define DATAPLANE_WORKER_AWAKE_H

#include <stdbool.h>
#include <stdint.h>

#define AWAKE_AUTO     UINT32_MAX
#define AWAKE_MOST_US  1000000
#define AWAKE_EPOCH_NS 500000
#define AWAKE_PAIRS    8 /* of epochs asleep and awake, a trial */

enum awake_state { AWAKE_NO, AWAKE_TRIAL, AWAKE_YES };

struct awake {
    uint32_t fixed_us; /* for so long; AWAKE_AUTO: by itself.  The control thread's */
    bool spare;        /* without a processor to spare, never by itself */
    bool slept;        /* since the last packet */
    bool pays;         /* said the last trial */
    uint8_t state;
    uint32_t wake_ns; /* what a wake-up takes: the median, about */
    uint32_t close;   /* the share of gaps shorter than awake_window, in 65536ths, smoothed */
    uint64_t resting; /* since when there is no packet; 0: the last round had one */
    uint64_t waited;  /* ns awake without a packet, altogether */

    uint64_t next_trial, pause; /* when, and how long after the one before */
    uint64_t epoch_start;
    uint32_t epoch, epoch_bytes; /* of the trial; odd ones are awake */
    uint32_t better;             /* pairs whose second epoch had more bytes a second */
    uint64_t bytes[2], ns[2];    /* asleep, awake */
    uint64_t rate;               /* of this pair's first epoch */
};

/* spare: there are more processors than workers */
void awake_init(struct awake *a, uint32_t fixed_us, bool spare);

/* Any thread. */
void awake_set(struct awake *a, uint32_t fixed_us);

/* How long the worker stays awake for a packet, ns. */
uint64_t awake_window(const struct awake *a);

/* To be called for the first packet after a sleep, which has waited for so long. */
void awake_woken(struct awake *a, uint64_t now, uint64_t waited);
/* A round had packets of so many bytes. */
void awake_worked(struct awake *a, uint64_t now, uint32_t bytes);
/* A round had none.  Returns whether to stay awake. */
bool awake_stays(struct awake *a, uint64_t now);

#endif
