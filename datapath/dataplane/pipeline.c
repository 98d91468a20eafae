/* SPDX-License-Identifier: Apache-2.0 */
/* A packet's way through tables, groups and meters (5.1, 5.9 to 5.12). */
#include <dataplane/pipeline-inside.h>

#include <flow/action-set.h>
#include <table/flow-cache.h>

#include <oflib/openflow10.h>

static int run_actions(struct step *s, struct act_list l);

/* ------------------------------------------------------------------ groups */

/* bucket: -1 counts for the whole group */
static void
count_group(const struct step *s, const struct group *g, int bucket)
{
    if (s->ahead)
        return;
    struct packet_wire wire = packet_on_wire(s->p);
    flow_counter_add(group_counter(g, s->w->id, bucket), wire.packets, wire.bytes);
}

static void
run_bucket_on(struct step *s, const struct group *g, const struct bucket *b, struct packet *p)
{
    struct step in = *s;
    in.p = p;
    in.depth++;
    in.last = in.in_set = true;
    count_group(s, g, (int)(b - g->buckets));
    WATCH(bucket(&in, g, b));
    run_actions(&in, program_apply(b->program));
    s->sent = true;
}

/* Not inlined: nested groups that need no copy then have no room for one on their stack. */
__attribute__((noinline)) static void
run_bucket_on_copy(struct step *s, const struct group *g, const struct bucket *b)
{
    struct packet copy;
    packet_clone(s->p, &copy);
    run_bucket_on(s, g, b, &copy);
}

/* A bucket's edits end with it (5.6.1), so it runs on a copy, unless nothing looks at the packet
 * afterwards (last). */
static void
run_bucket(struct step *s, const struct group *g, const struct bucket *b, bool last)
{
    if (!*s->buckets) {
        WATCH(no_more_buckets(s, g, b));
        step_drop(s, DROP_group);
        return;
    }
    --*s->buckets;
    if (last && !WATCHED) /* a trace compares the packet after each action */
        run_bucket_on(s, g, b, s->p);
    else
        run_bucket_on_copy(s, g, b);
}

/* last: nothing looks at the packet after the group. */
static void
run_group(struct step *s, uint32_t id, bool last)
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
            run_bucket(s, g, &g->buckets[i], last && i + 1 == g->n_buckets);
        return;
    }
    const struct bucket *b = pipeline_bucket(s->w->dp, g, s->p);
    WATCH(chosen(s, g, b));
    if (b)
        run_bucket(s, g, b, last);
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

/* Ahead: the queue for what enters by the packet's port. */
static void
set_queue(struct step *s, const struct act *a)
{
    s->p->queue = a->arg;
    s->p->queue_ports = act_queue_ports(a);
    if (s->ahead && !s->ahead->has_queue &&
        queue_at(a->arg, s->p->queue_ports, s->p->in_port) == a->arg)
        *s->ahead = (struct preview){s->ahead->goes, true, a->arg};
}

/* 0, or why the packet ends here (EDIT_DROP). last: nothing looks at the packet after it. */
static inline int
run_action(struct step *s, const struct act *a, bool last)
{
    switch (a->op) {
    case OFPAT_OUTPUT:
        if (a->arg != OFPP_TABLE)
            pipeline_output(s, a->arg, a->extra);
        else
            output_table(s);
        return 0;
    case OFPAT_GROUP: run_group(s, a->arg, last); return 0;
    case OFPAT_SET_QUEUE: set_queue(s, a); return 0;
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
        int drop = run_action(s, a, s->last && act_next(a) == l.end);
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
    s->in_set = true;
    WATCH(action_set(s, v, n));
    for (unsigned i = 0; i < n; i++) {
        WATCH(action(s, v[i]));
        int drop = run_action(s, v[i], i + 1 == n);
        WATCH(acted(s, v[i]));
        if (drop)
            return end_packet(s, drop);
    }
    return 0;
}

/* ------------------------------------------------------------------ tables */

static void
count_flow(const struct worker *w, struct flow *f, struct packet_wire wire)
{
    flow_counter_add(flow_counter_of(f, w->id), wire.packets, wire.bytes);
    /* The workers' clocks differ by a round, so one may find a later time here than its own. */
    if ((int32_t)(w->flow_now - load_relaxed(&f->used)) > 0)
        store_relaxed(&f->used, w->flow_now);
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
        s->sent &= s->w->standalone != STANDALONE_LEFT; /* as in missed_alone */
        pipeline_capture(s, OFPCAP_MISS, OFPP_ANY);
    }
    if (prog->meter_id && run_meter(s, prog->meter_id))
        return false;
    s->last = prog->goto_table == NO_TABLE && !prog->n_write && (prog->clear || !set->present);
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

/* The packet's path as far as the cache knows it, or NULL. */
static const struct flow_path *
path_of(struct worker *w, const struct packet *p)
{
    bool tells_all = w->cache && !p->fragment && !p->malformed;
    return tells_all ? flow_cache_path(w->cache, w->dp->tables, &p->key) : NULL;
}

/* The flow that the packet, n on the wire, meets in the table, which is the i-th on its way.
 * path: or NULL. */
static struct path_step
next_step(const struct step *s, const struct flow_path *path, unsigned i, uint8_t id, uint32_t n)
{
    const struct worker *w = s->w;
    struct tables *t = w->dp->tables;
    if (path && i < path->n && path->table[i] == id) {
        if (!s->ahead)
            tables_count_lookups(t, id, w->id, n, path->step[i].flow != NULL);
        return path->step[i];
    }
    struct flow *f =
        s->ahead ? tables_preview(t, id, &s->p->key) : tables_lookup(t, id, w->id, &s->p->key, n);
    return (struct path_step){f, f ? flow_program(f) : NULL};
}

/* Has the preview found out everything?  One that is watched is walked to its end. */
static bool
seen_enough(const struct step *s)
{
    return !WATCHED && s->ahead && s->ahead->goes && s->ahead->has_queue;
}

/* There isn't even a table-miss entry (5.4): drops the packet; controllers of 1.0 get it first. */
static void
no_match(struct step *s)
{
    pipeline_capture(s, OFPCAP_MISS, OFPP_ANY);
    if (!load_relaxed(&s->w->dp->tell_misses)) {
        step_drop(s, DROP_no_match);
        return;
    }
    s->cookie = UINT64_MAX;
    s->reason = OFPR10_TABLE_MISS;
    pipeline_output_controller(s, OFPCML_NO_BUFFER);
}

/* As if the table had an entry of the lowest priority that writes OFPP_NORMAL to the action set, where that
 * has no output.  What earlier tables have sent does not count. */
static void
missed_alone(struct step *s)
{
    pipeline_capture(s, OFPCAP_MISS, OFPP_ANY);
    s->missed = true;
    s->sent = false;
}

static void
run_tables(struct step *s)
{
    struct action_set set;
    action_set_clear(&set);
    const struct flow_path *path = path_of(s->w, s->p);
    uint8_t id = 0;
    for (unsigned i = 0; id != NO_TABLE; i++) {
        struct packet_wire wire = packet_on_wire(s->p);
        struct path_step step = next_step(s, path, i, id, wire.packets);
        struct flow *f = step.flow;
        s->table_id = id;
        WATCH(table(s, id, f));
        if (!f && s->w->standalone) {
            missed_alone(s);
            break;
        }
        if (!f) {
            no_match(s);
            return;
        }
        if (!s->ahead)
            count_flow(s->w, f, wire);
        if (!run_program(s, step.program, &set) || seen_enough(s))
            return;
        id = step.program->goto_table;
    }
    if (set.present && run_action_set(s, &set))
        return;
    if (s->missed && !s->sent) {
        WATCH(standalone(s));
        pipeline_output_normal(s);
    } else if (!s->sent) {
        step_drop(s, DROP_no_action);
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
        run_tables(&s);
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
    run_tables(&s);
    p->shared = shared; /* nobody kept the copy */
    return o;
}

void
pipeline_packet_out(struct worker *w, struct packet *p, const struct program *actions)
{
    uint16_t buckets = MAX_BUCKETS;
    struct step s = {.w = w,
                     .p = p,
                     .cookie = UINT64_MAX,
                     .reason = OFPR_ACTION,
                     .buckets = &buckets,
                     .last = true};
    run_actions(&s, program_apply(actions));
}
