/* SPDX-License-Identifier: Apache-2.0 */
#include <qos/tree/shaper.h>

#include <qos/tree/tree.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int
qos_port_set(struct model_port *p, const struct qos_port *info)
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

void
qos_port_follow(struct model_port *in)
{
    in->info.mtu = in->out->info.mtu;
    in->info.speed = in->out->info.speed;
    in->info.txqueuelen = in->out->info.txqueuelen;
}

void
qos_port_drop(struct qos *q, struct model_port *p)
{
    struct model_port **at = &q->ports;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    qos_port_free_tree(p);
    free(p->name);
    free(p);
}

struct model_port *
qos_port_in(struct qos *q, struct model_port *out, bool make)
{
    struct model_port *p = qos_port_find_dir(q, out->info.port_no, QOS_IN), **at = &out->next;
    if (p || !make)
        return p;
    p = calloc(1, sizeof *p);
    if (!p || qos_port_set(p, &out->info)) {
        free(p);
        return NULL;
    }
    p->place = QOS_PARENT_ROOT;
    p->dir = QOS_IN;
    p->out = out;
    p->info.ifindex = 0;
    p->info.tx_queues = 1;
    while (*at && (*at)->band)
        at = &(*at)->next;
    p->next = *at;
    *at = p;
    return p;
}

void
qos_shaper_take(struct model_port *in)
{
    struct qos_port info = in->out->info;
    info.ifindex = in->shaper.tx_ifindex;
    info.name = in->shaper.tx_name;
    info.tx_queues = 1;
    qos_port_set(in, &info); /* without memory the name stays the old one */
    in->info.ifindex = info.ifindex;
}

void
qos_shapers_notify(struct qos *q)
{
    for (struct model_port *p = q->ports; p; p = p->next) {
        if (!p->shaper.tx_ifindex || !p->sched || p->shaper_notified)
            continue;
        p->shaper_notified = true;
        if (q->events.shaper)
            q->events.shaper(q->events.ctx, p->info.port_no, &p->shaper);
    }
}

void
qos_shaper_drop(struct qos *q, struct model_port *in, bool from_kernel)
{
    if (in->shaper_notified && q->events.shaper)
        q->events.shaper(q->events.ctx, in->info.port_no, NULL);
    if (in->shaper.tx_ifindex && from_kernel)
        q->kernel->ops->shaper_del(q->kernel, &in->shaper);
    in->shaper_notified = false;
    in->shaper = (struct qos_shaper){0};
    in->info.ifindex = 0;
}

void
qos_shapers_reap(struct qos *q)
{
    for (struct model_port *p = q->ports, *next; p; p = next) {
        next = p->next;
        if (p->dir == QOS_OUT || p->sched)
            continue;
        qos_shaper_drop(q, p, true);
        qos_port_drop(q, p);
    }
}
