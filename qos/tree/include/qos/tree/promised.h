/* SPDX-License-Identifier: Apache-2.0 */
/* Guarantees.  A scheduler gives each class its rate, also where those below a class come to more than its ceil: then
 * more leaves than the ceil.  So a class may promise no more than that, unless it has OVERSUBSCRIBE.  The root class that
 * is the link itself has no limit, and the switch's own default class doesn't count. */
#ifndef QOS_TREE_PROMISED_H
#define QOS_TREE_PROMISED_H

#include <qos/tree/state.h>

/* At the end of a transaction of requests, so that their order doesn't matter.  *at (may be NULL): the last request that
 * had a part in what is refused. */
int qos_promised_check(const struct qos *q, unsigned *at, struct qos_error *e);

/* The kernel's tree is as it is: classes that promise too much get OVERSUBSCRIBE.  0 or -ENOMEM. */
int qos_promised_adopt(struct qos *q, struct model_port *p);

#endif
