/* SPDX-License-Identifier: Apache-2.0 */
#include "inside.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>

int
stream_refuse(struct why why, int err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why.text, why.len, fmt, ap);
    va_end(ap);
    return err;
}

void
stream_no_delay(int fd)
{
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

ssize_t
stream_socket_read(int fd, void *p, size_t n)
{
    ssize_t got;
    do
        got = recv(fd, p, n, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    return got >= 0 ? got : -errno;
}

/* That the kernel is short of memory will pass. */
ssize_t
stream_socket_write(int fd, const void *p, size_t n)
{
    ssize_t sent;
    do
        sent = send(fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0)
        return sent;
    return errno == ENOBUFS || errno == ENOMEM ? -EAGAIN : -errno;
}
