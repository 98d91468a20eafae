/* SPDX-License-Identifier: Apache-2.0 */
/* To be included: the program's sendmsg and recvmsg, which libnl calls too, are those of a fake rtnetlink.
 * What is sent goes nowhere; the includer says what is received, by rtnetlink_answer(). */
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* The last request. */
static struct {
    uint32_t seq;
    uint16_t type, flags;
    struct tcmsg tc; /* of one about a qdisc, class or filter, */
    char kind[16];   /* and its first attribute, if that is the kind */
} rtnetlink_asked;

struct rtnetlink_datagram {
    uint8_t *buf; /* to be filled */
    size_t room;
    uint32_t from; /* port id, 0: the kernel */
    bool cut;      /* it did not fit */
};

/* Puts the next datagram there: its bytes, or -1 and errno. */
static ssize_t rtnetlink_answer(struct rtnetlink_datagram *d);

static void
rtnetlink_take_tc(const uint8_t *message, size_t n)
{
    struct rtattr a = {0};
    size_t at = NLMSG_LENGTH(sizeof rtnetlink_asked.tc), kind = at + RTA_LENGTH(0);
    memset(rtnetlink_asked.kind, 0, sizeof rtnetlink_asked.kind);
    memset(&rtnetlink_asked.tc, 0, sizeof rtnetlink_asked.tc);
    if (n >= at)
        memcpy(&rtnetlink_asked.tc, message + NLMSG_HDRLEN, sizeof rtnetlink_asked.tc);
    if (n >= kind)
        memcpy(&a, message + at, sizeof a);
    if (a.rta_type == TCA_KIND && a.rta_len > RTA_LENGTH(0) && n >= at + a.rta_len &&
        RTA_PAYLOAD(&a) <= sizeof rtnetlink_asked.kind)
        memcpy(rtnetlink_asked.kind, message + kind, RTA_PAYLOAD(&a));
}

#define FOR_ALL __attribute__((visibility("default"))) /* else the libraries take the C library's */
FOR_ALL ssize_t sendmsg(int fd, const struct msghdr *h, int flags);
FOR_ALL ssize_t recvmsg(int fd, struct msghdr *h, int flags);

ssize_t
sendmsg(int fd, const struct msghdr *h, int flags)
{
    size_t n = 0;
    for (size_t i = 0; i < h->msg_iovlen; i++) {
        struct nlmsghdr nh;
        n += h->msg_iov[i].iov_len;
        if (h->msg_iov[i].iov_len < sizeof nh)
            continue;
        memcpy(&nh, h->msg_iov[i].iov_base, sizeof nh);
        rtnetlink_asked.seq = nh.nlmsg_seq;
        rtnetlink_asked.type = nh.nlmsg_type;
        rtnetlink_asked.flags = nh.nlmsg_flags;
        rtnetlink_take_tc(h->msg_iov[i].iov_base, h->msg_iov[i].iov_len);
    }
    return (ssize_t)n;
}

ssize_t
recvmsg(int fd, struct msghdr *h, int flags)
{
    struct rtnetlink_datagram d = {.buf = h->msg_iov[0].iov_base, .room = h->msg_iov[0].iov_len};
    struct sockaddr_nl from = {.nl_family = AF_NETLINK};
    ssize_t n = rtnetlink_answer(&d);
    from.nl_pid = d.from;
    h->msg_flags = d.cut ? MSG_TRUNC : 0;
    h->msg_controllen = 0;
    if (h->msg_name && h->msg_namelen >= sizeof from)
        memcpy(h->msg_name, &from, sizeof from);
    h->msg_namelen = sizeof from;
    return n;
}
