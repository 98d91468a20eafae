/* SPDX-License-Identifier: Apache-2.0 */
/* What somebody else (tc by hand) has changed on a port. */
#ifndef QOS_MODEL_FOREIGN_H
#define QOS_MODEL_FOREIGN_H

#include <qos/tree/state.h>

/* Counts the differences between kernel and model, and removes them if `repair`, in a transaction
 * of its own.  The kernel's error; OFPSFC_BUSY: somebody else has the root. */
int qos_foreign_compare(struct qos *q, struct model_port *p, bool repair, struct qos_error *e);

#endif
