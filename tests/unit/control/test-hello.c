/* SPDX-License-Identifier: Apache-2.0 */
/* The hello exchange, 6.3.1. */
#include "fixture.h"

#include <unistd.h>

static void
send_hello(struct peer *p, uint8_t version, const uint8_t *elements, size_t n)
{
    uint8_t raw[64] = {version, OFPT_HELLO, 0, (uint8_t)(8 + n), 0, 0, 0, 7};
    if (n)
        memcpy(raw + 8, elements, n);
    peer_send_raw(p, raw, 8 + n);
}

static void
hello_comes_unasked(void **state)
{
    struct peer *p = peer_new(*state);
    struct of_bytes m = peer_recv(p);
    static const uint8_t want[] = {4, 0, 0, 16, 0, 0, 0, 0, 0, 1, 0, 8, 0, 0, 0, 0x12};
    assert_int_equal(m.n, sizeof want);
    assert_memory_equal(m.p, want, sizeof want);
    peer_free(p);
}

struct variant {
    uint8_t version;
    uint8_t n;
    uint8_t elements[24];
};

static void
agrees(void **state)
{
    static const struct variant good[] = {
        {4, 0, {0}},
        {6, 0, {0}},
        {4, 8, {0, 1, 0, 8, 0, 0, 0, 0x10}},
        {6, 8, {0, 1, 0, 8, 0, 0, 0, 0x72}},
        {1, 8, {0, 1, 0, 8, 0, 0, 0, 0x12}},
        {4, 16, {0, 77, 0, 5, 1, 0, 0, 0, 0, 1, 0, 8, 0, 0, 0, 0x10}}, /* unknown first */
        {5, 12, {0, 1, 0, 12, 0, 0, 0, 0x10, 0, 0, 0, 1}},
        {4, 3, {1, 2, 3}},                   /* no element at all */
        {4, 8, {0, 99, 0, 0, 0, 0, 0, 0}},   /* a broken one */
        {4, 8, {0, 99, 0, 200, 0, 0, 0, 0}}, /* longer than the message */
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct peer *p = peer_new(f);
        send_hello(p, good[i].version, good[i].elements, good[i].n);
        peer_expect(p, OFPT_HELLO, 0);
        peer_expect_nothing(p);
        assert_int_equal(f->connected, i + 1);
        peer_free(p);
    }
}

static void
expect_refused(struct fixture *f, const struct variant *bad, size_t n)
{
    uint64_t failed = channel_counters(f->ch)->hello_failed;
    for (size_t i = 0; i < n; i++) {
        struct peer *p = peer_new(f);
        send_hello(p, bad[i].version, bad[i].elements, bad[i].n);
        peer_send(p, OFPT_FEATURES_REQUEST, 8, NULL, 0); /* unread: must not lose our error */
        peer_expect(p, OFPT_HELLO, 0);
        peer_expect_error(p, 7, OFPET_HELLO_FAILED, OFPHFC_INCOMPATIBLE);
        peer_expect_close(p);
        peer_free(p);
    }
    assert_int_equal(f->handled, 0);
    assert_int_equal(channel_counters(f->ch)->hello_failed, failed + n);
}

#define REFUSED(f, bad) expect_refused(f, bad, sizeof(bad) / sizeof(bad)[0])

static void
speak(struct fixture *f, uint32_t versions)
{
    struct channel_options o = f->ch->opt;
    o.versions = versions;
    channel_set_options(f->ch, &o);
}

static void
disagrees(void **state)
{
    static const struct variant by_both[] = {
        {2, 0, {0}}, /* the smaller of the two is 1.1 */
        {3, 0, {0}}, {0, 0, {0}}, {6, 8, {0, 1, 0, 8, 0, 0, 0, 0x6c}}, {4, 4, {0, 1, 0, 4}},
    };
    static const struct variant by_1_3[] = {
        {1, 0, {0}},
        {3, 0, {0}},
        {6, 8, {0, 1, 0, 8, 0, 0, 0, 0x62}},
        {4, 8, {0, 1, 0, 8, 0, 0, 0, 0x02}},
    };
    static const struct variant by_1_0[] = {
        {0, 0, {0}},
        {4, 8, {0, 1, 0, 8, 0, 0, 0, 0x10}},
    };
    struct fixture *f = *state;
    REFUSED(f, by_both);
    speak(f, OFP_BITMAP_1_3);
    REFUSED(f, by_1_3);
    speak(f, OFP_BITMAP_1_0);
    struct peer *p = peer_new(f);
    struct of_bytes m = peer_recv(p);
    assert_int_equal(m.n, 8);
    assert_int_equal(m.p[0], 1);
    peer_free(p);
    for (size_t i = 0; i < sizeof by_1_0 / sizeof by_1_0[0]; i++) {
        p = peer_new(f);
        assert_int_equal(peer_recv(p).p[0], 1);
        send_hello(p, by_1_0[i].version, by_1_0[i].elements, by_1_0[i].n);
        peer_expect_error(p, 7, OFPET_HELLO_FAILED, OFPHFC_INCOMPATIBLE);
        peer_expect_close(p);
        peer_free(p);
    }
    assert_int_equal(f->connected, 0);
}

/* The version of the answer to an echo request of that version. */
static void
expect_version(struct fixture *f, const struct variant *v, uint8_t version)
{
    struct peer *p = peer_new(f);
    uint8_t echo[] = {version, OFPT_ECHO_REQUEST, 0, 8, 0, 0, 0, 9};
    assert_int_equal(peer_recv(p).p[1], OFPT_HELLO);
    send_hello(p, v->version, v->elements, v->n);
    peer_send_raw(p, echo, sizeof echo);
    struct of_bytes m = peer_recv(p);
    assert_int_equal(m.p[0], version);
    assert_int_equal(m.p[1], OFPT_ECHO_REPLY);
    peer_free(p);
}

static void
speaks_1_0(void **state)
{
    static const struct variant v[] = {
        {1, 0, {0}},
        {1, 8, {0, 1, 0, 8, 0, 0, 0, 0x02}},
        {4, 8, {0, 1, 0, 8, 0, 0, 0, 0x02}},
        {5, 8, {0, 1, 0, 8, 0, 0, 0, 0x2e}},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof v / sizeof v[0]; i++)
        expect_version(f, &v[i], 1);
    expect_version(f, &(struct variant){1, 8, {0, 1, 0, 8, 0, 0, 0, 0x12}}, 4);
    speak(f, OFP_BITMAP_1_0);
    expect_version(f, &(struct variant){4, 0, {0}}, 1);
    expect_version(f, &(struct variant){4, 8, {0, 1, 0, 8, 0, 0, 0, 0x12}}, 1);
}

static void
something_else_first(void **state)
{
    struct peer *p = peer_new(*state);
    peer_expect(p, OFPT_HELLO, 0);
    peer_send(p, OFPT_FEATURES_REQUEST, 5, NULL, 0);
    peer_expect_error(p, 5, OFPET_HELLO_FAILED, OFPHFC_INCOMPATIBLE);
    peer_expect_close(p);
    peer_free(p);
    p = peer_new(*state);
    peer_expect(p, OFPT_HELLO, 0);
    peer_send_raw(p, "GET / HTTP/1.0\r\n\r\n", 18); /* not waited for its 21,536 bytes */
    assert_int_equal(peer_recv(p).p[1], OFPT_ERROR);
    peer_expect_close(p);
    peer_free(p);
    p = peer_new(*state);
    peer_expect(p, OFPT_HELLO, 0);
    peer_send(p, OFPT_ERROR, 5, "\0\0\0\0", 4);
    peer_expect_close(p);
    peer_free(p);
}

static void
second_hello_is_ignored(void **state)
{
    struct peer *p = peer_open(*state);
    send_hello(p, 1, NULL, 0);
    peer_expect_nothing(p);
    peer_free(p);
}

static void
silence_is_not_waited_for(void **state)
{
    struct fixture *f = *state;
    channel_set_options(f->ch, &(struct channel_options){.hello_ms = 30});
    struct peer *p = peer_new(f);
    peer_expect(p, OFPT_HELLO, 0);
    peer_send_raw(p, "\4\0\0", 3);
    peer_expect_close(p);
    peer_free(p);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(hello_comes_unasked),
        T(agrees),
        T(disagrees),
        T(speaks_1_0),
        T(something_else_first),
        T(second_hello_is_ignored),
        T(silence_is_not_waited_for),
    };
    return cmocka_run_group_tests_name("channel-hello", tests, NULL, NULL);
}
