/* SPDX-License-Identifier: Apache-2.0 */
#include "flow-mod.h"
#include <admission/request.h>

#include <megaflow/megaflow.h>
#include <packet/headers.h>
#include <punt/packet-in.h>
#include <punt/packet-out.h>
#include <requests/flows.h>
#include <shared/reply.h>

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

static int
packet_out(struct sw *sw, struct conn *c, const struct of_packet_out *q)
{
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
    if (data.n && data.n < ETH_HEADER)
        return OF_BAD_REQUEST(BAD_PACKET);
    struct compile_env env = sw_compile_env(sw);
    env.packet_out = true;
    struct program *p;
    err = compile_actions(&env, &q->actions, &p);
    if (err)
        return err;
    if (!data.n) { /* nothing to send, as Open vSwitch takes it: OFTest and POX send such */
        sw->counters.packet_outs_empty++;
        free(p);
        return 0;
    }
    sw_packet_out(sw, c, p, in_port, data.p, (uint32_t)data.n);
    if (b)
        sw_buffers_drop(sw->buffers, q->buffer_id);
    return 0;
}

static int
handle_packet_out(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    int err = packet_out(sw, c, m->body);
    if (!err)
        log_debug_by(PACKET, conn_by(c), "packet-out of %zu bytes", m->raw.n);
    return err;
}

static int
may_packet_out(const struct slice_request *a)
{
    const struct of_packet_out *q = a->m->body;
    const struct buffered *b;
    char why[SLICE_WHY];
    bool none = q->in_port == OFPP_CONTROLLER || q->in_port == OFPP_ANY || !q->in_port;
    if (!none && !slice_has_port(a->slice, q->in_port))
        return slice_deny_port(a, OF_BAD_REQUEST(EPERM), q->in_port);
    if (q->buffer_id != OFP_NO_BUFFER && !sw_buffers_find(a->sw->buffers, q->buffer_id, &b) &&
        !slice_has_port(a->slice, b->in_port))
        return slice_deny(a, OF_BAD_REQUEST(EPERM), "a packet of port %u", (unsigned)b->in_port);
    int err = slice_check_actions(a->slice, &q->actions, !none, true, why);
    return err ? slice_deny(a, err, "%s", why) : 0;
}

static bool
packet_out_ready(struct sw *sw, struct conn *c, struct of_bytes frame)
{
    return sw_packet_outs_have_room(sw);
}

const struct request request_packet_out = {.access = ACCESS_WRITE,
                                           .slice = may_packet_out,
                                           .ready = packet_out_ready,
                                           .run = handle_packet_out};

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
        sw_offload_sync(sw); /* otherwise what the kernel did before it would be counted after it */
    return err ? err : carry_out(sw->dp.tables, q, loop_now(sw->loop));
}

int
sw_flow_mod(struct sw *sw, const struct of_flow_mod *q)
{
    return flow_mod(sw, q, tables_flow_mod);
}

int
sw_flow_mod_done(struct sw *sw, struct conn *c, const struct of_flow_mod *q)
{
    if (q->idle_timeout || q->hard_timeout)
        sw_flows_expire(sw);
    return names_buffer(q) ? sw_buffer_release(sw, c, q->buffer_id) : 0;
}

static int
handle_flow_mod(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    bool or_add = m->version == OFP10_VERSION; /* its modify adds a flow that is missing */
    const struct of_flow_mod *q = m->body;
    if (q->command == OFPFC_DELETE)
        return sw_flow_delete(sw, c, m);
    if (q->command == OFPFC_MODIFY) {
        const struct buffered *b;
        bool none = false;
        int err = names_buffer(q) ? sw_buffers_find(sw->buffers, q->buffer_id, &b) : 0;
        if (err || (err = sw_flow_modify(sw, c, m, &none)) || !none)
            return err;
    }
    int err = flow_mod(sw, q, or_add ? tables_flow_mod_or_add : tables_flow_mod);
    return err ? err : sw_flow_mod_done(sw, c, q);
}

static int
flow_mod_in_change_set(struct sw *sw, const struct of_msg *m)
{
    return sw_flow_mod(sw, m->body);
}

static int
may_flow_mod(const struct slice_request *a)
{
    const struct of_flow_mod *q = a->m->body;
    const struct buffered *b;
    char why[SLICE_WHY];
    int err = slice_check_flow_mod(a->slice, q, why);
    if (err)
        return slice_deny(a, err, "%s", why);
    bool buffer = q->buffer_id != OFP_NO_BUFFER && q->command <= OFPFC_MODIFY_STRICT;
    if (buffer && !sw_buffers_find(a->sw->buffers, q->buffer_id, &b) &&
        !slice_has_port(a->slice, b->in_port))
        return slice_deny(a, OF_FLOW_MOD_FAILED(EPERM), "a packet of port %u",
                          (unsigned)b->in_port);
    return 0;
}

const struct request request_flow_mod = {.access = ACCESS_WRITE,
                                         .slice = may_flow_mod,
                                         .denied = OF_FLOW_MOD_FAILED(EPERM),
                                         .needs = QUEUES,
                                         .bundle = BUNDLE_TABLES,
                                         .in_change_set = flow_mod_in_change_set,
                                         LOGGED(FLOW),
                                         .run = handle_flow_mod};
