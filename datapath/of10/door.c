/* SPDX-License-Identifier: Apache-2.0 */
#include "inside.h"

#include <errno.h>
#include <stdlib.h>

#define ARENA_MAX  (16u << 20)
#define ARENA_KEEP (1u << 20)
#define QUEUE_MAX  (2 * (size_t)OF_MSG_MAX)
#define QUEUE_KEEP (4u << 10)

/* Requests of the peer; the others are refused (OFPBRC_BAD_TYPE). */
static of10_in *const requests[] = {
    [OFPT10_ECHO_REQUEST] = of10_in_same,
    [OFPT10_ECHO_REPLY] = of10_in_same,
    [OFPT10_VENDOR] = of10_in_vendor,
    [OFPT10_FEATURES_REQUEST] = of10_in_features,
    [OFPT10_GET_CONFIG_REQUEST] = of10_in_same,
    [OFPT10_SET_CONFIG] = of10_in_set_config,
    [OFPT10_PACKET_OUT] = of10_in_packet_out,
    [OFPT10_FLOW_MOD] = of10_in_flow_mod,
    [OFPT10_PORT_MOD] = of10_in_port_mod,
    [OFPT10_STATS_REQUEST] = of10_in_stats,
    [OFPT10_BARRIER_REQUEST] = of10_in_barrier,
    [OFPT10_QUEUE_GET_CONFIG_REQUEST] = of10_in_queue_config,
    [OFPT10_QOS_QUEUEING_DISCIPLINE] = of10_in_qos,
};

/* What the switch sends in 1.3; what has no row is not for a controller of 1.0. */
static of10_out *const replies[] = {
    [OFPT_HELLO] = of10_out_same,
    [OFPT_ERROR] = of10_out_error,
    [OFPT_ECHO_REQUEST] = of10_out_same,
    [OFPT_ECHO_REPLY] = of10_out_same,
    [OFPT_EXPERIMENTER] = of10_out_same,
    [OFPT_FEATURES_REPLY] = of10_out_features,
    [OFPT_GET_CONFIG_REPLY] = of10_out_same,
    [OFPT_PACKET_IN] = of10_out_packet_in,
    [OFPT_FLOW_REMOVED] = of10_out_flow_removed,
    [OFPT_PORT_STATUS] = of10_out_port_status,
    [OFPT_MULTIPART_REPLY] = of10_out_stats,
    [OFPT_BARRIER_REPLY] = of10_out_barrier,
    [OFPT_QUEUE_GET_CONFIG_REPLY] = of10_out_queue_config,
    [OFPT_ROLE_REPLY] = of10_out_role,
};

struct of10_door *
of10_door_new(void)
{
    struct of10_door *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    of_arena_init(&d->arena, ARENA_MAX);
    d->queue = of_wr_grow(QUEUE_MAX);
    d->ports = of_wr_grow(OF_MSG_MAX);
    return d;
}

void
of10_door_free(struct of10_door *d)
{
    if (!d)
        return;
    of_arena_free(&d->arena);
    of_wr_free(&d->queue);
    of_wr_free(&d->ports);
    free(d->tables);
    free(d);
}

static void
forget(struct of10_door *d)
{
    of_arena_reset(&d->arena);
    if (d->arena.total > ARENA_KEEP)
        of_arena_free(&d->arena);
}

void
of10_begin(struct of10_door *d, struct of_bytes frame)
{
    d->request = (struct kept_request){.n = frame.n < REQUEST_KEPT ? frame.n : REQUEST_KEPT};
    memcpy(d->request.bytes, frame.p, d->request.n);
    d->at_work = true;
    d->queue.len = d->queue_at = d->ports.len = 0;
}

int
of10_request(struct of10_door *d, struct of_bytes frame)
{
    struct of_msg m;
    of10_begin(d, frame);
    if (frame.p[0] != OFP10_VERSION)
        return OF_BAD_REQUEST(BAD_VERSION);
    uint8_t type = frame.p[1];
    of10_in *take = type < sizeof requests / sizeof *requests ? requests[type] : NULL;
    if (!take)
        return OF_BAD_REQUEST(BAD_TYPE);
    int err = of_decode_as(&of_dialect_10, frame, &d->arena, &m);
    if (!err)
        err = take(d, &m);
    if (err)
        d->queue.len = 0;
    else
        d->at_work = false; /* it waits for its turn */
    d->queue.overflow = false;
    forget(d);
    return err == -EMSGSIZE ? OF_BAD_ACTION(TOO_MANY) : err;
}

struct of_bytes
of10_next(const struct of10_door *d)
{
    if (d->queue_at == d->queue.len)
        return (struct of_bytes){0};
    const uint8_t *p = d->queue.buf + d->queue_at;
    return (struct of_bytes){p, of_get16(p + 2)};
}

/* The switch may be at a request for many turns after it has taken it, and answers echo requests meanwhile. */
static bool
may_end_late(const struct kept_request *r)
{
    return r->bytes[1] != OFPT10_ECHO_REQUEST;
}

struct of_bytes
of10_take(struct of10_door *d)
{
    d->at_work = true;
    return of10_next(d);
}

void
of10_passed(struct of10_door *d)
{
    d->at_work = false;
    if (may_end_late(&d->request))
        d->late = d->request;
    d->queue_at += of10_next(d).n;
    if (d->queue_at < d->queue.len)
        return;
    d->queue.len = d->queue_at = 0;
    if (d->queue.cap > QUEUE_KEEP)
        of_wr_free(&d->queue);
}

int
of10_reply(struct of10_door *d, struct of_bytes message, struct of_wr *w)
{
    struct of_msg m;
    uint8_t type = message.p[1];
    of10_out *give = type < sizeof replies / sizeof *replies ? replies[type] : NULL;
    if (!give)
        return 0;
    size_t start = w->len;
    int err = of_decode(message, &d->arena, &m);
    if (!err)
        err = give(d, &m, w);
    if (err) {
        w->len = start;
        w->overflow = false; /* the next message may fit */
    }
    forget(d);
    return err > 0 ? -EINVAL : err;
}
