/* SPDX-License-Identifier: Apache-2.0 */
/* What schedulers make of the little that a request says, and what they refuse; no kernel is asked, so
 * this is also true of schedulers that this machine's kernel lacks. */
#include "test.h"

#include <qos/sched/sched.h>
#include <qos/wire/entry.h>
#include <qos/wire/request.h>

#include <stdio.h>
#include <string.h>

static const struct qos_env link = {.mtu = 1500, .txqueuelen = 1000, .speed = 1000000000};
static struct qos_error err;
static char why[512];

/* What dpctl reads of the text, on its way to the switch, the values for the link, the scheduler's check. */
static int
resolve(const char *name, const char *args, struct qos_values *out)
{
    char line[256];
    uint8_t bytes[512];
    struct of_wr w = of_wr_fixed(bytes, sizeof bytes);
    struct qos_request sent = {0}, r;
    const struct qos_sched *s = qos_sched_by_name(name);
    assert_non_null(s);
    why[0] = 0;
    snprintf(line, sizeof line, "cmd=add,port=2,class=0%s%s", *args ? "," : "", args);
    if (qos_request_parse(&sent, s, line, why, sizeof why))
        return -1;
    qos_request_encode(&w, &sent);
    int bad = qos_request_decode(&r, bytes, w.len, &err);
    if (bad)
        return bad;
    qos_resolve_leaf(s, &r.values, &link, out);
    return s->check ? s->check(out, &r.values, &err) : 0;
}

#define VALUE(name, args, slot, want)                                                              \
    do {                                                                                           \
        struct qos_values v_;                                                                      \
        if (resolve(name, args, &v_))                                                              \
            fail_msg("%s %s: %s%s", name, args, why, err.text);                                    \
        assert_int_equal(v_.v[slot], want);                                                        \
    } while (0)

/* By the scheduler's check, with a sentence that says which. */
#define REFUSED(name, args, said)                                                                  \
    do {                                                                                           \
        struct qos_values v_;                                                                      \
        assert_true(resolve(name, args, &v_) > 0);                                                 \
        assert_non_null(strstr(err.text, said));                                                   \
    } while (0)

/* As text already. */
#define UNREAD(name, args, said)                                                                   \
    do {                                                                                           \
        struct qos_values v_;                                                                      \
        assert_int_equal(resolve(name, args, &v_), -1);                                            \
        assert_non_null(strstr(why, said));                                                        \
    } while (0)

static void
defaults(void **state)
{
    VALUE("choke", "", QOS_LIMIT, 1000);
    VALUE("choke", "", QOS_RED_MAX, 250);
    VALUE("choke", "", QOS_THRESHOLD, 83);
    VALUE("choke", "", QOS_RED_BURST, (2 * 83 + 250) / 3);
    VALUE("choke", "limit=4", QOS_RED_MAX, 2);
    VALUE("choke", "limit=4", QOS_THRESHOLD, 1);
    VALUE("cbs", "rate=100mbit", QOS_PEAK_RATE, 1000000000);
    VALUE("cbs", "rate=100mbit", QOS_BURST,
          152); /* a tenth of a frame of 1,514 bytes, rounded up */
    VALUE("cbs", "rate=100mbit", QOS_CBURST, 1362); /* the other nine, rounded down */
    VALUE("cbs", "rate=100mbit,burst=3000b", QOS_BURST, 3000);
    VALUE("fq_pie", "", QOS_LIMIT, 10240);
    VALUE("fq_pie", "", QOS_FLOWS, 1024);
    VALUE("fq_pie", "", QOS_QUANTUM, 1514);
    VALUE("fq_pie", "quantum=300b", QOS_QUANTUM, 300);
    VALUE("dualpi2", "", QOS_TARGET, 15000);
    VALUE("dualpi2", "target=5ms", QOS_TARGET, 5000);
    VALUE("dualpi2", "", QOS_INTERVAL, 16000);
    VALUE("etf", "", QOS_LATENCY, 0);
    VALUE("etf", "", QOS_OFFLOAD, 0);
}

static void
refused(void **state)
{
    REFUSED("choke", "limit=100,max=101", "max 101 is above limit 100");
    REFUSED("choke", "max=3,burst=1000000", "burst 1000000 is too large for max 3");
    REFUSED("cbs", "", "needs a rate");
    REFUSED("cbs", "rate=1gbit", "below the link's speed, 1000000000 bit/s");
    REFUSED("cake", "limit=1000,memory_limit=2mb", "give one of them");
    REFUSED("sfq", "depth=1,flows=1", "depth x flows must be 2 or more");
    REFUSED("tbf", "rate=1mbit,limit=10kb,latency=5ms", "limit or latency");
    REFUSED("tbf", "rate=2mbit,peak_rate=1mbit", "peak_rate must be above rate");
    REFUSED("netem", "jitter=5ms", "jitter needs a latency");
    REFUSED("red", "limit=400kb,threshold=2kb,burst=30000", "is too large for threshold");
    REFUSED("htb", "rate=1mbit,rate=30%", "give a rate or a share of the parent's rate, not both");
    REFUSED("htb", "rate=1mbit,ceil=10mbit,ceil=60%",
            "give a ceil or a share of the parent's ceil, not both");
    UNREAD("gred", "dp0=0/30kb/60kb/2%", "min must be above 0");
    UNREAD("gred", "dp0=10kb/30kb/60kb", "min/max/limit/probability");
    UNREAD("gred", "dp0=10kb/30kb/60kb/2%/1/1", "min/max/limit/probability");
    UNREAD("pie", "target=4294968us", "out of range");
    UNREAD("fq_pie", "target=5s", "out of range");
    UNREAD("dualpi2", "target=5s", "out of range");
    UNREAD("netem", "latency=3s,jitter=2147484us", "out of range");
    UNREAD("gred", "dp0=10kb/30kb/5gb/2%", "'5gb' is too large");
    UNREAD("gred", "dp0=10kb/30kb/60kb/2%/300", "prio 300 is out of range");
    UNREAD("choke", "ecn=perhaps", "'perhaps' is neither yes nor no");
}

/* An entry of the answer that tells of a switch's trees. */
static void
trees(void **state)
{
    uint8_t bytes[QOS_TREE_LEN];
    struct qos_tree back,
        full = {.port_no = 7,
                .dir = QOS_IN,
                .sched = qos_sched_by_name("htb"),
                .kept = true,
                .absent = true,
                .default_id = 30,
                .n_queues = 4096,
                .foreign = {.changed = UINT64_C(1) << 40, .repaired = 3, .differs = true}},
        none = {.port_no = 1, .dir = QOS_OUT};
    const struct qos_tree *each[] = {&full, &none};
    for (size_t i = 0; i < 2; i++) {
        const struct qos_tree *t = each[i];
        struct of_wr w = of_wr_fixed(bytes, sizeof bytes);
        qos_tree_encode(&w, t);
        assert_false(w.overflow);
        assert_int_equal(w.len, QOS_TREE_LEN);
        qos_tree_decode(&back, bytes);
        assert_int_equal(back.port_no, t->port_no);
        assert_int_equal(back.dir, t->dir);
        assert_ptr_equal(back.sched, t->sched);
        assert_int_equal(back.kept, t->kept);
        assert_int_equal(back.absent, t->absent);
        assert_int_equal(back.default_id, t->default_id);
        assert_int_equal(back.n_queues, t->n_queues);
        assert_int_equal(back.foreign.changed, t->foreign.changed);
        assert_int_equal(back.foreign.repaired, t->foreign.repaired);
        assert_int_equal(back.foreign.differs, t->foreign.differs);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(refused),
        cmocka_unit_test(trees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
