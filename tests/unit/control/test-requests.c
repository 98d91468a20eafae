/* SPDX-License-Identifier: Apache-2.0 */
/* Framing, the checks that all messages go through, echo, the end of a connection. */
#include "fixture.h"

#include <stdlib.h>
#include <unistd.h>

#define BAD(code) OFPET_BAD_REQUEST, OFPBRC_##code

static void
errors_by_the_book(void **state)
{
    struct peer *p = peer_open(*state);
    peer_send_raw(p, "\1\5\0\10\0\0\0\11", 8);
    peer_expect_error(p, 9, BAD(BAD_VERSION));
    peer_send(p, 99, 10, NULL, 0);
    peer_expect_error(p, 10, BAD(BAD_TYPE));
    for (int t = 0; t < 256; t++) { /* what only a switch sends, and what nobody does */
        const struct of_msg_row *row = of_msg_row((uint8_t)t);
        bool reply = row && t != OFPT_ECHO_REPLY && strstr(row->name, "reply");
        if (row && !reply && t != OFPT_PACKET_IN && t != OFPT_FLOW_REMOVED && t != OFPT_PORT_STATUS)
            continue;
        peer_send(p, (uint8_t)t, 11, "12345678", 8);
        peer_expect_error(p, 11, BAD(BAD_TYPE));
    }
    peer_send(p, OFPT_FEATURES_REQUEST, 12, "1234", 4);
    peer_expect_error(p, 12, BAD(BAD_LEN));
    peer_send(p, OFPT_TABLE_MOD, 13, "12345678", 8);
    peer_expect_error(p, 13, OFPET_TABLE_MOD_FAILED, OFPTMFC_BAD_TABLE);
    peer_send(p, OFPT_MULTIPART_REQUEST, 14, "1234", 4);
    peer_expect_error(p, 14, BAD(BAD_LEN));
    peer_multipart(p, 0x7777, 0, 15, NULL, 0);
    peer_expect_error(p, 15, BAD(BAD_MULTIPART));
    peer_multipart(p, OFPMP_DESC, 2, 16, NULL, 0);
    peer_expect_error(p, 16, BAD(BAD_MULTIPART));
    peer_expect_nothing(p);
    peer_free(p);
}

static void
error_carries_64_bytes(void **state)
{
    struct peer *p = peer_open(*state);
    uint8_t body[200];
    for (size_t i = 0; i < sizeof body; i++)
        body[i] = (uint8_t)i;
    peer_send(p, 200, 77, body, sizeof body);
    struct of_bytes m = peer_recv(p);
    assert_int_equal(m.n, 12 + 64);
    assert_int_equal(m.p[12], OFP_VERSION);
    assert_int_equal(m.p[13], 200);
    assert_memory_equal(m.p + 20, body, 56);
    peer_free(p);
}

static void
errors_and_echo_replies_are_not_answered(void **state)
{
    struct fixture *f = *state;
    struct peer *p = peer_open(f);
    peer_send(p, OFPT_ERROR, 1, "\0\1\0\0", 4);
    peer_send(p, OFPT_ERROR, 1, "\0", 1);
    peer_send_raw(p, "\1\1\0\10\0\0\0\11", 8);
    peer_send(p, OFPT_ECHO_REPLY, 1, "x", 1);
    peer_expect_nothing(p);
    assert_int_equal(channel_counters(f->ch)->errors_in, 3);
    peer_free(p);
}

static void
echo(void **state)
{
    static uint8_t data[OF_MSG_MAX - 8];
    struct peer *p = peer_open(*state);
    for (size_t n = 0; n <= sizeof data; n = n ? n * 3 : 1) {
        n = n > 40000 ? sizeof data : n;
        memset(data, (int)n, n);
        peer_send(p, OFPT_ECHO_REQUEST, (uint32_t)n, data, n);
        struct of_bytes m = peer_recv(p);
        assert_int_equal(m.p[1], OFPT_ECHO_REPLY);
        assert_int_equal(m.n, n + 8);
        assert_memory_equal(m.p + 8, data, n);
        if (n == sizeof data)
            break;
    }
    peer_free(p);
}

static void
byte_by_byte(void **state)
{
    struct peer *p = peer_open(*state);
    static const uint8_t raw[] = {4, 2, 0, 12, 0, 0, 1, 0,  'a', 'b', 'c', 'd', 4, 5,
                                  0, 8, 0, 0,  1, 1, 4, 20, 0,   8,   0,   0,   1, 2};
    for (size_t i = 0; i < sizeof raw; i++) {
        peer_send_raw(p, raw + i, 1);
        fixture_turns(*state, 0);
    }
    peer_expect(p, OFPT_ECHO_REPLY, 0x100);
    peer_expect(p, OFPT_FEATURES_REPLY, 0x101);
    peer_expect(p, OFPT_BARRIER_REPLY, 0x102);
    peer_free(p);
}

/* Frames of all sizes in one stream, so that the receive buffer wraps at every offset. */
static void
many_sizes(void **state)
{
    static uint8_t data[5000];
    struct peer *p = peer_open(*state);
    for (uint32_t i = 0; i < 2000; i++) {
        peer_send(p, OFPT_ECHO_REQUEST, i, data, i * 7919 % sizeof data);
        struct of_bytes m = peer_recv(p);
        assert_int_equal(m.n, 8 + i * 7919 % sizeof data);
        assert_int_equal(of_get32(m.p + 4), i);
    }
    peer_free(p);
}

static void
too_short_a_header(void **state)
{
    for (uint16_t len = 0; len < 8; len++) {
        struct peer *p = peer_open(*state);
        uint8_t raw[100] = {4, OFPT_ECHO_REQUEST, 0, (uint8_t)len, 0, 0, 0, 5};
        peer_send_raw(p, raw, sizeof raw);
        peer_expect_error(p, 5, BAD(BAD_LEN));
        peer_expect_close(p);
        peer_free(p);
    }
}

static void
one_bad_message_leaves_the_others(void **state)
{
    struct fixture *f = *state;
    struct peer *p = peer_open(f), *q = peer_open(f);
    peer_send(p, OFPT_GET_CONFIG_REQUEST, 1, NULL, 0); /* the toy fails: -EIO */
    peer_expect_error(p, 1, OFPET_BAD_REQUEST, OFPBRC_EPERM);
    peer_expect_nothing(p); /* it is not the connection's fault */
    peer_expect_nothing(q);
    peer_free(p);
    peer_free(q);
    assert_int_equal(f->disconnected, 2);
}

/* Who sends and closes at once is still obeyed. */
static void
sent_and_gone(void **state)
{
    struct fixture *f = *state;
    struct of_flow_mod fm = {.buffer_id = OFP_NO_BUFFER};
    struct peer *p = peer_open(f);
    for (int i = 0; i < 100; i++) {
        peer_send(p, OFPT_FEATURES_REQUEST, 1, NULL, 0);
        peer_request(p, OFPT_FLOW_MOD, 2, &fm);
    }
    struct peer *q = peer_new(f); /* the same, but for one turn of the loop */
    struct of_wr w = of_wr_grow(1 << 20);
    of_encode_body(&w, OFPT_HELLO, 0, NULL);
    for (int i = 0; i < 1000; i++) {
        of_encode_body(&w, OFPT_FEATURES_REQUEST, 0, NULL);
        of_encode_body(&w, OFPT_FLOW_MOD, 0, &fm);
    }
    assert_int_equal(send(q->fd, w.buf, w.len, 0), w.len);
    peer_free(q);
    peer_free(p);
    fixture_turns(f, 50);
    assert_int_equal(f->flow_mods, 1100);
    assert_int_equal(f->disconnected, 2);
    of_wr_free(&w);
}

static void
half_closed_peer_is_answered(void **state)
{
    struct peer *p = peer_open(*state);
    peer_multipart(p, OFPMP_DESC, 0, 5, NULL, 0);
    shutdown(p->fd, SHUT_WR);
    peer_expect(p, OFPT_MULTIPART_REPLY, 5);
    peer_expect_close(p);
    peer_free(p);
}

static void
silent_peer_is_probed(void **state)
{
    struct fixture *f = *state;
    int fd[2];
    struct stream *s;
    struct conn *c;
    channel_set_options(f->ch, &(struct channel_options){.probe_ms = 40});
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
    assert_int_equal(stream_of_fd(fd[0], &s), 0);
    assert_int_equal(conn_new(f->ch, s, "pair", &c), 0);
    assert_string_equal(conn_peer(c), "pair");
    struct peer *p = peer_of_fd(f, fd[1]);
    peer_send(p, OFPT_HELLO, 1, NULL, 0);
    peer_expect(p, OFPT_HELLO, 0);
    for (int i = 0; i < 3; i++) {
        peer_expect(p, OFPT_ECHO_REQUEST, 0);
        peer_send(p, OFPT_ECHO_REPLY, 0, NULL, 0);
    }
    assert_int_equal(f->disconnected, 0);
    peer_expect(p, OFPT_ECHO_REQUEST, 0);
    peer_expect_close(p);
    assert_int_equal(f->disconnected, 1);
    peer_free(p);
}

static void
garbage(void **state)
{
    static uint8_t noise[3000];
    struct fixture *f = *state;
    struct peer *good = peer_open(f);
    srandom(1);
    for (int round = 0; round < 300; round++) {
        struct peer *p = round % 2 ? peer_open(f) : peer_new(f);
        for (size_t i = 0; i < sizeof noise; i++)
            noise[i] = (uint8_t)random();
        for (size_t i = 0; round % 3 && i + 60 < sizeof noise; i += 60) { /* framed noise */
            noise[i] = OFP_VERSION;
            noise[i + 1] %= 32;
            of_set16(noise + i + 2, 60);
        }
        peer_send_raw(p, noise, sizeof noise);
        peer_free(p);
    }
    peer_expect_nothing(good);
    peer_free(good);
    fixture_turns(f, 20);
    assert_null(f->ch->conns);
    assert_int_equal(f->ch->out_total, 0);
    assert_int_equal(f->ch->parts_total, 0);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(errors_by_the_book),
        T(error_carries_64_bytes),
        T(errors_and_echo_replies_are_not_answered),
        T(echo),
        T(byte_by_byte),
        T(many_sizes),
        T(too_short_a_header),
        T(one_bad_message_leaves_the_others),
        T(sent_and_gone),
        T(half_closed_peer_is_answered),
        T(silent_peer_is_probed),
        T(garbage),
    };
    return cmocka_run_group_tests_name("channel-requests", tests, NULL, NULL);
}
