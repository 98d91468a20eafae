/* SPDX-License-Identifier: Apache-2.0 */
/* What two readings of a class tell of how it is served. */
#include <queues/service.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* 8 Mbit/s: a million bytes a second. */
static struct service_class
class_of(uint64_t bytes, bool waiting)
{
    struct service_class c = {.class_id = 10, .rate = 8000000, .bytes = bytes, .waiting = waiting};
    return c;
}

static struct service_class
after_a_second(struct service_class was, struct service_class now)
{
    sw_service_count(&now, &was, 1000000);
    return now;
}

static const struct service_spell *
misses(const struct service_class *c)
{
    return &c->spells[OFPQPK_RATE];
}

static const struct service_spell *
drop_spell(const struct service_class *c)
{
    return &c->spells[OFPQPK_DROPS];
}

static void
gets_its_rate(void **state)
{
    struct service_class c = after_a_second(class_of(5, true), class_of(1000005, true));
    assert_int_equal(c.backlogged_us, 1000000);
    assert_int_equal(c.below_us, 0);
    c = after_a_second(c, class_of(1000005 + 960000, true)); /* within a twentieth */
    assert_int_equal(c.backlogged_us, 2000000);
    assert_int_equal(c.below_us, 0);
}

static void
gets_less(void **state)
{
    struct service_class c = after_a_second(class_of(5, true), class_of(900005, true));
    assert_int_equal(c.backlogged_us, 1000000);
    assert_int_equal(c.below_us, 1000000);
}

static void
is_not_judged(void **state)
{
    /* Nothing waited at one of the readings. */
    assert_int_equal(after_a_second(class_of(0, true), class_of(0, false)).backlogged_us, 0);
    assert_int_equal(after_a_second(class_of(0, false), class_of(0, true)).backlogged_us, 0);
    /* Its rate has changed. */
    struct service_class other = class_of(0, true);
    other.rate = 1;
    assert_int_equal(after_a_second(other, class_of(0, true)).backlogged_us, 0);
    /* Nothing is guaranteed. */
    struct service_class none = class_of(0, true), now = class_of(0, true);
    none.rate = now.rate = 0;
    assert_int_equal(after_a_second(none, now).backlogged_us, 0);
    /* The time since is not known. */
    now = class_of(0, true);
    none = class_of(0, true);
    none.below_us = none.backlogged_us = 7;
    sw_service_count(&now, &none, 0);
    assert_int_equal(now.backlogged_us, 7);
    assert_int_equal(now.below_us, 7);
}

/* Broken once it has got less for so long without a break. */
static void
promises(void **state)
{
    struct service_class start = class_of(0, true), less = class_of(900000, true);
    struct service_class more = class_of(1800000, true), rate = class_of(2800000, true);
    start.promise = less.promise = more.promise = rate.promise = 1500;
    struct service_class c = after_a_second(start, less);
    assert_false(misses(&c)->told);
    c = after_a_second(c, more);
    assert_true(misses(&c)->told);
    assert_int_equal(misses(&c)->us, 2000000);
    assert_int_equal(misses(&c)->bytes, 1800000);
    struct service_class other = more, none = more, still = more;
    other.rate *= 2;
    none.promise = 0;
    sw_service_count(&still, &c, 0); /* nothing is known of the time since */
    assert_true(misses(&still)->told);
    struct service_class kept = after_a_second(c, rate), changed = after_a_second(c, other);
    assert_false(misses(&kept)->told);
    assert_int_equal(misses(&kept)->us, 0);
    assert_false(misses(&changed)->told);
    none = after_a_second(c, none);
    assert_false(misses(&none)->told);
    more.waiting = false;
    more = after_a_second(c, more);
    assert_false(misses(&more)->told);
    struct service_class anew = after_a_second(c, class_of(0, true));
    assert_false(misses(&anew)->told);
}

static struct service_class
dropped(uint64_t drops, uint32_t promise)
{
    struct service_class c = class_of(0, false);
    c.rate = 0; /* nothing needs to be guaranteed */
    c.drops = drops;
    c.promise = promise;
    return c;
}

/* Told once it has dropped at each reading for so long. */
static void
drops(void **state)
{
    struct service_class c = after_a_second(dropped(5, 2000), dropped(8, 2000));
    assert_int_equal(drop_spell(&c)->us, 1000000);
    assert_false(drop_spell(&c)->told);
    c = after_a_second(c, dropped(9, 2000));
    assert_true(drop_spell(&c)->told);
    assert_int_equal(drop_spell(&c)->drops, 4);
    struct service_class over = after_a_second(c, dropped(9, 2000));
    assert_false(drop_spell(&over)->told);
    assert_int_equal(drop_spell(&over)->us, 0);
    struct service_class longer = after_a_second(c, dropped(10, 4000)); /* goes on, isn't so long */
    assert_false(drop_spell(&longer)->told);
    assert_int_equal(drop_spell(&longer)->us, 3000000);
    struct service_class less = after_a_second(c, dropped(2, 2000)); /* another scheduler counts */
    assert_false(drop_spell(&less)->told);
    struct service_class none = after_a_second(c, dropped(12, 0));
    assert_false(drop_spell(&none)->told);
    /* What counted before there was a promise isn't known: the scheduler below was left out. */
    struct service_class first = after_a_second(dropped(0, 0), dropped(100, 1000));
    assert_int_equal(drop_spell(&first)->us, 0);
    assert_false(c.spells[OFPQPK_RATE].told);
}

static void
lends_and_borrows(void **state)
{
    struct service_class was = class_of(5, false), now = class_of(10, false);
    was.last_lends = UINT32_MAX - 9; /* the kernel's 32 bits wrap */
    was.lended = UINT64_C(1) << 40;
    now.last_lends = 5;
    now.last_borrows = 3;
    now = after_a_second(was, now);
    assert_int_equal(now.lended, (UINT64_C(1) << 40) + 15);
    assert_int_equal(now.borrowed, 3);
}

/* A class that was made anew counts from 0; what was counted stays. */
static void
made_anew(void **state)
{
    struct service_class was = class_of(1000, true), now = class_of(10, true);
    was.lended = 100;
    was.last_lends = 100;
    was.backlogged_us = 9;
    now.last_lends = 2;
    now = after_a_second(was, now);
    assert_int_equal(now.lended, 102);
    assert_int_equal(now.backlogged_us, 9);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gets_its_rate), cmocka_unit_test(gets_less),
        cmocka_unit_test(is_not_judged), cmocka_unit_test(promises),
        cmocka_unit_test(drops),         cmocka_unit_test(lends_and_borrows),
        cmocka_unit_test(made_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
