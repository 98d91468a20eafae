/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop: timers in order, descriptors that go away meanwhile, other threads. */
#include "fixture.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define N 500

static struct loop *loop;

static int
setup(void **state)
{
    return loop_new(&loop);
}

static int
teardown(void **state)
{
    loop_free(loop);
    return 0;
}

struct tick {
    uint64_t at;
    struct loop_timer *timer;
};

static uint64_t last_at;
static unsigned ticks;

static void
on_tick(void *ctx)
{
    struct tick *t = ctx;
    assert_true(t->at >= last_at);
    assert_true(loop_now(loop) >= t->at);
    last_at = t->at;
    ticks++;
}

static void
timers_in_order(void **state)
{
    static struct tick t[N];
    uint64_t start = loop_now(loop);
    unsigned cancelled = 0;
    srandom(2);
    last_at = 0;
    for (int i = 0; i < N; i++)
        assert_int_equal(loop_timer_new(loop, on_tick, &t[i], &t[i].timer), 0);
    for (int round = 0; round < 3; round++) /* set, and set anew */
        for (int i = 0; i < N; i++) {
            t[i].at = start + (uint64_t)(random() % 50) * 1000000;
            loop_timer_set(t[i].timer, t[i].at);
        }
    for (int i = 0; i < N; i += 7, cancelled++)
        loop_timer_cancel(t[i].timer);
    for (int i = 0; i < N; i += 7)
        loop_timer_cancel(t[i].timer);
    while (loop_now(loop) < start + 52000000)
        assert_int_equal(loop_turn(loop, 5), 0);
    assert_int_equal(ticks, N - cancelled);
    for (int i = 0; i < N; i++)
        loop_timer_free(t[i].timer);
}

static struct loop_timer *again;
static unsigned agains;

static void
on_again(void *ctx)
{
    agains++;
    loop_timer_set(again, 0);
}

/* One that is always due runs once a turn, however many others are armed. */
static void
restless_timer(void **state)
{
    struct tick t = {.at = loop_now(loop)}, later[5] = {0};
    ticks = agains = 0;
    last_at = 0;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(loop_timer_new(loop, on_tick, &later[i], &later[i].timer), 0);
        loop_timer_set(later[i].timer, UINT64_MAX);
    }
    assert_int_equal(loop_timer_new(loop, on_again, NULL, &again), 0);
    assert_int_equal(loop_timer_new(loop, on_tick, &t, &t.timer), 0);
    loop_timer_set(again, 0);
    loop_timer_set(t.timer, t.at);
    loop_turn(loop, -1);
    assert_int_equal(ticks, 1);
    for (unsigned i = 1; i <= 10; i++) {
        assert_int_equal(agains, i);
        loop_turn(loop, -1);
    }
    for (int i = 0; i < 5; i++)
        loop_timer_free(later[i].timer);
    loop_timer_free(again);
    loop_timer_free(t.timer);
}

static struct loop_io *io[2];
static unsigned seen;

/* The first callback deletes both. */
static void
on_both(void *ctx, uint32_t events)
{
    seen++;
    loop_io_del(io[0]);
    loop_io_del(io[1]);
}

static void
deleted_meanwhile(void **state)
{
    int a[2], b[2];
    assert_int_equal(pipe(a) | pipe(b), 0);
    assert_int_equal(write(a[1], "x", 1) + write(b[1], "x", 1), 2);
    assert_int_equal(loop_io_add(loop, a[0], EPOLLIN, on_both, NULL, &io[0]), 0);
    assert_int_equal(loop_io_add(loop, b[0], EPOLLIN, on_both, NULL, &io[1]), 0);
    loop_turn(loop, 100);
    loop_turn(loop, 0);
    assert_int_equal(seen, 1);
    close(a[0]);
    close(a[1]);
    close(b[0]);
    close(b[1]);
}

static unsigned idles;

static void
on_idle(void *ctx)
{
    if (++idles == 3)
        loop_stop(loop);
}

static void
runs_until_stopped(void **state)
{
    assert_int_equal(loop_timer_new(loop, on_again, NULL, &again), 0);
    loop_timer_set(again, 0);
    loop_set_idle(loop, on_idle, NULL);
    assert_int_equal(loop_run(loop), 0);
    assert_int_equal(idles, 3);
    loop_timer_free(again);
}

/* Sets a timer while the loop waits for nothing else. */
static void *
visit(void *ctx)
{
    loop_enter(loop);
    loop_timer_set(again, 0);
    loop_leave(loop);
    return NULL;
}

static void
another_thread(void **state)
{
    pthread_t thread;
    agains = 0;
    assert_int_equal(loop_timer_new(loop, on_again, NULL, &again), 0);
    assert_int_equal(pthread_create(&thread, NULL, visit, NULL), 0);
    while (!agains)
        assert_int_equal(loop_turn(loop, -1), 0);
    pthread_join(thread, NULL);
    loop_timer_free(again);
}

/* Two threads enter in turn, however soon each asks again. */
#define ROUNDS 1000
static unsigned last_thread, changes;

static void *
compete(void *ctx)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        loop_enter(loop);
        changes += last_thread != (unsigned)(uintptr_t)ctx;
        last_thread = (unsigned)(uintptr_t)ctx;
        loop_leave(loop);
    }
    return NULL;
}

static void
one_at_a_time(void **state)
{
    pthread_t a, b;
    last_thread = changes = 0;
    assert_int_equal(pthread_create(&a, NULL, compete, (void *)1), 0);
    assert_int_equal(pthread_create(&b, NULL, compete, (void *)2), 0);
    loop_leave(loop);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    loop_enter(loop);
    assert_in_range(changes, 2, 2 * ROUNDS);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(timers_in_order),    T(restless_timer), T(deleted_meanwhile),
        T(runs_until_stopped), T(another_thread), T(one_at_a_time),
    };
    return cmocka_run_group_tests_name("channel-loop", tests, NULL, NULL);
}
