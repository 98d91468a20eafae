/* SPDX-License-Identifier: Apache-2.0 */
/* UDP as applications send it that leave segmentation to the kernel (UDP_SEGMENT), such as QUIC's.
 *
 *     udpgso -s PORT SECONDS            counts what comes to PORT, from 0.3 s after the first one on:
 *                                       prints "DATAGRAMS BITS_PER_SECOND"; gives up after 3 s of none
 *     udpgso ADDRESS PORT SECONDS       sends as fast as it goes
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#define DATAGRAM 1372 /* as much as the networks' MTU of 1,400 carries */
#define AT_ONCE  46   /* below 64 KB with the headers of any tunnel */
#define BATCH    64

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Datagrams of the right length that wait. */
static unsigned
receive(int fd)
{
    static uint8_t nothing[BATCH];
    static struct iovec room[BATCH];
    static struct mmsghdr m[BATCH];
    for (unsigned i = 0; i < BATCH; i++) {
        room[i] = (struct iovec){&nothing[i], 1};
        m[i].msg_hdr.msg_iov = &room[i];
        m[i].msg_hdr.msg_iovlen = 1;
    }
    int n = recvmmsg(fd, m, BATCH, MSG_TRUNC | MSG_WAITFORONE, NULL);
    unsigned right = 0;
    for (int i = 0; i < n; i++)
        right += m[i].msg_len == DATAGRAM;
    return right;
}

static int
count(int fd, struct sockaddr_in *at, double seconds)
{
    struct timeval patience = {.tv_sec = 3};
    int room = 4 << 20;
    at->sin_addr.s_addr = INADDR_ANY;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) ||
        setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) ||
        bind(fd, (struct sockaddr *)at, sizeof *at)) {
        perror("udpgso");
        return 1;
    }
    uint64_t n = 0;
    double took = 1;
    if (receive(fd)) {
        double start = now() + 0.3;
        while (now() < start)
            if (!receive(fd))
                break;
        start = now();
        do {
            unsigned got = receive(fd);
            if (!got)
                break;
            n += got;
        } while (now() < start + seconds);
        took = now() - start;
    }
    printf("%llu %.0f\n", (unsigned long long)n, (double)n * DATAGRAM * 8 / took);
    return 0;
}

static int
flood(int fd, const struct sockaddr_in *at, double seconds)
{
    static uint8_t data[DATAGRAM * AT_ONCE];
    int size = DATAGRAM;
    if (setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof size) ||
        connect(fd, (const struct sockaddr *)at, sizeof *at)) {
        perror("udpgso");
        return 1;
    }
    /* The receiver may not be there yet, or no longer: such errors end nothing. */
    for (double stop = now() + seconds; now() < stop;)
        if (send(fd, data, sizeof data, 0) < 0)
            usleep(100);
    return 0;
}

int
main(int argc, char **argv)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (argc != 4 || fd < 0) {
        fprintf(stderr, "usage: udpgso -s PORT SECONDS | ADDRESS PORT SECONDS\n");
        return 2;
    }
    at.sin_port = htons((uint16_t)atoi(argv[2]));
    if (!strcmp(argv[1], "-s"))
        return count(fd, &at, atof(argv[3]));
    if (inet_pton(AF_INET, argv[1], &at.sin_addr) != 1)
        return 2;
    return flood(fd, &at, atof(argv[3]));
}
