/* SPDX-License-Identifier: Apache-2.0 */
/* What each port's queues are as a whole (docs/extensions.md, QOS_PORTS). */
#include "switch.h"

#include <errno.h>
#include <stdlib.h>

#define ENTRY 32 /* bytes */

enum { KEPT = 1, DIFFERS = 2, AWAY = 4 };

struct trees {
    struct of_wr out;
};

static void
put(void *ctx, const struct qos_tree *t)
{
    struct of_wr *w = &((struct trees *)ctx)->out;
    of_wr32(w, t->port_no);
    of_wr8(w, (uint8_t)t->dir);
    of_wr8(w, t->sched ? t->sched->id : OFP_QOS_SCHED_NONE);
    of_wr16(w, (uint16_t)((t->kept ? KEPT : 0) | (t->foreign.differs ? DIFFERS : 0) |
                          (t->away ? AWAY : 0)));
    of_wr32(w, t->default_id);
    of_wr32(w, t->n_queues);
    of_wr64(w, t->foreign.changed);
    of_wr64(w, t->foreign.repaired);
}

static bool
step(struct dump *to, void *ctx)
{
    const struct of_wr *w = &((struct trees *)ctx)->out;
    for (size_t at = 0; at < w->len; at += ENTRY)
        dump_add_bytes(to, (struct of_bytes){w->buf + at, ENTRY});
    return false;
}

static void
done(void *ctx)
{
    struct trees *d = ctx;
    of_wr_free(&d->out);
    free(d);
}

int
handle_qos_ports(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    if (((const struct of_mp_experimenter *)m->body)->data.n)
        return OF_ERR(OFPET_BAD_REQUEST, OFPBRC_BAD_LEN);
    struct trees *d = calloc(1, sizeof *d);
    if (!d)
        return -ENOMEM;
    d->out = of_wr_grow(1u << 20);
    qos_each_tree(sw->qos, put, d);
    return conn_dump(c, m, step, done, d);
}
