/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of a queue that has classes below it go to one of these. */
#include <queues/queues.h>

static bool
is_class(const struct queue_node *node)
{
    return node->entry->config.object_type == OFP_QOS_CLASS;
}

uint32_t
queues_taker(const struct queue_view *v, size_t i)
{
    int depth = v->v[i].depth;
    for (size_t k = i + 1; is_class(&v->v[i]) && k < v->n && v->v[k].depth > depth; k++)
        if (v->v[k].entry->config.class_id == QOS_CLASS_DEFAULT)
            return QOS_CLASS_DEFAULT;
    while (is_class(&v->v[i]) && i + 1 < v->n && is_class(&v->v[i + 1]) &&
           v->v[i + 1].depth == v->v[i].depth + 1)
        i++;
    return v->v[i].entry->config.class_id;
}
