/* SPDX-License-Identifier: Apache-2.0 */
/* Multipart requests in several messages (7.3.5): the same xid and type, each but the last with
 * OFPMPF_REQ_MORE; their bodies make one body.
 *
 * Other flag bits are reserved and answered by OFPBRC_BAD_MULTIPART.  A request that grows too
 * large, or finds no place beside too many open ones, is answered once by
 * OFPBRC_MULTIPART_BUFFER_OVERFLOW, and the rest of it passed over.
 */
#include "conn.h"

#define BAD_REQUEST(code) OF_ERR(OFPET_BAD_REQUEST, OFPBRC_##code)
#define MP_HEADER_LEN     (OFP_HEADER_LEN + 8)
#define EXP_HEADER_LEN    8 /* experimenter, exp_type: in each piece again */

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

/* A free place, or that of a request whose rest hasn't come for long. */
static struct part *
place(struct conn *c, uint32_t xid, uint16_t type)
{
    uint64_t now = loop_now(c->ch->loop);
    for (int i = 0; i < PARTS_MAX; i++) {
        struct part *p = &c->parts[i];
        if (p->used && now - p->last < PART_IDLE_NS)
            continue;
        if (p->used)
            conn_part_forget(c, p);
        *p = (struct part){
            .used = true, .xid = xid, .type = type, .body = of_wr_grow(PART_BYTES_MAX)};
        return p;
    }
    return NULL;
}

static int
append(struct conn *c, struct part *p, struct of_bytes body)
{
    if (p->type == OFPMP_EXPERIMENTER && p->body.len) {
        if (body.n < EXP_HEADER_LEN || memcmp(body.p, p->body.buf, EXP_HEADER_LEN))
            return BAD_REQUEST(BAD_LEN);
        body.p += EXP_HEADER_LEN;
        body.n -= EXP_HEADER_LEN;
    } else if (p->type == OFPMP_EXPERIMENTER && body.n < EXP_HEADER_LEN) {
        return BAD_REQUEST(BAD_LEN);
    }
    if (body.n > PARTS_TOTAL_MAX - c->ch->parts_total)
        return BAD_REQUEST(MULTIPART_BUFFER_OVERFLOW);
    of_wr_bytes(&p->body, body.p, body.n);
    if (p->body.overflow)
        return BAD_REQUEST(MULTIPART_BUFFER_OVERFLOW);
    c->ch->parts_total += body.n;
    return 0;
}

static int
take(struct conn *c, struct part *p, const struct of_msg *m, bool more)
{
    p->last = loop_now(c->ch->loop);
    struct of_bytes body = {m->raw.p + MP_HEADER_LEN, m->raw.n - MP_HEADER_LEN};
    int err = p->refused ? 0 : append(c, p, body);
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

int
conn_part(struct conn *c, struct of_msg *m, struct part **part)
{
    if (m->raw.n < MP_HEADER_LEN)
        return BAD_REQUEST(BAD_LEN);
    uint16_t type = of_get16(m->raw.p + 8);
    m->mp_flags = of_get16(m->raw.p + 10);
    m->mp = of_mp_row(type);
    if (!m->mp || m->mp_flags & ~OFPMPF_REQ_MORE)
        return BAD_REQUEST(BAD_MULTIPART);
    bool more = m->mp_flags & OFPMPF_REQ_MORE;
    struct part *p = find(c, m->xid, type);
    if (!p && !more)
        return 1;
    if (!p && !(p = place(c, m->xid, type)))
        return BAD_REQUEST(MULTIPART_BUFFER_OVERFLOW);
    m->row = of_msg_row(m->type);
    m->body_row = m->mp->request;
    int whole = take(c, p, m, more);
    if (whole == 1)
        *part = p;
    return whole;
}
