/* SPDX-License-Identifier: Apache-2.0 */
/* A port whose interface is a pair of files (pcap or pcapng to read, pcap to write): what the first
 * holds enters the switch, what leaves goes to the second.
 *
 * It needs no privileges.  Reading begins when the port is set up (OFPPC_PORT_DOWN cleared), as fast
 * as the switch takes packets or at the pace of their times, and ends with the file.  One worker
 * reads, all may write.  Frames are written as a wire would carry them: whole checksums, segments
 * instead of super-packets, at least 60 bytes. */
#include "backend.h"

#include <oflib/openflow.h>
#include <shared/clock.h>

#include <errno.h>
#include <linux/if_ether.h>
#include <pcap/pcap.h>
#include <pthread.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define PCAP_RECORD 16 /* bytes before a frame in the file */

#define LOOK_NS UINT64_C(20000000) /* between two looks whether the port is up by now */

struct replay {
    pcap_t *in; /* NULL: nothing (more) to read */
    pcap_t *format;
    pcap_dumper_t *out;       /* NULL: what leaves is thrown away */
    int64_t end;              /* bytes of the complete records in it; < 0: it is no regular file */
    bool recorded;            /* at the pace of the packets' times */
    int timer;                /* readable when the next packet is due */
    uint64_t began;           /* monotonic ns, of the first packet; 0: not yet */
    uint64_t first;           /* that packet's time */
    struct pcap_pkthdr *head; /* of a packet that is read but not due; NULL: none */
    const u_char *bytes;
    struct backend_arena arena;
    pthread_mutex_t sending;
};

/* at: monotonic ns; 1: at once; 0: never */
static void
set_timer(const struct replay *r, uint64_t at)
{
    struct itimerspec t = {.it_value = {(time_t)(at / NS_PER_S), (long)(at % NS_PER_S)}};
    timerfd_settime(r->timer, TFD_TIMER_ABSTIME, &t, NULL);
}

static void
close_in(struct replay *r)
{
    if (r->in)
        pcap_close(r->in);
    r->in = NULL;
    r->head = NULL;
}

/* When the packet in hand is due. */
static uint64_t
due(struct replay *r)
{
    uint64_t at = (uint64_t)r->head->ts.tv_sec * NS_PER_S + (uint64_t)r->head->ts.tv_usec;
    if (!r->began) {
        r->began = clock_ns();
        r->first = at;
    }
    return !r->recorded || at < r->first ? r->began : r->began + (at - r->first);
}

/* Takes the next packet that is due into hand.  False: none is; the timer is set. */
static bool
next_packet(struct replay *r)
{
    if (!r->head && r->in && pcap_next_ex(r->in, &r->head, &r->bytes) != 1)
        close_in(r); /* its end, or from here on it makes no sense */
    uint64_t at = r->head ? due(r) : 0;
    if (at && at <= clock_ns())
        return true;
    set_timer(r, at);
    return false;
}

static unsigned
replay_rx(struct port *p, struct port_worker *pw, struct port_io *w, struct packet *out,
          unsigned max)
{
    struct replay *r = pw->rx;
    unsigned n = 0;
    if (!r->in)
        return 0;
    if (load_relaxed(&p->flags) & (OFPPC_PORT_DOWN | OFPPC_NO_RECV)) {
        set_timer(r, clock_ns() + LOOK_NS);
        return 0;
    }
    while (n < max) {
        uint8_t *room = backend_arena_room(&r->arena);
        if (!room || !next_packet(r))
            break;
        const struct pcap_pkthdr *h = r->head;
        r->head = NULL; /* what it points to stays until the next is read */
        if (h->caplen < ETH_HLEN || h->caplen != h->len || h->caplen > IO_FRAME_MAX) {
            backend_rx_drop(p, pw, w, h->len > IO_FRAME_MAX ? DROP_too_long : DROP_malformed,
                            &(struct packet_frame){r->bytes, h->caplen, 1, NULL});
            continue;
        }
        memcpy(room, r->bytes, h->caplen);
        backend_arena_take(&r->arena, room, h->caplen);
        out[n].vnet = (struct virtio_net_hdr){0};
        backend_fill(&out[n], p, pw, w, room, h->caplen, PACKET_HEADROOM);
        ++n;
    }
    return n;
}

static void
replay_rx_done(struct port_worker *pw, uint64_t *done)
{
    ((struct replay *)pw->rx)->arena.used = 0;
}

static int
replay_rx_fd(const struct port_worker *pw)
{
    return ((const struct replay *)pw->rx)->timer;
}

/* -> bytes */
static long
write_frame(pcap_dumper_t *out, const struct timespec *now, const struct msghdr *m)
{
    uint8_t padded[PACKET_MIN] = {0};
    const struct iovec *frame = &m->msg_iov[1];
    const uint8_t *bytes = frame->iov_base;
    struct pcap_pkthdr h = {.ts = {now->tv_sec, now->tv_nsec}, /* the file's unit is ns */
                            .caplen = (bpf_u_int32)frame->iov_len};
    if (frame->iov_len < sizeof padded) {
        memcpy(padded, bytes, frame->iov_len);
        bytes = padded;
        h.caplen = sizeof padded;
    }
    h.len = h.caplen;
    pcap_dump((u_char *)out, &h, bytes);
    return PCAP_RECORD + (long)h.caplen;
}

/* Cuts incomplete frames off the file, so that none is written later.  They count as dropped. */
static void
cut_back(struct replay *r)
{
    FILE *f = pcap_dump_file(r->out);
    __fpurge(f);
    clearerr(f);
    if (r->end >= 0 && !ftruncate(fileno(f), (off_t)r->end))
        fseeko(f, (off_t)r->end, SEEK_SET);
}

static int
replay_send(struct port_worker *pw, int fd, struct mmsghdr *m, unsigned n)
{
    struct replay *r = pw->rx;
    struct timespec now;
    int64_t bytes = 0;
    int err = 0;
    if (!r->out)
        return (int)n;
    clock_gettime(CLOCK_REALTIME, &now);
    pthread_mutex_lock(&r->sending);
    for (unsigned i = 0; i < n; ++i)
        bytes += write_frame(r->out, &now, &m[i].msg_hdr);
    if (pcap_dump_flush(r->out) || ferror(pcap_dump_file(r->out))) {
        err = errno ? -errno : -EIO;
        cut_back(r);
    } else if (r->end >= 0) {
        r->end += bytes;
    }
    pthread_mutex_unlock(&r->sending);
    return err ? err : (int)n;
}

static void
replay_close(struct port *p)
{
    struct replay *r = p->worker[0].rx;
    close_in(r);
    if (r->out)
        pcap_dump_close(r->out);
    if (r->format)
        pcap_close(r->format);
    if (r->timer >= 0)
        close(r->timer);
    pthread_mutex_destroy(&r->sending);
    free(r->arena.mem);
    free(r);
}

/* libpcap's reasons name the file, but not always. */
static void
say_why(char *why, size_t why_len, const char *what, const char *path, const char *reason)
{
    bool named = strstr(reason, path) != NULL;
    snprintf(why, why_len, "%s %s%s%s", what, named ? "" : path, named ? "" : ": ", reason);
}

static int
open_in(struct replay *r, const char *path, char *why, size_t why_len)
{
    char text[PCAP_ERRBUF_SIZE] = "";
    r->in = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, text);
    if (!r->in) {
        say_why(why, why_len, "reading", path, text);
        return -EINVAL;
    }
    if (pcap_datalink(r->in) == DLT_EN10MB)
        return 0;
    say_why(why, why_len, "reading", path, "it has no Ethernet frames");
    return -EPROTONOSUPPORT;
}

static int
open_out(struct replay *r, const char *path, char *why, size_t why_len)
{
    r->format =
        pcap_open_dead_with_tstamp_precision(DLT_EN10MB, IO_FRAME_MAX, PCAP_TSTAMP_PRECISION_NANO);
    if (!r->format)
        return backend_error(why, why_len, ENOMEM, "a file port");
    r->out = pcap_dump_open(r->format, path);
    if (r->out && !pcap_dump_flush(r->out)) {
        r->end = pcap_dump_ftell64(r->out);
        return 0;
    }
    say_why(why, why_len, "writing", path, pcap_geterr(r->format));
    return -EIO;
}

static int
replay_open(struct port *p, char *why, size_t why_len)
{
    const struct port_files *files = p->config.files;
    char none[1];
    int err = 0;
    if (!why || !why_len) {
        why = none;
        why_len = sizeof none;
    }
    struct replay *r = files ? calloc(1, sizeof *r) : NULL;
    if (!r)
        return backend_error(why, why_len, files ? ENOMEM : EINVAL, "a file port");
    pthread_mutex_init(&r->sending, NULL);
    for (unsigned i = 0; i < p->n_workers; ++i)
        p->worker[i].rx = r;
    r->recorded = files->recorded;
    r->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (r->timer < 0)
        err = backend_error(why, why_len, errno, "timerfd");
    if (!err && *files->in)
        err = open_in(r, files->in, why, why_len);
    if (!err && *files->out)
        err = open_out(r, files->out, why, why_len);
    if (err)
        replay_close(p);
    else if (r->in)
        set_timer(r, 1);
    return err;
}

const struct port_backend port_backend_file = {
    .name = "file",
    .only_by_name = true,
    .open = replay_open,
    .close = replay_close,
    .rx = replay_rx,
    .rx_done = replay_rx_done,
    .rx_fd = replay_rx_fd,
    .send = replay_send,
};
