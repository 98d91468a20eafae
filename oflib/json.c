/* SPDX-License-Identifier: Apache-2.0 */
/* Messages as JSON (RFC 8259). */
#include "text.h"

#include <inttypes.h>

static void
put(struct of_wr *w, const char *s)
{
    of_wr_bytes(w, s, strlen(s));
}

size_t
of_utf8_len(const uint8_t *s, size_t n)
{
    size_t len = s[0] < 0x80   ? 1
                 : s[0] < 0xc2 ? 0
                 : s[0] < 0xe0 ? 2
                 : s[0] < 0xf0 ? 3
                 : s[0] < 0xf5 ? 4
                               : 0;
    if (!len || len > n)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return len;
}

void
of_json_string(struct of_wr *w, const char *s, size_t n)
{
    const uint8_t *p = (const uint8_t *)s;
    of_wr8(w, '"');
    for (size_t i = 0, len; i < n; i += len) {
        len = of_utf8_len(p + i, n - i);
        if (len == 1 && (p[i] == '"' || p[i] == '\\'))
            of_printf(w, "\\%c", p[i]);
        else if (!len || of_is_control(p + i, len))
            of_printf(w, "\\u%04x", len == 2 ? p[i + 1] : p[i]); /* U+0080 to U+009F: c2 80 to 9f */
        else
            of_wr_bytes(w, p + i, len);
        len = len ? len : 1;
    }
    of_wr8(w, '"');
}

static void
key(struct of_wr *w, bool *first, const char *name)
{
    of_printf(w, "%s\"%s\": ", *first ? "" : ", ", name);
    *first = false;
}

static void
json_flags(struct of_wr *w, const struct of_fmt *fmt, uint64_t v)
{
    char name[64];
    const char *sep = "";
    put(w, "[");
    for (size_t i = 0; i < fmt->n; i++) {
        if (!(v & fmt->names[i].value))
            continue;
        of_printf(w, "%s\"%s\"", sep, of_short_name(fmt, fmt->names[i].name, name, sizeof name));
        v &= ~fmt->names[i].value;
        sep = ", ";
    }
    if (v)
        of_printf(w, "%s\"0x%" PRIx64 "\"", sep, v);
    put(w, "]");
}

void
of_json_number(struct of_wr *w, const struct of_fmt *fmt, uint64_t v)
{
    if (fmt->kind == OF_FMT_FLAGS) {
        json_flags(w, fmt, v);
        return;
    }
    bool quoted = fmt->kind == OF_FMT_HEX || (fmt->kind == OF_FMT_ENUM && of_fmt_name(fmt, v));
    put(w, quoted ? "\"" : "");
    of_print_number(w, fmt, v);
    put(w, quoted ? "\"" : "");
}

/* Plain numbers are numbers; everything else is written as in text. */
static void
json_oxm(struct of_wr *w, const struct of_oxm *o)
{
    size_t start = w->len;
    put(w, "\"");
    of_print_oxm_value(w, o);
    bool number = w->len > start + 1 && !o->has_mask;
    for (size_t i = start + 1; i < w->len && number; i++)
        number = w->buf[i] >= '0' && w->buf[i] <= '9';
    if (!number) {
        put(w, "\"");
        return;
    }
    memmove(w->buf + start, w->buf + start + 1, w->len - start - 1);
    w->len--;
}

static void
json_match(struct of_wr *w, const struct of_match *m)
{
    bool first = true;
    put(w, "{");
    for (uint32_t i = 0; i < m->n; i++) {
        key(w, &first, m->v[i].row->name);
        json_oxm(w, &m->v[i]);
    }
    put(w, "}");
}

static void
json_ids(struct of_wr *w, const struct of_ids *ids, const struct of_list_row *types)
{
    put(w, "[");
    for (uint32_t i = 0; i < ids->n; i++) {
        put(w, i ? ", \"" : "\"");
        of_print_id(w, &ids->v[i], types);
        put(w, "\"");
    }
    put(w, "]");
}

/* Raw bytes: hexadecimal, or table numbers where those are meant. */
static void
json_rest(struct of_wr *w, const struct of_bytes *data, const struct of_tag_row *tag)
{
    if (!tag || tag->body != &of_row_tfp_next_tables) {
        put(w, "\"");
        of_print_hex(w, *data);
        put(w, "\"");
        return;
    }
    put(w, "[");
    for (size_t i = 0; i < data->n; i++)
        of_printf(w, "%s%u", i ? ", " : "", data->p[i]);
    put(w, "]");
}

static void json_fields(struct of_wr *w, const struct of_struct_row *row, const void *body,
                        const struct of_tag_row *tag, bool first);

static void
json_list(struct of_wr *w, const struct of_list_row *row, const struct of_list *list)
{
    put(w, "[");
    for (uint32_t i = 0; i < list->n; i++) {
        put(w, i ? ", {" : "{");
        if (row->framing == OFL_TAGGED) {
            const struct of_tag_row *tag = OF_AT(list, i, struct of_tagged)->row;
            of_printf(w, "\"type\": \"%s\"", tag->name);
            json_fields(w, tag->body, list->v[i], tag, false);
        } else {
            json_fields(w, row->elem, list->v[i], NULL, true);
        }
        put(w, "}");
    }
    put(w, "]");
}

static void
json_value(struct of_wr *w, const struct of_field_row *f, const void *body,
           const struct of_tag_row *tag)
{
    const void *p = (const uint8_t *)body + f->off;
    const struct of_oxm *oxm = p;
    switch (f->kind) {
    case OFK_U8:
    case OFK_U16:
    case OFK_U32:
    case OFK_U64: of_json_number(w, f->fmt, of_field_number(f, body)); break;
    case OFK_MAC:
        put(w, "\"");
        of_print_mac(w, p);
        put(w, "\"");
        break;
    case OFK_STR: of_json_string(w, p, strnlen(p, f->size)); break;
    case OFK_MATCH: json_match(w, p); break;
    case OFK_OXM:
        of_printf(w, "{\"%s\": ", oxm->row->name);
        json_oxm(w, oxm);
        put(w, "}");
        break;
    case OFK_OXMIDS: json_ids(w, p, NULL); break;
    case OFK_TYPEIDS: json_ids(w, p, of_typeids_list(tag)); break;
    case OFK_LIST: json_list(w, f->list, p); break;
    case OFK_REST: json_rest(w, p, tag); break;
    case OFK_PAD:
    case OFK_LISTLEN: break;
    }
}

static void
json_fields(struct of_wr *w, const struct of_struct_row *row, const void *body,
            const struct of_tag_row *tag, bool first)
{
    for (int i = 0; i < row->n_fields; i++) {
        if (!of_field_shown(&row->fields[i]))
            continue;
        key(w, &first, row->fields[i].name);
        json_value(w, &row->fields[i], body, tag);
    }
}

void
of_json_struct(struct of_wr *w, const struct of_struct_row *row, const void *body)
{
    put(w, "{");
    json_fields(w, row, body, NULL, true);
    put(w, "}");
}

static void
json_error(struct of_wr *w, const struct of_error *e)
{
    struct of_error_info info;
    bool first = false;
    of_error_explain(e, &info);
    key(w, &first, "type");
    of_printf(w, "%u", e->type);
    key(w, &first, "code");
    of_printf(w, "%u", e->code);
    key(w, &first, "type_name");
    of_json_string(w, info.type_name, info.type_name ? strlen(info.type_name) : 0);
    key(w, &first, "code_name");
    of_json_string(w, info.code_name, info.code_name ? strlen(info.code_name) : 0);
    const char *text = of_error_text(info.type, info.code);
    if (text) {
        key(w, &first, "meaning");
        of_json_string(w, text, strlen(text));
    }
    if (info.qos) {
        key(w, &first, "errno");
        of_printf(w, "%" PRIu32, info.errnum);
    }
    if (info.text.n) {
        key(w, &first, "text");
        of_json_string(w, (const char *)info.text.p, info.text.n);
    }
    key(w, &first, "data");
    put(w, "\"");
    of_print_hex(w, e->data);
    put(w, "\"");
}

void
of_json_msg(struct of_wr *w, const struct of_msg *m)
{
    bool first = true;
    put(w, "{");
    key(w, &first, "message");
    if (m->row)
        of_printf(w, "\"%s\"", m->row->name);
    else
        of_printf(w, "%u", m->type);
    key(w, &first, "xid");
    of_printf(w, "%" PRIu32, m->xid);
    if (m->version != OFP_VERSION) {
        key(w, &first, "version");
        of_printf(w, "%u", m->version);
    }
    if (m->mp) {
        key(w, &first, "multipart");
        of_printf(w, "\"%s\"", m->mp->name);
    }
    if (m->mp && m->mp_flags & OFPMPF_REPLY_MORE) {
        key(w, &first, "more");
        put(w, "true");
    }
    if (m->body && m->body_row == &of_row_error)
        json_error(w, m->body);
    else if (m->body)
        json_fields(w, m->body_row, m->body, NULL, false);
    put(w, "}");
}
