/* SPDX-License-Identifier: Apache-2.0 */
/* Telling of changes to queues: QOS_CHANGED (docs/extensions.md).  Where no connection wants to be
 * told, all of this does nothing. */
#ifndef SWITCH_QOS_CHANGES_H
#define SWITCH_QOS_CHANGES_H

#include <switch/switch.h>

/* A request that the kernel has carried out. */
void sw_qos_notify_request(struct sw *sw, const struct qos_request *r);

/* A port's queues, to be compared with what it has later.  Whoever gets one calls one of the functions
 * that take it back and free it. */
struct queue_snapshot sw_queue_snapshot(struct sw *sw, uint32_t port_no);
void sw_queue_snapshot_free(struct queue_snapshot *v);

/* Somebody else's doing, which has been dealt with: so many qdiscs and classes were found changed,
 * and put right. */
void sw_qos_notify_foreign(struct sw *sw, struct queue_snapshot *before, uint64_t changed,
                           uint64_t repaired);

/* The port's interface went away, or is back. */
void sw_qos_notify_interface(struct sw *sw, struct queue_snapshot *before, bool back);

#endif
