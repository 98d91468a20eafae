/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <oflib/text.h>

#include <stdio.h>

static bool
same_count(struct flow_counter got, struct oracle_counter expected, const char *what, uint64_t id,
           char *why)
{
    if (got.packets == expected.packets && got.bytes == expected.bytes)
        return true;
    snprintf(why, 256, "counters of %s %llx: %llu packets %llu bytes, not %llu and %llu", what,
             (unsigned long long)id, (unsigned long long)got.packets, (unsigned long long)got.bytes,
             (unsigned long long)expected.packets, (unsigned long long)expected.bytes);
    return false;
}

/* ------------------------------------------------------------------ flows */

struct walk {
    struct fixture *fx;
    uint32_t n;
    bool same;
    char *why;
};

static int
compare_flow(void *ctx, struct flow *f)
{
    struct walk *w = ctx;
    const struct oracle_flow *s = w->fx->oracle.flows;
    while (s && s->cookie != f->program->cookie)
        s = s->next;
    w->n++;
    w->same = s && s->table_id == f->table_id && s->priority == f->priority && s->flags == f->flags;
    if (!w->same) {
        snprintf(w->why, 256, "flow %llx should not be there",
                 (unsigned long long)f->program->cookie);
        return 1;
    }
    struct oracle_counter c = s->count;
    if (s->flags & OFPFF_NO_PKT_COUNTS)
        c.packets = UINT64_MAX;
    if (s->flags & OFPFF_NO_BYT_COUNTS)
        c.bytes = UINT64_MAX;
    w->same = same_count(tables_flow_counter(w->fx->dp->tables, f), c, "flow", s->cookie, w->why);
    return !w->same;
}

static bool
compare_flows(struct fixture *fx, char *why)
{
    static const struct of_match any;
    struct flow_filter all = {
        .table_id = OFPTT_ALL, .out_port = OFPP_ANY, .out_group = OFPG_ANY, .match = &any};
    struct walk w = {.fx = fx, .same = true, .why = why};
    uint32_t n = 0;
    tables_each(fx->dp->tables, &all, compare_flow, &w);
    for (const struct oracle_flow *f = fx->oracle.flows; f; f = f->next)
        n++;
    if (w.same && w.n != n) {
        snprintf(why, 256, "%u flows, not %u", w.n, n);
        w.same = false;
    }
    for (uint8_t i = 0; w.same && i < FIXTURE_TABLES; i++) {
        struct table_counter c = tables_counter(fx->dp->tables, i);
        w.same = same_count((struct flow_counter){c.lookups, c.matched},
                            (struct oracle_counter){fx->oracle.lookups[i], fx->oracle.matched[i]},
                            "table (lookups, matched)", i, why);
    }
    return w.same;
}

/* ------------------------------------------------------------------ groups */

/* Select buckets with a weight count together. */
static bool
compare_group(const struct fixture *fx, const struct oracle_group *s, char *why)
{
    const struct group *g = groups_find(fx->dp->groups, s->id);
    if (!g || g->n_buckets != s->buckets->n) {
        snprintf(why, 256, "group %u is not there", s->id);
        return false;
    }
    struct flow_counter got[2] = {{0, 0}};
    struct oracle_counter expected[2] = {{0, 0}};
    for (uint32_t i = 0; i < g->n_buckets; i++) {
        struct flow_counter c = groups_counter(fx->dp->groups, g, (int)i);
        bool one = g->type == OFPGT_SELECT && g->buckets[i].weight;
        got[one].packets += c.packets;
        got[one].bytes += c.bytes;
        expected[one].packets += s->bucket[i].packets;
        expected[one].bytes += s->bucket[i].bytes;
        if (g->type != OFPGT_SELECT && !same_count(c, s->bucket[i], "bucket", i, why))
            return false;
    }
    return same_count(groups_counter(fx->dp->groups, g, -1), s->count, "group", s->id, why) &&
           same_count(got[0], expected[0], "buckets of group", s->id, why) &&
           same_count(got[1], expected[1], "chosen buckets of group", s->id, why);
}

bool
fixture_compare_counters(struct fixture *fx, char *why)
{
    uint32_t n = 0;
    bool same = compare_flows(fx, why);
    for (const struct oracle_group *g = fx->oracle.groups; same && g; g = g->next, n++)
        same = compare_group(fx, g, why);
    if (same && n != groups_count(fx->dp->groups)) {
        snprintf(why, 256, "%u groups, not %u", groups_count(fx->dp->groups), n);
        same = false;
    }
    return same;
}

/* ------------------------------------------------------------------ for people */

static void
show_flow(struct of_wr *w, const struct oracle_flow *f)
{
    of_printf(w, "table %u prio %u cookie %llx: ", f->table_id, f->priority,
              (unsigned long long)f->cookie);
    of_print_match(w, f->match);
    of_printf(w, " -> ");
    of_print_list(w, &of_list_instructions, f->instructions);
    of_printf(w, "\n");
}

static void
show_group(struct of_wr *w, const struct oracle_group *g)
{
    of_printf(w, "group %u type %u:\n", g->id, g->type);
    for (uint32_t i = 0; i < g->buckets->n; i++) {
        const struct of_bucket *b = OF_AT(g->buckets, i, struct of_bucket);
        of_printf(w, "  weight %u watch port %d group %d: ", b->weight, (int)b->watch_port,
                  (int)b->watch_group);
        of_print_list(w, &of_list_actions, &b->actions);
        of_printf(w, "\n");
    }
}

void
fixture_show(const struct fixture *fx)
{
#define NAME(name, text, help) text,
    static const char *const names[] = {DROP_ROWS(NAME)};
    struct of_wr w = of_wr_grow(16u << 20);
    for (uint32_t i = 0; i < fx->n_rooms; i++) {
        of_printf(&w, "packet: ");
        of_print_hex(&w, (struct of_bytes){fx->shown[i].data, fx->shown[i].n});
        of_printf(&w, fx->shown[i].csum_start ? " (partial checksum)\n" : "\n");
    }
    for (const struct oracle_port *p = fx->world.port; p < fx->world.port + ORACLE_PORTS; p++)
        if (p->no && (p->config || p->link_down))
            of_printf(&w, "port %u config %x link_down %d\n", p->no, p->config, p->link_down);
    for (int i = 0; i < DROP_N; i++)
        if (fx->drops[i])
            of_printf(&w, "dropped: %s: %llu\n", names[i], (unsigned long long)fx->drops[i]);
    for (uint8_t t = 0; t < FIXTURE_TABLES; t++)
        for (const struct oracle_flow *f = fx->oracle.flows; f; f = f->next)
            if (f->table_id == t)
                show_flow(&w, f);
    for (const struct oracle_group *g = fx->oracle.groups; g; g = g->next)
        show_group(&w, g);
    fwrite(w.buf, 1, w.len, stderr);
    of_wr_free(&w);
}
