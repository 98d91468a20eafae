/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets of queues.
 *
 * A queue's packets must carry its skb->priority, which the sending socket sets.  So each (port,
 * queue) has a socket of its own, up to IO_SOCKETS a worker; then the queue that needs one takes
 * the least recently used one over, by two short system calls.  (Closing a socket waits for the
 * kernel's RCU readers, 10 ms and more.)  Packets keep the priority they were sent with, so a
 * socket may change hands while its packets wait in the qdisc.  If the kernel takes the priority
 * with each message, further queues use the port's plain socket, and share system calls.
 */
#include "backend.h"

#include <errno.h>

static struct tx_sock *
least_recent(struct port_io *w)
{
    struct tx_sock *best = &w->sock[0];
    for (unsigned i = 1; i < w->n_sock; ++i)
        if (w->sock[i].last < best->last)
            best = &w->sock[i];
    return best;
}

/* If descriptors run out before max_sock, the present number becomes the maximum. */
static struct tx_sock *
new_sock(struct port_io *w, struct txq *q)
{
    if (w->n_sock >= w->max_sock)
        return NULL;
    const struct port *p = q->port;
    uint32_t priority = port_queue_priority(p, q->queue);
    int fd = p->backend->queue_socket(-1, p->config.ifindex, 0, priority);
    if (fd < 0) {
        w->max_sock = w->n_sock ? w->n_sock : 1;
        return NULL;
    }
    struct tx_sock *s = &w->sock[w->n_sock++];
    s->fd = fd;
    s->priority = priority;
    return s;
}

static struct tx_sock *
taken_over(struct port_io *w, struct txq *q, struct tx_sock *s)
{
    const struct port *p = q->port;
    uint32_t priority = port_queue_priority(p, q->queue);
    int fd = p->backend->queue_socket(s->fd, p->config.ifindex, s->ifindex, priority);
    s->priority = priority;
    if (fd >= 0)
        return s;
    s->use = ++w->uses; /* its owner has lost it, and no other has it */
    s->ifindex = 0;
    s->last = 0;
    store_relaxed(&s->port_uid, 0);
    return NULL;
}

int
port_queue_fd(struct port_io *w, struct txq *q)
{
    struct tx_sock *s = &w->sock[q->sock];
    bool own = q->sock_use && s->use == q->sock_use;
    if (!own || s->priority != port_queue_priority(q->port, q->queue)) {
        s = own ? NULL : new_sock(w, q);
        if (!s && !own && q->port->prio_by_message)
            return -EAGAIN;
        if (!s && w->n_sock) /* its own: the queue is in another tree now */
            s = taken_over(w, q, own ? &w->sock[q->sock] : least_recent(w));
        if (!s)
            return -ENOENT;
        s->ifindex = q->port->config.ifindex;
        s->use = q->sock_use = ++w->uses;
        q->sock = (uint32_t)(s - w->sock);
        queue_clock_forget(&q->clock, s->fd);
        store_relaxed(&s->port_uid, q->port->uid);
    }
    s->last = w->flushes;
    return s->fd;
}
