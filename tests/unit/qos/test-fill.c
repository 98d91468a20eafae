/* SPDX-License-Identifier: Apache-2.0 */
/* TCA_OPTIONS of every scheduler: what is written is read again as the same, and an answer of the
 * kernel that ends anywhere is read as far as it goes. */
#include "fill.h"

#include <qos/sched/precedence.h>
#include <qos/wire/request.h>

#include <inttypes.h>
#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define BANDS    "bands=4,priomap=1:2:2:2:1:2:0:0:1:1:1:1:1:1:1:3"
#define BANDS_5  "bands=5,priomap=4:3:2:1:0:0:0:0:0:0:0:0:0:0:0:0"
#define WIDE_BPS (8 * (uint64_t)UINT32_MAX)

static const struct qos_env env = {.mtu = 1500,
                                   .txqueuelen = 1000,
                                   .speed = 1000000000,
                                   .parent_rate = 1000000000,
                                   .parent_ceil = 1000000000,
                                   .tx_queues = 4};

/* Two settings as unlike each other as they can be, and how many slots the kernel tells of each.  The
 * first one's rates fit 32 bits (bytes/s). */
static const struct row {
    const char *sched;
    unsigned object;
    const char *args[2];
    unsigned told[2];
} rows[] = {
    {"pfifo", OFP_QOS_QDISC, {"limit=50", "limit=60"}, {1, 1}},
    {"bfifo", OFP_QOS_QDISC, {"limit=30kb", "limit=1mb"}, {1, 1}},
    {"sfq",
     OFP_QOS_QDISC,
     {"perturb=5,quantum=3000,limit=200,flows=64,depth=30,divisor=512",
      "perturb=6,quantum=4000,limit=100,flows=32,depth=31,divisor=1024"},
     {6, 6}},
    {"red",
     OFP_QOS_QDISC,
     {"threshold=30000,limit=200000,probability=0.1,ecn=yes",
      "threshold=20000,limit=100000,max=50000,adaptive=yes"},
     {6, 5}}, /* an adaptive one's probability is the kernel's */
    {"tbf",
     OFP_QOS_QDISC,
     {"rate=8mbit,burst=16000,limit=30000", "rate=40gbit,peak_rate=100gbit,burst=4000000"},
     {7, 7}},
    {"prio", OFP_QOS_QDISC, {BANDS, BANDS_5}, {3, 3}},
    {"ets", OFP_QOS_QDISC, {BANDS, BANDS_5}, {3, 3}},
    {"mqprio", OFP_QOS_QDISC, {BANDS, BANDS_5 ",offload=yes"}, {4, 4}},
    {"taprio", OFP_QOS_QDISC, {BANDS ",cycle=10ms", BANDS_5 ",cycle=1234us,offload=yes"}, {5, 5}},
    {"codel",
     OFP_QOS_QDISC,
     {"limit=500,target=4ms,interval=80ms,ecn=on,ce_threshold=3ms", "limit=600"},
     {5, 5}},
    {"fq_codel",
     OFP_QOS_QDISC,
     {"limit=500,quantum=2000,flows=256,ecn=off,target=4ms,interval=80ms,ce_threshold=3ms,"
      "drop_batch=32,memory_limit=1mb",
      "limit=600"},
     {9, 9}},
    {"fq",
     OFP_QOS_QDISC,
     {"limit=500,quantum=2000,max_rate=8mbit,ce_threshold=3ms", "limit=600"},
     {4, 4}},
    {"pie", OFP_QOS_QDISC, {"limit=500,ecn=on,target=20ms,tupdate=30ms", "limit=600"}, {4, 4}},
    {"fq_pie",
     OFP_QOS_QDISC,
     {"limit=500,ecn=on,target=20ms,tupdate=30ms,flows=256,quantum=2000,memory_limit=1mb",
      "limit=600"},
     {7, 7}},
    {"dualpi2", OFP_QOS_QDISC, {"limit=500,target=20ms,tupdate=30ms", "limit=600"}, {3, 3}},
    {"cake",
     OFP_QOS_QDISC,
     {"bandwidth=20mbit,diffserv=diffserv4,rtt=50ms,overhead=-4,mpu=64,linklayer=ptm,"
      "flow_mode=hosts,nat=yes,wash=yes,ack_filter=aggressive,ingress=yes,split_gso=no,"
      "memory_limit=1mb,fwmark=255",
      "bandwidth=40gbit,nat=yes,autorate_ingress=yes"},
     {15, 13}}, /* no overhead; the rate is what arrives */
    {"netem",
     OFP_QOS_QDISC,
     {"limit=500,latency=10ms,jitter=1ms,loss=1%,rate=1mbit",
      "rate=40gbit,latency=3000s,jitter=2s"},
     {5, 5}},
    {"choke", OFP_QOS_QDISC, {"limit=400,max=100,probability=0.1,ecn=yes", "limit=1000"}, {4, 4}},
    {"etf", OFP_QOS_QDISC, {"latency=300us", "offload=yes"}, {2, 2}},
    {"cbs",
     OFP_QOS_QDISC,
     {"rate=20mbit,burst=300", "rate=500mbit,burst=9000,offload=yes"},
     {3, 3}},
    {"hfsc",
     OFP_QOS_CLASS,
     {"rt=4mbit/10ms/2mbit,ls=2mbit,ul=5mbit", "ls=9mbit/1ms/1mbit"},
     {9, 9}},
    {"htb",
     OFP_QOS_CLASS,
     {"rate=6mbit,ceil=10mbit,prio=1,burst=15000,cburst=16000,quantum=3000,overhead=38,mpu=84,"
      "linklayer=atm",
      "rate=34359738360,ceil=400gbit,prio=7"},
     {9, 9}},
    {"drr", OFP_QOS_CLASS, {"quantum=3000", "quantum=4000"}, {1, 1}},
    /* row_values() has what the model gives them */
    {"htb", OFP_QOS_QDISC, {NULL, NULL}, {2, 2}},
    {"hfsc", OFP_QOS_QDISC, {NULL, NULL}, {1, 1}},
};

#define N_ROWS (sizeof rows / sizeof rows[0])

/* What the settings mean to the kernel, as the switch checks it. */
static struct qos_values
values_of(const struct qos_sched *s, unsigned object, const char *args)
{
    struct qos_request r;
    struct qos_values v;
    struct qos_error e = {0};
    char text[400], why[512];
    bool class = object == OFP_QOS_CLASS;
    snprintf(text, sizeof text, "cmd=add,port=1,class=%d,%s", class ? 10 : 0, args);
    if (qos_request_parse(&r, s, text, why, sizeof why))
        fail_msg("%s %s: %s", s->name, text, why);
    if (class)
        qos_resolve_class(s, false, &r.values, &env, &v);
    else
        qos_resolve_leaf(s, &r.values, &env, &v);
    if (s->check && s->check(&v, &r.values, &e))
        fail_msg("%s %s: %s", s->name, text, e.text);
    return v;
}

static struct qos_values
row_values(const struct row *row, unsigned i)
{
    struct qos_values v = {0};
    const struct qos_sched *s = qos_sched_by_name(row->sched);
    if (!s->classful || row->object == OFP_QOS_CLASS)
        return values_of(s, row->object, row->args[i]);
    bool hfsc = s->id == OFP_QOS_SCHED_HFSC;
    qos_put(&v, QOS_DEFAULT, i && hfsc ? 11 : QOS_CLASS_DEFAULT);
    if (!hfsc)
        qos_put(&v, QOS_OFFLOAD, i);
    return v;
}

/* The options that a new qdisc or class is given; the caller frees *msg.  NULL: none. */
static struct nlattr *
options_of(const struct qos_sched *s, unsigned object, const struct qos_values *v,
           struct nl_msg **msg)
{
    *msg = netlink_tc_message(RTM_NEWQDISC, NLM_F_CREATE, &(struct tcmsg){0});
    assert_non_null(*msg);
    assert_int_equal(netlink_fill(*msg, s, object, v), 0);
    return nlmsg_find_attr(nlmsg_hdr(*msg), sizeof(struct tcmsg), TCA_OPTIONS);
}

/* The first n bytes of the options' content, in memory that ends there. */
static struct qos_values
read_cut(const struct nlattr *options, const struct qos_sched *s, unsigned object, int n)
{
    struct qos_values has = {0};
    struct nlattr *cut = malloc((size_t)(NLA_HDRLEN + n));
    assert_non_null(cut);
    memcpy(cut, options, (size_t)(NLA_HDRLEN + n));
    cut->nla_len = (uint16_t)(NLA_HDRLEN + n);
    netlink_read(cut, s, object, &has);
    free(cut);
    return has;
}

/* ------------------------------------------------------------- there and back */

/* CoDel keeps units of 1,024 ns, and tells whole microseconds of them. */
static void
keep_times(struct nlattr *options, const struct qos_sched *s)
{
    const struct qos_field *f;
    for (unsigned i = 0; (f = qos_sched_field(s, i)); i++) {
        struct nlattr *a = f->attr && f->kept == QOS_KEPT_CODEL_TIME
                               ? nla_find(nla_data(options), nla_len(options), f->attr)
                               : NULL;
        uint32_t us = a ? nla_get_u32(a) : 0;
        if (!a || us == f->none)
            continue;
        us = (uint32_t)((uint64_t)us * 1000 / 1024 * 1024 / 1000);
        memcpy(nla_data(a), &us, sizeof us);
    }
}

static void
check_same(const struct qos_sched *s, const struct qos_values *given, const struct qos_values *has,
           unsigned told)
{
    for (unsigned slot = 0; slot < QOS_N_SLOTS; slot++) {
        if (qos_has(has, slot) && !netlink_same_value(s, slot, given, has))
            fail_msg("%s, slot %u: %" PRIu64 " instead of %" PRIu64, s->name, slot, has->v[slot],
                     given->v[slot]);
    }
    if (qos_slots_count(&has->set) != told)
        fail_msg("%s: %u slots instead of %u", s->name, qos_slots_count(&has->set), told);
}

static void
test_and_back(void **state)
{
    for (const struct row *row = rows; row < rows + N_ROWS; row++) {
        const struct qos_sched *s = qos_sched_by_name(row->sched);
        struct qos_values given[2], has[2];
        for (unsigned i = 0; i < 2; i++) {
            struct nl_msg *msg;
            given[i] = row_values(row, i);
            struct nlattr *options = options_of(s, row->object, &given[i], &msg);
            assert_non_null(options);
            keep_times(options, s);
            has[i] = read_cut(options, s, row->object, nla_len(options));
            check_same(s, &given[i], &has[i], row->told[i]);
            nlmsg_free(msg);
        }
        for (unsigned slot = 0; slot < QOS_N_SLOTS; slot++) {
            if (!qos_has(&has[0], slot) || !qos_has(&has[1], slot))
                continue;
            bool alike = given[0].v[slot] == given[1].v[slot];
            if (netlink_same_value(s, slot, &given[0], &has[1]) != alike)
                fail_msg("%s, slot %u: %" PRIu64 " and %" PRIu64, s->name, slot, given[0].v[slot],
                         has[1].v[slot]);
        }
    }
}

/* Each scheduler has its rows above, a test of its own below, or no options. */
static void
test_all(void **state)
{
    const struct qos_sched *s;
    for (unsigned i = 0; (s = qos_sched_at(i)); i++) {
        for (unsigned object = OFP_QOS_QDISC; object <= OFP_QOS_CLASS; object++) {
            bool known = s->id == OFP_QOS_SCHED_GRED || (object == OFP_QOS_CLASS && !s->classful);
            for (size_t k = 0; k < N_ROWS; k++)
                known |= rows[k].object == object && !strcmp(rows[k].sched, s->name);
            if (known)
                continue;
            struct nl_msg *msg;
            if (options_of(s, object, &(struct qos_values){0}, &msg))
                fail_msg("%s has no row", s->name);
            nlmsg_free(msg);
        }
    }
}

/* ------------------------------------------------------------- what ends early */

/* A value is there whole, or not at all; where the kernel leaves out an attribute for none, 0. */
static void
check_part(const struct qos_sched *s, const struct qos_values *whole, const struct qos_values *part,
           int n)
{
    for (unsigned slot = 0; slot < QOS_N_SLOTS; slot++) {
        if (part->v[slot] && (!qos_has(part, slot) || part->v[slot] != whole->v[slot]))
            fail_msg("%s, %d bytes, slot %u: %" PRIu64 " instead of %" PRIu64, s->name, n, slot,
                     part->v[slot], whole->v[slot]);
    }
}

static void
cut_everywhere(const struct nlattr *options, const struct qos_sched *s, unsigned object, bool check)
{
    int all = nla_len(options);
    struct qos_values whole = read_cut(options, s, object, all);
    for (int n = 0; n < all; n++) {
        struct qos_values part = read_cut(options, s, object, n);
        if (check)
            check_part(s, &whole, &part, n);
    }
}

/* Of a wide rate the 32 bits alone say less than the attribute that follows. */
static void
test_cut(void **state)
{
    for (const struct row *row = rows; row < rows + N_ROWS; row++) {
        const struct qos_sched *s = qos_sched_by_name(row->sched);
        for (unsigned i = 0; i < 2; i++) {
            struct nl_msg *msg;
            struct qos_values v = row_values(row, i);
            cut_everywhere(options_of(s, row->object, &v, &msg), s, row->object, i == 0);
            nlmsg_free(msg);
        }
    }
}

static void
test_without_rate64(void **state)
{
    struct qos_values v = values_of(qos_sched_by_name("htb"), OFP_QOS_CLASS, "rate=40gbit");
    struct nl_msg *msg;
    struct nlattr *options = options_of(qos_sched_by_name("htb"), OFP_QOS_CLASS, &v, &msg);
    int n = (int)(NLA_HDRLEN + NLA_ALIGN(sizeof(struct tc_htb_opt)));
    v = read_cut(options, qos_sched_by_name("htb"), OFP_QOS_CLASS, n);
    assert_true(v.v[QOS_RATE] == WIDE_BPS && v.v[QOS_CEIL] == WIDE_BPS);
    nlmsg_free(msg);
}

/* ------------------------------------------------------------------ by hand */

/* The first attribute of this type in what the message's options nest. */
static struct nlattr *
inner(struct nlattr *options, int type)
{
    struct nlattr *a = nla_find(nla_data(options), nla_len(options), type);
    assert_non_null(a);
    return a;
}

/* What the kernel's GRED tells: all 16 precedences, the missing ones with a number beyond. */
static struct nlattr *
gred_dump(const struct qos_values *v, struct nl_msg **dump)
{
    const struct qos_sched *s = qos_sched_by_name("gred");
    struct tc_gred_qopt parms[QOS_PRECEDENCES] = {0};
    uint32_t max_p[QOS_PRECEDENCES] = {0};
    struct nl_msg *msg;
    for (uint32_t dp = 0; dp < QOS_PRECEDENCES; dp++)
        parms[dp].DP = QOS_PRECEDENCES + dp;
    for (unsigned step = 0; step < netlink_steps(s, v); step++) {
        struct tc_gred_qopt one;
        msg = netlink_tc_message(RTM_NEWQDISC, 0, &(struct tcmsg){0});
        assert_int_equal(netlink_fill_step(msg, s, v, step), 0);
        struct nlattr *o = nlmsg_find_attr(nlmsg_hdr(msg), sizeof(struct tcmsg), TCA_OPTIONS);
        memcpy(&one, nla_data(inner(o, TCA_GRED_PARMS)), sizeof one);
        assert_in_range(one.DP, 0, QOS_PRECEDENCES - 1);
        parms[one.DP] = one;
        max_p[one.DP] = nla_get_u32(inner(o, TCA_GRED_MAX_P));
        assert_int_equal(nla_len(inner(o, TCA_GRED_STAB)), 256);
        nlmsg_free(msg);
    }
    struct nlattr *table = options_of(s, OFP_QOS_QDISC, v, &msg);
    *dump = netlink_tc_message(RTM_NEWQDISC, 0, &(struct tcmsg){0});
    struct nlattr *nest = nla_nest_start(*dump, TCA_OPTIONS);
    nla_put(*dump, TCA_GRED_DPS, sizeof(struct tc_gred_sopt), nla_data(inner(table, TCA_GRED_DPS)));
    nla_put(*dump, TCA_GRED_MAX_P, sizeof max_p, max_p);
    nla_put_u32(*dump, TCA_GRED_LIMIT, nla_get_u32(inner(table, TCA_GRED_LIMIT)));
    nla_put(*dump, TCA_GRED_PARMS, sizeof parms, parms);
    nla_nest_end(*dump, nest);
    nlmsg_free(msg);
    return nest;
}

#define GRED_PRIO  "limit=200kb,ecn=yes,dp1=10kb/30kb/60kb/2%/1,dp3=5kb/20kb/50kb/10%/8"
#define GRED_PLAIN "dp0=10kb/30kb/60kb/2%"

static void
test_gred(void **state)
{
    static const struct {
        const char *args;
        uint32_t n_dp, default_dp;
        bool grio;
        unsigned told;
    } greds[] = {{GRED_PRIO, 4, 1, true, 6}, {GRED_PLAIN, 1, 0, false, 4}};
    const struct qos_sched *s = qos_sched_by_name("gred");
    for (unsigned i = 0; i < 2; i++) {
        struct qos_values v = values_of(s, OFP_QOS_QDISC, greds[i].args);
        struct tc_gred_sopt table;
        struct nl_msg *msg;
        struct nlattr *options = options_of(s, OFP_QOS_QDISC, &v, &msg);
        memcpy(&table, nla_data(inner(options, TCA_GRED_DPS)), sizeof table);
        assert_int_equal(table.DPs, greds[i].n_dp);
        assert_int_equal(table.def_DP, greds[i].default_dp);
        assert_int_equal(table.grio, greds[i].grio);
        nlmsg_free(msg);
        options = gred_dump(&v, &msg);
        struct qos_values has = read_cut(options, s, OFP_QOS_QDISC, nla_len(options));
        check_same(s, &v, &has, greds[i].told);
        cut_everywhere(options, s, OFP_QOS_QDISC, true);
        nlmsg_free(msg);
    }
}

/* Until its first cycle begins, TAPRIO's list is nested once more. */
static void
test_taprio_soon(void **state)
{
    const struct qos_sched *s = qos_sched_by_name("taprio");
    struct qos_values v = values_of(s, OFP_QOS_QDISC, BANDS ",cycle=4ms");
    struct nl_msg *msg, *dump = netlink_tc_message(RTM_NEWQDISC, 0, &(struct tcmsg){0});
    struct nlattr *options = options_of(s, OFP_QOS_QDISC, &v, &msg);
    struct nlattr *map = inner(options, TCA_TAPRIO_ATTR_PRIOMAP);
    struct nlattr *list = inner(options, TCA_TAPRIO_ATTR_SCHED_ENTRY_LIST);
    struct nlattr *nest = nla_nest_start(dump, TCA_OPTIONS);
    nla_put(dump, TCA_TAPRIO_ATTR_PRIOMAP, nla_len(map), nla_data(map));
    struct nlattr *soon = nla_nest_start(dump, TCA_TAPRIO_ATTR_ADMIN_SCHED);
    nla_put(dump, TCA_TAPRIO_ATTR_SCHED_ENTRY_LIST, nla_len(list), nla_data(list));
    nla_nest_end(dump, soon);
    nla_nest_end(dump, nest);
    struct qos_values has = read_cut(nest, s, OFP_QOS_QDISC, nla_len(nest));
    check_same(s, &v, &has, 5);
    assert_int_equal(has.v[QOS_INTERVAL], 4000);
    cut_everywhere(nest, s, OFP_QOS_QDISC, true);
    nlmsg_free(dump);
    nlmsg_free(msg);
}

/* The kernel counts a bucket's bytes as they are on the link. */
static void
test_tbf_link(void **state)
{
    static const char *const links[] = {"overhead=38,mpu=84", "overhead=44,linklayer=atm"};
    const struct qos_sched *s = qos_sched_by_name("tbf");
    for (unsigned i = 0; i < 2; i++) {
        char args[100];
        snprintf(args, sizeof args, "rate=8mbit,burst=16000,limit=30000,%s", links[i]);
        struct qos_values v = values_of(s, OFP_QOS_QDISC, args);
        struct nl_msg *msg;
        struct nlattr *options = options_of(s, OFP_QOS_QDISC, &v, &msg);
        struct nlattr *parms = inner(options, TCA_TBF_PARMS);
        struct tc_tbf_qopt opt;
        memcpy(&opt, nla_data(parms), sizeof opt);
        opt.buffer = (uint32_t)(netlink_link_size(&v, 16000) * 15625000 / 1000000);
        memcpy(nla_data(parms), &opt, sizeof opt);
        struct qos_values has = read_cut(options, s, OFP_QOS_QDISC, nla_len(options));
        check_same(s, &v, &has, 7);
        nlmsg_free(msg);
    }
}

/* A number that none of the field's words has, such as that of tc's "precedence" (CAKE), is no value. */
static void
test_no_word(void **state)
{
    static const struct {
        int attr;
        uint32_t code;
        unsigned slot;
        bool known;
    } codes[] = {
        {TCA_CAKE_DIFFSERV_MODE, CAKE_DIFFSERV_BESTEFFORT, QOS_DIFFSERV, true},
        {TCA_CAKE_DIFFSERV_MODE, CAKE_DIFFSERV_PRECEDENCE, QOS_DIFFSERV, false},
        {TCA_CAKE_DIFFSERV_MODE, 256 + CAKE_DIFFSERV_DIFFSERV4, QOS_DIFFSERV, false},
        {TCA_CAKE_DIFFSERV_MODE, UINT32_MAX, QOS_DIFFSERV, false},
        {TCA_CAKE_FLOW_MODE, CAKE_FLOW_TRIPLE, QOS_FLOW_MODE, true},
        {TCA_CAKE_FLOW_MODE, CAKE_FLOW_TRIPLE + 1, QOS_FLOW_MODE, false},
        {TCA_CAKE_ATM, CAKE_ATM_PTM, QOS_LINKLAYER, true},
        {TCA_CAKE_ATM, CAKE_ATM_PTM + 1, QOS_LINKLAYER, false},
        {TCA_CAKE_ACK_FILTER, CAKE_ACK_AGGRESSIVE, QOS_ACK_FILTER, true},
        {TCA_CAKE_ACK_FILTER, CAKE_ACK_AGGRESSIVE + 1, QOS_ACK_FILTER, false},
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        struct qos_values has = {0};
        struct nl_msg *msg = netlink_tc_message(RTM_NEWQDISC, 0, &(struct tcmsg){0});
        struct nlattr *nest = nla_nest_start(msg, TCA_OPTIONS);
        nla_put_u32(msg, codes[i].attr, codes[i].code);
        nla_nest_end(msg, nest);
        netlink_read(nest, qos_sched_by_name("cake"), OFP_QOS_QDISC, &has);
        if (qos_has(&has, codes[i].slot) != codes[i].known)
            fail_msg("attribute %d: %u", codes[i].attr, codes[i].code);
        nlmsg_free(msg);
    }
}

/* -------------------------------------------------- a scheduler's own statistics */

/* Each tin has counted its number, from 1 on; the last one has no more than a rate of 2 bytes. */
static struct qos_object
read_tins(unsigned n)
{
    struct qos_object o = {.sched = qos_sched_by_name("cake")};
    struct nl_msg *msg = netlink_tc_message(RTM_NEWQDISC, 0, &(struct tcmsg){0});
    struct nlattr *xstats = nla_nest_start(msg, TCA_STATS_APP);
    struct nlattr *tins = nla_nest_start(msg, TCA_CAKE_STATS_TIN_STATS);
    for (unsigned i = 1; i <= n; i++) {
        struct nlattr *tin = nla_nest_start(msg, (int)i);
        if (i < n) {
            nla_put_u64(msg, TCA_CAKE_TIN_STATS_SENT_BYTES64, i * 1000);
            nla_put_u32(msg, TCA_CAKE_TIN_STATS_SENT_PACKETS, i);
            nla_put_u32(msg, TCA_CAKE_TIN_STATS_DROPPED_PACKETS, UINT32_MAX);
            nla_put_u32(msg, TCA_CAKE_TIN_STATS_ACKS_DROPPED_PACKETS, i);
            nla_put_u32(msg, TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS, i);
            nla_put_u32(msg, TCA_CAKE_TIN_STATS_BACKLOG_BYTES, i * 100);
            nla_put_u64(msg, TCA_CAKE_TIN_STATS_THRESHOLD_RATE64, i * 1000);
            nla_put_u32(msg, TCA_CAKE_TIN_STATS_AVG_DELAY_US, i);
            nla_put_u32(msg, TCA_CAKE_TIN_STATS_PEAK_DELAY_US, i + 1);
        } else {
            nla_put_u16(msg, TCA_CAKE_TIN_STATS_THRESHOLD_RATE64, 9);
            nla_put_u16(msg, TCA_CAKE_TIN_STATS_SENT_PACKETS, 9);
        }
        nla_nest_end(msg, tin);
    }
    nla_nest_end(msg, tins);
    nla_nest_end(msg, xstats);
    netlink_read_stats(xstats, &o);
    nlmsg_free(msg);
    return o;
}

static void
test_tins(void **state)
{
    struct qos_object o = read_tins(3);
    assert_int_equal(o.n_tins, 3);
    assert_int_equal(o.counters.marked, 1 + 2);
    assert_int_equal(o.tins[1].counters.bytes, 2000);
    assert_int_equal(o.tins[1].counters.packets, 2);
    assert_int_equal(o.tins[1].counters.drops, (uint64_t)UINT32_MAX + 2);
    assert_int_equal(o.tins[1].counters.marked, 2);
    assert_int_equal(o.tins[1].counters.backlog_bytes, 200);
    assert_int_equal(o.tins[1].rate, 16000);
    assert_int_equal(o.tins[1].delay_us, 2);
    assert_int_equal(o.tins[1].peak_us, 3);
    assert_memory_equal(&o.tins[2], &(struct qos_tin){0}, sizeof o.tins[2]);
    o = read_tins(9);
    assert_int_equal(o.n_tins, QOS_TINS_MAX);
    assert_int_equal(o.counters.marked, 8 * 9 / 2);
    assert_int_equal(o.tins[7].counters.packets, 8);
}

/* Statistics with as many bytes as given, in memory that ends there: packets marked. */
static uint64_t
read_marked(const struct qos_sched *s, size_t n)
{
    struct qos_object o = {.sched = s};
    struct nlattr *xstats = malloc(NLA_HDRLEN + n);
    assert_non_null(xstats);
    *xstats = (struct nlattr){.nla_len = (uint16_t)(NLA_HDRLEN + n), .nla_type = TCA_STATS_APP};
    memset(nla_data(xstats), 1, n);
    netlink_read_stats(xstats, &o);
    free(xstats);
    return o.counters.marked;
}

static void
test_marked(void **state)
{
    const struct qos_sched *s;
    assert_int_equal(read_marked(qos_sched_by_name("red"), sizeof(struct tc_red_xstats)),
                     0x01010101);
    assert_int_equal(read_marked(qos_sched_by_name("red"), sizeof(struct tc_red_xstats) - 3), 0);
    for (unsigned i = 0; (s = qos_sched_at(i)); i++) {
        assert_int_equal(read_marked(s, 0), 0);
        if (!s->marked)
            continue;
        assert_int_equal(read_marked(s, s->marked + 3u), 0x01010101);
        assert_int_equal(read_marked(s, s->marked + 2u), 0);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_and_back), cmocka_unit_test(test_all),
        cmocka_unit_test(test_cut),      cmocka_unit_test(test_without_rate64),
        cmocka_unit_test(test_gred),     cmocka_unit_test(test_taprio_soon),
        cmocka_unit_test(test_tbf_link), cmocka_unit_test(test_tins),
        cmocka_unit_test(test_marked),   cmocka_unit_test(test_no_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
