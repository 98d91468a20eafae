/* SPDX-License-Identifier: Apache-2.0 */
/* The actions' rows: each is whole, in the action set's order, and the cache relies on a key no
 * further than the row says. */
#include <flow/actions.h>
#include <shared/rcu.h>
#include <table/flow-cache.h>

#include <oflib/text.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void
test_rows(void **state)
{
    uint32_t places = 0, n = 0;
    for (size_t i = 0; i < of_list_actions.n_tags; i++) {
        uint16_t type = of_list_actions.tags[i].type;
        if (type == OFPAT_EXPERIMENTER)
            continue;
        bool forwards = type == OFPAT_OUTPUT || type == OFPAT_GROUP || type == OFPAT_SET_QUEUE;
        assert_in_range(type, 0, ACTION_TYPES - 1);
        const struct action_row *row = &action_rows[type];
        assert_non_null(row->compile);
        assert_int_equal(row->edit == NULL, forwards);
        assert_false(places >> row->place & 1);
        places |= 1u << row->place;
        n++;
    }
    assert_int_equal(places, (UINT64_C(1) << n) - 1);
}

/* The list of 5.10. */
static void
test_order(void **state)
{
    static const uint8_t order[] = {
        OFPAT_COPY_TTL_IN,  OFPAT_POP_VLAN,   OFPAT_POP_MPLS,     OFPAT_POP_PBB,
        OFPAT_PUSH_MPLS,    OFPAT_PUSH_PBB,   OFPAT_PUSH_VLAN,    OFPAT_COPY_TTL_OUT,
        OFPAT_DEC_MPLS_TTL, OFPAT_DEC_NW_TTL, OFPAT_SET_MPLS_TTL, OFPAT_SET_NW_TTL,
        OFPAT_SET_FIELD,    OFPAT_SET_QUEUE,  OFPAT_GROUP,        OFPAT_OUTPUT,
    };
    for (size_t i = 1; i < sizeof order; i++)
        assert_true(action_rows[order[i - 1]].place < action_rows[order[i]].place);
}

/* ------------------------------------------------------------------ the key */

static enum key_effect
effect(uint8_t op, uint16_t extra)
{
    struct act a = {.op = op, .units = 1, .extra = extra};
    return actions_key_effect((struct act_list){&a, &a + 1});
}

static void
test_effects(void **state)
{
    static const uint8_t unknown[] = {OFPAT_POP_VLAN, OFPAT_POP_MPLS, OFPAT_POP_PBB,
                                      OFPAT_PUSH_MPLS, OFPAT_PUSH_PBB};
    static const uint8_t hidden[] = {OXM_eth_type,       OXM_ip_proto,    OXM_icmpv6_type,
                                     OXM_ipv6_nd_target, OXM_ipv6_nd_sll, OXM_ipv6_nd_tll};
    for (size_t i = 0; i < sizeof unknown; i++)
        assert_int_equal(effect(unknown[i], 0), KEY_UNKNOWN);
    assert_int_equal(effect(OFPAT_PUSH_VLAN, 0), KEY_FOLLOWS);
    assert_int_equal(effect(OFPAT_DEC_NW_TTL, 0), KEY_KEPT);
    assert_int_equal(effect(OFPAT_OUTPUT, 0), KEY_KEPT);
    for (uint16_t f = 0; f < OXM_N; f++) {
        bool follows = oxm_rows[f].settable && !memchr(hidden, f, sizeof hidden);
        assert_int_equal(effect(OFPAT_SET_FIELD, f), follows ? KEY_FOLLOWS : KEY_UNKNOWN);
    }
}

/* An action whose row says nothing of the key, beside others that keep it. */
static void
test_undeclared(void **state)
{
    const uint8_t undeclared = ACTION_TYPES - 1;
    struct act list[] = {{.op = OFPAT_OUTPUT, .units = 1},
                         {.op = undeclared, .units = 1},
                         {.op = OFPAT_DEC_NW_TTL, .units = 1}};
    assert_null(action_rows[undeclared].compile);
    assert_int_equal(effect(undeclared, 0), KEY_UNKNOWN);
    assert_int_equal(actions_key_effect((struct act_list){list, list + 3}), KEY_UNKNOWN);
    assert_int_equal(actions_key_effect((struct act_list){list, list + 1}), KEY_KEPT);
    assert_int_equal((struct program){0}.key_effect, KEY_UNKNOWN);
}

/* ------------------------------------------------------------------ the cache */

static bool
any_id(void *sw, uint32_t id)
{
    return true;
}

static void
ignore_removed(void *ctx, struct flow *f, uint8_t reason, uint64_t now)
{
}

static int
try_flow(struct tables *t, uint8_t table, const char *actions)
{
    struct of_arena arena;
    struct of_flow_mod fm = {
        .table_id = table, .buffer_id = OFP_NO_BUFFER, .out_port = OFPP_ANY, .out_group = OFPG_ANY};
    of_arena_init(&arena, 1 << 16);
    struct of_parse p = {.arena = &arena};
    if (*actions)
        assert_int_equal(of_parse_instruction(&p, actions, &fm.instructions), 0);
    if (table == 0)
        assert_int_equal(of_parse_instruction(&p, "goto:1", &fm.instructions), 0);
    int err = tables_flow_mod(t, &fm, 1);
    of_arena_free(&arena);
    return err;
}

static void
add_flow(struct tables *t, uint8_t table, const char *actions)
{
    assert_int_equal(try_flow(t, table, actions), 0);
}

/* How many tables the cache remembers ahead of a packet, when the first one's flow does this. */
static unsigned
steps_ahead(const char *actions)
{
    struct tables_ops ops = {.env = {.port_ok = any_id, .group_ok = any_id, .meter_ok = any_id},
                             .removed = ignore_removed};
    struct tables *t = tables_new(2, 1, &ops);
    struct flow_cache *c = flow_cache_new(8);
    struct flow_key key = {{{0}}};
    add_flow(t, 0, actions);
    add_flow(t, 1, "");
    unsigned n = flow_cache_path(c, t, &key)->n;
    flow_cache_free(c);
    tables_free(t);
    rcu_turn();
    return n;
}

static void
test_cache(void **state)
{
    assert_int_equal(steps_ahead("apply:output=1"), 2);
    assert_int_equal(steps_ahead("apply:dec_nw_ttl,queue=1"), 2);
    assert_int_equal(steps_ahead("apply:output=1,pop_vlan"), 1); /* nothing follows from the key */
    assert_int_equal(steps_ahead("apply:set_field=eth_type:0x800"), 1);
    assert_int_equal(steps_ahead("meter:1"), 1);
    assert_int_equal(steps_ahead("apply:push_mpls=0x8847"), 1);
    assert_int_equal(steps_ahead("apply:push_vlan=0x8100"), 2);
    assert_int_equal(steps_ahead("meta:1"), 2);
}

/* IF_THERE, which says how the actions behind it are meant; others of our own there are none. */
static void
test_experimenters(void **state)
{
    static const struct {
        const char *actions;
        int err;
    } rows[] = {
        {"apply:experimenter=0x514f5346:0000000100000000,dec_nw_ttl", 0},
        {"apply:experimenter=0x514f5346:0000000200000000", OF_BAD_ACTION(BAD_EXP_TYPE)},
        {"apply:experimenter=0x514f5346:00000001000000000000000000000000",
         OF_BAD_ACTION(BAD_EXP_TYPE)},
        {"apply:experimenter=0x514f5346:", OF_BAD_ACTION(BAD_EXP_TYPE)},
        {"apply:experimenter=0x514f5347:0000000100000000", OF_BAD_ACTION(BAD_EXPERIMENTER)},
        {"write:experimenter=0x514f5346:0000000100000000", OF_BAD_ACTION(UNSUPPORTED_ORDER)},
        {"write:experimenter=0x514f5346:0000000200000000", OF_BAD_ACTION(BAD_EXP_TYPE)},
        {"apply:push_vlan=0x1234", OF_BAD_ACTION(BAD_ARGUMENT)},
    };
    struct tables_ops ops = {.env = {.port_ok = any_id, .group_ok = any_id, .meter_ok = any_id},
                             .removed = ignore_removed};
    struct tables *t = tables_new(2, 1, &ops);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (try_flow(t, 1, rows[i].actions) != rows[i].err)
            fail_msg("%s", rows[i].actions);
    assert_int_equal(try_flow(t, 0, "goto:1"), OF_BAD_INSTRUCTION(UNSUP_INST)); /* twice */
    tables_free(t);
    rcu_turn();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),    cmocka_unit_test(test_order),
        cmocka_unit_test(test_effects), cmocka_unit_test(test_undeclared),
        cmocka_unit_test(test_cache),   cmocka_unit_test(test_experimenters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
