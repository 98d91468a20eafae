/* SPDX-License-Identifier: Apache-2.0 */
/* Numbered frames: what arrived, and what was lost, came twice or in another order.
 *
 *   numbered send IFNAME COUNT RATE [FLOWS]      a JSON object with what was sent
 *   numbered hear IFNAME COUNT QUIET LONGEST     "ready", then a JSON object with what was heard
 *
 * Frames are UDP from 10.88.0.1 to 10.88.0.2; frame i has source port 5000 + i % FLOWS, so that each
 * flow may keep its own order.  The listener ends when nothing has come for QUIET seconds, once
 * something had, or after LONGEST seconds: a frame that comes twice may do so late.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

#define FRAME      64
#define BATCH      64
#define MOST       (1u << 26) /* frames */
#define FLOWS      1024
#define STEP_NS    100000 /* between turns of the sender: 10 frames at 100,000 a second */
#define BUFFER     (256 << 20)
#define GAPS       8 /* that are told */
#define OFFSET     42
#define MAGIC      0x4e554d42u
#define FIRST_PORT 5000
#define DST_PORT   5001

static uint64_t
now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void
sleep_until(uint64_t at)
{
    struct timespec t = {.tv_sec = (time_t)(at / 1000000000), .tv_nsec = (long)(at % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

static void
put16(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static void
put32(uint8_t *p, uint32_t v)
{
    put16(p, v >> 16);
    put16(p + 2, v);
}

static uint32_t
get32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int
die(const char *what)
{
    fprintf(stderr, "numbered: %s: %s\n", what, strerror(errno));
    return 1;
}

/* A packet socket on an interface; protocol 0 hears nothing.  -1 with errno. */
static int
packet_socket(const char *ifname, int protocol)
{
    unsigned index = if_nametoindex(ifname);
    if (!index)
        return -1;
    int s = socket(AF_PACKET, SOCK_RAW, 0);
    if (s < 0)
        return -1;
    int one = 1, room = BUFFER;
    setsockopt(s, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one);
    setsockopt(s, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    struct sockaddr_ll a = {.sll_family = AF_PACKET,
                            .sll_ifindex = (int)index,
                            .sll_protocol = htons((uint16_t)protocol)};
    return bind(s, (struct sockaddr *)&a, sizeof a) ? -1 : s;
}

/* ------------------------------------------------------------------ the sender */

static void
make_frame(uint8_t *f, uint32_t number, uint32_t flows)
{
    /* clang-format off */
    static const uint8_t head[OFFSET] = {
        2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00,                                 /* Ethernet */
        0x45, 0, 0, FRAME - 14, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 88, 0, 1, 10, 88, 0, 2, /* IPv4 */
        0, 0, DST_PORT >> 8, DST_PORT & 255, 0, FRAME - 34, 0, 0};                      /* UDP */
    /* clang-format on */
    memset(f, 0, FRAME);
    memcpy(f, head, sizeof head);
    uint32_t sum = 0;
    for (int i = 14; i < 34; i += 2)
        sum += (uint32_t)f[i] << 8 | f[i + 1];
    sum = (sum & 0xffff) + (sum >> 16);
    put16(f + 24, ~((sum & 0xffff) + (sum >> 16)));
    put16(f + 34, FIRST_PORT + number % flows);
    put32(f + OFFSET, MAGIC);
    put32(f + OFFSET + 4, number);
    put32(f + OFFSET + 8, ~number);
    put32(f + OFFSET + 12, flows);
}

/* What of a batch the kernel did not take is tried again: a frame is either sent or not. */
static int
send_batch(int s, uint8_t (*frames)[FRAME], unsigned n, uint64_t *refused)
{
    struct iovec io[BATCH];
    struct mmsghdr m[BATCH];
    memset(m, 0, sizeof m);
    for (unsigned i = 0; i < n; i++) {
        io[i] = (struct iovec){frames[i], FRAME};
        m[i].msg_hdr.msg_iov = &io[i];
        m[i].msg_hdr.msg_iovlen = 1;
    }
    for (unsigned sent = 0; sent < n;) {
        int k = sendmmsg(s, m + sent, n - sent, 0);
        if (k > 0)
            sent += (unsigned)k;
        else if (errno == ENOBUFS || errno == EAGAIN)
            ++*refused;
        else if (errno != EINTR)
            return -1;
    }
    return 0;
}

static int
sender(const char *ifname, uint32_t count, double rate, uint32_t flows)
{
    int s = packet_socket(ifname, 0);
    if (s < 0)
        return die(ifname);
    uint8_t frames[BATCH][FRAME];
    uint64_t start = now_ns(), at = start, refused = 0;
    uint32_t sent = 0;
    while (sent < count) {
        double passed = (double)(now_ns() - start) / 1e9;
        uint64_t due = (uint64_t)(passed * rate) + 1;
        due = due < count ? due : count;
        while (sent < due) {
            unsigned n = 0;
            for (; n < BATCH && sent + n < due; n++)
                make_frame(frames[n], sent + n, flows);
            if (send_batch(s, frames, n, &refused))
                return die("send");
            sent += n;
        }
        at += STEP_NS;
        sleep_until(at);
    }
    double seconds = (double)(now_ns() - start) / 1e9;
    printf("{\"sent\": %u, \"seconds\": %.3f, \"rate\": %.0f, \"refused\": %llu}\n", sent, seconds,
           sent / seconds, (unsigned long long)refused);
    return 0;
}

/* ------------------------------------------------------------------ the listener */

struct heard {
    uint8_t *seen; /* by number */
    uint64_t different, duplicated, reordered, foreign, damaged;
    uint32_t highest, farthest;
    bool any;
    uint32_t latest[FLOWS]; /* of each flow, + 1 */
    uint64_t last_ns, longest_pause;
};

static void
hear(struct heard *h, const uint8_t *f, int len, uint64_t now)
{
    if (len < FRAME || f[12] != 8 || f[13] || get32(f + OFFSET) != MAGIC) {
        ++h->foreign;
        return;
    }
    uint32_t i = get32(f + OFFSET + 4), flows = get32(f + OFFSET + 12);
    if (~i != get32(f + OFFSET + 8) || i >= MOST || !flows || flows > FLOWS) {
        ++h->damaged;
        return;
    }
    if (h->any && now - h->last_ns > h->longest_pause)
        h->longest_pause = now - h->last_ns;
    h->last_ns = now;
    h->any = true;
    if (h->seen[i]) {
        ++h->duplicated;
        return;
    }
    h->seen[i] = 1;
    ++h->different;
    uint32_t *latest = &h->latest[i % flows];
    if (i + 1 < *latest) {
        ++h->reordered;
        if (*latest - 1 - i > h->farthest)
            h->farthest = *latest - 1 - i;
    } else {
        *latest = i + 1;
    }
    if (i > h->highest)
        h->highest = i;
}

/* Where frames are missing: the first few gaps */
static void
tell_gaps(const struct heard *h, uint32_t count)
{
    unsigned told = 0;
    printf("\"gaps\": [");
    for (uint32_t i = 0; i < count && told < GAPS; i++) {
        if (h->seen[i])
            continue;
        uint32_t first = i;
        while (i < count && !h->seen[i])
            ++i;
        printf("%s[%u, %u]", told++ ? ", " : "", first, i - 1);
    }
    printf("]");
}

static void
tell(const struct heard *h, uint32_t count, unsigned socket_drops)
{
    printf("{\"heard\": %llu, \"lost\": %llu, \"duplicated\": %llu, \"reordered\": %llu, "
           "\"farthest\": %u, \"damaged\": %llu, \"foreign\": %llu, \"socket_drops\": %u, "
           "\"pause_ms\": %.1f, ",
           (unsigned long long)h->different, (unsigned long long)(count - h->different),
           (unsigned long long)h->duplicated, (unsigned long long)h->reordered, h->farthest,
           (unsigned long long)h->damaged, (unsigned long long)h->foreign, socket_drops,
           (double)h->longest_pause / 1e6);
    tell_gaps(h, count);
    printf("}\n");
}

static int
listener(const char *ifname, uint32_t count, double quiet, double longest)
{
    static struct heard h;
    static uint8_t frames[BATCH][2048];
    int s = packet_socket(ifname, ETH_P_ALL);
    if (s < 0)
        return die(ifname);
    h.seen = mmap(NULL, MOST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (h.seen == MAP_FAILED)
        return die("memory");
    printf("ready\n");
    fflush(stdout);
    uint64_t start = now_ns(), now = start;
    while ((double)(now - start) < longest * 1e9 &&
           (!h.any || (double)(now - h.last_ns) < quiet * 1e9)) {
        struct pollfd p = {.fd = s, .events = POLLIN};
        int ready = poll(&p, 1, 20);
        now = now_ns();
        if (ready <= 0)
            continue;
        struct iovec io[BATCH];
        struct mmsghdr m[BATCH];
        memset(m, 0, sizeof m);
        for (int i = 0; i < BATCH; i++) {
            io[i] = (struct iovec){frames[i], sizeof frames[i]};
            m[i].msg_hdr.msg_iov = &io[i];
            m[i].msg_hdr.msg_iovlen = 1;
        }
        int n = recvmmsg(s, m, BATCH, MSG_DONTWAIT, NULL);
        for (int i = 0; i < n; i++)
            hear(&h, frames[i], (int)m[i].msg_len, now);
    }
    struct tpacket_stats st = {0};
    socklen_t len = sizeof st;
    getsockopt(s, SOL_PACKET, PACKET_STATISTICS, &st, &len);
    tell(&h, count, st.tp_drops);
    return 0;
}

int
main(int argc, char **argv)
{
    uint32_t count = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;
    if (count && count < MOST && (argc == 5 || argc == 6) && !strcmp(argv[1], "send")) {
        uint32_t flows = argc == 6 ? (uint32_t)strtoul(argv[5], NULL, 10) : 1;
        double rate = strtod(argv[4], NULL);
        if (flows && flows <= FLOWS && rate >= 1)
            return sender(argv[2], count, rate, flows);
    }
    if (count && count < MOST && argc == 6 && !strcmp(argv[1], "hear"))
        return listener(argv[2], count, strtod(argv[4], NULL), strtod(argv[5], NULL));
    fprintf(stderr, "usage: numbered send IFNAME COUNT RATE [FLOWS]\n"
                    "       numbered hear IFNAME COUNT QUIET LONGEST\n");
    return 2;
}
