/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of every message before its handler: version, type, role, length, multipart pieces.
 * Messages that need no handler are answered here. */
#include "conn-request.h"

#include <daemon/log.h>
#include <oflib/fmt.h>

#include <errno.h>
#include <stdlib.h>

#define ARENA_KEEP (1u << 20) /* more than this is given back after the message */

#define MP_HEADER_LEN (OFP_HEADER_LEN + 8)

bool
conn_is_ours(uint8_t type)
{
    return type == OFPT_HELLO || type == OFPT_ERROR || type == OFPT_ECHO_REQUEST ||
           type == OFPT_ECHO_REPLY;
}

/* Whether a slave may not send it.  Of a request in pieces: conn-parts.c. */
static bool
is_write(enum access access, struct of_bytes frame)
{
    return access == ACCESS_WRITE ||
           (access == ACCESS_WRITE_BODY && frame.n > MP_HEADER_LEN && !of_get16(frame.p + 10));
}

static int
handle_ours(struct conn *c, const struct of_msg *m)
{
    struct of_echo echo = {.data = {m->raw.p + OFP_HEADER_LEN, m->raw.n - OFP_HEADER_LEN}};
    if (m->type == OFPT_ECHO_REQUEST)
        return conn_send(c, OFPT_ECHO_REPLY, m->xid, &echo);
    return 0; /* a second hello, an answer to our echo request */
}

static int
decode_and_handle(struct conn *c, struct of_msg *m, struct of_bytes body, struct of_arena *arena)
{
    const uint8_t version = m->version;
    int err =
        body.p ? of_decode_struct(body, m->body_row, arena, &m->body) : of_decode(m->raw, arena, m);
    m->version = version;
    return err ? err : c->ch->ops.handle(c->ch->ctx, c, m);
}

struct deferred_copy {
    struct deferred d;
    struct conn *c;
    struct of_msg m;
    struct of_bytes body; /* as of decode_and_handle */
    struct of_arena arena;
    uint8_t bytes[]; /* of both */
};

static int
defer_copy(struct conn *c, const struct of_msg *m, struct of_bytes body)
{
    struct deferred_copy *r = malloc(sizeof *r + m->raw.n + body.n);
    if (!r)
        return -ENOMEM;
    *r = (struct deferred_copy){.c = c, .m = *m};
    of_arena_init(&r->arena, OF_ARENA_MESSAGE);
    memcpy(r->bytes, m->raw.p, m->raw.n);
    r->m.raw.p = r->bytes;
    if (body.p)
        r->body = (struct of_bytes){memcpy(r->bytes + m->raw.n, body.p, body.n), body.n};
    deferred_begin(&r->d, c, m);
    c->kept = true;
    int err = c->ch->ops.later(c->ch->ctx, m->raw, r);
    if (err)
        deferred_copy_end(r);
    return err;
}

/* Handlers recognize a 1.0 peer by the version, because its modify adds a flow that doesn't
 * exist. */
static int
handle_request(struct conn *c, struct of_msg *m)
{
    struct channel *ch = c->ch;
    struct part *part = NULL;
    int err;
    if (m->type == OFPT_MULTIPART_REQUEST && (err = conn_part(c, m, &part)) != 1)
        return err;
    struct of_bytes body = {0};
    if (part)
        body = (struct of_bytes){part->body.buf, part->body.len};
    if (c->door)
        m->version = OFP10_VERSION;
    if (ch->ops.blocks && ch->ops.blocks(ch->ctx, m->raw))
        err = defer_copy(c, m, body);
    else
        err = decode_and_handle(c, m, body, &ch->arena);
    if (part)
        conn_part_forget(c, part);
    of_arena_reset(&ch->arena);
    if (ch->arena.total > ARENA_KEEP)
        of_arena_free(&ch->arena);
    return err;
}

static int
check_and_handle(struct conn *c, struct of_msg *m)
{
    if (m->type == OFPT_HELLO)
        return 0; /* whatever its version */
    if (m->version != OFP_VERSION)
        return OF_BAD_REQUEST(BAD_VERSION);
    if (conn_is_ours(m->type))
        return handle_ours(c, m);
    enum access access = c->ch->ops.access(c->ch->ctx, m->raw);
    if (access == ACCESS_NONE)
        return OF_BAD_REQUEST(BAD_TYPE);
    if (conn_state(c)->role == OFPCR_ROLE_SLAVE && is_write(access, m->raw) &&
        !conn_part_open(c, m))
        return OF_BAD_REQUEST(IS_SLAVE);
    return handle_request(c, m);
}

/* Is a limit reached?  The operator may raise it, or ask why so much is wanted. */
static bool
is_limit(int err)
{
    return err == OF_FLOW_MOD_FAILED(TABLE_FULL) || err == OF_GROUP_MOD_FAILED(OUT_OF_GROUPS) ||
           err == OF_GROUP_MOD_FAILED(OUT_OF_BUCKETS) ||
           err == OF_METER_MOD_FAILED(OUT_OF_METERS) || err == OF_METER_MOD_FAILED(OUT_OF_BANDS);
}

static void
log_refused(const struct conn *c, const struct of_msg *m, int err)
{
    const char *type = of_fmt_name(&of_fmt_OFPT, m->type);
    const char *code = of_error_code_name(of_err_type(err), of_err_code(err));
    if (!type)
        type = "a message of unknown type";
    if (!code)
        code = "an error";
    if (is_limit(err))
        log_warning_by(CONN, &c->by, "refused %s: %s", type, code);
    else
        log_info_by(CONN, &c->by, "refused %s: %s", type, code);
}

/* err: the handler's result. */
static void
answer_error(struct conn *c, const struct of_msg *m, int err)
{
    if (err < 0 && !c->fail)
        err = conn_error_of(c, m, err);
    if (err > 0) {
        log_refused(c, m, err);
        conn_send_error(c, m->xid, err, m->raw, NULL);
    }
    if (err < 0)
        conn_fail(c, err);
}

static struct of_msg
begin(struct conn *c, struct of_bytes frame)
{
    struct of_msg m = {
        .version = frame.p[0], .type = frame.p[1], .xid = of_get32(frame.p + 4), .raw = frame};
    c->by.is_request = true;
    c->by.xid = m.xid;
    return m;
}

void
conn_request(struct conn *c, struct of_bytes frame)
{
    const struct log_by before = c->by; /* of a request that is being handled elsewhere */
    struct of_msg m = begin(c, frame);
    answer_error(c, &m, check_and_handle(c, &m));
    c->by = before;
}

/* The messages of 1.3 that it becomes are handled next (conn-life.c). */
static void
take_of10(struct conn *c, struct of_bytes frame)
{
    const struct log_by before = c->by;
    struct of_msg m = begin(c, frame);
    int err = m.type == OFPT_HELLO ? 0 : of10_request(c->door, frame);
    answer_error(c, &m, err);
    if (err)
        of10_passed(c->door);
    c->by = before;
}

void
deferred_copy_run(struct deferred_copy *r)
{
    struct conn *c = r->c;
    const struct log_by before = c->by;
    if (c->fail)
        return;
    c->by.is_request = true;
    c->by.xid = r->m.xid;
    answer_error(c, &r->m, decode_and_handle(c, &r->m, r->body, &r->arena));
    c->by = before;
}

void
deferred_copy_end(struct deferred_copy *r)
{
    r->c->kept = false;
    if (r->c->deferred == &r->d) /* its handler may have deferred the rest */
        deferred_end(&r->d);
    conn_flush_later(r->c); /* closes it, if it waited for that */
    of_arena_free(&r->arena);
    free(r);
}

void
conn_frame(struct conn *c, struct of_bytes frame)
{
    COUNT(c, messages_in, 1);
    if (log_is_on(CONN, LOG_DEBUG))
        conn_log_received(c, frame);
    if (frame.p[1] == OFPT_ERROR)
        COUNT(c, errors_in, 1); /* an error is never answered, however malformed */
    else if (c->door)
        take_of10(c, frame);
    else
        conn_request(c, frame);
}

void
conn_bad_frame(struct conn *c, struct of_bytes head)
{
    COUNT(c, messages_in, 1);
    head.n = OFP_HEADER_LEN;
    if (c->door)
        of10_begin(c->door, head);
    if (head.p[1] != OFPT_ERROR)
        conn_send_error(c, of_get32(head.p + 4), OF_BAD_REQUEST(BAD_LEN), head, NULL);
    if (c->door)
        of10_passed(c->door);
    conn_because(c, "a message with an impossible length");
    conn_end(c);
}
