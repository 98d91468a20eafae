/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of the packets that the pipeline gets: what they say must come out, and nothing may be
 * different for them. */
#include "fixture.h"

#include <trace/trace.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM (TRACE_BYTES_MAX + 2 * OF_MSG_MAX)

static void
take_output(struct traced *t, const struct of_trace_output *e)
{
    if (!e->goes)
        return;
    struct oracle_out *o = oracle_log_add(&t->log, e->data.p, (uint32_t)e->data.n);
    o->port = e->port_no;
    o->queue = e->queue_id;
}

static void
take_packet_in(struct traced *t, const struct of_trace_packet_in *e)
{
    if (e->suppressed)
        return;
    struct oracle_out *o = oracle_log_add(&t->log, e->data.p, (uint32_t)e->data.n);
    o->packet_in = true;
    o->cookie = e->cookie;
    o->table_id = e->table_id;
    o->reason = e->reason;
    o->max_len = e->max_len;
}

static void
take_drop(struct traced *t, const struct of_trace_drop *e)
{
    static const char *const names[] = {
#define NAME(name, ...) "drop." #name,
        DROP_ROWS(NAME)};
    for (int i = 0; i < DROP_N; i++)
        t->drops[i] += !strcmp(e->reason, names[i]);
}

static void
take(struct traced *t, const struct of_list *events)
{
    for (uint32_t i = 0; i < events->n; i++) {
        switch (OF_AT(events, i, struct of_tagged)->row->type) {
        case OFPTE_OUTPUT: take_output(t, events->v[i]); break;
        case OFPTE_PACKET_IN: take_packet_in(t, events->v[i]); break;
        case OFPTE_DROP: take_drop(t, events->v[i]); break;
        }
    }
}

/* What a trace could disturb, but for the counters, which the oracle has too. */
struct state {
    uint64_t drops[DROP_N], full_at;
    uint32_t sent;
    bool to_tell;
};

static struct state
state_of(const struct fixture *fx)
{
    struct state s = {.full_at = *meters_find(fx->dp->meters, METER_ID)->bands[0].full_at,
                      .sent = fx->io->n,
                      .to_tell = fx->worker.to_tell};
    memcpy(s.drops, fx->drops, sizeof s.drops);
    return s;
}

static bool
same_state(const struct state *a, const struct state *b)
{
    return !memcmp(a->drops, b->drops, sizeof a->drops) && a->full_at == b->full_at &&
           a->sent == b->sent && a->to_tell == b->to_tell;
}

bool
fixture_trace(struct fixture *fx, const struct frame *f, uint32_t in_port, struct traced *out,
              char *why)
{
    static const struct trace_env nothing;
    struct of_trace_request r = {
        .in_port = in_port, .max_len = UINT16_MAX, .data = {f->data, f->n}};
    struct of_arena arena;
    struct of_list events = {0};
    struct of_wr w = of_wr_grow(ROOM);
    struct state before = state_of(fx);
    *out = (struct traced){0};
    of_arena_init(&arena, 64u << 20);
    int err = trace_run(fx->dp, &nothing, &r, fx->world.now, &w);
    struct state after = state_of(fx);
    if (!err)
        err =
            of_decode_list((struct of_bytes){w.buf, w.len}, &of_list_trace_events, &arena, &events);
    if (!err)
        take(out, &events);
    if (err)
        snprintf(why, 256, "a trace: error %x", (unsigned)err);
    else if (!same_state(&before, &after))
        snprintf(why, 256, "a trace has changed something");
    fx->traced++;
    fx->traced_out += out->log.n;
    of_arena_free(&arena);
    of_wr_free(&w);
    return !err && same_state(&before, &after);
}

void
fixture_traced_free(struct traced *t)
{
    oracle_log_clear(&t->log);
    free(t->log.v);
}

static bool
same_out(const struct oracle_out *x, const struct oracle_out *y)
{
    return x->cookie == y->cookie && x->table_id == y->table_id && x->reason == y->reason &&
           x->max_len == y->max_len && (x->packet_in || x->queue == y->queue) && x->n == y->n &&
           !memcmp(x->data, y->data, x->n);
}

/* The packets of one port, or the packet-ins, in order. */
static const struct oracle_out *
next_of(const struct oracle_log *l, uint32_t *at, bool packet_in, uint32_t port)
{
    while (*at < l->n) {
        const struct oracle_out *o = &l->v[(*at)++];
        if (o->packet_in == packet_in && (packet_in || o->port == port))
            return o;
    }
    return NULL;
}

static bool
check_some(const struct fixture *fx, const struct traced *t, uint32_t from, bool packet_in,
           uint32_t port)
{
    for (uint32_t i = 0, k = from;;) {
        const struct oracle_out *x = next_of(&t->log, &i, packet_in, port);
        const struct oracle_out *y = next_of(&fx->oracle.log, &k, packet_in, port);
        if (!x && !y)
            return true;
        if (!x || !y || !same_out(x, y))
            return false;
    }
}

bool
fixture_check_trace(const struct fixture *fx, const struct traced *t, uint32_t from,
                    const uint64_t *drops, char *why)
{
    bool same = check_some(fx, t, from, true, 0);
    for (int i = 0; same && i < ORACLE_PORTS; i++)
        same = !fx->world.port[i].no || check_some(fx, t, from, false, fx->world.port[i].no);
    if (!same)
        snprintf(why, 256, "the trace said that something else would come out");
    for (int i = 0; same && i < DROP_N; i++) {
        same = t->drops[i] == fx->drops[i] - drops[i];
        if (!same)
            snprintf(why, 256, "the trace counted %u drops for reason %d, not %u",
                     (unsigned)t->drops[i], i, (unsigned)(fx->drops[i] - drops[i]));
    }
    return same;
}
