/* SPDX-License-Identifier: Apache-2.0 */
#include <daemon/notify.h>

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* The address's length; 0: there is none that could be used.  "@NAME" is in the abstract
 * namespace. */
static socklen_t
manager(struct sockaddr_un *a)
{
    const char *path = getenv("NOTIFY_SOCKET");
    size_t n = path ? strlen(path) : 0;
    if (n < 2 || n >= sizeof a->sun_path || (*path != '/' && *path != '@'))
        return 0;
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(a->sun_path, path, n);
    if (*path == '@')
        a->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
}

bool
notify_wanted(void)
{
    struct sockaddr_un to;
    return manager(&to) > 0;
}

void
notify_send(const char *format, ...)
{
    struct sockaddr_un to;
    socklen_t to_len = manager(&to);
    char text[1024];
    if (!to_len)
        return;
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    if (n < 0)
        return;
    size_t len = (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    /* If it is lost, the manager's timeout notices; there is nobody else to report it to. */
    ssize_t ignored =
        sendto(fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)&to, to_len);
    (void)ignored;
    close(fd);
}

void
notify_reloading(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    notify_send("RELOADING=1\nMONOTONIC_USEC=%llu",
                (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000);
}

/* $NAME as a number; 0: there is none. */
static uint64_t
number(const char *name)
{
    const char *text = getenv(name);
    char *end;
    if (!text || *text < '0' || *text > '9')
        return 0;
    unsigned long long n = strtoull(text, &end, 10);
    return *end ? 0 : n;
}

uint64_t
notify_watchdog_ns(void)
{
    uint64_t us = number("WATCHDOG_USEC"), pid = number("WATCHDOG_PID");
    if (!notify_wanted() || us > UINT64_MAX / 1000 || (pid && pid != (uint64_t)getpid()))
        return 0;
    return us * 1000;
}
