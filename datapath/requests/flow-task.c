/* SPDX-License-Identifier: Apache-2.0 */
/* A request that deletes or modifies many flows is a task (task/task.h): a million would make everybody wait for more
 * than a second.  So is the deletion of a group or a meter, with which all flows go that use it.
 *
 * The flows are listed when the request comes; what others add later stays.  Until the last one is done, no other
 * change begins, and the requests that follow on the same connection wait. */
#include "flow-mod.h"

#include <megaflow/megaflow.h>
#include <shared/rcu.h>

#include <errno.h>
#include <stdlib.h>

#define AT_ONCE 256

struct flow_task {
    struct task task;
    struct sw *sw;
    struct deferred request;
    struct flow **v; /* held from `at` on */
    uint32_t n, cap, at;
    struct tables_modify *modify; /* what becomes of them; NULL: they are deleted */
    bool resets;                  /* their counters begin anew */
    uint32_t buffer_id;           /* of a packet that goes through the tables then */
    uint8_t type; /* OFPT_GROUP_MOD, OFPT_METER_MOD: deletes this id and the flows that use it */
    uint32_t id;
    int err;
};

static struct flow_task *
make_task(struct sw *sw)
{
    struct flow_task *s = malloc(sizeof *s);
    if (s)
        *s = (struct flow_task){.sw = sw, .type = OFPT_FLOW_MOD, .buffer_id = OFP_NO_BUFFER};
    return s;
}

static int
list_one(void *ctx, struct flow *f)
{
    struct flow_task *s = ctx;
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

/* Lets go of what is still on the list, too. */
static void
free_task(void *ctx)
{
    struct flow_task *s = ctx;
    while (s->at < s->n)
        flow_release(s->v[s->at++]);
    free(s->v);
    tables_modify_end(s->modify);
    deferred_end(&s->request);
    free(s);
}

/* ------------------------------------------------------------------ a turn */

/* It may have timed out meanwhile. */
static int
change_one(const struct flow_task *s, struct flow *f)
{
    uint64_t now = loop_now(s->sw->loop);
    if (f->removed)
        return 0;
    return s->modify ? tables_modify_flow(s->sw->dp.tables, s->modify, f, now)
                     : tables_remove(s->sw->dp.tables, f, OFPRR_DELETE, now);
}

/* A group or a meter with at most so many flows. */
static int
delete_with_flows(const struct sw *sw, uint8_t type, uint32_t id, uint32_t most)
{
    uint64_t now = loop_now(sw->loop);
    const struct of_group_mod group = {.command = OFPGC_DELETE, .group_id = id};
    const struct of_meter_mod meter = {.command = OFPMC_DELETE, .meter_id = id};
    return type == OFPT_GROUP_MOD ? tables_group_mod(sw->dp.tables, &group, most, now)
                                  : tables_meter_mod(sw->dp.tables, &meter, most, now);
}

/* Returns whether there is more to do. */
static bool
change_some(struct flow_task *s)
{
    if (s->type != OFPT_FLOW_MOD)
        return (s->err = delete_with_flows(s->sw, s->type, s->id, AT_ONCE)) == -EAGAIN;
    for (int i = 0; i < AT_ONCE && s->at < s->n && !s->err; i++) {
        s->err = change_one(s, s->v[s->at]);
        flow_release(s->v[s->at++]);
    }
    return s->at < s->n && !s->err;
}

static enum task_progress
run(void *ctx, uint64_t deadline)
{
    struct flow_task *s = ctx;
    bool more;
    if (s->resets)
        sw_offload_sync(s->sw); /* or what the kernel did before would count after it */
    do
        more = change_some(s);
    while (more && loop_clock() < deadline);
    rcu_relieve();
    return more ? TASK_MORE : TASK_OVER;
}

/* All flows are done.  -> as a handler's */
static int
finish(const struct flow_task *s)
{
    if (s->err)
        return s->err == -ENOMEM ? OF_FLOW_MOD_FAILED(TABLE_FULL) : s->err;
    return s->buffer_id == OFP_NO_BUFFER ? 0
                                         : sw_buffer_release(s->sw, s->request.conn, s->buffer_id);
}

static void
end(void *ctx)
{
    struct flow_task *s = ctx;
    int err = finish(s);
    rcu_wait(); /* the last ones are reported, too, before the next answer */
    deferred_error(&s->request, err);
    free_task(s);
}

/* Takes s.  A short one is over when the handler returns. */
static int
begin(struct flow_task *s, struct conn *c, const struct of_msg *m)
{
    static const struct task_kind kind = {
        .needs = QUEUES, .locks = QUEUES, .run = run, .end = end, .stop = free_task};
    deferred_begin(&s->request, c, m);
    if (task_start(s->sw->tasks, &s->task, &kind, s))
        return 0;
    int err = finish(s);
    free_task(s);
    return err;
}

/* ------------------------------------------------------------------ the requests */

/* Without memory for a list, all at once. */
int
sw_flow_delete(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    struct flow_task *s = make_task(sw);
    int err = s ? tables_each_deleted(sw->dp.tables, m->body, list_one, s) : -ENOMEM;
    if (!err)
        return begin(s, c, m);
    if (s)
        free_task(s);
    return err == -ENOMEM ? tables_flow_mod(sw->dp.tables, m->body, loop_now(sw->loop)) : err;
}

int
sw_flow_modify(struct sw *sw, struct conn *c, const struct of_msg *m, bool *none)
{
    struct flow_task *s = make_task(sw);
    const struct of_flow_mod *q = m->body;
    int err = s ? tables_modify_begin(sw->dp.tables, q, list_one, s, &s->modify) : -ENOMEM;
    *none = !err && !s->n;
    if (err || *none) {
        if (s)
            free_task(s);
        return err == -ENOMEM ? OF_FLOW_MOD_FAILED(TABLE_FULL) : err;
    }
    s->buffer_id = q->buffer_id;
    s->resets = q->flags & OFPFF_RESET_COUNTS;
    return begin(s, c, m);
}

int
sw_delete_with_flows(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    uint32_t id = m->type == OFPT_GROUP_MOD ? ((const struct of_group_mod *)m->body)->group_id
                                            : ((const struct of_meter_mod *)m->body)->meter_id;
    struct flow_task *s = make_task(sw);
    if (!s)
        return delete_with_flows(sw, m->type, id, UINT32_MAX);
    s->type = m->type;
    s->id = id;
    return begin(s, c, m);
}
