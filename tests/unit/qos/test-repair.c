/* SPDX-License-Identifier: Apache-2.0 */
/* --foreign=repair: whatever somebody else does to schedulers, the next look restores it, and the look after that
 * finds nothing to do; when the kernel refuses in the middle, the next look still restores it. */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#define BELOW(id) (QOS_HANDLE_TREE | (id))

static struct qos_object *
qdisc(uint32_t parent)
{
    struct qos_object *o = (struct qos_object *)fake_qdisc(&kernel, IF2, parent);
    assert_non_null(o);
    return o;
}

static void
somebody(enum qos_op_kind kind, uint32_t parent, const char *sched, uint32_t handle)
{
    struct qos_op op = {.kind = kind,
                        .ifindex = IF2,
                        .parent = parent,
                        .handle = handle,
                        .sched = qos_sched_by_name(sched)};
    uint8_t s = 0;
    assert_int_equal(kernel.base.ops->apply(&kernel.base, &op, 1, &s, &err), 0);
}

/* Restored with the kernel's refusal at each operation before.  -> how many operations it took */
static unsigned
restored(void)
{
    unsigned steps = 0;
    qos_set_foreign(qos, QOS_FOREIGN_REPAIR);
    for (bool refused = true; refused; steps += refused) {
        kernel.fail_in = (int)steps;
        int e = qos_port_sync(qos, 2, &err);
        refused = kernel.fail_in < 0;
        kernel.fail_in = -1;
        assert_int_equal(e != 0, refused);
    }
    unsigned n = kernel.n_ops;
    assert_int_equal(qos_port_sync(qos, 2, &err), 0);
    assert_int_equal(kernel.n_ops, n);
    return steps;
}

static void
values_of_a_leaf(void **state)
{
    OK("htb", "cmd=add,port=2,class=1,rate=10mbit");
    OK("fq_codel", "cmd=add,port=2,class=1,limit=100");
    char *before = fake_text(&kernel), *after;
    uint64_t limit = qdisc(BELOW(1))->values.v[QOS_LIMIT];
    qdisc(BELOW(1))->values.v[QOS_LIMIT] = limit + 1;
    assert_int_equal(restored(), 1);
    after = fake_text(&kernel);
    assert_string_equal(after, before);
    free(after);
    free(before);
}

/* The kernel changes an SFQ by replacing it: it has its other handle then. */
static void
another_leaf(void **state)
{
    OK("htb", "cmd=add,port=2,class=1,rate=10mbit");
    OK("sfq", "cmd=add,port=2,class=1,perturb=5");
    for (int round = 0; round < 3; round++) {
        uint32_t handle = qdisc(BELOW(1))->handle;
        somebody(QOS_OP_QDISC_DEL, BELOW(1), "sfq", handle);
        somebody(QOS_OP_QDISC_ADD, BELOW(1), "fq_codel", round == 1 ? handle : 0);
        assert_int_equal(restored(), 1);
        assert_ptr_equal(qdisc(BELOW(1))->sched, qos_sched_by_name("sfq"));
        assert_int_equal(qdisc(BELOW(1))->values.v[QOS_PERTURB], 5);
    }
    OK("sfq", "cmd=del,port=2,class=1");
    assert_null(fake_qdisc(&kernel, IF2, BELOW(1)));
}

/* The first has its other handle already when the kernel refuses the second. */
static void
two_leaves(void **state)
{
    OK("htb", "cmd=add,port=2,class=1,rate=10mbit");
    OK("htb", "cmd=add,port=2,class=2,rate=10mbit");
    OK("sfq", "cmd=add,port=2,class=1,perturb=5");
    OK("sfq", "cmd=add,port=2,class=2,perturb=5");
    qdisc(BELOW(1))->values.v[QOS_PERTURB] = 7;
    qdisc(BELOW(2))->values.v[QOS_PERTURB] = 7;
    assert_int_equal(restored(), 2);
    for (uint32_t id = 1; id <= 2; id++) {
        assert_int_equal(qdisc(BELOW(id))->values.v[QOS_PERTURB], 5);
        run_failing("sfq", id == 1 ? "cmd=change,port=2,class=1,perturb=6"
                                   : "cmd=change,port=2,class=2,perturb=6");
        assert_int_equal(qdisc(BELOW(id))->values.v[QOS_PERTURB], 6);
    }
}

/* Where the kernel chooses the handle it takes a replacement of the same kind for a change, which SFQ
 * does not know: below queues of high numbers, and the default class of one tree of several. */
static void
leaves_without_a_handle(void **state)
{
    const uint32_t places[] = {BELOW(0x7ff0), QOS_HANDLE_BAND(1) | QOS_CLASS_DEFAULT};
    own_leaf = "sfq";
    for (unsigned i = 0; i < 2; i++) {
        teardown(NULL);
        setup(NULL);
        if (i) {
            OK("mq", "cmd=add,port=2");
            OK("htb", "cmd=add,port=2,class=20,parent=1,rate=10mbit");
        } else {
            OK("htb", "cmd=add,port=2,class=32752,rate=10mbit");
        }
        uint64_t limit = qdisc(places[i])->values.v[QOS_LIMIT];
        qdisc(places[i])->values.v[QOS_LIMIT] = limit + 1;
        assert_int_equal(restored(), 2);
        assert_int_equal(qdisc(places[i])->values.v[QOS_LIMIT], limit);
        somebody(QOS_OP_QDISC_REPLACE, places[i], "fq_codel", 0);
        assert_int_equal(restored(), 1);
        assert_int_equal(qdisc(places[i])->values.v[QOS_LIMIT], limit);
    }
    own_leaf = NULL;
}

static void
a_leaf_too_many(void **state)
{
    OK("htb", "cmd=add,port=2,class=1,rate=10mbit");
    somebody(QOS_OP_QDISC_ADD, BELOW(1), "sfq", 0);
    assert_int_equal(restored(), 1);
    assert_null(fake_qdisc(&kernel, IF2, BELOW(1)));
    OK("sfq", "cmd=add,port=2,class=1");
}

/* A scheduler as the root: in its place, or by its other handle. */
static void
values_of_the_root(void **state)
{
    OK("fq_codel", "cmd=add,port=2,class=0,limit=100");
    qdisc(QOS_PARENT_ROOT)->values.v[QOS_LIMIT] = 7;
    assert_int_equal(restored(), 1);
    assert_int_equal(qdisc(QOS_PARENT_ROOT)->values.v[QOS_LIMIT], 100);
    OK("fq_codel", "cmd=del,port=2,class=0");
    OK("sfq", "cmd=add,port=2,class=0,perturb=5");
    for (int round = 0; round < 2; round++) {
        qdisc(QOS_PARENT_ROOT)->values.v[QOS_PERTURB] = 7;
        assert_int_equal(restored(), 1);
        assert_int_equal(qdisc(QOS_PARENT_ROOT)->values.v[QOS_PERTURB], 5);
    }
    OK("sfq", "cmd=del,port=2,class=0");
    assert_int_equal(kernel.n, 0);
}

/* A class below one that was moved goes with it, and is made again. */
static void
a_moved_class(void **state)
{
    OK("htb", "cmd=add,port=2,class=1,rate=10mbit");
    OK("htb", "cmd=add,port=2,class=2,rate=10mbit");
    OK("htb", "cmd=add,port=2,class=3,rate=5mbit,parent=1");
    ((struct qos_object *)fake_class(&kernel, IF2, 1))->parent = BELOW(2);
    restored();
    assert_int_equal(fake_class(&kernel, IF2, 1)->parent, BELOW(QOS_CLASS_ROOT));
    assert_int_equal(fake_class(&kernel, IF2, 3)->parent, BELOW(1));
}

/* Nobody can delete the class of packets without a queue while the kernel's filter leads to it. */
static void
a_moved_default(void **state)
{
    OK("htb", "cmd=add,port=2,class=1,rate=10mbit");
    OK("htb", "cmd=add,port=2,class=2,rate=10mbit");
    OK("htb", "cmd=change,port=2,default=2");
    assert_int_equal(default_class, 2);
    ((struct qos_object *)fake_class(&kernel, IF2, 2))->parent = BELOW(1);
    restored();
    assert_int_equal(fake_class(&kernel, IF2, 2)->parent, BELOW(QOS_CLASS_ROOT));
    assert_int_equal(default_class, 2);
}

static uint64_t
since(uint32_t id)
{
    struct qos_queue queue;
    assert_int_equal(qos_queue_get(qos, 2, id, false, &queue), 0);
    return queue.created;
}

static void
add_two(const char *kind)
{
    if (strcmp(kind, "htb") != 0) {
        OK(kind, "cmd=add,port=2");
        return;
    }
    OK("htb", "cmd=add,port=2,class=1,rate=10mbit");
    OK("htb", "cmd=add,port=2,class=2,rate=10mbit");
}

/* Bands count by what is below them; HTB's classes themselves. */
static void
below_two(bool band)
{
    static const char *const below[] = {
        "cmd=add,port=2,class=2", "cmd=change,port=2,class=2,perturb=6", "cmd=del,port=2,class=2"};
    uint64_t one = since(1);
    for (unsigned k = 0; k < 3; k++) {
        uint64_t two = since(2);
        OK("sfq", below[k]);
        assert_true(band ? since(2) > two : since(2) == two);
    }
    assert_true(since(1) == one);
}

/* What is made anew counts from zero, and for no longer; what stays goes on. */
static void
counts_begin_anew(void **state)
{
    static const char *const kinds[] = {"prio", "mq", "cake", "htb"};
    qos_set_foreign(qos, QOS_FOREIGN_REPAIR);
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        add_two(kinds[i]);
        uint64_t one = since(1), two = since(2);
        fake_forget(&kernel, IF2);
        kernel.fail_in = i == 3 ? 3 : -1; /* when one of the two is made */
        assert_int_equal(qos_port_sync(qos, 2, &err) != 0, i == 3);
        assert_int_equal((since(1) > one) + (since(2) > two), i == 3 ? 1 : 2);
        assert_int_equal(qos_port_sync(qos, 2, &err), 0);
        assert_true(since(1) > one && since(2) > two);
        if (i != 2)
            below_two(i < 2);
        OK("none", "port=2");
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(values_of_a_leaf),        TEST(another_leaf),    TEST(two_leaves),
        TEST(leaves_without_a_handle), TEST(a_leaf_too_many), TEST(values_of_the_root),
        TEST(a_moved_class),           TEST(a_moved_default), TEST(counts_begin_anew)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
