/* SPDX-License-Identifier: Apache-2.0 */
#include <oflib/messages10.h>

#include <errno.h>

#define NOWHERE SIZE_MAX

static void encode_list(struct of_wr *w, const struct of_list_row *row, const struct of_list *list);

/* Fills in a length once it is known. */
static void
patch_len(struct of_wr *w, size_t at, size_t len)
{
    if (len > UINT16_MAX)
        w->overflow = true;
    of_wr_patch16(w, at, (uint16_t)len);
}

static void
encode_match(struct of_wr *w, const struct of_match *m)
{
    size_t start = w->len;
    of_wr16(w, OFPMT_OXM);
    of_wr16(w, 0);
    for (uint32_t i = 0; i < m->n; i++)
        of_oxm_encode(w, &m->v[i]);
    patch_len(w, start + 2, w->len - start);
    of_wr_align(w, start, 8);
}

static void
encode_ids(struct of_wr *w, const struct of_ids *ids, bool oxm)
{
    for (uint32_t i = 0; i < ids->n; i++) {
        const struct of_id *id = &ids->v[i];
        bool exp = oxm ? id->id >> 16 == OFPXMC_EXPERIMENTER : id->id == 0xffff;
        if (oxm)
            of_wr32(w, id->id);
        else
            of_wr32(w, id->id << 16 | (exp ? 8 : 4));
        if (exp)
            of_wr32(w, id->experimenter);
    }
}

static void
encode_match10(struct of_wr *w, const struct of_match *m)
{
    uint8_t bytes[OF10_MATCH_LEN];
    of_match10_encode(bytes, m);
    of_wr_bytes(w, bytes, sizeof bytes);
}

/* `list_len`: where the length of the next list is to be filled in, or NOWHERE. */
static void
encode_field(struct of_wr *w, const struct of_field_row *f, const uint8_t *from, size_t *list_len)
{
    const void *p = from;
    size_t start = w->len;
    switch (f->kind) {
    case OFK_U8: of_wr8(w, *from); break;
    case OFK_U16: of_wr16(w, *(const uint16_t *)p); break;
    case OFK_U32: of_wr32(w, *(const uint32_t *)p); break;
    case OFK_U64: of_wr64(w, *(const uint64_t *)p); break;
    case OFK_PAD: of_wr_add(w, f->size); break;
    case OFK_STR:
        of_wr_bytes(w, from, strnlen(p, f->size - 1u));
        of_wr_add(w, f->size - (w->len - start));
        break;
    case OFK_MAC: of_wr_bytes(w, from, f->size); break;
    case OFK_LISTLEN:
        *list_len = start;
        of_wr16(w, 0);
        break;
    case OFK_MATCH: encode_match(w, p); break;
    case OFK_MATCH10: encode_match10(w, p); break;
    case OFK_OXM:
        of_oxm_encode(w, p);
        of_wr_align(w, start - 4, 8); /* padded like the action that holds it */
        break;
    case OFK_OXMIDS:
    case OFK_TYPEIDS: encode_ids(w, p, f->kind == OFK_OXMIDS); break;
    case OFK_LIST:
        encode_list(w, f->list, p);
        if (*list_len != NOWHERE)
            patch_len(w, *list_len, w->len - start);
        *list_len = NOWHERE;
        break;
    case OFK_REST:
        of_wr_bytes(w, ((const struct of_bytes *)p)->p, ((const struct of_bytes *)p)->n);
        break;
    }
}

static void
encode_struct(struct of_wr *w, const struct of_struct_row *row, const void *body)
{
    size_t list_len = NOWHERE;
    for (int i = 0; i < row->n_fields; i++)
        encode_field(w, &row->fields[i], (const uint8_t *)body + row->fields[i].off, &list_len);
}

static void
encode_element(struct of_wr *w, const struct of_list_row *row, const void *elem)
{
    size_t start = w->len, len_at = start + row->len_at;
    if (row->framing == OFL_TAGGED) {
        const struct of_tag_row *tag = ((const struct of_tagged *)elem)->row;
        of_wr16(w, tag->type);
        of_wr16(w, 0);
        encode_struct(w, tag->body, elem);
        len_at = start + 2;
    } else {
        encode_struct(w, row->elem, elem);
    }
    if (row->framing != OFL_FIXED)
        patch_len(w, len_at, w->len - start);
    if (row->padded)
        of_wr_align(w, start, 8);
}

static void
encode_list(struct of_wr *w, const struct of_list_row *row, const struct of_list *list)
{
    if (!list->v) {
        of_wr_bytes(w, list->raw.p, list->raw.n);
        return;
    }
    for (uint32_t i = 0; i < list->n; i++)
        encode_element(w, row, list->v[i]);
}

/* Drops what was written since `start` if it did not all fit. */
static int
done(struct of_wr *w, size_t start, bool was_full)
{
    if (!w->overflow)
        return 0;
    w->len = start;
    w->overflow = was_full;
    return -EMSGSIZE;
}

int
of_encode_struct(struct of_wr *w, const struct of_struct_row *row, const void *body)
{
    size_t start = w->len;
    bool was_full = w->overflow;
    encode_struct(w, row, body);
    return done(w, start, was_full);
}

int
of_encode_list(struct of_wr *w, const struct of_list_row *row, const struct of_list *list)
{
    size_t start = w->len;
    bool was_full = w->overflow;
    encode_list(w, row, list);
    return done(w, start, was_full);
}

int
of_encode(struct of_wr *w, const struct of_msg *m)
{
    size_t start = w->len;
    bool was_full = w->overflow;
    of_wr8(w, m->version);
    of_wr8(w, m->type);
    of_wr16(w, 0);
    of_wr32(w, m->xid);
    if (m->mp) {
        of_wr16(w, m->mp->type);
        of_wr16(w, m->mp_flags);
        of_wr_add(w, m->version == OFP10_VERSION ? 0 : 4);
    }
    if (m->body)
        encode_struct(w, m->body_row, m->body);
    patch_len(w, start + 2, w->len - start);
    return done(w, start, was_full);
}

int
of_encode_body_as(const struct of_dialect *d, struct of_wr *w, uint8_t type, uint32_t xid,
                  const void *body)
{
    const struct of_msg_row *row = d->msg(type);
    struct of_msg m = {.version = d->version,
                       .type = type,
                       .xid = xid,
                       .row = row,
                       .body_row = row->body,
                       .body = (void *)(uintptr_t)body};
    return of_encode(w, &m);
}

int
of_encode_multipart_as(const struct of_dialect *d, struct of_wr *w, struct of_msg *m, uint16_t mp)
{
    m->version = d->version;
    m->row = d->msg(m->type);
    m->mp = d->mp(mp);
    m->body_row = m->type == d->multipart_request ? m->mp->request : m->mp->reply;
    return of_encode(w, m);
}

int
of_encode_body(struct of_wr *w, uint8_t type, uint32_t xid, const void *body)
{
    return of_encode_body_as(&of_dialect_13, w, type, xid, body);
}

int
of_encode_multipart(struct of_wr *w, uint8_t type, uint32_t xid, uint16_t mp, uint16_t flags,
                    const void *body)
{
    struct of_msg m = {
        .type = type, .xid = xid, .mp_flags = flags, .body = (void *)(uintptr_t)body};
    return of_encode_multipart_as(&of_dialect_13, w, &m, mp);
}

int
of_encode_error(struct of_wr *w, uint32_t xid, int err, struct of_bytes request, const char *text)
{
    struct of_error e = {.type = of_err_type(err), .code = of_err_code(err), .data = request};
    if (e.type == OFPET_HELLO_FAILED)
        e.data = (struct of_bytes){(const uint8_t *)text, text ? strlen(text) : 0};
    else if (e.data.n > 64)
        e.data.n = 64;
    if (e.type != OFPET_BUNDLE_FAILED)
        return of_encode_body(w, OFPT_ERROR, xid, &e);
    uint8_t wrapped[4 + 64];
    of_set32(wrapped, OFP_ONF_EXPERIMENTER);
    if (e.data.n)
        memcpy(wrapped + 4, e.data.p, e.data.n);
    e.type = OFPET_EXPERIMENTER;
    e.code = (uint16_t)(e.code + OFP_ONF_BUNDLE_ERROR);
    e.data = (struct of_bytes){wrapped, e.data.n + 4};
    return of_encode_body(w, OFPT_ERROR, xid, &e);
}
