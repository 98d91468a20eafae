/* SPDX-License-Identifier: Apache-2.0 */
/* What a promised delay (DELAY_US) makes of a class and of the switch's own scheduler below it. */
#include "fixture.h"

#include <qos/sched/delay.h>

#include <stdlib.h>
#include <string.h>

/* Of the scheduler below the class. */
static uint64_t
value(uint32_t id, unsigned slot)
{
    const struct qos_object *o = fake_qdisc(&kernel, IF2, QOS_HANDLE_TREE | id);
    assert_non_null(o);
    return o->values.v[slot];
}

/* A kernel without the scheduler of --leaf. */
static int
without_leaf(void **state)
{
    const struct qos_values none = {0};
    setup(state);
    kernel.lacks = "fq_codel";
    assert_true(qos_set_leaf(qos, qos_sched_by_name("fq_codel"), &none) < 0);
    return 0;
}

/* Three quarters of 6 Mbit/s for 20 ms are 11,250 bytes, for which the kernel counts half as much memory again. */
static void
values_follow_promise_and_rate(void **state)
{
    OK("htb", "cmd=add,port=2,class=10,rate=6mbit");
    assert_int_equal(value(10, QOS_MEMORY_LIMIT), 33554432);
    assert_int_equal(value(10, QOS_DROP_BATCH), 64);
    run_failing("htb", "cmd=change,port=2,class=10,rate=6mbit,delay=20ms");
    assert_string_equal(below(10), "fq_codel");
    assert_int_equal(value(10, QOS_TARGET), 5000);
    assert_int_equal(value(10, QOS_INTERVAL), 100000);
    assert_int_equal(value(10, QOS_MEMORY_LIMIT), 11250 * 3 / 2);
    assert_int_equal(value(10, QOS_DROP_BATCH), 1);
    assert_false(lists("fq_codel"));
    run_failing("htb", "cmd=change,port=2,class=10,rate=60mbit");
    assert_int_equal(value(10, QOS_MEMORY_LIMIT), 112500 * 3 / 2);
    run_failing("htb", "cmd=change,port=2,class=10,rate=60mbit,delay=4ms");
    assert_int_equal(value(10, QOS_TARGET), 1000);
    assert_int_equal(value(10, QOS_INTERVAL), 20000);
    run_failing("htb", "cmd=change,port=2,class=10,rate=60mbit,delay=0");
    assert_int_equal(value(10, QOS_TARGET), 5000);
    assert_int_equal(value(10, QOS_MEMORY_LIMIT), 33554432);
    assert_int_equal(value(10, QOS_DROP_BATCH), 64);
}

/* Less than four frames: bytes are counted exactly. */
static void
short_queues_are_fifos(void **state)
{
    run_failing("htb", "cmd=add,port=2,class=10,rate=1mbit,delay=20ms");
    assert_string_equal(below(10), "bfifo");
    assert_int_equal(value(10, QOS_LIMIT), 1875);
    run_failing("htb", "cmd=change,port=2,class=10,rate=2mbit");
    assert_int_equal(value(10, QOS_LIMIT), 3750);
    run_failing("htb", "cmd=change,port=2,class=10,rate=10mbit");
    assert_string_equal(below(10), "fq_codel");
    run_failing("htb", "cmd=change,port=2,class=10,rate=500kbit");
    assert_string_equal(below(10), "bfifo");
    assert_int_equal(value(10, QOS_LIMIT), 1546); /* a whole frame, with tags */
    run_failing("htb", "cmd=change,port=2,class=10,rate=500kbit,delay=0");
    assert_string_equal(below(10), "fq_codel");
    assert_int_equal(value(10, QOS_MEMORY_LIMIT), 33554432);
    assert_false(lists("fifo"));
}

/* A share follows its parent, also when it moves; what somebody gave stays as it is. */
static void
shares_and_schedulers_of_others(void **state)
{
    OK("htb", "cmd=add,port=2,class=1,rate=20mbit");
    OK("htb", "cmd=add,port=2,class=2,rate=60mbit");
    OK("htb", "cmd=add,port=2,class=10,parent=1,rate=50%,delay=20ms");
    assert_int_equal(value(10, QOS_MEMORY_LIMIT), 18750 * 3 / 2);
    run_failing("htb", "cmd=change,port=2,class=1,rate=40mbit");
    assert_int_equal(value(10, QOS_MEMORY_LIMIT), 37500 * 3 / 2);
    run_failing("htb", "cmd=change,port=2,class=10,parent=2");
    assert_int_equal(value(10, QOS_MEMORY_LIMIT), 56250 * 3 / 2);
    run_failing("sfq", "cmd=add,port=2,class=10");
    assert_string_equal(below(10), "sfq");
    run_failing("htb", "cmd=change,port=2,class=10,rate=1mbit,delay=30ms");
    assert_string_equal(below(10), "sfq");
    run_failing("sfq", "cmd=del,port=2,class=10");
    assert_string_equal(below(10), "bfifo");
    run_failing("fq_codel", "cmd=add,port=2,class=10");
    assert_int_equal(value(10, QOS_MEMORY_LIMIT), 33554432);
    assert_true(lists("class=10 object=0"));
}

static void
in_a_bundle(void **state)
{
    unsigned at;
    qos_begin(qos);
    OK("htb", "cmd=add,port=2,class=10,rate=1mbit,delay=20ms");
    OK("htb", "cmd=change,port=2,class=10,rate=60mbit");
    OK("htb", "cmd=add,port=2,class=11,rate=1mbit,delay=20ms");
    OK("htb", "cmd=del,port=2,class=11");
    assert_int_equal(qos_commit(qos, &at, &err), 0);
    assert_string_equal(below(10), "fq_codel");
    assert_int_equal(value(10, QOS_MEMORY_LIMIT), 112500 * 3 / 2);
}

static void
without_fq_codel(void **state)
{
    OK("htb", "cmd=add,port=2,class=10,rate=60mbit");
    assert_string_equal(below(10), "");
    run_failing("htb", "cmd=change,port=2,class=10,rate=60mbit,delay=20ms");
    assert_string_equal(below(10), "bfifo");
    assert_int_equal(value(10, QOS_LIMIT), 112500);
    assert_string_equal(below(QOS_CLASS_DEFAULT), "");
    run_failing("htb", "cmd=add,port=2,class=11,parent=10,rate=1mbit");
    assert_string_equal(below(10), "");
    run_failing("htb", "cmd=del,port=2,class=11");
    assert_string_equal(below(10), "bfifo");
    assert_false(lists("bfifo"));
    run_failing("htb", "cmd=change,port=2,class=10,rate=60mbit,delay=0");
    assert_string_equal(below(10), "");
}

static void
none_means_none(void **state)
{
    OK("htb", "cmd=add,port=2,class=10,rate=60mbit,delay=20ms");
    assert_string_equal(below(10), "");
}

static void
other_kinds_of_classes(void **state)
{
    OK("hfsc", "cmd=add,port=2,class=10,rt=6mbit,ls=6mbit,delay=20ms");
    assert_int_equal(value(10, QOS_MEMORY_LIMIT), 11250 * 3 / 2);
    OK("none", "port=2");
    OK("drr", "cmd=add,port=2,class=10,delay=20ms"); /* of the link: 100 Mbit/s */
    assert_int_equal(value(10, QOS_MEMORY_LIMIT), 187500 * 3 / 2);
}

/* What another program sees or changes there is compared with what was computed. */
static void
no_drift(void **state)
{
    OK("htb", "cmd=add,port=2,class=10,rate=6mbit,delay=20ms");
    OK("htb", "cmd=add,port=2,class=11,rate=1mbit,delay=20ms");
    char *before = model_text(), *there = fake_text(&kernel);
    unsigned n = kernel.n_ops;
    assert_int_equal(qos_port_sync(qos, 2, &err), 0);
    qos_set_foreign(qos, QOS_FOREIGN_REPAIR);
    assert_int_equal(qos_port_sync(qos, 2, &err), 0);
    assert_int_equal(kernel.n_ops, n);
    assert_int_equal(whole().foreign.changed, 0);
    char *after = model_text();
    assert_string_equal(after, before);
    free(after);
    qos_port_absent(qos, 2);
    fake_forget(&kernel, IF2);
    struct qos_port port = {.port_no = 2,
                            .ifindex = IF2,
                            .name = "p2",
                            .mtu = 1500,
                            .txqueuelen = 1000,
                            .tx_queues = 8,
                            .speed = 100000000};
    assert_int_equal(port_back(qos, &port, &err), 0);
    char *again = fake_text(&kernel);
    assert_string_equal(again, there);
    free(again);
    free(before);
    free(there);
}

/* The kernel doesn't keep the promise: who finds the class finds a scheduler of its values.  The promise makes it the
 * switch's own again, by way of removing what the next request does not want. */
static void
after_a_restart(void **state)
{
    OK("htb", "cmd=add,port=2,class=10,rate=6mbit,delay=20ms");
    char *before = model_text(), *there = fake_text(&kernel);
    qos_free(qos);
    start();
    assert_true(lists("memory_limit=16875"));
    OK("htb", "cmd=change,port=2,class=10,rate=6mbit,delay=20ms");
    OK("fq_codel", "cmd=del,port=2,class=10");
    char *after = model_text(), *now = fake_text(&kernel);
    assert_string_equal(after, before);
    assert_string_equal(now, there);
    free(before);
    free(there);
    free(after);
    free(now);
}

static void
bursts_and_super_packets(void **state)
{
    const struct qos_object *c;
    OK("htb", "cmd=add,port=2,class=10,rate=20mbit,ceil=80mbit,delay=4ms");
    c = fake_class(&kernel, IF2, 10);
    assert_int_equal(c->values.v[QOS_BURST], 2500 + 1546);
    assert_int_equal(c->values.v[QOS_CBURST], 10000 + 1546);
    assert_int_equal(notified_limit[10],
                     10000000); /* 1,250 bytes, half a millisecond of its rate */
    OK("htb", "cmd=change,port=2,class=10,rate=20mbit,burst=9000b");
    c = fake_class(&kernel, IF2, 10);
    assert_int_equal(c->values.v[QOS_BURST], 9000);
    OK("htb", "cmd=change,port=2,class=10,rate=20mbit,ceil=80mbit,delay=0");
    assert_int_equal(notified_limit[10], 80000000);
}

static void
what_cannot_be_kept(void **state)
{
    char text[256];
    struct qos_values v = {0};
    REFUSED(OFPSFC_BAD_PARAM, "htb", "cmd=add,port=2,class=10,rate=8kbit,delay=20ms");
    assert_string_equal(
        err.text,
        "a delay of 20ms cannot be kept at a rate of 8kbit: the shortest frame, 60 bytes, "
        "takes 60.0 ms; it takes a rate of 25kbit");
    OK("htb", "cmd=add,port=2,class=10,rate=25kbit,delay=20ms");
    qos_put(&v, QOS_RATE, 256000);
    qos_put(&v, QOS_DELAY, 20000);
    assert_string_equal(
        qos_delay_doubt(&v, 1500, text, sizeof text),
        "one frame of 1514 bytes takes 47.3 ms at the class's rate of 256kbit: while others are busy it "
        "can't keep a delay of 20ms, which takes a rate of 606kbit");
    qos_put(&v, QOS_RATE, 606000);
    assert_string_equal(qos_delay_doubt(&v, 1500, text, sizeof text), "");
    assert_string_equal(qos_delay_print(&v, 1500, text, sizeof text),
                        "bfifo limit=1546b; super-packets above 75 bytes are cut");
    qos_put(&v, QOS_RATE, 6000000);
    assert_string_equal(
        qos_delay_print(&v, 1500, text, sizeof text),
        "fq_codel target=5ms,interval=100ms,memory_limit=16875b, or bfifo limit=11250b; super-packets "
        "above 750 bytes are cut");
    qos_put(&v, QOS_DELAY, 0);
    assert_string_equal(qos_delay_print(&v, 1500, text, sizeof text), "");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        LEAF_TEST(values_follow_promise_and_rate),
        LEAF_TEST(short_queues_are_fifos),
        LEAF_TEST(shares_and_schedulers_of_others),
        LEAF_TEST(in_a_bundle),
        cmocka_unit_test_setup_teardown(without_fq_codel, without_leaf, teardown),
        TEST(none_means_none),
        LEAF_TEST(other_kinds_of_classes),
        LEAF_TEST(no_drift),
        LEAF_TEST(after_a_restart),
        LEAF_TEST(bursts_and_super_packets),
        LEAF_TEST(what_cannot_be_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
