/* SPDX-License-Identifier: Apache-2.0 */
/* Queues: QOS_DUMP and SERVICE; from other makers' switches what OFPMP_QUEUE reports. */
#include "metrics-inside.h"

#include <core/ask.h>
#include <queues/queues.h>

/* Is the port's root PRIO, ETS or CAKE?  Its bands or tins are queues that a dump does not list, only
 * what is below bands. */
static bool
has_bands(const struct queue_view *view, uint32_t port_no)
{
    for (size_t i = 0; i < view->n; i++)
        if (view->v[i].entry->config.port_no == port_no)
            return qos_sched_parts(view->v[i].entry->config.sched);
    return false;
}

static bool
is_same(const struct queue_node *a, const struct queue_node *b)
{
    return a && a->dir == b->dir && a->entry->config.port_no == b->entry->config.port_no &&
           a->entry->config.class_id == b->entry->config.class_id;
}

static void
label_queue(struct metrics *m, const char *label, uint32_t id)
{
    if (!id)
        metrics_label(m, label, "root");
    else if (id == QOS_CLASS_DEFAULT)
        metrics_label(m, label, "default");
    else
        metrics_label(m, label, "%u", (unsigned)id);
}

/* The scheduler below a class; the kernel's own fifo where the view has none. */
static const char *
sched_of(const struct queue_view *view, size_t i)
{
    const struct queue_node *n = &view->v[i];
    if (n->entry->config.object_type == OFP_QOS_QDISC)
        return n->entry->config.sched->name;
    if (i + 1 < view->n && is_same(n, &view->v[i + 1]) &&
        view->v[i + 1].entry->config.object_type == OFP_QOS_QDISC)
        return view->v[i + 1].entry->config.sched->name;
    return "";
}

/* The root class follows its scheduler, which is the first node of that place. */
static const char *
name_of(const struct queue_view *view, size_t i, char buf[QOS_NAME_ROOM])
{
    const struct queue_node *n = &view->v[i];
    bool more = i + 1 < view->n && is_same(n, &view->v[i + 1]);
    bool here = n->entry->config.object_type == OFP_QOS_CLASS || !more;
    return queues_name(&view->v[here ? i : i + 1].entry->config, buf);
}

static void
label_place(struct metrics *m, const struct queue_node *n)
{
    const struct qos_request *r = &n->entry->config;
    metrics_label_port(m, r->port_no);
    metrics_label(m, "direction", n->dir == QOS_IN ? "in" : "out");
    label_queue(m, "queue", r->class_id);
}

static uint64_t *
new_queue(struct metrics *m, const struct queue_view *view, size_t i)
{
    const struct queue_node *n = &view->v[i];
    const struct qos_request *r = &n->entry->config;
    char name[QOS_NAME_ROOM];
    bool class = r->object_type == OFP_QOS_CLASS;
    label_place(m, n);
    if (class && r->class_id)
        label_queue(m, "parent", n->entry->parent_id);
    else
        metrics_label(m, "parent", "%s", "");
    metrics_label(m, "kind", "%s", class ? r->sched->name : "");
    metrics_label(m, "sched", "%s", sched_of(view, i));
    metrics_label(m, "queue_name", "%s", name_of(view, i, name));
    uint64_t *info = metrics_object(m, METRICS_OF_PLACE);
    label_place(m, n);
    if (info)
        info[PLACE_INFO] = 1;
    return metrics_object(m, METRICS_OF_QUEUE);
}

static uint64_t
more_of(uint64_t a, uint64_t b)
{
    return a == METRICS_UNKNOWN || b > a ? b : a;
}

/* A class counts what it has sent and refused; the scheduler below it also what it took and dropped
 * later, and its marks. */
static void
take_entry(uint64_t *v, const struct queue_node *n, bool first)
{
    const struct qos_request *r = &n->entry->config;
    const struct qos_counters *k = &n->entry->counters;
    bool class = r->object_type == OFP_QOS_CLASS;
    if (first || (class && !r->class_id)) {
        v[QUEUE_BYTES] = k->bytes;
        v[QUEUE_PACKETS] = k->packets;
        v[QUEUE_BACKLOG_BYTES] = k->backlog_bytes;
        v[QUEUE_BACKLOG_PACKETS] = k->backlog_packets;
    }
    v[QUEUE_DROPS] = more_of(v[QUEUE_DROPS], k->drops);
    v[QUEUE_OVERLIMITS] = more_of(v[QUEUE_OVERLIMITS], k->overlimits);
    v[QUEUE_MARKS] = more_of(v[QUEUE_MARKS], k->marked);
    if (!class)
        return;
    if (n->rate)
        v[QUEUE_RATE] = metrics_rate(n->rate);
    if (n->ceil)
        v[QUEUE_CEIL] = metrics_rate(n->ceil);
    if (r->sched->id == OFP_QOS_SCHED_HTB && r->class_id)
        v[QUEUE_PRIO] = r->values.v[QOS_PRIO];
}

/* -------------------------------------------------------------------- SERVICE */

static void
take_promise(uint64_t *v, const uint8_t *p, uint64_t promise_ms)
{
    uint64_t waited = of_get64(p + 32), below = of_get64(p + 40);
    bool rated = p[9] & OFP_SERVICE_RATE;
    if (!promise_ms)
        return;
    v[QUEUE_PROMISE] = promise_ms;
    v[QUEUE_DROPPING] = (p[9] & OFP_SERVICE_DROPS) != 0;
    if (rated)
        v[QUEUE_BROKEN] = (p[9] & OFP_SERVICE_BROKEN) != 0;
    if (rated && waited && below <= waited)
        v[QUEUE_KEPT] = (uint64_t)((double)(waited - below) / (double)waited * 1e6);
}

static void
take_delay_promise(uint64_t *v, const uint8_t *p, uint64_t promise_us)
{
    if (!promise_us)
        return;
    v[QUEUE_DELAY_PROMISE] = promise_us;
    v[QUEUE_DELAY_KEPT] = 1000u - of_get16(p + 10);
    v[QUEUE_DELAY_BROKEN] = (p[9] & OFP_SERVICE_DELAY) != 0;
}

static void
take_service(uint64_t *v, const uint8_t *p)
{
    if (!(p[9] & OFP_SERVICE_RATE)) /* nothing is guaranteed */
        return;
    v[QUEUE_BACKLOGGED] = of_get64(p + 32);
    v[QUEUE_BELOW_RATE] = of_get64(p + 40);
}

static void
take_lending(uint64_t *v, const uint8_t *p)
{
    if (!(p[9] & OFP_SERVICE_LENDS))
        return;
    v[QUEUE_LENDED] = of_get64(p + 16);
    v[QUEUE_BORROWED] = of_get64(p + 24);
}

/* -------------------------------------------------------------------- queues */

static enum status
take_view(struct metrics *m, const struct queue_view *view)
{
    struct queue_rows service;
    bool refused;
    enum status st = metrics_allow(
        m, queues_ask_rows(m->c, view, NULL, OFP_EXP_SERVICE, OFP_SERVICE_LEN, &service), &refused);
    if (st)
        return st;
    const struct queue_node *last = NULL;
    uint64_t *v = NULL;
    for (size_t i = 0; i < view->n; i++) {
        const struct queue_node *node = &view->v[i];
        bool first = !is_same(last, node);
        last = node;
        if (first && !(v = new_queue(m, view, i)))
            return DPCTL_OK; /* m->full */
        take_entry(v, node, first);
        const struct qos_values *values = &node->entry->config.values;
        const uint8_t *p = first ? queues_service(&service, node) : NULL;
        if (p) {
            take_service(v, p);
            take_lending(v, p);
            take_promise(v, p, values->v[QOS_PROMISE]);
            take_delay_promise(v, p, values->v[QOS_DELAY]);
        }
    }
    return DPCTL_OK;
}

/* ------------------------------------------------------------------- latency */

static void
take_time(uint64_t *v, unsigned at, uint32_t us)
{
    if (us != QUEUE_NO_TIME)
        v[at] = us;
}

static void
take_latency(struct metrics *m, const struct queue_latency *l, const struct queue_rows *segments)
{
    struct queue_segments all, late;
    metrics_label_port(m, l->port_no);
    metrics_label(m, "direction", l->in ? "in" : "out");
    label_queue(m, "queue", l->class_id);
    uint64_t *v = metrics_object(m, METRICS_OF_QUEUE);
    if (!v)
        return;
    v[QUEUE_RTT_SAMPLES] = l->rtt.samples;
    if (queues_find_segments(segments, l, &all, &late)) {
        v[QUEUE_SEGMENTS] = all.counted;
        v[QUEUE_LOST_BEHIND] = all.behind;
        v[QUEUE_LOST_BEFORE] = all.before;
    }
    take_time(v, QUEUE_RTT_MEDIAN, l->rtt.p50);
    take_time(v, QUEUE_RTT_P90, l->rtt.p90);
    take_time(v, QUEUE_RTT_P99, l->rtt.p99);
    take_time(v, QUEUE_RTT_PATH, l->path);
    take_time(v, QUEUE_DELAY_MEDIAN, l->wait.p50);
    take_time(v, QUEUE_DELAY_P90, l->wait.p90);
    take_time(v, QUEUE_DELAY_P99, l->wait.p99);
}

static void
take_histogram(uint64_t *v, unsigned at, const uint8_t *counts, uint64_t sum)
{
    v += at * METRICS_HISTOGRAM_VALUES;
    for (unsigned i = 0; i <= OFP_LATENCY_BOUNDS_N; i++)
        v[i] = of_get64(counts + 8 * i);
    v[OFP_LATENCY_BOUNDS_N + 1] = sum;
}

/* Not of a switch that knows no such request. */
static enum status
collect_histograms(struct metrics *m)
{
    struct queue_rows rows;
    bool refused;
    enum status st = metrics_allow(m, queues_ask_histograms(m->c, &rows), &refused);
    for (size_t i = 0; !st && !refused && i < rows.n; i++) {
        const uint8_t *p = rows.p + i * OFP_HISTOGRAMS_LEN;
        metrics_label_port(m, of_get32(p));
        metrics_label(m, "direction", p[8] ? "in" : "out");
        label_queue(m, "queue", of_get32(p + 4));
        uint64_t *v = metrics_object(m, METRICS_OF_SPREAD);
        if (!v)
            return DPCTL_OK; /* m->full */
        take_histogram(v, SPREAD_RTT, p + 32, of_get64(p + 16));
        take_histogram(v, SPREAD_DELAY, p + 32 + 8 * (OFP_LATENCY_BOUNDS_N + 1), of_get64(p + 24));
    }
    return st;
}

/* Likewise; and no histograms of so many queues that nobody could store them. */
static enum status
collect_latency(struct metrics *m)
{
    struct queue_rows rows, segments = {0};
    bool refused;
    enum status st =
        metrics_allow(m, queues_ask_latency(m->c, OFPP_ANY, QOS_ALL_CLASSES, &rows), &refused);
    if (!st && !refused && rows.n)
        segments = queues_segments_if_known(m->c);
    for (size_t i = 0; !st && !refused && i < rows.n; i++) {
        const struct queue_latency l = queues_latency_at(&rows, i);
        take_latency(m, &l, &segments);
    }
    return st || refused || rows.n > METRICS_HISTOGRAMS ? st : collect_histograms(m);
}

/* What OFPMP_QUEUE tells; `skip` is a view that has all queues but bands. */
static enum status
collect_plain(struct metrics *m, const struct queue_view *skip)
{
    struct of_list l;
    bool refused;
    enum status st = metrics_allow(m, ask_list(m->c, OFPMP_QUEUE, NULL, &l), &refused);
    if (st || refused)
        return st;
    for (uint32_t i = 0; i < l.n; i++) {
        const struct of_queue_stats *s = OF_AT(&l, i, struct of_queue_stats);
        if (skip && !has_bands(skip, s->port_no))
            continue;
        metrics_label_port(m, s->port_no);
        metrics_label(m, "direction", "out");
        metrics_label(m, "queue", "%u", (unsigned)s->queue_id);
        uint64_t *v = metrics_object(m, METRICS_OF_QUEUE);
        if (!v)
            break;
        v[QUEUE_BYTES] = s->tx_bytes;
        v[QUEUE_PACKETS] = s->tx_packets;
        v[QUEUE_DROPS] = s->tx_errors;
    }
    return DPCTL_OK;
}

enum status
metrics_collect_queues(struct metrics *m)
{
    struct queue_view view;
    bool refused, bands = false;
    enum status st =
        metrics_allow(m, queues_view(m->c, OFPP_ANY, QOS_ALL_CLASSES, NULL, &view), &refused);
    if (st)
        return st;
    if (refused)
        return collect_plain(m, NULL);
    st = take_view(m, &view);
    st = st ? st : collect_latency(m);
    for (size_t i = 0; i < view.n; i++)
        bands |= qos_sched_parts(view.v[i].entry->config.sched);
    return st || !bands ? st : collect_plain(m, &view);
}
