/* SPDX-License-Identifier: Apache-2.0 */
#include "flow-list.h"
#include "flow-mod.h"
#include "requests.h"
#include "slice.h"

#include <packet/headers.h>
#include <switch/flows.h>
#include <switch/packet-in.h>
#include <switch/reply.h>

#include <errno.h>
#include <stdlib.h>

/* ------------------------------------------------------------------ packet-out */

/* Reads a packet-out's in_port.  For "none" controllers also send 0 and OFPP_ANY, besides the
 * specification's OFPP_CONTROLLER. */
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
    sw_packet_out(sw, c, p, in_port, data.p, (uint32_t)data.n);
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

static int
flow_mod(struct sw *sw, const struct of_flow_mod *q,
         int (*carry_out)(struct tables *, const struct of_flow_mod *, uint64_t))
{
    const struct buffered *b;
    int err = names_buffer(q) ? sw_buffers_find(sw->buffers, q->buffer_id, &b) : 0;
    if (q->flags & OFPFF_RESET_COUNTS)
        sw_offload_sync(sw); /* or what the kernel did before would count after it */
    return err ? err : carry_out(sw->dp.tables, q, loop_now(sw->loop));
}

int
sw_flow_mod(struct sw *sw, const struct of_flow_mod *q)
{
    return flow_mod(sw, q, tables_flow_mod);
}

/* A buffered packet goes through the tables once the flow is there (7.3.4.2). */
static int
release_buffer(struct sw *sw, struct conn *c, uint32_t id)
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
    sw_packet_out(sw, c, p, b->in_port, b->data, b->len);
    sw_buffers_drop(sw->buffers, id);
    return 0;
}

int
sw_flow_mod_done(struct sw *sw, struct conn *c, const struct of_flow_mod *q)
{
    if (q->idle_timeout || q->hard_timeout)
        sw_flows_expire(sw);
    return names_buffer(q) ? release_buffer(sw, c, q->buffer_id) : 0;
}

int
handle_flow_mod(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    bool or_add = m->version == OFP10_VERSION; /* the one thing that 1.3 has no word for */
    const struct of_flow_mod *q = m->body;
    if (q->command == OFPFC_DELETE)
        return sw_flow_delete(sw, c, q);
    int err = flow_mod(sw, q, or_add ? tables_flow_mod_or_add : tables_flow_mod);
    return err ? err : sw_flow_mod_done(sw, c, q);
}

/* ------------------------------------------------------------------ statistics */

#define SUM_AT_ONCE 256

/* The flows of a sum are listed when the request comes, and added up over many turns. */
struct sum {
    struct flow_list *list;
    struct slice *slice;
    uint32_t at;
    struct of_mp_aggregate r;
};

static void
sum_free(void *ctx)
{
    struct sum *s = ctx;
    sw_flow_list_release(s->list);
    slice_put(s->slice);
    free(s);
}

static void
sum_flow(struct sum *s, const struct flow *f)
{
    struct sw *sw = s->list->sw;
    if (f->removed || !sw_slice_sees_flow(sw, s->slice, f))
        return;
    struct flow_counter n = tables_flow_counter(sw->dp.tables, f);
    add_counter(&s->r.packet_count, n.packets);
    add_counter(&s->r.byte_count, n.bytes);
    s->r.flow_count++;
}

static bool
sum_step(struct conn_dump *to, void *ctx)
{
    struct sum *s = ctx;
    uint8_t bytes[64];
    struct of_wr w = of_wr_fixed(bytes, sizeof bytes);
    for (int i = 0; i < SUM_AT_ONCE && s->at < s->list->n; i++)
        sum_flow(s, s->list->v[s->at++]);
    if (s->at < s->list->n)
        return true;
    of_encode_struct(&w, &of_row_mp_aggregate, &s->r);
    conn_dump_add_bytes(to, (struct of_bytes){bytes, w.len});
    return false;
}

int
handle_aggregate(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    struct flow_filter filter = flow_filter_of_stats(m->body);
    struct sum *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    int err = sw_flow_list_new(sw, &filter, &s->list);
    s->slice = err ? NULL : slice_hold(sw_slice_of(c));
    if (!err)
        return conn_dump(c, m, sum_step, sum_free, s);
    free(s);
    return err;
}
