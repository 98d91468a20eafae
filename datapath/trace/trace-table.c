/* SPDX-License-Identifier: Apache-2.0 */
/* A trace in the tables: which flow matched, and why those above it did not. */
#include "trace-inside.h"

#include <classifier/nearest.h>

static void
flow_match(const struct flow *f, struct fields *out)
{
    struct flow_key key;
    out->match = (struct of_match){.v = out->v};
    flow_key_of(f, &key);
    key_to_match(&key, &f->sub->mask, &out->match);
}

static void
put_missed(struct trace *t, const struct flow *f, const struct flow_key *key)
{
    struct fields match, wants, has;
    flow_match(f, &match);
    trace_mismatch(&match.match, key, &wants, &has);
    struct of_trace_missed e = {.depth = 1,
                                .table_id = f->table_id,
                                .priority = f->priority,
                                .cookie = flow_program(f)->cookie,
                                .match = match.match,
                                .wants = wants.match,
                                .has = has.match};
    trace_put(t, OFPTE_MISSED, &e);
}

void
trace_table(const struct step *s, uint8_t id, const struct path_step *at)
{
    const struct flow *f = at->flow;
    struct trace *t = trace_of(s);
    struct classifier *c = &tables_get(s->w->dp->tables, id)->flows;
    struct nearest near;
    struct fields match = {.match = {.n = 0}};
    classifier_nearest(c, &s->p->key, f ? f->priority : -1, t->to_compare, &near);
    uint32_t compared = near.higher - near.not_compared;
    t->to_compare -= compared < t->to_compare ? compared : t->to_compare;
    struct of_trace_table e = {.table_id = id,
                               .result = OFPTR_NOTHING,
                               .active_count = c->n_flows,
                               .higher = near.higher,
                               .not_compared = near.not_compared};
    if (f) {
        const struct program *prog = at->program;
        flow_match(f, &match);
        e.result = prog->miss ? OFPTR_MISS : OFPTR_FLOW;
        e.priority = f->priority;
        e.cookie = prog->cookie;
        e.match = match.match;
        e.instructions.raw = program_wire(prog);
    }
    trace_put(t, OFPTE_TABLE, &e);
    for (uint32_t i = 0; i < near.n; i++)
        put_missed(t, near.flow[i], &s->p->key);
    t->source = OFPTA_APPLY;
}

int
trace_meter(const struct step *s, const struct meter *m)
{
    struct band_look look[METER_MAX_BANDS];
    struct of_trace_band bands[METER_MAX_BANDS];
    void *v[METER_MAX_BANDS];
    struct flow_key before = s->p->key;
    struct fields was, is;
    int worst, drop = meter_look(m, s->p, s->w->now, look, &worst);
    trace_changes(&before, &s->p->key, &was, &is);
    for (uint32_t i = 0; i < m->n_bands; i++) {
        const struct band *b = &m->bands[i];
        bands[i] = (struct of_trace_band){.type = b->type,
                                          .prec_level = b->prec_level,
                                          .exceeded = look[i].exceeded,
                                          .rate = b->rate,
                                          .burst_size = b->burst,
                                          .tokens = look[i].tokens,
                                          .wait_ns = look[i].wait_ns};
        v[i] = &bands[i];
    }
    struct of_trace_meter e = {.depth = 1,
                               .verdict = worst < 0 ? OFPTM_PASS
                                          : drop    ? OFPTM_DROP
                                                    : OFPTM_REMARK,
                               .flags = m->flags,
                               .meter_id = m->id,
                               .band = (uint32_t)(worst + 1),
                               .before = was.match,
                               .after = is.match,
                               .bands = {.n = m->n_bands, .v = v}};
    trace_put(trace_of(s), OFPTE_METER, &e);
    return drop;
}
