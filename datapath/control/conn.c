/* SPDX-License-Identifier: Apache-2.0 */
#include "conn.h"

#include <oflib/fmt.h>

#include <errno.h>
#include <stdio.h>
#include <time.h>

#define OUT_KEEP (64u << 10) /* an output buffer larger than this is given back when empty */
#define COMPACT  (64u << 10) /* bytes already sent that are worth moving the rest over */

/* ------------------------------------------------------------------ what it is */

struct conn_state *
conn_state(struct conn *c)
{
    return &conn_main(c)->state;
}

struct conn_own *
conn_own(struct conn *c)
{
    return &c->own;
}

const struct log_by *
conn_by(const struct conn *c)
{
    return &c->by;
}

const char *
conn_peer(const struct conn *c)
{
    return c->peer;
}

const char *
conn_target(const struct conn *c)
{
    return c->listener ? c->listener : c->peer;
}

bool
conn_is_tls(const struct conn *c)
{
    return stream_is_tls(c->stream);
}

bool
conn_common_name(const struct conn *c, char *out, size_t n)
{
    return stream_common_name(c->stream, out, n);
}

/* ------------------------------------------------------------------ what it may see */

bool
conn_sees(struct conn *c, struct of_bytes message)
{
    const struct channel *ch = c->ch;
    return !c->own.slice || !ch->ops.sees || ch->ops.sees(ch->ctx, c, message);
}

bool
conn_is_of10(const struct conn *c)
{
    return c->door;
}

bool
conn_is_controller(const struct conn *c)
{
    return c->phase == CONN_OPEN && !c->mute && !c->fail;
}

uint8_t
conn_aux(const struct conn *c)
{
    return c->uplink ? c->uplink->aux : 0;
}

const char *
conn_phase_name(const struct conn *c)
{
    static const char *const names[] = {[CONN_CONNECTING] = "connecting",
                                        [CONN_HELLO] = "hello",
                                        [CONN_OPEN] = "open",
                                        [CONN_ENDING] = "ending",
                                        [CONN_LINGER] = "ending"};
    return names[c->phase];
}

const struct channel_counters *
conn_counters(const struct conn *c)
{
    return &c->counters;
}

uint64_t
conn_lost(const struct conn *c)
{
#define ADD_LOST(name) +c->counters.name
    return CHANNEL_COUNTERS(CHANNEL_COUNTER_SKIP, ADD_LOST);
}

uint64_t
conn_clock_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
    return (uint64_t)ts.tv_sec * 1000u + (uint64_t)ts.tv_nsec / 1000000u;
}

bool
conn_turn_is_long(const struct conn *c)
{
    return conn_clock_ms() > loop_now(c->ch->loop) / NS_PER_MS + LONG_TURN_MS;
}

/* ------------------------------------------------------------------ the flush list */

void
conn_flush_forget(struct conn *c)
{
    struct channel *ch = c->ch;
    if (!c->to_flush)
        return;
    *(c->flush_prev ? &c->flush_prev->flush_next : &ch->flush) = c->flush_next;
    *(c->flush_next ? &c->flush_next->flush_prev : &ch->flush_last) = c->flush_prev;
    c->to_flush = false;
    ch->n_flush--;
}

void
conn_flush_later(struct conn *c)
{
    struct channel *ch = c->ch;
    if (c->to_flush)
        return;
    c->to_flush = true;
    c->flush_prev = ch->flush_last;
    c->flush_next = NULL;
    *(ch->flush_last ? &ch->flush_last->flush_next : &ch->flush) = c;
    ch->flush_last = c;
    if (!ch->n_flush++)
        loop_timer_set(ch->flush_timer, 0);
}

/* ------------------------------------------------------------------ the end */

void
conn_because(struct conn *c, const char *why)
{
    if (!*c->why)
        snprintf(c->why, sizeof c->why, "%s", why);
}

void
conn_fail(struct conn *c, int err)
{
    if (!c->fail)
        c->fail = err;
    conn_because(c, strerror(-err));
    conn_flush_later(c);
}

void
conn_lose(struct conn *c, int err)
{
    conn_because(c, stream_why(c->stream));
    conn_fail(c, err);
    if (err == -EPROTO)
        COUNT(c, tls_failed, 1);
}

void
conn_end(struct conn *c)
{
    if (c->phase == CONN_ENDING || c->phase == CONN_LINGER)
        return;
    c->phase = CONN_ENDING;
    async_log_end(&c->ch->async, &c->async);
    if (c->owner && c->owner->ending)
        c->owner->ending(c);
    loop_timer_set(c->timer, loop_now(c->ch->loop) + (uint64_t)c->ch->opt.hello_ms * NS_PER_MS);
    conn_flush_later(c);
}

/* ------------------------------------------------------------------ the output buffer */

void
conn_out_count(struct conn *c)
{
    c->ch->out_total += c->out.cap - c->out_counted;
    c->out_counted = c->out.cap;
}

void
conn_dump_end(struct conn *c)
{
    struct conn_dump d = c->dump;
    c->dump = (struct conn_dump){.c = c};
    of_wr_free(&d.w);
    if (d.step && d.done)
        d.done(d.ctx);
}

void
conn_fall_mute(struct conn *c)
{
    c->mute = true;
    conn_dump_end(c);
    async_log_end(&c->ch->async, &c->async);
    of_wr_free(&c->out);
    c->out_at = 0;
    conn_out_count(c);
}

void
conn_flush(struct conn *c)
{
    while (conn_waiting(c) && c->phase != CONN_CONNECTING) {
        ssize_t n = stream_write(c->stream, c->out.buf + c->out_at, conn_waiting(c));
        if (n == -EAGAIN)
            return;
        if (n < 0)
            conn_because(c, stream_why(c->stream));
        if (n == -EPROTO)
            conn_lose(c, (int)n);
        if (n < 0) {
            conn_fall_mute(c);
            return;
        }
        c->out_at += (size_t)n;
        c->sent_at = loop_now(c->ch->loop);
        COUNT(c, bytes_out, (uint64_t)n);
    }
    if (!conn_waiting(c)) {
        c->out.len = c->out_at = 0;
        if (c->out.cap > OUT_KEEP)
            of_wr_free(&c->out);
        conn_out_count(c);
    }
}

/* ------------------------------------------------------------------ messages */

int
conn_send_begin(struct conn *c)
{
    if (c->fail)
        return c->fail;
    if (c->mute)
        return 1;
    if (conn_waiting(c) > OUT_HARD) {
        conn_fail(c, -ENOBUFS);
        return -ENOBUFS;
    }
    if (c->out_at >= COMPACT && c->out_at >= conn_waiting(c) / 4) {
        memmove(c->out.buf, c->out.buf + c->out_at, conn_waiting(c));
        c->out.len -= c->out_at;
        c->out_at = 0;
    }
    return 0;
}

static void
log_message(const struct conn *c, const char *what, struct of_bytes message)
{
    const char *name = of_fmt_name(c->door ? &of_fmt_OFPT10 : &of_fmt_OFPT, message.p[1]);
    log_debug_by(CONN, LOG_REQUEST(c->peer, of_get32(message.p + 4)), "%s %s, %zu bytes", what,
                 name ? name : "a message of unknown type", message.n);
}

void
conn_log_received(const struct conn *c, struct of_bytes frame)
{
    log_message(c, "received", frame);
}

/* Replaces the message at `start` by what it is in 1.0. */
static int
through_door(struct conn *c, size_t start)
{
    struct of_wr *w = &c->ch->door_scratch;
    w->len = 0;
    of_wr_bytes(w, c->out.buf + start, c->out.len - start);
    c->out.len = start;
    if (w->overflow) {
        w->overflow = false;
        return -ENOMEM;
    }
    return of10_reply(c->door, (struct of_bytes){w->buf, w->len}, &c->out);
}

/* To be called after encoding the message that begins at `start`; err: the result of encoding. */
static int
finish(struct conn *c, size_t start, int err)
{
    if (!err && c->door)
        err = through_door(c, start);
    conn_out_count(c);
    if (err || c->out.len == start)
        return err;
    if (log_is_on(CONN, LOG_DEBUG))
        log_message(c, "sent", (struct of_bytes){c->out.buf + start, c->out.len - start});
    COUNT(c, messages_out, 1);
    conn_flush_later(c);
    return 0;
}

int
conn_send(struct conn *c, uint8_t type, uint32_t xid, const void *body)
{
    int err = conn_send_begin(c);
    if (err)
        return err > 0 ? 0 : err;
    size_t start = c->out.len;
    return finish(c, start, of_encode_body(&c->out, type, xid, body));
}

int
conn_send_bytes(struct conn *c, struct of_bytes message)
{
    int err = conn_send_begin(c);
    if (err)
        return err > 0 ? 0 : err;
    size_t start = c->out.len;
    of_wr_bytes(&c->out, message.p, message.n);
    if (c->out.overflow) {
        conn_fail(c, -ENOMEM);
        return -ENOMEM;
    }
    return finish(c, start, 0);
}

static void
count_error(struct conn *c, uint16_t type)
{
    unsigned i = type < CHANNEL_ERROR_TYPES ? type : CHANNEL_ERROR_TYPES - 1;
    COUNT(c, errors_out, 1);
    COUNT(c, errors_out_by_type[i], 1);
}

int
conn_send_error(struct conn *c, uint32_t xid, int err, struct of_bytes request, const char *text)
{
    int r = conn_send_begin(c);
    if (r)
        return r > 0 ? 0 : r;
    count_error(c, of_err_type(err));
    size_t start = c->out.len;
    return finish(c, start, of_encode_error(&c->out, xid, err, request, text));
}

void
conn_refuse(struct conn *c, const char *why)
{
    COUNT(c, no_slice, 1);
    conn_because(c, why);
    conn_dump_end(c);
    conn_send_error(c, 0, OF_HELLO_FAILED(EPERM), (struct of_bytes){0}, why);
    conn_end(c);
}

int
conn_error(struct conn *c, const struct of_msg *request, int err)
{
    return conn_send_error(c, request->xid, err, request->raw, NULL);
}

int
conn_error_of(const struct conn *c, const struct of_msg *m, int err)
{
    log_error_by(CONN, LOG_REQUEST(c->peer, m->xid), "message of type %u: %s", m->type,
                 strerror(-err));
    switch (m->type) {
    case OFPT_FLOW_MOD: return OF_FLOW_MOD_FAILED(UNKNOWN);
    case OFPT_METER_MOD: return OF_METER_MOD_FAILED(UNKNOWN);
    case OFPT_PORT_MOD: return OF_PORT_MOD_FAILED(BAD_CONFIG);
    case OFPT_MULTIPART_REQUEST: return OF_BAD_REQUEST(MULTIPART_BUFFER_OVERFLOW);
    default: return OF_BAD_REQUEST(EPERM);
    }
}

int
conn_error_data(struct conn *c, const struct of_msg *request, uint16_t type, uint16_t code,
                struct of_bytes data)
{
    struct of_error e = {.type = type, .code = code, .data = data};
    int err = conn_send(c, OFPT_ERROR, request->xid, &e);
    if (!err)
        count_error(c, type);
    return err;
}

int
conn_reply(struct conn *c, uint8_t type, const struct of_msg *request, const void *body)
{
    if (type != OFPT_MULTIPART_REPLY)
        return conn_send(c, type, request->xid, body);
    int err = conn_send_begin(c);
    if (err)
        return err > 0 ? 0 : err;
    size_t start = c->out.len;
    return finish(c, start,
                  of_encode_multipart(&c->out, type, request->xid, request->mp->type, 0, body));
}
