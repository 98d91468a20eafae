/* SPDX-License-Identifier: Apache-2.0 */
/* A larger ring takes a small one's place. */
#include "../../../datapath/port/backend.h"
#include "fixture.h"

#include <shared/clock.h>

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MB    (1u << 20)
#define LEN   64
#define SMALL 4    /* MB */
#define ROOM  2048 /* frames in a small ring */
#define MANY  1600
#define AT    20 /* where a frame has its number */
#define WHOLE 16 /* MB */

static struct port_io *w;
static struct port *p, *other; /* at either end of the pair */
static int fd;
static uint8_t frame[FRAME_ROOM];
static struct packet batch[PORT_BATCH];
static uint32_t sent, seen;
static uint64_t done;

static struct port *
open_at(const char *name, bool grows, size_t bytes)
{
    char why[200] = "";
    struct port_config c = {.port_no = 7, .ring_bytes = bytes, .grows = grows};
    struct port *opened = NULL;
    strcpy(c.name, name);
    if (port_open(&c, &opened, why, sizeof why))
        fail_msg("port_open: %s", why);
    return opened;
}

static void
open_port(bool grows, size_t bytes)
{
    p = open_at("sw", grows, bytes);
    done = 0;
    port_set_done(p, &done);
}

static int
set_up(void **state)
{
    fixture_pair(1500);
    w = port_io_new(0, 1 << 20);
    open_port(true, WHOLE * MB);
    fd = fixture_raw("host", false);
    fixture_frame(frame, LEN);
    sent = seen = 0;
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
    for (; n; n--) {
        memcpy(frame + AT, &sent, sizeof sent);
        fixture_send(fd, frame, LEN);
        sent++;
    }
}

/* All that was sent comes once and in order. */
static void
drain(void)
{
    unsigned n;
    while (seen < sent && (n = fixture_rx(p, w, batch, 5000))) {
        for (unsigned i = 0; i < n; i++, seen++)
            assert_memory_equal(batch[i].data + AT, &seen, sizeof seen);
        port_rx_done(p, w);
    }
    assert_int_equal(seen, sent);
    assert_int_equal(port_rx(p, w, batch, PORT_BATCH), 0);
    assert_int_equal(done, sent);
}

static enum port_growth
wait_of(struct port *of, enum port_growth g)
{
    const uint64_t end = clock_ns() + UINT64_C(20000000000);
    enum port_growth now;
    while ((now = port_growth(of)) != g && clock_ns() < end)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return now;
}

static enum port_growth
wait_for(enum port_growth g)
{
    return wait_of(p, g);
}

static uint64_t
bytes_of(struct port *of)
{
    struct port_counters c;
    port_read_counters(of, &c);
    return c.ring_bytes;
}

static uint64_t
ring_bytes(void)
{
    return bytes_of(p);
}

static void
grows_when_filled_again_and_again(void **state)
{
    assert_int_equal(ring_bytes(), SMALL * MB);
    send_frames(PORT_BATCH);
    drain();
    assert_false(port_is_filling(p));
    for (int i = 0; i < 3; i++) {
        assert_false(port_is_to_grow(p));
        send_frames(MANY);
        drain();
        assert_int_equal(port_io_filled(w), true);
        assert_int_equal(port_io_filled(w), false);
        assert_true(port_is_filling(p));
    }
    assert_true(port_is_to_grow(p));
    assert_false(port_is_filling(p)); /* not this time */
    assert_true(port_is_to_grow(p));
    for (int i = 0; i < 20; i++)
        port_is_filling(p);
    assert_false(port_is_to_grow(p)); /* that was long ago */
}

static void
moves_in_order(void **state)
{
    int old = port_rx_fd(p, 0), v[2] = {-1, -1};
    assert_int_equal(port_grow(p), 0);
    assert_int_equal(port_grow(p), -EINVAL);
    assert_int_equal(wait_for(PORT_GROWTH_MADE), PORT_GROWTH_MADE);
    send_frames(MANY);
    assert_int_equal(port_grow_sockets(p, v, 2), 1);
    assert_true(v[0] >= 0 && v[0] != old && v[1] == -1);
    port_grow_move(p, false);
    assert_int_equal(port_rx_fd(p, 0), v[0]);
    assert_int_equal(ring_bytes(), (WHOLE + SMALL) * MB);
    send_frames(2 * MANY);
    /* Nothing is read before: reading ends it as soon as the old ring's last frame is known. */
    assert_int_equal(wait_for(PORT_GROWTH_DRAINS), PORT_GROWTH_DRAINS);
    assert_true(port_rx_moves(p, 0));
    drain();
    assert_false(port_rx_moves(p, 0));
    assert_int_equal(wait_for(PORT_GROWTH_NONE), PORT_GROWTH_NONE);
    assert_int_equal(ring_bytes(), WHOLE * MB);
    assert_int_equal(port_grow(p), -EINVAL);
    send_frames(2 * MANY); /* more than the small one had room for */
    drain();
}

static void
move(struct port *of)
{
    assert_int_equal(wait_of(of, PORT_GROWTH_MADE), PORT_GROWTH_MADE);
    port_grow_move(of, false);
}

static void
end_growth(struct port *of)
{
    while (port_growth(of) != PORT_GROWTH_NONE) {
        port_rx(of, w, batch, PORT_BATCH);
        port_rx_done(of, w);
    }
}

static void
what_the_old_ring_lost_counts(void **state)
{
    struct port_counters c;
    assert_int_equal(port_grow(p), 0);
    assert_int_equal(wait_for(PORT_GROWTH_MADE), PORT_GROWTH_MADE);
    for (unsigned i = 0; i < ROOM + 88; i++)
        fixture_send(fd, frame, LEN);
    port_grow_move(p, false);
    end_growth(p);
    port_read_counters(p, &c);
    assert_int_equal(c.rx_packets, ROOM);
    assert_int_equal(c.rx_dropped, 88);
    assert_int_equal(done, ROOM + 88);
}

static void
others_don_t_grow(void **state)
{
    int v;
    port_close(p);
    open_port(false, SMALL * MB);
    assert_int_equal(port_grow(p), -EINVAL);
    assert_false(port_is_filling(p));
    assert_int_equal(port_growth(p), PORT_GROWTH_NONE);
    assert_int_equal(port_grow_sockets(p, &v, 1), 0);
    port_grow_settle(p);
    port_close(p);
    open_port(true, SMALL * MB); /* it has all from the start: no larger one can be made */
    assert_int_equal(port_grow(p), 0);
    assert_int_equal(wait_for(PORT_GROWTH_NONE), PORT_GROWTH_NONE);
    assert_int_equal(ring_bytes(), SMALL * MB);
    send_frames(MANY);
    drain();
}

/* The memory is enough for both ports' larger rings, but not for the first one's old ring beside them. */
static void
waits_for_the_room_of_an_old_ring(void **state)
{
    port_rings_limit_set(2 * WHOLE * MB, 0);
    other = open_at("host", true, WHOLE * MB);
    assert_int_equal(port_grow(p), 0);
    move(p);
    assert_int_equal(port_grow(other), -EBUSY);
    end_growth(p);
    assert_int_equal(port_grow(other), 0);
    move(other);
    end_growth(other);
    assert_int_equal(bytes_of(other), WHOLE * MB);
    port_close(other);
    port_rings_limit_set(0, 0);
}

/* tear_down closes the port. */
static void
closed_while_it_is_made(void **state)
{
    assert_int_equal(port_grow(p), 0);
}

static void
closed_while_it_moves(void **state)
{
    assert_int_equal(port_grow(p), 0);
    move(p);
}

static void
settles(void **state)
{
    assert_int_equal(port_grow(p), 0);
    port_grow_settle(p); /* gives up */
    assert_int_equal(port_growth(p), PORT_GROWTH_NONE);
    assert_int_equal(ring_bytes(), SMALL * MB);
    send_frames(MANY);
    drain();
    port_close(p);
    open_port(true, WHOLE * MB);
    sent = seen = 0;
    assert_int_equal(port_grow(p), 0);
    move(p);
    port_grow_settle(p); /* waits */
    assert_int_equal(port_growth(p), PORT_GROWTH_DRAINS);
}

int
main(void)
{
    if (!fixture_enter())
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(grows_when_filled_again_and_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(moves_in_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_the_old_ring_lost_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(others_don_t_grow, set_up, tear_down),
        cmocka_unit_test_setup_teardown(waits_for_the_room_of_an_old_ring, set_up, tear_down),
        cmocka_unit_test_setup_teardown(closed_while_it_is_made, set_up, tear_down),
        cmocka_unit_test_setup_teardown(closed_while_it_moves, set_up, tear_down),
        cmocka_unit_test_setup_teardown(settles, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
