/* SPDX-License-Identifier: Apache-2.0 */
/* A port whose packets are partly handled in the kernel: frames that it is done with, and counts. */
#include "fixture.h"

#include <oflib/openflow.h>
#include <shared/atomics.h>

#include <string.h>
#include <unistd.h>

#define LEN 100

static struct port_io *w;
static struct port *p;
static int fd;
static uint8_t frame[FRAME_ROOM];
static struct packet batch[PORT_BATCH];

static int
set_up(void **state)
{
    fixture_pair(1500);
    w = port_io_new(0, 1 << 20);
    p = fixture_port("sw", "packet", 128 << 10);
    fd = fixture_raw("host", false);
    fixture_frame(frame, LEN);
    return w ? 0 : -1;
}

static int
tear_down(void **state)
{
    close(fd);
    port_close(p);
    port_io_free(w);
    fixture_drop();
    port_global_exit();
    return 0;
}

static void
send_frames(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        fixture_send(fd, frame, LEN);
}

/* Receives and gives back until nothing comes. */
static unsigned
drain(void)
{
    unsigned n, sum = 0;
    while ((n = fixture_rx(p, w, batch, 100))) {
        sum += n;
        port_rx_done(p, w);
    }
    return sum;
}

static void
sockets(void **state)
{
    int v[2] = {-1, -1};
    assert_int_equal(port_rx_sockets(p, v, 0), 1);
    assert_int_equal(v[0], -1);
    assert_int_equal(port_rx_sockets(p, v, 2), 1);
    assert_int_equal(v[0], port_rx_fd(p, 0));
    assert_int_equal(v[1], -1);
}

static void
done_when_given_back(void **state)
{
    uint64_t done = 0;
    assert_false(port_in_kernel(p));
    port_set_done(p, &done);
    assert_true(port_in_kernel(p));
    send_frames(5);
    unsigned n = 0;
    while (n < 5) {
        unsigned got = fixture_rx(p, w, batch, 20000);
        assert_true(got > 0);
        assert_int_equal(done, n);
        n += got;
        port_rx_done(p, w);
        assert_int_equal(done, n);
    }
    port_set_flags(p, OFPPC_NO_RECV, false); /* dropped at once */
    send_frames(3);
    assert_int_equal(drain(), 0);
    assert_int_equal(done, 8);
    port_set_flags(p, 0, false);
    port_set_done(p, NULL);
    assert_false(port_in_kernel(p));
    send_frames(2);
    assert_int_equal(drain(), 2);
    assert_int_equal(done, 8);
}

/* A ring of 64 frames or so has no room for more. */
static void
lost(void **state)
{
    enum { SENT = 2000 };
    struct port_counters c;
    uint64_t done = 0, passed = SENT;
    port_set_done(p, &done);
    send_frames(SENT);
    unsigned got = drain();
    assert_true(got < SENT);
    assert_int_equal(done, got);
    port_sync_done(p, &passed);
    assert_int_equal(done, SENT);
    port_read_counters(p, &c);
    assert_int_equal(c.rx_dropped, SENT - got);
    assert_int_equal(done, SENT);
    send_frames(SENT);
    got += drain();
    port_read_counters(p, &c); /* adds it, too */
    assert_int_equal(c.rx_dropped, 2 * SENT - got);
    assert_int_equal(done, 2 * SENT);
}

/* Frames that were in the ring before the filter are too many. */
static void
frames_before_the_filter(void **state)
{
    uint64_t done = 0, passed = 0;
    send_frames(7);
    port_set_done(p, &done);
    assert_int_equal(fixture_rx(p, w, batch, 20000) > 0, 1);
    port_rx_done(p, w);
    drain();
    assert_int_equal(done, 7);
    send_frames(2);
    passed = 2;
    for (int i = 0; i < 3; i++)
        port_sync_done(p, &passed); /* the ring isn't empty */
    assert_int_equal(done, 7);
    assert_int_equal(drain(), 2);
    assert_int_equal(done, 9);
    port_sync_done(p, &passed); /* perhaps something is on its way */
    assert_int_equal(done, 9);
    port_sync_done(p, &passed);
    assert_int_equal(done, 2);
    port_sync_done(p, &passed);
    assert_int_equal(done, 2);
}

static void
counts(void **state)
{
    struct port_counters c,
        more = {
            .rx_packets = 10, .rx_bytes = 1000, .tx_packets = 9, .tx_bytes = 936, .tx_dropped = 1};
    send_frames(1);
    assert_int_equal(drain(), 1);
    port_count_kernel(p, &more);
    port_count_kernel(p, &more);
    port_read_counters(p, &c);
    assert_int_equal(c.rx_packets, 21);
    assert_int_equal(c.rx_bytes, 2000 + LEN);
    assert_int_equal(c.tx_packets, 18);
    assert_int_equal(c.tx_bytes, 1872);
    assert_int_equal(c.tx_dropped, 2);
}

/* A port that is no packet socket. */
static void
others(void **state)
{
    uint64_t done = 0;
    struct port *tap = fixture_port("tap7", "tap", 0);
    int v[1];
    assert_int_equal(port_rx_sockets(tap, v, 1), 0);
    port_set_done(tap, &done);
    assert_false(port_in_kernel(tap));
    port_sync_done(tap, &done);
    port_close(tap);
}

int
main(void)
{
    if (!fixture_enter())
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sockets, set_up, tear_down),
        cmocka_unit_test_setup_teardown(done_when_given_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lost, set_up, tear_down),
        cmocka_unit_test_setup_teardown(frames_before_the_filter, set_up, tear_down),
        cmocka_unit_test_setup_teardown(counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(others, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
