/* SPDX-License-Identifier: Apache-2.0 */
/* QOS_LATENCY (docs/reference/qos-extension.md): how long packets take, by queue. */
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

static size_t
entry_len(struct of_bytes left)
{
    return OFP_LATENCY_LEN;
}

static int
handle_latency(struct sw *sw, struct conn *c, const struct of_msg *m)
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
        e.err = latency_each(store, port_no, class_id, loop_clock(), put_queue, &d);
    if (!e.err)
        return conn_dump_encoded(c, m, &d.w, entry_len);
    of_wr_free(&d.w);
    return sw_qos_refuse(c, m, &e);
}

const struct request request_qos_latency = {.access = ACCESS_READ,
                                            .slice = may_ask_queues,
                                            .needs = QUEUES,
                                            .least = 8,
                                            .most = 8,
                                            .run = handle_latency};
