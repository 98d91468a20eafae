/* SPDX-License-Identifier: Apache-2.0 */
/* Ofprotocol's own connection to the datapath. */
#include "relay.h"

#include <daemon/log.h>

#include <errno.h>
#include <string.h>

#define AGAIN_MS 200 /* the datapath is on this machine, and starts when we do */

static void
send_message(struct manage *m, uint8_t type, const void *body)
{
    uint8_t buf[128];
    struct of_wr w = of_wr_fixed(buf, sizeof buf);
    if (!of_encode_body(&w, type, ++m->xid, body))
        pipe_insert(&m->out, w.buf, w.len);
}

/* Asynchronous messages are for the controllers' own connections. */
static void
want_nothing(struct manage *m)
{
    const struct of_async nothing = {0};
    send_message(m, OFPT_SET_ASYNC, &nothing);
}

static void
report_relay(struct relay *r, const struct of_relay *now)
{
    uint8_t content[8];
    struct of_wr w = of_wr_fixed(content, sizeof content);
    struct of_experimenter e = {OFP_QOS_EXPERIMENTER, OFP_EXP_RELAY, {content, sizeof content}};
    if (of_encode_struct(&w, &of_row_relay, now))
        return;
    send_message(&r->manage, OFPT_EXPERIMENTER, &e);
    r->manage.reported = *now;
    r->manage.reported_any = true;
}

static void
report_controllers(struct relay *r)
{
    struct of_relay now = {.targets = (uint8_t)r->n_targets, .fail = r->fail};
    const struct of_relay *last = &r->manage.reported;
    for (unsigned i = 0; i < r->n_targets; i++) {
        const struct session *s = r->targets[i].session;
        now.connected = (uint8_t)(now.connected + (s && s->spoken && !s->why));
    }
    if (!r->manage.reported_any || last->connected != now.connected)
        report_relay(r, &now);
}

/* -------------------------------------------------------------- connection */

void
manage_close(struct relay *r)
{
    stream_close(r->manage.stream);
    r->manage.stream = NULL;
}

static void
lost(struct relay *r, const char *why, int64_t now)
{
    struct manage *m = &r->manage;
    if (m->up || !m->logged)
        log_warning_by(CONN, LOG_PEER(r->datapath_text), "%s; trying again", why);
    manage_close(r);
    memset(m, 0, sizeof *m);
    m->logged = true;
    m->next = now + AGAIN_MS;
}

static bool
from_datapath(void *ctx, struct of_bytes msg)
{
    struct relay *r = ctx;
    struct manage *m = &r->manage;
    if (msg.p[1] == OFPT_HELLO && !m->up) {
        m->up = true;
        want_nothing(m);
        log_notice_by(CONN, LOG_PEER(r->datapath_text), "connected");
    } else if (msg.p[1] == OFPT_ECHO_REQUEST) {
        struct of_echo echo = {{msg.p + OFP_HEADER_LEN, msg.n - OFP_HEADER_LEN}};
        struct of_wr w = of_wr_grow(OF_MSG_MAX);
        if (!of_encode_body(&w, OFPT_ECHO_REPLY, of_get32(msg.p + 4), &echo))
            pipe_insert(&m->out, w.buf, w.len);
        of_wr_free(&w);
    } else if (msg.p[1] == OFPT_ERROR && msg.n >= 12) {
        log_warning_by(CONN, LOG_PEER(r->datapath_text),
                       "refuses the report about controllers (error type %u, code %u): "
                       "is it an older ofdatapath?",
                       of_get16(msg.p + 8), of_get16(msg.p + 10));
    }
    return false;
}

static void
connect_now(struct relay *r, int64_t now)
{
    int err = stream_connect(&r->datapath, 0, &r->manage.stream);
    if (err)
        lost(r, strerror(-err), now);
    else
        r->manage.deadline = now + CONNECT_MS;
}

static void
run_open(struct relay *r, int64_t now)
{
    struct manage *m = &r->manage;
    int in = pipe_fill(&m->in, m->stream, from_datapath, r), out = 0;
    if (m->up)
        report_controllers(r);
    if (in >= 0)
        out = pipe_drain(&m->out, m->stream);
    if (in < 0 || out < 0)
        lost(r,
             in == -ECONNRESET ? "it closed the connection"
             : in == -EBADMSG  ? "it sent what is no OpenFlow message"
                               : stream_why(m->stream),
             now);
}

void
manage_run(struct relay *r, int64_t now)
{
    struct manage *m = &r->manage;
    if (!m->stream && now >= m->next)
        connect_now(r, now);
    if (!m->stream)
        return;
    int err = m->open ? 0 : stream_open(m->stream);
    if (err && err != -EAGAIN) {
        lost(r, stream_why(m->stream), now);
        return;
    }
    if (!err && !m->open) {
        m->open = true;
        send_message(m, OFPT_HELLO, NULL);
    }
    if (m->open)
        run_open(r, now);
    if (m->stream && !m->up && now >= m->deadline)
        lost(r, "no answer", now);
}

void
manage_wait(struct relay *r, int64_t now)
{
    struct manage *m = &r->manage;
    if (m->stream)
        relay_wait_stream(r, m->stream, POLLIN | (pipe_is_waiting(&m->out) ? POLLOUT : 0u));
    if (!m->up)
        relay_wait_until(r, m->stream ? m->deadline : m->next);
}
