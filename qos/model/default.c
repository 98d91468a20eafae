/* SPDX-License-Identifier: Apache-2.0 */
/* The class of packets that have none.
 *
 * The one that was asked for may not be there, or have classes below it, where no packet can wait:
 * then it is the switch's own.  The kernel would drop such packets (HFSC, DRR) or send them unshaped
 * (HTB), so it is told anew whenever it changes.
 */
#include "model.h"

static bool
is_below(const struct klass *c, const struct klass *above)
{
    while (c && c != above)
        c = c->parent;
    return c != NULL;
}

uint32_t
default_after(const struct model_port *p, const struct klass *gone, const struct klass *parent,
              uint32_t id)
{
    const struct klass *c = klass_find(p, p->default_id);
    bool comes = parent && id == p->default_id;
    bool inner = parent && parent->id == p->default_id;
    if (c && gone && is_below(c, gone))
        c = NULL;
    for (const struct klass *k = c ? c->child : NULL; k && !inner; k = k->next)
        inner = k != gone;
    return (c || comes) && !inner ? p->default_id : QOS_CLASS_DEFAULT;
}

void
plan_default_to(struct plan *plan, const struct model_port *p, uint32_t before, uint32_t after)
{
    if (before == after)
        return;
    struct qos_op op = op_tree(p, QOS_OP_QDISC_CHANGE, p->sched, after);
    plan_do(plan, &op);
    op = op_tree(p, QOS_OP_QDISC_CHANGE, p->sched, before);
    plan_undo(plan, &op);
}

void
plan_default(struct plan *plan, const struct model_port *p, uint32_t after, bool last)
{
    uint32_t before = port_default(p);
    /* A queue must be there before it is the default, and still be when it no longer is. */
    if (last == (after != QOS_CLASS_DEFAULT))
        plan_default_to(plan, p, before, after);
}

uint32_t
default_told(const struct model_port *p, uint32_t default_id)
{
    const struct klass *c = klass_find(p, default_id);
    return c && !c->child ? default_id : 0;
}
