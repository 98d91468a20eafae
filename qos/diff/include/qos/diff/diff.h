/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the queues of a port with those that it should have, and makes the fewest requests that
 * turn the one into the other.  Pure. */
#ifndef QOS_DIFF_H
#define QOS_DIFF_H

#include <qos/wire/entry.h>

/* The port, the direction, and what defaults depend on.  A switch does not report MTU and
 * txqueuelen: they give the defaults of classless schedulers' fixed parameters, so that a wanted
 * scheduler can be compared with what the switch reports. */
struct qos_diff_port {
    uint32_t port_no;
    enum qos_direction dir;
    struct qos_env env; /* mtu, txqueuelen, speed */
};

/* One request.  false: stop. */
typedef bool qos_step_fn(void *ctx, const struct qos_request *step);

struct qos_diff {
    struct qos_diff_port port;
    const struct qos_entry
        *now; /* of a QOS_DUMP; those of other ports and of the other direction are ignored */
    size_t n_now;
    const struct qos_request *want; /* ADD requests; their port and direction are ignored */
    size_t n_want;
    qos_step_fn *fn;
    void *ctx;
    size_t wrong; /* set: which of `want` makes no sense */
};

/* Calls `fn` with each request, in order.  First deletes what isn't wanted, from below; then adds and
 * changes classes, parents before children, in place where possible.
 *
 * What `want` does not give has its default.  A root class that isn't given has the link's speed;
 * the switch's own default class is left alone.
 *
 * 0, -ENOMEM, or an OpenFlow error in *e if `want` makes no sense; then `fn` was not called. */
int qos_diff(struct qos_diff *q, struct qos_error *e);

#endif
