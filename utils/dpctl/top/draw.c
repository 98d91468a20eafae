/* SPDX-License-Identifier: Apache-2.0 */
/* A look as a screen, as a table of text, as JSON. */
#include "top-inside.h"

#include <core/whole.h>

#include <queues/watch.h>

#include <oflib/json.h>
#include <oflib/text.h>

static const char *
detail_of(struct top *t, struct top_item *i)
{
    if (!i->detail)
        i->detail = top_flow_text(t, i);
    return i->detail;
}

static double
value_of(const struct top_column *c, const struct top_item *i)
{
    double v = c->kind == TOP_STATE ? (double)i->v[c->value] : i->rate[c->value];
    return c->kind == TOP_BITS ? v * 8 : v;
}

static bool
is_known(const struct top_column *c, const struct top_item *i)
{
    return i->v[c->value] != TOP_UNKNOWN && (c->kind == TOP_STATE || i->measured);
}

/* ------------------------------------------------------------------- arranging */

static bool
passes(struct top *t, struct top_item *i)
{
    return strcasestr(i->name, t->filter) || strcasestr(detail_of(t, i), t->filter);
}

void
top_arrange(struct top *t)
{
    const struct top_column *c = t->column < 0 ? NULL : &t->view->columns[t->column];
    size_t n = 0;
    for (size_t i = 0; i < t->total; i++) {
        struct top_item item = t->v[i];
        if (*t->filter && !passes(t, &item))
            continue;
        t->v[i] = t->v[n];
        t->v[n++] = item;
    }
    t->n = n;
    top_sort(t->v, t->n, c ? c->value : -1, c && c->kind != TOP_STATE, t->reverse);
}

/* ------------------------------------------------------------------------ lines */

static void
cut(struct of_wr *w, size_t start, int columns)
{
    if (w->len > start + (size_t)columns)
        w->len = start + (size_t)columns;
}

static void
put_heading(const struct top *t, struct of_wr *w)
{
    const struct top_view *v = t->view;
    of_printf(w, "%-*s", TOP_NAME_WIDTH, v->item);
    for (int k = 0; k < top_columns(v); k++)
        of_printf(w, " %*s", v->columns[k].width, v->columns[k].title);
    of_printf(w, "%s%s", v->detail ? "  " : "", v->detail ? v->detail : "");
}

static void
put_item(struct top *t, struct of_wr *w, struct top_item *i)
{
    char number[16];
    const struct top_view *v = t->view;
    of_printf(w, "%-*.*s", TOP_NAME_WIDTH, TOP_NAME_WIDTH, i->name);
    for (int k = 0; k < top_columns(v); k++) {
        const struct top_column *c = &v->columns[k];
        double x = is_known(c, i) ? value_of(c, i) : 0;
        of_printf(w, " %*s", c->width, is_known(c, i) ? watch_number(whole(x + 0.5), number) : "-");
    }
    if (v->detail)
        of_printf(w, "  %s", detail_of(t, i));
}

static const char *
sorted_by(const struct top *t)
{
    return t->column < 0 ? "name" : t->view->columns[t->column].title;
}

/* ----------------------------------------------------------------------- screen */

#define END_LINE "\033[K\r\n"

static void
put_status(const struct top *t, struct of_wr *w)
{
    size_t start = w->len;
    of_printf(w, "%s: %zu, every %.1f s%s, by %s%s", t->view->name, t->n,
              (double)t->interval_us / 1e6, t->paused ? ", PAUSED" : "", sorted_by(t),
              t->reverse ? ", lowest first" : "");
    if (*t->filter || t->typing)
        of_printf(w, ", filter: %s%s", t->filter, t->typing ? "_" : "");
    if (*t->lost)
        of_printf(w, "; LOST, trying again: %s", t->lost);
    else if (*t->note)
        of_printf(w, "; %s", t->note);
    cut(w, start, t->screen.columns);
    of_printf(w, END_LINE);
}

static const char *const help[] = {
    "p ports   q queues   f flows   m meters   g groups   t tables   c processors",
    "< >       the column to sort by (also the arrow keys); n: by name",
    "r         the lowest first",
    "+ -       the time between two looks",
    "/         shows only lines with this text (Enter: done, Escape: all lines again)",
    "space     stops and goes on",
    "Up Down   scrolls by a line; Page Up, Page Down by a screen; Home to the first line",
    "h ?       this help",
    "Q x ^C    ends",
    "",
    "Rates are per second, between the last two looks; k, M, G: thousands, millions, ...",
    "A line with - is new: it has no rate before the next look.",
};

static void
put_help(const struct top *t, struct of_wr *w)
{
    for (size_t i = 0; i < sizeof help / sizeof help[0] && (int)i < t->screen.rows - 3; i++) {
        size_t start = w->len;
        of_printf(w, "  %s", help[i]);
        cut(w, start, t->screen.columns);
        of_printf(w, END_LINE);
    }
}

static void
put_items(struct top *t, struct of_wr *w)
{
    size_t start = w->len, room = t->screen.rows > 3 ? (size_t)t->screen.rows - 3 : 0;
    if (t->first >= t->n)
        t->first = t->n ? t->n - 1 : 0;
    of_printf(w, "\033[7m");
    put_heading(t, w);
    cut(w, start, t->screen.columns + 4); /* with the sequence */
    of_printf(w, "\033[0m" END_LINE);
    for (size_t k = t->first; k < t->n && k < t->first + room; k++) {
        start = w->len;
        put_item(t, w, &t->v[k]);
        cut(w, start, t->screen.columns);
        of_printf(w, END_LINE);
    }
}

void
top_draw(struct top *t, struct of_wr *w)
{
    of_printf(w, "\033[H");
    put_status(t, w);
    if (t->help)
        put_help(t, w);
    else
        put_items(t, w);
    of_printf(w, "\033[J\033[%d;1H", t->screen.rows);
    size_t start = w->len;
    of_printf(w, "p q f m g t views  < > sort  r reverse  + - interval  / filter  space pause  "
                 "h help  Q quit");
    cut(w, start, t->screen.columns - 1);
    of_printf(w, "\033[K");
}

/* --------------------------------------------------------------- text and JSON */

void
top_print_text(struct top *t, struct of_wr *w)
{
    put_heading(t, w);
    if (*t->note)
        of_printf(w, "\n(%s)", t->note);
    for (size_t k = 0; k < t->n && (!t->rows || k < (size_t)t->rows); k++) {
        of_printf(w, "\n");
        put_item(t, w, &t->v[k]);
    }
}

/* Rates have three digits behind the point; a rate that is not known yet is null. */
static void
json_item(struct top *t, struct of_json *j, struct top_item *i)
{
    const struct top_view *v = t->view;
    size_t blank = strspn(i->name, " ");
    of_json_object(j, NULL);
    of_json_text(j, "name", i->name + blank);
    for (int k = 0; k < top_columns(v); k++) {
        const struct top_column *c = &v->columns[k];
        if (!is_known(c, i))
            of_json_null(j, c->json);
        else if (c->kind == TOP_STATE)
            of_json_uint(j, c->json, i->v[c->value]);
        else
            of_json_real(j, c->json, value_of(c, i));
    }
    if (v->detail)
        of_json_text(j, "detail", detail_of(t, i));
    of_json_end_object(j);
}

void
top_print_json(struct top *t, struct of_wr *w)
{
    struct of_json j = of_json(w);
    of_json_object(&j, NULL);
    of_json_real(&j, "time", watch_time());
    of_json_real(&j, "interval", (double)t->elapsed_us / 1e6);
    of_json_text(&j, "view", t->view->name);
    if (*t->note)
        of_json_text(&j, "note", t->note);
    of_json_array(&j, "rows");
    for (size_t k = 0; k < t->n && (!t->rows || k < (size_t)t->rows); k++)
        json_item(t, &j, &t->v[k]);
    of_json_end_array(&j);
    of_json_end_object(&j);
}
