/* SPDX-License-Identifier: Apache-2.0 */
/* Notifying connections of changes to queues: QOS_CHANGED (docs/reference/extensions.md).  Does nothing where
 * no connection asked for it. */
#ifndef QUEUES_QOS_NOTIFY_H
#define QUEUES_QOS_NOTIFY_H

#include <qos/kernel/kernel.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sw;

/* A port's queues as they were.  Freed by sw_queue_snapshot_free, or by a function that takes it.
 */
struct queue_snapshot {
    uint32_t port_no;
    bool wanted; /* a connection wants to be notified; else it is empty */
    struct qos_entry *v;
    size_t n, cap;
};

struct queue_snapshot sw_queue_snapshot(struct sw *sw, uint32_t port_no);
void sw_queue_snapshot_free(struct queue_snapshot *s);

/* Each operation of the kernel's traffic control, in tc's words, into the log (qos=debug). */
void sw_qos_log(void *ctx, const struct qos_op *op, enum qos_op_state state);

/* The kernel has carried out this request. */
void sw_qos_notify_request(struct sw *sw, const struct qos_request *r);

/* Another program changed so many qdiscs and classes, of which so many were repaired.  Takes
 * `before`. */
void sw_qos_notify_foreign(struct sw *sw, struct queue_snapshot *before, uint64_t changed,
                           uint64_t repaired);

/* The port's interface went away, or is back.  Takes `before`. */
void sw_qos_notify_interface(struct sw *sw, struct queue_snapshot *before, bool back);

#endif
