/* SPDX-License-Identifier: Apache-2.0 */
/* Plans the way through tables, groups and meters as pipeline.c goes it, and to ports as
 * pipeline-output.c does. */
#include "plan-inside.h"

#include <dataplane/pipeline-inside.h>
#include <megaflow/megaflow.h>

#include <flow/action-set.h>
#include <packet/headers.h>
#include <shared/clock.h>

#include <string.h>

#define VID 0xfff

#define NAME(name, text) [OFFLOAD_WHY_##name] = #name,
const char *const offload_reason_name[OFFLOAD_REASON_N] = {"offloaded", OFFLOAD_REASONS(NAME)};
#define TEXT(name, text) [OFFLOAD_WHY_##name] = text,
const char *const offload_reason_text[OFFLOAD_REASON_N] = {"handled in the kernel",
                                                           OFFLOAD_REASONS(TEXT)};

/* ------------------------------------------------------------------ what is counted */

static bool
add_drop(struct plan_way *w, enum drop_reason why, uint32_t port, uint32_t group)
{
    struct offload_plan *o = w->out;
    w->sent = true;
    if (o->n_drops == OFFLOAD_RUNS)
        return plan_refuse(w, OFFLOAD_WHY_runs);
    o->drop[o->n_drops++] = (struct offload_drop){.why = why, .port = port, .group = group};
    return true;
}

/* bucket: -1 counts for the whole group */
static bool
add_run(struct plan_way *w, const struct group *g, int bucket)
{
    struct offload_plan *o = w->out;
    if (o->n_runs == OFFLOAD_RUNS)
        return plan_refuse(w, OFFLOAD_WHY_runs);
    o->run[o->n_runs++] =
        (struct offload_run){.group = g->id, .bucket = bucket, .added = w->now.added};
    return true;
}

/* ------------------------------------------------------------------ to ports */

/* The length at which a packet of this length at the output came in. */
static uint32_t
came_in(uint32_t length, int32_t added)
{
    int64_t n = (int64_t)length - added;
    return length == UINT32_MAX ? OFFLOAD_MAX_FRAME : n < 0 ? 0 : (uint32_t)n;
}

static void
lower(uint32_t *limit, uint32_t to)
{
    if (to < *limit)
        *limit = to;
}

/* Whether the packet leaves with an outer 802.1Q tag, which the MTU does not count.  The key
 * does not tell the type of a tag that the packet came with: it is taken for 802.1Q, as nearly
 * all are. */
static bool
leaves_tagged(struct plan_way *w, bool *tagged)
{
    const struct planned *p = &w->now;
    *tagged = false;
    if (p->n_pushed) {
        *tagged = p->tag_type == TYPE_VLAN;
        return true;
    }
    if (of_get16(p->lost.vlan_vid) & OFPVID_PRESENT)
        return true;
    *tagged = of_get16(p->key.vlan_vid) & OFPVID_PRESENT;
    return plan_look_vlan(w, OFPVID_PRESENT);
}

static bool
send_by(struct plan_way *w, uint32_t to, uint32_t queue, const struct port_kernel_output *k)
{
    struct offload_plan *o = w->out;
    bool tagged;
    if (w->now.spoiled)
        return plan_refuse(w, OFFLOAD_WHY_group_edits);
    if (o->n_outs == OFFLOAD_RUNS)
        return plan_refuse(w, OFFLOAD_WHY_runs);
    if (!leaves_tagged(w, &tagged) ||
        !plan_op(w, OFFLOAD_OUTPUT, (uint32_t)k->ifindex, k->priority))
        return false;
    w->kept = o->rule.n_ops;
    lower(&o->rule.longest, came_in(k->longest, w->now.added - (tagged ? VLAN_TAG : 0)));
    lower(&o->rule.super, came_in(k->super, w->now.added));
    o->out[o->n_outs++] = (struct offload_out){
        .port = to, .queue = k->queue, .added = w->now.added, .no_queue = k->queue != queue};
    return true;
}

/* port NULL: there is no port of this number. */
static bool
to_port(struct plan_way *w, const struct port *port, uint32_t to)
{
    struct port_kernel_output k;
    w->sent = true;
    if (!port)
        return add_drop(w, DROP_no_port, to, 0);
    if (!port_is_up(port) || port_config_bits(port) & OFPPC_NO_FWD)
        return add_drop(w, DROP_port_down, to, 0);
    uint32_t queue = queue_at(w->now.queue, w->now.queue_ports, to);
    if (!port_kernel_output(port, queue, &k))
        return plan_refuse(w, OFFLOAD_WHY_port_kind);
    return send_by(w, to, queue, &k);
}

static bool
flood(struct plan_way *w, uint32_t without)
{
    const struct port_list *l = rcu_dereference(w->dp->ports);
    w->sent = w->out->any_port = true;
    for (uint32_t i = 0; l && i < l->n; i++)
        if (port_no(l->v[i]) != w->in_port && !(port_config_bits(l->v[i]) & without) &&
            !to_port(w, l->v[i], port_no(l->v[i])))
            return false;
    return true;
}

/* ------------------------------------------------------------------ NORMAL */

/* Takes back ops after `from` whose edits no output sees.  Are edits left? */
static bool
has_edited(struct plan_way *w, uint32_t from)
{
    struct offload_rule *r = &w->out->rule;
    r->n_ops = w->kept > from ? w->kept : from;
    for (uint32_t i = from; i < r->n_ops; i++)
        if (r->op[i].kind != OFFLOAD_OUTPUT)
            return true;
    return false;
}

/* Finds where the stations of the packet, as it is now, have been learnt. */
static bool
find_stations(struct plan_way *w, uint16_t vlan, struct offload_stations *at)
{
    const struct flow_key *k = &w->now.key;
    uint32_t now = (uint32_t)(clock_ns() / NS_PER_S);
    memcpy(at->src, k->eth_src, sizeof at->src);
    memcpy(at->dst, k->eth_dst, sizeof at->dst);
    at->vid = vlan;
    at->in = normal_find(w->dp->normal, at->src, at->vid, now);
    at->to = at->dst[0] & 1 ? 0 : normal_find(w->dp->normal, at->dst, at->vid, now);
    return (!(at->src[0] & 1) && at->in == w->in_port && (at->to || at->dst[0] & 1)) ||
           plan_refuse(w, OFFLOAD_WHY_normal);
}

static enum vlan_edit
edit_for(const struct plan_way *w, const struct planned *came, uint16_t vlan, uint32_t to)
{
    return vlans_edit(dp_vlans(w->dp, to), vlan, key_vid(&came->key));
}

static bool
retag(struct plan_way *w, uint16_t vlan, enum vlan_edit edit)
{
    struct vlan_acts acts;
    vlans_acts(edit, vlan, &acts);
    ACTS_EACH(a, acts.list)
        if (!plan_edit(w, a))
            return false;
    return true;
}

/* The ports of the VLAN that take the packet with this edit. */
static bool
flood_with(struct plan_way *w, const struct planned *came, uint16_t vlan, enum vlan_edit edit)
{
    const struct port_list *l = rcu_dereference(w->dp->ports);
    bool is_made = edit == VLAN_AS_IS;
    for (uint32_t i = 0; l && i < l->n; i++) {
        uint32_t no = port_no(l->v[i]);
        if (no == w->in_port || port_config_bits(l->v[i]) & FLOOD_WITHOUT ||
            !vlans_has(dp_vlans(w->dp, no), vlan) || edit_for(w, came, vlan, no) != edit)
            continue;
        if (!is_made &&
            (memcmp(&w->now.key, &came->key, sizeof came->key) || !retag(w, vlan, edit)))
            return plan_refuse(w, OFFLOAD_WHY_group_edits); /* a second edit */
        is_made = true;
        if (!to_port(w, l->v[i], no))
            return false;
    }
    return true;
}

/* First to the ports that take it as it came: the kernel has only one packet. */
static bool
flood_vlan(struct plan_way *w, uint16_t vlan)
{
    const struct planned came = w->now;
    w->sent = w->out->any_port = true;
    for (enum vlan_edit edit = VLAN_AS_IS; edit <= VLAN_POP; edit++)
        if (!flood_with(w, &came, vlan, edit))
            return false;
    return true;
}

static bool
to_station(struct plan_way *w, uint16_t vlan, uint16_t to)
{
    const struct port *port = dp_port(w->dp, to == NORMAL_LOCAL ? OFPP_LOCAL : to);
    if (!port || !port_is_up(port))
        return plan_refuse(w, OFFLOAD_WHY_normal);
    if (to == w->in_port)
        return add_drop(w, DROP_in_port, to, 0);
    return retag(w, vlan, edit_for(w, &w->now, vlan, port_no(port))) &&
           to_port(w, port, port_no(port));
}

/* As pipeline_output_normal, where there is nothing to learn. */
static bool
normal(struct plan_way *w)
{
    struct offload_stations at;
    struct flow_key bits = {0};
    const struct planned before = w->now;
    uint32_t from = w->out->rule.n_ops;
    memset(&bits.eth_src, 0xff, sizeof bits.eth_src);
    memset(&bits.eth_dst, 0xff, sizeof bits.eth_dst);
    if (w->out->stations.in) /* once more, by other addresses perhaps */
        return plan_refuse(w, OFFLOAD_WHY_normal);
    if (!plan_look(w, &bits) || !plan_look_vlan(w, OFPVID_PRESENT | VID))
        return false;
    int vlan = vlans_in(dp_vlans(w->dp, w->in_port), key_vid(&w->now.key));
    if (vlan < 0 || dp_keeps(w->dp, w->now.key.eth_dst))
        return add_drop(w, vlan < 0 ? DROP_vlan : DROP_reserved, OFPP_ANY, 0);
    if (!find_stations(w, (uint16_t)vlan, &at))
        return false;
    w->out->stations = at;
    if (!(at.to ? to_station(w, at.vid, at.to) : flood_vlan(w, at.vid)))
        return false;
    w->now = before;
    w->now.spoiled |= has_edited(w, from);
    return true;
}

static bool
output(struct plan_way *w, uint32_t to)
{
    const struct port *port;
    switch (to) {
    case OFPP_IN_PORT: return to_port(w, dp_port(w->dp, w->in_port), w->in_port);
    case OFPP_NORMAL: return normal(w);
    case OFPP_TABLE: return plan_refuse(w, OFFLOAD_WHY_table);
    case OFPP_CONTROLLER:
        if (w->dp->standalone != STANDALONE_LEFT || !w->miss || w->depth)
            return plan_refuse(w, OFFLOAD_WHY_controller);
        return w->missed = true;
    case OFPP_FLOOD: return flood(w, FLOOD_WITHOUT);
    case OFPP_ALL: return flood(w, OFPPC_NO_FWD);
    default: break;
    }
    if (to == w->in_port)
        return add_drop(w, DROP_in_port, to, 0);
    port = dp_port(w->dp, to);
    return to_port(w, port, to);
}

/* ------------------------------------------------------------------ groups */

static bool run_actions(struct plan_way *w, struct act_list l);

/* A bucket's edits end with it (5.6.1), but the kernel has only one packet. */
static bool
run_bucket(struct plan_way *w, const struct group *g, const struct bucket *b)
{
    struct planned before = w->now;
    uint32_t from = w->out->rule.n_ops;
    if (!add_run(w, g, (int)(b - g->buckets)))
        return false;
    w->depth++;
    if (!run_actions(w, program_apply(b->program)))
        return false;
    w->depth--;
    w->now = before;
    w->now.spoiled |= has_edited(w, from);
    return true;
}

/* NULL: there is none, or w->why is set. */
static const struct bucket *
choose(struct plan_way *w, const struct group *g)
{
    struct packet p = {0};
    if (g->type == OFPGT_SELECT) {
        struct flow_key bits;
        packet_of_key(&w->now.key, &p);
        packet_flow_hash_bits(&p, &bits);
        if (!plan_look(w, &bits))
            return NULL;
    }
    w->out->any_port |= g->type != OFPGT_INDIRECT;
    w->out->any_group |= g->type == OFPGT_FF;
    return pipeline_bucket(w->dp, g, &p);
}

static bool
run_group(struct plan_way *w, uint32_t id)
{
    const struct group *g = groups_find(w->dp->groups, id);
    w->sent = true;
    if (!g || w->depth >= GROUP_MAX_DEPTH)
        return add_drop(w, DROP_group, OFPP_ANY, id);
    if (!add_run(w, g, -1))
        return false;
    if (g->type != OFPGT_ALL) {
        const struct bucket *b = choose(w, g);
        return b                     ? run_bucket(w, g, b)
               : w->why == OFFLOADED ? add_drop(w, DROP_group, OFPP_ANY, id)
                                     : false;
    }
    for (uint32_t i = 0; i < g->n_buckets; i++)
        if (!run_bucket(w, g, &g->buckets[i]))
            return false;
    return true;
}

/* ------------------------------------------------------------------ actions */

static bool
run_action(struct plan_way *w, const struct act *a)
{
    switch (a->op) {
    case OFPAT_OUTPUT: return output(w, a->arg);
    case OFPAT_GROUP: return run_group(w, a->arg);
    case OFPAT_SET_QUEUE:
        w->now.queue = a->arg;
        w->now.queue_ports = act_queue_ports(a);
        return true;
    default: return plan_edit(w, a);
    }
}

static bool
run_actions(struct plan_way *w, struct act_list l)
{
    ACTS_EACH(a, l)
        if (!run_action(w, a))
            return false;
    return true;
}

static bool
run_action_set(struct plan_way *w, const struct action_set *set)
{
    const struct act *v[ACTION_TYPES + OXM_N];
    unsigned n = action_set_order(set, v);
    for (unsigned i = 0; i < n; i++)
        if (!run_action(w, v[i]))
            return false;
    return true;
}

/* ------------------------------------------------------------------ meters */

bool
offload_meter_fits(const struct meter *m)
{
    for (uint32_t i = 0; i < m->n_bands; i++)
        if (m->bands[i].type != OFPMBT_DROP)
            return false;
    return m->n_bands <= OFFLOAD_BANDS;
}

/* The meter becomes the first op: edits before it matter to it only if they change the length. */
static bool
run_meter(struct plan_way *w, uint32_t id)
{
    struct offload_plan *o = w->out;
    struct offload_rule *r = &o->rule;
    const struct meter *m = meters_find(w->dp->meters, id);
    if (!m)
        return true;
    if (o->meter_id || o->n_outs || o->n_runs || o->n_drops || w->now.added ||
        !offload_meter_fits(m) || !w->meters)
        return plan_refuse(w, OFFLOAD_WHY_meter);
    int place = w->meters->place(w->meters->ctx, m);
    if (place < 0)
        return plan_refuse(w, OFFLOAD_WHY_meter);
    if (!plan_op(w, OFFLOAD_METER, 0, 0))
        return false;
    memmove(r->op + 1, r->op, (r->n_ops - 1) * sizeof r->op[0]);
    r->op[0] = (struct offload_op){.kind = OFFLOAD_METER, .arg = (uint32_t)place};
    r->meter = true;
    w->kept = 1;
    o->meter_id = id;
    o->metered = o->n_steps;
    return true;
}

/* ------------------------------------------------------------------ tables */

static bool
run_program(struct plan_way *w, const struct program *prog, struct action_set *set)
{
    w->miss = prog->miss;
    if (w->miss && w->dp->standalone == STANDALONE_LEFT)
        w->sent = false;
    if ((prog->meter_id && !run_meter(w, prog->meter_id)) || !run_actions(w, program_apply(prog)))
        return false;
    if (prog->clear)
        action_set_clear(set);
    if (prog->n_write)
        action_set_write(set, program_write(prog));
    return true;
}

static bool
run_tables(struct plan_way *w, const struct flow_path *path)
{
    struct action_set set;
    action_set_clear(&set);
    for (unsigned i = 0; i < path->n; i++) {
        const struct path_step *s = &path->step[i];
        w->out->step[w->out->n_steps++] = (struct offload_step){
            .flow = s->flow, .program = s->program, .table = path->table[i], .added = w->now.added};
        if (!s->flow && w->dp->standalone) {
            w->missed = true;
            w->sent = false;
            break;
        }
        if (!s->flow)
            return w->dp->tell_misses ? plan_refuse(w, OFFLOAD_WHY_controller)
                                      : add_drop(w, DROP_no_match, OFPP_ANY, 0);
        if (!run_program(w, s->program, &set))
            return false;
    }
    if (!run_action_set(w, &set))
        return false;
    if (w->missed && !w->sent)
        return normal(w);
    return w->sent || add_drop(w, DROP_no_action, OFPP_ANY, 0);
}

/* ------------------------------------------------------------------ the plan */

/* Whose liveness the plan depends on. */
static uint32_t
port_bits(const struct offload_plan *p, uint32_t in_port)
{
    uint32_t bits = offload_port_bit(in_port);
    if (p->any_port)
        return OFFLOAD_ALL_PORTS;
    for (uint32_t i = 0; i < p->n_outs; i++)
        bits |= offload_port_bit(p->out[i].port);
    for (uint32_t i = 0; i < p->n_drops; i++)
        bits |= offload_port_bit(p->drop[i].port);
    return bits;
}

static bool
is_kernel_kind(const struct flow_key *k)
{
    uint16_t type = of_get16(k->eth_type);
    bool is_ip = type == TYPE_IPV4 || type == TYPE_IPV6;
    return of_get16(k->vlan_vid) & KEY_HAS_L3 &&
           (is_ip || is_mpls_type(type) || type == TYPE_PBB) && !of_get16(k->ipv6_exthdr) &&
           !k->has_nd;
}

static enum offload_reason
in_refusal(const struct dp *dp, const struct port *in)
{
    if (!in || port_ifindex(in) <= 0 || !port_receives(in))
        return OFFLOAD_WHY_in_port;
    return port_shaper(in) ? OFFLOAD_WHY_shaped : OFFLOADED;
}

enum offload_reason
offload_plan_make(struct dp *dp, const struct flow_key *key, const struct offload_meters *meters,
                  struct offload_plan *out)
{
    struct flow_path path;
    struct plan_way w = {.dp = dp,
                         .meters = meters,
                         .out = out,
                         .in_port = of_get32(key->in_port),
                         .now = {.key = *key, .ttl = -1}};
    const struct port *in = dp_port(dp, w.in_port);
    memset(out, 0, sizeof *out);
    out->rule.longest = out->rule.super = OFFLOAD_MAX_FRAME;
    w.why = in_refusal(dp, in);
    if (w.why != OFFLOADED)
        return w.why;
    if (!is_kernel_kind(key))
        return OFFLOAD_WHY_kind;
    if (!flow_walk(dp->tables, key, &path, &w.bits))
        return path.n == CACHE_STEPS ? OFFLOAD_WHY_long_path : OFFLOAD_WHY_unknown_key;
    if (!run_tables(&w, &path))
        return w.why;
    out->rule.n_ops = w.kept;
    out->rule.ports = port_bits(out, w.in_port);
    return offload_rule_match(&out->rule, key, &w.bits, port_ifindex(in)) ? OFFLOADED
                                                                          : OFFLOAD_WHY_mask;
}
