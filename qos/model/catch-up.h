/* SPDX-License-Identifier: Apache-2.0 */
/* A port follows its interface (the rest is in <qos/model/model.h>: qos_port_update_begin...). */
#ifndef QOS_MODEL_CATCH_UP_H
#define QOS_MODEL_CATCH_UP_H

#include <qos/tree/state.h>

/* Makes the shaper's interfaces anew, with the queues on them. */
int qos_catch_up_shaper(struct qos *q, struct model_port *in, struct qos_error *e);

#endif
