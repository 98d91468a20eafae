/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <shared/clock.h>

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const uint8_t destination[ETH_ALEN] = {0x02, 0x55, 0xaa, 0x00, 0x00, 0x01};

static void
write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    if (!f)
        return;
    fputs(text, f);
    fclose(f);
}

/* An emulator of another processor may hand packet sockets through without their rings. */
static bool
have_rings(void)
{
    int fd = socket(AF_PACKET, SOCK_RAW, 0), version = TPACKET_V2;
    bool have = fd >= 0 && !setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version);
    if (!have)
        printf("skipped: no ring of a packet socket: %s\n", strerror(errno));
    if (fd >= 0)
        close(fd);
    return have;
}

bool
fixture_enter(void)
{
    if (geteuid()) {
        puts("skipped: needs root");
        return false;
    }
    if (unshare(CLONE_NEWNET)) {
        printf("skipped: no network namespace: %s\n", strerror(errno));
        return false;
    }
    if (!have_rings())
        return false;
    write_file("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
    write_file("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    return true;
}

void
fixture_run(const char *fmt, ...)
{
    char command[500];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(command, sizeof command, fmt, ap);
    va_end(ap);
    if (system(command))
        fail_msg("failed: %s", command);
}

long
fixture_ask(const char *word, const char *fmt, ...)
{
    char command[500], line[500];
    long found = -1;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(command, sizeof command, fmt, ap);
    va_end(ap);
    FILE *f = popen(command, "r");
    while (f && fgets(line, sizeof line, f)) {
        char *at = strstr(line, word);
        if (at && found < 0)
            found = strtol(at + strlen(word), NULL, 10);
    }
    if (f)
        pclose(f);
    return found;
}

void
fixture_pair(unsigned mtu)
{
    fixture_run("ip link add sw type veth peer name host");
    fixture_run("ip link set sw mtu %u && ip link set host mtu %u", mtu, mtu);
    fixture_run("ip link set host up");
}

void
fixture_up(void)
{
    const struct timespec a_while = {.tv_nsec = 20000000};
    fixture_run("ip link set sw up");
    for (unsigned i = 0; i < 1500; i++) {
        if (fixture_ask("state UP", "ip link show sw") >= 0 &&
            fixture_ask("state UP", "ip link show host") >= 0)
            return;
        nanosleep(&a_while, NULL);
    }
    fail_msg("the interfaces are not up after 30 seconds");
}

void
fixture_drop(void)
{
    fixture_run("ip link del sw 2>/dev/null || true"); /* may have gone with its other end */
}

struct port *
fixture_port(const char *name, const char *backend, size_t ring_bytes)
{
    struct port_config c = {.port_no = 7, .backend = backend, .ring_bytes = ring_bytes};
    struct port *p = NULL;
    char why[200] = "";
    snprintf(c.name, sizeof c.name, "%s", name);
    int err = port_open(&c, &p, why, sizeof why);
    if (err)
        fail_msg("port_open: %d %s", err, why);
    return p;
}

int
fixture_raw(const char *name, bool vnet)
{
    int one = 1;
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0);
    struct sockaddr_ll a = {.sll_family = AF_PACKET,
                            .sll_protocol = htons(ETH_P_ALL),
                            .sll_ifindex = (int)if_nametoindex(name)};
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &one, sizeof one), 0);
    assert_int_equal(setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one), 0);
    if (vnet)
        assert_int_equal(setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof one), 0);
    int room = 32 << 20;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

void
fixture_send(int fd, const void *frame, size_t len)
{
    ssize_t n = send(fd, frame, len, 0);
    if (n != (ssize_t)len)
        fail_msg("send of %zu: %zd %s", len, n, strerror(errno));
}

/* musl's CMSG_NXTHDR compares a size with a difference of pointers. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare"
static size_t
put_tag(uint8_t *frame, size_t len, struct msghdr *m)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        struct tpacket_auxdata aux;
        if (c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA)
            continue;
        memcpy(&aux, CMSG_DATA(c), sizeof aux);
        if (!(aux.tp_status & TP_STATUS_VLAN_VALID))
            continue;
        memmove(frame + 16, frame + 12, len - 12);
        frame[12] = (uint8_t)(aux.tp_vlan_tpid >> 8);
        frame[13] = (uint8_t)aux.tp_vlan_tpid;
        frame[14] = (uint8_t)(aux.tp_vlan_tci >> 8);
        frame[15] = (uint8_t)aux.tp_vlan_tci;
        return len + 4;
    }
    return len;
}
#pragma GCC diagnostic pop

size_t
fixture_receive(int fd, uint8_t *frame, int timeout_ms)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
    } control;
    struct pollfd f = {.fd = fd, .events = POLLIN};
    for (;;) {
        struct iovec v = {frame, FRAME_ROOM};
        struct msghdr m = {.msg_iov = &v,
                           .msg_iovlen = 1,
                           .msg_control = &control,
                           .msg_controllen = sizeof control};
        ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT);
        if (n >= ETH_HLEN && !memcmp(frame, destination, ETH_ALEN))
            return put_tag(frame, (size_t)n, &m);
        if (n < 0 && poll(&f, 1, timeout_ms) != 1)
            return 0;
    }
}

unsigned
fixture_rx(struct port *p, struct port_io *w, struct packet *out, int timeout_ms)
{
    struct pollfd f = {.fd = port_rx_fd(p, 0), .events = POLLIN};
    const uint64_t end = clock_ns() + (uint64_t)timeout_ms * 1000000;
    unsigned n;
    /* A ring of blocks is readable a little before its packets are. */
    while (!(n = port_rx(p, w, out, PORT_BATCH)) && clock_ns() < end)
        poll(&f, 1, 10);
    return n;
}

void
fixture_frame(uint8_t *frame, size_t len)
{
    for (size_t i = 0; i < len; ++i)
        frame[i] = (uint8_t)(i * 7 + len);
    memcpy(frame, destination, ETH_ALEN);
    memcpy(frame + 6, "\x02\x55\xaa\x00\x00\x02\x88\xb5", 8);
}
