/* SPDX-License-Identifier: Apache-2.0 */
/* SERVICE (docs/reference/extensions.md): how the queues are served. */
#include <admission/request.h>

#include <queues/latency.h>
#include <queues/service.h>

static uint8_t
flags_of(const struct service_class *c)
{
    return (uint8_t)((c->rate ? OFP_SERVICE_RATE : 0) | (c->lends ? OFP_SERVICE_LENDS : 0) |
                     (c->spells[OFPQPK_RATE].told ? OFP_SERVICE_BROKEN : 0) |
                     (c->spells[OFPQPK_DROPS].told ? OFP_SERVICE_DROPS : 0) |
                     (c->spells[OFPQPK_DELAY].told ? OFP_SERVICE_DELAY : 0));
}

/* The seconds in which a promised delay was not kept, per mille, rounded up; 0: none, or none was promised. */
static uint16_t
missed_of(const struct service_delay *d)
{
    uint64_t missed = d->seconds - d->kept;
    return (uint16_t)(d->seconds ? (missed * 1000 + d->seconds - 1) / d->seconds : 0);
}

static void
put_class(void *ctx, uint32_t port_no, const struct service_class *c)
{
    struct sliced_dump *d = ctx;
    struct of_wr *w = &d->w;
    if (!slice_has_queue(d->slice, port_no, c->class_id))
        return;
    of_wr32(w, port_no);
    of_wr32(w, c->class_id);
    of_wr8(w, c->dir == QOS_IN);
    of_wr8(w, flags_of(c));
    of_wr16(w, missed_of(&c->delay));
    of_wr32(w, c->delay.promised && c->delay.p90 != LATENCY_NONE ? c->delay.p90 : 0);
    of_wr64(w, c->lended);
    of_wr64(w, c->borrowed);
    of_wr64(w, c->backlogged_us);
    of_wr64(w, c->below_us);
}

static int
handle_service(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    struct sliced_dump d = {sw_slice_of(c), of_wr_grow(64u << 20)};
    int err = sw_service_ask(sw);
    if (err)
        return err;
    sw_service_each(sw, put_class, &d);
    return conn_dump_fixed(c, m, &d.w, OFP_SERVICE_LEN);
}

const struct request request_service = {.access = ACCESS_READ,
                                        .slice = slice_anything,
                                        .needs = QUEUES,
                                        .blocks = true,
                                        .run = handle_service};
