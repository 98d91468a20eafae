/* SPDX-License-Identifier: Apache-2.0 */
#include <packet/headers.h>
#include <shared/rcu.h>
#include <switch/switch.h>

#include <errno.h>
#include <stdlib.h>

/* ------------------------------------------------------------------ packet-out */

void
sw_packet_out(struct sw *sw, struct program *program, uint32_t in_port, const uint8_t *data,
              uint32_t len)
{
    /* The worker that reads the port: what follows on it stays in order. */
    struct worker *w = sw->dp.workers[in_port % sw->dp.n_workers];
    for (int tries = 0; tries < 1000; tries++) {
        if (worker_packet_out(w, program, in_port, data, len))
            return;
        struct timespec ms = {.tv_nsec = 1000000};
        nanosleep(&ms, NULL);
    }
    sw->packet_outs_lost++;
    free(program);
}

/* By which port a packet-out's packet is said to have come in.  Controllers have three words for
 * "by none", of which the specification has but OFPP_CONTROLLER. */
static int
in_port_of(const struct sw *sw, uint32_t no, uint32_t *out)
{
    *out = no == 0 || no == OFPP_ANY ? OFPP_CONTROLLER : no;
    return *out == OFPP_CONTROLLER || sw_ports_find(sw, no) ? 0 : OF_BAD_REQUEST(BAD_PORT);
}

int
handle_packet_out(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    const struct of_packet_out *q = m->body;
    struct of_bytes data = q->data;
    const struct buffered *b = NULL;
    uint32_t in_port;
    int err = 0;
    if (q->buffer_id != OFP_NO_BUFFER) {
        if ((err = sw_buffers_find(sw->buffers, q->buffer_id, &b)))
            return err;
        data = (struct of_bytes){b->data, b->len};
    }
    if ((err = in_port_of(sw, q->in_port, &in_port)))
        return err;
    if (data.n < ETH_HEADER)
        return OF_BAD_REQUEST(BAD_PACKET);
    struct compile_env env = sw_compile_env(sw);
    env.packet_out = true;
    struct program *p;
    err = compile_actions(&env, &q->actions, &p);
    if (err)
        return err;
    sw_packet_out(sw, p, in_port, data.p, (uint32_t)data.n);
    if (b)
        sw_buffers_drop(sw->buffers, q->buffer_id);
    return 0;
}

/* ------------------------------------------------------------------ flow-mod */

static bool
names_buffer(const struct of_flow_mod *q) /* a delete takes none */
{
    return q->buffer_id != OFP_NO_BUFFER && q->command <= OFPFC_MODIFY_STRICT;
}

int
sw_flow_mod(struct sw *sw, const struct of_flow_mod *q)
{
    const struct buffered *b;
    int err = names_buffer(q) ? sw_buffers_find(sw->buffers, q->buffer_id, &b) : 0;
    return err ? err : tables_flow_mod(sw->dp.tables, q, loop_now(sw->loop));
}

/* A buffered packet goes through the tables once the flow is there (7.3.4.2). */
static int
release_buffer(struct sw *sw, uint32_t id)
{
    static const struct act to_table = {.op = OFPAT_OUTPUT, .units = 1, .arg = OFPP_TABLE};
    const struct buffered *b;
    if (sw_buffers_find(sw->buffers, id, &b)) /* another flow-mod of the same bundle has used it */
        return 0;
    struct program *p = calloc(1, sizeof *p + sizeof to_table);
    if (!p)
        return -ENOMEM;
    p->goto_table = NO_TABLE;
    p->n_apply = 1;
    memcpy(p->acts, &to_table, sizeof to_table);
    sw_packet_out(sw, p, b->in_port, b->data, b->len);
    sw_buffers_drop(sw->buffers, id);
    return 0;
}

int
sw_flow_mod_done(struct sw *sw, const struct of_flow_mod *q)
{
    if (q->idle_timeout || q->hard_timeout)
        sw_flows_watch(sw);
    return names_buffer(q) ? release_buffer(sw, q->buffer_id) : 0;
}

int
handle_flow_mod(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    int err = sw_flow_mod(sw, m->body);
    return err ? err : sw_flow_mod_done(sw, m->body);
}

/* ------------------------------------------------------------------ timeouts */

void
sw_flows_expire(void *ctx)
{
    struct sw *sw = ctx;
    if (sw->committing) { /* or they would go with the bundle */
        loop_timer_set(sw->expiry, loop_now(sw->loop) + COMMIT_TURN_NS);
        return;
    }
    uint64_t next = tables_expire(sw->dp.tables, loop_now(sw->loop));
    if (next)
        loop_timer_set(sw->expiry, next);
}

void
sw_flows_watch(struct sw *sw)
{
    sw_flows_expire(sw);
}

void
sw_flow_removed(void *ctx, struct flow *f, uint8_t reason, uint64_t now)
{
    struct sw *sw = ctx;
    struct of_oxm oxms[OXM_N];
    struct flow_key key;
    struct flow_counter n = tables_flow_counter(sw->dp.tables, f);
    struct of_flow_removed r = {.cookie = flow_program(f)->cookie,
                                .priority = f->priority,
                                .reason = reason,
                                .table_id = f->table_id,
                                .idle_timeout = f->idle_timeout,
                                .hard_timeout = f->hard_timeout,
                                .packet_count = n.packets,
                                .byte_count = n.bytes,
                                .match = {.v = oxms}};
    split_duration(now, f->created, &r.duration_sec, &r.duration_nsec);
    flow_key_of(f, &key);
    key_to_match(&key, &f->sub->mask, &r.match);
    channel_async(sw->channel, ASYNC_FLOW_REMOVED, reason, OFPT_FLOW_REMOVED, &r);
}

/* ------------------------------------------------------------------ statistics */

struct sum {
    struct sw *sw;
    struct of_mp_aggregate r;
};

static int
sum_flow(void *ctx, struct flow *f)
{
    struct sum *s = ctx;
    struct flow_counter n = tables_flow_counter(s->sw->dp.tables, f);
    add_counter(&s->r.packet_count, n.packets);
    add_counter(&s->r.byte_count, n.bytes);
    s->r.flow_count++;
    return 0;
}

int
handle_aggregate(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    struct flow_filter filter = flow_filter_of_stats(m->body);
    struct sum s = {.sw = sw};
    int err = tables_each(sw->dp.tables, &filter, sum_flow, &s);
    return err ? err : conn_reply(c, OFPT_MULTIPART_REPLY, m, &s.r);
}

static bool
table_step(struct conn_dump *to, void *ctx)
{
    struct sw *sw = ctx;
    for (unsigned i = 0; i < tables_count(sw->dp.tables); i++) {
        const struct flow_table *ft = tables_get(sw->dp.tables, (uint8_t)i);
        if (!ft)
            continue;
        struct table_counter n = tables_counter(sw->dp.tables, (uint8_t)i);
        struct of_table_stats s = {.table_id = (uint8_t)i,
                                   .active_count = ft->flows.n_flows,
                                   .lookup_count = n.lookups,
                                   .matched_count = n.matched};
        conn_dump_add(to, &of_list_table_stats, &s);
    }
    return false;
}

int
handle_table_stats(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    return conn_dump(c, m, table_step, NULL, sw);
}

int
handle_table_mod(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    const struct of_table_mod *q = m->body;
    if (q->table_id != OFPTT_ALL && !tables_get(sw->dp.tables, q->table_id))
        return OF_TABLE_MOD_FAILED(BAD_TABLE);
    if (q->config & ~(uint32_t)OFPTC_DEPRECATED_MASK)
        return OF_TABLE_MOD_FAILED(BAD_CONFIG);
    for (unsigned i = 0; i < tables_count(sw->dp.tables); i++) {
        struct flow_table *ft = tables_get(sw->dp.tables, (uint8_t)i);
        if (ft && (q->table_id == OFPTT_ALL || q->table_id == i))
            ft->config = q->config;
    }
    return 0;
}
