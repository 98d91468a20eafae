/* SPDX-License-Identifier: Apache-2.0 */
/* Multipart requests in several messages (7.3.5): the same xid and type, each but the last with
 * OFPMPF_REQ_MORE; their bodies make one body.
 *
 * Other flag bits are reserved: OFPBRC_BAD_MULTIPART.  A request is refused once, by
 * OFPBRC_MULTIPART_BUFFER_OVERFLOW, when it grows too large, when too many are open, or when its
 * next piece doesn't come within PART_IDLE_NS; its other pieces are passed over.  When all
 * connections together hold too much, the largest request is refused, not the latest.
 *
 * A slave may not send a request that writes if it has a body.  The role counts when a piece comes, not when the
 * request began. */
#include "conn-parts.h"

#include "conn.h"

#define MP_HEADER_LEN  (OFP_HEADER_LEN + 8)
#define EXP_HEADER_LEN 8 /* experimenter, exp_type: in each piece again */

static void
give_back(struct conn *c, struct part *p)
{
    c->ch->parts_total -= p->body.len;
    of_wr_free(&p->body);
}

void
conn_part_forget(struct conn *c, struct part *p)
{
    give_back(c, p);
    p->used = false;
}

void
conn_parts_free(struct conn *c)
{
    for (int i = 0; i < PARTS_MAX; i++)
        if (c->parts[i].used)
            conn_part_forget(c, &c->parts[i]);
}

static struct part *
find(struct conn *c, uint32_t xid, uint16_t type)
{
    for (int i = 0; i < PARTS_MAX; i++)
        if (c->parts[i].used && c->parts[i].xid == xid && c->parts[i].type == type)
            return &c->parts[i];
    return NULL;
}

/* ------------------------------------------------------------------ who makes room */

/* The error message carries the beginning of the request. */
static void
refuse_part(struct conn *c, struct part *p)
{
    uint8_t request[64] = {OFP_VERSION, OFPT_MULTIPART_REQUEST};
    size_t n =
        p->body.len < sizeof request - MP_HEADER_LEN ? p->body.len : sizeof request - MP_HEADER_LEN;
    of_set16(request + 2, (uint16_t)(MP_HEADER_LEN + n));
    of_set32(request + 4, p->xid);
    of_set16(request + 8, p->type);
    of_set16(request + 10, OFPMPF_REQ_MORE);
    if (n)
        memcpy(request + MP_HEADER_LEN, p->body.buf, n);
    give_back(c, p);
    p->refused = true;
    conn_send_error(c, p->xid, OF_BAD_REQUEST(MULTIPART_BUFFER_OVERFLOW),
                    (struct of_bytes){request, MP_HEADER_LEN + n}, NULL);
}

static bool
is_idle(const struct conn *c, const struct part *p)
{
    return p->used && loop_now(c->ch->loop) - p->last >= PART_IDLE_NS;
}

void
channel_parts_due(void *ctx)
{
    struct channel *ch = ctx;
    bool any = false;
    for (struct conn *c = ch->conns; c; c = c->next)
        for (int i = 0; i < PARTS_MAX; i++) {
            struct part *p = &c->parts[i];
            if (is_idle(c, p) && !p->refused)
                refuse_part(c, p);
            any |= p->used && !p->refused;
        }
    if (any)
        loop_timer_set(ch->parts_timer, loop_now(ch->loop) + PART_IDLE_NS / 4);
}

static size_t
bytes_of(const struct conn *c)
{
    size_t sum = 0;
    for (int i = 0; i < PARTS_MAX; i++)
        sum += c->parts[i].body.len;
    return sum;
}

/* True: c may have n bytes more. */
static bool
make_room(struct conn *c, size_t n)
{
    struct channel *ch = c->ch;
    while (n > PARTS_TOTAL_MAX - ch->parts_total) {
        struct conn *most = c;
        for (struct conn *o = ch->conns; o; o = o->next)
            if (bytes_of(o) > bytes_of(most))
                most = o;
        if (most == c)
            return false;
        struct part *largest = most->parts;
        for (struct part *p = most->parts; p < most->parts + PARTS_MAX; p++)
            if (p->body.len > largest->body.len)
                largest = p;
        refuse_part(most, largest);
    }
    return true;
}

/* ------------------------------------------------------------------ pieces */

/* A free place, or that of a request that is idle. */
static struct part *
place(struct conn *c, uint32_t xid, uint16_t type)
{
    struct channel *ch = c->ch;
    for (int i = 0; i < PARTS_MAX; i++) {
        struct part *p = &c->parts[i];
        if (p->used && !is_idle(c, p))
            continue;
        if (p->used)
            conn_part_forget(c, p);
        *p = (struct part){
            .used = true, .xid = xid, .type = type, .body = of_wr_grow(PART_BYTES_MAX)};
        loop_timer_set(ch->parts_timer, loop_now(ch->loop) + PART_IDLE_NS);
        return p;
    }
    return NULL;
}

static int
append(struct conn *c, struct part *p, struct of_bytes body)
{
    if (p->type == OFPMP_EXPERIMENTER && p->body.len) {
        if (body.n < EXP_HEADER_LEN || memcmp(body.p, p->body.buf, EXP_HEADER_LEN))
            return OF_BAD_REQUEST(BAD_LEN);
        body.p += EXP_HEADER_LEN;
        body.n -= EXP_HEADER_LEN;
    } else if (p->type == OFPMP_EXPERIMENTER && body.n < EXP_HEADER_LEN) {
        return OF_BAD_REQUEST(BAD_LEN);
    }
    if (body.n > PART_BYTES_MAX - p->body.len || !make_room(c, body.n))
        return OF_BAD_REQUEST(MULTIPART_BUFFER_OVERFLOW);
    of_wr_bytes(&p->body, body.p, body.n);
    if (p->body.overflow)
        return OF_BAD_REQUEST(MULTIPART_BUFFER_OVERFLOW);
    c->ch->parts_total += body.n;
    return 0;
}

static int
take(struct conn *c, struct part *p, const struct of_msg *m, bool more)
{
    p->last = loop_now(c->ch->loop);
    struct of_bytes body = {m->raw.p + MP_HEADER_LEN, m->raw.n - MP_HEADER_LEN};
    bool writes =
        (body.n || p->body.len) && c->ch->ops.access(c->ch->ctx, m->raw) == ACCESS_WRITE_BODY;
    int err = p->refused                                          ? 0
              : writes && conn_state(c)->role == OFPCR_ROLE_SLAVE ? OF_BAD_REQUEST(IS_SLAVE)
                                                                  : append(c, p, body);
    if (err) {
        give_back(c, p);
        p->refused = true;
    }
    if (!err && !p->refused)
        return more ? 0 : 1;
    if (!more)
        conn_part_forget(c, p);
    return err;
}

bool
conn_part_open(struct conn *c, const struct of_msg *m)
{
    return m->type == OFPT_MULTIPART_REQUEST && m->raw.n >= MP_HEADER_LEN &&
           find(c, m->xid, of_get16(m->raw.p + 8));
}

int
conn_part(struct conn *c, struct of_msg *m, struct part **part)
{
    if (m->raw.n < MP_HEADER_LEN)
        return OF_BAD_REQUEST(BAD_LEN);
    uint16_t type = of_get16(m->raw.p + 8);
    m->mp_flags = of_get16(m->raw.p + 10);
    m->mp = of_mp_row(type);
    if (!m->mp || m->mp_flags & ~OFPMPF_REQ_MORE)
        return OF_BAD_REQUEST(BAD_MULTIPART);
    bool more = m->mp_flags & OFPMPF_REQ_MORE;
    struct part *p = find(c, m->xid, type);
    if (!p && !more)
        return 1;
    if (!p && !(p = place(c, m->xid, type)))
        return OF_BAD_REQUEST(MULTIPART_BUFFER_OVERFLOW);
    m->row = of_msg_row(m->type);
    m->body_row = m->mp->request;
    int whole = take(c, p, m, more);
    if (whole == 1)
        *part = p;
    return whole;
}
