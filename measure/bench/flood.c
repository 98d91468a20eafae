/* SPDX-License-Identifier: Apache-2.0 */
/* A hostile host: 60-byte frames that are work for a switch, at a rate, for measure/bench/isolation.
 *
 *     flood KIND RATE SECONDS IF        prints how many were sent
 *
 *     same        one frame again and again
 *     flows       each a new flow: random addresses and ports, UDP over IPv4
 *     fragments   random IPv4 fragments, at offsets that overlap, of datagrams that never end
 *     macs        each from a new Ethernet address, to one that nobody has
 */
#include "clock.h"
#include "frame.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define FRAME 60
#define BATCH 32
#define PAUSE 500000 /* ns; at most so many are late */

enum kind { SAME, FLOWS, FRAGMENTS, MACS, KINDS };
static const char *const names[KINDS] = {"same", "flows", "fragments", "macs"};

/* xorshift64: nothing here has to be secret */
static uint64_t
chance(void)
{
    static uint64_t x = UINT64_C(0x9e3779b97f4a7c15);
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x;
}

static void
make(uint8_t *f, enum kind kind)
{
    static const uint8_t head[FRAME] = {
        2,    0, 0, 0,  0, 0x99, 2,    0, 0,  0,  0, 3, 0x08, 0x00, /* Ethernet */
        0x45, 0, 0, 46, 0, 0,    0x40, 0, 64, 17, 0, 0, 10,   3,    0, 1, 10, 4, 0, 1, /* IPv4 */
        4,    1, 8, 1,  0, 26,   0,    0}; /* UDP, no checksum */
    uint64_t r = chance(), s = chance();
    memcpy(f, head, sizeof head);
    if (kind == FLOWS) {
        memcpy(f + 27, &r, 3);
        memcpy(f + 31, (uint8_t *)&r + 3, 3);
        memcpy(f + 34, &s, 4);
    } else if (kind == FRAGMENTS) {
        memcpy(f + 18, &r, 2);                                      /* identification */
        put16(f + 20, 0x2000 | (uint32_t)(s % 8 ? s >> 8 & 7 : 0)); /* more come */
        memcpy(f + 29, (uint8_t *)&r + 2, 1);
    } else if (kind == MACS) {
        memcpy(f + 7, &r, 5);
        memcpy(f + 1, (uint8_t *)&s, 5);
    }
    put_checksum(f + 14);
}

static unsigned
send_some(int fd, enum kind kind, unsigned n)
{
    static uint8_t frames[BATCH][FRAME];
    struct iovec v[BATCH];
    struct mmsghdr m[BATCH];
    memset(m, 0, sizeof m);
    for (unsigned i = 0; i < n; i++) {
        make(frames[i], kind);
        v[i] = (struct iovec){frames[i], FRAME};
        m[i].msg_hdr.msg_iov = &v[i];
        m[i].msg_hdr.msg_iovlen = 1;
    }
    int sent = sendmmsg(fd, m, n, 0);
    return sent > 0 ? (unsigned)sent : 0;
}

/* What was late is not caught up with: a machine that can't keep the rate isn't flooded in bursts. */
static void
flood(int fd, enum kind kind, double rate, double seconds)
{
    uint64_t now = now_ns(), end = now + (uint64_t)(seconds * 1e9), sent = 0;
    double due = 0;
    for (uint64_t before = now; now < end; before = now) {
        struct timespec pause = {.tv_nsec = PAUSE};
        nanosleep(&pause, NULL);
        now = now_ns();
        double more = (double)(now - before) * 1e-9 * rate;
        due = due + more < rate * 2e-3 ? due + more : rate * 2e-3;
        while (due >= 1) {
            unsigned n = due < BATCH ? (unsigned)due : BATCH;
            sent += send_some(fd, kind, n);
            due -= n;
        }
    }
    printf("%llu\n", (unsigned long long)sent);
}

int
main(int argc, char **argv)
{
    enum kind kind = SAME;
    while (argc == 5 && kind < KINDS && strcmp(argv[1], names[kind]))
        kind++;
    if (argc != 5 || kind == KINDS) {
        fprintf(stderr, "usage: %s same|flows|fragments|macs RATE SECONDS IF\n", argv[0]);
        return 2;
    }
    struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex(argv[4])};
    int fd = socket(AF_PACKET, SOCK_RAW, 0);
    if (fd < 0 || !at.sll_ifindex || bind(fd, (struct sockaddr *)&at, sizeof at)) {
        perror(argv[4]);
        return 1;
    }
    flood(fd, kind, strtod(argv[2], NULL), strtod(argv[3], NULL));
    return 0;
}
