/* SPDX-License-Identifier: Apache-2.0 */
/* Links and traffic for a switch in a virtual machine that has nothing but busybox (tests/cross/guest).
 *
 *     bed links N                             veth pairs h1-p1 ... hN-pN, up
 *     bed traffic SECONDS PORT=MBIT...        UDP from h1 to h2, to each PORT at this rate; prints
 *                                             the rate at which each arrives after two seconds more,
 *                                             and at which it was sent */
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netlink/route/link/veth.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define FRAME   1250 /* bytes: 10,000 bits */
#define WARM_UP 2.0
#define STREAMS 8
#define AT_ONCE 64

struct stream {
    uint16_t port;
    double mbit;
    uint64_t sent;             /* frames */
    uint64_t offered, arrived; /* bytes after the warm-up */
};

static void
die(const char *what)
{
    perror(what);
    exit(1);
}

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
bring_up(int fd, const char *name)
{
    struct ifreq r = {.ifr_flags = IFF_UP};
    snprintf(r.ifr_name, sizeof r.ifr_name, "%s", name);
    if (ioctl(fd, SIOCSIFFLAGS, &r))
        die(name);
}

static void
links(int n)
{
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct nl_sock *nl = nl_socket_alloc();
    if (!nl || nl_connect(nl, NETLINK_ROUTE))
        die("rtnetlink");
    for (int i = 1; i <= n; i++) {
        char host[IFNAMSIZ], port[IFNAMSIZ];
        snprintf(host, sizeof host, "h%d", i);
        snprintf(port, sizeof port, "p%d", i);
        int err = rtnl_link_veth_add(nl, host, port, getpid());
        if (err) {
            fprintf(stderr, "veth %s: %s\n", host, nl_geterror(err));
            exit(1);
        }
        bring_up(fd, host);
        bring_up(fd, port);
    }
    nl_socket_free(nl);
    close(fd);
}

static int
packet_socket(const char *name)
{
    int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_IP)), room = 1 << 20;
    struct sockaddr_ll a = {.sll_family = AF_PACKET,
                            .sll_protocol = htons(ETH_P_IP),
                            .sll_ifindex = (int)if_nametoindex(name)};
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a))
        die(name);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
    return fd;
}

static void
make_frame(uint8_t *f, uint16_t port)
{
    static const uint8_t head[] = {2,
                                   0,
                                   0,
                                   0,
                                   0,
                                   2,
                                   2,
                                   0,
                                   0,
                                   0,
                                   0,
                                   1,
                                   8,
                                   0, /* Ethernet */
                                   0x45,
                                   0,
                                   (FRAME - 14) >> 8,
                                   (FRAME - 14) & 255,
                                   0,
                                   0,
                                   0,
                                   0,
                                   64,
                                   17,
                                   0,
                                   0,
                                   10,
                                   0,
                                   0,
                                   1,
                                   10,
                                   0,
                                   0,
                                   2};
    uint32_t sum = 0;
    memset(f, 0, FRAME);
    memcpy(f, head, sizeof head);
    for (int i = 14; i < 34; i += 2)
        sum += (uint32_t)f[i] << 8 | f[i + 1];
    sum = (sum & 0xffff) + (sum >> 16);
    f[24] = (uint8_t)(~sum >> 8);
    f[25] = (uint8_t)~sum;
    f[36] = (uint8_t)(port >> 8);
    f[37] = (uint8_t)port;
    f[38] = (FRAME - 34) >> 8;
    f[39] = (FRAME - 34) & 255;
}

static void
receive(int fd, struct stream *s, int n, bool count)
{
    uint8_t f[2048];
    for (ssize_t len; (len = recv(fd, f, sizeof f, MSG_DONTWAIT)) > 0;)
        for (int i = 0; count && i < n && len >= 42; i++)
            if (s[i].port == (uint16_t)(f[36] << 8 | f[37]))
                s[i].arrived += (uint64_t)len;
}

static void
traffic(double seconds, struct stream *s, int n)
{
    int from = packet_socket("h1"), to = packet_socket("h2");
    uint8_t frame[STREAMS][FRAME];
    for (int i = 0; i < n; i++)
        make_frame(frame[i], s[i].port);
    double start = now(), counted = 0, t;
    while ((t = now() - start) < WARM_UP + seconds) {
        bool count = t >= WARM_UP;
        if (count && counted == 0)
            counted = t;
        for (int i = 0; i < n; i++) {
            uint64_t due = (uint64_t)(t * s[i].mbit * 1e6 / (FRAME * 8));
            if (due > s[i].sent + AT_ONCE) /* the guest did not run: that time is over */
                s[i].sent = due - AT_ONCE;
            for (; s[i].sent < due; s[i].sent++)
                if (send(from, frame[i], FRAME, MSG_DONTWAIT) == FRAME && count)
                    s[i].offered += FRAME;
        }
        struct pollfd p = {to, POLLIN, 0};
        poll(&p, 1, 2);
        receive(to, s, n, count);
    }
    for (int i = 0; i < n; i++)
        printf("rate %u %.3f offered %.3f\n", s[i].port,
               (double)s[i].arrived * 8 / 1e6 / (t - counted),
               (double)s[i].offered * 8 / 1e6 / (t - counted));
}

int
main(int argc, char **argv)
{
    struct stream s[STREAMS] = {{0}};
    int n = 0;
    if (argc == 3 && !strcmp(argv[1], "links")) {
        links(atoi(argv[2]));
        return 0;
    }
    for (int i = 3; i < argc && n < STREAMS; i++, n++) {
        char *rate = strchr(argv[i], '=');
        s[n].port = (uint16_t)atoi(argv[i]);
        s[n].mbit = rate ? atof(rate + 1) : 0;
    }
    if (!n || strcmp(argv[1], "traffic")) {
        fputs("usage: bed links N | bed traffic SECONDS PORT=MBIT...\n", stderr);
        return 2;
    }
    traffic(atof(argv[2]), s, n);
    return 0;
}
