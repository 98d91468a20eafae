/* SPDX-License-Identifier: Apache-2.0 */
/* For which packets a worker asks, and how often; time is what the test says. */
#include <dataplane/dp.h>

#include <oflib/openflow.h>
#include <packet/key-hash.h>
#include <shared/rcu.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TICK (UINT64_C(1) << 20) /* ns, about a millisecond */

static struct offload_sample *s;
static struct offload_kinds kinds; /* by IPv4 destination */
static uint64_t now;

static int
setup(void **state)
{
    key_hash_renew();
    kinds = (struct offload_kinds){.n = 2, .word = {0, 10}};
    memset(kinds.all.in_port, 0xff, 4);
    memset(kinds.all.ip_dst.v4, 0xff, 4);
    kinds.bits[0] = kinds.all.w[0];
    kinds.bits[1] = kinds.all.w[10];
    assert_true(kinds.bits[0] && kinds.bits[1]);
    now = 1000 * TICK;
    s = sample_new();
    return s ? 0 : -1;
}

static int
teardown(void **state)
{
    sample_free(s);
    return 0;
}

static struct packet
packet(uint32_t dst)
{
    struct packet p = {.len = 100, .wire_len = 100, .in_port = 3};
    of_set32(p.key.in_port, 3);
    of_set32(p.key.ip_dst.v4, dst);
    return p;
}

/* A round with one packet.  Returns whether it made a request. */
static bool
comes(uint32_t dst)
{
    struct packet p = packet(dst);
    sample_begin(s, now);
    return sample_batch(s, &kinds, false, &p, 1);
}

/* Takes one request, which must be for this destination. */
static void
take(uint32_t dst)
{
    const struct offload_request *r = sample_peek(s);
    assert_non_null(r);
    assert_int_equal(of_get32(r->key.ip_dst.v4), dst);
    assert_int_equal(r->in_port, 3);
    sample_take(s);
}

static void
test_second_packet(void **state)
{
    assert_false(comes(1));
    assert_false(comes(2)); /* another kind */
    assert_null(sample_peek(s));
    assert_true(comes(1));
    assert_true(comes(2));
    take(1);
    take(2);
    assert_null(sample_peek(s));
    assert_int_equal(sample_counts(s).asked, 2);
}

static void
test_bits_that_nobody_looks_at(void **state)
{
    struct packet p[2] = {packet(1), packet(1)};
    p[1].key.ip_proto = 17;
    sample_begin(s, now);
    assert_true(sample_batch(s, &kinds, false, p, 2));
    take(1);
    assert_null(sample_peek(s));
}

/* A packet that comes out of its port's queues needs an entry of its own. */
static void
test_behind_queues(void **state)
{
    struct packet p[2] = {packet(1), packet(1)};
    sample_begin(s, now);
    assert_true(sample_batch(s, &kinds, false, p, 2));
    assert_true(sample_batch(s, &kinds, true, p, 2));
    assert_false(sample_peek(s)->behind);
    take(1);
    assert_true(sample_peek(s)->behind);
    take(1);
    assert_null(sample_peek(s));
}

/* After how many ticks of a packet a tick the kind is asked for again. */
static unsigned
asked_after(uint32_t dst)
{
    unsigned n = 0;
    do {
        now += TICK;
        n++;
    } while (!comes(dst));
    take(dst);
    return n;
}

static void
test_less_and_less_often(void **state)
{
    comes(1);
    assert_true(comes(1));
    take(1);
    static const unsigned waits[] = {10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000};
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++)
        assert_int_equal(asked_after(1), waits[i]);
    now += 1999 * TICK; /* not silent for long enough behind the second that is due */
    assert_true(comes(1));
    take(1);
    assert_int_equal(asked_after(1), 1000);
    now += 2001 * TICK;
    assert_true(comes(1));
    take(1);
    assert_int_equal(asked_after(1), 10);
}

/* Ticks wrap after 52 days. */
static void
test_years(void **state)
{
    for (unsigned i = 0; i < 300; i++) {
        comes(1);
        comes(1);
        take(1);
        assert_null(sample_peek(s));
        now += (UINT64_C(1) << 31) * TICK / 7;
    }
}

/* Merging is a sign of a slow start as well: the entry's packets tell what is better. */
static void
test_merged(void **state)
{
    struct packet p = packet(1);
    comes(1);
    p.wire_len = 3000; /* of several */
    sample_begin(s, now);
    assert_true(sample_batch(s, &kinds, false, &p, 1));
    assert_int_equal(sample_counts(s).merged, 1);
}

static void
test_keys_that_do_not_tell_all(void **state)
{
    struct packet p[4] = {packet(1), packet(1), packet(1), packet(1)};
    for (unsigned i = 0; i < 4; i++)
        p[i].malformed = true;
    sample_begin(s, now);
    assert_false(sample_batch(s, &kinds, false, p, 4));
    assert_null(sample_peek(s));
}

/* What is too much for a round is asked for in the next. */
static void
test_round(void **state)
{
    enum { KINDS = SAMPLE_ROUND + 36 };
    struct packet p[KINDS];
    for (uint32_t i = 0; i < KINDS; i++)
        p[i] = packet(i);
    unsigned n = 0;
    for (unsigned round = 0; round < 3; round++) {
        sample_begin(s, now);
        sample_batch(s, &kinds, false, p, KINDS);
        unsigned before = n;
        for (; sample_peek(s); n++)
            sample_take(s);
        assert_true(n - before <= SAMPLE_ROUND);
    }
    assert_in_range(n, KINDS - 10, KINDS + 10); /* some may share a set that is too small */
    assert_true(sample_counts(s).over > 0);
}

/* Each kind comes twice and never again, as fast as can be. */
static void
test_second(void **state)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        comes(i);
        comes(i);
        for (; sample_peek(s); n++)
            sample_take(s);
    }
    assert_int_equal(n, SAMPLE_SECOND);
    now += UINT64_C(1000000000);
    comes(1);
    assert_true(comes(1));
}

/* Nobody takes requests. */
static void
test_full_ring(void **state)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < 4000; i++) {
        comes(i);
        n += comes(i);
    }
    assert_in_range(n, 500, 1500);
    assert_int_equal(sample_counts(s).asked, n);
    assert_int_equal(sample_counts(s).over, 4000 - n);
    take(0);
}

/* An ISP's customers in turn, far more than there are places: nobody comes again soon, and yet each gets its entry. */
static void
test_many_in_turn(void **state)
{
    enum { MANY = 20000, A_SECOND = 10000 };
    static bool has[MANY];
    unsigned left = MANY, seconds = 0;
    memset(has, 0, sizeof has);
    for (uint32_t i = 0; left && seconds < 300; i++) {
        if (i % A_SECOND == 0)
            seconds++;
        now += UINT64_C(1000000000) / A_SECOND;
        if (!has[i % MANY])
            comes(i % MANY);
        for (const struct offload_request *r; (r = sample_peek(s)); sample_take(s)) {
            uint32_t dst = of_get32(r->key.ip_dst.v4);
            left -= !has[dst];
            has[dst] = true; /* the kernel handles it from now on */
        }
    }
    assert_int_equal(left, 0);
    assert_in_range(seconds, 5, 200);
}

/* Packets of which each is new cost no request, and don't hide one that comes again. */
static void
test_flood(void **state)
{
    unsigned n = 0, again = 0;
    for (uint32_t i = 0; i < 100000; i++) {
        now += TICK / 1000;
        n += comes(0x10000 + i);
        again += i % 50 == 0 && comes(1);
    }
    assert_in_range(n, 0, 5); /* two in four billion have the same hash */
    assert_true(again > 0);
}

/* ------------------------------------------------------------------ what kinds are */

static void
no_event(void *ctx, struct flow *f, uint8_t reason, uint64_t at)
{
}

static void
add_flow(struct tables *t, enum oxm_field field)
{
    struct of_oxm oxm = {.row = &oxm_rows[field]};
    memset(oxm.mask, 0xff, sizeof oxm.mask);
    struct of_flow_mod m = {.command = OFPFC_ADD,
                            .buffer_id = OFP_NO_BUFFER,
                            .out_port = OFPP_ANY,
                            .out_group = OFPG_ANY,
                            .match = {.n = 1, .v = &oxm}};
    assert_int_equal(tables_flow_mod(t, &m, 0), 0);
}

static void
test_bits_of_the_tables(void **state)
{
    struct tables_ops ops = {.removed = no_event};
    struct dp dp = {.tables = tables_new(2, 1, &ops)};
    struct flow_key more = {0};
    assert_int_equal(dp_set_kinds(&dp, false, NULL), 0);
    assert_null(dp.kinds);
    assert_int_equal(dp_set_kinds(&dp, true, NULL), 0);
    assert_int_equal(dp.kinds->n, 2); /* the port, and whether it is a fragment */
    const struct offload_kinds *was = dp.kinds;
    add_flow(dp.tables, OXM_metadata); /* which no packet has yet */
    assert_int_equal(dp_set_kinds(&dp, true, NULL), 0);
    assert_ptr_equal(dp.kinds, was);
    add_flow(dp.tables, OXM_eth_dst);
    assert_int_equal(dp_set_kinds(&dp, true, NULL), 0);
    assert_int_equal(dp.kinds->n, 3);
    assert_int_equal(dp.kinds->all.eth_dst[5], 0xff);
    more.ip_proto = 0xff;
    assert_int_equal(dp_set_kinds(&dp, true, &more), 0);
    assert_int_equal(dp.kinds->n, 4);
    assert_int_equal(dp.kinds->all.ip_proto, 0xff);
    assert_int_equal(dp_set_kinds(&dp, false, &more), 0);
    assert_null(dp.kinds);
    rcu_wait();
    tables_free(dp.tables);
    rcu_wait();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_second_packet, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bits_that_nobody_looks_at, setup, teardown),
        cmocka_unit_test_setup_teardown(test_behind_queues, setup, teardown),
        cmocka_unit_test_setup_teardown(test_less_and_less_often, setup, teardown),
        cmocka_unit_test_setup_teardown(test_years, setup, teardown),
        cmocka_unit_test_setup_teardown(test_merged, setup, teardown),
        cmocka_unit_test_setup_teardown(test_keys_that_do_not_tell_all, setup, teardown),
        cmocka_unit_test_setup_teardown(test_round, setup, teardown),
        cmocka_unit_test_setup_teardown(test_second, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full_ring, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_in_turn, setup, teardown),
        cmocka_unit_test_setup_teardown(test_flood, setup, teardown),
        cmocka_unit_test(test_bits_of_the_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
