/* SPDX-License-Identifier: Apache-2.0 */
/* Places of counters: nobody's is another's, whatever is given back in between. */
#include <classifier/classifier.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FLOWS 3000
#define TURNS 40000

/* Each flow's counters have its number, and the worker's. */
static void
set(const struct flow *f, unsigned workers, uint64_t number)
{
    for (unsigned w = 0; w < workers; w++) {
        struct flow_counter *c = flow_counter_of(f, w);
        assert_true(!c->packets && !c->bytes);
        *c = (struct flow_counter){number, w + 1};
    }
}

static void
check(const struct flow *f, unsigned workers, uint64_t number)
{
    for (unsigned w = 0; w < workers; w++) {
        const struct flow_counter *c = flow_counter_of(f, w);
        assert_int_equal(c->packets, number);
        assert_int_equal(c->bytes, w + 1);
    }
}

static void
run(unsigned workers, struct classifier *c)
{
    static const struct flow_key any;
    static struct flow *flow[FLOWS];
    static uint64_t number[FLOWS];
    uint64_t seed = workers;
    for (uint64_t turn = 1; turn <= TURNS; turn++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        unsigned i = (unsigned)(seed >> 33) % FLOWS;
        struct classifier_place at = classifier_place(c, &any, &any);
        if (flow[i]) {
            check(flow[i], workers, number[i]);
            classifier_free_flow(flow[i]);
            flow[i] = NULL;
        } else if ((flow[i] = classifier_new_flow(c, &at, &any, &any, workers, false))) {
            set(flow[i], workers, number[i] = turn);
        }
    }
    for (unsigned i = 0; i < FLOWS; i++)
        if (flow[i]) {
            check(flow[i], workers, number[i]);
            classifier_free_flow(flow[i]);
            flow[i] = NULL;
        }
}

static void
test_places(void **state)
{
    struct classifier c;
    classifier_init(&c);
    for (unsigned workers = 1; workers <= 4; workers++)
        run(workers, &c);
    classifier_free(&c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_places)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
