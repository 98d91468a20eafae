/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a model, over whichever kernel a fixture has made it. */
#ifndef QOS_TEST_RUN_H
#define QOS_TEST_RUN_H

#include <qos/model/model.h>

extern struct qos *qos;
extern struct qos_error err; /* of the last request */

/* A request in dpctl's grammar. */
int run(const char *sched, const char *args);

#endif
