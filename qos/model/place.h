/* SPDX-License-Identifier: Apache-2.0 */
/* Where the port's root is.
 *
 * If the interface's root is somebody else's and a class of his holds a tree like ours (1: with
 * 1:ffff and 1:fffe, as Mininet makes it), that tree is the port's.  The port stays at this place
 * from then on, also while nothing is there. */
#ifndef QOS_MODEL_PLACE_H
#define QOS_MODEL_PLACE_H

#include <qos/tree/state.h>

/* Sets p->place. */
int qos_place_find(struct qos *q, struct model_port *p, struct qos_error *e);

#endif
