/* SPDX-License-Identifier: Apache-2.0 */
/* The model against a fake kernel that fails at each step in turn. */
#include "fixture.h"

#include <qos/sched/red.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
first_class_makes_the_tree(void **state)
{
    OK("htb", "cmd=add,port=2,class=10,rate=6mbit,ceil=10mbit,prio=1");
    const struct qos_object *root = fake_qdisc(&kernel, IF2, QOS_PARENT_ROOT);
    assert_int_equal(root->handle, 0x10000);
    assert_int_equal(root->values.v[QOS_DEFAULT], 0xfffe);
    assert_int_equal(rate_of(QOS_CLASS_ROOT), 100000000);
    assert_int_equal(fake_class(&kernel, IF2, QOS_CLASS_DEFAULT)->values.v[QOS_CEIL], 100000000);
    const struct qos_object *c = fake_class(&kernel, IF2, 10);
    assert_int_equal(c->values.v[QOS_RATE], 6000000);
    assert_int_equal(c->values.v[QOS_CEIL], 10000000);
    assert_int_equal(c->values.v[QOS_PRIO], 1);
    assert_int_equal(c->values.v[QOS_QUANTUM], 3600);
    assert_int_equal(c->parent, 0x1ffff);
    assert_int_equal(present[10], 1);
    assert_int_equal(default_class, 0xfffe);
    assert_int_equal(queue_count(qos, 2), 1);
    /* The last queue takes along what was only there for it. */
    OK("htb", "cmd=del,port=2,class=10");
    assert_int_equal(kernel.n, 0);
    assert_int_equal(present[10], 0);
    assert_int_equal(default_class, 0);
}

static void
presence(void **state)
{
    REFUSED(OFPSFC_BAD_PORT, "htb", "cmd=add,port=9,class=10,rate=1mbit");
    REFUSED(OFPSFC_BAD_PORT, "none", "port=9");
    REFUSED(OFPSFC_BAD_PORT, "htb", "cmd=add,port=local,class=10,rate=1mbit");
    assert_non_null(strstr(err.text, "the local port has no queues"));
    REFUSED(OFPSFC_NOT_FOUND, "htb", "cmd=del,port=2,class=10");
    REFUSED(OFPSFC_NOT_FOUND, "htb", "cmd=change,port=2,class=10,rate=1mbit");
    REFUSED(OFPSFC_NOT_FOUND, "htb", "cmd=del,port=2,default=0");
    REFUSED(OFPSFC_NOT_FOUND, "htb", "cmd=add,port=2,class=10,rate=1mbit,parent=5");
    REFUSED(OFPSFC_NOT_FOUND, "sfq", "cmd=add,port=2,class=10");
    assert_int_equal(kernel.n, 0);
    OK("htb", "cmd=replace,port=2,class=10,rate=1mbit");
    REFUSED(OFPSFC_EXISTS, "htb", "cmd=add,port=2,class=10,rate=1mbit");
    REFUSED(OFPSFC_EXISTS, "htb", "cmd=add,port=2,default=0");
    REFUSED(OFPSFC_BAD_CLASS, "htb", "cmd=add,port=2,class=11,rate=1mbit,parent=11");
    OK("htb", "cmd=replace,port=2,class=10,rate=2mbit");
    assert_int_equal(rate_of(10), 2000000);
    REFUSED(OFPSFC_NOT_FOUND, "sfq", "cmd=del,port=2,class=10");
    OK("sfq", "cmd=add,port=2,class=10");
    REFUSED(OFPSFC_EXISTS, "sfq", "cmd=add,port=2,class=10");
    REFUSED(OFPSFC_EXISTS, "pfifo", "cmd=add,port=2,class=10");
    REFUSED(OFPSFC_NOT_FOUND, "pfifo", "cmd=change,port=2,class=10");
    REFUSED(OFPSFC_BUSY, "htb", "cmd=add,port=2,class=11,rate=1mbit,parent=10");
    REFUSED(OFPSFC_BUSY, "sfq", "cmd=add,port=2");
    REFUSED(OFPSFC_BUSY, "hfsc", "cmd=add,port=2,class=11,ls=1mbit");
    OK("none", "port=1");
    OK("none", "port=2,direction=in");
    assert_int_equal(present[10], 1);
}

static void
parameters(void **state)
{
    REFUSED(OFPSFC_BAD_PARAM, "htb", "cmd=add,port=2,class=10,rate=0");
    REFUSED(OFPSFC_BAD_PARAM, "htb", "cmd=add,port=2,class=10,rate=2mbit,ceil=1mbit");
    REFUSED(OFPSFC_BAD_PARAM, "htb", "cmd=add,port=2,class=10,rate=2mbit,rate=10%");
    REFUSED(OFPSFC_BAD_PARAM, "htb", "cmd=add,port=2,class=10,rate=8kbit,burst=1mb");
    assert_int_equal(kernel.n, 0);
    OK("htb", "cmd=add,port=2,class=10,rate=2mbit");
    assert_int_equal(fake_class(&kernel, IF2, 10)->values.v[QOS_CEIL], 2000000);
    REFUSED(OFPSFC_BAD_PARAM, "red", "cmd=add,port=2,class=10,threshold=0,limit=1000");
    REFUSED(OFPSFC_BAD_PARAM, "red", "cmd=add,port=2,class=10,threshold=2000,limit=1000");
    REFUSED(OFPSFC_BAD_PARAM, "red",
            "cmd=add,port=2,class=10,threshold=20000,limit=100000,"
            "max=20000");
    REFUSED(OFPSFC_BAD_PARAM, "sfq", "cmd=add,port=2,class=10,divisor=1000");
    REFUSED(OFPSFC_BAD_PARAM, "sfq", "cmd=add,port=2,class=10,limit=1000,depth=2,flows=3");
    REFUSED(OFPSFC_BAD_PARAM, "tbf", "cmd=add,port=2,class=10");
    REFUSED(OFPSFC_BAD_PARAM, "prio",
            "cmd=add,port=2,class=10,bands=3,"
            "priomap=1:2:2:2:1:2:0:0:1:1:1:1:1:1:1:3");
}

static void
defaults(void **state)
{
    OK("htb", "cmd=add,port=2,class=10,rate=2mbit,ceil=8mbit");
    OK("pfifo", "cmd=add,port=2,class=10");
    const uint64_t *v = fake_qdisc(&kernel, IF2, 0x1000a)->values.v;
    assert_int_equal(fake_qdisc(&kernel, IF2, 0x1000a)->handle, 0x00190000);
    assert_int_equal(v[QOS_LIMIT], 1000);
    OK("bfifo", "cmd=replace,port=2,class=10");
    v = fake_qdisc(&kernel, IF2, 0x1000a)->values.v;
    assert_int_equal(v[QOS_LIMIT], 1500000);
    OK("sfq", "cmd=replace,port=2,class=10");
    v = fake_qdisc(&kernel, IF2, 0x1000a)->values.v;
    assert_int_equal(v[QOS_PERTURB], 10);
    assert_int_equal(v[QOS_QUANTUM], 1500);
    OK("red", "cmd=replace,port=2,class=10,threshold=30000,limit=200000");
    v = fake_qdisc(&kernel, IF2, 0x1000a)->values.v;
    assert_int_equal(v[QOS_RED_MAX], 90000);
    assert_int_equal(v[QOS_RED_BURST], 50);
    assert_int_equal(v[QOS_RED_AVPKT], 1000);
    assert_int_equal(v[QOS_RED_PROBABILITY], 20000);
    assert_int_equal(v[QOS_RED_BANDWIDTH], 8000000);
    OK("red", "cmd=del,port=2,class=10");
    assert_null(fake_qdisc(&kernel, IF2, 0x1000a));
    /* On a port that tells no speed. */
    OK("htb", "cmd=add,port=1,class=1,rate=1mbit");
    assert_int_equal(fake_class(&kernel, 11, QOS_CLASS_ROOT)->values.v[QOS_RATE], 10000000000);
}

static void
shares_follow(void **state)
{
    OK("htb", "cmd=add,port=2,class=1,rate=50%,ceil=100%");
    OK("htb", "cmd=add,port=2,class=2,parent=1,rate=10%,ceil=20%");
    OK("htb", "cmd=add,port=2,class=3,parent=1,rate=1mbit");
    assert_int_equal(rate_of(1), 50000000);
    assert_int_equal(rate_of(2), 5000000);
    run_failing("htb", "cmd=change,port=2,class=0,rate=20mbit");
    assert_int_equal(rate_of(1), 10000000);
    assert_int_equal(rate_of(2), 1000000);
    assert_int_equal(rate_of(3), 1000000);
    assert_int_equal(fake_class(&kernel, IF2, 2)->values.v[QOS_CEIL], 4000000);
    assert_int_equal(fake_class(&kernel, IF2, QOS_CLASS_DEFAULT)->values.v[QOS_CEIL], 20000000);
    /* A change that gives no share keeps it while the rate is 0; a rate ends it. */
    OK("htb", "cmd=change,port=2,class=2,prio=3");
    assert_int_equal(rate_of(2), 1000000);
    OK("htb", "cmd=change,port=2,class=2,rate=3mbit,ceil=3mbit");
    OK("htb", "cmd=change,port=2,class=0,rate=100mbit");
    assert_int_equal(rate_of(2), 3000000);
    assert_int_equal(fake_class(&kernel, IF2, 2)->values.v[QOS_PRIO], 0);
    /* A share that would come to less than its ceiling allows is refused as a whole. */
    OK("htb", "cmd=add,port=2,class=4,rate=10%,ceil=10mbit");
    REFUSED(OFPSFC_BAD_PARAM, "htb", "cmd=change,port=2,class=0,rate=200mbit");
    assert_int_equal(rate_of(QOS_CLASS_ROOT), 100000000);
}

/* Classes that borrow take turns in proportion to their rates; what that takes is known of a class and
 * its parent alone, however many there are. */
static void
turns(void **state)
{
    char line[128];
    OK("htb", "cmd=add,port=2,class=0,rate=50mbit,oversubscribe=yes");
    for (unsigned i = 1; i <= 300; i++) {
        unsigned before = kernel.n_ops;
        snprintf(line, sizeof line, "cmd=add,port=2,class=%u,rate=%u%%,ceil=100%%", i, i % 40 + 10);
        OK("htb", line);
        assert_int_equal(kernel.n_ops - before, 1);
    }
    for (unsigned i = 1; i <= 300; i++)
        assert_int_equal(fake_class(&kernel, IF2, i)->values.v[QOS_QUANTUM],
                         60000 / 100 * (i % 40 + 10));
    OK("htb", "cmd=add,port=2,class=400,parent=300,rate=50%,quantum=3000");
    OK("htb", "cmd=add,port=2,class=401,parent=300,rate=2500kbit");
    assert_int_equal(fake_class(&kernel, IF2, 401)->values.v[QOS_QUANTUM], 60000 / 6);
    run_failing("htb",
                "cmd=change,port=2,class=300,rate=5mbit,ceil=10mbit"); /* 401 is notified too */
    assert_int_equal(fake_class(&kernel, IF2, 400)->values.v[QOS_QUANTUM], 3000);
    assert_int_equal(fake_class(&kernel, IF2, 401)->values.v[QOS_QUANTUM], 60000 / 2);
}

/* A class that has others below it leads its packets to the one with the lowest id. */
static void
inner_classes_lead_packets(void **state)
{
    OK("htb", "cmd=add,port=2,class=1,rate=10mbit");
    assert_int_equal(present[1], 1);
    run_failing("htb", "cmd=add,port=2,class=2,parent=1,rate=1mbit");
    OK("htb", "cmd=add,port=2,class=3,parent=2,rate=1mbit");
    OK("htb", "cmd=change,port=2,class=1,rate=9mbit");
    assert_true(taker[1] == 3 && taker[2] == 3 && taker[3] == 3);
    assert_int_equal(notified_limit[1], 1000000);
    OK("htb", "cmd=add,port=2,class=4,rate=1mbit");
    REFUSED(OFPSFC_BUSY, "htb", "cmd=change,port=2,class=2,parent=4,rate=1mbit");
    run_failing("htb", "cmd=del,port=2,class=4");
    run_failing("htb", "cmd=change,port=2,class=3,parent=1,rate=1mbit,ceil=5mbit");
    assert_true(taker[1] == 2 && taker[2] == 2 && taker[3] == 3);
    run_failing("htb", "cmd=add,port=2,class=7,parent=3,rate=1mbit,ceil=4mbit");
    assert_true(taker[1] == 2 && taker[3] == 7);
    run_failing("htb", "cmd=del,port=2,class=2");
    assert_true(taker[1] == 7 && !present[2]);
    run_failing("htb", "cmd=change,port=2,class=7,rate=1mbit,ceil=3mbit");
    assert_int_equal(notified_limit[1], 3000000);
    run_failing("htb", "cmd=add,port=2,class=6,parent=3,rate=1mbit,ceil=2mbit");
    assert_true(taker[1] == 6 && taker[3] == 6 && notified_limit[1] == 2000000);
    run_failing("pfifo", "cmd=add,port=2,class=6,limit=10");
    run_failing("htb", "cmd=del,port=2,class=3,children=yes");
    assert_true(taker[1] == 1 && !present[3] && !present[6] && !present[7]);
    OK("htb", "cmd=add,port=2,class=2,parent=1,rate=1mbit");
    run_failing("htb", "cmd=del,port=2,class=1,children=yes");
    assert_int_equal(present[1] + present[2], 0);
}

static void
speed_follows(void **state)
{
    struct qos_port port = {2, IF2, "eth", 1500, 1000, 1000000000, 8, false};
    OK("htb", "cmd=add,port=2,class=1,rate=50%");
    assert_int_equal(port_update(qos, &port, &err), 0);
    assert_int_equal(rate_of(QOS_CLASS_ROOT), 1000000000);
    assert_int_equal(rate_of(1), 500000000);
    OK("htb", "cmd=add,port=2,class=0,rate=80mbit");
    port.speed = 100000000;
    assert_int_equal(port_update(qos, &port, &err), 0);
    assert_int_equal(rate_of(QOS_CLASS_ROOT), 80000000);
    REFUSED(OFPSFC_EXISTS, "htb", "cmd=add,port=2,class=0,rate=80mbit");
}

/* The port's total as a share of the link, alone and above others. */
static void
a_share_of_the_link_follows(void **state)
{
    struct qos_port port = {2, IF2, "eth", 1500, 1000, 1000000000, 8, false};
    OK("htb", "cmd=add,port=2,class=0,rate=95%,ceil=100%");
    OK("htb", "cmd=add,port=2,class=1,rate=50%");
    assert_int_equal(rate_of(QOS_CLASS_ROOT), 95000000);
    char *before = fake_text(&kernel);
    for (int at = 0; at < 3; at++) { /* root, default, queue */
        kernel.fail_in = at;
        assert_int_equal(port_update(qos, &port, &err), QOS_ERR(OFPSFC_KERNEL));
        char *after = fake_text(&kernel);
        assert_string_equal(after, before);
        free(after);
    }
    free(before);
    assert_int_equal(port_update(qos, &port, &err), 0);
    assert_int_equal(rate_of(QOS_CLASS_ROOT), 950000000);
    assert_int_equal(rate_of(1), 475000000);
    before = fake_text(&kernel);
    qos_set_foreign(qos, QOS_FOREIGN_REPAIR);
    fake_forget(&kernel, IF2);
    assert_int_equal(qos_port_sync(qos, 2, &err), 0);
    char *anew = fake_text(&kernel);
    assert_string_equal(anew, before);
    free(anew);
    free(before);
}

static void
every_step_fails(void **state)
{
    run_failing("htb", "cmd=add,port=2,class=10,rate=6mbit,ceil=10mbit");
    run_failing("htb", "cmd=add,port=2,class=11,rate=4mbit");
    run_failing("sfq", "cmd=add,port=2,class=10,perturb=5");
    run_failing("sfq", "cmd=change,port=2,class=10,perturb=7");
    run_failing("red", "cmd=replace,port=2,class=10,threshold=30kb,limit=200kb,ecn=yes");
    run_failing("red", "cmd=change,port=2,class=10,threshold=20kb,limit=200kb");
    assert_int_equal(fake_qdisc(&kernel, IF2, 0x1000a)->values.v[QOS_ECN], 1);
    run_failing("htb", "cmd=add,port=2,class=20,rate=10mbit");
    run_failing("htb", "cmd=add,port=2,class=21,parent=20,rate=40%");
    run_failing("htb", "cmd=add,port=2,class=22,parent=20,rate=5mbit");
    run_failing("pfifo", "cmd=add,port=2,class=22,limit=7");
    run_failing("htb", "cmd=change,port=2,class=20,rate=20mbit");
    assert_int_equal(rate_of(21), 8000000);
    run_failing("htb", "cmd=change,port=2,class=22,parent=0,rate=5mbit");
    assert_int_equal(fake_class(&kernel, IF2, 22)->parent, 0x1ffff);
    assert_int_equal(fake_qdisc(&kernel, IF2, 0x10016)->values.v[QOS_LIMIT], 7);
    run_failing("htb", "cmd=change,port=2,class=22,parent=20,rate=5mbit");
    run_failing("htb", "cmd=change,port=2,default=10");
    assert_int_equal(default_class, 10);
    assert_int_equal(fake_qdisc(&kernel, IF2, 0x10016)->values.v[QOS_LIMIT], 7);
    REFUSED(OFPSFC_BUSY, "htb", "cmd=del,port=2,class=20");
    run_failing("htb", "cmd=del,port=2,class=20,children=yes");
    assert_null(fake_class(&kernel, IF2, 22));
    run_failing("htb", "cmd=del,port=2,class=10");
    assert_int_equal(default_class, 0xfffe);
    run_failing("htb", "cmd=del,port=2,class=11");
    assert_int_equal(queue_count(qos, 2), 0);
    assert_non_null(fake_qdisc(&kernel, IF2, QOS_PARENT_ROOT)); /* asked for by default=10 */
    run_failing("red", "cmd=replace,port=2,threshold=30kb,limit=200kb");
    run_failing("htb", "cmd=replace,port=2,default=1");
    run_failing("htb", "cmd=del,port=2,default=0");
    assert_int_equal(kernel.n, 0);
}

static void
none_on_all_ports(void **state)
{
    run_failing("htb", "cmd=add,port=1,class=1,rate=1mbit");
    run_failing("pfifo", "cmd=add,port=1,class=1");
    run_failing("red", "cmd=add,port=2,threshold=30kb,limit=200kb");
    fake_foreign_root(&kernel, 99, 0x80010000, "pfifo");
    run_failing("none", "port=any");
    assert_int_equal(kernel.n, 1);
    OK("none", "port=any");
    OK("none", "port=2");
}

static void
foreign_root(void **state)
{
    fake_foreign_root(&kernel, IF2, 0x80010000, "tbf");
    REFUSED(OFPSFC_BUSY, "htb", "cmd=add,port=2,class=1,rate=1mbit");
    REFUSED(OFPSFC_BUSY, "htb", "cmd=add,port=2,default=0");
    REFUSED(OFPSFC_BUSY, "sfq", "cmd=add,port=2");
    OK("none", "port=2");
    assert_int_equal(kernel.n, 1);
    assert_int_equal(qos_clear_all(qos, &err), 0);
    assert_int_equal(kernel.n, 1);
}

static void
depth(void **state)
{
    char args[100];
    for (int i = 1; i <= 7; i++) {
        snprintf(args, sizeof args, "cmd=add,port=2,class=%d,parent=%d,rate=1mbit", i, i - 1);
        OK("htb", args);
    }
    REFUSED(OFPSFC_BAD_CLASS, "htb", "cmd=add,port=2,class=8,parent=7,rate=1mbit");
    OK("htb", "cmd=del,port=2,class=1,children=yes");
    assert_int_equal(kernel.n, 0);
}

/* An earlier daemon's queues are found again; then somebody deletes one by hand. */
static void
adoption(void **state)
{
    OK("htb", "cmd=add,port=2,class=10,rate=6mbit,ceil=10mbit,burst=20000");
    OK("htb", "cmd=add,port=2,class=5,parent=0,rate=20mbit");
    OK("htb", "cmd=add,port=2,class=6,parent=5,rate=3mbit,quantum=3000");
    OK("sfq", "cmd=add,port=2,class=10");
    char *before = fake_text(&kernel), *model = model_text();
    qos_free(qos);
    start();
    assert_true(present[10] && taker[5] == 6 && taker[6] == 6); /* 5 has 6 below it */
    assert_int_equal(default_class, 0xfffe);
    char *after = fake_text(&kernel), *model_after = model_text();
    assert_string_equal(after, before);
    assert_string_equal(model_after, model);
    free(before);
    free(after);
    free(model);
    free(model_after);
    run_failing("htb", "cmd=change,port=2,class=5,rate=10mbit");
    run_failing("sfq", "cmd=change,port=2,class=10,perturb=3");

    uint8_t done;
    struct qos_op op = {.kind = QOS_OP_CLASS_DEL, .ifindex = IF2, .handle = 0x10006};
    assert_int_equal(kernel.base.ops->apply(&kernel.base, &op, 1, &done, NULL), 0);
    op = (struct qos_op){.kind = QOS_OP_QDISC_DEL,
                         .ifindex = IF2,
                         .parent = 0x1000a,
                         .sched = qos_sched_by_name("sfq")};
    assert_int_equal(kernel.base.ops->apply(&kernel.base, &op, 1, &done, NULL), 0);
    assert_int_equal(qos_port_sync(qos, 2, &err), 0);
    assert_true(present[10] && taker[5] == 5 && !present[6]);
    OK("sfq", "cmd=add,port=2,class=10");
    op = (struct qos_op){
        .kind = QOS_OP_QDISC_DEL, .ifindex = IF2, .handle = 0x10000, .parent = QOS_PARENT_ROOT};
    assert_int_equal(kernel.base.ops->apply(&kernel.base, &op, 1, &done, NULL), 0);
    assert_int_equal(qos_port_sync(qos, 2, &err), 0);
    assert_true(!present[10] && !present[5] && default_class == 0);
    OK("htb", "cmd=add,port=2,class=10,rate=6mbit");
    assert_int_equal(qos_port_remove(qos, 2, true, &err), 0);
    assert_int_equal(kernel.n, 0);
}

static void
take_drops(void *ctx, const struct qos_sample *sample)
{
    if (sample->class_id == 10)
        *(uint64_t *)ctx = sample->counters.drops;
}

/* Where promises are watched, also what the scheduler below has dropped later. */
static void
samples(void **state)
{
    uint64_t drops = 0;
    OK("htb", "cmd=add,port=2,class=10,rate=6mbit");
    OK("htb", "cmd=add,port=2,class=11,rate=6mbit");
    OK("pfifo", "cmd=add,port=2,class=10");
    assert_int_equal(qos_sample(qos, 2, false, take_drops, &drops), 0);
    assert_int_equal(drops, 1);
    assert_int_equal(qos_least_promise(qos), 0);
    OK("htb", "cmd=change,port=2,class=11,rate=6mbit,promise=2s");
    OK("htb", "cmd=change,port=2,class=10,rate=6mbit,promise=1s");
    assert_int_equal(qos_least_promise(qos), 1000);
    assert_int_equal(qos_sample(qos, 2, false, take_drops, &drops), 0);
    assert_int_equal(drops, 5);
}

static bool
count(void *ctx, const struct qos_queue *queue)
{
    uint32_t *last = ctx;
    assert_true(queue->class_id > *last);
    assert_int_equal(queue->counters.bytes, 1000 + queue->class_id);
    *last = queue->class_id;
    return true;
}

static bool
count_entries(void *ctx, const struct qos_entry *entry)
{
    ++*(unsigned *)ctx;
    return true;
}

static void
queues(void **state)
{
    char args[100];
    struct qos_queue queue;
    uint32_t last = 0;
    for (int i = 1; i <= 3000; i++) {
        snprintf(args, sizeof args, "cmd=add,port=2,class=%d,rate=%dkbit,ceil=10mbit", i * 19, i);
        OK("htb", args);
    }
    assert_int_equal(qos_queue_each(qos, 2, true, count, &last), 0);
    assert_int_equal(last, 3000 * 19);
    assert_int_equal(qos_queue_get(qos, 2, 190, true, &queue), 0);
    assert_int_equal(queue.min_rate, 10000);
    assert_int_equal(queue.max_rate, 10000000);
    assert_int_equal(queue.counters.packets, 190);
    assert_true(queue.created > 0);
    assert_int_equal(qos_queue_get(qos, 2, 191, true, &queue), -ENOENT);
    assert_int_equal(qos_queue_get(qos, 2, 0xfffe, true, &queue), -ENOENT);
    assert_int_equal(qos_queue_get(qos, 7, 190, true, &queue), -ENOENT);
    unsigned n = 0;
    OK("pfifo", "cmd=add,port=2,class=190");
    assert_int_equal(qos_dump(qos, 2, 190, count_entries, &n, &err), 0);
    assert_int_equal(n, 2);
    assert_int_equal(qos_dump(qos, 2, 0, count_entries, &n, &err), 0);
    assert_int_equal(n, 4);
    assert_int_equal(qos_dump(qos, OFPP_ANY, QOS_ALL_CLASSES, count_entries, &n, &err), 0);
    assert_int_equal(n, 4 + 3000 + 4);
    assert_int_equal(qos_dump(qos, 2, 191, count_entries, &n, &err), QOS_ERR(OFPSFC_NOT_FOUND));
    assert_int_equal(qos_dump(qos, 7, 191, count_entries, &n, &err), QOS_ERR(OFPSFC_BAD_PORT));
    assert_int_equal(qos_dump(qos, OFPP_LOCAL, 0, count_entries, &n, &err),
                     QOS_ERR(OFPSFC_BAD_PORT));
    assert_non_null(strstr(err.text, "the local port has no queues"));
    assert_int_equal(qos_clear_all(qos, &err), 0);
    assert_int_equal(kernel.n, 0);
}

/* The interface goes away with its queues; what comes in its place gets them again. */
static void
away_and_back(void **state)
{
    struct qos_port port = {2, 30, "eth", 1500, 1000, 100000000, 8, false};
    assert_int_equal(qos_port_absent(qos, 9), -ENOENT);
    assert_int_equal(port_back(qos, &(struct qos_port){.port_no = 9}, &err), -ENOENT);
    OK("htb", "cmd=add,port=2,class=1,rate=50%,ceil=100%");
    OK("htb", "cmd=add,port=2,class=2,parent=1,rate=10%");
    OK("sfq", "cmd=add,port=2,class=2,perturb=5");
    char *before = model_text();
    kernel.n = 0;
    assert_int_equal(qos_port_absent(qos, 2), 0);
    assert_int_equal(present[1] + present[2] + default_class, 0);
    unsigned n = 0;
    assert_int_equal(qos_dump(qos, 2, QOS_ALL_CLASSES, count_entries, &n, &err), 0);
    assert_int_equal(n, 6);
    assert_int_equal(qos_dump(qos, 2, 2, count_entries, &n, &err), 0);
    REFUSED(OFPSFC_BAD_PORT, "htb", "cmd=add,port=2,class=3,rate=1mbit");
    assert_int_equal(qos_port_sync(qos, 2, &err), 0);
    assert_int_equal(port_back(qos, &port, &err), 0);
    assert_true(taker[1] == 2 && taker[2] == 2);
    assert_int_equal(default_class, 0xfffe);
    assert_int_equal(fake_class(&kernel, 30, 2)->values.v[QOS_RATE], 5000000);
    assert_int_equal(fake_qdisc(&kernel, 30, 0x10002)->values.v[QOS_PERTURB], 5);
    char *after = model_text();
    assert_string_equal(after, before);
    /* Another speed: shares follow.  Refused by the kernel, or cleared meanwhile: forgotten. */
    kernel.n = 0;
    port.speed = 1000000000;
    assert_int_equal(qos_port_absent(qos, 2), 0);
    assert_int_equal(port_back(qos, &port, &err), 0);
    assert_int_equal(fake_class(&kernel, 30, 1)->values.v[QOS_RATE], 500000000);
    kernel.n = 0;
    assert_int_equal(qos_port_absent(qos, 2), 0);
    kernel.fail_in = 3;
    assert_true(port_back(qos, &port, &err) > 0);
    kernel.fail_in = -1;
    assert_int_equal(kernel.n + queue_count(qos, 2) + present[1] + default_class, 0);
    OK("htb", "cmd=add,port=2,class=1,rate=1mbit");
    kernel.n = 0;
    assert_int_equal(qos_port_absent(qos, 2), 0);
    OK("none", "port=2");
    assert_int_equal(port_back(qos, &port, &err), 0);
    assert_int_equal(kernel.n + queue_count(qos, 2), 0);
    free(before);
    free(after);
}

/* The weight by the paper's own example (section 6): 50 packets and a threshold of 5 want a
 * weight below 0.0042. */
static void
red_weight(void **state)
{
    struct qos_values v = {0};
    struct qos_red red;
    qos_put(&v, QOS_THRESHOLD, 5000);
    qos_put(&v, QOS_RED_MAX, 15000);
    qos_put(&v, QOS_RED_AVPKT, 1000);
    qos_put(&v, QOS_RED_BURST, 50);
    qos_put(&v, QOS_RED_PROBABILITY, 20000);
    qos_put(&v, QOS_RED_BANDWIDTH, 10000000);
    struct qos_red_of of = qos_red_of_values(&v);
    assert_true(qos_red_derive(&of, &red));
    assert_int_equal(red.wlog, 8); /* 1/256 = 0.0039 */
    assert_int_equal(red.max_p, 85899345);
    assert_int_equal(red.idle[0], 0);
    for (unsigned i = 1; i < QOS_RED_CELLS; i++)
        assert_true(red.idle[i] >= red.idle[i - 1] && red.idle[i] <= 31);
    assert_int_equal(red.idle[255], 31);
    of.burst = 1000000;
    assert_false(qos_red_derive(&of, &red));
    of = (struct qos_red_of){15, 45, true, 1000, 50, 10000000, 20000}; /* in packets */
    assert_true(qos_red_derive(&of, &red));
    assert_int_equal(red.wlog, 7);
}

/* What each queue can get at most: its own ceiling, that of a class above it, or its scheduler's. */
static void
limits_are_notified(void **state)
{
    OK("htb", "cmd=add,port=2,class=1,rate=10mbit");
    OK("htb", "cmd=add,port=2,class=2,parent=1,rate=1mbit,ceil=50mbit");
    OK("htb", "cmd=add,port=2,class=3,parent=1,rate=1mbit");
    assert_int_equal(notified_limit[0], 100000000);
    assert_int_equal(notified_limit[1], 10000000); /* 2 takes its packets */
    assert_int_equal(notified_limit[2], 10000000);
    assert_int_equal(notified_limit[3], 1000000);
    OK("htb", "cmd=change,port=2,class=1,rate=5mbit");
    assert_int_equal(notified_limit[2], 5000000);
    OK("htb", "cmd=change,port=2,class=1,rate=80mbit");
    assert_int_equal(notified_limit[2], 50000000);
    OK("tbf", "cmd=add,port=2,class=3,rate=64kbit");
    assert_int_equal(notified_limit[3], 64000);
    OK("tbf", "cmd=del,port=2,class=3");
    assert_int_equal(notified_limit[3], 1000000);
    OK("htb", "cmd=change,port=2,class=0,rate=40mbit,oversubscribe=yes");
    assert_int_equal(notified_limit[2], 40000000);
    assert_int_equal(notified_limit[0], 40000000);
    OK("none", "port=2");
    assert_int_equal(notified_limit[0], 0);
    OK("tbf", "cmd=add,port=2,rate=3mbit");
    assert_int_equal(notified_limit[0], 3000000);
}

/* CAKE cuts super-packets when they come to it, so nobody else must. */
static void
who_cuts_itself_has_no_limit(void **state)
{
    OK("htb", "cmd=add,port=2,class=1,rate=10mbit,ceil=25mbit");
    OK("htb", "cmd=add,port=2,class=2,rate=10mbit,ceil=25mbit,delay=20ms");
    assert_int_equal(notified_limit[1], 25000000);
    OK("cake", "cmd=add,port=2,class=1,rate=20mbit");
    OK("cake", "cmd=add,port=2,class=2");
    assert_int_equal(notified_limit[1], 0);
    assert_int_equal(notified_limit[2], 0);
    OK("cake", "cmd=change,port=2,class=1,split_gso=no");
    assert_int_equal(notified_limit[1], 20000000);
    OK("cake", "cmd=del,port=2,class=1");
    assert_int_equal(notified_limit[1], 25000000);
    OK("none", "port=2");
    OK("cake", "cmd=add,port=2,rate=3mbit");
    assert_int_equal(notified_limit[0], 0);
}

/* One port's refusal keeps no other port's queues. */
static void
clear_all_goes_on(void **state)
{
    OK("htb", "cmd=add,port=1,class=1,rate=1mbit,ceil=2mbit");
    OK("htb", "cmd=add,port=2,class=1,rate=1mbit");
    kernel.fail_in = 0;
    assert_int_equal(qos_clear_all(qos, &err), QOS_ERR(OFPSFC_KERNEL));
    assert_int_equal(err.err, QOS_ERR(OFPSFC_KERNEL));
    assert_true(err.text[0]);
    assert_int_equal(queue_count(qos, 1), 1);
    assert_int_equal(queue_count(qos, 2), 0);
    kernel.fail_in = -1;
    assert_int_equal(qos_clear_all(qos, &err), 0);
    assert_int_equal(kernel.n, 0);
}

static void
counters_of_one_queue(void **state)
{
    struct qos_queue queue;
    OK("htb", "cmd=add,port=2,class=10,rate=1mbit");
    OK("sfq", "cmd=add,port=2,class=10");
    assert_int_equal(qos_queue_get(qos, 2, 10, true, &queue), 0);
    assert_int_equal(queue.class_id, 10);
    assert_int_equal(qos_queue_get(qos, 2, 11, true, &queue), -ENOENT);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(first_class_makes_the_tree),
        TEST(presence),
        TEST(parameters),
        TEST(defaults),
        TEST(shares_follow),
        TEST(turns),
        TEST(inner_classes_lead_packets),
        TEST(speed_follows),
        TEST(a_share_of_the_link_follows),
        TEST(every_step_fails),
        TEST(none_on_all_ports),
        TEST(foreign_root),
        TEST(clear_all_goes_on),
        TEST(depth),
        TEST(adoption),
        TEST(samples),
        TEST(queues),
        TEST(counters_of_one_queue),
        TEST(away_and_back),
        TEST(limits_are_notified),
        TEST(who_cuts_itself_has_no_limit),
        cmocka_unit_test(red_weight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
