/* SPDX-License-Identifier: Apache-2.0 */
/* dpctl top: rates out of two looks, sorting. */
#include "rates.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct top_item
item(uint64_t key, uint64_t age_us, uint64_t value)
{
    struct top_item i = {.key = {key}, .age_us = age_us, .v = {value, value / 10}};
    return i;
}

/* The rates of one item that counted `was`, then `is`. */
static struct top_item
between(struct top_item was, struct top_item is, int64_t us)
{
    struct top_last last = {0};
    assert_true(top_remember(&last, &was, 1, 1000000));
    top_rates(&is, 1, &last, 1000000 + us);
    free(last.v);
    return is;
}

static void
the_switch_tells_the_time(void **state)
{
    /* The looks were 1 s apart here, 2 s at the switch. */
    struct top_item i = between(item(1, 5000000, 1000), item(1, 7000000, 3000), 1000000);
    assert_true(i.measured);
    assert_int_equal((int)i.rate[0], 1000);
    assert_int_equal((int)i.rate[1], 100);
}

static void
else_the_time_here(void **state)
{
    struct top_item i = between(item(1, 0, 1000), item(1, 0, 3000), 500000);
    assert_true(i.measured);
    assert_int_equal((int)i.rate[0], 4000);
    assert_false(between(item(1, 0, 1000), item(1, 0, 3000), 0).measured);
}

static void
made_anew(void **state)
{
    struct top_item younger = between(item(1, 9000000, 1000), item(1, 100000, 3000), 1000000);
    assert_false(younger.measured);
    struct top_item other = between(item(1, 0, 1000), item(2, 0, 3000), 1000000);
    assert_false(other.measured);
    /* A counter that went back has no rate; the others have. */
    struct top_item was = item(1, 0, 1000), is = item(1, 0, 2000);
    is.v[1] = 0;
    is = between(was, is, 1000000);
    assert_int_equal((int)is.rate[0], 1000);
    assert_int_equal((int)is.rate[1], 0);
}

static void
large_counters(void **state)
{
    uint64_t much = UINT64_MAX - 5000;
    struct top_item i = between(item(1, 0, much), item(1, 0, much + 4000), 1000000);
    assert_int_equal((int)i.rate[0], 4000);
    /* All ones: the switch does not count. */
    i = between(item(1, 0, 5), item(1, 0, TOP_UNKNOWN), 1000000);
    assert_true(i.measured && i.rate[0] == 0);
}

static void
sorting(void **state)
{
    struct top_item v[] = {item(3, 0, 10), item(1, 0, 30), item(2, 0, 10), item(4, 0, TOP_UNKNOWN)};
    v[0].rate[0] = 7;
    top_sort(v, 4, 0, false, false);
    assert_int_equal(v[0].key[0], 1);
    assert_int_equal(v[1].key[0], 2); /* equal ones by key */
    assert_int_equal(v[2].key[0], 3);
    assert_int_equal(v[3].key[0], 4); /* unknown ones last */
    top_sort(v, 4, 0, true, false);
    assert_int_equal(v[0].key[0], 3);
    top_sort(v, 4, 0, false, true);
    assert_int_equal(v[3].key[0], 1);
    top_sort(v, 4, -1, false, false);
    assert_int_equal(v[0].key[0], 1);
    top_sort(v, 4, -1, false, true);
    assert_int_equal(v[0].key[0], 4);
}

static void
keys_differ(void **state)
{
    uint64_t a[2], b[2];
    top_hash("in_port=1", 9, a);
    top_hash("in_port=2", 9, b);
    assert_true(a[0] != b[0] && a[1] != b[1]);
    top_hash("in_port=1", 9, b);
    assert_true(a[0] == b[0] && a[1] == b[1]);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_switch_tells_the_time),
        cmocka_unit_test(else_the_time_here),
        cmocka_unit_test(made_anew),
        cmocka_unit_test(large_counters),
        cmocka_unit_test(sorting),
        cmocka_unit_test(keys_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
