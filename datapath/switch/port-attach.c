/* SPDX-License-Identifier: Apache-2.0 */
/* Attaching a port's interface and its shaper, and showing them to the workers. */
#include "port-attach.h"

#include <shared/rcu.h>

#include <daemon/log.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ showing the workers */

/* Tells sleeping workers that the ports' descriptors have changed. */
static void
wake_workers(struct sw *sw)
{
    fetch_add(&sw->dp.watch_serial, 1);
    for (unsigned i = 0; i < sw->dp.n_workers; i++)
        if (sw->dp.workers[i])
            worker_wake(sw->dp.workers[i]);
}

/* Replaces the list of attached ports. */
static int
publish(struct sw *sw)
{
    uint32_t n = 0, no = 0;
    for (const struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no)
        n++;
    struct port_list *l = calloc(1, sizeof *l + n * sizeof l->v[0]), *old = sw->dp.ports;
    if (!l)
        return -ENOMEM;
    no = 0;
    for (const struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no)
        if (p->port)
            l->v[l->n++] = p->port;
    rcu_assign_pointer(sw->dp.ports, l);
    if (old)
        rcu_defer_free(old);
    return 0;
}

static void
set_by_number(struct sw *sw, uint32_t no, struct port *port)
{
    if (no == OFPP_LOCAL)
        rcu_assign_pointer(sw->dp.local, port);
    else
        rcu_assign_pointer(sw->dp.by_number[no], port);
}

/* ------------------------------------------------------------------ shaping what enters */

void
sw_ports_set_shaper(struct sw *sw, uint32_t no, const struct qos_shaper *s)
{
    char why[256];
    struct sw_port *p = sw_ports_find(sw, no);
    if (!p || !p->port)
        return;
    struct port_shaper *old = port_shaper_take(p->port);
    if (old) {
        wake_workers(sw);
        rcu_wait();
        port_shaper_close(old);
    }
    if (!s)
        return;
    if (port_shaper_open(p->port, s->tx_name, s->rx_name, why, sizeof why)) {
        log_error(QOS, "port %u (%s): what enters can't be shaped, and bypasses its queues: %s", no,
                  p->name, why);
        return;
    }
    wake_workers(sw);
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

int
sw_port_attach(struct sw *sw, struct sw_port *p, char *why, size_t why_len)
{
    struct qos_link_info link;
    bool local = p->no == OFPP_LOCAL, made = local || p->files;
    int err = made ? 0 : qos_link_get_by_name(sw->link, p->name, &link);
    if (err) {
        snprintf(why, why_len, "interface %s: %s", p->name,
                 err == -ENODEV ? "there is no such interface" : strerror(-err));
        return err;
    }
    struct port_config c = {.port_no = p->no,
                            .ifindex = made ? 0 : link.ifindex,
                            .backend = p->files ? "file"
                                       : local  ? "tap"
                                                : sw->opt.backend,
                            .files = p->files,
                            .n_workers = sw->dp.n_workers,
                            .fanout = sw->opt.fanout};
    snprintf(c.name, sizeof c.name, "%s", p->name);
    err = port_open(&c, &p->port, why, why_len);
    if (err)
        return err;
    if (p->files)
        describe_files(p);
    else /* opening may have set it up */
        err = qos_link_get_by_name(sw->link, p->name, &p->link);
    if (!err)
        err = publish(sw);
    if (err) {
        port_close(p->port);
        p->port = NULL;
        snprintf(why, why_len, "interface %s: %s", p->name, strerror(-err));
        return err;
    }
    p->base = p->link.stats;
    p->config = p->link.flags & IFF_UP ? p->config & ~(uint32_t)OFPPC_PORT_DOWN
                                       : p->config | OFPPC_PORT_DOWN;
    set_by_number(sw, p->no, p->port);
    sw_port_apply_flags(p);
    port_watch(p->port, capture_watches(sw->dp.capture, p->no));
    wake_workers(sw);
    return 0;
}

/* The packet side's part; the queues are the caller's business. */
void
sw_port_detach(struct sw *sw, struct sw_port *p)
{
    if (!p->port)
        return;
    struct port *port = p->port;
    p->port = NULL;
    set_by_number(sw, p->no, NULL);
    if (publish(sw)) /* no memory: leak the port, for workers still read it */
        return;
    wake_workers(sw);
    rcu_wait();
    port_close(port);
}
