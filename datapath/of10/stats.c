/* SPDX-License-Identifier: Apache-2.0 */
/* Translates statistics: multipart replies of 1.3 to those of 1.0. */
#include "inside.h"

#include <errno.h>
#include <stdlib.h>

#define ALL_ACTIONS 0xfffu                   /* OUTPUT to ENQUEUE */
#define PORTS_MAX   ((OF_MSG_MAX - 32) / 48) /* that a features reply has room for */

static int
send_more(const struct of_msg *m, uint16_t type, const void *body, bool more, struct of_wr *w)
{
    struct of_msg reply = {.type = OFPT10_STATS_REPLY,
                           .xid = m->xid,
                           .mp_flags = more ? OFPMPF_REPLY_MORE : 0,
                           .body = (void *)(uintptr_t)body};
    return of_encode_multipart_as(&of_dialect_10, w, &reply, type);
}

static int
send_part(const struct of_msg *m, uint16_t type, const void *body, struct of_wr *w)
{
    return send_more(m, type, body, m->mp_flags & OFPMPF_REPLY_MORE, w);
}

/* Entries of 1.0 may be longer than those of 1.3, so one message may become several.  An entry
 * that fits no message is left out. */
static int
send_pieces(const struct of_msg *m, uint16_t type, struct of_list l, bool more, struct of_wr *w)
{
    int err = send_more(m, type, &l, more, w); /* each of these bodies is one list */
    if (err != -EMSGSIZE || !l.n)
        return err;
    struct of_list half = {.n = l.n / 2, .v = l.v};
    if (half.n && (err = send_pieces(m, type, half, true, w)))
        return err;
    struct of_list rest = {.n = l.n > 1 ? l.n - half.n : 0, .v = l.v + half.n};
    return send_pieces(m, type, rest, more, w);
}

/* Makes a list of `one`'s results for each element; leaves out elements that 1.0 can't express. */
typedef void *make_one(struct of10_door *d, const void *element);

static int
send_list(struct of10_door *d, const struct of_msg *m, uint16_t type, const struct of_list *in,
          make_one *one, struct of_wr *w)
{
    struct of_list out = {.v = of_arena_array(&d->arena, in->n, sizeof *out.v)};
    if (!out.v)
        return -ENOMEM;
    for (uint32_t i = 0; i < in->n; i++)
        if ((out.v[out.n] = one(d, in->v[i])))
            out.n++;
    return send_pieces(m, type, out, m->mp_flags & OFPMPF_REPLY_MORE, w);
}

/* ------------------------------------------------------------------ entries */

static void *
flow_entry(struct of10_door *d, const void *element)
{
    const struct of_flow_stats *f = element;
    uint8_t bytes[OF10_MATCH_LEN];
    struct of_v10_flow_stats *o = of_arena_alloc(&d->arena, sizeof *o);
    if (!o || !of_match10_encode(bytes, &f->match) ||
        !of10_actions_out(&d->arena, &f->match, &f->instructions, &o->actions))
        return NULL;
    o->table_id = f->table_id;
    o->match = f->match;
    o->duration_sec = f->duration_sec;
    o->duration_nsec = f->duration_nsec;
    o->priority = f->priority;
    o->idle_timeout = f->idle_timeout;
    o->hard_timeout = f->hard_timeout;
    o->cookie = f->cookie;
    o->packet_count = f->packet_count;
    o->byte_count = f->byte_count;
    return o;
}

static void *
table_entry(struct of10_door *d, const void *element)
{
    const struct of_table_stats *t = element;
    struct of_v10_table_stats *o = of_arena_alloc(&d->arena, sizeof *o);
    if (!o)
        return NULL;
    o->table_id = t->table_id;
    o->wildcards = OFPFW10_ALL;
    o->active_count = t->active_count;
    o->lookup_count = t->lookup_count;
    o->matched_count = t->matched_count;
    if (d->tables && t->table_id <= OFPTT_MAX) {
        memcpy(o->name, d->tables[t->table_id].name, sizeof o->name);
        o->max_entries = d->tables[t->table_id].max_entries;
    }
    return o;
}

static void *
port_entry(struct of10_door *d, const void *element)
{
    const struct of_port_stats *p = element;
    uint16_t no;
    struct of_v10_port_stats *o =
        of_port10(p->port_no, &no) ? of_arena_alloc(&d->arena, sizeof *o) : NULL;
    if (o)
        *o = (struct of_v10_port_stats){.port_no = no,
                                        .rx_packets = p->rx_packets,
                                        .tx_packets = p->tx_packets,
                                        .rx_bytes = p->rx_bytes,
                                        .tx_bytes = p->tx_bytes,
                                        .rx_dropped = p->rx_dropped,
                                        .tx_dropped = p->tx_dropped,
                                        .rx_errors = p->rx_errors,
                                        .tx_errors = p->tx_errors,
                                        .rx_frame_err = p->rx_frame_err,
                                        .rx_over_err = p->rx_over_err,
                                        .rx_crc_err = p->rx_crc_err,
                                        .collisions = p->collisions};
    return o;
}

static void *
queue_entry(struct of10_door *d, const void *element)
{
    const struct of_queue_stats *q = element;
    uint16_t no;
    struct of_v10_queue_stats *o =
        of_port10(q->port_no, &no) ? of_arena_alloc(&d->arena, sizeof *o) : NULL;
    if (o)
        *o = (struct of_v10_queue_stats){.port_no = no,
                                         .queue_id = q->queue_id,
                                         .tx_bytes = q->tx_bytes,
                                         .tx_packets = q->tx_packets,
                                         .tx_errors = q->tx_errors};
    return o;
}

/* ------------------------------------------------------------------ those that are kept */

static void
keep_port(struct of10_door *d, const struct of_port *in)
{
    struct of_v10_port p;
    uint16_t no;
    if (!of_port10(in->port_no, &no) || d->ports.len / of_row_v10_port.wire >= PORTS_MAX)
        return;
    of10_port(in, no, &p);
    of_encode_struct(&d->ports, &of_row_v10_port, &p);
}

/* With the last of them the features reply is whole. */
static int
take_ports(struct of10_door *d, const struct of_msg *m, struct of_wr *w)
{
    const struct of_list *ports = &((const struct of_mp_port_desc_reply *)m->body)->ports;
    for (uint32_t i = 0; i < ports->n; i++)
        keep_port(d, ports->v[i]);
    if (m->mp_flags & OFPMPF_REPLY_MORE)
        return 0;
    struct of_v10_features_reply r = {.datapath_id = d->features.datapath_id,
                                      .n_buffers = d->features.n_buffers,
                                      .n_tables = d->features.n_tables,
                                      .capabilities = OFPC10_FLOW_STATS | OFPC10_TABLE_STATS |
                                                      OFPC10_PORT_STATS | OFPC10_QUEUE_STATS |
                                                      OFPC10_ARP_MATCH_IP,
                                      .actions = ALL_ACTIONS,
                                      .ports = {.raw = {d->ports.buf, d->ports.len}}};
    int err = of10_write(w, OFPT10_FEATURES_REPLY, m->xid, &r);
    of_wr_free(&d->ports);
    return err;
}

static int
take_tables(struct of10_door *d, const struct of_msg *m)
{
    const struct of_list *tables = &((const struct of_mp_table_features *)m->body)->tables;
    if (!d->tables && !(d->tables = calloc(OFPTT_MAX + 1, sizeof *d->tables)))
        return -ENOMEM;
    for (uint32_t i = 0; i < tables->n; i++) {
        const struct of_table_features *t = tables->v[i];
        if (t->table_id > OFPTT_MAX)
            continue;
        memcpy(d->tables[t->table_id].name, t->name, sizeof t->name);
        d->tables[t->table_id].max_entries = t->max_entries;
    }
    return 0;
}

static int
give_tables(struct of10_door *d, const struct of_msg *m, struct of_wr *w)
{
    const struct of_mp_table_reply *r = m->body;
    int err = send_list(d, m, OFPST_TABLE, &r->tables, table_entry, w);
    if (!(m->mp_flags & OFPMPF_REPLY_MORE)) {
        free(d->tables);
        d->tables = NULL;
    }
    return err;
}

static int
give_vendor(struct of10_door *d, const struct of_msg *m, struct of_wr *w)
{
    const struct of_mp_experimenter *r = m->body;
    uint8_t *data = of_arena_alloc(&d->arena, 4 + r->data.n);
    if (!data)
        return -ENOMEM;
    of_set32(data, r->exp_type);
    if (r->data.n)
        memcpy(data + 4, r->data.p, r->data.n);
    struct of_v10_vendor v = {.vendor = r->experimenter, .data = {data, 4 + r->data.n}};
    return send_part(m, OFPST_VENDOR, &v, w);
}

int
of10_out_stats(struct of10_door *d, const struct of_msg *m, struct of_wr *w)
{
    const void *body = m->body;
    switch (m->mp->type) {
    case OFPMP_DESC: return send_part(m, OFPST_DESC, body, w);
    case OFPMP_FLOW: {
        const struct of_mp_flow_reply *r = body;
        return send_list(d, m, OFPST_FLOW, &r->flows, flow_entry, w);
    }
    case OFPMP_AGGREGATE: return send_part(m, OFPST_AGGREGATE, body, w);
    case OFPMP_TABLE: return give_tables(d, m, w);
    case OFPMP_PORT_STATS: {
        const struct of_mp_port_reply *r = body;
        return send_list(d, m, OFPST_PORT, &r->ports, port_entry, w);
    }
    case OFPMP_QUEUE: {
        const struct of_mp_queue_reply *r = body;
        return send_list(d, m, OFPST_QUEUE, &r->queues, queue_entry, w);
    }
    case OFPMP_EXPERIMENTER: return give_vendor(d, m, w);
    case OFPMP_PORT_DESC: return take_ports(d, m, w);
    case OFPMP_TABLE_FEATURES: return take_tables(d, m);
    default: return 0;
    }
}
