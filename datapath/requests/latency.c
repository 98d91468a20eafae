/* SPDX-License-Identifier: Apache-2.0 */
/* How long packets take, and how many TCP segments were sent again: by queue QOS_LATENCY
 * (docs/reference/qos-extension.md), HISTOGRAMS and RETRANSMISSIONS, one by one ROUND_TRIPS (docs/reference/extensions.md). */
#include "qos-request.h"
#include <admission/request.h>

#include <queues/latency.h>
#include <queues/service.h>

/* A request, and what is answered. */
struct answer {
    struct sw *sw;
    const struct slice *slice;
    struct of_wr w;
    struct of_bytes asked; /* port, class, and what only some requests have */
    uint32_t port_no, class_id;
    uint64_t now; /* after the samples were read */
};

static bool
may_see(const struct answer *a, const struct latency_key *k)
{
    return slice_has_queue(a->slice, k->port_no, k->class_id);
}

/* Of a queue of which segments were counted, and no more, there are no times. */
static bool
has_times(const struct answer *a, const struct latency_view *v)
{
    return (v->rtt.samples || v->delay.samples) && may_see(a, &v->key);
}

/* ------------------------------------------------------------------ by queue */

/* waits: how long packets wait is to be read, too. */
static int
each_queue(struct answer *a, latency_fn *put, bool waits)
{
    struct latency *store = sw_latency(a->sw);
    int err = waits ? sw_service_ask(a->sw) : 0;
    a->now = loop_clock();
    return err || !store ? err : latency_each(store, a->port_no, a->class_id, a->now, put, a);
}

static void
put_figures(struct of_wr *w, const struct latency_figures *f)
{
    of_wr32(w, f->min);
    of_wr32(w, f->p50);
    of_wr32(w, f->p90);
    of_wr32(w, f->p99);
}

static void
put_queue(void *ctx, const struct latency_view *v)
{
    struct answer *a = ctx;
    struct of_wr *w = &a->w;
    if (!has_times(a, v))
        return;
    of_wr16(w, OFP_LATENCY_LEN);
    of_wr8(w, v->key.in);
    of_wr_add(w, 1);
    of_wr32(w, v->key.port_no);
    of_wr32(w, v->key.class_id);
    of_wr32(w, LATENCY_SPAN_MS / 1000);
    of_wr64(w, v->rtt.samples);
    put_figures(w, &v->rtt);
    of_wr32(w, v->path);
    of_wr8(w, v->source);
    of_wr_add(w, 3);
    of_wr64(w, v->delay.samples);
    put_figures(w, &v->delay);
}

static void
put_histograms(void *ctx, const struct latency_view *v)
{
    struct answer *a = ctx;
    struct of_wr *w = &a->w;
    const struct latency_histogram *all[] = {v->all_rtt, v->all_delay};
    if (!has_times(a, v))
        return;
    of_wr32(w, v->key.port_no);
    of_wr32(w, v->key.class_id);
    of_wr8(w, v->key.in);
    of_wr_add(w, 7);
    of_wr64(w, v->all_rtt->sum);
    of_wr64(w, v->all_delay->sum);
    for (unsigned k = 0; k < 2; k++)
        for (unsigned i = 0; i <= OFP_LATENCY_BOUNDS_N; i++)
            of_wr64(w, all[k]->n[i]);
}

static void
put_segments(void *ctx, const struct latency_view *v)
{
    struct answer *a = ctx;
    struct of_wr *w = &a->w;
    if (!v->all_segments.counted || !may_see(a, &v->key))
        return;
    of_wr32(w, v->key.port_no);
    of_wr32(w, v->key.class_id);
    of_wr8(w, v->key.in);
    of_wr_add(w, 3);
    of_wr32(w, LATENCY_SPAN_MS / 1000);
    of_wr64(w, v->all_segments.counted);
    of_wr64(w, v->all_segments.behind);
    of_wr64(w, v->all_segments.before);
    of_wr32(w, (uint32_t)v->segments.counted);
    of_wr32(w, (uint32_t)v->segments.behind);
    of_wr32(w, (uint32_t)v->segments.before);
    of_wr_add(w, 4);
}

/* ------------------------------------------------------------------ one by one */

static void
put_round_trip(void *ctx, const struct latency_round_trip *r)
{
    struct answer *a = ctx;
    struct of_wr *w = &a->w;
    uint64_t age = (a->now - r->at) / 1000;
    if (!may_see(a, &r->key))
        return;
    of_wr64(w, r->number);
    of_wr32(w, r->key.port_no);
    of_wr32(w, r->key.class_id);
    of_wr32(w, r->pair);
    of_wr32(w, r->us);
    of_wr32(w, age < UINT32_MAX ? (uint32_t)age : UINT32_MAX);
    of_wr_add(w, 4);
}

static int
each_round_trip(struct answer *a)
{
    struct latency *store = sw_latency(a->sw);
    uint64_t after = of_get64(a->asked.p + 8);
    a->now = loop_clock();
    return store ? latency_recent(store, a->port_no, a->class_id, after, put_round_trip, a) : 0;
}

/* ------------------------------------------------------------------ requests */

static const struct kind {
    uint32_t exp_type;
    size_t len;       /* of an entry, bytes */
    latency_fn *each; /* of the queues; NULL: round trips */
    bool waits;
} kinds[] = {
    {OFP_EXP_QOS_LATENCY, OFP_LATENCY_LEN, put_queue, true},
    {OFP_EXP_HISTOGRAMS, OFP_HISTOGRAMS_LEN, put_histograms, true},
    {OFP_EXP_RETRANSMISSIONS, OFP_RETRANSMISSIONS_LEN, put_segments, false},
    {OFP_EXP_ROUND_TRIPS, OFP_ROUND_TRIP_LEN, NULL, false},
};

static int
handle_latency(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    const struct of_mp_experimenter *body = m->body;
    const struct kind *kind = kinds;
    struct answer a = {.sw = sw,
                       .slice = sw_slice_of(c),
                       .w = of_wr_grow(64u << 20),
                       .asked = body->data,
                       .port_no = of_get32(body->data.p),
                       .class_id = of_get32(body->data.p + 4)};
    struct qos_error e = {0};
    while (kind->exp_type != body->exp_type)
        kind++;
    if (a.port_no != OFPP_ANY && !sw_ports_find(sw, a.port_no)) {
        qos_fail(&e, QOS_ERR(OFPSFC_BAD_PORT), "there is no port %u", (unsigned)a.port_no);
        return sw_qos_refuse(c, m, &e);
    }
    e.err = kind->each ? each_queue(&a, kind->each, kind->waits) : each_round_trip(&a);
    if (!e.err)
        return conn_dump_fixed(c, m, &a.w, kind->len);
    of_wr_free(&a.w);
    return sw_qos_refuse(c, m, &e);
}

const struct request request_qos_latency = {.access = ACCESS_READ,
                                            .slice = may_ask_queues,
                                            .needs = QUEUES,
                                            .blocks = true,
                                            .least = 8,
                                            .most = 8,
                                            .run = handle_latency};

const struct request request_histograms = {.access = ACCESS_READ,
                                           .slice = may_ask_queues,
                                           .needs = QUEUES,
                                           .blocks = true,
                                           .least = 8,
                                           .most = 8,
                                           .run = handle_latency};

const struct request request_retransmissions = {.access = ACCESS_READ,
                                                .slice = may_ask_queues,
                                                .needs = QUEUES,
                                                .least = 8,
                                                .most = 8,
                                                .run = handle_latency};

const struct request request_round_trips = {.access = ACCESS_READ,
                                            .slice = may_ask_queues,
                                            .needs = QUEUES,
                                            .least = 16,
                                            .most = 16,
                                            .run = handle_latency};
