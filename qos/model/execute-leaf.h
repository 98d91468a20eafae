/* SPDX-License-Identifier: Apache-2.0 */
/* Requests for classless schedulers: below a queue, or as the port's root. */
#ifndef QOS_MODEL_EXECUTE_LEAF_H
#define QOS_MODEL_EXECUTE_LEAF_H

#include <qos/tree/state.h>

int qos_execute_leaf(struct qos *q, struct model_port *p, const struct qos_request *r,
                     struct qos_error *e);

#endif
