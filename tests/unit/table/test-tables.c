/* SPDX-License-Identifier: Apache-2.0 */
/* Flow-mods, timeouts and statistics of the tables. */
#include <shared/rcu.h>
#include <table/tables.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define SEC UINT64_C(1000000000)

struct fixture {
    struct tables *t;
    unsigned removed;
    uint8_t reason;
    uint64_t packets, at; /* of the last one */
    uint64_t cookie;      /* the next one's, if `in_order` */
    bool in_order;
};

static bool
port_ok(void *sw, uint32_t no)
{
    return (no && no < 100) || no == OFPP_CONTROLLER;
}

static bool
id_ok(void *sw, uint32_t id)
{
    return id == 7;
}

static void
on_removed(void *ctx, struct flow *f, uint8_t reason, uint64_t now)
{
    struct fixture *x = ctx;
    struct flow_key key;
    x->removed++;
    x->reason = reason;
    x->packets = tables_flow_counter(x->t, f).packets;
    x->at = now;
    flow_key_of(f, &key);
    assert_int_equal(f->sub->mask.w[0] & key.w[0], key.w[0]);
    if (x->in_order)
        assert_int_equal(flow_program(f)->cookie, x->cookie++);
}

static int
setup(void **state)
{
    struct fixture *x = calloc(1, sizeof *x);
    struct tables_ops ops = {.env = {.port_ok = port_ok, .group_ok = id_ok, .meter_ok = id_ok},
                             .removed = on_removed,
                             .ctx = x};
    x->t = tables_new(4, 1, &ops);
    *state = x;
    return x->t ? 0 : -1;
}

static uint32_t
n_flows(const struct fixture *x)
{
    uint32_t n = 0;
    for (uint8_t i = 0; i < tables_count(x->t); i++)
        n += tables_get(x->t, i)->flows.n_flows;
    return n;
}

static int
teardown(void **state)
{
    struct fixture *x = *state;
    rcu_wait();
    tables_free(x->t);
    rcu_wait();
    free(x);
    return 0;
}

/* One flow-mod: in_port (0: none), output to a port (0: no instructions). */
struct fm {
    struct of_flow_mod m;
    struct of_oxm oxm[2];
    struct of_action_output out;
    struct of_instr_actions apply;
    void *av[1], *iv[1];
};

static struct of_flow_mod *
flow(struct fm *f, uint8_t command, uint32_t in_port, uint16_t priority, uint32_t out)
{
    memset(f, 0, sizeof *f);
    f->m = (struct of_flow_mod){.command = command,
                                .priority = priority,
                                .buffer_id = OFP_NO_BUFFER,
                                .out_port = OFPP_ANY,
                                .out_group = OFPG_ANY,
                                .match = {.v = f->oxm}};
    if (in_port) {
        f->oxm[0].row = &oxm_rows[OXM_in_port];
        oxm_set_number(f->oxm[0].row, f->oxm[0].value, in_port);
        memset(f->oxm[0].mask, 0xff, 4);
        f->m.match.n = 1;
    }
    f->out = (struct of_action_output){.row = OF_ACTION(OUTPUT), .port = out};
    f->av[0] = &f->out;
    f->apply =
        (struct of_instr_actions){.row = OF_INSTR(APPLY_ACTIONS), .actions = {.n = 1, .v = f->av}};
    f->iv[0] = &f->apply;
    f->m.instructions = (struct of_list){.n = out ? 1 : 0, .v = f->iv};
    return &f->m;
}

static int
mod(struct fixture *x, struct fm *f, uint64_t now)
{
    return tables_flow_mod(x->t, &f->m, now);
}

static struct flow *
lookup(struct fixture *x, uint32_t in_port)
{
    struct flow_key k = {0};
    of_set32(k.in_port, in_port);
    return tables_lookup(x->t, 0, 0, &k, 1);
}

static void
hit(struct flow *f, unsigned n, uint64_t now)
{
    flow_counter_of(f, 0)->packets += n;
    flow_counter_of(f, 0)->bytes += n * 100;
    f->used = flow_clock(now);
}

static void
test_add_and_replace(void **state)
{
    struct fixture *x = *state;
    struct fm f;
    flow(&f, OFPFC_ADD, 1, 10, 2);
    assert_int_equal(mod(x, &f, SEC), 0);
    struct flow *one = lookup(x, 1);
    assert_non_null(one);
    assert_null(lookup(x, 2));
    hit(one, 5, SEC);
    /* The same add again: duration starts anew; counters stay, but with RESET_COUNTS they don't. */
    assert_int_equal(mod(x, &f, 3 * SEC), 0);
    assert_int_equal(tables_get(x->t, 0)->flows.n_flows, 1);
    assert_int_equal(tables_flow_counter(x->t, lookup(x, 1)).packets, 5);
    assert_int_equal(lookup(x, 1)->created, 3 * SEC);
    f.m.flags = OFPFF_RESET_COUNTS;
    assert_int_equal(mod(x, &f, 4 * SEC), 0);
    assert_int_equal(tables_flow_counter(x->t, lookup(x, 1)).packets, 0);
    assert_int_equal(n_flows(x), 1);
    assert_int_equal(x->removed, 0);
}

static void
test_refused(void **state)
{
    struct fixture *x = *state;
    struct fm f;
    flow(&f, 9, 1, 10, 2);
    assert_int_equal(mod(x, &f, 0), OF_FLOW_MOD_FAILED(BAD_COMMAND));
    flow(&f, OFPFC_ADD, 1, 10, 2)->table_id = OFPTT_ALL;
    assert_int_equal(mod(x, &f, 0), OF_FLOW_MOD_FAILED(BAD_TABLE_ID));
    flow(&f, OFPFC_ADD, 1, 10, 2)->table_id = 4;
    assert_int_equal(mod(x, &f, 0), OF_FLOW_MOD_FAILED(BAD_TABLE_ID));
    flow(&f, OFPFC_MODIFY, 1, 10, 2)->table_id = 4;
    assert_int_equal(mod(x, &f, 0), OF_FLOW_MOD_FAILED(BAD_TABLE_ID));
    flow(&f, OFPFC_ADD, 1, 10, 2)->flags = 1 << 9;
    assert_int_equal(mod(x, &f, 0), OF_FLOW_MOD_FAILED(BAD_FLAGS));
    flow(&f, OFPFC_ADD, 1, 10, 200);
    assert_int_equal(mod(x, &f, 0), OF_BAD_ACTION(BAD_OUT_PORT));
    flow(&f, OFPFC_ADD, 1, 10, OFPP_CONTROLLER);
    for (uint32_t len = OFPCML_MAX; len <= OFPCML_NO_BUFFER; len++) {
        bool wrong = len > OFPCML_MAX && len < OFPCML_NO_BUFFER;
        f.out.max_len = (uint16_t)len;
        assert_int_equal(mod(x, &f, 0), wrong ? OF_BAD_ACTION(BAD_ARGUMENT) : 0);
    }
    flow(&f, OFPFC_DELETE, 0, 0, 0);
    assert_int_equal(mod(x, &f, 0), 0);
    tables_get(x->t, 0)->features.max_entries = 1;
    flow(&f, OFPFC_ADD, 1, 10, 2);
    assert_int_equal(mod(x, &f, 0), 0);
    flow(&f, OFPFC_ADD, 2, 10, 2);
    assert_int_equal(mod(x, &f, 0), OF_FLOW_MOD_FAILED(TABLE_FULL));
    flow(&f, OFPFC_ADD, 0, 10, 2)->flags = OFPFF_CHECK_OVERLAP;
    assert_int_equal(mod(x, &f, 0), OF_FLOW_MOD_FAILED(OVERLAP));
    assert_int_equal(tables_get(x->t, 0)->flows.n_flows, 1);
    assert_int_equal(n_flows(x), 1);
}

/* No room for a larger program in the place of one that is there: that one stays. */
static void
test_no_room_for_a_larger_one(void **state)
{
    static const uint8_t commands[] = {OFPFC_ADD, OFPFC_MODIFY, OFPFC_MODIFY_STRICT};
    struct fixture *x = *state;
    struct limits l = limits_default(UINT64_MAX);
    struct fm f;
    void *twice[] = {&f.out, &f.out};
    flow(&f, OFPFC_ADD, 1, 10, 2);
    assert_int_equal(mod(x, &f, SEC), 0);
    const struct program *one = flow_program(lookup(x, 1));
    l.flow_bytes = program_size(one);
    tables_limit(x->t, &l);
    for (size_t i = 0; i < sizeof commands; i++) {
        flow(&f, commands[i], 1, 10, 2);
        f.apply.actions = (struct of_list){.n = 2, .v = twice};
        assert_int_equal(mod(x, &f, 2 * SEC), OF_FLOW_MOD_FAILED(TABLE_FULL));
        assert_ptr_equal(flow_program(lookup(x, 1)), one);
        assert_int_equal(lookup(x, 1)->created, SEC);
    }
    flow(&f, OFPFC_ADD, 1, 10, 3); /* as large as the one that is there */
    assert_int_equal(mod(x, &f, 3 * SEC), 0);
    assert_true(program_outputs_to(flow_program(lookup(x, 1)), 3));
    flow(&f, OFPFC_ADD, 2, 10, 0);
    assert_int_equal(mod(x, &f, 3 * SEC), OF_FLOW_MOD_FAILED(TABLE_FULL));
    assert_int_equal(n_flows(x), 1);
}

/* A modify that has no room for all of its flows changes none. */
static void
test_no_room_for_both(void **state)
{
    struct fixture *x = *state;
    struct limits l = limits_default(UINT64_MAX);
    const struct program *was[2];
    struct fm f;
    void *twice[] = {&f.out, &f.out};
    for (uint32_t p = 1; p <= 2; p++) {
        flow(&f, OFPFC_ADD, p, 10, 2);
        assert_int_equal(mod(x, &f, SEC), 0);
        was[p - 1] = flow_program(lookup(x, p));
    }
    flow(&f, OFPFC_ADD, 3, 10, 2);
    f.apply.actions = (struct of_list){.n = 2, .v = twice};
    assert_int_equal(mod(x, &f, SEC), 0);
    size_t one = program_size(was[0]), two = program_size(flow_program(lookup(x, 3)));
    flow(&f, OFPFC_DELETE_STRICT, 3, 10, 0);
    assert_int_equal(mod(x, &f, SEC), 0);
    for (l.flow_bytes = one + two; l.flow_bytes <= 2 * two; l.flow_bytes++) {
        bool room = l.flow_bytes == 2 * two;
        tables_limit(x->t, &l);
        flow(&f, OFPFC_MODIFY, 0, 0, 2);
        f.apply.actions = (struct of_list){.n = 2, .v = twice};
        assert_int_equal(mod(x, &f, SEC), room ? 0 : OF_FLOW_MOD_FAILED(TABLE_FULL));
        for (uint32_t p = 1; p <= 2; p++)
            assert_int_equal(flow_program(lookup(x, p)) == was[p - 1], !room);
    }
    l.flow_bytes = 1; /* smaller ones need no room */
    tables_limit(x->t, &l);
    flow(&f, OFPFC_MODIFY, 0, 0, 2);
    assert_int_equal(mod(x, &f, SEC), 0);
    assert_int_equal(program_size(flow_program(lookup(x, 2))), one);
}

static void
test_modify(void **state)
{
    struct fixture *x = *state;
    struct fm f;
    for (uint32_t p = 1; p <= 3; p++) {
        flow(&f, OFPFC_ADD, p, (uint16_t)p, 2)->cookie = p;
        assert_int_equal(mod(x, &f, SEC), 0);
        hit(lookup(x, p), 1, SEC);
    }
    /* Non-strict: every flow; cookie, counters and duration stay (6.4), out_port is ignored. */
    flow(&f, OFPFC_MODIFY, 0, 0, 5)->cookie = 99;
    f.m.out_port = 77;
    assert_int_equal(mod(x, &f, 9 * SEC), 0);
    for (uint32_t p = 1; p <= 3; p++) {
        struct flow *g = lookup(x, p);
        assert_true(program_outputs_to(g->program, 5));
        assert_int_equal(g->program->cookie, p);
        assert_int_equal(g->created, SEC);
        assert_int_equal(tables_flow_counter(x->t, g).packets, 1);
    }
    /* By cookie, and strict. */
    flow(&f, OFPFC_MODIFY, 0, 0, 6)->cookie = 2;
    f.m.cookie_mask = UINT64_MAX;
    assert_int_equal(mod(x, &f, 9 * SEC), 0);
    assert_true(program_outputs_to(lookup(x, 2)->program, 6));
    assert_true(program_outputs_to(lookup(x, 1)->program, 5));
    flow(&f, OFPFC_MODIFY_STRICT, 3, 4,
         7); /* another priority: matches no flow, which is no error */
    assert_int_equal(mod(x, &f, 9 * SEC), 0);
    assert_true(program_outputs_to(lookup(x, 3)->program, 5));
    flow(&f, OFPFC_MODIFY_STRICT, 3, 3, 7);
    assert_int_equal(mod(x, &f, 9 * SEC), 0);
    assert_true(program_outputs_to(lookup(x, 3)->program, 7));
    assert_int_equal(n_flows(x), 3);
}

static void
test_delete(void **state)
{
    struct fixture *x = *state;
    struct fm f;
    for (uint32_t p = 1; p <= 4; p++) {
        flow(&f, OFPFC_ADD, p, 10, p + 10)->flags = p == 1 ? OFPFF_SEND_FLOW_REM : 0;
        assert_int_equal(mod(x, &f, SEC), 0);
    }
    flow(&f, OFPFC_DELETE_STRICT, 4, 11, 0);
    assert_int_equal(mod(x, &f, SEC), 0);
    assert_int_equal(tables_get(x->t, 0)->flows.n_flows, 4);
    flow(&f, OFPFC_DELETE, 0, 0, 0)->out_port = 12;
    assert_int_equal(mod(x, &f, SEC), 0);
    assert_null(lookup(x, 2));
    assert_int_equal(tables_get(x->t, 0)->flows.n_flows, 3);
    flow(&f, OFPFC_DELETE, 0, 0, 0)->table_id = OFPTT_ALL;
    assert_int_equal(mod(x, &f, SEC), 0);
    assert_int_equal(tables_get(x->t, 0)->flows.n_flows, 0);
    rcu_turn();
    assert_int_equal(x->removed, 1);
    assert_int_equal(x->reason, OFPRR_DELETE);
    assert_int_equal(n_flows(x), 0);
}

static void
test_timeouts(void **state)
{
    struct fixture *x = *state;
    struct fm f;
    flow(&f, OFPFC_ADD, 1, 1, 2)->idle_timeout = 2;
    f.m.flags = OFPFF_SEND_FLOW_REM;
    assert_int_equal(mod(x, &f, SEC), 0);
    flow(&f, OFPFC_ADD, 2, 1, 2)->hard_timeout = 5;
    f.m.flags = OFPFF_SEND_FLOW_REM;
    assert_int_equal(mod(x, &f, SEC), 0);
    flow(&f, OFPFC_ADD, 3, 1, 2)->hard_timeout = 2000; /* more than the wheel has slots for */
    assert_int_equal(mod(x, &f, SEC), 0);
    for (uint64_t t = 8; t < 24; t++) { /* in 1/8 s: used until 3 s */
        hit(lookup(x, 1), 1, t * SEC / 8);
        tables_expire(x->t, t * SEC / 8, UINT32_MAX);
    }
    rcu_turn();
    assert_int_equal(x->removed, 0);
    uint64_t gone_idle = 0, gone_hard = 0;
    for (uint64_t t = 24; t < 80; t++) {
        tables_expire(x->t, t * SEC / 8, UINT32_MAX);
        if (!gone_idle && !lookup(x, 1))
            gone_idle = t;
        if (!gone_hard && !lookup(x, 2))
            gone_hard = t;
    }
    /* last used at 23/8 s, created at 1 s */
    assert_in_range(gone_idle, 23 + 16, 23 + 17);
    assert_in_range(gone_hard, 8 + 40, 8 + 41);
    rcu_turn();
    assert_int_equal(x->removed, 2);
    tables_expire(x->t, 1990 * SEC, UINT32_MAX);
    assert_non_null(lookup(x, 3));
    for (uint64_t t = 1990; t < 2003; t++)
        tables_expire(x->t, t * SEC, UINT32_MAX);
    assert_null(lookup(x, 3));
    assert_int_equal(tables_expire(x->t, 2003 * SEC, UINT32_MAX), 0);
}

/* A worker may count on a flow until the grace period is over: what is told of its removal contains
 * that. */
static void
test_final_counters(void **state)
{
    struct fixture *x = *state;
    struct fm f;
    flow(&f, OFPFC_ADD, 1, 10, 2)->flags = OFPFF_SEND_FLOW_REM;
    assert_int_equal(mod(x, &f, SEC), 0);
    struct flow *one = lookup(x, 1);
    hit(one, 5, SEC);
    flow(&f, OFPFC_DELETE, 0, 0, 0);
    assert_int_equal(mod(x, &f, 2 * SEC), 0);
    assert_null(lookup(x, 1));
    assert_int_equal(x->removed, 0);
    hit(one, 2, 2 * SEC);
    rcu_turn();
    assert_int_equal(x->removed, 1);
    assert_int_equal(x->packets, 7);
    assert_int_equal(x->at, 2 * SEC);
}

/* One that a statistics reply still holds is told of all the same, and stays. */
static void
test_removed_while_held(void **state)
{
    struct fixture *x = *state;
    struct fm f;
    flow(&f, OFPFC_ADD, 1, 10, 2)->flags = OFPFF_SEND_FLOW_REM;
    assert_int_equal(mod(x, &f, SEC), 0);
    struct flow *one = lookup(x, 1);
    flow_hold(one);
    flow(&f, OFPFC_DELETE, 0, 0, 0);
    assert_int_equal(mod(x, &f, SEC), 0);
    rcu_turn();
    assert_int_equal(x->removed, 1);
    assert_int_equal(one->priority, 10);
    flow_release(one);
    rcu_turn();
}

static void
test_removed_in_order(void **state)
{
    struct fixture *x = *state;
    struct fm f;
    x->in_order = true;
    for (uint32_t i = 0; i < 5000; i++) {
        flow(&f, OFPFC_ADD, i + 1, 10, 2)->flags = OFPFF_SEND_FLOW_REM;
        f.m.cookie = i;
        assert_int_equal(mod(x, &f, SEC), 0);
    }
    for (uint32_t i = 0; i < 5000; i++) {
        flow(&f, OFPFC_DELETE_STRICT, i + 1, 10, 0);
        assert_int_equal(mod(x, &f, SEC), 0);
    }
    rcu_turn();
    assert_int_equal(x->removed, 5000);
}

static int
count_one(void *ctx, struct flow *f)
{
    ++*(unsigned *)ctx;
    return 0;
}

static void
test_filter(void **state)
{
    struct fixture *x = *state;
    struct fm f;
    struct flow_filter q = {.table_id = OFPTT_ALL, .out_port = OFPP_ANY, .out_group = OFPG_ANY};
    unsigned n = 0;
    for (uint32_t p = 1; p <= 6; p++) {
        flow(&f, OFPFC_ADD, p, 10, p % 2 + 1)->table_id = p % 3;
        f.m.cookie = p;
        assert_int_equal(mod(x, &f, SEC), 0);
    }
    flow(&f, 0, 0, 0, 0);
    q.match = &f.m.match;
    assert_int_equal(tables_each(x->t, &q, count_one, &n), 0);
    assert_int_equal(n, 6);
    q.out_port = 1;
    n = 0;
    assert_int_equal(tables_each(x->t, &q, count_one, &n), 0);
    assert_int_equal(n, 3);
    q.out_port = OFPP_ANY;
    q.cookie = 4;
    q.cookie_mask = 4;
    n = 0;
    assert_int_equal(tables_each(x->t, &q, count_one, &n), 0);
    assert_int_equal(n, 3);
    const struct of_mp_flow_request r = {.table_id = OFPTT_ALL,
                                         .out_port = 1,
                                         .out_group = OFPG_ANY,
                                         .cookie = 4,
                                         .cookie_mask = 4,
                                         .match = {.v = f.oxm}};
    struct of_mp_flow_request all = {.out_port = OFPP_ANY, .out_group = OFPG_ANY};
    q = flow_filter_of_stats(&r);
    assert_false(flow_filter_is_all(&q));
    n = 0;
    assert_int_equal(tables_each(x->t, &q, count_one, &n), 0);
    assert_int_equal(n, 2); /* 4 and 6 */
    q = flow_filter_of_stats(&all);
    assert_true(flow_filter_is_all(&q));
    q.table_id = 9;
    assert_int_equal(tables_each(x->t, &q, count_one, &n), OF_BAD_REQUEST(BAD_TABLE_ID));
}

/* OpenFlow 1.0's modify: the flow is there afterwards, also where there was none. */
static void
test_modify_or_add(void **state)
{
    struct fixture *x = *state;
    struct fm f;
    flow(&f, OFPFC_MODIFY_STRICT, 1, 10, 2)->cookie = 5;
    assert_int_equal(mod(x, &f, SEC), 0);
    assert_null(lookup(x, 1));
    assert_int_equal(tables_flow_mod_or_add(x->t, &f.m, SEC), 0);
    assert_int_equal(flow_program(lookup(x, 1))->cookie, 5);
    flow(&f, OFPFC_MODIFY_STRICT, 1, 10, 3)->cookie = 6;
    assert_int_equal(tables_flow_mod_or_add(x->t, &f.m, 2 * SEC), 0);
    assert_true(program_outputs_to(flow_program(lookup(x, 1)), 3));
    assert_int_equal(flow_program(lookup(x, 1))->cookie, 5); /* as a modify leaves it */
    assert_int_equal(tables_get(x->t, 0)->flows.n_flows, 1);
}

/* What a deletion would take, counted before it is done. */
static void
test_each_deleted(void **state)
{
    struct fixture *x = *state;
    struct fm f;
    unsigned n = 0;
    for (uint32_t p = 1; p <= 6; p++) {
        flow(&f, OFPFC_ADD, p, 10, p % 2 + 1)->table_id = p % 3;
        assert_int_equal(mod(x, &f, SEC), 0);
    }
    flow(&f, OFPFC_DELETE, 0, 0, 0)->table_id = OFPTT_ALL;
    f.m.out_port = 2;
    assert_int_equal(tables_each_deleted(x->t, &f.m, count_one, &n), 0);
    assert_int_equal(n, 3);
    flow(&f, OFPFC_DELETE, 3, 0, 0);
    n = 0;
    assert_int_equal(tables_each_deleted(x->t, &f.m, count_one, &n), 0);
    assert_int_equal(n, 1);
    f.m.table_id = 4;
    assert_int_equal(tables_each_deleted(x->t, &f.m, count_one, &n),
                     OF_FLOW_MOD_FAILED(BAD_TABLE_ID));
    assert_int_equal(tables_get(x->t, 0)->flows.n_flows, 2);
}

/* What changed since then, as far as it is asked for and known. */
static void
test_change_tells(void **state)
{
    struct fixture *x = *state;
    struct fm f;
    struct change_tells to[CHANGES_TOLD];
    unsigned long from = tables_changes(x->t);
    for (uint32_t i = 1; i <= 3; i++) {
        flow(&f, OFPFC_ADD, i, 10, 2);
        assert_int_equal(mod(x, &f, 0), 0);
    }
    assert_int_equal(tables_change_tells(x->t, from, to, CHANGES_TOLD), 3);
    assert_int_equal(tables_change_tells(x->t, from, to, 2), -1);
    for (uint32_t i = 4; i <= 600; i++) { /* more than the log's last block has */
        flow(&f, OFPFC_ADD, i, 10, 2);
        assert_int_equal(mod(x, &f, 0), 0);
    }
    from = tables_changes(x->t) - 150;
    assert_int_equal(tables_change_tells(x->t, from, to, CHANGES_TOLD), 150);
    assert_int_equal(tables_change_tells(x->t, from - 1000, to, CHANGES_TOLD), -1);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_add_and_replace),  T(test_refused),
        T(test_modify),           T(test_delete),
        T(test_timeouts),         T(test_filter),
        T(test_final_counters),   T(test_removed_while_held),
        T(test_removed_in_order), T(test_no_room_for_a_larger_one),
        T(test_no_room_for_both), T(test_each_deleted),
        T(test_modify_or_add),    T(test_change_tells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
