/* SPDX-License-Identifier: Apache-2.0 */
/* 64-bit counters as a 32-bit processor has them, in halves, on whatever processor this is. */
#define ATOMIC_HALVES 1
#include <shared/atomics.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void
test_a_counter_is_a_plain_number(void **state)
{
    static const uint64_t start[] = {0,
                                     1,
                                     UINT32_MAX - 1,
                                     UINT32_MAX,
                                     UINT64_C(1) << 32,
                                     (UINT64_C(1) << 62) - 1,
                                     0x123456789abcdef};
    for (size_t i = 0; i < sizeof start / sizeof *start; i++) {
        uint64_t c = start[i];
        for (uint64_t n = 0, sum = c; n < UINT64_C(1) << 40; n = n * 5 + 1) {
            counter_add(&c, n);
            sum += n;
            assert_true(c == sum);
            assert_true(counter_read(&c) == sum);
        }
    }
}

static void
test_halves_make_the_whole(void **state)
{
    uint64_t w = 0;
    halves_store(&w, UINT64_C(0x0123456789abcdef));
    assert_true(w == UINT64_C(0x0123456789abcdef));
    assert_true(halves_load(&w) == UINT64_C(0x0123456789abcdef));
}

/* Almost every step carries; a reader must never see half of one. */
#define STEP  (UINT64_C(3) << 30)
#define STEPS 2000000

struct reader {
    uint64_t count;
    bool stop;
    unsigned reads, wrong;
};

static void *
read_all_the_time(void *arg)
{
    struct reader *r = arg;
    uint64_t last = 0;
    do {
        uint64_t now = counter_read(&r->count);
        r->wrong += now < last || now % STEP;
        last = now;
        store_relaxed(&r->reads, r->reads + 1);
    } while (!load_relaxed(&r->stop));
    return NULL;
}

static void
test_a_carry_is_seen_whole(void **state)
{
    struct reader r = {0};
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, read_all_the_time, &r), 0);
    while (!load_relaxed(&r.reads)) /* the reader has started */
        ;
    for (unsigned i = 0; i < STEPS; i++)
        counter_add(&r.count, STEP);
    store_relaxed(&r.stop, true);
    pthread_join(t, NULL);
    assert_int_equal(r.wrong, 0);
    assert_true(r.count == STEPS * STEP);
}

static void
test_a_wide_word_changes_only_from_what_was_seen(void **state)
{
    uint64_t w = UINT64_C(1) << 40, was = 7;
    assert_false(wide_cas(&w, &was, 1));
    assert_true(was == UINT64_C(1) << 40 && wide_load(&w) == was);
    while (!wide_cas(&w, &was, UINT64_C(5) << 35))
        ;
    assert_true(w == UINT64_C(5) << 35);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_counter_is_a_plain_number),
        cmocka_unit_test(test_halves_make_the_whole),
        cmocka_unit_test(test_a_carry_is_seen_whole),
        cmocka_unit_test(test_a_wide_word_changes_only_from_what_was_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
