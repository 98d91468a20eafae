/* SPDX-License-Identifier: Apache-2.0 */
/* Segments of super-packets: put together again they are what went in, and each is right. */
#include "test.h"

#include "build.h"
#include "check.h"

#include <packet/checksum.h>

#include <oflib/wire.h>

#include <string.h>

static struct build b = {.seed = 1123};
static struct packet_pool *pool;

struct seen {
    const struct packet *p; /* the super-packet */
    uint32_t ip, l4, headers, mss;
    uint32_t n, payload;
    uint64_t bytes;
    uint16_t id;
    uint8_t got[70000]; /* payloads together; of UFO from the UDP header on */
    uint8_t flags_and, flags_or, first_flags, last_flags;
    bool more; /* fragments must follow */
};

static const char *
sums_from(const uint8_t *seg, uint32_t len, uint32_t ip, bool v6)
{
    uint8_t frame[14 + 2000] = {0};
    struct packet p = {.data = frame, .len = 14 + len - ip};
    assert_true(p.len <= sizeof frame);
    of_set16(frame + 12, v6 ? 0x86dd : 0x800);
    memcpy(frame + 14, seg + ip, len - ip);
    packet_parse(&p, 1);
    return p.malformed ? "malformed" : check_sums(&p);
}

static void
segment(void *ctx, const uint8_t *seg, uint32_t len)
{
    struct seen *s = ctx;
    const uint8_t *ip = seg + s->ip, *l4 = seg + s->l4;
    uint32_t n = len - s->headers;
    assert_in_range(n, s->p->len > s->headers, s->mss);
    assert_memory_equal(seg, s->p->data, s->ip); /* tags and all */
    assert_none(sums_from(seg, len, s->ip, b.v6));
    if (!b.v6)
        assert_int_equal(of_get16(ip + 4), (uint16_t)(s->id + s->n));
    if (b.proto == 6) {
        assert_int_equal(of_get32(l4 + 4), of_get32(s->p->data + s->l4 + 4) + s->payload);
        s->last_flags = l4[13];
        if (!s->n)
            s->first_flags = l4[13];
    } else
        assert_int_equal(of_get16(l4 + 4), len - s->l4);
    memcpy(s->got + s->payload, seg + s->headers, n);
    s->payload += n;
    s->bytes += len;
    s->n++;
}

/* Up to the first fragment header or the transport. */
static uint32_t
fragment_header(const uint8_t *seg, uint32_t ip)
{
    uint8_t next = seg[ip + 6];
    uint32_t at = ip + 40;
    while (next != 44) {
        const uint8_t *h = seg + at;
        assert_true(next == 0 || next == 60 || next == 43 || next == 51);
        at += next == 51 ? (h[1] + 2u) * 4 : (h[1] + 1u) * 8;
        next = h[0];
    }
    return at;
}

static void
fragment(void *ctx, const uint8_t *seg, uint32_t len)
{
    struct seen *s = ctx;
    const uint8_t *ip = seg + s->ip;
    uint32_t at = s->l4, offset = 0;
    bool more = false;
    if (b.v6 && s->p->len - s->l4 > s->mss) {
        const uint8_t *f = seg + fragment_header(seg, s->ip);
        assert_ptr_equal(f, seg + s->l4);
        assert_int_equal(f[0], 17);
        offset = of_get16(f + 2) & 0xfff8;
        more = f[3] & 1;
        at += 8;
    } else if (!b.v6) {
        offset = (of_get16(ip + 6) & 0x1fff) * 8u;
        more = of_get16(ip + 6) & 0x2000;
        assert_int_equal(of_get16(ip + 4), s->id);
    }
    assert_none(sums_from(seg, len, s->ip, b.v6));
    assert_int_equal(offset, s->payload);
    assert_in_range(len - at, 1, s->mss);
    memcpy(s->got + offset, seg + at, len - at);
    s->payload += len - at;
    s->bytes += len;
    s->more = more;
    s->n++;
}

static void
set_up_seen(struct seen *s, const struct packet *p)
{
    memset(s, 0, sizeof *s);
    s->p = p;
    s->ip = b.ip + (p->len - b.n);
    s->l4 = b.l4 + (p->len - b.n);
    s->id = of_get16(p->data + s->ip + 4);
    s->mss = p->vnet.gso_size;
    s->headers = s->l4 + (b.proto == 6 ? (p->data[s->l4 + 12] >> 4) * 4u : 8);
}

static void
check_segments(struct packet *p)
{
    static struct seen s;
    set_up_seen(&s, p);
    assert_int_equal(packet_finish(p, segment, &s), 0);
    assert_int_equal(s.n, packet_segments(p));
    assert_int_equal(s.bytes, packet_on_wire(p).bytes);
    assert_int_equal(s.payload, p->len - s.headers);
    assert_memory_equal(s.got, p->data + s.headers, s.payload);
    if (b.proto != 6)
        return;
    uint8_t flags = p->data[s.l4 + 13];
    if (s.n > 1) {
        assert_int_equal(s.first_flags, flags & ~0x09);
        assert_int_equal(s.last_flags, flags & ~0x80);
    } else
        assert_int_equal(s.last_flags, flags);
}

static void
check_fragments(struct packet *p)
{
    static struct seen s;
    static uint8_t whole[70000];
    set_up_seen(&s, p);
    s.mss &= ~7u;
    uint32_t n = packet_segments(p);
    uint64_t bytes = packet_on_wire(p).bytes;
    assert_int_equal(packet_finish(p, fragment, &s), 0);
    assert_int_equal(s.n, n);
    assert_int_equal(s.bytes, bytes);
    assert_false(s.more);
    assert_int_equal(s.payload, p->len - s.l4);
    assert_int_equal(p->vnet.flags, 0);
    memcpy(whole, p->data, p->len);
    assert_memory_equal(s.got, whole + s.l4, s.payload); /* with its checksum, by now */
    struct packet q = {.data = whole + s.ip - 14, .len = p->len - s.ip + 14};
    of_set16(q.data + 12, b.v6 ? 0x86dd : 0x800);
    packet_parse(&q, 1);
    assert_false(q.malformed);
    assert_none(check_sums(&q));
}

/* MPLS in front of anything but MPLS and IP would hide what that is. */
static void
tag(struct packet *p)
{
    for (uint32_t n = build_random(&b, 4); n--;) {
        uint32_t what = build_random(&b, 3);
        uint16_t type = of_get16(p->key.eth_type);
        if (what == 2 && (key_vid(&p->key) || type == 0x88e7))
            what = 0;
        assert_int_equal(what == 0   ? packet_push_vlan(p, 0x8100)
                         : what == 1 ? packet_push_pbb(p, 0x88e7)
                                     : packet_push_mpls(p, 0x8847),
                         0);
    }
}

static void
test_super_packets(void **state)
{
    unsigned done = 0;
    for (int i = 0; i < 3000; i++) {
        struct packet p;
        packet_pool_reset(pool);
        build_packet(&b, BUILD_GSO);
        build_parse(&b, pool, &p);
        assert_false(p.malformed);
        if (!build_random(&b, 4))
            tag(&p);
        bool ufo = (p.vnet.gso_type & 0x7f) == VIRTIO_NET_HDR_GSO_UDP;
        if (ufo && p.vnet.gso_size < 100)
            continue;
        (ufo ? check_fragments : check_segments)(&p);
        done++;
    }
    assert_in_range(done, 2400, 3000);
}

/* ------------------------------------------------------------------ one packet */

static void
whole(void *ctx, const uint8_t *data, uint32_t len)
{
    struct packet *out = ctx;
    *out = (struct packet){.data = (uint8_t *)(uintptr_t)data, .len = len};
    packet_parse(out, 1);
}

static void
test_partial(void **state)
{
    static uint8_t before[BUILD_ROOM];
    for (int i = 0; i < 20000; i++) {
        struct packet p, out, clone;
        packet_pool_reset(pool);
        build_packet(&b, BUILD_ANY);
        build_parse(&b, pool, &p);
        memcpy(before, p.data, p.len);
        packet_clone(&p, &clone);
        assert_int_equal(packet_segments(&p), 1);
        assert_int_equal(packet_on_wire(&p).bytes, p.len);
        assert_int_equal(packet_finish(&clone, whole, &out), 0);
        assert_int_equal(out.len, p.len);
        assert_none(check_sums(&out));
        assert_memory_equal(p.data, before, p.len); /* the other one is as it was */
        if (!p.vnet.flags)
            assert_memory_equal(out.data, before, p.len);
        else if (b.behind_tags && b.l4)
            assert_none(sums_from(out.data, out.len, b.ip, b.v6));
    }
}

/* A sender that leaves SCTP's checksum to hardware. */
static void
test_partial_sctp(void **state)
{
    uint8_t frame[14 + 20 + 12 + 16] = {
        [12] = 8, [14] = 0x45, [17] = 48, [22] = 64, [23] = 132, [46] = 1, [49] = 16};
    struct packet p = {
        .data = frame,
        .len = sizeof frame,
        .vnet = {.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .csum_start = 34, .csum_offset = 8}};
    uint16_t c = (uint16_t)~oracle_sum(0, frame + 14, 20);
    of_set16(frame + 24, c);
    packet_parse(&p, 1);
    assert_int_equal(p.vnet.flags, 0);
    assert_none(check_sums(&p));
    assert_int_not_equal(of_get32(frame + 42), 0);
}

static void
test_nonsense(void **state)
{
    for (int i = 0; i < 20000; i++) {
        struct packet p, out;
        packet_pool_reset(pool);
        build_packet(&b, BUILD_ANY);
        build_bytes(&b, &b.vnet, sizeof b.vnet);
        b.vnet.gso_type &= 7;
        b.vnet.gso_size %= 2000;
        if (b.vnet.gso_type && !build_random(&b, 4))
            b.vnet.csum_start = (uint16_t)b.l4;
        if (build_random(&b, 2))
            b.vnet.csum_start %= 200;
        build_parse(&b, pool, &p);
        packet_push_vlan(&p, 0x8100);
        packet_pop_mpls(&p, 0x800);
        packet_pop_pbb(&p);
        assert_true(packet_segments(&p) >= 1);
        packet_finish(&p, whole, &out);
    }
}

static void
test_checksums(void **state)
{
    static uint8_t bytes[4000], change[16];
    for (int i = 0; i < 3000; i++) {
        uint32_t n = build_random(&b, 300), at = build_random(&b, 100);
        build_bytes(&b, bytes, sizeof bytes / 8);
        if (!build_random(&b, 10))
            memset(bytes, 0xff, sizeof bytes / 8);
        assert_int_equal(csum_sum(bytes + at, n), oracle_sum(0, bytes + at, n));
        uint32_t crc = crc32c_end(crc32c_add(CRC32C_START, bytes + at, n));
        assert_int_equal(crc, oracle_crc32c(bytes + at, n));
        if (n < 16)
            continue;
        uint32_t k = build_random(&b, n - 16);
        build_bytes(&b, change, sizeof change);
        crc ^= crc32c_change(bytes + at + k, change, 16, n - k - 16);
        memcpy(bytes + at + k, change, 16);
        assert_int_equal(crc, oracle_crc32c(bytes + at, n));
    }
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(csum_sum(bytes, sizeof bytes), 0xffff);
    /* RFC 3720, B.4: 32 bytes of zeros, of ones */
    assert_int_equal(crc32c_end(crc32c_zeros(CRC32C_START, 32)), 0x8a9136aa);
    assert_int_equal(crc32c_end(crc32c_add(CRC32C_START, bytes, 32)), 0x62a8ab43);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_super_packets), cmocka_unit_test(test_partial),
        cmocka_unit_test(test_partial_sctp),  cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_checksums),
    };
    return run_random(tests, sizeof tests / sizeof *tests, &b.seed, &pool);
}
