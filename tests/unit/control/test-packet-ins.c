/* SPDX-License-Identifier: Apache-2.0 */
/* Packet-ins to a connection: turns of ports, the connection's rate, peers that do not read. */
#include "fixture.h"
#include <control/fair-queue.h>

#include <time.h>

/* ------------------------------------------------------------------ lanes */

static void
fair_queue_take_turns(void **state)
{
    static const uint32_t in[] = {1, 1, 1, 2, 3, 3}, out[] = {1, 2, 3, 1, 3, 1};
    static struct fair_queue l;
    uint32_t port[FAIR_QUEUE_PLACES] = {0};
    fair_queue_init(&l);
    assert_int_equal(fair_queue_pop(&l), FAIR_QUEUE_NONE);
    assert_int_equal(fair_queue_longest(&l), FAIR_QUEUE_NONE);
    for (int i = 0; i < 6; i++)
        port[fair_queue_put(&l, in[i])] = in[i];
    for (int i = 0; i < 6; i++) {
        int first = fair_queue_first(&l);
        assert_int_equal(port[first], out[i]);
        assert_int_equal(fair_queue_pop(&l), first);
    }
    assert_int_equal(fair_queue_first(&l), FAIR_QUEUE_NONE);
}

static void
the_longest_gives(void **state)
{
    static struct fair_queue l;
    int quiet[3], n = 0;
    fair_queue_init(&l);
    for (uint32_t p = 0; p < 3; p++)
        quiet[p] = fair_queue_put(&l, 100 + p);
    int flood = fair_queue_put(&l, 7), place;
    for (place = flood; place != FAIR_QUEUE_NONE; n++)
        place = fair_queue_put(&l, 7);
    assert_int_equal(n, FAIR_QUEUE_PLACES - 3);
    for (int i = 0; i < 1000; i++) { /* the flood goes on, at its own cost, the oldest first */
        int oldest = fair_queue_longest(&l);
        if (!i)
            assert_int_equal(oldest, flood);
        for (int p = 0; p < 3; p++)
            assert_int_not_equal(oldest, quiet[p]);
        fair_queue_remove(&l, oldest);
        assert_int_equal(fair_queue_put(&l, 7), oldest);
    }
    for (int p = 0; p < 3; p++)
        assert_int_equal(fair_queue_pop(&l), quiet[p]);
    for (n = 0; fair_queue_pop(&l) != FAIR_QUEUE_NONE; n++)
        continue;
    assert_int_equal(n, FAIR_QUEUE_PLACES - 3);
}

/* As many lanes as places; taken out in any order. */
static void
many_ports(void **state)
{
    static struct fair_queue l;
    fair_queue_init(&l);
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < FAIR_QUEUE_PLACES; i++)
            assert_int_not_equal(fair_queue_put(&l, i * 16), FAIR_QUEUE_NONE);
        assert_int_equal(fair_queue_put(&l, 5), FAIR_QUEUE_NONE);
        for (int i = 0; i < FAIR_QUEUE_PLACES; i++)
            fair_queue_remove(&l, i * 37 % FAIR_QUEUE_PLACES);
        assert_int_equal(fair_queue_first(&l), FAIR_QUEUE_NONE);
    }
}

/* ------------------------------------------------------------------ connections */

static void
packet_in(struct fixture *f, uint32_t port, uint32_t number, size_t n)
{
    static uint8_t frame[2000];
    struct of_packet_in p = {
        .buffer_id = OFP_NO_BUFFER, .cookie = (uint64_t)port << 32 | number, .data = {frame, n}};
    channel_packet_in(f->ch, port, &p);
}

/* Its port and number; false: what has come is something else. */
static bool
received(struct peer *p, uint32_t *port, uint32_t *number)
{
    struct of_bytes m = peer_recv(p);
    if (m.n < 24 || m.p[1] != OFPT_PACKET_IN)
        return false;
    *port = of_get32(m.p + 16);
    *number = of_get32(m.p + 20);
    return true;
}

static void
told_in_order(void **state)
{
    struct fixture *f = *state;
    struct peer *p = peer_open(f);
    uint32_t port, number;
    for (uint32_t i = 0; i < 10000; i++) {
        packet_in(f, 1, i, 100);
        if (i % 256 == 255) {
            channel_packet_ins_send(f->ch);
            fixture_turns(f, 0);
            for (uint32_t k = i - 255; k <= i; k++) {
                assert_true(received(p, &port, &number));
                assert_int_equal(number, k);
            }
        }
    }
    assert_int_equal(channel_counters(f->ch)->packet_in_dropped, 0);
    peer_free(p);
}

/* The peer reads nothing, one port floods, others have something now and then. */
static void
a_slow_peer_hears_all_ports(void **state)
{
    struct fixture *f = *state;
    struct peer *p = peer_open(f);
    uint32_t port = 0, number, n[4] = {0}, last = 0, total = 0;
    fixture_turns(f, 0);
    for (uint32_t i = 0; i < 20000; i++) {
        packet_in(f, 1, i, 1000);
        if (i >= 10000 && i % 1000 == 0) {
            packet_in(f, 2, i, 1000);
            packet_in(f, 3, i, 1000);
        }
    }
    channel_packet_ins_send(f->ch);
    assert_true(channel_counters(f->ch)->packet_in_dropped > 10000);
    assert_true(f->ch->out_total < 1u << 20);
    for (; total + channel_counters(f->ch)->packet_in_dropped < 20020; total++) {
        assert_true(received(p, &port, &number));
        n[port]++;
        if (port == 1)
            last = number;
    }
    assert_int_equal(n[2], 10);
    assert_int_equal(n[3], 10);
    assert_int_equal(last, 19999); /* what arrives is recent */
    peer_expect_nothing(p);
    peer_free(p);
}

static void
a_rate(void **state)
{
    struct fixture *f = *state;
    struct timespec from, to;
    channel_set_options(f->ch,
                        &(struct channel_options){.packet_in_rate = 100, .packet_in_burst = 20});
    struct peer *p = peer_open(f);
    uint32_t port = 0, number, n[3] = {0};
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (uint32_t i = 0; i < 5000; i++)
        packet_in(f, 1, i, 60);
    packet_in(f, 2, 0, 60);
    channel_packet_ins_send(f->ch);
    assert_true(channel_counters(f->ch)->packet_in_limited > 4000);
    assert_int_equal(channel_counters(f->ch)->packet_in_dropped, 0);
    for (unsigned i = 0; i < 60; i++) { /* 20 at once, the others at 10 ms each */
        assert_true(received(p, &port, &number));
        n[port]++;
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    assert_int_equal(n[2], 1);
    double s = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
    assert_true(s > 0.35);
    peer_free(p);
}

/* What waits for one who no longer wants it is forgotten. */
static void
a_changed_mind(void **state)
{
    struct fixture *f = *state;
    struct of_async none = {0};
    channel_set_options(f->ch, &(struct channel_options){.packet_in_rate = 1});
    struct peer *p = peer_open(f);
    uint32_t port, number;
    for (uint32_t i = 0; i < 100; i++)
        packet_in(f, 1, i, 60);
    channel_packet_ins_send(f->ch);
    assert_true(received(p, &port, &number));
    peer_request(p, OFPT_SET_ASYNC, 5, &none);
    peer_expect_nothing(p);
    channel_packet_ins_send(f->ch);
    peer_expect_nothing(p);
    assert_false(channel_wants(f->ch, ASYNC_PACKET_IN, OFPR_NO_MATCH));
    peer_free(p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fair_queue_take_turns),
        cmocka_unit_test(the_longest_gives),
        cmocka_unit_test(many_ports),
        cmocka_unit_test_setup_teardown(told_in_order, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_slow_peer_hears_all_ports, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(a_rate, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_changed_mind, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
