/* SPDX-License-Identifier: Apache-2.0 */
/* A tree below a class that somebody else made (place.c). */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#define OUTER 0x50000u
#define LINK  0x50001u /* the class that the tree hangs below */

static void
put(unsigned kind, uint32_t handle, uint32_t parent, const char *sched)
{
    uint8_t state;
    struct qos_op op = {.kind = (uint8_t)kind,
                        .ifindex = IF2,
                        .handle = handle,
                        .parent = parent,
                        .sched = qos_sched_by_name(sched)};
    qos_put(&op.values, QOS_RATE, 10000000);
    qos_put(&op.values, QOS_CEIL, 10000000);
    if (handle == QOS_HANDLE_TREE)
        qos_put(&op.values, QOS_DEFAULT, QOS_CLASS_DEFAULT);
    assert_int_equal(kernel.base.ops->apply(&kernel.base, &op, 1, &state, &err), 0);
}

/* Somebody else has a limit at the root, and a tree for us below it. */
static void
outer(void)
{
    put(QOS_OP_QDISC_ADD, OUTER, QOS_PARENT_ROOT, "htb");
    put(QOS_OP_CLASS_ADD, LINK, OUTER, "htb");
}

static void
inner(void)
{
    put(QOS_OP_QDISC_ADD, QOS_HANDLE_TREE, LINK, "htb");
    put(QOS_OP_CLASS_ADD, QOS_HANDLE_TREE | QOS_CLASS_ROOT, QOS_HANDLE_TREE, "htb");
    put(QOS_OP_CLASS_ADD, QOS_HANDLE_TREE | QOS_CLASS_DEFAULT, QOS_HANDLE_TREE | QOS_CLASS_ROOT,
        "htb");
}

static bool
outer_is_there(void)
{
    const struct qos_object *root = fake_qdisc(&kernel, IF2, QOS_PARENT_ROOT);
    return root && root->handle == OUTER;
}

static void
sync(void)
{
    assert_int_equal(qos_port_sync(qos, 2, &err), 0);
}

static void
queues_work_below(void **state)
{
    outer();
    sync();
    REFUSED(OFPSFC_BUSY, "htb", "cmd=add,port=2,class=10,rate=1mbit");
    inner();
    sync();
    OK("htb", "cmd=add,port=2,class=10,rate=1mbit");
    OK("sfq", "cmd=add,port=2,class=10");
    assert_true(present[10] && rate_of(10) == 1000000);
    run_failing("htb", "cmd=change,port=2,class=10,rate=2mbit");
    OK("none", "cmd=del,port=2,object=qdisc,class=0");
    assert_true(outer_is_there() && !present[10]);
    assert_null(fake_qdisc(&kernel, IF2, LINK));
}

/* The place stays ours while the limit is there. */
static void
place_is_kept(void **state)
{
    outer();
    inner();
    sync();
    OK("none", "cmd=del,port=2,object=qdisc,class=0");
    sync();
    REFUSED(OFPSFC_UNSUPPORTED, "mq", "cmd=add,port=2"); /* works as an interface's root only */
    run_failing("htb", "cmd=add,port=2,class=10,rate=1mbit");
    assert_int_equal(fake_qdisc(&kernel, IF2, LINK)->handle, QOS_HANDLE_TREE);
    OK("htb", "cmd=del,port=2,class=10");
    sync();
    run_failing("sfq", "cmd=add,port=2,class=0");
    assert_int_equal(fake_qdisc(&kernel, IF2, LINK)->handle, QOS_HANDLE_ROOT);
    OK("sfq", "cmd=del,port=2,class=0");
    run_failing("prio", "cmd=add,port=2,class=0,bands=4");
    OK("sfq", "cmd=add,port=2,class=2");
    run_failing("prio", "cmd=change,port=2,class=0,bands=2");
    assert_true(outer_is_there());
    assert_int_equal(qos_port_remove(qos, 2, true, &err), 0);
    assert_true(outer_is_there());
    assert_int_equal(kernel.n, 2);
}

static void
another_limit(void **state)
{
    outer();
    inner();
    sync();
    OK("htb", "cmd=add,port=2,class=10,rate=1mbit");
    fake_forget(&kernel, IF2);
    outer();
    sync();
    assert_false(present[10]);
    OK("htb", "cmd=add,port=2,class=11,rate=1mbit");
    assert_int_equal(fake_qdisc(&kernel, IF2, LINK)->handle, QOS_HANDLE_TREE);
    fake_forget(&kernel, IF2); /* none any longer */
    sync();
    OK("htb", "cmd=add,port=2,class=12,rate=1mbit");
    assert_int_equal(fake_qdisc(&kernel, IF2, QOS_PARENT_ROOT)->handle, QOS_HANDLE_TREE);
    fake_forget(&kernel, IF2);
    outer(); /* a new one, without a tree for us */
    sync();
    REFUSED(OFPSFC_BUSY, "htb", "cmd=add,port=2,class=13,rate=1mbit");
}

/* Somebody else's tree 1: without our classes makes no place. */
static void
not_for_us(void **state)
{
    outer();
    put(QOS_OP_QDISC_ADD, QOS_HANDLE_TREE, LINK, "htb");
    put(QOS_OP_CLASS_ADD, QOS_HANDLE_TREE | 5, QOS_HANDLE_TREE, "htb");
    sync();
    REFUSED(OFPSFC_BUSY, "htb", "cmd=add,port=2,class=10,rate=1mbit");
    REFUSED(OFPSFC_BUSY, "sfq", "cmd=add,port=2,class=0");
}

/* Where it is put right, the tree comes back below. */
static void
put_right(void **state)
{
    qos_set_foreign(qos, QOS_FOREIGN_REPAIR);
    outer();
    inner();
    sync();
    OK("htb", "cmd=add,port=2,class=10,rate=1mbit");
    fake_forget(&kernel, IF2);
    outer();
    sync();
    assert_true(present[10] && rate_of(10) == 1000000);
    assert_int_equal(fake_qdisc(&kernel, IF2, LINK)->handle, QOS_HANDLE_TREE);
    assert_true(outer_is_there());
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(queues_work_below), TEST(place_is_kept), TEST(another_limit),
        TEST(not_for_us),        TEST(put_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
