/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a request, in either form. */
#ifndef QOS_WIRE_HEAD_H
#define QOS_WIRE_HEAD_H

#include <qos/wire/request.h>

/* Checks scheduler, object, action, port and class id against each other. */
int qos_request_check_head(const struct qos_request *r, struct qos_error *e);

#endif
