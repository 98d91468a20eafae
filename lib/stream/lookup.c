/* SPDX-License-Identifier: Apache-2.0 */
/* Looking up host names, in a thread of its own: getaddrinfo blocks, and what of the C libraries
 * doesn't (getaddrinfo_a) is glibc's only. */
#include <stream/stream.h>

#include "inside.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define STACK_BYTES (256u << 10) /* resolver modules need more than musl's threads have */

struct stream_lookup {
    atomic_uint owners; /* the thread, and who waits */
    int fd;             /* readable when the thread has ended */
    struct stream_remote remote;
    int err;
    char why[320];
};

int
stream_look_up(struct stream_remote *r, int flags, struct why why)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    int err = getaddrinfo(r->name.host, r->name.port, &hints, &list);
    if (err == EAI_NONAME && flags & AI_NUMERICHOST)
        return -EAGAIN;
    if (err)
        return stream_refuse(why, -EINVAL, "the name %s can't be looked up: %s", r->name.host,
                             err == EAI_SYSTEM ? strerror(errno) : gai_strerror(err));
    r->n = 0;
    for (struct addrinfo *ai = list; ai && r->n < STREAM_ADDRS_MAX; ai = ai->ai_next) {
        memcpy(&r->addr[r->n], ai->ai_addr, ai->ai_addrlen);
        r->len[r->n++] = ai->ai_addrlen;
    }
    freeaddrinfo(list);
    return 0;
}

static void
let_go(struct stream_lookup *l)
{
    if (atomic_fetch_sub(&l->owners, 1) > 1)
        return;
    close(l->fd);
    free(l);
}

static void *
run(void *ctx)
{
    struct stream_lookup *l = ctx;
    const uint64_t one = 1;
    l->err = stream_look_up(&l->remote, 0, (struct why){l->why, sizeof l->why});
    while (write(l->fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
    let_go(l);
    return NULL;
}

static int
start_thread(struct stream_lookup *l)
{
    pthread_attr_t attr;
    pthread_t thread;
    int err = pthread_attr_init(&attr);
    if (err)
        return -err;
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    err = pthread_create(&thread, &attr, run, l);
    pthread_attr_destroy(&attr);
    return -err;
}

int
stream_lookup_begin(const struct stream_remote *r, struct stream_lookup **out)
{
    struct stream_lookup *l = calloc(1, sizeof *l);
    if (!l)
        return -ENOMEM;
    l->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int err = l->fd < 0 ? -errno : 0;
    l->remote = *r;
    atomic_init(&l->owners, 2);
    if (!err && (err = start_thread(l)))
        close(l->fd);
    if (err)
        free(l);
    else
        *out = l;
    return err;
}

int
stream_lookup_fd(const struct stream_lookup *l)
{
    return l->fd;
}

int
stream_lookup_end(struct stream_lookup *l, struct stream_remote *r, char *why, size_t why_len)
{
    uint64_t done;
    if (!l)
        return 0;
    int err = read(l->fd, &done, sizeof done) == sizeof done ? l->err : -EAGAIN;
    if (err)
        snprintf(why, why_len, "%s", err == -EAGAIN ? "the name is still looked up" : l->why);
    else if (r)
        *r = l->remote;
    let_go(l);
    return err;
}
