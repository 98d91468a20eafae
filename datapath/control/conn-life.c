/* SPDX-License-Identifier: Apache-2.0 */
#include "conn-life.h"

#include "conn-async.h"
#include "conn-hello.h"
#include "conn-packet-in.h"
#include "conn-request.h"
#include "conn-role.h"

#include <daemon/log.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define LINGER_NS 2000000000u /* for the peer to read what it is sent last */

/* Whether requests have to wait: for a dump, for the peer to read, or until they are allowed. */
static bool
is_blocked(const struct conn *c)
{
    return c->held || (!c->mute && (c->dump.step || conn_waiting(c) >= conn_out_mark(c) ||
                                    (conn_async_waits(c) && c->async.pos < c->async_first)));
}

/* ------------------------------------------------------------------ open, and silent */

static uint64_t
after_ms(const struct conn *c, uint32_t ms)
{
    return loop_now(c->ch->loop) + (uint64_t)ms * NS_PER_MS;
}

static void
watch_silence(struct conn *c)
{
    uint32_t ms = c->ch->opt.probe_ms;
    if (c->probe && ms != CHANNEL_NEVER)
        loop_timer_set(c->timer,
                       (c->probing ? loop_now(c->ch->loop) : c->seen) + (uint64_t)ms * NS_PER_MS);
    else
        loop_timer_cancel(c->timer);
}

/* Local peers that come and go, such as dpctl, are not worth a notice. */
static void
log_local(const struct conn *c)
{
    struct ucred u = {.pid = 0};
    socklen_t n = sizeof u;
    if (getsockopt(stream_fd(c->stream), SOL_SOCKET, SO_PEERCRED, &u, &n))
        u = (struct ucred){.pid = 0, .uid = (uid_t)-1};
    log_info_by(CONN, LOG_PEER(c->peer), "connected: process %d of user %u", (int)u.pid,
                (unsigned)u.uid);
}

/* After the hello exchange. */
static void
opened(struct conn *c)
{
    c->phase = CONN_OPEN;
    c->announced = true;
    COUNT(c, connected, 1);
    watch_silence(c);
    c->ch->ops.connected(c->ch->ctx, c);
    if (c->phase != CONN_OPEN) /* refused */
        return;
    if (c->owner && c->owner->opened)
        c->owner->opened(c);
    if (c->uplink || c->probe)
        log_notice_by(CONN, LOG_PEER(c->peer), "connected");
    else if (log_is_on(CONN, LOG_INFO))
        log_local(c);
}

/* ------------------------------------------------------------------ reading */

/* Makes room behind what is left of the last frame. */
static size_t
in_room(struct conn *c)
{
    if (c->in_at == c->in_len) {
        c->in_at = c->in_len = 0;
    } else if (c->in_at && IN_CAP - c->in_len < IN_CAP / 4) {
        memmove(c->in, c->in + c->in_at, c->in_len - c->in_at);
        c->in_len -= c->in_at;
        c->in_at = 0;
    }
    return IN_CAP - c->in_len;
}

static void
sign_of_life(struct conn *c)
{
    c->seen = loop_now(c->ch->loop);
    c->probing = false;
}

static void
read_some(struct conn *c)
{
    if (c->phase != CONN_HELLO && c->phase != CONN_OPEN)
        c->in_at = c->in_len; /* nothing is handled any more */
    size_t room = in_room(c);
    if (c->phase == CONN_HELLO)
        room = c->in_len < HELLO_CAP ? HELLO_CAP - c->in_len : 0;
    if (!room)
        return;
    ssize_t n = stream_read(c->stream, c->in + c->in_len, room);
    if (n == -EAGAIN)
        return;
    if (n < 0) {
        conn_lose(c, (int)n);
        return;
    }
    if (!n) {
        c->eof = true;
        conn_because(c, "the peer has closed the connection");
    }
    COUNT(c, bytes_in, (uint64_t)n);
    c->in_len += (size_t)n;
}

/* Whether a request waits for the deferred one before it, or for what the switch is doing. */
static bool
must_wait(struct conn *c, struct of_bytes frame)
{
    const struct channel_ops *ops = &c->ch->ops;
    if (conn_is_ours(frame.p[1]))
        return false;
    return c->deferred || (ops->allow && !ops->allow(c->ch->ctx, c, frame));
}

/* Whether a request's turn has come.  If not, this is asked again by channel_go_on, or when the
 * peer has read the notices that go before the request's answer. */
static bool
is_its_turn(struct conn *c, struct of_bytes frame)
{
    uint64_t before = c->ch->async.end;
    c->held = must_wait(c, frame);
    if (c->held)
        c->held_since = c->ch->n_held++;
    if (c->ch->async.end != before)
        c->async_first = c->ch->async.end;
    return !is_blocked(c);
}

/* After a request; before: where ch->async ended before it. */
static void
handled(struct conn *c, uint64_t before)
{
    if (c->ch->async.end != before) { /* by this request, perhaps */
        c->async_first = c->ch->async.end;
        conn_async_run(c);
    }
    if (c->dump.step)
        conn_dump_run(c);
}

/* A message of 1.3 that a request of 1.0 became. */
static bool
handle_translated(struct conn *c)
{
    uint64_t before = c->ch->async.end;
    if (!is_its_turn(c, of10_next(c->door)))
        return false;
    conn_request(c, of10_take(c->door));
    of10_passed(c->door);
    handled(c, before);
    return true;
}

/* The next frame, if it is whole and its turn has come. */
static bool
handle_next(struct conn *c)
{
    if (c->door && of10_next(c->door).n)
        return handle_translated(c);
    struct of_bytes left = {c->in + c->in_at, c->in_len - c->in_at};
    if (left.n < OFP_HEADER_LEN)
        return false;
    int len = of_frame_len(left.p, left.n);
    if (len < 0) {
        conn_bad_frame(c, left);
        return false;
    }
    struct of_bytes frame = {left.p, (size_t)len};
    if (c->phase == CONN_HELLO && (left.p[1] != OFPT_HELLO || frame.n > HELLO_CAP)) {
        frame.n = frame.n < left.n ? frame.n : left.n;
        conn_no_hello(c, frame);
        return false;
    }
    if (left.n < frame.n)
        return false;
    if (c->phase == CONN_OPEN && !c->door && !is_its_turn(c, frame))
        return false;
    uint64_t before = c->ch->async.end;
    sign_of_life(c); /* only for a whole message: a byte now and then is no sign of life */
    if (c->phase == CONN_OPEN)
        conn_frame(c, frame);
    else if (conn_hello(c, frame))
        opened(c);
    c->in_at += frame.n;
    handled(c, before);
    return true;
}

/* Echo requests overtake requests that wait: they ask whether the switch is alive. */
static void
answer_echoes(struct conn *c)
{
    const uint8_t version = c->door ? OFP10_VERSION : OFP_VERSION;
    size_t at = c->in_at, to = at;
    int len;
    while ((len = of_frame_len(c->in + at, c->in_len - at)) > 0 && at + (size_t)len <= c->in_len &&
           conn_waiting(c) < conn_out_mark(c)) {
        uint8_t *p = c->in + at;
        struct of_echo echo = {.data = {p + OFP_HEADER_LEN, (size_t)len - OFP_HEADER_LEN}};
        at += (size_t)len;
        if (p[1] == OFPT_ECHO_REQUEST && p[0] == version) {
            COUNT(c, messages_in, 1);
            if (log_is_on(CONN, LOG_DEBUG))
                conn_log_received(c, (struct of_bytes){p, (size_t)len});
            conn_send(c, OFPT_ECHO_REPLY, of_get32(p + 4), &echo);
            continue;
        }
        if (p != c->in + to)
            memmove(c->in + to, p, (size_t)len);
        to += (size_t)len;
    }
    if (to != at)
        memmove(c->in + to, c->in + at, c->in_len - at);
    c->in_len -= at - to;
}

static bool
waits_longest(const struct conn *c)
{
    for (const struct conn *o = c->ch->conns; o; o = o->next)
        if (o->ticket && o->ticket < c->ticket)
            return false;
    return true;
}

static bool
next_is_echo(const struct conn *c)
{
    size_t n = c->in_len - c->in_at;
    return !c->door && n >= OFP_HEADER_LEN && c->in[c->in_at + 1] == OFPT_ECHO_REQUEST;
}

/* Whether others come first.  Of the connections whose requests take long, each turn serves only
 * one, the one that has waited longest, so that nobody else has to wait for all of them.  The
 * same goes for all connections whose turn comes late in a long turn of the loop. */
static bool
must_yield(struct conn *c)
{
    struct channel *ch = c->ch;
    uint64_t now = loop_now(ch->loop);
    if (c->phase != CONN_OPEN || c->its_turn == now || next_is_echo(c) ||
        (!c->heavy && !conn_turn_is_long(c)))
        return false;
    if (!c->ticket)
        c->ticket = ++ch->n_tickets;
    if (ch->given == now || !waits_longest(c))
        return true;
    c->ticket = 0;
    ch->given = c->its_turn = now;
    return false;
}

/* The peer has ended writing, but reads. */
static bool
waits_for_answer(const struct conn *c)
{
    return c->deferred && !c->mute;
}

/* -> whether it is to be called again in the next turn */
static bool
handle_some(struct conn *c, uint64_t end)
{
    while ((c->phase == CONN_HELLO || c->phase == CONN_OPEN) && !c->fail) {
        if (c->held)
            answer_echoes(c);
        if (is_blocked(c))
            return false;
        if (conn_clock_ms() > end) /* the others' turn */
            return true;
        if (!handle_next(c)) {
            if (c->held)
                answer_echoes(c);
            if (c->eof && !c->held && !waits_for_answer(c) && !conn_async_waits(c))
                conn_end(c);
            return false;
        }
    }
    return false;
}

static void
handle_frames(struct conn *c)
{
    uint64_t end = conn_clock_ms() + TURN_MS;
    bool idle = c->in_at == c->in_len && !c->door;
    if (!idle && !is_blocked(c) && must_yield(c)) {
        conn_flush_later(c);
        return;
    }
    c->ticket = 0;
    if (handle_some(c, end))
        conn_flush_later(c);
    if (!idle)
        c->heavy = conn_clock_ms() > end;
}

/* ------------------------------------------------------------------ phases */

/* Connected: says hello at once (6.3.1). */
static void
start(struct conn *c)
{
    c->phase = CONN_HELLO;
    c->seen = loop_now(c->ch->loop);
    loop_timer_set(c->timer, after_ms(c, c->ch->opt.hello_ms));
    if (conn_send_hello(c)) /* without memory; without hello the peer would wait for ever */
        conn_fail(c, -ENOMEM);
    else
        conn_flush(c);
}

/* Closing at once while bytes of the peer are unread would reset the connection, and the peer would
 * lose what it was sent last. */
static void
linger(struct conn *c)
{
    c->phase = CONN_LINGER;
    stream_end(c->stream);
    loop_timer_set(c->timer, loop_now(c->ch->loop) + LINGER_NS);
}

/* While its requests wait, it is read for echo requests, up to a full buffer. */
static bool
may_hold_echo(const struct conn *c)
{
    return c->held && !c->mute && c->in_len - c->in_at < IN_CAP &&
           conn_waiting(c) < conn_out_mark(c);
}

static uint32_t
wanted_events(const struct conn *c)
{
    uint32_t out = conn_waiting(c) || c->dump.step || conn_async_waits(c) ? EPOLLOUT : 0;
    switch (c->phase) {
    case CONN_CONNECTING: return 0;
    case CONN_HELLO:
    case CONN_OPEN: return out | (!c->eof && (!is_blocked(c) || may_hold_echo(c)) ? EPOLLIN : 0);
    case CONN_ENDING: return out;
    case CONN_LINGER: return EPOLLIN;
    }
    return 0;
}

/* At the end of every callback of the loop.  May free c. */
static void
settle(struct conn *c)
{
    if (c->phase == CONN_ENDING && !conn_waiting(c) && !c->dump.step && !c->eof && !c->mute)
        linger(c);
    bool over = c->phase == CONN_ENDING ? !conn_waiting(c) && !c->dump.step
                                        : c->phase == CONN_LINGER && (c->eof || c->mute);
    if (c->fail || over) {
        conn_close(c);
        return;
    }
    uint32_t wanted = wanted_events(c);
    if (wanted & EPOLLIN && stream_pending(c->stream))
        conn_flush_later(c); /* TLS holds bytes that epoll does not report */
    loop_io_set(c->io, stream_wait_for(c->stream, wanted));
}

static void
open_stream(struct conn *c)
{
    int err = stream_open(c->stream);
    if (!err && c->owner && c->owner->connected && !c->owner->connected(c))
        err = -EADDRNOTAVAIL;
    if (!err)
        start(c);
    else if (err != -EAGAIN)
        conn_lose(c, err);
}

void
conn_run(struct conn *c)
{
    conn_flush_forget(c);
    if (c->phase == CONN_CONNECTING && !c->fail)
        open_stream(c);
    else if (wanted_events(c) & EPOLLIN && stream_pending(c->stream))
        read_some(c);
    if (c->phase != CONN_CONNECTING && !c->fail) {
        conn_flush(c);
        conn_packet_ins_run(c);
        conn_async_run(c);
        if (c->dump.step)
            conn_dump_run(c);
        handle_frames(c);
        conn_flush(c);
    }
    settle(c);
}

static void
on_io(void *ctx, uint32_t events)
{
    struct conn *c = ctx;
    if (c->phase == CONN_CONNECTING) {
        conn_run(c);
        return;
    }
    events = stream_ready_for(c->stream, events);
    if (events & EPOLLOUT && conn_waiting(c))
        sign_of_life(c); /* it reads what had to wait */
    uint32_t gone = events & (EPOLLHUP | EPOLLERR);
    if (gone && (is_blocked(c) || c->eof || c->phase == CONN_ENDING))
        conn_fall_mute(c); /* epoll would report it again and again */
    if (!c->eof && (events & EPOLLIN || gone))
        read_some(c);
    conn_run(c);
}

static void
on_timer(void *ctx)
{
    struct conn *c = ctx;
    uint64_t now = loop_now(c->ch->loop);
    if (c->held)
        sign_of_life(c); /* it is not read at present */
    if (c->phase == CONN_CONNECTING && c->origin)
        COUNT(c, tls_failed, 1);
    if (c->phase == CONN_HELLO)
        COUNT(c, hello_late, 1);
    if (c->phase == CONN_OPEN && c->probing && !c->fail)
        COUNT(c, silent, 1);
    conn_because(c, c->phase == CONN_CONNECTING && c->origin ? "the TLS handshake took too long"
                    : c->phase == CONN_CONNECTING            ? "no answer"
                    : c->phase == CONN_HELLO                 ? "the hello didn't come in time"
                    : c->probing                             ? "no answer to an echo request"
                                                             : "");
    if (c->phase != CONN_OPEN || (c->probing && !c->fail)) {
        conn_close(c);
        return;
    }
    if (now - c->seen >= (uint64_t)c->ch->opt.probe_ms * NS_PER_MS) {
        static const struct of_echo empty;
        c->probing = true;
        COUNT(c, probes, 1);
        conn_send(c, OFPT_ECHO_REQUEST, 0, &empty);
    }
    watch_silence(c);
    conn_run(c);
}

/* ------------------------------------------------------------------ beginning and end */

static void
link_conn(struct conn *c)
{
    struct channel *ch = c->ch;
    c->next = ch->conns;
    if (ch->conns)
        ch->conns->prev = c;
    ch->conns = c;
}

static void
unlink_conn(struct conn *c)
{
    *(c->prev ? &c->prev->next : &c->ch->conns) = c->next;
    if (c->next)
        c->next->prev = c->prev;
}

int
conn_new(struct channel *ch, struct stream *s, const char *peer, struct conn **out)
{
    struct conn *c = calloc(1, sizeof *c);
    int err = -ENOMEM;
    if (!c) {
        stream_close(s);
        return err;
    }
    c->ch = ch;
    c->stream = s;
    c->phase = CONN_CONNECTING;
    c->out = of_wr_grow(3 * OUT_HARD);
    c->dump.c = c;
    c->seen = c->sent_at = loop_now(ch->loop);
    c->probe = true;
    conn_state_init(&c->state);
    link_conn(c);
    c->peer = strdup(peer);
    c->by.peer = c->peer;
    c->in = malloc(IN_CAP);
    if (c->peer && c->in && !(err = loop_timer_new(ch->loop, on_timer, c, &c->timer)))
        err = loop_io_add(ch->loop, stream_fd(s), 0, on_io, c, &c->io);
    if (err) {
        conn_close(c);
        return err;
    }
    loop_timer_set(c->timer, after_ms(c, ch->opt.hello_ms));
    conn_flush_later(c); /* opens it */
    *out = c;
    return 0;
}

/* target.c logs controllers that can't be reached: it knows what it has logged before. */
static void
log_end_of(const struct conn *c)
{
    const char *why = *c->why ? c->why : "closed";
    if (c->announced && (c->uplink || c->probe))
        log_notice_by(CONN, LOG_PEER(c->peer), "connection lost: %s", why);
    else if (c->announced)
        log_info_by(CONN, LOG_PEER(c->peer), "connection lost: %s", why);
    else if (!c->announced && c->origin && (!c->eof || c->counters.bytes_in))
        log_warning_by(CONN, LOG_PEER(c->peer), "%s", why);
}

/* A handler is at work for it in another thread: it takes part in nothing any more, and is closed behind that
 * (deferred_copy_end). */
static void
keep_until_answered(struct conn *c)
{
    if (!c->fail)
        conn_fail(c, -ECONNABORTED);
    conn_fall_mute(c);
    loop_timer_cancel(c->timer);
    loop_io_del(c->io);
    c->io = NULL;
}

void
conn_close(struct conn *c)
{
    struct channel *ch = c->ch;
    if (c->kept) {
        keep_until_answered(c);
        return;
    }
    log_end_of(c);
    conn_flush_forget(c);
    unlink_conn(c);
    if (c->deferred)
        c->deferred->conn = NULL;
    if (c->announced) {
        COUNT(c, disconnected, 1);
        ch->ops.disconnected(ch->ctx, c);
    }
    conn_dump_end(c);
    conn_packet_ins_free(c);
    async_log_end(&c->ch->async, &c->async);
    conn_parts_free(c);
    of10_door_free(c->door);
    of_wr_free(&c->out);
    conn_out_count(c);
    loop_io_del(c->io);
    loop_timer_free(c->timer);
    stream_close(c->stream);
    if (c->owner && c->owner->gone)
        c->owner->gone(c);
    free(c->peer);
    free(c->listener);
    free(c->in);
    free(c);
}
