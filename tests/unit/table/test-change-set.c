/* SPDX-License-Identifier: Apache-2.0 */
/* Change sets of random flow-, group- and meter-mods.  An undone set leaves everything as it was,
 * down to the objects; a committed one has the effect of its changes one by one; and a reader on
 * the side before the set sees the old state. */
#include <group/groups.h>
#include <group/meters.h>
#include <shared/change-set.h>
#include <shared/rcu.h>
#include <table/tables.h>

#include <oflib/text.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SEC      UINT64_C(1000000000)
#define N_TABLES 3
#define N_PORTS  5
#define N_GROUPS 5
#define N_METERS 4

struct world {
    struct tables *t;
    struct groups *g;
    struct meters *m;
    uint64_t now;
    unsigned removed;
    uint64_t removed_sum; /* of cookies and reasons */
};

/* ------------------------------------------------------------------ a switch without packets */

static bool
port_ok(void *sw, uint32_t no)
{
    return true;
}

static bool
group_ok(void *sw, uint32_t id)
{
    return groups_find(((struct world *)sw)->g, id) != NULL;
}

static bool
meter_ok(void *sw, uint32_t id)
{
    return meters_find(((struct world *)sw)->m, id) != NULL;
}

static void
on_removed(void *ctx, struct flow *f, uint8_t reason, uint64_t now)
{
    struct world *w = ctx;
    w->removed++;
    w->removed_sum += (flow_program(f)->cookie + 1) * (reason + 1u);
}

static struct world *
world_new(void)
{
    struct world *w = calloc(1, sizeof *w);
    struct compile_env env = {
        .sw = w, .port_ok = port_ok, .group_ok = group_ok, .meter_ok = meter_ok};
    struct groups_ops gops = {.env = env, .port_exists = port_ok};
    w->g = groups_new(1, &gops);
    w->m = meters_new(1);
    struct tables_ops tops = {
        .env = env, .groups = w->g, .meters = w->m, .removed = on_removed, .ctx = w};
    w->t = tables_new(N_TABLES, 1, &tops);
    w->now = SEC;
    return w;
}

static void
world_free(struct world *w)
{
    tables_free(w->t);
    groups_free(w->g);
    meters_free(w->m);
    rcu_wait();
    free(w);
}

/* ------------------------------------------------------------------ chance */

static uint64_t chance_state;

static uint32_t
chance(uint32_t n)
{
    chance_state = chance_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((chance_state >> 33) % n);
}

/* ------------------------------------------------------------------ random messages */

struct oxm_space {
    struct of_oxm v[2];
};

static struct of_match
random_match(struct oxm_space *s)
{
    struct of_match m = {.v = s->v};
    memset(s, 0, sizeof *s);
    if (chance(3)) {
        s->v[m.n].row = &oxm_rows[OXM_in_port];
        oxm_set_number(s->v[m.n].row, s->v[m.n].value, 1 + chance(N_PORTS));
        memset(s->v[m.n++].mask, 0xff, 4);
    }
    if (!chance(3)) {
        struct of_oxm *o = &s->v[m.n++];
        o->row = &oxm_rows[OXM_metadata];
        o->has_mask = true;
        oxm_set_number(o->row, o->mask, chance(2) ? 1 : 3);
        oxm_set_number(o->row, o->value, chance(4) & oxm_number(o->row, o->mask));
    }
    return m;
}

/* Flows with different masks get different priorities: which of two with the same priority a packet
 * matches is undefined (6.4). */
static unsigned
mask_kind(const struct of_match *m)
{
    const struct of_oxm *meta = of_match_find(m, OXM_metadata);
    return (of_match_find(m, OXM_in_port) ? 4 : 0) +
           (meta ? (unsigned)oxm_number(meta->row, meta->mask) : 0);
}

static int
random_flow_mod(struct world *w)
{
    static const uint16_t flags[] = {0,
                                     OFPFF_SEND_FLOW_REM,
                                     OFPFF_RESET_COUNTS,
                                     OFPFF_SEND_FLOW_REM | OFPFF_RESET_COUNTS,
                                     OFPFF_CHECK_OVERLAP,
                                     OFPFF_NO_PKT_COUNTS};
    struct oxm_space space;
    struct of_flow_mod fm = {.command = (uint8_t)(chance(3) ? OFPFC_ADD : chance(5)),
                             .table_id = (uint8_t)chance(N_TABLES),
                             .priority = (uint16_t)chance(4),
                             .cookie = chance(8),
                             .cookie_mask = chance(2) ? 0 : 1,
                             .idle_timeout = (uint16_t)(chance(3) ? 0 : 1 + chance(100)),
                             .hard_timeout = (uint16_t)(chance(3) ? 0 : 1 + chance(100)),
                             .flags = flags[chance(6)],
                             .buffer_id = OFP_NO_BUFFER,
                             .out_port = OFPP_ANY,
                             .out_group = OFPG_ANY};
    fm.match = random_match(&space);
    fm.priority = (uint16_t)(fm.priority * 8 + mask_kind(&fm.match));
    struct of_action_output out = {.row = OF_ACTION(OUTPUT), .port = 1 + chance(N_PORTS)};
    struct of_action_group group = {.row = OF_ACTION(GROUP), .group_id = 1 + chance(N_GROUPS)};
    struct of_instr_meter meter = {.row = OF_INSTR(METER), .meter_id = 1 + chance(N_METERS)};
    void *actions[] = {&out, &group}, *instructions[2];
    struct of_instr_actions apply = {.row = OF_INSTR(APPLY_ACTIONS),
                                     .actions = {.n = 1 + chance(2), .v = actions}};
    fm.instructions.v = instructions;
    if (chance(2))
        instructions[fm.instructions.n++] = &meter;
    instructions[fm.instructions.n++] = &apply;
    return tables_flow_mod(w->t, &fm, w->now);
}

static int
random_group_mod(struct world *w)
{
    struct of_action_output out = {.row = OF_ACTION(OUTPUT), .port = 1 + chance(N_PORTS)};
    struct of_action_group next = {.row = OF_ACTION(GROUP), .group_id = 1 + chance(N_GROUPS)};
    void *a[] = {&out, &next};
    struct of_bucket b[2] = {
        {.watch_port = OFPP_ANY, .watch_group = OFPG_ANY, .actions = {.n = 1 + !chance(3), .v = a}},
        {.watch_port = OFPP_ANY, .watch_group = OFPG_ANY}};
    void *v[] = {&b[0], &b[1]};
    struct of_group_mod gm = {.command = (uint16_t)chance(3),
                              .type = OFPGT_ALL,
                              .group_id = chance(40) ? 1 + chance(N_GROUPS) : OFPG_ALL,
                              .buckets = {.n = chance(3), .v = v}};
    return tables_group_mod(w->t, &gm, UINT32_MAX, w->now);
}

static int
random_meter_mod(struct world *w)
{
    struct of_band_drop b = {.row = of_tag_row(&of_list_bands, OFPMBT_DROP),
                             .rate = 1 + chance(1000)};
    void *v[] = {&b};
    struct of_meter_mod mm = {.command = (uint16_t)chance(3),
                              .flags = OFPMF_KBPS,
                              .meter_id = chance(40) ? 1 + chance(N_METERS) : OFPM_ALL,
                              .bands = {.n = chance(2), .v = v}};
    return tables_meter_mod(w->t, &mm, UINT32_MAX, w->now);
}

static int
random_mod(struct world *w)
{
    switch (chance(6)) {
    case 0: return random_group_mod(w);
    case 1: return random_meter_mod(w);
    default: return random_flow_mod(w);
    }
}

/* ------------------------------------------------------------------ everything, as text */

struct conn_dump {
    struct world *w;
    bool objects; /* compare the objects' addresses too */
    unsigned n;
    char line[4096][400];
};

static void
put(struct conn_dump *d, const char *kind, const void *object, const char *text)
{
    assert_true(d->n < 4096);
    snprintf(d->line[d->n++], sizeof d->line[0], "%s %p %s", kind, d->objects ? object : NULL,
             text);
}

static void
print_acts(struct of_wr *w, struct act_list l)
{
    ACTS_EACH(a, l)
        of_printf(w, " %u:%u", a->op, (unsigned)a->arg);
}

static int
put_flow(void *ctx, struct flow *f)
{
    struct conn_dump *d = ctx;
    struct flow_key key;
    const struct program *p = flow_program(f);
    struct flow_counter c = tables_flow_counter(d->w->t, f);
    char text[350] = {0};
    struct of_wr w = of_wr_fixed(text, sizeof text - 1);
    flow_key_of(f, &key);
    of_printf(&w, "t%u p%u k%llx/%llx m%llx", f->table_id, f->priority,
              (unsigned long long)of_get32(key.in_port), (unsigned long long)of_get64(key.metadata),
              (unsigned long long)of_get64(f->sub->mask.metadata));
    of_printf(&w, " c%llu %u/%u f%x created %llu used %u n %llu %llu timer %p meter %u",
              (unsigned long long)p->cookie, f->idle_timeout, f->hard_timeout, f->flags,
              (unsigned long long)f->created, f->used, (unsigned long long)c.packets,
              (unsigned long long)c.bytes, d->objects ? (void *)f->timer : NULL, p->meter_id);
    print_acts(&w, program_apply(p));
    assert_int_equal(f->mark, 0);
    assert_false(f->removed);
    put(d, "flow", f, text);
    if (d->objects)
        put(d, "program", p, text);
    return 0;
}

static void
put_groups(struct conn_dump *d)
{
    uint32_t pos = 0;
    for (struct group *g; (g = groups_each(d->w->g, &pos));) {
        char text[350] = {0};
        struct of_wr w = of_wr_fixed(text, sizeof text - 1);
        struct flow_counter c = groups_counter(d->w->g, g, -1);
        of_printf(&w, "%u type %u created %llu refs %u n %llu", (unsigned)g->id, g->type,
                  (unsigned long long)g->created, (unsigned)groups_refs(d->w->g, g->id),
                  (unsigned long long)c.packets);
        for (uint32_t i = 0; i < g->n_buckets; i++) {
            of_printf(&w, " |%llu", (unsigned long long)groups_counter(d->w->g, g, (int)i).packets);
            print_acts(&w, program_apply(g->buckets[i].program));
        }
        assert_int_equal(g->mark, 0);
        assert_null(g->before);
        put(d, "group", g, text);
    }
}

static void
put_meters(struct conn_dump *d)
{
    uint32_t pos = 0;
    for (struct meter *m; (m = meters_each(d->w->m, &pos));) {
        char text[350] = {0};
        struct of_wr w = of_wr_fixed(text, sizeof text - 1);
        struct flow_counter c = meters_counter(d->w->m, m, -1);
        of_printf(&w, "%u flows %u created %llu n %llu", (unsigned)m->id,
                  (unsigned)meters_refs(d->w->m, m->id), (unsigned long long)m->created,
                  (unsigned long long)c.packets);
        for (uint32_t i = 0; i < m->n_bands; i++)
            of_printf(&w, " %u %llu", (unsigned)m->bands[i].rate,
                      (unsigned long long)*m->bands[i].full_at);
        assert_int_equal(m->mark, 0);
        assert_null(m->before);
        put(d, "meter", m, text);
    }
}

static int
by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void
dump_world(struct conn_dump *d, struct world *w, bool objects)
{
    static const struct of_match any;
    struct flow_filter all = {
        .table_id = OFPTT_ALL, .out_port = OFPP_ANY, .out_group = OFPG_ANY, .match = &any};
    *d = (struct conn_dump){.w = w, .objects = objects};
    tables_each(w->t, &all, put_flow, d);
    put_groups(d);
    put_meters(d);
    for (uint8_t i = 0; i < N_TABLES; i++) {
        char text[64];
        const struct flow_table *ft = tables_get(w->t, i);
        snprintf(text, sizeof text, "%u: %u leaving %u", i, (unsigned)ft->flows.n_flows,
                 (unsigned)ft->n_leaving);
        put(d, "table", NULL, text);
    }
    char text[64];
    snprintf(text, sizeof text, "removed %u %llu, groups %u", w->removed,
             (unsigned long long)w->removed_sum, (unsigned)groups_count(w->g));
    put(d, "all", NULL, text);
    qsort(d->line, d->n, sizeof d->line[0], by_text);
}

static void
assert_same(const struct conn_dump *a, const struct conn_dump *b)
{
    for (unsigned i = 0; i < a->n && i < b->n; i++)
        assert_string_equal(a->line[i], b->line[i]);
    assert_int_equal(a->n, b->n);
}

/* ------------------------------------------------------------------ what packets meet */

struct view {
    struct flow *flow[N_TABLES][N_PORTS + 1][4];
    const struct program *program[N_TABLES][N_PORTS + 1][4];
    struct group *group[N_GROUPS + 1];
    struct meter *meter[N_METERS + 1];
};

static void
look(struct world *w, struct view *v)
{
    memset(v, 0, sizeof *v);
    for (uint32_t i = 0; i < N_TABLES * (N_PORTS + 1) * 4; i++) {
        uint32_t t = i % N_TABLES, port = i / N_TABLES % (N_PORTS + 1),
                 meta = i / N_TABLES / (N_PORTS + 1);
        struct flow_key key = {0};
        of_set32(key.in_port, port);
        of_set64(key.metadata, meta);
        struct flow *f = tables_lookup(w->t, (uint8_t)t, 0, &key, 1);
        v->flow[t][port][meta] = f;
        v->program[t][port][meta] = f ? flow_program(f) : NULL;
    }
    for (uint32_t i = 1; i <= N_GROUPS; i++)
        v->group[i] = groups_find(w->g, i);
    for (uint32_t i = 1; i <= N_METERS; i++)
        v->meter[i] = meters_find(w->m, i);
}

/* What a worker on this side sees. */
static void
look_from(struct world *w, struct view *v, uint8_t side)
{
    change_set_side = side;
    look(w, v);
    change_set_side = CHANGE_SET_NEWEST;
}

/* Counts a packet on every flow, group and meter. */
static void
count_packets(struct world *w)
{
    static struct view v;
    look(w, &v);
    for (uint32_t i = 0; i < N_TABLES * (N_PORTS + 1) * 4; i++) {
        struct flow *f = (&v.flow[0][0][0])[i];
        if (f && chance(2)) {
            flow_counter_of(f, 0)->packets += i;
            flow_counter_of(f, 0)->bytes += i * 100;
            f->used = flow_clock(w->now);
        }
    }
    for (uint32_t i = 1; i <= N_GROUPS; i++)
        if (v.group[i])
            group_counter(v.group[i], 0, -1)->packets += i;
    for (uint32_t i = 1; i <= N_METERS; i++)
        if (v.meter[i])
            v.meter[i]->total[0].packets += i;
}

/* ------------------------------------------------------------------ the tests */

static struct conn_dump before, after;

static void
change_some(struct world *w, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        random_mod(w);
}

static void
test_undo_restores(void **state)
{
    static struct view was, is;
    for (unsigned round = 0; round < 300; round++) {
        chance_state = round;
        struct world *w = world_new();
        change_some(w, 100);
        w->now += 2 * SEC;
        count_packets(w);
        for (int i = 0; i < 3; i++) {
            w->now += SEC;
            dump_world(&before, w, true);
            look(w, &was);
            uint64_t revision = tables_revision(w->t);
            change_set_begin();
            change_some(w, 1 + chance(80));
            look_from(w, &is, change_set_now);
            assert_memory_equal(&is, &was, sizeof is);
            assert_false(change_set_failed());
            change_set_end(false);
            dump_world(&after, w, true);
            assert_same(&after, &before);
            look(w, &is);
            assert_memory_equal(&is, &was, sizeof is);
            assert_int_equal(tables_revision(w->t), revision);
            rcu_wait();
        }
        uint64_t due = tables_expire(w->t, w->now, UINT32_MAX); /* timers work as before */
        assert_true(!due || due > w->now);
        world_free(w);
    }
}

/* Two worlds with the same history. */
static void
grow_twins(struct world **a, struct world **b, unsigned round)
{
    struct world **w[] = {a, b};
    for (int i = 0; i < 2; i++) {
        chance_state = round;
        *w[i] = world_new();
        change_some(*w[i], 100);
        (*w[i])->now += 2 * SEC;
        count_packets(*w[i]);
    }
}

static void
test_commit_equals_single_changes(void **state)
{
    static struct view was, is, end;
    for (unsigned round = 0; round < 300; round++) {
        struct world *a, *b;
        grow_twins(&a, &b, round);
        for (int i = 0; i < 3; i++) {
            uint64_t same = chance_state, n = 1 + chance(80);
            a->now = b->now = a->now + SEC;
            change_some(b, (unsigned)n);
            chance_state = same;
            chance(80);
            look(a, &was);
            change_set_begin();
            change_some(a, (unsigned)n);
            uint8_t old = change_set_now;
            look_from(a, &is, old);
            assert_memory_equal(&is, &was, sizeof is);
            change_set_end(true);
            look(a, &is);
            look_from(a, &end, change_set_now);
            assert_memory_equal(&end, &is, sizeof end);
            dump_world(&before, a, false);
            dump_world(&after, b, false);
            assert_same(&before, &after);
            rcu_wait();
        }
        a->now = b->now = a->now + 50 * SEC;
        tables_expire(a->t, a->now, UINT32_MAX);
        tables_expire(b->t, b->now, UINT32_MAX);
        dump_world(&before, a, false);
        dump_world(&after, b, false);
        assert_same(&before, &after);
        world_free(a);
        world_free(b);
    }
}

/* A full table has room again when a flow of it was deleted within the same set. */
static void
test_full_table(void **state)
{
    struct world *w = world_new();
    struct of_oxm in_port = {.row = &oxm_rows[OXM_in_port]};
    struct of_flow_mod fm = {
        .buffer_id = OFP_NO_BUFFER, .out_port = OFPP_ANY, .out_group = OFPG_ANY};
    memset(in_port.mask, 0xff, 4);
    tables_get(w->t, 0)->features.max_entries = 1;
    assert_int_equal(tables_flow_mod(w->t, &fm, w->now), 0);
    fm.match = (struct of_match){1, &in_port};
    change_set_begin();
    assert_int_equal(tables_flow_mod(w->t, &fm, w->now), OF_FLOW_MOD_FAILED(TABLE_FULL));
    fm.match.n = 0;
    fm.command = OFPFC_DELETE;
    assert_int_equal(tables_flow_mod(w->t, &fm, w->now), 0);
    fm.match.n = 1;
    fm.command = OFPFC_ADD;
    assert_int_equal(tables_flow_mod(w->t, &fm, w->now), 0);
    change_set_end(true);
    assert_int_equal(tables_get(w->t, 0)->flows.n_flows, 1);
    assert_int_equal(tables_get(w->t, 0)->n_leaving, 0);
    assert_int_equal(tables_revision(w->t), 3);
    assert_int_equal(tables_flow_mod(w->t, &fm, w->now), 0); /* replaces it */
    assert_int_equal(tables_revision(w->t), 4);
    world_free(w);
}

/* A set gives a flow more time and is undone after the time that the flow had: it goes at the next tick. */
static void
test_undone_after_its_time(void **state)
{
    struct world *w = world_new();
    struct of_flow_mod fm = {.hard_timeout = 5,
                             .flags = OFPFF_SEND_FLOW_REM,
                             .buffer_id = OFP_NO_BUFFER,
                             .out_port = OFPP_ANY,
                             .out_group = OFPG_ANY};
    assert_int_equal(tables_flow_mod(w->t, &fm, SEC), 0);
    change_set_begin();
    fm.hard_timeout = 100;
    assert_int_equal(tables_flow_mod(w->t, &fm, 5 * SEC), 0);
    tables_expire(w->t, 10 * SEC, UINT32_MAX);
    assert_int_equal(tables_get(w->t, 0)->flows.n_flows, 1);
    change_set_end(false);
    assert_int_equal(tables_get(w->t, 0)->flows.n_flows, 1);
    uint64_t due = tables_expire(w->t, 10 * SEC, UINT32_MAX);
    assert_in_range(due, 10 * SEC + 1, 10 * SEC + FLOW_CLOCK_NS);
    assert_int_equal(tables_expire(w->t, due, UINT32_MAX), 0);
    assert_int_equal(tables_get(w->t, 0)->flows.n_flows, 0);
    rcu_wait();
    assert_int_equal(w->removed, 1);
    assert_int_equal(w->removed_sum, OFPRR_HARD_TIMEOUT + 1);
    world_free(w);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_undone_after_its_time),
        cmocka_unit_test(test_undo_restores),
        cmocka_unit_test(test_commit_equals_single_changes),
        cmocka_unit_test(test_full_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
