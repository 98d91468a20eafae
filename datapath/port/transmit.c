/* SPDX-License-Identifier: Apache-2.0 */
/* Queueing: a worker's packets wait in a queue per (port, queue) until they are flushed (send.c). */
#include "backend.h"

#include <packet/headers.h>

#include <oflib/openflow.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

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

/* Returns NULL if there is no memory. */
static struct txq *
queue_make(struct port *p, struct port_worker *pw, uint32_t queue)
{
    struct txq ***page = &pw->page[queue / QUEUE_PAGE];
    if (!*page) {
        struct txq **new = calloc(QUEUE_PAGE, sizeof *new);
        if (!new)
            return NULL;
        store_release(page, new);
    }
    struct txq *q = malloc(sizeof *q);
    if (q)
        *q = (struct txq){.port = p, .head = IO_NONE, .tail = IO_NONE, .queue = queue};
    store_release(&(*page)[queue % QUEUE_PAGE], q);
    return q;
}

static struct txq *
queue_of(struct port *p, struct port_worker *pw, uint32_t queue)
{
    struct txq *q = NULL;
    if (!queue)
        return &pw->plain;
    if (p->backend->queues && port_queue_super(p, queue)) {
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

/* What becomes of the packet; decided before it is sent.  If the kernel is given a super-packet
 * that it can't cut, sendmmsg fails with ENOMEM.  If the packet waits in a qdisc it even
 * succeeds, and then the packet is lost silently. */
static inline struct packet_wire
wire_of(const struct packet *pkt)
{
    if (pkt->len < ETH_HEADER)
        return (struct packet_wire){.cut = PACKET_CUT_BY_NOBODY};
    return packet_on_wire(pkt);
}

static inline int
enqueue(struct port *p, struct port_io *w, struct packet *pkt)
{
    struct packet_wire wire = wire_of(pkt);
    if (wire.cut == PACKET_CUT_BY_NOBODY)
        return EDIT_DROP(malformed);
    struct txq *q = queue_of(p, &p->worker[w->worker],
                             queue_at(pkt->queue, pkt->queue_ports, p->config.port_no));
    if (w->n_items == IO_PENDING)
        port_io_flush(w);
    uint32_t at = w->n_items++;
    struct tx_item *it = &w->item[at];
    it->data = pkt->data;
    it->len = pkt->len;
    it->next = IO_NONE;
    it->wire = wire.bytes & TX_WIRE_MAX;
    it->cut = wire.cut == PACKET_CUT_BY_US;
    it->segment = false;
    it->segments = (uint16_t)(wire.packets < UINT16_MAX ? wire.packets : UINT16_MAX);
    it->vnet = pkt->vnet;
    if (it->vnet.flags | it->vnet.gso_type)
        vnet_for_sending(&it->vnet, it->data, it->len);
    else
        it->vnet = (struct virtio_net_hdr){0};
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
    return wire_of(pkt).cut == PACKET_CUT_BY_NOBODY ? EDIT_DROP(malformed) : 0;
}

uint32_t
port_tx_queue(const struct port *p, uint32_t queue)
{
    return queue && p->backend->queues && port_queue_super(p, queue) ? queue : 0;
}

uint32_t
port_tx_class(const struct port *p, uint32_t queue)
{
    return port_tx_queue(p, queue) ? port_queue_priority(p, queue) & 0xffff : 0;
}

bool
port_kernel_output(const struct port *p, uint32_t queue, struct port_kernel_output *out)
{
    if (p->backend != &port_backend_packet || p->config.no_tx || p->config.ifindex <= 0 ||
        !p->mtu || load_relaxed(&p->flags) & NO_TX)
        return false;
    uint32_t to = port_tx_queue(p, queue);
    /* A packet socket takes frames as long as that (net/packet/af_packet.c). */
    *out = (struct port_kernel_output){.ifindex = p->config.ifindex,
                                       .queue = to,
                                       .priority = to ? port_queue_priority(p, to) : 0,
                                       .longest = p->mtu + ETH_HEADER,
                                       .super = port_queue_super(p, to)};
    return true;
}

/* For an unusual port: one that takes nothing, or of which somebody captures each packet. */
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
