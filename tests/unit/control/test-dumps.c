/* SPDX-License-Identifier: Apache-2.0 */
/* Multipart replies of any size, and peers that don't read. */
#include "fixture.h"

#include <unistd.h>

/* Reads a port description of all its messages; how many ports there were. */
static uint32_t
read_ports(struct peer *p, uint32_t xid, int *messages)
{
    uint32_t n = 0;
    for (*messages = 1;; ++*messages) {
        struct of_bytes m = peer_recv(p);
        assert_true(m.n >= 16);
        assert_int_equal(m.p[1], OFPT_MULTIPART_REPLY);
        assert_int_equal(of_get32(m.p + 4), xid);
        assert_int_equal(of_get16(m.p + 8), OFPMP_PORT_DESC);
        assert_int_equal((m.n - 16) % 64, 0);
        assert_true(m.n <= DUMP_CUT);
        for (size_t at = 16; at < m.n; at += 64)
            assert_int_equal(of_get32(m.p + at), ++n);
        if (!(of_get16(m.p + 10) & OFPMPF_REPLY_MORE))
            return n;
    }
}

static void
sizes(void **state)
{
    static const struct {
        uint32_t ports;
        int messages;
    } row[] = {{0, 1}, {1, 1}, {937, 1}, {938, 2}, {1874, 2}, {1875, 3}, {20000, 22}};
    struct fixture *f = *state;
    struct peer *p = peer_open(f);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        int messages;
        f->n_ports = row[i].ports;
        peer_multipart(p, OFPMP_PORT_DESC, 0, 5, NULL, 0);
        assert_int_equal(read_ports(p, 5, &messages), row[i].ports);
        assert_int_equal(messages, row[i].messages);
        assert_int_equal(f->done, i + 1);
    }
    peer_free(p);
}

static void
later_requests_wait(void **state)
{
    struct fixture *f = *state;
    struct peer *p = peer_open(f), *other = peer_open(f);
    int messages;
    f->n_ports = 50000; /* 3.2 MB: more than the sockets hold */
    peer_multipart(p, OFPMP_PORT_DESC, 0, 5, NULL, 0);
    peer_send(p, OFPT_FEATURES_REQUEST, 6, NULL, 0);
    peer_multipart(p, OFPMP_PORT_DESC, 0, 7, NULL, 0);
    peer_send(p, OFPT_BARRIER_REQUEST, 8, NULL, 0);
    fixture_turns(f, 20);
    peer_expect_nothing(other); /* nobody else does */
    assert_int_equal(read_ports(p, 5, &messages), 50000);
    peer_expect(p, OFPT_FEATURES_REPLY, 6);
    assert_int_equal(read_ports(p, 7, &messages), 50000);
    peer_expect(p, OFPT_BARRIER_REPLY, 8);
    peer_free(p);
    peer_free(other);
}

static void
experimenter_header_repeats(void **state)
{
    struct fixture *f = *state;
    struct peer *p = peer_open(f);
    uint32_t n = 0, messages = 0;
    uint16_t flags = OFPMPF_REPLY_MORE;
    f->n_ports = 200; /* entries of 1,000 bytes */
    peer_multipart(p, OFPMP_EXPERIMENTER, 0, 5, "\1\2\3\4\0\0\0\11", 8);
    for (; flags; messages++) {
        struct of_bytes m = peer_recv(p);
        assert_memory_equal(m.p + 16, "\1\2\3\4\0\0\0\11", 8);
        for (size_t at = 24; at < m.n; at += 1000)
            assert_int_equal(of_get32(m.p + at), ++n);
        flags = of_get16(m.p + 10);
    }
    assert_int_equal(n, 200);
    assert_int_equal(messages, 4);
    peer_free(p);
}

static void
peer_gone_in_the_middle(void **state)
{
    struct fixture *f = *state;
    struct peer *p = peer_open(f), *q = peer_open(f);
    f->n_ports = 1000000;
    peer_multipart(p, OFPMP_PORT_DESC, 0, 5, NULL, 0);
    peer_multipart(q, OFPMP_PORT_DESC, 0, 5, NULL, 0);
    fixture_turns(f, 20);
    peer_free(p);
    fixture_turns(f, 20);
    assert_int_equal(f->done, 1);
    assert_int_equal(f->disconnected, 1);
    close(q->fd); /* and one at the end of the channel */
    q->fd = -1;
    channel_free(f->ch);
    f->ch = NULL;
    assert_int_equal(f->done, 2);
    peer_free(q); /* (the fixture does without) */
}

/* 100,000 requests, answers not read: bounded, and others are served. */
static void
deaf_peer(void **state)
{
    static uint8_t data[1000];
    struct fixture *f = *state;
    struct peer *p = peer_open(f), *other = peer_open(f);
    struct of_wr w = of_wr_grow(1 << 20);
    struct of_echo echo = {.data = {data, sizeof data}};
    size_t sent = 0;
    ssize_t n;
    of_encode_body(&w, OFPT_ECHO_REQUEST, 1, &echo);
    for (int stuck = 0; stuck < 50 && sent < 64u << 20;) {
        n = send(p->fd, w.buf + sent % w.len, w.len - sent % w.len, MSG_DONTWAIT);
        fixture_turns(f, 0);
        stuck = n < 0 ? stuck + 1 : 0;
        sent += n > 0 ? (size_t)n : 0;
    }
    assert_true(sent >= CONN_OUT_MAX);
    assert_true(sent < 2 * CONN_OUT_MAX); /* it wasn't read any more */
    assert_true(f->ch->out_total <= 2 * CONN_OUT_MAX + (64 << 10));
    peer_expect_nothing(other);
    for (size_t i = 0; i < sent / w.len; i++) /* and goes on where it stopped */
        peer_expect(p, OFPT_ECHO_REPLY, 1);
    peer_send_raw(p, w.buf + sent % w.len, w.len - sent % w.len);
    peer_expect(p, OFPT_ECHO_REPLY, 1);
    peer_expect_nothing(p);
    assert_true(f->ch->out_total <= 256 << 10);
    of_wr_free(&w);
    peer_free(p);
    peer_free(other);
}

/* An asynchronous message never lands inside a multipart reply's message. */
static void
async_between_the_pieces(void **state)
{
    struct fixture *f = *state;
    struct peer *p = peer_open(f);
    struct of_port_status ps = {.reason = OFPPR_MODIFY, .port_no = 1};
    uint32_t ports = 0, statuses = 0;
    f->n_ports = 30000;
    f->step_size = 1;
    peer_multipart(p, OFPMP_PORT_DESC, 0, 5, NULL, 0);
    for (bool more = true; more || statuses < 10;) {
        if (statuses < 10)
            channel_async(f->ch, ASYNC_PORT_STATUS, OFPPR_MODIFY, OFPT_PORT_STATUS, &ps);
        struct of_bytes m = peer_recv(p);
        if (m.p[1] == OFPT_PORT_STATUS) {
            statuses++;
            continue;
        }
        ports += (uint32_t)(m.n - 16) / 64;
        more = of_get16(m.p + 10);
    }
    assert_int_equal(ports, 30000);
    peer_free(p);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(sizes),
        T(later_requests_wait),
        T(experimenter_header_repeats),
        T(peer_gone_in_the_middle),
        T(deaf_peer),
        T(async_between_the_pieces),
    };
    return cmocka_run_group_tests_name("channel-dumps", tests, NULL, NULL);
}
