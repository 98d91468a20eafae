/* SPDX-License-Identifier: Apache-2.0 */
/* latency: how long packets take, by queue. */
#include <core/ask.h>
#include <core/command.h>
#include <core/keys.h>
#include <core/say.h>
#include <core/view.h>
#include <queues/map.h>
#include <queues/queues.h>

#include <qos/profile/hosts.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct asked {
    uint32_t port, class;
    const char *host; /* NULL: not given */
};
static const struct key keys[] = {
    {"port", key_port, KEY_TO(struct asked, port), .bare = KEY_BARE},
    {"queue", key_number, KEY_TO(struct asked, class), .bare = KEY_BARE},
    {"class", key_number, KEY_TO(struct asked, class)},
    {"host", key_text, KEY_TO(struct asked, host)},
    {NULL},
};

/* What a line has beside the figures. */
struct line {
    struct queue_latency l;
    const struct queue_rows *segments;
    char name[QOS_NAME_ROOM]; /* "": none */
    uint32_t promised;        /* DELAY_US; 0: none */
    bool kept;                /* of the host that was asked for */
};

/* Of the rows, in one pass through the queues. */
static void
describe(struct line *v, const struct queue_rows *rows, const struct queue_rows *segments,
         const struct queue_view *view)
{
    size_t at;
    for (size_t i = 0; i < rows->n; i++)
        v[i] = (struct line){.l = queues_latency_at(rows, i), .segments = segments};
    for (size_t i = 0; i < view->n; i++) {
        const struct qos_request *r = &view->v[i].entry->config;
        if (r->object_type != OFP_QOS_CLASS || !queues_latency_row(rows, &view->v[i], &at))
            continue;
        qos_name_get(&r->values.v[QOS_NAME], v[at].name);
        v[at].promised = (uint32_t)r->values.v[QOS_DELAY];
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
        queues_json_segments(j, v[i].segments, l);
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

/* Of 100 segments. */
static void
print_again(struct of_wr *w, uint64_t again, uint64_t counted)
{
    if (!counted)
        of_printf(w, " %7s", "-");
    else
        of_printf(w, " %7.*f", again * 10 < counted ? 2 : 1, 100 * (double)again / (double)counted);
}

static void
print_line(struct of_wr *w, const struct line *k)
{
    const struct queue_latency *l = &k->l;
    const uint32_t times[] = {l->rtt.p50, l->rtt.p90,  l->rtt.p99,  l->path,
                              added(l),   l->wait.p50, l->wait.p90, l->wait.p99};
    char text[QUEUE_TIME_TEXT];
    struct queue_segments all, s = {0};
    queues_find_segments(k->segments, l, &all, &s);
    struct of_wr port = of_wr_grow(64);
    of_print_number(&port, &of_fmt_PORT, l->port_no);
    of_wr8(&port, 0);
    of_printf(w, "\n%-5s", (const char *)port.buf);
    of_wr_free(&port);
    print_queue(w, k);
    of_printf(w, " %-3s", l->in ? "in" : "out");
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        of_printf(w, "%s %7s", i == 5 ? "  |" : "", queues_print_time(times[i], text));
    of_printf(w, "  |");
    print_again(w, s.behind, s.counted);
    print_again(w, s.before, s.counted);
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
              "%30s %-39s  | %s  | %s\n"
              "%-5s %-20s %-3s %7s %7s %7s %7s %7s  | %7s %7s %7s  | %7s %7s  waiting by",
              "", "round trip behind the queue, ms", "waiting in the queue, ms", "lost TCP, %",
              "port", "queue", "", "median", "90 %", "99 %", "path", "added", "median", "90 %",
              "99 %", "behind", "before");
    for (size_t i = 0; i < n; i++)
        print_line(w, &v[i]);
}

/* ------------------------------------------------------------------ a host */

/* Of a set that qos-hosts has made, the flow for this host? */
static bool
is_for(const struct map_member *m, struct qos_hosts *host)
{
    uint32_t i;
    host->source = false;
    if (qos_hosts_find(host, &m->flow->match, &i))
        return true;
    host->source = true;
    return qos_hosts_find(host, &m->flow->match, &i);
}

/* The flows of the host, whatever their ports. */
static enum status
find_flows(struct ctx *c, const char *text, struct map_members *out)
{
    struct qos_hosts host = {0};
    char why[256];
    size_t n = 0;
    if (strchr(text, '/') || qos_hosts_parse(&host, text, 0, why, sizeof why))
        return say_usage(c, "host=%s: write an address, as host=10.0.0.5", text);
    enum status st = map_members(c, NULL, out);
    for (size_t i = 0; !st && i < out->n; i++)
        if (is_for(&out->v[i], &host))
            out->v[n++] = out->v[i];
    out->n = n;
    return st;
}

/* Has one of the flows chosen this queue at the port that it was made for? */
static bool
is_chosen(const struct map_members *flows, const struct queue_node *node)
{
    const struct qos_request *r = &node->entry->config;
    char set[32];
    snprintf(set, sizeof set, "hosts:%u", (unsigned)r->port_no);
    for (size_t i = 0; i < flows->n; i++)
        if (flows->v[i].queue == r->class_id && flows->v[i].flow->cookie == qos_map_cookie(set))
            return node->dir != QOS_IN && r->object_type == OFP_QOS_CLASS;
    return false;
}

/* Leaves of the lines those of the queues that the host has alone. */
static enum status
keep_host(struct ctx *c, const struct asked *q, const struct queue_view *view,
          const struct queue_rows *rows, struct line *v, size_t *n)
{
    struct map_members flows = {0};
    size_t found = 0, kept = 0, at;
    enum status st = find_flows(c, q->host, &flows);
    for (size_t i = 0; !st && i < view->n; i++) {
        const struct qos_request *r = &view->v[i].entry->config;
        if (!is_chosen(&flows, &view->v[i]) || (q->port != OFPP_ANY && q->port != r->port_no))
            continue;
        found++;
        if (queues_latency_row(rows, &view->v[i], &at))
            v[at].kept = true;
        else
            fprintf(stderr, "port %u, queue %u, which %s has alone: no samples yet\n",
                    (unsigned)r->port_no, (unsigned)r->class_id, q->host);
    }
    for (size_t i = 0; i < *n; i++)
        if (v[i].kept)
            v[kept++] = v[i];
    *n = kept;
    if (!st && !found)
        return say_failed(
            c,
            "%s has no queue of its own, and round trips are measured by queue, not by "
            "host: dpctl qos-hosts gives each host of a prefix a queue",
            q->host);
    return st;
}

static enum status
latency(struct ctx *c, const struct command *self, char **words, int n)
{
    struct asked q = {.port = OFPP_ANY, .class = QOS_ALL_CLASSES};
    struct queue_rows rows, segments = {0};
    struct queue_view view = {0};
    enum status st = keys_take(c, keys, words, n, &q);
    st = st ? st : queues_ask_latency(c, q.port, q.class, &rows);
    if (!st && !rows.n && q.class != QOS_ALL_CLASSES) /* is there such a queue? */
        st = queues_view(c, q.port, q.class, NULL, &view);
    if (!st && !rows.n && q.class != QOS_ALL_CLASSES && !view.n)
        fprintf(stderr, "no port has a class %u: qos-show lists those that there are\n",
                (unsigned)q.class);
    if (!st && !rows.n && !c->json && !q.host)
        return queues_say_no_latency(c);
    st = st ? st : queues_view(c, q.port, QOS_ALL_CLASSES, NULL, &view);
    if (st)
        return st;
    if (rows.n)
        segments = queues_segments_if_known(c);
    size_t lines = rows.n;
    struct line *v = of_arena_array(&c->arena, rows.n + 1, sizeof *v);
    if (!v)
        return say_memory(c);
    describe(v, &rows, &segments, &view);
    st = q.host ? keep_host(c, &q, &view, &rows, v, &lines) : DPCTL_OK;
    if (st || (q.host && !lines && !c->json))
        return st;
    struct of_wr w = of_wr_grow(VIEW_MAX);
    (c->json ? json_lines : print_lines)(&w, v, lines);
    return view_line(c, &w);
}

static const char latency_help[] =
    "  port=N, queue=N  only these\n"
    "  host=ADDRESS     the queue that qos-hosts gave this host: no other host's packets are in it\n"
    "Round trips are those of TCP, QUIC, DNS and pings that pass, from the queue they leave by to the\n"
    "other end and back: of the last ten seconds, with the path's least of ten minutes and what the\n"
    "median is above it.  Waiting is the time in the queue itself: the scheduler's own figure (CAKE,\n"
    "CoDel, FQ-CoDel, PIE), or what waits by the rate that the queue gets.  The switch begins to read\n"
    "that when it is asked, and goes on for five minutes; and always for a class with delay=TIME.\n"
    "Lost are, of the TCP segments counted in the last ten seconds, those that were sent again: lost\n"
    "behind the switch (in this queue or after it), or before they reached it.";

static const struct command rows[] = {
    {.name = "latency",
     .alias = "qos-latency",
     .subject = SUBJECT_QOS,
     .first = {TASK_FIND, "latency port=eth1", "how long packets take, by queue"},
     .args = "[port=N] [queue=N] [host=ADDRESS]",
     .help = "round trips and waiting times of what passes, by queue",
     .text = latency_help,
     .examples = "latency\nlatency port=2 queue=10\nlatency host=10.0.0.5",
     .run = latency,
     .asks = true},
};

const struct command_table commands_latency = COMMAND_TABLE(rows);
