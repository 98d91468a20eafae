/* SPDX-License-Identifier: Apache-2.0 */
#include <control/bundle.h>

#include "conn.h"
#include <daemon/machine-memory.h>

#include <errno.h>
#include <stdlib.h>

#define ALL_FLAGS   (OFPBF_ATOMIC | OFPBF_ORDERED)
#define HEAD_LEN    8 /* bundle id, type, flags */
#define FIRST_CHUNK ((size_t)4 << 10)
#define CHUNK       ((size_t)1 << 20)

struct chunk {
    struct chunk *next;
    size_t used, room;
    uint8_t data[]; /* whole messages */
};

struct bundle {
    struct bundle *next;
    uint32_t id;
    uint16_t flags;
    bool closed;
    bool refused;   /* a message was refused, so the bundle can't be committed any more */
    unsigned parts; /* bits: which enum bundle_part it has */
    uint32_t n;
    size_t bytes; /* that its chunks take */
    struct chunk *first, *last;
    uint64_t used;           /* loop time of the last message for it */
    struct deferred request; /* that began it, or commits it */
    struct bundle_own own;   /* of a bundle of the switch itself; else all zeros */
};

struct bundles {
    struct bundle_room *room;
    struct conn *conn;
    struct bundle *first;
    unsigned n;
    struct loop_timer *timer;
};

void
bundle_room_init(struct bundle_room *r, struct loop *loop, const struct bundle_ops *ops, void *ctx)
{
    uint64_t part = machine_memory() / BUNDLE_TOTAL_PART;
    *r = (struct bundle_room){.loop = loop, .ops = ops, .ctx = ctx, .max = BUNDLE_TOTAL_MAX};
    if (part < r->max)
        r->max = (size_t)part;
    of_arena_init(&r->arena, OF_ARENA_MESSAGE);
}

void
bundle_room_free(struct bundle_room *r)
{
    of_arena_free(&r->arena);
}

/* ------------------------------------------------------------------ a connection's bundles */

static struct bundles *
bundles_of(struct bundle_room *r, struct conn *c)
{
    struct conn_own *s = conn_own(c);
    if (!s->bundles && (s->bundles = calloc(1, sizeof *s->bundles)))
        *s->bundles = (struct bundles){.room = r, .conn = c};
    return s->bundles;
}

static struct bundle *
find(const struct bundles *all, uint32_t id)
{
    struct bundle *b = all->first;
    while (b && b->id != id)
        b = b->next;
    return b;
}

static void
take_out(struct bundles *all, struct bundle *b)
{
    struct bundle **link = &all->first;
    while (*link != b)
        link = &(*link)->next;
    *link = b->next;
    all->n--;
}

static void
free_bundle(struct bundle_room *r, struct bundle *b)
{
    r->bytes -= b->bytes;
    for (struct chunk *k; (k = b->first);) {
        b->first = k->next;
        free(k);
    }
    free(b);
}

static void
drop(struct bundles *all, struct bundle *b)
{
    take_out(all, b);
    free_bundle(all->room, b);
}

void
bundle_forget(struct conn *c)
{
    struct conn_own *s = conn_own(c);
    struct bundles *all = s->bundles;
    s->bundles = NULL;
    if (!all)
        return;
    while (all->first)
        drop(all, all->first);
    if (all->timer)
        loop_timer_free(all->timer);
    free(all);
}

/* Discards bundles that are idle for too long, and answers with the error of their first request.
 */
static void
on_timer(void *ctx)
{
    struct bundles *all = ctx;
    struct bundle_room *r = all->room;
    uint64_t now = loop_now(r->loop), oldest = UINT64_MAX;
    bool busy = r->ops->busy && r->ops->busy(r->ctx);
    for (struct bundle *b = all->first, *next; b; b = next) {
        next = b->next;
        b->used = busy ? now : b->used;
        if (now < b->used + BUNDLE_IDLE_NS) {
            oldest = b->used < oldest ? b->used : oldest;
            continue;
        }
        struct of_msg request = deferred_message(&b->request);
        conn_error(all->conn, &request, OF_BUNDLE_FAILED(TIMEOUT));
        drop(all, b);
    }
    if (all->first)
        loop_timer_set(all->timer, oldest + BUNDLE_IDLE_NS);
}

static int
new_bundle(struct bundles *all, const struct of_msg *m, uint32_t id, uint16_t flags,
           struct bundle **out)
{
    if (flags & ~ALL_FLAGS)
        return OF_BUNDLE_FAILED(BAD_FLAGS);
    if (all->n >= BUNDLES_MAX)
        return OF_BUNDLE_FAILED(OUT_OF_BUNDLES);
    if (!all->timer && loop_timer_new(all->room->loop, on_timer, all, &all->timer))
        return OF_BUNDLE_FAILED(OUT_OF_BUNDLES);
    struct bundle *b = calloc(1, sizeof *b);
    if (!b)
        return OF_BUNDLE_FAILED(OUT_OF_BUNDLES);
    b->id = id;
    b->flags = flags;
    deferred_begin(&b->request, NULL, m);
    b->used = loop_now(all->room->loop);
    if (!all->first)
        loop_timer_set(all->timer, b->used + BUNDLE_IDLE_NS);
    b->next = all->first;
    all->first = b;
    all->n++;
    *out = b;
    return 0;
}

/* ------------------------------------------------------------------ the messages in it */

bool
bundle_next(const struct bundle *b, struct bundle_pos *pos, struct of_bytes *message)
{
    const struct chunk *k = pos->begun ? pos->chunk : b->first;
    pos->begun = true;
    while (k && pos->at == k->used) {
        k = k->next;
        pos->at = 0;
    }
    pos->chunk = k;
    if (!k)
        return false;
    *message = (struct of_bytes){k->data + pos->at, of_get16(k->data + pos->at + 2)};
    pos->at += message->n;
    return true;
}

const struct deferred *
bundle_request(const struct bundle *b)
{
    return &b->request;
}

uint32_t
bundle_messages(const struct bundle *b)
{
    return b->n;
}

bool
bundle_has(const struct bundle *b, enum bundle_part part)
{
    return b->parts >> part & 1;
}

static int
keep(struct bundle_room *r, struct bundle *b, struct of_bytes message)
{
    struct chunk *k = b->last;
    if (b->n >= BUNDLE_MAX_MESSAGES)
        return OF_BUNDLE_FAILED(MSG_TOO_MANY);
    if (!k || k->room - k->used < message.n) {
        size_t room = b->bytes < FIRST_CHUNK ? FIRST_CHUNK : b->bytes < CHUNK ? b->bytes : CHUNK;
        room = room < message.n ? OF_MSG_MAX : room;
        if (b->bytes + room > BUNDLE_MAX_BYTES || r->bytes + room > r->max)
            return OF_BUNDLE_FAILED(MSG_TOO_MANY);
        if (!(k = malloc(sizeof *k + room)))
            return OF_BUNDLE_FAILED(MSG_TOO_MANY);
        k->next = NULL;
        k->used = 0;
        k->room = room;
        *(b->last ? &b->last->next : &b->first) = k;
        b->last = k;
        b->bytes += room;
        r->bytes += room;
    }
    memcpy(k->data + k->used, message.p, message.n);
    k->used += message.n;
    b->n++;
    b->parts |= 1u << r->ops->part(message);
    return 0;
}

/* Properties: a type and a length that counts both, padded to 8 bytes.  All are refused: one
 * that was ignored could ask for something that would then not be done. */
static int
check_properties(struct of_bytes all)
{
    if (!all.n)
        return 0;
    if (all.n < 4 || of_get16(all.p + 2) < 4 || of_get16(all.p + 2) > all.n)
        return OF_BAD_REQUEST(BAD_LEN);
    return of_get16(all.p) == OFPBPT_EXPERIMENTER ? OF_BAD_REQUEST(BAD_EXPERIMENTER)
                                                  : OF_BUNDLE_FAILED(UNKNOWN);
}

/* Cuts the message out of what follows the flags, with properties behind it. */
static int
cut_message(const struct of_msg *m, struct of_bytes *message)
{
    if (message->n < OFP_HEADER_LEN)
        return OF_BUNDLE_FAILED(MSG_BAD_LEN);
    size_t n = of_get16(message->p + 2), padded = (n + 7) & ~(size_t)7, all = message->n;
    if (n < OFP_HEADER_LEN || n > all || (n < all && padded > all))
        return OF_BUNDLE_FAILED(MSG_BAD_LEN);
    message->n = n;
    if (of_get32(message->p + 4) != m->xid)
        return OF_BUNDLE_FAILED(MSG_BAD_XID);
    return padded < all ? check_properties((struct of_bytes){message->p + padded, all - padded})
                        : 0;
}

/* An error of the inner message quotes the inner message, not the one it came in. */
static int
check_message(struct bundle_room *r, struct conn *c, struct of_bytes message)
{
    struct of_msg m;
    if (r->ops->part(message) == BUNDLE_NOT)
        return OF_BUNDLE_FAILED(MSG_UNSUP);
    int err = of_decode(message, &r->arena, &m);
    if (!err)
        err = r->ops->check(r->ctx, c, &m);
    of_arena_reset(&r->arena);
    if (err < 0)
        return OF_BUNDLE_FAILED(MSG_TOO_MANY); /* out of memory */
    if (err && err != BUNDLE_ANSWERED)
        conn_send_error(c, of_get32(message.p + 4), err, message, NULL);
    return err ? BUNDLE_ANSWERED : 0;
}

static int
add(struct bundles *all, const struct of_msg *m, struct of_bytes data)
{
    struct bundle_room *r = all->room;
    struct of_bytes message = {data.p + HEAD_LEN, data.n - HEAD_LEN};
    uint32_t id = of_get32(data.p);
    uint16_t flags = of_get16(data.p + 6);
    struct bundle *b = find(all, id);
    if (b && (b->closed || b->flags != flags)) {
        int err = b->closed ? OF_BUNDLE_FAILED(BUNDLE_CLOSED) : OF_BUNDLE_FAILED(BAD_FLAGS);
        drop(all, b);
        return err;
    }
    int err = b ? 0 : new_bundle(all, m, id, flags, &b);
    if (err)
        return err;
    b->used = loop_now(r->loop);
    err = cut_message(m, &message);
    if (!err)
        err = check_message(r, all->conn, message);
    if (!err)
        err = keep(r, b, message);
    b->refused |= err != 0;
    return err == BUNDLE_ANSWERED ? 0 : err;
}

/* ------------------------------------------------------------------ bundle control */

static int
open_bundle(struct bundles *all, const struct of_msg *m, uint32_t id, uint16_t flags)
{
    struct bundle *b = find(all, id);
    if (b) {
        drop(all, b);
        return OF_BUNDLE_FAILED(BAD_ID);
    }
    return new_bundle(all, m, id, flags, &b);
}

static int
close_bundle(struct bundles *all, struct bundle *b, uint16_t flags)
{
    int err = b->closed           ? OF_BUNDLE_FAILED(BUNDLE_CLOSED)
              : b->flags != flags ? OF_BUNDLE_FAILED(BAD_FLAGS)
                                  : 0;
    b->closed = true;
    b->used = loop_now(all->room->loop);
    if (err)
        drop(all, b);
    return err;
}

/* BUNDLE_ANSWERED: the answer comes later. */
static int
commit_bundle(struct bundles *all, const struct of_msg *m, struct bundle *b, uint16_t flags)
{
    struct bundle_room *r = all->room;
    enum bundle_outcome outcome = BUNDLE_FAILED;
    int err = b->flags != flags ? OF_BUNDLE_FAILED(BAD_FLAGS) : 0;
    take_out(all, b);
    deferred_begin(&b->request, all->conn, m);
    if (!err && !b->refused)
        outcome = r->ops->commit(r->ctx, b);
    if (outcome == BUNDLE_DEFERRED)
        return BUNDLE_ANSWERED;
    if (!err && outcome == BUNDLE_FAILED)
        err = OF_BUNDLE_FAILED(MSG_FAILED);
    deferred_end(&b->request);
    free_bundle(r, b);
    return err;
}

static int
reply(struct conn *c, uint32_t xid, uint32_t id, uint16_t type, uint16_t flags)
{
    uint8_t data[HEAD_LEN];
    struct of_experimenter r = {OFP_ONF_EXPERIMENTER, OFP_ONF_BUNDLE_CONTROL, {data, sizeof data}};
    of_set32(data, id);
    of_set16(data + 4, type);
    of_set16(data + 6, flags);
    return conn_send(c, OFPT_EXPERIMENTER, xid, &r);
}

void
bundle_committed(struct bundle_room *r, struct bundle *b, bool done)
{
    struct bundle_own own = b->own;
    if (!done)
        deferred_error(&b->request, OF_BUNDLE_FAILED(MSG_FAILED));
    else if (b->request.conn)
        reply(b->request.conn, deferred_message(&b->request).xid, b->id, OFPBCT_COMMIT_REPLY,
              b->flags);
    deferred_end(&b->request);
    free_bundle(r, b);
    if (own.over)
        own.over(own.ctx, done);
}

/* ------------------------------------------------------------------ the switch's own */

struct bundle *
bundle_own_new(const struct bundle_own *own)
{
    struct bundle *b = calloc(1, sizeof *b);
    if (b)
        b->own = *own;
    return b;
}

int
bundle_own_add(struct bundle_room *r, struct bundle *b, struct of_bytes message)
{
    return keep(r, b, message);
}

void
bundle_own_commit(struct bundle_room *r, struct bundle *b)
{
    enum bundle_outcome outcome = r->ops->commit(r->ctx, b);
    if (outcome != BUNDLE_DEFERRED)
        bundle_committed(r, b, outcome == BUNDLE_DONE);
}

void
bundle_own_drop(struct bundle_room *r, struct bundle *b)
{
    free_bundle(r, b);
}

const struct bundle_own *
bundle_owner(const struct bundle *b)
{
    return b->own.over ? &b->own : NULL;
}

/* ------------------------------------------------------------------ bundle messages */

static int
control(struct bundles *all, const struct of_msg *m, struct of_bytes data)
{
    uint32_t id = of_get32(data.p);
    uint16_t type = of_get16(data.p + 4), flags = of_get16(data.p + 6);
    if (type > OFPBCT_DISCARD_REQUEST || type % 2)
        return OF_BUNDLE_FAILED(BAD_TYPE);
    int err = check_properties((struct of_bytes){data.p + HEAD_LEN, data.n - HEAD_LEN});
    struct bundle *b = find(all, id);
    if (!err && type != OFPBCT_OPEN_REQUEST && !b)
        err = OF_BUNDLE_FAILED(BAD_ID);
    if (err)
        return err;
    if (type == OFPBCT_OPEN_REQUEST)
        err = open_bundle(all, m, id, flags);
    else if (type == OFPBCT_CLOSE_REQUEST)
        err = close_bundle(all, b, flags);
    else if (type == OFPBCT_COMMIT_REQUEST)
        err = commit_bundle(all, m, b, flags);
    else
        drop(all, b);
    if (err)
        return err == BUNDLE_ANSWERED ? 0 : err;
    return reply(all->conn, m->xid, id, (uint16_t)(type + 1), flags);
}

int
bundle_handle(struct bundle_room *r, struct conn *c, const struct of_msg *m)
{
    const struct of_experimenter *q = m->body;
    if (q->exp_type != OFP_ONF_BUNDLE_CONTROL && q->exp_type != OFP_ONF_BUNDLE_ADD)
        return OF_BAD_REQUEST(BAD_EXP_TYPE);
    if (q->data.n < HEAD_LEN)
        return OF_BAD_REQUEST(BAD_LEN);
    struct bundles *all = bundles_of(r, c);
    if (!all)
        return OF_BUNDLE_FAILED(OUT_OF_BUNDLES);
    return q->exp_type == OFP_ONF_BUNDLE_ADD ? add(all, m, q->data) : control(all, m, q->data);
}
