/* SPDX-License-Identifier: Apache-2.0 */
/* A port whose packets are partly handled in the kernel: its receive sockets, the frames that it
 * is done with, and what the kernel did. */
#include "backend.h"

#include <poll.h>
#include <sys/socket.h>

/* Each ring once: without fanout all workers share the first one's. */
static unsigned
n_rings(const struct port *p)
{
    bool each = p->config.fanout && p->backend->fans_out;
    return p->config.no_rx ? 0 : each ? p->n_workers : 1;
}

unsigned
port_rx_sockets(const struct port *p, int *fd, unsigned max)
{
    unsigned n = p->backend->filtered ? n_rings(p) : 0;
    for (unsigned i = 0; i < n && i < max; i++)
        fd[i] = p->backend->rx_fd(&p->worker[i]);
    return n;
}

void
port_unblock(struct port *p)
{
    int fd[PORT_RINGS_MAX], zero = 0;
    unsigned n = p->config.blocked ? port_rx_sockets(p, fd, PORT_RINGS_MAX) : 0;
    for (unsigned i = 0; i < n && i < PORT_RINGS_MAX; i++)
        setsockopt(fd[i], SOL_SOCKET, SO_DETACH_FILTER, &zero, sizeof zero);
}

void
port_set_done(struct port *p, uint64_t *done)
{
    p->done_off = 0;
    store_release(&p->done, p->backend->filtered ? done : NULL);
}

bool
port_in_kernel(const struct port *p)
{
    return load_relaxed(&p->done);
}

void
port_read_lost(struct port *p)
{
    for (unsigned i = 0; p->backend->rx_lost && i < n_rings(p); i++) {
        uint64_t lost = p->backend->rx_lost(&p->worker[i]);
        p->worker[i].rx_lost += lost;
        if (p->done && lost)
            wide_add(p->done, lost);
    }
}

static bool
rings_are_empty(const struct port *p)
{
    if (p->growing)
        return false;
    for (unsigned i = 0; i < n_rings(p); i++) {
        struct pollfd f = {.fd = p->backend->rx_fd(&p->worker[i]), .events = POLLIN};
        if (poll(&f, 1, 0))
            return false;
    }
    return true;
}

/* A frame that has passed the filter reaches the ring a moment later, so correcting at once
 * would be too soon.  The difference must be the same at two looks. */
void
port_sync_done(struct port *p, const uint64_t *passed)
{
    if (!p->done)
        return;
    uint64_t before = wide_load(passed);
    bool empty = rings_are_empty(p);
    port_read_lost(p);
    uint64_t off = before - wide_load(p->done);
    if (!empty || wide_load(passed) != before)
        return;
    if (off && off == p->done_off) {
        wide_add(p->done, off);
        off = 0;
    }
    p->done_off = off;
}

void
port_count_kernel(struct port *p, const struct port_counters *more)
{
#define PORT_ADD_KERNEL(name) p->kernel.name += more->name;
    PORT_TRAFFIC(PORT_ADD_KERNEL)
    PORT_COUNTERS(PORT_ADD_KERNEL, PORT_NOT_COUNTED, PORT_NOT_COUNTED)
}
