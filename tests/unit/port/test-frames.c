/* SPDX-License-Identifier: Apache-2.0 */
/* Frames through a port, both ways: lengths, tags, checksums, counters, flags. */
#include "fixture.h"

#include <oflib/openflow.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct port_io *w;
static uint8_t sent[FRAME_ROOM], got[FRAME_ROOM];
static struct packet batch[PORT_BATCH];

static int
set_up(void **state)
{
    fixture_pair(65535);
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
transmit(struct port *p, uint8_t *frame, size_t len)
{
    struct packet pkt = {.data = frame, .len = (uint32_t)len};
    assert_int_equal(port_tx(p, w, &pkt), 0);
    assert_true(pkt.shared);
    port_io_flush(w);
}

static void
receive_one(struct port *p, const uint8_t *frame, size_t len)
{
    assert_int_equal(fixture_rx(p, w, batch, 20000), 1);
    assert_int_equal(batch[0].len, len);
    assert_int_equal(batch[0].wire_len, len);
    assert_int_equal(batch[0].in_port, 7);
    assert_true(batch[0].headroom >= PACKET_HEADROOM - 4);
    assert_memory_equal(batch[0].data, frame, len);
    memset(batch[0].data - batch[0].headroom, 0xee, batch[0].headroom); /* ours to write */
    port_rx_done(p, w);
}

static void
both_ways(const char *backend, const size_t *lengths, size_t n)
{
    struct port *p = fixture_port("sw", backend, 1 << 20);
    int fd = fixture_raw("host", false);
    struct port_counters c;
    uint64_t bytes = 0;
    for (int round = 0; round < 3; ++round)
        for (size_t i = 0; i < n; ++i) {
            size_t len = lengths[i], padded = len < PACKET_MIN ? PACKET_MIN : len;
            fixture_frame(sent, len);
            fixture_send(fd, sent, len);
            receive_one(p, sent, len);
            transmit(p, sent, len);
            memset(sent + len, 0, padded - len);
            assert_int_equal(fixture_receive(fd, got, 20000), padded);
            assert_memory_equal(got, sent, padded);
            bytes += len;
        }
    assert_int_equal(port_rx(p, w, batch, PORT_BATCH), 0); /* nothing of what it sent */
    port_read_counters(p, &c);
    assert_int_equal(c.rx_packets, 3 * n);
    assert_int_equal(c.tx_packets, 3 * n);
    assert_int_equal(c.rx_bytes, bytes);
    assert_int_equal(c.tx_bytes, bytes);
    assert_int_equal(c.rx_dropped + c.tx_dropped, 0);
    close(fd);
    port_close(p);
}

static void
lengths_packet(void **state)
{
    static const size_t lengths[] = {14,   15,   59,   60,   61,    1514,  1518,  1889,  1890,
                                     1891, 2048, 4000, 9014, 16384, 32768, 65535, 65536, 65549};
    both_ways("packet", lengths, sizeof lengths / sizeof *lengths);
}

#ifdef HAVE_PCAP
static void
lengths_pcap(void **state)
{
    static const size_t lengths[] = {14, 59, 60, 61, 1514, 1890, 2048, 9014, 32768, 65549};
    both_ways("pcap", lengths, sizeof lengths / sizeof *lengths);
}

static const char *const ways[] = {"packet", "pcap"};
#else
/* It tells what is missing, and is not tried for a port that names no backend. */
static void
lengths_pcap(void **state)
{
    struct port_config c = {.port_no = 7, .name = "sw", .backend = "pcap"};
    struct port *p = NULL;
    char why[200] = "";
    assert_int_equal(port_open(&c, &p, why, sizeof why), -ENOTSUP);
    assert_null(p);
    assert_non_null(strstr(why, "no libpcap"));
    c = (struct port_config){.port_no = 7, .name = "none"};
    assert_int_equal(port_open(&c, &p, why, sizeof why), -ENODEV);
}

static const char *const ways[] = {"packet"};
#endif
#define N_WAYS (sizeof ways / sizeof *ways)

/* Long and short frames mixed come in the order in which they were sent, in batches. */
static void
order(void **state)
{
    struct port *p = fixture_port("sw", NULL, 1 << 20);
    int fd = fixture_raw("host", false);
    for (uint32_t i = 0; i < 200; ++i) {
        size_t len = i % 3 ? 100 : 40000;
        fixture_frame(sent, len);
        memcpy(sent + 20, &i, sizeof i);
        fixture_send(fd, sent, len);
        if (i % 40 != 39)
            continue;
        for (uint32_t k = i - 39; k <= i;) {
            unsigned n = fixture_rx(p, w, batch, 20000);
            assert_true(n > 0);
            for (unsigned j = 0; j < n; ++j, ++k) {
                assert_int_equal(batch[j].len, k % 3 ? 100 : 40000);
                assert_memory_equal(batch[j].data + 20, &k, sizeof k);
            }
            port_rx_done(p, w);
        }
    }
    close(fd);
    port_close(p);
}

static void
tag(uint8_t *frame, uint16_t tpid, uint16_t tci)
{
    frame[12] = (uint8_t)(tpid >> 8);
    frame[13] = (uint8_t)tpid;
    frame[14] = (uint8_t)(tci >> 8);
    frame[15] = (uint8_t)tci;
}

static void
tags(void **state)
{
    static const uint16_t tpids[] = {0x8100, 0x88a8};
    for (size_t way = 0; way < N_WAYS; ++way) {
        struct port *p = fixture_port("sw", ways[way], 1 << 20);
        int fd = fixture_raw("host", false);
        for (size_t i = 0; i < 8; ++i) {
            size_t len = i & 2 ? 5000 : 100; /* beside the ring, and in it */
            fixture_frame(sent, len);
            tag(sent, tpids[i & 1], (uint16_t)(0xa000 + i));
            if (i & 4)
                memcpy(sent + 16, "\x81\x00\x00\x2a", 4);
            fixture_send(fd, sent, len);
            receive_one(p, sent, len);
            transmit(p, sent, len);
            assert_int_equal(fixture_receive(fd, got, 20000), len);
            assert_memory_equal(got, sent, len);
        }
        close(fd);
        port_close(p);
    }
}

/* A partial checksum stays partial, and its place is right also behind a tag. */
static void
partial_checksum(void **state)
{
    struct port *p = fixture_port("sw", NULL, 1 << 20);
    int fd = fixture_raw("host", true);
    struct virtio_net_hdr v = {
        .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .csum_start = 38, .csum_offset = 6, .hdr_len = 46};
    for (size_t len = 100; len <= 6000; len += 5900) {
        uint8_t *frame = sent + sizeof v;
        memcpy(sent, &v, sizeof v);
        fixture_frame(frame, len);
        tag(frame, 0x8100, 5);
        fixture_send(fd, sent, sizeof v + len);
        assert_int_equal(fixture_rx(p, w, batch, 20000), 1);
        assert_int_equal(batch[0].len, len);
        assert_memory_equal(batch[0].data, frame, len);
        assert_int_equal(batch[0].vnet.flags, VIRTIO_NET_HDR_F_NEEDS_CSUM);
        assert_int_equal(batch[0].vnet.csum_start, 38);
        assert_int_equal(batch[0].vnet.csum_offset, 6);
        assert_int_equal(port_tx(p, w, &batch[0]), 0);
        port_io_flush(w);
        port_rx_done(p, w);
        struct pollfd f = {.fd = fd, .events = POLLIN};
        assert_int_equal(poll(&f, 1, 20000), 1);
        assert_int_equal(recv(fd, got, sizeof got, 0), sizeof v + len - 4);
        memcpy(&v, got, sizeof v);
        assert_int_equal(v.flags, VIRTIO_NET_HDR_F_NEEDS_CSUM);
        assert_int_equal(v.csum_start, 34); /* the receiving kernel took the tag out */
        v.csum_start = 38;
    }
    close(fd);
    port_close(p);
}

/* What the kernel's transmit path refuses is finished in software. */
static void
finished_in_software(void **state)
{
    struct port *p = fixture_port("sw", NULL, 1 << 20);
    int fd = fixture_raw("host", false);
    fixture_frame(sent, 200);
    struct packet pkt = {.data = sent,
                         .len = 200,
                         .vnet = {.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
                                  .gso_type = 0x7,
                                  .gso_size = 100,
                                  .csum_start = 34,
                                  .csum_offset = 6}};
    assert_int_equal(port_tx(p, w, &pkt), 0);
    port_io_flush(w);
    assert_int_equal(fixture_receive(fd, got, 20000), 200);
    assert_memory_not_equal(got + 40, sent + 40, 2);
    assert_memory_equal(got, sent, 40);
    close(fd);
    port_close(p);
}

static void
flags(void **state)
{
    struct port *p = fixture_port("sw", NULL, 1 << 20);
    int fd = fixture_raw("host", false);
    struct packet pkt = {.data = sent, .len = 100};
    static const struct {
        uint32_t config;
        bool down, sends, receives;
    } rows[] = {{0, false, true, true},
                {OFPPC_PORT_DOWN, false, false, false},
                {OFPPC_NO_RECV, false, true, false},
                {OFPPC_NO_FWD, false, false, true},
                {OFPPC_NO_PACKET_IN, false, true, true},
                {0, true, false, true}};
    fixture_frame(sent, 100);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        port_set_flags(p, rows[i].config, rows[i].down);
        assert_int_equal(port_config_bits(p), rows[i].config);
        assert_int_equal(port_is_up(p), !rows[i].down && rows[i].config != OFPPC_PORT_DOWN);
        assert_int_equal(port_tx(p, w, &pkt), rows[i].sends ? 0 : EDIT_DROP(port_down));
        port_io_flush(w);
        assert_int_equal(fixture_receive(fd, got, rows[i].sends ? 1000 : 50) != 0, rows[i].sends);
        fixture_send(fd, sent, 100);
        assert_int_equal(fixture_rx(p, w, batch, 200), rows[i].receives);
        port_rx_done(p, w);
    }
    port_set_link(p, false, true); /* neither half touches the other's bits */
    port_set_config(p, OFPPC_NO_RECV | OFPPC_PORT_DOWN);
    assert_int_equal(port_config_bits(p), OFPPC_NO_RECV);
    assert_false(port_is_up(p));
    port_set_link(p, true, false);
    assert_int_equal(port_config_bits(p), OFPPC_NO_RECV | OFPPC_PORT_DOWN);
    port_set_config(p, 0);
    assert_int_equal(port_config_bits(p), OFPPC_PORT_DOWN);
    port_set_link(p, false, false);
    assert_true(port_is_up(p));
    port_set_link(p, true, true);
    assert_int_equal(port_io_drops(w)[DROP_port_down], 2);
    pkt.len = 13;
    assert_int_equal(port_tx(p, w, &pkt), EDIT_DROP(port_down));
    port_set_flags(p, 0, false);
    assert_int_equal(port_tx(p, w, &pkt), EDIT_DROP(malformed));
    close(fd);
    port_close(p);
}

/* Until the kernel has dropped so many of what was sent; it may be behind. */
static void
dropped(const struct port *p, uint64_t least)
{
    struct port_counters c = {0};
    for (int i = 0; i < 1000 && c.rx_dropped < least; ++i) {
        port_read_counters(p, &c);
        usleep(5000);
    }
    assert_true(c.rx_dropped >= least);
}

/* A ring that is full loses frames, says so, and goes on. */
static void
overload(void **state)
{
    struct port *p = fixture_port("sw", NULL, 128 << 10); /* 64 slots */
    int fd = fixture_raw("host", false);
    struct port_counters c;
    for (int round = 1; round <= 3; ++round) {
        unsigned n, all = 0;
        fixture_frame(sent, 3000);
        for (unsigned i = 0; i < 1000; ++i)
            fixture_send(fd, sent, i % 2 ? 100 : 3000);
        dropped(p, (1000 - 64) * (unsigned)round);
        while ((n = fixture_rx(p, w, batch, 0))) {
            all += n;
            port_rx_done(p, w);
        }
        assert_true(all >= 60 && all <= 64);
        port_read_counters(p, &c);
        assert_int_equal(c.rx_packets + c.rx_dropped, 1000 * round);
    }
    fixture_send(fd, sent, 100);
    receive_one(p, sent, 100);
    close(fd);
    port_close(p);
}

/* Frames that are dropped don't keep their place in the ring, though nobody gives it back. */
static void
not_receiving(void **state)
{
    struct port *p = fixture_port("sw", NULL, 128 << 10);
    int fd = fixture_raw("host", false);
    fixture_frame(sent, 100);
    port_set_flags(p, OFPPC_NO_RECV, false);
    for (unsigned i = 0; i < 300; ++i) {
        fixture_send(fd, sent, 100);
        assert_int_equal(port_rx(p, w, batch, PORT_BATCH), 0);
    }
    for (unsigned i = 0; i < 100 && port_io_drops(w)[DROP_port_down] < 300; ++i)
        assert_int_equal(fixture_rx(p, w, batch, 20), 0);
    assert_int_equal(port_io_drops(w)[DROP_port_down], 300);
    port_set_flags(p, 0, false);
    fixture_send(fd, sent, 100);
    receive_one(p, sent, 100);
    close(fd);
    port_close(p);
}

static struct port *
two_workers(bool fanout, const char *backend)
{
    struct port_config c = {
        .port_no = 7, .name = "sw", .backend = backend, .n_workers = 2, .fanout = fanout};
    struct port *p = NULL;
    char why[200] = "";
    if (port_open(&c, &p, why, sizeof why))
        fail_msg("%s", why);
    return p;
}

/* Any one worker receives, both send. */
static void
workers(void **state)
{
    struct port_io *first = w, *second = port_io_new(1, 1 << 20);
    for (size_t i = 0; i < N_WAYS; ++i) {
        struct port *p = two_workers(false, ways[i]);
        int fd = fixture_raw("host", false);
        fixture_frame(sent, 200);
        assert_int_equal(port_rx_fd(p, 0), port_rx_fd(p, 1));
        assert_int_equal(port_rx_fd(p, 2), -1);
        w = second;
        fixture_send(fd, sent, 200);
        receive_one(p, sent, 200);
        transmit(p, sent, 200);
        assert_int_equal(fixture_receive(fd, got, 20000), 200);
        w = first;
        transmit(p, sent, 200);
        assert_int_equal(fixture_receive(fd, got, 20000), 200);
        assert_int_equal(port_rx(p, second, batch, PORT_BATCH), 0);
        close(fd);
        port_close(p);
    }
    port_io_free(second);
}

/* Each flow to one of the workers, and each to some. */
static void
fanout(void **state)
{
    static const uint8_t ip[] = {0x08, 0x00, 0x45, 0,  0, 86, 0, 0,  0, 0, 64,
                                 17,   0,    0,    10, 0, 0,  1, 10, 0, 0, 2};
    struct port_io *io[2] = {w, port_io_new(1, 1 << 20)};
    struct port *p = two_workers(true, NULL);
    int fd = fixture_raw("host", false);
    unsigned n[2] = {0}, flow_of[64][2] = {{0}};
    fixture_frame(sent, 100);
    memcpy(sent + 12, ip, sizeof ip);
    for (unsigned i = 0; i < 640; ++i) {
        sent[35] = (uint8_t)(i % 64);
        fixture_send(fd, sent, 100);
        transmit(p, sent, 100); /* must not be heard by either */
    }
    for (int k = 0; k < 2; ++k)
        for (unsigned got_now; (got_now = port_rx(p, io[k], batch, PORT_BATCH)); n[k] += got_now) {
            for (unsigned i = 0; i < got_now; ++i)
                ++flow_of[batch[i].data[35] % 64][k];
            port_rx_done(p, io[k]);
        }
    assert_int_equal(n[0] + n[1], 640);
    assert_true(n[0] > 0 && n[1] > 0);
    for (int i = 0; i < 64; ++i)
        assert_true(flow_of[i][0] == 10 || flow_of[i][1] == 10);
    close(fd);
    port_close(p);
    port_io_free(io[1]);
}

static void
interface_down(void **state)
{
    struct port *p = fixture_port("sw", NULL, 1 << 20);
    int fd = fixture_raw("host", false);
    fixture_run("ip link set sw down");
    fixture_frame(sent, 100);
    for (unsigned i = 0; i < 3; ++i) {
        struct packet pkt = {.data = sent, .len = 100};
        assert_int_equal(port_tx(p, w, &pkt), 0);
    }
    port_io_flush(w);
    assert_int_equal(port_io_drops(w)[DROP_port_down], 3);
    struct pollfd f = {.fd = port_rx_fd(p, 0), .events = POLLIN};
    assert_int_equal(poll(&f, 1, 20000), 1);
    int err = 0;
    socklen_t err_len = sizeof err;
    assert_int_equal(getsockopt(f.fd, SOL_SOCKET, SO_ERROR, &err, &err_len), 0);
    assert_int_equal(err, ENETDOWN);
    assert_int_equal(poll(&f, 1, 20), 0); /* the error does not keep a worker awake */
    assert_int_equal(port_rx(p, w, batch, PORT_BATCH), 0);
    fixture_up();
    transmit(p, sent, 100);
    assert_int_equal(fixture_receive(fd, got, 20000), 100);
    fixture_send(fd, sent, 100);
    receive_one(p, sent, 100);
    close(fd);
    port_close(p);
}

static void
too_long(void **state)
{
    fixture_run("ip link set sw mtu 1500");
    struct port *p = fixture_port("sw", NULL, 1 << 20);
    struct port_counters c;
    fixture_frame(sent, 2000);
    transmit(p, sent, 2000);
    assert_int_equal(port_io_drops(w)[DROP_too_long], 1);
    port_read_counters(p, &c);
    assert_int_equal(c.tx_dropped, 1);
    assert_int_equal(c.tx_packets, 0);
    port_close(p);
}

static void
tap(void **state)
{
    struct port *p = fixture_port("own0", "tap", 0);
    assert_true(port_ifindex(p) > 0 && port_ifindex(p) == (int)if_nametoindex("own0"));
    fixture_run("ip link set own0 mtu 65521");
    int fd = fixture_raw("own0", false);
    for (size_t len = 20; len < 66000; len = len * 3) {
        size_t padded = len < PACKET_MIN ? PACKET_MIN : len;
        fixture_frame(sent, FRAME_ROOM);
        memset(sent + len, 0, padded - len);
        if (len > 100)
            tag(sent, len & 4 ? 0x8100 : 0x88a8, 0x6001);
        fixture_send(fd, sent, len);
        receive_one(p, sent, len);
        transmit(p, sent, len);
        assert_int_equal(fixture_receive(fd, got, 20000), padded);
        assert_memory_equal(got, sent, padded);
    }
    close(fd);
    port_close(p);
    assert_int_equal(if_nametoindex("own0"), 0);
}

static void
refusals(void **state)
{
    struct port_config c = {.port_no = 1, .name = "nosuch"};
    struct port *p = NULL;
    char why[100] = "";
    assert_int_equal(port_open(&c, &p, why, sizeof why), -19); /* ENODEV */
    assert_string_not_equal(why, "");
    c.backend = "pigeon";
    assert_true(port_open(&c, &p, why, sizeof why) < 0);
    c.backend = NULL;
    strcpy(c.name, "lo");
    assert_true(port_open(&c, &p, NULL, 0) < 0); /* not Ethernet */
    strcpy(c.name, "sw");
    c.backend = "tap";
    assert_true(port_open(&c, &p, why, sizeof why) < 0); /* exists */
    assert_null(p);
    port_close(NULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lengths_packet),
        TEST(lengths_pcap),
        TEST(order),
        TEST(tags),
        TEST(partial_checksum),
        TEST(finished_in_software),
        TEST(flags),
        TEST(overload),
        TEST(interface_down),
        TEST(not_receiving),
        TEST(workers),
        TEST(fanout),
        TEST(too_long),
        TEST(tap),
        TEST(refusals),
    };
    if (!fixture_enter())
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
