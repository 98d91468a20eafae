/* SPDX-License-Identifier: Apache-2.0 */
#include "trace-inside.h"

#include <packet/headers.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define POOL_BYTES (64u << 20) /* as a worker's, so that a packet meets the same limit */

static const struct pipeline_trace hooks = {
    .enough = trace_enough,
    .table = trace_table,
    .meter = trace_meter,
    .written = trace_written,
    .metadata = trace_metadata,
    .standalone = trace_standalone,
    .action_set = trace_action_set,
    .action = trace_action,
    .acted = trace_acted,
    .group = trace_group,
    .chosen = trace_chosen,
    .bucket = trace_bucket,
    .no_more_buckets = trace_no_more_buckets,
    .flood = trace_flood,
    .learn = trace_learn,
    .find = trace_find,
    .decided = trace_decided,
    .port = trace_port,
    .no_packet_in = trace_no_packet_in,
    .packet_in = trace_packet_in,
    .drop = trace_drop,
};

static void
put_came(struct trace *t, const struct packet *p)
{
    struct fields f;
    trace_fields(&p->key, &f);
    struct of_trace_packet e = {.flags = (uint8_t)((p->fragment ? OFPTP_FRAGMENT : 0) |
                                                   (p->later_fragment ? OFPTP_LATER_FRAGMENT : 0) |
                                                   (p->malformed ? OFPTP_MALFORMED : 0)),
                                .segments = (uint16_t)packet_segments(p),
                                .total_len = p->len,
                                .ttl = trace_ttl(p),
                                .fields = f.match};
    trace_put(t, OFPTE_PACKET, &e);
}

/* The port's queues for what enters: the packet takes a place in them if it will leave again. */
static void
pass_shaper(struct trace *t, struct port *in, struct packet *p)
{
    const struct port_shaper *shaper = port_shaper(in);
    if (!shaper)
        return;
    struct preview o = pipeline_preview(&t->w, p);
    struct of_trace_ingress e = {
        .depth = 1, .goes = o.goes, .port_no = port_no(in), .queue_id = o.queue};
    trace_put(t, OFPTE_INGRESS, &e);
    if (o.goes && t->env->queues)
        t->env->queues(t->env->ctx, t, 2, port_no(in), port_tx_queue(shaper->to, o.queue), true);
}

static void
receive(struct trace *t, struct port *in, struct packet *p)
{
    const struct step at_port = {.w = &t->w, .p = p, .dry = &t->run};
    put_came(t, p);
    if (!port_receives(in)) {
        trace_drop(&at_port, DROP_port_down, OFPP_ANY);
    } else if (p->len < ETH_HEADER) {
        trace_drop(&at_port, DROP_malformed, OFPP_ANY);
    } else {
        pass_shaper(t, in, p);
        pipeline_dry_run(&t->w, p, &t->run);
    }
}

/* To be called before the packet goes its way, which changes it. */
static void
ask_kernel(const struct trace_env *env, const struct packet *p, struct of_trace_kernel *out)
{
    if (env->kernel)
        env->kernel(env->ctx, p, out);
}

static void
take_in(const struct dp *dp, const struct of_trace_request *r, struct packet_pool *pool,
        uint8_t *room, struct packet *p)
{
    *p = (struct packet){.data = room + PACKET_HEADROOM,
                         .len = (uint32_t)r->data.n,
                         .wire_len = (uint32_t)r->data.n,
                         .headroom = PACKET_HEADROOM,
                         .queue = r->queue_id,
                         .inside = dp_inside(dp, r->in_port),
                         .vnet = {.gso_type = r->gso_type, .gso_size = r->gso_size},
                         .pool = pool};
    memcpy(p->data, r->data.p, r->data.n);
    packet_parse(p, r->in_port);
    of_set64(p->key.metadata, r->metadata);
    of_set64(p->key.tunnel_id, r->tunnel_id);
}

int
trace_run(struct dp *dp, const struct trace_env *env, const struct of_trace_request *r,
          uint64_t now, struct of_wr *out)
{
    uint64_t drops[DROP_N] = {0};
    struct of_trace_kernel kernel = {.depth = 0};
    struct packet p;
    struct port *in = dp_port(dp, r->in_port);
    if (!in)
        return OF_BAD_REQUEST(BAD_PORT);
    if (!r->data.n)
        return OF_BAD_REQUEST(BAD_LEN);
    uint8_t *room = malloc(PACKET_HEADROOM + r->data.n);
    struct packet_pool *pool = packet_pool_new(POOL_BYTES);
    struct trace *t = calloc(1, sizeof *t);
    int err = room && pool && t ? 0 : -ENOMEM;
    if (!err) {
        t->w = (struct worker){
            .dp = dp, .drops = drops, .now = now, .standalone = load_relaxed(&dp->standalone)};
        t->run.on = &hooks;
        t->env = env;
        t->out = out;
        t->start = out->len;
        t->max_len = r->max_len;
        t->to_compare = TRACE_COMPARED_MAX;
        take_in(dp, r, pool, room, &p);
        t->came = p.key;
        ask_kernel(env, &p, &kernel);
        receive(t, in, &p);
        if (env->kernel)
            trace_put(t, OFPTE_KERNEL, &kernel);
    }
    free(t);
    packet_pool_free(pool);
    free(room);
    return out->overflow ? -ENOMEM : err;
}
