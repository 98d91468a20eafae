/* SPDX-License-Identifier: Apache-2.0 */
/* Round trips of small UDP packets, one at a time.
 *
 *     rtt -s PORT                  answers on PORT until it is ended
 *     rtt ADDRESS PORT SECONDS [GAP_US]
 *                                  prints "N P50 P90 P99" (count, microseconds); waits GAP_US
 *                                  between two (0)
 */
#include "clock.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SAMPLES (1u << 22)

static int
serve(int fd, struct sockaddr_in *at)
{
    char buf[64];
    at->sin_addr.s_addr = INADDR_ANY;
    if (bind(fd, (struct sockaddr *)at, sizeof *at)) {
        perror("bind");
        return 1;
    }
    for (;;) {
        struct sockaddr_in from;
        socklen_t len = sizeof from;
        ssize_t n = recvfrom(fd, buf, sizeof buf, 0, (struct sockaddr *)&from, &len);
        if (n >= 0)
            sendto(fd, buf, (size_t)n, 0, (struct sockaddr *)&from, len);
    }
}

static int
by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* One packet there and back; 0: lost. */
static uint32_t
once(int fd, uint32_t number)
{
    uint32_t got = ~number;
    uint64_t start = now_ns();
    if (send(fd, &number, sizeof number, 0) < 0)
        return 0;
    while (recv(fd, &got, sizeof got, 0) == (ssize_t)sizeof got)
        if (got == number)
            return (uint32_t)(now_ns() - start);
    return 0;
}

static int
ask(int fd, double seconds, unsigned gap_us)
{
    uint32_t *v = malloc(SAMPLES * sizeof *v), n = 0, number = 0;
    if (!v)
        return 1;
    uint64_t end = now_ns() + (uint64_t)(seconds * 1e9);
    for (int i = 0; i < 10; ++i) /* addresses are resolved, caches filled */
        once(fd, number++);
    while (now_ns() < end && n < SAMPLES) {
        uint32_t ns = once(fd, number++);
        if (ns)
            v[n++] = ns;
        if (gap_us)
            usleep(gap_us);
    }
    if (n) {
        qsort(v, n, sizeof *v, by_value);
        printf("%u %.2f %.2f %.2f\n", n, v[n / 2] / 1e3, v[n - n / 10 - 1] / 1e3,
               v[n - n / 100 - 1] / 1e3);
    }
    free(v);
    return !n;
}

int
main(int argc, char **argv)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    struct timeval patience = {.tv_usec = 200000};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (argc < 3 || fd < 0) {
        fprintf(stderr, "usage: %s -s PORT | ADDRESS PORT SECONDS [GAP_US]\n", argv[0]);
        return 2;
    }
    at.sin_port = htons((uint16_t)atoi(argv[2]));
    if (!strcmp(argv[1], "-s"))
        return serve(fd, &at);
    if (argc < 4 || inet_pton(AF_INET, argv[1], &at.sin_addr) != 1 ||
        connect(fd, (struct sockaddr *)&at, sizeof at)) {
        perror(argv[1]);
        return 1;
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return ask(fd, strtod(argv[3], NULL), argc > 4 ? (unsigned)atoi(argv[4]) : 0);
}
