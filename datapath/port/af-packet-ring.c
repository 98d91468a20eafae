/* SPDX-License-Identifier: Apache-2.0 */
/* Making and freeing receive rings. */
#include "af-packet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define RESERVE      82 /* PACKET_HEADROOM and two tags; the IP header comes to a multiple of 4 */
#define SLOT_BYTES   2048
#define SLOT_MAX     (17 * 4096) /* holds a frame of IO_FRAME_MAX */
#define BLOCK_BYTES  (64 << 10)
#define BLOCK_LARGE  (1 << 20) /* for slots that are longer than a small block */
#define COPIES_LEAST (1 << 20) /* of frames beside a small ring */
#define COPIES_MOST  (1 << 29)

#ifndef PACKET_FANOUT_FLAG_IGNORE_OUTGOING
#define PACKET_FANOUT_FLAG_IGNORE_OUTGOING 0x4000
#endif

int
packet_set_int(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof value) ? -errno : 0;
}

static int
map_ring(struct rx_ring *r, size_t bytes, uint32_t slot)
{
    r->slot_bytes = slot;
    r->block_bytes = slot > BLOCK_BYTES ? BLOCK_LARGE : BLOCK_BYTES;
    r->per_block = r->block_bytes / slot;
    for (; bytes >= RING_LEAST; bytes /= 2) {
        r->n_blocks = (uint32_t)((bytes + r->block_bytes - 1) / r->block_bytes);
        r->n_slots = r->per_block * r->n_blocks;
        r->bytes = (size_t)r->n_blocks * r->block_bytes;
        struct tpacket_req q = {.tp_block_size = r->block_bytes,
                                .tp_block_nr = r->n_blocks,
                                .tp_frame_size = slot,
                                .tp_frame_nr = r->n_slots};
        if (!setsockopt(r->fd, SOL_PACKET, PACKET_RX_RING, &q, sizeof q))
            break;
        if (errno != ENOMEM || bytes / 2 < RING_LEAST)
            return -errno;
    }
    r->base = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd, 0);
    if (r->base == MAP_FAILED) {
        r->base = NULL;
        return -errno;
    }
    r->head.slot = r->tail.slot = r->base;
    return 0;
}

/* The length of a slot for frames of this length (0: the usual one), a multiple of TPACKET_ALIGNMENT. */
static uint32_t
slot_length(size_t frame)
{
    size_t n = frame ? frame : SLOT_BYTES;
    n = n < 512 ? 512 : n > SLOT_MAX ? SLOT_MAX : n;
    return (uint32_t)((n + TPACKET_ALIGNMENT - 1) / TPACKET_ALIGNMENT * TPACKET_ALIGNMENT);
}

static int
set_up(struct rx_ring *r, const struct packet_ring_want *w, char *why, size_t why_len)
{
    int copies = (int)(w->copies < COPIES_LEAST  ? COPIES_LEAST
                       : w->copies < COPIES_MOST ? w->copies
                                                 : COPIES_MOST),
        err;
    /* Protocol 0 until it is bound, or it would receive from other interfaces. */
    r->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (r->fd < 0)
        return backend_error(why, why_len, errno, "AF_PACKET socket");
    if ((err = packet_set_int(r->fd, SOL_PACKET, PACKET_VERSION, TPACKET_V2)))
        return backend_error(why, why_len, -err, "PACKET_VERSION");
    if ((err = packet_set_int(r->fd, SOL_PACKET, PACKET_VNET_HDR, 1)))
        return backend_error(why, why_len, -err, "PACKET_VNET_HDR");
    if ((err = packet_set_int(r->fd, SOL_PACKET, PACKET_RESERVE, RESERVE)))
        return backend_error(why, why_len, -err, "PACKET_RESERVE");
    if (w->slot < SLOT_MAX && (err = packet_set_int(r->fd, SOL_PACKET, PACKET_COPY_THRESH, 1)))
        return backend_error(why, why_len, -err, "PACKET_COPY_THRESH");
    r->hears_itself = packet_set_int(r->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1) != 0;
    if (packet_set_int(r->fd, SOL_SOCKET, SO_RCVBUFFORCE, copies))
        packet_set_int(r->fd, SOL_SOCKET, SO_RCVBUF, copies);
    if ((err = map_ring(r, w->bytes, w->slot)))
        return backend_error(why, why_len, -err, "receive ring");
    return 0;
}

int
packet_ring_new(const struct packet_ring_want *want, struct rx_ring **out, char *why,
                size_t why_len)
{
    struct rx_ring *r = calloc(1, sizeof *r);
    if (!r)
        return backend_error(why, why_len, ENOMEM, "receive ring");
    int err = set_up(r, want, why, why_len);
    if (!err) {
        *out = r;
        return 0;
    }
    int fd = packet_ring_free(r);
    if (fd >= 0)
        close(fd);
    return err;
}

int
packet_ring_free(struct rx_ring *r)
{
    int fd = r->fd;
    if (r->base)
        munmap(r->base, r->bytes);
    free(r->arena.mem);
    free(r);
    return fd;
}

/* ------------------------------------------------------------------ a port's rings */

int
packet_bind(int fd, int ifindex, uint16_t protocol)
{
    struct sockaddr_ll a = {
        .sll_family = AF_PACKET, .sll_protocol = htons(protocol), .sll_ifindex = ifindex};
    return bind(fd, (const struct sockaddr *)&a, sizeof a) ? -errno : 0;
}

static int
join_promiscuous(int fd, int ifindex)
{
    struct packet_mreq m = {.mr_ifindex = ifindex, .mr_type = PACKET_MR_PROMISC};
    return setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &m, sizeof m) ? -errno : 0;
}

unsigned
packet_rings(const struct port *p)
{
    if (p->config.no_rx)
        return 0;
    return p->config.fanout ? p->n_workers : 1;
}

/* With several workers, each flow goes to one of them.  The larger rings are a group of their own. */
static int
join_fanout(struct rx_ring *r, const struct port *p, bool grown)
{
    unsigned id = (unsigned)(p->uid ^ (unsigned)getpid() << 4 ^ (grown ? 0x8000u : 0)) & 0xffff;
    unsigned type = PACKET_FANOUT_HASH | PACKET_FANOUT_FLAG_IGNORE_OUTGOING;
    if (packet_rings(p) == 1)
        return 0;
    if (!packet_set_int(r->fd, SOL_PACKET, PACKET_FANOUT, (int)(type << 16 | id)))
        return 0;
    r->hears_itself = true;
    return packet_set_int(r->fd, SOL_PACKET, PACKET_FANOUT, (int)(PACKET_FANOUT_HASH << 16 | id));
}

struct packet_ring_want
packet_ring_wanted(const struct port *p, bool grown)
{
    size_t most = p->config.ring_bytes / packet_rings(p);
    size_t bytes = p->config.grows && !grown && most > RING_FIRST ? RING_FIRST : most;
    return (struct packet_ring_want){.slot = slot_length(p->config.slot_bytes),
                                     .bytes = bytes < RING_LEAST ? RING_LEAST : bytes,
                                     .copies = most};
}

int
packet_ring_block(const struct rx_ring *r)
{
    struct sock_filter none = {.code = BPF_RET | BPF_K};
    struct sock_fprog prog = {.len = 1, .filter = &none};
    return setsockopt(r->fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof prog) ? -errno : 0;
}

int
packet_ring_bind(const struct port *p, struct rx_ring *r, int ifindex, bool grown, char *why,
                 size_t why_len)
{
    int err;
    if (p->config.blocked && (err = packet_ring_block(r)))
        return backend_error(why, why_len, -err, "SO_ATTACH_FILTER");
    if ((err = packet_bind(r->fd, ifindex, ETH_P_ALL)))
        return backend_error(why, why_len, -err, "bind");
    if ((err = join_promiscuous(r->fd, ifindex)))
        return backend_error(why, why_len, -err, "promiscuous mode");
    if ((err = join_fanout(r, p, grown)))
        return backend_error(why, why_len, -err, "PACKET_FANOUT");
    return 0;
}

uint64_t
packet_ring_lost(const struct rx_ring *r)
{
    struct tpacket_stats s;
    socklen_t n = sizeof s;
    return getsockopt(r->fd, SOL_PACKET, PACKET_STATISTICS, &s, &n) ? 0 : s.tp_drops;
}
