/* SPDX-License-Identifier: Apache-2.0 */
/* What a packet worker sleeps on: the ports' descriptors as they are now, and none that is closed.  And
 * that no port's packets take the memory for copies from another port's. */
#include <dataplane/dp.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* ------------------------------------------------------------------ a port that is a descriptor */

struct port {
    uint32_t no; /* 0: 1 */
    int fd;
    unsigned received; /* times that it was readable and read */
    size_t copies;     /* each time it has a packet that takes so much memory; 0: none */
    unsigned refused;  /* times that there was not so much */
    bool fans_out;
    const struct port_shaper *shaper;
};

struct port_io {
    struct packet_pool *pool;
    uint64_t drops[DROP_N];
    struct drop_log drop_log;
};

uint8_t
port_inside(const struct port *p)
{
    return 0;
}

int
port_ifindex(const struct port *p)
{
    return (int)port_no(p);
}

uint32_t
port_no(const struct port *p)
{
    return p->no ? p->no : 1;
}

uint32_t
port_uid(const struct port *p)
{
    return port_no(p);
}

bool
port_in_kernel(const struct port *p)
{
    return false;
}

bool
port_fans_out(const struct port *p)
{
    return p->fans_out;
}

const struct port_shaper *
port_shaper(const struct port *p)
{
    return p->shaper;
}

uint64_t
port_rx_waited(const struct port *p, const struct port_io *w)
{
    return 0;
}

bool
port_rx_moves(const struct port *p, unsigned worker)
{
    return false;
}

bool
port_io_filled(struct port_io *io)
{
    return false;
}

int
port_rx_fd(const struct port *p, unsigned worker)
{
    return load_relaxed(&p->fd);
}

unsigned
port_rx(struct port *p, struct port_io *w, struct packet *out, unsigned max)
{
    uint64_t v;
    int fd = load_relaxed(&p->fd);
    if (fd < 0 || read(fd, &v, sizeof v) != (ssize_t)sizeof v)
        return 0;
    fetch_add(&p->received, 1);
    if (!p->copies)
        return 0;
    *out = (struct packet){.data = (uint8_t *)p, .len = 64, .in_port = p->no};
    return 1;
}

void
port_rx_done(struct port *p, struct port_io *w)
{
}

int
port_tx(struct port *p, struct port_io *w, struct packet *pkt)
{
    return 0;
}

struct port_io *
port_io_new(unsigned worker, size_t pool_bytes)
{
    struct port_io *w = calloc(1, sizeof *w);
    if (w)
        w->pool = packet_pool_new(pool_bytes);
    return w;
}

void
port_io_free(struct port_io *w)
{
    packet_pool_free(w->pool);
    free(w);
}

struct packet_pool *
port_io_pool(struct port_io *w)
{
    return w->pool;
}

uint64_t *
port_io_drops(struct port_io *w)
{
    return w->drops;
}

struct drop_log *
port_io_drop_log(struct port_io *w)
{
    return &w->drop_log;
}

void
port_io_flush(struct port_io *w)
{
}

void
pipeline_packet(struct worker *w, struct packet *p)
{
    struct port *from = (void *)p->data;
    if (!packet_pool_alloc(port_io_pool(w->io), from->copies))
        fetch_add(&from->refused, 1);
}

void
pipeline_packet_out(struct worker *w, struct packet *p, const struct program *actions)
{
}

struct preview
pipeline_preview(struct worker *w, struct packet *p)
{
    return (struct preview){0};
}

/* ------------------------------------------------------------------ a worker */

static struct port port;
static struct dp dp;
static struct worker *worker;

static void
pause_ms(unsigned ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000},
              NULL);
}

/* What the control thread does when a port's descriptor has changed. */
static void
changed(void)
{
    fetch_add(&dp.watch_serial, 1);
    worker_wake(worker);
}

static void
let_receive_by(const struct port *p, unsigned times)
{
    uint64_t one = 1;
    assert_int_equal(write(p->fd, &one, sizeof one), sizeof one);
    for (int i = 0; i < 1000 && load_relaxed(&p->received) < times; ++i)
        pause_ms(10);
    assert_int_equal(load_relaxed(&p->received), times);
}

static void
let_receive(unsigned times)
{
    let_receive_by(&port, times);
}

/* Wake-ups in a time of rest: the fewest of some, for the machine may be busy. */
static uint64_t
at_rest(void)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 5; ++i) {
        uint64_t before = counter_read(&worker->wakeups);
        pause_ms(200);
        uint64_t n = counter_read(&worker->wakeups) - before;
        least = n < least ? n : least;
    }
    return least;
}

static int
set_up(void **state)
{
    port = (struct port){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    dp = (struct dp){.n_workers = 1, .busy_poll_us = AWAKE_AUTO};
    dp.ports = calloc(1, sizeof *dp.ports + sizeof dp.ports->v[0]);
    dp.ports->n = 1;
    dp.ports->v[0] = &port;
    return worker_start(&dp, 0, -1, &worker);
}

static int
tear_down(void **state)
{
    worker_stop(worker);
    free(dp.ports);
    if (port.fd >= 0)
        close(port.fd);
    return 0;
}

/* ------------------------------------------------------------------ tests */

static void
sleeps(void **state)
{
    let_receive(1);
    let_receive(2);
    assert_true(at_rest() <= 2);
    assert_int_equal(counter_read(&worker->watch.closed), 0);
}

static void
another_descriptor(void **state)
{
    int old = port.fd, other = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    let_receive(1);
    store_relaxed(&port.fd, other);
    changed();
    close(old);
    let_receive(2);
    store_relaxed(&port.fd, -1);
    changed();
    close(other);
    assert_true(at_rest() <= 2);
}

/* Which must not happen: it is found, left alone and told, and the port looked at now and then, until
 * the descriptors change. */
static void
closed_descriptor(void **state)
{
    let_receive(1);
    close(port.fd);
    worker_wake(worker);
    assert_true(at_rest() <= 40); /* one each 10 ms at most */
    assert_int_equal(counter_read(&worker->watch.closed), 1);
    store_relaxed(&port.fd, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    let_receive(2);
    changed();
    let_receive(3);
    assert_true(at_rest() <= 2);
    assert_int_equal(counter_read(&worker->watch.closed), 1);
}

/* Another worker's port that can't be fanned out, but what comes out of its shaper can: each worker has a
 * ring of that. */
static void
shaper_of_another(void **state)
{
    struct port from = {.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .fans_out = true};
    const struct port_shaper shaper = {.from = &from};
    struct worker *other;
    port = (struct port){.fd = -1, .shaper = &shaper};
    dp = (struct dp){.n_workers = 2, .busy_poll_us = AWAKE_AUTO};
    dp.ports = calloc(1, sizeof *dp.ports + sizeof dp.ports->v[0]);
    dp.ports->n = 1;
    dp.ports->v[0] = &port;
    assert_false(port_no(&port) % 2 == 0);
    assert_int_equal(worker_start(&dp, 0, -1, &other), 0);
    let_receive_by(&from, 1);
    worker_stop(other);
    close(from.fd);
    free(dp.ports);
}

/* Two ports that have packets in each round.  The memory is enough for one of them. */
static void
memory_is_each_ports(void **state)
{
    struct port flood[2];
    dp = (struct dp){.n_workers = 1, .busy_poll_us = AWAKE_AUTO};
    dp.ports = calloc(1, sizeof *dp.ports + 2 * sizeof dp.ports->v[0]);
    dp.ports->n = 2;
    for (uint32_t i = 0; i < 2; i++) {
        flood[i] =
            (struct port){.no = i + 1,
                          .fd = eventfd(UINT_MAX, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE),
                          .copies = 40u << 20};
        dp.ports->v[i] = &flood[i];
    }
    assert_int_equal(worker_start(&dp, 0, -1, &worker), 0);
    for (int i = 0; i < 1000 && load_relaxed(&flood[1].received) < 100; ++i)
        pause_ms(10);
    worker_stop(worker);
    for (int i = 0; i < 2; i++) {
        assert_true(flood[i].received >= 99);
        assert_int_equal(flood[i].refused, 0);
        close(flood[i].fd);
    }
    free(dp.ports);
}

/* The process has no descriptor left: the worker doesn't start, and closes none that isn't its own. */
static void
no_descriptors(void **state)
{
    struct rlimit was, now;
    struct worker *none = NULL;
    int in = dup(STDIN_FILENO), next = dup(STDIN_FILENO);
    assert_true(in >= 0 && next >= 0);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    now = was;
    now.rlim_cur = (rlim_t)next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
    int err = worker_start(&dp, 0, -1, &none);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    assert_int_equal(err, -EMFILE);
    bool open = fcntl(STDIN_FILENO, F_GETFD) >= 0;
    dup2(in, STDIN_FILENO);
    close(in);
    assert_true(open);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {TEST(sleeps),
                                       TEST(another_descriptor),
                                       TEST(closed_descriptor),
                                       cmocka_unit_test(shaper_of_another),
                                       cmocka_unit_test(memory_is_each_ports),
                                       cmocka_unit_test(no_descriptors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
