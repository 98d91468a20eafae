/* SPDX-License-Identifier: Apache-2.0 */
/* A tap interface as a port: the switch's local port (the kernel's tuntap.rst, tun(4)).
 *
 * The interface exists while the port is open.  One worker receives, all may send.  It has no
 * queues: the host receives what is sent to a tap.  What the host sends while the tap is full is
 * counted in the interface's tx_dropped. */
#include "backend.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_tun.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#ifndef TUN_F_USO4
#define TUN_F_USO4 0x20
#define TUN_F_USO6 0x40
#endif

struct tap {
    struct backend_arena arena;
};

static unsigned
tap_rx(struct port *p, struct port_worker *pw, struct port_io *w, struct packet *out, unsigned max)
{
    struct tap *t = pw->rx;
    unsigned n = 0;
    while (n < max) {
        uint8_t *room = backend_arena_room(&t->arena);
        if (!room)
            break;
        struct iovec iov[2] = {{&out[n].vnet, sizeof out[n].vnet}, {room, IO_FRAME_MAX}};
        ssize_t r = readv(pw->tx_fd, iov, 2);
        if (r < 0)
            break;
        uint32_t len = (uint32_t)r - (uint32_t)sizeof out[n].vnet;
        if (r < (ssize_t)sizeof out[n].vnet + ETH_HLEN) {
            backend_rx_drop(p, pw, w, DROP_malformed, &(struct packet_frame){.segments = 1});
            continue;
        }
        backend_arena_take(&t->arena, room, len);
        backend_fill(&out[n], p, pw, w, room, len, PACKET_HEADROOM);
        ++n;
    }
    return n;
}

static void
tap_rx_done(struct port_worker *pw, uint64_t *done)
{
    ((struct tap *)pw->rx)->arena.used = 0;
}

static int
tap_rx_fd(const struct port_worker *pw)
{
    return pw->tx_fd;
}

static int
tap_send(struct port_worker *pw, int fd, struct mmsghdr *m, unsigned n)
{
    unsigned i;
    for (i = 0; i < n; ++i)
        if (writev(fd, m[i].msg_hdr.msg_iov, (int)m[i].msg_hdr.msg_iovlen) < 0)
            return i ? (int)i : -errno;
    return (int)i;
}

static void
tap_close(struct port *p)
{
    int fd = p->worker[0].tx_fd;
    struct tap *t = p->worker[0].rx;
    if (t)
        free(t->arena.mem);
    free(t);
    for (unsigned i = 0; i < p->n_workers; ++i) {
        p->worker[i].rx = NULL;
        p->worker[i].tx_fd = -1;
    }
    if (fd >= 0)
        close(fd); /* the interface is gone when this returns */
}

static int
make_tap(const char *name, int *out, char *why, size_t why_len)
{
    struct ifreq r = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
    unsigned offloads = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
    int header = sizeof(struct virtio_net_hdr);
    int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return backend_error(why, why_len, errno, "/dev/net/tun");
    *out = fd;
    snprintf(r.ifr_name, sizeof r.ifr_name, "%s", name);
    if (ioctl(fd, TUNSETIFF, &r))
        return backend_error(why, why_len, errno, "making a tap");
    if (ioctl(fd, TUNSETVNETHDRSZ, &header))
        return backend_error(why, why_len, errno, "TUNSETVNETHDRSZ");
    if (ioctl(fd, TUNSETOFFLOAD, offloads | TUN_F_USO4 | TUN_F_USO6) &&
        ioctl(fd, TUNSETOFFLOAD, offloads) && ioctl(fd, TUNSETOFFLOAD, 0))
        return backend_error(why, why_len, errno, "TUNSETOFFLOAD");
    return backend_link_up(name, true, why, why_len);
}

static int
tap_open(struct port *p, char *why, size_t why_len)
{
    if (if_nametoindex(p->config.name)) { /* another program's, or of another kind */
        snprintf(why, why_len,
                 "an interface of this name exists, and the switch makes its local "
                 "port itself: choose another name");
        return -EEXIST;
    }
    int fd = -1, err = make_tap(p->config.name, &fd, why, why_len);
    struct tap *t = calloc(1, sizeof *t);
    if (!t && !err)
        err = backend_error(why, why_len, ENOMEM, "a tap port");
    for (unsigned i = 0; i < p->n_workers; ++i) {
        p->worker[i].rx = t;
        p->worker[i].tx_fd = fd;
    }
    if (err)
        tap_close(p);
    return err;
}

const struct port_backend port_backend_tap = {
    .name = "tap",
    .only_by_name = true,
    .vnet = true,
    .open = tap_open,
    .close = tap_close,
    .rx = tap_rx,
    .rx_done = tap_rx_done,
    .rx_fd = tap_rx_fd,
    .send = tap_send,
};
