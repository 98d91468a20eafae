/* SPDX-License-Identifier: Apache-2.0 */
/* A trace where the packet leaves: ports and their queues, NORMAL, the controllers. */
#include "trace-inside.h"

#include <packet/headers.h>

#include <string.h>

/* An event's length has 16 bits; the rest of it is shorter than this. */
#define DATA_MAX (UINT16_MAX - 2048u)

static struct of_bytes
shown(const struct trace *t, const uint8_t *data, uint32_t len)
{
    uint32_t most = t->max_len < DATA_MAX ? t->max_len : DATA_MAX;
    return (struct of_bytes){data, len < most ? len : most};
}

/* ------------------------------------------------------------------ ports */

void
trace_flood(const struct step *s, uint32_t without)
{
    const struct port_list *l = rcu_dereference(s->w->dp->ports);
    struct of_trace_flood e = {.depth = (uint8_t)(depth_of(s) + 1), .in_port = s->p->in_port};
    for (uint32_t i = 0; l && i < l->n; i++)
        e.ports += port_no(l->v[i]) != s->p->in_port && !(port_config_bits(l->v[i]) & without);
    trace_put(trace_of(s), OFPTE_FLOOD, &e);
}

static struct learnt *
learnt_find(struct trace *t, const uint8_t *mac, uint16_t vid)
{
    for (unsigned i = 0; i < t->n_learnt; i++)
        if (t->learnt[i].vid == vid && !memcmp(t->learnt[i].mac, mac, ETH_ADDR))
            return &t->learnt[i];
    return NULL;
}

void
trace_learn(const struct step *s, uint16_t vid)
{
    struct trace *t = trace_of(s);
    const uint8_t *mac = s->p->key.eth_src;
    uint32_t in = s->p->in_port;
    if (mac[0] & 1 || t->n_learnt == TRACE_LEARNT || learnt_find(t, mac, vid))
        return;
    struct learnt *l = &t->learnt[t->n_learnt++];
    *l = (struct learnt){.vid = vid, .port = in == OFPP_LOCAL ? NORMAL_LOCAL : (uint16_t)in};
    memcpy(l->mac, mac, ETH_ADDR);
}

uint16_t
trace_find(const struct step *s, uint16_t vid, uint32_t now)
{
    const uint8_t *mac = s->p->key.eth_dst;
    const struct learnt *l = learnt_find(trace_of(s), mac, vid);
    return l ? l->port : normal_find(s->w->dp->normal, mac, vid, now);
}

void
trace_decided(const struct step *s, uint16_t vid, const struct port *to)
{
    const struct packet *p = s->p;
    struct of_trace_normal e = {.depth = (uint8_t)(depth_of(s) + 1),
                                .learns = !(p->key.eth_src[0] & 1),
                                .vid = vid,
                                .port_no = to ? port_no(to) : OFPP_ANY};
    memcpy(e.eth_dst, p->key.eth_dst, sizeof e.eth_dst);
    trace_put(trace_of(s), OFPTE_NORMAL, &e);
}

/* The bytes with a partial checksum filled in, as they will be on the wire. */
static struct of_bytes
finished(const struct trace *t, const struct packet *p)
{
    struct packet copy = *p;
    copy.shared = true;
    if (!t->max_len || !p->vnet.flags || p->vnet.gso_type || !packet_complete_csum(&copy))
        return shown(t, p->data, p->len);
    return shown(t, copy.data, copy.len);
}

void
trace_port(const struct step *s, struct port *port, uint32_t no)
{
    struct trace *t = trace_of(s);
    const struct packet *p = s->p;
    struct fields was, is;
    int drop = port ? port_tx_refusal(port, p) : EDIT_DROP(no_port);
    if (!port) {
        trace_drop(s, DROP_no_port, no);
        return;
    }
    trace_changes(&t->came, &p->key, &was, &is);
    uint32_t queue = queue_at(p->queue, p->queue_ports, port_no(port));
    struct of_trace_output e = {.depth = (uint8_t)(depth_of(s) + 1),
                                .goes = !drop,
                                .segments = (uint16_t)packet_segments(p),
                                .port_no = port_no(port),
                                .total_len = p->len,
                                .queue_id = queue,
                                .class_id = port_tx_class(port, queue),
                                .config = port_config_bits(port),
                                .before = was.match,
                                .after = is.match,
                                .data = finished(t, p)};
    if (t->env->port)
        t->env->port(t->env->ctx, &e);
    trace_put(t, OFPTE_OUTPUT, &e);
    if (drop)
        trace_drop(s, (enum drop_reason)(drop - 1), no);
    else if (t->env->queues)
        t->env->queues(t->env->ctx, t, (uint8_t)(e.depth + 1), e.port_no,
                       port_tx_queue(port, queue), false);
}

/* ------------------------------------------------------------------ the controllers */

static void
put_packet_in(const struct step *s, struct of_trace_packet_in *e)
{
    struct trace *t = trace_of(s);
    struct fields was, is;
    trace_changes(&t->came, &s->p->key, &was, &is);
    e->depth = (uint8_t)(depth_of(s) + 1);
    e->reason = s->reason;
    e->table_id = s->table_id;
    e->cookie = step_cookie(s);
    e->before = was.match;
    e->after = is.match;
    trace_put(t, OFPTE_PACKET_IN, e);
    if (!e->suppressed && t->env->controllers)
        t->env->controllers(t->env->ctx, t, (uint8_t)(e->depth + 1), s->reason);
}

void
trace_no_packet_in(const struct step *s)
{
    put_packet_in(s, &(struct of_trace_packet_in){.suppressed = true, .total_len = s->p->len});
}

void
trace_packet_in(const struct step *s, const uint8_t *data, uint32_t len, uint32_t padding,
                uint16_t max_len)
{
    uint8_t small[PACKET_MIN] = {0};
    if (padding) {
        memcpy(small, data, len);
        data = small;
        len += padding;
    }
    put_packet_in(s, &(struct of_trace_packet_in){.max_len = max_len,
                                                  .total_len = len,
                                                  .data = shown(trace_of(s), data, len)});
}
