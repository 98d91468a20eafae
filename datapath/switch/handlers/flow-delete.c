/* SPDX-License-Identifier: Apache-2.0 */
/* A delete of many flows is spread over turns: a million would make everybody wait for more than
 * a second.  The flows are listed when the request comes; flows that others add later stay.
 * Until the last one is removed, no other change begins, and the requests that follow on the
 * same connection wait. */
#include "flow-mod.h"

#include <handlers/handlers.h>
#include <shared/rcu.h>

#include <errno.h>
#include <stdlib.h>

#define REMOVE_AT_ONCE 256

static int
list_one(void *ctx, struct flow *f)
{
    struct sw_removal *r = ctx;
    if (r->n == r->cap) {
        uint32_t cap = r->cap ? r->cap * 2 : 64;
        struct flow **v = realloc(r->v, cap * sizeof *v);
        if (!v)
            return -ENOMEM;
        r->v = v;
        r->cap = cap;
    }
    flow_hold(f);
    r->v[r->n++] = f;
    return 0;
}

/* Lets go of what is still on the list. */
static void
clear(struct sw_removal *r)
{
    while (r->at < r->n)
        flow_release(r->v[r->at++]);
    free(r->v);
    r->v = NULL;
    r->n = r->cap = r->at = 0;
    r->c = NULL;
}

/* Removes as many as one turn allows.  Returns whether the last one is removed. */
static bool
remove_some(struct sw *sw)
{
    struct sw_removal *r = &sw->removal;
    uint64_t now = loop_now(sw->loop), until = loop_clock() + SW_TURN_NS;
    while (r->at < r->n && loop_clock() < until)
        for (int i = 0; i < REMOVE_AT_ONCE && r->at < r->n; i++) {
            struct flow *f = r->v[r->at++];
            if (!f->removed) /* it may have timed out meanwhile */
                tables_remove(sw->dp.tables, f, OFPRR_DELETE, now);
            flow_release(f);
        }
    rcu_relieve();
    if (r->at < r->n) {
        loop_timer_set(r->timer, 0);
        return false;
    }
    clear(r);
    return true;
}

static void
next_turn(void *ctx)
{
    struct sw *sw = ctx;
    if (!remove_some(sw))
        return;
    rcu_wait(); /* flow-removed messages of the last ones go before the next answer, too */
    channel_go_on(sw->channel);
}

int
sw_flow_delete(struct sw *sw, struct conn *c, const struct of_flow_mod *q)
{
    struct sw_removal *r = &sw->removal;
    int err = tables_each_deleted(sw->dp.tables, q, list_one, r);
    if (err) {
        clear(r);
        return err == -ENOMEM ? tables_flow_mod(sw->dp.tables, q, loop_now(sw->loop)) : err;
    }
    r->c = c;
    remove_some(sw);
    return 0;
}

int
sw_removal_init(struct sw *sw)
{
    return loop_timer_new(sw->loop, next_turn, sw, &sw->removal.timer);
}

void
sw_removal_stop(struct sw *sw)
{
    clear(&sw->removal);
    loop_timer_free(sw->removal.timer);
}
