/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the model what the kernel has: after a restart, or when somebody else has changed it.
 *
 * What the model knows keeps its configuration (a share can't be read back); what it doesn't know
 * is taken over with the values that the kernel has. */
#ifndef QOS_MODEL_ADOPT_H
#define QOS_MODEL_ADOPT_H

#include <qos/tree/state.h>

/* A transaction of its own. */
int qos_adopt_port(struct qos *q, struct model_port *p, struct qos_error *e);

#endif
