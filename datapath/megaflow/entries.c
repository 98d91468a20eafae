/* SPDX-License-Identifier: Apache-2.0 */
/* Makes entries that workers have asked for. */
#include "state.h"

#include <packet/key-hash.h>
#include <shared/change-set.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ASKS_A_SECOND 4000
#define ASKS_AT_ONCE  1024
#define ASKS_A_TURN   256 /* and worker */
#define NS_PER_MS     UINT64_C(1000000)

#define REFUSED_NS NS_PER_S         /* how long a refusal is remembered, */
#define CHANGED_NS (50 * NS_PER_MS) /* and after a change of the tables */

/* ------------------------------------------------------------------ keys that were refused */

/* A packet that was asked for. */
struct asked {
    const struct flow_key *key;
    enum offload_stage stage;
};

static struct refusal *
refusal_of(struct sw_offload *f, struct asked a)
{
    return &f->refusal[(key_hash(a.key) + a.stage) % OFFLOAD_REFUSED];
}

static bool
refused_lately(struct sw_offload *f, struct asked a)
{
    struct refusal *r = refusal_of(f, a);
    uint64_t changed = r->tables != tables_changes(f->sw->dp.tables) ? REFUSED_NS - CHANGED_NS : 0;
    return r->until > f->now + changed && r->stage == a.stage &&
           !memcmp(&r->key, a.key, sizeof r->key);
}

static void
refuse(struct sw_offload *f, struct asked a, unsigned why, uint64_t until)
{
    f->counts.refused[why]++;
    *refusal_of(f, a) = (struct refusal){.key = *a.key,
                                         .stage = a.stage,
                                         .until = until,
                                         .tables = tables_changes(f->sw->dp.tables),
                                         .why = (uint8_t)why};
}

/* ------------------------------------------------------------------ making an entry */

static bool
take_ask(struct sw_offload *f)
{
    uint64_t more = (f->now - f->asks_since) * ASKS_A_SECOND / NS_PER_S;
    if (f->now - f->asks_since >= NS_PER_S)
        more = ASKS_AT_ONCE;
    if (more) {
        f->asks = f->asks + more < ASKS_AT_ONCE ? f->asks + more : ASKS_AT_ONCE;
        f->asks_since = f->now;
    }
    if (!f->asks) {
        f->counts.refused[SW_OFFLOAD_busy]++;
        return false;
    }
    f->asks--;
    return true;
}

static void
fill_match(struct entry *e, const struct offload_rule *r)
{
    offload_rule_packets(r, &e->key, &e->mask);
    e->key.w[0] = e->asked.w[0]; /* the interface is the port */
}

static void
fill_path(struct entry *e, const struct offload_plan *p)
{
    e->n_steps = (uint8_t)p->n_steps;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const struct offload_step *s = &p->step[i];
        e->table[i] = s->table;
        e->added[i] = s->added;
        e->step[i] = (struct path_step){s->flow, s->program};
        e->rekeys |= (uint8_t)(path_step_rekeys(&e->step[i]) << i);
    }
}

static void
fill_counted(struct sw_offload *f, struct entry *e, const struct offload_plan *p)
{
    struct dp *dp = &f->sw->dp;
    e->run = (struct entry_run *)(e + 1);
    e->drop = (struct entry_drop *)(e->run + p->n_runs);
    e->op = (struct offload_op *)(e->drop + p->n_drops);
    e->out = (struct entry_out *)(e->op + p->rule.n_ops);
    e->n_runs = (uint8_t)p->n_runs;
    e->n_drops = (uint8_t)p->n_drops;
    e->n_ops = (uint8_t)p->rule.n_ops;
    e->n_outs = (uint8_t)p->n_outs;
    for (uint32_t i = 0; i < p->n_runs; i++)
        e->run[i] = (struct entry_run){groups_find(dp->groups, p->run[i].group), p->run[i].group,
                                       p->run[i].bucket, p->run[i].added};
    for (uint32_t i = 0; i < p->n_drops; i++) {
        const struct offload_drop *d = &p->drop[i];
        e->drop[i] = (struct entry_drop){.why = (uint8_t)d->why,
                                         .port = d->port,
                                         .group = d->why == DROP_group ? d->group : OFPG_ANY};
        if (e->drop[i].group != OFPG_ANY)
            e->drop[i].found = groups_find(dp->groups, d->group);
    }
    memcpy(e->op, p->rule.op, p->rule.n_ops * sizeof *e->op);
    for (uint32_t i = 0; i < p->n_outs; i++)
        e->out[i] = (struct entry_out){p->out[i].port, p->out[i].queue, p->out[i].added,
                                       p->out[i].no_queue};
    e->metered = (uint8_t)p->metered;
    e->meter_id = p->meter_id;
    e->meter = p->meter_id ? meters_find(dp->meters, p->meter_id) : NULL;
    e->any_port = p->any_port;
    e->ports = p->rule.ports;
    e->any_group = p->any_group;
    e->stations = p->stations;
}

/* The same packets at the same place get the same entry again and have the same sign. */
static uint64_t
sign_of(const struct entry *e)
{
    return (uint64_t)(key_hash(&e->key) + e->stage) << 32 | key_hash(&e->mask);
}

static struct entry *
make_entry(struct sw_offload *f, struct asked a, const struct offload_plan *p)
{
    struct entry *e =
        calloc(1, sizeof *e + p->n_runs * sizeof *e->run + p->n_drops * sizeof *e->drop +
                      p->rule.n_ops * sizeof *e->op + p->n_outs * sizeof *e->out);
    if (!e)
        return NULL;
    e->asked = *a.key;
    e->stage = a.stage;
    e->queue_in = p->queue_in;
    e->no_queue_in = p->no_queue_in;
    e->in_port = of_get32(a.key->in_port);
    e->created = e->looked = f->now;
    fill_match(e, &p->rule);
    fill_path(e, p);
    fill_counted(f, e, p);
    e->sign = sign_of(e);
    return e;
}

/* Another port gives up a mask if this one's share of them is smaller. */
static void
take_share(struct sw_offload *f, const struct offload_rule *r)
{
    int mask = offload_mask_due(f->o, r);
    for (uint32_t i = f->n_live; mask >= 0 && i--;)
        if (offload_mask_of(f->o, f->live[i]->id) == (uint32_t)mask)
            offload_take_out(f, f->live[i], GONE_SHARED);
    if (mask >= 0)
        offload_finish(f);
}

static void
insert(struct sw_offload *f, struct asked a, const struct offload_plan *p)
{
    struct entry *e = make_entry(f, a, p);
    const struct pause *pause = e ? offload_pause_of(f, e->sign) : NULL;
    int err = e ? 0 : -ENOMEM;
    if (e && pause->sign == e->sign && pause->until > f->now) {
        refuse(f, a, SW_OFFLOAD_changes, pause->until);
        free(e);
        return;
    }
    if (!err)
        take_share(f, &p->rule);
    if (!err)
        err = f->n_live + f->n_gone < f->most ? offload_insert(f->o, &p->rule, &e->id) : -ENOSPC;
    if (err) {
        bool joins = err == -EEXIST && offload_joins(f->o, e->id);
        free(e);
        if (joins) {
            refuse(f, a, SW_OFFLOAD_merged, f->now + REFUSED_NS);
        } else if (err != -EEXIST) { /* another worker has asked for it */
            f->full = f->now;
            refuse(f, a, SW_OFFLOAD_full, f->now + REFUSED_NS);
        }
        return;
    }
    e->at = f->n_live;
    f->live[f->n_live++] = e;
    offload_quick_put(f, e);
    f->counts.inserted++;
    if (f->n_live == 1)
        loop_timer_set(f->tick, f->now + OFFLOAD_TICK_NS);
}

void
offload_ask(struct sw_offload *f, const struct flow_key *key, enum offload_stage stage)
{
    struct offload_plan p;
    const struct asked a = {key, stage};
    f->now = loop_now(f->sw->loop);
    if (!f->on || f->closing)
        return;
    if (refused_lately(f, a) || !take_ask(f))
        return;
    f->counts.asked++;
    offload_settle(f); /* so that all entries are made from the same state of the tables */
    if (!f->on)
        return;
    enum offload_reason why = offload_plan_make(&f->sw->dp, key, stage, &f->places, &p);
    f->normal |= why == OFFLOAD_WHY_normal || (why == OFFLOADED && p.stations.in);
    if (why != OFFLOADED)
        refuse(f, a, why, f->now + REFUSED_NS);
    else
        insert(f, a, &p);
}

/* Workers have another state of the tables than this thread has.  A task that changes queues is no obstacle: what ports
 * send by is changed queue by queue, and each change withdraws the port's entries. */
static bool
is_between(const struct sw *sw)
{
    return change_set_active() || tasks_locked(sw->tasks) & TABLES;
}

bool
sw_offload_asked(struct sw *sw)
{
    struct sw_offload *f = sw->offload;
    unsigned n = 0;
    if (!f)
        return false;
    f->asked = is_between(sw); /* workers ask again ever more seldom */
    for (unsigned i = 0; !f->asked && i < sw->dp.n_workers; i++) {
        struct offload_sample *s = sw->dp.workers[i]->sample;
        const struct offload_request *r;
        for (n = 0; n < ASKS_A_TURN && (r = sample_peek(s)); n++) {
            offload_ask(f, &r->key, r->behind ? OFFLOAD_BEHIND_QUEUES : OFFLOAD_AT_PORT);
            sample_take(s);
        }
        if (n == ASKS_A_TURN)
            return true;
    }
    return false;
}
