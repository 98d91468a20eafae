/* SPDX-License-Identifier: Apache-2.0 */
/* Attaching a port's interface and its shaper, and showing them to the workers. */
#include "port-attach.h"
#include "liveness.h"
#include "port-owner.h"

#include <megaflow/megaflow.h>
#include <megaflow/wire.h>
#include <ports/ports.h>
#include <queues/latency.h>

#include <shared/rcu.h>

#include <daemon/log.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ showing the workers */

/* Replaces the list of attached ports, and returns the former one. */
static struct port_list *
show(struct sw *sw, struct port_list *l)
{
    struct port_list *old = sw->dp.ports;
    uint32_t no = 0;
    l->n = 0;
    for (const struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no)
        if (p->port && !p->queues_only)
            l->v[l->n++] = p->port;
    rcu_assign_pointer(sw->dp.ports, l);
    return old;
}

/* A list with one more port, and another of the same size for when one goes: workers must not go on
 * with a port that can't be taken away for want of memory. */
static int
publish(struct sw *sw)
{
    uint32_t n = 0, no = 0;
    for (const struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no)
        n++;
    size_t bytes = sizeof(struct port_list) + n * sizeof(struct port *);
    struct port_list *l = malloc(bytes), *spare = malloc(bytes), *old;
    if (!l || !spare) {
        free(l);
        free(spare);
        return -ENOMEM;
    }
    if ((old = show(sw, l)))
        rcu_defer_free(old);
    free(sw->spare_list);
    sw->spare_list = spare;
    return 0;
}

static void
set_by_number(struct sw *sw, uint32_t no, struct port *port)
{
    sw_offload_forget_port(sw, no); /* also what the kernel drops for want of the port */
    if (no == OFPP_LOCAL)
        rcu_assign_pointer(sw->dp.local, port);
    else
        rcu_assign_pointer(sw->dp.by_number[no], port);
}

/* ------------------------------------------------------------------ counters */

void
sw_port_read_counters(const struct sw_port *p, struct port_counters *out)
{
    *out = (struct port_counters){0};
    if (p->port)
        port_read_counters(p->port, out);
    port_counters_add(out, &p->past);
}

static struct qos_link_stats
less(const struct qos_link_stats *a, const struct qos_link_stats *b)
{
#define LESS(name) .name = a->name - b->name,
    return (struct qos_link_stats){SW_LINK_LOSSES(LESS)};
}

void
sw_port_read_losses(struct sw *sw, struct sw_port *p)
{
    if (p->port)
        qos_link_get_stats(sw->link, p->link.ifindex, &p->link.stats);
}

struct qos_link_stats
sw_port_losses(const struct sw_port *p)
{
    return less(&p->link.stats, &p->base);
}

/* ------------------------------------------------------------------ shaping what enters */

void
sw_ports_set_shaper(struct sw *sw, uint32_t no, const struct qos_shaper *s)
{
    char why[256];
    struct sw_port *p = sw_ports_find(sw, no);
    if (!p || !p->port || p->queues_only) /* the kernel does without workers */
        return;
    sw_offload_shaper_del(sw, p);
    struct port_shaper *old = port_shaper_take(p->port);
    if (old) {
        worker_wake_all(&sw->dp);
        rcu_wait();
        struct port_counters n;
        port_shaper_read_counters(old, &n);
        port_counters_add(&p->past, &n);
        port_shaper_close(old);
    }
    if (s && port_shaper_open(p->port, s->tx_name, s->rx_name, why, sizeof why))
        log_error(QOS, "port %u (%s): what enters can't be shaped, and bypasses its queues: %s", no,
                  p->name, why);
    sw_offload_shaper_add(sw, p);
    worker_wake_all(&sw->dp);
}

/* ------------------------------------------------------------------ the interface */

/* The kernel knows nothing of files.  A port with packets to read begins down, and waits until
 * somebody sets it up: the flows should be there before the packets. */
static void
describe_files(struct sw_port *p)
{
    p->link = (struct qos_link_info){.flags = IFF_RUNNING | (*p->files->in ? 0 : IFF_UP),
                                     .mtu = 65535,
                                     .mac = {2, 0, 0, 1, (uint8_t)(p->no >> 8), (uint8_t)p->no}};
}

/* Workers see it from here on, as it is. */
static int
begin(struct sw *sw, struct sw_port *p)
{
    p->config = p->link.flags & IFF_UP ? p->config & ~(uint32_t)OFPPC_PORT_DOWN
                                       : p->config | OFPPC_PORT_DOWN;
    if (!p->files)
        sw_liveness_add(sw, p);
    sw_port_apply_flags(sw, p);
    return publish(sw);
}

static uint8_t
inside(const struct sw *sw, const char *name)
{
    for (unsigned i = 0; i < sw->opt.n_inside; i++)
        if (!strcmp(sw->opt.inside[i].port, name))
            return sw->opt.inside[i].kinds;
    return 0;
}

int
sw_port_attach(struct sw *sw, struct sw_port *p, char *why, size_t why_len)
{
    struct qos_link_info link;
    struct qos_link_stats told = less(&p->link.stats, &p->base);
    bool local = p->no == OFPP_LOCAL, made = local || p->files;
    int err = made ? 0 : qos_link_get_by_name(sw->link, p->name, &link);
    if (err) {
        snprintf(why, why_len, "interface %s: %s", p->name,
                 err == -ENODEV ? "there is no such interface" : strerror(-err));
        return err;
    }
    if (!made && (err = sw_port_own(sw, p, &link, why, why_len)))
        return err;
    struct port_config c = {.port_no = p->no,
                            .ifindex = made ? 0 : link.ifindex,
                            .backend = p->files         ? "file"
                                       : local          ? "tap"
                                       : p->queues_only ? "queues-only"
                                                        : sw->opt.backend,
                            .files = p->files,
                            .n_workers = sw->dp.n_workers,
                            .grows = sw_offload_is_for(sw, p->name),
                            .blocked = sw_wire_has(sw, p->name),
                            .inside = inside(sw, p->name),
                            .fanout = sw->opt.fanout};
    snprintf(c.name, sizeof c.name, "%s", p->name);
    if (!made) /* what comes meanwhile of the interface that it had is not of this one */
        p->link.ifindex = link.ifindex;
    err = port_open(&c, &p->port, why, why_len);
    if (err) {
        sw_port_disown(p);
        return err;
    }
    if (p->files)
        describe_files(p);
    else /* opening may have set it up */
        err = qos_link_get_by_name(sw->link, p->name, &p->link);
    if (!err)
        err = begin(sw, p);
    if (err) {
        sw_liveness_del(sw, p);
        port_close(p->port);
        p->port = NULL;
        sw_port_disown(p);
        snprintf(why, why_len, "interface %s: %s", p->name, strerror(-err));
        return err;
    }
    p->base = less(&p->link.stats, &told);
    if (!p->queues_only)
        set_by_number(sw, p->no, p->port);
    port_watch(p->port, capture_watches(sw->dp.capture, p->no));
    worker_wake_all(&sw->dp);
    sw_offload_port_add(sw, p);
    return 0;
}

/* The packet side's part; the queues are the caller's business. */
void
sw_port_detach(struct sw *sw, struct sw_port *p)
{
    if (!p->port)
        return;
    struct port *port = p->port;
    sw_liveness_del(sw, p);
    sw_offload_port_del(sw, p);
    p->port = NULL;
    set_by_number(sw, p->no, NULL);
    struct port_list *old = show(sw, sw->spare_list);
    worker_wake_all(&sw->dp);
    rcu_wait();
    sw->spare_list = old;
    struct port_counters n;
    port_read_counters(port, &n);
    port_counters_add(&p->past, &n);
    port_close(port);
    sw_latency_forget_port(sw, p->no);
    sw_port_disown(p);
    sw_port_forget_stations(sw, p); /* no worker learns by it any more */
}
