/* SPDX-License-Identifier: Apache-2.0 */
#include <stream/stream.h>

#include "inside.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BACKLOG 64

struct stream_listener {
    int fd;
    unsigned long long accepted;
    struct stream_address at;
    struct stream_tls *tls; /* where at.tls */
    dev_t dev;              /* of the Unix socket that was made, to remove no other */
    ino_t ino;
};

/* ------------------------------------------------------------------ TCP */

static int
bind_tcp(const union stream_sockaddr *a, socklen_t len)
{
    int on = 1, off = 0;
    int fd = socket(a->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (a->sa.sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (!bind(fd, &a->sa, len))
        return fd;
    int err = -errno;
    close(fd);
    return err;
}

/* -> descriptor */
static int
open_tcp(const char *text, const struct stream_address *at, struct why why)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *ai = NULL;
    union stream_sockaddr a = {.in6 = {.sin6_family = AF_INET6, .sin6_addr = in6addr_any}};
    int fd = -EAFNOSUPPORT;
    if (!*at->host) { /* IPv6 and IPv4 on one socket; IPv4 alone where there is no IPv6 */
        a.in6.sin6_port = htons((uint16_t)atoi(at->port));
        fd = bind_tcp(&a, sizeof a.in6);
        hints.ai_family = AF_INET;
    }
    if (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL) {
        if (getaddrinfo(*at->host ? at->host : NULL, at->port, &hints, &ai))
            return stream_refuse(
                why, -EINVAL, "%s: %s is not an IP address to listen at, such as 0.0.0.0 or [::]",
                text, at->host);
        memcpy(&a, ai->ai_addr, ai->ai_addrlen);
        fd = bind_tcp(&a, ai->ai_addrlen);
        freeaddrinfo(ai);
    }
    return fd >= 0
               ? fd
               : stream_refuse(why, fd, "%s: %s", text,
                               fd == -EADDRINUSE
                                   ? "another program listens there: end it, or choose another port"
                                   : strerror(-fd));
}

/* ------------------------------------------------------------------ Unix sockets */

#define NO_GROUP ((gid_t)-1)
static gid_t socket_group = NO_GROUP;

int
stream_group_of(const char *name, gid_t *out)
{
    const struct group *g = getgrnam(name);
    char *end;
    unsigned long number = strtoul(name, &end, 10);
    bool is_number = *name >= '0' && *name <= '9' && !*end && number < NO_GROUP;
    if (!g && !is_number)
        return -EINVAL;
    *out = g ? g->gr_gid : (gid_t)number;
    return 0;
}

void
stream_socket_group(gid_t group)
{
    socket_group = group;
}

gid_t
stream_socket_group_id(void)
{
    return socket_group;
}

/* A socket left behind by a process that has ended: nobody answers at it. */
static bool
is_stale(const struct sockaddr_un *a)
{
    struct stat st;
    if (lstat(a->sun_path, &st) || !S_ISSOCK(st.st_mode))
        return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    bool stale = connect(fd, (const struct sockaddr *)a, sizeof *a) && errno == ECONNREFUSED;
    close(fd);
    return stale;
}

/* Makes the file with its mode: a chmod() would change whatever somebody has put in its place, where others may
 * write to the directory. */
static int
bind_closed(int fd, const struct sockaddr_un *a)
{
    const mode_t mask = umask(0117);
    int err = bind(fd, (const struct sockaddr *)a, sizeof *a) ? -errno : 0;
    umask(mask);
    return err;
}

/* A directory with the setgid bit gives its files its own group. */
static int
give_to_group(const struct sockaddr_un *a)
{
    struct stat st;
    const gid_t group = socket_group == NO_GROUP ? getegid() : socket_group;
    if (lstat(a->sun_path, &st))
        return -errno;
    return st.st_gid != group &&
                   fchownat(AT_FDCWD, a->sun_path, (uid_t)-1, group, AT_SYMLINK_NOFOLLOW)
               ? -errno
               : 0;
}

/* Until it listens nobody gets in. */
static int
bind_unix(const struct sockaddr_un *a)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int err = bind_closed(fd, a);
    if (err == -EADDRINUSE && is_stale(a)) {
        err = unlink(a->sun_path) ? -errno : bind_closed(fd, a);
    }
    bool made = !err;
    if (!err)
        err = give_to_group(a);
    if (!err)
        return fd;
    if (made)
        unlink(a->sun_path);
    close(fd);
    return err;
}

/* Only the default socket's directory is made. */
static void
make_directory(const char *path)
{
    char directory[sizeof((struct sockaddr_un *)0)->sun_path];
    if (strcmp(path, stream_default_socket))
        return;
    strcpy(directory, path);
    char *slash = strrchr(directory, '/');
    if (slash && slash != directory) {
        *slash = '\0';
        mkdir(directory, 0755);
    }
}

/* Names the process that listens at this address. */
static void
name_listener(const struct sockaddr_un *a, char *text, size_t n)
{
    struct ucred who;
    socklen_t len = sizeof who;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    snprintf(text, n, "another program listens there");
    if (fd >= 0 && !connect(fd, (const struct sockaddr *)a, sizeof *a) &&
        !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) && who.pid)
        snprintf(text, n, "process %d listens there: end it, or choose another path", (int)who.pid);
    if (fd >= 0)
        close(fd);
}

/* Names what is at the path. */
static void
name_occupant(const struct sockaddr_un *a, char *text, size_t n)
{
    struct stat st;
    if (lstat(a->sun_path, &st))
        snprintf(text, n, "the path is taken: choose another");
    else if (S_ISSOCK(st.st_mode))
        name_listener(a, text, n);
    else
        snprintf(text, n, "there is a %s of this name, which is not removed: choose another path",
                 S_ISDIR(st.st_mode)   ? "directory"
                 : S_ISREG(st.st_mode) ? "file"
                                       : "special file");
}

static int
open_unix(const char *text, const struct stream_address *at, struct why why)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    strcpy(a.sun_path, at->host);
    make_directory(a.sun_path);
    int fd = bind_unix(&a);
    char occupant[128];
    text = strcmp(text, "punix:") ? text : at->host;
    if (fd == -EADDRINUSE)
        name_occupant(&a, occupant, sizeof occupant);
    return fd >= 0
               ? fd
               : stream_refuse(why, fd, "%s: %s", text,
                               fd == -EADDRINUSE ? occupant
                               : fd == -ENOENT
                                   ? "its directory does not exist: make it, or choose another path"
                                   : strerror(-fd));
}

/* ------------------------------------------------------------------ both */

int
stream_listen(const char *text, struct stream_tls *tls, struct stream_listener **out,
              char *why_text, size_t why_len)
{
    struct why why = {why_text, why_len};
    struct stat st;
    struct stream_listener *l = calloc(1, sizeof *l);
    if (!l)
        return stream_refuse(why, -ENOMEM, "out of memory");
    int err = stream_parse(text, &l->at, why_text, why_len);
    if (!err && !l->at.passive)
        err = stream_refuse(why, -EINVAL,
                            "%s: this is an address to connect to; to listen, use punix:, ptcp: or "
                            "ptls:",
                            text);
    if (!err && l->at.tls && !tls)
        err = stream_refuse(why, -EINVAL, "%s: %s", text, stream_tls_missing);
    l->tls = l->at.tls ? tls : NULL;
    if (!err)
        err = l->fd = l->at.local ? open_unix(text, &l->at, why) : open_tcp(text, &l->at, why);
    if (err < 0) {
        free(l);
        return err;
    }
    if (l->at.local && !stat(l->at.host, &st)) {
        l->dev = st.st_dev;
        l->ino = st.st_ino;
    }
    if (listen(l->fd, BACKLOG)) {
        err = stream_refuse(why, -errno, "%s: can't listen: %s", text, strerror(errno));
        stream_listener_free(l);
        return err;
    }
    *out = l;
    return 0;
}

void
stream_listener_free(struct stream_listener *l)
{
    struct stat st;
    if (l->ino && !stat(l->at.host, &st) && st.st_dev == l->dev && st.st_ino == l->ino)
        unlink(l->at.host);
    close(l->fd);
    free(l);
}

int
stream_listener_fd(const struct stream_listener *l)
{
    return l->fd;
}

bool
stream_listener_is_local(const struct stream_listener *l)
{
    return l->at.local;
}

static void
name_peer(const struct stream_listener *l, const union stream_sockaddr *a, socklen_t len, char *out,
          size_t n)
{
    char host[INET6_ADDRSTRLEN + IF_NAMESIZE + 2], port[8];
    const char *kind = l->tls ? "tls" : "tcp";
    if (l->at.local)
        snprintf(out, n, "unix:%s#%llu", l->at.host, l->accepted);
    else if (getnameinfo(&a->sa, len, host, sizeof host, port, sizeof port,
                         NI_NUMERICHOST | NI_NUMERICSERV))
        snprintf(out, n, "%s:#%llu", kind, l->accepted);
    else if (!strncmp(host, "::ffff:", 7))
        snprintf(out, n, "%s:%s:%s", kind, host + 7, port);
    else
        snprintf(out, n, strchr(host, ':') ? "%s:[%s]:%s" : "%s:%s:%s", kind, host, port);
}

int
stream_accept(struct stream_listener *l, struct stream **out, char *peer, size_t peer_len)
{
    union stream_sockaddr a = {0};
    socklen_t len = sizeof a;
    int fd = accept4(l->fd, &a.sa, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (!l->at.local)
        stream_no_delay(fd);
    l->accepted++;
    name_peer(l, &a, len, peer, peer_len);
    int err = stream_of_fd(fd, out);
    return !err && l->tls ? stream_start_tls(*out, l->tls, NULL) : err;
}
