/* SPDX-License-Identifier: Apache-2.0 */
/* What each port's queues are as a whole (docs/extensions.md, QOS_PORTS). */
#include "switch.h"

#include <errno.h>
#include <stdlib.h>

static void
put(void *ctx, const struct qos_tree *t)
{
    qos_tree_encode(ctx, t);
}

static bool
step(struct dump *to, void *ctx)
{
    const struct of_wr *w = ctx;
    for (size_t at = 0; at < w->len; at += QOS_TREE_LEN)
        dump_add_bytes(to, (struct of_bytes){w->buf + at, QOS_TREE_LEN});
    return false;
}

static void
done(void *ctx)
{
    of_wr_free(ctx);
    free(ctx);
}

int
handle_qos_ports(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    struct of_wr *w = malloc(sizeof *w);
    if (!w)
        return -ENOMEM;
    *w = of_wr_grow(1u << 20);
    qos_each_tree(sw->qos, put, w);
    return conn_dump(c, m, step, done, w);
}
