/* SPDX-License-Identifier: Apache-2.0 */
/* Rings that grow (port/port.h): small as long as the kernel handles a port's packets. */
#include "state.h"

#include <daemon/log.h>

#include <errno.h>

#define AT_ONCE 16 /* ports: each has a thread meanwhile */
#define STEP_NS (NS_PER_S / 200)

/* What fails is tried again. */
static int
begin(const struct sw_port *p)
{
    int err = port_grow(p->port);
    if (!err)
        log_info(PORT, "port %u (%s): it gets a larger receive ring", (unsigned)p->no, p->name);
    return err;
}

/* False: not now, as the port's packets don't come by the filter, or never. */
static bool
move(struct sw_offload *f, const struct sw_port *p)
{
    int fd[PORT_RINGS_MAX];
    unsigned n = port_grow_sockets(p->port, fd, PORT_RINGS_MAX);
    bool filtered = offload_port_has(f->o, p->link.ifindex);
    int err = filtered ? offload_port_move(f->o, p->link.ifindex, fd, n) : 0;
    if (err && err != -EAGAIN)
        port_grow_settle(p->port); /* gives up */
    if (err)
        return false;
    port_grow_move(p->port, filtered);
    worker_wake_all(&f->sw->dp);
    return true;
}

static enum port_growth
step(struct sw_offload *f, const struct sw_port *p)
{
    enum port_growth g = port_growth(p->port);
    if (g == PORT_GROWTH_MADE && move(f, p))
        return PORT_GROWTH_WAITS;
    if (g == PORT_GROWTH_DRAINS || g == PORT_GROWTH_NONE)
        offload_port_moved(f->o, p->link.ifindex);
    if (g == PORT_GROWTH_DRAINS)
        worker_wake_all(&f->sw->dp);
    return g;
}

/* threads: of ports that already grow.  Returns how many began. */
static unsigned
begin_some(struct sw_offload *f, unsigned threads)
{
    unsigned begun = 0;
    uint32_t no = 0;
    int err = 0;
    for (const struct sw_port *p;
         threads + begun < AT_ONCE && err != -EBUSY && (p = sw_ports_next(f->sw, no)); no = p->no)
        if (p->port && port_growth(p->port) == PORT_GROWTH_NONE && port_is_to_grow(p->port)) {
            err = begin(p);
            begun += !err;
        }
    return begun;
}

void
offload_grow(struct sw_offload *f)
{
    uint64_t now = loop_clock();
    bool look = now - f->filled >= OFFLOAD_LOOK_NS, filling = false;
    unsigned growing = 0, threads = 0;
    uint32_t no = 0;
    for (const struct sw_port *p; (p = sw_ports_next(f->sw, no)); no = p->no) {
        if (!p->port)
            continue;
        filling |= look && port_is_filling(p->port);
        enum port_growth g = step(f, p);
        growing += g == PORT_GROWTH_WAITS || g == PORT_GROWTH_DRAINS;
        filling |= g == PORT_GROWTH_MADE;
        threads += g != PORT_GROWTH_NONE;
    }
    growing += begin_some(f, threads);
    if (look)
        f->filled = now;
    if (growing)
        loop_timer_set(f->grow, now + STEP_NS);
    else if (filling || !look)
        loop_timer_set(f->grow, f->filled + OFFLOAD_LOOK_NS);
}

void
offload_grow_now(struct sw_offload *f, struct sw_port *p)
{
    port_grow_soon(p->port);
    loop_timer_set(f->grow, 0);
}

void
offload_grow_all(struct sw_offload *f)
{
    uint32_t no = 0;
    for (struct sw_port *p; (p = sw_ports_next(f->sw, no)); no = p->no)
        if (p->port)
            offload_grow_now(f, p);
}
