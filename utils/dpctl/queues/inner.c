/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of a queue that gets classes below it go elsewhere. */
#include <core/say.h>
#include <queues/queues.h>

#include <stdio.h>

static bool
is_class(const struct queue_node *node)
{
    return node->entry->config.object_type == OFP_QOS_CLASS;
}

bool
queues_is_inner(const struct queue_view *v, size_t i)
{
    const struct queue_node *node = &v->v[i];
    for (size_t k = i + 1; is_class(node) && k < v->n && v->v[k].depth > node->depth; k++)
        if (is_class(&v->v[k]) && v->v[k].depth == node->depth + 1)
            return true;
    return false;
}

enum status
queues_doubt(struct ctx *c, const struct qos_request *r)
{
    struct queue_entries all;
    char text[300];
    uint32_t parent = (uint32_t)r->values.v[QOS_PARENT];
    if (r->object_type != OFP_QOS_CLASS || r->action_type == OFP_QOS_DEL || !parent ||
        !qos_sched_slot(r->sched, QOS_RATE))
        return DPCTL_OK;
    enum status st = queues_ask(c, r->port_no, QOS_ALL_CLASSES, &all);
    bool entering = r->values.v[QOS_DIRECTION] == QOS_IN;
    for (size_t i = 0; !st && i < all.n; i++) {
        const struct qos_entry *e = &all.v[i];
        if ((queues_direction(e) == QOS_IN) == entering && e->config.object_type == OFP_QOS_CLASS &&
            e->parent_id == parent)
            return DPCTL_OK;
    }
    snprintf(text, sizeof text,
             "class %u gets its first class below it: packets for queue %u then go to the default "
             "class. Give them a class of their own below it, and send them to that queue",
             (unsigned)parent, (unsigned)parent);
    return st ? st : say_doubt(c, text);
}
