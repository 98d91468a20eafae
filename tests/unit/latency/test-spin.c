/* SPDX-License-Identifier: Apache-2.0 */
/* Round trips of QUIC: its handshake, and its spin bit in all states in which a connection may be. */
#include "fixture.h"

#define SECOND     1000000u /* in us */
#define ON_THE_WAY 1024     /* packets at most */

/* The sample that the packet ends, us; -1: none. */
static int64_t
look(struct rtt_seen p)
{
    struct rtt_sample s = {0};
    const struct rtt_ends e = {.sport = 1000, .dport = 443};
    p.sig = 7;
    p.ifindex = p.server ? 4 : 3;
    p.queue = p.server ? 0 : 10;
    p.about = clock_now;
    if (p.kind == RTT_SPIN && rtt_is_shut(rtt_gate(&control, RTT_SPIN, 1000, 443), 0, p.about))
        return -1;
    looked++;
    int ends = rtt_look(&slot, &p, &s);
    rtt_leave(&control, &e, &slot, &p, s.us);
    if (!ends)
        return -1;
    /* The client's next edge says that the server's before it was one. */
    assert_int_equal(s.ifindex, p.kind == RTT_SPIN && p.server ? 4 : 3);
    assert_int_equal(s.queue, p.kind == RTT_SPIN && p.server ? 0 : 10);
    return s.us;
}

/* As rtt_read_udp reads a datagram of the connection of port 1000 with port 443. */
static struct rtt_seen
quic(uint8_t first, uint32_t version, bool server)
{
    const uint8_t b[RTT_UDP] = {
        server ? 1 : 3, server ? 187 : 232, server ? 3 : 1, server ? 232 : 187, 0,      40, 0, 0,
        first,          version >> 24,      version >> 16,  version >> 8,       version};
    struct rtt_seen p = {.dir = server};
    struct rtt_ends e = {.src = {10}, .dst = {20}};
    if (!rtt_read_udp(b, 40, &e, &p))
        p.kind = RTT_ECHO;
    assert_int_equal(rtt_is_spin(b), p.kind == RTT_SPIN);
    return p;
}

static void
quic_packets(void **state)
{
    assert_int_equal(quic(0xc3, 1, false).kind, RTT_HELLO);
    assert_int_equal(quic(0xd3, 0x6b3343cf, false).kind, RTT_HELLO);
    assert_int_equal(quic(0xd3, 1, false).kind, RTT_ECHO); /* 0-RTT */
    assert_int_equal(quic(0xe3, 1, false).kind, RTT_ECHO); /* of the handshake */
    assert_int_equal(quic(0xc3, 0x6b3343cf, false).kind, RTT_ECHO);
    assert_int_equal(quic(0xc3, 2, false).kind, RTT_ECHO);
    assert_int_equal(quic(0xf3, 1, true).kind, RTT_HELLO); /* Retry */
    assert_int_equal(quic(0xc3, 0, true).kind, RTT_HELLO); /* the server's versions */
    assert_int_equal(quic(0x17, 1, false).kind, RTT_ECHO); /* DTLS */
    assert_int_equal(quic(0x43, 1, false).spin, 0);
    assert_int_equal(quic(0x63, 1, true).spin, 1);
    assert_int_equal(quic(0x63, 1, true).server, 1);
}

static void
hello(void **state)
{
    const struct rtt_seen client = quic(0xc3, 1, false), server = quic(0xc3, 1, true);
    look(client);
    clock_now += MS;
    look(client); /* it did not fit into one */
    clock_now += 20 * MS;
    assert_int_equal(look(server), 21000);
    look(client);
    clock_now += 20 * MS;
    assert_int_equal(look(server), -1);
    setup(NULL);
    look(client);
    clock_now += 300 * MS;
    look(client);
    clock_now += 20 * MS;
    assert_int_equal(look(server), -1); /* of which of the two? */
    setup(NULL);
    assert_int_equal(look(server), -1);
}

/* A connection that passes the switch.  Both ends send all the time, and the bit that the other's newest packet says. */
struct spinning {
    unsigned far, near; /* round trips between the switch and the server, the client, us */
    unsigned every[2];  /* us between two packets of the client, the server */
    unsigned end;       /* us */
    unsigned (*bit)(unsigned bit, bool server); /* in the place of the bit */
    unsigned (*late)(bool server);              /* a packet comes so many us late to the switch */
    bool (*held)(uint64_t now, bool server);    /* the end has nothing to send */
    struct {
        unsigned samples;
        int64_t least, most;
    } to[2]; /* behind the server's port, behind the client's */
};

static void
sampled(struct spinning *q, bool server, int64_t us)
{
    if (us < 0)
        return;
    q->to[server].samples++;
    q->to[server].least = us < q->to[server].least ? us : q->to[server].least;
    q->to[server].most = us > q->to[server].most ? us : q->to[server].most;
}

struct on_the_way {
    uint64_t seen, there; /* us */
    unsigned bit, n;
    bool server, looked, done;
};

static void
spin(struct spinning *q)
{
    static struct on_the_way way[ON_THE_WAY];
    unsigned bit[2] = {0, 0}, newest[2] = {0, 0}, first = 0, n = 0;
    uint64_t next[2] = {0, 0};
    memset(q->to, 0, sizeof q->to);
    q->to[0].least = q->to[1].least = INT64_MAX;
    for (uint64_t now = 0; now < q->end; now += 50, clock_now += 50000) {
        for (unsigned k = 0; k < 2; k++)
            for (; next[k] <= now; next[k] += q->every[k]) {
                if (q->held && q->held(now, k))
                    continue;
                uint64_t seen = now + (k ? q->far : q->near) / 2 + (q->late ? q->late(k) : 0);
                way[n++ % ON_THE_WAY] = (struct on_the_way){
                    .seen = seen,
                    .there = seen + (k ? q->near : q->far) / 2,
                    .bit = q->bit ? q->bit(bit[k], k) : bit[k],
                    .n = n,
                    .server = k,
                };
                assert_true(n - first < ON_THE_WAY);
            }
        for (unsigned i = first; i != n; i++) {
            struct on_the_way *w = &way[i % ON_THE_WAY];
            if (!w->looked && w->seen <= now) {
                w->looked = true;
                sampled(q, w->server, look(quic(w->bit ? 0x60 : 0x40, 0, w->server)));
            }
            if (!w->done && w->there <= now) {
                w->done = true;
                if (w->n > newest[w->server]) {
                    newest[w->server] = w->n;
                    bit[!w->server] = w->server ? !w->bit : w->bit;
                }
            }
        }
        while (first != n && way[first % ON_THE_WAY].done)
            first++;
    }
}

/* A sample is too long by an eighth at most: so long an end may have held back the edge. */
static void
agrees(const struct spinning *q, unsigned samples)
{
    const unsigned trip[2] = {q->far, q->near};
    for (int i = 0; i < 2; i++) {
        assert_true(q->to[i].samples >= (i && q->near < 8 * q->every[0] ? 0 : samples));
        if (!q->to[i].samples)
            continue;
        assert_in_range(q->to[i].least, trip[i], trip[i] * 9 / 8 + 100);
        assert_in_range(q->to[i].most, trip[i], trip[i] * 9 / 8 + 100);
    }
}

static void
spins(void **state)
{
    struct spinning q = {.near = 10000, .far = 40000, .every = {1000, 1000}, .end = 10 * SECOND};
    spin(&q);
    agrees(&q, 25);
    assert_in_range(looked, 0, 2 * 10000 / 3);
    clock_now += 600000 * MS; /* it pauses */
    spin(&q);
    agrees(&q, 20);
}

/* It is looked at for a second, then not for seven. */
static unsigned
no_bit(unsigned bit, bool server)
{
    return 0;
}

static void
never_spins(void **state)
{
    struct spinning q = {
        .near = 10000, .far = 40000, .every = {1000, 1000}, .end = 40 * SECOND, .bit = no_bit};
    spin(&q);
    assert_int_equal(q.to[0].samples + q.to[1].samples, 0);
    assert_in_range(looked, 8000, 2 * 40000 / 8 + 2000);
    assert_int_equal(slot.answered, 0); /* others may have its place */
}

/* The ends have nothing to send for 6 ms, for 20 ms, ... */
static bool
pauses(uint64_t now, bool server)
{
    return now % 170000 < 6000 || now % 90000 < (server ? 20000 : 0) || now % 700000 < 100000;
}

static void
held_edges(void **state)
{
    struct spinning q = {
        .near = 10000, .far = 40000, .every = {500, 500}, .end = 60 * SECOND, .held = pauses};
    spin(&q);
    agrees(&q, 5);
}

static uint32_t seed = 1;

static unsigned
number(unsigned below)
{
    seed = seed * 1664525 + 1013904223;
    return (uint32_t)((uint64_t)(seed >> 4) * below >> 28);
}

/* One packet of 200, and up to four in a row: they come when the client has answered an edge already. */
static unsigned
late(bool server)
{
    static unsigned row[2];
    if (!row[server] && !number(200))
        row[server] = 1 + number(4);
    if (!row[server])
        return 0;
    row[server]--;
    return 3000;
}

static void
late_packets(void **state)
{
    struct spinning q = {
        .near = 1000, .far = 40000, .every = {400, 400}, .end = 100 * SECOND, .late = late};
    spin(&q);
    agrees(&q, 20);
}

/* The client makes up its bits, the server does, or both do (RFC 9000, 17.4). */
static unsigned who;

static unsigned
random_bit(unsigned bit, bool server)
{
    return who & 1u << server ? number(2) : bit;
}

static void
random_bits(void **state)
{
    for (who = 1; who <= 3; who++) {
        struct spinning q = {
            .near = 2000, .far = 5000, .every = {500, 500}, .end = 30 * SECOND, .bit = random_bit};
        setup(NULL);
        spin(&q);
        assert_int_equal(q.to[0].samples + q.to[1].samples, 0);
        assert_in_range(looked, 0, 2 * 60000 / 20);
    }
}

/* The same, if nothing shut a gate, in bursts and pauses of all lengths. */
static void
random_bits_for_long(void **state)
{
    struct rtt_sample s = {0};
    for (unsigned pause = 1; pause < 20000; pause *= 4)
        for (unsigned i = 0; i < 200000; i++) {
            struct rtt_seen p = quic(number(2) ? 0x60 : 0x40, 0, number(2));
            clock_now += number(16) ? 1000 : (uint64_t)number(pause) * 16000;
            p.sig = 7;
            p.about = clock_now;
            assert_false(rtt_look(&slot, &p, &s));
            assert_in_range(slot.turns, 0, RTT_PROVEN - 1);
        }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(quic_packets, setup),
        cmocka_unit_test_setup(hello, setup),
        cmocka_unit_test_setup(spins, setup),
        cmocka_unit_test_setup(never_spins, setup),
        cmocka_unit_test_setup(held_edges, setup),
        cmocka_unit_test_setup(late_packets, setup),
        cmocka_unit_test_setup(random_bits, setup),
        cmocka_unit_test_setup(random_bits_for_long, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
