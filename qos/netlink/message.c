/* SPDX-License-Identifier: Apache-2.0 */
#include "message.h"

#include <errno.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <string.h>

#define STAND_IN           "pfifo"
#define STAND_IN_HANDLE(q) (((q) + 0xc000u) << 16)

struct nl_msg *
netlink_object_message(int type, int flags, int ifindex, uint32_t handle, uint32_t parent)
{
    return netlink_tc_message(
        type, flags,
        &(struct tcmsg){.tcm_ifindex = ifindex, .tcm_handle = handle, .tcm_parent = parent});
}

static const struct {
    int type, flags;
    bool class, options;
    const char *what;
} kinds[] = {
    [QOS_OP_QDISC_ADD] = {RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, false, true, "adding"},
    [QOS_OP_QDISC_CHANGE] = {RTM_NEWQDISC, 0, false, true, "changing"},
    [QOS_OP_QDISC_REPLACE] = {RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE | NLM_F_EXCL, false, true,
                              "adding"},
    [QOS_OP_QDISC_DEL] = {RTM_DELQDISC, 0, false, false, "deleting"},
    [QOS_OP_CLASS_ADD] = {RTM_NEWTCLASS, NLM_F_CREATE | NLM_F_EXCL, true, true, "adding class"},
    [QOS_OP_CLASS_CHANGE] = {RTM_NEWTCLASS, 0, true, true, "changing class"},
    [QOS_OP_CLASS_DEL] = {RTM_DELTCLASS, 0, true, false, "deleting class"},
};

/* Is it a class of a root whose bands are transmit queues? */
static bool
in_tx_queue(uint32_t parent)
{
    return parent >> 16 == QOS_HANDLE_TX_QUEUES >> 16;
}

bool
netlink_op_adds(const struct qos_op *op)
{
    return op->kind == QOS_OP_QDISC_ADD || op->kind == QOS_OP_QDISC_REPLACE;
}

bool
netlink_op_is_class(const struct qos_op *op)
{
    return kinds[op->kind].class;
}

const char *
netlink_op_name(const struct qos_op *op)
{
    return kinds[op->kind].what;
}

/* Is it a classless root of our own?  A rate estimator marks it (<qos/kernel/kernel.h>). */
static bool
marked(const struct qos_op *op)
{
    bool tins = op->handle == QOS_HANDLE_TREE && op->sched->tins;
    return (op->handle == QOS_HANDLE_ROOT || op->handle == QOS_HANDLE_ROOT_2 || tins) &&
           netlink_op_adds(op) && op->parent >> 16 != QOS_HANDLE_TREE >> 16;
}

static int
put_attributes(struct nl_msg *msg, const struct qos_op *op)
{
    static const struct tc_estimator mark = {.interval = 3, .ewma_log = 1}; /* every 8 s */
    bool class = kinds[op->kind].class, options = kinds[op->kind].options;
    /* A qdisc that is found by its parent, whatever its handle, must be of this kind. */
    bool named = options || (!class && !op->handle);
    char buf[QOS_NAME_ROOM];
    const char *kind = qos_sched_kind(op->sched, &op->values, buf);
    if (named && (!kind || nla_put_string(msg, TCA_KIND, kind)))
        return -EMSGSIZE;
    if (marked(op) && nla_put(msg, TCA_RATE, sizeof mark, &mark))
        return -EMSGSIZE;
    return options
               ? netlink_fill(msg, op->sched, class ? OFP_QOS_CLASS : OFP_QOS_QDISC, &op->values)
               : 0;
}

/* A transmit queue whose qdisc is deleted would drop all packets (noop), and only a new root
 * gives it the kernel's default.  So it gets a pfifo, under a handle that no scheduler of ours
 * has there: without a handle the kernel would change an existing pfifo instead of replacing it. */
static struct nl_msg *
stand_in_message(const struct qos_op *op)
{
    struct nl_msg *msg =
        netlink_object_message(RTM_NEWQDISC, kinds[QOS_OP_QDISC_REPLACE].flags, op->ifindex,
                               STAND_IN_HANDLE(qos_minor(op->parent)), op->parent);
    if (msg && nla_put_string(msg, TCA_KIND, STAND_IN)) {
        nlmsg_free(msg);
        return NULL;
    }
    return msg;
}

bool
netlink_is_stand_in(const struct qos_object *o)
{
    return !o->is_class && in_tx_queue(o->parent) && !strcmp(o->kind, STAND_IN) &&
           o->handle == STAND_IN_HANDLE(qos_minor(o->parent));
}

static bool
has_our_handle(const struct qos_object *o)
{
    uint32_t minor = qos_minor(o->parent), first = QOS_LEAF_HANDLE(minor);
    if (!o->handle)
        return false;
    bool elsewhere = o->parent >> 16 != QOS_HANDLE_TREE >> 16 && !in_tx_queue(o->parent);
    if (elsewhere && (o->handle == QOS_HANDLE_ROOT || o->handle == QOS_HANDLE_ROOT_2))
        return true; /* a port's root, perhaps in a class of somebody else's */
    if (elsewhere && !qos_handle_in_tree(o->parent))
        return false;
    return !first || o->handle == first || o->handle == QOS_LEAF_HANDLE_2(minor);
}

void
netlink_find_sched(struct qos_object *o)
{
    o->sched = qos_sched_by_name(o->kind);
    if (o->sched && !o->sched->named)
        return;
    o->sched = NULL;
    if (o->is_class || !has_our_handle(o) || !qos_kind_is_free(o->kind))
        return;
    o->sched = qos_sched_by_id(OFP_QOS_SCHED_BPF);
    qos_name_put(&o->values.v[QOS_NAME], o->kind, strlen(o->kind));
    for (unsigned i = 0; i < QOS_NAME_SLOTS; i++)
        qos_slots_add(&o->values.set, QOS_NAME + i);
}

struct nl_msg *
netlink_op_message(const struct qos_op *op)
{
    if (op->kind == QOS_OP_QDISC_DEL && in_tx_queue(op->parent))
        return stand_in_message(op);
    /* Below a transmit queue there is always something. */
    unsigned kind =
        op->kind == QOS_OP_QDISC_ADD && in_tx_queue(op->parent) ? QOS_OP_QDISC_REPLACE : op->kind;
    struct nl_msg *msg = netlink_object_message(kinds[kind].type, kinds[kind].flags, op->ifindex,
                                                op->handle, op->parent);
    if (msg && put_attributes(msg, op)) {
        nlmsg_free(msg);
        return NULL;
    }
    return msg;
}

/* One of the changes that follow a message which can't hold all. */
struct nl_msg *
netlink_step_message(const struct qos_op *op, unsigned step)
{
    struct nl_msg *msg =
        netlink_object_message(RTM_NEWQDISC, 0, op->ifindex, op->handle, op->parent);
    if (msg && (nla_put_string(msg, TCA_KIND, op->sched->name) ||
                netlink_fill_step(msg, op->sched, &op->values, step))) {
        nlmsg_free(msg);
        return NULL;
    }
    return msg;
}

unsigned
netlink_op_steps(const struct qos_op *op)
{
    bool none = op->kind == QOS_OP_QDISC_DEL || kinds[op->kind].class;
    return none ? 0 : netlink_steps(op->sched, &op->values);
}
