/* SPDX-License-Identifier: Apache-2.0 */
/* Messages as one line of text. */
#include "text.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void
of_printf(struct of_wr *w, const char *fmt, ...)
{
    char buf[256];
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(buf, sizeof buf, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof buf) {
        of_wr_bytes(w, buf, (size_t)n);
    } else if (n >= 0) {
        uint8_t *p = of_wr_add(w, (size_t)n + 1);
        if (p) {
            vsnprintf((char *)p, (size_t)n + 1, fmt, again);
            w->len--;
        }
    }
    va_end(again);
}

static void
put(struct of_wr *w, const char *s)
{
    of_wr_bytes(w, s, strlen(s));
}

void
of_print_text(struct of_wr *w, const char *s, size_t n)
{
    const uint8_t *p = (const uint8_t *)s;
    for (size_t i = 0, len; i < n; i += len) {
        len = of_utf8_len(p + i, n - i);
        if (len && p[i] != '\\' && !of_is_control(p + i, len)) {
            of_wr_bytes(w, p + i, len);
            continue;
        }
        len = len ? len : 1;
        for (size_t k = 0; k < len; k++)
            of_printf(w, p[i] == '\\' ? "\\\\" : "\\x%02x", p[i + k]);
    }
}

/* ------------------------------------------------------------------ values */

static void
print_flags(struct of_wr *w, const struct of_fmt *fmt, uint64_t v)
{
    char name[64];
    const char *sep = "";
    for (size_t i = 0; i < fmt->n; i++) {
        if (!(v & fmt->names[i].value))
            continue;
        of_printf(w, "%s%s", sep, of_short_name(fmt, fmt->names[i].name, name, sizeof name));
        v &= ~fmt->names[i].value;
        sep = "|";
    }
    if (v)
        of_printf(w, "%s0x%" PRIx64, sep, v);
    else if (!*sep)
        put(w, "0");
}

void
of_print_number(struct of_wr *w, const struct of_fmt *fmt, uint64_t v)
{
    char buf[64];
    const char *name;
    switch (fmt->kind) {
    case OF_FMT_HEX: of_printf(w, "0x%0*" PRIx64, fmt->prefix, v); return;
    case OF_FMT_FLAGS: print_flags(w, fmt, v); return;
    case OF_FMT_ENUM:
        if ((name = of_fmt_name(fmt, v))) {
            put(w, of_short_name(fmt, name, buf, sizeof buf));
            return;
        }
        __attribute__((fallthrough));
    case OF_FMT_DEC: of_printf(w, "%" PRIu64, v);
    }
}

void
of_print_mac(struct of_wr *w, const uint8_t *m)
{
    of_printf(w, "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5]);
}

void
of_print_hex(struct of_wr *w, struct of_bytes data)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t *p = data.n ? of_wr_add(w, data.n * 2) : NULL;
    for (size_t i = 0; p && i < data.n; i++) {
        *p++ = (uint8_t)digits[data.p[i] >> 4];
        *p++ = (uint8_t)digits[data.p[i] & 15];
    }
}

static void
print_ip(struct of_wr *w, const struct oxm_row *row, const uint8_t *v)
{
    char buf[INET6_ADDRSTRLEN];
    put(w, inet_ntop(row->fmt == OXM_FMT_IPV4 ? AF_INET : AF_INET6, v, buf, sizeof buf));
}

/* The prefix length of a mask; -1: it is not a prefix. */
static int
prefix_len(const uint8_t *mask, int bytes)
{
    int n = 0;
    while (n < bytes * 8 && mask[n / 8] >> (7 - n % 8) & 1)
        n++;
    for (int i = n; i < bytes * 8; i++)
        if (mask[i / 8] >> (7 - i % 8) & 1)
            return -1;
    return n;
}

static void
print_half(struct of_wr *w, const struct of_oxm *o, const uint8_t *v)
{
    const struct oxm_row *row = o->row;
    switch (row->fmt) {
    case OXM_FMT_MAC: of_print_mac(w, v); break;
    case OXM_FMT_IPV4:
    case OXM_FMT_IPV6: print_ip(w, row, v); break;
    case OXM_FMT_PORT: of_print_number(w, &of_fmt_PORT, oxm_number(row, v)); break;
    case OXM_FMT_DEC:
        of_print_number(w, o->has_mask ? &of_fmt_HEX : &of_fmt_DEC, oxm_number(row, v));
        break;
    case OXM_FMT_HEX:
    case OXM_FMT_VLAN:
        if (row->bytes <= 3)
            of_printf(w, "0x%0*" PRIx64, row->bytes * 2, oxm_number(row, v));
        else
            of_print_number(w, &of_fmt_HEX, oxm_number(row, v));
    }
}

/* Writes a VID without OFPVID_PRESENT, "none" or "any".  False: it is none of these. */
static bool
print_vlan(struct of_wr *w, const struct of_oxm *o)
{
    uint64_t v = oxm_number(o->row, o->value), m = oxm_number(o->row, o->mask);
    if (o->has_mask && v == OFPVID_PRESENT && m == OFPVID_PRESENT)
        put(w, "any");
    else if (!o->has_mask && v == OFPVID_NONE)
        put(w, "none");
    else if (!o->has_mask && v & OFPVID_PRESENT)
        of_print_number(w, &of_fmt_DEC, v & ~(uint64_t)OFPVID_PRESENT);
    else
        return false;
    return true;
}

void
of_print_oxm_value(struct of_wr *w, const struct of_oxm *o)
{
    const struct oxm_row *row = o->row;
    if (row->fmt == OXM_FMT_VLAN && print_vlan(w, o))
        return;
    print_half(w, o, o->value);
    if (!o->has_mask)
        return;
    put(w, "/");
    bool ip = row->fmt == OXM_FMT_IPV4 || row->fmt == OXM_FMT_IPV6;
    int prefix = ip ? prefix_len(o->mask, row->bytes) : -1;
    if (prefix >= 0)
        of_printf(w, "%d", prefix);
    else
        print_half(w, o, o->mask);
}

void
of_print_match(struct of_wr *w, const struct of_match *m)
{
    for (uint32_t i = 0; i < m->n; i++) {
        of_printf(w, "%s%s=", i ? "," : "", m->v[i].row->name);
        of_print_oxm_value(w, &m->v[i]);
    }
}

/* The name of an OXM header (table features): "eth_src", or "eth_src/" where a mask is meant. */
static void
print_oxm_id(struct of_wr *w, const struct of_id *id)
{
    unsigned field = id->id >> 9 & 0x7f;
    if (id->id >> 16 == OFPXMC_OPENFLOW_BASIC && field < OXM_N)
        of_printf(w, "%s%s", oxm_rows[field].name, id->id >> 8 & 1 ? "/" : "");
    else if (id->id >> 16 == OFPXMC_EXPERIMENTER)
        of_printf(w, "0x%08" PRIx32 ":0x%08" PRIx32, id->id, id->experimenter);
    else
        of_printf(w, "0x%08" PRIx32, id->id);
}

void
of_print_id(struct of_wr *w, const struct of_id *id, const struct of_list_row *types)
{
    const struct of_tag_row *tag = types ? of_tag_row(types, (uint16_t)id->id) : NULL;
    if (!types)
        print_oxm_id(w, id);
    else if (id->id == 0xffff)
        of_printf(w, "experimenter:0x%" PRIx32, id->experimenter);
    else if (tag)
        put(w, tag->name);
    else
        of_printf(w, "%" PRIu32, id->id);
}

static void
print_ids(struct of_wr *w, const struct of_ids *ids, const struct of_list_row *types)
{
    for (uint32_t i = 0; i < ids->n; i++) {
        put(w, i ? "," : "");
        of_print_id(w, &ids->v[i], types);
    }
}

/* Table numbers: 1-5,7. */
static void
print_tables(struct of_wr *w, struct of_bytes tables)
{
    for (size_t i = 0, end; i < tables.n; i = end) {
        for (end = i + 1; end < tables.n && tables.p[end] == tables.p[end - 1] + 1; end++)
            continue;
        of_printf(w, "%s%u", i ? "," : "", tables.p[i]);
        if (end > i + 1)
            of_printf(w, "-%u", tables.p[end - 1]);
    }
}

/* ------------------------------------------------------- structures and lists */

static void
print_value(struct of_wr *w, const struct of_field_row *f, const void *body,
            const struct of_tag_row *tag)
{
    const void *p = (const uint8_t *)body + f->off;
    switch (f->kind) {
    case OFK_U8:
    case OFK_U16:
    case OFK_U32:
    case OFK_U64: of_print_number(w, f->fmt, of_field_number(f, body)); break;
    case OFK_MAC: of_print_mac(w, p); break;
    case OFK_STR:
        of_wr8(w, '"');
        of_print_text(w, p, strnlen(p, f->size));
        of_wr8(w, '"');
        break;
    case OFK_MATCH:
    case OFK_MATCH10: of_print_match(w, p); break;
    case OFK_OXM:
        of_printf(w, "%s:", ((const struct of_oxm *)p)->row->name);
        of_print_oxm_value(w, p);
        break;
    case OFK_OXMIDS: print_ids(w, p, NULL); break;
    case OFK_TYPEIDS: print_ids(w, p, of_typeids_list(tag)); break;
    case OFK_LIST: of_print_list(w, f->list, p); break;
    case OFK_REST:
        if (tag && tag->body == &of_row_tfp_next_tables)
            print_tables(w, *(const struct of_bytes *)p);
        else
            of_print_hex(w, *(const struct of_bytes *)p);
        break;
    case OFK_PAD:            /* LCOV_EXCL_LINE: no row leads there */
    case OFK_LISTLEN: break; /* LCOV_EXCL_LINE: no row leads there */
    }
}

void
of_print_field(struct of_wr *w, const struct of_field_row *f, const void *body)
{
    print_value(w, f, body, NULL);
}

/* "port:max_len": values in order, without those that have their default. */
static void
print_positional(struct of_wr *w, const struct of_tag_row *tag, const void *body, char sign)
{
    const struct of_struct_row *row = tag->body;
    bool first = true;
    for (int i = 0; i < row->n_fields; i++) {
        const struct of_field_row *f = &row->fields[i];
        if (!of_field_shown(f))
            continue;
        if (!first && f->fmt && of_field_number(f, body) == of_field_default(row, f, body))
            continue;
        of_printf(w, "%c", first ? sign : of_field_is_mask(f) ? '/' : ':');
        print_value(w, f, body, tag);
        first = false;
    }
}

/* "rate=1,burst=2"; a single list has no name. */
static void
print_named(struct of_wr *w, const struct of_tag_row *tag, const void *body, char sign)
{
    bool first = true;
    for (int i = 0; i < tag->body->n_fields; i++) {
        const struct of_field_row *f = &tag->body->fields[i];
        if (!of_field_shown(f))
            continue;
        if (tag->body->n_fields == 1 && f->kind > OFK_U64)
            of_printf(w, "%c", sign);
        else
            of_printf(w, "%c%s=", first ? sign : ',', of_field_short_name(f));
        print_value(w, f, body, tag);
        first = false;
    }
}

static void
print_tagged(struct of_wr *w, const struct of_list_style *style, const void *elem)
{
    const struct of_tag_row *tag = ((const struct of_tagged *)elem)->row;
    put(w, tag->name);
    if (style->positional)
        print_positional(w, tag, elem, style->sign);
    else
        print_named(w, tag, elem, style->sign);
}

/* "a=1, b=2"; matches and lists in brackets. */
static void
print_fields(struct of_wr *w, const struct of_struct_row *row, const void *body, bool first)
{
    for (int i = 0; i < row->n_fields; i++) {
        const struct of_field_row *f = &row->fields[i];
        if (!of_field_shown(f))
            continue;
        bool list = f->kind == OFK_LIST, match = f->kind == OFK_MATCH || f->kind == OFK_MATCH10;
        of_printf(w, "%s%s=%s", first ? "" : ", ", of_field_short_name(f),
                  list    ? "["
                  : match ? "{"
                          : "");
        print_value(w, f, body, NULL);
        put(w, list ? "]" : match ? "}" : "");
        first = false;
    }
}

/* {field=value, ...}; fields that only hold a length are left out. */
static void
print_struct(struct of_wr *w, const struct of_struct_row *row, const void *body)
{
    put(w, "{");
    print_fields(w, row, body, true);
    put(w, "}");
}

void
of_print_list(struct of_wr *w, const struct of_list_row *row, const struct of_list *list)
{
    const struct of_list_style *style = of_list_style(row);
    for (uint32_t i = 0; i < list->n; i++) {
        if (row->framing == OFL_TAGGED) {
            if (i)
                of_printf(w, "%c", style->sep);
            print_tagged(w, style, list->v[i]);
        } else {
            put(w, i ? ", " : "");
            print_struct(w, row->elem, list->v[i]);
        }
    }
}

static void
print_error(struct of_wr *w, const struct of_error *e)
{
    struct of_error_info info;
    of_error_explain(e, &info);
    if (info.type_name)
        of_printf(w, ", type=%s", info.type_name);
    else
        of_printf(w, ", type=%u", info.type);
    if (info.code_name)
        of_printf(w, ", code=%s", info.code_name);
    else
        of_printf(w, ", code=%u", info.code);
    if (info.qos)
        of_printf(w, ", errno=%" PRIu32, info.errnum);
    if (info.text.n) {
        put(w, ", text=\"");
        of_print_text(w, (const char *)info.text.p, info.text.n);
        put(w, "\"");
    }
    put(w, ", data=");
    of_print_hex(w, info.request);
}

void
of_print_msg(struct of_wr *w, const struct of_msg *m)
{
    if (!m->row) { /* LCOV_EXCL_START: the decoder refuses it */
        of_printf(w, "type_%u{xid=%" PRIu32 "}", m->type, m->xid);
        return;
    } /* LCOV_EXCL_STOP */
    of_printf(w, "%s{xid=%" PRIu32, m->row->name, m->xid);
    if (m->mp)
        of_printf(w, ", multipart=%s, flags=%s", m->mp->name, m->mp_flags & 1 ? "more" : "0");
    if (m->body && m->body_row == &of_row_error)
        print_error(w, m->body);
    else if (m->body)
        print_fields(w, m->body_row, m->body, false);
    put(w, "}");
}
