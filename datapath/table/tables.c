/* SPDX-License-Identifier: Apache-2.0 */
#include "path-changes.h"
#include "tables-inside.h"

#include <shared/rcu.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct tables *
tables_new(unsigned n_tables, unsigned n_workers, const struct tables_ops *ops)
{
    struct tables *t = calloc(1, sizeof *t + n_tables * sizeof t->table[0]);
    if (!t)
        return NULL;
    t->ops = *ops;
    t->n_tables = n_tables;
    t->n_workers = n_workers;
    t->n_counters = flow_counters_slots(n_workers, ops->kernel);
    t->limits = limits_default(UINT64_MAX);
    t->timeouts = timeouts_new();
    size_t pages = (size_t)t->n_counters * FLOW_COUNTERS_STRIDE;
    t->counters = aligned_alloc(FLOW_COUNTERS_STRIDE, pages);
    if (t->counters)
        memset(t->counters, 0, pages);
    for (unsigned i = 0; i < n_tables; i++) {
        struct flow_table *ft = &t->table[i];
        classifier_init(&ft->flows);
        ft->flows.pause = ops->pause;
        ft->flows.pause_ctx = ops->ctx;
        table_features_all(&ft->features, (uint8_t)i, n_tables, tables_max_entries(t));
        snprintf(ft->features.name, sizeof ft->features.name, "table%u", i);
    }
    if (!t->timeouts || !t->counters) {
        tables_free(t);
        return NULL;
    }
    return t;
}

static int
free_flow(void *ctx, struct flow *f)
{
    struct flow_table *ft = ctx;
    classifier_remove(&ft->flows, f);
    free(f->timer);
    free(f->program);
    classifier_free_flow(f);
    return 0;
}

void
tables_free(struct tables *t)
{
    static const struct flow_key any;
    rcu_turn(); /* flows that still tell of their removal */
    for (unsigned i = 0; i < t->n_tables; i++) {
        t->table[i].flows.pause = NULL;
        classifier_each_within(&t->table[i].flows, &any, &any, free_flow, &t->table[i]);
        classifier_free(&t->table[i].flows);
    }
    timeouts_free(t->timeouts);
    free(t->counters);
    change_log_free(&t->log);
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
tables_preview(const struct tables *t, uint8_t id, const struct flow_key *key)
{
    return classifier_lookup(&t->table[id].flows, key, NULL);
}

unsigned long
tables_changes(const struct tables *t)
{
    return t->log.last;
}

uint64_t
tables_revision(const struct tables *t)
{
    return t->revision;
}

bool
tables_path_holds(const struct tables *t, const struct known_path *path, const struct flow_key *key,
                  const struct flow_key *mask, unsigned long from)
{
    struct rekeyed now = {.key = *key, .known = *mask};
    return path_is_unchanged(&t->log, path, &now, from, t->log.last);
}

void
tables_path_keeps(const struct known_path *path, const struct flow_key *key, struct flow_key *mask)
{
    struct flow_key ignored = {0};
    struct rekeyed now = {.key = *key, .known = *mask, .wc = &ignored};
    for (unsigned i = 0; i + 1 < path->n; i++) {
        if (!(path->rekeys >> i & 1))
            continue;
        program_rekey(path->step[i].program, &now);
        for (unsigned k = 0; k < KEY_WORDS; k++)
            mask->w[k] &= now.known.w[k] & ~(now.key.w[k] ^ key->w[k]);
    }
}

int
tables_change_tells(const struct tables *t, unsigned long from, struct change_tells *to, unsigned n)
{
    return change_log_tells(&t->log, from, to, n);
}

void
tables_count_lookups(struct tables *t, uint8_t id, unsigned worker, uint64_t n, bool matched)
{
    struct table_counter *c = tables_counter_of(t, id, worker);
    counter_add(&c->lookups, n);
    counter_add(&c->matched, matched ? n : 0);
}

struct flow *
tables_lookup(struct tables *t, uint8_t id, unsigned worker, const struct flow_key *key, uint32_t n)
{
    struct flow *f = tables_preview(t, id, key);
    tables_count_lookups(t, id, worker, n, f != NULL);
    return f;
}

void
tables_kernel_flow(struct tables *t, struct flow *f, uint64_t packets, uint64_t bytes,
                   uint64_t used)
{
    uint32_t last = flow_clock(used);
    flow_counter_add(flow_counter_of(f, t->n_workers), packets, bytes);
    if (used && (int32_t)(last - load_relaxed(&f->used)) > 0)
        store_relaxed(&f->used, last);
}

void
tables_kernel_lookups(struct tables *t, uint8_t id, uint64_t n, bool matched)
{
    tables_count_lookups(t, id, t->n_workers, n, matched);
}

unsigned
tables_used(const struct tables *t, struct flow_key *bits)
{
    for (int i = 0; i < KEY_WORDS; i++)
        bits->w[i] = halves_load(&t->used.w[i]);
    return load_acquire(&t->used_serial);
}

struct table_counter
tables_counter(const struct tables *t, uint8_t id)
{
    struct table_counter sum = {0};
    for (unsigned i = 0; i < t->n_counters; i++) {
        const struct table_counter *c = tables_counter_of(t, id, i);
        sum.lookups += counter_read(&c->lookups);
        sum.matched += counter_read(&c->matched);
    }
    return sum;
}

/* ------------------------------------------------------------------ walking */

unsigned
tables_first(const struct flow_filter *q)
{
    return q->table_id == OFPTT_ALL ? 0 : q->table_id;
}

unsigned
tables_last(const struct tables *t, const struct flow_filter *q)
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

int
tables_each_within(struct tables *t, const struct flow_filter *filter, const struct flow_key *key,
                   const struct flow_key *mask, int (*each)(void *ctx, struct flow *f), void *ctx)
{
    struct filtered_walk w = {filter, each, ctx};
    int err = 0;
    for (unsigned i = tables_first(filter); i <= tables_last(t, filter) && !err; i++)
        err = classifier_each_within(&t->table[i].flows, key, mask, filter_one, &w);
    return err;
}

int
tables_each(struct tables *t, const struct flow_filter *filter,
            int (*each)(void *ctx, struct flow *f), void *ctx)
{
    struct flow_key key, mask;
    if (filter->table_id != OFPTT_ALL && !tables_get(t, filter->table_id))
        return OF_BAD_REQUEST(BAD_TABLE_ID);
    key_of_match(filter->match, &key, &mask);
    return tables_each_within(t, filter, &key, &mask, each, ctx);
}

/* ------------------------------------------------------------------ flows that go */

uint64_t
tables_expire(struct tables *t, uint64_t now, uint32_t most)
{
    uint8_t reason;
    struct flow *f = NULL;
    t->now = now;
    for (; most && (f = timeouts_next(t->timeouts, now, &reason)); most--)
        flow_remove(t, f, reason);
    return f ? now : timeouts_due(t->timeouts, now);
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
without_group(void *ctx, struct flow *f)
{
    return flow_remove(ctx, f, OFPRR_GROUP_DELETE);
}

int
tables_group_mod(struct tables *t, const struct of_group_mod *m, uint32_t most, uint64_t now)
{
    bool deletes = m->command == OFPGC_DELETE;
    int err = deletes ? groups_check_delete(t->ops.groups, m->group_id) : 0;
    t->now = now;
    if (deletes && !err)
        err = groups_remove_users(t->ops.groups, m->group_id, most, without_group, t);
    if (err)
        return err == -ENOMEM ? OF_GROUP_MOD_FAILED(OUT_OF_GROUPS) : err;
    return groups_mod(t->ops.groups, m, now);
}

static int
without_meter(void *ctx, struct flow *f)
{
    return flow_remove(ctx, f, OFPRR_DELETE);
}

int
tables_meter_mod(struct tables *t, const struct of_meter_mod *m, uint32_t most, uint64_t now)
{
    int err = 0;
    t->now = now;
    if (m->command == OFPMC_DELETE)
        err = meters_remove_users(t->ops.meters, m->meter_id, most, without_meter, t);
    if (err)
        return err == -ENOMEM ? OF_METER_MOD_FAILED(OUT_OF_METERS) : err;
    return meters_mod(t->ops.meters, m, now);
}

static int
remove_silently(void *ctx, struct flow *f)
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
            classifier_each_within(&ft->flows, &any, &any, remove_silently, t);
        ft->features = v[i];
    }
}
