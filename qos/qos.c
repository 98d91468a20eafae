/* SPDX-License-Identifier: Apache-2.0 */
/* The door: ports come and go, requests are carried out. */
#include "model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int
qos_new(struct qos **q, struct qos_kernel *kernel, const struct qos_events *events)
{
    struct qos *new = calloc(1, sizeof *new);
    if (!new)
        return -ENOMEM;
    new->kernel = kernel;
    if (events)
        new->events = *events;
    *q = new;
    return 0;
}

static void
port_free(struct port *p)
{
    port_reset(p);
    free(p->name);
    free(p);
}

void
qos_free(struct qos *q)
{
    if (!q)
        return;
    while (q->ports) {
        struct port *p = q->ports;
        q->ports = p->next;
        port_free(p);
    }
    free(q);
}

/* -------------------------------------------------------------------- ports */

static int
port_set(struct port *p, const struct qos_port *info)
{
    char *name = strdup(info->name ? info->name : "");
    if (!name)
        return -ENOMEM;
    free(p->name);
    p->name = name;
    p->info = *info;
    p->info.name = name;
    return 0;
}

int
qos_port_add(struct qos *q, const struct qos_port *info)
{
    struct port **at = &q->ports;
    if (port_find(q, info->port_no))
        return -EEXIST;
    struct port *p = calloc(1, sizeof *p);
    if (!p || port_set(p, info)) {
        free(p);
        return -ENOMEM;
    }
    while (*at && (*at)->info.port_no < info->port_no)
        at = &(*at)->next;
    p->next = *at;
    *at = p;
    return port_adopt(q, p, NULL) == -ENOMEM ? -ENOMEM : 0;
}

int
qos_port_sync(struct qos *q, uint32_t port_no, struct qos_error *e)
{
    struct port *p = port_find(q, port_no);
    if (!p)
        return -ENOENT;
    return p->away ? 0 : port_adopt(q, p, e);
}

/* A root class that follows the link's speed. */
static int
follow_speed(struct qos *q, struct port *p, struct qos_error *e)
{
    struct plan plan = {0};
    struct qos_values config;
    root_config(p, p->sched, &config);
    int err = plan_class_change(&plan, p, p->root, &config, e);
    if (!err)
        return plan_run(q, &plan, e);
    plan_free(&plan);
    return err;
}

int
qos_port_update(struct qos *q, const struct qos_port *info, struct qos_error *e)
{
    struct port *p = port_find(q, info->port_no);
    if (!p)
        return -ENOENT;
    bool moved = p->info.ifindex != info->ifindex, faster = p->info.speed != info->speed;
    int err = port_set(p, info);
    if (err)
        return err;
    if (moved)
        return port_adopt(q, p, e); /* another interface: what it has is what there is */
    if (faster && port_has_tree(p) && p->root->follows)
        return follow_speed(q, p, e);
    return 0;
}

void
qos_port_remove(struct qos *q, uint32_t port_no, bool clear_kernel)
{
    struct port **at = &q->ports;
    while (*at && (*at)->info.port_no != port_no)
        at = &(*at)->next;
    struct port *p = *at;
    if (!p)
        return;
    if (clear_kernel)
        clear_ports(q, p, NULL);
    tell_all_gone(q, p);
    *at = p->next;
    port_free(p);
}

/* ----------------------------------------------------------------- clearing */

/* Is the kernel's root qdisc still the one we put there? */
static bool
root_is_ours(struct qos *q, const struct port *p)
{
    struct qos_object root;
    uint32_t handle = port_has_tree(p) ? QOS_HANDLE_TREE : QOS_HANDLE_ROOT;
    return p->sched && !p->away &&
           q->kernel->ops->root(q->kernel, p->info.ifindex, &root, NULL) == 0 &&
           root.handle == handle && root.sched == p->sched;
}

/* All or nothing: each deletion's undo is the port as it was. */
int
clear_ports(struct qos *q, struct port *only, struct qos_error *e)
{
    struct plan plan = {0};
    struct port *first = only ? only : q->ports, *end = only ? only->next : NULL;
    unsigned ports = 0;
    for (struct port *p = first; p != end; p = p->next)
        ports += p->sched != NULL;
    for (struct port *p = first; p != end; p = p->next) {
        if (!root_is_ours(q, p))
            continue;
        struct qos_op op = op_root_del(p);
        plan_do(&plan, &op);
        if (ports > 1)
            put_port(&plan, plan_undo, p);
    }
    int err = plan_run(q, &plan, e);
    for (struct port *p = first; !err && p != end; p = p->next) {
        tell_all_gone(q, p);
        port_reset(p);
    }
    return err;
}

int
qos_clear_all(struct qos *q, struct qos_error *e)
{
    int first = 0;
    for (struct port *p = q->ports; p; p = p->next) {
        struct qos_error why;
        int err = clear_ports(q, p, &why);
        if (err && !first) {
            first = err;
            if (e)
                *e = why;
        }
    }
    return first;
}

/* ---------------------------------------------------- interfaces that go and come */

int
qos_port_away(struct qos *q, uint32_t port_no)
{
    struct port *p = port_find(q, port_no);
    if (!p)
        return -ENOENT;
    tell_all_gone(q, p);
    p->away = true;
    return 0;
}

/* The port's queues as the model has them, on an interface that has none. */
static int
restore(struct qos *q, struct port *p, struct qos_error *e)
{
    struct plan plan = {0};
    int err = port_root_free(q, p, e);
    if (err)
        return err;
    put_port(&plan, plan_do, p);
    err = plan_run(q, &plan, e);
    if (err && root_is_ours(q, p)) { /* half of them are of no use */
        struct plan undo = {0};
        struct qos_op del = op_root_del(p);
        plan_do(&undo, &del);
        plan_run(q, &undo, NULL);
    }
    return err;
}

int
qos_port_back(struct qos *q, const struct qos_port *info, struct qos_error *e)
{
    struct port *p = port_find(q, info->port_no);
    if (!p)
        return -ENOENT;
    bool other_speed = p->info.speed != info->speed;
    int err = port_set(p, info);
    if (err)
        return err;
    tell_all_gone(q, p);
    p->away = false;
    if (p->sched && !root_is_ours(q, p))
        err = restore(q, p, e);
    if (err)
        port_reset(p);
    for (struct klass *c = klass_next(p, 0); c; c = klass_next(p, c->id))
        tell_queue(q, p, c->id, true);
    if (port_has_tree(p))
        tell_default(q, p);
    if (!err && other_speed && port_has_tree(p) && p->root->follows)
        err = follow_speed(q, p, e);
    int adopted = port_adopt(q, p, err ? NULL : e);
    return err ? err : adopted;
}

/* ----------------------------------------------------------------- requests */

static int
execute(struct qos *q, const struct qos_request *r, struct qos_error *e)
{
    struct port *p = port_find(q, r->port_no);
    bool none = r->sched->id == OFP_QOS_SCHED_NONE;
    if (!p && !(none && r->port_no == OFPP_ANY))
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_PORT), "there is no port %u", (unsigned)r->port_no);
    if (none && r->values.v[QOS_DIRECTION])
        return 0; /* nothing of ours is ever there */
    if (r->values.v[QOS_DIRECTION])
        return qos_fail(e, QOS_ERR(OFPSFC_UNSUPPORTED),
                        "queues for what enters by a port are not supported: use the port it "
                        "leaves by");
    if (none)
        return clear_ports(q, p, e);
    if (p->away)
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_PORT), "port %u has no interface at present",
                        (unsigned)r->port_no);
    if (!r->sched->classful)
        return execute_leaf(q, p, r, e);
    return r->object_type == OFP_QOS_CLASS ? execute_class(q, p, r, e)
                                           : execute_tree(q, p, r, e);
}

/* A missing scheduler: what to install. */
static void
name_module(const struct qos_request *r, struct qos_error *e)
{
    size_t at = strlen(e->text);
    if (e->err == QOS_ERR(OFPSFC_UNSUPPORTED) && e->errnum && r->sched->module)
        snprintf(e->text + at, sizeof e->text - at,
                 "; %s needs the kernel module %s (OpenWrt: package %s)", r->sched->name,
                 r->sched->module, r->sched->package);
}

int
qos_execute(struct qos *q, const struct qos_request *r, struct qos_error *e)
{
    struct qos_error mine;
    e = e ? e : &mine;
    *e = (struct qos_error){0};
    int err = execute(q, r, e);
    if (err < 0) {
        qos_fail(e, QOS_ERR(OFPSFC_KERNEL), "the switch could not do it: %s", strerror(-err));
        e->errnum = -err;
    } else if (err) {
        name_module(r, e);
    }
    return err ? e->err : 0;
}
