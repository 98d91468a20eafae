/* SPDX-License-Identifier: Apache-2.0 */
/* CAKE's own: the limit of its tins, NAT. */
#include "fixture.h"

#include <stdio.h>

static void
limit_after_a_return(uint64_t limit)
{
    struct qos_port port = {2, IF2, "eth", 1500, 1000, 100000000, 8};
    fake_forget(&kernel, IF2);
    assert_int_equal(qos_port_away(qos, 2), 0);
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

int
main(void)
{
    const struct CMUnitTest tests[] = {TEST(refused_limit_of_tins), TEST(cake_without_conntrack)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
