/* SPDX-License-Identifier: Apache-2.0 */
/* QOS_LATENCY (docs/reference/qos-extension.md) and HISTOGRAMS (docs/reference/extensions.md): how long packets take,
 * by queue. */
#include "qos-request.h"
#include <admission/request.h>

#include <queues/latency.h>
#include <queues/service.h>

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
    struct sliced_dump *d = ctx;
    struct of_wr *w = &d->w;
    if (!slice_has_queue(d->slice, v->key.port_no, v->key.class_id))
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
    struct sliced_dump *d = ctx;
    struct of_wr *w = &d->w;
    const struct latency_histogram *all[] = {v->all_rtt, v->all_delay};
    if (!slice_has_queue(d->slice, v->key.port_no, v->key.class_id))
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

static size_t
figures_len(struct of_bytes left)
{
    return OFP_LATENCY_LEN;
}

static size_t
histograms_len(struct of_bytes left)
{
    return OFP_HISTOGRAMS_LEN;
}

static int
answer(struct sw *sw, struct conn *c, const struct of_msg *m, latency_fn *put,
       size_t entry_len(struct of_bytes left))
{
    const struct of_mp_experimenter *q = m->body;
    uint32_t port_no = of_get32(q->data.p), class_id = of_get32(q->data.p + 4);
    struct sliced_dump d = {sw_slice_of(c), of_wr_grow(64u << 20)};
    struct qos_error e = {0};
    struct latency *store = sw_latency(sw);
    if (port_no != OFPP_ANY && !sw_ports_find(sw, port_no)) {
        qos_fail(&e, QOS_ERR(OFPSFC_BAD_PORT), "there is no port %u", (unsigned)port_no);
        return sw_qos_refuse(c, m, &e);
    }
    e.err = sw_service_ask(sw);
    if (!e.err && store)
        e.err = latency_each(store, port_no, class_id, loop_clock(), put, &d);
    if (!e.err)
        return conn_dump_encoded(c, m, &d.w, entry_len);
    of_wr_free(&d.w);
    return sw_qos_refuse(c, m, &e);
}

static int
handle_latency(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    return answer(sw, c, m, put_queue, figures_len);
}

static int
handle_histograms(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    return answer(sw, c, m, put_histograms, histograms_len);
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
                                           .run = handle_histograms};
