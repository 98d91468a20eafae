/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of samples, their percentiles, and queues that come and go. */
#include <latency/latency.h>

#include <oflib/openflow.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MS       UINT64_C(1000000)
#define MINUTE   (60000 * MS)
#define START    (1000000 * MS)
#define VIEWS    8
#define EVERYONE UINT32_MAX

static const struct latency_key queue = {2, 10, 0};

struct views {
    struct latency_view v[VIEWS];
    unsigned n;
};

static void
take(void *ctx, const struct latency_view *v)
{
    struct views *all = ctx;
    assert_true(all->n < VIEWS);
    all->v[all->n++] = *v;
}

static struct views
views_at(struct latency *l, uint32_t port, uint32_t class, uint64_t now)
{
    struct views all = {.n = 0};
    assert_int_equal(latency_each(l, port, class, now, take, &all), 0);
    return all;
}

static struct latency_view
view_at(struct latency *l, uint64_t now)
{
    struct views all = views_at(l, EVERYONE, EVERYONE, now);
    assert_int_equal(all.n, 1);
    return all.v[0];
}

static void
percentiles(void **state)
{
    uint32_t v[] = {5, 1, 4, 2, 3, 10, 9, 8, 7, 6};
    assert_int_equal(latency_percentile(v, 10, 50), 5);
    assert_int_equal(latency_percentile(v, 10, 90), 9);
    assert_int_equal(latency_percentile(v, 10, 99), 10);
    assert_int_equal(latency_percentile(v, 1, 1), 1);
    assert_int_equal(latency_percentile(v, 0, 50), LATENCY_NONE);
}

static void
a_window(void **state)
{
    struct latency *l = latency_new();
    for (unsigned i = 0; i < 100; i++) /* 100 ms apart, 1 to 100 ms, in no order */
        latency_rtt(l, &queue, (i * 37 % 100 + 1) * 1000, 0, START + i * 100 * MS);
    struct latency_view v = view_at(l, START + 9900 * MS);
    assert_int_equal(v.rtt.samples, 100);
    assert_int_equal(v.rtt.min, 1000);
    assert_in_range(v.rtt.p50, 49900, 50100);
    assert_in_range(v.rtt.p90, 89800, 90200);
    assert_in_range(v.rtt.p99, 98800, 99200);
    assert_int_equal(v.path, 1000);
    assert_int_equal(v.delay.samples, 0);
    assert_int_equal(v.delay.p50, LATENCY_NONE);
    v = view_at(l, START + 30000 * MS); /* long ago */
    assert_int_equal(v.rtt.samples, 100);
    assert_int_equal(v.rtt.min, LATENCY_NONE);
    assert_int_equal(v.rtt.p99, LATENCY_NONE);
    assert_int_equal(v.path, 1000);
    latency_free(l);
}

/* Samples once in nine seconds: what is older than ten counts no more, however old it is. */
static void
few_samples(void **state)
{
    struct latency *l = latency_new();
    uint64_t now = START;
    for (unsigned i = 0; i < 300; i++, now += 9000 * MS) {
        latency_rtt(l, &queue, i + 1, 0, now);
        assert_int_equal(view_at(l, now).rtt.min, i ? i : 1);
        assert_int_equal(view_at(l, now + 2000 * MS).rtt.min, i + 1);
    }
    latency_free(l);
}

/* Of a flood each part of the time counts the same. */
static void
many_samples(void **state)
{
    struct latency *l = latency_new();
    for (unsigned i = 0; i < 100000; i++)
        latency_rtt(l, &queue, i < 50000 ? 1000 : 2000, 0, START + i * MS / 10);
    for (unsigned i = 0; i < 1000; i++)
        latency_rtt(l, &queue, 3000, 0, START + 10000 * MS);
    struct latency_view v = view_at(l, START + 10000 * MS);
    assert_int_equal(v.rtt.samples, 101000);
    assert_int_equal(v.rtt.min, 1000);
    assert_in_range(v.rtt.p90, 1999, 2001);
    latency_free(l);
}

static void
the_path(void **state)
{
    struct latency *l = latency_new();
    latency_rtt(l, &queue, 500, 0, START);
    latency_rtt(l, &queue, 9000, 0, START + MINUTE);
    assert_int_equal(view_at(l, START + 9 * MINUTE).path, 500);
    assert_int_equal(view_at(l, START + 10 * MINUTE).path, 9000);
    assert_int_equal(view_at(l, START + 90 * MINUTE).path, LATENCY_NONE);
    latency_free(l);
}

/* By the path as it is known so far, and only of the same queue. */
static void
slow_ones(void **state)
{
    struct latency *l = latency_new();
    const struct latency_key other = {2, 11, 0};
    assert_false(latency_rtt(l, &queue, 90000, 0, START));
    assert_false(latency_rtt(l, &queue, 90000 + OFP_LATENCY_SLOW_US - 1, 0, START + MS));
    assert_true(latency_rtt(l, &queue, 90000 + OFP_LATENCY_SLOW_US, 0, START + 2 * MS));
    assert_false(latency_rtt(l, &queue, 100, 0, START + MINUTE));
    assert_true(latency_rtt(l, &queue, 100 + OFP_LATENCY_SLOW_US, 0, START + 10 * MINUTE));
    assert_false(latency_rtt(l, &queue, 100 + OFP_LATENCY_SLOW_US, 0,
                             START + 12 * MINUTE)); /* another path by now */
    assert_false(latency_rtt(l, &other, 90000, 0, START));
    latency_free(l);
}

struct told {
    unsigned n;
    uint64_t first, last;
    uint32_t us, pair;
};

static void
tell(void *ctx, const struct latency_round_trip *r)
{
    struct told *t = ctx;
    t->first = t->n++ ? t->first : r->number;
    t->last = r->number;
    t->us = r->us;
    t->pair = r->pair;
}

static struct told
recent_of(struct latency *l, uint32_t port_no, uint32_t class_id, uint64_t after)
{
    struct told t = {0};
    assert_int_equal(latency_recent(l, port_no, class_id, after, tell, &t), 0);
    return t;
}

static struct told
recent(struct latency *l, uint32_t port_no, uint64_t after)
{
    return recent_of(l, port_no, UINT32_MAX, after);
}

static void
one_by_one(void **state)
{
    struct latency *l = latency_new();
    const struct latency_key other = {3, 11, 0};
    latency_rtt(l, &queue, 5, 1, START); /* before anybody asked */
    assert_int_equal(recent(l, UINT32_MAX, 0).n, 0);
    latency_rtt(l, &queue, 100, 7, START);
    latency_rtt(l, &other, 200, 8, START);
    struct told all = recent(l, UINT32_MAX, 0), one = recent(l, queue.port_no, 0);
    assert_int_equal(all.n, 2);
    assert_int_equal(all.us, 200);
    assert_int_equal(one.n, 1);
    assert_int_equal(one.pair, 7);
    assert_int_equal(recent_of(l, other.port_no, other.class_id, 0).pair, 8);
    assert_int_equal(recent_of(l, UINT32_MAX, other.class_id + 1, 0).n, 0);
    assert_int_equal(recent(l, UINT32_MAX, all.last).n, 0);
    assert_int_equal(recent(l, UINT32_MAX, UINT64_MAX).n, 0);
    for (unsigned i = 0; i < LATENCY_RECENT; i++)
        latency_rtt(l, &queue, 300 + i, 7, START);
    all = recent(l, UINT32_MAX, 0);
    assert_int_equal(all.n, LATENCY_RECENT);
    assert_int_equal(all.first, 3);
    assert_int_equal(recent(l, UINT32_MAX, all.last - 1).us, 300 + LATENCY_RECENT - 1);
    latency_free(l);
}

static void
values_to_a_thousandth(void **state)
{
    static const uint32_t us[] = {0,       1,        2047,       2048,      2049,
                                  1000000, 12345678, 3600000000, 4000000000};
    for (unsigned i = 0; i < sizeof us / sizeof us[0]; i++) {
        struct latency *l = latency_new();
        latency_delay(l, &queue, us[i], LATENCY_CLOCK, START);
        struct latency_view v = view_at(l, START);
        assert_in_range(v.delay.p50, us[i] - us[i] / 1000, us[i] + us[i] / 1000);
        assert_int_equal(v.source, LATENCY_CLOCK);
        latency_free(l);
    }
}

static void
queues(void **state)
{
    static const struct latency_key keys[] = {
        {2, 10, 1}, {3, 1, 0}, {2, 20, 0}, {2, 10, 0}, {1, 0, 0}};
    static const unsigned order[] = {4, 3, 2, 0, 1};
    struct latency *l = latency_new();
    for (unsigned i = 0; i < 5; i++)
        latency_rtt(l, &keys[i], 100 + i, 0, START);
    struct views all = views_at(l, EVERYONE, EVERYONE, START);
    assert_int_equal(all.n, 5);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(all.v[i].rtt.p50, 100 + order[i]);
    assert_int_equal(views_at(l, 2, EVERYONE, START).n, 3);
    assert_int_equal(views_at(l, 2, 10, START).n, 2);
    assert_int_equal(views_at(l, 9, EVERYONE, START).n, 0);
    latency_forget(l, &keys[0]);
    latency_forget(l, &keys[0]);
    assert_int_equal(views_at(l, 2, 10, START).n, 1);
    latency_forget_port(l, 2);
    assert_int_equal(views_at(l, EVERYONE, EVERYONE, START).n, 2);
    latency_rtt(l, &keys[3], 7, 0, START); /* of the same name: it begins anew */
    assert_int_equal(views_at(l, 2, 10, START).v[0].rtt.samples, 1);
    latency_free(l);
}

static void
the_bound(void **state)
{
    struct latency *l = latency_new();
    for (uint32_t i = 0; i < LATENCY_MOST + 5; i++) {
        const struct latency_key k = {1 + i / 0x4000, i % 0x4000, 0};
        latency_rtt(l, &k, 1, 0, START);
    }
    assert_int_equal(latency_lost(l), 5);
    latency_free(l);
    latency_free(NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles), cmocka_unit_test(a_window),
        cmocka_unit_test(few_samples), cmocka_unit_test(many_samples),
        cmocka_unit_test(the_path),    cmocka_unit_test(values_to_a_thousandth),
        cmocka_unit_test(queues),      cmocka_unit_test(the_bound),
        cmocka_unit_test(slow_ones),   cmocka_unit_test(one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
