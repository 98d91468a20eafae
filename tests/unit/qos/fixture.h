/* SPDX-License-Identifier: Apache-2.0 */
/* A switch of two ports with a model of its queues, on a fake kernel. */
#ifndef FIXTURE_H
#define FIXTURE_H

#include "test.h"

#include "at-once.h"
#include "fake-kernel.h"
#include "run.h"

#define IF2 12 /* port 2's interface */

extern struct fake_kernel kernel;

/* What the packet side was notified of for port 2. */
extern uint8_t present[0x10000];
extern uint8_t band_of[0x10000]; /* below which transmit queue's tree; 0: none */
extern uint32_t taker[0x10000];  /* the class that takes a queue's packets; 0: no such queue */
extern uint32_t default_class;
extern uint64_t notified_limit[0x10000]; /* by class; 0: of packets without a queue */
/* The same of its QOS_IN direction. */
extern uint8_t present_in[0x10000];
extern uint32_t default_in;
extern bool shaped;

/* What start() gives queues without a scheduler; NULL: nothing. */
extern const char *own_leaf;

/* Port 2 has 100 Mbit/s, port 1 reports no speed. */
void start(void);
int setup(void **state);
int teardown(void **state);
/* The same with fq_codel as own_leaf. */
int setup_leaf(void **state);
int teardown_leaf(void **state);

/* What qos_dump shows; the caller frees it. */
char *model_text(void);
bool lists(const char *what); /* whether it shows that */

/* Runs the request with a failure at each of its operations in turn: kernel, model and packet side
 * must be as before.  Then it must succeed. */
void run_failing(const char *sched, const char *args);

/* What qos_each_tree tells of port 2. */
struct qos_tree whole(void);

/* The rate of port 2's class in the kernel. */
uint64_t rate_of(uint32_t id);

/* The kind of scheduler below it; "": the kernel's own. */
const char *below(uint32_t id);

#define OK(sched, args)                                                                            \
    do {                                                                                           \
        if (run(sched, args))                                                                      \
            fail_msg("%s %s: %x %s", sched, args, err.err, err.text);                              \
    } while (0)

#define REFUSED(code, sched, args)                                                                 \
    do {                                                                                           \
        int e_ = run(sched, args);                                                                 \
        if (e_ != QOS_ERR(code) || err.err != e_ || !err.text[0])                                  \
            fail_msg("%s %s: %x %s", sched, args, e_, err.text);                                   \
    } while (0)

#define TEST(f)      cmocka_unit_test_setup_teardown(f, setup, teardown)
#define LEAF_TEST(f) cmocka_unit_test_setup_teardown(f, setup_leaf, teardown_leaf)

#endif
