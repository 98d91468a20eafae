/* SPDX-License-Identifier: Apache-2.0 */
/* TINS (docs/reference/extensions.md): the tins of each CAKE. */
#include "qos-request.h"
#include <admission/request.h>

static void
put_tin(void *ctx, uint32_t port_no, enum qos_direction dir, uint32_t class_id, unsigned number,
        const struct qos_tin *t)
{
    struct sliced_dump *d = ctx;
    struct of_wr *w = &d->w;
    if (!slice_has_queue(d->slice, port_no, class_id))
        return;
    of_wr32(w, port_no);
    of_wr32(w, class_id);
    of_wr8(w, dir == QOS_IN);
    of_wr8(w, (uint8_t)number);
    of_wr_add(w, 6);
    of_wr64(w, t->counters.bytes);
    of_wr64(w, t->counters.packets);
    of_wr64(w, t->counters.drops);
    of_wr64(w, t->counters.marked);
    of_wr64(w, t->rate);
    of_wr32(w, t->counters.backlog_bytes);
    of_wr32(w, t->delay_us);
    of_wr32(w, t->peak_us);
    of_wr_add(w, 4);
}

static int
handle_tins(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    struct sliced_dump d = {sw_slice_of(c), of_wr_grow(64u << 20)};
    struct qos_error e = {0};
    int err = qos_each_tin(sw->qos, put_tin, &d, &e);
    if (!err)
        return conn_dump_fixed(c, m, &d.w, OFP_TIN_LEN);
    of_wr_free(&d.w);
    e.err = err;
    return sw_qos_refuse(c, m, &e);
}

const struct request request_tins = {.access = ACCESS_READ,
                                     .slice = slice_anything,
                                     .needs = QUEUES,
                                     .blocks = true,
                                     .run = handle_tins};
