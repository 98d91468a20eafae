/* SPDX-License-Identifier: Apache-2.0 */
/* Which segments were sent again, and on which side of us they were lost. */
#include "fixture.h"

#define MSS 1000

static struct {
    unsigned watched, behind, before;
} count; /* of DATA */

static bool
look(struct rtt_seen p)
{
    struct rtt_sample s;
    int ends;
    if (!look_at(&p, &s, &ends))
        return false;
    if (s.tally && s.ifindex == 3) {
        assert_int_equal(s.queue, 10);
        count.watched += s.tally & 0xffff;
        count.behind += s.tally >> RTT_BEHIND & 0xff;
        count.before += s.tally >> RTT_BEFORE;
    }
    return true;
}

static bool
sends(uint32_t seq, uint32_t len)
{
    return look((struct rtt_seen){.dir = DATA, .acks = 1, .seq = seq, .ack = 1, .len = len});
}

static void
sends_super(uint32_t seq, unsigned n)
{
    look((struct rtt_seen){
        .dir = DATA, .acks = 1, .seq = seq, .ack = 1, .len = n * MSS, .first = MSS});
}

static bool
acknowledges(uint32_t ack)
{
    return look((struct rtt_seen){.dir = BACK, .acks = 1, .seq = 1, .ack = ack});
}

static void
counted(unsigned watched, unsigned behind, unsigned before)
{
    assert_int_equal(count.watched, watched);
    assert_int_equal(count.behind, behind);
    assert_int_equal(count.before, before);
}

/* From here on they are counted, the next one has this number. */
static void
watched_from(uint32_t seq)
{
    memset(&count, 0, sizeof count);
    sends(seq - 3 * MSS, MSS);
    sends(seq - 2 * MSS, MSS);
    sends(seq - MSS, MSS);
    clock_now += 5 * MS;
    acknowledges(seq - MSS);
    counted(0, 0, 0);
}

static void
none(void **state)
{
    watched_from(0);
    for (unsigned i = 0; i < 10; i++)
        sends(i * MSS, MSS);
    acknowledges(10 * MSS);
    counted(10, 0, 0);
}

static void
lost_behind(void **state)
{
    watched_from(10 * MSS);
    sends(10 * MSS, MSS);
    sends(11 * MSS, MSS);
    sends(12 * MSS, MSS);
    clock_now += MS;
    acknowledges(11 * MSS);
    sends(11 * MSS, MSS); /* at once: it was seen, so no other explains it */
    acknowledges(13 * MSS);
    counted(4, 1, 0);
}

static void
lost_before(void **state)
{
    watched_from(10 * MSS);
    sends(10 * MSS, MSS);
    sends(12 * MSS, MSS);
    sends(13 * MSS, MSS);
    clock_now += 20 * MS;
    sends(11 * MSS, MSS);
    acknowledges(14 * MSS);
    counted(4, 0, 1);
}

/* Of what is sent again as many bytes were lost before us as were missing. */
static void
lost_on_both_sides(void **state)
{
    watched_from(0);
    sends(0, MSS);
    sends(2 * MSS, MSS);
    sends(3 * MSS, MSS);
    clock_now += 20 * MS;
    sends(MSS, MSS);
    sends(3 * MSS, MSS);
    acknowledges(4 * MSS);
    counted(5, 1, 1);
}

static void
late(void **state)
{
    watched_from(0);
    sends(0, MSS);
    sends(3 * MSS, MSS);
    clock_now += MS;
    sends(MSS, MSS);
    clock_now += MS;
    sends(2 * MSS, MSS);
    sends(4 * MSS, MSS);
    clock_now += 20 * MS;
    sends(4 * MSS, MSS); /* none is missing any more */
    acknowledges(5 * MSS);
    counted(6, 1, 0);
}

/* What never came here came another way: once all is acknowledged, nothing is missing. */
static void
never_came(void **state)
{
    watched_from(0);
    sends(0, MSS);
    sends(2 * MSS, MSS);
    acknowledges(3 * MSS);
    sends(3 * MSS, MSS);
    clock_now += 20 * MS;
    sends(3 * MSS, MSS);
    acknowledges(4 * MSS);
    counted(4, 1, 0);
}

static void
numbers_that_wrap(void **state)
{
    uint32_t seq = UINT32_MAX - 1500;
    watched_from(seq);
    sends(seq, MSS);
    sends(seq + MSS, MSS);
    sends(seq + 3 * MSS, MSS);
    clock_now += 20 * MS;
    sends(seq + MSS, MSS);
    sends(seq + 2 * MSS, MSS);
    acknowledges(seq + 4 * MSS);
    counted(5, 1, 1);
}

/* Nobody knows whether there is anybody to whom it is sent. */
static void
syn_again(void **state)
{
    memset(&count, 0, sizeof count);
    const struct rtt_seen syn = {.dir = DATA, .syn = 1, .seq = 99, .len = 1};
    look(syn);
    clock_now += 1000 * MS;
    look(syn);
    clock_now += 20 * MS;
    look((struct rtt_seen){.dir = BACK, .syn = 1, .acks = 1, .seq = 499, .ack = 100, .len = 1});
    sends(100, MSS);
    sends(100 + MSS, MSS);
    acknowledges(100 + 2 * MSS);
    counted(2, 0, 0);
    look(syn); /* another connection of the same ports */
    sends(100, MSS);
    acknowledges(100 + MSS);
    counted(2, 0, 0);
}

/* RFC 1122, 4.2.3.6, and 4.2.2.17: with a byte of rubbish, or without. */
static void
keep_alives_and_probes_of_a_window(void **state)
{
    watched_from(0);
    sends(0, MSS);
    sends(MSS, MSS);
    acknowledges(2 * MSS);
    counted(2, 0, 0);
    for (unsigned i = 0; i < 5; i++) {
        clock_now += 200 * MS;
        sends(2 * MSS - 1, 0);
        sends(2 * MSS - 1, 1);
        acknowledges(2 * MSS);
    }
    sends(2 * MSS, 1); /* a new byte that finds no room */
    clock_now += 400 * MS;
    sends(2 * MSS, 1);
    clock_now += 800 * MS;
    sends(2 * MSS, 1);
    acknowledges(2 * MSS + 1);
    sends(2 * MSS + 1, MSS);
    sends(3 * MSS + 1, MSS);
    acknowledges(4 * MSS + 1);
    assert_int_equal(count.behind + count.before, 0);
}

static void
super_packets(void **state)
{
    watched_from(0);
    sends_super(0, 40);
    sends_super(40 * MSS, 4);
    clock_now += 20 * MS;
    sends_super(2 * MSS, 3);
    sends_super(43 * MSS, 5); /* one of them again */
    acknowledges(48 * MSS);
    counted(40 + 4 + 3 + 5, 3 + 1, 0);
}

static void
super_packets_lost_before(void **state)
{
    watched_from(0);
    sends_super(0, 4);
    sends_super(10 * MSS, 4);
    clock_now += 20 * MS;
    sends_super(4 * MSS, 2);
    sends_super(6 * MSS, 5); /* four were missing, one was not needed */
    acknowledges(14 * MSS);
    counted(4 + 4 + 2 + 5, 0, 2 + 5);
}

/* More than the tally has room for. */
static void
very_many(void **state)
{
    watched_from(0);
    for (unsigned i = 0; i < 100; i++)
        sends_super(i * 40 * MSS, 40);
    for (unsigned i = 0; i < 1000; i++)
        sends_super(i * 4 * MSS, 1);
    acknowledges(4000 * MSS);
    counted(5000, 1000, 0);
}

/* What the gate kept from us was not seen, so nothing is known of it. */
static void
gate_shut_by_another(void **state)
{
    watched_from(0);
    sends(0, MSS);
    *rtt_gate(&control, RTT_TCP, between.sport, between.dport) = rtt_ticks(clock_now) + RTT_EVERY;
    assert_false(sends(MSS, MSS));
    clock_now += 100 * MS;
    sends(5 * MSS, MSS);
    sends(2 * MSS, MSS);
    sends(3 * MSS, MSS);
    clock_now += 5 * MS;
    acknowledges(6 * MSS);
    counted(0, 0, 0);
    sends(6 * MSS, MSS);
    acknowledges(7 * MSS);
    counted(1, 0, 0);
}

/* A probe of which the answer was kept from us makes no round trip that was longer than it was. */
static void
answer_unseen(void **state)
{
    struct rtt_sample s = {0};
    struct rtt_seen ack = {.sig = 7, .dir = BACK, .acks = 1, .seq = 1, .ack = 4 * MSS};
    for (unsigned i = 0; i < 3; i++)
        sends(i * MSS, MSS);
    *rtt_gate(&control, RTT_TCP, between.sport, between.dport) = rtt_ticks(clock_now) + RTT_EVERY;
    clock_now += 100 * MS;
    ack.about = clock_now;
    rtt_enter(&control, &between, &slot, &ack);
    assert_false(rtt_look(&slot, &ack, &s));
}

/* One that found no place leaves the gate open for that which has it. */
static void
one_without_a_place(void **state)
{
    watched_from(0);
    sends(0, MSS);
    look((struct rtt_seen){.sig = 9, .dir = DATA, .acks = 1, .len = MSS});
    assert_true(sends(MSS, MSS));
    acknowledges(2 * MSS);
    counted(2, 0, 0);
    clock_now += 5000 * MS; /* but not for ever */
    look((struct rtt_seen){.sig = 9, .dir = DATA, .acks = 1, .len = MSS});
    assert_false(sends(2 * MSS, MSS));
}

static uint32_t seed;

static bool
happens(unsigned per_mille)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % 1000 < per_mille;
}

enum { WINDOW = 40, ROUNDS = 20000 };
static uint32_t sent[WINDOW]; /* of the last round trip: what was lost is sent again after it */
static bool gone[WINDOW];

/* The least number that has not come. */
static uint32_t
first_hole(uint32_t next)
{
    for (unsigned k = 0; k < WINDOW; k++)
        if (gone[k] && sent[k] < next)
            next = sent[k];
    return next;
}

/* A sender of 40 segments a round trip of 20 ms, of which a share of `lost` per mille is lost on each side: the shares
 * that are found, of a quarter of all segments, are those that there were. */
static void
shares(const unsigned lost[2])
{
    unsigned passed = 0, n[2] = {0}, got[2];
    uint32_t next = 0, acks[WINDOW] = {0};
    memset(&count, 0, sizeof count);
    memset(gone, 0, sizeof gone);
    for (unsigned i = 0; i < ROUNDS * WINDOW; i++) {
        unsigned at = i % WINDOW;
        uint32_t seq = gone[at] ? sent[at] : next++;
        clock_now += MS / 2;
        acknowledges(acks[(i + 1) % WINDOW] * MSS); /* what came a round trip ago */
        bool before = happens(lost[0]), behind = !before && happens(lost[1]);
        if (!before)
            sends(seq * MSS, MSS);
        n[0] += before;
        n[1] += behind;
        passed += !before;
        sent[at] = seq;
        gone[at] = before || behind;
        acks[at] = first_hole(next);
    }
    got[0] = count.before, got[1] = count.behind;
    assert_in_range(count.watched, passed / 6, passed / 2);
    for (unsigned i = 0; i < 2; i++) {
        double share = (double)got[i] / count.watched, truth = (double)n[i] / passed;
        print_message("lost %u,%u per mille of %u: %.2f of %u\n", lost[0], lost[1], passed,
                      1000 * share, count.watched);
        assert_true(share >= truth * 0.9 - 0.0003 && share <= truth * 1.1 + 0.0003);
    }
}

static void
shares_of_a_sender(void **state)
{
    static const unsigned each[][2] = {{0, 0}, {0, 2},  {2, 0},  {0, 10}, {10, 0},
                                       {5, 5}, {20, 0}, {0, 20}, {10, 10}};
    for (size_t i = 0; i < sizeof each / sizeof each[0]; i++) {
        setup(state);
        shares(each[i]);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(none, setup),
        cmocka_unit_test_setup(lost_behind, setup),
        cmocka_unit_test_setup(lost_before, setup),
        cmocka_unit_test_setup(lost_on_both_sides, setup),
        cmocka_unit_test_setup(late, setup),
        cmocka_unit_test_setup(never_came, setup),
        cmocka_unit_test_setup(numbers_that_wrap, setup),
        cmocka_unit_test_setup(syn_again, setup),
        cmocka_unit_test_setup(keep_alives_and_probes_of_a_window, setup),
        cmocka_unit_test_setup(super_packets, setup),
        cmocka_unit_test_setup(super_packets_lost_before, setup),
        cmocka_unit_test_setup(very_many, setup),
        cmocka_unit_test_setup(gate_shut_by_another, setup),
        cmocka_unit_test_setup(answer_unseen, setup),
        cmocka_unit_test_setup(one_without_a_place, setup),
        cmocka_unit_test_setup(shares_of_a_sender, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
