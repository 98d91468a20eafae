/* SPDX-License-Identifier: Apache-2.0 */
/* A packet's way through tables, groups and meters (5.1, 5.9 to 5.12). */
#include "pipeline-inside.h"

#include <table/action-set.h>
#include <table/flow-cache.h>

static int run_actions(struct step *s, struct act_list l);

/* ------------------------------------------------------------------ groups */

/* bucket: -1 counts for the whole group */
static void
count_group(const struct step *s, const struct group *g, int bucket)
{
    if (s->ahead)
        return;
    struct flow_counter *c = group_counter(g, s->w->id, bucket);
    counter_add(&c->packets, packet_segments(s->p));
    counter_add(&c->bytes, packet_wire_bytes(s->p));
}

/* On a copy: a bucket's edits end with it (5.6.1). */
static void
run_bucket(struct step *s, const struct group *g, const struct bucket *b)
{
    struct packet copy;
    if (!*s->buckets) {
        WATCH(no_more_buckets(s, g, b));
        step_drop(s, DROP_group);
        return;
    }
    --*s->buckets;
    packet_clone(s->p, &copy);
    struct step in = *s;
    in.p = &copy;
    in.depth++;
    count_group(s, g, (int)(b - g->buckets));
    WATCH(bucket(&in, g, b));
    run_actions(&in, program_apply(b->program));
    s->sent = true;
}

static void
run_group(struct step *s, uint32_t id)
{
    const struct group *g = groups_find(s->w->dp->groups, id);
    s->sent = true;
    WATCH(group(s, id, g));
    if (!g || s->depth >= GROUP_MAX_DEPTH) {
        step_drop(s, DROP_group);
        return;
    }
    count_group(s, g, -1);
    if (g->type == OFPGT_ALL) {
        for (uint32_t i = 0; i < g->n_buckets; i++)
            run_bucket(s, g, &g->buckets[i]);
        return;
    }
    const struct bucket *b = pipeline_bucket(s->w->dp, g, s->p);
    WATCH(chosen(s, g, b));
    if (b)
        run_bucket(s, g, b);
    else
        step_drop(s, DROP_group);
}

/* ------------------------------------------------------------------ actions */

/* A copy goes through the tables: the actions that follow don't see what happens to it there. */
static void
output_table(struct step *s)
{
    struct packet copy;
    packet_clone(s->p, &copy);
    s->sent = true;
    if (!WATCHED) /* nobody traces a packet-out, and only that can have the action */
        pipeline_packet(s->w, &copy);
}

static void
set_queue(struct step *s, uint32_t queue)
{
    s->p->queue = queue;
    if (s->ahead && !s->ahead->has_queue)
        *s->ahead = (struct preview){s->ahead->goes, true, queue};
}

/* 0, or why the packet ends here (EDIT_DROP). */
static int
run_action(struct step *s, const struct act *a)
{
    switch (a->op) {
    case OFPAT_OUTPUT:
        if (a->arg != OFPP_TABLE)
            pipeline_output(s, a->arg, a->extra);
        else
            output_table(s);
        return 0;
    case OFPAT_GROUP: run_group(s, a->arg); return 0;
    case OFPAT_SET_QUEUE: set_queue(s, a->arg); return 0;
    default: return action_rows[a->op].edit(s->p, a);
    }
}

/* An action failed, so the packet is dropped.  If its TTL ran out, controllers get it as it was
 * before the action (OFPR_INVALID_TTL, 5.12). */
static int
end_packet(struct step *s, int drop)
{
    if (drop == EDIT_DROP(ttl)) {
        s->reason = OFPR_INVALID_TTL;
        pipeline_output_controller(s, OFPCML_NO_BUFFER);
    }
    step_drop(s, (enum drop_reason)(drop - 1));
    s->sent = true;
    return drop;
}

static int
run_actions(struct step *s, struct act_list l)
{
    ACTS_EACH(a, l) {
        if (WATCHED && watch_full(s))
            return 0;
        WATCH(action(s, a));
        int drop = run_action(s, a);
        WATCH(acted(s, a));
        if (drop)
            return end_packet(s, drop);
    }
    return 0;
}

static int
run_action_set(struct step *s, const struct action_set *set)
{
    const struct act *v[ACTION_TYPES + OXM_N];
    unsigned n = action_set_order(set, v);
    WATCH(action_set(s, v, n));
    for (unsigned i = 0; i < n; i++) {
        WATCH(action(s, v[i]));
        int drop = run_action(s, v[i]);
        WATCH(acted(s, v[i]));
        if (drop)
            return end_packet(s, drop);
    }
    return 0;
}

/* ------------------------------------------------------------------ tables */

static void
count_flow(const struct worker *w, struct flow *f, const struct packet *p)
{
    struct flow_counter *c = flow_counter_of(f, w->id);
    counter_add(&c->packets, packet_segments(p));
    counter_add(&c->bytes, packet_wire_bytes(p));
    /* Write only when time has moved on: every worker reads this cache line for each packet.  The
     * workers' clocks differ by a round, so one may find a later time here than its own. */
    uint32_t ms = (uint32_t)(w->now / 1000000);
    if ((int32_t)(ms - load_relaxed(&f->used)) > 0)
        store_relaxed(&f->used, ms);
}

static void
write_metadata(struct packet *p, const struct program *prog)
{
    uint64_t old = of_get64(p->key.metadata);
    of_set64(p->key.metadata, (old & ~prog->metadata_mask) | prog->metadata);
}

static int
run_meter(struct step *s, uint32_t id)
{
    struct meter *m = s->ahead && !WATCHED ? NULL : meters_find(s->w->dp->meters, id);
    int drop = !m ? 0 : WATCHED ? watch_meter(s, m) : meter_run(m, s->w->id, s->p, s->w->now);
    return drop ? end_packet(s, drop) : 0;
}

/* One table's instructions.  False: the packet ends here. */
static bool
run_program(struct step *s, const struct program *prog, struct action_set *set)
{
    s->cookie = prog->cookie;
    s->reason = OFPR_ACTION;
    if (prog->miss) {
        s->reason = OFPR_NO_MATCH;
        pipeline_capture(s, OFPCAP_MISS, OFPP_ANY);
    }
    if (prog->meter_id && run_meter(s, prog->meter_id))
        return false;
    if (prog->n_apply && run_actions(s, program_apply(prog)))
        return false;
    if (prog->clear)
        action_set_clear(set);
    if (prog->n_write)
        action_set_write(set, program_write(prog));
    WATCH(written(s, prog, set));
    if (prog->has_metadata)
        write_metadata(s->p, prog);
    WATCH(metadata(s, prog));
    return true;
}

/* The flows that packets with this key meet, as far as the cache remembers them. */
struct path {
    struct cache_entry *entry; /* NULL: not remembered, or not from here on */
    bool known;                /* follow the entry; else fill it in */
    uint8_t step;
};

static struct path
path_of(struct worker *w, const struct packet *p)
{
    struct path path = {0};
    if (w->cache && !p->fragment && !p->malformed) {
        path.entry = flow_cache_get(w->cache, w->dp->tables, &p->key);
        path.known = path.entry->n;
    }
    return path;
}

static struct flow *
next_flow(const struct step *s, struct path *path, uint8_t id)
{
    const struct worker *w = s->w;
    struct tables *t = w->dp->tables;
    struct cache_entry *e = path->entry;
    if (e && path->known && path->step < e->n && e->table[path->step] == id) {
        struct flow *f = e->flow[path->step++];
        if (!s->ahead)
            tables_count_cached(t, id, w->id, f != NULL);
        return f;
    }
    uint32_t generation = tables_generation(t, id);
    struct flow *f = s->ahead ? classifier_lookup(&tables_get(t, id)->flows, &s->p->key)
                              : tables_lookup(t, id, w->id, &s->p->key);
    if (e && !path->known)
        flow_cache_step(e, id, generation, f);
    return f;
}

/* Has the preview found out everything?  A path that is being remembered is walked to its end, and
 * so is one that is watched. */
static bool
seen_enough(const struct step *s, const struct path *path)
{
    return !WATCHED && s->ahead && s->ahead->goes && s->ahead->has_queue &&
           (path->known || !path->entry);
}

static void
run_tables(struct step *s)
{
    struct action_set set;
    action_set_clear(&set);
    struct path path = path_of(s->w, s->p);
    for (uint8_t id = 0;;) {
        struct flow *f = next_flow(s, &path, id);
        s->table_id = id;
        WATCH(table(s, id, f));
        if (!f) { /* there isn't even a table-miss entry (5.4) */
            pipeline_capture(s, OFPCAP_MISS, OFPP_ANY);
            step_drop(s, DROP_no_match);
            return;
        }
        if (!s->ahead)
            count_flow(s->w, f, s->p);
        const struct program *prog = flow_program(f);
        if (!run_program(s, prog, &set) || seen_enough(s, &path))
            return;
        if (prog->key_effect == KEY_UNKNOWN)
            path.entry = NULL;
        if ((id = prog->goto_table) == NO_TABLE)
            break;
    }
    if (set.present && run_action_set(s, &set))
        return;
    if (!s->sent)
        step_drop(s, DROP_no_action);
}

/* Without a controller the switch may be a plain learning switch (6.3.3). */
static void
run_pipeline(struct step *s)
{
    if (s->w->standalone) {
        WATCH(standalone(s));
        pipeline_output_normal(s);
    } else {
        run_tables(s);
    }
}

static bool
is_unwanted_fragment(const struct worker *w, const struct packet *p)
{
    return p->fragment && load_relaxed(&w->dp->frag) == OFPC_FRAG_DROP;
}

void
pipeline_packet(struct worker *w, struct packet *p)
{
    uint16_t buckets = MAX_BUCKETS;
    struct step s = {.w = w, .p = p, .cookie = UINT64_MAX, .buckets = &buckets};
    if (is_unwanted_fragment(w, p))
        worker_drop_early(w, DROP_fragment, p);
    else
        run_pipeline(&s);
}

struct preview
pipeline_preview(struct worker *w, struct packet *p)
{
    struct preview o = {0};
    uint16_t buckets = MAX_BUCKETS;
    struct packet copy;
    struct step s = {.w = w, .p = &copy, .buckets = &buckets, .ahead = &o};
    bool shared = p->shared;
    if (is_unwanted_fragment(w, p)) {
        WATCH(drop(&s, DROP_fragment));
        return o;
    }
    packet_clone(p, &copy);
    run_pipeline(&s);
    p->shared = shared; /* nobody kept the copy */
    return o;
}

void
pipeline_packet_out(struct worker *w, struct packet *p, const struct program *actions)
{
    uint16_t buckets = MAX_BUCKETS;
    struct step s = {
        .w = w, .p = p, .cookie = UINT64_MAX, .reason = OFPR_ACTION, .buckets = &buckets};
    run_actions(&s, program_apply(actions));
}
