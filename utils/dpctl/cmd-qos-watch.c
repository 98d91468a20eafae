/* SPDX-License-Identifier: Apache-2.0 */
/* qos-watch: what the queues send, as it changes. */
#include "watch.h"

#include <inttypes.h>
#include <stdio.h>

#define NAME_WIDTH 20
#define SIDES      (NAME_WIDTH + 8 + 18 + 9 + 9) /* all columns but the bar, with their blanks */

/* --------------------------------------------------------------------- for people */

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
    of_printf(w, "%-*.*s ", NAME_WIDTH - 1,
              (int)(name.len < NAME_WIDTH ? name.len : NAME_WIDTH - 1), (const char *)name.buf);
    of_wr_free(&name);
}

static void
print_queue(struct of_wr *w, const struct watch *watch, const struct qos_view_node *n,
            const struct watch_delta *d)
{
    char rate[16], least[16], most[16], backlog[16], both[40];
    const struct qos_counters *k = &n->entry->counters;
    print_name_column(w, n);
    of_printf(w, "%7s ", watch_number(d->bps, rate));
    watch_bar(w, watch, n, d->bps, watch->columns - SIDES);
    snprintf(both, sizeof both, "%s/%s", watch_number(n->rate, least), watch_number(n->ceil, most));
    of_printf(w, " %-14s ", n->rate || n->ceil ? both : "");
    of_printf(w, "%8s ", watch_number(k->backlog_bytes, backlog));
    watch_drops(w, watch, d->drops);
}

static void
print_heading(struct of_wr *w, const struct watch *watch)
{
    int bar = watch->columns - SIDES;
    of_printf(w, "%-*s%7s %-*s %-14s %8s %8s", NAME_WIDTH, "queue", "bit/s", bar > 3 ? bar : 0, "",
              "rate/ceil", "backlog", "dropped");
}

static enum status
print_look(struct of_wr *w, const struct watch *watch, const struct qos_view *view, int64_t elapsed)
{
    int line = 0;
    print_heading(w, watch);
    bool room = watch_end_line(w, watch, &line);
    for (size_t i = 0; i < view->n && room; i++) {
        const struct qos_view_node *n = &view->v[i];
        if (watch_begins(view, i)) {
            watch_port(w, n);
            room = watch_end_line(w, watch, &line);
        }
        if (!room || !is_shown(n))
            continue;
        struct watch_delta d = watch_delta(watch, n, elapsed);
        print_queue(w, watch, n, &d);
        room = watch_end_line(w, watch, &line);
    }
    if (!view->n)
        of_printf(w, "no queues");
    watch_end(w, watch, room);
    return DPCTL_OK;
}

/* ------------------------------------------------------------------- for programs */

static void
json_queue(struct of_json *j, const struct watch *watch, const struct qos_view_node *n,
           int64_t elapsed)
{
    const struct qos_counters *k = &n->entry->counters;
    struct watch_delta d = watch_delta(watch, n, elapsed);
    json_queue_place(j, n);
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
}

static enum status
json_look(struct of_wr *w, const struct watch *watch, const struct qos_view *view, int64_t elapsed)
{
    double now = watch_time();
    bool first = true;
    for (size_t i = 0; i < view->n; i++) {
        if (!is_shown(&view->v[i]))
            continue;
        struct of_json j = of_json(w);
        of_printf(w, first ? "" : "\n");
        first = false;
        of_json_object(&j, NULL);
        of_json_real(&j, "time", now);
        of_json_real(&j, "interval", (double)elapsed / 1e6);
        json_queue(&j, watch, &view->v[i], elapsed);
        of_json_end_object(&j);
    }
    return DPCTL_OK;
}

enum status
qos_watch(struct ctx *c, char **words, int n)
{
    return watch_run(c, words, n, print_look, json_look, false);
}
