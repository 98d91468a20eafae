/* SPDX-License-Identifier: Apache-2.0 */
#include "conn-dump.h"

#include "conn.h"

#include <errno.h>
#include <stdlib.h>

#define MP_HEADER_LEN  (OFP_HEADER_LEN + 8)
#define EXP_HEADER_LEN 8

/* ------------------------------------------------------------------ dumps */

static int
dump_begin(struct conn *c, const struct of_msg *request)
{
    struct conn_dump *d = &c->dump;
    int err = d->step ? -EBUSY : conn_send_begin(c);
    if (err)
        return err;
    d->w = of_wr_grow(2 * OF_MSG_MAX); /* a message, and the element that begins the next one */
    of_wr_add(&d->w, MP_HEADER_LEN);
    if (request->mp && request->mp->type == OFPMP_EXPERIMENTER)
        of_wr_bytes(&d->w, request->raw.p + MP_HEADER_LEN, EXP_HEADER_LEN);
    d->head = d->w.len;
    d->xid = request->xid;
    d->mp = request->mp;
    if (!d->mp)
        d->port = ((const struct of_queue_get_config_request *)request->body)->port;
    if (!d->w.overflow)
        return 0;
    of_wr_free(&d->w);
    return -ENOMEM;
}

int
conn_dump(struct conn *c, const struct of_msg *request, conn_dump_step step, void (*done)(void *),
          void *ctx)
{
    int err = dump_begin(c, request);
    if (!err) {
        c->dump.step = step;
        c->dump.done = done;
        c->dump.ctx = ctx;
    } else if (done) {
        done(ctx);
    }
    return err > 0 ? 0 : err;
}

/* Sends the first n bytes as a message of their own. */
static void
emit(struct conn_dump *d, size_t n, uint16_t flags)
{
    uint8_t *p = d->w.buf;
    p[0] = OFP_VERSION;
    p[1] = d->mp ? OFPT_MULTIPART_REPLY : OFPT_QUEUE_GET_CONFIG_REPLY;
    of_set16(p + 2, (uint16_t)n);
    of_set32(p + 4, d->xid);
    if (d->mp)
        of_set32(p + 8, (uint32_t)d->mp->type << 16 | flags);
    else
        of_set32(p + 8, d->port);
    conn_send_bytes(d->c, (struct of_bytes){p, n});
}

/* The bytes since `start` are one element: it goes into this message or begins the next. */
static int
added(struct conn_dump *d, size_t start, int err)
{
    size_t n = d->w.len - start;
    if (!err && d->head + n > OF_MSG_MAX)
        err = -EMSGSIZE;
    if (err) {
        d->w.len = start;
        COUNT(d->c, dump_skipped, 1);
        return err;
    }
    if (d->w.len > DUMP_CUT && start > d->head) {
        emit(d, start, OFPMPF_REPLY_MORE);
        memmove(d->w.buf + d->head, d->w.buf + start, n);
        d->w.len = d->head + n;
    }
    return 0;
}

int
conn_dump_add(struct conn_dump *d, const struct of_list_row *row, void *element)
{
    struct of_list one = {.n = 1, .v = &element};
    size_t start = d->w.len;
    int err = of_encode_list(&d->w, row, &one);
    return added(d, start, err);
}

int
conn_dump_add_bytes(struct conn_dump *d, struct of_bytes bytes)
{
    size_t start = d->w.len;
    if (bytes.n > OF_MSG_MAX)
        return added(d, start, -EMSGSIZE);
    of_wr_bytes(&d->w, bytes.p, bytes.n);
    int err = d->w.overflow ? -EMSGSIZE : 0;
    d->w.overflow = false;
    return added(d, start, err);
}

/* ------------------------------------------------------------------ replies encoded beforehand */

#define SKIP_A_STEP 256

struct dump_shared {
    struct channel *ch;
    unsigned refs;
    struct of_wr w;
    conn_dump_next next; /* NULL: each element has the length `each` */
    size_t each;
};

/* One connection's. */
struct encoded {
    struct dump_shared *of;
    size_t at;
    conn_dump_sees sees; /* NULL: it sees all */
    void (*done)(void *);
    void *ctx;
};

static bool
encoded_step(struct conn_dump *d, void *ctx)
{
    struct encoded *e = ctx;
    const struct of_wr *w = &e->of->w;
    for (int i = 0; i < SKIP_A_STEP && e->at < w->len; i++) {
        struct of_bytes left = {w->buf + e->at, w->len - e->at};
        left.n = e->of->next ? e->of->next(left) : e->of->each;
        e->at += left.n;
        if (e->sees && !e->sees(e->ctx, left))
            continue;
        conn_dump_add_bytes(d, left);
        break;
    }
    return e->at < w->len;
}

void
dump_shared_put(struct dump_shared *s)
{
    if (!s || --s->refs)
        return;
    s->ch->encoded_total -= s->w.cap;
    of_wr_free(&s->w);
    free(s);
}

static void
encoded_done(void *ctx)
{
    struct encoded *e = ctx;
    dump_shared_put(e->of);
    if (e->done)
        e->done(e->ctx);
    free(e);
}

size_t
conn_dump_len16(struct of_bytes left)
{
    return of_get16(left.p);
}

size_t
conn_dump_tagged(struct of_bytes left)
{
    size_t n = (of_get16(left.p + 2) + (size_t)7) / 8 * 8;
    return n < left.n ? n : left.n;
}

/* Closes peers that hold such a reply and read nothing of it. */
static bool
encoded_full(struct channel *ch, size_t more)
{
    if (!ch->encoded_total || ch->encoded_total + more <= ENCODED_MAX)
        return false;
    for (struct conn *c = ch->conns; c; c = c->next) {
        if (c->fail || c->dump.step != encoded_step ||
            loop_now(ch->loop) - c->sent_at < ENCODED_STUCK_NS)
            continue;
        conn_because(c, "it reads nothing of a large reply, and other connections need the memory");
        conn_fail(c, -ENOBUFS);
    }
    return true;
}

int
dump_shared_new(struct channel *ch, struct of_wr *w, conn_dump_next next, struct dump_shared **out)
{
    bool full = encoded_full(ch, w->cap);
    struct dump_shared *s = w->overflow || full ? NULL : malloc(sizeof *s);
    if (!s) {
        of_wr_free(w);
        return full ? OF_BAD_REQUEST(MULTIPART_BUFFER_OVERFLOW) : -ENOMEM;
    }
    *s = (struct dump_shared){ch, 1, *w, next, 0};
    ch->encoded_total += w->cap;
    *out = s;
    return 0;
}

int
conn_dump_shared(struct conn *c, const struct of_msg *request, struct dump_shared *s,
                 conn_dump_sees sees, void (*done)(void *), void *ctx)
{
    struct encoded *e = malloc(sizeof *e);
    if (!e) {
        if (done)
            done(ctx);
        return -ENOMEM;
    }
    s->refs++;
    *e = (struct encoded){s, 0, sees, done, ctx};
    return conn_dump(c, request, encoded_step, encoded_done, e);
}

static int
dump_alone(struct conn *c, const struct of_msg *request, struct of_wr *w, conn_dump_next next,
           size_t each)
{
    struct dump_shared *s = NULL;
    int err = dump_shared_new(c->ch, w, next, &s);
    if (err)
        return err;
    s->each = each;
    err = conn_dump_shared(c, request, s, NULL, NULL, NULL);
    dump_shared_put(s);
    return err;
}

int
conn_dump_encoded(struct conn *c, const struct of_msg *request, struct of_wr *w,
                  conn_dump_next next)
{
    return dump_alone(c, request, w, next, 0);
}

int
conn_dump_fixed(struct conn *c, const struct of_msg *request, struct of_wr *w, size_t each)
{
    return dump_alone(c, request, w, NULL, each);
}

/* ------------------------------------------------------------------ sending them */

void
conn_dump_run(struct conn *c)
{
    struct conn_dump *d = &c->dump;
    size_t mark = conn_out_mark(c) < DUMP_CHUNK ? conn_out_mark(c) : DUMP_CHUNK;
    uint64_t end = conn_clock_ms() + (conn_turn_is_long(c) ? 0 : TURN_MS);
    while (!c->ch->no_dumps && !c->fail && !c->mute && conn_waiting(c) < mark &&
           conn_clock_ms() <= end) {
        if (d->step(d, d->ctx))
            continue;
        if (!c->fail)
            emit(d, d->w.len, 0);
        conn_dump_end(c);
        return;
    }
}
