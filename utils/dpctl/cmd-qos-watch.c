/* SPDX-License-Identifier: Apache-2.0 */
/* qos-watch: what the queues send, as it changes. */
#include "qos-cmd.h"

#include <qos/units.h>

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define NAME_WIDTH   20
#define SIDES        (NAME_WIDTH + 8 + 18 + 9 + 9) /* all columns but the bar, with their blanks */
#define INTERVAL_MIN 100000                        /* us between two looks, at least */

struct watch {
    struct ctx *c;
    uint32_t port;
    uint64_t interval_us, count;
    bool tty, colour; /* a screen; with colours */
    int rows, columns;
    sigset_t before;
    struct last { /* counters of the look before, sorted */
        uint64_t key, bytes, packets, drops, overlimits;
    } *last;
    size_t n_last;
    int64_t last_us; /* 0: there was none */
};

/* ---------------------------------------------------------------- one look at it */

static int64_t
now_us(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* Port, direction, class and object of an entry in one number. */
static uint64_t
key_of(const struct qos_view_node *n)
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

/* What happened since the look before. */
struct delta {
    uint64_t bps, pps, drops, overlimits;
};

static uint64_t
less(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0; /* made anew: it begins at 0 */
}

static struct delta
delta_of(const struct watch *w, const struct qos_view_node *n, int64_t elapsed_us)
{
    const struct qos_counters *k = &n->entry->counters;
    struct last key = {.key = key_of(n)};
    const struct last *was = bsearch(&key, w->last, w->n_last, sizeof key, by_key);
    double s = (double)elapsed_us / 1e6;
    if (!was || elapsed_us <= 0)
        return (struct delta){0};
    return (struct delta){(uint64_t)((double)less(k->bytes, was->bytes) * 8 / s),
                          (uint64_t)((double)less(k->packets, was->packets) / s),
                          less(k->drops, was->drops), less(k->overlimits, was->overlimits)};
}

static enum status
remember(struct watch *w, const struct qos_view *view)
{
    struct last *v = realloc(w->last, (view->n + 1) * sizeof *v);
    if (!v)
        return failed(w->c, "out of memory");
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

/* Three digits and a unit: "9.41M". */
static const char *
short_number(uint64_t n, char buf[16])
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

static void
print_bar(struct of_wr *w, const struct watch *watch, const struct qos_view_node *n, uint64_t bps,
          int width)
{
    if (width < 4)
        return;
    int inner = width - 2;
    uint64_t full = n->ceil ? n->ceil : n->rate;
    double scale = full ? (double)inner / (double)full : 0;
    int filled = (int)((double)bps * scale + 0.5), mark = (int)((double)n->rate * scale + 0.5);
    filled = filled > inner ? inner : filled;
    bool over = bps > n->rate && n->rate;
    of_printf(w, "[");
    if (watch->colour)
        of_printf(w, over ? "\033[33m" : "\033[32m");
    for (int i = 0; i < inner; i++) {
        char mine = i < filled ? (i < mark || !n->rate ? '=' : '+') : ' ';
        of_wr8(w, (uint8_t)(i == mark && mark < inner && mark > 0 && i >= filled ? '|' : mine));
    }
    of_printf(w, "%s]", watch->colour ? "\033[0m" : "");
}

static bool
is_shown(const struct qos_view_node *n)
{
    /* A class has its numbers itself; the tree's qdisc says nothing that the root class doesn't. */
    const struct qos_request *r = &n->entry->config;
    return r->object_type == OFP_QOS_CLASS || (!r->sched->classful && !n->depth);
}

static void
print_name_column(struct of_wr *w, const struct qos_view_node *n)
{
    struct of_wr name = of_wr_grow(256);
    of_printf(&name, "%*s", n->depth * 2, "");
    if (n->entry->config.object_type == OFP_QOS_QDISC && n->entry->config.class_id)
        of_printf(&name, "queue %u ", (unsigned)n->entry->config.class_id);
    print_queue_name(&name, &n->entry->config);
    of_printf(w, "%-*.*s ", NAME_WIDTH - 1, (int)(name.len < NAME_WIDTH ? name.len : NAME_WIDTH - 1),
              (const char *)name.buf);
    of_wr_free(&name);
}

static void
print_queue(struct of_wr *w, const struct watch *watch, const struct qos_view_node *n,
            const struct delta *d)
{
    char rate[16], least[16], most[16], backlog[16], drops[16], both[40];
    const struct qos_counters *k = &n->entry->counters;
    print_name_column(w, n);
    of_printf(w, "%7s ", short_number(d->bps, rate));
    print_bar(w, watch, n, d->bps, watch->columns - SIDES);
    snprintf(both, sizeof both, "%s/%s", short_number(n->rate, least),
             short_number(n->ceil, most));
    of_printf(w, " %-14s ", n->rate || n->ceil ? both : "");
    of_printf(w, "%8s ", short_number(k->backlog_bytes, backlog));
    if (watch->colour && d->drops)
        of_printf(w, "\033[31m%8s\033[0m", short_number(d->drops, drops));
    else
        of_printf(w, "%8s", short_number(d->drops, drops));
}

/* Ends a line of the screen; false: there is no room for another one. */
static bool
end_line(struct of_wr *w, const struct watch *watch, int *line)
{
    if (watch->tty)
        of_printf(w, "\033[K\r\n");
    else
        of_printf(w, "\n");
    return !watch->tty || ++*line < watch->rows - 1;
}

static void
print_heading(struct of_wr *w, const struct watch *watch)
{
    int bar = watch->columns - SIDES;
    of_printf(w, "%-*s%7s %-*s %-14s %8s %8s", NAME_WIDTH, "queue", "bit/s", bar > 3 ? bar : 0, "",
              "rate/ceil", "backlog", "dropped");
}

/* The whole picture as one write, so that a slow terminal doesn't flicker. */
static void
print_look(struct of_wr *w, struct watch *watch, const struct qos_view *view, int64_t elapsed)
{
    uint32_t port = 0;
    enum qos_direction dir = QOS_OUT;
    int line = 0;
    bool room = true, first = true;
    if (watch->tty)
        of_printf(w, "\033[H");
    print_heading(w, watch);
    room = end_line(w, watch, &line);
    for (size_t i = 0; i < view->n && room; i++) {
        const struct qos_view_node *n = &view->v[i];
        if (first || n->entry->config.port_no != port || n->dir != dir) {
            port = n->entry->config.port_no;
            dir = n->dir;
            first = false;
            of_printf(w, "port ");
            of_print_number(w, &of_fmt_PORT, port);
            of_printf(w, dir == QOS_IN ? ", in" : "");
            room = end_line(w, watch, &line);
        }
        if (!room || !is_shown(n))
            continue;
        struct delta d = delta_of(watch, n, elapsed);
        print_queue(w, watch, n, &d);
        room = end_line(w, watch, &line);
    }
    if (!view->n)
        of_printf(w, "no queues");
    if (!room)
        of_printf(w, "... more than fits here: port=N shows one port's");
    if (watch->tty)
        of_printf(w, "\033[J");
}

/* ------------------------------------------------------------------- for programs */

static void
json_look(struct of_wr *w, const struct watch *watch, const struct qos_view *view, int64_t elapsed)
{
    double now = (double)now_us(CLOCK_REALTIME) / 1e6;
    bool first = true;
    for (size_t i = 0; i < view->n; i++) {
        const struct qos_view_node *n = &view->v[i];
        const struct qos_counters *k = &n->entry->counters;
        const struct qos_request *r = &n->entry->config;
        struct delta d = delta_of(watch, n, elapsed);
        if (!is_shown(n))
            continue;
        of_printf(w, "%s{\"time\": %.3f, \"interval\": %.3f, \"port_no\": ", first ? "" : "\n", now,
                  (double)elapsed / 1e6);
        first = false;
        of_json_number(w, &of_fmt_PORT, r->port_no);
        of_printf(w, ", \"direction\": \"%s\", \"object\": \"%s\", \"sched\": \"%s\", "
                     "\"class_id\": %" PRIu32 ", \"parent_id\": %" PRIu32,
                  n->dir == QOS_IN ? "in" : "out", qos_object_name(r->object_type), r->sched->name,
                  r->class_id, n->entry->parent_id);
        of_printf(w, ", \"rate_bps\": %" PRIu64 ", \"ceil_bps\": %" PRIu64 ", \"sent_bps\": %" PRIu64
                     ", \"sent_pps\": %" PRIu64 ", \"over_bps\": %" PRIu64,
                  n->rate, n->ceil, d.bps, d.pps, n->rate ? less(d.bps, n->rate) : 0);
        of_printf(w, ", \"drops\": %" PRIu64 ", \"overlimits\": %" PRIu64 ", \"backlog_bytes\": "
                     "%" PRIu32 ", \"backlog_packets\": %" PRIu32,
                  d.drops, d.overlimits, k->backlog_bytes, k->backlog_packets);
        of_printf(w, ", \"total\": {\"bytes\": %" PRIu64 ", \"packets\": %" PRIu64
                     ", \"drops\": %" PRIu64 "}}",
                  k->bytes, k->packets, k->drops);
    }
}

/* ------------------------------------------------------------------------- the loop */

static volatile sig_atomic_t interrupted;

static void
on_signal(int number)
{
    interrupted = 1;
}

static bool
signal_pending(void)
{
    sigset_t pending;
    sigpending(&pending);
    return interrupted || sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM) ||
           sigismember(&pending, SIGHUP);
}

/* A serial line tells no size: what such terminals have. */
static void
measure(struct watch *w)
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

static enum status
write_look(struct watch *w, const struct qos_view *view, int64_t elapsed)
{
    struct of_wr out = of_wr_grow(1u << 28);
    if (w->c->json) {
        json_look(&out, w, view, elapsed);
        if (out.len)
            return put_line(w->c, &out);
        of_wr_free(&out);
        return DPCTL_OK;
    }
    measure(w);
    print_look(&out, w, view, elapsed);
    if (!w->tty)
        return put_line(w->c, &out);
    enum status st = DPCTL_OK;
    if (fwrite(out.buf, 1, out.len, stdout) != out.len || fflush(stdout))
        st = failed(w->c, "writing the answer failed");
    of_wr_free(&out);
    return st;
}

static enum status
look(struct watch *w)
{
    struct qos_view view;
    enum status st = view_queues(w->c, w->port, QOS_ALL_CLASSES, NULL, &view);
    int64_t now = now_us(CLOCK_MONOTONIC);
    if (!st && w->last_us)
        st = write_look(w, &view, now - w->last_us);
    st = st ? st : remember(w, &view);
    w->last_us = now;
    return st;
}

/* Until then; what the switch sends by itself is passed over. */
static enum status
wait_until(struct watch *w, int64_t until_us)
{
    struct remote *r = &w->c->remote;
    struct of_bytes raw;
    int err = 0;
    r->sigmask = &w->before;
    while (!err && !signal_pending() && now_us(CLOCK_MONOTONIC) < until_us) {
        err = remote_recv(r, (until_us + 999) / 1000, &raw);
        if (err == -EINTR)
            err = 0;
    }
    r->sigmask = NULL;
    return err && err != -ETIMEDOUT ? failed(w->c, "%s", r->why) : DPCTL_OK;
}

static enum status
loop(struct watch *w)
{
    enum status st = look(w); /* the first one: only to compare with */
    int64_t next = w->last_us;
    for (uint64_t i = 0; !st && (!w->count || i < w->count); i++) {
        next += (int64_t)w->interval_us;
        if (next < now_us(CLOCK_MONOTONIC))
            next = now_us(CLOCK_MONOTONIC); /* it couldn't keep up */
        of_arena_reset(&w->c->arena);
        st = wait_until(w, next);
        if (st || signal_pending())
            break;
        st = look(w);
    }
    return st;
}

/* --------------------------------------------------------------------- the command */

static enum status
take_word(struct watch *w, const char *word)
{
    const char *eq = strchr(word, '='), *value = eq ? eq + 1 : word;
    char why[256];
    uint64_t v;
    if (!eq || !strncmp(word, "port=", 5)) {
        if (of_parse_number(&w->c->parse, "port", value, &of_fmt_PORT, 32, &v))
            return bad_parse(w->c, -EINVAL);
        w->port = (uint32_t)v;
    } else if (!strncmp(word, "interval=", 9)) {
        if (qos_parse_time(value, &w->interval_us, 1000000, why, sizeof why))
            return bad_args(w->c, "interval: %s", why);
        if (w->interval_us < INTERVAL_MIN)
            return bad_args(w->c, "interval=%s: 100ms is the shortest", value);
    } else if (!strncmp(word, "count=", 6)) {
        if (of_parse_number(&w->c->parse, "count", value, &of_fmt_DEC, 32, &v) || !v)
            return v ? bad_parse(w->c, -EINVAL) : bad_args(w->c, "count=0: 1 or more is right");
        w->count = v;
    } else {
        return bad_args(w->c, "%s is unknown: port=N, interval=1s and count=N are right", word);
    }
    return DPCTL_OK;
}

/* The terminal as it was: the cursor visible, below what was shown. */
static void
leave_screen(const struct watch *w)
{
    if (w->tty)
        printf("\033[0m\033[?25h\033[%d;1H\033[K\n", w->rows);
    fflush(stdout);
}

enum status
qos_watch(struct ctx *c, char **words, int n)
{
    struct watch w = {.c = c, .port = OFPP_ANY, .interval_us = 1000000};
    struct sigaction sa = {.sa_handler = on_signal};
    const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    enum status st = DPCTL_OK;
    sigset_t block;
    for (int i = 0; !st && i < n; i++)
        for (char *save, *s = strtok_r(words[i], ",", &save); s && !st;
             s = strtok_r(NULL, ",", &save))
            st = take_word(&w, s);
    if (st)
        return st;
    bool dumb = !term || !*term || !strcmp(term, "dumb");
    w.tty = !c->json && isatty(STDOUT_FILENO) && !dumb;
    w.colour = w.tty && (!no_colour || !*no_colour);
    sigemptyset(&block);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        sigaddset(&block, signals[i]);
        sigaction(signals[i], &sa, NULL);
    }
    sigprocmask(SIG_BLOCK, &block, &w.before);
    measure(&w);
    if (w.tty)
        printf("\033[?25l\033[2J\033[H");
    st = loop(&w);
    leave_screen(&w);
    sigprocmask(SIG_SETMASK, &w.before, NULL);
    free(w.last);
    return st;
}
