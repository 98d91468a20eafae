/* SPDX-License-Identifier: Apache-2.0 */
/* An entry's end, because of a change or for want of packets; and whether workers join its segments. */
#include "state.h"

#include <packet/headers.h>

#include <stdlib.h>

#define NS_PER_MS UINT64_C(1000000)

#define PAUSE_MS   10 /* after a change; doubles up to */
#define PAUSE_MAX  1000
#define SHORT_LIFE (10 * NS_PER_S) /* if the last pause ended longer ago, pauses begin anew */

#define AGE_NS      (60 * NS_PER_S) /* without a packet */
#define AGE_FULL_NS NS_PER_S        /* the same while there is no room */

#define JOIN_FROM  (20000 * OFFLOAD_TICK_NS / NS_PER_S) /* segments of a tick */
#define JOIN_UNTIL (JOIN_FROM / 2)

/* ------------------------------------------------------------------ entries to wait with */

struct pause *
offload_pause_of(struct sw_offload *f, uint64_t sign)
{
    return &f->pause[(sign ^ sign >> 32) % OFFLOAD_PAUSES];
}

static void
begin_pause(struct sw_offload *f, const struct entry *e)
{
    struct pause *p = offload_pause_of(f, e->sign);
    uint64_t now = loop_now(f->sw->loop);
    bool again = p->sign == e->sign && now < p->until + SHORT_LIFE &&
                 now - e->created < p->ms * NS_PER_MS + NS_PER_S;
    uint32_t wait = again ? p->ms * 2 : PAUSE_MS;
    if (p->sign != e->sign && p->until > now &&
        p->ms > wait) /* another entry's longer pause has the place */
        return;
    *p = (struct pause){.sign = e->sign, .ms = wait < PAUSE_MAX ? wait : PAUSE_MAX};
    p->until = now + p->ms * NS_PER_MS;
}

/* ------------------------------------------------------------------ an entry's end */

void
offload_take_out(struct sw_offload *f, struct entry *e, enum gone_why why)
{
    offload_withdraw(f->o, e->id);
    struct entry *last = f->live[--f->n_live];
    f->live[e->at] = last;
    last->at = e->at;
    offload_quick_move(f, e->at, f->n_live);
    f->gone[f->n_gone++] = e;
    if (why == GONE_CHANGED)
        begin_pause(f, e);
    if (why == GONE_CHANGED || why == GONE_ALL)
        f->counts.withdrawn++;
    else
        f->counts.aged++;
}

void
offload_finish(struct sw_offload *f)
{
    if (!f->n_gone)
        return;
    offload_quiesce(f->o);
    while (f->n_gone) {
        struct entry *e = f->gone[--f->n_gone];
        offload_count(f, e);
        offload_release(f->o, e->id);
        free(e);
    }
}

void
offload_take_out_all(struct sw_offload *f)
{
    f->counts.all += f->n_live != 0;
    while (f->n_live)
        offload_take_out(f, f->live[f->n_live - 1], GONE_ALL);
}

void
offload_leave_all(struct sw_offload *f)
{
    while (f->n_live) {
        struct entry *e = f->live[--f->n_live];
        offload_count(f, e);
        free(e);
    }
}

/* ------------------------------------------------------------------ entries that go on their own */

void
offload_age(struct sw_offload *f, uint64_t now)
{
    uint64_t most = f->full && now - f->full < AGE_NS ? AGE_FULL_NS : AGE_NS;
    for (uint32_t i = f->n_live; i--;) {
        struct entry *e = f->live[i];
        uint64_t used = offload_used(f->o, e->id);
        if (used < e->created)
            used = e->created;
        if (now > used && now - used > most)
            offload_take_out(f, e, GONE_AGED);
    }
    offload_finish(f);
}

/* Whether all outputs' drivers cut super-packets.  Else the kernel would cut again what workers have joined. */
static bool
outputs_cut(const struct sw_offload *f, const struct entry *e)
{
    for (uint8_t i = 0; i < e->n_outs; i++) {
        const struct sw_port *p = sw_ports_find(f->sw, e->out[i].port);
        if (!p || !p->link.cuts_tcp)
            return false;
    }
    return e->n_outs;
}

/* Workers join segments as hosts without offloads send them, so that all that follows costs less
 * (packet/coalesce.c): if there are many, and more than came in super-packets.  What comes out of a port's queues
 * they have joined before. */
static void
judge_segments(struct sw_offload *f, struct entry *e)
{
    uint64_t segments = e->read.segments - e->tick.segments,
             in_supers = (e->read.packets - e->read.frames) - (e->tick.packets - e->tick.frames);
    uint32_t joined = offload_joined(f->o, e->id), now = joined - e->joined;
    e->joined = joined;
    if (e->stage == OFFLOAD_BEHIND_QUEUES)
        return;
    if (offload_joins(f->o, e->id) && (now < JOIN_UNTIL || !outputs_cut(f, e)))
        offload_join(f->o, e->id, false);
    else if (segments > JOIN_FROM && segments > in_supers && outputs_cut(f, e))
        offload_join(f->o, e->id, true);
}

/* OFPP_NORMAL: whether a station has moved from where the entry takes it to be.  If none has,
 * packets since the last tick renew the source's age, as if workers had seen them. */
static bool
has_moved(const struct sw_offload *f, const struct entry *e, uint32_t now)
{
    const struct offload_stations *s = &e->stations;
    struct normal *n = f->sw->dp.normal;
    if (!s->in)
        return false;
    if (normal_find(n, s->src, s->vid, now) != s->in ||
        (s->to && normal_find(n, s->dst, s->vid, now) != s->to))
        return true;
    if (e->read.frames != e->tick.frames)
        normal_learn(n, s->src, s->vid, s->in, now);
    return false;
}

void
offload_judge(struct sw_offload *f)
{
    uint32_t now = (uint32_t)(clock_ns() / NS_PER_S);
    uint64_t hits[OFFLOAD_MASKS] = {0};
    offload_sync(f);
    for (uint32_t i = f->n_live; i--;) {
        struct entry *e = f->live[i];
        bool moved = has_moved(f, e, now);
        judge_segments(f, e);
        hits[offload_mask_of(f->o, e->id)] += e->read.frames - e->tick.frames;
        e->tick = e->read;
        if (moved)
            offload_take_out(f, e, GONE_CHANGED);
    }
    offload_order_masks(f->o, hits);
    offload_finish(f);
}
