/* SPDX-License-Identifier: Apache-2.0 */
/* Replies about queues.  Reading thousands of them from the kernel takes long, so others who ask
 * the same get what was just read (sw_read_counts_until), unless queues or ports have changed
 * since. */
#ifndef REQUESTS_QUEUE_REPLY_H
#define REQUESTS_QUEUE_REPLY_H

#include <switch/switch.h>

struct queue_question {
    enum queue_reply_kind kind;
    uint32_t port, queue;
    /* Writes the reply's elements: 0 or an error as a handler's, or a QoS error with *e. */
    int (*read)(struct sw *sw, const struct queue_question *q, struct of_wr *out,
                struct qos_error *e);
};

/* Answers with what the connection's slice sees.  The error of `read`, or as conn_dump_encoded. */
int sw_queue_reply(struct sw *sw, struct conn *c, const struct of_msg *m,
                   const struct queue_question *q, struct qos_error *e);

#endif
