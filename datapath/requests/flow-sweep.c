/* SPDX-License-Identifier: Apache-2.0 */
/* A request that deletes or modifies many flows is spread over turns: a million would make everybody wait for more
 * than a second.  So is the deletion of a group or a meter, with which all flows go that use it.
 *
 * The flows are listed when the request comes; what others add later stays.  Until the last one is done, no other
 * change begins, and the requests that follow on the same connection wait. */
#include "flow-mod.h"

#include <megaflow/megaflow.h>
#include <requests/handlers.h>
#include <shared/rcu.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define AT_ONCE 256

static int
list_one(void *ctx, struct flow *f)
{
    struct sw_sweep *s = ctx;
    if (s->n == s->cap) {
        uint32_t cap = s->cap ? s->cap * 2 : 64;
        struct flow **v = realloc(s->v, cap * sizeof *v);
        if (!v)
            return -ENOMEM;
        s->v = v;
        s->cap = cap;
    }
    flow_hold(f);
    s->v[s->n++] = f;
    return 0;
}

/* Lets go of what is still on the list. */
static void
clear(struct sw_sweep *s)
{
    while (s->at < s->n)
        flow_release(s->v[s->at++]);
    free(s->v);
    tables_modify_end(s->modify);
    deferred_end(&s->request);
    *s = (struct sw_sweep){.timer = s->timer, .group_id = OFPG_ANY, .buffer_id = OFP_NO_BUFFER};
}

/* ------------------------------------------------------------------ a turn */

/* It may have timed out meanwhile. */
static int
change_one(struct sw *sw, struct flow *f)
{
    const struct sw_sweep *s = &sw->flow_sweep;
    uint64_t now = loop_now(sw->loop);
    if (f->removed)
        return 0;
    return s->modify ? tables_modify_flow(sw->dp.tables, s->modify, f, now)
                     : tables_remove(sw->dp.tables, f, OFPRR_DELETE, now);
}

/* Returns whether there is more to do. */
static bool
change_some(struct sw *sw)
{
    struct sw_sweep *s = &sw->flow_sweep;
    if (s->group_id != OFPG_ANY)
        return groups_remove_users(sw->dp.groups, s->group_id, AT_ONCE);
    if (s->meter_id)
        return meters_remove_users(sw->dp.meters, s->meter_id, AT_ONCE);
    for (int i = 0; i < AT_ONCE && s->at < s->n && !s->err; i++) {
        s->err = change_one(sw, s->v[s->at]);
        flow_release(s->v[s->at++]);
    }
    return s->at < s->n && !s->err;
}

/* All flows are done.  -> as a handler's */
static int
finish(struct sw *sw)
{
    struct sw_sweep *s = &sw->flow_sweep;
    uint64_t now = loop_now(sw->loop);
    if (s->group_id != OFPG_ANY)
        return groups_mod(sw->dp.groups,
                          &(struct of_group_mod){.command = OFPGC_DELETE, .group_id = s->group_id},
                          now);
    if (s->meter_id)
        return meters_mod(sw->dp.meters,
                          &(struct of_meter_mod){.command = OFPMC_DELETE, .meter_id = s->meter_id},
                          now);
    if (s->err)
        return s->err == -ENOMEM ? OF_FLOW_MOD_FAILED(TABLE_FULL) : s->err;
    return s->buffer_id == OFP_NO_BUFFER ? 0 : sw_buffer_release(sw, s->request.conn, s->buffer_id);
}

/* Returns whether it was the last; *err: how it ended. */
static bool
turn(struct sw *sw, int *err)
{
    struct sw_sweep *s = &sw->flow_sweep;
    uint64_t until = loop_clock() + SW_TURN_NS;
    bool more;
    if (s->resets)
        sw_offload_sync(sw); /* or what the kernel did before would count after it */
    do
        more = change_some(sw);
    while (more && loop_clock() < until);
    rcu_relieve();
    if (more) {
        loop_timer_set(s->timer, 0);
        return false;
    }
    *err = finish(sw);
    return true;
}

static void
next_turn(void *ctx)
{
    struct sw *sw = ctx;
    struct sw_sweep *s = &sw->flow_sweep;
    int err;
    if (!turn(sw, &err))
        return;
    rcu_wait(); /* the last ones are reported, too, before the next answer */
    deferred_error(&s->request, err);
    clear(s);
    channel_go_on(sw->channel);
}

static int
begin(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    struct sw_sweep *s = &sw->flow_sweep;
    int err = 0;
    deferred_begin(&s->request, c, m);
    s->under_way = !turn(sw, &err);
    if (!s->under_way)
        clear(s);
    return err;
}

/* ------------------------------------------------------------------ the requests */

int
sw_flow_delete(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    struct sw_sweep *s = &sw->flow_sweep;
    int err = tables_each_deleted(sw->dp.tables, m->body, list_one, s);
    if (!err)
        return begin(sw, c, m);
    clear(s);
    return err == -ENOMEM ? tables_flow_mod(sw->dp.tables, m->body, loop_now(sw->loop)) : err;
}

int
sw_flow_modify(struct sw *sw, struct conn *c, const struct of_msg *m, bool *none)
{
    struct sw_sweep *s = &sw->flow_sweep;
    const struct of_flow_mod *q = m->body;
    int err = tables_modify_begin(sw->dp.tables, q, list_one, s, &s->modify);
    *none = !err && !s->n;
    if (err || *none) {
        clear(s);
        return err == -ENOMEM ? OF_FLOW_MOD_FAILED(TABLE_FULL) : err;
    }
    s->buffer_id = q->buffer_id;
    s->resets = q->flags & OFPFF_RESET_COUNTS;
    return begin(sw, c, m);
}

int
sw_group_delete(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    uint32_t id = ((const struct of_group_mod *)m->body)->group_id;
    int err = groups_check_delete(sw->dp.groups, id);
    if (err)
        return err;
    sw->flow_sweep.group_id = id;
    return begin(sw, c, m);
}

int
sw_meter_delete(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    sw->flow_sweep.meter_id = ((const struct of_meter_mod *)m->body)->meter_id;
    return begin(sw, c, m);
}

/* ------------------------------------------------------------------ beginning and end */

int
sw_sweep_init(struct sw *sw)
{
    clear(&sw->flow_sweep);
    return loop_timer_new(sw->loop, next_turn, sw, &sw->flow_sweep.timer);
}

void
sw_sweep_stop(struct sw *sw)
{
    clear(&sw->flow_sweep);
    loop_timer_free(sw->flow_sweep.timer);
}
