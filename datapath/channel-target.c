/* SPDX-License-Identifier: Apache-2.0 */
/* Where connections come from: listening sockets and peers to connect to. */
#include "conn.h"

#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#define BACKLOG       64
#define ACCEPT_A_TURN 16
#define PAUSE_NS      200000000u /* for descriptors to become free again */
#define ADDRS_MAX     8

struct listener {
    struct channel *ch;
    struct listener *next;
    int fd;
    struct loop_io *io;
    struct loop_timer *pause;
    char *path; /* punix: the socket, to be removed if it is still the one we made */
    dev_t dev;
    ino_t ino;
};

union address {
    struct sockaddr sa;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_un un;
    struct sockaddr_storage any;
};

struct target {
    struct channel *ch;
    struct target *next;
    char *name;
    union address addr[ADDRS_MAX];
    socklen_t len[ADDRS_MAX];
    unsigned n, at; /* addresses, the one to try next */
    uint32_t backoff_ms;
    struct loop_timer *timer;
    struct conn *conn;
};

struct why {
    char *text;
    size_t len;
};

static int __attribute__((format(printf, 3, 4)))
refuse(struct why *why, int err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why->text, why->len, fmt, ap);
    va_end(ap);
    return err;
}

static void
no_delay(int fd)
{
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* ------------------------------------------------------------------ listening */

static void
name_peer(const struct listener *l, const union address *a, socklen_t len, char *out, size_t n)
{
    char host[INET6_ADDRSTRLEN + IF_NAMESIZE + 2], port[8];
    unsigned long long count = l->ch->counters.accepted;
    if (l->path)
        snprintf(out, n, "unix:%s#%llu", l->path, count);
    else if (getnameinfo(&a->sa, len, host, sizeof host, port, sizeof port,
                         NI_NUMERICHOST | NI_NUMERICSERV))
        snprintf(out, n, "tcp:#%llu", count);
    else if (!strncmp(host, "::ffff:", 7))
        snprintf(out, n, "tcp:%s:%s", host + 7, port);
    else
        snprintf(out, n, strchr(host, ':') ? "tcp:[%s]:%s" : "tcp:%s:%s", host, port);
}

static void
take(struct listener *l, int fd, const union address *a, socklen_t len)
{
    struct channel *ch = l->ch;
    unsigned limit = CHANNEL_MAX_CONNS - (l->path ? 0 : CHANNEL_UNIX_SPARE);
    char peer[sizeof a->un.sun_path + 64];
    struct conn *c;
    if (ch->n_accepted >= limit) {
        ch->counters.refused++;
        close(fd);
        return;
    }
    ch->counters.accepted++;
    name_peer(l, a, len, peer, sizeof peer);
    if (!l->path)
        no_delay(fd);
    if (conn_new(ch, fd, peer, false, &c))
        return;
    c->accepted = true;
    c->probe = !l->path;
    ch->n_accepted++;
}

static void
on_accept(void *ctx, uint32_t events)
{
    struct listener *l = ctx;
    for (int i = 0; i < ACCEPT_A_TURN; i++) {
        union address a = {0};
        socklen_t len = sizeof a;
        int fd = accept4(l->fd, &a.sa, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            take(l, fd, &a, len);
        } else if (errno == EAGAIN) {
            return;
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            loop_io_set(l->io, 0);
            loop_timer_set(l->pause, loop_now(l->ch->loop) + PAUSE_NS);
            return;
        }
    }
}

static void
on_pause_over(void *ctx)
{
    struct listener *l = ctx;
    loop_io_set(l->io, EPOLLIN);
}

static void
listener_free(struct listener *l)
{
    struct stat st;
    loop_io_del(l->io);
    loop_timer_free(l->pause);
    if (l->path && l->ino && !stat(l->path, &st) && st.st_dev == l->dev && st.st_ino == l->ino)
        unlink(l->path);
    free(l->path);
    close(l->fd);
    free(l);
}

/* Takes over fd, which is bound. */
static int
listen_on(struct channel *ch, int fd, const char *path, const char *name, struct why *why)
{
    struct listener *l = calloc(1, sizeof *l);
    struct stat st;
    if (!l) {
        close(fd);
        return refuse(why, -ENOMEM, "out of memory");
    }
    l->ch = ch;
    l->fd = fd;
    int err = path && !(l->path = strdup(path)) ? -ENOMEM : 0;
    if (path && !stat(path, &st)) {
        l->dev = st.st_dev;
        l->ino = st.st_ino;
    }
    if (!err && listen(fd, BACKLOG))
        err = -errno;
    if (!err)
        err = loop_timer_new(ch->loop, on_pause_over, l, &l->pause);
    if (!err)
        err = loop_io_add(ch->loop, fd, EPOLLIN, on_accept, l, &l->io);
    if (err) {
        listener_free(l);
        return refuse(why, err, "%s: can't listen: %s", name, strerror(-err));
    }
    l->next = ch->listeners;
    ch->listeners = l;
    return 0;
}

static int
bind_tcp(const union address *a, socklen_t len)
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

/* A leftover of a switch that is no more: a socket at which nobody answers. */
static bool
is_stale(const union address *a, socklen_t len)
{
    struct stat st;
    if (lstat(a->un.sun_path, &st) || !S_ISSOCK(st.st_mode))
        return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    bool stale = connect(fd, &a->sa, len) && errno == ECONNREFUSED;
    close(fd);
    return stale;
}

static int
bind_unix(const union address *a, socklen_t len)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    fchmod(fd, 0600); /* so that nobody slips in before chmod */
    int err = bind(fd, &a->sa, len) ? -errno : 0;
    if (err == -EADDRINUSE && is_stale(a, len)) {
        unlink(a->un.sun_path);
        err = bind(fd, &a->sa, len) ? -errno : 0;
    }
    if (!err && chmod(a->un.sun_path, 0660))
        err = -errno;
    if (!err)
        return fd;
    close(fd);
    return err;
}

/* ------------------------------------------------------------------ addresses in text */

static int
unix_address(const char *path, union address *a, socklen_t *len, struct why *why)
{
    *a = (union address){.un = {.sun_family = AF_UNIX}};
    *len = sizeof a->un;
    if (!*path)
        return refuse(why, -EINVAL, "a path must follow the colon");
    if (strlen(path) >= sizeof a->un.sun_path)
        return refuse(why, -ENAMETOOLONG, "%s: a socket's path has at most %zu characters", path,
                      sizeof a->un.sun_path - 1);
    memcpy(a->un.sun_path, path, strlen(path) + 1);
    return 0;
}

static bool
port_ok(const char *s, long min)
{
    char *end;
    if (strspn(s, "0123456789") != strlen(s) || !*s || strlen(s) > 5)
        return false;
    long n = strtol(s, &end, 10);
    return n >= min && n <= 65535;
}

/* [HOST] or HOST, as it is there: without its brackets. */
static bool
host_of(const char *s, size_t n, char *out, size_t size)
{
    if (n >= 2 && s[0] == '[' && s[n - 1] == ']') {
        s++;
        n -= 2;
    } else if (memchr(s, ':', n)) {
        return false;
    }
    if (n >= size)
        return false;
    memcpy(out, s, n);
    out[n] = '\0';
    return true;
}

/* ------------------------------------------------------------------ passive targets */

static int
add_punix(struct channel *ch, const char *target, const char *path, struct why *why)
{
    union address a;
    socklen_t len;
    int err = unix_address(path, &a, &len, why);
    if (err)
        return err;
    int fd = bind_unix(&a, len);
    return fd >= 0 ? listen_on(ch, fd, path, target, why)
                   : refuse(why, fd, "%s: %s", target,
                            fd == -EADDRINUSE ? "something else is there" : strerror(-fd));
}

static int
add_ptcp(struct channel *ch, const char *target, const char *rest, struct why *why)
{
    char port[8] = "6653", host[64] = "";
    size_t n = strcspn(rest, ":");
    if (n >= sizeof port)
        return refuse(why, -EINVAL, "%s: no port number", target);
    if (n)
        snprintf(port, sizeof port, "%.*s", (int)n, rest);
    if (!port_ok(port, 0))
        return refuse(why, -EINVAL, "%s: no port number: %s", target, port);
    if (rest[n] && !host_of(rest + n + 1, strlen(rest + n + 1), host, sizeof host))
        return refuse(why, -EINVAL, "%s: an IPv6 address stands in brackets", target);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *ai = NULL;
    union address a = {.in6 = {.sin6_family = AF_INET6, .sin6_addr = in6addr_any}};
    socklen_t len = sizeof a.in6;
    int fd = -EAFNOSUPPORT;
    if (!*host) { /* IPv6 with IPv4 in it; IPv4 alone where there is no IPv6 */
        a.in6.sin6_port = htons((uint16_t)atoi(port));
        fd = bind_tcp(&a, len);
        hints.ai_family = AF_INET;
    }
    if (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL) {
        if (getaddrinfo(*host ? host : NULL, port, &hints, &ai))
            return refuse(why, -EINVAL, "%s: no address: %s", target, host);
        memcpy(&a, ai->ai_addr, ai->ai_addrlen);
        fd = bind_tcp(&a, ai->ai_addrlen);
        freeaddrinfo(ai);
    }
    return fd >= 0 ? listen_on(ch, fd, NULL, target, why)
                   : refuse(why, fd, "%s: %s", target, strerror(-fd));
}

/* ------------------------------------------------------------------ active targets */

static void
try_later(struct target *t)
{
    uint32_t max = t->ch->opt.backoff_max_ms;
    loop_timer_set(t->timer, loop_now(t->ch->loop) + (uint64_t)t->backoff_ms * NS_PER_MS);
    t->backoff_ms = t->backoff_ms < max / 2 ? t->backoff_ms * 2 : max;
}

void
target_connected(struct target *t)
{
    t->backoff_ms = t->ch->opt.backoff_ms;
    t->at = (t->at + t->n - 1) % t->n; /* the same address again */
}

void
target_lost(struct target *t)
{
    t->conn = NULL;
    try_later(t);
}

static void
try_now(void *ctx)
{
    struct target *t = ctx;
    union address *a = &t->addr[t->at];
    socklen_t len = t->len[t->at];
    t->at = (t->at + 1) % t->n;
    t->ch->counters.connects++;
    int fd = socket(a->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        try_later(t);
        return;
    }
    if (a->sa.sa_family != AF_UNIX)
        no_delay(fd);
    int err = connect(fd, &a->sa, len) ? errno : 0;
    if (err && err != EINPROGRESS) {
        close(fd);
        try_later(t);
    } else if (conn_new(t->ch, fd, t->name, err != 0, &t->conn)) {
        t->conn = NULL;
        try_later(t);
    } else {
        t->conn->target = t;
    }
}

static void
target_free(struct target *t)
{
    if (t->conn)
        t->conn->target = NULL;
    loop_timer_free(t->timer);
    free(t->name);
    free(t);
}

/* Takes over t, whose addresses are there. */
static int
start_target(struct channel *ch, struct target *t, const char *name, struct why *why)
{
    t->ch = ch;
    t->backoff_ms = ch->opt.backoff_ms;
    t->name = strdup(name);
    if (!t->name || loop_timer_new(ch->loop, try_now, t, &t->timer)) {
        target_free(t);
        return refuse(why, -ENOMEM, "out of memory");
    }
    t->next = ch->targets;
    ch->targets = t;
    loop_timer_set(t->timer, 0);
    return 0;
}

static int
add_unix(struct channel *ch, const char *target, const char *path, struct why *why)
{
    struct target *t = calloc(1, sizeof *t);
    int err = t ? unix_address(path, &t->addr[0], &t->len[0], why)
                : refuse(why, -ENOMEM, "out of memory");
    if (err) {
        free(t);
        return err;
    }
    t->n = 1;
    return start_target(ch, t, target, why);
}

static int
look_up(const char *host, const char *port, struct target *t)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    int err = getaddrinfo(host, port, &hints, &list);
    if (err == EAI_NONAME) { /* no number: a name */
        hints.ai_flags = AI_NUMERICSERV;
        err = getaddrinfo(host, port, &hints, &list);
    }
    if (err)
        return err;
    for (struct addrinfo *ai = list; ai && t->n < ADDRS_MAX; ai = ai->ai_next) {
        memcpy(&t->addr[t->n], ai->ai_addr, ai->ai_addrlen);
        t->len[t->n++] = ai->ai_addrlen;
    }
    freeaddrinfo(list);
    return 0;
}

static int
add_tcp(struct channel *ch, const char *target, const char *rest, struct why *why)
{
    char host[256], port[8] = "6653";
    const char *bracket = *rest == '[' ? strchr(rest, ']') : NULL;
    const char *colon = strchr(bracket ? bracket : rest, ':');
    size_t n = colon ? (size_t)(colon - rest) : strlen(rest);
    if (colon && strchr(colon + 1, ':'))
        return refuse(why, -EINVAL, "%s: an IPv6 address stands in brackets", target);
    if (!n || !host_of(rest, n, host, sizeof host) || !*host)
        return refuse(why, -EINVAL, "%s: no host", target);
    if (colon && !port_ok(colon + 1, 1))
        return refuse(why, -EINVAL, "%s: no port number: %s", target, colon + 1);
    if (colon)
        snprintf(port, sizeof port, "%s", colon + 1);
    struct target *t = calloc(1, sizeof *t);
    if (!t)
        return refuse(why, -ENOMEM, "out of memory");
    int err = look_up(host, port, t);
    if (!err && t->n)
        return start_target(ch, t, target, why);
    free(t);
    return refuse(why, -EINVAL, "%s: %s: %s", target, host, gai_strerror(err));
}

/* ------------------------------------------------------------------ all of them */

static const struct {
    const char *prefix;
    int (*add)(struct channel *ch, const char *target, const char *rest, struct why *why);
} kinds[] = {{"punix:", add_punix}, {"ptcp:", add_ptcp}, {"unix:", add_unix}, {"tcp:", add_tcp}};

int
channel_add(struct channel *ch, const char *target, char *why, size_t why_len)
{
    struct why w = {why, why_len};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t n = strlen(kinds[i].prefix);
        if (!strncmp(target, kinds[i].prefix, n))
            return kinds[i].add(ch, target, target + n, &w);
    }
    return refuse(&w, -EINVAL, "%s: neither punix:, ptcp:, unix: nor tcp:", target);
}

void
channel_targets_free(struct channel *ch)
{
    while (ch->listeners) {
        struct listener *l = ch->listeners;
        ch->listeners = l->next;
        listener_free(l);
    }
    while (ch->targets) {
        struct target *t = ch->targets;
        ch->targets = t->next;
        target_free(t);
    }
}
