/* SPDX-License-Identifier: Apache-2.0 */
/* A peer and its connection to the datapath. */
#include "relay.h"

#include <daemon/log.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 16 /* of reading and writing, before others have their turn */

/* Ofprotocol's own echo request; its reply is known by xid and data. */
static const uint8_t probe[] = {OFP_VERSION, OFPT_ECHO_REQUEST,
                                0,           18,
                                0xf0,        0x9f,
                                0x94,        0x8c, /* xid */
                                'o',         'f',
                                'p',         'r',
                                'o',         't',
                                'o',         'c',
                                'o',         'l'};

struct session *
session_new(struct relay *r, struct stream *peer, const char *name, struct target *target,
            session_over *over, int64_t now)
{
    struct session *s = calloc(1, sizeof *s);
    if (!s) {
        stream_close(peer);
        return NULL;
    }
    snprintf(s->name, sizeof s->name, "%s", name);
    s->peer = peer;
    s->target = target;
    s->over = over;
    s->last_input = now;
    s->deadline = now + CONNECT_MS;
    s->busy = true; /* it may be open already */
    s->next = r->sessions;
    r->sessions = s;
    return s;
}

void
session_free(struct relay *r, struct session *s)
{
    struct session **at = &r->sessions;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    if (!s->target)
        r->n_accepted--;
    stream_close(s->peer);
    stream_close(s->datapath);
    free(s);
}

static void
end(struct relay *r, struct session *s, const char *why, int64_t now)
{
    if (s->target)
        s->over(r, s->target, why, now);
    session_free(r, s);
}

/* ----------------------------------------------------------------- opening */

/* First the peer, then the datapath for it. */
static int
open_both(struct relay *r, struct session *s, const char **why)
{
    int err = s->datapath ? 0 : stream_open(s->peer);
    *why = stream_why(s->peer);
    if (err)
        return err;
    *why = "the datapath can't be reached";
    if (!s->datapath)
        err = stream_connect(&r->datapath, 0, &s->datapath);
    return err ? err : stream_open(s->datapath);
}

static void
run_opening(struct relay *r, struct session *s, int64_t now)
{
    const char *why = NULL;
    int err = open_both(r, s, &why);
    s->busy = !err; /* bytes that came in the meantime may be there already */
    if (!err) {
        s->open = true;
        s->last_input = now;
    } else if (err != -EAGAIN) {
        end(r, s, why, now);
    } else if (now >= s->deadline) {
        end(r, s, "no answer", now);
    }
}

/* ---------------------------------------------------------------- messages */

static bool
from_peer(void *ctx, struct of_bytes msg)
{
    struct session *s = ctx;
    if (s->target && !s->spoken) {
        log_notice_by(CONN, LOG_PEER(s->name), "connected");
        s->target->logged = false;
    }
    s->spoken = true;
    return msg.n != sizeof probe || msg.p[1] != OFPT_ECHO_REPLY ||
           memcmp(msg.p + 4, probe + 4, sizeof probe - 4);
}

static bool
from_datapath(void *ctx, struct of_bytes msg)
{
    return true;
}

/* Both ways, as long as something moves.  -errno: a side has ended; *peer tells which. */
static int
pass(struct session *s, int64_t now, bool *peer)
{
    s->busy = true;
    for (int i = 0; i < ROUNDS && s->busy; i++) {
        int in = pipe_fill(&s->in, s->peer, from_peer, s);
        int down = pipe_drain(&s->out, s->peer);
        int out = pipe_fill(&s->out, s->datapath, from_datapath, s);
        int up = pipe_drain(&s->in, s->datapath);
        if (in > 0 || !pipe_has_room(&s->in)) { /* silence doesn't count while nothing is read */
            s->last_input = now;
            s->probed = false;
        }
        *peer = in < 0 || down < 0;
        if (*peer)
            return in < 0 ? in : down;
        if (out < 0 || up < 0)
            return out < 0 ? out : up;
        s->busy = in | down | out | up;
    }
    return 0;
}

static const char *
reason(const struct session *s, int err, bool peer)
{
    if (err == -ECONNRESET)
        return peer ? "it closed the connection" : "the datapath closed the connection";
    if (err == -EBADMSG)
        return peer ? "it sent what is no OpenFlow message"
                    : "the datapath sent what is no OpenFlow message";
    return stream_why(peer ? s->peer : s->datapath);
}

/* Passes on what a side sent before it ended. */
static void
run_ending(struct relay *r, struct session *s, int64_t now)
{
    struct pipe *rest = s->ended_peer ? &s->in : &s->out;
    int n;
    while ((n = pipe_drain(rest, s->ended_peer ? s->datapath : s->peer)) > 0)
        ;
    if (n < 0 || !pipe_is_waiting(rest) || now >= s->deadline)
        end(r, s, s->why, now);
}

/* ---------------------------------------------------------------- liveness */

static int64_t
silence_ends(const struct relay *r, const struct session *s)
{
    if (!s->target || !s->spoken || !r->probe_ms)
        return INT64_MAX;
    return (s->probed ? s->probed_at : s->last_input) + r->probe_ms;
}

/* No room for the echo request means that the controller has not read for so long: it counts as
 * silent. */
static void
probe_peer(struct relay *r, struct session *s, int64_t now)
{
    if (now < silence_ends(r, s))
        return;
    if (s->probed) {
        end(r, s, "no answer to a probe", now);
        return;
    }
    s->probed = true;
    s->probed_at = now;
    pipe_insert(&s->out, probe, sizeof probe);
}

static void
run_open(struct relay *r, struct session *s, int64_t now)
{
    int err = pass(s, now, &s->ended_peer);
    if (err) {
        s->why = reason(s, err, s->ended_peer);
        s->deadline = now + LAST_WORDS_MS;
        run_ending(r, s, now);
        return;
    }
    probe_peer(r, s, now);
}

/* ------------------------------------------------------------------- turns */

static void
wait_open(struct relay *r, struct session *s, int64_t now)
{
    uint32_t peer = pipe_is_waiting(&s->out) ? POLLOUT : 0;
    uint32_t datapath = pipe_is_waiting(&s->in) ? POLLOUT : 0;
    if (!s->why) {
        peer |= pipe_has_room(&s->in) ? POLLIN : 0;
        datapath |= pipe_has_room(&s->out) ? POLLIN : 0;
    }
    if (!s->why || !s->ended_peer)
        relay_wait_stream(r, s->peer, peer);
    if (!s->why || s->ended_peer)
        relay_wait_stream(r, s->datapath, datapath);
    relay_wait_until(r, s->why ? s->deadline : s->busy ? now : silence_ends(r, s));
}

void
sessions_wait(struct relay *r, int64_t now)
{
    for (struct session *s = r->sessions; s; s = s->next) {
        s->place = r->n_fds;
        if (s->open) {
            wait_open(r, s, now);
        } else {
            relay_wait_stream(r, s->datapath ? s->datapath : s->peer, 0);
            relay_wait_until(r, s->busy ? now : s->deadline);
        }
        s->places = r->n_fds - s->place;
    }
}

/* Is there something to do? */
static bool
has_work(const struct relay *r, const struct session *s, int64_t now)
{
    for (unsigned i = 0; i < s->places; i++)
        if (relay_woken(r, s->place + i))
            return true;
    return s->busy || now >= (s->why || !s->open ? s->deadline : silence_ends(r, s));
}

void
sessions_run(struct relay *r, int64_t now)
{
    for (struct session *s = r->sessions, *next; s; s = next) {
        next = s->next;
        if (!has_work(r, s, now))
            continue;
        if (!s->open)
            run_opening(r, s, now);
        else if (s->why)
            run_ending(r, s, now);
        else
            run_open(r, s, now);
    }
}
