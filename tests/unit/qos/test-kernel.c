/* SPDX-License-Identifier: Apache-2.0 */
/* Queues in the real kernel.  Exact values are read back by netlink.  Skipped without root. */
#include "at-once.h"
#include "real-kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct qos_object
class_of(uint32_t id, const char *kind)
{
    struct qos_object o;
    if (kernel->ops->get_class(kernel, link1.ifindex, QOS_HANDLE_TREE | id, &o, &err))
        fail_msg("class %u: %s", id, err.text);
    assert_string_equal(o.kind, kind);
    assert_int_equal(o.handle, QOS_HANDLE_TREE | id);
    return o;
}

static struct qos_object class(uint32_t id)
{
    return class_of(id, "htb");
}

static struct qos_object
root(void)
{
    struct qos_object o;
    assert_int_equal(kernel->ops->root(kernel, link1.ifindex, QOS_PARENT_ROOT, &o, &err), 0);
    return o;
}

static void
no_root(void **state)
{
    struct qos_object o = root();
    assert_int_equal(o.handle, 0);
    assert_int_equal(kernel->ops->root(kernel, 9999, QOS_PARENT_ROOT, &o, &err),
                     QOS_ERR(OFPSFC_KERNEL));
    assert_int_equal(err.errnum, ENODEV);
}

static void
htb_values(void **state)
{
    static const struct {
        const char *args;
        uint64_t rate, ceil;
    } rows[] = {
        {"cmd=add,port=1,class=10,rate=6mbit,ceil=10mbit,prio=1", 6000000, 10000000},
        {"cmd=add,port=1,class=11,rate=8kbit", 8000, 8000},
        {"cmd=add,port=1,class=12,rate=400gbit", 400000000000, 400000000000},
        {"cmd=add,port=1,class=13,rate=34359738360", 34359738360, 34359738360},
        {"cmd=add,port=1,class=14,rate=34359738368,ceil=40gbit", 34359738368, 40000000000},
        {"cmd=add,port=1,class=65519,rate=25%,ceil=50%,prio=7", 250000000, 500000000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        OK("htb", rows[i].args);
    uint32_t ids[] = {10, 11, 12, 13, 14, 65519};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct qos_object o = class(ids[i]);
        assert_int_equal(o.values.v[QOS_RATE], rows[i].rate);
        assert_int_equal(o.values.v[QOS_CEIL], rows[i].ceil);
        assert_true(o.values.v[QOS_QUANTUM] >= 1500 && o.values.v[QOS_QUANTUM] <= 200000);
        assert_true(o.values.v[QOS_BURST] >= 1514);
        assert_int_equal(o.parent, 0x1ffff);
    }
    assert_int_equal(class(10).values.v[QOS_PRIO], 1);
    assert_int_equal(class(65519).values.v[QOS_PRIO], 7);
    assert_int_equal(class(QOS_CLASS_ROOT).values.v[QOS_RATE], 1000000000);
    assert_int_equal(root().handle, QOS_HANDLE_TREE);
    assert_int_equal(root().values.v[QOS_DEFAULT], 0xfffe);
    OK("htb", "cmd=change,port=1,class=10,rate=1mbit,ceil=2mbit,burst=15000,cburst=16000,"
              "quantum=3000");
    struct qos_object o = class(10);
    assert_int_equal(o.values.v[QOS_RATE], 1000000);
    assert_int_equal(o.values.v[QOS_BURST], 15000);
    assert_int_equal(o.values.v[QOS_CBURST], 16000);
    assert_int_equal(o.values.v[QOS_QUANTUM], 3000);
    OK("htb", "cmd=change,port=1,default=11");
    assert_int_equal(root().values.v[QOS_DEFAULT], 11);
    assert_int_equal(class(10).values.v[QOS_QUANTUM], 3000);
    OK("htb", "cmd=change,port=1,default=0"); /* htb's own: the filter goes */
    assert_int_equal(root().values.v[QOS_DEFAULT], 0xfffe);
    OK("none", "port=1");
    assert_int_equal(root().handle, 0);
}

static void
tree(void **state)
{
    OK("htb", "cmd=add,port=1,class=1,rate=10mbit");
    OK("htb", "cmd=add,port=1,class=2,parent=1,rate=50%");
    OK("htb", "cmd=add,port=1,class=3,parent=2,rate=50%");
    OK("htb", "cmd=add,port=1,class=4,parent=3,rate=1mbit");
    OK("htb", "cmd=add,port=1,class=5,parent=4,rate=1mbit");
    OK("htb", "cmd=add,port=1,class=6,parent=5,rate=1mbit");
    OK("htb", "cmd=add,port=1,class=7,parent=6,rate=1mbit");
    OK("htb", "cmd=change,port=1,class=1,rate=20mbit");
    assert_int_equal(class(3).values.v[QOS_RATE], 5000000);
    assert_int_equal(run("htb", "cmd=add,port=1,class=8,parent=7,rate=1mbit"),
                     QOS_ERR(OFPSFC_BAD_CLASS));
    OK("htb", "cmd=change,port=1,class=7,parent=1,rate=1mbit");
    assert_int_equal(class(7).parent, 0x10001);
    OK("htb", "cmd=del,port=1,class=2,children=yes");
    OK("htb", "cmd=add,port=1,class=0,rate=900mbit");
    assert_int_equal(class(QOS_CLASS_ROOT).values.v[QOS_RATE], 900000000);
    OK("htb", "cmd=del,port=1,class=1,children=yes");
    assert_int_equal(root().handle, QOS_HANDLE_TREE); /* the root class was asked for */
    OK("htb", "cmd=del,port=1,class=0");
    assert_int_equal(root().handle, 0);
}

/* A scheduler below a queue: added, read back, changed, replaced, deleted; and as the root. */
struct leaf_row {
    const char *sched, *add, *change;
    struct {
        uint8_t slot;
        uint64_t added, changed;
    } want[8];
};

static const struct leaf_row leaves[] = {
    {"pfifo", "limit=50", "limit=60", {{QOS_LIMIT, 50, 60}}},
    {"bfifo", "limit=30kb", "limit=1mb", {{QOS_LIMIT, 30720, 1048576}}},
    {"sfq",
     "perturb=5,quantum=3000,limit=200,flows=64,depth=30,divisor=512",
     "perturb=6,quantum=3000",
     {{QOS_PERTURB, 5, 6},
      {QOS_QUANTUM, 3000, 3000},
      {QOS_LIMIT, 200, 200},
      {QOS_FLOWS, 64, 64},
      {QOS_SFQ_DEPTH, 30, 30},
      {QOS_SFQ_DIVISOR, 512, 512}}},
    {"red",
     "threshold=30000,limit=200000,probability=0.1,ecn=yes",
     "threshold=20000,limit=100000,max=50000",
     {{QOS_THRESHOLD, 30000, 20000},
      {QOS_LIMIT, 200000, 100000},
      {QOS_RED_MAX, 90000, 50000},
      {QOS_RED_PROBABILITY, 100000, 100000},
      {QOS_ECN, 1, 1},
      {QOS_RED_ADAPTIVE, 0, 0}}},
    {"red", /* whose probability is what the kernel has made of it */
     "threshold=30000,limit=200000,probability=0.1,adaptive=yes",
     "threshold=20000,limit=100000,max=50000",
     {{QOS_THRESHOLD, 30000, 20000}, {QOS_LIMIT, 200000, 100000}, {QOS_RED_ADAPTIVE, 1, 1}}},
    {"tbf",
     "rate=5mbit,burst=20000,limit=30000",
     "rate=6mbit,peak_rate=40gbit",
     {{QOS_RATE, 5000000, 6000000}, {QOS_LIMIT, 30000, 30000}, {QOS_PEAK_RATE, 0, 40000000000}}},
    {"prio",
     "bands=4,priomap=1:2:2:2:1:2:0:0:1:1:1:1:1:1:1:3",
     "bands=5",
     {{QOS_BANDS, 4, 5}, {QOS_PRIOMAP, 0x0102020201020000, 0x0102020201020000}}},
    {"codel",
     "limit=500,target=4ms,interval=80ms,ecn=on",
     "limit=600",
     {{QOS_LIMIT, 500, 600}, {QOS_ECN, 1, 1}}},
    {"fq_codel",
     "limit=500,quantum=2000,flows=256,ecn=off",
     "limit=600",
     {{QOS_LIMIT, 500, 600}, {QOS_QUANTUM, 2000, 2000}, {QOS_FLOWS, 256, 256}, {QOS_ECN, 0, 0}}},
    {"fq", "limit=500,quantum=2000", "limit=600", {{QOS_LIMIT, 500, 600}}},
    {"pie", "limit=500,ecn=on", "limit=600", {{QOS_LIMIT, 500, 600}, {QOS_ECN, 1, 1}}},
    {"cake",
     "bandwidth=20mbit,diffserv=diffserv4,rtt=50ms",
     "bandwidth=40gbit",
     {{QOS_RATE, 20000000, 40000000000}, {QOS_DIFFSERV, 2, 2}, {QOS_INTERVAL, 50000, 50000}}},
    {"netem",
     "limit=500,latency=10ms,jitter=1ms,loss=1%,rate=1mbit",
     "rate=40gbit",
     {{QOS_LIMIT, 500, 500},
      {QOS_LATENCY, 10000, 10000},
      {QOS_JITTER, 1000, 1000},
      {QOS_LOSS, 10000, 10000},
      {QOS_RATE, 1000000, 40000000000}}},
    {"ets",
     "bands=4,priomap=1:2:2:2:1:2:0:0:1:1:1:1:1:1:1:3",
     "bands=5",
     {{QOS_BANDS, 4, 5}, {QOS_PRIOMAP, 0x0102020201020000, 0x0102020201020000}}},
};

static void
check_leaf(const struct leaf_row *row, uint32_t parent, bool changed)
{
    struct qos_object o;
    if (kernel->ops->get_qdisc(kernel, link1.ifindex, parent, &o, &err))
        fail_msg("%s: %s", row->sched, err.text);
    assert_string_equal(o.kind, row->sched);
    for (unsigned i = 0; i < 8 && row->want[i].slot; i++) {
        uint64_t want = changed ? row->want[i].changed : row->want[i].added;
        if (o.values.v[row->want[i].slot] != want)
            fail_msg("%s, value %u: %" PRIu64 " instead of %" PRIu64, row->sched, row->want[i].slot,
                     o.values.v[row->want[i].slot], want);
    }
}

/* false: this kernel lacks it. */
static bool
leaf_at(const struct leaf_row *row, unsigned id)
{
    char args[300];
    uint32_t parent = id ? QOS_HANDLE_TREE | id : QOS_PARENT_ROOT;
    snprintf(args, sizeof args, "cmd=add,port=1,class=%u,%s", id, row->add);
    int e = run(row->sched, args);
    if (e == QOS_ERR(OFPSFC_UNSUPPORTED)) {
        assert_non_null(strstr(err.text, "kernel module sch_"));
        print_message("skipped: %s: %s\n", row->sched, err.text);
        return false;
    }
    if (e)
        fail_msg("%s %s: %x errno %d %s", row->sched, args, err.err, err.errnum, err.text);
    check_leaf(row, parent, false);
    snprintf(args, sizeof args, "cmd=change,port=1,class=%u,%s", id, row->change);
    OK(row->sched, args);
    check_leaf(row, parent, true);
    if (id) {
        snprintf(args, sizeof args, "cmd=replace,port=1,class=%u,limit=9", id);
        OK("pfifo", args);
        snprintf(args, sizeof args, "cmd=replace,port=1,class=%u,%s", id, row->add);
        OK(row->sched, args);
        check_leaf(row, parent, false);
    }
    snprintf(args, sizeof args, "cmd=del,port=1,class=%u", id);
    OK(row->sched, args);
    return true;
}

static void
leaf_values(void **state)
{
    for (size_t i = 0; i < sizeof leaves / sizeof leaves[0]; i++) {
        OK("htb", "cmd=add,port=1,class=10,rate=6mbit,ceil=10mbit");
        bool bands = qos_sched_by_name(leaves[i].sched)->bands; /* at a port's root alone */
        bool there = bands || leaf_at(&leaves[i], 10);
        OK("htb", "cmd=del,port=1,class=10");
        assert_int_equal(root().handle, 0);
        if (there)
            there = leaf_at(&leaves[i], 0);
        assert_int_equal(root().handle, 0);
    }
}

/* false, and said: this kernel lacks it. */
static bool
supported(const char *sched, const char *args)
{
    int e = run(sched, args);
    if (e == QOS_ERR(OFPSFC_UNSUPPORTED)) {
        print_message("skipped: %s: %s\n", sched, err.text);
        return false;
    }
    if (e)
        fail_msg("%s %s: %x errno %d %s", sched, args, err.err, err.errnum, err.text);
    return true;
}

static void
restart(void)
{
    struct qos_port port = {1, link1.ifindex, "d1", link1.mtu, link1.txqueuelen, 1000000000,
                            1, false};
    qos_free(qos);
    assert_int_equal(qos_new(&qos, kernel, NULL), 0);
    assert_int_equal(qos_port_add(qos, &port), 0);
}

static void
hfsc(void **state)
{
    struct qos_queue queue;
    if (!supported("hfsc", "cmd=add,port=1,class=10,rt=4mbit/10ms/2mbit,ls=2mbit"))
        return;
    struct qos_object o = class_of(10, "hfsc");
    assert_int_equal(o.values.v[QOS_RSC], 4000000);
    assert_int_equal(o.values.v[QOS_RSC + 1], 10000);
    assert_int_equal(o.values.v[QOS_RSC + 2], 2000000);
    assert_int_equal(o.values.v[QOS_FSC + 2], 2000000);
    assert_int_equal(o.parent, 0x1ffff);
    o = class_of(QOS_CLASS_ROOT, "hfsc");
    assert_int_equal(o.values.v[QOS_FSC + 2], 1000000000);
    assert_int_equal(o.values.v[QOS_USC + 2], 1000000000);
    assert_int_equal(root().values.v[QOS_DEFAULT], 0xfffe);
    OK("hfsc", "cmd=change,port=1,class=10,ul=5mbit");
    assert_int_equal(class_of(10, "hfsc").values.v[QOS_USC + 2], 5000000);
    assert_int_equal(class_of(10, "hfsc").values.v[QOS_RSC], 4000000);
    OK("hfsc", "cmd=add,port=1,class=11,parent=10,ls=1mbit");
    assert_int_equal(class_of(11, "hfsc").parent, 0x1000a);
    OK("pfifo", "cmd=add,port=1,class=11,limit=9");
    OK("hfsc", "cmd=change,port=1,class=0,ul=900mbit,ls=900mbit");
    assert_int_equal(class_of(QOS_CLASS_DEFAULT, "hfsc").values.v[QOS_FSC + 2], 45000000);
    OK("hfsc", "cmd=change,port=1,default=11");
    assert_int_equal(root().values.v[QOS_DEFAULT], 11);
    restart();
    assert_int_equal(queue_count(qos, 1), 2);
    assert_int_equal(qos_default_class(qos, 1), 11);
    assert_int_equal(qos_queue_get(qos, 1, 11, true, &queue), 0);
    assert_int_equal(queue.min_rate, 1000000);
    OK("hfsc", "cmd=change,port=1,class=11,parent=0");
    OK("hfsc", "cmd=del,port=1,class=11");
    assert_int_equal(root().values.v[QOS_DEFAULT], 0xfffe);
    OK("hfsc", "cmd=del,port=1,class=10");
    OK("hfsc", "cmd=del,port=1,class=0"); /* it was asked for */
    assert_int_equal(root().handle, 0);
}

static void
drr(void **state)
{
    if (!supported("drr", "cmd=add,port=1,class=10,quantum=3000"))
        return;
    assert_int_equal(class_of(10, "drr").values.v[QOS_QUANTUM], 3000);
    assert_int_equal(class_of(QOS_CLASS_DEFAULT, "drr").values.v[QOS_QUANTUM], 1514);
    assert_int_equal(root().values.v[QOS_DEFAULT], 0xfffe);
    OK("drr", "cmd=change,port=1,class=10,quantum=4000");
    assert_int_equal(class_of(10, "drr").values.v[QOS_QUANTUM], 4000);
    OK("drr", "cmd=add,port=1,class=11");
    OK("pfifo", "cmd=add,port=1,class=11,limit=9");
    OK("drr", "cmd=change,port=1,default=11");
    assert_int_equal(root().values.v[QOS_DEFAULT], 11);
    restart();
    assert_int_equal(queue_count(qos, 1), 2);
    assert_int_equal(qos_default_class(qos, 1), 11);
    OK("pfifo", "cmd=change,port=1,class=11,limit=8");
    OK("drr", "cmd=del,port=1,class=11"); /* though the filter leads to it */
    assert_int_equal(root().values.v[QOS_DEFAULT], 0xfffe);
    OK("drr", "cmd=del,port=1,class=10");
    assert_int_equal(root().handle, 0);
}

static void
bands(void **state)
{
    static const char *const kinds[] = {"prio", "ets"};
    struct qos_queue queue;
    for (unsigned i = 0; i < 2; i++) {
        if (!supported(kinds[i], "cmd=add,port=1,bands=4"))
            continue;
        assert_int_equal(root().handle, QOS_HANDLE_TREE);
        OK("pfifo", "cmd=add,port=1,class=4,limit=9");
        restart();
        assert_int_equal(queue_count(qos, 1), 4);
        assert_int_equal(qos_queue_get(qos, 1, 4, true, &queue), 0);
        OK("pfifo", "cmd=change,port=1,class=4,limit=8");
        OK(kinds[i], "cmd=change,port=1,bands=3");
        assert_int_equal(queue_count(qos, 1), 3);
        OK(kinds[i], "cmd=change,port=1,bands=5");
        OK("pfifo", "cmd=add,port=1,class=4,limit=9");
        OK(kinds[i], "cmd=del,port=1");
        assert_int_equal(root().handle, 0);
    }
}

/* Asking makes nothing; what it says is what adding finds. */
static void
capabilities(void **state)
{
    const struct qos_sched *s;
    assert_int_equal(qos_kernel_has(kernel, qos_sched_by_name("htb"), NULL), 1);
    assert_int_equal(qos_kernel_has(kernel, qos_sched_by_name("pfifo"), NULL), 1);
    for (unsigned i = 0; (s = qos_sched_at(i)); i++) {
        struct qos_object lo;
        struct qos_values v = {0};
        if (s->named) { /* its kind is among its values */
            assert_int_not_equal(qos_kernel_has(kernel, s, NULL), -ENODATA);
            qos_name_put(&v.v[QOS_NAME], "no_such_kind", 12);
        }
        int has = qos_kernel_has(kernel, s, &v);
        assert_true(has == 0 || (has == 1 && !s->named));
        assert_int_equal(kernel->ops->root(kernel, 1, QOS_PARENT_ROOT, &lo, &err), 0);
        assert_int_equal(lo.handle, 0);
        struct qos_op op = {.kind = QOS_OP_QDISC_ADD,
                            .ifindex = link1.ifindex,
                            .handle = 0x00050000,
                            .parent = QOS_PARENT_ROOT,
                            .sched = s,
                            .values = v};
        uint8_t done;
        if (s->id == OFP_QOS_SCHED_NONE)
            continue;
        int e = kernel->ops->apply(kernel, &op, 1, &done, &err);
        /* No values are given; the interface has one transmit queue. */
        if (!has)
            assert_int_not_equal(e, 0);
        else if (!s->tx_queues)
            assert_int_not_equal(e, QOS_ERR(OFPSFC_UNSUPPORTED));
        op.kind = QOS_OP_QDISC_DEL;
        if (!e)
            assert_int_equal(kernel->ops->apply(kernel, &op, 1, &done, &err), 0);
    }
}

static void
foreign(void **state)
{
    struct qos_op op = {.kind = QOS_OP_QDISC_ADD,
                        .ifindex = link1.ifindex,
                        .handle = 0x00050000,
                        .parent = QOS_PARENT_ROOT,
                        .sched = qos_sched_by_name("pfifo")};
    uint8_t done;
    qos_put(&op.values, QOS_LIMIT, 10);
    assert_int_equal(kernel->ops->apply(kernel, &op, 1, &done, &err), 0);
    assert_int_equal(run("htb", "cmd=add,port=1,class=10,rate=1mbit"), QOS_ERR(OFPSFC_BUSY));
    OK("none", "port=1");
    assert_int_equal(root().handle, 0x00050000);
    assert_int_equal(kernel->ops->apply(kernel, &op, 1, &done, &err), QOS_ERR(OFPSFC_KERNEL));
    assert_int_equal(err.errnum, EEXIST);
    assert_non_null(strstr(err.text, "("));
    op.kind = QOS_OP_QDISC_DEL;
    assert_int_equal(kernel->ops->apply(kernel, &op, 1, &done, &err), 0);
}

static bool
count_entries(void *ctx, const struct qos_entry *entry)
{
    ++*(unsigned *)ctx;
    return true;
}

static bool
count_queues(void *ctx, const struct qos_queue *queue)
{
    ++*(unsigned *)ctx;
    return true;
}

/* Many queues; a restart finds them again. */
static void
adoption(void **state)
{
    struct qos_port port = {1, link1.ifindex, "d1", link1.mtu, link1.txqueuelen, 1000000000,
                            1, false};
    char args[100];
    unsigned n = 0;
    for (unsigned i = 1; i <= 4096; i++) {
        snprintf(args, sizeof args, "cmd=add,port=1,class=%u,rate=%ukbit,ceil=1gbit", i, i + 7);
        OK("htb", args);
    }
    OK("pfifo", "cmd=add,port=1,class=77,limit=5");
    qos_free(qos);
    assert_int_equal(qos_new(&qos, kernel, NULL), 0);
    assert_int_equal(qos_port_add(qos, &port), 0);
    assert_int_equal(queue_count(qos, 1), 4096);
    assert_int_equal(qos_queue_each(qos, 1, true, count_queues, &n), 0);
    assert_int_equal(n, 4096);
    n = 0;
    assert_int_equal(qos_dump(qos, OFPP_ANY, QOS_ALL_CLASSES, count_entries, &n, &err), 0);
    assert_int_equal(n, 4096 + 4);
    OK("pfifo", "cmd=change,port=1,class=77,limit=6");
    struct qos_queue queue;
    assert_int_equal(qos_queue_get(qos, 1, 100, true, &queue), 0);
    assert_int_equal(queue.min_rate, 107000);
    assert_int_equal(qos_clear_all(qos, &err), 0);
    assert_int_equal(root().handle, 0);
}

/* With no capability over the namespace: refused, with a reason. */
static void
permission(void **state)
{
    struct qos_kernel *k;
    uint8_t done;
    struct qos_op op = {.kind = QOS_OP_QDISC_DEL,
                        .ifindex = link1.ifindex,
                        .handle = QOS_HANDLE_TREE,
                        .parent = QOS_PARENT_ROOT,
                        .sched = qos_sched_by_name("htb")};
    assert_int_equal(seteuid(65534), 0);
    assert_int_equal(qos_netlink_new(&k), 0);
    int e = k->ops->apply(k, &op, 1, &done, &err);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(e, QOS_ERR(OFPSFC_PERM));
    assert_int_equal(err.errnum, EPERM);
    qos_netlink_free(k);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(no_root), TEST(htb_values), TEST(tree),       TEST(leaf_values),
        TEST(hfsc),    TEST(drr),        TEST(bands),      TEST(capabilities),
        TEST(foreign), TEST(adoption),   TEST(permission),
    };
    int e = real_kernel_begin();
    if (e)
        return e;
    e = cmocka_run_group_tests(tests, NULL, NULL);
    qos_link_close(links);
    return e;
}
