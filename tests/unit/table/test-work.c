/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of a change among many flows, masks or groups depends on the change, not on how many
 * there are.  Work is counted; the bounds on time are far above what it takes. */
#include <group/groups.h>
#include <group/meters.h>
#include <shared/rcu.h>
#include <table/tables.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static struct world {
    struct tables *t;
    struct groups *g;
    struct meters *m;
} w;

static bool
port_ok(void *sw, uint32_t no)
{
    return true;
}

static bool
group_ok(void *sw, uint32_t id)
{
    return groups_find(w.g, id) != NULL;
}

static bool
meter_ok(void *sw, uint32_t id)
{
    return meters_find(w.m, id) != NULL;
}

static void
on_removed(void *ctx, struct flow *f, uint8_t reason, uint64_t now)
{
}

static int
setup(void **state)
{
    struct compile_env env = {.port_ok = port_ok, .group_ok = group_ok, .meter_ok = meter_ok};
    struct groups_ops gops = {.env = env, .port_exists = port_ok};
    w = (struct world){.g = groups_new(1, &gops), .m = meters_new(1)};
    struct tables_ops tops = {.env = env, .groups = w.g, .meters = w.m, .removed = on_removed};
    w.t = tables_new(1, 1, &tops);
    return w.t && w.g && w.m ? 0 : -1;
}

static int
teardown(void **state)
{
    rcu_wait();
    tables_free(w.t);
    groups_free(w.g);
    meters_free(w.m);
    rcu_wait();
    return 0;
}

/* ------------------------------------------------------------------ messages */

/* A flow that matches this metadata with a mask; group, meter: 0 for none. */
static int
flow_mod(uint8_t command, uint64_t value, uint64_t mask, uint16_t priority, uint32_t group,
         uint32_t meter)
{
    struct of_oxm oxm = {.row = &oxm_rows[OXM_metadata], .has_mask = true};
    struct of_action_group act = {.row = OF_ACTION(GROUP), .group_id = group};
    void *acts[] = {&act}, *instructions[2];
    struct of_instr_actions apply = {.row = OF_INSTR(APPLY_ACTIONS),
                                     .actions = {.n = group != 0, .v = acts}};
    struct of_instr_meter metering = {.row = OF_INSTR(METER), .meter_id = meter};
    struct of_flow_mod fm = {.command = command,
                             .priority = priority,
                             .buffer_id = OFP_NO_BUFFER,
                             .out_port = OFPP_ANY,
                             .out_group = OFPG_ANY,
                             .match = {.n = mask != 0, .v = &oxm},
                             .instructions = {.v = instructions}};
    oxm_set_number(oxm.row, oxm.value, value & mask);
    oxm_set_number(oxm.row, oxm.mask, mask);
    instructions[fm.instructions.n++] = &apply;
    if (meter)
        instructions[fm.instructions.n++] = &metering;
    return tables_flow_mod(w.t, &fm, 0);
}

static void
add_flows(uint64_t first, uint64_t n)
{
    for (uint64_t i = first; i < first + n; i++)
        assert_int_equal(flow_mod(OFPFC_ADD, i, UINT64_MAX, 1, 0, 0), 0);
}

static int
group_mod(uint16_t command, uint32_t id)
{
    struct of_group_mod m = {.command = command, .group_id = id};
    return tables_group_mod(w.t, &m, UINT32_MAX, 0);
}

static int
meter_mod(uint16_t command, uint32_t id)
{
    struct of_meter_mod m = {.command = command, .flags = OFPMF_KBPS, .meter_id = id};
    return tables_meter_mod(w.t, &m, UINT32_MAX, 0);
}

static double
cpu_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

/* ------------------------------------------------------------------ groups and meters */

#define MANY_FLOWS  100000
#define MANY_GROUPS 2000

static unsigned
flows_left(void)
{
    return tables_get(w.t, 0)->flows.n_flows;
}

static unsigned
flows_removed(void)
{
    return MANY_FLOWS + 2 * MANY_GROUPS - (flows_left() - tables_get(w.t, 0)->n_leaving);
}

static void
make_users(void)
{
    add_flows(MANY_GROUPS * 2 + 1, MANY_FLOWS);
    for (uint32_t i = 1; i <= MANY_GROUPS; i++) {
        assert_int_equal(group_mod(OFPGC_ADD, i), 0);
        assert_int_equal(meter_mod(OFPMC_ADD, i), 0);
        assert_int_equal(flow_mod(OFPFC_ADD, i, UINT64_MAX, 1, i, 0), 0);
        assert_int_equal(flow_mod(OFPFC_ADD, MANY_GROUPS + i, UINT64_MAX, 1, i, i), 0);
    }
}

/* Deleting a group or meter visits its own flows only. */
static void
delete_all(bool at_once)
{
    double start = cpu_seconds();
    for (uint32_t i = 1; i <= MANY_GROUPS; i++) {
        assert_int_equal(meter_mod(OFPMC_DELETE, i), 0);
        assert_int_equal(flows_removed(), at_once ? i : 2 * i - 1);
        if (!at_once)
            assert_int_equal(group_mod(OFPGC_DELETE, i), 0);
    }
    if (at_once)
        assert_int_equal(group_mod(OFPGC_DELETE, OFPG_ALL), 0);
    assert_int_equal(flows_removed(), 2 * MANY_GROUPS);
    assert_true(cpu_seconds() - start < 5);
}

static void
test_deleting_groups_and_meters(void **state)
{
    make_users();
    delete_all(false);
    assert_int_equal(flows_left(), MANY_FLOWS);
}

static void
test_deleting_them_in_a_change_set(void **state)
{
    make_users();
    for (int commit = 0; commit <= 1; commit++) {
        change_set_begin();
        delete_all(true);
        change_set_end(commit);
        assert_int_equal(flows_left(), MANY_FLOWS + (commit ? 0 : 2 * MANY_GROUPS));
        assert_int_equal(groups_refs(w.g, 1), commit ? 0 : 2);
        rcu_wait();
    }
}

/* A modified flow is no longer linked to the group and meter that it used. */
static void
test_modified_flows(void **state)
{
    for (uint32_t i = 1; i <= 3; i++)
        assert_int_equal(group_mod(OFPGC_ADD, i), 0);
    assert_int_equal(flow_mod(OFPFC_ADD, 1, UINT64_MAX, 1, 1, 0), 0);
    assert_int_equal(flow_mod(OFPFC_MODIFY, 1, UINT64_MAX, 1, 2, 0), 0);
    assert_int_equal(flow_mod(OFPFC_ADD, 1, UINT64_MAX, 1, 3, 0), 0);
    change_set_begin();
    assert_int_equal(flow_mod(OFPFC_MODIFY, 0, 0, 0, 1, 0), 0);
    assert_int_equal(group_mod(OFPGC_DELETE, 1), 0);
    change_set_end(false);
    for (uint32_t i = 1; i <= 2; i++)
        assert_int_equal(group_mod(OFPGC_DELETE, i), 0);
    assert_int_equal(flows_left(), 1);
    assert_int_equal(group_mod(OFPGC_DELETE, 3), 0);
    assert_int_equal(flows_left(), 0);
}

/* ------------------------------------------------------------------ masks */

#define MANY_MASKS 20000

static void
add_masks(void)
{
    for (uint64_t i = 1; i <= MANY_MASKS; i++)
        assert_int_equal(flow_mod(OFPFC_ADD, UINT64_MAX, i, (uint16_t)i, 0, 0), 0);
}

/* Each list is written once. */
static void
test_masks_in_a_change_set(void **state)
{
    uint64_t before = classifier_listed();
    double start = cpu_seconds();
    for (int commit = 0; commit <= 1; commit++) {
        change_set_begin();
        add_masks();
        change_set_end(commit);
        rcu_wait();
    }
    assert_int_equal(flows_left(), MANY_MASKS);
    assert_in_range(classifier_listed() - before, MANY_MASKS, 2 * MANY_MASKS);
    assert_true(cpu_seconds() - start < 10);
    struct flow_key key;
    memset(&key, 0xff, sizeof key);
    assert_int_equal(tables_lookup(w.t, 0, 0, &key, 1)->priority, MANY_MASKS);
}

static void
test_removed_masks(void **state)
{
    change_set_begin();
    add_masks();
    change_set_end(true);
    uint64_t before = classifier_listed();
    assert_int_equal(flow_mod(OFPFC_DELETE, 1, 1, 0, 0, 0), 0);
    tables_tidy(w.t);
    assert_int_equal(flows_left(), MANY_MASKS / 2);
    assert_int_equal(classifier_listed() - before, MANY_MASKS / 2);
    assert_int_equal(flow_mod(OFPFC_DELETE, 0, 0, 0, 0, 0), 0);
    add_flows(1, 1);
    tables_tidy(w.t);
    rcu_wait();
    assert_int_equal(tables_get(w.t, 0)->flows.by_mask.used, 1);
    assert_int_equal(tables_get(w.t, 0)->flows.subs->n, 1);
}

/* An access list: each rule has a higher priority than the last, so its mask moves to the head. */
static void
test_rising_priorities(void **state)
{
    size_t most = 0;
    for (uint64_t i = 1; i <= 60000; i++) {
        assert_int_equal(flow_mod(OFPFC_ADD, i << 8, ~UINT64_C(0xff) | i % 256, (uint16_t)i, 0, 0),
                         0);
        rcu_relieve();
        most = rcu_kept() > most ? rcu_kept() : most;
    }
    assert_in_range(most, 1, RCU_KEEP);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(deleting_groups_and_meters),
        TEST(deleting_them_in_a_change_set),
        TEST(modified_flows),
        TEST(masks_in_a_change_set),
        TEST(removed_masks),
        TEST(rising_priorities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
