/* SPDX-License-Identifier: Apache-2.0 */
/* A packet's way through tables, groups and meters (5.1, 5.9 to 5.12). */
#include <switch/dp.h>
#include <table/action-set.h>
#include <table/flow-cache.h>

#include <oflib/wire.h>

#include <string.h>

#define MAX_BUCKETS 4096 /* of groups, that one packet may run through or look at */

/* Where a packet is, for what leaves the switch on its behalf. */
struct step {
    struct worker *w;
    struct packet *p;
    uint64_t cookie;
    uint8_t table_id;
    uint8_t reason;        /* of a packet-in that an output makes */
    uint8_t depth;         /* of groups */
    uint16_t *buckets;     /* that may still be run: groups that lead to groups can be many */
    bool sent;             /* somewhere, or dropped with a reason of its own */
    struct preview *ahead; /* not NULL: nothing is done or counted, it is only seen what would be */
};

static int run_actions(struct step *s, struct act_list l);

static inline void
drop_it(const struct step *s, enum drop_reason why)
{
    if (!s->ahead)
        worker_drop(s->w, why);
}

/* ------------------------------------------------------------------ to the controllers */

struct to_controller {
    struct step *s;
    struct port *in; /* NULL: no port of ours */
    uint16_t max_len;
};

static void
packet_in_each(void *ctx, const uint8_t *data, uint32_t len)
{
    struct to_controller *c = ctx;
    const struct step *s = c->s;
    struct worker *w = s->w;
    const struct flow_key *k = &s->p->key;
    struct packet_in_record *r = NULL;
    /* What a pop has made too short for Ethernet would be padded on a wire. */
    uint32_t padding = len < PACKET_MIN && len < s->p->wire_len ? PACKET_MIN - len : 0;
    uint32_t n = (uint32_t)sizeof *r + len + padding, port = s->p->in_port;
    uint32_t source = port <= PORT_MAX ? port : 0;
    bool fair = ring_fair(w->packet_ins, n, source);
    if (fair)
        r = ring_reserve(w->packet_ins, n, source);
    if (!r) {
        worker_drop(w, fair ? DROP_packet_in_full : DROP_packet_in_share);
        if (c->in)
            port_count_packet_in_dropped(c->in, w->io);
        return;
    }
    *r = (struct packet_in_record){.in_port = port,
                                   .in_phy_port = of_get32(k->in_phy_port),
                                   .metadata = of_get64(k->metadata),
                                   .tunnel_id = of_get64(k->tunnel_id),
                                   .cookie = s->cookie,
                                   .table_id = s->table_id,
                                   .reason = s->reason,
                                   .max_len = c->max_len,
                                   .len = len + padding};
    memcpy(r->data, data, len);
    memset(r->data + len, 0, padding);
    ring_publish(w->packet_ins);
    w->to_tell = true;
}

static void
to_controller(struct step *s, uint16_t max_len)
{
    struct port *in = dp_port(s->w->dp, s->p->in_port);
    struct to_controller c = {s, in, max_len};
    s->sent = true;
    /* The port's wish is about table misses (7.2.1), not about flows that name the controller. */
    if (in && s->reason == OFPR_NO_MATCH && port_config_bits(in) & OFPPC_NO_PACKET_IN)
        return;
    if (s->ahead) {
        s->ahead->goes = true;
        return;
    }
    int drop = packet_finish(s->p, packet_in_each, &c);
    if (drop)
        worker_drop(s->w, (enum drop_reason)(drop - 1));
}

/* ------------------------------------------------------------------ to ports */

static void
to_port(struct step *s, struct port *port)
{
    int drop = EDIT_DROP(no_port);
    s->sent = true;
    if (s->ahead) {
        s->ahead->goes |= port && port_is_up(port);
        return;
    }
    if (port)
        drop = port_tx(port, s->w->io, s->p);
    if (drop)
        worker_drop(s->w, (enum drop_reason)(drop - 1));
}

/* Every port but the one it came by. */
static void
flood(struct step *s)
{
    const struct port_list *l = rcu_dereference(s->w->dp->ports);
    s->sent = true;
    for (uint32_t i = 0; l && i < l->n; i++)
        if (port_no(l->v[i]) != s->p->in_port && !(port_config_bits(l->v[i]) & OFPPC_NO_FWD))
            to_port(s, l->v[i]);
}

static void
normal(struct step *s)
{
    struct dp *dp = s->w->dp;
    struct packet *p = s->p;
    uint16_t vid = of_get16(p->key.vlan_vid) & 0xfff;
    uint32_t now = (uint32_t)(s->w->now / 1000000000), in = p->in_port;
    if (!s->ahead && !(p->key.eth_src[0] & 1) && (in <= PORT_MAX || in == OFPP_LOCAL))
        normal_learn(dp->normal, p->key.eth_src, vid,
                     in == OFPP_LOCAL ? NORMAL_LOCAL : (uint16_t)in, now);
    uint16_t to = p->key.eth_dst[0] & 1 ? 0 : normal_find(dp->normal, p->key.eth_dst, vid, now);
    struct port *port = to ? dp_port(dp, to == NORMAL_LOCAL ? OFPP_LOCAL : to) : NULL;
    if (!port)
        flood(s);
    else if (port_no(port) != in)
        to_port(s, port);
    else {
        s->sent = true;
        drop_it(s, DROP_in_port);
    }
}

static void
output(struct step *s, uint32_t to, uint16_t max_len)
{
    struct dp *dp = s->w->dp;
    switch (to) {
    case OFPP_IN_PORT: to_port(s, dp_port(dp, s->p->in_port)); break;
    case OFPP_TABLE: {
        struct packet copy; /* what the tables do to it is not seen by the actions that follow */
        packet_clone(s->p, &copy);
        s->sent = true;
        pipeline_packet(s->w, &copy);
        break;
    }
    case OFPP_NORMAL: normal(s); break;
    case OFPP_FLOOD:
    case OFPP_ALL: flood(s); break;
    case OFPP_CONTROLLER: to_controller(s, max_len); break;
    default:
        if (to == s->p->in_port) {
            s->sent = true;
            drop_it(s, DROP_in_port); /* back only by OFPP_IN_PORT (7.2.5) */
            break;
        }
        struct port *port = dp_port(dp, to);
        if (port && port_config_bits(port) & OFPPC_NO_FWD) {
            s->sent = true;
            drop_it(s, DROP_port_down);
            break;
        }
        to_port(s, port);
    }
}

/* ------------------------------------------------------------------ groups */

/* Groups may watch others in great numbers, and while two of them are being changed even in a
 * circle: looking has an end, in depth too. */
static bool
bucket_live(const struct dp *dp, const struct bucket *b, unsigned depth, unsigned *looks)
{
    if (!*looks || depth > GROUP_MAX_DEPTH)
        return false;
    --*looks;
    if (b->watch_port != OFPP_ANY) {
        const struct port *p = dp_port(dp, b->watch_port);
        if (p && port_is_up(p))
            return true;
    }
    if (b->watched == OFPG_ANY)
        return false;
    const struct group *g = groups_find(dp->groups, b->watched);
    for (uint32_t i = 0; g && i < g->n_buckets; i++) {
        const struct bucket *in = &g->buckets[i];
        /* A bucket that watches nothing is live (fast failover buckets always watch). */
        if ((in->watch_port == OFPP_ANY && in->watched == OFPG_ANY) ||
            bucket_live(dp, in, depth + 1, looks))
            return true;
    }
    return false;
}

static const struct bucket *
select_bucket(const struct dp *dp, const struct group *g, const struct packet *p)
{
    if (g->type == OFPGT_INDIRECT)
        return &g->buckets[0];
    if (g->type == OFPGT_FF) {
        unsigned looks = MAX_BUCKETS;
        for (uint32_t i = 0; i < g->n_buckets; i++)
            if (bucket_live(dp, &g->buckets[i], 1, &looks))
                return &g->buckets[i];
        return NULL;
    }
    if (!g->total_weight)
        return NULL;
    uint32_t at = (uint32_t)((uint64_t)packet_flow_hash(p) * g->total_weight >> 32);
    for (uint32_t i = 0; i < g->n_buckets; i++) {
        if (at < g->buckets[i].weight)
            return &g->buckets[i];
        at -= g->buckets[i].weight;
    }
    return NULL;
}

/* A group's packets, or one of its buckets'. */
static void
count_group(const struct step *s, const struct group *g, int bucket)
{
    if (s->ahead)
        return;
    struct flow_counter *c = group_counter(g, s->w->id, bucket);
    counter_add(&c->packets, packet_segments(s->p));
    counter_add(&c->bytes, packet_wire_bytes(s->p));
}

/* A bucket works on a copy: what it does to the packet ends with it (5.6.1). */
static void
run_bucket(struct step *s, const struct group *g, const struct bucket *b)
{
    struct packet copy;
    if (!*s->buckets) {
        drop_it(s, DROP_group);
        return;
    }
    --*s->buckets;
    packet_clone(s->p, &copy);
    struct step in = *s;
    in.p = &copy;
    in.depth++;
    count_group(s, g, (int)(b - g->buckets));
    run_actions(&in, program_apply(b->program));
    s->sent = true;
}

static void
run_group(struct step *s, uint32_t id)
{
    const struct group *g = groups_find(s->w->dp->groups, id);
    s->sent = true;
    if (!g || s->depth >= GROUP_MAX_DEPTH) {
        drop_it(s, DROP_group);
        return;
    }
    count_group(s, g, -1);
    if (g->type == OFPGT_ALL) {
        for (uint32_t i = 0; i < g->n_buckets; i++)
            run_bucket(s, g, &g->buckets[i]);
        return;
    }
    const struct bucket *b = select_bucket(s->w->dp, g, s->p);
    if (b)
        run_bucket(s, g, b);
    else
        drop_it(s, DROP_group);
}

/* ------------------------------------------------------------------ actions */

/* 0, or why the packet ends here (EDIT_DROP). */
static int
run_action(struct step *s, const struct act *a)
{
    struct packet *p = s->p;
    switch (a->op) {
    case OFPAT_OUTPUT: output(s, a->arg, a->extra); return 0;
    case OFPAT_GROUP: run_group(s, a->arg); return 0;
    case OFPAT_SET_QUEUE:
        p->queue = a->arg;
        if (s->ahead && !s->ahead->has_queue)
            *s->ahead = (struct preview){s->ahead->goes, true, a->arg};
        return 0;
    default: return action_rows[a->op].edit(p, a);
    }
}

/* A packet that an action can't be done to is dropped; one whose TTL ran out goes to the
 * controllers that want to know (OFPR_INVALID_TTL), as it was before the action (5.12). */
static int
end_packet(struct step *s, int drop)
{
    if (drop == EDIT_DROP(ttl)) {
        s->reason = OFPR_INVALID_TTL;
        to_controller(s, OFPCML_NO_BUFFER);
    }
    drop_it(s, (enum drop_reason)(drop - 1));
    s->sent = true;
    return drop;
}

static int
run_actions(struct step *s, struct act_list l)
{
    ACTS_EACH(a, l) {
        int drop = run_action(s, a);
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
    for (unsigned i = 0; i < n; i++) {
        int drop = run_action(s, v[i]);
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
    /* Workers' clocks differ by a round: one that is behind leaves alone what the other one wrote,
     * for both read that line for each packet. */
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
    struct meter *m = s->ahead ? NULL : meters_find(s->w->dp->meters, id);
    int drop = m ? meter_run(m, s->w->id, s->p, s->w->now) : 0;
    return drop ? end_packet(s, drop) : 0;
}

/* One table's instructions.  False: the packet ends here. */
static bool
run_program(struct step *s, const struct program *prog, struct action_set *set)
{
    s->cookie = prog->cookie;
    s->reason = prog->miss ? OFPR_NO_MATCH : OFPR_ACTION;
    if (prog->meter_id && run_meter(s, prog->meter_id))
        return false;
    if (prog->n_apply && run_actions(s, program_apply(prog)))
        return false;
    if (prog->clear)
        action_set_clear(set);
    if (prog->n_write)
        action_set_write(set, program_write(prog));
    if (prog->has_metadata)
        write_metadata(s->p, prog);
    return true;
}

/* The way through the tables that packets with this key take, as far as it is remembered. */
struct path {
    struct cache_entry *entry; /* NULL: (no longer) remembered */
    bool known;                /* the entry is complete, to be followed; else to be filled in */
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

/* All is seen that is looked for.  A path that is to be remembered is gone to its end. */
static bool
seen_enough(const struct step *s, const struct path *path)
{
    return s->ahead && s->ahead->goes && s->ahead->has_queue && (path->known || !path->entry);
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
        if (!f) { /* no table-miss entry: dropped (5.4) */
            drop_it(s, DROP_no_match);
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
        drop_it(s, DROP_no_action);
}

/* Without a controller the switch may be a plain learning one, and the tables wait (6.3.3). */
static void
forward(struct step *s)
{
    if (s->w->standalone)
        normal(s);
    else
        run_tables(s);
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
    struct step s = {.w = w, .p = p, .buckets = &buckets};
    if (is_unwanted_fragment(w, p))
        worker_drop(w, DROP_fragment);
    else
        forward(&s);
}

struct preview
pipeline_preview(struct worker *w, struct packet *p)
{
    struct preview o = {0};
    uint16_t buckets = MAX_BUCKETS;
    struct packet copy;
    struct step s = {.w = w, .p = &copy, .buckets = &buckets, .ahead = &o};
    bool shared = p->shared;
    if (is_unwanted_fragment(w, p))
        return o;
    packet_clone(p, &copy);
    forward(&s);
    p->shared = shared; /* nobody has kept the copy */
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
