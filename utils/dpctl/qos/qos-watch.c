/* SPDX-License-Identifier: Apache-2.0 */
/* qos-watch: what the queues send, as it changes. */
#include <core/command.h>
#include <queues/watch.h>

#include <stdio.h>

#define NAME_WIDTH  20
#define SIDES       (NAME_WIDTH + 8 + 18 + 9 + 9) /* all columns but the bar, with their blanks */
#define KEPT_WIDTH  10                            /* the last column, if a class has a promise */
#define TIMES_WIDTH 14                            /* round trips and waiting, if they are known */

/* --------------------------------------------------------------------- for people */

static bool
is_shown(const struct queue_node *n)
{
    /* The root class has the numbers of the tree's qdisc, too. */
    const struct qos_request *r = &n->entry->config;
    return r->object_type == OFP_QOS_CLASS || (!r->sched->classful && !n->depth);
}

static void
print_name_column(struct of_wr *w, const struct queue_node *q)
{
    struct of_wr name = of_wr_grow(256);
    of_printf(&name, "%*s", q->depth * 2, "");
    if (q->entry->config.object_type == OFP_QOS_QDISC && q->entry->config.class_id)
        of_printf(&name, "queue %u ", (unsigned)q->entry->config.class_id);
    queues_print_name(&name, &q->entry->config);
    size_t n = 0, columns = 0; /* a class's name is UTF-8 */
    for (size_t len; n < name.len && columns < NAME_WIDTH - 1; n += len, columns++)
        len = of_utf8_len(name.buf + n, name.len - n);
    of_printf(w, "%.*s%*s", (int)n, (const char *)name.buf, (int)(NAME_WIDTH - columns), "");
    of_wr_free(&name);
}

/* What the switch says beyond entries. */
struct extras {
    struct queue_rows promises, latencies;
};

static enum status
ask_extras(const struct watch *watch, const struct queue_view *view, struct extras *out)
{
    out->latencies = queues_latency_if_known(watch->c);
    return queues_ask_promises(watch->c, view, &out->promises);
}

/* Where there is room beside the other columns. */
static bool
shows_times(const struct watch *watch, const struct extras *x)
{
    return x->latencies.n &&
           watch->columns > SIDES + TIMES_WIDTH + (x->promises.n ? KEPT_WIDTH : 0);
}

static int
bar_width(const struct watch *watch, const struct extras *x)
{
    return watch->columns - SIDES - (shows_times(watch, x) ? TIMES_WIDTH : 0) -
           (x->promises.n ? KEPT_WIDTH : 0);
}

/* "  97.3% !!": less than its rate, drops, or too long a delay, for as long as the promise says. */
static void
print_kept(struct of_wr *w, const struct watch *watch, const struct queue_node *n,
           const struct queue_rows *promises)
{
    struct queue_promise p;
    if (!queues_find_promise(promises, n, &p))
        return;
    double kept = queues_kept(&p);
    const char *marks[] = {"", "!", "!!", "!!!"};
    const char *mark = marks[p.broken + p.drops + p.slow];
    if (kept >= 0)
        of_printf(w, " %5.1f%% ", 100 * kept);
    else if (*mark)
        of_printf(w, "%8s", "");
    of_printf(w, *mark && watch->colour ? "\033[31m%s\033[0m" : "%s", mark);
}

/* The medians of round trips and of waiting. */
static void
print_times(struct of_wr *w, const struct queue_node *n, const struct queue_rows *latencies)
{
    struct queue_latency l;
    char rtt[QUEUE_TIME_TEXT], wait[QUEUE_TIME_TEXT];
    if (!queues_find_latency(latencies, n, &l))
        l.rtt.p50 = l.wait.p50 = QUEUE_NO_TIME;
    of_printf(w, " %6s %6s", queues_print_time(l.rtt.p50, rtt),
              queues_print_time(l.wait.p50, wait));
}

static void
print_queue(struct of_wr *w, const struct watch *watch, const struct queue_node *n,
            const struct watch_delta *d, const struct extras *x)
{
    char rate[16], least[16], most[16], backlog[16], both[40];
    const struct qos_counters *k = &n->entry->counters;
    print_name_column(w, n);
    of_printf(w, "%7s ", watch_number(d->bps, rate));
    watch_bar(w, watch, n, d->bps, bar_width(watch, x));
    snprintf(both, sizeof both, "%s/%s", watch_number(n->rate, least), watch_number(n->ceil, most));
    of_printf(w, " %-14s ", n->rate || n->ceil ? both : "");
    of_printf(w, "%8s ", watch_number(k->backlog_bytes, backlog));
    watch_drops(w, watch, d->drops);
    if (shows_times(watch, x))
        print_times(w, n, &x->latencies);
    print_kept(w, watch, n, &x->promises);
}

static void
print_heading(struct of_wr *w, const struct watch *watch, const struct extras *x)
{
    int bar = bar_width(watch, x);
    of_printf(w, "%-*s%7s %-*s %-14s %8s %8s%s%s", NAME_WIDTH, "queue", "bit/s", bar > 3 ? bar : 0,
              "", "rate/ceil", "backlog", "dropped", shows_times(watch, x) ? " rtt ms   wait" : "",
              x->promises.n ? "   kept" : "");
}

static enum status
queues_text(struct of_wr *w, const struct watch *watch, const struct queue_view *view,
            int64_t elapsed)
{
    int line = 0;
    struct extras x;
    enum status st = ask_extras(watch, view, &x);
    if (st)
        return st;
    print_heading(w, watch, &x);
    bool room = watch_end_line(w, watch, &line);
    for (size_t i = 0; i < view->n && room; i++) {
        const struct queue_node *n = &view->v[i];
        if (watch_begins(view, i)) {
            watch_port(w, n);
            room = watch_end_line(w, watch, &line);
        }
        if (!room || !is_shown(n))
            continue;
        struct watch_delta d = watch_delta(watch, n, elapsed);
        print_queue(w, watch, n, &d, &x);
        room = watch_end_line(w, watch, &line);
    }
    if (!view->n)
        of_printf(w, "no queues");
    watch_end(w, watch, room);
    return DPCTL_OK;
}

/* ------------------------------------------------------------------- for programs */

static void
json_queue(struct of_json *j, const struct watch *watch, const struct queue_node *n,
           const struct extras *x, int64_t elapsed)
{
    const struct qos_counters *k = &n->entry->counters;
    struct watch_delta d = watch_delta(watch, n, elapsed);
    queues_json_place(j, n);
    of_json_uint(j, "rate_bps", n->rate);
    of_json_uint(j, "ceil_bps", n->ceil);
    of_json_uint(j, "sent_bps", d.bps);
    of_json_uint(j, "sent_pps", d.pps);
    of_json_uint(j, "over_bps", n->rate ? watch_above(d.bps, n->rate) : 0);
    of_json_uint(j, "drops", d.drops);
    of_json_uint(j, "overlimits", d.overlimits);
    of_json_uint(j, "backlog_bytes", k->backlog_bytes);
    of_json_uint(j, "backlog_packets", k->backlog_packets);
    of_json_object(j, "total");
    of_json_uint(j, "bytes", k->bytes);
    of_json_uint(j, "packets", k->packets);
    of_json_uint(j, "drops", k->drops);
    of_json_end_object(j);
    queues_json_promise(j, &x->promises, n);
    queues_json_node_latency(j, n, &x->latencies);
}

static enum status
queues_json(struct of_wr *w, const struct watch *watch, const struct queue_view *view,
            int64_t elapsed)
{
    double now = watch_time();
    bool first = true;
    struct extras x;
    enum status st = ask_extras(watch, view, &x);
    for (size_t i = 0; i < view->n && !st; i++) {
        if (!is_shown(&view->v[i]))
            continue;
        struct of_json j = of_json(w);
        of_printf(w, first ? "" : "\n");
        first = false;
        of_json_object(&j, NULL);
        of_json_real(&j, "time", now);
        of_json_real(&j, "interval", (double)elapsed / 1e6);
        json_queue(&j, watch, &view->v[i], &x, elapsed);
        of_json_end_object(&j);
    }
    return st;
}

static enum status
qos_watch(struct ctx *c, const struct command *self, char **words, int n)
{
    return watch_run(c, words, n, queues_text, queues_json, false);
}

static const char watch_help[] =
    "  port=N           only this port\n"
    "  interval=1s      time between two looks (at least 100ms)\n"
    "  count=N          ends after N looks (default: at SIGINT, ^C)\n"
    "Columns: the queue's rate now; a bar as long as its ceiling ('=' up to the guaranteed rate, '+'\n"
    "borrowed, '|' where the guaranteed rate ends); the guaranteed rate and the ceiling; the backlog;\n"
    "packets dropped in the interval; where it was measured the median round trip of the connections that\n"
    "pass, and how long packets wait in the queue (latency); of classes with promise=TIME the part of the\n"
    "time in which packets waited that they got their rate, and ! for each that now lasts as long as the\n"
    "promise: less than the rate, drops, a delay above delay=TIME.  Without a terminal each look is a block of lines, with --json\n"
    "a line for each queue.  A terminal gets colours unless NO_COLOR is set.";

static const struct command rows[] = {
    {.name = "qos-watch",
     .subject = SUBJECT_QOS,
     .first = {TASK_SHAPE, "qos-watch port=eth1", "queues as they change"},
     .args = "[port=N] [interval=TIME] [count=N]",
     .help = "the queues' rates, backlog and drops as they change",
     .text = watch_help,
     .examples = "qos-watch port=2\nqos-watch interval=500ms count=20",
     .run = qos_watch,
     .asks = true},
};

const struct command_table commands_qos_watch = COMMAND_TABLE(rows);
