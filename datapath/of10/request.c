/* SPDX-License-Identifier: Apache-2.0 */
/* Translates requests of 1.0 to messages of 1.3. */
#include "inside.h"

#include <errno.h>

/* Those of 1.0 that say what an extension's message does have the same bytes from here on. */
static int
copy(struct of10_door *d, const struct of_msg *m, uint8_t type)
{
    size_t start = d->queue.len;
    of_wr_bytes(&d->queue, m->raw.p, m->raw.n);
    if (d->queue.overflow)
        return -EMSGSIZE;
    d->queue.buf[start] = OFP_VERSION;
    d->queue.buf[start + 1] = type;
    return 0;
}

int
of10_in_same(struct of10_door *d, const struct of_msg *m)
{
    return copy(d, m, m->type);
}

int
of10_in_barrier(struct of10_door *d, const struct of_msg *m)
{
    return of_encode_body(&d->queue, OFPT_BARRIER_REQUEST, m->xid, NULL);
}

int
of10_in_features(struct of10_door *d, const struct of_msg *m)
{
    int err = of_encode_body(&d->queue, OFPT_FEATURES_REQUEST, m->xid, NULL);
    if (err)
        return err;
    return of_encode_multipart(&d->queue, OFPT_MULTIPART_REQUEST, m->xid, OFPMP_PORT_DESC, 0, NULL);
}

/* In 1.0 every miss_send_len is a length; 1.3 has values with other meanings. */
int
of10_in_set_config(struct of10_door *d, const struct of_msg *m)
{
    struct of_switch_config c = *(const struct of_switch_config *)m->body;
    if (c.miss_send_len > OFPCML_MAX)
        c.miss_send_len = OFPCML_NO_BUFFER;
    return of_encode_body(&d->queue, OFPT_SET_CONFIG, m->xid, &c);
}

/* ------------------------------------------------------------------ packets and flows */

int
of10_in_packet_out(struct of10_door *d, const struct of_msg *m)
{
    const struct of_v10_packet_out *q = m->body;
    struct of_packet_out o = {
        .buffer_id = q->buffer_id, .in_port = of_port_of10(q->in_port), .data = q->data};
    int err = of10_actions_in(&d->arena, NULL, &q->actions, &o.actions);
    return err ? err : of_encode_body(&d->queue, OFPT_PACKET_OUT, m->xid, &o);
}

/* There is no emergency table: it is full from the start, and deleting in it deletes nothing. */
static int
take_emergency(const struct of_v10_flow_mod *q)
{
    if (q->command == OFPFC_DELETE || q->command == OFPFC_DELETE_STRICT)
        return 0;
    return q->idle_timeout || q->hard_timeout ? OF10_FLOW_MOD_FAILED(BAD_EMERG_TIMEOUT)
                                              : OF10_FLOW_MOD_FAILED(ALL_TABLES_FULL);
}

/* An entry without wildcards comes before all others (3.4). */
static bool
is_exact(const struct of_msg *m)
{
    return !(of_get32(m->raw.p + OFP_HEADER_LEN) & OFPFW10_ALL);
}

int
of10_in_flow_mod(struct of10_door *d, const struct of_msg *m)
{
    const struct of_v10_flow_mod *q = m->body;
    bool deletes = q->command == OFPFC_DELETE || q->command == OFPFC_DELETE_STRICT;
    if (q->command > OFPFC_DELETE_STRICT)
        return OF_FLOW_MOD_FAILED(BAD_COMMAND);
    if (q->flags & ~(OFPFF10_SEND_FLOW_REM | OFPFF10_CHECK_OVERLAP | OFPFF10_EMERG))
        return OF_FLOW_MOD_FAILED(BAD_FLAGS);
    if (q->flags & OFPFF10_EMERG)
        return take_emergency(q);
    struct of_flow_mod f = {.cookie = q->cookie,
                            .table_id = 0, /* what the others hold was made in 1.3 */
                            .command = (uint8_t)q->command,
                            .idle_timeout = q->idle_timeout,
                            .hard_timeout = q->hard_timeout,
                            .priority = is_exact(m) ? UINT16_MAX : q->priority,
                            .buffer_id = q->buffer_id,
                            .out_port = deletes ? of_port_of10(q->out_port) : OFPP_ANY,
                            .out_group = OFPG_ANY,
                            .flags = q->flags,
                            .match = q->match};
    if (q->command == OFPFC_ADD)
        f.flags |= OFPFF_RESET_COUNTS; /* a flow that it replaces loses its counters (4.6) */
    struct of_instr_actions apply = {.row = OF_INSTR(APPLY_ACTIONS)};
    void *v[] = {&apply};
    int err = of10_actions_in(&d->arena, &q->match, &q->actions, &apply.actions);
    if (err)
        return err;
    f.instructions = (struct of_list){.n = apply.actions.n && !deletes, .v = v};
    return of_encode_body(&d->queue, OFPT_FLOW_MOD, m->xid, &f);
}

/* ------------------------------------------------------------------ ports and queues */

/* There is no spanning tree here, so what a port does with its frames can't be changed. */
#define SPANNING_TREE (OFPPC10_NO_STP | OFPPC10_NO_RECV_STP)

int
of10_in_port_mod(struct of10_door *d, const struct of_msg *m)
{
    const struct of_v10_port_mod *q = m->body;
    uint32_t advertise = q->advertise;
    struct of_port_mod p = {.port_no = of_port_of10(q->port_no),
                            .config = q->config & ~SPANNING_TREE,
                            .mask = q->mask & ~SPANNING_TREE,
                            .advertise = (advertise & 0x7f) | (advertise & ~0x7fu) << 4};
    memcpy(p.hw_addr, q->hw_addr, sizeof p.hw_addr);
    return of_encode_body(&d->queue, OFPT_PORT_MOD, m->xid, &p);
}

int
of10_in_queue_config(struct of10_door *d, const struct of_msg *m)
{
    const struct of_v10_queue_get_config_request *q = m->body;
    struct of_queue_get_config_request r = {.port = of_port_of10(q->port)};
    return of_encode_body(&d->queue, OFPT_QUEUE_GET_CONFIG_REQUEST, m->xid, &r);
}

/* ------------------------------------------------------------------ extensions */

#define CONTENT_PORT 8 /* where a QoS request's content has its port, of 32 bits */

/* A port that is reserved in 1.0 may come as 1.0 writes it. */
static void
widen_port(struct of_wr *w, size_t content)
{
    if (w->len < content + CONTENT_PORT + 4)
        return;
    uint8_t *p = w->buf + content + CONTENT_PORT;
    uint32_t port = of_get32(p);
    if (port > OFPP10_MAX && port <= UINT16_MAX)
        of_set32(p, of_port_of10((uint16_t)port));
}

int
of10_in_qos(struct of10_door *d, const struct of_msg *m)
{
    int err = copy(d, m, OFPT_QOS_QUEUEING_DISCIPLINE);
    if (!err)
        widen_port(&d->queue, OFP_HEADER_LEN);
    return err;
}

/* Nicira's role request, which has no generation (the channel asks for none). */
static int
take_role(struct of10_door *d, const struct of_msg *m, struct of_bytes data)
{
    if (data.n != 8)
        return OF_BAD_REQUEST(BAD_LEN);
    uint32_t role = of_get32(data.p + 4);
    struct of_role r = {.role = role > 2 ? UINT32_MAX : role + OFPCR_ROLE_EQUAL};
    return of_encode_body(&d->queue, OFPT_ROLE_REQUEST, m->xid, &r);
}

int
of10_in_vendor(struct of10_door *d, const struct of_msg *m)
{
    const struct of_v10_vendor *q = m->body;
    if (q->vendor == OFP10_NX_VENDOR && q->data.n >= 4)
        return of_get32(q->data.p) == OFP10_NX_ROLE_REQUEST ? take_role(d, m, q->data)
                                                            : OF_BAD_REQUEST(BAD_EXP_TYPE);
    if (q->vendor != OFP_QOS_EXPERIMENTER)
        return OF_BAD_REQUEST(BAD_EXPERIMENTER);
    if (q->data.n < 4)
        return OF_BAD_REQUEST(BAD_LEN);
    int err = copy(d, m, OFPT_EXPERIMENTER);
    if (!err && of_get32(q->data.p) == OFP_QOS_EXP_REQUEST)
        widen_port(&d->queue, OFP_HEADER_LEN + 8);
    return err;
}

/* ------------------------------------------------------------------ statistics */

static int
ask(struct of10_door *d, const struct of_msg *m, uint16_t type, const void *body)
{
    return of_encode_multipart(&d->queue, OFPT_MULTIPART_REQUEST, m->xid, type, 0, body);
}

/* The emergency table has no flows: asks for those of a group that no flow can output to. */
static int
ask_flows(struct of10_door *d, const struct of_msg *m, uint16_t type)
{
    const struct of_v10_flow_request *q = m->body;
    bool none = q->table_id == OFP10_EMERG_TABLE;
    struct of_mp_flow_request r = {.table_id = none ? OFPTT_ALL : q->table_id,
                                   .out_port = of_port_of10(q->out_port),
                                   .out_group = none ? OFPG_MAX + 1u : OFPG_ANY,
                                   .match = q->match};
    return ask(d, m, type, &r);
}

static int
ask_tables(struct of10_door *d, const struct of_msg *m)
{
    int err = ask(d, m, OFPMP_TABLE_FEATURES, NULL);
    return err ? err : ask(d, m, OFPMP_TABLE, NULL);
}

/* Of all ports: OFPP_NONE by the specification's comment, OFPP_ALL by another one of its. */
static uint32_t
port_or_all(uint16_t port)
{
    return port == OFPP10_ALL ? OFPP_ANY : of_port_of10(port);
}

int
of10_in_stats(struct of10_door *d, const struct of_msg *m)
{
    switch (m->mp->type) {
    case OFPST_DESC: return ask(d, m, OFPMP_DESC, NULL);
    case OFPST_FLOW: return ask_flows(d, m, OFPMP_FLOW);
    case OFPST_AGGREGATE: return ask_flows(d, m, OFPMP_AGGREGATE);
    case OFPST_TABLE: return ask_tables(d, m);
    case OFPST_PORT: {
        const struct of_v10_port_request *q = m->body;
        struct of_mp_port_request r = {.port_no = port_or_all(q->port_no)};
        return ask(d, m, OFPMP_PORT_STATS, &r);
    }
    case OFPST_QUEUE: {
        const struct of_v10_queue_request *q = m->body;
        struct of_mp_queue_request r = {.port_no = port_or_all(q->port_no),
                                        .queue_id = q->queue_id};
        return ask(d, m, OFPMP_QUEUE, &r);
    }
    default: {
        const struct of_v10_vendor *q = m->body;
        struct of_mp_experimenter r = {.experimenter = q->vendor};
        if (q->data.n < 4)
            return OF_BAD_REQUEST(BAD_LEN);
        r.exp_type = of_get32(q->data.p);
        r.data = (struct of_bytes){q->data.p + 4, q->data.n - 4};
        return ask(d, m, OFPMP_EXPERIMENTER, &r);
    }
    }
}
