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
#define FRAME 1600

enum { ACK_ONLY = 0x10, ACK_PSH = 0x18, ACK_FIN = 0x11 };

/* What is between the Ethernet addresses and IP, but for its last two bytes if these are IP's type. */
struct stack {
    uint8_t bytes[64];
    uint32_t n;
    bool typed;
};

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

static uint32_t seed = 8847;

static uint32_t
random_below(uint32_t n)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % n;
}

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

/* Writes what is in front of IP; returns its length. */
static uint32_t
write_link(uint8_t *d, const struct stack *k, bool v6)
{
    d[5] = 2;
    d[11] = 1;
    memcpy(d + 12, k->bytes, k->n);
    if (k->typed)
        of_set16(d + 12 + k->n, v6 ? TYPE_IPV6 : TYPE_IPV4);
    return 12 + k->n + (k->typed ? 2 : 0);
}

static void
take(struct batch *b, unsigned i, uint8_t *d, uint32_t len)
{
    b->p[i] = (struct packet){.data = d, .len = len, .headroom = PACKET_HEADROOM, .pool = b->pool};
    b->p[i].wire_len = len;
    memcpy(b->was[i], d, len);
    b->was_len[i] = len;
    packet_parse(&b->p[i], 1);
}

static void
add_behind(struct batch *b, const struct stack *k, struct seg s)
{
    unsigned i = b->n++;
    uint8_t *d = b->bytes[i] + PACKET_HEADROOM;
    memset(d, 0, FRAME);
    uint32_t l3 = write_link(d, k, s.v6), l4 = l3 + (s.v6 ? 40 : 20), tcp_len = 20 + s.len;
    write_ip(d + l3, &s, tcp_len);
    uint8_t *tcp = d + l4;
    of_set16(tcp, s.port);
    of_set16(tcp + 2, 80);
    of_set32(tcp + 4, s.seq);
    tcp[12] = 0x50;
    tcp[13] = s.flags;
    for (uint32_t j = 0; j < s.len; j++)
        tcp[20 + j] = (uint8_t)(s.seq + j);
    uint32_t sum = csum_pseudo(d + l3 + (s.v6 ? 8 : 12), d + l3 + (s.v6 ? 24 : 16), s.v6 ? 16 : 4,
                               PROTO_TCP, tcp_len);
    of_set16(tcp + 16, (uint16_t)~csum_fold(sum + csum_sum(tcp, tcp_len)));
    take(b, i, d, l4 + tcp_len);
}

static void
add(struct batch *b, struct seg s)
{
    static const struct stack none = {.typed = true};
    add_behind(b, &none, s);
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

static void
put(struct stack *k, const void *bytes, uint32_t n)
{
    memcpy(k->bytes + k->n, bytes, n);
    k->n += n;
}

/* Random VLAN tags, then perhaps a PBB tag or MPLS labels. */
static void
random_stack(struct stack *k)
{
    static const uint8_t label[4] = {0, 0, 7, 64}, types[3][2] = {{0x81, 0}, {0x88, 0xa8}, {0x91}};
    uint32_t pbb = random_below(3), tags = random_below(3), labels = random_below(6);
    *k = (struct stack){.typed = true};
    for (; tags; tags--) {
        put(k, types[random_below(3)], 2);
        put(k, (uint8_t[2]){(uint8_t)random_below(256), (uint8_t)random_below(256)}, 2);
    }
    if (pbb == 1) {
        put(k, (uint8_t[18]){0x88, 0xe7, (uint8_t)random_below(256), 1, 2, 3, [9] = 4, [15] = 5},
            18);
        if (random_below(2))
            put(k, (uint8_t[4]){0x81, 0, 0, 5}, 4);
    }
    if (pbb == 1 || !labels)
        return;
    put(k, random_below(2) ? (uint8_t[2]){0x88, 0x47} : (uint8_t[2]){0x88, 0x48}, 2);
    for (; labels; labels--) {
        put(k, label, 4);
        k->bytes[k->n - 3] = (uint8_t)random_below(256);
        k->bytes[k->n - 2] = (uint8_t)(random_below(128) * 2 + (labels == 1));
    }
    k->typed = false;
}

/* Two connections that differ in a port or in an inner address. */
static void
test_stacks(void **state)
{
    static const unsigned order[] = {0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11};
    struct batch *b = *state;
    for (unsigned round = 0; round < 500; round++) {
        struct stack k;
        bool v6 = random_below(2);
        b->n = 0;
        packet_pool_reset(b->pool);
        random_stack(&k);
        for (unsigned i = 0; i < 12; i++)
            add_behind(b, &k,
                       (struct seg){v6, (uint16_t)(1000 + i % 2), (uint16_t)(i / 2), i / 2 * 1300,
                                    i < 10 ? 1300 : 400, i < 10 ? ACK_ONLY : ACK_PSH});
        assert_int_equal(packet_coalesce(b->p, b->n), 2);
        for (unsigned i = 0; i < 2; i++) {
            struct packet_wire w = packet_wire(&b->p[i]);
            assert_int_equal(w.packets, 6);
            assert_int_equal(w.bytes, b->p[i].wire_len);
            assert_int_not_equal(w.cut, PACKET_CUT_BY_NOBODY);
        }
        check_cut(b, 2, order);
    }
}

/* What a label or a tag hides is compared too: nothing is merged that differs there. */
static void
test_hidden_differences(void **state)
{
    struct batch *b = *state;
    struct stack k = {{0x88, 0x47, 0, 0, 0x71, 64}, 6, false};
    for (unsigned at = 0; at < 6 + 20 + 20; at++) {
        b->n = 0;
        packet_pool_reset(b->pool);
        for (unsigned i = 0; i < 3; i++)
            add_behind(b, &k, (struct seg){0, 1, (uint16_t)i, i * 500, 500, ACK_ONLY});
        uint8_t *d = b->p[1].data;
        d[12 + at] ^= 0x40;
        if (at >= 6 && at < 26) {
            of_set16(d + 18 + 10, 0);
            of_set16(d + 18 + 10, (uint16_t)~csum_sum(d + 18, 20));
        }
        take(b, 1, d, b->p[1].len);
        b->p[1].vnet.flags = VIRTIO_NET_HDR_F_DATA_VALID;
        unsigned n = packet_coalesce(b->p, b->n);
        bool made_again = at - 16 < 2 || at - 42 < 2; /* a checksum, right again or not looked at */
        assert_int_equal(n, made_again ? 1 : 3);
        if (at - 42 >= 2)
            check_cut(b, n, NULL);
    }
}

/* With bytes changed and cut off anywhere: what comes out is what came in. */
static void
test_nonsense(void **state)
{
    struct batch *b = *state;
    for (unsigned round = 0; round < 3000; round++) {
        struct stack k;
        bool v6 = random_below(2);
        b->n = 0;
        packet_pool_reset(b->pool);
        random_stack(&k);
        for (unsigned i = 0; i < 8; i++)
            add_behind(b, &k, (struct seg){v6, 1, (uint16_t)i, i * 100, 100, ACK_ONLY});
        uint8_t *exact[8];
        for (unsigned i = 0; i < 8; i++) {
            bool whole = random_below(8), changed = !random_below(4);
            uint32_t len = whole ? b->p[i].len : 14 + random_below(b->p[i].len - 13);
            exact[i] = malloc(PACKET_HEADROOM + len);
            uint8_t *d = memcpy(exact[i] + PACKET_HEADROOM, b->p[i].data, len);
            if (changed)
                d[random_below(len < 110 ? len : 110)] = (uint8_t)random_below(256);
            take(b, i, d, len);
        }
        check_cut(b, packet_coalesce(b->p, b->n), NULL);
        for (unsigned i = 0; i < 8; i++)
            free(exact[i]);
    }
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_one_connection), T(test_two_mixed), T(test_apart),
        T(test_limit_and_many), T(test_stacks),    T(test_hidden_differences),
        T(test_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
