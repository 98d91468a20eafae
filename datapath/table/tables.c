/* SPDX-License-Identifier: Apache-2.0 */
#include "tables-inside.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define TOO_LONG OF_BAD_REQUEST(BAD_LEN)
#define ALL_FLAGS                                                                                  \
    (OFPFF_SEND_FLOW_REM | OFPFF_CHECK_OVERLAP | OFPFF_RESET_COUNTS | OFPFF_NO_PKT_COUNTS |        \
     OFPFF_NO_BYT_COUNTS)

struct tables *
tables_new(unsigned n_tables, unsigned n_workers, const struct tables_ops *ops)
{
    struct tables *t = calloc(1, sizeof *t + n_tables * sizeof t->table[0]);
    if (!t)
        return NULL;
    t->ops = *ops;
    t->n_tables = n_tables;
    t->n_workers = n_workers;
    t->limits = limits_default(UINT64_MAX);
    t->timeouts = timeouts_new();
    bool ok = t->timeouts != NULL;
    for (unsigned i = 0; i < n_tables; i++) {
        struct flow_table *ft = &t->table[i];
        classifier_init(&ft->flows);
        table_features_all(&ft->features, (uint8_t)i, n_tables, tables_max_entries(t));
        snprintf(ft->features.name, sizeof ft->features.name, "table%u", i);
        ft->counters = aligned_alloc(COUNTER_LINE, n_workers * sizeof *ft->counters);
        ok = ft->counters && ok;
        if (ft->counters)
            memset(ft->counters, 0, n_workers * sizeof *ft->counters);
    }
    if (ok)
        return t;
    tables_free(t);
    return NULL;
}

static int
free_flow(void *ctx, struct flow *f)
{
    struct flow_table *ft = ctx;
    classifier_remove(&ft->flows, f);
    free(f->timer);
    free(f->program);
    free(f);
    return 0;
}

void
tables_free(struct tables *t)
{
    static const struct flow_key any;
    for (unsigned i = 0; i < t->n_tables; i++) {
        classifier_each_within(&t->table[i].flows, &any, &any, free_flow, &t->table[i]);
        classifier_free(&t->table[i].flows);
        free(t->table[i].counters);
    }
    timeouts_free(t->timeouts);
    free(t);
}

void
tables_limit(struct tables *t, const struct limits *l)
{
    t->limits = *l;
    for (unsigned i = 0; i < t->n_tables; i++)
        t->table[i].features.max_entries = tables_max_entries(t);
}

uint32_t
tables_max_entries(const struct tables *t)
{
    return t->limits.table_flows < t->limits.flows ? t->limits.table_flows : t->limits.flows;
}

unsigned
tables_count(const struct tables *t)
{
    return t->n_tables;
}

struct flow_table *
tables_get(struct tables *t, uint8_t id)
{
    return id < t->n_tables && t->table[id].features.present ? &t->table[id] : NULL;
}

struct flow *
tables_lookup(struct tables *t, uint8_t id, unsigned worker, const struct flow_key *key)
{
    struct flow_table *ft = &t->table[id];
    struct flow *f = classifier_lookup(&ft->flows, key);
    counter_add(&ft->counters[worker].lookups, 1);
    counter_add(&ft->counters[worker].matched, f != NULL);
    return f;
}

uint32_t
tables_generation(const struct tables *t, uint8_t id)
{
    return load_acquire(&t->table[id].generation);
}

void
tables_count_cached(struct tables *t, uint8_t id, unsigned worker, bool matched)
{
    counter_add(&t->table[id].counters[worker].lookups, 1);
    counter_add(&t->table[id].counters[worker].matched, matched);
}

struct table_counter
tables_counter(const struct tables *t, uint8_t id)
{
    struct table_counter sum = {0};
    for (unsigned i = 0; i < t->n_workers; i++) {
        sum.lookups += counter_read(&t->table[id].counters[i].lookups);
        sum.matched += counter_read(&t->table[id].counters[i].matched);
    }
    return sum;
}

/* ------------------------------------------------------------------ walking */

static unsigned
first_table(const struct flow_filter *q)
{
    return q->table_id == OFPTT_ALL ? 0 : q->table_id;
}

static unsigned
last_table(const struct tables *t, const struct flow_filter *q)
{
    return q->table_id == OFPTT_ALL ? t->n_tables - 1 : q->table_id;
}

struct filtered_walk {
    const struct flow_filter *filter;
    int (*each)(void *ctx, struct flow *f);
    void *ctx;
};

static int
filter_one(void *ctx, struct flow *f)
{
    const struct filtered_walk *w = ctx;
    return flow_filter_passes(w->filter, f) ? w->each(w->ctx, f) : 0;
}

/* Key and mask are the filter's match. */
static int
each_flow(struct tables *t, const struct flow_filter *filter, const struct flow_key *key,
          const struct flow_key *mask, int (*each)(void *ctx, struct flow *f), void *ctx)
{
    struct filtered_walk w = {filter, each, ctx};
    int err = 0;
    for (unsigned i = first_table(filter); i <= last_table(t, filter) && !err; i++)
        err = classifier_each_within(&t->table[i].flows, key, mask, filter_one, &w);
    return err;
}

/* ------------------------------------------------------------------ flow-mod */

struct request {
    struct tables *t;
    const struct of_flow_mod *fm;
    struct flow_filter filter; /* of a modify or delete */
    struct flow_key key, mask;
    struct program *program; /* compiled for this request; taken or copied */
};

static int
compile(struct request *r, uint8_t table_id)
{
    int err = table_features_check(&r->t->table[table_id].features, r->fm);
    if (err)
        return err;
    struct compile_env env = r->t->ops.env;
    env.table_id = table_id;
    env.n_tables = (uint8_t)r->t->n_tables;
    env.has_match = true;
    env.match = &r->fm->match;
    err = compile_instructions(&env, &r->fm->instructions, &r->program);
    if (err)
        return err;
    r->program->cookie = r->fm->cookie;
    r->program->miss = !r->fm->match.n && !r->fm->priority;
    return 0;
}

static struct flow_timing
timing_of(const struct of_flow_mod *fm)
{
    return (struct flow_timing){fm->idle_timeout, fm->hard_timeout, (uint8_t)fm->flags};
}

/* The program was compiled for this request; who takes it frees it. */
static struct program *
take_program(struct request *r)
{
    struct program *p = r->program;
    r->program = NULL;
    return p;
}

#define TOLD_HEAD (8 + 8 + 48u) /* of a message, of a multipart reply, of an entry (7.3.5.2) */
#define ANY_MATCH 1024u         /* no match is so long */

static size_t
match_bytes(const struct flow_key *key, const struct flow_key *mask)
{
    struct of_oxm oxms[OXM_N];
    struct of_match m = {.v = oxms};
    size_t n = 4;
    key_to_match(key, mask, &m);
    for (uint32_t i = 0; i < m.n; i++)
        n += 4 + (size_t)m.v[i].row->bytes * (m.v[i].has_mask ? 2 : 1);
    return (n + 7) / 8 * 8;
}

/* Whether one message can tell of the flow: a flow-mod has room for a little more. */
static bool
can_be_told(const struct flow_key *key, const struct flow_key *mask, const struct program *p)
{
    size_t n = TOLD_HEAD + (size_t)p->n_wire;
    return n + ANY_MATCH <= OF_MSG_MAX || n + match_bytes(key, mask) <= OF_MSG_MAX;
}

static int
check_told(void *ctx, struct flow *f)
{
    struct request *r = ctx;
    struct flow_key key;
    flow_key_of(f, &key);
    return can_be_told(&key, &f->sub->mask, r->program) ? 0 : TOO_LONG;
}

/* Whether the program may come, in place of the old one (NULL: none). */
static bool
has_room(const struct tables *t, const struct program *p, const struct program *old)
{
    uint64_t more = program_size(p), less = old ? program_size(old) : 0;
    return more <= less || t->bytes + more - less <= t->limits.flow_bytes;
}

static int
add_new(struct request *r, struct flow_table *ft, const struct classifier_place *at)
{
    struct flow_timing timing = timing_of(r->fm);
    if (ft->flows.n_flows - ft->n_leaving >= ft->features.max_entries ||
        r->t->n_flows >= r->t->limits.flows || !has_room(r->t, r->program, NULL))
        return OF_FLOW_MOD_FAILED(TABLE_FULL);
    struct flow *f = classifier_new_flow(&ft->flows, at, &r->key, &r->mask, r->t->n_workers);
    if (!f)
        return -ENOMEM;
    f->priority = r->fm->priority;
    f->table_id = r->fm->table_id;
    return flow_add(r->t, f, take_program(r), &timing);
}

/* The same match and priority again: a new flow in the old one's place, which keeps its counters
 * unless OFPFF_RESET_COUNTS (6.4). */
static int
replace(struct request *r, struct flow *f)
{
    struct flow_timing timing = timing_of(r->fm);
    if (!has_room(r->t, r->program, flow_program(f)))
        return OF_FLOW_MOD_FAILED(TABLE_FULL);
    return flow_replace(r->t, f, take_program(r), &timing, r->fm->flags & OFPFF_RESET_COUNTS);
}

static int
add(struct request *r)
{
    struct flow_table *ft = tables_get(r->t, r->fm->table_id);
    if (!ft)
        return OF_FLOW_MOD_FAILED(BAD_TABLE_ID);
    struct classifier_place at = classifier_place(&ft->flows, &r->key, &r->mask);
    int err = compile(r, r->fm->table_id);
    if (err)
        return err;
    if (!can_be_told(&r->key, &r->mask, r->program))
        return TOO_LONG;
    if (r->fm->flags & OFPFF_CHECK_OVERLAP &&
        classifier_overlap(&ft->flows, &r->key, &r->mask, r->fm->priority))
        return OF_FLOW_MOD_FAILED(OVERLAP);
    struct flow *f = classifier_find(&at, &r->key, r->fm->priority);
    return f ? replace(r, f) : add_new(r, ft, &at);
}

/* The request's program with the flow's own cookie and kind. */
static struct program *
copy_program(const struct program *p, const struct program *old)
{
    struct program *c = malloc(program_size(p));
    if (!c)
        return NULL;
    memcpy(c, p, program_size(p)); /* nobody uses the request's own */
    c->cookie = old->cookie;
    c->miss = old->miss;
    return c;
}

static int
modify_one(void *ctx, struct flow *f)
{
    struct request *r = ctx;
    const struct program *old = flow_program(f);
    struct program *p = has_room(r->t, r->program, old) ? copy_program(r->program, old) : NULL;
    return p ? flow_modify(r->t, f, p, r->fm->flags & OFPFF_RESET_COUNTS) : -ENOMEM;
}

static int
delete_one(void *ctx, struct flow *f)
{
    struct request *r = ctx;
    return flow_remove(r->t, f, OFPRR_DELETE);
}

/* Calls `each` for the flows that the request means. */
static int
each_meant(struct request *r, bool strict, int (*each)(void *, struct flow *))
{
    if (!strict)
        return each_flow(r->t, &r->filter, &r->key, &r->mask, each, r);
    int err = 0;
    for (unsigned i = first_table(&r->filter); i <= last_table(r->t, &r->filter) && !err; i++) {
        struct classifier_place at = classifier_place(&r->t->table[i].flows, &r->key, &r->mask);
        struct flow *f = classifier_find(&at, &r->key, r->fm->priority);
        if (f && flow_filter_passes(&r->filter, f))
            err = each(r, f);
    }
    return err;
}

static int
modify(struct request *r, bool strict)
{
    if (!tables_get(r->t, r->fm->table_id))
        return OF_FLOW_MOD_FAILED(BAD_TABLE_ID);
    int err = compile(r, r->fm->table_id);
    if (!err && TOLD_HEAD + r->program->n_wire + ANY_MATCH > OF_MSG_MAX)
        err = each_meant(r, strict, check_told);
    return err ? err : each_meant(r, strict, modify_one);
}

static int delete (struct request *r, bool strict)
{
    uint8_t id = r->fm->table_id;
    if (id != OFPTT_ALL && !tables_get(r->t, id))
        return OF_FLOW_MOD_FAILED(BAD_TABLE_ID);
    return each_meant(r, strict, delete_one);
}

int
tables_flow_mod(struct tables *t, const struct of_flow_mod *fm, uint64_t now)
{
    struct request r; /* key and mask are written by key_of_match */
    int err;
    r.t = t;
    r.fm = fm;
    r.filter = flow_filter_of_flow_mod(fm);
    r.program = NULL;
    t->now = now;
    if (fm->flags & ~ALL_FLAGS)
        return OF_FLOW_MOD_FAILED(BAD_FLAGS);
    key_of_match(&fm->match, &r.key, &r.mask);
    switch (fm->command) {
    case OFPFC_ADD: err = add(&r); break;
    case OFPFC_MODIFY:
    case OFPFC_MODIFY_STRICT: err = modify(&r, fm->command == OFPFC_MODIFY_STRICT); break;
    case OFPFC_DELETE:
    case OFPFC_DELETE_STRICT: err = delete (&r, fm->command == OFPFC_DELETE_STRICT); break;
    default: err = OF_FLOW_MOD_FAILED(BAD_COMMAND);
    }
    free(r.program);
    return err == -ENOMEM ? OF_FLOW_MOD_FAILED(TABLE_FULL) : err;
}

/* ------------------------------------------------------------------ other ways to go */

uint64_t
tables_expire(struct tables *t, uint64_t now)
{
    uint8_t reason;
    t->now = now;
    for (struct flow *f; (f = timeouts_next(t->timeouts, now, &reason));)
        flow_remove(t, f, reason);
    return timeouts_due(t->timeouts, now);
}

void
tables_tidy(struct tables *t)
{
    for (unsigned i = 0; t->untidy && i < t->n_tables; i++)
        classifier_tidy(&t->table[i].flows);
    t->untidy = false;
}

int
tables_remove(struct tables *t, struct flow *f, uint8_t reason, uint64_t now)
{
    t->now = now;
    return flow_remove(t, f, reason);
}

static int
remove_untold(void *ctx, struct flow *f)
{
    f->flags &= (uint8_t)~OFPFF_SEND_FLOW_REM;
    return flow_remove(ctx, f, OFPRR_DELETE);
}

void
tables_configure(struct tables *t, const struct table_features *v, uint64_t now)
{
    static const struct flow_key any;
    t->now = now;
    for (unsigned i = 0; i < t->n_tables; i++) {
        struct flow_table *ft = &t->table[i];
        if (!table_features_same(&ft->features, &v[i]))
            classifier_each_within(&ft->flows, &any, &any, remove_untold, t);
        ft->features = v[i];
    }
}

/* ------------------------------------------------------------------ statistics */

int
tables_each(struct tables *t, const struct flow_filter *filter,
            int (*each)(void *ctx, struct flow *f), void *ctx)
{
    struct flow_key key, mask;
    if (filter->table_id != OFPTT_ALL && !tables_get(t, filter->table_id))
        return OF_BAD_REQUEST(BAD_TABLE_ID);
    key_of_match(filter->match, &key, &mask);
    return each_flow(t, filter, &key, &mask, each, ctx);
}
