/* SPDX-License-Identifier: Apache-2.0 */
#include <oflib/messages10.h>

#include <errno.h>

/* The decoding context: the error for a bad length depends on the enclosing element. */
struct dec {
    struct of_arena *arena;
    int len_err;
    int32_t list_len; /* of the next list, -1: to the end */
};

static int decode_list(struct dec *d, struct of_bytes raw, const struct of_list_row *row,
                       struct of_list *out);

static int
decode_match(struct dec *d, struct of_rd *r, bool any_mask, struct of_match *out)
{
    uint16_t type = of_rd16(r), len = of_rd16(r);
    if (r->short_read)
        return d->len_err;
    if (type != OFPMT_OXM)
        return OF_BAD_MATCH(BAD_TYPE);
    size_t padded = ((size_t)len + 7) / 8 * 8;
    if (len < 4 || padded - 4 > of_rd_left(r))
        return OF_BAD_MATCH(BAD_LEN);
    struct of_bytes tlvs = {r->p, len - 4u};
    of_rd_copy(r, NULL, padded - 4);
    return (any_mask ? of_match_decode_any : of_match_decode_tlvs)(tlvs, d->arena, out);
}

static int
decode_match10(struct dec *d, struct of_rd *r, struct of_match *out)
{
    uint8_t bytes[OF10_MATCH_LEN];
    of_rd_copy(r, bytes, sizeof bytes);
    return r->short_read ? d->len_err : of_match10_decode(bytes, d->arena, out);
}

/* type, length pairs (table features): headers alone, 8 bytes for an experimenter's. */
static bool
read_type_id(struct of_rd *r, struct of_id *id)
{
    id->id = of_rd16(r);
    uint16_t len = of_rd16(r);
    bool exp = id->id == 0xffff;
    id->experimenter = exp ? of_rd32(r) : 0;
    return len == (exp ? 8 : 4);
}

static bool
read_oxm_id(struct of_rd *r, struct of_id *id)
{
    id->id = of_rd32(r);
    id->experimenter = id->id >> 16 == OFPXMC_EXPERIMENTER ? of_rd32(r) : 0;
    return true;
}

static int
decode_ids(struct dec *d, struct of_rd *r, bool (*read)(struct of_rd *, struct of_id *),
           struct of_ids *out)
{
    struct of_rd count = *r;
    struct of_id id;
    uint32_t n = 0;
    for (; of_rd_left(&count); n++)
        if (!read(&count, &id) || count.short_read)
            return d->len_err;
    if (!(out->v = of_arena_array(d->arena, n, sizeof *out->v)))
        return -ENOMEM;
    for (out->n = 0; out->n < n; out->n++)
        read(r, &out->v[out->n]);
    return 0;
}

/* The set-field action: one TLV, then padding to the element's end, less than 8 bytes of it. */
static int
decode_oxm(struct dec *d, struct of_rd *r, struct of_oxm *out)
{
    int err = of_set_field_decode(r, out);
    if (err)
        return err;
    if (of_rd_left(r) >= 8)
        return d->len_err;
    of_rd_copy(r, NULL, of_rd_left(r));
    return 0;
}

/* Decodes a field of fixed size; the caller has checked that its bytes are there.  Returns the
 * next field's place. */
static inline const uint8_t *
read_fixed(struct dec *d, const uint8_t *p, const struct of_field_row *f, uint8_t *to)
{
    switch (f->kind) {
    case OFK_U8: *to = *p; break;
    case OFK_U16: *(uint16_t *)(void *)to = of_get16(p); break;
    case OFK_U32: *(uint32_t *)(void *)to = of_get32(p); break;
    case OFK_U64: *(uint64_t *)(void *)to = of_get64(p); break;
    case OFK_STR:
        memcpy(to, p, f->size);
        to[f->size - 1] = '\0';
        break;
    case OFK_MAC: memcpy(to, p, 6); break;
    case OFK_LISTLEN: d->list_len = of_get16(p); break;
    default: /* OFK_PAD */ break;
    }
    return p + f->size;
}

static int
decode_field(struct dec *d, struct of_rd *r, const struct of_field_row *f, uint8_t *to)
{
    switch (f->kind) {
    case OFK_MATCH: return decode_match(d, r, f->any_mask, (struct of_match *)(void *)to);
    case OFK_MATCH10: return decode_match10(d, r, (struct of_match *)(void *)to);
    case OFK_OXM: return decode_oxm(d, r, (struct of_oxm *)(void *)to);
    case OFK_OXMIDS: return decode_ids(d, r, read_oxm_id, (struct of_ids *)(void *)to);
    case OFK_TYPEIDS: return decode_ids(d, r, read_type_id, (struct of_ids *)(void *)to);
    case OFK_LIST: {
        size_t n = d->list_len >= 0 ? (size_t)d->list_len : of_rd_left(r);
        d->list_len = -1;
        if (n > of_rd_left(r))
            return d->len_err;
        struct of_bytes list = {r->p, n};
        r->p += n;
        return decode_list(d, list, f->list, (struct of_list *)(void *)to);
    }
    case OFK_REST:
        *(struct of_bytes *)(void *)to = (struct of_bytes){r->p, of_rd_left(r)};
        r->p = r->end;
        return 0;
    default: /* a fixed field behind one that is not */
        if (of_rd_left(r) < f->size)
            return d->len_err;
        r->p = read_fixed(d, r->p, f, to);
        return 0;
    }
}

/* Decodes a structure that fills `raw`. */
static int
decode_struct(struct dec *d, struct of_bytes raw, const struct of_struct_row *row, void *out)
{
    const struct of_field_row *f = row->fields, *end = f + row->n_fields;
    int32_t outer = d->list_len;
    const uint8_t *p = raw.p;
    if (raw.n < row->wire)
        return d->len_err;
    d->list_len = -1;
    for (; f < end && f->size; f++)
        p = read_fixed(d, p, f, (uint8_t *)out + f->off);
    struct of_rd r = of_rd(p, raw.n - (size_t)(p - raw.p));
    for (; f < end; f++) {
        int err = decode_field(d, &r, f, (uint8_t *)out + f->off);
        if (err)
            return err;
    }
    d->list_len = outer;
    return of_rd_left(&r) ? d->len_err : 0;
}

/* Measures the first element, without and with its padding. */
static int
element_size(const struct dec *d, struct of_bytes left, const struct of_list_row *row,
             size_t *bytes, size_t *step)
{
    if (row->framing == OFL_FIXED) {
        *bytes = *step = row->elem->wire;
        return *bytes > left.n ? d->len_err : 0;
    }
    size_t at = row->framing == OFL_TAGGED ? 2 : row->len_at;
    size_t min = row->framing == OFL_TAGGED ? 4 : row->elem->wire;
    if (left.n < at + 2)
        return d->len_err;
    *bytes = *step = of_get16(left.p + at);
    if (row->padded)
        *step = (*bytes + 7) / 8 * 8;
    else if (*bytes % 8)
        return d->len_err;
    return *bytes < min || *step > left.n ? d->len_err : 0;
}

static int
decode_tagged(struct dec *d, struct of_bytes elem, const struct of_list_row *row, void **out)
{
    const struct of_tag_row *tag = of_tag_row(row, of_get16(elem.p));
    if (!tag)
        return row->skip_unknown ? 0 : row->bad_type ? row->bad_type : d->len_err;
    struct of_tagged *body = of_arena_alloc(d->arena, tag->body->size);
    if (!body)
        return -ENOMEM;
    body->row = tag;
    *out = body;
    return decode_struct(d, (struct of_bytes){elem.p + 4, elem.n - 4}, tag->body, body);
}

/* The caller has checked the sizes. */
static int
decode_elements(struct dec *d, struct of_bytes left, const struct of_list_row *row,
                struct of_list *out)
{
    size_t bytes = 0, step = 0;
    for (; left.n; left.p += step, left.n -= step) {
        element_size(d, left, row, &bytes, &step);
        struct of_bytes elem = {left.p, bytes};
        void **slot = &out->v[out->n];
        int err;
        if (row->framing == OFL_TAGGED)
            err = decode_tagged(d, elem, row, slot);
        else if (!(*slot = of_arena_alloc(d->arena, row->elem->size)))
            err = -ENOMEM;
        else
            err = decode_struct(d, elem, row->elem, *slot);
        if (err)
            return err;
        if (*slot)
            out->n++;
    }
    return 0;
}

static int
decode_list(struct dec *d, struct of_bytes raw, const struct of_list_row *row, struct of_list *out)
{
    int outer = d->len_err, err = 0;
    uint32_t n = 0;
    size_t bytes = 0, step = 0;
    *out = (struct of_list){.raw = raw};
    if (row->bad_len)
        d->len_err = row->bad_len;
    for (struct of_bytes left = raw; left.n && !err; n++) {
        err = element_size(d, left, row, &bytes, &step);
        if (!err)
            left = (struct of_bytes){left.p + step, left.n - step};
    }
    if (!err && !(out->v = of_arena_array(d->arena, n, sizeof *out->v)))
        err = -ENOMEM;
    if (!err)
        err = decode_elements(d, raw, row, out);
    d->len_err = outer;
    return err;
}

int
of_decode_struct(struct of_bytes raw, const struct of_struct_row *row, struct of_arena *arena,
                 void **out)
{
    struct dec d = {.arena = arena, .len_err = OF_BAD_REQUEST(BAD_LEN), .list_len = -1};
    void *body = of_arena_alloc(arena, row->size ? row->size : 1);
    if (!body)
        return -ENOMEM;
    int err = decode_struct(&d, raw, row, body);
    if (!err)
        *out = body;
    return err;
}

int
of_decode_list(struct of_bytes raw, const struct of_list_row *row, struct of_arena *arena,
               struct of_list *out)
{
    struct dec d = {.arena = arena, .len_err = OF_BAD_REQUEST(BAD_LEN), .list_len = -1};
    return decode_list(&d, raw, row, out);
}

static int
read_multipart_header(const struct of_dialect *d, struct of_rd *r, struct of_msg *m)
{
    uint16_t type = of_rd16(r);
    m->mp_flags = of_rd16(r);
    of_rd_copy(r, NULL, d->multipart_pad);
    if (r->short_read)
        return OF_BAD_REQUEST(BAD_LEN);
    m->mp = d->mp(type);
    if (!m->mp)
        return OF_BAD_REQUEST(BAD_MULTIPART);
    m->body_row = m->type == d->multipart_request ? m->mp->request : m->mp->reply;
    return 0;
}

int
of_decode_as(const struct of_dialect *d, struct of_bytes raw, struct of_arena *arena,
             struct of_msg *out)
{
    struct of_rd r = of_rd(raw.p, raw.n);
    *out = (struct of_msg){.raw = raw};
    out->version = of_rd8(&r);
    out->type = of_rd8(&r);
    uint16_t len = of_rd16(&r);
    out->xid = of_rd32(&r);
    if (r.short_read)
        return OF_BAD_REQUEST(BAD_LEN);
    if (out->version != d->version && out->type != OFPT_HELLO)
        return OF_BAD_REQUEST(BAD_VERSION);
    if (!(out->row = d->msg(out->type)))
        return OF_BAD_REQUEST(BAD_TYPE);
    if (len != raw.n)
        return OF_BAD_REQUEST(BAD_LEN);
    out->body_row = out->row->body;
    if (out->type == d->multipart_request || out->type == d->multipart_reply) {
        int err = read_multipart_header(d, &r, out);
        if (err)
            return err;
    }
    struct of_bytes body = {r.p, of_rd_left(&r)};
    int err = of_decode_struct(body, out->body_row, arena, &out->body);
    /* 7.5.1: ignore what we don't understand in another version's hello. */
    if (err > 0 && out->version != d->version)
        err = of_decode_struct((struct of_bytes){r.end, 0}, out->body_row, arena, &out->body);
    return err;
}

int
of_decode(struct of_bytes raw, struct of_arena *arena, struct of_msg *out)
{
    return of_decode_as(&of_dialect_13, raw, arena, out);
}

int
of_frame_len(const uint8_t *p, size_t n)
{
    if (n < 4)
        return 0;
    uint16_t len = of_get16(p + 2);
    return len < OFP_HEADER_LEN ? -EBADMSG : len;
}
