/* SPDX-License-Identifier: Apache-2.0 */
/* Where connections come from: listening sockets and peers to connect to. */
#include "conn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#define ACCEPT_A_TURN 16
#define PAUSE_NS      200000000u /* for descriptors to become free again */

struct listener {
    struct channel *ch;
    struct listener *next;
    struct stream_listener *stream;
    struct loop_io *io;
    struct loop_timer *pause;
};

struct target {
    struct channel *ch;
    struct target *next;
    char *name;
    struct stream_remote remote;
    unsigned at; /* the address to try next */
    uint32_t backoff_ms;
    struct loop_timer *timer;
    struct conn *conn;
};

/* ------------------------------------------------------------------ listening */

static void
take(struct listener *l, struct stream *s, const char *peer)
{
    struct channel *ch = l->ch;
    bool local = stream_listener_is_local(l->stream);
    unsigned limit = CHANNEL_MAX_CONNS - (local ? 0 : CHANNEL_UNIX_SPARE);
    struct conn *c;
    if (ch->n_accepted >= limit) {
        ch->counters.refused++;
        stream_close(s);
        return;
    }
    ch->counters.accepted++;
    if (conn_new(ch, s, peer, &c))
        return;
    c->accepted = true;
    c->probe = !local;
    ch->n_accepted++;
}

static void
on_accept(void *ctx, uint32_t events)
{
    struct listener *l = ctx;
    for (int i = 0; i < ACCEPT_A_TURN; i++) {
        char peer[STREAM_PEER_MAX];
        struct stream *s;
        int err = stream_accept(l->stream, &s, peer, sizeof peer);
        if (!err) {
            take(l, s, peer);
        } else if (err == -EAGAIN) {
            return;
        } else if (err == -EMFILE || err == -ENFILE || err == -ENOBUFS || err == -ENOMEM) {
            loop_io_set(l->io, 0);
            loop_timer_set(l->pause, loop_now(l->ch->loop) + PAUSE_NS);
            return;
        }
    }
}

static void
on_pause_over(void *ctx)
{
    struct listener *l = ctx;
    loop_io_set(l->io, EPOLLIN);
}

static void
listener_free(struct listener *l)
{
    loop_io_del(l->io);
    loop_timer_free(l->pause);
    stream_listener_free(l->stream);
    free(l);
}

static int
add_listener(struct channel *ch, const char *text, char *why, size_t why_len)
{
    struct stream_listener *stream;
    int err = stream_listen(text, &stream, why, why_len);
    if (err)
        return err;
    struct listener *l = calloc(1, sizeof *l);
    if (!l) {
        stream_listener_free(stream);
        snprintf(why, why_len, "out of memory");
        return -ENOMEM;
    }
    l->ch = ch;
    l->stream = stream;
    err = loop_timer_new(ch->loop, on_pause_over, l, &l->pause);
    if (!err)
        err = loop_io_add(ch->loop, stream_listener_fd(stream), EPOLLIN, on_accept, l, &l->io);
    if (err) {
        listener_free(l);
        snprintf(why, why_len, "%s: can't listen: %s", text, strerror(-err));
        return err;
    }
    l->next = ch->listeners;
    ch->listeners = l;
    return 0;
}

/* ------------------------------------------------------------------ active targets */

static void
try_later(struct target *t)
{
    uint32_t max = t->ch->opt.backoff_max_ms;
    loop_timer_set(t->timer, loop_now(t->ch->loop) + (uint64_t)t->backoff_ms * NS_PER_MS);
    t->backoff_ms = t->backoff_ms < max / 2 ? t->backoff_ms * 2 : max;
}

void
target_connected(struct target *t)
{
    t->backoff_ms = t->ch->opt.backoff_ms;
    t->at = (t->at + t->remote.n - 1) % t->remote.n; /* the same address again */
}

void
target_lost(struct target *t)
{
    t->conn = NULL;
    try_later(t);
}

static void
try_now(void *ctx)
{
    struct target *t = ctx;
    struct stream *s;
    unsigned i = t->at;
    t->at = (t->at + 1) % t->remote.n;
    t->ch->counters.connects++;
    if (stream_connect(&t->remote, i, &s)) {
        try_later(t);
    } else if (conn_new(t->ch, s, t->name, &t->conn)) {
        t->conn = NULL;
        try_later(t);
    } else {
        t->conn->target = t;
    }
}

static void
target_free(struct target *t)
{
    if (t->conn)
        t->conn->target = NULL;
    loop_timer_free(t->timer);
    free(t->name);
    free(t);
}

static int
add_target(struct channel *ch, const char *text, char *why, size_t why_len)
{
    struct target *t = calloc(1, sizeof *t);
    if (!t) {
        snprintf(why, why_len, "out of memory");
        return -ENOMEM;
    }
    t->ch = ch;
    t->backoff_ms = ch->opt.backoff_ms;
    int err = stream_resolve(text, &t->remote, why, why_len);
    if (!err && (!(t->name = strdup(text)) || loop_timer_new(ch->loop, try_now, t, &t->timer))) {
        snprintf(why, why_len, "out of memory");
        err = -ENOMEM;
    }
    if (err) {
        target_free(t);
        return err;
    }
    t->next = ch->targets;
    ch->targets = t;
    loop_timer_set(t->timer, 0);
    return 0;
}

/* ------------------------------------------------------------------ all of them */

int
channel_add(struct channel *ch, const char *target, char *why, size_t why_len)
{
    struct stream_address a;
    int err = stream_parse(target, &a, why, why_len);
    if (err)
        return err;
    return a.passive ? add_listener(ch, target, why, why_len) : add_target(ch, target, why, why_len);
}

void
channel_targets_free(struct channel *ch)
{
    while (ch->listeners) {
        struct listener *l = ch->listeners;
        ch->listeners = l->next;
        listener_free(l);
    }
    while (ch->targets) {
        struct target *t = ch->targets;
        ch->targets = t->next;
        target_free(t);
    }
}

struct channel_controllers
channel_controllers(const struct channel *ch)
{
    struct channel_controllers n = {0};
    for (const struct target *t = ch->targets; t; t = t->next) {
        n.targets++;
        n.connected += t->conn && t->conn->phase == CONN_OPEN;
    }
    return n;
}

void
channel_each(const struct channel *ch, void (*each)(void *ctx, const char *peer, struct conn *c),
             void *ctx)
{
    struct conn *c = ch->conns;
    for (const struct target *t = ch->targets; t; t = t->next)
        each(ctx, t->name, t->conn);
    while (c && c->next)
        c = c->next;
    for (; c; c = c->prev)
        if (!c->target)
            each(ctx, c->peer, c);
}
