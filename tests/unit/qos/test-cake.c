/* SPDX-License-Identifier: Apache-2.0 */
/* CAKE's own: the limit of its tins, NAT. */
#include "fixture.h"

#include <stdio.h>

static void
limit_after_a_return(uint64_t limit)
{
    struct qos_port port = {2, IF2, "eth", 1500, 1000, 100000000, 8, false};
    fake_forget(&kernel, IF2);
    assert_int_equal(qos_port_absent(qos, 2), 0);
    assert_int_equal(port_back(qos, &port, &err), 0);
    assert_int_equal(notified_limit[1], limit);
}

/* A limit that was refused or taken back is never the packet side's. */
static void
refused_limit_of_tins(void **state)
{
    OK("cake", "cmd=add,port=2,bandwidth=30mbit");
    kernel.fail_in = 0;
    REFUSED(OFPSFC_KERNEL, "cake", "cmd=change,port=2,bandwidth=20mbit");
    limit_after_a_return(30000000);
    qos_begin(qos);
    OK("cake", "cmd=change,port=2,bandwidth=10mbit");
    qos_abort(qos);
    limit_after_a_return(30000000);
    OK("cake", "cmd=change,port=2,bandwidth=20mbit");
    assert_int_equal(notified_limit[1], 20000000);
    limit_after_a_return(20000000);
}

/* A kernel without conntrack refuses a CAKE that it is told of NAT, also that there is none. */
static void
refuse_nat(void *ctx, const struct qos_op *op, enum qos_op_state state)
{
    *(unsigned *)ctx += op->kind == QOS_OP_QDISC_CHANGE;
    assert_false(op->kind == QOS_OP_QDISC_CHANGE && qos_has(&op->values, QOS_NAT));
}

static void
change_cakes(uint32_t parent, const char *at)
{
    char line[64];
    unsigned changes = 0;
    kernel.base.observe = refuse_nat;
    kernel.base.observer = &changes;
    snprintf(line, sizeof line, "cmd=add,port=2%s", at);
    run_failing("cake", line);
    snprintf(line, sizeof line, "cmd=change,port=2%s,wash=yes", at);
    run_failing("cake", line);
    struct qos_object *o = (struct qos_object *)fake_qdisc(&kernel, IF2, parent);
    assert_int_equal(o->values.v[QOS_WASH], 1);
    o->values.v[QOS_WASH] = 0;
    qos_set_foreign(qos, QOS_FOREIGN_REPAIR);
    assert_int_equal(qos_port_sync(qos, 2, &err), 0);
    assert_int_equal(o->values.v[QOS_WASH], 1);
    assert_true(changes >= 2);
    kernel.base.observe = NULL; /* where it differs, it is told */
    snprintf(line, sizeof line, "cmd=change,port=2%s,nat=yes", at);
    run_failing("cake", line);
    assert_int_equal(o->values.v[QOS_NAT], 1);
    snprintf(line, sizeof line, "cmd=change,port=2%s,nat=no", at);
    run_failing("cake", line);
    assert_int_equal(o->values.v[QOS_NAT], 0);
    o->values.v[QOS_NAT] = 1;
    assert_int_equal(qos_port_sync(qos, 2, &err), 0);
    assert_int_equal(o->values.v[QOS_NAT], 0);
    OK("none", "port=2");
}

static void
cake_without_conntrack(void **state)
{
    change_cakes(QOS_PARENT_ROOT, "");
    OK("htb", "cmd=add,port=2,class=1,rate=1mbit");
    change_cakes(QOS_HANDLE_TREE | 1, ",class=1");
}

/* ------------------------------------------------------------------ what the tins have counted */

static uint64_t counted[2][QOS_TINS_MAX + 1]; /* at the root, on class 10 */

static void
count_tin(void *ctx, uint32_t port_no, enum qos_direction dir, uint32_t class_id, unsigned number,
          const struct qos_tin *tin)
{
    assert_int_equal(port_no, 2);
    assert_true(class_id == 0 || class_id == 10);
    counted[class_id != 0][number] += tin->counters.packets;
}

/* The kernel's CAKE at this place has sent 100, 200, ... packets by its tins. */
static void
send_by_tins(uint32_t parent, unsigned n)
{
    struct qos_object *o = (struct qos_object *)fake_qdisc(&kernel, IF2, parent);
    assert_non_null(o);
    o->n_tins = (uint8_t)n;
    for (unsigned i = 0; i < n; i++)
        o->tins[i].counters.packets = 100 * (i + 1);
}

static bool
sum_packets(void *ctx, const struct qos_queue *queue)
{
    *(uint64_t *)ctx += queue->counters.packets;
    return true;
}

static void
tins_are_counted(void **state)
{
    struct qos_queue queue;
    uint64_t sum = 0;
    uint8_t done[2];
    memset(counted, 0, sizeof counted);
    OK("cake", "cmd=add,port=2");
    send_by_tins(QOS_PARENT_ROOT, 3);
    assert_int_equal(qos_each_tin(qos, count_tin, NULL, &err), 0);
    assert_true(counted[0][1] == 100 && counted[0][2] == 200 && counted[0][3] == 300);
    assert_int_equal(qos_queue_get(qos, 2, 2, true, &queue), 0);
    assert_int_equal(queue.counters.packets, 200);
    assert_int_equal(qos_queue_each(qos, 2, true, sum_packets, &sum), 0);
    assert_int_equal(sum, 600);
    send_by_tins(QOS_PARENT_ROOT, 1); /* fewer than the model has: somebody else changed it */
    assert_int_equal(qos_queue_get(qos, 2, 2, true, &queue), 0);
    assert_int_equal(queue.counters.packets, 0);
    OK("none", "port=2");
    OK("htb", "cmd=add,port=2,class=10,rate=1mbit");
    OK("cake", "cmd=add,port=2,class=10");
    OK("pfifo", "cmd=add,port=1");
    send_by_tins(QOS_HANDLE_TREE | 10, 3);
    const struct qos_op others[] = {{.kind = QOS_OP_CLASS_ADD, /* none of ours */
                                     .ifindex = IF2,
                                     .handle = QOS_HANDLE_TREE | 99,
                                     .parent = QOS_HANDLE_TREE | QOS_CLASS_ROOT,
                                     .sched = qos_sched_by_name("htb")},
                                    {.kind = QOS_OP_QDISC_ADD,
                                     .ifindex = IF2,
                                     .handle = 0x80010000,
                                     .parent = QOS_HANDLE_TREE | 99,
                                     .sched = qos_sched_by_name("cake")}};
    assert_int_equal(kernel.base.ops->apply(&kernel.base, others, 2, done, NULL), 0);
    send_by_tins(QOS_HANDLE_TREE | 99, 3);
    assert_int_equal(qos_each_tin(qos, count_tin, NULL, &err), 0);
    assert_true(counted[1][1] == 100 && counted[1][3] == 300 && counted[0][1] == 100);
    assert_int_equal(qos_port_absent(qos, 2), 0); /* of what is not there nobody asks */
    assert_int_equal(qos_each_tin(qos, count_tin, NULL, &err), 0);
    assert_int_equal(counted[1][1], 100);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {TEST(refused_limit_of_tins), TEST(cake_without_conntrack),
                                       TEST(tins_are_counted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
