/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of a diff (<qos/diff/diff.h>), carried out on the model and a fake kernel, give the
 * wanted queues. */
#include "fixture.h"

#include <qos/diff/diff.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANY          128
#define TEST_EMPTY(f) cmocka_unit_test_setup_teardown(f, setup_empty, teardown)

static struct qos_request want[MANY];
static size_t n_want;
static struct qos_entry now[MANY * 2];
static size_t n_now;
static char steps[1 << 16]; /* in the words of dpctl, one a line */
static size_t n_steps;
static bool carry_out;

static struct qos_diff_port port2 = {.port_no = 2,
                                     .env = {.mtu = 1500, .txqueuelen = 1000, .speed = 100000000}};

static int
setup_empty(void **state)
{
    n_want = 0;
    return setup(state);
}

static void
wanted(const char *sched, const char *args)
{
    char text[512], why[512];
    snprintf(text, sizeof text, "cmd=add,port=1,%s", args);
    assert_true(n_want < MANY);
    if (qos_request_parse(&want[n_want++], qos_sched_by_name(sched), text, why, sizeof why))
        fail_msg("%s %s: %s", sched, args, why);
}

static bool
take_entry(void *ctx, const struct qos_entry *e)
{
    assert_true(n_now < MANY * 2);
    now[n_now++] = *e;
    return true;
}

static bool
take_step(void *ctx, const struct qos_request *r)
{
    char text[QOS_REQUEST_TEXT];
    size_t used = strlen(steps);
    qos_request_print(r, text, sizeof text);
    snprintf(steps + used, sizeof steps - used, "%s %s\n", r->sched->name, text);
    n_steps++;
    if (carry_out && qos_execute(qos, r, &err))
        fail_msg("%s was refused: %s; all:\n%s", text, err.text, steps);
    return true;
}

static size_t wrong;

static int
diff_of(const struct qos_entry *from, size_t n)
{
    struct qos_diff d = {port2, from, n, want, n_want, take_step, NULL, 99};
    int result = qos_diff(&d, &err);
    wrong = d.wrong;
    return result;
}

static int
diff(bool carry)
{
    n_now = n_steps = 0;
    steps[0] = 0;
    carry_out = carry;
    assert_int_equal(qos_dump(qos, 2, QOS_ALL_CLASSES, take_entry, NULL, &err), 0);
    return diff_of(now, n_now);
}

/* Carries it out in these steps; then there is nothing left to do. */
static void
apply(const char *expected)
{
    if (diff(true))
        fail_msg("%s", err.text);
    if (expected)
        assert_string_equal(steps, expected);
    assert_int_equal(diff(false), 0);
    if (n_steps)
        fail_msg("still to do:\n%s", steps);
    n_want = 0;
}

static void
wants_nonsense(unsigned code, size_t where)
{
    n_now = n_steps = 0;
    assert_int_equal(diff_of(NULL, 0), QOS_ERR(code));
    assert_int_equal(wrong, where);
    assert_int_equal(n_steps, 0);
    n_want = 0;
}

/* ------------------------------------------------------------------------ single cases */

static void
test_minimal_steps(void **state)
{
    apply("");
    wanted("htb", "class=10,rate=6mbit,ceil=10mbit,prio=1");
    wanted("pfifo", "class=10,limit=50");
    wanted("htb", "class=20,rate=2mbit");
    apply("htb cmd=add,port=2,class=10,rate=6mbit,ceil=10mbit,prio=1\n"
          "pfifo cmd=add,port=2,class=10,limit=50\n"
          "htb cmd=add,port=2,class=20,rate=2mbit\n");
    wanted("htb", "class=10,rate=7mbit,ceil=10mbit,prio=1");
    wanted("pfifo", "class=10,limit=50");
    wanted("htb", "class=20,rate=2mbit");
    apply("htb cmd=change,port=2,class=10,rate=7mbit,ceil=10mbit,prio=1\n");
    wanted("htb", "class=10,rate=7mbit,ceil=10mbit,prio=1");
    wanted("bfifo", "class=10,limit=9000");
    apply("htb cmd=del,port=2,class=20\n"
          "bfifo cmd=replace,port=2,class=10,limit=9000b\n");
    apply("htb cmd=del,port=2,default=0\n");
}

/* Trees below transmit queues; the given order doesn't count. */
static void
test_trees(void **state)
{
    wanted("htb", "class=100,rate=5mbit,parent=2");
    wanted("htb", "class=2,rate=60mbit");
    wanted("htb", "class=200,rate=50%,ceil=100%,parent=1");
    wanted("htb", "class=1,rate=40mbit");
    wanted("mq", "class=0");
    wanted("pfifo", "class=100,limit=7");
    wanted("pfifo", "class=3,limit=9");
    apply("mq cmd=add,port=2\n"
          "htb cmd=add,port=2,class=1,rate=40mbit\n"
          "htb cmd=add,port=2,class=200,parent=1,rate=50%,ceil=100%\n"
          "htb cmd=add,port=2,class=2,rate=60mbit\n"
          "htb cmd=add,port=2,class=100,rate=5mbit,parent=2\n"
          "pfifo cmd=add,port=2,class=100,limit=7\n"
          "pfifo cmd=add,port=2,class=3,limit=9\n");
    wanted("mq", "class=0");
    wanted("htb", "class=1,rate=20mbit");
    wanted("htb", "class=200,rate=50%,ceil=100%,parent=1");
    wanted("htb", "class=3,rate=60mbit");
    wanted("htb", "class=100,rate=5mbit,parent=3");
    apply("htb cmd=del,port=2,class=2,children=yes\n"
          "pfifo cmd=del,port=2,class=3\n"
          "htb cmd=change,port=2,class=1,rate=20mbit\n"
          "htb cmd=add,port=2,class=3,rate=60mbit\n"
          "htb cmd=add,port=2,class=100,rate=5mbit,parent=3\n");
    wanted("mq", "class=0");
    wanted("htb", "class=1,rate=20mbit");
    apply("htb cmd=del,port=2,class=200\n"
          "htb cmd=del,port=2,class=3,children=yes\n");
    wanted("mq", "class=0");
    wanted("hfsc", "class=1,ls=20mbit"); /* another kind of tree below the same transmit queue */
    apply("htb cmd=del,port=2,class=1,children=yes\n"
          "hfsc cmd=add,port=2,class=1,ls=0bit/0us/20mbit\n");
    wanted("htb", "class=10,rate=20mbit");
    apply("mq cmd=del,port=2\n"
          "htb cmd=add,port=2,class=10,rate=20mbit\n");
    apply("htb cmd=del,port=2,default=0\n");
}

static void
test_names(void **state)
{
    wanted("htb", "class=10,rate=6mbit,name=voice");
    apply("htb cmd=add,port=2,class=10,rate=6mbit,name=voice\n");
    wanted("htb", "class=10,rate=6mbit,name=speech");
    apply("htb cmd=change,port=2,class=10,rate=6mbit,name=speech\n");
    wanted("htb", "class=10,rate=6mbit");
    apply("htb cmd=change,port=2,class=10,rate=6mbit,name=\n");
    wanted("htb", "class=10,rate=6mbit,name=");
    apply("");
    wanted("htb", "class=0,rate=50mbit,name=all");
    wanted("htb", "class=10,rate=6mbit");
    apply("htb cmd=change,port=2,class=0,rate=50mbit,name=all\n");
}

static void
test_promises(void **state)
{
    wanted("htb", "class=10,rate=6mbit,promise=500");
    apply("htb cmd=add,port=2,class=10,rate=6mbit,promise=500ms\n");
    wanted("htb", "class=10,rate=6mbit,promise=1s");
    apply("htb cmd=change,port=2,class=10,rate=6mbit,promise=1s\n");
    wanted("htb", "class=10,rate=6mbit");
    apply("htb cmd=change,port=2,class=10,rate=6mbit,promise=0us\n");
    wanted("htb", "class=10,rate=6mbit,promise=0");
    apply("");
}

static void
test_order(void **state)
{
    wanted("htb", "class=0,rate=50mbit");
    wanted("htb", "class=2,parent=30,rate=5%");
    wanted("htb", "class=30,rate=10mbit");
    apply("htb cmd=add,port=2,class=0,rate=50mbit\n"
          "htb cmd=add,port=2,class=30,rate=10mbit\n"
          "htb cmd=add,port=2,class=2,parent=30,rate=5%\n");
    /* 2 moves below 40, 30 goes. */
    wanted("htb", "class=0,rate=50mbit");
    wanted("htb", "class=40,rate=10mbit");
    wanted("htb", "class=2,parent=40,rate=5%");
    wanted("htb", "class=5,rate=1mbit");
    OK("htb", "cmd=add,port=2,class=5,rate=1mbit");
    apply("htb cmd=del,port=2,class=2\n"
          "htb cmd=del,port=2,class=30\n"
          "htb cmd=add,port=2,class=40,rate=10mbit\n"
          "htb cmd=add,port=2,class=2,parent=40,rate=5%\n");
}

/* A property can't be taken away by a CHANGE: its default is given, or the thing is made anew. */
static void
test_properties_that_go(void **state)
{
    wanted("htb", "class=1,rate=8mbit,burst=20000b");
    wanted("tbf", "class=1,rate=1mbit,limit=9000b");
    apply(NULL);
    wanted("htb", "class=1,rate=8mbit");
    wanted("tbf", "class=1,rate=1mbit,latency=10ms");
    apply("htb cmd=change,port=2,class=1,rate=8mbit,burst=5546b\n"
          "tbf cmd=change,port=2,class=1,rate=1mbit,latency=10ms\n");
    wanted("htb", "class=1,rate=8mbit");
    wanted("tbf", "class=1,rate=1mbit");
    apply("tbf cmd=change,port=2,class=1,rate=1mbit,limit=8296b\n");
    wanted("htb", "class=1,rate=8mbit");
    wanted("netem", "class=1,latency=5ms,loss=1%");
    apply("netem cmd=replace,port=2,class=1,latency=5ms,loss=1%\n");
    wanted("htb", "class=1,rate=8mbit");
    wanted("netem", "class=1,latency=5ms");
    apply("netem cmd=change,port=2,class=1,latency=5ms,loss=0%\n");
}

static void
test_shares(void **state)
{
    wanted("htb", "class=1,rate=40%,ceil=80%");
    apply(NULL);
    assert_int_equal(rate_of(1), 40000000);
    wanted("htb", "class=1,rate=40mbit,ceil=80%"); /* the same, but not in the same words */
    apply("htb cmd=change,port=2,class=1,rate=40mbit,ceil=80%\n");
    wanted("htb", "class=1,rate=40mbit");
    apply("htb cmd=change,port=2,class=1,rate=40mbit,ceil=40mbit\n");
    wanted("htb", "class=1,rate=30%,ceil=30mbit");
    apply("htb cmd=change,port=2,class=1,ceil=30mbit,rate=30%\n");
}

/* Either order of two changes would be refused half way: shares become numbers first. */
static void
test_shares_in_between(void **state)
{
    wanted("htb", "class=1,rate=20mbit");
    wanted("htb", "class=2,parent=1,rate=5mbit,ceil=50%");
    apply(NULL);
    wanted("htb", "class=1,rate=8mbit");
    wanted("htb", "class=2,parent=1,rate=3mbit,ceil=50%");
    apply("htb cmd=change,port=2,class=2,rate=3mbit,ceil=4mbit\n"
          "htb cmd=change,port=2,class=1,rate=8mbit\n"
          "htb cmd=change,port=2,class=2,rate=3mbit,ceil=50%\n");
    wanted("htb", "class=1,rate=20mbit");
    wanted("htb", "class=2,parent=1,rate=5mbit,ceil=50%");
    apply("htb cmd=change,port=2,class=1,rate=20mbit\n"
          "htb cmd=change,port=2,class=2,rate=5mbit,ceil=50%\n");
}

/* The root class that nobody sets any longer follows the link again. */
static void
test_root_class(void **state)
{
    wanted("htb", "class=0,rate=9mbit");
    wanted("htb", "class=1,rate=1mbit");
    apply(NULL);
    assert_int_equal(rate_of(QOS_CLASS_ROOT), 9000000);
    wanted("htb", "class=1,rate=1mbit");
    apply("htb cmd=change,port=2,class=0,rate=100%,ceil=100%\n");
    assert_int_equal(rate_of(QOS_CLASS_ROOT), 100000000);
    wanted("hfsc", "class=0,ls=20mbit"); /* its upper limit is the link's */
    wanted("hfsc", "class=1,ls=2mbit");
    apply(NULL);
}

/* The class of packets that have no queue: the qdisc's class id. */
static void
test_default_class(void **state)
{
    wanted("htb", "default=20");
    wanted("htb", "class=20,rate=1mbit");
    assert_int_equal(diff(true), 0);
    assert_string_equal(steps, "htb cmd=add,port=2,default=20\n"
                               "htb cmd=add,port=2,class=20,rate=1mbit\n");
    n_now = n_steps = 0;
    assert_int_equal(qos_dump(qos, 2, QOS_ALL_CLASSES, take_entry, NULL, &err), 0);
    carry_out = false;
    now[0].config.class_id = 20; /* as the switch shows it */
    assert_int_equal(diff_of(now, n_now), 0);
    assert_int_equal(n_steps, 0);
    now[0].config.class_id = 30;
    steps[0] = 0;
    assert_int_equal(diff_of(now, n_now), 0);
    assert_string_equal(steps, "htb cmd=change,port=2,default=20\n");
}

static void
test_kinds(void **state)
{
    wanted("prio", "class=0,bands=4");
    wanted("pfifo", "class=4,limit=9");
    wanted("pfifo", "class=1,limit=9");
    apply("prio cmd=add,port=2,bands=4\npfifo cmd=add,port=2,class=1,limit=9\n"
          "pfifo cmd=add,port=2,class=4,limit=9\n");
    wanted("prio", "class=0,bands=3");
    wanted("pfifo", "class=1,limit=8");
    apply("pfifo cmd=del,port=2,class=4\nprio cmd=change,port=2,bands=3\n"
          "pfifo cmd=change,port=2,class=1,limit=8\n");
    wanted("drr", "class=1,quantum=3000b");
    apply("prio cmd=del,port=2\ndrr cmd=add,port=2,class=1,quantum=3000b\n");
    wanted("hfsc", "class=1,ls=2mbit,ul=3mbit");
    wanted("hfsc", "class=2,ls=2mbit");
    apply(NULL);
    wanted("hfsc", "class=1,ls=2mbit"); /* the kernel can't take a curve away */
    wanted("hfsc", "class=2,ls=2mbit");
    apply("hfsc cmd=del,port=2,class=1\nhfsc cmd=add,port=2,class=1,ls=0bit/0us/2mbit\n");
    wanted("fq_codel", "class=0,target=3ms");
    apply("hfsc cmd=del,port=2,default=0\nfq_codel cmd=add,port=2,target=3ms\n");
    apply("fq_codel cmd=del,port=2\n");
    wanted("htb", "class=0,object=qdisc,offload=yes");
    wanted("htb", "class=1,rate=1mbit");
    apply(NULL);
    wanted("htb", "class=1,rate=1mbit"); /* by another root only */
    apply(NULL);
}

static void
test_nonsense(void **state)
{
    wanted("htb", "class=1,rate=1mbit");
    wanted("htb", "class=1,rate=1mbit");
    wants_nonsense(OFPSFC_EXISTS, 1);
    wanted("htb", "class=1,rate=1mbit");
    wanted("hfsc", "class=2,ls=1mbit");
    wants_nonsense(OFPSFC_BUSY, 1);
    wanted("htb", "class=1,parent=7,rate=1mbit");
    wants_nonsense(OFPSFC_NOT_FOUND, 0);
    wanted("htb", "class=1,parent=2,rate=1mbit");
    wanted("htb", "class=2,parent=1,rate=1mbit");
    wants_nonsense(OFPSFC_BAD_CLASS, 0);
    wanted("htb", "class=1,rate=1mbit");
    wanted("pfifo", "class=3,limit=3");
    wants_nonsense(OFPSFC_NOT_FOUND, 1);
    wanted("htb", "class=1,rate=1mbit");
    wanted("pfifo", "class=1,limit=3");
    wanted("htb", "class=2,parent=1,rate=1mbit");
    wants_nonsense(OFPSFC_BUSY, 2);
    wanted("htb", "class=1,rate=90%,ceil=1mbit");
    wants_nonsense(OFPSFC_BAD_PARAM, 0);
    wanted("pfifo", "class=0,limit=3");
    wanted("pfifo", "class=0,limit=3");
    wants_nonsense(OFPSFC_EXISTS, 1);
    wanted("htb", "class=1,rate=1mbit");
    wanted("pfifo", "class=1,limit=3");
    wanted("pfifo", "class=1,limit=3");
    wants_nonsense(OFPSFC_EXISTS, 2);
}

/* ------------------------------------------------------------------------ random trees */

#define CLASSES 12

static unsigned chance_state = 1;

static unsigned
chance(unsigned n)
{
    chance_state = chance_state * 1103515245u + 12345u;
    return (chance_state >> 12) % n;
}

/* A port's queues, of which each may be changed by itself. */
static struct plan_of_class {
    bool there;
    unsigned parent, rate, ceil, more, leaf, leaf_value;
} spec[CLASSES + 1];
static unsigned kind, root;

static void
roll(struct plan_of_class *c, unsigned id)
{
    c->there = chance(4) != 0;
    c->parent = chance(2) ? chance(id) : 0;
    c->rate = chance(40);
    c->ceil = chance(8);
    c->more = chance(8);
    c->leaf = chance(10);
    c->leaf_value = chance(6);
}

static unsigned
depth_of(unsigned id)
{
    return id ? 1 + depth_of(spec[id].parent) : 0;
}

static bool
is_there(unsigned id)
{
    return !id || (spec[id].there && is_there(spec[id].parent) && depth_of(id) <= 7);
}

static bool
has_children(unsigned id)
{
    for (unsigned i = id + 1; i <= CLASSES; i++) {
        if (spec[i].parent == id && is_there(i))
            return true;
    }
    return false;
}

static void
want_leaf(unsigned id)
{
    static const struct {
        const char *sched, *args;
    } leaves[] = {
        {"pfifo", "limit=%u0"},
        {"bfifo", "limit=%u000"},
        {"pfifo", "limit=0"},
        {"sfq", "perturb=%u"},
        {"sfq", "flows=1%u"},
        {"tbf", "rate=%umbit"},
        {"tbf", "rate=1mbit,latency=%ums"},
        {"netem", "latency=%ums,loss=1%%"},
    };
    char args[128];
    const struct plan_of_class *c = &spec[id];
    if (c->leaf >= sizeof leaves / sizeof leaves[0])
        return;
    size_t at = (size_t)snprintf(args, sizeof args, "class=%u,", id);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(args + at, sizeof args - at, leaves[c->leaf].args, c->leaf_value + 1);
#pragma GCC diagnostic pop
    wanted(leaves[c->leaf].sched, args);
}

static void
want_class(unsigned id)
{
    static const char *const more[] = {"",
                                       "",
                                       "",
                                       ",prio=3",
                                       ",burst=9000b",
                                       ",cburst=9000b",
                                       ",quantum=3000b",
                                       ",prio=2,quantum=2000b"};
    char args[256];
    const struct plan_of_class *c = &spec[id];
    size_t at = (size_t)snprintf(args, sizeof args, "class=%u", id);
    if (c->parent && kind != 2)
        at += (size_t)snprintf(args + at, sizeof args - at, ",parent=%u", c->parent);
    if (kind == 1)
        at += (size_t)snprintf(args + at, sizeof args - at, ",ls=%umbit%s", c->rate + 1,
                               c->ceil < 2   ? ",ul=50mbit"
                               : c->ceil < 4 ? ",rt=1mbit"
                                             : "");
    else if (kind == 2)
        at += (size_t)snprintf(args + at, sizeof args - at, ",quantum=%ub", 2000 + c->rate);
    else
        at += (size_t)snprintf(args + at, sizeof args - at, ",rate=%u%s", c->rate + 1,
                               c->rate % 2 ? "mbit" : "%");
    if (kind == 0 && c->ceil)
        at += (size_t)snprintf(args + at, sizeof args - at, ",ceil=%u%s", 50 + c->ceil,
                               c->ceil % 2 ? "mbit" : "%");
    if (kind == 0)
        snprintf(args + at, sizeof args - at, "%s,oversubscribe=yes", more[c->more]);
    wanted(kind == 1 ? "hfsc" : kind == 2 ? "drr" : "htb", args);
}

static void
want_random(void)
{
    char args[64];
    if (kind == 0 && root % 3 == 0) {
        snprintf(args, sizeof args, "class=0,rate=%umbit,oversubscribe=yes", 60 + root);
        wanted("htb", args);
    }
    if (kind == 3) {
        snprintf(args, sizeof args, "class=0,bands=%u", 2 + root % 6);
        wanted("prio", args);
    }
    for (unsigned id = 1; id <= CLASSES; id++) {
        if (kind < 3 && is_there(id))
            want_class(id);
        if (kind == 3 ? spec[id].there && id <= 2 + root % 6
                      : is_there(id) && (kind == 2 || !has_children(id)))
            want_leaf(id);
    }
}

/* The same queues on a switch that had none. */
static char *
kernel_made_afresh(void)
{
    struct fake_kernel other;
    struct qos *mine = qos;
    struct qos_port port = {.port_no = 2,
                            .ifindex = IF2,
                            .name = "eth",
                            .mtu = 1500,
                            .txqueuelen = 1000,
                            .speed = 100000000};
    fake_init(&other);
    assert_int_equal(qos_new(&qos, &other.base, NULL), 0);
    assert_int_equal(qos_port_add(qos, &port), 0);
    carry_out = true;
    assert_int_equal(diff_of(NULL, 0), 0);
    char *text = fake_text(&other);
    qos_free(qos);
    fake_free(&other);
    qos = mine;
    return text;
}

/* The kernel keeps no shares, and only HTB's ceilings: removes them from the fake kernel's text. */
static char *
without_shares(char *text)
{
    static const unsigned slots[] = {QOS_RATE_SHARE, QOS_CEIL_SHARE, QOS_CEIL};
    for (int i = 0; i < (kind ? 3 : 2); i++) {
        char name[16];
        snprintf(name, sizeof name, " %u=", slots[i]);
        for (char *at = text; (at = strstr(at, name));)
            memset(at, ' ', 1 + strcspn(at + 1, " \n"));
    }
    char *to = text;
    for (const char *from = text; *from; from++) {
        if (*from != ' ' || from[1] != ' ')
            *to++ = *from;
    }
    *to = 0;
    return text;
}

static void
test_random(void **state)
{
    unsigned done = 0;
    for (unsigned round = 0; round < 4000; round++) {
        bool other = chance(12) == 0;
        if (other)
            kind = chance(4);
        if (chance(3) == 0)
            root = chance(40);
        for (unsigned id = 1; id <= CLASSES; id++) {
            if (other || chance(5) == 0)
                roll(&spec[id], id);
        }
        n_want = 0;
        if (chance(30))
            want_random();
        if (diff(true)) { /* a rate above its ceil, say: nothing has been touched */
            assert_int_equal(n_steps, 0);
            continue;
        }
        assert_int_equal(diff(false), 0);
        if (n_steps)
            fail_msg("round %u, still to do:\n%s", round, steps);
        char *is = fake_text(&kernel), *should = kernel_made_afresh();
        if (strcmp(without_shares(is), without_shares(should)))
            printf("round %u:\n%s\nshould be:\n%s\n", round, is, should);
        assert_int_equal(strcmp(without_shares(is), without_shares(should)), 0);
        free(is);
        free(should);
        done++;
    }
    assert_true(done > 1000);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_EMPTY(test_minimal_steps), TEST_EMPTY(test_trees),
        TEST_EMPTY(test_names),         TEST_EMPTY(test_promises),
        TEST_EMPTY(test_order),         TEST_EMPTY(test_properties_that_go),
        TEST_EMPTY(test_shares),        TEST_EMPTY(test_shares_in_between),
        TEST_EMPTY(test_root_class),    TEST_EMPTY(test_default_class),
        TEST_EMPTY(test_kinds),         TEST_EMPTY(test_nonsense),
        TEST_EMPTY(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
