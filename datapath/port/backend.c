/* SPDX-License-Identifier: Apache-2.0 */
/* What backends share: errors, received frames, closing sockets. */
#include "backend.h"

#include <errno.h>
#include <linux/if_arp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

uint64_t
backend_memory(void)
{
    struct sysinfo s;
    return sysinfo(&s) ? UINT64_C(64) << 20 : (uint64_t)s.totalram * s.mem_unit;
}

int
backend_error(char *why, size_t why_len, int err, const char *what)
{
    if (why && why_len)
        snprintf(why, why_len, "%s: %s", what, strerror(err));
    return -err;
}

int
backend_link_up(const char *name, bool need_ethernet, char *why, size_t why_len)
{
    struct ifreq r = {0};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return backend_error(why, why_len, errno, "socket");
    snprintf(r.ifr_name, sizeof r.ifr_name, "%s", name);
    int err = 0;
    if (ioctl(fd, SIOCGIFHWADDR, &r))
        err = backend_error(why, why_len, errno, "its address");
    else if (need_ethernet && r.ifr_hwaddr.sa_family != ARPHRD_ETHER)
        err = backend_error(why, why_len, EPROTONOSUPPORT, "not an Ethernet interface");
    else if (ioctl(fd, SIOCGIFFLAGS, &r))
        err = backend_error(why, why_len, errno, "its flags");
    else if (!(r.ifr_flags & IFF_UP)) {
        r.ifr_flags |= IFF_UP;
        if (ioctl(fd, SIOCSIFFLAGS, &r))
            err = backend_error(why, why_len, errno, "bringing it up");
    }
    close(fd);
    return err;
}

/* ------------------------------------------------------------------ received frames */

void
backend_rx_drop(const struct port *p, struct port_worker *pw, struct port_io *w,
                enum drop_reason why, const struct packet_frame *frame)
{
    struct packet_at at = PACKET_AT_NONE;
    at.in_port = p->config.port_no;
    counter_add(&pw->rx_dropped, frame->segments);
    counter_add(&w->drops[why], frame->segments);
    drop_log_note(&w->drop_log, why, &at, frame);
}

uint8_t *
backend_arena_room(struct backend_arena *a)
{
    if (!a->mem && !(a->mem = malloc(IO_ARENA_BYTES)))
        return NULL;
    if (IO_ARENA_BYTES - a->used < PACKET_HEADROOM + 2 + IO_FRAME_MAX)
        return NULL;
    return a->mem + a->used + PACKET_HEADROOM + 2; /* + 2: the IP header is aligned */
}

void
backend_arena_take(struct backend_arena *a, const uint8_t *frame, uint32_t len)
{
    a->used = (uint32_t)(frame - a->mem + len + 63) & ~63u;
}

/* ------------------------------------------------------------------ closing in the background */

struct closing {
    unsigned n;
    int fd[];
};

static int n_closing;

static void *
close_all(void *arg)
{
    struct closing *c = arg;
    for (unsigned i = 0; i < c->n; ++i)
        close(c->fd[i]);
    free(c);
    fetch_sub(&n_closing, 1);
    return NULL;
}

static void
close_some(const int *fd, unsigned n)
{
    pthread_t t;
    struct closing *c = malloc(sizeof *c + n * sizeof *c->fd);
    if (!c) {
        for (unsigned i = 0; i < n; ++i)
            close(fd[i]);
        return;
    }
    c->n = n;
    memcpy(c->fd, fd, n * sizeof *fd);
    fetch_add(&n_closing, 1);
    if (pthread_create(&t, NULL, close_all, c))
        close_all(c);
    else
        pthread_detach(t);
}

/* The kernel waits for all its readers (synchronize_net) in each close of a packet socket: 10 ms
 * and more. Threads that wait at the same time wait together. */
void
backend_close_later(const int *fd, unsigned n)
{
    enum { EACH = 8 };
    for (unsigned i = 0; i < n; i += EACH)
        close_some(fd + i, n - i < EACH ? n - i : EACH);
}

void
port_global_exit(void)
{
    for (int i = 0; i < 500 && load_acquire(&n_closing); ++i)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}
