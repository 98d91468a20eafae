/* SPDX-License-Identifier: Apache-2.0 */
#include <qos/tree/ops.h>

#include <qos/tree/default.h>
#include <qos/tree/values.h>

static uint32_t
class_handle(const struct model_port *p, const struct qos_sched *root, uint32_t id)
{
    return qos_tree_handle(p, root) | id;
}

struct qos_op
qos_op_class(const struct model_port *p, unsigned kind, const struct qos_sched *sched, uint32_t id,
             uint32_t parent_id, const struct qos_values *resolved)
{
    struct qos_op op = {.kind = (uint8_t)kind,
                        .ifindex = p->info.ifindex,
                        .handle = class_handle(p, sched, id),
                        .parent = id == QOS_CLASS_ROOT || sched->flat
                                      ? qos_tree_handle(p, sched)
                                      : class_handle(p, sched, parent_id),
                        .sched = sched};
    if (resolved)
        op.values = *resolved;
    qos_unset(&op.values, QOS_RATE_SHARE); /* the kernel gets the rates */
    qos_unset(&op.values, QOS_CEIL_SHARE);
    return op;
}

uint32_t
qos_leaf_handle(const struct model_port *p, uint32_t id, bool second)
{
    if (p->band && id == QOS_CLASS_DEFAULT) /* of several */
        return 0;
    return second ? QOS_LEAF_HANDLE_2(id) : QOS_LEAF_HANDLE(id);
}

/* A qdisc that takes the place of another has the other handle.  Only operations that add a
 * qdisc name it by its handle. */
static uint32_t
leaf_handle(const struct model_port *p, unsigned kind, uint32_t id)
{
    const struct qos_class *c = qos_class_find(p, id);
    bool second = c && c->leaf_second;
    if (kind != QOS_OP_QDISC_ADD && kind != QOS_OP_QDISC_REPLACE)
        return 0;
    return qos_leaf_handle(p, id, second == (kind == QOS_OP_QDISC_ADD));
}

struct qos_op
qos_op_leaf(const struct model_port *p, unsigned kind, uint32_t id, const struct qos_sched *sched,
            const struct qos_values *resolved)
{
    struct qos_op op = {.kind = (uint8_t)kind,
                        .ifindex = p->info.ifindex,
                        .handle = id ? leaf_handle(p, kind, id) : qos_root_handle(p),
                        .parent = id ? class_handle(p, p->sched, id) : p->place,
                        .sched = sched};
    if (resolved)
        op.values = *resolved;
    if (!id && qos_sched_parts(sched)) /* so that a packet's priority names a band or tin */
        op.handle = qos_tree_handle(p, sched);
    if (!id && sched->bands)
        qos_put(&op.values, QOS_DEFAULT, QOS_CLASS_DEFAULT);
    for (unsigned slot = 0; kind == QOS_OP_QDISC_CHANGE && slot < QOS_N_SLOTS; slot++) {
        if (qos_sched_at_add(sched, slot))
            qos_unset(&op.values, slot);
    }
    return op;
}

struct qos_op
qos_op_change(const struct model_port *p, uint32_t id, const struct qos_sched *sched,
              const struct qos_values *from, const struct qos_values *to)
{
    struct qos_op op = qos_op_leaf(p, QOS_OP_QDISC_CHANGE, id, sched, to);
    if (from->v[QOS_NAT] == to->v[QOS_NAT])
        qos_unset(&op.values, QOS_NAT);
    return op;
}

struct qos_op
qos_op_tree(const struct model_port *p, unsigned kind, const struct qos_sched *sched,
            uint32_t default_id)
{
    struct qos_op op = {.kind = (uint8_t)kind,
                        .ifindex = p->info.ifindex,
                        .handle = qos_tree_handle(p, sched),
                        .parent = p->place,
                        .sched = sched};
    qos_put(&op.values, QOS_DEFAULT, default_id ? default_id : QOS_CLASS_DEFAULT);
    if (qos_port_offloads(p) && (kind == QOS_OP_QDISC_ADD || kind == QOS_OP_QDISC_REPLACE))
        qos_put(&op.values, QOS_OFFLOAD, 1);
    return op;
}

struct qos_op
qos_op_root_del(const struct model_port *p)
{
    return p->sched->classful ? qos_op_tree(p, QOS_OP_QDISC_DEL, p->sched, p->default_id)
                              : qos_op_leaf(p, QOS_OP_QDISC_DEL, 0, p->sched, NULL);
}

void
qos_put_class(struct plan *plan, plan_put *put, const struct model_port *p,
              const struct qos_class *c)
{
    struct qos_values config, resolved;
    struct qos_op op;
    if (qos_class_is_made(p->sched, c->id)) {
        qos_class_values(p, c, &resolved);
        op = qos_op_class(p, QOS_OP_CLASS_ADD, p->sched, c->id, c->parent ? c->parent->id : 0,
                          &resolved);
        put(plan, &op);
    }
    if (!c->leaf)
        return;
    qos_leaf_values(p, c, &config, &resolved);
    op = qos_op_leaf(p, QOS_OP_QDISC_ADD, c->id, c->leaf, &resolved);
    put(plan, &op);
}

void
qos_put_classes(struct plan *plan, plan_put *put, const struct model_port *p,
                const struct qos_class *c)
{
    qos_put_class(plan, put, p, c);
    for (const struct qos_class *child = c->child; child; child = child->next)
        qos_put_classes(plan, put, p, child);
}

void
qos_put_port(struct plan *plan, plan_put *put, const struct model_port *p, unsigned kind)
{
    struct qos_op op;
    if (p->sched && p->sched->classful) {
        op = qos_op_tree(p, kind, p->sched, qos_default_usable(p, p->default_id));
        put(plan, &op);
    } else if (p->sched) {
        struct qos_values config, resolved;
        qos_leaf_values(p, NULL, &config, &resolved);
        op = qos_op_leaf(p, kind, 0, p->sched, &resolved);
        put(plan, &op);
    }
    if (qos_port_has_tree(p))
        qos_put_classes(plan, put, p, p->root);
    if (!p->band)
        qos_put_trees(plan, put, p, UINT32_MAX);
}

void
qos_put_trees(struct plan *plan, plan_put *put, const struct model_port *p, uint32_t bands)
{
    for (const struct model_port *t = qos_band_next(p); t && t->band <= bands; t = qos_band_next(t))
        qos_put_port(plan, put, t, QOS_OP_QDISC_ADD);
}

void
qos_plan_default_to(struct plan *plan, const struct model_port *p, uint32_t before, uint32_t after)
{
    if (before == after)
        return;
    struct qos_op op = qos_op_tree(p, QOS_OP_QDISC_CHANGE, p->sched, after);
    qos_plan_do(plan, &op);
    op = qos_op_tree(p, QOS_OP_QDISC_CHANGE, p->sched, before);
    qos_plan_undo(plan, &op);
}

void
qos_plan_default(struct plan *plan, const struct model_port *p, uint32_t after, bool last)
{
    uint32_t before = qos_port_default(p);
    /* A queue must be there before it is the default, and still be when it no longer is. */
    if (last == (after != QOS_CLASS_DEFAULT))
        qos_plan_default_to(plan, p, before, after);
}

bool
qos_leaf_changeable(const struct qos_sched *sched, const struct qos_values *from,
                    const struct qos_values *to)
{
    const struct qos_field *f;
    bool same = true;
    for (unsigned i = 0; (f = qos_sched_field(sched, i)); i++)
        same &= !(f->where & QOS_STAYS) || qos_has(from, f->slot) == qos_has(to, f->slot);
    for (unsigned slot = 0; slot < QOS_N_SLOTS; slot++)
        same &= !qos_sched_at_add(sched, slot) || from->v[slot] == to->v[slot];
    return sched->in_place && same;
}

bool
qos_plan_exchange(struct plan *plan, const struct model_port *p, const struct qos_class *c,
                  const struct qos_sched *sched, const struct qos_values *old,
                  const struct qos_values *now)
{
    const struct qos_sched *before = c ? c->leaf : p->sched;
    bool second = c ? !c->leaf_second : !p->second;
    struct qos_op op = qos_op_leaf(p, QOS_OP_QDISC_REPLACE, c ? c->id : 0, sched, now);
    struct qos_op back = qos_op_leaf(p, QOS_OP_QDISC_ADD, c ? c->id : 0, before, old);
    if (!c)
        op.handle = second ? QOS_HANDLE_ROOT_2 : QOS_HANDLE_ROOT;
    if (!op.handle && sched == before) { /* without a handle the kernel would change it */
        struct qos_op del = qos_op_leaf(p, QOS_OP_QDISC_DEL, c->id, before, old);
        qos_plan_do(plan, &del);
        qos_plan_undo(plan, &back);
        op.kind = QOS_OP_QDISC_ADD;
        qos_plan_do(plan, &op);
        qos_plan_undo(plan, &del);
        return false;
    }
    qos_plan_do(plan, &op);
    back.kind = QOS_OP_QDISC_REPLACE;
    qos_plan_undo(plan, &back);
    return second;
}
