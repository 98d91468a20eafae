/* SPDX-License-Identifier: Apache-2.0 */
#include "probe.h"

#include "law.h"

#include <core/signals.h>

#include <arpa/inet.h>
#include <errno.h>
#include <linux/icmp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ECHO4 = 8, ECHO4_REPLY = 0, ECHO6 = 128, ECHO6_REPLY = 129 };

/* What is sent: of UDP without the ICMP header. */
struct probe {
    uint8_t type, code;
    uint16_t checksum, id, low; /* the number's low half */
    uint32_t nonce, number;
    uint8_t pad[16];
};
#define ICMP_HEADER offsetof(struct probe, nonce)

int
probes_open(struct probes *p, char *why, size_t size)
{
    *p = (struct probes){.epoll = epoll_create1(EPOLL_CLOEXEC)};
    if (p->epoll < 0 || getrandom(&p->nonce, sizeof p->nonce, 0) != sizeof p->nonce) {
        snprintf(why, size, "%s", strerror(errno));
        return -errno;
    }
    return 0;
}

void
probes_close(struct probes *p)
{
    for (unsigned i = 0; i < p->n; i++)
        close(p->v[i].fd);
    if (p->epoll >= 0)
        close(p->epoll);
}

/* ------------------------------------------------------------------------ reflectors */

/* The address and, of "udp:HOST:PORT", the port.  Names are not looked up: a resolver may be behind the link. */
static int
resolve(const char *text, bool udp, struct addrinfo **out)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                                   .ai_socktype = SOCK_DGRAM};
    char host[80];
    const char *colon = udp ? strrchr(text, ':') : NULL;
    size_t n = colon ? (size_t)(colon - text) : strlen(text);
    if (n >= sizeof host || (udp && !colon))
        return -EINVAL;
    memcpy(host, text, n);
    host[n] = '\0';
    char *name = host;
    if (n > 2 && host[0] == '[' && host[n - 1] == ']') {
        host[n - 1] = '\0';
        name++;
    }
    return getaddrinfo(name, colon ? colon + 1 : NULL, &hints, out) ? -EINVAL : 0;
}

/* The kernel's ping socket if this user may have one, else a raw one. */
static int
open_socket(struct reflector *r, const struct addrinfo *to)
{
    int protocol = r->udp ? 0 : r->v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP;
    int flags = SOCK_NONBLOCK | SOCK_CLOEXEC;
    r->fd = socket(to->ai_family, SOCK_DGRAM | flags, protocol);
    if (r->fd < 0 && !r->udp) {
        r->raw = true;
        r->fd = socket(to->ai_family, SOCK_RAW | flags, protocol);
    }
    if (r->fd < 0)
        return -errno;
    if (connect(r->fd, to->ai_addr, to->ai_addrlen)) {
        int err = -errno;
        close(r->fd);
        return err;
    }
    return 0;
}

int
probes_add(struct probes *p, const char *text, char *why, size_t size)
{
    struct addrinfo *to;
    struct reflector r = {.udp = !strncmp(text, "udp:", 4)};
    if (p->n == PROBE_REFLECTORS) {
        snprintf(why, size, "at most %d reflectors", PROBE_REFLECTORS);
        return -EINVAL;
    }
    if (resolve(text + (r.udp ? 4 : 0), r.udp, &to)) {
        snprintf(why, size,
                 "a reflector is an address such as 10.0.0.1 or fd00::1, or udp:10.0.0.1:7, not "
                 "'%.60s'",
                 text);
        return -EINVAL;
    }
    r.v6 = to->ai_family == AF_INET6;
    int err = open_socket(&r, to);
    freeaddrinfo(to);
    struct epoll_event e = {.events = EPOLLIN};
    int on = 1;
    if (!err)
        setsockopt(r.fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
    if (!err && epoll_ctl(p->epoll, EPOLL_CTL_ADD, r.fd, &e)) {
        err = -errno;
        close(r.fd);
    }
    if (!err)
        p->v[p->n++] = r;
    else if (err == -EACCES || err == -EPERM)
        snprintf(why, size,
                 "reflector %.60s: ICMP needs root here (or a group of "
                 "net.ipv4.ping_group_range); udp:ADDRESS:PORT does not",
                 text);
    else
        snprintf(why, size, "reflector %.60s: %s", text, strerror(-err));
    return err;
}

/* --------------------------------------------------------------------------- probes */

static uint16_t
checksum(const void *data, size_t n)
{
    const uint8_t *b = data;
    uint32_t sum = 0;
    for (size_t i = 0; i < n; i += 2)
        sum += (uint32_t)b[i] << 8 | b[i + 1];
    sum = (sum >> 16) + (sum & 0xffff);
    return htons((uint16_t) ~(sum + (sum >> 16)));
}

/* A probe that can't be sent counts as one without an answer. */
void
probes_send(struct probes *p, int64_t now)
{
    for (unsigned i = 0; i < p->n; i++) {
        struct reflector *r = &p->v[i];
        uint32_t number = ++r->sent;
        struct probe probe = {.type = r->v6 ? ECHO6 : ECHO4,
                              .id = (uint16_t)p->nonce,
                              .low = htons((uint16_t)number),
                              .nonce = p->nonce,
                              .number = number};
        size_t skip = r->udp ? ICMP_HEADER : 0;
        if (!r->udp && !r->v6)
            probe.checksum = checksum(&probe, sizeof probe);
        r->sent_at[number % PROBE_SENT] = now;
        (void)!send(r->fd, (const uint8_t *)&probe + skip, sizeof probe - skip, 0);
    }
}

/* A raw socket of IPv4 gives the IP header as well, and every ICMP message of the host. */
static bool
read_answer(const struct probes *p, const struct reflector *r, const uint8_t *b, size_t n,
            uint32_t *number)
{
    struct probe probe;
    size_t skip = r->udp ? ICMP_HEADER : 0,
           ip = r->raw && !r->v6 && n ? (size_t)(b[0] & 15) * 4 : 0;
    if (n < ip + sizeof probe - skip)
        return false;
    memcpy((uint8_t *)&probe + skip, b + ip, sizeof probe - skip);
    if (!r->udp && probe.type != (r->v6 ? ECHO6_REPLY : ECHO4_REPLY))
        return false;
    *number = probe.number;
    return probe.nonce == p->nonce;
}

static void
take_answer(struct reflector *r, uint32_t number, int64_t now)
{
    if (number > r->sent || r->sent - number >= PROBE_SENT || number <= r->heard)
        return; /* older than the newest answer, or not an answer to our probes */
    r->heard = number;
    r->heard_at = now;
    r->rtt = now - r->sent_at[number % PROBE_SENT];
    if (r->rtt < 1)
        r->rtt = 1;
    autorate_baseline(&r->baseline, r->rtt);
}

/* When the kernel had the answer: this process may have been woken late.  `behind`: us from CLOCK_MONOTONIC to
 * CLOCK_REALTIME. */
static int64_t
came_at(const struct msghdr *m, int64_t now, int64_t behind)
{
    const struct cmsghdr *c = CMSG_FIRSTHDR(m); /* the only one that was asked for */
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPNS) {
        struct timespec ts;
        memcpy(&ts, CMSG_DATA(c), sizeof ts);
        int64_t at = (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000 - behind;
        return at < now ? at : now;
    }
    return now;
}

/* 1: there was something to read. */
static int
receive(struct probes *p, struct reflector *r, int64_t now, int64_t behind)
{
    uint8_t b[256];
    union {
        struct cmsghdr align;
        uint8_t b[CMSG_SPACE(sizeof(struct timespec))];
    } more;
    struct iovec v = {b, sizeof b};
    struct msghdr m = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = &more, .msg_controllen = sizeof more};
    uint32_t number;
    ssize_t n = recvmsg(r->fd, &m, 0);
    if (n >= 0 && read_answer(p, r, b, (size_t)n, &number))
        take_answer(r, number, came_at(&m, now, behind));
    /* Another error came with a packet (ECONNREFUSED): reading it clears it. */
    return n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

void
probes_receive(struct probes *p, int64_t now)
{
    int64_t behind = signals_clock_us(CLOCK_REALTIME) - now;
    for (unsigned i = 0; i < p->n; i++)
        for (int k = 0; k < PROBE_SENT && receive(p, &p->v[i], now, behind); k++)
            ;
}

/* --------------------------------------------------------------------------- delays */

static int64_t
delay_of(const struct reflector *r, int64_t now)
{
    int64_t delay = r->rtt, next = r->heard + 1;
    if (next <= r->sent) {
        int64_t since = r->sent - next < PROBE_SENT ? r->sent_at[next % PROBE_SENT] : r->heard_at;
        delay = now - since > delay ? now - since : delay;
    }
    return delay > r->baseline ? delay - r->baseline : 0;
}

int64_t
probes_delay(const struct probes *p, int64_t now, unsigned *answering, int64_t *baseline)
{
    int64_t v[PROBE_REFLECTORS];
    *answering = 0;
    *baseline = 0;
    for (unsigned i = 0; i < p->n; i++) {
        const struct reflector *r = &p->v[i];
        if (!r->heard || now - r->heard_at > PROBE_SILENT)
            continue;
        v[(*answering)++] = delay_of(r, now);
        if (!*baseline || r->baseline < *baseline)
            *baseline = r->baseline;
    }
    return autorate_delay(v, *answering);
}
