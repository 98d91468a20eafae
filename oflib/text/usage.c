/* SPDX-License-Identifier: Apache-2.0 */
/* What may be typed for a row: its keys and their values, the fields of its match, the elements
 * of its lists. */
#include "parse.h"

/* ------------------------------------------------------------------- values */

/* "add, modify (mod), ..." */
static void
print_names(struct of_wr *w, const struct of_fmt *fmt, const char *between)
{
    char name[64];
    for (size_t i = 0; i < fmt->n; i++) {
        const char *full = fmt->names[i].name;
        of_printf(w, "%s%s", i ? between : "", of_short_name(fmt, full, name, sizeof name));
        for (const struct of_alias *a = of_value_aliases; a->name; a++)
            if (!strcmp(a->name, full))
                of_printf(w, " (%s)", a->alias);
    }
}

static void
print_number_kind(struct of_wr *w, const struct of_fmt *fmt)
{
    if (!fmt->n) {
        of_printf(w, "a number");
    } else if (fmt == &of_fmt_PORT) {
        of_printf(w, "a port's number or name, or ");
        print_names(w, fmt, ", ");
    } else if (fmt->kind == OF_FMT_FLAGS) {
        of_printf(w, "flags joined with |: ");
        print_names(w, fmt, ", ");
    } else {
        of_printf(w, "a number, or ");
        print_names(w, fmt, ", ");
    }
}

static void
print_kind(struct of_wr *w, const struct of_field_row *f)
{
    switch (f->kind) {
    case OFK_MAC: of_printf(w, "an Ethernet address"); break;
    case OFK_STR: of_printf(w, "a text of up to %u bytes", f->size - 1u); break;
    case OFK_REST: of_printf(w, "hexadecimal digits"); break;
    default: print_number_kind(w, f->fmt);
    }
}

static void
print_keys(struct of_wr *w, const struct of_struct_row *row)
{
    for (int i = 0; i < row->n_fields; i++) {
        const struct of_field_row *f = &row->fields[i];
        const char *name = of_field_short_name(f);
        if (!of_field_taken(f))
            continue;
        size_t start = w->len;
        of_printf(w, "  %s=", name);
        if (strcmp(name, f->name))
            of_printf(w, " (%s=)", f->name);
        int used = (int)(w->len - start);
        of_printf(w, "%*s", used < 30 ? 30 - used : 1, "");
        print_kind(w, f);
        of_printf(w, "\n");
    }
}

/* -------------------------------------------------------------------- match */

static void
print_oxm_fields(struct of_wr *w)
{
    static const char *const kinds[] = {[OXM_FMT_DEC] = "a number",
                                        [OXM_FMT_HEX] = "a number",
                                        [OXM_FMT_MAC] = "an Ethernet address",
                                        [OXM_FMT_IPV4] = "an IPv4 address",
                                        [OXM_FMT_IPV6] = "an IPv6 address",
                                        [OXM_FMT_VLAN] = "a VLAN's number, any or none",
                                        [OXM_FMT_PORT] = "a port"};
    for (int i = 0; i < OXM_N; i++) {
        size_t start = w->len;
        of_printf(w, "  %s=", oxm_rows[i].name);
        for (const struct of_alias *a = of_oxm_aliases; a->name; a++)
            if (!strcmp(a->name, oxm_rows[i].name))
                of_printf(w, " (%s=)", a->alias);
        int used = (int)(w->len - start);
        of_printf(w, "%*s%s%s\n", used < 30 ? 30 - used : 1, "", kinds[oxm_rows[i].fmt],
                  oxm_rows[i].maskable ? ", /MASK behind it where wanted" : "");
    }
}

/* -------------------------------------------------------------------- lists */

void
of_print_tag_usage(struct of_wr *w, const struct of_list_row *list, const struct of_tag_row *tag)
{
    const struct of_list_style *style = of_list_style(list);
    char sep = style->sign;
    of_printf(w, "%s", tag->name);
    for (int i = 0; i < tag->body->n_fields; i++) {
        const struct of_field_row *f = &tag->body->fields[i];
        bool mask = of_field_is_mask(f), opt = mask || f->fmt == &of_fmt_MAX_LEN;
        if (!of_field_shown(f))
            continue;
        if (f->kind == OFK_OXM)
            of_printf(w, "%cFIELD:VALUE", sep);
        else
            of_printf(w, "%s%c%s%s", opt ? "[" : "", mask ? '/' : sep, of_field_short_name(f),
                      opt                 ? "]"
                      : style->positional ? ""
                                          : "=...");
        sep = style->positional ? ':' : ',';
    }
}

static void print_lists(struct of_wr *w, const struct of_struct_row *row);

/* Every kind of element, then the lists that are inside one. */
static void
print_tags(struct of_wr *w, const struct of_list_row *list)
{
    const struct of_struct_row *inner = NULL;
    of_printf(w, "\n%s:\n", list->name);
    for (size_t i = 0; i < list->n_tags; i++) {
        const struct of_tag_row *tag = &list->tags[i];
        of_printf(w, "  ");
        of_print_tag_usage(w, list, tag);
        for (const struct of_alias *a = of_tag_aliases; a->name; a++)
            if (!strcmp(a->name, tag->c_name))
                of_printf(w, " (%s)", a->alias);
        of_printf(w, "\n");
        for (int k = 0; k < tag->body->n_fields && !inner; k++)
            if (tag->body->fields[k].kind == OFK_LIST)
                inner = tag->body;
    }
    if (inner)
        print_lists(w, inner);
}

static void
print_lists(struct of_wr *w, const struct of_struct_row *row)
{
    for (int i = 0; i < row->n_fields; i++) {
        const struct of_field_row *f = &row->fields[i];
        if (f->kind == OFK_MATCH) {
            of_printf(w, "\nmatch:\n");
            print_oxm_fields(w);
        } else if (f->kind == OFK_LIST && f->list->framing == OFL_TAGGED) {
            print_tags(w, f->list);
        } else if (f->kind == OFK_LIST) {
            of_printf(w, "\n%s:\n", f->list->name);
            print_keys(w, f->list->elem);
            print_lists(w, f->list->elem);
        }
    }
}

void
of_print_usage(struct of_wr *w, const struct of_struct_row *row)
{
    print_keys(w, row);
    print_lists(w, row);
}
