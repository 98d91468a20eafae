/* SPDX-License-Identifier: Apache-2.0 */
/* qos-autorate's control law, without sockets: alone, on a link that is simulated, and as it was
 * (autorate.txt). */
#include "law.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define TURN 100000

static const struct autorate_bounds bounds = {5000000, 20000000, 80000000, 15000};

static struct autorate_law
begun(void)
{
    struct autorate_law law;
    autorate_begin(&law, &bounds);
    return law;
}

/* n turns in which the class sends this part (in percent) of its rate; what the last one did. */
static enum autorate_state
turns(struct autorate_law *law, int n, unsigned percent, int64_t delay)
{
    enum autorate_state state = AUTORATE_HOLD;
    for (int i = 0; i < n; i++)
        state = autorate_step(law, &(struct autorate_turn){.at = law->at < 0 ? 0 : law->at + TURN,
                                                           .sent = law->rate / 100 * percent,
                                                           .delay = delay});
    return state;
}

static void
begins_at_the_base(void **state)
{
    struct autorate_law law = begun();
    assert_int_equal(law.rate, bounds.base);
    assert_int_equal(turns(&law, 5, 50, 0), AUTORATE_HOLD);
    assert_int_equal(law.rate, bounds.base);
}

static void
rises_while_loaded(void **state)
{
    struct autorate_law law = begun();
    assert_int_equal(turns(&law, 11, 95, 0), AUTORATE_RAISE);
    assert_in_range(law.rate, bounds.base * 17 / 10, bounds.base * 21 / 10); /* in a second */
    turns(&law, 100, 95, 0);
    assert_int_equal(law.rate, bounds.max);
    assert_int_equal(turns(&law, 1, 95, bounds.limit * 3 / 4), AUTORATE_HOLD);
}

static void
falls_when_the_delay_rises(void **state)
{
    struct autorate_law law = begun();
    turns(&law, 1, 95, 0);
    assert_int_equal(turns(&law, 1, 95, 16000), AUTORATE_HOLD); /* one may be chance */
    uint64_t before = law.rate;
    assert_int_equal(turns(&law, 1, 95, 16000), AUTORATE_LOWER);
    assert_in_range(law.rate, before * 80 / 100, before * 90 / 100);
    /* Far above the limit once is enough; half is taken at most. */
    law = begun();
    turns(&law, 1, 95, 0);
    assert_int_equal(turns(&law, 1, 95, 400000), AUTORATE_LOWER);
    assert_in_range(law.rate, bounds.base * 37 / 100, bounds.base / 2);
    /* What was sent is what the link carried. */
    law = begun();
    assert_int_equal(turns(&law, 2, 60, 16000), AUTORATE_LOWER);
    assert_in_range(law.rate, bounds.base * 53 / 100, bounds.base * 54 / 100);
}

static void
the_link_gets_time_to_drain(void **state)
{
    struct autorate_law law = begun();
    turns(&law, 2, 95, 30000);
    uint64_t lowered = law.rate;
    assert_int_equal(turns(&law, 2, 95, 29000), AUTORATE_DRAIN);
    assert_int_equal(turns(&law, 1, 95, 20000), AUTORATE_DRAIN);
    assert_int_equal(law.rate, lowered);
    assert_int_equal(turns(&law, 1, 95, 5000), AUTORATE_RAISE);
    /* It does not drain: lower again. */
    law = begun();
    turns(&law, 2, 95, 30000);
    assert_int_equal(turns(&law, 2, 95, 30000), AUTORATE_DRAIN);
    assert_int_equal(turns(&law, 1, 95, 31000), AUTORATE_LOWER);
}

static void
never_beyond_the_bounds(void **state)
{
    struct autorate_law law = begun();
    for (int i = 0; i < 300; i++) {
        turns(&law, 1, 95, 1000000);
        assert_true(law.rate >= bounds.min);
    }
    assert_int_equal(law.rate, bounds.min);
    for (int i = 0; i < 300; i++) {
        turns(&law, 1, 95, 0);
        assert_true(law.rate <= bounds.max);
    }
    assert_int_equal(law.rate, bounds.max);
}

static void
back_to_the_base_when_idle(void **state)
{
    struct autorate_law law = begun();
    turns(&law, 100, 95, 0);
    assert_int_equal(turns(&law, 20, 5, 0), AUTORATE_HOLD); /* not at once */
    assert_int_equal(turns(&law, 30, 5, 0), AUTORATE_IDLE);
    assert_true(law.rate < bounds.max && law.rate > bounds.base);
    turns(&law, 300, 5, 0);
    assert_int_equal(law.rate, bounds.base);
    turns(&law, 30, 95, 100000);
    assert_true(law.rate < bounds.base);
    turns(&law, 300, 5, 0);
    assert_int_equal(law.rate, bounds.base);
}

static void
unknown_delays_change_nothing(void **state)
{
    struct autorate_law law = begun();
    assert_int_equal(turns(&law, 50, 95, -1), AUTORATE_HOLD);
    assert_int_equal(law.rate, bounds.base);
    /* A turn that was late for an hour counts as a second. */
    turns(&law, 1, 95, 0);
    uint64_t before = law.rate;
    autorate_step(&law, &(struct autorate_turn){law.at + INT64_C(3600000000), law.rate, 0});
    assert_true(law.rate <= before * 2);
}

/* A link that falls from 40 to 10 Mbit/s and back, whose buffer holds 200 KB; the class always has packets.  A
 * probe shows what waited 20 ms ago. */
static void
on_a_link_that_falls_and_rises(void **state)
{
    struct autorate_law law;
    autorate_begin(&law, &(struct autorate_bounds){5000000, 20000000, 50000000, 15000});
    double waits = 0, sent = 0, got[3] = {0}, worst = 0, seen[32] = {0};
    for (int ms = 0; ms < 60000; ms++) {
        double link = ms / 20000 == 1 ? 1e4 : 4e4; /* bits in a ms */
        sent += (double)law.rate / 1000;
        waits += (double)law.rate / 1000;
        double leaves = waits < link ? waits : link;
        waits -= leaves;
        waits = waits > 1.6e6 ? 1.6e6 : waits;
        seen[ms % 32] = waits / link * 1000;
        if (ms % 20000 >= 5000) { /* what is asked for 5 s after a change */
            got[ms / 20000] += leaves / link / 15000;
            worst = seen[ms % 32] > worst ? seen[ms % 32] : worst;
        }
        if (ms % 100)
            continue;
        autorate_step(&law, &(struct autorate_turn){.at = (int64_t)ms * 1000,
                                                    .sent = (uint64_t)(sent * 10),
                                                    .delay = (int64_t)seen[(ms + 12) % 32]});
        sent = 0;
    }
    for (int i = 0; i < 3; i++)
        assert_true(got[i] > 0.85);
    assert_true(worst < 30000);
}

static void
baselines_follow(void **state)
{
    int64_t b = 0, v[] = {9, 1, 5, 7};
    autorate_baseline(&b, 20000);
    assert_int_equal(b, 20000);
    autorate_baseline(&b, 12000);
    assert_int_equal(b, 12000);
    autorate_baseline(&b, 52000);
    assert_int_equal(b, 12040);
    autorate_baseline(&b, 5000000);
    assert_int_equal(b, 12140);
    assert_int_equal(autorate_delay(v, 0), -1);
    assert_int_equal(autorate_delay(v, 1), 9);
    assert_int_equal(autorate_delay(v, 2), 1);
    assert_int_equal(autorate_delay(v, 4), 5);
}

static void
as_the_python_package_has_it(void **state)
{
    FILE *in = fopen(VECTORS, "r");
    struct autorate_law law = begun();
    struct autorate_turn t;
    struct autorate_bounds b;
    char line[200], name[16];
    uint64_t rate;
    unsigned n = 0;
    assert_non_null(in);
    while (fgets(line, sizeof line, in)) {
        if (*line == '#')
            continue;
        if (sscanf(line, "bounds %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNd64, &b.min, &b.base,
                   &b.max, &b.limit) == 4) {
            autorate_begin(&law, &b);
            continue;
        }
        assert_int_equal(sscanf(line, "%" SCNd64 " %" SCNu64 " %" SCNd64 " %15s %" SCNu64, &t.at,
                                &t.sent, &t.delay, name, &rate),
                         5);
        assert_string_equal(autorate_state_name(autorate_step(&law, &t)), name);
        assert_int_equal(law.rate, rate);
        n++;
    }
    fclose(in);
    assert_int_equal(n, 1200);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begins_at_the_base),
        cmocka_unit_test(rises_while_loaded),
        cmocka_unit_test(falls_when_the_delay_rises),
        cmocka_unit_test(the_link_gets_time_to_drain),
        cmocka_unit_test(never_beyond_the_bounds),
        cmocka_unit_test(back_to_the_base_when_idle),
        cmocka_unit_test(unknown_delays_change_nothing),
        cmocka_unit_test(on_a_link_that_falls_and_rises),
        cmocka_unit_test(baselines_follow),
        cmocka_unit_test(as_the_python_package_has_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
