/* SPDX-License-Identifier: Apache-2.0 */
/* What a killed switch or somebody else has left is what the model has from then on, or it goes. */
#include "fixture.h"

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

int
main(void)
{
    const struct CMUnitTest tests[] = {TEST(half_a_tree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
