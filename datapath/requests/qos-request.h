/* SPDX-License-Identifier: Apache-2.0 */
/* QoS requests, whatever message carries them. */
#ifndef REQUESTS_QOS_REQUEST_H
#define REQUESTS_QOS_REQUEST_H

#include <switch/switch.h>

/* The message that a request came in: the extension's own, an experimenter message, or a queue
 * message of BOFUSS. */
enum envelope { NATIVE, EXPERIMENTER, QUEUE_MESSAGE };

/* Of a message with a QoS request (bundle_is_qos). */
enum envelope sw_qos_envelope(const struct of_msg *m);
int sw_qos_decode(const struct of_msg *m, struct qos_request *r, struct qos_error *e);

/* Plans the request's changes (qos_execute).  s: whose they are; NULL: they may be anything. */
struct slice;
int sw_qos_execute(struct sw *sw, struct slice *s, const struct qos_request *r,
                   struct qos_error *e);

/* Answers the message with `e`, in the error codes of its envelope. */
int sw_qos_refuse(struct conn *c, const struct of_msg *m, enum envelope env,
                  const struct qos_error *e);

/* Translates a queue message (queue-message.c).  `data` follows the experimenter's header. */
int sw_queue_message_decode(uint32_t exp_type, struct of_bytes data, struct qos_request *r,
                            struct qos_error *e);

#endif
