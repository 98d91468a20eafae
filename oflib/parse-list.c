/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of tagged things out of text: actions, instructions, meter bands; and buckets. */
#include "parse.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

bool
of_list_append(struct of_arena *arena, struct of_list *list, void *elem)
{
    void **v = of_arena_array(arena, list->n + 1, sizeof *v);
    if (!v)
        return false;
    if (list->n)
        memcpy(v, list->v, list->n * sizeof *v);
    v[list->n] = elem;
    list->v = v;
    list->n++;
    return true;
}

/* "OFPAT_SET_QUEUE" is known as set_queue, too. */
static bool
is_spec_name(struct span name, const char *c_name)
{
    const char *bar = strchr(c_name, '_');
    return span_is(name, c_name) || (bar && span_is(name, bar + 1));
}

const struct of_tag_row *
parse_tag(const struct of_list_row *list, struct span name)
{
    for (size_t i = 0; i < list->n_tags; i++) {
        const struct of_tag_row *tag = &list->tags[i];
        if (span_is(name, tag->name) || is_spec_name(name, tag->c_name) ||
            span_is_alias(name, of_tag_aliases, tag->c_name))
            return tag;
    }
    return NULL;
}

void
try_tags(struct unknown *u, const struct of_list_row *list)
{
    for (size_t i = 0; i < list->n_tags; i++) {
        const char *bar = strchr(list->tags[i].c_name, '_');
        unknown_try(u, list->tags[i].name);
        for (const struct of_alias *a = of_tag_aliases; a->name; a++)
            if (!strcmp(a->name, list->tags[i].c_name))
                unknown_also(u, a->alias);
        for (char low[64]; bar; bar = NULL) {
            size_t n = 0;
            for (bar++; bar[n] && n + 1 < sizeof low; n++)
                low[n] = (char)tolower((unsigned char)bar[n]);
            low[n] = '\0';
            unknown_also(u, low);
        }
    }
}

static int
unknown_tag(struct of_parse *p, const struct of_list_row *list, const char *what, struct span name)
{
    struct unknown u = unknown_of(name);
    try_tags(&u, list);
    return parse_unknown(p, what, &u);
}

/* How an element is written: "output=port[:max_len]". */
static void
more_usage(struct of_parse *p, const struct of_list_row *list, const struct of_tag_row *tag)
{
    char text[160];
    struct of_wr w = of_wr_fixed(text, sizeof text);
    print_tag_usage(&w, list, tag);
    parse_more(p, "%.*s", (int)w.len, text);
}

/* Does the field take all that is left of the text? */
static bool
takes_rest(const struct of_field_row *f)
{
    return f->kind == OFK_OXM || f->kind == OFK_REST || f->kind == OFK_LIST;
}

static int
positional_error(struct of_parse *p, const struct of_list_row *list, const struct of_tag_row *tag)
{
    more_usage(p, list, tag);
    parse_more(p, " is right");
    return -EINVAL;
}

/* A field that isn't given: lists and data are empty, of numbers the first one is needed. */
static int
absent_field(struct of_parse *p, const struct of_list_row *list, const struct of_tag_row *tag,
             const struct of_field_row *f, bool first, void *body)
{
    if (f->kind == OFK_REST || f->kind == OFK_LIST)
        return 0;
    if (first || !f->fmt) {
        parse_wrong(p, "%s needs a value: ", tag->name);
        return positional_error(p, list, tag);
    }
    of_field_set_number(f, body, of_field_default(tag->body, f, body));
    return 0;
}

static int
parse_list_field(struct of_parse *p, const struct of_field_row *f, struct span text, void *body)
{
    char *copy = of_arena_alloc(p->arena, text.n + 1);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, text.p, text.n);
    return of_parse_actions(p, copy, (struct of_list *)(void *)((uint8_t *)body + f->off));
}

/* Values in the order of the fields: 128:64, 0x1/0xff.  `given`: there is something to parse. */
static int
parse_positional(struct of_parse *p, const struct of_list_row *list, const struct of_tag_row *tag,
                 struct span text, bool given, void *body)
{
    const struct of_struct_row *row = tag->body;
    bool first = true;
    for (int i = 0; i < row->n_fields; i++) {
        const struct of_field_row *f = &row->fields[i];
        if (!of_field_shown(f))
            continue;
        int err;
        if (first ? !given : !text.n) {
            err = absent_field(p, list, tag, f, first, body);
        } else {
            bool mask_next = i + 1 < row->n_fields && of_field_is_mask(f + 1);
            struct span part = text;
            if (takes_rest(f))
                text.n = 0;
            else
                part = span_take(&text, mask_next ? '/' : ':');
            err = f->kind == OFK_LIST ? parse_list_field(p, f, part, body)
                                      : parse_field_value(p, f, part, body);
        }
        if (err)
            return err;
        first = false;
    }
    if (!text.n)
        return 0;
    parse_wrong(p, "%s has a value too many (%.*s): ", tag->name, SPAN(text));
    return positional_error(p, list, tag);
}

/* One "name", "name<sign>values". */
static int
parse_tagged(struct of_parse *p, const struct of_list_row *list, const char *what, struct span text,
             struct of_list *out)
{
    const struct of_list_style *style = of_list_style(list);
    /* "output:2" is understood as well as "output=2", "goto=1" as well as "goto:1". */
    size_t n = 0;
    while (n < text.n && text.p[n] != '=' && text.p[n] != ':')
        n++;
    struct span name = {text.p, n};
    bool given = n < text.n;
    struct span values = {text.p + n + given, text.n - n - given};
    const struct of_tag_row *tag = parse_tag(list, name);
    if (!tag)
        return unknown_tag(p, list, what, name);
    struct of_tagged *body = of_arena_alloc(p->arena, tag->body->size);
    if (!body)
        return -ENOMEM;
    body->row = tag;
    int err = style->positional ? parse_positional(p, list, tag, values, given, body)
                                : parse_fields(p, tag->body, values, body);
    if (!err && !of_list_append(p->arena, out, body))
        err = -ENOMEM;
    return err;
}

/* A set-field action has no mask, and not every field can be set (7.2.5). */
static int
check_set_field(struct of_parse *p, const struct of_list *list)
{
    const struct of_action_set_field *a = OF_AT(list, list->n - 1, struct of_action_set_field);
    if (a->row->body != &of_row_action_set_field)
        return 0;
    if (!a->field.row->settable)
        return parse_wrong(p, "set_field: %s can't be set", a->field.row->name);
    if (a->field.has_mask)
        return parse_wrong(p, "set_field: a value without a mask is right");
    if (a->field.row->field == OXM_vlan_vid && !(of_get16(a->field.value) & OFPVID_PRESENT))
        return parse_wrong(p, "set_field=vlan_vid: a VID is right (pop_vlan takes a tag off)");
    return 0;
}

int
of_parse_actions(struct of_parse *p, const char *text, struct of_list *out)
{
    struct span rest = span_of(text);
    struct of_list list = {0};
    if (!(list.v = of_arena_array(p->arena, 1, sizeof *list.v)))
        return -ENOMEM;
    while (rest.n) {
        struct span one = span_take(&rest, ',');
        if (!one.n)
            continue;
        int err = parse_tagged(p, &of_list_actions, "action", one, &list);
        err = err ? err : check_set_field(p, &list);
        if (err)
            return err;
    }
    *out = list;
    return 0;
}

bool
of_is_action(const char *name, size_t n)
{
    return parse_tag(&of_list_actions, (struct span){name, n}) != NULL;
}

bool
of_is_instruction(const char *text)
{
    size_t n = strcspn(text, ":=");
    if (text[n] == '=')
        return false;
    return parse_tag(&of_list_instructions, (struct span){text, n}) != NULL;
}

int
of_parse_instruction(struct of_parse *p, const char *text, struct of_list *list)
{
    return parse_tagged(p, &of_list_instructions, "instruction", span_of(text), list);
}

int
of_parse_band(struct of_parse *p, const char *text, struct of_list *list)
{
    return parse_tagged(p, &of_list_bands, "band", span_of(text), list);
}

/* Is this word a bucket's head?  Its first key must be one of the bucket's fields; `group`, which
 * is an action too, only counts where a head may stand. */
static bool
is_bucket_head(const char *word, bool expected)
{
    struct span rest = span_of(word);
    struct span key = span_take(&rest, '=');
    return of_field_by_name(&of_row_bucket, key.p, key.n) &&
           (expected || !parse_tag(&of_list_actions, key));
}

int
of_parse_buckets(struct of_parse *p, char *const *words, int n, struct of_list *list)
{
    struct of_bucket *b = NULL;
    bool head_next = true;
    for (int i = 0; i < n; i++) {
        bool head = is_bucket_head(words[i], head_next);
        if (head || head_next) {
            if (!(b = of_arena_alloc(p->arena, sizeof *b)) || !of_list_append(p->arena, list, b))
                return -ENOMEM;
            b->watch_port = OFPP_ANY;
            b->watch_group = OFPG_ANY;
        }
        int err = head ? of_parse_fields(p, &of_row_bucket, words[i], b)
                       : of_parse_actions(p, words[i], &b->actions);
        if (err)
            return err;
        head_next = !head;
    }
    return 0;
}
