/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of structures out of text: "cmd=add,table=0,prio=10". */
#include "parse.h"

#include <errno.h>

int
of_span_field(struct of_parse *p, const struct of_field_row *f, struct of_span text, void *body)
{
    const char *what = of_field_short_name(f);
    void *to = (uint8_t *)body + f->off;
    uint64_t v;
    int err;
    switch (f->kind) {
    case OFK_U8:
    case OFK_U16:
    case OFK_U32:
    case OFK_U64:
        err = of_span_number(p, what, text, f->fmt, f->size * 8u, &v);
        if (!err)
            of_field_set_number(f, body, v);
        return err;
    case OFK_MAC: return of_span_mac(p, what, text, to);
    case OFK_REST: return of_span_hex(p, what, text, to);
    case OFK_OXM: {
        struct of_span name = of_span_take(&text, of_span_has(text, '=') ? '=' : ':');
        return of_span_oxm(p, name, text, to);
    }
    /* LCOV_EXCL_START: no row leads there */
    default:
        return of_parse_wrong(p, "%s= can't be given here", what);
        /* LCOV_EXCL_STOP */
    }
}

static int
unknown_field(struct of_parse *p, const struct of_struct_row *row, struct of_span key)
{
    struct of_unknown u = of_unknown(key);
    for (int i = 0; i < row->n_fields; i++) {
        if (!of_field_taken(&row->fields[i]))
            continue;
        of_unknown_try(&u, of_field_short_name(&row->fields[i]));
        of_unknown_also(&u, row->fields[i].name);
    }
    return of_parse_unknown(p, "key", &u);
}

int
of_span_fields(struct of_parse *p, const struct of_struct_row *row, struct of_span text, void *body)
{
    uint64_t seen = 0;
    while (text.n) {
        struct of_span value = of_span_take(&text, ',');
        if (!value.n)
            continue;
        if (!of_span_has(value, '='))
            return of_parse_wrong(p, "'%.*s' is not key=value", SPAN(value));
        struct of_span key = of_span_take(&value, '=');
        const struct of_field_row *f = of_field_by_name(row, key.p, key.n);
        if (!f || !of_field_taken(f))
            return unknown_field(p, row, key);
        uint64_t bit = UINT64_C(1) << (f - row->fields);
        if (seen & bit)
            return of_parse_wrong(p, "%.*s is given twice", SPAN(key));
        seen |= bit;
        int err = of_span_field(p, f, value, body);
        if (err)
            return err;
    }
    return 0;
}

int
of_parse_fields(struct of_parse *p, const struct of_struct_row *row, const char *text, void *body)
{
    return of_span_fields(p, row, of_span_of(text), body);
}
