/* SPDX-License-Identifier: Apache-2.0 */
/* Sending: a worker's packets wait in a queue per (port, queue) until they are flushed.
 *
 * A queue's packets must carry its skb->priority, which the sending socket sets.  So each (port,
 * queue) has a socket of its own, up to IO_SOCKETS a worker; then the queue that needs one takes
 * the least recently used one over, by two short system calls.  (Closing a socket waits for the
 * kernel's RCU readers, 10 ms and more.)  Packets keep the priority they were sent with, so a
 * socket may change hands while its packets wait in the qdisc.  If the kernel takes the priority
 * with each message, further queues use the port's plain socket, and share system calls.
 */
#include "backend.h"

#include <packet/headers.h>

#include <oflib/openflow.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* After a queue refused a packet, so many are sent one per system call. */
#define SINGLE_AFTER_DROP 1024
/* A plain frame of up to this length fits the MTU of a usual interface. */
#define USUAL_FRAME 1514

static const uint8_t zeros[PACKET_MIN];

static pthread_mutex_t workers_lock = PTHREAD_MUTEX_INITIALIZER;
static struct port_io *workers;

/* ------------------------------------------------------------------ a worker's side */

struct port_io *
port_io_new(unsigned worker, size_t pool_bytes)
{
    struct port_io *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->pool = packet_pool_new(pool_bytes);
    if (!w->pool) {
        free(w);
        return NULL;
    }
    w->worker = worker;
    w->dirty_end = &w->dirty;
    w->max_sock = IO_SOCKETS;
    for (unsigned i = 0; i < IO_BATCH; ++i) {
        w->iov[i][0].iov_len = sizeof(struct virtio_net_hdr);
        w->msg[i].msg_hdr.msg_iov = w->iov[i];
        w->prio[i].head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(uint32_t)),
                                           .cmsg_level = SOL_SOCKET,
                                           .cmsg_type = SO_PRIORITY};
    }
    pthread_mutex_lock(&workers_lock);
    w->next = workers;
    workers = w;
    pthread_mutex_unlock(&workers_lock);
    return w;
}

void
port_io_free(struct port_io *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&workers_lock);
    for (struct port_io **at = &workers; *at; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            break;
        }
    pthread_mutex_unlock(&workers_lock);
    int fd[IO_SOCKETS];
    for (unsigned i = 0; i < w->n_sock; ++i)
        fd[i] = w->sock[i].fd;
    backend_close_later(fd, w->n_sock);
    packet_pool_free(w->pool);
    free(w);
}

struct packet_pool *
port_io_pool(struct port_io *w)
{
    return w->pool;
}

uint64_t *
port_io_drops(struct port_io *w)
{
    return w->drops;
}

struct drop_log *
port_io_drop_log(struct port_io *w)
{
    return &w->drop_log;
}

unsigned
port_queue_sockets(uint32_t port_uid)
{
    unsigned n = 0;
    pthread_mutex_lock(&workers_lock);
    for (struct port_io *w = workers; w; w = w->next)
        for (unsigned i = 0; i < IO_SOCKETS; ++i)
            n += load_relaxed(&w->sock[i].port_uid) == port_uid;
    pthread_mutex_unlock(&workers_lock);
    return n;
}

/* ------------------------------------------------------------------ queueing */

/* The longest super-packet for this queue, in bytes; 0: there is no such queue. */
static uint32_t
queue_super(const struct port *p, uint32_t queue)
{
    uint32_t *super = load_acquire(&p->queue_super);
    if (!super)
        return queue ? 0 : UINT32_MAX;
    return queue <= OFP_QOS_QUEUE_MAX ? load_relaxed(&super[queue]) : 0;
}

/* Returns NULL if there is no memory. */
static struct txq *
queue_make(struct port *p, struct port_worker *pw, uint32_t queue)
{
    struct txq ***page = &pw->page[queue / QUEUE_PAGE];
    if (!*page && !(*page = calloc(QUEUE_PAGE, sizeof **page)))
        return NULL;
    struct txq *q = malloc(sizeof *q);
    if (q)
        *q = (struct txq){.port = p, .head = IO_NONE, .tail = IO_NONE, .queue = queue};
    (*page)[queue % QUEUE_PAGE] = q;
    return q;
}

static struct txq *
queue_of(struct port *p, struct port_worker *pw, uint32_t queue)
{
    struct txq *q = NULL;
    if (!queue)
        return &pw->plain;
    if (p->backend->queues && queue_super(p, queue)) {
        struct txq **page = pw->page[queue / QUEUE_PAGE];
        q = page ? page[queue % QUEUE_PAGE] : NULL;
        if (!q)
            q = queue_make(p, pw, queue);
    }
    if (q)
        return q;
    counter_add(&pw->tx_no_queue, 1);
    return &pw->plain;
}

/* Makes the header as the kernel wants it.  hdr_len is what it puts into the linear part of its
 * buffer: the headers and no more, though the received header may have counted payload. */
static void
vnet_for_sending(struct virtio_net_hdr *v, const uint8_t *data, uint32_t len)
{
    uint32_t end = 0;
    v->flags &= VIRTIO_NET_HDR_F_NEEDS_CSUM;
    if (v->flags) {
        end = (uint32_t)v->csum_start + v->csum_offset + 2;
        uint32_t doff_at = v->csum_start + 12u; /* TCP's data offset */
        uint8_t type = v->gso_type & (uint8_t)~VIRTIO_NET_HDR_GSO_ECN;
        if ((type == VIRTIO_NET_HDR_GSO_TCPV4 || type == VIRTIO_NET_HDR_GSO_TCPV6) &&
            doff_at < len && v->csum_start + (data[doff_at] >> 4) * 4u > end)
            end = v->csum_start + (data[doff_at] >> 4) * 4u;
    } else {
        v->csum_start = v->csum_offset = 0;
        end = v->gso_type ? v->hdr_len : 0;
    }
    if (!v->gso_type)
        v->gso_size = 0;
    v->hdr_len = (uint16_t)(end < len ? end : len < UINT16_MAX ? len : UINT16_MAX);
}

#define NO_TX (PORT_LINK_DOWN | OFPPC_PORT_DOWN | OFPPC_NO_FWD)

static inline int
enqueue(struct port *p, struct port_io *w, struct packet *pkt)
{
    if (pkt->len < ETH_HEADER)
        return EDIT_DROP(malformed);
    struct txq *q = queue_of(p, &p->worker[w->worker], pkt->queue);
    if (w->n_items == IO_PENDING)
        port_io_flush(w);
    uint32_t at = w->n_items++;
    struct tx_item *it = &w->item[at];
    it->data = pkt->data;
    it->len = pkt->len;
    it->next = IO_NONE;
    it->vnet = pkt->vnet;
    it->segments = 1;
    if (it->vnet.flags | it->vnet.gso_type) {
        if (it->vnet.gso_type)
            it->segments = (uint16_t)packet_segments(pkt);
        vnet_for_sending(&it->vnet, it->data, it->len);
    } else {
        it->vnet = (struct virtio_net_hdr){0};
    }
    pkt->shared = true;
    if (q->head == IO_NONE) {
        q->head = at;
        q->next_dirty = NULL;
        *w->dirty_end = q;
        w->dirty_end = &q->next_dirty;
    } else {
        w->item[q->tail].next = at;
    }
    q->tail = at;
    return 0;
}

int
port_tx_refusal(const struct port *p, const struct packet *pkt)
{
    if (load_relaxed(&p->flags) & NO_TX)
        return EDIT_DROP(port_down);
    return pkt->len < ETH_HEADER ? EDIT_DROP(malformed) : 0;
}

uint32_t
port_tx_queue(const struct port *p, uint32_t queue)
{
    return queue && p->backend->queues && queue_super(p, queue) ? queue : 0;
}

/* Not the usual port: it takes nothing, or somebody wants to know of each packet. */
__attribute__((noinline)) static int
enqueue_unusual(struct port *p, struct port_io *w, struct packet *pkt, uint32_t flags)
{
    if (flags & NO_TX || w->worker >= p->n_workers)
        return EDIT_DROP(port_down);
    int drop = enqueue(p, w, pkt);
    return drop ? drop : PORT_TX_WATCHED;
}

int
port_tx(struct port *p, struct port_io *w, struct packet *pkt)
{
    uint32_t flags = load_relaxed(&p->flags);
    if (flags & (NO_TX | PORT_WATCHED) || w->worker >= p->n_workers)
        return enqueue_unusual(p, w, pkt, flags);
    return enqueue(p, w, pkt);
}

/* ------------------------------------------------------------------ sockets of queues */

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
    int fd = p->backend->queue_socket(-1, p->config.ifindex, 0, q->queue);
    if (fd < 0) {
        w->max_sock = w->n_sock ? w->n_sock : 1;
        return NULL;
    }
    struct tx_sock *s = &w->sock[w->n_sock++];
    s->fd = fd;
    return s;
}

static struct tx_sock *
taken_over(struct port_io *w, struct txq *q)
{
    if (!w->n_sock)
        return NULL;
    const struct port *p = q->port;
    struct tx_sock *s = least_recent(w);
    int fd = p->backend->queue_socket(s->fd, p->config.ifindex, s->ifindex, q->queue);
    if (fd >= 0)
        return s;
    s->use = ++w->uses; /* its owner has lost it, and no other has it */
    s->ifindex = 0;
    s->last = 0;
    store_relaxed(&s->port_uid, 0);
    return NULL;
}

/* Returns the queue's own socket; -EAGAIN: none, but each message can carry its priority; -ENOENT.
 */
static int
queue_fd(struct port_io *w, struct txq *q)
{
    struct tx_sock *s = &w->sock[q->sock];
    if (!q->sock_use || s->use != q->sock_use) {
        s = new_sock(w, q);
        if (!s && q->port->prio_by_message)
            return -EAGAIN;
        if (!s)
            s = taken_over(w, q);
        if (!s)
            return -ENOENT;
        s->ifindex = q->port->config.ifindex;
        s->use = q->sock_use = ++w->uses;
        q->sock = (uint32_t)(s - w->sock);
        store_relaxed(&s->port_uid, q->port->uid);
    }
    s->last = w->flushes;
    return s->fd;
}

/* ------------------------------------------------------------------ sending */

/* Messages to be sent by one socket. */
struct sending {
    struct port_io *w;
    struct port *port;
    struct port_worker *pw;
    const struct port_backend *backend;
    int fd;
    unsigned n;
    uint32_t queue; /* of what count_drop is called for */
};

static void
count_sent(const struct sending *s, const struct tx_item *it)
{
    counter_add(&s->pw->tx_packets, it->segments);
    counter_add(&s->pw->tx_bytes, it->len);
}

static void
count_drop(const struct sending *s, const struct tx_item *it, enum drop_reason why)
{
    struct packet_at at = PACKET_AT_NONE;
    bool shaper = s->port->config.no_rx;
    if (why == DROP_tx_full && shaper)
        why = DROP_in_full;
    *(shaper ? &at.in_port : &at.out_port) = s->port->config.port_no;
    at.queue = s->queue;
    counter_add(&s->pw->tx_dropped, it->segments);
    counter_add(&s->w->drops[why], it->segments);
    drop_log_note(&s->w->drop_log, why, &at, it->data, it->len, &it->vnet);
}

static const struct {
    int err;
    enum drop_reason why;
    bool all; /* the following ones would fail too */
} refusals[] = {
    {ENOBUFS, DROP_tx_full, false}, /* the qdisc dropped it */
    {EAGAIN, DROP_tx_full, true},   /* the socket's buffer is full */
    {ENOMEM, DROP_tx_full, false},    {EMSGSIZE, DROP_too_long, false},
    {ENETDOWN, DROP_port_down, true}, {ENXIO, DROP_port_down, true},
    {ENODEV, DROP_port_down, true},   {EIO, DROP_port_down, true}, /* of a tap */
};

static enum drop_reason
refusal(int err, bool *all)
{
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; ++i)
        if (refusals[i].err == err) {
            *all = refusals[i].all;
            return refusals[i].why;
        }
    *all = false;
    return DROP_tx_error;
}

static void
fill_message(struct mmsghdr *m, struct tx_item *it, const struct port *to)
{
    struct iovec *v = m->msg_hdr.msg_iov;
    v[0].iov_base = &it->vnet;
    v[1].iov_base = (void *)(uintptr_t)it->data;
    v[1].iov_len = it->len;
    m->msg_hdr.msg_iovlen = 2;
    if (it->len < PACKET_MIN && !to->config.no_rx) { /* a port_shaper changes nothing */
        v[2].iov_base = (void *)(uintptr_t)zeros;
        v[2].iov_len = PACKET_MIN - it->len;
        m->msg_hdr.msg_iovlen = 3;
    }
}

static void
send_segment(void *ctx, const uint8_t *data, uint32_t len)
{
    const struct sending *s = ctx;
    struct tx_item it = {.data = data, .len = len, .segments = 1};
    struct iovec iov[3] = {{.iov_len = sizeof it.vnet}};
    struct mmsghdr m = {.msg_hdr.msg_iov = iov};
    bool all;
    fill_message(&m, &it, s->port);
    int r = s->backend->send(s->pw, s->fd, &m, 1);
    if (r > 0)
        count_sent(s, &it);
    else
        count_drop(s, &it, refusal(-r, &all));
}

/* Fills in checksums and makes segments in software; passes each resulting packet to `each`. */
static void
finish(struct sending *s, const struct tx_item *it, packet_each each, void *ctx)
{
    struct packet p = {.data = (uint8_t *)(uintptr_t)it->data,
                       .len = it->len,
                       .wire_len = it->len,
                       .shared = true,
                       .pool = s->w->pool,
                       .vnet = it->vnet};
    packet_parse(&p, 0);
    if (packet_finish(&p, each, ctx))
        count_drop(s, it, DROP_tx_error);
}

/* How many messages from this one on may share a system call. */
static unsigned
together(const struct sending *s, unsigned i)
{
    struct txq *const *q = s->w->msg_q;
    unsigned k = i + 1;
    while (!q[i]->single && k < s->n && !q[k]->single)
        ++k;
    return k - i;
}

/* Sends the messages.
 *
 * sendmmsg(2) hides the errno of a message if others went before it, and sending that message again
 * to learn it would make the qdisc count a second drop.  So a frame that nothing but a full queue
 * can have refused counts as that, and a full queue is then sent one packet per call. */
static void
send_messages(struct sending *s)
{
    struct port_io *w = s->w;
    for (unsigned i = 0; i < s->n;) {
        unsigned most = together(s, i);
        int r = s->backend->send(s->pw, s->fd, w->msg + i, most);
        if (w->msg_q[i]->single)
            --w->msg_q[i]->single;
        for (int k = 0; k < r; ++k)
            count_sent(s, w->msg_item[i++]);
        if (r == (int)most)
            continue;
        w->msg_q[i]->single = SINGLE_AFTER_DROP;
        s->queue = w->msg_q[i]->queue;
        struct tx_item *it = w->msg_item[i];
        bool partial = it->vnet.flags || it->vnet.gso_type, all = false;
        if (r > 0 && (partial || it->len > USUAL_FRAME))
            continue; /* again, for its errno */
        enum drop_reason why = refusal(r > 0 ? ENOBUFS : -r, &all);
        if (why == DROP_tx_error && partial)
            finish(s, it, send_segment, s);
        else
            count_drop(s, it, why);
        ++i;
        while (all && i < s->n)
            count_drop(s, w->msg_item[i++], why);
    }
    s->n = 0;
}

/* A queue's messages.  priority: of each message; 0: the socket's. */
struct adding {
    struct sending *s;
    struct txq *q;
    uint32_t priority;
};

static void
add_message(const struct adding *a, struct tx_item *it)
{
    struct sending *s = a->s;
    struct port_io *w = s->w;
    struct msghdr *m = &w->msg[s->n].msg_hdr;
    fill_message(&w->msg[s->n], it, a->q->port);
    m->msg_control = a->priority ? &w->prio[s->n] : NULL;
    m->msg_controllen = a->priority ? sizeof w->prio[s->n].room : 0;
    memcpy(CMSG_DATA(&w->prio[s->n].head), &a->priority, sizeof a->priority);
    w->msg_item[s->n] = it;
    w->msg_q[s->n] = a->q;
    if (++s->n == IO_BATCH)
        send_messages(s);
}

/* Drops the segment if the pool is full. */
static void
add_segment(void *ctx, const uint8_t *data, uint32_t len)
{
    const struct adding *a = ctx;
    struct tx_item lost = {.data = data, .len = len, .segments = 1};
    struct tx_item *it = (void *)packet_pool_alloc(a->s->w->pool, sizeof *it + len);
    if (!it) {
        a->s->queue = a->q->queue;
        count_drop(a->s, &lost, DROP_no_memory);
        return;
    }
    *it = (struct tx_item){.data = memcpy(it + 1, data, len), .len = len, .segments = 1};
    add_message(a, it);
}

static void
add_messages(struct sending *s, struct txq *q, uint32_t priority)
{
    struct port_io *w = s->w;
    struct adding a = {s, q, priority};
    uint32_t longest = queue_super(q->port, q->queue);
    for (uint32_t at = q->head; at != IO_NONE;) {
        struct tx_item *it = &w->item[at];
        at = it->next;
        if ((!s->backend->vnet && (it->vnet.flags || it->vnet.gso_type)) ||
            (it->vnet.gso_type && it->len > longest)) {
            s->queue = q->queue;
            finish(s, it, add_segment, &a);
        } else {
            add_message(&a, it);
        }
    }
    q->head = q->tail = IO_NONE;
}

static void
send_queue(struct sending *s, struct txq *q)
{
    struct port_io *w = s->w;
    struct port_worker *pw = &q->port->worker[w->worker];
    uint32_t priority = 0;
    int fd = q->queue ? queue_fd(w, q) : pw->tx_fd;
    if (fd < 0) {
        if (fd == -EAGAIN)
            priority = PRIORITY_OF(q->queue);
        else
            counter_add(&pw->tx_no_queue, 1);
        fd = pw->tx_fd;
    }
    if (s->n && (fd != s->fd || q->port != s->port))
        send_messages(s);
    s->port = q->port;
    s->pw = pw;
    s->backend = q->port->backend;
    s->fd = fd;
    add_messages(s, q, priority);
}

void
port_io_flush(struct port_io *w)
{
    if (!w->n_items)
        return;
    ++w->flushes;
    struct sending s = {.w = w};
    struct txq *q = w->dirty;
    while (q) {
        struct txq *next = q->next_dirty;
        send_queue(&s, q);
        q = next;
    }
    send_messages(&s);
    w->dirty = NULL;
    w->dirty_end = &w->dirty;
    w->n_items = 0;
}
