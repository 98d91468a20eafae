/* SPDX-License-Identifier: Apache-2.0 */
/* Which entries a change concerns. */
#include "state.h"

/* Comparing changes with entries may take only so much of a turn, and of a second.  Beyond that
 * it costs less to withdraw all entries: workers ask for them again. */
#define COMPARED_A_TURN   2000000
#define COMPARED_A_SECOND 20000000
#define SETTLE_NS         1000000 /* between two settlings, unless somebody needs one */
#define MANY_CHANGES      (CHANGES_TOLD / 2)

/* ------------------------------------------------------------------ one entry */

static bool
ports_concern(const struct sw_offload *f, const struct entry *e)
{
    if (e->any_port || offload_port_changed(f, e->in_port))
        return true;
    for (unsigned i = 0; i < e->n_outs; i++)
        if (offload_port_changed(f, e->out[i].port))
            return true;
    for (unsigned i = 0; i < e->n_drops; i++)
        if (offload_port_changed(f, e->drop[i].port))
            return true;
    return false;
}

static bool
queues_concern(const struct sw_offload *f, const struct entry *e)
{
    for (unsigned i = 0; i < e->n_outs; i++)
        if (e->out[i].no_queue || offload_queue_changed(f, e->out[i].port, e->out[i].queue))
            return true;
    return false;
}

/* Whether the entry's groups are no longer the same ones.  A modified group is another one. */
static bool
groups_concern(const struct groups *g, const struct entry *e)
{
    if (e->any_group)
        return true;
    for (unsigned i = 0; i < e->n_runs; i++)
        if (e->run[i].bucket < 0 && groups_find(g, e->run[i].id) != e->run[i].group)
            return true;
    for (unsigned i = 0; i < e->n_drops; i++)
        if (e->drop[i].group != OFPG_ANY && groups_find(g, e->drop[i].group) != e->drop[i].found)
            return true;
    return false;
}

static bool
flows_concern(const struct sw_offload *f, const struct entry *e)
{
    const struct known_path path = entry_path(e);
    return !tables_path_holds(f->sw->dp.tables, &path, &e->key, &e->mask, f->tables);
}

/* ------------------------------------------------------------------ all entries */

/* What has changed since the last time. */
struct changes {
    bool all, ports, queues, groups, meters, flows;
    uint32_t stale; /* bits of ports that went up or down */
    bool quick;     /* f->maybe says which entries the flows may concern */
};

static bool
is_wanted(const struct sw_offload *f)
{
    const struct dp *dp = &f->sw->dp;
    return !f->closing && !dp->capture;
}

/* Turns the kernel's part on or off.  When off, all entries are withdrawn: later they would
 * overtake packets that workers still have. */
static void
look_at_state(struct sw_offload *f)
{
    bool on = is_wanted(f);
    if (on == f->on || (f->closing && f->sw->opt.n_wires)) /* entries go on with the wires */
        return;
    f->on = on;
    f->all |= !on;
    offload_turn(f->o, on);
    if (!on && !f->closing)
        offload_grow_all(f);
}

static bool
is_too_much(struct sw_offload *f, uint64_t n)
{
    uint64_t now = loop_now(f->sw->loop), passed = now - f->credit_since;
    f->credit_since = now;
    f->credit +=
        passed >= NS_PER_S ? COMPARED_A_SECOND : passed * (COMPARED_A_SECOND / 1000) / 1000000;
    if (f->credit > COMPARED_A_SECOND)
        f->credit = COMPARED_A_SECOND;
    f->compared += n;
    if (f->compared > COMPARED_A_TURN || n > f->credit)
        return true;
    f->credit -= n;
    return false;
}

static struct changes
find_changes(struct sw_offload *f)
{
    const struct dp *dp = &f->sw->dp;
    unsigned long n = tables_changes(dp->tables) - f->tables;
    struct changes c = {.all = f->all,
                        .ports = f->ports,
                        .queues = f->queues,
                        .stale = offload_stale(f->o),
                        .groups = groups_changes(dp->groups) != f->groups,
                        .meters = meters_changes(dp->meters) != f->meters,
                        .flows = n};
    unsigned long each = n > CHANGES_TOLD ? 1 : n; /* then an entry's tables alone are looked at */
    c.all |= n && f->n_live && is_too_much(f, each * f->n_live);
    return c;
}

static bool
may_concern(const struct sw_offload *f, const struct changes *c, const struct entry *e)
{
    return c->flows && (!c->quick || f->maybe[e->at / 64] >> e->at % 64 & 1);
}

static bool
concern(const struct sw_offload *f, const struct changes *c, const struct entry *e)
{
    const struct dp *dp = &f->sw->dp;
    return (c->stale & e->ports) || (c->ports && ports_concern(f, e)) ||
           (c->queues && queues_concern(f, e)) || (c->groups && groups_concern(dp->groups, e)) ||
           (c->meters && e->meter_id && meters_find(dp->meters, e->meter_id) != e->meter) ||
           (may_concern(f, c, e) && flows_concern(f, e));
}

static void
note_settled(struct sw_offload *f)
{
    const struct dp *dp = &f->sw->dp;
    f->all = false;
    if (f->ports)
        memset(f->port, 0, sizeof f->port);
    f->ports = false;
    if (f->queues)
        memset(f->queue, 0, sizeof f->queue);
    f->queues = false;
    f->tables = tables_changes(dp->tables);
    f->groups = groups_changes(dp->groups);
    f->meters = meters_changes(dp->meters);
}

static void
take_out_concerned(struct sw_offload *f, struct changes *c)
{
    c->quick = c->flows && f->n_live && offload_quick_look(f);
    bool few = c->quick && !c->ports && !c->queues && !c->stale && !c->groups && !c->meters;
    for (uint32_t i = f->n_live; i--;) {
        if (few && !f->maybe[i / 64])
            i &= ~UINT32_C(63); /* none of these */
        else if (concern(f, c, f->live[i]))
            offload_take_out(f, f->live[i], GONE_CHANGED);
    }
}

void
offload_settle(struct sw_offload *f)
{
    look_at_state(f);
    struct changes c = find_changes(f);
    if (!c.all && !c.ports && !c.queues && !c.stale && !c.groups && !c.meters && !c.flows)
        return;
    if (c.all)
        offload_take_out_all(f);
    take_out_concerned(f, &c);
    note_settled(f);
    offload_finish(f);
    if (c.stale)
        offload_settled(f->o, c.stale);
}

/* ------------------------------------------------------------------ what workers ask for */

static bool
has_select_group(const struct groups *g)
{
    uint32_t pos = 0;
    for (const struct group *gr; (gr = groups_each(g, &pos));)
        if (gr->type == OFPGT_SELECT)
            return true;
    return false;
}

/* Tells the workers which bits distinguish packets.  Without memory they go on with the former
 * bits. */
static void
tell_workers(struct sw_offload *f)
{
    struct dp *dp = &f->sw->dp;
    struct flow_key more = {0};
    if (f->kinds_groups != groups_changes(dp->groups))
        f->selects = has_select_group(dp->groups);
    f->kinds_groups = groups_changes(dp->groups);
    if (f->selects)
        packet_flow_hash_any_bits(&more);
    if (f->normal) {
        memset(&more.eth_src, 0xff, sizeof more.eth_src);
        memset(&more.eth_dst, 0xff, sizeof more.eth_dst);
        of_set16(more.vlan_vid, OFPVID_PRESENT | 0xfff);
    }
    dp_set_kinds(dp, f->on && f->n_ports, &more);
}

/* ------------------------------------------------------------------ when */

void
sw_offload_settle(struct sw *sw)
{
    if (sw->offload)
        offload_settle(sw->offload);
}

void
sw_offload_relieve(struct sw *sw)
{
    struct sw_offload *f = sw->offload;
    if (f && tables_changes(sw->dp.tables) - f->tables >= MANY_CHANGES)
        offload_settle(f);
}

void
offload_look_at_changes(struct sw_offload *f)
{
    uint64_t now = loop_clock();
    f->compared = 0;
    if (fetch_store(&f->sw->dp.filled, false))
        loop_timer_set(f->grow, f->filled + OFFLOAD_LOOK_NS);
    if (now - f->settled < SETTLE_NS && f->on == is_wanted(f) && !f->ports && !f->queues &&
        !f->all && !offload_stale(f->o)) {
        if (tables_changes(f->sw->dp.tables) != f->tables)
            loop_timer_set(f->soon, f->settled + SETTLE_NS);
        return;
    }
    f->settled = now;
    offload_settle(f);
    tell_workers(f);
}
