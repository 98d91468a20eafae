/* SPDX-License-Identifier: Apache-2.0 */
/* ROUND_TRIPS (docs/reference/extensions.md): the last round trips, one by one. */
#include "qos-request.h"
#include <admission/request.h>

#include <queues/latency.h>

struct answer {
    struct sliced_dump dump;
    uint32_t class_id;
    uint64_t now;
};

static void
put_round_trip(void *ctx, const struct latency_round_trip *r)
{
    struct answer *a = ctx;
    struct of_wr *w = &a->dump.w;
    uint64_t age = (a->now - r->at) / 1000;
    if ((a->class_id != QOS_ALL_CLASSES && r->key.class_id != a->class_id) ||
        !slice_has_queue(a->dump.slice, r->key.port_no, r->key.class_id))
        return;
    of_wr64(w, r->number);
    of_wr32(w, r->key.port_no);
    of_wr32(w, r->key.class_id);
    of_wr32(w, r->pair);
    of_wr32(w, r->us);
    of_wr32(w, age < UINT32_MAX ? (uint32_t)age : UINT32_MAX);
    of_wr_add(w, 4);
}

static size_t
entry_len(struct of_bytes left)
{
    return OFP_ROUND_TRIP_LEN;
}

static int
handle_round_trips(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    const struct of_mp_experimenter *q = m->body;
    uint32_t port_no = of_get32(q->data.p);
    struct answer a = {.dump = {sw_slice_of(c), of_wr_grow(1u << 20)},
                       .class_id = of_get32(q->data.p + 4)};
    struct qos_error e = {0};
    struct latency *store = sw_latency(sw);
    a.now = loop_clock();
    if (port_no != OFPP_ANY && !sw_ports_find(sw, port_no)) {
        qos_fail(&e, QOS_ERR(OFPSFC_BAD_PORT), "there is no port %u", (unsigned)port_no);
        return sw_qos_refuse(c, m, &e);
    }
    if (store)
        e.err = latency_recent(store, port_no, of_get64(q->data.p + 8), put_round_trip, &a);
    if (!e.err)
        return conn_dump_encoded(c, m, &a.dump.w, entry_len);
    of_wr_free(&a.dump.w);
    return sw_qos_refuse(c, m, &e);
}

const struct request request_round_trips = {.access = ACCESS_READ,
                                            .slice = may_ask_queues,
                                            .needs = QUEUES,
                                            .least = 16,
                                            .most = 16,
                                            .run = handle_round_trips};
