/* SPDX-License-Identifier: Apache-2.0 */
/* QOS_PORTS (docs/reference/extensions.md): each port's queues as a whole. */
#include <admission/request.h>

static void
put(void *ctx, const struct qos_tree *t)
{
    struct sliced_dump *d = ctx;
    if (slice_has_port(d->slice, t->port_no))
        qos_tree_encode(&d->w, t);
}

static int
handle_qos_ports(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    struct sliced_dump d = {sw_slice_of(c), of_wr_grow(1u << 20)};
    qos_each_tree(sw->qos, put, &d);
    return conn_dump_fixed(c, m, &d.w, QOS_TREE_LEN);
}

const struct request request_qos_ports = {
    .access = ACCESS_READ, .slice = slice_anything, .needs = QUEUES, .run = handle_qos_ports};
