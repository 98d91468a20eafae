/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of a queue that has classes below it go to one of these. */
#include <queues/queues.h>

static bool
is_class(const struct queue_node *node)
{
    return node->entry->config.object_type == OFP_QOS_CLASS;
}

/* The first class directly below one of the view; i: there is none. */
static size_t
first_below(const struct queue_view *v, size_t i)
{
    int depth = v->v[i].depth;
    for (size_t k = i + 1; k < v->n && v->v[k].depth > depth; k++)
        if (is_class(&v->v[k]) && v->v[k].depth == depth + 1)
            return k;
    return i;
}

uint32_t
queues_taker(const struct queue_view *v, size_t i)
{
    int depth = v->v[i].depth;
    for (size_t k = i + 1; is_class(&v->v[i]) && k < v->n && v->v[k].depth > depth; k++)
        if (v->v[k].entry->config.class_id == QOS_CLASS_DEFAULT)
            return QOS_CLASS_DEFAULT;
    for (size_t below; is_class(&v->v[i]) && (below = first_below(v, i)) != i;)
        i = below;
    return v->v[i].entry->config.class_id;
}
