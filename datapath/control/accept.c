/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets, and which peers are admitted.
 *
 * The places (--max-connections) are shared between origins: a peer's IP address (of IPv6 the first
 * 64 bits), a local peer's user.  When all are taken, a newcomer displaces the youngest connection
 * of the origin that has the most, if that has at least two more than the newcomer's own.  A TCP
 * peer never displaces a local one, and one place in CHANNEL_SPARE_PART is kept for local peers.
 * Peers that are still in the TLS handshake or the hello exchange have HALF_OPEN_MAX places; beyond
 * that the oldest one of the origin with the most is closed.  Connections that the switch makes
 * itself are never counted. */
#include "conn-life.h"

#include <daemon/log.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define HALF_OPEN_MAX 64 /* accepted connections before hello is over */
#define ACCEPT_A_TURN 16
#define PAUSE_NS      200000000u /* without descriptors or memory: before accepting again */

struct listener {
    struct channel *ch;
    struct listener *next;
    char *text; /* its address as given */
    struct stream_listener *stream;
    struct loop_io *io;
    struct loop_timer *pause;
    bool starved; /* the log has said that peers have to wait */
};

/* ------------------------------------------------------------------ origins */

static struct origin *
origin_get(struct channel *ch, const char *name, bool local)
{
    struct origin *o = ch->origins;
    while (o && (o->local != local || strcmp(o->name, name)))
        o = o->next;
    if (!o && (o = calloc(1, sizeof *o))) {
        snprintf(o->name, sizeof o->name, "%s", name);
        o->local = local;
        o->next = ch->origins;
        ch->origins = o;
    }
    if (o)
        o->refs++;
    return o;
}

static void
origin_put(struct channel *ch, struct origin *o)
{
    struct origin **at = &ch->origins;
    if (--o->refs)
        return;
    while (*at != o)
        at = &(*at)->next;
    *at = o->next;
    free(o);
}

static void
gone(struct conn *c)
{
    struct origin *o = c->origin;
    c->ch->n_accepted--;
    c->ch->n_half_open -= c->half_open;
    o->half_open -= c->half_open;
    o->n--;
    origin_put(c->ch, o);
}

static void
opened(struct conn *c)
{
    c->ch->n_half_open -= c->half_open;
    c->origin->half_open -= c->half_open;
    c->half_open = false;
}

static const struct conn_owner accepted = {.opened = opened, .gone = gone};

/* ------------------------------------------------------------------ who makes room */

/* The youngest connection of o; with half_open, the oldest of those before the end of hello.
 * (ch->conns: the newest first.) */
static struct conn *
pick(struct channel *ch, const struct origin *o, bool half_open)
{
    struct conn *found = NULL;
    for (struct conn *c = ch->conns; c; c = c->next)
        if (c->origin == o && (half_open ? c->half_open : !found))
            found = c;
    return found;
}

static void
close_for(struct conn *c, const struct origin *newcomer, const char *why)
{
    snprintf(c->why, sizeof c->why, "closed for a connection from %s: %s", newcomer->name, why);
    COUNT(c, displaced, 1);
    conn_close(c);
}

static void
limit_half_open(struct channel *ch, const struct origin *mine)
{
    const struct origin *most = NULL;
    if (ch->n_half_open < HALF_OPEN_MAX)
        return;
    for (const struct origin *o = ch->origins; o; o = o->next)
        if (!most || o->half_open > most->half_open)
            most = o;
    close_for(pick(ch, most, true), mine, "too many peers haven't said hello yet");
}

static bool
make_room(struct channel *ch, const struct origin *mine)
{
    unsigned max = ch->opt.max_conns, spare = max / CHANNEL_SPARE_PART;
    const struct origin *most = NULL;
    limit_half_open(ch, mine);
    if (ch->n_accepted < max - (mine->local ? 0 : spare))
        return true;
    for (const struct origin *o = ch->origins; o; o = o->next)
        if ((mine->local || !o->local) && (!most || o->n > most->n))
            most = o;
    if (!most || most->n < mine->n + 2)
        return false;
    close_for(pick(ch, most, false), mine, "there are no more places, and it has most of them");
    return true;
}

/* ------------------------------------------------------------------ listening */

static void
turn_away(struct channel *ch, struct stream *s, const char *peer, const struct origin *o)
{
    ch->counters.refused++;
    if (o)
        log_warning_by(CONN, LOG_PEER(peer),
                       "refused, as there are %u connections of %u (--max-connections), %u "
                       "of them from %s",
                       ch->n_accepted, ch->opt.max_conns, o->n, o->name);
    stream_close(s);
}

bool
conn_is_local(const struct conn *c)
{
    return c->origin && c->origin->local;
}

static void
take(struct listener *l, struct stream *s, const char *peer)
{
    struct channel *ch = l->ch;
    bool local = stream_listener_is_local(l->stream);
    char name[STREAM_ORIGIN_MAX];
    struct conn *c;
    stream_origin(s, name, sizeof name);
    struct origin *o = origin_get(ch, name, local);
    if (!o || !make_room(ch, o)) {
        turn_away(ch, s, peer, o);
    } else if (!conn_new(ch, s, peer, &c)) {
        c->listener = strdup(l->text);
        if (!c->listener) /* whose rights it has can't be told */
            conn_fail(c, -ENOMEM);
        c->owner = &accepted;
        c->origin = o;
        c->half_open = true;
        c->probe = !local;
        o->refs++;
        o->n++;
        o->half_open++;
        ch->n_half_open++;
        ch->n_accepted++;
        ch->counters.accepted++;
    }
    if (o)
        origin_put(ch, o);
}

/* Without descriptors or memory: the peers wait in the kernel's queue. */
static void
starve(struct listener *l, int err)
{
    bool memory = err == -ENOBUFS || err == -ENOMEM;
    if (!l->starved)
        log_warning(CONN, "%s: peers have to wait: %s%s", l->text,
                    memory ? "no memory" : "no more descriptors",
                    err == -EMFILE ? " (ulimit -n, LimitNOFILE= of a service)" : "");
    l->starved = true;
    loop_io_set(l->io, 0);
    loop_timer_set(l->pause, loop_now(l->ch->loop) + PAUSE_NS);
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
            l->starved = false;
            take(l, s, peer);
        } else if (err == -EAGAIN) {
            return;
        } else if (err == -EMFILE || err == -ENFILE || err == -ENOBUFS || err == -ENOMEM) {
            starve(l, err);
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
    free(l->text);
    free(l);
}

int
channel_listen(struct channel *ch, const char *text, char *why, size_t why_len)
{
    struct stream_listener *stream;
    int err = stream_listen(text, ch->tls, &stream, why, why_len);
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
    err = (l->text = strdup(text)) ? 0 : -ENOMEM;
    if (!err)
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

bool
channel_unlisten(struct channel *ch, const char *text)
{
    for (struct listener *l, **at = &ch->listeners; (l = *at); at = &l->next) {
        if (strcmp(l->text, text))
            continue;
        *at = l->next;
        listener_free(l);
        return true;
    }
    return false;
}

void
channel_listeners_free(struct channel *ch)
{
    while (ch->listeners) {
        struct listener *l = ch->listeners;
        ch->listeners = l->next;
        listener_free(l);
    }
}
