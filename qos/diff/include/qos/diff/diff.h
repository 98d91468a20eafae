/* SPDX-License-Identifier: Apache-2.0 */
/* From what is on a port to what is to be there, in as few requests as it takes.  Pure. */
#ifndef QOS_DIFF_H
#define QOS_DIFF_H

#include <qos/wire/entry.h>

/* Of which port, in which direction, and what its defaults depend on.  A switch doesn't tell MTU
 * and txqueuelen: fixed parameters of classless schedulers that aren't given are filled in from
 * these, so that what is asked for and what the switch shows can be compared. */
struct qos_diff_port {
    uint32_t port_no;
    enum qos_direction dir;
    struct qos_env env; /* mtu, txqueuelen, speed */
};

/* One request.  false: that's enough. */
typedef bool qos_step_fn(void *ctx, const struct qos_request *step);

/* Tells `fn`, in order, the requests that make the port's queues from `now` (entries of a QOS_DUMP;
 * those of other ports and of the other direction are passed over) what `want` says: ADD requests
 * whose port and direction do not matter.  What isn't wanted is deleted, from below; then classes
 * are added and changed, parents before children, in place where that can be.  Nothing is told
 * where nothing differs.
 *
 * What `want` does not give has its default.  The root class, where it isn't given, has the link's
 * speed; the switch's own default class is left alone.
 *
 * 0, -ENOMEM, or an OpenFlow error with *e filled in where `want` makes no sense: *at is the index
 * of the one to blame.  Nothing has been told then. */
int qos_diff(const struct qos_diff_port *port, const struct qos_entry *now, size_t n_now,
             const struct qos_request *want, size_t n_want, qos_step_fn *fn, void *ctx, size_t *at,
             struct qos_error *e);

#endif
