/* SPDX-License-Identifier: Apache-2.0 */
/* QOS_PORTS (docs/extensions.md): each port's queues as a whole. */
#include "requests.h"

static void
put(void *ctx, const struct qos_tree *t)
{
    qos_tree_encode(ctx, t);
}

static size_t
tree_len(struct of_bytes left)
{
    return QOS_TREE_LEN;
}

int
handle_qos_ports(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    struct of_wr w = of_wr_grow(1u << 20);
    qos_each_tree(sw->qos, put, &w);
    return conn_dump_encoded(c, m, &w, tree_len);
}
