/* SPDX-License-Identifier: Apache-2.0 */
/* qos-autorate: the delay beyond the port, from round trips of what passes. */
#include "passive.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define MS     1000
#define SECOND (1000 * MS)

static struct passive
begun(void)
{
    struct passive p = {.on = true};
    passive_begin(&p, 0);
    passive_turn(&p);
    return p;
}

static int64_t
delay(const struct passive *p, unsigned pairs)
{
    unsigned n;
    int64_t baseline, us = passive_delay(p, &n, &baseline);
    assert_int_equal(n, pairs);
    return us;
}

static void
above_the_least_of_the_pair(void **state)
{
    struct passive p = begun();
    assert_int_equal(delay(&p, 0), -1);
    passive_take(&p, 1, 20 * MS, 0, SECOND);
    assert_int_equal(delay(&p, 1), 0);
    passive_turn(&p);
    assert_int_equal(delay(&p, 0), -1);
    passive_take(&p, 1, 50 * MS, 0, 2 * SECOND);
    assert_in_range(delay(&p, 1), 29900, 30000);
    assert_int_equal(p.heard_at, 2 * SECOND);
}

/* A host far away delays nothing. */
static void
each_pair_has_its_own_least(void **state)
{
    struct passive p = begun();
    passive_take(&p, 1, 20 * MS, 0, SECOND);
    passive_take(&p, 2, 200 * MS, 0, SECOND);
    assert_int_equal(delay(&p, 2), 0);
    passive_turn(&p);
    passive_take(&p, 2, 210 * MS, 0, SECOND);
    assert_in_range(delay(&p, 1), 9900, 10000);
}

static void
the_median_of_the_pairs(void **state)
{
    struct passive p = begun();
    for (uint32_t i = 1; i <= 3; i++)
        passive_take(&p, i, 10 * MS, 0, SECOND);
    passive_turn(&p);
    passive_take(&p, 1, 10 * MS, 0, SECOND);
    passive_take(&p, 2, 900 * MS, 0, SECOND); /* a host that is slow by itself */
    passive_take(&p, 3, 15 * MS, 0, SECOND);
    assert_in_range(delay(&p, 3), 4900, 5000);
}

/* Of a turn the least: an acknowledgement may have been held back. */
static void
the_least_of_the_turn(void **state)
{
    struct passive p = begun();
    passive_take(&p, 1, 10 * MS, 0, SECOND);
    passive_turn(&p);
    passive_take(&p, 1, 60 * MS, 0, SECOND);
    passive_take(&p, 1, 12 * MS, 0, SECOND);
    passive_take(&p, 1, 70 * MS, 0, SECOND);
    assert_in_range(delay(&p, 1), 1900, 2000);
}

/* What waits in the queue whose rate is set is not the link's delay. */
static void
without_the_wait_in_our_queue(void **state)
{
    struct passive p = begun();
    passive_take(&p, 1, 10 * MS, 0, SECOND);
    passive_turn(&p);
    passive_take(&p, 1, 60 * MS, 45 * MS, SECOND);
    assert_in_range(delay(&p, 1), 4900, 5000);
    passive_turn(&p);
    passive_take(&p, 1, 60 * MS, 90 * MS, SECOND);
    assert_int_equal(delay(&p, 1), 0);
}

/* However many round trips a turn has, the least rises no faster than a reflector's. */
static void
the_least_rises_once_a_turn(void **state)
{
    struct passive p = begun();
    int64_t least;
    unsigned n;
    passive_take(&p, 1, 10 * MS, 0, SECOND);
    passive_turn(&p);
    for (int i = 0; i < 100; i++)
        passive_take(&p, 1, 110 * MS, 0, SECOND);
    passive_delay(&p, &n, &least);
    assert_in_range(least, 10 * MS, 10 * MS + 100);
}

static void
those_heard_of_last_are_remembered(void **state)
{
    struct passive p = begun();
    for (uint32_t i = 1; i <= PASSIVE_PAIRS + 1; i++)
        passive_take(&p, i, 10 * MS, 0, i * SECOND);
    passive_turn(&p);
    passive_take(&p, 2, 30 * MS, 0, 100 * SECOND);
    assert_in_range(delay(&p, 1), 19900, 20000);
    passive_turn(&p);
    passive_take(&p, 1, 30 * MS, 0, 101 * SECOND); /* it had to go, and is new */
    assert_int_equal(delay(&p, 1), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(above_the_least_of_the_pair),
        cmocka_unit_test(each_pair_has_its_own_least),
        cmocka_unit_test(the_median_of_the_pairs),
        cmocka_unit_test(the_least_of_the_turn),
        cmocka_unit_test(without_the_wait_in_our_queue),
        cmocka_unit_test(the_least_rises_once_a_turn),
        cmocka_unit_test(those_heard_of_last_are_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
