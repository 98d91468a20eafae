/* SPDX-License-Identifier: Apache-2.0 */
/* Messages as JSON. */
#include "text.h"

#include <inttypes.h>

/* -------------------------------------------------------------------- values */

static void
json_flags(struct of_json *j, const char *name, const struct of_fmt *fmt, uint64_t v)
{
    char text[64];
    of_json_array(j, name);
    for (size_t i = 0; i < fmt->n; i++) {
        if (!(v & fmt->names[i].value))
            continue;
        of_json_text(j, NULL, of_short_name(fmt, fmt->names[i].name, text, sizeof text));
        v &= ~fmt->names[i].value;
    }
    if (v) {
        of_json_quote(j, NULL);
        of_print_number(j->w, &of_fmt_HEX, v);
        of_json_end_quote(j);
    }
    of_json_end_array(j);
}

void
of_json_number(struct of_json *j, const char *name, const struct of_fmt *fmt, uint64_t v)
{
    if (fmt->kind == OF_FMT_FLAGS) {
        json_flags(j, name, fmt, v);
    } else if (fmt->kind == OF_FMT_HEX || (fmt->kind == OF_FMT_ENUM && of_fmt_name(fmt, v))) {
        of_json_quote(j, name);
        of_print_number(j->w, fmt, v);
        of_json_end_quote(j);
    } else {
        of_json_uint(j, name, v);
    }
}

/* A decimal number is a number; any other value is a string, as in text. */
static void
json_oxm(struct of_json *j, const struct of_oxm *o)
{
    char text[128]; /* an IPv6 address and its mask are the longest */
    struct of_wr w = of_wr_fixed(text, sizeof text);
    of_print_oxm_value(&w, o);
    bool number = w.len && !o->has_mask;
    for (size_t i = 0; i < w.len; i++)
        number &= text[i] >= '0' && text[i] <= '9';
    (number ? of_json_raw : of_json_string)(j, o->row->name, text, w.len);
}

static void
json_match(struct of_json *j, const char *name, const struct of_match *m)
{
    of_json_object(j, name);
    for (uint32_t i = 0; i < m->n; i++)
        json_oxm(j, &m->v[i]);
    of_json_end_object(j);
}

static void
json_ids(struct of_json *j, const char *name, const struct of_ids *ids,
         const struct of_list_row *types)
{
    of_json_array(j, name);
    for (uint32_t i = 0; i < ids->n; i++) {
        of_json_quote(j, NULL);
        of_print_id(j->w, &ids->v[i], types);
        of_json_end_quote(j);
    }
    of_json_end_array(j);
}

static void
json_hex(struct of_json *j, const char *name, struct of_bytes data)
{
    of_json_quote(j, name);
    of_print_hex(j->w, data);
    of_json_end_quote(j);
}

/* Raw bytes: hexadecimal, or the numbers of tables where those are meant. */
static void
json_rest(struct of_json *j, const char *name, const struct of_bytes *data,
          const struct of_tag_row *tag)
{
    if (!tag || tag->body != &of_row_tfp_next_tables) {
        json_hex(j, name, *data);
        return;
    }
    of_json_array(j, name);
    for (size_t i = 0; i < data->n; i++)
        of_json_uint(j, NULL, data->p[i]);
    of_json_end_array(j);
}

/* ------------------------------------------------------- structures and lists */

static void json_fields(struct of_json *j, const struct of_struct_row *row, const void *body,
                        const struct of_tag_row *tag);

/* The element's type, then its fields. */
static void
json_tagged(struct of_json *j, const void *elem)
{
    const struct of_tag_row *tag = ((const struct of_tagged *)elem)->row;
    of_json_text(j, "type", tag->name);
    json_fields(j, tag->body, elem, tag);
}

void
of_json_tagged(struct of_json *j, const char *name, const void *elem)
{
    of_json_object(j, name);
    json_tagged(j, elem);
    of_json_end_object(j);
}

static void
json_list(struct of_json *j, const char *name, const struct of_list_row *row,
          const struct of_list *list)
{
    of_json_array(j, name);
    for (uint32_t i = 0; i < list->n; i++) {
        of_json_object(j, NULL);
        if (row->framing == OFL_TAGGED)
            json_tagged(j, list->v[i]);
        else
            json_fields(j, row->elem, list->v[i], NULL);
        of_json_end_object(j);
    }
    of_json_end_array(j);
}

/* `tag`: the row of the list's element that the field is in, or NULL. */
static void
json_field(struct of_json *j, const struct of_field_row *f, const void *body,
           const struct of_tag_row *tag)
{
    const void *p = (const uint8_t *)body + f->off;
    switch (f->kind) {
    case OFK_U8:
    case OFK_U16:
    case OFK_U32:
    case OFK_U64: of_json_number(j, f->name, f->fmt, of_field_number(f, body)); break;
    case OFK_MAC:
        of_json_quote(j, f->name);
        of_print_mac(j->w, p);
        of_json_end_quote(j);
        break;
    case OFK_STR: of_json_string(j, f->name, p, strnlen(p, f->size)); break;
    case OFK_MATCH:
    case OFK_MATCH10: json_match(j, f->name, p); break;
    case OFK_OXM:
        of_json_object(j, f->name);
        json_oxm(j, p);
        of_json_end_object(j);
        break;
    case OFK_OXMIDS: json_ids(j, f->name, p, NULL); break;
    case OFK_TYPEIDS: json_ids(j, f->name, p, of_typeids_list(tag)); break;
    case OFK_LIST: json_list(j, f->name, f->list, p); break;
    case OFK_REST: json_rest(j, f->name, p, tag); break;
    case OFK_PAD:            /* LCOV_EXCL_LINE: no row leads there */
    case OFK_LISTLEN: break; /* LCOV_EXCL_LINE: no row leads there */
    }
}

static void
json_fields(struct of_json *j, const struct of_struct_row *row, const void *body,
            const struct of_tag_row *tag)
{
    for (int i = 0; i < row->n_fields; i++)
        if (of_field_shown(&row->fields[i]))
            json_field(j, &row->fields[i], body, tag);
}

void
of_json_struct(struct of_json *j, const char *name, const struct of_struct_row *row,
               const void *body)
{
    of_json_object(j, name);
    json_fields(j, row, body, NULL);
    of_json_end_object(j);
}

/* ------------------------------------------------------------------ messages */

static void
json_error(struct of_json *j, const struct of_error *e)
{
    struct of_error_info info;
    of_error_explain(e, &info);
    const char *meaning = of_error_text(info.type, info.code);
    of_json_uint(j, "type", e->type);
    of_json_uint(j, "code", e->code);
    of_json_text(j, "type_name", info.type_name);
    of_json_text(j, "code_name", info.code_name);
    if (meaning)
        of_json_text(j, "meaning", meaning);
    if (info.qos)
        of_json_uint(j, "errno", info.errnum);
    if (info.text.n)
        of_json_string(j, "text", (const char *)info.text.p, info.text.n);
    json_hex(j, "data", e->data);
}

void
of_json_msg(struct of_wr *w, const struct of_msg *m)
{
    struct of_json json = of_json(w), *j = &json;
    of_json_object(j, NULL);
    if (m->row)
        of_json_text(j, "message", m->row->name);
    else
        of_json_uint(j, "message", m->type); /* LCOV_EXCL_LINE: the decoder refuses it */
    of_json_uint(j, "xid", m->xid);
    if (m->version != OFP_VERSION)
        of_json_uint(j, "version", m->version);
    if (m->mp)
        of_json_text(j, "multipart", m->mp->name);
    if (m->mp && m->mp_flags & OFPMPF_REPLY_MORE)
        of_json_bool(j, "more", true);
    if (m->body && m->body_row == &of_row_error)
        json_error(j, m->body);
    else if (m->body)
        json_fields(j, m->body_row, m->body, NULL);
    of_json_end_object(j);
}
