/* SPDX-License-Identifier: Apache-2.0 */
/* Defaults that depend on the interface's MTU and txqueuelen: bursts, quanta, limits.  When these
 * change, the kernel gets new values.  Otherwise a bucket that is smaller than a full frame would
 * drop every one. */
#ifndef QOS_MODEL_FOLLOW_H
#define QOS_MODEL_FOLLOW_H

#include <qos/tree/state.h>

/* The port gets this MTU and txqueuelen; the transaction is left open.  After an error there is
 * none, and the port is as it was. */
int qos_plan_mtu(struct qos *q, struct model_port *p, const struct qos_port *now,
                 struct qos_error *e);

/* The same when the link's speed has changed and the root class does not follow it: for what
 * depends on the speed at the root (RED) or below classes (CBS).  The port has the new speed
 * already. */
int qos_plan_link_speed(struct qos *q, struct model_port *p, uint64_t old_speed,
                        struct qos_error *e);

#endif
