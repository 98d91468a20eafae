/* SPDX-License-Identifier: Apache-2.0 */
/* A trace among actions: what each does to the packet, and the action set. */
#include "trace-inside.h"

/* Actions of the pipeline as actions of a message. */
struct bodies {
    unsigned n;
    union action_body body[ACTION_TYPES + OXM_N];
    void *v[ACTION_TYPES + OXM_N];
};

static void
bodies_of(const struct act *const acts[], unsigned n, struct bodies *out)
{
    out->n = n;
    for (unsigned i = 0; i < n; i++) {
        action_body(acts[i], &out->body[i]);
        out->v[i] = &out->body[i];
    }
}

/* ------------------------------------------------------------------ one */

static void
put_action(const struct step *s, const struct act *a, const struct flow_key *before,
           uint8_t ttl_before)
{
    const struct trace *t = trace_of(s);
    struct bodies b;
    struct fields was, is;
    bodies_of(&a, 1, &b);
    trace_changes(before, &s->p->key, &was, &is);
    struct of_trace_action e = {.depth = depth_of(s),
                                .source = s->depth ? OFPTA_BUCKET : t->source,
                                .ttl_before = ttl_before,
                                .ttl_after = trace_ttl(s->p),
                                .before = was.match,
                                .after = is.match,
                                .actions = {.n = 1, .v = b.v}};
    trace_put(trace_of(s), OFPTE_ACTION, &e);
}

/* An action that forwards is reported before it does, because its consequences follow. */
void
trace_action(const struct step *s, const struct act *a)
{
    struct trace *t = trace_of(s);
    t->before = s->p->key;
    t->ttl_before = trace_ttl(s->p);
    if (!action_rows[a->op].edit)
        put_action(s, a, &s->p->key, t->ttl_before);
}

void
trace_acted(const struct step *s, const struct act *a)
{
    const struct trace *t = trace_of(s);
    if (action_rows[a->op].edit)
        put_action(s, a, &t->before, t->ttl_before);
}

/* ------------------------------------------------------------------ the action set */

static void
put_set(const struct step *s, enum ofp_trace_set what, const struct act *const v[], unsigned n)
{
    struct bodies b;
    bodies_of(v, n, &b);
    struct of_trace_action_set e = {
        .depth = what != OFPTS_EXECUTED, .what = (uint8_t)what, .actions = {.n = b.n, .v = b.v}};
    trace_put(trace_of(s), OFPTE_ACTION_SET, &e);
}

void
trace_written(const struct step *s, const struct program *prog, const struct action_set *set)
{
    const struct act *v[ACTION_TYPES + OXM_N] = {NULL};
    if (prog->clear)
        put_set(s, OFPTS_CLEARED, v, 0);
    if (prog->n_write)
        put_set(s, OFPTS_WRITTEN, v, action_set_order(set, v));
}

void
trace_action_set(const struct step *s, const struct act *const v[], unsigned n)
{
    trace_of(s)->source = OFPTA_SET;
    put_set(s, OFPTS_EXECUTED, v, n);
}

void
trace_metadata(const struct step *s, const struct program *prog)
{
    struct of_trace_metadata e = {.depth = 1, .metadata = of_get64(s->p->key.metadata)};
    if (prog->has_metadata)
        trace_put(trace_of(s), OFPTE_METADATA, &e);
}
