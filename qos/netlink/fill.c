/* SPDX-License-Identifier: Apache-2.0 */
/* Schedulers whose options are a list of plain attributes, and the way to the others. */
#include "fill.h"

#include <qos-netlink/kernel.h>

#include <errno.h>
#include <linux/pkt_sched.h>
#include <stddef.h>
#include <string.h>

#define N(a) (sizeof(a) / sizeof((a)[0]))

/* ------------------------------------------------------------------- common */

void
fill_rate(struct tc_ratespec *to, uint64_t bits_per_s)
{
    uint64_t bytes = bits_per_s / 8;
    memset(to, 0, sizeof *to);
    to->linklayer = TC_LINKLAYER_ETHERNET; /* so that the kernel wants no table */
    to->rate = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

int
fill_rate64(struct nl_msg *msg, int attr, uint64_t bits_per_s)
{
    uint64_t bytes = bits_per_s / 8;
    return bytes < UINT32_MAX ? 0 : nla_put_u64(msg, attr, bytes);
}

uint64_t
read_rate(const struct tc_ratespec *rate, struct nlattr *rate64)
{
    return 8 * (rate64 && nla_len(rate64) >= 8 ? nla_get_u64(rate64) : rate->rate);
}

uint32_t
fill_ticks(uint64_t bytes, uint64_t bits_per_s)
{
    uint64_t per_s = 1000000000u / QOS_TICK_NS, rate = bits_per_s / 8;
    if (!rate)
        return UINT32_MAX;
    uint64_t ticks = (bytes * per_s + rate - 1) / rate;
    return ticks < UINT32_MAX ? (uint32_t)ticks : UINT32_MAX;
}

uint64_t
read_ticks(uint32_t ticks, uint64_t bits_per_s, bool cut)
{
    const uint64_t per_s = 1000000000u / QOS_TICK_NS; /* no remainder, and below 2^24 */
    uint64_t rate = bits_per_s / 8, whole, sum;
    /* ticks * rate / per_s, in parts: the product alone has up to 93 bits */
    uint64_t part = ticks * (rate % per_s) + (cut ? per_s - 1 : 0);
    if (__builtin_mul_overflow(rate / per_s, ticks, &whole) ||
        __builtin_add_overflow(whole, part / per_s, &sum))
        return UINT64_MAX;
    return sum;
}

/* --------------------------------------------------------- plain attributes */

enum plain_kind { PLAIN_U32, PLAIN_RATE64, PLAIN_DIFFSERV, PLAIN_CODEL_TIME };

struct plain {
    uint8_t slot;
    uint8_t attr;
    uint8_t kind;
};

static const struct plain codel[] = {
    {QOS_TARGET, TCA_CODEL_TARGET, PLAIN_CODEL_TIME},
    {QOS_LIMIT, TCA_CODEL_LIMIT, PLAIN_U32},
    {QOS_INTERVAL, TCA_CODEL_INTERVAL, PLAIN_CODEL_TIME},
    {QOS_ECN, TCA_CODEL_ECN, PLAIN_U32},
};
static const struct plain fq_codel[] = {
    {QOS_TARGET, TCA_FQ_CODEL_TARGET, PLAIN_CODEL_TIME},
    {QOS_LIMIT, TCA_FQ_CODEL_LIMIT, PLAIN_U32},
    {QOS_INTERVAL, TCA_FQ_CODEL_INTERVAL, PLAIN_CODEL_TIME},
    {QOS_ECN, TCA_FQ_CODEL_ECN, PLAIN_U32},
    {QOS_FLOWS, TCA_FQ_CODEL_FLOWS, PLAIN_U32},
    {QOS_QUANTUM, TCA_FQ_CODEL_QUANTUM, PLAIN_U32},
};
static const struct plain fq[] = {
    {QOS_LIMIT, TCA_FQ_PLIMIT, PLAIN_U32},
    {QOS_QUANTUM, TCA_FQ_QUANTUM, PLAIN_U32},
};
static const struct plain pie[] = {
    {QOS_TARGET, TCA_PIE_TARGET, PLAIN_U32},
    {QOS_LIMIT, TCA_PIE_LIMIT, PLAIN_U32},
    {QOS_INTERVAL, TCA_PIE_TUPDATE, PLAIN_U32},
    {QOS_ECN, TCA_PIE_ECN, PLAIN_U32},
};
static const struct plain cake[] = {
    {QOS_RATE, TCA_CAKE_BASE_RATE64, PLAIN_RATE64},
    {QOS_LIMIT, TCA_CAKE_MEMORY, PLAIN_U32},
    {QOS_INTERVAL, TCA_CAKE_RTT, PLAIN_U32},
    {QOS_DIFFSERV, TCA_CAKE_DIFFSERV_MODE, PLAIN_DIFFSERV},
};

/* The wire's numbers to CAKE's. */
static const uint8_t diffserv[] = {CAKE_DIFFSERV_BESTEFFORT, CAKE_DIFFSERV_DIFFSERV3,
                                   CAKE_DIFFSERV_DIFFSERV4, CAKE_DIFFSERV_DIFFSERV8};

static uint64_t cake_marked(struct nlattr *xstats);

/* Either plain attributes or functions; `marked`: where packets marked are in the statistics, or
 * what counts them. */
static const struct row {
    const struct plain *plain;
    uint8_t n;
    const struct filler *filler;
    uint16_t marked;
    uint64_t (*count_marked)(struct nlattr *xstats);
    const struct filler *class;
    enum default_place dflt;
} rows[] = {
    [OFP_QOS_SCHED_HTB] = {.filler = &fill_htb, .class = &fill_htb_class, .dflt = DEFAULT_OVER},
    [OFP_QOS_SCHED_PFIFO] = {.filler = &fill_fifo},
    [OFP_QOS_SCHED_BFIFO] = {.filler = &fill_fifo},
    [OFP_QOS_SCHED_SFQ] = {.filler = &fill_sfq},
    [OFP_QOS_SCHED_RED] = {.filler = &fill_red,
                           .marked = 1 + offsetof(struct tc_red_xstats, marked)},
    [OFP_QOS_SCHED_TBF] = {.filler = &fill_tbf},
    [OFP_QOS_SCHED_PRIO] = {.filler = &fill_prio, .dflt = DEFAULT_MARK},
    [OFP_QOS_SCHED_CODEL] = {.plain = codel,
                             .n = N(codel),
                             .marked = 1 + offsetof(struct tc_codel_xstats, ecn_mark)},
    [OFP_QOS_SCHED_FQ_CODEL] = {.plain = fq_codel,
                                .n = N(fq_codel),
                                .marked =
                                    1 + offsetof(struct tc_fq_codel_xstats, qdisc_stats.ecn_mark)},
    [OFP_QOS_SCHED_FQ] = {.plain = fq, .n = N(fq)},
    [OFP_QOS_SCHED_PIE] = {.plain = pie,
                           .n = N(pie),
                           .marked = 1 + offsetof(struct tc_pie_xstats, ecn_mark)},
    [OFP_QOS_SCHED_CAKE] = {.plain = cake, .n = N(cake), .count_marked = cake_marked},
    [OFP_QOS_SCHED_HFSC] = {.filler = &fill_hfsc, .class = &fill_hfsc_class},
    [OFP_QOS_SCHED_DRR] = {.filler = &fill_drr, .class = &fill_drr_class, .dflt = DEFAULT_FILTER},
    [OFP_QOS_SCHED_NETEM] = {.filler = &fill_netem},
    [OFP_QOS_SCHED_ETS] = {.filler = &fill_ets, .dflt = DEFAULT_MARK},
};

static const struct row *
row_of(const struct qos_sched *sched)
{
    static const struct row none;
    return sched->id < N(rows) ? &rows[sched->id] : &none;
}

static int
fill_plain(struct nl_msg *msg, const struct row *row, const struct qos_values *v)
{
    struct nlattr *nest = nla_nest_start(msg, TCA_OPTIONS);
    int err = nest ? 0 : -EMSGSIZE;
    for (unsigned i = 0; !err && i < row->n; i++) {
        const struct plain *a = &row->plain[i];
        uint64_t value = v->v[a->slot];
        if (!qos_has(v, a->slot))
            continue;
        if (a->kind == PLAIN_RATE64)
            err = nla_put_u64(msg, a->attr, value / 8);
        else
            err = nla_put_u32(msg, a->attr,
                              a->kind == PLAIN_DIFFSERV ? diffserv[value & 3] : (uint32_t)value);
    }
    if (err)
        return -EMSGSIZE;
    nla_nest_end(msg, nest);
    return 0;
}

/* The kernel keeps codel's times in 1024 ns and rounds down, when told as when it tells: the least
 * microseconds that come to the same. */
static uint64_t
told_codel_time(uint64_t us)
{
    uint64_t t = (us * 1000 + 1023) / 1024;
    return (t * 1024 + 999) / 1000;
}

static void
read_plain(struct nlattr *options, const struct row *row, struct qos_values *v)
{
    for (unsigned i = 0; i < row->n; i++) {
        const struct plain *a = &row->plain[i];
        struct nlattr *attr = nla_find(nla_data(options), nla_len(options), a->attr);
        if (!attr || nla_len(attr) < (a->kind == PLAIN_RATE64 ? 8 : 4))
            continue;
        uint64_t value = a->kind == PLAIN_RATE64 ? nla_get_u64(attr) * 8 : nla_get_u32(attr);
        const uint8_t *mode =
            a->kind == PLAIN_DIFFSERV ? memchr(diffserv, (int)value, sizeof diffserv) : NULL;
        if (a->kind == PLAIN_DIFFSERV)
            value = mode ? (uint64_t)(mode - diffserv) : 0;
        if (a->kind == PLAIN_CODEL_TIME)
            value = told_codel_time(value);
        qos_put(v, a->slot, value);
    }
}

/* ----------------------------------------------------------------- dispatch */

int
fill_qdisc(struct nl_msg *msg, const struct qos_sched *sched, const struct qos_values *v)
{
    const struct row *row = row_of(sched);
    if (row->filler)
        return row->filler->fill(msg, v) ? -EMSGSIZE : 0;
    return row->plain ? fill_plain(msg, row, v) : -EOPNOTSUPP;
}

int
fill_class(struct nl_msg *msg, const struct qos_sched *sched, const struct qos_values *v)
{
    const struct filler *class = row_of(sched)->class;
    if (!class)
        return -EOPNOTSUPP;
    return class->fill(msg, v) ? -EMSGSIZE : 0;
}

void
read_qdisc(struct nlattr *options, const struct qos_sched *sched, struct qos_values *v)
{
    const struct row *row = row_of(sched);
    if (row->filler)
        row->filler->read(options, v);
    else if (row->plain)
        read_plain(options, row, v);
}

void
read_class(struct nlattr *options, const struct qos_sched *sched, struct qos_values *v)
{
    if (row_of(sched)->class)
        row_of(sched)->class->read(options, v);
}

enum default_place
default_place(const struct qos_sched *sched)
{
    return row_of(sched)->dflt;
}

/* Of all its tins; they are numbered from 1. */
static uint64_t
cake_marked(struct nlattr *xstats)
{
    struct nlattr *tin, *n;
    struct nlattr *tins = nla_find(nla_data(xstats), nla_len(xstats), TCA_CAKE_STATS_TIN_STATS);
    uint64_t marked = 0;
    int left;
    if (!tins)
        return 0;
    nla_for_each_nested(tin, tins, left)
    {
        n = nla_find(nla_data(tin), nla_len(tin), TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS);
        if (n && nla_len(n) >= 4)
            marked += nla_get_u32(n);
    }
    return marked;
}

uint64_t
read_marked(struct nlattr *xstats, const struct qos_sched *sched)
{
    unsigned at = row_of(sched)->marked;
    uint32_t marked;
    if (row_of(sched)->count_marked)
        return row_of(sched)->count_marked(xstats);
    if (!at || nla_len(xstats) < (int)(at - 1 + sizeof marked))
        return 0;
    memcpy(&marked, (const char *)nla_data(xstats) + at - 1, sizeof marked);
    return marked;
}
