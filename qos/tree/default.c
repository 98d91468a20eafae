/* SPDX-License-Identifier: Apache-2.0 */
#include <qos/tree/default.h>

static bool
is_below(const struct qos_class *c, const struct qos_class *above)
{
    while (c && c != above)
        c = c->parent;
    return c != NULL;
}

uint32_t
qos_default_after(const struct model_port *p, const struct qos_class *gone,
                  const struct qos_class *parent, uint32_t id)
{
    const struct qos_class *c = qos_class_find(p, p->default_id);
    bool comes = parent && id == p->default_id;
    bool inner = parent && parent->id == p->default_id;
    if (c && gone && is_below(c, gone))
        c = NULL;
    for (const struct qos_class *k = c ? c->child : NULL; k && !inner; k = k->next)
        inner = k != gone;
    return (c || comes) && !inner ? p->default_id : QOS_CLASS_DEFAULT;
}

uint32_t
qos_port_default(const struct model_port *p)
{
    return p->dflt ? qos_default_after(p, NULL, NULL, 0) : 0;
}

uint32_t
qos_default_usable(const struct model_port *p, uint32_t default_id)
{
    const struct qos_class *c = qos_class_find(p, default_id);
    return c && !c->child ? default_id : 0;
}

const struct qos_class *
qos_class_taker(const struct model_port **p, const struct qos_class *c)
{
    bool queues = (*p)->sched && (*p)->sched->tx_queues;
    const struct model_port *t = queues ? qos_band_find(*p, c->id) : NULL;
    if (t && t->dflt) {
        *p = t;
        return qos_class_find(t, qos_port_default(t));
    }
    while (c->child)
        c = c->child;
    return c;
}
