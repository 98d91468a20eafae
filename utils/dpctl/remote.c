/* SPDX-License-Identifier: Apache-2.0 */
#include "remote.h"

#include <oflib/text.h>

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

__attribute__((format(printf, 3, 4))) static int
fail(struct remote *r, int err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(r->why, sizeof r->why, fmt, ap);
    va_end(ap);
    return err;
}

int64_t
remote_now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Waits until the socket is ready. */
static int
wait_for(struct remote *r, short events, int64_t until)
{
    struct pollfd pfd = {.fd = r->fd, .events = events};
    int n;
    do {
        struct timespec left = {0, 0};
        int64_t ms = until < 0 ? 0 : until - remote_now_ms();
        if (ms > 0)
            left = (struct timespec){ms / 1000, ms % 1000 * 1000000};
        n = ppoll(&pfd, 1, until < 0 ? NULL : &left, r->sigmask);
    } while (n < 0 && errno == EINTR && !r->sigmask);
    if (n < 0)
        return fail(r, -errno, "poll: %s", strerror(errno));
    return n ? 0 : fail(r, -ETIMEDOUT, "no answer within the time set by --timeout");
}

/* --------------------------------------------------------------- connecting */

static int
finish_connect(struct remote *r, const struct sockaddr *sa, socklen_t len)
{
    int err = 0;
    socklen_t size = sizeof err;
    if (connect(r->fd, sa, len) == 0)
        return 0;
    if (errno != EINPROGRESS)
        return -errno;
    int waited = wait_for(r, POLLOUT, remote_now_ms() + r->timeout_ms);
    if (waited)
        return waited;
    if (getsockopt(r->fd, SOL_SOCKET, SO_ERROR, &err, &size) < 0)
        return -errno;
    return -err;
}

static int
try_connect(struct remote *r, int family, const struct sockaddr *sa, socklen_t len)
{
    r->fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (r->fd < 0)
        return -errno;
    int err = finish_connect(r, sa, len);
    if (err) {
        close(r->fd);
        r->fd = -1;
    }
    return err;
}

static int
connect_unix(struct remote *r, const char *path)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    if (!*path || strlen(path) >= sizeof sa.sun_path)
        return fail(r, -EINVAL, "%s: a socket's path has 1 to %zu characters", path,
                    sizeof sa.sun_path - 1);
    strcpy(sa.sun_path, path);
    int err = try_connect(r, AF_UNIX, (const struct sockaddr *)&sa, sizeof sa);
    return err ? fail(r, err, "%s: %s", path, strerror(-err)) : 0;
}

/* HOST, HOST:PORT, [ADDRESS], [ADDRESS]:PORT. */
static int
split_host(struct remote *r, const char *text, char *host, size_t n, const char **port)
{
    bool bracket = *text == '[';
    size_t len = bracket ? strcspn(++text, "]") : strcspn(text, ":");
    const char *rest = text + len + (bracket && text[len] ? 1 : 0);
    if (!len || len >= n || (bracket && text[len] != ']') || (*rest && *rest != ':') ||
        !strcmp(rest, ":"))
        return fail(r, -EINVAL, "tcp:%s is no address: %s is right", text, REMOTE_ADDRESSES);
    memcpy(host, text, len);
    host[len] = '\0';
    *port = *rest ? rest + 1 : "6653";
    return 0;
}

static int
connect_tcp(struct remote *r, const char *text)
{
    char host[256];
    const char *port = "";
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *all;
    int err = split_host(r, text, host, sizeof host, &port);
    if (err)
        return err;
    int gai = getaddrinfo(host, port, &hints, &all);
    if (gai)
        return fail(r, -EHOSTUNREACH, "%s port %s: %s", host, port, gai_strerror(gai));
    err = -EHOSTUNREACH;
    for (const struct addrinfo *a = all; a && err; a = a->ai_next)
        err = try_connect(r, a->ai_family, a->ai_addr, a->ai_addrlen);
    freeaddrinfo(all);
    return err ? fail(r, err, "%s port %s: %s", host, port, strerror(-err)) : 0;
}

bool
remote_is_address(const char *text)
{
    return !strncmp(text, "unix:", 5) || !strncmp(text, "tcp:", 4) || *text == '/' ||
           !strncmp(text, "./", 2) || !strncmp(text, "../", 3);
}

/* ---------------------------------------------------------------- messages */

int
remote_send(struct remote *r, const uint8_t *p, size_t n)
{
    int64_t until = remote_now_ms() + r->timeout_ms;
    while (n) {
        ssize_t sent = send(r->fd, p, n, MSG_NOSIGNAL);
        if (sent >= 0) {
            p += sent;
            n -= (size_t)sent;
        } else if (errno == EAGAIN) {
            int err = wait_for(r, POLLOUT, until);
            if (err)
                return err;
        } else if (errno != EINTR) {
            return fail(r, -errno, "sending: %s", strerror(errno));
        }
    }
    return 0;
}

/* More bytes into the buffer, which has room. */
static int
fill(struct remote *r, int64_t until)
{
    for (;;) {
        ssize_t n = recv(r->fd, r->buf + r->have, sizeof r->buf - r->have, 0);
        if (n > 0) {
            r->have += (size_t)n;
            return 0;
        }
        if (n == 0)
            return fail(r, -ECONNRESET, "the switch closed the connection");
        if (errno != EAGAIN)
            return fail(r, -errno, "receiving: %s", strerror(errno));
        int err = wait_for(r, POLLIN, until);
        if (err)
            return err;
    }
}

static int
recv_frame(struct remote *r, int64_t until, struct of_bytes *msg)
{
    memmove(r->buf, r->buf + r->taken, r->have - r->taken);
    r->have -= r->taken;
    r->taken = 0;
    for (;;) {
        int len = of_frame_len(r->buf, r->have);
        if (len < 0)
            return fail(r, -EBADMSG, "the peer sent what is no OpenFlow message");
        if (len && r->have >= (size_t)len) {
            r->taken = (size_t)len;
            *msg = (struct of_bytes){r->buf, (size_t)len};
            return 0;
        }
        int err = fill(r, until);
        if (err)
            return err;
    }
}

static int
answer_echo(struct remote *r, struct of_bytes request)
{
    struct of_echo echo = {{request.p + OFP_HEADER_LEN, request.n - OFP_HEADER_LEN}};
    struct of_wr w = of_wr_grow(OF_MSG_MAX);
    int err = of_encode_body(&w, OFPT_ECHO_REPLY, of_get32(request.p + 4), &echo);
    if (!err)
        err = remote_send(r, w.buf, w.len);
    of_wr_free(&w);
    return err;
}

int
remote_recv(struct remote *r, int64_t until, struct of_bytes *msg)
{
    for (;;) {
        int err = recv_frame(r, until, msg);
        if (!err && msg->p[1] == OFPT_ECHO_REQUEST)
            err = answer_echo(r, *msg);
        else if (!err)
            return 0;
        if (err)
            return err;
    }
}

/* Version 1.3 is agreed on when the switch's is 1.3 or later, or its bitmap has 1.3 (6.3.1). */
static bool
speaks_1_3(struct of_bytes hello)
{
    struct of_rd r = of_rd(hello.p + OFP_HEADER_LEN, hello.n - OFP_HEADER_LEN);
    while (of_rd_left(&r) >= 4) {
        uint16_t type = of_rd16(&r), len = of_rd16(&r);
        if (len < 4)
            break;
        if (type == OFPHET_VERSIONBITMAP && len >= 8 && of_rd_left(&r) >= 4)
            return of_get32(r.p) & OFP_BITMAP_1_3;
        of_rd_copy(&r, NULL, (len + 7u) / 8 * 8 - 4);
    }
    return hello.p[0] >= OFP_VERSION;
}

static int
say_hello(struct remote *r)
{
    static const uint8_t hello[] = {OFP_VERSION, OFPT_HELLO, 0, 16, 0, 0, 0, 0, 0,
                                    OFPHET_VERSIONBITMAP, 0, 8, 0, 0, 0, OFP_BITMAP_1_3};
    struct of_bytes msg;
    int err = remote_send(r, hello, sizeof hello);
    if (!err)
        err = remote_recv(r, remote_now_ms() + r->timeout_ms, &msg);
    if (err)
        return err;
    if (msg.p[1] != OFPT_HELLO)
        return fail(r, -EPROTO, "the switch began with message type %u in place of a hello",
                    msg.p[1]);
    if (!speaks_1_3(msg))
        return fail(r, -EPROTONOSUPPORT, "the switch does not speak OpenFlow 1.3 (its hello is of "
                                         "version 0x%02x)", msg.p[0]);
    return 0;
}

int
remote_open(struct remote *r, const char *address, int timeout_ms)
{
    int err;
    r->fd = -1;
    r->timeout_ms = timeout_ms;
    r->have = r->taken = 0;
    r->xid = 0;
    r->sigmask = NULL;
    if (!strncmp(address, "tcp:", 4))
        err = connect_tcp(r, address + 4);
    else
        err = connect_unix(r, !strncmp(address, "unix:", 5) ? address + 5 : address);
    if (!err && (err = say_hello(r)))
        remote_close(r);
    return err;
}

void
remote_close(struct remote *r)
{
    if (r->fd >= 0)
        close(r->fd);
    r->fd = -1;
}
