/* SPDX-License-Identifier: Apache-2.0 */
/* TRACE (docs/reference/extensions.md): a packet's way through the switch, step by step. */
#include <admission/request.h>

#include <megaflow/megaflow.h>
#include <ports/ports.h>
#include <trace/trace.h>

#include <stdio.h>

/* ------------------------------------------------------------------ what the switch knows */

/* Finds the class that takes the packet, also if its queue does not exist at the port. */
static void
describe_port(void *ctx, struct of_trace_output *o)
{
    const struct sw *sw = ctx;
    const struct sw_port *p = sw_ports_find(sw, o->port_no);
    struct of_port d;
    if (!o->class_id)
        o->class_id = qos_default_class(sw->qos, o->port_no);
    if (!p)
        return;
    sw_ports_describe(p, &d);
    o->state = d.state;
    o->curr_speed = d.curr_speed;
    o->mtu = p->link.mtu;
    memcpy(o->name, d.name, sizeof o->name);
}

struct queue_way {
    struct trace *t;
    uint8_t depth;
};

static void
put_queue(void *ctx, const struct qos_entry *entry, uint64_t rate, uint64_t ceil)
{
    const struct queue_way *way = ctx;
    struct of_wr w = of_wr_grow(4096);
    qos_entry_encode(&w, entry);
    struct of_trace_queue e = {
        .depth = way->depth, .rate = rate, .ceil = ceil, .entry = {w.buf, w.len}};
    if (!w.overflow)
        trace_put(way->t, OFPTE_QUEUE, &e);
    of_wr_free(&w);
}

static void
put_queues(void *ctx, struct trace *t, uint8_t depth, uint32_t port_no, uint32_t queue_id, bool in)
{
    const struct sw *sw = ctx;
    struct queue_way way = {t, depth};
    qos_each_above(sw->qos, port_no, in ? QOS_IN : QOS_OUT, queue_id, put_queue, &way);
}

static void
put_controllers(void *ctx, struct trace *t, uint8_t depth, uint8_t reason)
{
    const struct sw *sw = ctx;
    for (struct conn *c = NULL; (c = channel_next(sw->channel, c));) {
        struct of_trace_controller e = {
            .depth = depth, .wanted = conn_wants_packet_in(c, reason), .role = conn_state(c)->role};
        snprintf(e.peer, sizeof e.peer, "%s", conn_peer(c));
        if (!conn_aux(c))
            trace_put(t, OFPTE_CONTROLLER, &e);
    }
}

static void
ask_kernel(void *ctx, const struct packet *p, struct of_trace_kernel *out)
{
    struct sw_offload_why why = sw_offload_explain(ctx, p);
    out->handled = !why.name;
    if (why.name) {
        snprintf(out->reason, sizeof out->reason, "%s", why.name);
        snprintf(out->text, sizeof out->text, "%s", why.text);
    }
}

/* ------------------------------------------------------------------ the request */

static int
handle_trace(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    const struct of_mp_experimenter *q = m->body;
    const struct trace_env env = {.ctx = sw,
                                  .port = describe_port,
                                  .queues = put_queues,
                                  .controllers = put_controllers,
                                  .kernel = ask_kernel};
    struct of_arena arena;
    void *body = NULL;
    of_arena_init(&arena, 4096);
    struct of_wr w = of_wr_grow(TRACE_BYTES_MAX + 2 * OF_MSG_MAX);
    int err = of_decode_struct(q->data, &of_row_trace_request, &arena, &body);
    if (!err)
        err = trace_run(&sw->dp, &env, body, loop_now(sw->loop), &w);
    of_arena_free(&arena);
    if (!err)
        return conn_dump_encoded(c, m, &w, conn_dump_tagged);
    of_wr_free(&w);
    return err;
}

const struct request request_trace = {
    .access = ACCESS_READ, .needs = QUEUES, .most = ANY_LENGTH, .run = handle_trace};
