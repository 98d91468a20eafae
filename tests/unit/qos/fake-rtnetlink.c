/* SPDX-License-Identifier: Apache-2.0 */
/* To be included: the program's sendmsg and recvmsg, which libnl calls too, are those of a fake rtnetlink.
 * What is sent goes nowhere; the includer says what is received, by rtnetlink_answer(). */
#include <errno.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* The last request. */
static struct {
    uint32_t seq;
    uint16_t type, flags;
} rtnetlink_asked;

struct rtnetlink_datagram {
    uint8_t *buf; /* to be filled */
    size_t room;
    uint32_t from; /* port id, 0: the kernel */
    bool cut;      /* it did not fit */
};

/* Puts the next datagram there: its bytes, or -1 and errno. */
static ssize_t rtnetlink_answer(struct rtnetlink_datagram *d);

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
