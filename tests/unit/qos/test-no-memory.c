/* SPDX-License-Identifier: Apache-2.0 */
/* Memory ends at any place: an error says so, model and kernel are as before, and know each other. */
#include "fixture.h"

#include "../no-memory.h"

#include <errno.h>
#include <stdlib.h>

FAILS(void *, reallocarray, (void *p, size_t n, size_t size), (p, n, size))
FAILS(char *, strdup, (const char *s), (s))

/* ------------------------------------------------------------------ requests */

static void
take_foreign(void *ctx, const struct qos_tree *t)
{
    struct qos_foreign_counts *sum = ctx;
    if (t->port_no != 2)
        return;
    sum->changed += t->foreign.changed;
    sum->differs |= t->foreign.differs;
}

static struct qos_foreign_counts
foreign_counts(void)
{
    struct qos_foreign_counts sum = {0};
    qos_each_tree(qos, take_foreign, &sum);
    return sum;
}

/* The model finds in the kernel what it has, handles included. */
static void
nothing_differs(void)
{
    uint64_t changed = foreign_counts().changed;
    qos_set_foreign(qos, QOS_FOREIGN_REPORT);
    if (qos_port_sync(qos, 2, &err))
        fail_msg("%s", err.text);
    assert_int_equal(foreign_counts().changed, changed);
}

/* With each allocation failing in turn. */
static void
run_without_memory(const char *sched, const char *args)
{
    char why[512];
    struct qos_request r;
    if (qos_request_parse(&r, qos_sched_by_name(sched), args, why, sizeof why))
        fail_msg("%s", why);
    for (int at = 0, e = 1; e; at++) {
        char *before = fake_text(&kernel), *model = model_text();
        left = at;
        e = qos_execute(qos, &r, &err);
        bool failed = left < 0;
        left = -1;
        if (e && !failed)
            fail_msg("%s %s: %s", sched, args, err.text);
        if (e) {
            char *after = fake_text(&kernel), *model_after = model_text();
            assert_string_equal(after, before);
            assert_string_equal(model_after, model);
            free(after);
            free(model_after);
        }
        nothing_differs();
        free(before);
        free(model);
    }
}

static void
requests(void **state)
{
    static const char *const words[][2] = {
        {"sfq", "cmd=add,port=2,perturb=5"},
        {"sfq", "cmd=change,port=2,perturb=6"},
        {"pfifo", "cmd=replace,port=2,limit=3"},
        {"sfq", "cmd=replace,port=2,perturb=7"},
        {"prio", "cmd=replace,port=2"},
        {"sfq", "cmd=add,port=2,class=1,perturb=5"},
        {"prio", "cmd=change,port=2,bands=5"},
        {"mqprio", "cmd=replace,port=2,bands=4"},
        {"htb", "cmd=add,port=2,class=20,parent=1,rate=1mbit"},
        {"sfq", "cmd=add,port=2,class=20"},
        {"mqprio", "cmd=change,port=2,bands=3"},
        {"tbf", "cmd=replace,port=2,rate=1mbit"},
        {"cake", "cmd=replace,port=2"},
        {"htb", "cmd=replace,port=2,default=0"},
        {"htb", "cmd=add,port=2,class=1,rate=1mbit"},
        {"htb", "cmd=add,port=2,class=2,parent=1,rate=20%"},
        {"sfq", "cmd=add,port=2,class=2,perturb=5"},
        {"sfq", "cmd=change,port=2,class=2,perturb=6"},
        {"htb", "cmd=change,port=2,class=1,rate=2mbit"},
        {"htb", "cmd=change,port=2,default=2"},
        {"htb", "cmd=add,port=2,class=1,rate=1mbit,direction=in"},
        {"sfq", "cmd=replace,port=2,class=1,direction=in"},
        {"htb", "cmd=del,port=2,class=1,children=yes"},
        {"none", "port=2,direction=in"},
        {"none", "port=2"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        run_without_memory(words[i][0], words[i][1]);
    assert_int_equal(kernel.n, 0);
}

/* ------------------------------------------------------------------ what no request asks for */

static int
clear_all(void)
{
    return qos_clear_all(qos, &err);
}

static int
look(void)
{
    return qos_port_sync(qos, 2, &err);
}

/* The model's own, or the kernel's part that asks it. */
static bool
is_no_memory(int e)
{
    return e == -ENOMEM || (e == QOS_ERR(OFPSFC_KERNEL) && err.errnum == ENOMEM);
}

/* With a failure at each allocation in turn: kernel and model stay as they are. */
static void
fail_everywhere(int (*run_it)(void))
{
    char *before = fake_text(&kernel), *model = model_text();
    bool failed = true;
    for (int at = 0; failed; at++) {
        left = at;
        int e = run_it();
        failed = left < 0;
        left = -1;
        if (!failed) {
            assert_int_equal(e, 0);
            break;
        }
        assert_true(is_no_memory(e));
        char *now = fake_text(&kernel), *text = model_text();
        assert_string_equal(now, before);
        assert_string_equal(text, model);
        free(now);
        free(text);
    }
    free(before);
    free(model);
}

static void
queues_are_cleared(void **state)
{
    OK("htb", "cmd=add,port=2,class=10,rate=1mbit");
    fail_everywhere(clear_all);
    assert_int_equal(kernel.n, 0);
    OK("sfq", "cmd=add,port=2");
    fail_everywhere(clear_all);
    OK("mq", "cmd=add,port=2");
    OK("htb", "cmd=add,port=2,class=10,rate=1mbit,parent=1");
    fail_everywhere(clear_all);
    assert_int_equal(kernel.n, 0);
}

static int
remove_port(void)
{
    return qos_port_remove(qos, 2, true, &err);
}

/* A port that goes takes its queues along, or stays as it is. */
static void
a_port_is_removed(void **state)
{
    OK("mq", "cmd=add,port=2");
    OK("htb", "cmd=add,port=2,class=10,rate=1mbit,parent=1");
    OK("htb", "cmd=add,port=2,class=20,rate=1mbit,direction=in");
    kernel.fail_in = 0;
    assert_int_equal(remove_port(), QOS_ERR(OFPSFC_KERNEL));
    kernel.fail_in = -1;
    assert_true(present[10] && present_in[20] && shaped);
    fail_everywhere(remove_port);
    assert_int_equal(kernel.n, 0);
    assert_false(present[10] || present_in[20] || shaped);
}

/* What somebody else changed counts as repaired once it is. */
static void
a_class_is_repaired(void **state)
{
    OK("htb", "cmd=add,port=2,class=10,rate=1mbit");
    qos_set_foreign(qos, QOS_FOREIGN_REPAIR);
    ((struct qos_object *)fake_class(&kernel, IF2, 10))->values.v[QOS_RATE] = 7000000;
    fail_everywhere(look);
    assert_int_equal(whole().foreign.repaired, 1);
    assert_int_equal(rate_of(10), 1000000);
}

/* ------------------------------------------------------------------ what others do */

/* The root is somebody else's for a moment. */
static void
an_adoption_in_vain(void **state)
{
    OK("sfq", "cmd=add,port=2,perturb=5");
    OK("sfq", "cmd=change,port=2,perturb=6"); /* has its second handle */
    struct qos_object *root = (struct qos_object *)fake_qdisc(&kernel, IF2, QOS_PARENT_ROOT);
    for (int at = 0, e = -1; e; at++) {
        uint32_t handle = root->handle;
        root->handle = 0x80010000;
        qos_set_foreign(qos, QOS_FOREIGN_ADOPT);
        left = at;
        e = qos_port_sync(qos, 2, &err);
        left = -1;
        root->handle = handle;
        if (e)
            nothing_differs();
    }
}

/* A look that fails changes no finding, and says why. */
static void
a_look_in_vain(void **state)
{
    OK("htb", "cmd=add,port=2,class=1,rate=10mbit");
    ((struct qos_object *)fake_class(&kernel, IF2, 1))->values.v[QOS_RATE] = 7000000;
    qos_set_foreign(qos, QOS_FOREIGN_REPORT);
    assert_int_equal(qos_port_sync(qos, 2, &err), 0);
    unsigned failures = 0;
    for (bool failed = true; failed;) {
        assert_true(foreign_counts().differs);
        err = (struct qos_error){0};
        left = (int)failures;
        int e = qos_port_sync(qos, 2, &err);
        failed = left < 0;
        left = -1;
        failures += failed;
        assert_true(!e || (is_no_memory(e) && err.text[0]));
    }
    assert_true(failures > 1);
    assert_true(foreign_counts().differs);
}

/* What comes back has its queues, if need be by its old name. */
static void
a_name_too_many(void **state)
{
    struct qos_port port = {2, 30, "other", 1500, 1000, 100000000, 8, false};
    OK("htb", "cmd=add,port=2,class=1,rate=10mbit");
    fake_forget(&kernel, IF2);
    assert_int_equal(qos_port_absent(qos, 2), 0);
    left = 0;
    assert_int_equal(port_back(qos, &port, &err), 0);
    assert_int_equal(left, -1);
    assert_non_null(fake_class(&kernel, 30, 1));
    assert_int_equal(present[1], 1);
    left = 0;
    port.speed = 10000000;
    assert_int_equal(port_update(qos, &port, &err), 0);
    assert_int_equal(left, -1);
    assert_int_equal(fake_class(&kernel, 30, QOS_CLASS_ROOT)->values.v[QOS_RATE], 10000000);
}

/* A process that takes over finds each port's queues, whichever allocation fails once. */
static void
a_port_comes_with_its_queues(void **state)
{
    const struct qos_port port = {.port_no = 2,
                                  .ifindex = IF2,
                                  .name = "p2",
                                  .mtu = 1500,
                                  .tx_queues = 8,
                                  .txqueuelen = 1000,
                                  .speed = 100000000};
    OK("htb", "cmd=add,port=2,class=1,rate=10mbit");
    for (int at = 0, hit = true; hit; at++) {
        assert_int_equal(qos_port_remove(qos, 2, false, &err), 0);
        left = at;
        assert_int_equal(qos_port_add(qos, &port), 0);
        hit = left < 0;
        left = -1;
        OK("htb", "cmd=change,port=2,class=1,rate=20mbit");
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {TEST(requests),
                                       TEST(queues_are_cleared),
                                       TEST(a_port_is_removed),
                                       TEST(a_class_is_repaired),
                                       TEST(an_adoption_in_vain),
                                       TEST(a_look_in_vain),
                                       TEST(a_name_too_many),
                                       TEST(a_port_comes_with_its_queues)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    own_leaf = "fq_codel"; /* all of it once more */
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
