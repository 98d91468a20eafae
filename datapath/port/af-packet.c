/* SPDX-License-Identifier: Apache-2.0 */
/* Packet I/O by AF_PACKET sockets (packet(7), the kernel's packet_mmap.rst, af_packet.c).
 *
 * Receiving: a TPACKET_V2 ring per worker.  A slot holds a frame of usual length.  Of a longer one
 * (a super-packet of up to 64 KB) the slot has the beginning; the whole frame is in the socket's
 * receive queue (PACKET_COPY_THRESH, TP_STATUS_COPY), in the same order, and is read from there
 * into an arena. So a ring of 8 MB has thousands of slots and no frame is cut.
 *
 * A slot as the kernel fills it.  What is in front of the frame, except for the status word,
 * becomes the packet's headroom:
 *
 *     tpacket2_hdr, sockaddr_ll | reserve | virtio_net_hdr | frame ...
 *     0                                                     tp_mac
 */
#include "af-packet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define TAG_BYTES    4
#define STATUS_BYTES 16 /* at the slot's beginning, which stay the kernel's */

static inline void
advance(const struct rx_ring *r, struct cursor *c)
{
    c->slot += r->slot_bytes;
    if (++c->in_block < r->per_block)
        return;
    c->in_block = 0;
    if (++c->block == r->n_blocks)
        c->block = 0;
    c->slot = r->base + (size_t)c->block * r->block_bytes;
}

/* ------------------------------------------------------------------ receiving */

/* Reads the whole frame whose beginning is in the ring.  Returns its length; 0: it is lost. */
static uint32_t
receive_copy(struct rx_ring *r, struct virtio_net_hdr *vnet, uint8_t *room, uint32_t len)
{
    uint8_t waste;
    struct iovec iov[2] = {{vnet, sizeof *vnet}, {room, IO_FRAME_MAX}};
    if (!room)
        iov[1] = (struct iovec){&waste, 1};
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};
    ssize_t n = -1;
    for (int i = 0; i < 3 && n < 0; ++i) { /* an interface's error comes first, once */
        n = recvmsg(r->fd, &m, MSG_DONTWAIT | MSG_TRUNC);
        if (n < 0 && errno == EAGAIN)
            return 0;
    }
    if (n == (ssize_t)(len + sizeof *vnet))
        return m.msg_flags & MSG_TRUNC ? 0 : len;
    /* Another slot's frame: never seen.  Drop all, rather than mix up those that follow. */
    while (recvmsg(r->fd, &m, MSG_DONTWAIT | MSG_TRUNC) >= 0)
        continue;
    return 0;
}

/* Puts back the outermost tag, 802.1Q or 802.1ad, that the kernel takes out of the frame. */
static inline uint8_t *
restore_tag(uint8_t *data, const struct tpacket2_hdr *h, uint32_t status,
            struct virtio_net_hdr *vnet)
{
    uint16_t tci = h->tp_vlan_tci;
    uint16_t tpid = status & TP_STATUS_VLAN_TPID_VALID ? h->tp_vlan_tpid : ETH_P_8021Q;
    memmove(data - TAG_BYTES, data, 2 * ETH_ALEN);
    data -= TAG_BYTES;
    data[12] = (uint8_t)(tpid >> 8);
    data[13] = (uint8_t)tpid;
    data[14] = (uint8_t)(tci >> 8);
    data[15] = (uint8_t)tci;
    if (vnet->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
        vnet->csum_start = (uint16_t)(vnet->csum_start + TAG_BYTES);
    if (vnet->hdr_len)
        vnet->hdr_len = (uint16_t)(vnet->hdr_len + TAG_BYTES);
    return data;
}

enum { STOP = -1, DROPPED, TAKEN };

/* How many packets a frame is whose bytes were not read.  Only TCP options can make it one more. */
static uint32_t
segments_unread(const struct virtio_net_hdr *v, uint32_t len)
{
    bool udp = v->gso_type == VIRTIO_NET_HDR_GSO_UDP || v->gso_type == VIRTIO_NET_HDR_GSO_UDP_L4;
    uint32_t headers = v->csum_start + (udp ? 8u : 20u);
    if (!v->gso_type || !v->gso_size || len <= headers)
        return 1;
    return (len - headers + v->gso_size - 1) / v->gso_size;
}

/* Takes the frame in the slot at the head. */
static inline int
take_slot(struct rx_ring *r, uint32_t status, struct port *p, struct port_worker *pw,
          struct port_io *w, struct packet *out)
{
    struct tpacket2_hdr *h = (struct tpacket2_hdr *)(void *)r->head.slot;
    const struct sockaddr_ll *sll = (const void *)(r->head.slot + TPACKET_ALIGN(sizeof *h));
    uint32_t len = h->tp_snaplen, headroom = h->tp_mac - (uint32_t)STATUS_BYTES;
    uint8_t *data = r->head.slot + h->tp_mac;
    bool skip = r->hears_itself && sll->sll_pkttype == PACKET_OUTGOING;

    memcpy(&out->vnet, data - sizeof out->vnet, sizeof out->vnet);
    if (status & TP_STATUS_COPY) {
        data = skip || h->tp_len > IO_FRAME_MAX ? NULL : backend_arena_room(&r->arena);
        if (!data && r->arena.used && !skip && h->tp_len <= IO_FRAME_MAX)
            return STOP; /* until port_rx_done */
        headroom = PACKET_HEADROOM;
        len = receive_copy(r, &out->vnet, data, h->tp_len);
        if (data && len)
            backend_arena_take(&r->arena, data, len);
    }
    if (skip)
        return DROPPED;
    if (!data || len != h->tp_len || len < ETH_HLEN) {
        uint32_t segments = segments_unread(&out->vnet, h->tp_len);
        if (h->tp_len <= IO_FRAME_MAX && h->tp_len >= ETH_HLEN) /* no room beside the ring */
            counter_add(&pw->rx_dropped, segments);
        else
            backend_rx_drop(p, pw, w, h->tp_len < ETH_HLEN ? DROP_malformed : DROP_too_long,
                            &(struct packet_frame){NULL, h->tp_len, segments, NULL});
        return DROPPED;
    }
    if (status & TP_STATUS_VLAN_VALID) {
        data = restore_tag(data, h, status, &out->vnet);
        len += TAG_BYTES;
        headroom -= TAG_BYTES;
    }
    backend_fill(out, p, pw, w, data, len, headroom);
    return TAKEN;
}

static inline bool
has_frame(const struct cursor *c)
{
    return load_acquire(&((struct tpacket2_hdr *)(void *)c->slot)->tp_status) & TP_STATUS_USER;
}

static inline unsigned
take(struct rx_ring *r, struct port *p, struct port_worker *pw, struct port_io *w,
     struct packet *out, unsigned max)
{
    unsigned n = 0;
    while (n < max && r->held < r->n_slots) {
        struct tpacket2_hdr *h = (struct tpacket2_hdr *)(void *)r->head.slot;
        uint32_t status = load_acquire(&h->tp_status);
        if (!(status & TP_STATUS_USER))
            break;
        int taken = take_slot(r, status, p, pw, w, &out[n]);
        if (taken == STOP)
            break;
        n += (unsigned)taken;
        advance(r, &r->head);
        ++r->held;
    }
    return n;
}

static unsigned
ready(const struct rx_ring *r, unsigned max)
{
    struct cursor c = r->head;
    unsigned n = 0;
    for (; n < max && r->held + n < r->n_slots && has_frame(&c); advance(r, &c))
        n++;
    return n;
}

/* A processor that puts a connection's next frame into the new ring has put the last one into the old ring
 * before.  So what was in the new one at a look before the old one was empty comes next. */
static unsigned
take_in_turn(struct rx_ring *r, struct rx_ring *old, struct port *p, struct port_worker *pw,
             struct port_io *w, struct packet *out, unsigned max)
{
    bool ended = load_acquire(&old->ended);
    unsigned next = ready(r, max), n = take(old, p, pw, w, out, max);
    if (n || has_frame(&old->head))
        return n;
    if (ended && !old->held)
        store_release(&r->before, NULL);
    return take(r, p, pw, w, out, next);
}

/* Is the slot half a ring ahead filled? */
static inline bool
is_half_full(const struct rx_ring *r)
{
    uint32_t block = r->head.block + r->n_blocks / 2;
    struct cursor c = {.slot = r->base +
                               (size_t)(block < r->n_blocks ? block : block - r->n_blocks) *
                                   r->block_bytes +
                               (size_t)r->head.in_block * r->slot_bytes};
    return has_frame(&c);
}

static unsigned
packet_rx(struct port *p, struct port_worker *pw, struct port_io *w, struct packet *out,
          unsigned max)
{
    struct rx_ring *r = load_acquire(&pw->rx), *old = load_relaxed(&r->before);
    unsigned n = old ? take_in_turn(r, old, p, pw, w, out, max) : take(r, p, pw, w, out, max);
    if (n == max && r->grows && !load_relaxed(&r->half_full) && is_half_full(r)) {
        store_relaxed(&r->half_full, true);
        w->filled = true;
    }
    return n;
}

static void
give_back(struct rx_ring *r, uint64_t *done)
{
    if (done && r->held)
        wide_add(done, r->held);
    for (; r->held; --r->held) {
        struct tpacket2_hdr *h = (struct tpacket2_hdr *)(void *)r->tail.slot;
        store_release(&h->tp_status, TP_STATUS_KERNEL);
        advance(r, &r->tail);
    }
    r->arena.used = 0;
}

static void
packet_rx_done(struct port_worker *pw, uint64_t *done)
{
    struct rx_ring *r = load_acquire(&pw->rx), *old = load_relaxed(&r->before);
    if (old)
        give_back(old, done);
    give_back(r, done);
}

/* The kernel has put the time into the slot. */
static uint64_t
packet_rx_waited(const struct port_worker *pw)
{
    const struct rx_ring *r = load_acquire(&pw->rx), *old = load_relaxed(&r->before);
    const struct tpacket2_hdr *h =
        (const struct tpacket2_hdr *)(const void *)(old ? old : r)->head.slot;
    struct timespec t;
    if (!(load_acquire(&h->tp_status) & TP_STATUS_USER) || clock_gettime(CLOCK_REALTIME, &t))
        return 0;
    int64_t s = (int32_t)((uint32_t)t.tv_sec - h->tp_sec);
    int64_t ns = s * 1000000000 + t.tv_nsec - h->tp_nsec;
    return ns > 0 ? (uint64_t)ns : 0;
}

static int
packet_rx_fd(const struct port_worker *pw)
{
    return ((const struct rx_ring *)load_acquire(&pw->rx))->fd;
}

static bool
packet_rx_moves(const struct port_worker *pw)
{
    return load_relaxed(&((const struct rx_ring *)load_acquire(&pw->rx))->before);
}

static uint64_t
packet_rx_lost(struct port_worker *pw)
{
    const struct rx_ring *r = pw->rx, *old = load_acquire(&r->before);
    return packet_ring_lost(r) + (old ? packet_ring_lost(old) : 0);
}

/* ------------------------------------------------------------------ sending */

static int
packet_send(struct port_worker *pw, int fd, struct mmsghdr *m, unsigned n)
{
    int r = sendmmsg(fd, m, n, MSG_DONTWAIT);
    return r < 0 ? -errno : r;
}

/* What waits in the qdisc counts as the socket's: the buffer must hold a shaped queue of 1,000
 * super-packets, so that the qdisc's limit comes first. */
static int
send_buffer(void)
{
    uint64_t most = UINT64_C(1000) * 72 * 1024, share = backend_memory() / 16;
    return (int)((share < most ? share : most) / 2); /* the kernel doubles it */
}

/* Opens a socket for sending only: with protocol 0 it receives nothing. */
static int
open_sender(int ifindex)
{
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int err = packet_set_int(fd, SOL_PACKET, PACKET_VNET_HDR, 1);
    if (packet_set_int(fd, SOL_SOCKET, SO_SNDBUFFORCE, send_buffer()))
        packet_set_int(fd, SOL_SOCKET, SO_SNDBUF, send_buffer());
    queue_clock_open(fd);
    if (!err)
        err = packet_bind(fd, ifindex, 0);
    if (err)
        close(fd);
    return err ? err : fd;
}

static int
packet_queue_socket(int fd, int ifindex, int old_ifindex, uint32_t priority)
{
    int given = fd, err = 0;
    if (fd < 0)
        fd = open_sender(ifindex);
    else if (ifindex != old_ifindex)
        err = packet_bind(fd, ifindex, 0);
    if (fd < 0)
        return fd;
    if (!err)
        err = packet_set_int(fd, SOL_SOCKET, SO_PRIORITY, (int)priority);
    if (err && given < 0)
        close(fd);
    return err ? err : fd;
}

/* Whether this kernel takes SO_PRIORITY as ancillary data.  It checks that before the length of the
 * frame, which is too long for any interface. */
static bool
takes_priority(int fd)
{
    static uint8_t frame[IO_FRAME_MAX * 2];
    union {
        struct cmsghdr head;
        uint8_t room[CMSG_SPACE(sizeof(uint32_t))];
    } c = {.head = {.cmsg_level = SOL_SOCKET, .cmsg_type = SO_PRIORITY}};
    struct virtio_net_hdr vnet = {0};
    struct iovec iov[2] = {{&vnet, sizeof vnet}, {frame, sizeof frame}};
    struct msghdr m = {
        .msg_iov = iov, .msg_iovlen = 2, .msg_control = &c, .msg_controllen = sizeof c.room};
    c.head.cmsg_len = CMSG_LEN(sizeof(uint32_t));
    return sendmsg(fd, &m, MSG_DONTWAIT) < 0 && errno == EMSGSIZE;
}

/* Only sending one would tell. */
bool
port_takes_uso(void)
{
    struct utsname u;
    unsigned major = 0, minor = 0;
    return !uname(&u) && sscanf(u.release, "%u.%u", &major, &minor) == 2 &&
           (major > 6 || (major == 6 && minor >= 2));
}

/* ------------------------------------------------------------------ opening and closing */

static int
open_receiver(struct port *p, struct port_worker *pw, int ifindex, char *why, size_t why_len)
{
    struct packet_ring_want want = packet_ring_wanted(p, false);
    struct rx_ring *r = rings_ahead_take(&want, packet_rings(p));
    int err = r ? 0 : packet_ring_new(&want, &r, why, why_len);
    if (err)
        return err;
    r->grows = p->config.grows;
    pw->rx = r;
    return packet_ring_bind(p, r, ifindex, false, why, why_len);
}

static void
packet_close(struct port *p)
{
    packet_grow_end(p);
    for (unsigned i = 0; i < p->n_workers; ++i) {
        struct port_worker *pw = &p->worker[i];
        struct rx_ring *r = i < packet_rings(p) ? pw->rx : NULL;
        int fd[2];
        unsigned n = 0;
        if (pw->tx_fd >= 0)
            fd[n++] = pw->tx_fd;
        if (r)
            fd[n++] = packet_ring_free(r);
        pw->tx_fd = -1;
        pw->rx = NULL;
        backend_close_later(fd, n);
    }
}

static int
packet_open(struct port *p, char *why, size_t why_len)
{
    int ifindex = p->config.ifindex ? p->config.ifindex : (int)if_nametoindex(p->config.name);
    if (!ifindex)
        return backend_error(why, why_len, ENODEV, "looking it up");
    int err = backend_link_up(p->config.name, true, why, why_len);
    p->uso = port_takes_uso();
    for (unsigned i = 0; i < p->n_workers && !err; ++i) {
        struct port_worker *pw = &p->worker[i];
        if (i < packet_rings(p))
            err = open_receiver(p, pw, ifindex, why, why_len);
        else
            pw->rx = p->worker[0].rx;
        if (err)
            break;
        if (i < packet_rings(p))
            port_rings_count(p, p->ring_bytes + ((const struct rx_ring *)pw->rx)->bytes);
        if (p->config.no_tx)
            continue;
        pw->tx_fd = open_sender(ifindex);
        if (pw->tx_fd < 0)
            err = backend_error(why, why_len, -pw->tx_fd, "socket for sending");
        else if (!i)
            p->prio_by_message = takes_priority(pw->tx_fd);
    }
    rings_ahead_done();
    if (err)
        packet_close(p);
    return err;
}

const struct port_backend port_backend_packet = {
    .name = "packet",
    .ring = true,
    .queues = true,
    .vnet = true,
    .fans_out = true,
    .filtered = true,
    .open = packet_open,
    .close = packet_close,
    .rx = packet_rx,
    .rx_done = packet_rx_done,
    .rx_fd = packet_rx_fd,
    .rx_moves = packet_rx_moves,
    .rx_waited = packet_rx_waited,
    .send = packet_send,
    .queue_socket = packet_queue_socket,
    .rx_lost = packet_rx_lost,
};
