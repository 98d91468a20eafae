/* SPDX-License-Identifier: Apache-2.0 */
/* The rtnetlink message of an operation (<qos/kernel/kernel.h>). */
#ifndef QOS_NETLINK_MESSAGE_H
#define QOS_NETLINK_MESSAGE_H

#include "fill.h"

/* About a qdisc or class, without attributes.  NULL: no memory, as below. */
struct nl_msg *netlink_object_message(int type, int flags, int ifindex, uint32_t handle,
                                      uint32_t parent);

struct nl_msg *netlink_op_message(const struct qos_op *op);

/* Of an operation that one message can't hold: how many changes follow it, and each of them. */
unsigned netlink_op_steps(const struct qos_op *op);
struct nl_msg *netlink_step_message(const struct qos_op *op, unsigned step);

/* Does it add a qdisc?  Is it about a class? */
bool netlink_op_adds(const struct qos_op *op);
bool netlink_op_is_class(const struct qos_op *op);

/* "adding class" */
const char *netlink_op_name(const struct qos_op *op);

/* Does it stand below a transmit queue in place of a scheduler that was deleted? */
bool netlink_is_stand_in(const struct qos_object *o);

/* Sets o->sched by its kind.  A qdisc of a kind that no row has counts as a BPF program's, and
 * NAME is set too, if its handle is one that the switch gives at that place, or if the kernel
 * chooses handles there. */
void netlink_find_sched(struct qos_object *o);

#endif
