/* SPDX-License-Identifier: Apache-2.0 */
/* Model to kernel operations: handles, parents, resolved values. */
#include "model.h"

static uint32_t
class_handle(uint32_t id)
{
    return QOS_HANDLE_TREE | id;
}

struct qos_op
op_class(const struct model_port *p, unsigned kind, const struct qos_sched *sched, uint32_t id,
         uint32_t parent_id, const struct qos_values *resolved)
{
    struct qos_op op = {.kind = (uint8_t)kind,
                        .ifindex = p->info.ifindex,
                        .handle = class_handle(id),
                        .parent = id == QOS_CLASS_ROOT || sched->flat ? QOS_HANDLE_TREE
                                                                      : class_handle(parent_id),
                        .sched = sched};
    if (resolved)
        op.values = *resolved;
    qos_unset(&op.values, QOS_RATE_SHARE); /* the kernel is told the rates */
    qos_unset(&op.values, QOS_CEIL_SHARE);
    return op;
}

/* One that takes the place of another has the other handle; by one it is known only when added. */
static uint32_t
leaf_handle(const struct klass *c, unsigned kind, uint32_t id)
{
    bool second = c && c->leaf_second;
    if (kind != QOS_OP_QDISC_ADD && kind != QOS_OP_QDISC_REPLACE)
        return 0;
    return second == (kind == QOS_OP_QDISC_ADD) ? QOS_LEAF_HANDLE_2(id) : QOS_LEAF_HANDLE(id);
}

struct qos_op
op_leaf(const struct model_port *p, unsigned kind, uint32_t id, const struct qos_sched *sched,
        const struct qos_values *resolved)
{
    struct qos_op op = {.kind = (uint8_t)kind,
                        .ifindex = p->info.ifindex,
                        .handle = id ? leaf_handle(klass_find(p, id), kind, id) : root_handle(p),
                        .parent = id ? class_handle(id) : p->place,
                        .sched = sched};
    if (resolved)
        op.values = *resolved;
    if (!id && sched->bands) { /* so that a packet's priority names a band */
        op.handle = QOS_HANDLE_TREE;
        qos_put(&op.values, QOS_DEFAULT, QOS_CLASS_DEFAULT);
    }
    for (unsigned slot = 0; kind == QOS_OP_QDISC_CHANGE && slot < QOS_N_SLOTS; slot++) {
        if (sched->at_add >> slot & 1)
            qos_unset(&op.values, slot);
    }
    return op;
}

struct qos_op
op_tree(const struct model_port *p, unsigned kind, const struct qos_sched *sched,
        uint32_t default_id)
{
    struct qos_op op = {.kind = (uint8_t)kind,
                        .ifindex = p->info.ifindex,
                        .handle = QOS_HANDLE_TREE,
                        .parent = p->place,
                        .sched = sched};
    qos_put(&op.values, QOS_DEFAULT, default_id ? default_id : QOS_CLASS_DEFAULT);
    return op;
}

struct qos_op
op_root_del(const struct model_port *p)
{
    return p->sched->classful ? op_tree(p, QOS_OP_QDISC_DEL, p->sched, p->default_id)
                              : op_leaf(p, QOS_OP_QDISC_DEL, 0, p->sched, NULL);
}

void
class_values(const struct model_port *p, const struct klass *parent, const struct qos_sched *sched,
             const struct qos_values *config, struct qos_values *out)
{
    struct qos_env env = port_env(p, parent);
    if (!parent)
        env.parent_rate = env.parent_ceil = env.speed ? env.speed : QOS_SPEED_DEFAULT;
    *out = *config;
    if (sched->flat && (!parent || sched->bands)) {
        qos_put(out, QOS_RATE, 0);
        qos_put(out, QOS_CEIL, env.speed);
    } else {
        sched->resolve(out, &env);
    }
}

static void
own_config(const struct qos_sched *sched, bool root, uint64_t rate, uint64_t ceil,
           struct qos_values *out)
{
    *out = (struct qos_values){0};
    if (sched->own)
        sched->own(out, root, rate, ceil);
}

void
root_config(const struct model_port *p, const struct qos_sched *sched, struct qos_values *out)
{
    uint64_t speed = p->info.speed >= 8 ? p->info.speed : QOS_SPEED_DEFAULT;
    own_config(sched, true, speed, speed, out);
}

void
default_config(const struct qos_sched *sched, uint64_t root_rate, uint64_t root_ceil,
               struct qos_values *out)
{
    uint64_t rate = root_rate / 20;
    rate = rate > 8000 ? rate : 8000;
    own_config(sched, false, rate < root_rate ? rate : root_rate, root_ceil, out);
}

void
klass_config(const struct model_port *p, const struct klass *c, struct qos_values *out)
{
    packed_get(c->config, out);
    if (c->follows)
        own_config(p->sched, c->id == QOS_CLASS_ROOT, c->rate, c->ceil, out);
}

void
klass_values(const struct model_port *p, const struct klass *c, struct qos_values *out)
{
    struct qos_values config;
    klass_config(p, c, &config);
    class_values(p, c->parent, p->sched, &config, out);
}

void
leaf_values(const struct model_port *p, const struct klass *c, const struct qos_sched *sched,
            const struct qos_values *config, struct qos_values *out)
{
    struct qos_env env = port_env(p, c);
    *out = *config;
    if (sched->resolve)
        sched->resolve(out, &env);
}

void
klass_leaf(const struct model_port *p, const struct klass *c, struct qos_values *config,
           struct qos_values *out)
{
    packed_get(c ? c->leaf_config : p->config, config);
    leaf_values(p, c, c ? c->leaf : p->sched, config, out);
}

void
put_class(struct plan *plan, plan_put *put, const struct model_port *p, const struct klass *c)
{
    struct qos_values config, resolved;
    struct qos_op op;
    if (class_is_made(p->sched, c->id)) {
        klass_values(p, c, &resolved);
        op = op_class(p, QOS_OP_CLASS_ADD, p->sched, c->id, c->parent ? c->parent->id : 0,
                      &resolved);
        put(plan, &op);
    }
    if (!c->leaf)
        return;
    klass_leaf(p, c, &config, &resolved);
    op = op_leaf(p, QOS_OP_QDISC_ADD, c->id, c->leaf, &resolved);
    put(plan, &op);
}

void
put_classes(struct plan *plan, plan_put *put, const struct model_port *p, const struct klass *c)
{
    put_class(plan, put, p, c);
    for (const struct klass *child = c->child; child; child = child->next)
        put_classes(plan, put, p, child);
}

void
put_port(struct plan *plan, plan_put *put, const struct model_port *p, unsigned kind)
{
    struct qos_op op;
    if (p->sched && p->sched->classful) {
        op = op_tree(p, kind, p->sched, default_told(p, p->default_id));
        put(plan, &op);
    } else if (p->sched) {
        struct qos_values config, resolved;
        klass_leaf(p, NULL, &config, &resolved);
        op = op_leaf(p, kind, 0, p->sched, &resolved);
        put(plan, &op);
    }
    if (port_has_tree(p))
        put_classes(plan, put, p, p->root);
}
