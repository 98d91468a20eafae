/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel and model follow the interface's MTU, txqueuelen and speed. */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#define TAGGED(mtu) ((mtu) + 14u + 2 * 4) /* QinQ */

static struct qos_port port = {2, IF2, "eth", 1500, 1000, 100000000, 8, false};

static const uint64_t *
leaf_of(uint32_t id)
{
    const struct qos_object *o = fake_qdisc(&kernel, IF2, id ? 0x10000 | id : QOS_PARENT_ROOT);
    assert_non_null(o);
    return o->values.v;
}

static void
mtu_is(uint32_t mtu)
{
    port.mtu = mtu;
    assert_int_equal(port_update(qos, &port, &err), 0);
}

/* What would be there if the same had been asked for with this MTU. */
static void
as_if_made_now(void)
{
    struct qos_foreign_counts before = {0};
    char *now = fake_text(&kernel);
    qos_set_foreign(qos, QOS_FOREIGN_REPAIR);
    fake_forget(&kernel, IF2);
    assert_int_equal(qos_port_sync(qos, 2, &err), before.changed);
    char *made = fake_text(&kernel);
    assert_string_equal(now, made);
    free(now);
    free(made);
}

static void
buckets_hold_a_tagged_frame(void **state)
{
    OK("htb", "cmd=add,port=2,class=1,rate=1mbit");
    OK("htb", "cmd=add,port=2,class=2,rate=8bit,ceil=8bit");
    OK("tbf", "cmd=add,port=2,class=1,rate=1mbit,peak_rate=2mbit");
    assert_in_range(leaf_of(1)[QOS_CBURST], TAGGED(1500), 2000);
    assert_in_range(leaf_of(1)[QOS_BURST], TAGGED(1500), 8000);
    assert_in_range(fake_class(&kernel, IF2, 2)->values.v[QOS_BURST], TAGGED(1500), 2000);
    mtu_is(9000);
    assert_in_range(leaf_of(1)[QOS_CBURST], TAGGED(9000), 9500);
    assert_in_range(leaf_of(1)[QOS_BURST], TAGGED(9000), 16000);
    assert_in_range(fake_class(&kernel, IF2, 2)->values.v[QOS_CBURST], TAGGED(9000), 9500);
    /* One that was given, too, holds a frame. */
    OK("tbf", "cmd=change,port=2,class=1,burst=3000,limit=30000");
    assert_in_range(leaf_of(1)[QOS_BURST], TAGGED(9000), 9500);
    mtu_is(1500);
    assert_int_equal(leaf_of(1)[QOS_BURST], 3000);
}

static void
everything_follows(void **state)
{
    OK("htb", "cmd=add,port=2,class=1,rate=50%,ceil=100%");
    OK("htb", "cmd=add,port=2,class=2,parent=1,rate=1mbit,burst=20000");
    OK("htb", "cmd=add,port=2,class=3,parent=1,rate=8kbit");
    OK("tbf", "cmd=add,port=2,class=2,rate=1mbit,peak_rate=2mbit");
    OK("sfq", "cmd=add,port=2,class=3");
    mtu_is(9000);
    assert_int_equal(leaf_of(3)[QOS_QUANTUM], 9000);
    as_if_made_now();
    port.txqueuelen = 50;
    OK("bfifo", "cmd=replace,port=2,class=3");
    mtu_is(1500);
    assert_int_equal(leaf_of(3)[QOS_LIMIT], 50 * 1500);
    as_if_made_now();
    port.txqueuelen = 1000;
    mtu_is(1500);
    as_if_made_now();
    /* The same again is nothing to do. */
    unsigned ops = kernel.n_ops;
    mtu_is(1500);
    assert_int_equal(kernel.n_ops, ops);
}

static void
roots_follow(void **state)
{
    OK("tbf", "cmd=add,port=2,rate=1mbit,peak_rate=2mbit");
    mtu_is(9000);
    assert_in_range(leaf_of(0)[QOS_CBURST], TAGGED(9000), 9500);
    OK("sfq", "cmd=replace,port=2"); /* can't be changed: is exchanged */
    mtu_is(1500);
    assert_int_equal(leaf_of(0)[QOS_QUANTUM], 1500);
    mtu_is(9000);
    assert_int_equal(leaf_of(0)[QOS_QUANTUM], 9000);
    OK("drr", "cmd=replace,port=2,default=0");
    OK("drr", "cmd=add,port=2,class=1");
    mtu_is(2000);
    assert_int_equal(fake_class(&kernel, IF2, 1)->values.v[QOS_QUANTUM], 2014);
    as_if_made_now();
    OK("none", "port=2");
    OK("prio", "cmd=add,port=2");
    OK("bfifo", "cmd=add,port=2,class=1");
    mtu_is(1500);
    assert_int_equal(leaf_of(1)[QOS_LIMIT], 1500000);
    as_if_made_now();
}

static void
speed_is(uint64_t speed)
{
    port.speed = speed;
    assert_int_equal(port_update(qos, &port, &err), 0);
    as_if_made_now();
}

static uint64_t
speed_below(uint32_t parent)
{
    const struct qos_object *o = fake_qdisc(&kernel, IF2, parent);
    assert_non_null(o);
    return o->values.v[QOS_PEAK_RATE];
}

/* CBS counts credit by the link's speed wherever it is. */
static void
cbs_follows_the_speed(void **state)
{
    OK("mq", "cmd=add,port=2");
    OK("cbs", "cmd=add,port=2,class=1,rate=20mbit");
    OK("htb", "cmd=add,port=2,class=20,rate=10mbit,parent=2");
    OK("cbs", "cmd=add,port=2,class=20,rate=5mbit");
    speed_is(1000000000);
    assert_int_equal(speed_below(QOS_HANDLE_TX_QUEUES | 1), 1000000000);
    assert_int_equal(speed_below(QOS_HANDLE_BAND(2) | 20), 1000000000);
    OK("none", "port=2");
    OK("htb", "cmd=add,port=2,class=1,rate=30mbit,quantum=2000");
    OK("htb", "cmd=add,port=2,class=2,rate=10mbit,quantum=2000,parent=1");
    OK("htb", "cmd=add,port=2,class=3,rate=10mbit");
    OK("htb", "cmd=add,port=2,class=4,rate=10mbit,parent=3");
    OK("cbs", "cmd=add,port=2,class=2,rate=5mbit");
    OK("cbs", "cmd=add,port=2,class=4,rate=5mbit");
    speed_is(100000000);
    assert_int_equal(speed_below(0x10002), 100000000);
    assert_int_equal(speed_below(0x10004), 100000000);
    OK("htb", "cmd=change,port=2,class=0,rate=90mbit"); /* the root class follows no longer */
    speed_is(1000000000);
    assert_int_equal(speed_below(0x10002), 1000000000);
    assert_int_equal(speed_below(0x10004), 1000000000);
    assert_int_equal(rate_of(QOS_CLASS_ROOT), 90000000);
}

static void
roots_follow_the_speed(void **state)
{
    OK("cbs", "cmd=add,port=2,rate=20mbit");
    speed_is(1000000000);
    assert_int_equal(leaf_of(0)[QOS_PEAK_RATE], 1000000000);
    OK("red", "cmd=replace,port=2,threshold=30kb,limit=200kb");
    speed_is(100000000);
    assert_int_equal(leaf_of(0)[QOS_RED_BANDWIDTH], 100000000);
    OK("choke", "cmd=replace,port=2,limit=1000");
    speed_is(1000000000);
    assert_int_equal(leaf_of(0)[QOS_RED_BANDWIDTH], 1000000000);
    OK("cake", "cmd=replace,port=2,bandwidth=20mbit");
    speed_is(100000000);
    unsigned ops = kernel.n_ops;
    port.speed = 1000000000;
    assert_int_equal(port_update(qos, &port, &err), 0);
    assert_int_equal(kernel.n_ops, ops); /* its own rate */
}

/* Refused, the credits stay those of the old speed; the next update tries again. */
static void
a_refused_speed(void **state)
{
    OK("mq", "cmd=add,port=2");
    OK("cbs", "cmd=add,port=2,class=1,rate=20mbit");
    OK("cbs", "cmd=add,port=2,class=2,rate=20mbit");
    char *before = fake_text(&kernel);
    port.speed = 1000000000;
    for (int at = 0; at < 2; at++) {
        kernel.fail_in = at;
        assert_int_equal(port_update(qos, &port, &err), QOS_ERR(OFPSFC_KERNEL));
        char *after = fake_text(&kernel);
        assert_string_equal(after, before);
        free(after);
    }
    speed_is(1000000000);
    assert_int_equal(speed_below(QOS_HANDLE_TX_QUEUES | 2), 1000000000);
    free(before);
}

/* The kernel refuses one of the changes: what it has is as before. */
static void
a_refusal_is_reported(void **state)
{
    OK("htb", "cmd=add,port=2,class=1,rate=1mbit");
    OK("sfq", "cmd=add,port=2,class=1");
    char *before = fake_text(&kernel);
    port.mtu = 9000;
    for (int at = 0, e = 1; e; at++) {
        kernel.fail_in = at;
        e = port_update(qos, &port, &err);
        assert_int_equal(e, kernel.fail_in < 0 ? QOS_ERR(OFPSFC_KERNEL) : 0);
        assert_true(e || at >= 4); /* root, default and queue; SFQ is exchanged */
        char *after = fake_text(&kernel);
        if (e)
            assert_string_equal(after, before);
        free(after);
    }
    kernel.fail_in = -1;
    assert_int_equal(leaf_of(1)[QOS_QUANTUM], 9000);
    as_if_made_now();
    free(before);
}

static int
start_at_1500(void **state)
{
    port = (struct qos_port){2, IF2, "eth", 1500, 1000, 100000000, 8, false};
    return setup(state);
}

#undef TEST
#define TEST(f) cmocka_unit_test_setup_teardown(f, start_at_1500, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(buckets_hold_a_tagged_frame),
        TEST(everything_follows),
        TEST(roots_follow),
        TEST(a_refusal_is_reported),
        TEST(cbs_follows_the_speed),
        TEST(roots_follow_the_speed),
        TEST(a_refused_speed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
