/* SPDX-License-Identifier: Apache-2.0 */
/* Streams over sockets. */
#include <stream/stream.h>

#include "inside.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct stream {
    int fd;
    bool connecting;            /* connect() is under way */
    int err;                    /* -errno of what failed */
    struct stream_session *tls; /* NULL: plain */
};

int
stream_of_fd(int fd, struct stream **out)
{
    struct stream *s = calloc(1, sizeof *s);
    if (!s) {
        close(fd);
        return -ENOMEM;
    }
    s->fd = fd;
    *out = s;
    return 0;
}

int
stream_connect(const struct stream_remote *r, unsigned i, struct stream **out)
{
    int fd = socket(r->addr[i].sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (!r->name.local)
        stream_no_delay(fd);
    int err = connect(fd, &r->addr[i].sa, r->len[i]) ? -errno : 0;
    if (err && err != -EINPROGRESS) {
        close(fd);
        return err;
    }
    bool connecting = err;
    err = stream_of_fd(fd, out);
    if (err)
        return err;
    (*out)->connecting = connecting;
    return r->tls ? stream_start_tls(*out, r->tls, r->name.host) : 0;
}

int
stream_start_tls(struct stream *s, struct stream_tls *tls, const char *host)
{
    int err = stream_session_start(tls, s->fd, host, &s->tls);
    if (err)
        stream_close(s);
    return err;
}

static int
broken(struct stream *s, int err)
{
    s->err = err;
    return err;
}

static int
finish_connect(struct stream *s)
{
    struct pollfd p = {.fd = s->fd, .events = POLLOUT};
    int err = 0;
    socklen_t len = sizeof err;
    if (!poll(&p, 1, 0))
        return -EAGAIN;
    if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &err, &len))
        err = errno;
    s->connecting = err;
    return broken(s, -err);
}

int
stream_open(struct stream *s)
{
    int err = s->connecting ? finish_connect(s) : 0;
    return !err && s->tls ? stream_session_open(s->tls) : err;
}

/* The local address without its port: text, as numbers. */
static bool
source_of(const struct stream *s, char *host, size_t n)
{
    union stream_sockaddr a = {0};
    socklen_t len = sizeof a;
    if (getsockname(s->fd, &a.sa, &len))
        return false;
    if (a.sa.sa_family == AF_UNIX)
        *host = '\0';
    else if (getnameinfo(&a.sa, len, host, (socklen_t)n, NULL, 0, NI_NUMERICHOST))
        return false;
    return true;
}

static void
ip_origin(const union stream_sockaddr *a, char *out, size_t n)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr in6 = a->in6.sin6_addr;
    if (a->sa.sa_family == AF_INET) {
        inet_ntop(AF_INET, &a->in.sin_addr, out, (socklen_t)n);
    } else if (IN6_IS_ADDR_V4MAPPED(&in6)) {
        inet_ntop(AF_INET, in6.s6_addr + 12, out, (socklen_t)n);
    } else { /* one host may have any address of its subnet */
        memset(in6.s6_addr + 8, 0, 8);
        inet_ntop(AF_INET6, &in6, text, sizeof text);
        snprintf(out, n, "%s/64", text);
    }
}

void
stream_origin(const struct stream *s, char *out, size_t n)
{
    union stream_sockaddr a = {0};
    struct ucred who;
    socklen_t len = sizeof a, who_len = sizeof who;
    snprintf(out, n, "unknown");
    if (getpeername(s->fd, &a.sa, &len))
        return;
    if (a.sa.sa_family != AF_UNIX)
        ip_origin(&a, out, n);
    else if (!getsockopt(s->fd, SOL_SOCKET, SO_PEERCRED, &who, &who_len))
        snprintf(out, n, "user %u", (unsigned)who.uid);
}

bool
stream_same_source(const struct stream *a, const struct stream *b)
{
    char host_a[64], host_b[64];
    return source_of(a, host_a, sizeof host_a) && source_of(b, host_b, sizeof host_b) &&
           !strcmp(host_a, host_b);
}

void
stream_end(struct stream *s)
{
    if (s->tls)
        stream_session_end(s->tls);
    shutdown(s->fd, SHUT_WR);
}

void
stream_close(struct stream *s)
{
    if (!s)
        return;
    stream_session_free(s->tls);
    close(s->fd);
    free(s);
}

ssize_t
stream_read(struct stream *s, void *p, size_t n)
{
    ssize_t got = s->tls ? stream_session_read(s->tls, p, n) : stream_socket_read(s->fd, p, n);
    return got >= 0 || got == -EAGAIN ? got : broken(s, (int)got);
}

ssize_t
stream_write(struct stream *s, const void *p, size_t n)
{
    ssize_t sent = s->tls ? stream_session_write(s->tls, p, n) : stream_socket_write(s->fd, p, n);
    return sent >= 0 || sent == -EAGAIN ? sent : broken(s, (int)sent);
}

bool
stream_pending(const struct stream *s)
{
    return s->tls && stream_session_pending(s->tls);
}

const char *
stream_why(const struct stream *s)
{
    const char *words = s->tls ? stream_session_why(s->tls) : "";
    return *words ? words : strerror(-s->err);
}

int
stream_fd(const struct stream *s)
{
    return s->fd;
}

uint32_t
stream_wait_for(const struct stream *s, uint32_t wanted)
{
    return s->connecting ? POLLOUT : s->tls ? stream_session_wait_for(s->tls, wanted) : wanted;
}

uint32_t
stream_ready_for(const struct stream *s, uint32_t events)
{
    uint32_t ready = events & ~(uint32_t)(POLLIN | POLLOUT);
    ready |= events & stream_wait_for(s, POLLIN) ? POLLIN : 0;
    ready |= events & stream_wait_for(s, POLLOUT) ? POLLOUT : 0;
    return ready;
}

bool
stream_is_tls(const struct stream *s)
{
    return s->tls;
}

bool
stream_common_name(const struct stream *s, char *out, size_t n)
{
    *out = '\0';
    return s->tls && stream_session_name(s->tls, out, n);
}
