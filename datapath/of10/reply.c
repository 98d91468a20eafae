/* SPDX-License-Identifier: Apache-2.0 */
/* Translates replies and asynchronous messages of 1.3 to those of 1.0. */
#include "inside.h"

#include <errno.h>

/* Extensions have the same bytes in a vendor message of 1.0, whose type has the same number. */
int
of10_out_same(struct of10_door *d, const struct of_msg *m, struct of_wr *w)
{
    size_t start = w->len;
    of_wr_bytes(w, m->raw.p, m->raw.n);
    if (w->overflow)
        return -ENOMEM;
    w->buf[start] = OFP10_VERSION;
    return 0;
}

int
of10_out_barrier(struct of10_door *d, const struct of_msg *m, struct of_wr *w)
{
    return of10_write(w, OFPT10_BARRIER_REPLY, m->xid, NULL);
}

/* The ports come by the next reply. */
int
of10_out_features(struct of10_door *d, const struct of_msg *m, struct of_wr *w)
{
    d->features = *(const struct of_features_reply *)m->body;
    return 0;
}

int
of10_out_role(struct of10_door *d, const struct of_msg *m, struct of_wr *w)
{
    const struct of_role *r = m->body;
    uint8_t data[8];
    of_set32(data, OFP10_NX_ROLE_REPLY);
    of_set32(data + 4, r->role - OFPCR_ROLE_EQUAL);
    struct of_v10_vendor v = {.vendor = OFP10_NX_VENDOR, .data = {data, sizeof data}};
    return of10_write(w, OFPT10_VENDOR, m->xid, &v);
}

/* ------------------------------------------------------------------ asynchronous messages */

int
of10_out_packet_in(struct of10_door *d, const struct of_msg *m, struct of_wr *w)
{
    const struct of_packet_in *p = m->body;
    const struct of_oxm *in_port = of_match_find(&p->match, OXM_in_port);
    struct of_v10_packet_in o = {.buffer_id = p->buffer_id,
                                 .total_len = p->total_len,
                                 .reason =
                                     p->reason == OFPR10_TABLE_MISS ? OFPR_NO_MATCH : OFPR_ACTION,
                                 .data = p->data};
    if (p->reason == OFPR_INVALID_TTL || !in_port ||
        !of_port10(of_get32(in_port->value), &o.in_port))
        return 0;
    return of10_write(w, OFPT10_PACKET_IN, m->xid, &o);
}

int
of10_out_flow_removed(struct of10_door *d, const struct of_msg *m, struct of_wr *w)
{
    const struct of_flow_removed *f = m->body;
    uint8_t bytes[OF10_MATCH_LEN];
    struct of_v10_flow_removed o = {
        .match = f->match,
        .cookie = f->cookie,
        .priority = f->priority,
        .reason = f->reason > OFPRR_DELETE ? OFPRR_DELETE : f->reason, /* its group is deleted */
        .duration_sec = f->duration_sec,
        .duration_nsec = f->duration_nsec,
        .idle_timeout = f->idle_timeout,
        .packet_count = f->packet_count,
        .byte_count = f->byte_count};
    if (!of_match10_encode(bytes, &f->match))
        return 0;
    return of10_write(w, OFPT10_FLOW_REMOVED, m->xid, &o);
}

/* port_status and port have the same fields, written out twice (messages.h). */
int
of10_out_port_status(struct of10_door *d, const struct of_msg *m, struct of_wr *w)
{
    const struct of_port_status *s = m->body;
    struct of_port in = {.config = s->config,
                         .state = s->state,
                         .curr = s->curr,
                         .advertised = s->advertised,
                         .supported = s->supported,
                         .peer = s->peer};
    uint16_t no;
    if (!of_port10(s->port_no, &no))
        return 0;
    memcpy(in.hw_addr, s->hw_addr, sizeof in.hw_addr);
    memcpy(in.name, s->name, sizeof in.name);
    struct of_v10_port p;
    of10_port(&in, no, &p);
    struct of_v10_port_status o = {.reason = s->reason,
                                   .port_no = no,
                                   .config = p.config,
                                   .state = p.state,
                                   .curr = p.curr,
                                   .advertised = p.advertised,
                                   .supported = p.supported,
                                   .peer = p.peer};
    memcpy(o.hw_addr, p.hw_addr, sizeof o.hw_addr);
    memcpy(o.name, p.name, sizeof o.name);
    return of10_write(w, OFPT10_PORT_STATUS, m->xid, &o);
}

/* ------------------------------------------------------------------ queues */

/* There is no maximum rate in 1.0. */
static int
queue_of(struct of10_door *d, const struct of_packet_queue *q, void **out)
{
    struct of_v10_packet_queue *o = of_arena_alloc(&d->arena, sizeof *o);
    void **v = of_arena_array(&d->arena, q->properties.n, sizeof *v);
    if (!o || !v)
        return -ENOMEM;
    *out = o;
    o->queue_id = q->queue_id;
    o->properties.v = v;
    for (uint32_t i = 0; i < q->properties.n; i++) {
        const struct of_queue_prop_rate *in = q->properties.v[i];
        struct of_queue_prop_rate *rate = of_arena_alloc(&d->arena, sizeof *rate);
        if (!rate)
            return -ENOMEM;
        *rate = (struct of_queue_prop_rate){
            .row = of_tag_row(&of_list_v10_queue_props, OFPQT10_MIN_RATE), .rate = in->rate};
        if (in->row->type == OFPQT_MIN_RATE)
            v[o->properties.n++] = rate;
    }
    return 0;
}

int
of10_out_queue_config(struct of10_door *d, const struct of_msg *m, struct of_wr *w)
{
    const struct of_queue_get_config_reply *r = m->body;
    struct of_v10_queue_get_config_reply o = {.queues = {.n = r->queues.n}};
    of_port10(r->port, &o.port); /* the request's */
    o.queues.v = of_arena_array(&d->arena, r->queues.n, sizeof *o.queues.v);
    int err = o.queues.v ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < r->queues.n && !err; i++)
        err = queue_of(d, r->queues.v[i], &o.queues.v[i]);
    return err ? err : of10_write(w, OFPT10_QUEUE_GET_CONFIG_REPLY, m->xid, &o);
}
