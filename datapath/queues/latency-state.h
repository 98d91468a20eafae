/* SPDX-License-Identifier: Apache-2.0 */
/* What latency.c fills with round trips, and service.c with how long packets wait. */
#ifndef QUEUES_LATENCY_STATE_H
#define QUEUES_LATENCY_STATE_H

#include <latency/latency.h>
#include <loop/loop.h>

#include <stdbool.h>

struct sw_latency {
    struct latency *store;
    struct loop_timer *timer;
    uint32_t read; /* samples */
    bool own;      /* the probes' memory */
};

#endif
