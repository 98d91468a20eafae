/* SPDX-License-Identifier: Apache-2.0 */
/* The control thread's entries over the real tables, groups and plans, and over a kernel that is plain
 * memory. */
#ifndef ENTRIES_FIXTURE_H
#define ENTRIES_FIXTURE_H

#include "../pipeline/fixture.h"

#include "state.h"
#include <dataplane/offload-sample.h>
#include <offload-inside.h>

#define ENTRIES 64
#define FRAMES  16

struct test {
    struct fixture *fixture;
    struct sw sw;
    struct sw_offload f;
    struct offload_memory m;
    struct random random;
    struct random_env env;
    struct frame frames[FRAMES];
    struct flow_key key[FRAMES];
    struct oracle_port before[6];
    uint64_t stayed, made, others;
    char why[256];
};

extern uint64_t now_ns; /* of the loop */
extern uint8_t locked;  /* by tasks */
/* Requests of the only worker, which sample_take takes one by one. */
extern struct offload_request requests[4];
extern unsigned n_requests;
extern struct sw_port sw_port[7]; /* by number from 1; LOCAL is the last */
extern struct port_counters
    counted[7]; /* what ports were told, by number from 1; LOCAL is the last */

/* seed: of what t->random gives, the frames too */
struct test *test_begin(uint64_t seed);
void test_end(struct test *t);

/* Another frame, and its key. */
void draw_frame(struct test *t, unsigned i);

#endif
