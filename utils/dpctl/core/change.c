/* SPDX-License-Identifier: Apache-2.0 */
#include <core/ask.h>
#include <core/change.h>
#include <core/say.h>
#include <core/view.h>

#include <errno.h>
#include <stdlib.h>

#define BUNDLE_ID    1
#define BUNDLE_FLAGS (OFPBF_ATOMIC | OFPBF_ORDERED)
#define BYTES_MAX    ((size_t)1 << 30)
#define WHERE_MAX    ((size_t)64 << 20)
#define PIECE        (256u << 10) /* sent at once, before looking for refusals */
#define NOT_KNOWN    UINT32_MAX

struct bundle {
    struct of_wr messages; /* encoded bundle-add messages with consecutive xids */
    struct of_wr wheres;   /* terminated texts */
    uint32_t *where;       /* of each message: its text's place in wheres */
    uint32_t n, room;
    uint32_t first; /* xid of the first message */
    bool refused;   /* a refusal has been reported */
};

enum status
change_begin(struct ctx *c)
{
    struct bundle *b = calloc(1, sizeof *b);
    if (!b)
        return say_memory(c);
    b->messages = of_wr_grow(BYTES_MAX);
    b->wheres = of_wr_grow(WHERE_MAX);
    c->bundle = b;
    return DPCTL_OK;
}

void
change_drop(struct ctx *c)
{
    struct bundle *b = c->bundle;
    c->bundle = NULL;
    if (!b)
        return;
    of_wr_free(&b->messages);
    of_wr_free(&b->wheres);
    free(b->where);
    free(b);
}

/* ------------------------------------------------------------------ collecting */

/* Remembers c->where for the message; consecutive messages share the text. */
static bool
note_where(struct ctx *c, struct bundle *b)
{
    if (b->n == b->room) {
        uint32_t room = b->room ? b->room * 2 : 256;
        uint32_t *v = realloc(b->where, room * sizeof *v);
        if (!v)
            return false;
        b->where = v;
        b->room = room;
    }
    uint32_t last = b->n ? b->where[b->n - 1] : NOT_KNOWN;
    if (last == NOT_KNOWN || strcmp((const char *)b->wheres.buf + last, c->where)) {
        last = (uint32_t)b->wheres.len;
        of_wr_bytes(&b->wheres, c->where, strlen(c->where) + 1);
    }
    b->where[b->n++] = last;
    return !b->wheres.overflow;
}

static enum status
collect(struct ctx *c, uint8_t type, const void *body)
{
    struct bundle *b = c->bundle;
    struct of_wr inner = of_wr_grow(2 * OF_MSG_MAX);
    uint32_t xid = ++c->remote.xid;
    if (!b->n)
        b->first = xid;
    /* Numbers messages by xid, whatever requests were sent between them. */
    xid = b->first + b->n;
    c->remote.xid = xid;
    enum status st = DPCTL_OK;
    int err = of_encode_body(&inner, type, xid, body);
    if (!err) {
        uint8_t head[8];
        of_set32(head, BUNDLE_ID);
        of_set32(head + 4, BUNDLE_FLAGS);
        struct of_wr data = of_wr_grow(2 * OF_MSG_MAX);
        of_wr_bytes(&data, head, sizeof head);
        of_wr_bytes(&data, inner.buf, inner.len);
        struct of_experimenter add = {
            OFP_ONF_EXPERIMENTER, OFP_ONF_BUNDLE_ADD, {data.buf, data.len}};
        err = data.overflow ? -ENOMEM : of_encode_body(&b->messages, OFPT_EXPERIMENTER, xid, &add);
        of_wr_free(&data);
    }
    if (err)
        st = say_failed(c, "the message does not fit into the bundle");
    else if (!note_where(c, b))
        st = say_memory(c);
    of_wr_free(&inner);
    return st;
}

bool
change_next(const struct ctx *c, size_t *at, struct of_bytes *message)
{
    enum { HEADS = 24 }; /* the experimenter message's and the bundle's */
    const struct bundle *b = c->bundle;
    if (*at >= b->messages.len) /* also without any: there is no memory then */
        return false;
    const uint8_t *p = b->messages.buf + *at;
    *message = (struct of_bytes){p + HEADS, of_get16(p + HEADS + 2)};
    *at += of_get16(p + 2);
    return true;
}

enum status
change_send(struct ctx *c, uint8_t type, const void *body)
{
    struct of_msg reply;
    if (c->bundle)
        return collect(c, type, body);
    enum status st = ask_send(c, type, body);
    uint32_t first = c->remote.xid;
    if (!st)
        st = ask_send(c, OFPT_BARRIER_REQUEST, NULL);
    if (!st)
        st = ask_wait(c, first, &reply);
    if (!st && c->json)
        st = view_message(c, &reply);
    return st;
}

/* ------------------------------------------------------------------ sending */

static void
report(struct ctx *c, struct bundle *b, struct of_bytes raw)
{
    struct of_msg m;
    const char *where = c->where;
    uint32_t i = of_get32(raw.p + 4) - b->first;
    if (b->refused)
        return; /* the first refusal causes the others */
    b->refused = true;
    if (of_decode(raw, &c->arena, &m)) {
        say_failed(c, "the switch's answer is malformed");
        return;
    }
    if (i < b->n)
        c->where = (const char *)b->wheres.buf + b->where[i];
    view_error(c, &m);
    c->where = where;
}

/* Reports errors until the bundle control reply with this xid; xid 0: only errors that have
 * arrived. */
static enum status
wait_control(struct ctx *c, struct bundle *b, uint32_t xid)
{
    int64_t until = remote_now_ms() + (xid ? c->remote.timeout_ms : 0);
    for (;;) {
        struct of_bytes raw;
        int err = xid ? remote_recv_alive(&c->remote, &until, &raw)
                      : remote_recv(&c->remote, until, &raw);
        if (err == -ETIMEDOUT && !xid)
            return b->refused ? DPCTL_FAILED : DPCTL_OK;
        if (err)
            return say_failed(c, "%s", c->remote.why);
        uint32_t of = of_get32(raw.p + 4);
        bool ours = of == xid || of - b->first < b->n || of == b->first - 1;
        if (raw.p[1] == OFPT_ERROR && ours)
            report(c, b, raw);
        if (!ours || of != xid || !xid)
            continue;
        if (c->json && !b->refused) {
            struct of_msg m;
            return of_decode(raw, &c->arena, &m) ? say_malformed(c) : view_message(c, &m);
        }
        return b->refused ? DPCTL_FAILED : DPCTL_OK;
    }
}

static enum status
control(struct ctx *c, uint32_t xid, uint16_t type)
{
    uint8_t data[8];
    of_set32(data, BUNDLE_ID);
    of_set16(data + 4, type);
    of_set16(data + 6, BUNDLE_FLAGS);
    struct of_experimenter m = {OFP_ONF_EXPERIMENTER, OFP_ONF_BUNDLE_CONTROL, {data, sizeof data}};
    struct of_wr w = of_wr_grow(OF_MSG_MAX);
    int err = of_encode_body(&w, OFPT_EXPERIMENTER, xid, &m);
    if (!err)
        err = remote_send(&c->remote, w.buf, w.len);
    of_wr_free(&w);
    return err ? say_failed(c, "%s", c->remote.why) : DPCTL_OK;
}

/* Reads refusals while sending: a switch whose refusals nobody reads stops reading. */
static enum status
send_messages(struct ctx *c, struct bundle *b)
{
    enum status st = DPCTL_OK;
    for (size_t at = 0; !st && at < b->messages.len; at += PIECE) {
        size_t n = b->messages.len - at < PIECE ? b->messages.len - at : PIECE;
        if (remote_send(&c->remote, b->messages.buf + at, n))
            return say_failed(c, "%s", c->remote.why);
        if (at + n < b->messages.len)
            st = wait_control(c, b, 0);
    }
    return st;
}

/* Sends open, messages and close without waiting, and the commit only if nothing was refused. */
static enum status
send_bundle(struct ctx *c, struct bundle *b)
{
    bool json = c->json;
    uint32_t last = b->first + b->n; /* the xid after the messages' */
    enum status st = control(c, b->first - 1, OFPBCT_OPEN_REQUEST);
    if (!st)
        st = send_messages(c, b);
    if (!st)
        st = control(c, last, OFPBCT_CLOSE_REQUEST);
    c->json = false;
    if (!st)
        st = wait_control(c, b, last);
    c->json = json;
    c->remote.xid = last + 1;
    if (st) {
        control(c, last + 1, OFPBCT_DISCARD_REQUEST); /* its reply is not waited for */
        return st;
    }
    st = control(c, last + 1, OFPBCT_COMMIT_REQUEST);
    return st ? st : wait_control(c, b, last + 1);
}

enum status
change_commit(struct ctx *c)
{
    struct bundle *b = c->bundle;
    enum status st = b->n ? send_bundle(c, b) : DPCTL_OK;
    change_drop(c);
    return st;
}
