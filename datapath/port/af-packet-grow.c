/* SPDX-License-Identifier: Apache-2.0 */
/* A larger ring takes the place of a port's first one, without a frame lost, doubled or overtaken.
 *
 * The new socket is bound while a filter drops all that it gets.  Then it gets the switch's filter, of which the
 * first to see a frame takes it (offload_port_move): the kernel shows frames to the newest socket first.  The
 * worker reads both rings, the old one first.  After a grace period of the kernel's, no frame is on its
 * way between the two filters: the old socket gets the filter that drops all.  After another one, what
 * the old ring has is the last.
 *
 * A thread makes rings, closes the old ones, and waits for the kernel, which takes 12 ms each time. */
#include "af-packet.h"

#include <shared/rcu.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOOKS  3  /* that find a ring filled: a burst before the kernel takes over is seen by two */
#define FORGET 20 /* looks that don't */

enum stage { MAKING, MADE, FAILED, MOVING, SETTLED, CLOSING, CLOSED };

static unsigned n_growing; /* ports */

struct port_growing {
    pthread_t thread;
    sem_t go_on; /* moved or abandoned, and then to be closed */
    bool abandoned;
    enum stage stage;
    const struct port *port;
    unsigned n;
    struct rx_ring *ring[PORT_RINGS_MAX], *old[PORT_RINGS_MAX];
    int fd[PORT_RINGS_MAX]; /* of the old ones, to close */
};

static void
unblock(const struct rx_ring *r)
{
    packet_set_int(r->fd, SOL_SOCKET, SO_DETACH_FILTER, 0);
}

/* ------------------------------------------------------------------ the thread */

static void
free_rings(struct rx_ring **ring, unsigned n)
{
    int fd[PORT_RINGS_MAX];
    unsigned k = 0;
    for (unsigned i = 0; i < n; i++)
        if (ring[i])
            fd[k++] = packet_ring_free(ring[i]);
    backend_close_later(fd, k);
}

static int
make(struct port_growing *g)
{
    struct packet_ring_want want = packet_ring_wanted(g->port, true);
    int err = 0;
    for (unsigned i = 0; i < g->n && !err; i++) {
        err = packet_ring_new(&want, &g->ring[i], NULL, 0);
        if (!err && g->ring[i]->bytes <= g->old[i]->bytes) /* memory is in pieces */
            err = -ENOMEM;
        if (!err)
            err = packet_ring_block(g->ring[i]);
        if (!err)
            err = packet_ring_bind(g->port, g->ring[i], g->port->config.ifindex, true, NULL, 0);
    }
    return err;
}

/* The kernel waits for its readers whenever it closes a packet socket. */
static void
kernel_grace_period(void)
{
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        close(fd);
}

static void
wait_to_go_on(struct port_growing *g)
{
    while (sem_wait(&g->go_on) && errno == EINTR)
        continue;
}

static void *
grow(void *arg)
{
    struct port_growing *g = arg;
    store_release(&g->stage, make(g) ? FAILED : MADE);
    wait_to_go_on(g);
    if (load_acquire(&g->abandoned))
        return NULL;
    kernel_grace_period();
    for (unsigned i = 0; i < g->n; i++)
        packet_ring_block(g->old[i]);
    kernel_grace_period();
    for (unsigned i = 0; i < g->n; i++)
        store_release(&g->old[i]->ended, true);
    store_release(&g->stage, SETTLED);
    wait_to_go_on(g);
    for (unsigned i = 0; i < g->n; i++)
        close(g->fd[i]);
    store_release(&g->stage, CLOSED);
    return NULL;
}

/* ------------------------------------------------------------------ the control thread */

bool
port_is_filling(struct port *p)
{
    bool now = false;
    if (!p->config.grows || p->growing)
        return false;
    for (unsigned i = 0; i < packet_rings(p); i++) {
        struct rx_ring *r = p->worker[i].rx;
        now |= load_relaxed(&r->half_full);
        store_relaxed(&r->half_full, false);
    }
    p->not_filling = now ? 0 : p->not_filling + 1;
    if (now)
        p->filling++;
    else if (p->not_filling % FORGET == 0 && p->filling)
        p->filling--;
    return now;
}

bool
port_is_to_grow(const struct port *p)
{
    return p->config.grows && !p->growing && (p->to_grow || p->filling >= LOOKS);
}

void
port_grow_soon(struct port *p)
{
    p->to_grow = true;
}

int
port_grow(struct port *p)
{
    unsigned n = packet_rings(p);
    if (!p->config.grows || p->growing || !n || n > PORT_RINGS_MAX)
        return -EINVAL;
    size_t room = (size_t)port_rings_room(p);
    if (n_growing && room < p->ring_most)
        return -EBUSY; /* old rings and new ones are both there for a while */
    struct port_growing *g = calloc(1, sizeof *g);
    if (!g || sem_init(&g->go_on, 0, 0)) {
        free(g);
        return -ENOMEM;
    }
    p->config.ring_bytes = room;
    g->port = p;
    g->n = n;
    for (unsigned i = 0; i < n; i++)
        g->old[i] = p->worker[i].rx;
    p->growing = g;
    int err = pthread_create(&g->thread, NULL, grow, g);
    if (err) {
        sem_destroy(&g->go_on);
        free(g);
        p->growing = NULL;
    }
    n_growing += !err;
    return -err;
}

static void
count_rings(struct port *p)
{
    const struct port_growing *g = p->growing;
    uint64_t bytes = 0;
    for (unsigned i = 0; i < packet_rings(p); i++)
        bytes += ((const struct rx_ring *)p->worker[i].rx)->bytes;
    for (unsigned i = 0; g && i < g->n; i++)
        bytes += g->old[i] ? g->old[i]->bytes : 0;
    port_rings_count(p, bytes);
}

static void
end(struct port *p)
{
    struct port_growing *g = p->growing;
    pthread_join(g->thread, NULL);
    if (g->abandoned)
        free_rings(g->ring, g->n);
    p->growing = NULL;
    p->config.grows = false; /* it has grown, or can't */
    n_growing--;
    sem_destroy(&g->go_on);
    free(g);
}

static void
abandon(struct port *p)
{
    struct port_growing *g = p->growing;
    store_release(&g->abandoned, true);
    sem_post(&g->go_on);
    end(p);
}

static void
count_lost(struct port *p, struct port_worker *pw, const struct rx_ring *r)
{
    uint64_t lost = packet_ring_lost(r);
    pw->rx_lost += lost;
    if (p->done && lost)
        wide_add(p->done, lost);
}

static void
free_old(struct port *p)
{
    struct port_growing *g = p->growing;
    for (unsigned i = 0; i < g->n; i++) {
        count_lost(p, &p->worker[i], g->old[i]);
        g->fd[i] = packet_ring_free(g->old[i]);
        g->old[i] = NULL;
    }
    count_rings(p);
    g->stage = CLOSING;
    sem_post(&g->go_on);
}

unsigned
port_grow_sockets(const struct port *p, int *fd, unsigned max)
{
    const struct port_growing *g = p->growing;
    unsigned n = g && load_acquire(&g->stage) == MADE ? g->n : 0;
    for (unsigned i = 0; i < n && i < max; i++)
        fd[i] = g->ring[i]->fd;
    return n;
}

void
port_grow_move(struct port *p, bool filtered)
{
    struct port_growing *g = p->growing;
    for (unsigned i = 0; i < g->n; i++) {
        if (!filtered) {
            packet_ring_block(g->old[i]);
            unblock(g->ring[i]);
        }
        g->ring[i]->before = g->old[i];
        store_release(&p->worker[i].rx, g->ring[i]);
    }
    for (unsigned i = g->n; i < p->n_workers; i++)
        store_release(&p->worker[i].rx, g->ring[0]);
    g->stage = MOVING;
    count_rings(p);
    sem_post(&g->go_on);
}

static bool
is_drained(const struct port_growing *g)
{
    for (unsigned i = 0; i < g->n; i++)
        if (load_acquire(&g->ring[i]->before))
            return false;
    return true;
}

enum port_growth
port_growth(struct port *p)
{
    struct port_growing *g = p->growing;
    enum stage stage = g ? load_acquire(&g->stage) : SETTLED;
    if (stage == FAILED)
        abandon(p);
    if (!g || stage == FAILED)
        return PORT_GROWTH_NONE;
    if (stage == SETTLED && !is_drained(g))
        return PORT_GROWTH_DRAINS;
    if (stage == SETTLED) {
        rcu_wait(); /* workers may still poll the old sockets */
        free_old(p);
    }
    if (stage == CLOSED) {
        end(p);
        return PORT_GROWTH_NONE;
    }
    return stage == MADE ? PORT_GROWTH_MADE : PORT_GROWTH_WAITS;
}

void
port_grow_settle(struct port *p)
{
    struct port_growing *g = p->growing;
    if (!g)
        return;
    if (g->stage < MOVING)
        abandon(p);
    else
        while (load_acquire(&g->stage) < SETTLED)
            usleep(1000);
}

void
packet_grow_end(struct port *p)
{
    port_grow_settle(p);
    struct port_growing *g = p->growing;
    if (g && load_acquire(&g->stage) == SETTLED)
        free_old(p);
    if (g)
        end(p);
}
