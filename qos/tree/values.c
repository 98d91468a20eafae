/* SPDX-License-Identifier: Apache-2.0 */
#include <qos/tree/values.h>

/* A class's link layer is the first one that it or a class above it gives. */
static uint64_t
link_of(const struct qos_class *c, unsigned slot)
{
    uint64_t v = 0;
    while (c && (c->follows || !qos_packed_find(c->config, slot, &v)))
        c = c->parent;
    return v;
}

bool
qos_same_link(const struct qos_values *a, const struct qos_values *b)
{
    return a->v[QOS_OVERHEAD] == b->v[QOS_OVERHEAD] && a->v[QOS_MPU] == b->v[QOS_MPU] &&
           a->v[QOS_LINKLAYER] == b->v[QOS_LINKLAYER];
}

struct qos_env
qos_port_env(const struct model_port *p, const struct qos_class *parent)
{
    struct qos_env env = {.mtu = p->info.mtu,
                          .txqueuelen = p->info.txqueuelen,
                          .speed = p->info.speed,
                          .tx_queues = p->info.tx_queues,
                          .entering = p->dir == QOS_IN,
                          .offload = qos_port_offloads(p)};
    if (parent) {
        env.parent_rate = parent->rate;
        env.parent_ceil = parent->ceil;
        env.parent_overhead = link_of(parent, QOS_OVERHEAD);
        env.parent_mpu = link_of(parent, QOS_MPU);
        env.parent_linklayer = link_of(parent, QOS_LINKLAYER);
    }
    return env;
}

void
qos_class_resolve(const struct model_port *p, const struct qos_class *parent,
                  const struct qos_sched *sched, const struct qos_values *config,
                  struct qos_values *out)
{
    struct qos_env env = qos_port_env(p, parent);
    qos_resolve_class(sched, !parent, config, &env, out);
}

/* Hardware may have no priorities, and the kernel then refuses one that nobody asked for. */
static void
own_config(const struct model_port *p, const struct qos_sched *sched, bool root, uint64_t rate,
           uint64_t ceil, struct qos_values *out)
{
    qos_own_config(sched, root, rate, ceil, out);
    if (qos_port_offloads(p))
        qos_unset(out, QOS_PRIO);
}

void
qos_root_config(const struct model_port *p, const struct qos_sched *sched, struct qos_values *out)
{
    struct qos_env env = qos_port_env(p, NULL);
    uint64_t speed = qos_link_speed(&env);
    own_config(p, sched, true, speed, speed, out);
}

void
qos_default_config(const struct model_port *p, const struct qos_sched *sched, uint64_t root_rate,
                   uint64_t root_ceil, struct qos_values *out)
{
    uint64_t rate = root_rate / 20;
    rate = rate > 8000 ? rate : 8000;
    own_config(p, sched, false, rate < root_rate ? rate : root_rate, root_ceil, out);
}

void
qos_class_config(const struct model_port *p, const struct qos_class *c, struct qos_values *out)
{
    qos_packed_get(c->config, out);
    if (c->follows)
        own_config(p, p->sched, c->id == QOS_CLASS_ROOT, c->rate, c->ceil, out);
}

void
qos_class_values(const struct model_port *p, const struct qos_class *c, struct qos_values *out)
{
    struct qos_values config;
    qos_class_config(p, c, &config);
    qos_class_resolve(p, c->parent, p->sched, &config, out);
}

void
qos_leaf_resolve(const struct model_port *p, const struct qos_class *c,
                 const struct qos_sched *sched, const struct qos_values *config,
                 struct qos_values *out)
{
    struct qos_env env = qos_port_env(p, c);
    qos_resolve_leaf(sched, config, &env, out);
}

uint64_t
qos_class_delay(const struct qos_class *c)
{
    uint64_t us = 0;
    return qos_packed_find(c->config, QOS_DELAY, &us) ? us : 0;
}

void
qos_own_leaf_resolve(const struct model_port *p, const struct qos_class *c,
                     const struct qos_sched *sched, const struct qos_values *config,
                     struct qos_values *out)
{
    struct qos_env env = qos_port_env(p, c);
    env.delay = (uint32_t)qos_class_delay(c);
    qos_resolve_leaf(sched, config, &env, out);
}

void
qos_leaf_values(const struct model_port *p, const struct qos_class *c, struct qos_values *config,
                struct qos_values *out)
{
    qos_packed_get(c ? c->leaf_config : p->config, config);
    if (c && c->leaf_own)
        qos_own_leaf_resolve(p, c, c->leaf, config, out);
    else
        qos_leaf_resolve(p, c, c ? c->leaf : p->sched, config, out);
}
