/* SPDX-License-Identifier: Apache-2.0 */
#include "parse.h"

#include <oflib/complete.h>

#include <stdio.h>

#define NAME_MAX_LEN 64

static void
offer(const struct of_complete *k, size_t keep, const char *name, const char *sign,
      const char *help)
{
    char text[NAME_MAX_LEN + 2];
    snprintf(text, sizeof text, "%s%s", name, sign);
    k->offer(k->ctx, keep, text, help);
}

/* Where the piece behind the last `sep` begins. */
static size_t
last_piece(const char *word, char sep, size_t from)
{
    const char *last = strrchr(word + from, sep);
    return last ? (size_t)(last + 1 - word) : from;
}

/* ------------------------------------------------------------------ values */

static void
complete_names(const struct of_complete *k, size_t keep, const struct of_fmt *fmt)
{
    char name[NAME_MAX_LEN];
    if (fmt->kind == OF_FMT_FLAGS)
        keep = last_piece(k->word, '|', keep);
    for (size_t i = 0; i < fmt->n; i++) {
        const char *full = fmt->names[i].name;
        offer(k, keep, of_short_name(fmt, full, name, sizeof name), "", NULL);
        for (const struct of_alias *a = of_value_aliases; a->name; a++)
            if (!strcmp(a->name, full))
                offer(k, keep, a->alias, "", NULL);
    }
    k->number(k->ctx, keep, fmt);
}

static void
complete_oxm_value(const struct of_complete *k, size_t keep, const struct oxm_row *oxm)
{
    if (oxm->fmt == OXM_FMT_PORT)
        k->number(k->ctx, keep, &of_fmt_PORT);
    if (oxm->fmt == OXM_FMT_VLAN) {
        offer(k, keep, "any", "", "with a tag");
        offer(k, keep, "none", "", "without a tag");
    }
}

/* ------------------------------------------------------------------ keys */

/* Is what is typed the beginning of the name?  Then other names of the same thing are not
 * offered. */
static bool
begins(const struct of_complete *k, size_t at, const char *name)
{
    return !strncmp(name, k->word + at, strlen(k->word + at));
}

static void
complete_key(const struct of_complete *k, size_t at, const struct of_field_row *f)
{
    const char *name = of_field_short_name(f), *eq = strchr(k->word + at, '=');
    size_t n = eq ? (size_t)(eq - k->word) - at : 0;
    if (!eq) {
        offer(k, at, name, "=", NULL);
        if (!begins(k, at, name))
            offer(k, at, f->name, "=", NULL);
    } else if (f->fmt && ((strlen(name) == n && !strncmp(name, k->word + at, n)) ||
                          (strlen(f->name) == n && !strncmp(f->name, k->word + at, n)))) {
        complete_names(k, at + n + 1, f->fmt);
    }
}

static void
complete_keys(const struct of_complete *k, size_t from, const struct of_struct_row *row)
{
    size_t at = last_piece(k->word, ',', from);
    for (int i = 0; i < row->n_fields; i++)
        if (of_field_taken(&row->fields[i]))
            complete_key(k, at, &row->fields[i]);
}

static void
complete_oxm(const struct of_complete *k, size_t at, const struct oxm_row *oxm, char sign,
             bool with_aliases)
{
    const char s[2] = {sign}, *eq = strchr(k->word + at, sign);
    size_t n = eq ? (size_t)(eq - k->word) - at : 0;
    if (!eq)
        offer(k, at, oxm->name, s, NULL);
    else if (strlen(oxm->name) == n && !strncmp(oxm->name, k->word + at, n))
        complete_oxm_value(k, at + n + 1, oxm);
    for (const struct of_alias *a = of_oxm_aliases; with_aliases && !eq && a->name; a++)
        if (!strcmp(a->name, oxm->name) && !begins(k, at, oxm->name))
            offer(k, at, a->alias, s, NULL);
}

static void
complete_match(const struct of_complete *k)
{
    size_t at = last_piece(k->word, ',', 0);
    for (int i = 0; i < OXM_N; i++)
        complete_oxm(k, at, &oxm_rows[i], '=', true);
}

/* ------------------------------------------------------------------ lists */

static void complete_tags(const struct of_complete *k, size_t at, const struct of_list_row *list);

/* The n-th value of an element, behind `from`. */
static void
complete_value(const struct of_complete *k, size_t from, const struct of_struct_row *row)
{
    size_t at = from;
    for (int i = 0; i < row->n_fields; i++) {
        const struct of_field_row *f = &row->fields[i];
        const char *next = strchr(k->word + at, ':');
        if (!of_field_shown(f))
            continue;
        if (f->kind == OFK_LIST) {
            complete_tags(k, last_piece(k->word, ',', at), f->list);
        } else if (f->kind == OFK_OXM) {
            for (int o = 0; o < OXM_N; o++)
                if (oxm_rows[o].settable)
                    complete_oxm(k, at, &oxm_rows[o], ':', false);
        } else if (!next && f->fmt) {
            complete_names(k, at, f->fmt);
            if (!strcmp(f->name, "table_id")) /* goto's: a number that has no names */
                k->number(k->ctx, at, &of_fmt_TABLE);
        }
        if (!next || f->kind == OFK_LIST || f->kind == OFK_OXM)
            return;
        at = (size_t)(next + 1 - k->word);
    }
}

static bool
has_values(const struct of_struct_row *row)
{
    for (int i = 0; i < row->n_fields; i++)
        if (of_field_shown(&row->fields[i]))
            return true;
    return false;
}

/* An element that begins at `at`. */
static void
complete_tags(const struct of_complete *k, size_t at, const struct of_list_row *list)
{
    const struct of_list_style *style = of_list_style(list);
    const char sign[2] = {style->sign};
    const char *word = k->word + at;
    size_t n = strcspn(word, ":=");
    for (size_t i = 0; i < list->n_tags; i++) {
        const struct of_tag_row *tag = &list->tags[i];
        if (!word[n])
            offer(k, at, tag->name, has_values(tag->body) ? sign : "", NULL);
        for (const struct of_alias *a = of_tag_aliases; !word[n] && n && a->name; a++)
            if (!strcmp(a->name, tag->c_name))
                offer(k, at, a->alias, has_values(tag->body) ? sign : "", NULL);
    }
    const struct of_tag_row *tag = of_span_tag(list, (struct of_span){word, n});
    if (!word[n] || !tag)
        return;
    if (style->positional)
        complete_value(k, at + n + 1, tag->body);
    else
        complete_keys(k, at + n + 1, tag->body);
}

/* Elements that are words of their own begin at the word's beginning, actions behind a comma, too. */
static void
complete_list(const struct of_complete *k, const struct of_list_row *list)
{
    if (list->framing == OFL_TAGGED)
        complete_tags(k, list == &of_list_actions ? last_piece(k->word, ',', 0) : 0, list);
    else
        of_complete_row(k, list->elem);
}

/* The list of which the word is an element: "apply:output=2,gr" is an instruction. */
static const struct of_list_row *
list_of(const struct of_complete *k, const struct of_struct_row *row)
{
    const char *colon = strchr(k->word, ':');
    struct of_span name = {k->word, colon ? (size_t)(colon - k->word) : 0};
    for (int i = 0; colon && i < row->n_fields; i++) {
        const struct of_field_row *f = &row->fields[i];
        if (f->kind == OFK_LIST && f->list->framing == OFL_TAGGED && of_span_tag(f->list, name))
            return f->list;
    }
    return NULL;
}

void
of_complete_row(const struct of_complete *k, const struct of_struct_row *row)
{
    const struct of_list_row *list = list_of(k, row);
    if (list) {
        complete_list(k, list);
        return;
    }
    complete_keys(k, 0, row);
    for (int i = 0; i < row->n_fields; i++) {
        if (row->fields[i].kind == OFK_MATCH)
            complete_match(k);
        else if (row->fields[i].kind == OFK_LIST)
            complete_list(k, row->fields[i].list);
    }
}
