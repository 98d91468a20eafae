/* SPDX-License-Identifier: Apache-2.0 */
/* Queues as standard OpenFlow sees them (7.2.2, 7.3.5.8, 7.3.6). */
#include "requests.h"
#include "slice.h"

#include <switch/reply.h>

#include <errno.h>

struct queue_walk {
    struct sw *sw;
    uint32_t port, queue;
    bool counters;
    qos_queue_fn *fn;
    void *ctx;
};

/* Calls fn for the request's queues.  OFPP_ANY: of all ports; OFPQ_ALL: all queues. */
static int
each_queue(const struct queue_walk *q)
{
    struct qos_queue one;
    bool found = q->queue == OFPQ_ALL || q->port == OFPP_ANY;
    uint32_t no = 0;
    for (const struct sw_port *p; (p = sw_ports_next(q->sw, no)); no = p->no) {
        if (q->port != OFPP_ANY && q->port != p->no)
            continue;
        int err = 0;
        if (q->queue == OFPQ_ALL) {
            err = qos_queue_each(q->sw->qos, p->no, q->counters, q->fn, q->ctx);
        } else if (!qos_queue_get(q->sw->qos, p->no, q->queue, q->counters, &one)) {
            found = true;
            q->fn(q->ctx, &one);
        }
        if (err && err != -ENOENT)
            return err;
    }
    return found ? 0 : OF_QUEUE_OP_FAILED(BAD_QUEUE);
}

struct queue_stats {
    const struct slice *slice;
    struct of_wr out; /* encoded elements */
    uint64_t now;
};

static bool
stats_one(void *ctx, const struct qos_queue *q)
{
    struct queue_stats *d = ctx;
    if (!slice_has_queue(d->slice, q->port_no, q->class_id))
        return true;
    struct of_queue_stats s = {.port_no = q->port_no,
                               .queue_id = q->class_id,
                               .tx_bytes = q->counters.bytes,
                               .tx_packets = q->counters.packets,
                               .tx_errors = q->counters.drops};
    split_duration(d->now, q->created, &s.duration_sec, &s.duration_nsec);
    return !of_encode_struct(&d->out, &of_row_queue_stats, &s);
}

static size_t
stats_len(struct of_bytes left)
{
    return of_row_queue_stats.wire;
}

int
handle_queue_stats(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    const struct of_mp_queue_request *q = m->body;
    if (q->port_no != OFPP_ANY && !sw_ports_find(sw, q->port_no))
        return OF_QUEUE_OP_FAILED(BAD_PORT);
    struct queue_stats d = {
        .slice = sw_slice_of(c), .out = of_wr_grow(16u << 20), .now = loop_now(sw->loop)};
    struct queue_walk walk = {sw, q->port_no, q->queue_id, true, stats_one, &d};
    int err = each_queue(&walk);
    if (!err)
        return conn_dump_encoded(c, m, &d.out, stats_len);
    of_wr_free(&d.out);
    return err;
}

/* A rate in per mille of the port's speed; all ones if that is unknown. */
static uint16_t
per_mille(const struct sw *sw, uint32_t port, uint64_t rate)
{
    const struct sw_port *p = sw_ports_find(sw, port);
    if (!p || !p->link.speed)
        return 0xffff;
    uint64_t v = rate / 1000 * 1000000 / p->link.speed; /* 64 bits are enough for 18 Tbit/s */
    return v > 1000 ? 1000 : (uint16_t)v;
}

struct config_walk {
    struct sw *sw;
    const struct slice *slice;
    struct of_wr out; /* struct ofp_packet_queue */
};

static bool
config_one(void *ctx, const struct qos_queue *q)
{
    struct config_walk *d = ctx;
    if (!slice_has_queue(d->slice, q->port_no, q->class_id))
        return true;
    struct of_queue_prop_rate min = {.row = of_tag_row(&of_list_queue_props, OFPQT_MIN_RATE),
                                     .rate = per_mille(d->sw, q->port_no, q->min_rate)},
                              max = {.row = of_tag_row(&of_list_queue_props, OFPQT_MAX_RATE),
                                     .rate = per_mille(d->sw, q->port_no, q->max_rate)};
    void *props[] = {&min, &max};
    struct of_packet_queue e = {
        .queue_id = q->class_id, .port = q->port_no, .properties = OF_LIST(props, 2)};
    void *v[] = {&e};
    struct of_list l = OF_LIST(v, 1);
    return !of_encode_list(&d->out, &of_list_packet_queues, &l);
}

static size_t
config_len(struct of_bytes left)
{
    return of_get16(left.p + 8);
}

int
handle_queue_get_config(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    const struct of_queue_get_config_request *q = m->body;
    if (q->port != OFPP_ANY && !sw_ports_find(sw, q->port))
        return OF_QUEUE_OP_FAILED(BAD_PORT);
    struct config_walk d = {.sw = sw, .slice = sw_slice_of(c), .out = of_wr_grow(16u << 20)};
    struct queue_walk walk = {sw, q->port, OFPQ_ALL, false, config_one, &d};
    int err = each_queue(&walk);
    if (!err)
        return conn_dump_encoded(c, m, &d.out, config_len);
    of_wr_free(&d.out);
    return err;
}
