/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the receive rings, which the kernel locks while the port is open. */
#include "backend.h"

#include <linux/netlink.h>
#include <linux/packet_diag.h>
#include <linux/sock_diag.h>
#include <stddef.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define SHARE_MOST  (UINT64_C(16) << 20) /* more did not make a port faster */
#define SHARE_LEAST (UINT64_C(256) << 10)
#define SHARES      4 /* a port takes this part of the rest at most: others may come */
#define LIMIT_MOST  (UINT64_C(256) << 20)
#define MEMORY_PART 16

static uint64_t given_limit; /* 0: by main memory */
static uint64_t used;
static uint64_t reserved;    /* of ports whose rings may grow, beside `used` */
static unsigned expected;    /* ports that will get first_share */
static uint64_t first_share; /* later ports get no more; 0: there were none at the start */
static unsigned together;    /* later ports that will get their_share */
static uint64_t their_share;

/* ------------------------------------------------------------------ the kernel's list of rings */

static uint64_t
ring_of(const struct nlmsghdr *h)
{
    size_t at = NLMSG_LENGTH(sizeof(struct packet_diag_msg));
    while (at + NLA_HDRLEN <= h->nlmsg_len) {
        struct nlattr a;
        struct packet_diag_ring r;
        memcpy(&a, (const char *)h + at, sizeof a);
        if (a.nla_len < NLA_HDRLEN || at + a.nla_len > h->nlmsg_len)
            break;
        if ((a.nla_type & NLA_TYPE_MASK) == PACKET_DIAG_RX_RING &&
            a.nla_len >= NLA_HDRLEN + sizeof r) {
            memcpy(&r, (const char *)h + at + NLA_HDRLEN, sizeof r);
            return (uint64_t)r.pdr_block_size * r.pdr_block_nr;
        }
        at += NLA_ALIGN(a.nla_len);
    }
    return 0;
}

/* Reads one datagram of the answer; false: it was the last. */
static bool
add_rings(int fd, uint64_t *sum)
{
    _Alignas(struct nlmsghdr) char buf[32 << 10];
    ssize_t n = recv(fd, buf, sizeof buf, 0);
    if (n <= 0)
        return false;
    size_t left = (size_t)n;
    for (const struct nlmsghdr *h = (const void *)buf; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
        if (h->nlmsg_type != SOCK_DIAG_BY_FAMILY)
            return false;
        *sum += ring_of(h);
    }
    return true;
}

/* Bytes of all packet sockets' receive rings in this network namespace, also of other programs; 0
 * without CONFIG_PACKET_DIAG. */
static uint64_t
all_rings(void)
{
    struct {
        struct nlmsghdr h;
        struct packet_diag_req r;
    } q = {.h = {.nlmsg_len = sizeof q,
                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
           .r = {.sdiag_family = AF_PACKET, .pdiag_show = PACKET_SHOW_RING_CFG}};
    struct timeval patience = {.tv_sec = 1};
    uint64_t sum = 0;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fd < 0)
        return 0;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (send(fd, &q, sizeof q, 0) == (ssize_t)sizeof q)
        while (add_rings(fd, &sum))
            continue;
    close(fd);
    return sum;
}

/* ------------------------------------------------------------------ sharing out */

uint64_t
port_rings_limit(void)
{
    uint64_t part = backend_memory() / MEMORY_PART;
    return given_limit ? given_limit : part < LIMIT_MOST ? part : LIMIT_MOST;
}

uint64_t
port_rings_bytes(void)
{
    return used;
}

/* By all rings, and by what ours may grow to. */
static uint64_t
taken_by_all(void)
{
    uint64_t all = given_limit ? 0 : all_rings();
    return (all > used ? all : used) + reserved;
}

/* The power of two at or below this part of the rest. */
static uint64_t
part_of_rest(unsigned parts)
{
    uint64_t limit = port_rings_limit(), taken = taken_by_all(), share = SHARE_LEAST;
    uint64_t part = taken < limit ? (limit - taken) / (parts > SHARES ? parts : SHARES) : 0;
    while (share < SHARE_MOST && share * 2 <= part)
        share *= 2;
    return share;
}

void
port_rings_limit_set(uint64_t limit, unsigned ports)
{
    given_limit = limit;
    expected = ports;
    first_share = ports ? part_of_rest(ports) : 0;
}

static uint64_t
later_share(unsigned ports)
{
    uint64_t share = part_of_rest(ports);
    return first_share && share > first_share ? first_share : share;
}

/* Reading the list of all rings takes longer the more there are, so it is done once for all
 * ports that are opened together. */
void
port_rings_ahead(unsigned ports)
{
    together = ports > expected ? ports - expected : 0;
    their_share = together ? later_share(together) : 0;
    rings_ahead_expect(ports);
}

uint64_t
port_rings_share(void)
{
    if (expected) {
        expected--;
        return first_share;
    }
    if (together) {
        together--;
        return their_share;
    }
    return later_share(1);
}

static uint64_t
to_come(const struct port *p)
{
    return p->ring_most > p->ring_bytes ? p->ring_most - p->ring_bytes : 0;
}

void
port_rings_count(struct port *p, uint64_t bytes)
{
    reserved -= to_come(p);
    used += bytes - p->ring_bytes;
    p->ring_bytes = bytes;
    reserved += to_come(p);
}

void
port_rings_reserve(struct port *p, uint64_t most)
{
    reserved -= to_come(p);
    p->ring_most = most;
    reserved += to_come(p);
}

/* Others, which don't see what is reserved here, may have taken some of it. */
uint64_t
port_rings_room(const struct port *p)
{
    uint64_t limit = port_rings_limit(), others = taken_by_all() - to_come(p) - p->ring_bytes,
             bytes = p->ring_most;
    while (bytes > p->ring_bytes && others + bytes > limit)
        bytes /= 2;
    return bytes;
}

bool
port_rings_given(void)
{
    return given_limit;
}
