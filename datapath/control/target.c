/* SPDX-License-Identifier: Apache-2.0 */
/* Controllers to connect to, again and again. */
#include "conn-life.h"

#include <daemon/log.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

/* A controller. */
struct target {
    struct channel *ch;
    struct target *next;
    char *name;
    struct stream_remote remote;
    unsigned at;                  /* the address to try next; while connected, the present one */
    unsigned tried;               /* addresses tried since the last connection or look-up */
    bool is_name;                 /* to be looked up */
    char why[160];                /* why it isn't connected; "": it is, or hasn't been tried yet */
    struct stream_lookup *lookup; /* NULL: none is under way */
    struct loop_io *lookup_io;
    unsigned n_uplinks; /* the main one and the auxiliary ones */
    struct uplink uplinks[1 + CHANNEL_AUX_MAX];
};

/* ------------------------------------------------------------------ active targets */

static bool
is_main(const struct uplink *u)
{
    return !u->aux;
}

static bool
is_open(const struct uplink *u)
{
    return u->conn && u->conn->phase == CONN_OPEN;
}

static void
try_later(struct uplink *u)
{
    const struct channel *ch = u->target->ch;
    uint32_t max = ch->opt.backoff_max_ms;
    log_debug_by(CONN, LOG_PEER(u->target->name), "connecting again in %u ms", u->backoff_ms);
    loop_timer_set(u->timer, loop_now(ch->loop) + (uint64_t)u->backoff_ms * NS_PER_MS);
    u->backoff_ms = u->backoff_ms < max / 2 ? u->backoff_ms * 2 : max;
}

/* Logs the reason if it is not the one logged last. */
static void
not_reached(struct target *t, const char *why)
{
    if (*why && strncmp(t->why, why, sizeof t->why - 1)) {
        snprintf(t->why, sizeof t->why, "%.*s", (int)sizeof t->why - 1, why);
        log_warning_by(CONN, LOG_PEER(t->name), "not connected: %s", why);
    }
}

/* Auxiliary connections are set up when the main one is, and not before. */
static void
opened(struct conn *c)
{
    struct uplink *u = c->uplink;
    struct target *t = u->target;
    u->backoff_ms = t->ch->opt.backoff_ms;
    if (!is_main(u))
        return;
    t->at = (t->at + t->remote.n - 1) % t->remote.n; /* the same address again */
    t->tried = 0;
    *t->why = '\0';
    for (unsigned i = 1; !c->door && i < t->n_uplinks; i++) /* 1.0 knows none */
        loop_timer_set(t->uplinks[i].timer, 0);
}

static void
end_auxiliary(struct uplink *u)
{
    struct target *t = u->target;
    for (unsigned i = 1; is_main(u) && i < t->n_uplinks; i++) {
        loop_timer_cancel(t->uplinks[i].timer);
        if (t->uplinks[i].conn)
            conn_fail(t->uplinks[i].conn, -ECONNABORTED);
    }
}

static void
ending(struct conn *c)
{
    end_auxiliary(c->uplink);
}

static void
gone(struct conn *c)
{
    struct uplink *u = c->uplink;
    u->conn = NULL;
    if (is_main(u))
        not_reached(u->target, c->why);
    end_auxiliary(u);
    if (is_main(u) || is_open(u->main))
        try_later(u);
}

/* "Auxiliary connections must use the same source IP address as the main connection" (6.3.6).  They
 * do unless the machine's addresses have changed meanwhile. */
static bool
connected(const struct conn *c)
{
    const struct uplink *u = c->uplink;
    return is_main(u) || stream_same_source(u->conn->stream, u->main->conn->stream);
}

static const struct conn_owner owner = {
    .connected = connected, .opened = opened, .ending = ending, .gone = gone};

/* If the look-up fails, the old addresses stay. */
static void
on_looked_up(void *ctx, uint32_t events)
{
    struct target *t = ctx;
    char why[320];
    loop_io_del(t->lookup_io);
    t->lookup_io = NULL;
    int err = stream_lookup_end(t->lookup, &t->remote, why, sizeof why);
    t->lookup = NULL;
    t->tried = 0;
    if (!err)
        t->at = 0;
    else
        not_reached(t, why);
    if (t->remote.n)
        loop_timer_set(t->uplinks[0].timer, 0);
    else
        try_later(&t->uplinks[0]);
}

static bool
must_look_up(const struct target *t)
{
    return t->is_name && t->tried >= t->remote.n;
}

static void
look_up(struct target *t)
{
    int err = stream_lookup_begin(&t->remote, &t->lookup);
    if (!err)
        err = loop_io_add(t->ch->loop, stream_lookup_fd(t->lookup), EPOLLIN, on_looked_up, t,
                          &t->lookup_io);
    if (!err)
        return;
    stream_lookup_end(t->lookup, NULL, NULL, 0);
    t->lookup = NULL;
    not_reached(t, strerror(-err));
    try_later(&t->uplinks[0]);
}

static void
try_now(void *ctx)
{
    struct uplink *u = ctx;
    struct target *t = u->target;
    struct stream *s;
    unsigned i = t->at;
    if (is_main(u) && must_look_up(t)) {
        look_up(t);
        return;
    }
    if (is_main(u)) {
        t->at = (t->at + 1) % t->remote.n;
        t->tried++;
    }
    t->ch->counters.connects++;
    int err = stream_connect(&t->remote, i, &s);
    if (err) {
        if (is_main(u))
            not_reached(t, strerror(-err));
        try_later(u);
    } else if (conn_new(t->ch, s, t->name, &u->conn)) {
        u->conn = NULL;
        try_later(u);
    } else {
        u->conn->owner = &owner;
        u->conn->uplink = u;
    }
}

static void
target_free(struct target *t)
{
    for (unsigned i = 0; i < t->n_uplinks; i++) {
        struct conn *c = t->uplinks[i].conn;
        if (c) {
            c->owner = NULL;
            c->uplink = NULL;
        }
        loop_timer_free(t->uplinks[i].timer);
    }
    loop_io_del(t->lookup_io);
    stream_lookup_end(t->lookup, NULL, NULL, 0);
    free(t->name);
    free(t);
}

static int
make_uplinks(struct target *t)
{
    const struct channel *ch = t->ch;
    unsigned n = 1 + (t->remote.name.local ? 0 : ch->opt.aux);
    while (t->n_uplinks < n) {
        struct uplink *u = &t->uplinks[t->n_uplinks];
        *u = (struct uplink){.target = t,
                             .main = &t->uplinks[0],
                             .aux = (uint8_t)t->n_uplinks,
                             .backoff_ms = ch->opt.backoff_ms};
        int err = loop_timer_new(ch->loop, try_now, u, &u->timer);
        if (err)
            return err;
        u->main->n_aux = t->n_uplinks++;
    }
    return 0;
}

static int
add_target(struct channel *ch, const char *text, char *why, size_t why_len)
{
    struct target *t = calloc(1, sizeof *t), **last = &ch->targets;
    if (!t) {
        snprintf(why, why_len, "out of memory");
        return -ENOMEM;
    }
    t->ch = ch;
    int err = stream_remote_of(text, ch->tls, &t->remote, why, why_len);
    t->is_name = !t->remote.n;
    if (!err && (!(t->name = strdup(text)) || make_uplinks(t))) {
        snprintf(why, why_len, "out of memory");
        err = -ENOMEM;
    }
    if (err) {
        target_free(t);
        return err;
    }
    while (*last)
        last = &(*last)->next;
    *last = t;
    loop_timer_set(t->uplinks[0].timer, 0);
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
    return a.passive ? channel_listen(ch, target, why, why_len)
                     : add_target(ch, target, why, why_len);
}

static bool
remove_target(struct channel *ch, const char *text)
{
    for (struct target *t, **at = &ch->targets; (t = *at); at = &t->next) {
        if (strcmp(t->name, text))
            continue;
        *at = t->next;
        for (unsigned i = 0; i < t->n_uplinks; i++) {
            if (!t->uplinks[i].conn)
                continue;
            conn_because(t->uplinks[i].conn, "it is no longer one of the switch's controllers");
            conn_fail(t->uplinks[i].conn, -ECONNABORTED);
        }
        target_free(t);
        return true;
    }
    return false;
}

int
channel_remove(struct channel *ch, const char *target)
{
    return channel_unlisten(ch, target) || remove_target(ch, target) ? 0 : -ENOENT;
}

void
channel_targets_free(struct channel *ch)
{
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
        n.connected += is_open(&t->uplinks[0]);
    }
    return n;
}

void
channel_each(const struct channel *ch, channel_each_fn *each, void *ctx)
{
    struct conn *c = ch->conns;
    for (const struct target *t = ch->targets; t; t = t->next) {
        each(ctx, t->name, t->uplinks[0].conn, t->why);
        for (unsigned i = 1; i < t->n_uplinks; i++)
            if (t->uplinks[i].conn)
                each(ctx, t->name, t->uplinks[i].conn, "");
    }
    while (c && c->next)
        c = c->next;
    for (; c; c = c->prev)
        if (!c->uplink)
            each(ctx, c->peer, c, "");
}
