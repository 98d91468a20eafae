/* SPDX-License-Identifier: Apache-2.0 */
/* The cache, of several sizes, against the tables it remembers, while these change. */
#include <shared/rcu.h>
#include <table/flow-cache.h>

#include <oflib/wire.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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

static void
ignore_refers(void *ctx, struct flow *f, struct program *p, int delta)
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

/* As a worker does it. */
static void
look_up(struct flow_cache *c, struct tables *t, const struct flow_key *key, uint32_t *hits)
{
    struct cache_entry *e = flow_cache_get(c, t, key);
    struct flow_key k = *key;
    uint8_t known = e->n, step = 0;
    assert_memory_equal(&e->key, key, sizeof *key);
    *hits += known > 0;
    for (uint8_t id = 0; id != NO_TABLE; step++) {
        uint32_t generation = tables_generation(t, id);
        struct flow *f = tables_lookup(t, id, 0, &k);
        if (!known)
            flow_cache_step(e, id, generation, f);
        assert_in_range(step, 0, e->n - 1);
        assert_ptr_equal(e->flow[step], f);
        assert_int_equal(e->table[step], id);
        if (f && f->program->has_metadata)
            of_set64(k.metadata, f->program->metadata);
        id = f ? f->program->goto_table : NO_TABLE;
    }
    assert_int_equal(e->n, step);
}

static void
check(uint32_t entries, uint32_t change_every)
{
    struct tables_ops ops = {.env = {.port_ok = any_id, .group_ok = any_id, .meter_ok = any_id},
                             .removed = ignore_removed,
                             .refers = ignore_refers};
    struct tables *t = tables_new(TABLES, 1, &ops);
    struct flow_cache *c = flow_cache_new(entries);
    struct flow_key keys[KEYS] = {{{{0}}}};
    const struct flow_key *ahead[CACHE_AHEAD];
    uint32_t hits = 0;
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
            flow_cache_prefetch(c, t, ahead, CACHE_AHEAD);
            for (uint32_t j = 0; j < CACHE_AHEAD; j++)
                look_up(c, t, ahead[j], &hits);
        }
        rcu_turn();
    }
    if (entries >= KEYS * 2) /* then nearly all are remembered until a flow changes */
        assert_true(hits > TURNS / 2);
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

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cache)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
