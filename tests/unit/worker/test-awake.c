/* SPDX-License-Identifier: Apache-2.0 */
/* When a worker stays awake: simulated senders, on a machine whose wake-ups take WAKE. */
#include <dataplane/worker-awake.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define US     UINT64_C(1000)
#define MS     UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)
#define WAKE   (30 * US)
#define ROUND  200 /* ns, of an empty one */
#define WORK   (3 * US)

/* Waits for an answer (a closed loop), or sends whatever happens. */
struct sender {
    uint64_t gap; /* from the answer, or from the packet before */
    bool closed;  /* waits for the answer */
    unsigned
        answer; /* of so many packets in a row the others come ANSWER after each other; 0: all are alike */
};

#define ANSWER (20 * US)

static struct awake a;
static uint64_t now, packets;

static int
set_up(void **state)
{
    now = SECOND;
    packets = 0;
    awake_init(&a, AWAKE_AUTO, true);
    return 0;
}

/* The worker waits for the packet that comes at `at`. */
static void
until(uint64_t at)
{
    while (now < at && awake_stays(&a, now))
        now += ROUND;
    if (now < at) {
        now = at + WAKE;
        awake_woken(&a, now, WAKE);
    }
    awake_worked(&a, now, 64);
    now += WORK;
    packets++;
}

static void
send(const struct sender *s, uint64_t duration)
{
    uint64_t end = now + duration, next = now + s->gap;
    for (unsigned i = 1; now < end; i++) {
        uint64_t gap = s->answer && i % s->answer ? ANSWER : s->gap;
        until(next);
        next = (s->closed ? now : next) + gap;
    }
}

/* Of the next `duration`, the part without a packet that the worker is awake in, in thousandths. */
static unsigned
awake_part(const struct sender *s, uint64_t duration)
{
    uint64_t before = a.waited;
    send(s, duration);
    return (unsigned)((a.waited - before) * 1000 / duration);
}

static void
who_waits_for_an_answer(void **state)
{
    const struct sender s = {.gap = 20 * US, .closed = true};
    send(&s, 300 * MS);
    assert_true(a.wake_ns > WAKE * 9 / 10 && a.wake_ns < WAKE * 11 / 10);
    assert_true(awake_part(&s, 5 * SECOND) > 700);
    uint64_t before = packets;
    send(&s, SECOND);
    assert_true(packets - before > 40000); /* 19,000 asleep */
}

static void
who_sends_on_anyway(void **state)
{
    const struct sender s = {.gap = 40 * US};
    send(&s, 300 * MS);
    assert_true(awake_part(&s, 10 * SECOND) < 10);
}

static void
requests_far_apart(void **state)
{
    const struct sender s = {.gap = 1000 * US, .closed = true},
                        with_answer = {.gap = 1000 * US, .closed = true, .answer = 2};
    assert_int_equal(awake_part(&s, 10 * SECOND), 0);
    assert_int_equal(awake_part(&with_answer, 10 * SECOND), 0);
}

static void
rest_after_work(void **state)
{
    const struct sender s = {.gap = 20 * US, .closed = true}, rare = {.gap = 10 * MS};
    send(&s, SECOND);
    assert_true(awake_part(&rare, 10 * SECOND) < 5);
    assert_true(awake_part(&s, SECOND) > 500); /* and again */
}

static void
one_processor(void **state)
{
    const struct sender s = {.gap = 20 * US, .closed = true};
    awake_init(&a, AWAKE_AUTO, false);
    assert_int_equal(awake_part(&s, SECOND), 0);
}

static void
told_to(void **state)
{
    const struct sender s = {.gap = 40 * US}, rare = {.gap = 1000 * US};
    awake_init(&a, 100, false);
    assert_true(awake_part(&s, SECOND) > 800);
    unsigned part = awake_part(&rare, SECOND);
    assert_true(part > 50 && part < 150);
    awake_set(&a, 0);
    assert_int_equal(awake_part(&s, SECOND), 0);
    awake_set(&a, AWAKE_MOST_US);
    assert_true(awake_part(&rare, SECOND) > 900);
}

static void
disturbed_measurements(void **state)
{
    const struct sender s = {.gap = 20 * US, .closed = true};
    for (int i = 0; i < 1000; i++) {
        send(&s, MS);
        awake_stays(&a, now);
        awake_woken(&a, now + 900 * US, i % 10 ? WAKE : 900 * US); /* the machine had a pause */
    }
    assert_true(a.wake_ns > WAKE / 2 && a.wake_ns < 2 * WAKE);
    assert_true(awake_window(&a) <= 200 * US);
}

#define TEST(f) cmocka_unit_test_setup(f, set_up)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(who_waits_for_an_answer), TEST(who_sends_on_anyway), TEST(requests_far_apart),
        TEST(rest_after_work),         TEST(one_processor),       TEST(told_to),
        TEST(disturbed_measurements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
