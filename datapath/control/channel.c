/* SPDX-License-Identifier: Apache-2.0 */
#include "conn-async.h"
#include "conn-life.h"
#include "conn-packet-in.h"

#include <errno.h>
#include <stdlib.h>

/* Runs the connections on the flush list.  Those that come back onto it meanwhile wait for the next
 * turn. */
static void
flush_all(void *ctx)
{
    struct channel *ch = ctx;
    for (unsigned n = ch->n_flush; n && ch->flush; n--)
        conn_run(ch->flush);
    if (ch->flush)
        loop_timer_set(ch->flush_timer, 0);
}

int
channel_new(struct channel **out, struct loop *loop, const struct channel_ops *ops, void *ctx)
{
    struct channel *ch = calloc(1, sizeof *ch);
    if (!ch)
        return -ENOMEM;
    ch->loop = loop;
    ch->ops = *ops;
    ch->ctx = ctx;
    ch->opt = (struct channel_options)CHANNEL_OPTIONS_DEFAULT;
    ch->scratch = of_wr_grow(OF_MSG_MAX);
    ch->door_scratch = of_wr_grow(OF_MSG_MAX);
    of_arena_init(&ch->arena, OF_ARENA_MESSAGE);
    int err = loop_timer_new(loop, flush_all, ch, &ch->flush_timer);
    if (!err)
        err = loop_timer_new(loop, channel_packet_ins_due, ch, &ch->packet_in_timer);
    if (!err)
        err = loop_timer_new(loop, channel_async_due, ch, &ch->async_timer);
    if (!err)
        err = loop_timer_new(loop, channel_parts_due, ch, &ch->parts_timer);
    if (err) {
        loop_timer_free(ch->async_timer);
        loop_timer_free(ch->packet_in_timer);
        loop_timer_free(ch->flush_timer);
        free(ch);
        return err;
    }
    *out = ch;
    return 0;
}

void
channel_stop_dumps(struct channel *ch)
{
    ch->no_dumps = true;
}

void
channel_go_on(struct channel *ch)
{
    ch->no_dumps = false;
    for (struct conn *c = ch->conns; c; c = c->next) {
        if (conn_async_waits(c)) /* the notices of the commit go before its next answer */
            c->async_first = ch->async.end;
        if (c->held || c->dump.step) {
            c->held = false;
            conn_flush_later(c);
        }
    }
}

void
channel_flush(struct channel *ch)
{
    for (struct conn *c = ch->conns; c; c = c->next)
        if (!c->fail)
            conn_flush(c);
}

bool
channel_try_longest(struct channel *ch)
{
    struct conn *first = NULL;
    unsigned n = 0;
    for (struct conn *c = ch->conns; c; c = c->next) {
        n += c->held;
        if (c->held && (!first || c->held_since < first->held_since))
            first = c;
    }
    if (first) {
        first->held = false;
        conn_flush_later(first);
    }
    return n > 1;
}

void
channel_free(struct channel *ch)
{
    if (!ch)
        return;
    channel_listeners_free(ch);
    channel_targets_free(ch);
    while (ch->conns) {
        conn_flush(ch->conns);
        conn_because(ch->conns, "the switch ends");
        conn_close(ch->conns);
    }
    loop_timer_free(ch->flush_timer);
    loop_timer_free(ch->packet_in_timer);
    of_arena_free(&ch->arena);
    of_wr_free(&ch->scratch);
    of_wr_free(&ch->door_scratch);
    loop_timer_free(ch->async_timer);
    loop_timer_free(ch->parts_timer);
    free(ch);
}

void
channel_set_options(struct channel *ch, const struct channel_options *o)
{
    struct channel_options *to = &ch->opt;
    to->probe_ms = o->probe_ms ? o->probe_ms : to->probe_ms;
    to->hello_ms = o->hello_ms ? o->hello_ms : to->hello_ms;
    to->max_conns = o->max_conns ? o->max_conns : to->max_conns;
    to->aux = o->aux < CHANNEL_AUX_MAX ? o->aux : CHANNEL_AUX_MAX;
    to->backoff_ms = o->backoff_ms ? o->backoff_ms : to->backoff_ms;
    to->backoff_max_ms = o->backoff_max_ms ? o->backoff_max_ms : to->backoff_max_ms;
    if (to->backoff_ms > to->backoff_max_ms)
        to->backoff_ms = to->backoff_max_ms;
    to->versions = o->versions ? o->versions : to->versions;
    to->packet_in_rate = o->packet_in_rate;
    to->packet_in_burst = o->packet_in_burst       ? o->packet_in_burst
                          : o->packet_in_rate >= 4 ? o->packet_in_rate / 4
                                                   : 1;
}

void
channel_set_tls(struct channel *ch, struct stream_tls *tls)
{
    ch->tls = tls;
}

/* ------------------------------------------------------------------ what others may know */

const struct channel_counters *
channel_counters(const struct channel *ch)
{
    return &ch->counters;
}

struct conn *
channel_next(const struct channel *ch, const struct conn *c)
{
    struct conn *n = c ? c->next : ch->conns;
    while (n && n->phase != CONN_OPEN)
        n = n->next;
    return n;
}
