/* SPDX-License-Identifier: Apache-2.0 */
#include <core/say.h>
#include <core/signals.h>
#include <core/view.h>
#include <core/whole.h>
#include <queues/keys.h>
#include <queues/watch.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct last {
    uint64_t key, bytes, packets, drops, overlimits;
};

/* ------------------------------------------------------------------------ counters */

/* Port, direction, class and object of an entry in one number. */
static uint64_t
key_of(const struct queue_node *n)
{
    const struct qos_request *r = &n->entry->config;
    return (uint64_t)r->port_no << 32 | (uint64_t)n->dir << 31 |
           (uint64_t)(r->object_type & 1) << 30 | (r->class_id & 0xffff);
}

static int
by_key(const void *a, const void *b)
{
    uint64_t x = ((const struct last *)a)->key, y = ((const struct last *)b)->key;
    return x < y ? -1 : x > y;
}

double
watch_time(void)
{
    return (double)signals_clock_us(CLOCK_REALTIME) / 1e6;
}

uint64_t
watch_above(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* A queue that was replaced counts from 0 again. */
struct watch_delta
watch_delta(const struct watch *w, const struct queue_node *n, int64_t elapsed_us)
{
    const struct qos_counters *k = &n->entry->counters;
    struct last key = {.key = key_of(n)};
    const struct last *was = bsearch(&key, w->last, w->n_last, sizeof key, by_key);
    double s = (double)elapsed_us / 1e6;
    if (!was || elapsed_us <= 0)
        return (struct watch_delta){0};
    return (struct watch_delta){whole((double)watch_above(k->bytes, was->bytes) * 8 / s),
                                whole((double)watch_above(k->packets, was->packets) / s),
                                watch_above(k->drops, was->drops),
                                watch_above(k->overlimits, was->overlimits)};
}

static enum status
remember(struct watch *w, const struct queue_view *view)
{
    struct last *v = realloc(w->last, (view->n + 1) * sizeof *v);
    if (!v)
        return say_memory(w->c);
    w->last = v;
    w->n_last = view->n;
    for (size_t i = 0; i < view->n; i++) {
        const struct qos_counters *k = &view->v[i].entry->counters;
        v[i] = (struct last){key_of(&view->v[i]), k->bytes, k->packets, k->drops, k->overlimits};
    }
    qsort(v, w->n_last, sizeof *v, by_key);
    return DPCTL_OK;
}

/* --------------------------------------------------------------------- for people */

const char *
watch_number(uint64_t n, char buf[16])
{
    static const char units[] = " kMGTP";
    double v = (double)n;
    int u = 0;
    for (; v >= 999.5 && u < 5; u++)
        v /= 1000;
    if (!u)
        snprintf(buf, 16, "%u", (unsigned)n); /* below 1000 */
    else
        snprintf(buf, 16, v < 9.995 ? "%.2f%c" : v < 99.95 ? "%.1f%c" : "%.0f%c", v, units[u]);
    return buf;
}

static int
at_most(int most, double x)
{
    return x < most ? (int)(x + 0.5) : most;
}

void
watch_bar(struct of_wr *w, const struct watch *watch, const struct queue_node *n, uint64_t bps,
          int width)
{
    if (width < 4)
        return;
    int inner = width - 2;
    uint64_t full = n->ceil ? n->ceil : n->rate;
    double scale = full ? (double)inner / (double)full : 0;
    int filled = at_most(inner, (double)bps * scale),
        mark = at_most(inner, (double)n->rate * scale);
    bool over = bps > n->rate && n->rate;
    of_printf(w, "[");
    if (watch->colour)
        of_printf(w, over ? "\033[33m" : "\033[32m");
    for (int i = 0; i < inner; i++) {
        char mine = i < filled ? (i < mark || !n->rate ? '=' : '+') : ' ';
        of_wr8(w, (uint8_t)(i == mark && mark > 0 && i >= filled ? '|' : mine));
    }
    of_printf(w, "%s]", watch->colour ? "\033[0m" : "");
}

void
watch_drops(struct of_wr *w, const struct watch *watch, uint64_t drops)
{
    char text[16];
    bool red = watch->colour && drops;
    of_printf(w, "%s%8s%s", red ? "\033[31m" : "", watch_number(drops, text), red ? "\033[0m" : "");
}

bool
watch_end_line(struct of_wr *w, const struct watch *watch, int *line)
{
    if (watch->tty)
        of_printf(w, "\033[K\r\n");
    else
        of_printf(w, "\n");
    return !watch->tty || ++*line < watch->rows - 1;
}

bool
watch_begins(const struct queue_view *view, size_t i)
{
    const struct queue_node *n = &view->v[i];
    return !i || n->entry->config.port_no != n[-1].entry->config.port_no || n->dir != n[-1].dir;
}

void
watch_port(struct of_wr *w, const struct queue_node *n)
{
    of_printf(w, "port ");
    of_print_number(w, &of_fmt_PORT, n->entry->config.port_no);
    of_printf(w, n->dir == QOS_IN ? ", in" : "");
}

void
watch_end(struct of_wr *w, const struct watch *watch, bool room)
{
    if (!room)
        of_printf(w, "... more than fits here: port=N shows one port");
    if (watch->tty)
        of_printf(w, "\033[J");
}

/* ------------------------------------------------------------------------- the loop */

/* A serial line reports no size: 80x24 is what such terminals have. */
static void
measure_terminal(struct watch *w)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    w->rows = 24;
    w->columns = columns && !w->tty ? atoi(columns) : 80;
    if (w->tty && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row && size.ws_col) {
        w->rows = size.ws_row;
        w->columns = size.ws_col;
    }
    w->columns = w->columns < 40 ? 40 : w->columns > 250 ? 250 : w->columns;
    w->rows = w->rows < 4 ? 4 : w->rows;
}

/* One write for the whole look, so that a slow terminal does not flicker. */
static enum status
write_look(struct watch *w, const struct queue_view *view, int64_t elapsed)
{
    struct of_wr out = of_wr_grow(1u << 28);
    measure_terminal(w);
    if (w->tty)
        of_printf(&out, "\033[H");
    enum status st = (w->c->json ? w->json : w->text)(&out, w, view, elapsed);
    if (!st && !w->tty && out.len)
        return view_line(w->c, &out);
    if (!st && w->tty &&
        (out.overflow || fwrite(out.buf, 1, out.len, stdout) != out.len || fflush(stdout)))
        st = say_failed(w->c, "writing the answer failed: %s", strerror(errno));
    of_wr_free(&out);
    return st;
}

static enum status
take_look(struct watch *w)
{
    struct queue_view view;
    enum status st = queues_view(w->c, w->port, QOS_ALL_CLASSES, NULL, &view);
    int64_t now = signals_clock_us(CLOCK_MONOTONIC);
    if (!st && w->last_us)
        st = write_look(w, &view, now - w->last_us);
    st = st ? st : remember(w, &view);
    w->last_us = now;
    return st;
}

/* Waits, and drops what the switch sends meanwhile. */
static enum status
wait_until(struct watch *w, int64_t until_us)
{
    struct remote *r = &w->c->remote;
    struct of_bytes raw;
    int err = 0;
    r->sigmask = &w->before;
    while (!err && !signals_pending() && signals_clock_us(CLOCK_MONOTONIC) < until_us) {
        err = remote_recv(r, (until_us + 999) / 1000, &raw);
        if (err == -EINTR)
            err = 0;
    }
    r->sigmask = NULL;
    return err && err != -ETIMEDOUT ? say_failed(w->c, "%s", r->why) : DPCTL_OK;
}

static enum status
loop(struct watch *w)
{
    enum status st = take_look(w); /* the first look is not shown: it is for comparison */
    int64_t next = w->last_us;
    for (uint64_t i = 0; !st && (!w->count || i < w->count); i++) {
        next += (int64_t)w->interval_us;
        if (next < signals_clock_us(CLOCK_MONOTONIC))
            next = signals_clock_us(CLOCK_MONOTONIC); /* it couldn't keep up */
        of_arena_reset(&w->c->arena);
        st = wait_until(w, next);
        if (st || signals_pending())
            break;
        st = take_look(w);
    }
    return st;
}

/* Makes the cursor visible again, below what was shown. */
static void
leave_screen(const struct watch *w)
{
    if (w->tty)
        printf("\033[0m\033[?25h\033[%d;1H\033[K\n", w->rows);
    fflush(stdout);
}

enum status
watch_run(struct ctx *c, char **words, int n, watch_fn *text, watch_fn *json, bool once)
{
    static const struct key keys[] = {
        {"count", key_number, KEY_TO(struct watch, count), .least = 1, .most = UINT32_MAX},
        {"port", key_port, KEY_TO(struct watch, port), .bare = KEY_BARE_ALL},
        {"interval", key_time, KEY_TO(struct watch, interval_us), .least = 100000,
         .most = 86400000000},
        {NULL},
    };
    struct watch w = {.c = c,
                      .text = text,
                      .json = json,
                      .once = once,
                      .count = once,
                      .port = OFPP_ANY,
                      .interval_us = 1000000};
    const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");
    enum status st = keys_take(c, keys + once, words, n, &w);
    if (st)
        return st;
    bool dumb = !term || !*term || !strcmp(term, "dumb");
    w.tty = !c->json && !once && isatty(STDOUT_FILENO) && !dumb;
    w.colour = w.tty && (!no_colour || !*no_colour);
    signals_hold(&w.before);
    measure_terminal(&w);
    if (w.tty)
        printf("\033[?25l\033[2J\033[H");
    st = loop(&w);
    leave_screen(&w);
    signals_release(&w.before);
    free(w.last);
    return st;
}
