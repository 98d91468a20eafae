/* SPDX-License-Identifier: Apache-2.0 */
/* A packet's way through tables, groups and meters (5.1, 5.9 to 5.12). */
#include <dataplane/pipeline-inside.h>

#include <flow/action-set.h>
#include <table/flow-cache.h>

#include <oflib/openflow10.h>

/* Where groups nest, and so bodies end: the functions of workers, and of dry runs. */
static int actions_live(struct step *s, struct act_list l);
static int actions_dry(struct step *s, struct act_list l);
static void group_live(struct step *s, uint32_t id, bool last);
static void group_dry(struct step *s, uint32_t id, bool last);

PIPELINE_BODY int
run_actions(struct step *s, struct act_list l, const bool dry)
{
    return dry ? actions_dry(s, l) : actions_live(s, l);
}

PIPELINE_BODY void
output(struct step *s, uint32_t to, uint16_t max_len, const bool dry)
{
    if (dry)
        pipeline_output_dry(s, to, max_len);
    else
        pipeline_output(s, to, max_len);
}

/* ------------------------------------------------------------------ groups */

/* bucket: -1 counts for the whole group */
static void
count_group(const struct step *s, const struct group *g, int bucket)
{
    struct packet_wire wire = packet_on_wire(s->p);
    flow_counter_add(group_counter(g, s->w->id, bucket), wire.packets, wire.bytes);
}

PIPELINE_BODY void
run_bucket_on(struct step *s, const struct group *g, const struct bucket *b, struct packet *p,
              const bool dry)
{
    struct step in = *s;
    in.p = p;
    in.depth++;
    in.last = in.in_set = true;
    if (!dry)
        count_group(s, g, (int)(b - g->buckets));
    TRACE(bucket, &in, g, b);
    run_actions(&in, program_apply(b->program), dry);
    s->sent = true;
}

/* Not inlined: nested groups that need no copy then have no room for one on their stack. */
__attribute__((noinline)) static void
bucket_on_copy_live(struct step *s, const struct group *g, const struct bucket *b)
{
    struct packet copy;
    packet_clone(s->p, &copy);
    run_bucket_on(s, g, b, &copy, false);
}

__attribute__((noinline)) static void
bucket_on_copy_dry(struct step *s, const struct group *g, const struct bucket *b)
{
    const bool dry = true;
    struct packet copy;
    packet_clone(s->p, &copy);
    TRACE(fork, s);
    run_bucket_on(s, g, b, &copy, dry);
    TRACE(join, s);
}

/* A bucket's edits end with it (5.6.1), so it runs on a copy, unless nothing looks at the packet
 * afterwards (last); a trace always does. */
PIPELINE_BODY void
run_bucket(struct step *s, const struct group *g, const struct bucket *b, bool last, const bool dry)
{
    if (!*s->buckets) {
        TRACE(no_more_buckets, s, g, b);
        step_drop(s, DROP_group);
        return;
    }
    --*s->buckets;
    if (dry)
        bucket_on_copy_dry(s, g, b);
    else if (last)
        run_bucket_on(s, g, b, s->p, dry);
    else
        bucket_on_copy_live(s, g, b);
}

/* last: nothing looks at the packet after the group. */
PIPELINE_BODY void
run_group(struct step *s, uint32_t id, bool last, const bool dry)
{
    const struct group *g = groups_find(s->w->dp->groups, id);
    s->sent = true;
    TRACE(group, s, id, g);
    if (!g || s->depth >= GROUP_MAX_DEPTH) {
        step_drop(s, DROP_group);
        return;
    }
    if (!dry)
        count_group(s, g, -1);
    if (g->type == OFPGT_ALL) {
        for (uint32_t i = 0; i < g->n_buckets && !step_enough(s, dry); i++)
            run_bucket(s, g, &g->buckets[i], last && i + 1 == g->n_buckets, dry);
        return;
    }
    TRACE(choose, s, g);
    const struct bucket *b = pipeline_bucket(s->w->dp, g, s->p);
    TRACE(chosen, s, g, b);
    if (b)
        run_bucket(s, g, b, last, dry);
    else
        step_drop(s, DROP_group);
}

static void
group_live(struct step *s, uint32_t id, bool last)
{
    run_group(s, id, last, false);
}

static void
group_dry(struct step *s, uint32_t id, bool last)
{
    run_group(s, id, last, true);
}

/* ------------------------------------------------------------------ actions */

/* A copy goes through the tables: the actions that follow don't see what happens to it there.  Only a packet-out
 * can have the action, and none runs dry. */
__attribute__((noinline)) static void
output_table(struct step *s)
{
    struct packet copy;
    packet_clone(s->p, &copy);
    s->sent = true;
    pipeline_packet(s->w, &copy);
}

/* 0, or why the packet ends here (EDIT_DROP). last: nothing looks at the packet after it. */
PIPELINE_BODY int
run_action(struct step *s, const struct act *a, bool last, const bool dry)
{
    switch (a->op) {
    case OFPAT_OUTPUT:
        if (a->arg != OFPP_TABLE)
            output(s, a->arg, a->extra, dry);
        else if (!dry)
            output_table(s);
        else
            TRACE(table_again, s);
        return 0;
    case OFPAT_GROUP:
        if (dry)
            group_dry(s, a->arg, last);
        else
            group_live(s, a->arg, last);
        return 0;
    case OFPAT_SET_QUEUE:
        s->p->queue = a->arg;
        s->p->queue_ports = act_queue_ports(a);
        TRACE(queue, s, a);
        return 0;
    default: return step_edit(s, a, dry);
    }
}

/* An action failed, so the packet is dropped.  If its TTL ran out, controllers get it as it was
 * before the action (OFPR_INVALID_TTL, 5.12). */
PIPELINE_BODY int
end_packet(struct step *s, int drop, const bool dry)
{
    if (drop == EDIT_DROP(ttl)) {
        s->reason = OFPR_INVALID_TTL;
        output(s, OFPP_CONTROLLER, OFPCML_NO_BUFFER, dry);
    }
    step_drop(s, (enum drop_reason)(drop - 1));
    s->sent = true;
    return drop;
}

PIPELINE_BODY int
actions_body(struct step *s, struct act_list l, const bool dry)
{
    ACTS_EACH(a, l) {
        if (step_enough(s, dry))
            return 0;
        TRACE(action, s, a);
        int drop = run_action(s, a, s->last && act_next(a) == l.end, dry);
        TRACE(acted, s, a);
        if (drop)
            return end_packet(s, drop, dry);
    }
    return 0;
}

static int
actions_live(struct step *s, struct act_list l)
{
    return actions_body(s, l, false);
}

static int
actions_dry(struct step *s, struct act_list l)
{
    return actions_body(s, l, true);
}

PIPELINE_BODY int
run_action_set(struct step *s, const struct action_set *set, const bool dry)
{
    const struct act *v[ACTION_TYPES + OXM_N];
    unsigned n = action_set_order(set, v);
    s->in_set = true;
    TRACE(action_set, s, v, n);
    for (unsigned i = 0; i < n; i++) {
        TRACE(action, s, v[i]);
        int drop = run_action(s, v[i], i + 1 == n, dry);
        TRACE(acted, s, v[i]);
        if (drop)
            return end_packet(s, drop, dry);
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

/* A dry run whose trace has nothing for meters passes them. */
PIPELINE_BODY int
run_meter(struct step *s, uint32_t id, const bool dry)
{
    struct meter *m = dry && !s->dry->on->meter ? NULL : meters_find(s->w->dp->meters, id);
    int drop = !m ? 0 : dry ? s->dry->on->meter(s, m) : meter_run(m, s->w->id, s->p, s->w->now);
    return drop ? end_packet(s, drop, dry) : 0;
}

/* One table's instructions.  False: the packet ends here. */
PIPELINE_BODY bool
run_program(struct step *s, const struct program *prog, struct action_set *set, const bool dry)
{
    s->cookie = prog->cookie;
    s->reason = OFPR_ACTION;
    if (prog->miss) {
        s->reason = OFPR_NO_MATCH;
        s->sent &= s->w->standalone != STANDALONE_LEFT; /* as in missed_alone */
        pipeline_capture(s, OFPCAP_MISS, OFPP_ANY, dry);
    }
    if (prog->meter_id && run_meter(s, prog->meter_id, dry))
        return false;
    s->last = prog->goto_table == NO_TABLE && !prog->n_write && (prog->clear || !set->present);
    if (prog->n_apply && run_actions(s, program_apply(prog), dry))
        return false;
    if (prog->clear)
        action_set_clear(set);
    if (prog->n_write)
        action_set_write(set, program_write(prog));
    TRACE(written, s, prog, set);
    if (prog->has_metadata)
        write_metadata(s->p, prog);
    TRACE(metadata, s, prog);
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
PIPELINE_BODY struct path_step
next_step(const struct step *s, const struct flow_path *path, unsigned i, uint8_t id, uint32_t n,
          const bool dry)
{
    const struct worker *w = s->w;
    struct tables *t = w->dp->tables;
    if (path && i < path->n && path->table[i] == id) {
        if (!dry)
            tables_count_lookups(t, id, w->id, n, path->step[i].flow != NULL);
        return path->step[i];
    }
    struct flow *f =
        dry ? tables_preview(t, id, &s->p->key) : tables_lookup(t, id, w->id, &s->p->key, n);
    return (struct path_step){f, f ? flow_program(f) : NULL};
}

/* There isn't even a table-miss entry (5.4): drops the packet; controllers of 1.0 get it first. */
PIPELINE_BODY void
no_match(struct step *s, const bool dry)
{
    pipeline_capture(s, OFPCAP_MISS, OFPP_ANY, dry);
    if (!load_relaxed(&s->w->dp->tell_misses)) {
        step_drop(s, DROP_no_match);
        return;
    }
    s->cookie = UINT64_MAX;
    s->reason = OFPR10_TABLE_MISS;
    output(s, OFPP_CONTROLLER, OFPCML_NO_BUFFER, dry);
}

/* As if the table had an entry of the lowest priority that writes OFPP_NORMAL to the action set, where that
 * has no output.  What earlier tables have sent does not count. */
PIPELINE_BODY void
missed_alone(struct step *s, const bool dry)
{
    pipeline_capture(s, OFPCAP_MISS, OFPP_ANY, dry);
    s->missed = true;
    s->sent = false;
}

PIPELINE_BODY void
run_tables(struct step *s, const bool dry)
{
    struct action_set set;
    action_set_clear(&set);
    const struct flow_path *path = dry && s->dry->path ? s->dry->path : path_of(s->w, s->p);
    uint8_t id = 0;
    for (unsigned i = 0; id != NO_TABLE; i++) {
        struct packet_wire wire = packet_on_wire(s->p);
        struct path_step step = next_step(s, path, i, id, wire.packets, dry);
        struct flow *f = step.flow;
        s->table_id = id;
        TRACE(table, s, id, &step);
        if (!f && s->w->standalone) {
            missed_alone(s, dry);
            break;
        }
        if (!f) {
            no_match(s, dry);
            return;
        }
        if (!dry)
            count_flow(s->w, f, wire);
        if (!run_program(s, step.program, &set, dry) || step_enough(s, dry))
            return;
        id = step.program->goto_table;
    }
    if (set.present && run_action_set(s, &set, dry))
        return;
    if (s->missed && !s->sent) {
        TRACE(standalone, s);
        output(s, OFPP_NORMAL, 0, dry);
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
        run_tables(&s, false);
}

void
pipeline_dry_run(struct worker *w, struct packet *p, struct dry_run *d)
{
    uint16_t buckets = MAX_BUCKETS;
    struct packet copy;
    struct step s = {.w = w, .p = &copy, .buckets = &buckets, .dry = d};
    bool shared = p->shared;
    packet_clone(p, &copy);
    if (is_unwanted_fragment(w, p))
        step_drop(&s, DROP_fragment);
    else
        run_tables(&s, true);
    p->shared = shared; /* nobody kept the copy */
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
    run_actions(&s, program_apply(actions), false);
}
