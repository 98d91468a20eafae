/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a request, however it came. */
#ifndef QOS_WIRE_HEAD_H
#define QOS_WIRE_HEAD_H

#include <qos/wire/request.h>

/* Scheduler, object, action, port, class id against each other. */
int qos_request_check_head(const struct qos_request *r, struct qos_error *e);

#endif
