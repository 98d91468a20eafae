/* SPDX-License-Identifier: Apache-2.0 */
/* What a killed switch or somebody else has left is what the model has from then on, or it goes. */
#include "fixture.h"

#include <stdlib.h>

/* A daemon that was killed while it made a tree leaves half of one; the kernel may refuse to delete it
 * when the next one looks first. */
static void
half_a_tree(void **state)
{
    for (int refused = -1; refused < 1; refused++) {
        struct qos_op op = {.kind = QOS_OP_QDISC_ADD,
                            .ifindex = IF2,
                            .handle = QOS_HANDLE_TREE,
                            .parent = QOS_PARENT_ROOT,
                            .sched = qos_sched_by_name("htb")};
        uint8_t done;
        qos_free(qos);
        qos_put(&op.values, QOS_DEFAULT, QOS_CLASS_DEFAULT);
        assert_int_equal(kernel.base.ops->apply(&kernel.base, &op, 1, &done, NULL), 0);
        kernel.fail_in = refused;
        start();
        assert_int_equal(kernel.fail_in, -1);
        assert_int_equal(kernel.n, 0);
        OK("htb", "cmd=add,port=2,class=1,rate=1mbit");
        OK("none", "port=2");
    }
}

/* Somebody gives as many bands as before another map: the model shows it, and counts it once. */
static void
another_map(void **state)
{
    static const char *const kinds[] = {"prio", "ets", "mqprio"};
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        OK(kinds[i], "cmd=add,port=2,bands=3");
        OK("sfq", "cmd=add,port=2,class=2");
        uint64_t changed = whole().foreign.changed;
        struct qos_object *root = (struct qos_object *)fake_qdisc(&kernel, IF2, QOS_PARENT_ROOT);
        assert_true(qos_has(&root->values, QOS_PRIOMAP));
        root->values.v[QOS_PRIOMAP] = 0x0101010101010101;
        char *before = model_text();
        for (int look = 0; look < 2; look++)
            assert_int_equal(qos_port_sync(qos, 2, &err), 0);
        assert_int_equal(whole().foreign.changed, changed + 1);
        assert_false(whole().foreign.differs);
        char *adopted = model_text();
        assert_string_not_equal(adopted, before);
        qos_free(qos);
        start();
        char *found = model_text();
        assert_string_equal(found, adopted);
        assert_int_equal(queue_count(qos, 2), 3);
        run_failing("pfifo", "cmd=replace,port=2,class=2");
        run_failing(kinds[i], "cmd=del,port=2");
        assert_int_equal(kernel.n, 0);
        free(found);
        free(adopted);
        free(before);
    }
}

/* Bands below a class are of no use, but somebody may have made them: they can be changed, and go. */
static void
bands_below_a_class(void **state)
{
    uint8_t done;
    OK("htb", "cmd=add,port=2,class=10,rate=1mbit");
    const struct qos_object *sample;
    OK("prio", "cmd=add,port=1,bands=3");
    sample = fake_qdisc(&kernel, 11, QOS_PARENT_ROOT);
    struct qos_op op = {.kind = QOS_OP_QDISC_ADD,
                        .ifindex = IF2,
                        .handle = QOS_LEAF_HANDLE(10),
                        .parent = QOS_HANDLE_TREE | 10,
                        .sched = sample->sched,
                        .values = sample->values};
    assert_int_equal(kernel.base.ops->apply(&kernel.base, &op, 1, &done, NULL), 0);
    qos_free(qos);
    start();
    assert_int_equal(queue_count(qos, 2), 1);
    run_failing("prio", "cmd=change,port=2,class=10,bands=4");
    assert_int_equal(fake_qdisc(&kernel, IF2, QOS_HANDLE_TREE | 10)->values.v[QOS_BANDS], 4);
    run_failing("prio", "cmd=del,port=2,class=10");
    REFUSED(OFPSFC_UNSUPPORTED, "prio", "cmd=add,port=2,class=10,bands=4");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {TEST(half_a_tree), TEST(another_map),
                                       TEST(bands_below_a_class)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
