/* SPDX-License-Identifier: Apache-2.0 */
/* PRIO and ETS as a port's root: their bands are queues 1, 2, ...; queue 1 is band 0. */
#ifndef QOS_MODEL_BANDS_H
#define QOS_MODEL_BANDS_H

#include "state.h"

/* Gives the port this many: adds those that it lacks, removes those above.  -ENOMEM. */
int qos_bands_set(struct qos *q, struct model_port *p, unsigned n);

#endif
