/* SPDX-License-Identifier: Apache-2.0 */
/* Trees below a port's transmit queues: MQ and MQPRIO at the root. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TX(t)       (QOS_HANDLE_TX_QUEUES | (t))
#define IN(t, id)   (QOS_HANDLE_BAND(t) | (id))
#define CLASS(t, q) fake_class_of(&kernel, IF2, IN(t, q))

static void
restart(void)
{
    char *before = model_text();
    static uint8_t was[sizeof present], was_in[sizeof band_of];
    memcpy(was, present, sizeof was);
    memcpy(was_in, band_of, sizeof was_in);
    uint32_t dflt = default_class;
    qos_free(qos);
    start();
    char *after = model_text();
    assert_string_equal(after, before);
    assert_memory_equal(present, was, sizeof was);
    assert_memory_equal(band_of, was_in, sizeof was_in);
    assert_int_equal(default_class, dflt);
    free(before);
    free(after);
}

static bool
sum_queue(void *ctx, const struct qos_queue *queue)
{
    uint32_t *last = ctx;
    assert_true(queue->class_id > *last);
    assert_true(queue->class_id <= 8 || queue->counters.packets == queue->class_id);
    *last = queue->class_id;
    return true;
}

/* Two trees, with all that a port's own tree has. */
static void
two_trees(const char *root)
{
    char line[64];
    uint32_t last = 0;
    struct qos_queue queue;
    snprintf(line, sizeof line, "cmd=add,port=2");
    OK(root, line);
    REFUSED(OFPSFC_BUSY, "htb", "cmd=add,port=2,class=100,rate=1mbit");
    REFUSED(OFPSFC_NOT_FOUND, "htb", "cmd=add,port=2,class=100,rate=1mbit,parent=9");
    run_failing("htb", "cmd=add,port=2,class=100,rate=5mbit,ceil=50mbit,parent=2");
    assert_int_equal(default_class, QOS_CLASS_DEFAULT);
    assert_true(taker[2] == QOS_CLASS_DEFAULT && band_of[2] == 2);
    run_failing("htb", "cmd=add,port=2,class=2,rate=60mbit");
    assert_int_equal(notified_limit[2], 60000000);
    run_failing("htb", "cmd=add,port=2,class=1,rate=40mbit");
    run_failing("htb", "cmd=add,port=2,class=200,rate=20mbit,ceil=40mbit,parent=1");
    run_failing("htb", "cmd=add,port=2,class=101,rate=2mbit,parent=100");
    run_failing("sfq", "cmd=add,port=2,class=101,perturb=5");
    run_failing("pfifo", "cmd=add,port=2,class=8,limit=50");
    REFUSED(OFPSFC_EXISTS, "htb", "cmd=add,port=2,class=100,rate=1mbit,parent=1");
    REFUSED(OFPSFC_BUSY, "pfifo", "cmd=add,port=2,class=2,limit=50");
    REFUSED(OFPSFC_BUSY, "htb", "cmd=add,port=2,class=300,rate=1mbit,parent=8");
    REFUSED(OFPSFC_UNSUPPORTED, "drr", "cmd=add,port=2,class=300,parent=3");
    REFUSED(OFPSFC_BUSY, "hfsc", "cmd=add,port=2,class=300,rt=1mbit,parent=1");
    REFUSED(OFPSFC_UNSUPPORTED, "htb", "cmd=change,port=2,class=101,rate=1mbit,parent=200");
    REFUSED(OFPSFC_UNSUPPORTED, "htb", "cmd=change,port=2,class=101,rate=1mbit,parent=1");
    REFUSED(OFPSFC_NOT_FOUND, "htb", "cmd=del,port=2,class=300");
    REFUSED(OFPSFC_NOT_FOUND, "htb", "cmd=del,port=2,class=3");
    assert_int_equal(fake_qdisc(&kernel, IF2, TX(1))->handle, IN(1, 0));
    assert_int_equal(fake_qdisc(&kernel, IF2, TX(2))->handle, IN(2, 0));
    assert_int_equal(CLASS(1, QOS_CLASS_ROOT)->values.v[QOS_RATE], 40000000);
    assert_int_equal(CLASS(2, QOS_CLASS_ROOT)->values.v[QOS_RATE], 60000000);
    assert_int_equal(CLASS(1, 200)->values.v[QOS_RATE], 20000000);
    assert_int_equal(CLASS(1, QOS_CLASS_DEFAULT)->values.v[QOS_RATE], 2000000);
    assert_int_equal(CLASS(2, 101)->parent, IN(2, 100));
    assert_int_equal(fake_qdisc(&kernel, IF2, IN(2, 101))->handle, QOS_LEAF_HANDLE(101));
    assert_true(taker[200] == 200 && taker[101] == 101 && taker[100] == 101);
    assert_true(taker[1] == QOS_CLASS_DEFAULT && band_of[1] == 1 && band_of[2] == 2);
    assert_true(band_of[200] == 1 && band_of[101] == 2 && band_of[3] == 0 && present[3]);
    assert_int_equal(notified_limit[0], 40000000);
    assert_int_equal(queue_count(qos, 2), 8 + 3);
    assert_int_equal(qos_queue_each(qos, 2, true, sum_queue, &last), 0);
    assert_int_equal(last, 200);
    assert_int_equal(qos_queue_get(qos, 2, 200, true, &queue), 0);
    assert_int_equal(queue.counters.packets, 200);
    assert_int_equal(queue.max_rate, 40000000);
    restart();
}

static void
changes(void)
{
    run_failing("htb", "cmd=change,port=2,class=1,rate=40mbit");
    run_failing("htb", "cmd=change,port=2,class=200,rate=50%,ceil=100%");
    run_failing("htb", "cmd=change,port=2,class=1,rate=30mbit");
    assert_int_equal(CLASS(1, 200)->values.v[QOS_RATE], 15000000);
    run_failing("htb", "cmd=change,port=2,class=101,rate=3mbit,parent=2");
    assert_int_equal(CLASS(2, 101)->parent, IN(2, QOS_CLASS_ROOT));
    run_failing("pfifo", "cmd=replace,port=2,class=101,limit=7");
    run_failing("htb", "cmd=replace,port=2,class=200,rate=1mbit,ceil=2mbit,parent=1");
    restart();
    REFUSED(OFPSFC_BUSY, "htb", "cmd=del,port=2,class=2");
    run_failing("htb", "cmd=del,port=2,class=101");
    run_failing("htb", "cmd=del,port=2,class=2,children=yes");
    assert_null(fake_qdisc(&kernel, IF2, TX(2)));
    assert_true(taker[2] == 2 && band_of[2] == 0 && !present[100]);
    run_failing("pfifo", "cmd=add,port=2,class=2,limit=3");
    run_failing("pfifo", "cmd=del,port=2,class=2");
    run_failing("htb", "cmd=add,port=2,class=100,rate=5mbit,parent=2");
    run_failing("htb", "cmd=del,port=2,class=100"); /* the tree was made for it */
    assert_null(fake_qdisc(&kernel, IF2, TX(2)));
    restart();
}

static void
below_mq(void **state)
{
    two_trees("mq");
    changes();
    run_failing("mq", "cmd=del,port=2");
    assert_int_equal(kernel.n, 0);
    assert_int_equal(queue_count(qos, 2), 0);
    assert_int_equal(default_class, 0);
}

static void
below_mqprio(void **state)
{
    two_trees("mqprio");
    REFUSED(OFPSFC_BAD_PROPERTY, "htb", "cmd=add,port=2,class=3,rate=1mbit,parent=2");
    run_failing("mqprio", "cmd=change,port=2,bands=3");
    assert_non_null(CLASS(1, 200));
    assert_non_null(CLASS(2, 101));
    run_failing("mqprio", "cmd=change,port=2,bands=1");
    assert_non_null(CLASS(1, 200));
    assert_null(CLASS(2, 101));
    assert_true(!present[101] && present[200]);
    run_failing("htb", "cmd=add,port=2,class=2,rate=1mbit,parent=200");
    REFUSED(OFPSFC_BUSY, "mqprio", "cmd=change,port=2,bands=4");
    run_failing("pfifo", "cmd=replace,port=2,limit=3");
    assert_int_equal(kernel.n, 1);
    OK("none", "port=2");
    assert_int_equal(kernel.n, 0);
}

static void
other_roots(void **state)
{
    OK("taprio", "cmd=add,port=2");
    REFUSED(OFPSFC_UNSUPPORTED, "htb", "cmd=add,port=2,class=1,rate=1mbit");
    REFUSED(OFPSFC_BUSY, "htb", "cmd=add,port=2,class=20,rate=1mbit,parent=1");
    OK("prio", "cmd=replace,port=2");
    REFUSED(OFPSFC_BUSY, "htb", "cmd=add,port=2,class=20,rate=1mbit,parent=1");
    OK("none", "port=2");
    two_trees("mq");
    run_failing("htb", "cmd=replace,port=2,default=0");
    assert_null(CLASS(1, 200));
    OK("none", "port=2");
}

/* More than the handles of trees are for. */
static void
many_transmit_queues(void **state)
{
    const struct qos_port port = {2, IF2, "eth", 1500, 1000, 100000000, QOS_TREES_MAX + 2, false};
    assert_int_equal(port_update(qos, &port, &err), 0);
    OK("mq", "cmd=add,port=2");
    OK("htb", "cmd=add,port=2,class=100,rate=1mbit,parent=14");
    REFUSED(OFPSFC_UNSUPPORTED, "htb", "cmd=add,port=2,class=101,rate=1mbit,parent=15");
    OK("pfifo", "cmd=add,port=2,class=15,limit=3");
}

static void
hfsc_below_mq(void **state)
{
    OK("mq", "cmd=add,port=2");
    run_failing("hfsc", "cmd=add,port=2,class=100,ls=5mbit,parent=2");
    run_failing("htb", "cmd=add,port=2,class=101,rate=5mbit,parent=1");
    restart();
    run_failing("none", "port=2");
}

/* A bundle: root, trees and all in one; taken back, and carried out. */
static void
in_a_bundle(void **state)
{
    unsigned at;
    for (int again = 0; again < 2; again++) {
        qos_begin(qos);
        OK("mq", "cmd=add,port=2");
        OK("htb", "cmd=add,port=2,class=100,rate=5mbit,parent=2");
        REFUSED(OFPSFC_NOT_FOUND, "htb", "cmd=add,port=2,class=101,rate=5mbit,parent=77");
        OK("htb", "cmd=add,port=2,class=101,rate=5mbit,parent=1");
        OK("htb", "cmd=del,port=2,class=100");
        OK("htb", "cmd=add,port=2,class=100,rate=6mbit,parent=2");
        if (again)
            assert_int_equal(qos_commit(qos, &at, &err), 0);
        else
            qos_abort(qos);
        assert_int_equal(present[100], again);
    }
    assert_int_equal(CLASS(2, 100)->values.v[QOS_RATE], 6000000);
    char *before = fake_text(&kernel), *model = model_text();
    for (int fail = 0; fail < 12; fail++) {
        qos_begin(qos);
        OK("mq", "cmd=del,port=2");
        OK("htb", "cmd=add,port=2,class=10,rate=6mbit");
        kernel.fail_in = fail;
        int e = qos_commit(qos, &at, &err);
        bool failed = kernel.fail_in < 0;
        kernel.fail_in = -1;
        if (!failed) {
            assert_int_equal(e, 0);
            break;
        }
        char *now = fake_text(&kernel), *text = model_text();
        assert_string_equal(now, before);
        assert_string_equal(text, model);
        free(now);
        free(text);
    }
    assert_non_null(fake_class(&kernel, IF2, 10));
    free(before);
    free(model);
}

static void
apply_op(const struct qos_op *op)
{
    uint8_t done = 0;
    assert_int_equal(kernel.base.ops->apply(&kernel.base, op, 1, &done, NULL), 0);
}

/* A class's rate, a class, a filter, a whole tree. */
static void
tamper(void)
{
    const struct qos_sched *htb = qos_sched_by_name("htb");
    struct qos_op op = {.kind = QOS_OP_CLASS_CHANGE,
                        .ifindex = IF2,
                        .handle = IN(2, 100),
                        .parent = IN(2, QOS_CLASS_ROOT),
                        .sched = htb,
                        .values = CLASS(2, 100)->values};
    qos_put(&op.values, QOS_RATE, 7000000);
    apply_op(&op);
    op = (struct qos_op){.kind = QOS_OP_QDISC_DEL,
                         .ifindex = IF2,
                         .handle = IN(1, 0),
                         .parent = TX(1),
                         .sched = htb};
    apply_op(&op);
    for (size_t i = 0; i < kernel.n; i++)
        kernel.v[i].o.steered = false;
}

static void
foreign(void **state)
{
    two_trees("mq");
    char *before = fake_text(&kernel), *now;
    qos_set_foreign(qos, QOS_FOREIGN_REPORT);
    assert_int_equal(qos_port_sync(qos, 2, &err), 0);
    assert_int_equal(whole().foreign.changed, 0);
    assert_int_equal(whole().n_queues, 8 + 3);
    tamper();
    assert_int_equal(qos_port_sync(qos, 2, &err), 0);
    assert_int_equal(whole().foreign.changed, 3);
    assert_true(whole().foreign.differs);
    qos_set_foreign(qos, QOS_FOREIGN_REPAIR);
    assert_int_equal(qos_port_sync(qos, 2, &err), 0);
    assert_int_equal(whole().foreign.repaired, 3);
    now = fake_text(&kernel);
    assert_string_equal(now, before);
    free(now);
    fake_forget(&kernel, IF2);
    assert_int_equal(qos_port_sync(qos, 2, &err), 0);
    now = fake_text(&kernel);
    assert_string_equal(now, before);
    free(now);
    free(before);
    tamper();
    qos_set_foreign(qos, QOS_FOREIGN_ADOPT);
    assert_int_equal(qos_port_sync(qos, 2, &err), 0);
    assert_true(!present[200] && present[1] && present[101]);
    assert_int_equal(queue_count(qos, 2), 8 + 2);
    OK("none", "port=2");
}

static void
away_and_back(void **state)
{
    struct qos_port port = {.port_no = 2,
                            .ifindex = 30,
                            .name = "eth",
                            .mtu = 1500,
                            .txqueuelen = 1000,
                            .tx_queues = 8,
                            .speed = 50000000};
    two_trees("mqprio");
    OK("htb", "cmd=add,port=2,class=300,rate=1mbit,parent=3"); /* follows the speed */
    char *before = model_text();
    fake_forget(&kernel, IF2);
    assert_int_equal(qos_port_absent(qos, 2), 0);
    assert_int_equal(present[200] + present[101] + present[3], 0);
    REFUSED(OFPSFC_BAD_PORT, "htb", "cmd=add,port=2,class=9,rate=1mbit,parent=3");
    assert_int_equal(port_back(qos, &port, &err), 0);
    assert_int_equal(present[200] + present[101] + present[4] + present[300], 4);
    assert_int_equal(band_of[101], 2);
    const struct qos_object *o = fake_class_of(&kernel, 30, IN(3, QOS_CLASS_ROOT));
    assert_int_equal(o->values.v[QOS_RATE], 50000000);
    port.speed = 100000000;
    assert_int_equal(port_update(qos, &port, &err), 0);
    o = fake_class_of(&kernel, 30, IN(3, QOS_CLASS_ROOT));
    assert_int_equal(o->values.v[QOS_RATE], 100000000);
    char *after = model_text();
    assert_string_equal(after, before);
    port.mtu = 9000;
    assert_int_equal(port_update(qos, &port, &err), 0);
    o = fake_class_of(&kernel, 30, IN(2, 101));
    assert_true(o->values.v[QOS_BURST] >= 9000);
    free(before);
    free(after);
    OK("none", "port=2");
    assert_int_equal(kernel.n, 0);
}

/* Queues of what enters the port come when there are trees already, and go before these. */
static void
with_direction_in(void **state)
{
    two_trees("mq");
    char *before = fake_text(&kernel), *model = model_text();
    run_failing("htb", "cmd=add,port=2,class=400,rate=1mbit,direction=in");
    assert_int_equal(default_class, QOS_CLASS_DEFAULT);
    OK("htb", "cmd=change,port=2,class=101,rate=1mbit");
    run_failing("htb", "cmd=change,port=2,class=101,rate=2mbit");
    restart();
    assert_true(present_in[400] && default_in == QOS_CLASS_DEFAULT);
    assert_int_equal(whole().n_queues, 8 + 3);
    OK("none", "port=2,direction=in");
    assert_false(present_in[400]);
    assert_int_equal(queue_count(qos, 2), 8 + 3);
    char *now = fake_text(&kernel), *text = model_text();
    assert_string_equal(now, before);
    assert_string_equal(text, model);
    free(now);
    free(text);
    free(before);
    free(model);
    OK("htb", "cmd=add,port=2,class=400,rate=1mbit,direction=in");
    OK("htb", "cmd=add,port=2,class=300,rate=1mbit,parent=3");
    restart();
    assert_int_equal(qos_clear_all(qos, &err), 0);
    assert_int_equal(kernel.n + queue_count(qos, 2), 0);
    assert_false(shaped);
}

/* The port goes with all of it. */
static void
port_with_direction_in(void **state)
{
    two_trees("mq");
    OK("htb", "cmd=add,port=2,class=400,rate=1mbit,direction=in");
    assert_int_equal(qos_port_remove(qos, 2, true, &err), 0);
    assert_int_equal(kernel.n, 0);
    assert_false(shaped || present_in[400] || present[101] || present[200] || present[3]);
}

/* One of several is known by its place, not by a handle: it goes before the next one comes. */
static void
own_leaves_follow(void)
{
    struct qos_port port = {2, IF2, "eth", 9000, 1000, 100000000, 8, false};
    const struct qos_object *o;
    qos_set_leaf(qos, qos_sched_by_name("sfq"), &(struct qos_values){0});
    OK("mq", "cmd=add,port=2");
    OK("htb", "cmd=add,port=2,class=100,rate=5mbit,parent=2");
    assert_int_equal(port_update(qos, &port, &err), 0);
    o = fake_qdisc(&kernel, IF2, IN(2, QOS_CLASS_DEFAULT));
    assert_int_equal(o->values.v[QOS_QUANTUM], 9000);
    port.mtu = 1500;
    kernel.fail_in = 1;
    assert_true(port_update(qos, &port, &err) > 0);
    kernel.fail_in = -1;
    o = fake_qdisc(&kernel, IF2, IN(2, QOS_CLASS_DEFAULT));
    assert_int_equal(o->values.v[QOS_QUANTUM], 9000);
    OK("mq", "cmd=del,port=2");
}

static void
own_leaves(void **state)
{
    qos_set_leaf(qos, qos_sched_by_name("fq_codel"), &(struct qos_values){0});
    OK("mq", "cmd=add,port=2");
    run_failing("htb", "cmd=add,port=2,class=100,rate=5mbit,parent=2");
    run_failing("htb", "cmd=add,port=2,class=200,rate=5mbit,parent=1");
    assert_string_equal(fake_qdisc(&kernel, IF2, IN(1, QOS_CLASS_DEFAULT))->kind, "fq_codel");
    assert_string_equal(fake_qdisc(&kernel, IF2, IN(2, QOS_CLASS_DEFAULT))->kind, "fq_codel");
    assert_null(fake_qdisc(&kernel, IF2, TX(3)));
    run_failing("mq", "cmd=del,port=2");
    assert_int_equal(kernel.n, 0);
    own_leaves_follow();
}

static void
take_sample(void *ctx, const struct qos_sample *s)
{
    uint8_t *seen = ctx;
    if (s->class_id <= QOS_CLASS_MAX)
        seen[s->class_id]++;
    assert_int_equal(s->promise, s->class_id == 101 ? 500 : 0);
}

static void
samples(void **state)
{
    static uint8_t seen[0x10000];
    struct qos_budget b;
    memset(seen, 0, sizeof seen);
    two_trees("mq");
    OK("htb", "cmd=change,port=2,class=101,rate=2mbit,promise=500ms");
    assert_int_equal(qos_least_promise(qos), 500);
    apply_op(&(struct qos_op){.kind = QOS_OP_CLASS_ADD, /* somebody else's is none of our queues */
                              .ifindex = IF2,
                              .handle = IN(2, 99),
                              .parent = IN(2, QOS_CLASS_ROOT),
                              .sched = qos_sched_by_name("htb")});
    assert_int_equal(qos_sample(qos, 2, false, take_sample, seen), 0);
    assert_true(seen[1] == 1 && seen[2] == 1 && seen[101] == 1 && seen[200] == 1);
    assert_false(seen[99]);
    assert_true(qos_budget(qos, 2, QOS_OUT, 2, &b));
    assert_true(b.rate == 60000000 && b.given == 5000000 && b.parent_id == 0);
    assert_true(qos_budget(qos, 2, QOS_OUT, 100, &b));
    assert_true(b.rate == 5000000 && b.given == 2000000 && b.parent_id == 2);
    assert_false(qos_budget(qos, 2, QOS_OUT, 300, &b));
}

static void
names_way(void *ctx, const struct qos_entry *e, uint64_t rate, uint64_t ceil)
{
    strcat(ctx, e->config.sched->name);
    strcat(ctx, " ");
}

static void
way(void **state)
{
    char text[200] = "";
    two_trees("mq");
    qos_each_above(qos, 2, QOS_OUT, 101, names_way, text);
    assert_string_equal(text, "sfq htb htb htb mq ");
    *text = 0;
    qos_each_above(qos, 2, QOS_OUT, 0, names_way, text);
    assert_string_equal(text, "htb htb mq ");
    *text = 0;
    qos_each_above(qos, 2, QOS_OUT, 8, names_way, text);
    assert_string_equal(text, "pfifo mq ");
    assert_int_equal(qos_port_remove(qos, 2, true, &err), 0);
    assert_int_equal(kernel.n, 0);
}

/* What is below queue f44 would have the handle of the root. */
static void
handle_of_the_root(void **state)
{
    OK("mq", "cmd=add,port=2");
    OK("htb", "cmd=add,port=2,class=1,rate=40mbit");
    OK("htb", "cmd=add,port=2,class=3908,rate=1mbit,parent=1");
    OK("sfq", "cmd=add,port=2,class=3908");
    OK("codel", "cmd=replace,port=2,class=3908");
    restart();
    OK("sfq", "cmd=replace,port=2,class=3908");
    restart();
    OK("sfq", "cmd=del,port=2,class=3908");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(below_mq),
        TEST(below_mqprio),
        TEST(other_roots),
        TEST(many_transmit_queues),
        TEST(hfsc_below_mq),
        TEST(in_a_bundle),
        TEST(foreign),
        TEST(away_and_back),
        TEST(own_leaves),
        TEST(way),
        TEST(handle_of_the_root),
        TEST(samples),
        TEST(with_direction_in),
        TEST(port_with_direction_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
