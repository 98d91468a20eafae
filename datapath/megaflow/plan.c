/* SPDX-License-Identifier: Apache-2.0 */
/* A plan is what a dry run of the pipeline (dataplane/pipeline-trace.h) does with the key's packet: the
 * functions below record it.  The packet has a key only, no bytes.  After a refusal they record nothing. */
#include "plan-inside.h"

#include <packet/headers.h>
#include <shared/clock.h>

#include <string.h>

#define VID 0xfff

static struct plan_way *
way_of(const struct step *s)
{
    return (struct plan_way *)s->dry;
}

/* Unless there is a reason already. */
static void
refuse_first(struct plan_way *w, enum offload_reason why)
{
    if (w->why == OFFLOADED)
        w->why = why;
}

#define NAME(name, text) [OFFLOAD_WHY_##name] = #name,
const char *const offload_reason_name[OFFLOAD_REASON_N] = {"offloaded", OFFLOAD_REASONS(NAME)};
#define TEXT(name, text) [OFFLOAD_WHY_##name] = text,
const char *const offload_reason_text[OFFLOAD_REASON_N] = {"handled in the kernel",
                                                           OFFLOAD_REASONS(TEXT)};

/* ------------------------------------------------------------------ what is counted */

static void
add_drop(struct plan_way *w, enum drop_reason why, uint32_t port, uint32_t group)
{
    struct offload_plan *o = w->out;
    if (o->n_drops == OFFLOAD_RUNS)
        plan_refuse(w, OFFLOAD_WHY_runs);
    else
        o->drop[o->n_drops++] = (struct offload_drop){.why = why, .port = port, .group = group};
}

static void
plan_drop(const struct step *s, enum drop_reason why, uint32_t to)
{
    struct plan_way *w = way_of(s);
    if (w->why == OFFLOADED)
        add_drop(w, why, to, why == DROP_group ? w->group : 0);
}

/* bucket: -1 counts for the whole group */
static void
add_run(struct plan_way *w, const struct group *g, int bucket)
{
    struct offload_plan *o = w->out;
    if (o->n_runs == OFFLOAD_RUNS)
        plan_refuse(w, OFFLOAD_WHY_runs);
    else
        o->run[o->n_runs++] =
            (struct offload_run){.group = g->id, .bucket = bucket, .added = w->now.added};
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

static void
send_by(struct plan_way *w, uint32_t to, uint32_t queue, const struct port_kernel_output *k)
{
    struct offload_plan *o = w->out;
    bool tagged;
    if (w->now.spoiled || o->n_outs == OFFLOAD_RUNS) {
        plan_refuse(w, w->now.spoiled ? OFFLOAD_WHY_group_edits : OFFLOAD_WHY_runs);
        return;
    }
    if (!leaves_tagged(w, &tagged) ||
        !plan_op(w, OFFLOAD_OUTPUT, (uint32_t)k->ifindex, k->priority | (uint64_t)k->queue << 32))
        return;
    w->kept = o->rule.n_ops;
    lower(&o->rule.longest, came_in(k->longest, w->now.added - (tagged ? VLAN_TAG : 0)));
    lower(&o->rule.super, came_in(k->super, w->now.added));
    o->out[o->n_outs++] = (struct offload_out){
        .port = to, .queue = k->queue, .added = w->now.added, .no_queue = k->queue != queue};
}

static void
plan_port(const struct step *s, struct port *port, uint32_t to)
{
    struct plan_way *w = way_of(s);
    struct port_kernel_output k;
    if (w->why != OFFLOADED)
        return;
    w->goes |= port && port_is_up(port);
    if (!port) {
        add_drop(w, DROP_no_port, to, 0);
        return;
    }
    if (!port_is_up(port) || port_config_bits(port) & OFPPC_NO_FWD) {
        add_drop(w, DROP_port_down, to, 0);
        return;
    }
    uint32_t queue = queue_at(s->p->queue, s->p->queue_ports, to);
    if (port_kernel_output(port, queue, &k))
        send_by(w, to, queue, &k);
    else
        plan_refuse(w, OFFLOAD_WHY_port_kind);
}

/* As preview_queue. */
static void
plan_queue(const struct step *s, const struct act *a)
{
    struct plan_way *w = way_of(s);
    if (w->has_queue || queue_at(a->arg, act_queue_ports(a), s->p->in_port) != a->arg)
        return;
    w->has_queue = true;
    w->queue = a->arg;
}

static void
plan_flood(const struct step *s, uint32_t without)
{
    way_of(s)->out->any_port = true;
}

static bool
plan_controller(const struct step *s)
{
    refuse_first(way_of(s), OFFLOAD_WHY_controller);
    return false;
}

static void
plan_no_packet_in(const struct step *s)
{
    plan_controller(s);
}

static void
plan_table_again(const struct step *s)
{
    refuse_first(way_of(s), OFFLOAD_WHY_table);
}

/* ------------------------------------------------------------------ edits, and copies */

static int
plan_do_edit(struct step *s, const struct act *a)
{
    struct plan_way *w = way_of(s);
    if (w->why == OFFLOADED && plan_edit(w, a))
        s->p->key = w->now.key;
    return 0;
}

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

/* A copy's edits end with it (5.6.1), but the kernel has only one packet. */
static void
plan_fork(const struct step *s)
{
    struct plan_way *w = way_of(s);
    w->before[w->n_forks++] = (struct plan_fork){w->now, w->out->rule.n_ops};
}

static void
plan_join(const struct step *s)
{
    struct plan_way *w = way_of(s);
    const struct plan_fork *f = &w->before[--w->n_forks];
    w->now = f->now;
    if (w->why == OFFLOADED)
        w->now.spoiled |= has_edited(w, f->from);
}

/* ------------------------------------------------------------------ NORMAL */

static void
plan_normal(const struct step *s)
{
    struct plan_way *w = way_of(s);
    struct flow_key bits = {0};
    if (w->why != OFFLOADED)
        return;
    memset(&bits.eth_src, 0xff, sizeof bits.eth_src);
    memset(&bits.eth_dst, 0xff, sizeof bits.eth_dst);
    w->retagged = false;
    if (w->out->stations.in) /* once more, by other addresses perhaps */
        plan_refuse(w, OFFLOAD_WHY_normal);
    else if (plan_look(w, &bits))
        plan_look_vlan(w, OFPVID_PRESENT | VID);
}

/* Finds where the packet's addresses, as they are now, have been learnt. */
static void
plan_learn(const struct step *s, uint16_t vid)
{
    struct plan_way *w = way_of(s);
    struct normal *fdb = s->w->dp->normal;
    const struct flow_key *k = &s->p->key;
    uint32_t now = (uint32_t)(s->w->now / NS_PER_S);
    struct offload_stations at = {.vid = vid};
    memcpy(at.src, k->eth_src, sizeof at.src);
    memcpy(at.dst, k->eth_dst, sizeof at.dst);
    at.in = normal_find(fdb, at.src, vid, now);
    at.to = at.dst[0] & 1 ? 0 : normal_find(fdb, at.dst, vid, now);
    if (at.src[0] & 1 || at.in != s->p->in_port || !(at.to || at.dst[0] & 1))
        refuse_first(w, OFFLOAD_WHY_normal);
    else if (w->why == OFFLOADED)
        w->out->stations = at;
}

static void
plan_decided(const struct step *s, uint16_t vid, const struct port *to)
{
    struct plan_way *w = way_of(s);
    if (!to && w->out->stations.to) /* it is down: the address may be elsewhere by now */
        refuse_first(w, OFFLOAD_WHY_normal);
}

static void
plan_retag(const struct step *s)
{
    struct plan_way *w = way_of(s);
    if (w->retagged) /* a second edit */
        refuse_first(w, OFFLOAD_WHY_group_edits);
    w->retagged = true;
}

/* ------------------------------------------------------------------ groups */

static void
plan_group(const struct step *s, uint32_t id, const struct group *g)
{
    struct plan_way *w = way_of(s);
    w->group = id;
    if (w->why == OFFLOADED && g && s->depth < GROUP_MAX_DEPTH)
        add_run(w, g, -1);
}

static void
plan_bucket(const struct step *s, const struct group *g, const struct bucket *b)
{
    struct plan_way *w = way_of(s);
    if (w->why == OFFLOADED)
        add_run(w, g, (int)(b - g->buckets));
}

static void
plan_choose(const struct step *s, const struct group *g)
{
    struct plan_way *w = way_of(s);
    struct flow_key bits;
    if (w->why != OFFLOADED)
        return;
    if (g->type == OFPGT_SELECT) {
        packet_flow_hash_bits(s->p, &bits);
        plan_look(w, &bits);
    }
    w->out->any_port |= g->type != OFPGT_INDIRECT;
    w->out->any_group |= g->type == OFPGT_FF;
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
static void
place_meter(struct plan_way *w, const struct meter *m)
{
    struct offload_plan *o = w->out;
    struct offload_rule *r = &o->rule;
    if (o->meter_id || o->n_outs || o->n_runs || o->n_drops || w->now.added ||
        !offload_meter_fits(m) || !w->meters) {
        plan_refuse(w, OFFLOAD_WHY_meter);
        return;
    }
    int place = w->meters->place(w->meters->ctx, m);
    if (place < 0) {
        plan_refuse(w, OFFLOAD_WHY_meter);
        return;
    }
    if (!plan_op(w, OFFLOAD_METER, 0, 0))
        return;
    memmove(r->op + 1, r->op, (r->n_ops - 1) * sizeof r->op[0]);
    r->op[0] = (struct offload_op){.kind = OFFLOAD_METER, .arg = (uint32_t)place};
    r->meter = true;
    w->kept = 1;
    o->meter_id = m->id;
    o->metered = o->n_steps;
}

static int
plan_meter(const struct step *s, const struct meter *m)
{
    struct plan_way *w = way_of(s);
    if (w->why == OFFLOADED)
        place_meter(w, m);
    return 0;
}

/* ------------------------------------------------------------------ the plan */

static bool
plan_enough(const struct step *s)
{
    return way_of(s)->why != OFFLOADED;
}

static void
plan_table(const struct step *s, uint8_t id, const struct path_step *at)
{
    struct plan_way *w = way_of(s);
    w->out->step[w->out->n_steps++] = (struct offload_step){
        .flow = at->flow, .program = at->program, .table = id, .added = w->now.added};
}

static const struct pipeline_trace recorder = {
    .enough = plan_enough,
    .table = plan_table,
    .meter = plan_meter,
    .edit = plan_do_edit,
    .queue = plan_queue,
    .table_again = plan_table_again,
    .fork = plan_fork,
    .join = plan_join,
    .group = plan_group,
    .choose = plan_choose,
    .bucket = plan_bucket,
    .flood = plan_flood,
    .normal = plan_normal,
    .learn = plan_learn,
    .decided = plan_decided,
    .retag = plan_retag,
    .port = plan_port,
    .controller = plan_controller,
    .no_packet_in = plan_no_packet_in,
    .drop = plan_drop,
};

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

/* Whether the programs take such packets (parse_type in offload/bpf/frame.h). */
static bool
is_kernel_kind(const struct dp *dp, const struct flow_key *k)
{
    uint16_t type = of_get16(k->eth_type);
    bool is_whole = of_get16(k->vlan_vid) & KEY_HAS_L3;
    if (type < ETH_MIN_TYPE || is_vlan_type(type) ||
        (k->fragment && load_relaxed(&dp->frag) == OFPC_FRAG_DROP))
        return false;
    return is_whole ||
           !(type == TYPE_IPV4 || type == TYPE_IPV6 || is_mpls_type(type) || type == TYPE_PBB);
}

static enum offload_reason
in_refusal(const struct port *in, enum offload_stage stage)
{
    const struct port_shaper *s = in ? port_shaper(in) : NULL;
    if (!in || port_ifindex(in) <= 0 || !port_receives(in) || (stage && !s))
        return OFFLOAD_WHY_in_port;
    return s && !port_in_kernel(s->from) ? OFFLOAD_WHY_shaped : OFFLOADED;
}

/* The way is what the packet will do behind the queues; here it only enters them.  min_ttl stays: user space
 * tells whether those with a lower one will go on. */
static bool
put_in_queue(const struct plan_way *w, const struct port_shaper *s)
{
    struct offload_plan *o = w->out;
    struct port_kernel_output k;
    if (!port_kernel_output(s->to, w->queue, &k))
        return false;
    o->rule.n_ops = 0;
    o->rule.meter = false;
    o->meter_id = 0;
    o->rule.longest = k.longest;
    o->rule.super = k.super;
    o->queue_in = true;
    o->no_queue_in = k.queue != w->queue;
    return offload_rule_op(&o->rule, (struct offload_op){OFFLOAD_QUEUE_IN, (uint32_t)k.ifindex,
                                                         k.priority | (uint64_t)k.queue << 32});
}

/* The port's interface, or the one behind its queues. */
static int
comes_by(const struct port *in, enum offload_stage stage)
{
    return port_ifindex(stage == OFFLOAD_BEHIND_QUEUES ? port_shaper(in)->from : in);
}

enum offload_reason
offload_plan_make(struct dp *dp, const struct flow_key *key, enum offload_stage stage,
                  const struct offload_meters *meters, struct offload_plan *out)
{
    struct flow_path path;
    struct packet p;
    struct worker walker = {
        .dp = dp, .now = clock_ns(), .standalone = load_relaxed(&dp->standalone)};
    uint32_t in_port = of_get32(key->in_port);
    const struct port *in = dp_port(dp, in_port);
    struct plan_way w = {.run = {.on = &recorder, .path = &path}, .meters = meters, .out = out};
    w.now = (struct planned){.key = *key, .ttl = -1};
    w.inside = in && port_inside(in);
    memset(out, 0, sizeof *out);
    out->rule.longest = out->rule.super = OFFLOAD_MAX_FRAME;
    w.why = in_refusal(in, stage);
    if (w.why != OFFLOADED)
        return w.why;
    if (!is_kernel_kind(dp, key))
        return OFFLOAD_WHY_kind;
    if (!flow_walk(dp->tables, key, &path, &w.bits))
        return path.n == CACHE_STEPS ? OFFLOAD_WHY_long_path : OFFLOAD_WHY_unknown_key;
    w.bits.fragment = 0xff; /* flow hashes, round trips and set-config tell them from others */
    packet_of_key(key, &p);
    p.in_port = in_port;
    pipeline_dry_run(&walker, &p, &w.run);
    if (w.why != OFFLOADED)
        return w.why;
    out->rule.n_ops = w.kept;
    out->rule.ports = port_bits(out, in_port);
    out->rule.came_by = (uint32_t)port_ifindex(in);
    if (stage == OFFLOAD_AT_PORT && w.goes && port_shaper(in) && !put_in_queue(&w, port_shaper(in)))
        return OFFLOAD_WHY_shaped;
    return offload_rule_match(&out->rule, key, &w.bits, comes_by(in, stage)) ? OFFLOADED
                                                                             : OFFLOAD_WHY_mask;
}
