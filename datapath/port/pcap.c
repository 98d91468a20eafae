/* SPDX-License-Identifier: Apache-2.0 */
/* Packet I/O by libpcap (pcap(3PCAP)), where AF_PACKET rings are not available.
 *
 * libpcap has no partial checksums, super-packets or queues: packets are finished in software and
 * leave by the default class.  Hosts behind such a port need their offloads switched off.  One
 * worker receives; all may send, one at a time. */
#include "backend.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <pcap/pcap.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASK_LOST 256 /* receives */

struct capture {
    pcap_t *pcap;
    struct backend_arena arena;
    uint32_t lost;  /* ps_drop when last asked */
    uint32_t turns; /* receives, to ask every ASK_LOST of them */
    pthread_mutex_t sending;
};

static void
ask_lost(struct capture *c, struct port_worker *pw)
{
    struct pcap_stat s;
    if (++c->turns % ASK_LOST || pcap_stats(c->pcap, &s))
        return;
    counter_add(&pw->rx_dropped, s.ps_drop - c->lost);
    c->lost = s.ps_drop;
}

static unsigned
capture_rx(struct port *p, struct port_worker *pw, struct port_io *w, struct packet *out,
           unsigned max)
{
    struct capture *c = pw->rx;
    struct pcap_pkthdr *h;
    const u_char *bytes;
    unsigned n = 0;
    ask_lost(c, pw);
    while (n < max) {
        uint8_t *room = backend_arena_room(&c->arena);
        if (!room || pcap_next_ex(c->pcap, &h, &bytes) != 1)
            break;
        if (h->caplen < ETH_HLEN || h->caplen != h->len || h->caplen > IO_FRAME_MAX) {
            backend_rx_drop(p, pw, w, h->len < ETH_HLEN ? DROP_malformed : DROP_too_long,
                            &(struct packet_frame){bytes, h->caplen, 1, NULL});
            continue;
        }
        memcpy(room, bytes, h->caplen);
        backend_arena_take(&c->arena, room, h->caplen);
        out[n].vnet = (struct virtio_net_hdr){0};
        backend_fill(&out[n], p, pw, w, room, h->caplen, PACKET_HEADROOM);
        ++n;
    }
    return n;
}

static void
capture_rx_done(struct port_worker *pw, uint64_t *done)
{
    ((struct capture *)pw->rx)->arena.used = 0;
}

static int
capture_rx_fd(const struct port_worker *pw)
{
    return pcap_get_selectable_fd(((const struct capture *)pw->rx)->pcap);
}

static int
inject(pcap_t *pcap, const struct msghdr *m)
{
    uint8_t padded[PACKET_MIN];
    const struct iovec *frame = &m->msg_iov[1];
    const void *bytes = frame->iov_base;
    size_t len = frame->iov_len;
    if (len < sizeof padded) {
        memset(padded, 0, sizeof padded);
        memcpy(padded, bytes, len);
        bytes = padded;
        len = sizeof padded;
    }
    errno = 0;
    if (pcap_inject(pcap, bytes, len) >= 0)
        return 0;
    return errno ? -errno : -EIO;
}

static int
capture_send(struct port_worker *pw, int fd, struct mmsghdr *m, unsigned n)
{
    struct capture *c = pw->rx;
    unsigned i = 0;
    int err = 0;
    pthread_mutex_lock(&c->sending);
    for (; i < n && !(err = inject(c->pcap, &m[i].msg_hdr)); ++i)
        continue;
    pthread_mutex_unlock(&c->sending);
    return i ? (int)i : err;
}

static void
capture_close(struct port *p)
{
    struct capture *c = p->worker[0].rx;
    pcap_close(c->pcap);
    pthread_mutex_destroy(&c->sending);
    free(c->arena.mem);
    free(c);
}

static int
configure(pcap_t *pcap, const struct port_config *c, char *why, size_t why_len)
{
    char text[PCAP_ERRBUF_SIZE] = "";
    pcap_set_snaplen(pcap, IO_FRAME_MAX);
    pcap_set_promisc(pcap, 1);
    pcap_set_immediate_mode(pcap, 1);
    pcap_set_timeout(pcap, 1);
    pcap_set_buffer_size(pcap, c->ring_bytes < INT32_MAX ? (int)c->ring_bytes : INT32_MAX);
    int r = pcap_activate(pcap);
    if (r < 0) {
        snprintf(why, why_len, "pcap_activate: %s %s", pcap_statustostr(r), pcap_geterr(pcap));
        if (r == PCAP_ERROR_NO_SUCH_DEVICE)
            return -ENODEV;
        return r == PCAP_ERROR_PERM_DENIED ? -EPERM : -EIO;
    }
    if (pcap_datalink(pcap) != DLT_EN10MB) {
        snprintf(why, why_len, "not an Ethernet interface");
        return -EPROTONOSUPPORT;
    }
    if (pcap_setnonblock(pcap, 1, text)) {
        snprintf(why, why_len, "pcap_setnonblock: %s", text);
        return -EIO;
    }
    if (pcap_setdirection(pcap, PCAP_D_IN)) { /* else each frame sent would be received */
        snprintf(why, why_len, "pcap_setdirection: %s", pcap_geterr(pcap));
        return -EIO;
    }
    return 0;
}

static int
capture_open(struct port *p, char *why, size_t why_len)
{
    char text[PCAP_ERRBUF_SIZE] = "", none[1];
    if (!why || !why_len) {
        why = none;
        why_len = sizeof none;
    }
    if (!p->config.ifindex && !if_nametoindex(p->config.name))
        return backend_error(why, why_len, ENODEV, "looking it up");
    int err = backend_link_up(p->config.name, true, why, why_len);
    if (err)
        return err;
    struct capture *c = calloc(1, sizeof *c);
    if (!c)
        return backend_error(why, why_len, ENOMEM, "a pcap port");
    c->pcap = pcap_create(p->config.name, text);
    if (!c->pcap) {
        snprintf(why, why_len, "pcap_create: %s", text);
        free(c);
        return -EIO;
    }
    pthread_mutex_init(&c->sending, NULL);
    for (unsigned i = 0; i < p->n_workers; ++i)
        p->worker[i].rx = c;
    err = configure(c->pcap, &p->config, why, why_len);
    if (err)
        capture_close(p);
    else
        port_rings_count(p, p->config.ring_bytes);
    return err;
}

const struct port_backend port_backend_pcap = {
    .name = "pcap",
    .ring = true,
    .open = capture_open,
    .close = capture_close,
    .rx = capture_rx,
    .rx_done = capture_rx_done,
    .rx_fd = capture_rx_fd,
    .send = capture_send,
};
