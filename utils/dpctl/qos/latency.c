/* SPDX-License-Identifier: Apache-2.0 */
/* latency: how long packets take, by queue. */
#include <core/ask.h>
#include <core/command.h>
#include <core/keys.h>
#include <core/say.h>
#include <core/view.h>
#include <queues/queues.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct asked {
    uint32_t port, class;
};
static const struct key keys[] = {
    {"port", key_port, KEY_TO(struct asked, port), .bare = KEY_BARE},
    {"queue", key_number, KEY_TO(struct asked, class), .bare = KEY_BARE},
    {"class", key_number, KEY_TO(struct asked, class)},
    {NULL},
};

/* What a line has beside the figures. */
struct line {
    struct queue_latency l;
    char name[QOS_NAME_ROOM]; /* "": none */
    uint32_t promised;        /* DELAY_US; 0: none */
};

static void
describe(struct line *out, const struct queue_latency *l, const struct queue_view *view)
{
    *out = (struct line){.l = *l};
    for (size_t i = 0; i < view->n; i++) {
        const struct qos_request *r = &view->v[i].entry->config;
        if (r->object_type != OFP_QOS_CLASS || r->port_no != l->port_no ||
            r->class_id != l->class_id || (view->v[i].dir == QOS_IN) != l->in)
            continue;
        qos_name_get(&r->values.v[QOS_NAME], out->name);
        out->promised = (uint32_t)r->values.v[QOS_DELAY];
    }
}

/* The median above the path's least: what the queue, and all queues behind it, add now. */
static uint32_t
added(const struct queue_latency *l)
{
    uint32_t now = l->rtt.p50;
    return now == QUEUE_NO_TIME || l->path == QUEUE_NO_TIME ? QUEUE_NO_TIME
           : now > l->path                                  ? now - l->path
                                                            : 0;
}

static void
json_lines(struct of_wr *w, const struct line *v, size_t n)
{
    struct of_json json = of_json(w), *j = &json;
    of_json_object(j, NULL);
    of_json_array(j, "queues");
    for (size_t i = 0; i < n; i++) {
        const struct queue_latency *l = &v[i].l;
        of_json_object(j, NULL);
        of_json_number(j, "port_no", &of_fmt_PORT, l->port_no);
        of_json_text(j, "direction", l->in ? "in" : "out");
        of_json_uint(j, "queue", l->class_id);
        if (*v[i].name)
            of_json_text(j, "name", v[i].name);
        of_json_uint(j, "seconds", l->seconds);
        queues_json_latency(j, l);
        if (added(l) != QUEUE_NO_TIME)
            of_json_uint(j, "added_us", added(l));
        if (v[i].promised)
            of_json_uint(j, "promised_us", v[i].promised);
        of_json_end_object(j);
    }
    of_json_end_array(j);
    of_json_end_object(j);
}

static void
print_queue(struct of_wr *w, const struct line *k)
{
    const struct queue_latency *l = &k->l;
    char what[64];
    if (!l->class_id)
        snprintf(what, sizeof what, "(the port)");
    else if (l->class_id == QOS_CLASS_DEFAULT)
        snprintf(what, sizeof what, "default");
    else
        snprintf(what, sizeof what, "%" PRIu32 "%s%s", l->class_id, *k->name ? " " : "", k->name);
    of_printf(w, " %-20s", what);
}

static void
print_line(struct of_wr *w, const struct line *k)
{
    const struct queue_latency *l = &k->l;
    const uint32_t times[] = {l->rtt.p50, l->rtt.p90,  l->rtt.p99,  l->path,
                              added(l),   l->wait.p50, l->wait.p90, l->wait.p99};
    char text[QUEUE_TIME_TEXT];
    struct of_wr port = of_wr_grow(64);
    of_print_number(&port, &of_fmt_PORT, l->port_no);
    of_wr8(&port, 0);
    of_printf(w, "\n%-5s", (const char *)port.buf);
    of_wr_free(&port);
    print_queue(w, k);
    of_printf(w, " %-3s", l->in ? "in" : "out");
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        of_printf(w, "%s %7s", i == 5 ? "  |" : "", queues_print_time(times[i], text));
    if (l->wait.samples)
        of_printf(w, "  %s", queues_latency_source(l->source));
    if (k->promised)
        of_printf(w, ", promised %s%s", queues_print_time(k->promised, text),
                  l->wait.p90 != QUEUE_NO_TIME && l->wait.p90 > k->promised ? " !" : "");
}

static void
print_lines(struct of_wr *w, const struct line *v, size_t n)
{
    of_printf(w,
              "%30s %-39s  | %s\n"
              "%-5s %-20s %-3s %7s %7s %7s %7s %7s  | %7s %7s %7s  by",
              "", "round trip behind the queue, ms", "waiting in the queue, ms", "port", "queue",
              "", "median", "90 %", "99 %", "path", "added", "median", "90 %", "99 %");
    for (size_t i = 0; i < n; i++)
        print_line(w, &v[i]);
}

static enum status
latency(struct ctx *c, const struct command *self, char **words, int n)
{
    struct asked q = {OFPP_ANY, QOS_ALL_CLASSES};
    struct queue_rows rows;
    struct queue_view view = {0};
    enum status st = keys_take(c, keys, words, n, &q);
    st = st ? st : queues_ask_latency(c, q.port, q.class, &rows);
    if (!st && !rows.n && q.class != QOS_ALL_CLASSES) /* is there such a queue? */
        st = queues_view(c, q.port, q.class, NULL, &view);
    if (!st && !rows.n && q.class != QOS_ALL_CLASSES && !view.n)
        fprintf(stderr, "no port has a class %u: qos-show lists those that there are\n",
                (unsigned)q.class);
    if (!st && !rows.n && !c->json)
        return queues_say_no_latency(c);
    st = st ? st : queues_view(c, q.port, QOS_ALL_CLASSES, NULL, &view);
    if (st)
        return st;
    struct line *v = of_arena_array(&c->arena, rows.n + 1, sizeof *v);
    if (!v)
        return say_memory(c);
    for (size_t i = 0; i < rows.n; i++) {
        const struct queue_latency l = queues_latency_at(&rows, i);
        describe(&v[i], &l, &view);
    }
    struct of_wr w = of_wr_grow(VIEW_MAX);
    (c->json ? json_lines : print_lines)(&w, v, rows.n);
    return view_line(c, &w);
}

static const char latency_help[] =
    "  port=N, queue=N  only these\n"
    "Round trips are those of TCP connections (and pings) that pass, from the queue they leave by to the\n"
    "other end and back: of the last ten seconds, with the path's least of ten minutes and what the\n"
    "median is above it.  Waiting is the time in the queue itself: the scheduler's own figure (CAKE,\n"
    "CoDel, FQ-CoDel, PIE), or what waits by the rate that the queue gets.  The switch begins to read\n"
    "that when it is asked, and goes on for five minutes; and always for a class with delay=TIME.";

static const struct command rows[] = {
    {.name = "latency",
     .alias = "qos-latency",
     .subject = SUBJECT_QOS,
     .first = {TASK_FIND, "latency port=eth1", "how long packets take, by queue"},
     .args = "[port=N] [queue=N]",
     .help = "round trips and waiting times of what passes, by queue",
     .text = latency_help,
     .examples = "latency\nlatency port=2 queue=10",
     .run = latency,
     .asks = true},
};

const struct command_table commands_latency = COMMAND_TABLE(rows);
