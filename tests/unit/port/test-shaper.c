/* SPDX-License-Identifier: Apache-2.0 */
/* What enters by a port goes through the kernel's queues on a pair of interfaces first, and comes
 * out of it as it was. */
#include "fixture.h"

#include <oflib/openflow.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DROP_QDISC "tbf rate 64kbit burst 2000 limit 3000"

static struct port_io *w;
static struct port *port;
static int host;
static struct packet batch[PORT_BATCH];
static uint8_t frame[FRAME_ROOM];

static int
set_up(void **state)
{
    char why[200] = "";
    fixture_pair(1500);
    fixture_run("ip link add to mtu 1564 type veth peer name from mtu 1564");
    fixture_run("ip link set to arp off && ip link set from arp off");
    w = port_io_new(0, 1 << 20);
    port = fixture_port("sw", NULL, 1 << 20);
    host = fixture_raw("host", true);
    assert_null(port_shaper(port));
    int err = port_shaper_open(port, "to", "from", why, sizeof why);
    if (err)
        fail_msg("port_shaper_open: %d %s", err, why);
    return w && port_shaper(port) ? 0 : -1;
}

static int
tear_down(void **state)
{
    close(host);
    port_close(port);
    port_io_free(w);
    fixture_run("ip link del to");
    fixture_drop();
    port_global_exit();
    return 0;
}

/* From the host, with a virtio header in front. */
static void
enter(struct virtio_net_hdr vnet, size_t len)
{
    uint8_t m[sizeof vnet + FRAME_ROOM];
    memcpy(m, &vnet, sizeof vnet);
    memcpy(m + sizeof vnet, frame, len);
    fixture_send(host, m, sizeof vnet + len);
}

/* What has come in goes to the queue; what comes out of the shaper is the packet returned. */
static struct packet *
through(uint32_t queue)
{
    const struct port_shaper *s = port_shaper(port);
    assert_int_equal(fixture_rx(port, w, batch, 5000), 1);
    batch[0].queue = queue;
    assert_int_equal(port_tx(s->to, w, &batch[0]), 0);
    port_io_flush(w);
    port_rx_done(port, w);
    assert_int_equal(fixture_rx(s->from, w, batch, 5000), 1);
    assert_int_equal(batch[0].in_port, 7);
    assert_int_equal(batch[0].queue, 0);
    return &batch[0];
}

static void
same(const struct packet *p, size_t len)
{
    assert_int_equal(p->len, len);
    assert_memory_equal(p->data, frame, len);
    port_rx_done(port_shaper(port)->from, w);
}

static void
unchanged(void **state)
{
    static const struct {
        size_t len;
        const char *tags; /* of 8 bytes, in front of the payload */
    } frames[] = {{15, NULL},
                  {42, NULL},
                  {60, NULL},
                  {1514, NULL},
                  {1518, "\x81\x00\xe0\x05\x08\x00\x45\x00"},
                  {100, "\x88\xa8\x00\x07\x81\x00\x00\x09"}};
    struct port_counters c;
    uint64_t bytes = 0;
    for (size_t i = 0; i < sizeof frames / sizeof *frames; ++i) {
        size_t len = frames[i].len;
        fixture_frame(frame, len);
        if (frames[i].tags)
            memcpy(frame + 12, frames[i].tags, 8);
        enter((struct virtio_net_hdr){0}, len);
        same(through(0), len);
        bytes += len;
    }
    port_read_counters(port, &c); /* what enters is counted once */
    assert_int_equal(c.rx_packets, 6);
    assert_int_equal(c.rx_bytes, bytes);
    assert_int_equal(c.tx_packets + c.rx_dropped + c.rx_no_queue, 0);
}

/* An IPv4 TCP segment's headers. */
static void
tcp_headers(size_t len)
{
    uint8_t *ip = frame + 14, *l4 = ip + 20;
    fixture_frame(frame, len);
    memcpy(frame + 12, "\x08\x00", 2);
    memset(ip, 0, 40);
    ip[0] = 0x45;
    ip[2] = (uint8_t)((len - 14) >> 8);
    ip[3] = (uint8_t)(len - 14);
    ip[8] = 64;
    ip[9] = 6;
    ip[12] = ip[16] = 10;
    l4[12] = 0x50;
    l4[13] = 0x10;
}

static void
super_packet(void **state)
{
    struct virtio_net_hdr v = {.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
                               .gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
                               .gso_size = 1448,
                               .hdr_len = 54,
                               .csum_start = 34,
                               .csum_offset = 16};
    tcp_headers(40000);
    enter(v, 40000);
    struct packet *p = through(0);
    assert_int_equal(p->vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM, VIRTIO_NET_HDR_F_NEEDS_CSUM);
    assert_int_equal(p->vnet.gso_type, v.gso_type);
    assert_int_equal(p->vnet.gso_size, v.gso_size);
    assert_int_equal(p->vnet.csum_start, v.csum_start);
    assert_int_equal(p->vnet.csum_offset, v.csum_offset);
    same(p, 40000);
    v.gso_type = 0; /* a partial checksum alone */
    v.gso_size = 0;
    tcp_headers(1000);
    enter(v, 1000);
    p = through(0);
    assert_int_equal(p->vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM, VIRTIO_NET_HDR_F_NEEDS_CSUM);
    assert_int_equal(p->vnet.csum_start, v.csum_start);
    same(p, 1000);
}

static void
enter_plain(uint32_t queue)
{
    fixture_frame(frame, 100);
    enter((struct virtio_net_hdr){0}, 100);
    same(through(queue), 100);
}

static void
queues(void **state)
{
    struct port_counters c;
    fixture_run("tc qdisc add dev to root handle 1: htb default fffe");
    fixture_run("tc class add dev to parent 1: classid 1:1 htb rate 1gbit");
    fixture_run("tc class add dev to parent 1: classid 1:fffe htb rate 1gbit");
    assert_int_equal(port_queue_set(port_shaper(port)->to, 1, PORT_PRIORITY(1), 0), 0);
    enter_plain(1);
    enter_plain(1);
    enter_plain(2); /* there is none */
    enter_plain(0);
    assert_int_equal(fixture_ask("bytes ", "tc -s class show dev to classid 1:1"), 2);
    assert_int_equal(fixture_ask("bytes ", "tc -s class show dev to classid 1:fffe"), 2);
    port_read_counters(port, &c);
    assert_int_equal(c.rx_no_queue, 1);
    assert_int_equal(c.tx_no_queue, 0);
    assert_int_equal(c.queue_sockets, 1);
}

/* What a queue does not take is the port's loss of what it received. */
static void
full(void **state)
{
    struct port_counters c;
    const struct port_shaper *s = port_shaper(port);
    fixture_run("tc qdisc add dev to root " DROP_QDISC);
    fixture_frame(frame, 100);
    for (unsigned i = 0; i < 200; ++i) {
        struct packet p = {.data = frame, .len = 100};
        assert_int_equal(port_tx(s->to, w, &p), 0);
    }
    port_io_flush(w);
    port_read_counters(port, &c);
    assert_true(c.rx_dropped > 100);
    assert_int_equal(port_io_drops(w)[DROP_in_full], c.rx_dropped);
    assert_int_equal(port_io_drops(w)[DROP_tx_full], 0);
    assert_int_equal(c.tx_dropped, 0);
}

/* The port's configuration is true of what waits, too; that it does not forward is not. */
static void
flags(void **state)
{
    struct port_counters c;
    const struct port_shaper *s = port_shaper(port);
    port_set_flags(port, OFPPC_NO_FWD, true);
    enter_plain(0);
    port_set_flags(port, OFPPC_NO_RECV, false);
    fixture_frame(frame, 100);
    struct packet p = {.data = frame, .len = 100};
    assert_int_equal(port_tx(s->to, w, &p), 0);
    port_io_flush(w);
    for (int i = 0; i < 500 && !port_io_drops(w)[DROP_port_down]; ++i) {
        usleep(10000);
        assert_int_equal(port_rx(s->from, w, batch, PORT_BATCH), 0);
    }
    assert_int_equal(port_io_drops(w)[DROP_port_down], 1);
    port_read_counters(port, &c);
    assert_int_equal(c.rx_dropped, 1);
    port_set_flags(port, 0, false);
    enter_plain(0);
}

/* A shaper that is taken away, and another one. */
static void
again(void **state)
{
    char why[200] = "";
    enter_plain(0);
    port_shaper_close(port_shaper_take(port));
    assert_null(port_shaper(port));
    assert_null(port_shaper_take(port));
    assert_true(port_shaper_open(port, "to", "nowhere", why, sizeof why) < 0);
    assert_string_not_equal(why, "");
    assert_null(port_shaper(port));
    assert_int_equal(port_shaper_open(port, "to", "from", why, sizeof why), 0);
    enter_plain(0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(unchanged), TEST(super_packet), TEST(queues), TEST(full), TEST(flags), TEST(again),
    };
    if (!fixture_enter())
        return 77;
    port_global_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
