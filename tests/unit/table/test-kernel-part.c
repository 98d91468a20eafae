/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel did for the switch: counted beside the workers, and meters' buckets that it shares. */
#include <group/groups.h>
#include <group/meters.h>
#include <shared/rcu.h>
#include <table/tables.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define SEC    UINT64_C(1000000000)
#define PLACES 3

static bool
port_ok(void *sw, uint32_t no)
{
    return no && no < 100;
}

/* ------------------------------------------------------------------ flows and tables */

static void
no_event(void *ctx, struct flow *f, uint8_t reason, uint64_t now)
{
}

static int
flow_mod(struct tables *t, uint8_t command, uint16_t flags)
{
    struct of_flow_mod m = {.command = command,
                            .flags = flags,
                            .idle_timeout = 10,
                            .buffer_id = OFP_NO_BUFFER,
                            .out_port = OFPP_ANY,
                            .out_group = OFPG_ANY};
    return tables_flow_mod(t, &m, SEC);
}

static void
flows(unsigned workers)
{
    struct tables_ops ops = {.removed = no_event, .kernel = true};
    struct tables *t = tables_new(2, workers, &ops);
    static const struct flow_key key;
    assert_int_equal(flow_mod(t, OFPFC_ADD, 0), 0);
    struct flow *f = tables_preview(t, 0, &key);
    assert_non_null(f);
    for (unsigned w = 0; w < workers; w++) {
        assert_ptr_equal(tables_lookup(t, 0, w, &key, 1), f);
        flow_counter_add(flow_counter_of(f, w), 1, 100);
    }
    tables_kernel_flow(t, f, 1000, 60000, 3 * SEC);
    tables_kernel_flow(t, f, 1, 60, 0);
    tables_kernel_lookups(t, 0, 1001, true);
    tables_kernel_lookups(t, 1, 5, false);
    struct flow_counter c = tables_flow_counter(t, f);
    assert_int_equal(c.packets, workers + 1001);
    assert_int_equal(c.bytes, workers * 100 + 60060);
    assert_int_equal(tables_counter(t, 0).lookups, workers + 1001);
    assert_int_equal(tables_counter(t, 0).matched, workers + 1001);
    assert_int_equal(tables_counter(t, 1).lookups, 5);
    assert_int_equal(tables_counter(t, 1).matched, 0);

    /* Its packets keep a flow from timing out; old news change nothing. */
    assert_int_equal(f->used, flow_clock(3 * SEC));
    tables_kernel_flow(t, f, 0, 0, 2 * SEC);
    assert_int_equal(f->used, flow_clock(3 * SEC));
    tables_expire(t, 12 * SEC, UINT32_MAX);
    assert_ptr_equal(tables_preview(t, 0, &key), f);

    assert_int_equal(flow_mod(t, OFPFC_MODIFY, OFPFF_RESET_COUNTS), 0);
    assert_int_equal(tables_flow_counter(t, f).packets, 0);
    tables_kernel_flow(t, f, 7, 700, 0);
    assert_int_equal(tables_flow_counter(t, f).packets, 7);
    tables_expire(t, 14 * SEC, UINT32_MAX);
    assert_null(tables_preview(t, 0, &key));
    rcu_wait();
    tables_free(t);
    rcu_wait();
}

static void
test_flows(void **state)
{
    flows(1); /* both side by side */
    flows(2); /* each in a page of its own */
    flows(5);
}

/* ------------------------------------------------------------------ groups */

static void
groups(unsigned workers)
{
    struct groups_ops ops = {.env = {.port_ok = port_ok}, .port_exists = port_ok, .kernel = true};
    struct groups *g = groups_new(workers, &ops);
    struct of_bucket bucket[3];
    void *v[3];
    for (int i = 0; i < 3; i++) {
        bucket[i] = (struct of_bucket){.watch_port = OFPP_ANY, .watch_group = OFPG_ANY};
        v[i] = &bucket[i];
    }
    struct of_group_mod m = {
        .command = OFPGC_ADD, .type = OFPGT_ALL, .group_id = 1, .buckets = {.n = 3, .v = v}};
    assert_int_equal(groups_mod(g, &m, 0), 0);
    struct group *gr = groups_find(g, 1);
    for (unsigned w = 0; w < workers; w++)
        for (int b = -1; b < 3; b++)
            flow_counter_add(group_counter(gr, w, b), 1, 100);
    for (int b = -1; b < 3; b++)
        groups_kernel_count(g, gr, b, 10u << (b + 1), 1000);
    for (int b = -1; b < 3; b++) {
        struct flow_counter c = groups_counter(g, gr, b);
        assert_int_equal(c.packets, workers + (10u << (b + 1)));
        assert_int_equal(c.bytes, workers * 100 + 1000);
    }
    m.command = OFPGC_MODIFY; /* keeps the group's own count */
    assert_int_equal(groups_mod(g, &m, 0), 0);
    gr = groups_find(g, 1);
    assert_int_equal(groups_counter(g, gr, -1).packets, workers + 10);
    assert_int_equal(groups_counter(g, gr, 2).packets, 0);
    rcu_wait();
    groups_free(g);
    rcu_wait();
}

static void
test_groups(void **state)
{
    groups(1);
    groups(2);
}

/* ------------------------------------------------------------------ meters */

static struct world {
    uint64_t full_at[PLACES][METER_SHARED_BANDS];
    bool taken[PLACES];
    uint64_t room; /* of the last meter's first band */
    unsigned bands;
} world;

static int
take_place(void *ctx, const struct meter *mt, uint64_t *full_at[METER_SHARED_BANDS])
{
    struct world *w = ctx;
    w->bands = mt->n_bands;
    w->room = mt->bands[0].room;
    for (int i = 0; i < PLACES; i++)
        if (!w->taken[i]) {
            w->taken[i] = true;
            for (int b = 0; b < METER_SHARED_BANDS; b++) {
                w->full_at[i][b] = 0;
                full_at[b] = &w->full_at[i][b];
            }
            return i;
        }
    return -1;
}

static void
leave_place(void *ctx, int place)
{
    struct world *w = ctx;
    assert_true(w->taken[place]);
    w->taken[place] = false;
}

static const struct meter_sharing sharing = {take_place, leave_place, &world};

static int
meter_mod(struct meters *m, uint16_t command, uint32_t id, unsigned bands, uint16_t last_type)
{
    struct of_band_drop b[4];
    struct of_band_dscp_remark remark = {.row = of_tag_row(&of_list_bands, OFPMBT_DSCP_REMARK),
                                         .rate = 1000,
                                         .burst_size = 100,
                                         .prec_level = 1};
    void *v[4];
    for (unsigned i = 0; i < bands; i++) {
        b[i] = (struct of_band_drop){.row = of_tag_row(&of_list_bands, OFPMBT_DROP),
                                     .rate = 1000 * (i + 1),
                                     .burst_size = 100};
        v[i] = i + 1 == bands && last_type == OFPMBT_DSCP_REMARK ? (void *)&remark : &b[i];
    }
    struct of_meter_mod req = {.command = command,
                               .flags = OFPMF_PKTPS | OFPMF_BURST,
                               .meter_id = id,
                               .bands = {.n = bands, .v = v}};
    return meters_mod(m, &req, 0);
}

static struct meters *
meters_with_kernel(unsigned workers)
{
    struct meters *m = meters_new(workers);
    memset(&world, 0, sizeof world);
    meters_share(m, &sharing);
    return m;
}

static void
free_meters(struct meters *m)
{
    rcu_wait();
    meters_free(m);
    rcu_wait();
    for (int i = 0; i < PLACES; i++)
        assert_false(world.taken[i]);
}

static void
test_places(void **state)
{
    struct meters *m = meters_with_kernel(1);
    assert_int_equal(meter_mod(m, OFPMC_ADD, 1, 2, OFPMBT_DROP), 0);
    assert_int_equal(meters_kernel_place(meters_find(m, 1)), 0);
    assert_int_equal(world.bands, 2);
    /* Meters that the kernel can't run have none. */
    assert_int_equal(meter_mod(m, OFPMC_ADD, 2, 3, OFPMBT_DROP), 0);
    assert_int_equal(meter_mod(m, OFPMC_ADD, 3, 2, OFPMBT_DSCP_REMARK), 0);
    assert_int_equal(meter_mod(m, OFPMC_ADD, 4, 0, OFPMBT_DROP), 0);
    for (uint32_t id = 2; id <= 4; id++)
        assert_int_equal(meters_kernel_place(meters_find(m, id)), -1);
    assert_false(world.taken[1]);
    /* One that is replaced keeps its place until no worker uses it. */
    assert_int_equal(meter_mod(m, OFPMC_MODIFY, 1, 1, OFPMBT_DROP), 0);
    assert_int_equal(meters_kernel_place(meters_find(m, 1)), 1);
    assert_true(world.taken[0]);
    rcu_wait();
    assert_false(world.taken[0]);
    assert_true(world.taken[1]);
    /* Refused: nothing is taken. */
    assert_int_equal(meter_mod(m, OFPMC_ADD, 1, 1, OFPMBT_DROP), OF_METER_MOD_FAILED(METER_EXISTS));
    assert_false(world.taken[0] || world.taken[2]);
    /* Full: it works, by its own words. */
    for (uint32_t id = 11; id <= 13; id++)
        assert_int_equal(meter_mod(m, OFPMC_ADD, id, 1, OFPMBT_DROP), 0);
    assert_int_equal(meters_kernel_place(meters_find(m, 13)), -1);
    assert_ptr_equal(meters_find(m, 13)->bands[0].full_at, &meters_find(m, 13)->bands[0].own);
    assert_int_equal(meter_mod(m, OFPMC_DELETE, 11, 0, 0), 0);
    rcu_wait();
    assert_int_equal(meter_mod(m, OFPMC_MODIFY, 13, 1, OFPMBT_DROP), 0);
    assert_true(meters_kernel_place(meters_find(m, 13)) >= 0);
    free_meters(m);
}

/* A burst of 100 packets: what the kernel takes, workers don't have. */
static void
test_one_bucket(void **state)
{
    uint8_t bytes[100] = {0};
    struct packet p = {.data = bytes, .len = 100, .wire_len = 100};
    struct meters *m = meters_with_kernel(1);
    uint64_t now = 100 * SEC, cost = 16 * SEC / 1000;
    assert_int_equal(meter_mod(m, OFPMC_ADD, 1, 1, OFPMBT_DROP), 0);
    struct meter *mt = meters_find(m, 1);
    world.full_at[0][0] = now * 16 + 60 * cost; /* the kernel took 60 */
    unsigned sum = 0;
    for (unsigned i = 0; i < 200; i++)
        sum += !meter_run(mt, 0, &p, now);
    assert_in_range(sum, 40, 41);
    assert_true(world.full_at[0][0] > now * 16 + 99 * cost);
    meters_kernel_count(m, mt, -1, 60, 6000);
    meters_kernel_count(m, mt, 0, 3, 300);
    assert_int_equal(meters_counter(m, mt, -1).packets, 260);
    assert_int_equal(meters_counter(m, mt, -1).bytes, 26000);
    assert_int_equal(meters_counter(m, mt, 0).packets, 200 - sum + 3);
    free_meters(m);
}

/* The control thread is no worker: nothing is set aside for it. */
static void
test_slices(void **state)
{
    for (unsigned workers = 1; workers <= 3; workers++) {
        struct meters *m = meters_with_kernel(workers), *plain = meters_new(workers);
        assert_int_equal(meter_mod(m, OFPMC_ADD, 1, 2, OFPMBT_DROP), 0);
        assert_int_equal(meter_mod(plain, OFPMC_ADD, 1, 2, OFPMBT_DROP), 0);
        const struct band *a = meters_find(m, 1)->bands, *b = meters_find(plain, 1)->bands;
        assert_true(a->room == b->room && a->slice == b->slice && a->room == world.room);
        meters_kernel_count(m, meters_find(m, 1), 1, 5, 500);
        assert_int_equal(meters_counter(m, meters_find(m, 1), 1).packets, 5);
        meters_free(plain);
        free_meters(m);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flows),  cmocka_unit_test(test_groups),
        cmocka_unit_test(test_places), cmocka_unit_test(test_one_bucket),
        cmocka_unit_test(test_slices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
