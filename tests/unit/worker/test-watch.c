/* SPDX-License-Identifier: Apache-2.0 */
/* Which rings a worker reads: descriptors stand for them, time is what the test says. */
#include <dataplane/worker-watch.h>

#include <oflib/openflow.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define PORTS 200
#define MS    UINT64_C(1000000)

struct port {
    uint32_t uid;
    int fd; /* -1: the port is gone */
};

uint32_t
port_uid(const struct port *p)
{
    return p->uid;
}

static struct port ports[PORTS + 1]; /* by number; 0 is OFPP_LOCAL */
static struct watch w;
static uint64_t now;
static uint32_t last_uid;
static int wake;

static uint32_t
number(unsigned i)
{
    return i ? i : OFPP_LOCAL;
}

static void
open_port(unsigned i)
{
    ports[i] = (struct port){.uid = ++last_uid, .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    assert_true(ports[i].fd >= 0);
}

static void
close_port(unsigned i)
{
    close(ports[i].fd);
    ports[i].fd = -1;
}

static void
changed(void)
{
    for (unsigned i = 0; i <= PORTS; i++)
        if (ports[i].fd >= 0)
            watch_mark(&w, number(i), false, &ports[i], ports[i].fd);
    watch_sweep(&w, now);
    for (unsigned i = 0; i <= PORTS; i++)
        if (ports[i].fd >= 0)
            watch_add(&w, number(i), false, &ports[i], ports[i].fd);
}

static void
packet(unsigned i)
{
    uint64_t one = 1;
    assert_int_equal(write(ports[i].fd, &one, sizeof one), sizeof one);
}

/* Reads the rings of one round, each once.  Returns how many had something. */
static unsigned
run_round(void)
{
    unsigned n = 0;
    uint64_t v;
    struct watch_ring *r;
    watch_begin(&w, now);
    for (unsigned i = 0; (r = watch_read(&w, i)); i++)
        if (read(r->fd, &v, sizeof v) == (ssize_t)sizeof v) {
            r->last = w.tick;
            n++;
        }
    now += 20000;
    return n;
}

/* The rounds until `wanted` rings had something. */
static unsigned
rounds_until(unsigned wanted)
{
    unsigned rounds = 0;
    for (unsigned got = 0; got < wanted; rounds++) {
        assert_true(rounds < 1000);
        got += run_round();
    }
    return rounds;
}

static void
rest_all(void)
{
    now += 1000 * MS;
    run_round();
    assert_int_equal(w.n_active, 0);
}

static int
set_up(void **state)
{
    now = 5000 * MS;
    wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    assert_int_equal(watch_open(&w, wake), 0);
    for (unsigned i = 0; i <= PORTS; i++)
        open_port(i);
    changed();
    return 0;
}

static int
tear_down(void **state)
{
    watch_close(&w);
    for (unsigned i = 0; i <= PORTS; i++)
        if (ports[i].fd >= 0)
            close_port(i);
    close(wake);
    return 0;
}

/* ------------------------------------------------------------------ tests */

static void
busy_ones_are_active(void **state)
{
    rest_all();
    assert_int_equal(w.n_idle, PORTS + 1);
    for (int i = 0; i < 3; i++) {
        packet(7);
        packet(0);
        rounds_until(2);
    }
    assert_int_equal(w.n_active, 2);
    assert_int_equal(w.n_idle, PORTS - 1);
    packet(7);
    assert_int_equal(run_round(), 1); /* without a look at the set */
    rest_all();
}

/* A packet now and then doesn't move the ring. */
static void
rare_ones_stay_idle(void **state)
{
    rest_all();
    for (int i = 0; i < 5; i++) {
        now += 1000 * MS;
        packet(9);
        rounds_until(1);
        assert_int_equal(w.n_active, 0);
    }
}

static void
an_idle_one_beside_a_flood(void **state)
{
    rest_all();
    for (unsigned i = 1; i <= PORTS; i++) {
        packet(i);
        unsigned rounds = 0;
        for (unsigned got = 0; got < 2; rounds++) { /* the flood's ring, and this one */
            packet(0);
            got = run_round();
        }
        assert_true(rounds <= 10);
    }
}

/* More than may be active: the set says of the others, in turn. */
static void
all_are_busy(void **state)
{
    for (int turn = 0; turn < 10; turn++) {
        for (unsigned i = 0; i <= PORTS; i++)
            packet(i);
        assert_true(rounds_until(PORTS + 1) <= 20);
        assert_true(w.n_active <= WATCH_ACTIVE);
    }
    assert_int_equal(w.n_active, WATCH_ACTIVE);
}

static void
sleeps_until_something(void **state)
{
    rest_all();
    packet(150);
    watch_sleep(&w, now, 0);
    watch_woken(&w);
    assert_int_equal(run_round(), 1);
    uint64_t one = 1;
    assert_int_equal(write(wake, &one, sizeof one), sizeof one);
    watch_sleep(&w, now, 0);
    watch_woken(&w);
    assert_int_equal(run_round(), 0);
    packet(3);
    packet(3);
    watch_sleep(&w, now, 0);
    watch_woken(&w);
    assert_int_equal(run_round(), 1);
}

/* What the last sleep has said of a ring. */
static short
said_of(unsigned i)
{
    for (unsigned k = 0; k < w.n_active; k++)
        if (w.ring[w.active[k]].port == &ports[i])
            return w.poll[2 + k].revents;
    fail_msg("port %u is not active", i);
    return 0;
}

/* One that rests doesn't end the sleep before its time, unless it is alone. */
static void
sleeps_while_one_rests(void **state)
{
    rest_all();
    for (int i = 0; i < 2; i++) {
        packet(3);
        packet(4);
        rounds_until(2);
    }
    assert_int_equal(w.n_active, 2);
    w.ring[3 * 2].share.rests_until = w.rests_until = now + 2 * MS;
    packet(3);
    watch_sleep(&w, now, 0);
    assert_int_equal(said_of(3), 0);
    packet(4);
    watch_sleep(&w, now, 0);
    assert_int_equal(said_of(3), 0);
    assert_true(said_of(4) & POLLIN);
    watch_sleep(&w, now + 2 * MS, 0);
    assert_true(said_of(3) & POLLIN);
}

static void
ports_come_and_go(void **state)
{
    rest_all();
    packet(5);
    rounds_until(1);
    packet(5);
    rounds_until(1);
    assert_int_equal(w.n_active, 1);
    for (unsigned i = 1; i <= PORTS; i += 2) /* an active one, and idle ones */
        close_port(i);
    changed();
    assert_int_equal(w.n_active + w.n_idle, PORTS / 2 + 1);
    for (unsigned i = PORTS - 1; i < PORTS; i -= 2) /* with each other's descriptors */
        open_port(i);
    changed();
    assert_int_equal(w.n_active + w.n_idle, PORTS + 1);
    rest_all();
    for (unsigned i = 0; i <= PORTS; i++)
        packet(i);
    rounds_until(PORTS + 1);
    assert_int_equal(w.n_blind, 0);
    assert_int_equal(w.closed, 0);
}

/* Another port with the same number, address and descriptor, while the worker slept. */
static void
another_in_its_place(void **state)
{
    rest_all();
    int fd = ports[4].fd;
    close_port(4);
    open_port(4);
    assert_int_equal(ports[4].fd, fd);
    changed();
    rest_all();
    packet(4);
    assert_true(rounds_until(1) <= 10);
}

static void
closed_by_somebody(void **state)
{
    close(ports[2].fd);
    watch_sleep(&w, now, 0);
    watch_woken(&w);
    assert_int_equal(w.closed, 1);
    assert_int_equal(w.n_blind, 1);
    ports[2].fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    packet(2);
    now += WATCH_BLIND_MS * 2 * MS; /* watch_sleep sleeps no longer */
    assert_int_equal(run_round(), 1);
    changed();
    assert_int_equal(w.n_blind, 0);
}

/* An error that nothing takes away doesn't keep it awake. */
static void
error_for_good(void **state)
{
    int ends[2];
    rest_all();
    assert_int_equal(pipe(ends), 0);
    close_port(6);
    ports[6] = (struct port){.uid = ++last_uid, .fd = ends[0]};
    changed();
    close(ends[1]); /* now it reports POLLHUP */
    watch_sleep(&w, now, 0);
    watch_woken(&w);
    run_round();
    assert_int_equal(w.n_blind, 1);
    rest_all();
    assert_int_equal(w.n_blind, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(busy_ones_are_active),
        TEST(rare_ones_stay_idle),
        TEST(an_idle_one_beside_a_flood),
        TEST(all_are_busy),
        TEST(sleeps_until_something),
        TEST(ports_come_and_go),
        TEST(another_in_its_place),
        TEST(closed_by_somebody),
        TEST(error_for_good),
        TEST(sleeps_while_one_rests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
