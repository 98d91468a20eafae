/* SPDX-License-Identifier: Apache-2.0 */
/* qos-watch: what the queues send, as it changes. */
#include <core/command.h>
#include <queues/watch.h>

#include <inttypes.h>
#include <stdio.h>

#define NAME_WIDTH 20
#define SIDES      (NAME_WIDTH + 8 + 18 + 9 + 9) /* all columns but the bar, with their blanks */
#define KEPT_WIDTH 10                            /* the last column, if a class has a promise */

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

static int
bar_width(const struct watch *watch, const struct queue_rows *promises)
{
    return watch->columns - SIDES - (promises->n ? KEPT_WIDTH : 0);
}

/* "  97.3% !!": less than its rate, or drops, for as long as the promise says. */
static void
print_kept(struct of_wr *w, const struct watch *watch, const struct queue_node *n,
           const struct queue_rows *promises)
{
    struct queue_promise p;
    if (!queues_find_promise(promises, n, &p))
        return;
    double kept = queues_kept(&p);
    const char *marks[] = {"", "!", "!!"};
    const char *mark = marks[p.broken + p.drops];
    if (kept >= 0)
        of_printf(w, " %5.1f%% ", 100 * kept);
    else if (*mark)
        of_printf(w, "%8s", "");
    of_printf(w, *mark && watch->colour ? "\033[31m%s\033[0m" : "%s", mark);
}

static void
print_queue(struct of_wr *w, const struct watch *watch, const struct queue_node *n,
            const struct watch_delta *d, const struct queue_rows *promises)
{
    char rate[16], least[16], most[16], backlog[16], both[40];
    const struct qos_counters *k = &n->entry->counters;
    print_name_column(w, n);
    of_printf(w, "%7s ", watch_number(d->bps, rate));
    watch_bar(w, watch, n, d->bps, bar_width(watch, promises));
    snprintf(both, sizeof both, "%s/%s", watch_number(n->rate, least), watch_number(n->ceil, most));
    of_printf(w, " %-14s ", n->rate || n->ceil ? both : "");
    of_printf(w, "%8s ", watch_number(k->backlog_bytes, backlog));
    watch_drops(w, watch, d->drops);
    print_kept(w, watch, n, promises);
}

static void
print_heading(struct of_wr *w, const struct watch *watch, const struct queue_rows *promises)
{
    int bar = bar_width(watch, promises);
    of_printf(w, "%-*s%7s %-*s %-14s %8s %8s%s", NAME_WIDTH, "queue", "bit/s", bar > 3 ? bar : 0,
              "", "rate/ceil", "backlog", "dropped", promises->n ? "   kept" : "");
}

static enum status
queues_text(struct of_wr *w, const struct watch *watch, const struct queue_view *view,
            int64_t elapsed)
{
    int line = 0;
    struct queue_rows promises;
    enum status st = queues_ask_promises(watch->c, view, &promises);
    if (st)
        return st;
    print_heading(w, watch, &promises);
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
        print_queue(w, watch, n, &d, &promises);
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
           const struct queue_rows *promises, int64_t elapsed)
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
    queues_json_promise(j, promises, n);
}

static enum status
queues_json(struct of_wr *w, const struct watch *watch, const struct queue_view *view,
            int64_t elapsed)
{
    double now = watch_time();
    bool first = true;
    struct queue_rows promises;
    enum status st = queues_ask_promises(watch->c, view, &promises);
    for (size_t i = 0; i < view->n && !st; i++) {
        if (!is_shown(&view->v[i]))
            continue;
        struct of_json j = of_json(w);
        of_printf(w, first ? "" : "\n");
        first = false;
        of_json_object(&j, NULL);
        of_json_real(&j, "time", now);
        of_json_real(&j, "interval", (double)elapsed / 1e6);
        json_queue(&j, watch, &view->v[i], &promises, elapsed);
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
    "packets dropped in the interval; of classes with promise=TIME the part of the time in which packets\n"
    "waited that they got their rate, and ! for each that now lasts as long as the promise: less than\n"
    "the rate, drops.  Without a terminal each look is a block of lines, with --json\n"
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
