/* SPDX-License-Identifier: Apache-2.0 */
/* Super-packets inside tunnels, also inside several: each segment's outer headers say its own
 * length, and every checksum is right.  The plain way: the test knows where it put each header. */
#include "test.h"

#include "build.h"
#include "check.h"

#include <oflib/wire.h>

#include <stdlib.h>
#include <string.h>

static struct build b = {.seed = 4789};
static struct packet_pool *pool;

struct header {
    enum { H_IPV4, H_IPV6, H_UDP, H_GRE, H_PPPOE } kind;
    uint32_t at;
};

/* The frame with all tunnels, and where their headers are. */
static struct tunnels {
    uint8_t room[BUILD_ROOM + 1000];
    uint32_t n;
    struct header header[16];
    unsigned n_headers;
    uint32_t ip; /* the innermost */
} t;

static uint8_t *
put(uint32_t n)
{
    uint8_t *p = t.room + t.n;
    build_bytes(&b, p, n);
    t.n += n;
    return p;
}

static uint8_t *
put_header(int kind, uint32_t n)
{
    t.header[t.n_headers].kind = kind;
    t.header[t.n_headers++].at = t.n;
    return put(n);
}

/* A field that says what follows, until that is known. */
static uint8_t *next_field;
static enum { NEXT_TYPE, NEXT_PROTO, NEXT_PPP, NEXT_IP } next_is;

static void
follows(uint16_t type, uint8_t proto)
{
    if (next_is == NEXT_TYPE)
        of_set16(next_field, type);
    else if (next_is == NEXT_PROTO)
        *next_field = proto;
    else if (next_is == NEXT_PPP)
        of_set16(next_field, type == 0x800 ? 0x21 : 0x57);
}

static void
put_ip(bool v6)
{
    follows(v6 ? 0x86dd : 0x800, v6 ? 41 : 4);
    uint8_t *h = put_header(v6 ? H_IPV6 : H_IPV4, v6 ? 40 : 20);
    h[0] = v6 ? 0x60 : 0x45;
    if (!v6)
        of_set16(h + 6, 0x4000);
    next_field = h + (v6 ? 6 : 9);
    next_is = NEXT_PROTO;
}

static void
put_ethernet(void)
{
    next_field = put(14) + 12;
    next_is = NEXT_TYPE;
    while (!build_random(&b, 4)) {
        of_set16(next_field, 0x8100);
        next_field = put(4) + 2;
    }
}

static void
put_gre(void)
{
    *next_field = 47;
    uint8_t flags = (uint8_t)(build_random(&b, 8) * 0x10 & 0x30) | (build_random(&b, 2) ? 0x80 : 0);
    uint8_t *h = put_header(H_GRE, 4);
    of_set16(h, (uint16_t)(flags << 8));
    for (uint8_t f = 0x80; f >= 0x10; f /= 2)
        if (flags & f)
            memset(put(4), f == 0x80 ? 0 : 7, 4);
    next_field = h + 2;
    next_is = NEXT_TYPE;
    if (!build_random(&b, 3)) {
        of_set16(h + 2, 0x6558);
        put_ethernet();
    }
}

static void
put_udp(void)
{
    *next_field = 17;
    uint8_t *h = put_header(H_UDP, 8);
    of_set16(h + 6, (uint16_t)build_random(&b, 2));
    uint32_t what = build_random(&b, 3);
    if (what == 0) { /* VXLAN */
        memcpy(put(8), "\x08\0\0\0\0\0\5", 8);
        put_ethernet();
    } else if (what == 1) { /* Geneve with options */
        uint32_t words = build_random(&b, 10);
        h = put(8);
        h[0] = (uint8_t)words;
        put(words * 4);
        next_field = h + 2;
        next_is = NEXT_TYPE;
        if (build_random(&b, 2)) {
            of_set16(h + 2, 0x6558);
            put_ethernet();
        }
    } else { /* the IP packet itself */
        next_is = NEXT_IP;
    }
}

static void
put_mpls(void)
{
    for (bool bottom = false; !bottom;) {
        bottom = build_random(&b, 2);
        uint8_t *shim = put(4);
        shim[2] = (uint8_t)((shim[2] & 0xfe) | bottom);
    }
    next_is = NEXT_IP;
}

static void
put_session(void)
{
    follows(0x8864, 0);
    uint8_t *h = put_header(H_PPPOE, 8);
    of_set16(h, 0x1100);
    next_field = h + 6;
    next_is = NEXT_PPP;
}

static void
put_tunnels(void)
{
    t.n = t.n_headers = 0;
    put_ethernet();
    for (uint32_t n = 1 + build_random(&b, 2); n--;) {
        if (next_is == NEXT_TYPE && !build_random(&b, 6)) {
            follows(0x8847, 0);
            put_mpls();
        } else if (!t.n_headers && !build_random(&b, 4)) {
            put_session();
        }
        put_ip(build_random(&b, 2));
        uint32_t what = build_random(&b, 3);
        if (what == 1)
            put_gre();
        else if (what == 2)
            put_udp();
    }
}

static const uint8_t *
addresses(uint8_t *frame, unsigned k, uint32_t *len)
{
    const struct header *ip = &t.header[k - 1];
    *len = ip->kind == H_IPV6 ? 32 : 8;
    return frame + ip->at + (ip->kind == H_IPV6 ? 8 : 12);
}

static uint16_t
udp_sum(uint8_t *frame, uint32_t len, unsigned k)
{
    uint32_t at = t.header[k].at, n;
    const uint8_t *a = addresses(frame, k, &n);
    return oracle_sum(oracle_sum(17 + len - at, a, n), frame + at, len - at);
}

/* Lengths and checksums of the frame's outer headers, from the inside out; the transport's checksum
 * must be complete. */
static void
fill(uint8_t *frame, uint32_t len)
{
    for (unsigned k = t.n_headers; k--;) {
        uint8_t *h = frame + t.header[k].at;
        uint32_t n = len - t.header[k].at;
        switch (t.header[k].kind) {
        case H_IPV6: of_set16(h + 4, (uint16_t)(n - 40)); break;
        case H_IPV4:
            of_set16(h + 2, (uint16_t)n);
            of_set16(h + 10, 0);
            of_set16(h + 10, (uint16_t)~oracle_sum(0, h, 20));
            break;
        case H_PPPOE: of_set16(h + 4, (uint16_t)(n - 6)); break;
        case H_UDP:
            of_set16(h + 4, (uint16_t)n);
            if (of_get16(h + 6)) {
                of_set16(h + 6, 0);
                uint16_t c = (uint16_t)~udp_sum(frame, len, k);
                of_set16(h + 6, c ? c : 0xffff);
            }
            break;
        case H_GRE:
            if (h[0] & 0x80) {
                of_set16(h + 4, 0);
                of_set16(h + 4, (uint16_t)~oracle_sum(0, h, n));
            }
            break;
        }
    }
}

struct seen {
    const struct packet *p;
    uint32_t n, payload, headers;
    uint64_t bytes;
};

static void
segment(void *ctx, const uint8_t *data, uint32_t len)
{
    struct seen *s = ctx;
    static uint8_t mine[70000];
    memcpy(mine, data, len);
    fill(mine, len);
    assert_memory_equal(mine, data, len); /* all was right */
    for (unsigned k = 0; k < t.n_headers; k++) {
        const uint8_t *h = data + t.header[k].at, *was = s->p->data + t.header[k].at;
        if (t.header[k].kind == H_IPV4)
            assert_int_equal(of_get16(h + 4), (uint16_t)(of_get16(was + 4) + s->n));
        uint32_t at = 4 + (was[0] & 0x80 ? 4 : 0) + (was[0] & 0x20 ? 4 : 0);
        if (t.header[k].kind == H_GRE && was[0] & 0x10)
            assert_int_equal(of_get32(h + at), of_get32(was + at) + s->n);
    }
    uint8_t *ip = mine + t.ip - 14;
    of_set16(ip + 12, b.v6 ? 0x86dd : 0x800);
    struct packet p = {.data = ip, .len = len - t.ip + 14};
    packet_parse(&p, 1);
    assert_false(p.malformed);
    assert_none(check_sums(&p));
    assert_memory_equal(data + s->headers, s->p->data + s->headers + s->payload, len - s->headers);
    s->payload += len - s->headers;
    s->bytes += len;
    s->n++;
}

/* The segments as they go to the kernel, and what it makes of them. */
static void
cut(void *ctx, const struct packet_segment *g)
{
    struct seen *s = ctx;
    static uint8_t frame[70000];
    uint32_t len = g->header_len + g->payload_len, start = g->vnet.csum_start;
    assert_in_range(g->header_len, 1, PACKET_SEGMENT_HEADERS);
    memcpy(frame, g->header, g->header_len);
    memcpy(frame + g->header_len, g->payload, g->payload_len);
    if (g->vnet.flags) {
        uint16_t c = (uint16_t)~oracle_sum(0, frame + start, len - start);
        of_set16(frame + start + g->vnet.csum_offset, !c && g->vnet.csum_offset == 6 ? 0xffff : c);
    }
    segment(s, frame, len);
}

/* A super-packet of UDP, and the segments that the kernel makes of it. */
static void
packed(void *ctx, const struct packet_segment *g)
{
    struct seen *s = ctx;
    static uint8_t frame[70000];
    struct packet p = {.data = frame, .len = g->header_len + g->payload_len, .vnet = g->vnet};
    memcpy(frame, g->header, g->header_len);
    memcpy(frame + g->header_len, g->payload, g->payload_len);
    packet_parse(&p, 1);
    assert_int_equal(packet_wire(&p).cut, PACKET_CUT_BY_KERNEL);
    assert_int_equal(packet_wire(&p).packets, g->packets);
    assert_int_equal(packet_finish(&p, segment, s), 0);
}

/* Puts a random super-packet into random tunnels. */
static void
make(struct packet *p)
{
    do
        build_packet(&b, BUILD_GSO);
    while ((b.vnet.gso_type & 0x7f) == VIRTIO_NET_HDR_GSO_UDP || b.l4 - b.ip > 60);
    put_tunnels();
    follows(b.v6 ? 0x86dd : 0x800, b.v6 ? 41 : 4);
    t.ip = t.n;
    uint32_t n = b.n - b.ip;
    if (n > 65000 - t.n)
        n = 0;
    memcpy(t.room + t.n, b.frame + b.ip, n);
    t.n += n;
    b.vnet.csum_start = (uint16_t)(t.ip + b.l4 - b.ip);
    *p = (struct packet){.data = t.room, .len = t.n, .wire_len = t.n, .pool = pool, .vnet = b.vnet};
    fill(p->data, p->len);
    packet_parse(p, 1);
}

static void
test_tunnels(void **state)
{
    static struct seen s;
    unsigned done = 0, n_packed = 0;
    for (int i = 0; i < 1200; i++) {
        struct packet p;
        packet_pool_reset(pool);
        make(&p);
        if (p.len == t.ip || !t.n_headers)
            continue;
        uint32_t l4 = t.ip + b.l4 - b.ip;
        uint32_t headers = l4 + (b.proto == 6 ? (p.data[l4 + 12] >> 4) * 4u : 8);
        /* Without a partial checksum to tell, the first header of the kind is it. */
        if (!p.vnet.flags && b.proto == 17)
            continue;
        struct packet_wire wire = packet_wire(&p);
        assert_int_equal(wire.cut, PACKET_CUT_BY_US);
        s = (struct seen){.p = &p, .headers = headers};
        assert_int_equal(packet_cut(&p, cut, &s), 0);
        assert_int_equal(s.payload, p.len - headers);
        assert_int_equal(s.n, wire.packets);
        assert_int_equal(s.bytes, wire.bytes);
        s = (struct seen){.p = &p, .headers = headers};
        assert_int_equal(packet_finish(&p, segment, &s), 0);
        assert_int_equal(s.n, wire.packets);
        done++;
        if (!packet_can_pack(&p))
            continue;
        s = (struct seen){.p = &p, .headers = headers};
        assert_int_equal(packet_pack(&p, packed, &s), 0);
        assert_int_equal(s.n, wire.packets);
        assert_int_equal(s.bytes, wire.bytes);
        n_packed++;
    }
    assert_in_range(n_packed, 20, done);
    assert_in_range(done, 700, 1200);
}

/* A tunnel that isn't known: only the checksum's start says where the transport is. */
static void
test_unknown(void **state)
{
    static struct seen s;
    for (int i = 0; i < 200; i++) {
        struct packet p;
        packet_pool_reset(pool);
        do
            build_packet(&b, BUILD_GSO);
        while (b.proto != 6 || !b.vnet.flags || b.l4 - b.ip > 60);
        t.n = t.n_headers = 0;
        put_ethernet();
        follows(0x800, 4);
        uint8_t *ip = put_header(H_IPV4, 20);
        ip[0] = 0x45;
        of_set16(ip + 6, 0x4000);
        ip[9] = build_random(&b, 2) ? 115 : 17; /* L2TP; something above UDP */
        if (ip[9] == 17) {
            put_header(H_UDP, 8);
            *put(2) = 0xf0;
        }
        put(4 + build_random(&b, 20) * 2);
        t.ip = t.n;
        memcpy(put(b.n - b.ip), b.frame + b.ip, b.n - b.ip);
        b.vnet.csum_start = (uint16_t)(t.ip + b.l4 - b.ip);
        p = (struct packet){
            .data = t.room, .len = t.n, .wire_len = t.n, .pool = pool, .vnet = b.vnet};
        fill(p.data, p.len);
        packet_parse(&p, 1);
        uint32_t l4 = p.vnet.csum_start;
        s = (struct seen){.p = &p, .headers = l4 + (p.data[l4 + 12] >> 4) * 4u};
        assert_int_equal(packet_finish(&p, segment, &s), 0);
        assert_int_equal(s.payload, p.len - s.headers);
    }
}

static void
nothing(void *ctx, const uint8_t *data, uint32_t len)
{
}

/* Cut off anywhere, and with bytes changed: no matter what comes out, nothing is read outside. */
static void
test_nonsense(void **state)
{
    for (int i = 0; i < 3000; i++) {
        struct packet p;
        packet_pool_reset(pool);
        make(&p);
        uint32_t len = build_random(&b, 4) ? p.len : 14 + build_random(&b, p.len - 13);
        uint8_t *exact = malloc(len);
        memcpy(exact, p.data, len);
        for (uint32_t n = build_random(&b, 6); n--;)
            exact[build_random(&b, len < 200 ? len : 200)] = (uint8_t)build_random(&b, 256);
        p.data = exact;
        p.len = len;
        packet_parse(&p, 1);
        p.vnet.gso_size |= 256;
        uint32_t n = packet_segments(&p);
        assert_in_range(n, 1, 300);
        packet_finish(&p, nothing, NULL);
        free(exact);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tunnels),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_nonsense),
    };
    return run_random(tests, sizeof tests / sizeof *tests, &b.seed, &pool);
}
