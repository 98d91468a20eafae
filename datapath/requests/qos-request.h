/* SPDX-License-Identifier: Apache-2.0 */
/* QoS requests, whatever message carries them. */
#ifndef REQUESTS_QOS_REQUEST_H
#define REQUESTS_QOS_REQUEST_H

#include <admission/slice.h>
#include <switch/switch.h>

/* Of a message with a QoS request (request_qos). */
int sw_qos_decode(const struct of_msg *m, struct qos_request *r, struct qos_error *e);

/* Plans the request's changes (qos_execute).  s: whose they are; NULL: they may be anything. */
struct slice;
int sw_qos_execute(struct sw *sw, struct slice *s, const struct qos_request *r,
                   struct qos_error *e);

/* Answers a message of any type with `e`, in the error codes of its envelope.  -> the error that is still to be sent; 0:
 * none. */
int sw_qos_refuse(struct conn *c, const struct of_msg *m, const struct qos_error *e);

/* Translates a queue message (queue-message.c).  `data` follows the experimenter's header. */
int sw_queue_message_decode(uint32_t exp_type, struct of_bytes data, struct qos_request *r,
                            struct qos_error *e);

/* Of requests that begin with a port and a class, which may be all. */
slice_right may_ask_queues;

#endif
