/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous messages on their way to a connection (packet-ins: conn-packet-in.c).
 *
 * A message goes to the output buffer if there is room.  Otherwise it waits in ch->async, once for
 * all peers: one request can cause more messages than a peer reads at once.  A peer that doesn't
 * read loses its oldest messages beyond ASYNC_STUCK_MAX, one that reads slowly beyond ASYNC_MAX.
 * What one turn of the loop adds is kept for all who read: it is bounded by the number of flows,
 * ports and queues. */
#include "conn-async.h"

#include <errno.h>

bool
conn_wants(const struct conn *c, enum async_kind kind, uint8_t reason)
{
    const struct of_async *a = &c->state.async;
    bool slave = c->state.role == OFPCR_ROLE_SLAVE;
    uint32_t mask = 0;
    if (!conn_is_controller(c) || conn_aux(c) || reason > 31)
        return false;
    switch (kind) {
    case ASYNC_PACKET_IN:
        if (reason == OFPR10_TABLE_MISS) {
            if (!c->door)
                return false;
            reason = OFPR_NO_MATCH;
        }
        mask = slave ? a->packet_in_mask1 : a->packet_in_mask0;
        break;
    case ASYNC_PORT_STATUS: mask = slave ? a->port_status_mask1 : a->port_status_mask0; break;
    case ASYNC_FLOW_REMOVED: mask = slave ? a->flow_removed_mask1 : a->flow_removed_mask0; break;
    case ASYNC_QOS: return c->state.monitor & OFPMON_QOS;
    case ASYNC_ROLE: return c->state.monitor & OFPMON_ROLES;
    case ASYNC_PROMISE: return c->state.monitor & OFPMON_PROMISES;
    case ASYNC_DROPS: return c->state.monitor & OFPMON_DROPS;
    case ASYNC_DELAYS: return c->state.monitor & OFPMON_DELAYS;
    }
    return mask >> reason & 1;
}

/* ------------------------------------------------------------------ to one connection */

static bool
has_room(const struct conn *c, size_t n)
{
    return conn_waiting(c) + n <= DUMP_CHUNK;
}

void
conn_async_run(struct conn *c)
{
    uint64_t end = conn_clock_ms() + TURN_MS;
    for (struct async_entry e; async_log_entry(&c->async, &e);) {
        if (!has_room(c, e.message.n)) {
            conn_flush(c);
            if (!has_room(c, e.message.n) || conn_clock_ms() > end)
                return;
        }
        if (conn_wants(c, (enum async_kind)e.kind, e.reason) && conn_sees(c, e.message)) /* still */
            conn_send_bytes(c, e.message);
        if (!async_log_entry(&c->async, &e))
            return; /* the flush found the peer gone */
        async_log_pass(&c->ch->async, &c->async);
    }
}

/* ------------------------------------------------------------------ those that don't read */

static void
drop_oldest(struct conn *c, uint64_t keep)
{
    struct async_log *log = &c->ch->async;
    for (struct async_entry e; log->end - c->async.pos > keep && async_log_entry(&c->async, &e);) {
        if (conn_wants(c, (enum async_kind)e.kind, e.reason) && conn_sees(c, e.message))
            COUNT(c, async_dropped, 1);
        async_log_pass(log, &c->async);
    }
}

/* Drops only what earlier turns have added. */
static void
trim(struct channel *ch)
{
    uint64_t now = loop_now(ch->loop);
    if (now == ch->async_trimmed)
        return;
    ch->async_trimmed = now;
    for (struct conn *c = ch->conns; c; c = c->next)
        if (conn_async_waits(c))
            drop_oldest(c, now - c->sent_at > ASYNC_STUCK_NS ? ASYNC_STUCK_MAX : ASYNC_MAX);
}

void
channel_async_due(void *ctx)
{
    struct channel *ch = ctx;
    trim(ch);
    if (ch->async.first)
        loop_timer_set(ch->async_timer, loop_now(ch->loop) + ASYNC_STUCK_NS);
}

/* ------------------------------------------------------------------ to all */

/* Adds it to ch->async, once; *place is where it is. */
static bool
keep(struct channel *ch, const struct async_entry *e, struct async_reader *place)
{
    if (place->chunk)
        return true;
    trim(ch);
    if (!ch->async.first)
        loop_timer_set(ch->async_timer, loop_now(ch->loop) + ASYNC_STUCK_NS);
    return !async_log_add(&ch->async, e, place);
}

static void
post(struct channel *ch, const struct async_entry *e)
{
    struct async_reader place = {0};
    for (struct conn *c = ch->conns; c; c = c->next) {
        if (!conn_wants(c, (enum async_kind)e->kind, e->reason) || !conn_sees(c, e->message))
            continue;
        if (!conn_async_waits(c) && has_room(c, e->message.n)) {
            conn_send_bytes(c, e->message);
        } else if (!keep(ch, e, &place)) {
            COUNT(c, async_dropped, 1);
        } else if (!conn_async_waits(c)) {
            async_log_begin(&c->async, &place);
            conn_flush_later(c);
        }
    }
}

static void
hold(struct channel *ch, const struct async_entry *e)
{
    struct async_reader place;
    if (async_log_add(&ch->held, e, &place))
        ch->counters.async_dropped++;
    else if (!ch->held_reader.chunk)
        async_log_begin(&ch->held_reader, &place);
}

void
channel_async(struct channel *ch, enum async_kind kind, uint8_t reason, uint8_t type,
              const void *body)
{
    struct of_wr *w = &ch->scratch;
    w->len = 0;
    if (!channel_wants(ch, kind, reason) || of_encode_body(w, type, 0, body))
        return;
    struct async_entry e = {(uint8_t)kind, reason, {w->buf, w->len}};
    if (ch->hold)
        hold(ch, &e);
    else
        post(ch, &e);
}

int
conn_notify(struct conn *c, uint8_t type, const void *body, bool must)
{
    struct of_wr *w = &c->ch->scratch;
    w->len = 0;
    int err = of_encode_body(w, type, 0, body);
    if (err)
        return err;
    if (!has_room(c, w->len))
        conn_flush(c);
    if (!must && !has_room(c, w->len))
        return -EAGAIN;
    return conn_send_bytes(c, (struct of_bytes){w->buf, w->len});
}

bool
channel_wants(const struct channel *ch, enum async_kind kind, uint8_t reason)
{
    const struct conn *c = ch->conns;
    while (c && !conn_wants(c, kind, reason))
        c = c->next;
    return c != NULL;
}

void
channel_hold(struct channel *ch)
{
    ch->hold = true;
}

void
channel_release(struct channel *ch, bool send)
{
    ch->hold = false;
    for (struct async_entry e; send && async_log_entry(&ch->held_reader, &e);) {
        post(ch, &e);
        async_log_pass(&ch->held, &ch->held_reader);
    }
    async_log_end(&ch->held, &ch->held_reader);
}
