/* SPDX-License-Identifier: Apache-2.0 */
/* Queues as standard OpenFlow sees them (7.2.2, 7.3.5.8, 7.3.6). */
#include "queue-reply.h"
#include <admission/request.h>

#include <shared/reply.h>

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
    struct of_wr *out; /* encoded elements */
    uint64_t now;
};

static bool
stats_one(void *ctx, const struct qos_queue *q)
{
    struct queue_stats *d = ctx;
    struct of_queue_stats s = {.port_no = q->port_no,
                               .queue_id = q->class_id,
                               .tx_bytes = q->counters.bytes,
                               .tx_packets = q->counters.packets,
                               .tx_errors = q->counters.drops};
    split_duration(d->now, q->created, &s.duration_sec, &s.duration_nsec);
    return !of_encode_struct(d->out, &of_row_queue_stats, &s);
}

static int
read_stats(struct sw *sw, const struct queue_question *q, struct of_wr *out, struct qos_error *e)
{
    struct queue_stats d = {.out = out, .now = loop_clock()};
    struct queue_walk walk = {sw, q->port, q->queue, true, stats_one, &d};
    return each_queue(&walk);
}

static int
handle_queue_stats(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    const struct of_mp_queue_request *r = m->body;
    struct queue_question q = {QUEUE_REPLY_STATS, r->port_no, r->queue_id, read_stats};
    if (r->port_no != OFPP_ANY && !sw_ports_find(sw, r->port_no))
        return OF_QUEUE_OP_FAILED(BAD_PORT);
    return sw_queue_reply(sw, c, m, &q, NULL);
}

static int
may_queue_stats(const struct slice_request *a)
{
    const struct of_mp_queue_request *q = a->m->body;
    if (q->port_no != OFPP_ANY && !slice_has_port(a->slice, q->port_no))
        return slice_deny_port(a, OF_QUEUE_OP_FAILED(EPERM), q->port_no);
    if (q->queue_id != OFPQ_ALL && !slice_set_has(&a->slice->queues, q->queue_id))
        return slice_deny(a, OF_QUEUE_OP_FAILED(EPERM), "queue %u", (unsigned)q->queue_id);
    return 0;
}

const struct request request_queue_stats = {.access = ACCESS_READ,
                                            .slice = may_queue_stats,
                                            .needs = QUEUES,
                                            .blocks = true,
                                            .run = handle_queue_stats};

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
    struct of_wr *out; /* struct ofp_packet_queue */
};

static bool
config_one(void *ctx, const struct qos_queue *q)
{
    struct config_walk *d = ctx;
    struct of_queue_prop_rate min = {.row = of_tag_row(&of_list_queue_props, OFPQT_MIN_RATE),
                                     .rate = per_mille(d->sw, q->port_no, q->min_rate)},
                              max = {.row = of_tag_row(&of_list_queue_props, OFPQT_MAX_RATE),
                                     .rate = per_mille(d->sw, q->port_no, q->max_rate)};
    void *props[] = {&min, &max};
    struct of_packet_queue e = {
        .queue_id = q->class_id, .port = q->port_no, .properties = OF_LIST(props, 2)};
    void *v[] = {&e};
    struct of_list l = OF_LIST(v, 1);
    return !of_encode_list(d->out, &of_list_packet_queues, &l);
}

static int
read_config(struct sw *sw, const struct queue_question *q, struct of_wr *out, struct qos_error *e)
{
    struct config_walk d = {sw, out};
    struct queue_walk walk = {sw, q->port, q->queue, false, config_one, &d};
    return each_queue(&walk);
}

static int
handle_queue_get_config(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    const struct of_queue_get_config_request *r = m->body;
    struct queue_question q = {QUEUE_REPLY_CONFIG, r->port, OFPQ_ALL, read_config};
    if (r->port != OFPP_ANY && !sw_ports_find(sw, r->port))
        return OF_QUEUE_OP_FAILED(BAD_PORT);
    return sw_queue_reply(sw, c, m, &q, NULL);
}

static int
may_queue_config(const struct slice_request *a)
{
    uint32_t no = ((const struct of_queue_get_config_request *)a->m->body)->port;
    return no == OFPP_ANY || slice_has_port(a->slice, no)
               ? 0
               : slice_deny_port(a, OF_QUEUE_OP_FAILED(EPERM), no);
}

const struct request request_queue_get_config = {.access = ACCESS_READ,
                                                 .slice = may_queue_config,
                                                 .needs = QUEUES,
                                                 .run = handle_queue_get_config};
