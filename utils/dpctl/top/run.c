/* SPDX-License-Identifier: Apache-2.0 */
/* The loop: looks, keys, the connection. */
#include "top-inside.h"

#include <top/top.h>

#include <core/say.h>
#include <core/signals.h>
#include <core/view.h>
#include <queues/keys.h>

#include <oflib/text.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define INTERVAL_MIN 100000 /* us */
#define INTERVAL_MAX 60000000
#define LOOK_SHARE   4 /* between two looks passes at least so many times as long as a look took */

/* ----------------------------------------------------------------------- a look */

static void
forget(struct top *t)
{
    t->last.n = 0;
    t->n = t->total = t->room = 0;
    t->v = NULL;
    t->first = 0;
    of_arena_reset(&t->c->arena);
}

/* Asks, and works out the rates. */
static enum status
look(struct top *t)
{
    int64_t begun = signals_clock_us(CLOCK_MONOTONIC);
    of_arena_reset(&t->c->arena);
    t->n = t->total = t->room = 0;
    t->v = NULL;
    *t->note = '\0';
    *t->c->remote.why = '\0';
    t->c->remote.sigmask = t->tty ? &t->asking : NULL;
    enum status st = t->view->collect(t);
    t->c->remote.sigmask = NULL;
    int64_t now = signals_clock_us(CLOCK_MONOTONIC);
    if (st)
        return st;
    t->total = t->n;
    t->took_us = now - begun;
    t->elapsed_us = t->last.at_us ? now - t->last.at_us : 0;
    top_rates(t->v, t->n, &t->last, now);
    if (!top_remember(&t->last, t->v, t->n, now))
        return say_memory(t->c);
    top_arrange(t);
    return DPCTL_OK;
}

static enum status
show(struct top *t)
{
    struct of_wr w = of_wr_grow(VIEW_MAX);
    if (!t->tty) {
        (t->c->json ? top_print_json : top_print_text)(t, &w);
        return view_line(t->c, &w);
    }
    top_draw(t, &w);
    bool ok = !w.overflow && fwrite(w.buf, 1, w.len, stdout) == w.len && !fflush(stdout);
    of_wr_free(&w);
    return ok ? DPCTL_OK : DPCTL_FAILED;
}

/* On a screen a refusal becomes the note below the heading, and a lost connection is opened again. */
static enum status
look_and_show(struct top *t)
{
    char said[CTX_SAID] = "";
    struct remote *r = &t->c->remote;
    if (!t->tty) {
        enum status st = look(t);
        return st || !t->elapsed_us ? st : show(t); /* the first look is for comparison */
    }
    t->c->said = said;
    if (!r->stream && remote_reopen(r))
        snprintf(t->lost, sizeof t->lost, "%s", r->why);
    else if (*t->lost)
        *t->lost = '\0', forget(t);
    if (!*t->lost && look(t)) {
        forget(t);
        if (*r->why) {
            snprintf(t->lost, sizeof t->lost, "%s", r->why);
            remote_close(r);
        } else {
            snprintf(t->note, sizeof t->note, "%.190s", said);
        }
    }
    t->c->said = NULL;
    return signals_pending() ? DPCTL_OK : show(t);
}

/* ------------------------------------------------------------------------- keys */

static void
set_view(struct top *t, const struct top_view *v)
{
    if (v != t->view)
        forget(t);
    t->view = v;
    t->column = 0;
    t->help = false;
    *t->filter = '\0';
}

static void
scroll(struct top *t, int by)
{
    if (by < 0 && t->first < (size_t)-by)
        t->first = 0;
    else
        t->first += (size_t)by;
    if (t->first >= t->n)
        t->first = t->n ? t->n - 1 : 0;
}

static void
sort_by(struct top *t, int column)
{
    int n = top_columns(t->view);
    t->column = column < -1 ? n - 1 : column >= n ? -1 : column;
    top_arrange(t);
}

static void
set_interval(struct top *t, uint64_t us)
{
    t->interval_us = us < INTERVAL_MIN ? INTERVAL_MIN : us > INTERVAL_MAX ? INTERVAL_MAX : us;
}

/* A key of a filter that is being typed. */
static void
type(struct top *t, int key)
{
    size_t n = strlen(t->filter);
    if (key == KEY_ENTER || key == KEY_ESCAPE)
        t->typing = false;
    if (key == KEY_ESCAPE)
        *t->filter = '\0';
    else if ((key == KEY_ERASE || key == 8) && n)
        t->filter[n - 1] = '\0';
    else if (key >= ' ' && key < KEY_ERASE && n + 1 < sizeof t->filter)
        memcpy(t->filter + n, (char[]){(char)key, '\0'}, 2);
}

/* False: the end.  *again: what is to be shown takes another look. */
static bool
take_key(struct top *t, int key, bool *again)
{
    const struct top_view *v = t->typing ? NULL : top_view_by_key(key);
    int page = t->screen.rows > 4 ? t->screen.rows - 4 : 1;
    if (t->typing) {
        type(t, key);
        top_arrange(t);
        return true;
    }
    if (v) {
        set_view(t, v);
        *again = true;
        return true;
    }
    switch (key) {
    case '<':
    case KEY_LEFT: sort_by(t, t->column - 1); break;
    case '>':
    case KEY_RIGHT: sort_by(t, t->column + 1); break;
    case 'n': sort_by(t, -1); break;
    case 'r':
        t->reverse = !t->reverse;
        sort_by(t, t->column);
        break;
    case '+': set_interval(t, t->interval_us + (t->interval_us < 1000000 ? 100000 : 500000)); break;
    case '-':
        set_interval(t, t->interval_us - (t->interval_us <= 1000000 ? 100000 : 500000));
        break;
    case '/':
        t->typing = true;
        *t->filter = '\0';
        top_arrange(t);
        break;
    case KEY_ESCAPE:
        *t->filter = '\0';
        t->help = false;
        top_arrange(t);
        break;
    case ' ': t->paused = !t->paused; break;
    case 'h':
    case '?': t->help = !t->help; break;
    case KEY_UP: scroll(t, -1); break;
    case KEY_DOWN: scroll(t, 1); break;
    case KEY_PAGE_UP: scroll(t, -page); break;
    case KEY_PAGE_DOWN: scroll(t, page); break;
    case KEY_HOME: t->first = 0; break;
    case 'Q':
    case 'x': return false;
    default: break;
    }
    return true;
}

/* ------------------------------------------------------------------------- loop */

/* The screen takes keys until the time for the next look.  False: the end. */
static bool
wait_screen(struct top *t, int64_t until_us)
{
    struct remote *r = &t->c->remote;
    bool again = false;
    while (!signals_pending()) {
        int64_t left = t->paused ? INTERVAL_MAX : until_us - signals_clock_us(CLOCK_MONOTONIC);
        if (left <= 0 || again)
            return true;
        int err = remote_idle(r, left / 1000 + 1, &t->screen.before, STDIN_FILENO);
        if (terminal_resized(&t->screen) && show(t))
            return false;
        if (err < 0 && err != -EINTR) {
            snprintf(t->lost, sizeof t->lost, "%s", r->why);
            remote_close(r);
        }
        if (err <= 0)
            continue;
        int key = terminal_key();
        if (key == KEY_NONE)
            return false; /* the terminal is gone */
        if (!take_key(t, key, &again) || show(t))
            return false;
    }
    return false;
}

static bool
wait_plain(struct top *t, int64_t until_us)
{
    struct remote *r = &t->c->remote;
    while (!signals_pending()) {
        int64_t left = until_us - signals_clock_us(CLOCK_MONOTONIC);
        if (left <= 0)
            return true;
        int err = remote_idle(r, left / 1000 + 1, &t->screen.before, -1);
        if (err < 0 && err != -EINTR)
            return true; /* the next look says what is wrong */
    }
    return false;
}

static enum status
loop(struct top *t)
{
    enum status st = look_and_show(t);
    for (uint64_t i = 0; !st && (!t->count || i < t->count); i++) {
        int64_t pause = (int64_t)t->interval_us;
        if (t->took_us * LOOK_SHARE > pause)
            pause = t->took_us * LOOK_SHARE;
        int64_t until = signals_clock_us(CLOCK_MONOTONIC) + pause;
        if (!(t->tty ? wait_screen : wait_plain)(t, until))
            break;
        st = look_and_show(t);
    }
    return st;
}

/* ------------------------------------------------------------------------ words */

static enum status
take_sort(struct top *t, const char *name)
{
    const struct top_view *v = t->view;
    t->column = -1;
    for (int k = 0; k < top_columns(v); k++)
        if (!strcmp(v->columns[k].json, name))
            t->column = k;
    if (t->column >= 0 || !strcmp(name, "name"))
        return DPCTL_OK;
    struct of_wr w = of_wr_grow(1024);
    for (int k = 0; k < top_columns(v); k++)
        of_printf(&w, ", %s", v->columns[k].json);
    enum status st = say_usage(t->c, "%s have no column %s: use sort=name%.*s", v->name, name,
                               (int)w.len, (const char *)w.buf);
    of_wr_free(&w);
    return st;
}

/* A view's name, else a part of a match.  Each look resets the arena, so the match is kept apart from it. */
static enum status
take_other(struct ctx *c, const struct key *k, char *word, void *to)
{
    struct top *t = to;
    const struct top_view *view = top_view_by_name(word);
    char *longer = NULL;
    if (view)
        t->view = view;
    else if (asprintf(&longer, "%s%s%s", t->match ? t->match : "", t->match ? "," : "", word) < 0)
        return say_memory(c);
    else
        free(t->match), t->match = longer;
    return DPCTL_OK;
}

static enum status
take_filter(struct ctx *c, const struct key *k, char *text, void *to)
{
    struct top *t = to;
    snprintf(t->filter, sizeof t->filter, "%s", text);
    return DPCTL_OK;
}

#define TO(member) KEY_TO(struct top, member)
static const struct key keys[] = {
    {"interval", key_time, TO(interval_us), .least = INTERVAL_MIN, .most = INTERVAL_MAX},
    {"count", key_number, TO(count), .least = 1, .most = INT32_MAX},
    {"rows", key_number, TO(rows), .least = 1, .most = INT32_MAX},
    {"sort", key_text, TO(sort)},
    {"filter", .take = take_filter},
    {.take = take_other},
};

static enum status
take_words(struct top *t, char **words, int n)
{
    enum status st = keys_take(t->c, keys, words, n, t);
    if (!st && t->match && strcmp(t->view->name, "flows") != 0)
        st = say_usage(
            t->c,
            "unknown word '%s': use ports, queues, flows, meters, groups, tables or processors; "
            "interval=1s, count=N, rows=N, sort=COLUMN, filter=TEXT",
            t->match);
    if (!st && t->match)
        st = top_check_match(t);
    return st || !t->sort ? st : take_sort(t, t->sort);
}

enum status
top_run(struct ctx *c, char **words, int n, bool once)
{
    struct top t = {
        .c = c, .view = top_view_by_name("ports"), .interval_us = 1000000, .count = once};
    enum status st = take_words(&t, words, n);
    if (!st) {
        t.tty = !once && !c->json && terminal_is_there();
        terminal_hold(&t.screen, &t.asking);
        if (t.tty)
            terminal_enter(&t.screen);
        st = loop(&t);
        terminal_leave();
        terminal_release(&t.screen);
    }
    free(t.last.v);
    free(t.match);
    return st;
}

void
top_print_views(struct of_wr *w)
{
    of_printf(w, "\nViews, their keys, and their columns for sort= and in JSON:\n");
    for (const struct top_view *v = top_views; v->name; v++) {
        of_printf(w, "  %c %-8s", v->key, v->name);
        for (int k = 0; k < top_columns(v); k++)
            of_printf(w, " %s", v->columns[k].json);
        of_printf(w, "\n");
    }
}
