/* SPDX-License-Identifier: Apache-2.0 */
/* The switch's own scheduler below a class that nobody gave one (qos_set_leaf). */
#include "fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void
a_class_has_one_until_it_has_another(void **state)
{
    OK("htb", "cmd=add,port=2,class=10,rate=6mbit");
    assert_string_equal(below(10), "fq_codel");
    assert_string_equal(below(QOS_CLASS_DEFAULT), "fq_codel");
    assert_string_equal(below(QOS_CLASS_ROOT), "");
    /* One that the kernel chose might be a queue's: then that would get this very qdisc. */
    assert_int_equal(fake_qdisc(&kernel, IF2, QOS_HANDLE_TREE | QOS_CLASS_DEFAULT)->handle,
                     0x7fff0000);
    assert_false(lists("fq_codel"));
    REFUSED(OFPSFC_NOT_FOUND, "fq_codel", "cmd=del,port=2,class=10");
    REFUSED(OFPSFC_NOT_FOUND, "fq_codel", "cmd=change,port=2,class=10,limit=5");
    run_failing("sfq", "cmd=add,port=2,class=10");
    assert_string_equal(below(10), "sfq");
    assert_true(lists("object=0"));
    run_failing("sfq", "cmd=del,port=2,class=10");
    assert_string_equal(below(10), "fq_codel");
    run_failing("fq_codel", "cmd=add,port=2,class=10"); /* now somebody's */
    assert_true(lists("class=10 object=0"));
    REFUSED(OFPSFC_BUSY, "htb", "cmd=add,port=2,class=11,rate=1mbit,parent=10");
    run_failing("fq_codel", "cmd=del,port=2,class=10");
    assert_string_equal(below(10), "fq_codel");
    OK("htb", "cmd=del,port=2,class=10");
    assert_int_equal(kernel.n, 0);
}

static void
it_gives_way_to_children(void **state)
{
    OK("htb", "cmd=add,port=2,class=10,rate=6mbit");
    OK("htb", "cmd=add,port=2,class=20,rate=6mbit");
    run_failing("htb", "cmd=add,port=2,class=11,rate=1mbit,parent=10");
    assert_string_equal(below(10), "");
    assert_string_equal(below(11), "fq_codel");
    run_failing("htb", "cmd=change,port=2,class=11,rate=1mbit,parent=20");
    assert_string_equal(below(10), "fq_codel");
    assert_string_equal(below(20), "");
    assert_string_equal(below(11), "fq_codel");
    run_failing("htb", "cmd=del,port=2,class=11");
    assert_string_equal(below(20), "fq_codel");
}

static void
every_kind_of_class(void **state)
{
    OK("hfsc", "cmd=add,port=2,class=10,ls=1mbit");
    OK("hfsc", "cmd=add,port=2,class=11,ls=1mbit,parent=10");
    assert_string_equal(below(10), "");
    assert_string_equal(below(11), "fq_codel");
    assert_string_equal(below(QOS_CLASS_DEFAULT), "fq_codel");
    OK("none", "port=2");
    OK("drr", "cmd=add,port=2,class=10");
    assert_string_equal(below(10), "fq_codel");
    assert_string_equal(below(QOS_CLASS_DEFAULT), "fq_codel");
    OK("none", "port=2");
    OK("prio", "cmd=add,port=2,bands=3");
    assert_string_equal(below(1), "");
}

/* A bundle asks for as little as it would have if the switch knew its end. */
static void
a_bundle_makes_none_in_vain(void **state)
{
    qos_begin(qos);
    OK("htb", "cmd=add,port=2,class=10,rate=6mbit");
    OK("htb", "cmd=add,port=2,class=11,rate=1mbit,parent=10");
    OK("sfq", "cmd=add,port=2,class=11");
    size_t n = qos_planned(qos); /* tree, 1:ffff, 1:fffe, 10, 11, sfq; that of 1:fffe */
    assert_int_equal(n, 7);
    assert_int_equal(qos_planned(qos), n);
    unsigned at;
    assert_int_equal(qos_commit(qos, &at, &err), 0);
    assert_string_equal(below(QOS_CLASS_DEFAULT), "fq_codel");
    assert_string_equal(below(10), "");
}

/* The error names the request that made the class. */
static void
a_refusal_is_the_requests(void **state)
{
    unsigned at = 99;
    OK("htb", "cmd=add,port=2,class=10,rate=6mbit");
    char *before = fake_text(&kernel);
    qos_begin(qos);
    OK("htb", "cmd=add,port=2,class=11,rate=1mbit");
    OK("htb", "cmd=add,port=2,class=12,rate=1mbit");
    OK("htb", "cmd=change,port=2,class=10,rate=1mbit");
    kernel.fail_in = 2; /* 11, below 11 */
    assert_int_equal(qos_commit(qos, &at, &err), QOS_ERR(OFPSFC_KERNEL));
    kernel.fail_in = -1;
    assert_int_equal(at, 1);
    char *after = fake_text(&kernel);
    assert_string_equal(after, before);
    free(before);
    free(after);
}

/* The next process knows it by its values; what another option or an earlier one made is shown. */
static void
adopted_as_ones_own(void **state)
{
    OK("htb", "cmd=add,port=2,class=10,rate=6mbit");
    OK("htb", "cmd=add,port=2,class=11,rate=6mbit");
    OK("fq_codel", "cmd=add,port=2,class=11,limit=77");
    char *before = model_text(), *there = fake_text(&kernel);
    qos_free(qos);
    start();
    char *after = model_text();
    assert_string_equal(after, before);
    free(after);
    OK("htb", "cmd=add,port=2,class=12,rate=1mbit,parent=10");
    assert_string_equal(below(10), "");
    OK("htb", "cmd=del,port=2,class=12");
    free(before);
    free(there);
    own_leaf = NULL;
    qos_free(qos);
    start();
    assert_true(lists("class=10 object=0"));
}

/* Classes of a process without the option stay as they are until they are set. */
static void
adoption_changes_nothing(void **state)
{
    own_leaf = NULL;
    qos_free(qos);
    start();
    OK("htb", "cmd=add,port=2,class=10,rate=6mbit");
    own_leaf = "fq_codel";
    qos_free(qos);
    unsigned n = kernel.n_ops;
    start();
    assert_int_equal(kernel.n_ops, n);
    assert_string_equal(below(10), "");
    OK("htb", "cmd=change,port=2,class=10,rate=7mbit");
    assert_string_equal(below(10), "fq_codel");
}

static void
no_drift(void **state)
{
    OK("htb", "cmd=add,port=2,class=10,rate=6mbit");
    qos_set_foreign(qos, QOS_FOREIGN_REPAIR);
    unsigned n = kernel.n_ops;
    assert_int_equal(qos_port_sync(qos, 2, &err), 0);
    assert_int_equal(kernel.n_ops, n);
    struct qos_op del = {.kind = QOS_OP_QDISC_DEL,
                         .ifindex = IF2,
                         .parent = QOS_HANDLE_TREE | QOS_CLASS_DEFAULT,
                         .sched = qos_sched_by_name("fq_codel")};
    uint8_t s = 0;
    assert_int_equal(kernel.base.ops->apply(&kernel.base, &del, 1, &s, &err), 0);
    assert_int_equal(qos_port_sync(qos, 2, &err), 0);
    assert_string_equal(below(QOS_CLASS_DEFAULT), "fq_codel");
    qos_set_foreign(qos, QOS_FOREIGN_ADOPT);
    assert_int_equal(kernel.base.ops->apply(&kernel.base, &del, 1, &s, &err), 0);
    assert_int_equal(qos_port_sync(qos, 2, &err), 0);
    assert_string_equal(below(QOS_CLASS_DEFAULT), "");
}

/* An interface that returns gets them again. */
static void
comes_back(void **state)
{
    struct qos_port port = {.port_no = 2,
                            .ifindex = IF2,
                            .name = "p2",
                            .mtu = 1500,
                            .txqueuelen = 1000,
                            .speed = 100000000};
    OK("htb", "cmd=add,port=2,class=10,rate=6mbit");
    qos_port_absent(qos, 2);
    fake_forget(&kernel, IF2);
    assert_int_equal(port_back(qos, &port, &err), 0);
    assert_string_equal(below(10), "fq_codel");
    assert_string_equal(below(QOS_CLASS_DEFAULT), "fq_codel");
    assert_false(lists("fq_codel"));
    port.mtu = 9000; /* its quantum follows */
    assert_int_equal(port_update(qos, &port, &err), 0);
    assert_int_equal(fake_qdisc(&kernel, IF2, QOS_HANDLE_TREE | 10)->values.v[QOS_QUANTUM], 9014);
    assert_false(lists("fq_codel"));
}

static void
what_cannot_be_one(void **state)
{
    const struct qos_values none = {0};
    assert_int_equal(qos_set_leaf(qos, qos_sched_by_name("htb"), &none), -EOPNOTSUPP);
    assert_int_equal(qos_set_leaf(qos, qos_sched_by_name("prio"), &none), -EOPNOTSUPP);
    assert_int_equal(qos_set_leaf(qos, NULL, &none), 0);
    OK("htb", "cmd=add,port=2,class=10,rate=6mbit");
    assert_string_equal(below(10), "");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        LEAF_TEST(a_class_has_one_until_it_has_another),
        LEAF_TEST(it_gives_way_to_children),
        LEAF_TEST(every_kind_of_class),
        LEAF_TEST(a_bundle_makes_none_in_vain),
        LEAF_TEST(a_refusal_is_the_requests),
        LEAF_TEST(adopted_as_ones_own),
        LEAF_TEST(adoption_changes_nothing),
        LEAF_TEST(no_drift),
        LEAF_TEST(comes_back),
        LEAF_TEST(what_cannot_be_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
