/* SPDX-License-Identifier: Apache-2.0 */
/* Random edits of random packets: after each, the packet is what a parser makes of its bytes, its
 * checksums are right, and nothing else has changed. */
#include "test.h"

#include "build.h"
#include "check.h"

#include <oflib/wire.h>

#include <stdio.h>
#include <string.h>

static struct build b = {.seed = 20240607};
static struct packet_pool *pool;
static char trail[2048];

static void
say(const char *what)
{
    strncat(trail, what, sizeof trail - strlen(trail) - 2);
    strcat(trail, " ");
}

static void
judge(const char *verdict, const struct packet *p)
{
    if (!verdict)
        return;
    printf("%s after %s\n", verdict, trail);
    for (uint32_t i = 0; i < p->len && i < 200; i++)
        printf("%02x", p->data[i]);
    fail_msg("%s", verdict);
}

/* ------------------------------------------------------------------ set_field */

/* Fields from which others follow. */
static bool
is_root(enum oxm_field f)
{
    return f == OXM_eth_type || f == OXM_ip_proto || f == OXM_icmpv6_type;
}

static bool
field_fits(const struct packet *p, enum oxm_field f)
{
    struct flow_key mask;
    struct of_oxm v[OXM_N];
    struct of_match m = {.v = v};
    memset(&mask, 0xff, sizeof mask);
    key_to_match(&p->key, &mask, &m);
    if (!of_match_find(&m, f) || (f == OXM_vlan_vid && !key_vid(&p->key)))
        return false;
    if (f == OXM_icmpv4_type || f == OXM_icmpv4_code)
        return p->l4 && of_get16(p->key.eth_type) == 0x800;
    if (f == OXM_icmpv6_type || f == OXM_icmpv6_code)
        return p->l4 && of_get16(p->key.eth_type) == 0x86dd;
    if (f >= OXM_tcp_src && f <= OXM_sctp_dst)
        return p->l4;
    if (f == OXM_ipv6_nd_target)
        return p->nd_target_at;
    if (f == OXM_ipv6_nd_sll)
        return p->nd_sll_at;
    if (f == OXM_ipv6_nd_tll)
        return p->nd_tll_at;
    if (f == OXM_tunnel_id || p->len < 14)
        return f == OXM_tunnel_id;
    return f < OXM_eth_type || f == OXM_vlan_vid || f == OXM_vlan_pcp || p->l3;
}

static void
random_value(enum oxm_field f, uint8_t *value)
{
    const struct oxm_row *row = &oxm_rows[f];
    build_bytes(&b, value, row->bytes);
    if (!build_random(&b, 8))
        memset(value, build_random(&b, 2) ? 0xff : 0, row->bytes);
    if (row->bits < row->bytes * 8)
        oxm_set_number(row, value, oxm_number(row, value) & ((UINT64_C(1) << row->bits) - 1));
    if (f == OXM_vlan_vid)
        value[0] |= 0x10;
}

static void
set_one(struct packet *p)
{
    enum oxm_field f = (enum oxm_field)build_random(&b, OXM_N);
    uint8_t value[16];
    struct packet was = *p;
    if (!oxm_rows[f].settable || is_root(f))
        return;
    random_value(f, value);
    bool fits = field_fits(p, f);
    say(oxm_rows[f].name);
    assert_int_equal(packet_set_field(p, f, value), 0);
    if (f == OXM_vlan_vid) /* it shares its place in the key */
        value[0] |= was.key.vlan_vid[0] & KEY_HAS >> 8;
    assert_int_equal(p->len, was.len);
    if (fits) {
        assert_memory_equal(key_field(&p->key, f), value, oxm_rows[f].bytes);
        memcpy(key_field(&p->key, f), key_field(&was.key, f), oxm_rows[f].bytes);
    }
    judge(memcmp(&p->key, &was.key, sizeof p->key) ? "key" : NULL, p);
    if (fits)
        memcpy(key_field(&p->key, f), value, oxm_rows[f].bytes);
}

/* ------------------------------------------------------------------ other actions */

static uint32_t
from_end(const struct packet *p)
{
    return p->len - p->vnet.csum_start;
}

static void
push_or_pop(struct packet *p)
{
    static const uint16_t vlan[] = {0x8100, 0x88a8};
    uint32_t start = from_end(p), hdr = p->len - p->vnet.hdr_len, len = p->len;
    bool tagged = key_vid(&p->key),
         mpls = p->l3 && p->key.eth_type[0] == 0x88 && (p->key.eth_type[1] & 0xf0) == 0x40;
    bool pbb = p->l3 && of_get16(p->key.eth_type) == 0x88e7;
    int by = 0, drop = 0;
    switch (build_random(&b, 6)) {
    case 0:
        say("push_vlan");
        drop = packet_push_vlan(p, vlan[build_random(&b, 2)]);
        by = 4;
        break;
    case 1:
        say("pop_vlan");
        drop = packet_pop_vlan(p);
        by = tagged ? -4 : 0;
        break;
    case 2:
        say("push_mpls");
        drop = packet_push_mpls(p, 0x8847);
        by = 4;
        break;
    case 3:
        say("pop_mpls");
        drop = packet_pop_mpls(p, !mpls || !p->key.mpls_bos             ? 0x8847
                                  : (p->data[p->l3 + 4] & 0xf0) == 0x40 ? 0x800
                                                                        : 0x86dd);
        by = mpls ? -4 : 0;
        break;
    case 4:
        say("push_pbb");
        drop = packet_push_pbb(p, 0x88e7);
        by = 18;
        break;
    case 5:
        say("pop_pbb");
        drop = packet_pop_pbb(p);
        by = pbb ? -18 : 0;
        break;
    }
    if (drop) { /* a customer's frame that isn't there */
        assert_int_equal(drop, EDIT_DROP(malformed));
        assert_int_equal(p->len, len);
        return;
    }
    assert_int_equal(p->len, (int)len + by);
    assert_true(p->len >= 14);
    if (p->vnet.flags)
        assert_int_equal(from_end(p), start);
    if (p->vnet.hdr_len)
        assert_int_equal(p->len - p->vnet.hdr_len, hdr);
}

static void
ttl(struct packet *p)
{
    int drop = 0;
    switch (build_random(&b, 6)) {
    case 0: drop = packet_set_mpls_ttl(p, (uint8_t)build_random(&b, 256)); break;
    case 1: drop = packet_dec_mpls_ttl(p); break;
    case 2: drop = packet_set_nw_ttl(p, (uint8_t)build_random(&b, 256)); break;
    case 3: drop = packet_dec_nw_ttl(p); break;
    case 4: drop = packet_copy_ttl_out(p); break;
    case 5: drop = packet_copy_ttl_in(p); break;
    }
    say("ttl");
    assert_true(!drop || drop == EDIT_DROP(ttl));
}

static void
edit(struct packet *p)
{
    uint32_t what = build_random(&b, 8);
    if (what < 5)
        set_one(p);
    else if (what < 7)
        push_or_pop(p);
    else
        ttl(p);
    judge(check_reparse(p), p);
    judge(check_sums(p), p);
}

static void
start(struct packet *p, enum build_want want)
{
    trail[0] = 0;
    packet_pool_reset(pool);
    build_packet(&b, want);
    build_parse(&b, pool, p);
    judge(p->malformed ? "malformed" : NULL, p);
    judge(check_sums(p), p);
}

static void
test_edits(void **state)
{
    for (int i = 0; i < 60000; i++) {
        struct packet p;
        start(&p, BUILD_ANY);
        p.headroom = build_random(&b, 2) ? PACKET_HEADROOM : build_random(&b, 8);
        for (uint32_t n = build_random(&b, 16); n--;)
            edit(&p);
    }
}

/* Tags on and off again: the same bytes, but for a VLAN tag's drop eligible bit. */
static void
test_there_and_back(void **state)
{
    static uint8_t before[BUILD_ROOM];
    for (int i = 0; i < 5000; i++) {
        struct packet p;
        start(&p, BUILD_ANY);
        memcpy(before, p.data, p.len);
        uint16_t type = of_get16(p.data + p.eth_type_at);
        uint32_t len = p.len, what = build_random(&b, 3);
        if (what == 0 && (packet_push_vlan(&p, 0x8100) || packet_pop_vlan(&p)))
            fail();
        if (what == 1 && (packet_push_pbb(&p, 0x88e7) || packet_pop_pbb(&p)))
            fail();
        if (what == 2) {
            type = key_vid(&p.key) ? of_get16(p.data + 12) : type;
            if (packet_push_mpls(&p, 0x8848) || packet_pop_mpls(&p, type))
                fail();
        }
        assert_int_equal(p.len, len);
        assert_memory_equal(p.data, before, len);
        judge(check_reparse(&p), &p);
    }
}

/* A clone and its original go their own ways. */
static void
test_clones(void **state)
{
    static uint8_t before[BUILD_ROOM];
    for (int i = 0; i < 10000; i++) {
        struct packet p, q;
        start(&p, BUILD_ANY);
        memcpy(before, p.data, p.len);
        packet_clone(&p, &q);
        struct flow_key key = p.key;
        for (uint32_t n = build_random(&b, 6); n--;)
            edit(&q);
        assert_memory_equal(p.data, before, p.len);
        assert_memory_equal(&p.key, &key, sizeof key);
        judge(check_reparse(&p), &p);
        edit(&p);
        judge(check_reparse(&q), &q);
        judge(check_sums(&q), &q);
    }
}

/* TCP or UDP over IP without anything else: what packet_parse has a short way for. */
static bool
is_usual(const struct packet *p)
{
    return p->l4 && !p->fragment && (p->key.ip_proto == 6 || p->key.ip_proto == 17) &&
           p->l4 == p->l3 + (p->key.eth_type[0] == 8 ? 20 : 40) && p->l3 <= 18;
}

/* Usual packets with a byte or two of their headers changed, and cut off anywhere: the short way
 * takes none that the general one reads otherwise (check_reparse compares them). */
static void
test_almost_usual(void **state)
{
    static const uint8_t values[] = {0, 1, 6, 8, 17, 20, 0x20, 0x40, 0x45, 0x46, 0x60, 0x81, 255};
    unsigned usual = 0;
    for (int i = 0; i < 40000; i++) {
        struct packet p;
        trail[0] = 0;
        packet_pool_reset(pool);
        build_packet(&b, BUILD_ANY);
        for (uint32_t k = build_random(&b, 3); k--;)
            b.frame[12 + build_random(&b, b.n < 62 ? b.n - 12 : 50)] =
                build_random(&b, 2) ? values[build_random(&b, sizeof values)]
                                    : (uint8_t)build_random(&b, 256);
        if (!build_random(&b, 2))
            b.n = build_random(&b, b.n < 100 ? b.n : 100);
        b.vnet = (struct virtio_net_hdr){.gso_type = (uint8_t)build_random(&b, 2)};
        build_parse(&b, pool, &p);
        judge(check_reparse(&p), &p);
        usual += is_usual(&p);
    }
    assert_true(usual > 4000);
}

/* Fields from which others follow, and broken packets: still what a parser makes of the bytes. */
static void
test_roots_and_broken(void **state)
{
    static const enum oxm_field roots[] = {OXM_eth_type, OXM_ip_proto, OXM_icmpv6_type};
    static const uint16_t types[] = {0x800, 0x86dd, 0x806, 0x8847, 0x88e7, 0x8100, 0x100, 0x88cc};
    static const uint8_t protos[] = {0, 1, 6, 17, 43, 44, 50, 51, 58, 59, 60, 132};
    for (int i = 0; i < 60000; i++) {
        struct packet p;
        trail[0] = 0;
        packet_pool_reset(pool);
        build_packet(&b, BUILD_ANY);
        for (uint32_t k = build_random(&b, 4); k--;)
            b.frame[build_random(&b, b.n < 100 ? b.n : 100)] = (uint8_t)build_random(&b, 256);
        if (!build_random(&b, 4))
            b.n = build_random(&b, b.n);
        b.vnet = (struct virtio_net_hdr){0};
        build_parse(&b, pool, &p);
        for (int n = 0; n < 6; n++) {
            enum oxm_field f = roots[build_random(&b, 3)];
            uint8_t value[2];
            random_value(f, value);
            if (f == OXM_eth_type)
                of_set16(value, types[build_random(&b, 8)]);
            else if (f == OXM_ip_proto)
                value[0] = protos[build_random(&b, sizeof protos)];
            else
                value[0] = (uint8_t)(134 + build_random(&b, 4));
            say(oxm_rows[f].name);
            assert_int_equal(packet_set_field(&p, f, value), 0);
            judge(check_reparse(&p), &p);
            if (p.len >= 14 && build_random(&b, 2))
                push_or_pop(&p);
            judge(check_reparse(&p), &p);
            set_one(&p);
            judge(check_reparse(&p), &p);
        }
    }
}

static void
test_pool_runs_out(void **state)
{
    struct packet_pool *small = packet_pool_new(1000);
    struct packet p, q;
    uint8_t value[6] = {1};
    start(&p, BUILD_ANY);
    while (p.len < 200 || p.len > 600)
        start(&p, BUILD_ANY);
    p.pool = small;
    packet_clone(&p, &q);
    assert_int_equal(packet_set_field(&p, OXM_eth_dst, value), 0);
    assert_int_equal(packet_set_field(&p, OXM_eth_src, value), 0); /* its own by now */
    while (packet_pool_alloc(small, 100))
        ;
    assert_int_equal(packet_set_field(&q, OXM_eth_dst, value), EDIT_DROP(no_memory));
    assert_int_equal(packet_push_vlan(&q, 0x8100), EDIT_DROP(no_memory));
    assert_none(check_reparse(&q));
    packet_pool_reset(small);
    assert_int_equal(packet_push_vlan(&q, 0x8100), 0);
    assert_null(packet_pool_alloc(small, 1001));
    packet_pool_free(small);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edits),
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_clones),
        cmocka_unit_test(test_almost_usual),
        cmocka_unit_test(test_roots_and_broken),
        cmocka_unit_test(test_pool_runs_out),
    };
    return run_random(tests, sizeof tests / sizeof *tests, &b.seed, &pool);
}
