/* SPDX-License-Identifier: Apache-2.0 */
/* The cache, of several sizes, against the tables it remembers, while these change. */
#include <shared/rcu.h>
#include <table/flow-cache.h>

#include <oflib/wire.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KEYS   200
#define TURNS  20000
#define TABLES 2

static uint64_t seed = 1;

static uint32_t
rnd(uint32_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

static bool
any_id(void *sw, uint32_t id)
{
    return true;
}

static void
ignore_removed(void *ctx, struct flow *f, uint8_t reason, uint64_t now)
{
}

/* Adds or deletes a flow of one in_port, or of one metadata value.  Those of the first table lead to
 * the second, but for the ones that end there or change the key on the way. */
static void
change(struct tables *t)
{
    struct of_oxm oxm = {.row = &oxm_rows[rnd(2) ? OXM_in_port : OXM_metadata]};
    struct of_flow_mod m = {.command = rnd(2) ? OFPFC_ADD : OFPFC_DELETE_STRICT,
                            .table_id = (uint8_t)rnd(TABLES),
                            .priority = (uint16_t)rnd(3),
                            .buffer_id = OFP_NO_BUFFER,
                            .out_port = OFPP_ANY,
                            .out_group = OFPG_ANY,
                            .match = {.n = 1, .v = &oxm}};
    struct of_instr_goto_table go = {.row = OF_INSTR(GOTO_TABLE), .table_id = 1};
    struct of_instr_write_metadata write = {
        .row = OF_INSTR(WRITE_METADATA), .metadata = 3, .metadata_mask = UINT64_MAX};
    void *instructions[] = {&go, &write};
    if (!m.table_id)
        m.instructions = (struct of_list){rnd(8) ? 1 + !rnd(4) : 0, instructions, {0}};
    oxm_set_number(oxm.row, oxm.value, rnd(20) + 1);
    memset(oxm.mask, 0xff, sizeof oxm.mask);
    assert_int_equal(tables_flow_mod(t, &m, 1), 0);
}

/* The path that the cache has must be the one that lookups make. */
static void
look_up(struct flow_cache *c, struct tables *t, const struct flow_key *key)
{
    const struct flow_path *path = flow_cache_path(c, t, key);
    struct flow_key k = *key;
    unsigned step = 0;
    for (uint8_t id = 0; id != NO_TABLE; step++) {
        struct flow *f = tables_lookup(t, id, 0, &k, 1);
        const struct program *p = f ? flow_program(f) : NULL;
        if (step < path->n) {
            assert_int_equal(path->table[step], id);
            assert_ptr_equal(path->step[step].flow, f);
            assert_ptr_equal(path->step[step].program, p);
        }
        if (p && p->has_metadata)
            of_set64(k.metadata, (of_get64(k.metadata) & ~p->metadata_mask) | p->metadata);
        id = p ? p->goto_table : NO_TABLE;
    }
    assert_in_range(path->n, 1, step);
}

static void
check(uint32_t entries, uint32_t change_every)
{
    struct tables_ops ops = {.env = {.port_ok = any_id, .group_ok = any_id, .meter_ok = any_id},
                             .removed = ignore_removed};
    struct tables *t = tables_new(TABLES, 1, &ops);
    struct flow_cache *c = flow_cache_new(entries);
    struct flow_key keys[KEYS] = {{{{0}}}};
    const struct flow_key *ahead[CACHE_AHEAD];
    assert_non_null(c);
    for (uint32_t i = 0; i < KEYS; i++) {
        of_set32(keys[i].in_port, i % 20 + 1);
        of_set64(keys[i].metadata, i / 10 + 1);
    }
    for (uint32_t turn = 0; turn < TURNS / change_every; turn++) {
        change(t);
        for (uint32_t i = 0; i < change_every; i += CACHE_AHEAD) {
            for (uint32_t j = 0; j < CACHE_AHEAD; j++)
                ahead[j] = &keys[rnd(KEYS)];
            flow_cache_ahead(c, t, ahead, CACHE_AHEAD);
            for (uint32_t j = 0; j < CACHE_AHEAD; j++)
                look_up(c, t, ahead[j]);
            flow_cache_end(c);
        }
        rcu_turn();
    }
    if (entries >= KEYS * 2) /* then nearly all are remembered until a flow changes */
        assert_true(flow_cache_counts(c).hits > TURNS / 2);
    flow_cache_free(c);
    tables_free(t);
    rcu_turn();
}

static void
test_cache(void **state)
{
    static const uint32_t sizes[] = {2, 4, 8, 64, 1024};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        check(sizes[i], 1);
        check(sizes[i], 1000);
    }
}

/* ------------------------------------------------------------------ what a change withdraws */

#define PORTS 1000

/* Two tables: each in_port has a flow that leads to the second, where metadata decides. */
struct two_tables {
    struct tables *t;
    struct flow_cache *c;
    struct flow_key keys[PORTS];
    struct flow_cache_counts before;
};

static void
add_oxm(struct tables *t, uint8_t table, uint8_t command, enum oxm_field field, uint32_t value,
        uint8_t goto_table)
{
    struct of_oxm oxm = {.row = &oxm_rows[field]};
    struct of_instr_goto_table go = {.row = OF_INSTR(GOTO_TABLE), .table_id = goto_table};
    void *instructions[] = {&go};
    struct of_flow_mod m = {.command = command,
                            .table_id = table,
                            .priority = 1,
                            .buffer_id = OFP_NO_BUFFER,
                            .out_port = OFPP_ANY,
                            .out_group = OFPG_ANY,
                            .instructions = {goto_table ? 1 : 0, instructions, {0}},
                            .match = {.n = 1, .v = &oxm}};
    oxm_set_number(oxm.row, oxm.value, value);
    memset(oxm.mask, 0xff, sizeof oxm.mask);
    assert_int_equal(tables_flow_mod(t, &m, 1), 0);
}

static void
look_up_all(struct two_tables *x)
{
    for (uint32_t i = 0; i < PORTS; i++)
        look_up(x->c, x->t, &x->keys[i]);
    struct flow_cache_counts now = flow_cache_counts(x->c), was = x->before;
    x->before = now;
    assert_int_equal(now.bypassed, 0);
    assert_int_equal(now.hits + now.misses - was.hits - was.misses, PORTS);
}

/* Looks up all; `n` of them are not known.  A few may lack a place, as hashes are random. */
static void
expect_misses(struct two_tables *x, uint64_t n)
{
    uint64_t before = x->before.misses;
    look_up_all(x);
    assert_in_range(x->before.misses - before, n, n + PORTS / 20);
}

static struct two_tables *
two_tables_new(void)
{
    struct tables_ops ops = {.env = {.port_ok = any_id, .group_ok = any_id, .meter_ok = any_id},
                             .removed = ignore_removed};
    struct two_tables *x = calloc(1, sizeof *x);
    x->t = tables_new(TABLES + 1, 1, &ops); /* no path leads to the last one */
    x->c = flow_cache_new(4096);
    for (uint32_t i = 0; i < PORTS; i++) {
        of_set32(x->keys[i].in_port, i + 1);
        of_set64(x->keys[i].metadata, i % 10);
        of_set64(x->keys[i].tunnel_id, i);
        add_oxm(x->t, 0, OFPFC_ADD, OXM_in_port, i + 1, 1);
    }
    for (uint32_t i = 0; i < 20; i++)
        add_oxm(x->t, 1, OFPFC_ADD, OXM_metadata, i, 0);
    rcu_turn();
    return x;
}

static void
two_tables_free(struct two_tables *x)
{
    flow_cache_free(x->c);
    tables_free(x->t);
    rcu_turn();
    free(x);
}

/* Flow-mods that concern no packet of the cache cost it nothing; others what they concern. */
static void
test_withdraw(void **state)
{
    struct two_tables *x = two_tables_new();
    expect_misses(x, PORTS);
    expect_misses(x, 0);
    assert_in_range(x->before.used, PORTS, PORTS + PORTS / 20);
    for (uint32_t i = 0; i < 200; i++) {
        add_oxm(x->t, 1, OFPFC_ADD, OXM_metadata, 1000 + i, 0);
        add_oxm(x->t, 0, OFPFC_ADD, OXM_in_port, 5000 + i, 1);
        if (i % 10 == 0)
            expect_misses(x, 0);
    }
    add_oxm(x->t, 1, OFPFC_MODIFY_STRICT, OXM_metadata, 3, 0);
    expect_misses(x, PORTS / 10);
    add_oxm(x->t, 1, OFPFC_DELETE_STRICT, OXM_metadata, 4, 0);
    add_oxm(x->t, 0, OFPFC_DELETE_STRICT, OXM_in_port, 8, 0);
    rcu_turn();
    expect_misses(x, PORTS / 10 + 1);
    assert_in_range(x->before.withdrawn, 2 * PORTS / 10 + 1, 2 * PORTS / 10 + 1 + PORTS / 20);
    two_tables_free(x);
}

/* More changes than anybody remembers: then all is looked up again, and right. */
static void
test_many_changes(void **state)
{
    struct two_tables *x = two_tables_new();
    look_up_all(x);
    for (uint32_t i = 0; i < 3000; i++)
        add_oxm(x->t, 1, i % 2 ? OFPFC_DELETE_STRICT : OFPFC_ADD, OXM_metadata, 100 + i / 2, 0);
    add_oxm(x->t, 1, OFPFC_DELETE_STRICT, OXM_metadata, 5, 0);
    for (uint32_t i = 0; i < 3000; i++)
        add_oxm(x->t, 1, i % 2 ? OFPFC_DELETE_STRICT : OFPFC_ADD, OXM_metadata, 100 + i / 2, 0);
    rcu_turn();
    expect_misses(x, PORTS);
    expect_misses(x, 0);
    two_tables_free(x);
}

/* However many they are: those of a table that packets don't come to cost them nothing. */
static void
test_many_changes_elsewhere(void **state)
{
    struct two_tables *x = two_tables_new();
    look_up_all(x);
    for (uint32_t i = 0; i < 3000; i++)
        add_oxm(x->t, 2, i % 2 ? OFPFC_DELETE_STRICT : OFPFC_ADD, OXM_metadata, i / 2, 0);
    expect_misses(x, 0);
    add_oxm(x->t, 0, OFPFC_DELETE_STRICT, OXM_in_port, 8, 0);
    for (uint32_t i = 0; i < 3000; i++)
        add_oxm(x->t, 2, i % 2 ? OFPFC_DELETE_STRICT : OFPFC_ADD, OXM_metadata, i / 2, 0);
    rcu_turn();
    expect_misses(x, PORTS); /* nobody knows any more which of the first table it was */
    expect_misses(x, 0);
    two_tables_free(x);
}

static void
settle_nothing(void *owner, void *what, void *more, bool done)
{
}

/* Each change set brings workers to the other side.  A side that they left comes back, also by sets that
 * change no flow. */
static void
test_change_sets(void **state)
{
    static const uint8_t commands[] = {OFPFC_MODIFY_STRICT, OFPFC_ADD, OFPFC_DELETE_STRICT,
                                       OFPFC_ADD};
    struct two_tables *x = two_tables_new();
    for (size_t i = 0; i < sizeof commands; i++) {
        change_set_side = change_set_now;
        look_up_all(x);
        change_set_side = CHANGE_SET_NEWEST;
        change_set_begin();
        add_oxm(x->t, 1, commands[i], OXM_metadata, 3, 0);
        change_set_end(true);
        change_set_begin();
        assert_true(change_set_reserve());
        change_set_note(settle_nothing, NULL, NULL, NULL);
        change_set_end(true);
        rcu_turn();
        change_set_side = change_set_now;
        expect_misses(x, PORTS / 10);
        change_set_side = CHANGE_SET_NEWEST;
    }
    two_tables_free(x);
}

/* Packets that differ in bits that no lookup depends on share an entry. */
static void
test_share(void **state)
{
    struct two_tables *x = two_tables_new();
    add_oxm(x->t, 1, OFPFC_ADD, OXM_tunnel_id, UINT32_MAX, 0); /* a bit that counts, in one table */
    add_oxm(x->t, 0, OFPFC_DELETE, OXM_tunnel_id, UINT32_MAX, 0);
    look_up_all(x);
    uint64_t used = x->before.used;
    for (uint32_t i = 0; i < PORTS; i++)
        of_set64(x->keys[i].eth_dst, 77777 + i); /* and eth_src */
    expect_misses(x, 0);
    assert_in_range(x->before.used, used, used + PORTS / 20);
    two_tables_free(x);
}

/* Keys that each need a mask of their own fill the cache with no more than it has places for. */
static void
test_masks_are_few(void **state)
{
    struct tables_ops ops = {.env = {.port_ok = any_id, .group_ok = any_id, .meter_ok = any_id},
                             .removed = ignore_removed};
    struct tables *t = tables_new(TABLES, 1, &ops);
    struct flow_cache *c = flow_cache_new(1024);
    for (unsigned bits = 1; bits <= 64; bits++) {
        struct of_oxm oxm = {.row = &oxm_rows[OXM_metadata], .has_mask = true};
        struct of_flow_mod m = {.priority = (uint16_t)bits,
                                .buffer_id = OFP_NO_BUFFER,
                                .out_port = OFPP_ANY,
                                .out_group = OFPG_ANY,
                                .match = {.n = 1, .v = &oxm}};
        of_set64(oxm.mask, UINT64_MAX << (64 - bits));
        of_set64(oxm.value, UINT64_C(0x8000000000000000) >> (bits - 1));
        assert_int_equal(tables_flow_mod(t, &m, 1), 0);
    }
    for (uint32_t i = 0; i < 100000; i++) {
        struct flow_key k = {{{0}}};
        of_set64(k.metadata, (UINT64_MAX >> rnd(64)) ^ rnd(UINT32_MAX));
        look_up(c, t, &k);
        assert_in_range(flow_cache_counts(c).masks, 1, 16);
        assert_in_range(flow_cache_counts(c).used, 0, 1024);
    }
    flow_cache_free(c);
    tables_free(t);
    rcu_turn();
}

/* Keys that are walked together part after the first table, and meet again in the last. */
static void
test_ways_part(void **state)
{
    struct tables_ops ops = {.env = {.port_ok = any_id, .group_ok = any_id, .meter_ok = any_id},
                             .removed = ignore_removed};
    struct flow_key keys[4] = {{{{0}}}};
    static const unsigned steps[4] = {3, 2, 3, 1}; /* through 1, to 2, through 1, nowhere */
    struct tables *t = tables_new(3, 1, &ops);
    add_oxm(t, 0, OFPFC_ADD, OXM_in_port, 1, 1);
    add_oxm(t, 0, OFPFC_ADD, OXM_in_port, 2, 2);
    add_oxm(t, 0, OFPFC_ADD, OXM_in_port, 3, 1);
    add_oxm(t, 0, OFPFC_ADD, OXM_in_port, 4, 0);
    for (uint32_t i = 0; i < 4; i++) {
        of_set32(keys[i].in_port, i + 1);
        of_set64(keys[i].metadata, 7);
    }
    add_oxm(t, 1, OFPFC_ADD, OXM_metadata, 7, 2);
    add_oxm(t, 2, OFPFC_ADD, OXM_in_port, 1, 0);
    add_oxm(t, 2, OFPFC_ADD, OXM_in_port, 2, 0);
    for (uint32_t order = 0; order < 16; order++) {
        struct flow_cache *c = flow_cache_new(64);
        const struct flow_key *ahead[2] = {&keys[order / 4], &keys[order % 4]};
        flow_cache_ahead(c, t, ahead, 2);
        for (unsigned i = 0; i < 2; i++) {
            look_up(c, t, ahead[i]);
            assert_int_equal(flow_cache_path(c, t, ahead[i])->n, steps[ahead[i] - keys]);
        }
        flow_cache_end(c);
        flow_cache_free(c);
    }
    tables_free(t);
    rcu_turn();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ways_part),
                                       cmocka_unit_test(test_cache),
                                       cmocka_unit_test(test_withdraw),
                                       cmocka_unit_test(test_many_changes),
                                       cmocka_unit_test(test_many_changes_elsewhere),
                                       cmocka_unit_test(test_change_sets),
                                       cmocka_unit_test(test_share),
                                       cmocka_unit_test(test_masks_are_few)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
