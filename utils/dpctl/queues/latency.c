/* SPDX-License-Identifier: Apache-2.0 */
/* How long packets take: QOS_LATENCY of docs/reference/qos-extension.md. */
#include <core/ask.h>
#include <core/say.h>
#include <queues/queues.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct of_bytes
question(uint8_t what[8], uint32_t port, uint32_t class)
{
    of_set32(what, port);
    of_set32(what + 4, class);
    return (struct of_bytes){what, 8};
}

static bool
take_rows(struct of_bytes data, struct queue_rows *out)
{
    for (size_t at = 0; at < data.n; at += OFP_LATENCY_LEN)
        if (data.n - at < OFP_LATENCY_LEN || of_get16(data.p + at) != OFP_LATENCY_LEN)
            return false;
    *out = (struct queue_rows){data.p, data.n / OFP_LATENCY_LEN};
    return true;
}

enum status
queues_ask_latency(struct ctx *c, uint32_t port, uint32_t class, struct queue_rows *out)
{
    uint8_t what[8];
    struct of_bytes data = {0};
    *out = (struct queue_rows){0};
    enum status st = ask_experimenter(c, OFP_EXP_QOS_LATENCY, question(what, port, class), &data);
    return st ? st : take_rows(data, out) ? DPCTL_OK : say_malformed(c);
}

enum status
queues_ask_histograms(struct ctx *c, struct queue_rows *out)
{
    uint8_t what[8];
    struct of_bytes data = {0};
    enum status st =
        ask_experimenter(c, OFP_EXP_HISTOGRAMS, question(what, OFPP_ANY, QOS_ALL_CLASSES), &data);
    *out = (struct queue_rows){data.p, data.n / OFP_HISTOGRAMS_LEN};
    return st || data.n % OFP_HISTOGRAMS_LEN == 0 ? st : say_malformed(c);
}

enum status
queues_needs_latency(struct ctx *c)
{
    char *lines;
    return ask_status_if_known(c, &lines) && strstr(lines, "\nlatency=off")
               ? say_failed(c, "the switch was started with --latency=off, so it measures none")
               : DPCTL_OK;
}

enum status
queues_say_no_latency(struct ctx *c)
{
    if (queues_needs_latency(c))
        return DPCTL_FAILED;
    fprintf(stderr,
            "no samples yet: round trips are taken from TCP, QUIC, DNS and pings that pass the "
            "switch in both directions\n");
    return DPCTL_OK;
}

struct queue_rows
queues_latency_if_known(struct ctx *c)
{
    uint8_t what[8];
    struct of_bytes data = {0};
    struct queue_rows rows = {0};
    const struct of_bytes all = question(what, OFPP_ANY, QOS_ALL_CLASSES);
    if (ask_experimenter_if_known(c, OFP_EXP_QOS_LATENCY, all, &data))
        take_rows(data, &rows);
    return rows;
}

struct queue_rows
queues_segments_if_known(struct ctx *c)
{
    uint8_t what[8];
    struct of_bytes data = {0};
    const struct of_bytes all = question(what, OFPP_ANY, QOS_ALL_CLASSES);
    if (!ask_experimenter_if_known(c, OFP_EXP_RETRANSMISSIONS, all, &data))
        return (struct queue_rows){0};
    return (struct queue_rows){data.p, data.n / OFP_RETRANSMISSIONS_LEN};
}

static int
by_queue(const void *latency, const void *entry)
{
    const struct queue_latency *l = latency;
    const uint8_t *p = entry;
    const uint32_t a[] = {l->port_no, l->in, l->class_id};
    const uint32_t b[] = {of_get32(p), p[8], of_get32(p + 4)};
    for (unsigned i = 0; i < 3; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

bool
queues_find_segments(const struct queue_rows *rows, const struct queue_latency *of,
                     struct queue_segments *all, struct queue_segments *late)
{
    const uint8_t *p =
        rows->n ? bsearch(of, rows->p, rows->n, OFP_RETRANSMISSIONS_LEN, by_queue) : NULL;
    if (!p)
        return false;
    *all = (struct queue_segments){of_get64(p + 16), of_get64(p + 24), of_get64(p + 32)};
    *late = (struct queue_segments){of_get32(p + 40), of_get32(p + 44), of_get32(p + 48)};
    return true;
}

static struct queue_figures
figures(uint64_t samples, const uint8_t *p)
{
    return (struct queue_figures){.samples = samples,
                                  .min = of_get32(p),
                                  .p50 = of_get32(p + 4),
                                  .p90 = of_get32(p + 8),
                                  .p99 = of_get32(p + 12)};
}

struct queue_latency
queues_latency_at(const struct queue_rows *rows, size_t i)
{
    const uint8_t *p = rows->p + i * OFP_LATENCY_LEN;
    return (struct queue_latency){.in = p[2],
                                  .port_no = of_get32(p + 4),
                                  .class_id = of_get32(p + 8),
                                  .seconds = of_get32(p + 12),
                                  .rtt = figures(of_get64(p + 16), p + 24),
                                  .path = of_get32(p + 40),
                                  .source = p[44],
                                  .wait = figures(of_get64(p + 48), p + 56)};
}

static int
by_place(const void *node, const void *entry)
{
    const uint8_t *p = entry;
    return queues_by_place(node, of_get32(p + 4), p[2], of_get32(p + 8));
}

bool
queues_latency_row(const struct queue_rows *rows, const struct queue_node *node, size_t *i)
{
    const uint8_t *p = rows->n ? bsearch(node, rows->p, rows->n, OFP_LATENCY_LEN, by_place) : NULL;
    *i = p ? (size_t)(p - rows->p) / OFP_LATENCY_LEN : 0;
    return p;
}

bool
queues_find_latency(const struct queue_rows *rows, const struct queue_node *node,
                    struct queue_latency *out)
{
    size_t i;
    if (node->entry->config.object_type != OFP_QOS_CLASS || !queues_latency_row(rows, node, &i))
        return false;
    *out = queues_latency_at(rows, i);
    return true;
}

const char *
queues_latency_source(uint8_t source)
{
    static const char *const names[] = {"none", "scheduler", "clock", "backlog"};
    return source < sizeof names / sizeof names[0] ? names[source] : "other";
}

/* ------------------------------------------------------------------ shown */

static void
json_time(struct of_json *j, const char *name, uint32_t us)
{
    if (us != QUEUE_NO_TIME)
        of_json_uint(j, name, us);
}

static void
json_figures(struct of_json *j, const char *name, const struct queue_figures *f)
{
    if (!f->samples)
        return;
    of_json_object(j, name);
    of_json_uint(j, "samples", f->samples);
    json_time(j, "min_us", f->min);
    json_time(j, "p50_us", f->p50);
    json_time(j, "p90_us", f->p90);
    json_time(j, "p99_us", f->p99);
    of_json_end_object(j);
}

void
queues_json_latency(struct of_json *j, const struct queue_latency *l)
{
    json_figures(j, "rtt", &l->rtt);
    json_time(j, "path_us", l->path);
    json_figures(j, "wait", &l->wait);
    if (l->wait.samples)
        of_json_text(j, "wait_by", queues_latency_source(l->source));
}

static void
json_segments(struct of_json *j, const struct queue_segments *s)
{
    of_json_uint(j, "counted", s->counted);
    of_json_uint(j, "lost_behind", s->behind);
    of_json_uint(j, "lost_before", s->before);
}

void
queues_json_segments(struct of_json *j, const struct queue_rows *rows,
                     const struct queue_latency *of)
{
    struct queue_segments all, late;
    if (!queues_find_segments(rows, of, &all, &late))
        return;
    of_json_object(j, "segments");
    json_segments(j, &late);
    of_json_object(j, "total");
    json_segments(j, &all);
    of_json_end_object(j);
    of_json_end_object(j);
}

void
queues_json_node_latency(struct of_json *j, const struct queue_node *node,
                         const struct queue_rows *rows)
{
    struct queue_latency l;
    if (!queues_find_latency(rows, node, &l))
        return;
    of_json_object(j, "latency");
    queues_json_latency(j, &l);
    of_json_end_object(j);
}

const char *
queues_print_time(uint32_t us, char buf[QUEUE_TIME_TEXT])
{
    double ms = us / 1e3;
    if (us == QUEUE_NO_TIME)
        return "-";
    snprintf(buf, QUEUE_TIME_TEXT, "%.*f", ms < 10 ? 2 : ms < 100 ? 1 : 0, ms);
    return buf;
}
