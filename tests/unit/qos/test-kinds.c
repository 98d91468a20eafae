/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of other kinds than HTB, against a fake kernel that fails at each step in turn. */
#include "fixture.h"

#include <qos/sched/precedence.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t *
curve_of(uint32_t id, unsigned slot)
{
    const struct qos_object *o = fake_class(&kernel, IF2, id);
    assert_non_null(o);
    assert_true(qos_has(&o->values, slot));
    return &o->values.v[slot];
}

static uint64_t
kernel_default(void)
{
    return fake_qdisc(&kernel, IF2, QOS_PARENT_ROOT)->values.v[QOS_DEFAULT];
}

/* The model after a restart is what it was. */
static void
restart(void)
{
    char *before = model_text();
    qos_free(qos);
    start();
    char *after = model_text();
    assert_string_equal(after, before);
    free(before);
    free(after);
}

static void
hfsc_tree(void **state)
{
    struct qos_queue queue;
    run_failing("hfsc", "cmd=add,port=2,class=10,rt=4mbit/10ms/2mbit,ls=2mbit");
    assert_int_equal(fake_qdisc(&kernel, IF2, QOS_PARENT_ROOT)->handle, QOS_HANDLE_TREE);
    assert_int_equal(kernel_default(), 0xfffe);
    assert_int_equal(curve_of(QOS_CLASS_ROOT, QOS_FSC)[2], 100000000);
    assert_int_equal(curve_of(QOS_CLASS_ROOT, QOS_USC)[2], 100000000);
    assert_int_equal(curve_of(QOS_CLASS_DEFAULT, QOS_FSC)[2], 5000000);
    assert_int_equal(curve_of(10, QOS_RSC)[0], 4000000);
    assert_int_equal(curve_of(10, QOS_RSC)[1], 10000);
    assert_int_equal(curve_of(10, QOS_RSC)[2], 2000000);
    assert_int_equal(fake_class(&kernel, IF2, 10)->parent, 0x1ffff);
    assert_int_equal(present[10], 1);
    assert_int_equal(default_class, 0xfffe);
    assert_int_equal(qos_queue_get(qos, 2, 10, true, &queue), 0);
    assert_int_equal(queue.min_rate, 2000000);
    assert_int_equal(queue.max_rate, 100000000);
    run_failing("hfsc", "cmd=change,port=2,class=10,ul=5mbit");
    assert_int_equal(curve_of(10, QOS_RSC)[0], 4000000);
    assert_int_equal(qos_queue_get(qos, 2, 10, true, &queue), 0);
    assert_int_equal(queue.max_rate, 5000000);
    run_failing("hfsc", "cmd=add,port=2,class=11,parent=10,rt=1mbit");
    REFUSED(OFPSFC_BAD_CLASS, "hfsc", "cmd=add,port=2,class=12,parent=11,ls=1mbit");
    run_failing("hfsc", "cmd=change,port=2,class=11,parent=0");
    assert_int_equal(fake_class(&kernel, IF2, 11)->parent, 0x1ffff);
    run_failing("pfifo", "cmd=add,port=2,class=11,limit=7");
    run_failing("hfsc", "cmd=change,port=2,class=11,parent=10");
    assert_int_equal(fake_qdisc(&kernel, IF2, 0x1000b)->values.v[QOS_LIMIT], 7);
    restart();
    REFUSED(OFPSFC_BUSY, "hfsc", "cmd=del,port=2,class=10");
    run_failing("hfsc", "cmd=del,port=2,class=10,children=yes");
    assert_int_equal(kernel.n, 0);
    run_failing("hfsc", "cmd=add,port=2,class=0,ul=80mbit");
    assert_int_equal(curve_of(QOS_CLASS_ROOT, QOS_FSC)[2], 100000000);
    assert_int_equal(curve_of(QOS_CLASS_ROOT, QOS_USC)[2], 80000000);
    run_failing("hfsc", "cmd=del,port=2,class=0");
    assert_int_equal(kernel.n, 0);
}

static void
hfsc_curves(void **state)
{
    REFUSED(OFPSFC_BAD_PARAM, "hfsc", "cmd=add,port=2,class=10");
    REFUSED(OFPSFC_BAD_PARAM, "hfsc", "cmd=add,port=2,class=10,ls=0");
    REFUSED(OFPSFC_BAD_PARAM, "hfsc", "cmd=add,port=2,class=10,ul=1mbit");
    REFUSED(OFPSFC_BAD_PARAM, "hfsc", "cmd=add,port=2,class=10,rt=1mbit,ul=1mbit");
    REFUSED(OFPSFC_BAD_PARAM, "hfsc", "cmd=add,port=2,class=10,ls=40gbit");
    REFUSED(OFPSFC_BAD_PARAM, "hfsc", "cmd=add,port=2,class=10,ls=7");
    REFUSED(OFPSFC_BAD_PARAM, "hfsc", "cmd=add,port=2,class=10,ls=2mbit/0/1mbit");
    assert_int_equal(kernel.n, 0);
    OK("hfsc", "cmd=add,port=2,class=10,ls=34359738360");
    OK("hfsc", "cmd=add,port=2,class=11,rt=1mbit/0/1mbit");
    REFUSED(OFPSFC_BAD_PARAM, "hfsc", "cmd=change,port=2,class=11,ul=1mbit");
}

/* The root's curves follow the link, also beyond what HFSC can count. */
static void
hfsc_speed(void **state)
{
    struct qos_port port = {2, IF2, "eth", 1500, 1000, 1000000000, 8, false};
    struct qos_queue queue;
    OK("hfsc", "cmd=add,port=2,class=10,ls=1mbit");
    kernel.n_ops = 0;
    assert_int_equal(port_update(qos, &port, &err), 0);
    assert_int_equal(kernel.n_ops, 2); /* the root and default classes; 10 has no share */
    assert_int_equal(curve_of(QOS_CLASS_ROOT, QOS_USC)[2], 1000000000);
    assert_int_equal(curve_of(QOS_CLASS_DEFAULT, QOS_FSC)[2], 50000000);
    assert_int_equal(qos_queue_get(qos, 2, 10, false, &queue), 0);
    assert_int_equal(queue.max_rate, 1000000000);
    restart(); /* with 100 Mbit/s again: not what the root has */
    assert_int_equal(curve_of(QOS_CLASS_ROOT, QOS_USC)[2], 1000000000);
    OK("none", "port=2");
    port.speed = 100000000000;
    assert_int_equal(port_update(qos, &port, &err), 0);
    OK("hfsc", "cmd=add,port=2,class=10,ls=1mbit");
    assert_int_equal(curve_of(QOS_CLASS_ROOT, QOS_FSC)[2], 34359738360);
    assert_false(qos_has(&fake_class(&kernel, IF2, QOS_CLASS_ROOT)->values, QOS_USC));
}

static void
drr_classes(void **state)
{
    struct qos_queue queue;
    run_failing("drr", "cmd=add,port=2,class=10,quantum=3000");
    assert_null(fake_class(&kernel, IF2, QOS_CLASS_ROOT));
    assert_int_equal(fake_class(&kernel, IF2, QOS_CLASS_DEFAULT)->values.v[QOS_QUANTUM], 1514);
    assert_int_equal(fake_class(&kernel, IF2, 10)->values.v[QOS_QUANTUM], 3000);
    assert_int_equal(fake_class(&kernel, IF2, 10)->parent, QOS_HANDLE_TREE);
    assert_int_equal(kernel_default(), 0xfffe);
    assert_int_equal(default_class, 0xfffe);
    run_failing("drr", "cmd=add,port=2,class=11");
    run_failing("drr", "cmd=change,port=2,class=11,quantum=2000");
    run_failing("drr", "cmd=replace,port=2,class=11,parent=0");
    assert_int_equal(fake_class(&kernel, IF2, 11)->values.v[QOS_QUANTUM], 2000);
    REFUSED(OFPSFC_UNSUPPORTED, "drr", "cmd=add,port=2,class=12,parent=11");
    REFUSED(OFPSFC_NOT_FOUND, "drr", "cmd=add,port=2,class=12,parent=13");
    REFUSED(OFPSFC_BAD_CLASS, "drr", "cmd=add,port=2,class=0,quantum=2000");
    run_failing("sfq", "cmd=add,port=2,class=11,perturb=3");
    assert_int_equal(qos_queue_get(qos, 2, 10, true, &queue), 0);
    assert_int_equal(queue.min_rate, 0);
    assert_int_equal(queue.max_rate, 100000000);
    restart();
    char *text = model_text();
    assert_null(strstr(text, "class=0 ")); /* no root class */
    free(text);
    struct qos_port port = {2, IF2, "eth", 1500, 1000, 1000000000, 8, false};
    kernel.n_ops = 0;
    assert_int_equal(port_update(qos, &port, &err), 0);
    assert_int_equal(kernel.n_ops, 0);
    assert_int_equal(qos_queue_get(qos, 2, 10, true, &queue), 0);
    assert_int_equal(queue.max_rate, 1000000000);
    run_failing("drr", "cmd=del,port=2,class=11");
    run_failing("drr", "cmd=del,port=2,class=10");
    assert_int_equal(kernel.n, 0);
}

/* The kernel gets a default class only while it exists and packets can wait in it. */
static void
default_class_comes_and_goes(void **state)
{
    static const char *const kinds[] = {"hfsc", "drr"};
    for (unsigned i = 0; i < 2; i++) {
        const char *kind = kinds[i], *curve = i ? "" : ",ls=1mbit";
        char args[100];
        run_failing(kind, "cmd=add,port=2,default=10");
        assert_int_equal(kernel_default(), 0xfffe);
        snprintf(args, sizeof args, "cmd=add,port=2,class=10%s", curve);
        run_failing(kind, args);
        assert_int_equal(kernel_default(), 10);
        assert_int_equal(default_class, 10);
        restart();
        if (i == 0) {
            run_failing(kind, "cmd=add,port=2,class=11,parent=10,ls=1mbit");
            assert_int_equal(kernel_default(), 0xfffe);
            assert_int_equal(default_class, 0xfffe);
            run_failing(kind, "cmd=change,port=2,class=11,parent=0");
            assert_int_equal(kernel_default(), 10);
            run_failing(kind, "cmd=change,port=2,class=11,parent=10");
            assert_int_equal(kernel_default(), 0xfffe);
            run_failing(kind, "cmd=del,port=2,class=11");
            assert_int_equal(kernel_default(), 10);
            assert_int_equal(default_class, 10);
        }
        kernel.n_ops = 0;
        snprintf(args, sizeof args, "cmd=add,port=2,class=12%s", curve);
        run_failing(kind, args);
        run_failing(kind, "cmd=change,port=2,default=12");
        assert_int_equal(kernel_default(), 12);
        run_failing(kind, "cmd=change,port=2,default=10");
        run_failing(kind, "cmd=del,port=2,class=10");
        assert_int_equal(kernel_default(), 0xfffe);
        assert_int_equal(default_class, 0xfffe);
        run_failing(kind, "cmd=change,port=2,default=0");
        run_failing(kind, "cmd=del,port=2,default=0");
        assert_int_equal(kernel.n, 0);
        assert_int_equal(default_class, 0);
    }
}

static void
one_kind_a_port(void **state)
{
    OK("htb", "cmd=add,port=2,class=10,rate=1mbit");
    REFUSED(OFPSFC_BUSY, "hfsc", "cmd=add,port=2,class=11,ls=1mbit");
    assert_non_null(strstr(err.text, "htb"));
    REFUSED(OFPSFC_BUSY, "drr", "cmd=add,port=2,class=10");
    REFUSED(OFPSFC_BUSY, "hfsc", "cmd=replace,port=2,class=0,ul=1mbit");
    REFUSED(OFPSFC_BUSY, "drr", "cmd=add,port=2,default=0");
    REFUSED(OFPSFC_BUSY, "drr", "cmd=replace,port=2,default=0");
    REFUSED(OFPSFC_BUSY, "prio", "cmd=add,port=2");
    REFUSED(OFPSFC_NOT_FOUND, "drr", "cmd=del,port=2,class=10");
    REFUSED(OFPSFC_NOT_FOUND, "hfsc", "cmd=del,port=2,default=0");
    REFUSED(OFPSFC_NOT_FOUND, "hfsc", "cmd=change,port=2,class=10,ls=1mbit");
    OK("hfsc", "cmd=add,port=1,class=10,ls=1mbit");
    OK("none", "port=2");
    OK("htb", "cmd=add,port=2,default=0");
    run_failing("drr", "cmd=replace,port=2,default=0"); /* no queues: nothing is lost */
    run_failing("hfsc", "cmd=replace,port=2,default=0");
    run_failing("htb", "cmd=replace,port=2,default=0");
    OK("none", "port=2");
    OK("pfifo", "cmd=add,port=2");
    REFUSED(OFPSFC_BUSY, "drr", "cmd=add,port=2,class=10");
    OK("none", "port=any");
    assert_int_equal(kernel.n, 0);
}

static unsigned
queues_of(uint32_t port_no)
{
    unsigned n = 0;
    for (unsigned id = 1; id <= QOS_CLASS_MAX; id++)
        n += present[id];
    assert_int_equal(n, queue_count(qos, port_no));
    return n;
}

/* CAKE's tins are queues as bands are, but for schedulers below them. */
static void
tins(void **state)
{
    struct qos_queue queue;
    run_failing("cake", "cmd=add,port=2,bandwidth=20mbit");
    assert_int_equal(fake_qdisc(&kernel, IF2, QOS_PARENT_ROOT)->handle, QOS_HANDLE_TREE);
    assert_int_equal(queues_of(2), 3);
    assert_int_equal(default_class, 0);
    assert_int_equal(qos_queue_get(qos, 2, 3, false, &queue), 0);
    assert_int_equal(queue.max_rate, 20000000);
    assert_int_equal(qos_queue_get(qos, 2, 4, false, &queue), -ENOENT);
    REFUSED(OFPSFC_EXISTS, "cake", "cmd=add,port=2");
    REFUSED(OFPSFC_UNSUPPORTED, "pfifo", "cmd=add,port=2,class=1");
    REFUSED(OFPSFC_UNSUPPORTED, "cake", "cmd=add,port=2,class=3");
    REFUSED(OFPSFC_NOT_FOUND, "pfifo", "cmd=add,port=2,class=4");
    REFUSED(OFPSFC_BUSY, "htb", "cmd=add,port=2,class=4,rate=1mbit");
    restart();
    assert_int_equal(queues_of(2), 3);
    run_failing("cake", "cmd=change,port=2,diffserv=diffserv8");
    assert_int_equal(queues_of(2), 8);
    run_failing("cake", "cmd=change,port=2,diffserv=besteffort,bandwidth=30mbit");
    assert_int_equal(queues_of(2), 1);
    assert_int_equal(qos_queue_get(qos, 2, 1, false, &queue), 0);
    assert_int_equal(queue.max_rate, 30000000);
    run_failing("pfifo", "cmd=replace,port=2,limit=9");
    assert_int_equal(fake_qdisc(&kernel, IF2, QOS_PARENT_ROOT)->handle, QOS_HANDLE_ROOT);
    assert_int_equal(queues_of(2), 0);
    run_failing("cake", "cmd=replace,port=2");
    assert_int_equal(queues_of(2), 3);
    run_failing("prio", "cmd=replace,port=2,bands=4");
    run_failing("cake", "cmd=replace,port=2,diffserv=diffserv4");
    assert_int_equal(queues_of(2), 4);
    run_failing("cake", "cmd=del,port=2");
    assert_int_equal(queues_of(2), 0);
    run_failing("htb", "cmd=add,port=2,class=10,rate=1mbit");
    run_failing("cake", "cmd=add,port=2,class=10");
    assert_int_equal(queues_of(2), 1);
}

static void
bands(const char *kind)
{
    static const char add[] = "cmd=add,port=2,bands=4,priomap=1:2:2:2:1:2:0:0:1:1:1:1:1:1:1:3";
    struct qos_queue queue;
    run_failing(kind, add);
    const struct qos_object *root = fake_qdisc(&kernel, IF2, QOS_PARENT_ROOT);
    assert_int_equal(root->handle, QOS_HANDLE_TREE);
    assert_int_equal(queues_of(2), 4);
    assert_int_equal(default_class, 0);
    assert_int_equal(qos_queue_get(qos, 2, 4, false, &queue), 0);
    assert_int_equal(queue.max_rate, 100000000);
    assert_int_equal(qos_queue_get(qos, 2, 5, false, &queue), -ENOENT);
    REFUSED(OFPSFC_EXISTS, kind, add);
    run_failing("sfq", "cmd=add,port=2,class=4,perturb=5");
    run_failing("pfifo", "cmd=add,port=2,class=1,limit=9");
    assert_int_equal(fake_qdisc(&kernel, IF2, 0x10004)->handle, QOS_LEAF_HANDLE(4));
    REFUSED(OFPSFC_NOT_FOUND, "pfifo", "cmd=add,port=2,class=5");
    REFUSED(OFPSFC_BUSY, "htb", "cmd=add,port=2,class=5,rate=1mbit");
    REFUSED(OFPSFC_BUSY, "htb", "cmd=add,port=2,class=5,parent=1,rate=1mbit");
    restart();
    assert_int_equal(queues_of(2), 4);
    run_failing(kind, "cmd=change,port=2,bands=6");
    assert_int_equal(queues_of(2), 6);
    assert_non_null(fake_qdisc(&kernel, IF2, 0x10004));
    run_failing(kind, "cmd=change,port=2,bands=3,priomap=1:2:2:2:1:2:0:0:1:1:1:1:1:1:1:0");
    assert_int_equal(queues_of(2), 3);
    assert_null(fake_qdisc(&kernel, IF2, 0x10004));
    assert_non_null(fake_qdisc(&kernel, IF2, 0x10001));
    run_failing("pfifo", "cmd=del,port=2,class=1");
    run_failing("sfq", "cmd=add,port=2,class=2,perturb=5");
    run_failing("pfifo", "cmd=replace,port=2,limit=3");
    assert_int_equal(fake_qdisc(&kernel, IF2, QOS_PARENT_ROOT)->handle, QOS_HANDLE_ROOT);
    assert_int_equal(queues_of(2), 0);
    run_failing(kind, "cmd=replace,port=2,bands=2,priomap=1:1:1:1:1:1:0:0:1:1:1:1:1:1:1:1");
    assert_int_equal(queues_of(2), 2);
    run_failing("pfifo", "cmd=add,port=2,class=2,limit=9");
    run_failing(kind, "cmd=del,port=2");
    assert_int_equal(kernel.n, 0);
    assert_int_equal(queues_of(2), 0);
}

static void
bands_are_queues(void **state)
{
    bands("prio");
    bands("ets");
    /* Below a class nothing could choose a band. */
    OK("htb", "cmd=add,port=2,class=10,rate=1mbit");
    REFUSED(OFPSFC_UNSUPPORTED, "prio", "cmd=add,port=2,class=10,bands=4");
    REFUSED(OFPSFC_UNSUPPORTED, "ets", "cmd=replace,port=2,class=10");
    assert_null(fake_qdisc(&kernel, IF2, 0x1000a));
    OK("none", "port=2");
    OK("prio", "cmd=add,port=2");
    REFUSED(OFPSFC_UNSUPPORTED, "prio", "cmd=add,port=2,class=1,bands=2");
}

static void
below_tx_queues(void)
{
    run_failing("sfq", "cmd=add,port=2,class=4,perturb=5");
    run_failing("pfifo", "cmd=add,port=2,class=1,limit=9");
    const struct qos_object *o = fake_qdisc(&kernel, IF2, QOS_HANDLE_TX_QUEUES | 4);
    assert_int_equal(o->handle, QOS_LEAF_HANDLE(4));
    run_failing("pfifo", "cmd=replace,port=2,class=4,limit=9");
}

/* Bands that are transmit queues: none can be changed in place, so what is below those that stay is
 * made again. */
static void
tx_queues(const char *kind, bool leaves)
{
    run_failing(kind, "cmd=add,port=2");
    assert_int_equal(fake_qdisc(&kernel, IF2, QOS_PARENT_ROOT)->handle, QOS_HANDLE_TX_QUEUES);
    assert_int_equal(queues_of(2), 8);
    if (leaves)
        below_tx_queues();
    else
        REFUSED(OFPSFC_UNSUPPORTED, "pfifo", "cmd=add,port=2,class=1,limit=9");
    REFUSED(OFPSFC_BUSY, "htb", "cmd=add,port=2,class=20,rate=1mbit");
    restart();
    assert_int_equal(queues_of(2), 8);
    if (strcmp(kind, "mq")) {
        run_failing(kind, "cmd=change,port=2,bands=3");
        assert_int_equal(queues_of(2), 3);
        assert_null(fake_qdisc(&kernel, IF2, QOS_HANDLE_TX_QUEUES | 4));
        assert_int_equal(!fake_qdisc(&kernel, IF2, QOS_HANDLE_TX_QUEUES | 1), !leaves);
        REFUSED(OFPSFC_UNSUPPORTED, kind, "cmd=change,port=2,bands=9");
    }
    if (leaves)
        run_failing("pfifo", "cmd=del,port=2,class=1");
    run_failing("prio", "cmd=replace,port=2");
    assert_int_equal(fake_qdisc(&kernel, IF2, QOS_PARENT_ROOT)->handle, QOS_HANDLE_TREE);
    run_failing(kind, "cmd=replace,port=2");
    run_failing("pfifo", "cmd=replace,port=2,limit=3");
    assert_int_equal(fake_qdisc(&kernel, IF2, QOS_PARENT_ROOT)->handle, QOS_HANDLE_ROOT);
    run_failing(kind, "cmd=replace,port=2");
    run_failing(kind, "cmd=del,port=2");
    assert_int_equal(kernel.n, 0);
    assert_int_equal(queues_of(2), 0);
}

static void
bands_are_tx_queues(void **state)
{
    tx_queues("mq", true);
    tx_queues("mqprio", true);
    tx_queues("taprio", false);
    REFUSED(OFPSFC_UNSUPPORTED, "mq", "cmd=add,port=1");
    REFUSED(OFPSFC_UNSUPPORTED, "mqprio", "cmd=add,port=2,direction=in");
    OK("htb", "cmd=add,port=2,class=10,rate=1mbit");
    REFUSED(OFPSFC_UNSUPPORTED, "mqprio", "cmd=add,port=2,class=10");
    OK("none", "port=2");
    OK("fq", "cmd=add,port=2");
    OK("mq", "cmd=replace,port=2");
    OK("none", "port=2");
    OK("htb", "cmd=add,port=2,default=0");
    kernel.lacks = "prio"; /* known before the tree goes */
    REFUSED(OFPSFC_UNSUPPORTED, "prio", "cmd=replace,port=2");
    assert_non_null(fake_qdisc(&kernel, IF2, QOS_PARENT_ROOT));
    kernel.lacks = NULL;
    OK("none", "port=2");
}

/* In hardware classes have only the turns and priorities that somebody asked for; a restart, the
 * interface's return and a root without it. */
static void
htb_in_hardware(void **state)
{
    run_failing("htb", "cmd=add,port=2,object=qdisc,offload=yes");
    assert_int_equal(fake_qdisc(&kernel, IF2, QOS_PARENT_ROOT)->values.v[QOS_OFFLOAD], 1);
    run_failing("htb", "cmd=add,port=2,class=10,rate=1mbit");
    assert_false(qos_has(&fake_class(&kernel, IF2, 10)->values, QOS_QUANTUM));
    assert_int_equal(fake_class(&kernel, IF2, QOS_CLASS_DEFAULT)->values.v[QOS_PRIO], 0);
    run_failing("htb", "cmd=change,port=2,class=10,rate=1mbit,quantum=3000,prio=2");
    assert_int_equal(fake_class(&kernel, IF2, 10)->values.v[QOS_QUANTUM], 3000);
    run_failing("htb", "cmd=change,port=2,default=10");
    restart();
    REFUSED(OFPSFC_BUSY, "htb", "cmd=change,port=2,default=10,offload=no");
    OK("htb", "cmd=change,port=2,default=10,offload=yes");
    restart(); /* what the interface forgot comes back in hardware, too */
    fake_forget(&kernel, IF2);
    qos_set_foreign(qos, QOS_FOREIGN_REPAIR);
    assert_int_equal(qos_port_sync(qos, 2, &err), 0);
    assert_int_equal(fake_qdisc(&kernel, IF2, QOS_PARENT_ROOT)->values.v[QOS_OFFLOAD], 1);
    run_failing("htb", "cmd=replace,port=2,class=0,rate=20mbit");
    assert_int_equal(fake_class(&kernel, IF2, QOS_CLASS_DEFAULT)->values.v[QOS_PRIO], 0);
    run_failing("none", "port=2");
    OK("htb", "cmd=add,port=2,class=10,rate=1mbit");
    assert_true(qos_has(&fake_class(&kernel, IF2, 10)->values, QOS_QUANTUM));
    assert_int_equal(fake_qdisc(&kernel, IF2, QOS_PARENT_ROOT)->values.v[QOS_OFFLOAD], 0);
    OK("none", "port=2");
}

/* Where the kernel puts a queue's packets: the lowest 4 bits of its number. */
static void
tx_queue_of_a_queue(void **state)
{
    const struct qos_sched *s = qos_sched_by_name("mqprio");
    for (unsigned bands = 1; bands <= 16; bands++) {
        struct qos_env env = {.tx_queues = bands};
        struct qos_values v = {0}, out;
        qos_resolve_leaf(s, &v, &env, &out);
        assert_int_equal(out.v[QOS_BANDS], bands);
        for (unsigned queue = 1; queue <= bands; queue++)
            assert_int_equal(qos_priomap_get(&out.v[QOS_PRIOMAP], queue & 15), queue - 1);
        assert_int_equal(qos_priomap_get(&out.v[QOS_PRIOMAP], 0), bands - 1);
    }
}

/* A drop precedence can be changed in place, but neither begun nor ended: one more is an exchange. */
static void
gred_precedences(void **state)
{
    run_failing("htb", "cmd=add,port=2,class=10,rate=1mbit");
    run_failing("gred", "cmd=add,port=2,class=10,dp1=10kb/30kb/60kb/2%,dp3=5kb/9kb/60kb/10%");
    assert_int_equal(fake_qdisc(&kernel, IF2, 0x1000a)->handle, QOS_LEAF_HANDLE(10));
    run_failing("gred", "cmd=change,port=2,class=10,dp3=6kb/9kb/60kb/10%,limit=100000,ecn=yes");
    const struct qos_object *o = fake_qdisc(&kernel, IF2, 0x1000a);
    assert_int_equal(o->handle, QOS_LEAF_HANDLE(10));
    struct qos_precedence p = qos_precedence_get(&o->values.v[QOS_PRECEDENCE_SLOT(3)]);
    assert_int_equal(p.min, 6 << 10);
    assert_int_equal(p.max, 9 << 10);
    assert_int_equal(p.limit, 60 << 10);
    assert_int_equal(p.ppm, 100000);
    assert_false(qos_has(&o->values, QOS_PRECEDENCE_SLOT(0)));
    run_failing("gred", "cmd=change,port=2,class=10,dp0=6kb/9kb/60kb/10%");
    o = fake_qdisc(&kernel, IF2, 0x1000a);
    assert_int_equal(o->handle, QOS_LEAF_HANDLE_2(10));
    assert_true(qos_has(&o->values, QOS_PRECEDENCE_SLOT(0)));
    assert_true(qos_has(&o->values, QOS_PRECEDENCE_SLOT(3)));
    restart();
    REFUSED(OFPSFC_BAD_PARAM, "gred", "cmd=add,port=1,limit=10000");
    REFUSED(OFPSFC_BAD_PARAM, "gred", "cmd=change,port=2,class=10,limit=1000");
    REFUSED(OFPSFC_BAD_PARAM, "gred", "cmd=change,port=2,class=10,dp4=6kb/9kb/60kb/10%/1");
    OK("none", "port=2");
}

/* A BPF program's qdisc is of the kind that NAME says; another one takes its place. */
static void
bpf_kinds(void **state)
{
    const char *const wrong[] = {
        "",        "sixteen_letters_", "Upper",   "a.b",        "fq_codel", "bpf",   "none",  "mq",
        "ingress", "clsact",           "noqueue", "pfifo_fast", "hhf",      "teql0", "%C3%BC"};
    char args[128];
    OK("htb", "cmd=add,port=2,class=10,rate=1mbit");
    for (size_t i = 0; i < QOS_COUNT(wrong); i++) {
        snprintf(args, sizeof args, "cmd=add,port=2,class=10,name=%s", wrong[i]);
        REFUSED(OFPSFC_BAD_PARAM, "bpf", args);
    }
    for (unsigned i = 0; qos_sched_at(i); i++)
        assert_false(qos_kind_is_free(qos_sched_at(i)->name));
    run_failing("bpf", "cmd=add,port=2,class=10,name=bpf_fq");
    assert_string_equal(fake_qdisc(&kernel, IF2, 0x1000a)->kind, "bpf_fq");
    REFUSED(OFPSFC_EXISTS, "bpf", "cmd=add,port=2,class=10,name=bpf_fq");
    run_failing("bpf", "cmd=change,port=2,class=10,kind=fifteen_letters");
    const struct qos_object *o = fake_qdisc(&kernel, IF2, 0x1000a);
    assert_string_equal(o->kind, "fifteen_letters");
    assert_int_equal(o->handle, QOS_LEAF_HANDLE_2(10));
    REFUSED(OFPSFC_BAD_PARAM, "bpf", "cmd=change,port=2,class=10,name=");
    unsigned ops = kernel.n_ops;
    OK("bpf", "cmd=change,port=2,class=10");
    assert_int_equal(kernel.n_ops, ops);
    restart();
    char *text = model_text();
    assert_non_null(strstr(text, "name=fifteen_letters"));
    free(text);
    run_failing("bpf", "cmd=replace,port=1,name=bpf_fq");
    run_failing("bpf", "cmd=replace,port=1,name=bpf_2");
    assert_string_equal(fake_qdisc(&kernel, 11, QOS_PARENT_ROOT)->kind, "bpf_2");
    run_failing("fq", "cmd=replace,port=2,class=10");
    run_failing("bpf", "cmd=replace,port=2,class=10,name=bpf_fq");
    run_failing("bpf", "cmd=del,port=2,class=10");
    run_failing("none", "port=1");
    OK("none", "port=2");
}

/* What the kernel has not is refused before anything is asked of it, also in the place of somebody
 * else's root. */
static void
bpf_missing(void **state)
{
    kernel.lacks = "bpf_fq";
    qos_free(qos);
    fake_foreign_root(&kernel, IF2, QOS_HANDLE_ROOT, "pfifo");
    start();
    unsigned ops = kernel.n_ops;
    REFUSED(OFPSFC_UNSUPPORTED, "bpf", "cmd=replace,port=2,name=bpf_fq");
    assert_non_null(strstr(err.text, "no qdisc bpf_fq; a BPF program must have registered it"));
    assert_int_equal(err.errnum, ENOENT);
    assert_int_equal(kernel.n_ops, ops);
    assert_string_equal(fake_qdisc(&kernel, IF2, QOS_PARENT_ROOT)->kind, "pfifo");
    OK("bpf", "cmd=replace,port=2,name=bpf_2");
}

/* Somebody's prio 1: isn't taken for ours. */
static void
foreign_bands(void **state)
{
    qos_free(qos);
    fake_foreign_root(&kernel, IF2, QOS_HANDLE_TREE, "prio");
    qos_put(&kernel.v[0].o.values, QOS_BANDS, 3);
    start();
    assert_int_equal(queue_count(qos, 2), 0);
    REFUSED(OFPSFC_BUSY, "prio", "cmd=add,port=2");
    assert_int_equal(qos_clear_all(qos, &err), 0);
    assert_int_equal(kernel.n, 1);
}

/* An interface that goes and comes back has them again. */
static void
away_and_back(void **state)
{
    static const char *const trees[][2] = {
        {"hfsc", "cmd=add,port=2,class=1,ls=1mbit"},
        {"drr", "cmd=add,port=2,class=1"},
        {"prio", "cmd=add,port=2"},
    };
    struct qos_port port = {2, 30, "eth", 1500, 1000, 100000000, 8, false};
    for (unsigned i = 0; i < 3; i++) {
        OK(trees[i][0], trees[i][1]);
        OK("pfifo", "cmd=add,port=2,class=1,limit=3");
        char *before = model_text();
        kernel.n = 0;
        assert_int_equal(qos_port_absent(qos, 2), 0);
        assert_int_equal(present[1], 0);
        assert_int_equal(port_back(qos, &port, &err), 0);
        assert_int_equal(present[1], 1);
        assert_int_equal(fake_qdisc(&kernel, 30, 0x10001)->values.v[QOS_LIMIT], 3);
        char *after = model_text();
        assert_string_equal(after, before);
        free(before);
        free(after);
        OK("none", "port=2");
        assert_int_equal(kernel.n, 0);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(hfsc_tree),
        TEST(hfsc_curves),
        TEST(hfsc_speed),
        TEST(drr_classes),
        TEST(default_class_comes_and_goes),
        TEST(one_kind_a_port),
        TEST(bands_are_queues),
        TEST(bands_are_tx_queues),
        TEST(tx_queue_of_a_queue),
        TEST(htb_in_hardware),
        TEST(tins),
        TEST(gred_precedences),
        TEST(bpf_kinds),
        TEST(bpf_missing),
        TEST(foreign_bands),
        TEST(away_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
