/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of a port: that packets reach the class they name, whatever sockets there are; and a TCP
 * connection through two ports, super-packets whole. */
#include "fixture.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct port_io *w;
static uint8_t frame[FRAME_ROOM];

static int
set_up(void **state)
{
    fixture_pair(1500);
    w = port_io_new(0, 1 << 20);
    return w ? 0 : -1;
}

static int
tear_down(void **state)
{
    port_io_free(w);
    fixture_drop();
    port_global_exit();
    return 0;
}

static void
classes(const char *dev, unsigned n)
{
    FILE *f = popen("tc -batch -", "w");
    assert_non_null(f);
    fprintf(f, "qdisc add dev %s root handle 1: htb default fffe\n", dev);
    for (unsigned q = 1; q <= n; ++q)
        fprintf(f, "class add dev %s parent 1: classid 1:%x htb rate 1gbit quantum 2000\n", dev, q);
    fprintf(f, "class add dev %s parent 1: classid 1:fffe htb rate 1gbit quantum 2000\n", dev);
    assert_int_equal(pclose(f), 0);
}

/* Packets that class 1:q has sent. */
static long
sent_by(const char *dev, unsigned q)
{
    return fixture_ask("bytes ", "tc -s class show dev %s classid 1:%x", dev, q);
}

static void
send_to(struct port *p, uint32_t queue, unsigned n)
{
    fixture_frame(frame, 100);
    for (unsigned i = 0; i < n; ++i) {
        struct packet pkt = {.data = frame, .len = 100, .queue = queue};
        assert_int_equal(port_tx(p, w, &pkt), 0);
    }
}

static void
priorities(void **state)
{
    struct port *p = fixture_port("sw", NULL, 1 << 20);
    struct port_counters c;
    classes("sw", 3);
    assert_int_equal(port_queue_set(p, 1, PORT_PRIORITY(1), 0), 0);
    assert_int_equal(port_queue_set(p, 2, PORT_PRIORITY(2), 0), 0);
    assert_int_equal(port_queue_set(p, 3, PORT_PRIORITY(3), 0), 0);
    assert_int_equal(port_queue_set(p, 3, PORT_PRIORITY(3), 0), 0);
    assert_int_equal(port_queue_set(p, OFP_QOS_QUEUE_MAX, PORT_PRIORITY(OFP_QOS_QUEUE_MAX), 0), 0);
    assert_true(port_queue_set(p, OFP_QOS_QUEUE_MAX + 1, PORT_PRIORITY(OFP_QOS_QUEUE_MAX + 1), 0) <
                0);
    port_queue_del(p, 3);
    port_queue_del(p, OFP_QOS_QUEUE_MAX + 1);
    send_to(p, 1, 5);
    send_to(p, 2, 3);
    send_to(p, 0, 2);
    send_to(p, 1, 1);
    send_to(p, 3, 1);     /* no more */
    send_to(p, 9, 1);     /* never was */
    send_to(p, 70000, 1); /* can't be */
    port_io_flush(w);
    assert_int_equal(sent_by("sw", 1), 6);
    assert_int_equal(sent_by("sw", 2), 3);
    assert_int_equal(sent_by("sw", 3), 0);
    assert_int_equal(sent_by("sw", 0xfffe), 5);
    port_read_counters(p, &c);
    assert_int_equal(c.tx_no_queue, 3);
    assert_int_equal(c.queue_sockets, 2);
    assert_int_equal(c.tx_packets, 14);
    send_to(p, OFP_QOS_QUEUE_MAX, 1); /* there for us, not for the kernel: its default class */
    port_io_flush(w);
    assert_int_equal(sent_by("sw", 0xfffe), 6);
    port_close(p);
}

/* More queues than sockets, on two ports: each packet still finds its class. */
static void
many(struct port *p[2], unsigned n, unsigned rounds)
{
    static const char *const dev[2] = {"sw", "host"};
    for (unsigned k = 0; k < 2; ++k) {
        classes(dev[k], n);
        for (uint32_t q = 1; q <= n; ++q)
            assert_int_equal(port_queue_set(p[k], q, PORT_PRIORITY(q), 0), 0);
    }
    for (unsigned round = 0; round < rounds; ++round)
        for (uint32_t q = 1; q <= n; ++q) {
            send_to(p[0], q, 2);
            send_to(p[1], 1 + (q * 7) % n, 1);
            if (q % 50 == 0)
                port_io_flush(w);
        }
    port_io_flush(w);
    for (uint32_t q = 1; q <= n; q += n / 20) {
        assert_int_equal(sent_by("sw", q), 2 * rounds);
        assert_int_equal(sent_by("host", q), rounds);
    }
    assert_int_equal(sent_by("sw", 0xfffe), 0);
    assert_int_equal(sent_by("host", 0xfffe), 0);
}

static void
more_than_sockets(void **state)
{
    struct port *p[2] = {fixture_port("sw", NULL, 1 << 20), fixture_port("host", NULL, 1 << 20)};
    struct port_counters c[2];
    many(p, 400, 2);
    port_read_counters(p[0], &c[0]);
    port_read_counters(p[1], &c[1]);
    assert_int_equal(c[0].tx_no_queue + c[1].tx_no_queue, 0);
    assert_int_equal(c[0].queue_sockets + c[1].queue_sockets, 128);
    port_close(p[0]); /* its sockets may go to the other */
    send_to(p[1], 5, 200);
    port_io_flush(w);
    port_close(p[1]);
}

static void
no_descriptors(void **state)
{
    struct port *p[2] = {fixture_port("sw", NULL, 1 << 20), fixture_port("host", NULL, 1 << 20)};
    struct port_counters c[2];
    struct rlimit old, few;
    int free_fd = dup(0);
    close(free_fd);
    getrlimit(RLIMIT_NOFILE, &old);
    few = old;
    few.rlim_cur = (rlim_t)free_fd; /* none at all */
    setrlimit(RLIMIT_NOFILE, &few);
    assert_int_equal(port_queue_set(p[0], 1, PORT_PRIORITY(1), 0), 0);
    send_to(p[0], 1, 1);
    port_io_flush(w);
    few.rlim_cur = (rlim_t)free_fd + 1;
    setrlimit(RLIMIT_NOFILE, &few);
    send_to(p[0], 1, 1);
    port_io_flush(w);
    few.rlim_cur = (rlim_t)free_fd + 3; /* less than what was asked for */
    setrlimit(RLIMIT_NOFILE, &few);
    port_read_counters(p[0], &c[0]);
    uint64_t lost = c[0].tx_no_queue; /* none where the kernel takes priorities with messages */
    assert_true(lost <= 1);
    assert_int_equal(c[0].tx_packets, 2);
    setrlimit(RLIMIT_NOFILE, &old);
    many(p, 40, 2);
    port_read_counters(p[0], &c[0]);
    port_read_counters(p[1], &c[1]);
    assert_int_equal(c[0].tx_no_queue + c[1].tx_no_queue, lost);
    assert_int_equal(c[0].queue_sockets + c[1].queue_sockets, 1);
    port_close(p[0]);
    port_close(p[1]);
}

/* A packet of MPLS, which we cut, or one whose checksum starts where the kernel refuses it. */
static void
send_super(struct port *p, uint32_t queue, uint32_t len, uint16_t mss)
{
    struct packet pkt = {.data = frame, .len = len, .queue = queue};
    fixture_frame(frame, len);
    if (mss) {
        frame[12] = 0x88;
        frame[13] = 0x47;
        pkt.vnet = (struct virtio_net_hdr){.gso_type = VIRTIO_NET_HDR_GSO_TCPV4, .gso_size = mss};
    } else {
        pkt.vnet = (struct virtio_net_hdr){.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
                                           .csum_start = (uint16_t)(len - 1)};
    }
    assert_int_equal(port_tx(p, w, &pkt), 0);
}

/* A queue that shares the plain socket: what we make of its packets has its priority, too. */
static void
shared_socket(void **state)
{
    struct port *p = fixture_port("sw", NULL, 1 << 20);
    struct port_counters c;
    struct rlimit old, none;
    int free_fd = dup(0);
    close(free_fd);
    getrlimit(RLIMIT_NOFILE, &old);
    none = old;
    none.rlim_cur = (rlim_t)free_fd;
    classes("sw", 1);
    assert_int_equal(port_queue_set(p, 1, PORT_PRIORITY(1), 0), 0);
    setrlimit(RLIMIT_NOFILE, &none);
    send_super(p, 1, 14 + 10 * 1000, 1000);
    send_super(p, 1, 100, 0);
    port_io_flush(w);
    setrlimit(RLIMIT_NOFILE, &old);
    port_read_counters(p, &c);
    assert_int_equal(c.tx_packets, 11);
    assert_int_equal(c.tx_bytes, 10 * 1014 + 100);
    assert_int_equal(c.tx_dropped, 0);
    assert_int_equal(sent_by("sw", c.tx_no_queue ? 0xfffe : 1), 11);
    port_close(p);
}

/* A queue that is full drops; our count is the qdisc's: nothing is sent twice.  Where the reason
 * must be asked for (a partial checksum could be the reason, too), that is once, not each time. */
static void
full_of(uint8_t flags, long asked)
{
    struct port *p = fixture_port("sw", NULL, 1 << 20);
    struct port_counters c;
    fixture_run("tc qdisc replace dev sw root handle 5: tbf rate 64kbit burst 2000 limit 3000");
    fixture_frame(frame, 100);
    for (unsigned i = 0; i < 2000; ++i) {
        struct packet pkt = {.data = frame, .len = 100};
        pkt.vnet = (struct virtio_net_hdr){.flags = flags, .csum_start = 34, .csum_offset = 6};
        assert_int_equal(port_tx(p, w, &pkt), 0);
        if (i % 100 == 99)
            port_io_flush(w);
    }
    port_read_counters(p, &c);
    assert_int_equal(c.tx_packets + c.tx_dropped, 2000);
    assert_true(c.tx_dropped > 1800);
    long dropped = fixture_ask("(dropped ", "tc -s qdisc show dev sw") - (long)c.tx_dropped;
    assert_true(dropped >= 0 && dropped <= asked);
    port_close(p);
    fixture_run("tc qdisc del dev sw root");
}

static void
full(void **state)
{
    full_of(0, 0);
    full_of(VIRTIO_NET_HDR_F_NEEDS_CSUM, 3);
    assert_true(port_io_drops(w)[DROP_tx_full] > 3600);
}

/* ------------------------------------------------------------------ a TCP connection */

#define TCP_BYTES (32 << 20)

static bool
move_all(int fd, bool receive)
{
    static char buf[1 << 18];
    size_t all = 0;
    while (all < TCP_BYTES) {
        ssize_t n = receive ? recv(fd, buf, sizeof buf, 0) : send(fd, buf, sizeof buf, 0);
        if (n <= 0)
            break;
        all += (size_t)n;
    }
    return all >= TCP_BYTES;
}

static bool
connection(bool server)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(5001)};
    a.sin_addr.s_addr = inet_addr("10.9.0.2");
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct timeval limit = {.tv_sec = 10};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (server) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (bind(fd, (struct sockaddr *)&a, sizeof a) || listen(fd, 1))
            return false;
        fd = accept(fd, NULL, NULL);
        return fd >= 0 && move_all(fd, true);
    }
    for (int i = 0; i < 50 && connect(fd, (struct sockaddr *)&a, sizeof a); ++i)
        usleep(100000);
    return move_all(fd, false);
}

/* A host: a process in a namespace of its own, which gets `dev`. */
static pid_t
host(const char *dev, const char *address, bool server)
{
    int up[2], go[2];
    char byte = 0;
    assert_int_equal(pipe(up) | pipe(go), 0);
    pid_t pid = fork();
    if (pid) {
        assert_int_equal(read(up[0], &byte, 1), 1);
        fixture_run("ip link set %s netns %d", dev, pid);
        assert_int_equal(write(go[1], &byte, 1), 1);
        close(up[0]), close(up[1]), close(go[0]), close(go[1]);
        return pid;
    }
    char command[200];
    snprintf(command, sizeof command, "ip addr add %s/24 dev %s && ip link set %s up", address, dev,
             dev);
    bool ok = !unshare(CLONE_NEWNET) && write(up[1], &byte, 1) == 1 && read(go[0], &byte, 1) == 1 &&
              !system(command) && connection(server);
    _exit(ok ? 0 : 1);
}

static uint32_t longest;

static void
relay(struct port *from, struct port *to)
{
    static struct packet batch[PORT_BATCH];
    unsigned n = port_rx(from, w, batch, PORT_BATCH);
    for (unsigned i = 0; i < n; ++i) {
        longest = batch[i].len > longest ? batch[i].len : longest;
        batch[i].queue = 1;
        assert_int_equal(port_tx(to, w, &batch[i]), 0);
    }
    port_io_flush(w);
    port_rx_done(from, w);
}

static void
tcp(void **state)
{
    fixture_run("ip link add sw2 type veth peer name host2");
    struct port *p[2] = {fixture_port("sw", NULL, 0), fixture_port("sw2", NULL, 0)};
    struct port_counters c;
    struct pollfd f[2] = {{.fd = port_rx_fd(p[0], 0), .events = POLLIN},
                          {.fd = port_rx_fd(p[1], 0), .events = POLLIN}};
    port_queue_set(p[1], 1, PORT_PRIORITY(1), 0);
    pid_t pid[2] = {host("host2", "10.9.0.2", true), host("host", "10.9.0.1", false)};
    longest = 0;
    int status, left = 2;
    while (left) {
        poll(f, 2, 100);
        relay(p[0], p[1]);
        relay(p[1], p[0]);
        for (int i = 0; i < 2; ++i)
            if (pid[i] && waitpid(pid[i], &status, WNOHANG) == pid[i]) {
                assert_int_equal(status, 0);
                pid[i] = 0;
                --left;
            }
    }
    assert_true(longest > 30000);
    port_read_counters(p[1], &c);
    assert_int_equal(c.tx_dropped, 0);
    assert_true(c.tx_bytes > TCP_BYTES);
    assert_true(c.tx_packets > TCP_BYTES / 1500); /* counted as segments */
    port_read_counters(p[0], &c);
    assert_int_equal(c.rx_dropped, 0);
    port_close(p[0]);
    port_close(p[1]);
    fixture_run("ip link del sw2 2>/dev/null || true"); /* a host may have taken it away */
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(priorities),     TEST(more_than_sockets),
        TEST(no_descriptors), TEST(shared_socket),
        TEST(full),           TEST(tcp),
    };
    if (!fixture_enter())
        return 77;
    port_global_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
