/* SPDX-License-Identifier: Apache-2.0 */
/* Actions, instructions, meter bands and buckets out of text. */
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

static int
unknown_tag(struct of_parse *p, const struct of_list_row *list, const char *what,
            struct of_span name)
{
    struct of_unknown u = of_unknown(name);
    of_unknown_try_tags(&u, list);
    return of_parse_unknown(p, what, &u);
}

/* Does the field take all that is left of the text? */
static bool
takes_rest(const struct of_field_row *f)
{
    return f->kind == OFK_OXM || f->kind == OFK_REST || f->kind == OFK_LIST;
}

/* Appends how the element is written. */
static int
more_usage(struct of_parse *p, const struct of_list_row *list, const struct of_tag_row *tag)
{
    char text[160];
    struct of_wr w = of_wr_fixed(text, sizeof text);
    of_print_tag_usage(&w, list, tag);
    of_parse_more(p, ": write %.*s", (int)w.len, text);
    return -EINVAL;
}

/* A field without a value: a list or data is empty, a number behind the first has its default. */
static int
absent_field(struct of_parse *p, const struct of_list_row *list, const struct of_tag_row *tag,
             const struct of_field_row *f, bool first, void *body)
{
    if (f->kind == OFK_REST || f->kind == OFK_LIST)
        return 0;
    if (first || !f->fmt) {
        of_parse_wrong(p, "%s needs a value", tag->name);
        return more_usage(p, list, tag);
    }
    of_field_set_number(f, body, of_field_default(tag->body, f, body));
    return 0;
}

static int
parse_list_field(struct of_parse *p, const struct of_field_row *f, struct of_span text, void *body)
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
                 struct of_span text, bool given, void *body)
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
            struct of_span part = text;
            if (takes_rest(f))
                text.n = 0;
            else
                part = of_span_take(&text, mask_next ? '/' : ':');
            err = f->kind == OFK_LIST ? parse_list_field(p, f, part, body)
                                      : of_span_field(p, f, part, body);
        }
        if (err)
            return err;
        first = false;
    }
    if (!text.n)
        return 0;
    of_parse_wrong(p, "%s has one value too many ('%.*s')", tag->name, SPAN(text));
    return more_usage(p, list, tag);
}

/* One "name", "name<sign>values". */
static int
parse_tagged(struct of_parse *p, const struct of_list_row *list, const char *what,
             struct of_span text, struct of_list *out)
{
    const struct of_list_style *style = of_list_style(list);
    /* "output:2" is understood as well as "output=2", "goto=1" as well as "goto:1". */
    size_t n = 0;
    while (n < text.n && text.p[n] != '=' && text.p[n] != ':')
        n++;
    struct of_span name = {text.p, n};
    bool given = n < text.n;
    struct of_span values = {text.p + n + given, text.n - n - given};
    const struct of_tag_row *tag = of_span_tag(list, name);
    if (!tag)
        return unknown_tag(p, list, what, name);
    struct of_tagged *body = of_arena_alloc(p->arena, tag->body->size);
    if (!body)
        return -ENOMEM;
    body->row = tag;
    int err = style->positional ? parse_positional(p, list, tag, values, given, body)
                                : of_span_fields(p, tag->body, values, body);
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
        return of_parse_wrong(p, "set_field: %s can't be set", a->field.row->name);
    if (a->field.has_mask)
        return of_parse_wrong(p, "set_field takes a value without a mask");
    if (a->field.row->field == OXM_vlan_vid && !(of_get16(a->field.value) & OFPVID_PRESENT))
        return of_parse_wrong(p, "set_field=vlan_vid needs a VID; pop_vlan takes a tag off");
    return 0;
}

int
of_parse_actions(struct of_parse *p, const char *text, struct of_list *out)
{
    struct of_span rest = of_span_of(text);
    struct of_list list = {0};
    if (!(list.v = of_arena_array(p->arena, 1, sizeof *list.v)))
        return -ENOMEM;
    while (rest.n) {
        struct of_span one = of_span_take(&rest, ',');
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
    return of_span_tag(&of_list_actions, (struct of_span){name, n}) != NULL;
}

bool
of_is_instruction(const char *text)
{
    size_t n = strcspn(text, ":=");
    if (text[n] == '=')
        return false;
    return of_span_tag(&of_list_instructions, (struct of_span){text, n}) != NULL;
}

int
of_parse_instruction(struct of_parse *p, const char *text, struct of_list *list)
{
    return parse_tagged(p, &of_list_instructions, "instruction", of_span_of(text), list);
}

int
of_parse_band(struct of_parse *p, const char *text, struct of_list *list)
{
    return parse_tagged(p, &of_list_bands, "band", of_span_of(text), list);
}

/* Does the word begin a bucket, with one of its fields?  `group` is an action too, so it counts
 * only where a bucket may begin. */
static bool
is_bucket_head(const char *word, bool expected)
{
    struct of_span rest = of_span_of(word);
    struct of_span key = of_span_take(&rest, '=');
    return of_field_by_name(&of_row_bucket, key.p, key.n) &&
           (expected || !of_span_tag(&of_list_actions, key));
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
