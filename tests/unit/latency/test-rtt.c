/* SPDX-License-Identifier: Apache-2.0 */
/* Which packets make a round trip, and which would spoil it. */
#include "fixture.h"

#define MSS 1000

/* The sample that the packet ends, us; -1: none. */
static int64_t
look(struct rtt_seen p)
{
    struct rtt_sample s;
    int ends;
    if (!look_at(&p, &s, &ends))
        return -1;
    if (!ends)
        return -1;
    assert_int_equal(s.ifindex, p.dir == DATA ? 4 : 3); /* where the probe left */
    assert_int_equal(s.queue, p.dir == DATA ? 0 : 10);
    return s.us;
}

static int64_t
sends(uint32_t seq, uint32_t len)
{
    return look((struct rtt_seen){.dir = DATA, .acks = 1, .seq = seq, .ack = 1, .len = len});
}

/* Of three segments the second one is a probe: nothing is known of what was before the first. */
static void
stream(uint32_t seq, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(sends(seq + i * MSS, MSS), -1);
}

static int64_t
acknowledges(uint32_t ack)
{
    return look((struct rtt_seen){.dir = BACK, .acks = 1, .seq = 1, .ack = ack});
}

static void
handshake(void **state)
{
    assert_int_equal(look((struct rtt_seen){.dir = DATA, .syn = 1, .seq = 99, .len = 1}), -1);
    clock_now += 20 * MS;
    assert_int_equal(
        look((struct rtt_seen){.dir = BACK, .syn = 1, .acks = 1, .seq = 499, .ack = 100, .len = 1}),
        20000);
    clock_now += 3 * MS;
    assert_int_equal(look((struct rtt_seen){.dir = DATA, .acks = 1, .seq = 100, .ack = 500}), 3000);
}

/* A SYN that was sent again is answered once, and nobody knows which of the two was meant. */
static void
syn_again(void **state)
{
    const struct rtt_seen syn = {.dir = DATA, .syn = 1, .seq = 99, .len = 1};
    look(syn);
    clock_now += 1000 * MS;
    look(syn);
    clock_now += 20 * MS;
    assert_int_equal(
        look((struct rtt_seen){.dir = BACK, .syn = 1, .acks = 1, .seq = 499, .ack = 100, .len = 1}),
        -1);
    clock_now += 20 * MS;
    stream(100, 3);
    clock_now += 5 * MS;
    assert_int_equal(acknowledges(100 + 2 * MSS), 5000);
}

/* A segment each ms, acknowledged 5 ms later: at most a probe in 16 ms, and most segments are not looked at. */
static void
long_stream(void **state)
{
    unsigned samples = 0;
    for (unsigned i = 0; i < 1000; i++) {
        clock_now += MS;
        assert_int_equal(sends(i * MSS, MSS), -1);
        int64_t us = i < 5 ? -1 : acknowledges((i - 4) * MSS);
        assert_true(us == -1 || us == 5000);
        samples += us >= 0;
    }
    assert_in_range(samples, 30, 1000 / 16);
    assert_in_range(looked, 4 * samples, 2000 / 2);
}

/* The longer the way, the longer the gate is shut after a probe: it is open a quarter of the time. */
static void
long_way(void **state)
{
    unsigned samples = 0;
    for (unsigned i = 0; i < 40000; i++) {
        clock_now += MS;
        sends(i * MSS, MSS);
        if (i >= 200)
            samples += acknowledges((i - 199) * MSS) == 200000;
    }
    assert_in_range(samples, 4 * 8, 4 * 14);
    assert_in_range(looked, 0, 80000 / 3);
}

/* A segment that no other follows is acknowledged when the receiver's timer says so. */
static void
held_back(void **state)
{
    stream(0, 2);
    clock_now += 40 * MS;
    assert_int_equal(acknowledges(2 * MSS), -1);
    clock_now += 100 * MS;
    stream(2 * MSS, 1);
    clock_now += 30 * MS;
    sends(3 * MSS, MSS); /* follows too late */
    clock_now += 5 * MS;
    assert_int_equal(acknowledges(4 * MSS), -1);
}

static void
lost_behind_the_switch(void **state)
{
    stream(0, 3);
    clock_now += 200 * MS;
    sends(MSS, MSS); /* again */
    clock_now += 5 * MS;
    assert_int_equal(acknowledges(2 * MSS), -1);
    stream(3 * MSS, 3); /* not all of it is acknowledged yet */
    clock_now += 5 * MS;
    assert_int_equal(acknowledges(5 * MSS), -1);
    clock_now += 20 * MS;
    stream(6 * MSS, 3);
    clock_now += 5 * MS;
    assert_int_equal(acknowledges(8 * MSS), 5000);
}

static void
lost_before_the_switch(void **state)
{
    stream(0, 1);
    sends(2 * MSS, MSS); /* one is missing */
    stream(3 * MSS, 2);
    clock_now += 100 * MS;
    sends(MSS, MSS);
    clock_now += 5 * MS;
    assert_int_equal(acknowledges(5 * MSS), -1);
    clock_now += 20 * MS;
    stream(5 * MSS, 3);
    clock_now += 5 * MS;
    assert_int_equal(acknowledges(7 * MSS), 5000);
}

/* Of a super-packet the first segment is the probe: the receiver need not wait for another. */
static void
super_packet(void **state)
{
    stream(0, 1);
    look((struct rtt_seen){.dir = DATA, .acks = 1, .seq = MSS, .len = 40 * MSS, .first = MSS});
    clock_now += 5 * MS;
    assert_int_equal(acknowledges(3 * MSS), 5000);
    clock_now += 50 * MS;
    assert_int_equal(acknowledges(41 * MSS), -1);
}

static void
numbers_that_wrap(void **state)
{
    uint32_t seq = UINT32_MAX - 500;
    stream(seq, 3);
    clock_now += 5 * MS;
    assert_int_equal(acknowledges(seq + MSS), -1);
    assert_int_equal(acknowledges(seq + 2 * MSS), 5000);
}

static void
echoes(void **state)
{
    const struct rtt_seen request = {.dir = DATA, .kind = RTT_ECHO, .seq = 5, .ack = 5, .len = 1};
    struct rtt_seen reply = {.dir = BACK, .kind = RTT_ECHO, .acks = 1, .seq = 5, .ack = 5};
    look(request);
    clock_now += 7 * MS;
    reply.ack = 4; /* of another request */
    assert_int_equal(look(reply), -1);
    reply.ack = 5;
    assert_int_equal(look(reply), 7000);
    assert_int_equal(look(reply), -1); /* twice */
}

/* As rtt_read_udp reads it: what matters is in the datagram's first bytes. */
static struct rtt_seen
dns(uint16_t sport, uint16_t dport, uint16_t id, bool answer, struct rtt_ends *e)
{
    const uint8_t b[RTT_UDP] = {sport >> 8, sport & 0xff, dport >> 8, dport & 0xff, 0, 40, 0,
                                0,          id >> 8,      id & 0xff,  answer << 7};
    struct rtt_seen p = {.dir = answer ? BACK : DATA};
    *e = (struct rtt_ends){.src = {10}, .dst = {20}};
    if (!rtt_read_udp(b, 40, e, &p))
        p.kind = RTT_ECHO;
    return p;
}

static void
queries(void **state)
{
    struct rtt_ends e;
    const struct rtt_seen query = dns(40000, 53, 0x1234, false, &e);
    const struct rtt_seen answer = dns(53, 40000, 0x1234, true, &e);
    look(query);
    clock_now += 30 * MS;
    assert_int_equal(look(answer), 30000);
    assert_int_equal(slot.sig, 0); /* the next query comes from another port */
    assert_int_equal(look(answer), -1);
    assert_int_equal(slot.sig, 0);
    look(query);
    clock_now += 1000 * MS;
    look(query); /* again: which of the two is answered? */
    clock_now += MS;
    assert_int_equal(look(answer), -1);
    look(query);
    clock_now += 11000 * MS;
    assert_int_equal(look(answer), -1);
}

static void
dns_messages(void **state)
{
    struct rtt_ends e;
    assert_int_equal(dns(40000, 53, 7, false, &e).kind, RTT_DNS);
    assert_true(e.sport == 40000 && e.dport == 53 && e.id == 7);
    assert_int_equal(dns(53, 53, 7, false, &e).len, 1);
    assert_int_equal(dns(53, 53, 7, true, &e).len, 0);
    assert_int_not_equal(dns(40000, 53, 7, true, &e).kind, RTT_DNS);
    assert_int_not_equal(dns(53, 40000, 7, false, &e).kind, RTT_DNS);
    const uint8_t b[RTT_UDP] = {0x9c, 0x40, 0, 53};
    struct rtt_seen p = {0};
    assert_false(rtt_read_udp(b, 19, &e, &p)); /* no room for a DNS header */
    assert_true(rtt_read_udp(b, 20, &e, &p));
}

static void
too_long(void **state)
{
    stream(0, 3);
    clock_now += 11000 * MS;
    assert_int_equal(acknowledges(2 * MSS), -1);
}

/* A connection that is measured keeps its place, but not for ever. */
static void
places(void **state)
{
    const struct rtt_seen other = {.sig = 9, .dir = DATA, .acks = 1, .len = MSS, .first = MSS};
    struct rtt_sample s = {0};
    stream(0, 3);
    struct rtt_seen late = other;
    late.about = clock_now;
    rtt_look(&slot, &late, &s);
    assert_int_equal(slot.sig, 9); /* nothing was measured yet */
    setup(state);
    stream(0, 3);
    acknowledges(2 * MSS);
    late.about = clock_now;
    rtt_look(&slot, &late, &s);
    assert_int_equal(slot.sig, 7);
    late.about = clock_now + 60000 * MS;
    rtt_look(&slot, &late, &s);
    assert_int_equal(slot.sig, 9);
    setup(state);
    assert_int_equal(acknowledges(MSS), -1); /* what sends nothing takes no place */
    assert_int_equal(slot.sig, 0);
}

static void
signatures(void **state)
{
    struct rtt_control c = {.secret = {1, 2, 3, 4}};
    struct rtt_ends a = {{10, 0}, {20, 0}, 1000, 80, 7, 0}, b = {{20, 0}, {10, 0}, 80, 1000, 7, 0};
    struct rtt_seen x, y;
    rtt_sign(&c, &a, &x);
    rtt_sign(&c, &b, &y);
    assert_int_equal(x.sig, y.sig);
    assert_int_not_equal(x.dir, y.dir);
    assert_int_not_equal(x.sig, 0);
    b.ifindexes = 8; /* the same connection at other ports: a packet may pass the switch twice */
    rtt_sign(&c, &b, &y);
    assert_int_not_equal(x.sig, y.sig);
    b = (struct rtt_ends){{20, 0}, {10, 0}, 80, 1000, 7, 1}; /* another query */
    rtt_sign(&c, &b, &y);
    assert_int_not_equal(x.sig, y.sig);
    b = (struct rtt_ends){{20, 0}, {10, 0}, 81, 1000, 7, 0};
    rtt_sign(&c, &b, &y);
    assert_int_not_equal(x.sig, y.sig);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(handshake, setup),
        cmocka_unit_test_setup(syn_again, setup),
        cmocka_unit_test_setup(long_stream, setup),
        cmocka_unit_test_setup(long_way, setup),
        cmocka_unit_test_setup(held_back, setup),
        cmocka_unit_test_setup(lost_behind_the_switch, setup),
        cmocka_unit_test_setup(lost_before_the_switch, setup),
        cmocka_unit_test_setup(super_packet, setup),
        cmocka_unit_test_setup(numbers_that_wrap, setup),
        cmocka_unit_test_setup(echoes, setup),
        cmocka_unit_test_setup(queries, setup),
        cmocka_unit_test_setup(dns_messages, setup),
        cmocka_unit_test_setup(too_long, setup),
        cmocka_unit_test_setup(places, setup),
        cmocka_unit_test_setup(signatures, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
