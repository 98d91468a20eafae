/* SPDX-License-Identifier: Apache-2.0 */
/* Segments that are merged and cut again (packet_finish) are the original ones; segments that must
 * not be merged stay apart; and none overtakes another of its connection. */
#include <packet/checksum.h>
#include <packet/headers.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define N     64
#define FRAME 1514

enum { ACK_ONLY = 0x10, ACK_PSH = 0x18, ACK_FIN = 0x11 };

struct batch {
    struct packet p[N];
    uint8_t bytes[N][PACKET_HEADROOM + FRAME];
    uint8_t was[N][FRAME];
    uint32_t was_len[N];
    unsigned n;
    struct packet_pool *pool;
};

struct seg {
    bool v6;
    uint16_t port, id;
    uint32_t seq, len;
    uint8_t flags;
};

static void
write_ip(uint8_t *ip, const struct seg *s, uint32_t tcp_len)
{
    if (s->v6) {
        ip[0] = 0x60;
        of_set16(ip + 4, (uint16_t)tcp_len);
        ip[6] = PROTO_TCP;
        ip[7] = 64;
        ip[8 + 15] = 1;
        ip[24 + 15] = 2;
        return;
    }
    ip[0] = 0x45;
    of_set16(ip + 2, (uint16_t)(20 + tcp_len));
    of_set16(ip + 4, s->id);
    ip[6] = 0x40;
    ip[8] = 64;
    ip[9] = PROTO_TCP;
    of_set32(ip + 12, 0x0a000001);
    of_set32(ip + 16, 0x0a000002);
    of_set16(ip + 10, (uint16_t)~csum_sum(ip, 20));
}

static void
add(struct batch *b, struct seg s)
{
    unsigned i = b->n++;
    struct packet *p = &b->p[i];
    uint8_t *d = b->bytes[i] + PACKET_HEADROOM;
    uint32_t ip_len = s.v6 ? 40 : 20, tcp_len = 20 + s.len;
    memset(d, 0, FRAME);
    d[5] = 2;
    d[11] = 1;
    of_set16(d + 12, s.v6 ? TYPE_IPV6 : TYPE_IPV4);
    write_ip(d + 14, &s, tcp_len);
    uint8_t *tcp = d + 14 + ip_len;
    of_set16(tcp, s.port);
    of_set16(tcp + 2, 80);
    of_set32(tcp + 4, s.seq);
    tcp[12] = 0x50;
    tcp[13] = s.flags;
    for (uint32_t k = 0; k < s.len; k++)
        tcp[20 + k] = (uint8_t)(s.seq + k);
    uint32_t sum = csum_pseudo(s.v6 ? d + 22 : d + 26, s.v6 ? d + 38 : d + 30, s.v6 ? 16 : 4,
                               PROTO_TCP, tcp_len);
    of_set16(tcp + 16, (uint16_t)~csum_fold(sum + csum_sum(tcp, tcp_len)));
    *p = (struct packet){
        .data = d, .len = 14 + ip_len + tcp_len, .headroom = PACKET_HEADROOM, .pool = b->pool};
    p->wire_len = p->len;
    memcpy(b->was[i], d, p->len);
    b->was_len[i] = p->len;
    packet_parse(p, 1);
}

static int
setup(void **state)
{
    struct batch *b = calloc(1, sizeof *b);
    b->pool = packet_pool_new(16 << 20);
    *state = b;
    return 0;
}

static int
teardown(void **state)
{
    struct batch *b = *state;
    packet_pool_free(b->pool);
    free(b);
    return 0;
}

struct expect {
    struct batch *b;
    const unsigned *order;
    unsigned at;
};

static void
check_frame(void *ctx, const uint8_t *data, uint32_t len)
{
    struct expect *e = ctx;
    unsigned i = e->order ? e->order[e->at] : e->at;
    assert_int_equal(len, e->b->was_len[i]);
    assert_memory_equal(data, e->b->was[i], len);
    e->at++;
}

/* Cuts all packets again and expects the frames in `order` (NULL: in that of adding). */
static void
check_cut(struct batch *b, unsigned packets, const unsigned *order)
{
    struct expect e = {.b = b, .order = order};
    for (unsigned i = 0; i < packets; i++)
        assert_int_equal(packet_finish(&b->p[i], check_frame, &e), 0);
    assert_int_equal(e.at, b->n);
}

static void
test_one_connection(void **state)
{
    for (int v6 = 0; v6 < 2; v6++) {
        struct batch *b = *state;
        b->n = 0;
        for (unsigned i = 0; i < 10; i++)
            add(b, (struct seg){v6, 1000, (uint16_t)(65530 + i), 5000 + i * 1400,
                                i == 9 ? 77 : 1400, i == 9 ? ACK_PSH : ACK_ONLY});
        assert_int_equal(packet_coalesce(b->p, b->n), 1);
        assert_int_equal(packet_segments(&b->p[0]), 10);
        check_cut(b, 1, NULL);
    }
}

static void
test_two_mixed(void **state)
{
    struct batch *b = *state;
    static const unsigned order[] = {0, 2, 4, 1, 3, 5};
    for (unsigned i = 0; i < 6; i++)
        add(b, (struct seg){0, (uint16_t)(1000 + i % 2), (uint16_t)(i / 2), i / 2 * 500, 500,
                            ACK_ONLY});
    assert_int_equal(packet_coalesce(b->p, b->n), 2);
    check_cut(b, 2, order);
}

/* A gap, another id, a flag, a wrong checksum or a longer segment each end a super-packet. */
static void
test_apart(void **state)
{
    struct batch *b = *state;
    add(b, (struct seg){0, 1, 0, 0, 500, ACK_ONLY});
    add(b, (struct seg){0, 1, 1, 600, 500, ACK_ONLY});  /* gap */
    add(b, (struct seg){0, 1, 7, 1100, 500, ACK_ONLY}); /* id */
    add(b, (struct seg){0, 1, 8, 1600, 500, ACK_FIN});
    add(b, (struct seg){0, 1, 9, 2100, 500, ACK_ONLY});
    add(b, (struct seg){0, 1, 10, 2600, 600, ACK_ONLY}); /* longer */
    add(b, (struct seg){0, 1, 11, 3200, 600, ACK_ONLY}); /* gets a wrong checksum below */
    b->p[6].data[14 + 20 + 25] ^= 1;
    b->was[6][14 + 20 + 25] ^= 1;
    add(b, (struct seg){0, 1, 12, 3800, 600, ACK_ONLY});
    add(b, (struct seg){0, 1, 13, 4400, 10, ACK_ONLY});
    add(b, (struct seg){0, 1, 14, 4410, 600, ACK_ONLY}); /* after a short one */
    assert_int_equal(packet_coalesce(b->p, b->n), 9);    /* only 7 and 8 */
    check_cut(b, 9, NULL);
}

static void
test_limit_and_many(void **state)
{
    struct batch *b = *state;
    for (unsigned i = 0; i < N; i++)
        add(b, (struct seg){0, 1, (uint16_t)i, i * 1460, 1460, ACK_ONLY});
    assert_int_equal(packet_coalesce(b->p, b->n), 2); /* 44 segments are 64 KB of IP */
    check_cut(b, 2, NULL);
    b->n = 0;
    packet_pool_reset(b->pool);
    for (unsigned i = 0; i < 40; i++) /* more connections than are merged at the same time */
        add(b, (struct seg){0, (uint16_t)(i % 20), (uint16_t)i, i / 20 * 100, 100, ACK_ONLY});
    assert_int_equal(packet_coalesce(b->p, b->n), 40);
    check_cut(b, 40, NULL);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_one_connection),
        T(test_two_mixed),
        T(test_apart),
        T(test_limit_and_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
