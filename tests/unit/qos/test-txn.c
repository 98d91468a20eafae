/* SPDX-License-Identifier: Apache-2.0 */
/* Several requests as one, both directions, somebody else's changes: random trees on a kernel that
 * fails at every operation in turn. */
#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- random */

static uint64_t seed;

static unsigned
pick(unsigned n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % n;
}

/* A request that may be right or wrong; trees of all shapes come out of many. */
static void
random_request(struct qos_request *r)
{
    static const char *const actions[] = {"add", "add", "add", "change", "replace", "del", "del"};
    static const char *const kinds[] = {"htb", "htb", "htb", "htb", "hfsc", "drr", "prio"};
    static const char *const leaves[] = {"sfq", "red", "pfifo", "bfifo", "tbf", "fq_codel"};
    static const char *kind = "htb";
    char args[256], why[256];
    const char *action = actions[pick(7)], *in = pick(4) ? "" : ",direction=in";
    unsigned port = 1 + pick(2), class = 1 + pick(12), parent = pick(3) ? 0 : 1 + pick(12);
    bool del = strcmp(action, "del") == 0;
    int n = snprintf(args, sizeof args, "cmd=%s,port=%u%s", action, port, in);
    if (!pick(40))
        kind = kinds[pick(7)];
    const char *sched = kind;
    if (!pick(60)) {
        sched = "none";
        snprintf(args, sizeof args, "port=%s%s", pick(3) ? "2" : "any", in);
    } else if (!pick(4)) {
        sched = leaves[pick(6)];
        n += snprintf(args + n, sizeof args - n, ",class=%u", pick(12) ? class : 0);
        if (!del && !strcmp(sched, "red"))
            snprintf(args + n, sizeof args - n, ",threshold=%ukb,limit=400kb", 1 + pick(60));
        else if (!del && !strcmp(sched, "tbf"))
            snprintf(args + n, sizeof args - n, ",rate=%umbit", 1 + pick(9));
    } else if (!strcmp(kind, "prio")) {
        if (!del)
            snprintf(args + n, sizeof args - n, ",bands=%u", 2 + pick(8));
    } else if (!pick(15)) {
        snprintf(args + n, sizeof args - n, ",default=%u", pick(4));
    } else {
        n += snprintf(args + n, sizeof args - n, ",class=%u", pick(15) ? class : 0);
        if (del && pick(2))
            n += snprintf(args + n, sizeof args - n, ",children=yes");
        if (!del && pick(2))
            n += snprintf(args + n, sizeof args - n, ",parent=%u", parent);
        bool share = pick(2);
        if (del)
            (void)share;
        else if (!strcmp(kind, "htb") && share)
            snprintf(args + n, sizeof args - n, ",rate=%u%%,ceil=100%%,oversubscribe=yes",
                     1 + pick(60));
        else if (!strcmp(kind, "htb"))
            snprintf(args + n, sizeof args - n, ",rate=%ukbit,oversubscribe=yes", 100 + pick(9000));
        else if (!strcmp(kind, "hfsc"))
            snprintf(args + n, sizeof args - n, ",ls=%ukbit", 100 + pick(9000));
    }
    if (qos_request_parse(r, qos_sched_by_name(sched), args, why, sizeof why))
        fail_msg("%s %s: %s", sched, args, why);
}

/* ------------------------------------------------------------- what there is */

struct state {
    char *kernel, *model;
    uint8_t present[0x10000], present_in[0x10000];
    uint32_t default_class, default_in;
    bool shaped, shaper[FAKE_SHAPERS];
};

static void
take(struct state *s)
{
    s->kernel = fake_text(&kernel);
    s->model = model_text();
    memcpy(s->present, present, sizeof present);
    memcpy(s->present_in, present_in, sizeof present_in);
    s->default_class = default_class;
    s->default_in = default_in;
    s->shaped = shaped;
    memcpy(s->shaper, kernel.shaper, sizeof s->shaper);
}

static void
let_go(struct state *s)
{
    free(s->kernel);
    free(s->model);
}

static void
same(const struct state *a)
{
    static struct state b;
    take(&b);
    assert_string_equal(a->kernel, b.kernel);
    assert_string_equal(a->model, b.model);
    assert_memory_equal(a->present, b.present, sizeof b.present);
    assert_memory_equal(a->present_in, b.present_in, sizeof b.present_in);
    assert_int_equal(a->default_class, b.default_class);
    assert_int_equal(a->default_in, b.default_in);
    assert_int_equal(a->shaped, b.shaped);
    assert_memory_equal(a->shaper, b.shaper, sizeof b.shaper);
    let_go(&b);
}

/* Prints the lines that only one of them has. */
static bool
lines_missing(const char *of, const char *in, const char *mark)
{
    bool some = false;
    for (const char *end; *of; of = end) {
        char line[1024];
        end = strchr(of, '\n') + 1;
        snprintf(line, sizeof line, "%.*s", (int)(end - of), of);
        if (strstr(in, line))
            continue;
        print_error("%s %s", mark, line);
        some = true;
    }
    return some;
}

static bool
differs(const struct state *before)
{
    char *k = fake_text(&kernel), *m = model_text();
    bool some = lines_missing(before->kernel, k, "-");
    some |= lines_missing(k, before->kernel, "+");
    some |= lines_missing(before->model, m, "-");
    some |= lines_missing(m, before->model, "+");
    free(k);
    free(m);
    return some;
}

/* -------------------------------------------------------------------- tests */

/* At once, or in steps of a few operations. */
static int
commit(bool steps, unsigned *at)
{
    enum qos_progress p;
    if (!steps)
        return qos_commit(qos, at, &err);
    err = (struct qos_error){0};
    while ((p = qos_commit_step(qos, 1 + pick(4), at, &err)) == QOS_COMMIT_MORE)
        ;
    if (p == QOS_COMMIT_AGREED)
        qos_commit_end(qos);
    return p == QOS_COMMIT_AGREED ? 0 : err.err;
}

/* Requests that are refused one by one are left out; the others are done at once: each operation
 * fails in turn, and all is as before; at the end the kernel is as if they had been done one by
 * one. */
static void
bundle_failing(const struct qos_request *r, unsigned n, bool steps)
{
    static struct state before;
    unsigned at;
    take(&before);
    for (int fail = 0;; fail++) {
        bool taken[16];
        unsigned accepted = 0;
        qos_begin(qos);
        for (unsigned i = 0; i < n; i++) {
            taken[i] = qos_execute(qos, &r[i], &err) == 0;
            accepted += taken[i];
        }
        if (fail == 0) { /* forgotten, nothing has happened */
            qos_abort(qos);
            same(&before);
            continue;
        }
        kernel.fail_in = fail - 1;
        at = 99;
        int e = commit(steps, &at);
        bool failed = kernel.fail_in < 0 && accepted;
        kernel.fail_in = -1;
        if (!e)
            break;
        assert_true(failed);
        assert_int_equal(e, QOS_ERR(OFPSFC_KERNEL));
        assert_true(at < n && taken[at]);
        if (differs(&before)) {
            for (unsigned i = 0; i < n; i++) {
                char text[512];
                qos_request_print(&r[i], text, sizeof text);
                print_error("%s %s %s\n", taken[i] ? "taken  " : "refused", r[i].sched->name, text);
            }
            print_error("operation %d fails, of request %u\n", fail - 1, at);
        }
        same(&before);
    }
    let_go(&before);
}

static void
random_bundles(void **state)
{
    const char *text = getenv("OFQOS_TEST_ROUNDS");
    unsigned rounds = text ? (unsigned)atoi(text) : 400;
    struct qos_request r[8];
    for (unsigned round = 0; round < rounds; round++) {
        kernel.goes_on = round % 2;
        unsigned n = 1 + pick(8);
        for (unsigned i = 0; i < n; i++)
            random_request(&r[i]);
        bundle_failing(r, n, round / 2 % 2);
        if (round % 50 == 49) {
            qos_clear_all(qos, &err);
            assert_int_equal(kernel.n, 0);
            assert_false(shaped);
            assert_int_equal(default_class + default_in, 0);
        }
    }
}

/* Taken back after any number of steps, all is as before. */
static void
taken_back_half_way(void **state)
{
    struct qos_request r[8];
    unsigned at;
    for (unsigned round = 0; round < 200; round++) {
        struct state before;
        enum qos_progress p = QOS_COMMIT_MORE;
        take(&before);
        qos_begin(qos);
        for (unsigned i = 0, n = 1 + pick(8); i < n; i++) {
            random_request(&r[i]);
            qos_execute(qos, &r[i], &err);
        }
        for (unsigned n = pick(20); n && p == QOS_COMMIT_MORE; n--)
            p = qos_commit_step(qos, 1 + pick(4), &at, &err);
        qos_commit_revert(qos);
        while ((p = qos_commit_step(qos, 1 + pick(4), &at, &err)) == QOS_COMMIT_MORE)
            ;
        assert_int_equal(p, QOS_COMMIT_REFUSED);
        same(&before);
        let_go(&before);
        for (unsigned i = 0; i < 3; i++) { /* something else to start from */
            random_request(&r[0]);
            qos_execute(qos, &r[0], &err);
        }
    }
}

/* The kernel at once is the kernel one by one. */
static void
at_once_is_one_by_one(void **state)
{
    struct qos_request r[200];
    for (unsigned round = 0; round < 20; round++) {
        unsigned n = 1 + pick(200);
        for (unsigned i = 0; i < n; i++)
            random_request(&r[i]);
        bool taken[200];
        for (unsigned i = 0; i < n; i++)
            taken[i] = qos_execute(qos, &r[i], &err) == 0;
        char *one_by_one = fake_text(&kernel);
        qos_clear_all(qos, &err);
        assert_int_equal(kernel.n, 0);
        qos_begin(qos);
        for (unsigned i = 0; i < n; i++)
            assert_int_equal(qos_execute(qos, &r[i], &err) == 0, taken[i]);
        assert_int_equal(qos_commit(qos, NULL, &err), 0);
        char *at_once = fake_text(&kernel);
        assert_string_equal(at_once, one_by_one);
        free(one_by_one);
        free(at_once);
        qos_clear_all(qos, &err);
    }
}

static void
other_direction(void **state)
{
    run_failing("htb", "cmd=add,port=2,class=10,rate=6mbit,ceil=10mbit,direction=in");
    assert_true(shaped);
    assert_int_equal(present_in[10], 1);
    assert_int_equal(default_in, 0xfffe);
    assert_int_equal(present[10] + default_class, 0);
    int in = FAKE_SHAPERS + IF2;
    assert_int_equal(fake_class(&kernel, in, 10)->values.v[QOS_RATE], 6000000);
    assert_null(fake_class(&kernel, IF2, 10));
    REFUSED(OFPSFC_NOT_FOUND, "htb", "cmd=del,port=2,class=10");
    OK("htb", "cmd=add,port=2,class=10,rate=1mbit");
    OK("sfq", "cmd=add,port=2,class=10,perturb=3,direction=in");
    char *text = model_text();
    assert_non_null(strstr(text, "direction=in"));
    /* A restart finds both. */
    qos_free(qos);
    start();
    char *after = model_text();
    assert_string_equal(after, text);
    assert_true(shaped);
    assert_int_equal(present_in[10] + present[10], 2);
    free(text);
    free(after);
    OK("none", "port=2");
    assert_int_equal(present_in[10], 1);
    OK("none", "port=any,direction=in");
    assert_int_equal(kernel.n, 0);
    assert_false(shaped);
    assert_false(kernel.shaper[IF2]);
    kernel.no_shapers = true;
    REFUSED(OFPSFC_UNSUPPORTED, "htb", "cmd=add,port=2,class=10,rate=6mbit,direction=in");
    REFUSED(OFPSFC_NOT_FOUND, "htb", "cmd=del,port=2,class=10,direction=in");
}

static void
in_goes_and_returns(void **state)
{
    struct qos_port port = {2, 30, "eth", 1500, 1000, 100000000, 8, false};
    OK("htb", "cmd=add,port=2,class=1,rate=50%,direction=in");
    OK("tbf", "cmd=add,port=2,rate=1mbit");
    fake_forget(&kernel, IF2);
    assert_int_equal(qos_port_absent(qos, 2), 0);
    assert_false(kernel.shaper[IF2]);
    assert_false(shaped);
    assert_int_equal(port_back(qos, &port, &err), 0);
    assert_true(shaped && kernel.shaper[30]);
    assert_int_equal(fake_class(&kernel, FAKE_SHAPERS + 30, 1)->values.v[QOS_RATE], 50000000);
    assert_int_equal(present_in[1], 1);
    assert_non_null(fake_qdisc(&kernel, 30, QOS_PARENT_ROOT));
    port.speed = 10000000;
    assert_int_equal(port_update(qos, &port, &err), 0);
    assert_int_equal(fake_class(&kernel, FAKE_SHAPERS + 30, 1)->values.v[QOS_RATE], 5000000);
    assert_int_equal(qos_port_remove(qos, 2, true, &err), 0);
    assert_int_equal(kernel.n, 0);
    assert_false(kernel.shaper[30] || shaped);
}

static void
a_lost_shaper_is_made_anew(void **state)
{
    OK("htb", "cmd=add,port=2,class=1,rate=50%,direction=in");
    kernel.shaper[IF2] = false;
    fake_forget(&kernel, FAKE_SHAPERS + IF2);
    assert_int_equal(qos_port_sync(qos, 2, &err), 0);
    assert_true(kernel.shaper[IF2] && shaped);
    assert_int_equal(present_in[1], 1);
    assert_int_equal(fake_class(&kernel, FAKE_SHAPERS + IF2, 1)->values.v[QOS_RATE], 50000000);
}

/* Whether it is there isn't known: its queues stay as they are. */
static void
a_shaper_that_cannot_be_looked_at_stays(void **state)
{
    OK("htb", "cmd=add,port=2,class=1,rate=50%,direction=in");
    char *before = fake_text(&kernel);
    kernel.find_errno = ENOBUFS;
    assert_int_equal(qos_port_sync(qos, 2, &err), -ENOBUFS);
    assert_non_null(strstr(err.text, "direction=in"));
    kernel.find_errno = 0;
    assert_true(shaped && present_in[1]);
    assert_int_equal(qos_port_sync(qos, 2, &err), 0);
    char *now = fake_text(&kernel);
    assert_string_equal(now, before);
    free(before);
    free(now);
}

/* A daemon that was killed between making the interface and its first queue leaves it so. */
static void
a_shaper_without_queues_goes(void **state)
{
    qos_free(qos);
    kernel.shaper[IF2] = true;
    start();
    assert_false(kernel.shaper[IF2] || shaped);
    OK("htb", "cmd=add,port=2,class=1,rate=50%,direction=in");
    fake_forget(&kernel, FAKE_SHAPERS + IF2);
    assert_int_equal(qos_port_sync(qos, 2, &err), 0);
    OK("htb", "cmd=replace,port=2,class=1,rate=50%,direction=in");
    assert_int_equal(present_in[1], 1);
}

static void
replace_takes_the_place(void **state)
{
    fake_foreign_root(&kernel, IF2, 0x80010000, "pfifo");
    REFUSED(OFPSFC_BUSY, "htb", "cmd=add,port=2,default=0");
    REFUSED(OFPSFC_BUSY, "htb", "cmd=replace,port=2,class=1,rate=1mbit");
    REFUSED(OFPSFC_BUSY, "tbf", "cmd=add,port=2,rate=1mbit");
    OK("tbf", "cmd=replace,port=2,rate=1mbit");
    OK("tbf", "cmd=del,port=2");
    fake_foreign_root(&kernel, IF2, QOS_HANDLE_TREE, "htb");
    OK("htb", "cmd=replace,port=2,default=0");
    assert_non_null(fake_class(&kernel, IF2, QOS_CLASS_DEFAULT));
    OK("none", "port=2");
    assert_int_equal(kernel.n, 0);
}

static void
tamper(unsigned kind, uint32_t id, uint64_t rate)
{
    struct qos_op op = {.kind = (uint8_t)kind,
                        .ifindex = IF2,
                        .handle = QOS_HANDLE_TREE | id,
                        .parent = QOS_HANDLE_TREE | QOS_CLASS_ROOT,
                        .sched = qos_sched_by_name("htb")};
    uint8_t done;
    const struct qos_object *o = fake_class(&kernel, IF2, id);
    if (o)
        op.values = o->values;
    qos_put(&op.values, QOS_RATE, rate);
    assert_int_equal(kernel.base.ops->apply(&kernel.base, &op, 1, &done, NULL), 0);
}

static void
tamper_all(void)
{
    tamper(QOS_OP_CLASS_CHANGE, 1, 7000000);
    tamper(QOS_OP_CLASS_DEL, 2, 0);
    tamper(QOS_OP_CLASS_ADD, 77, 1000000);
}

static void
foreign_changes(void **state)
{
    struct qos_foreign_counts n;
    OK("htb", "cmd=add,port=2,class=1,rate=50%,ceil=100%");
    OK("htb", "cmd=add,port=2,class=2,rate=10%");
    OK("sfq", "cmd=add,port=2,class=2,perturb=5");
    char *before = fake_text(&kernel), *now;
    struct qos_queue queue;
    qos_set_foreign(qos, QOS_FOREIGN_REPORT);
    assert_int_equal(qos_port_sync(qos, 2, &err), 0);
    n = whole().foreign;
    assert_int_equal(n.changed, 0);
    tamper_all();
    assert_int_equal(qos_port_sync(qos, 2, &err), 0);
    n = whole().foreign;
    assert_int_equal(n.changed, 3);
    assert_true(n.differs && !n.repaired);
    assert_int_equal(qos_queue_get(qos, 2, 1, false, &queue), 0);
    assert_int_equal(queue.min_rate, 50000000);
    assert_int_equal(queue_count(qos, 2), 2);
    qos_set_foreign(qos, QOS_FOREIGN_REPAIR);
    assert_int_equal(qos_port_sync(qos, 2, &err), 0);
    n = whole().foreign;
    assert_int_equal(n.repaired, 3);
    assert_false(n.differs);
    now = fake_text(&kernel);
    assert_string_equal(now, before);
    free(now);
    fake_forget(&kernel, IF2); /* the whole tree */
    assert_int_equal(qos_port_sync(qos, 2, &err), 0);
    now = fake_text(&kernel);
    assert_string_equal(now, before);
    free(now);
    fake_forget(&kernel, IF2);
    fake_foreign_root(&kernel, IF2, 0x80010000, "pfifo");
    assert_int_equal(qos_port_sync(qos, 2, &err), QOS_ERR(OFPSFC_BUSY));
    assert_int_equal(kernel.n, 1);
    free(before);
}

static void
what_others_make_is_taken_over(void **state)
{
    OK("htb", "cmd=add,port=2,class=1,rate=50%,ceil=100%");
    OK("htb", "cmd=add,port=2,class=2,rate=10%");
    tamper_all();
    assert_int_equal(qos_port_sync(qos, 2, &err), 0);
    assert_int_equal(present[77] + present[1], 2);
    assert_int_equal(present[2], 0);
    struct qos_queue queue;
    assert_int_equal(qos_queue_get(qos, 2, 1, false, &queue), 0);
    assert_int_equal(queue.min_rate, 7000000);
    OK("htb", "cmd=change,port=2,class=0,rate=200mbit"); /* it is no longer a share */
    assert_int_equal(rate_of(1), 7000000);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(random_bundles),
        TEST(taken_back_half_way),
        TEST(at_once_is_one_by_one),
        TEST(other_direction),
        TEST(in_goes_and_returns),
        TEST(a_lost_shaper_is_made_anew),
        TEST(a_shaper_that_cannot_be_looked_at_stays),
        TEST(a_shaper_without_queues_goes),
        TEST(replace_takes_the_place),
        TEST(foreign_changes),
        TEST(what_others_make_is_taken_over),
    };
    seed = getenv("OFQOS_TEST_SEED") ? strtoull(getenv("OFQOS_TEST_SEED"), NULL, 0) : 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    own_leaf = "fq_codel"; /* all of it once more */
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
