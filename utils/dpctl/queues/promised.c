/* SPDX-License-Identifier: Apache-2.0 */
/* What a tree can't keep: guarantees above the ceil of the class that they are below, and packets of a queue that gets
 * classes below it. */
#include <core/ports.h>
#include <core/say.h>
#include <queues/queues.h>

#include <qos/sched/units.h>

#include <stdio.h>

static bool
is_class(const struct queue_node *node)
{
    return node->entry->config.object_type == OFP_QOS_CLASS;
}

size_t
queues_promised(const struct queue_view *v, size_t i, uint64_t *sum, size_t *last)
{
    const struct queue_node *node = &v->v[i];
    size_t n = 0;
    *sum = 0;
    *last = i;
    for (size_t k = i + 1; is_class(node) && k < v->n && v->v[k].depth > node->depth; k++) {
        if (!is_class(&v->v[k]) || v->v[k].depth != node->depth + 1 ||
            v->v[k].entry->config.class_id == QOS_CLASS_DEFAULT)
            continue;
        *sum += v->v[k].rate;
        *last = k;
        n++;
    }
    return n;
}

bool
queues_say_promised(const struct queue_node *node, uint64_t sum, char *text, size_t n)
{
    char all[QOS_UNIT_TEXT], most[QOS_UNIT_TEXT], name[64];
    struct of_wr w = of_wr_fixed((uint8_t *)name, sizeof name - 1);
    if (!qos_sched_slot(node->entry->config.sched, QOS_RATE) || !node->ceil || sum <= node->ceil)
        return false;
    queues_print_name(&w, &node->entry->config);
    name[w.len] = '\0';
    snprintf(
        text, n,
        "the guarantees below the %s come to %s, above its ceil of %s: the kernel keeps them, and sends more than "
        "the ceil. Lower a rate, or raise the ceil",
        name, qos_format_rate(sum, all), qos_format_rate(node->ceil, most));
    return true;
}

/* The entries as they will be. */
static enum status
with_request(struct ctx *c, const struct qos_request *r, struct queue_entries *all, bool *first)
{
    struct qos_entry *v = of_arena_array(&c->arena, all->n + 1, sizeof *v), *at = NULL;
    uint32_t parent = (uint32_t)r->values.v[QOS_PARENT];
    size_t n = 0;
    if (!v)
        return say_memory(c);
    *first = parent != 0;
    for (size_t i = 0; i < all->n; i++) {
        const struct qos_entry *e = &all->v[i];
        if (queues_direction(e) != (r->values.v[QOS_DIRECTION] == QOS_IN ? QOS_IN : QOS_OUT))
            continue;
        v[n++] = *e;
        if (e->config.object_type != OFP_QOS_CLASS)
            continue;
        if (e->config.class_id == r->class_id)
            at = &v[n - 1];
        *first &= e->parent_id != parent;
    }
    if (at && !qos_has(&r->values, QOS_PARENT))
        parent = at->parent_id;
    *first &= !at || at->parent_id != parent;
    at = at ? at : &v[n++];
    *at = (struct qos_entry){.config = *r, .parent_id = parent};
    *all = (struct queue_entries){v, n};
    return DPCTL_OK;
}

enum status
queues_doubt(struct ctx *c, const struct qos_request *r)
{
    struct queue_entries all;
    struct queue_view view;
    struct of_list ports;
    char text[400];
    bool first;
    if (r->object_type != OFP_QOS_CLASS || r->action_type == OFP_QOS_DEL ||
        !qos_sched_slot(r->sched, QOS_RATE))
        return DPCTL_OK;
    enum status st = queues_ask(c, r->port_no, QOS_ALL_CLASSES, &all);
    st = st ? st : ports_ask(c, &ports);
    st = st ? st : with_request(c, r, &all, &first);
    st = st ? st : queues_view_of(c, &all, &ports, &view);
    if (!st && first) {
        snprintf(
            text, sizeof text,
            "class %u gets its first class below it: packets for queue %u then go to the default class. Give them "
            "a class of their own below it, and send them to that queue",
            (unsigned)r->values.v[QOS_PARENT], (unsigned)r->values.v[QOS_PARENT]);
        st = say_doubt(c, text);
    }
    for (size_t i = 0, last; !st && i < view.n; i++) {
        uint64_t sum;
        uint32_t id = view.v[i].entry->config.class_id, parent = (uint32_t)r->values.v[QOS_PARENT];
        if (queues_promised(&view, i, &sum, &last) && (id == r->class_id || id == parent) &&
            queues_say_promised(&view.v[i], sum, text, sizeof text))
            st = say_doubt(c, text);
    }
    return st;
}
