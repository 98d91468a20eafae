/* SPDX-License-Identifier: Apache-2.0 */
/* When the value that the kernel tells is the one that it was given, at the edges of its rounding. */
#include "fill.h"

#include <inttypes.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define GBIT 1000000000ull

/* rate: of QOS_RATE, where it counts. */
static const struct {
    const char *sched;
    unsigned slot;
    uint64_t given, has, rate;
    bool atm, same;
} rows[] = {
    {"pfifo", QOS_LIMIT, 50, 50, 0, false, true},
    {"pfifo", QOS_LIMIT, 50, 51, 0, false, false},
    /* kbit/s */
    {"cbs", QOS_RATE, 1999999, 1999000, 0, false, true},
    {"cbs", QOS_RATE, 1999999, 1998999, 0, false, false},
    {"cbs", QOS_RATE, 1999999, 2000000, 0, false, false},
    /* bytes/s; of a curve, but for its time */
    {"htb", QOS_RATE, 15, 8, 0, false, true},
    {"htb", QOS_RATE, 16, 8, 0, false, false},
    {"hfsc", QOS_RSC, 15, 8, 0, false, true},
    {"hfsc", QOS_RSC + 1, 15, 8, 0, false, false},
    {"hfsc", QOS_RSC + 2, 15, 8, 0, false, true},
    /* 1,024 ns, rounded down twice: 1 us is nothing, 2 us are one such unit */
    {"codel", QOS_TARGET, 1, 0, 0, false, true},
    {"codel", QOS_TARGET, 2, 2, 0, false, true},
    {"codel", QOS_TARGET, 2, 1, 0, false, false},
    {"codel", QOS_TARGET, 2, 3, 0, false, false},
    {"codel", QOS_TARGET, 5000, 5000, 0, false, true},
    {"codel", QOS_TARGET, 5000, 5001, 0, false, false},
    {"codel", QOS_TARGET, 4999, 4999, 0, false, true},
    /* 64 ns: 3 us are 46, which are 2.944 us */
    {"pie", QOS_TARGET, 15000, 15000, 0, false, true},
    {"pie", QOS_TARGET, 1, 0, 0, false, true},
    {"pie", QOS_TARGET, 1, 1, 0, false, false},
    {"pie", QOS_TARGET, 3, 2, 0, false, true},
    {"pie", QOS_TARGET, 3, 3, 0, false, false},
    /* jiffies of at most 10 ms, rounded up */
    {"pie", QOS_INTERVAL, 15000, 15000, 0, false, true},
    {"pie", QOS_INTERVAL, 15000, 24999, 0, false, true},
    {"pie", QOS_INTERVAL, 15000, 25000, 0, false, false},
    {"pie", QOS_INTERVAL, 15000, 14999, 0, false, false},
    /* a tick is 8 bytes at this rate, rounded up */
    {"htb", QOS_BURST, 1601, 1608, GBIT, false, true},
    {"htb", QOS_BURST, 1601, 1601, GBIT, false, false},
    {"htb", QOS_BURST, 1600, 1600, GBIT, false, true},
    /* or down, and a byte less by the rate's own rounding */
    {"tbf", QOS_BURST, 2000, 2000, GBIT, false, true},
    {"tbf", QOS_BURST, 2000, 1992, GBIT, false, true},
    {"tbf", QOS_BURST, 2000, 1991, GBIT, false, false},
    {"tbf", QOS_BURST, 2000, 2001, GBIT, false, false},
    /* 2,000 bytes take 42 cells; one may be lost */
    {"tbf", QOS_BURST, 2000, 2016, GBIT, true, true},
    {"tbf", QOS_BURST, 2000, 2017, GBIT, true, false},
    {"tbf", QOS_BURST, 2000, 1921, GBIT, true, true},
    {"tbf", QOS_BURST, 2000, 1920, GBIT, true, false},
};

static void
test_rows(void **state)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct qos_values given = {0}, has = {0};
        if (rows[i].rate)
            qos_put(&given, QOS_RATE, rows[i].rate);
        qos_put(&given, QOS_LINKLAYER, rows[i].atm ? QOS_ATM : QOS_ETHERNET);
        qos_put(&given, rows[i].slot, rows[i].given);
        qos_put(&has, rows[i].slot, rows[i].has);
        if (netlink_same_value(qos_sched_by_name(rows[i].sched), rows[i].slot, &given, &has) !=
            rows[i].same)
            fail_msg("%s, slot %u: %" PRIu64 " and %" PRIu64 " are %s", rows[i].sched, rows[i].slot,
                     rows[i].given, rows[i].has, rows[i].same ? "not the same" : "the same");
    }
}

/* A slot that no field of the scheduler has is as it was given, or another one. */
static void
test_no_field(void **state)
{
    struct qos_values given = {0}, has = {0};
    qos_put(&given, QOS_BURST, 7);
    qos_put(&has, QOS_BURST, 7);
    assert_true(netlink_same_value(qos_sched_by_name("pfifo"), QOS_BURST, &given, &has));
    qos_put(&has, QOS_BURST, 8);
    assert_false(netlink_same_value(qos_sched_by_name("pfifo"), QOS_BURST, &given, &has));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_no_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
