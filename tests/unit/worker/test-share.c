/* SPDX-License-Identifier: Apache-2.0 */
/* What a ring is charged for: processor time of slow batches, and nothing that the machine took. */
#include <dataplane/worker-share.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define US   UINT64_C(1000)
#define MS   UINT64_C(1000000)
#define S    UINT64_C(1000000000)
#define MOST 64u

static struct share_clocks c;
static struct share s;
static uint64_t now, cpu;

static int
set_up(void **state)
{
    c = (struct share_clocks){0};
    s = (struct share){0};
    now = 1000 * S;
    cpu = 5 * S;
    return 0;
}

/* A batch, as a worker charges it.  wall: what it takes by the clock. */
static void
batch(unsigned n, uint64_t wall, uint64_t ran)
{
    if (share_is_due(&c, now))
        share_mark(&c, now, cpu);
    uint64_t began = now;
    now += wall;
    cpu += ran;
    if (wall > SHARE_SLOW_NS)
        share_charge(&s, n, 0, share_took(&c, began, now, cpu), now);
}

static void
super_packets_may_take_longer(void **state)
{
    share_charge(&s, 16, 1 << 20, MS, now);
    assert_int_equal(share_batch(&s, now, MOST), MOST);
    share_charge(&s, 16, 1 << 20, 5 * MS, now);
    assert_int_not_equal(share_batch(&s, now, MOST), MOST);
}

/* The first slow batch makes the worker wary, and costs nothing. */
static void
become_wary(void)
{
    batch(64, 8 * MS, 8 * MS);
    assert_int_equal(share_batch(&s, now, MOST), MOST);
}

static void
cheap_batches_cost_nothing(void **state)
{
    for (int i = 0; i < 1000; i++)
        batch(64, SHARE_SLOW_NS, SHARE_SLOW_NS);
    assert_int_equal(c.wary_until, 0);
    assert_int_equal(share_batch(&s, now, MOST), MOST);
    assert_false(share_rests(&s, now));
}

static void
dear_packets_come_in_smaller_batches(void **state)
{
    become_wary();
    batch(640, 8 * MS, 8 * MS);
    assert_int_equal(share_batch(&s, now, MOST), SHARE_BATCH_NS / (8 * MS / 640));
    assert_false(share_rests(&s, now));
    now += SHARE_HOLD_NS;
    assert_int_equal(share_batch(&s, now, MOST), MOST);
}

static void
a_very_dear_one_rests(void **state)
{
    become_wary();
    batch(1, 8 * MS, 8 * MS);
    assert_int_equal(share_batch(&s, now, MOST), 1);
    assert_true(share_rests(&s, now + SHARE_RESTS * 8 * MS - 1));
    assert_false(share_rests(&s, now + SHARE_RESTS * 8 * MS));
}

static void
time_of_the_machine_is_not_charged(void **state)
{
    become_wary();
    for (int i = 0; i < 1000; i++) {
        batch(1, 8 * MS, 20 * US);
        batch(8, 20 * US, 20 * US);
        assert_int_equal(share_batch(&s, now, MOST), MOST);
        assert_false(share_rests(&s, now));
    }
}

/* Between two marks others may have been served, or the worker has slept. */
static void
time_of_others_is_not_charged(void **state)
{
    become_wary();
    for (int i = 0; i < 100; i++) {
        for (int k = 0; k < 20; k++)
            batch(8, 40 * US, 40 * US);
        batch(1, 8 * MS, 10 * US);
        assert_int_equal(share_batch(&s, now, MOST), MOST);
        now += i * MS / 3;
    }
}

/* Whoever sends such packets now and then is remembered for long. */
static void
wary_for_seconds(void **state)
{
    become_wary();
    now += SHARE_WARY_NS / 2;
    batch(64, 160 * MS, 160 * MS);
    assert_true(share_rests(&s, now + SHARE_RESTS * 159 * MS));
    now += 2 * SHARE_WARY_NS;
    cpu += 2 * SHARE_WARY_NS;
    batch(64, 160 * MS, 160 * MS); /* the clocks have not been compared for long */
    assert_false(share_rests(&s, now));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(cheap_batches_cost_nothing, set_up),
        cmocka_unit_test_setup(dear_packets_come_in_smaller_batches, set_up),
        cmocka_unit_test_setup(a_very_dear_one_rests, set_up),
        cmocka_unit_test_setup(time_of_the_machine_is_not_charged, set_up),
        cmocka_unit_test_setup(time_of_others_is_not_charged, set_up),
        cmocka_unit_test_setup(wary_for_seconds, set_up),
        cmocka_unit_test_setup(super_packets_may_take_longer, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
