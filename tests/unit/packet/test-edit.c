/* SPDX-License-Identifier: Apache-2.0 */
/* What single actions do, byte by byte. */
#include "test.h"

#include "check.h"
#include "golden.h"

#include <oflib/wire.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint8_t room[PACKET_HEADROOM + 2048];
static struct packet_pool *pool;

static void
load(struct packet *p, const char *name)
{
    const char *hex = NULL;
    uint32_t n = 0;
    for (unsigned i = 0; i < n_golden_frames; i++)
        if (!strcmp(golden_frames[i].name, name))
            hex = golden_frames[i].hex;
    assert_non_null(hex);
    for (; *hex; hex += 2)
        sscanf(hex, "%2hhx", &room[PACKET_HEADROOM + n++]);
    packet_pool_reset(pool);
    *p = (struct packet){
        .data = room + PACKET_HEADROOM, .headroom = PACKET_HEADROOM, .len = n, .pool = pool};
    packet_parse(p, 1);
}

static void
check(const struct packet *p)
{
    assert_none(check_reparse(p));
    assert_none(check_sums(p));
}

static void
set(struct packet *p, enum oxm_field f, uint64_t value)
{
    uint8_t v[OXM_MAX_LEN] = {0};
    oxm_set_number(&oxm_rows[f], v, value);
    assert_int_equal(packet_set_field(p, f, v), 0);
    check(p);
}

/* ------------------------------------------------------------------ tags */

static void
test_push_vlan(void **state)
{
    struct packet p;
    load(&p, "vlan");
    assert_int_equal(packet_push_vlan(&p, 0x88a8), 0);
    assert_memory_equal(p.data + 12, "\x88\xa8\xa0\x64\x81\0\xa0\x64\x08\0", 10); /* copied */
    check(&p);
    set(&p, OXM_vlan_vid, 0x1000 | 7);
    assert_memory_equal(p.data + 12, "\x88\xa8\xa0\x07\x81\0\xa0\x64", 8); /* keeps pcp */
    set(&p, OXM_vlan_pcp, 1);
    assert_memory_equal(p.data + 12, "\x88\xa8\x20\x07\x81\0\xa0\x64", 8);
    load(&p, "arp");
    assert_int_equal(packet_push_vlan(&p, 0x8100), 0);
    assert_memory_equal(p.data + 12, "\x81\0\0\0\x08\x06", 6);
    assert_int_equal(key_vid(&p.key), 0x1000);
    check(&p);
}

static void
test_push_mpls(void **state)
{
    struct packet p;
    load(&p, "tcp");
    assert_int_equal(packet_push_mpls(&p, 0x8847), 0);
    assert_memory_equal(p.data + 12, "\x88\x47\0\0\x01\x21\x45", 7); /* the IP header's TTL 33 */
    check(&p);
    set(&p, OXM_mpls_label, 5);
    set(&p, OXM_mpls_tc, 6);
    assert_int_equal(packet_push_mpls(&p, 0x8848), 0);
    assert_memory_equal(p.data + 12, "\x88\x48\0\0\x5c\x21\0\0\x5d\x21\x45", 11);
    check(&p);
    assert_int_equal(packet_pop_mpls(&p, 0x8847), 0);
    assert_int_equal(p.key.mpls_bos, 1);
    assert_int_equal(packet_pop_mpls(&p, 0x800), 0);
    assert_int_equal(of_get16(p.key.tp_dst), 80);
    load(&p, "arp");
    assert_int_equal(packet_push_mpls(&p, 0x8847), 0);
    assert_memory_equal(p.data + 12, "\x88\x47\0\0\x01\0\0\x01", 8);
}

/* 5.12: right behind the Ethernet header, before other tags. */
static void
test_push_mpls_before_vlan(void **state)
{
    struct packet p;
    load(&p, "vlan");
    assert_int_equal(packet_push_mpls(&p, 0x8847), 0);
    assert_memory_equal(p.data + 12, "\x88\x47\0\0\x01\x21\xa0\x64\x08\0", 10);
    assert_int_equal(key_vid(&p.key), 0);
    check(&p);
    assert_int_equal(packet_pop_mpls(&p, 0x8100), 0);
    assert_int_equal(key_vid(&p.key), 0x1064);
    assert_int_equal(p.key.vlan_pcp, 5);
    check(&p);
}

static void
test_push_pbb(void **state)
{
    struct packet p;
    load(&p, "vlan");
    assert_int_equal(packet_push_pbb(&p, 0x88e7), 0);
    assert_memory_equal(p.data, p.data + 18, 12);
    assert_memory_equal(p.data + 12, "\x88\xe7\xa0\0\0\0", 6); /* I-PCP 5 */
    assert_memory_equal(p.data + 30, "\x81\0\xa0\x64\x08\0", 6);
    check(&p);
    set(&p, OXM_pbb_isid, 0xabcdef);
    set(&p, OXM_eth_dst, 1);
    assert_int_equal(packet_push_pbb(&p, 0x88e7), 0);
    assert_int_equal(of_get32(p.data + 14), 0xabcdef);
    assert_int_equal(packet_push_vlan(&p, 0x88a8), 0); /* a backbone VLAN */
    check(&p);
    assert_int_equal(packet_pop_pbb(&p), 0);
    assert_int_equal(key_vid(&p.key), 0x1000);
    assert_memory_equal(p.data, "\0\0\0\0\0\1", 6);
    check(&p);
    assert_int_equal(packet_pop_vlan(&p), 0);
    assert_int_equal(packet_pop_pbb(&p), 0);
    assert_int_equal(p.data[5], 0x55);
    assert_int_equal(key_vid(&p.key), 0x1064);
    check(&p);
}

static void
test_snap(void **state)
{
    struct packet p;
    load(&p, "snap");
    uint16_t length = of_get16(p.data + 12);
    assert_int_equal(packet_push_mpls(&p, 0x8847), 0);
    assert_int_equal(of_get16(p.data + 12), length + 4);
    assert_int_equal(of_get16(p.data + 20), 0x8847);
    check(&p);
    assert_int_equal(packet_pop_mpls(&p, 0x800), 0);
    assert_int_equal(of_get16(p.data + 12), length);
    assert_int_equal(p.l4, 42);
    check(&p);
}

static void
test_not_there(void **state)
{
    static const char *const names[] = {"unknown type", "arp", "tcp"};
    for (unsigned i = 0; i < 3; i++) {
        struct packet p;
        uint8_t before[2048];
        load(&p, names[i]);
        memcpy(before, p.data, p.len);
        struct flow_key key = p.key;
        assert_int_equal(packet_pop_vlan(&p), 0);
        assert_int_equal(packet_pop_mpls(&p, 0x800), 0);
        assert_int_equal(packet_pop_pbb(&p), 0);
        assert_int_equal(packet_set_mpls_ttl(&p, 3), 0);
        assert_int_equal(packet_dec_mpls_ttl(&p), 0);
        assert_int_equal(packet_copy_ttl_in(&p), 0);
        assert_int_equal(packet_copy_ttl_out(&p), 0);
        set(&p, OXM_vlan_vid, 0x1001);
        set(&p, OXM_udp_dst, 1);
        set(&p, OXM_ipv6_flabel, 1);
        set(&p, OXM_mpls_label, 1);
        set(&p, OXM_icmpv6_type, 1);
        assert_memory_equal(p.data, before, p.len);
        assert_memory_equal(&p.key, &key, sizeof key);
    }
}

static void
test_too_short_or_long(void **state)
{
    uint8_t frame[PACKET_HEADROOM + 14] = {0};
    for (uint32_t n = 0; n < 14; n++) {
        struct packet p = {.data = frame + PACKET_HEADROOM, .len = n, .headroom = PACKET_HEADROOM};
        packet_parse(&p, 1);
        assert_true(p.malformed);
        assert_int_equal(packet_push_vlan(&p, 0x8100), EDIT_DROP(malformed));
        assert_int_equal(packet_push_mpls(&p, 0x8847), EDIT_DROP(malformed));
        assert_int_equal(packet_push_pbb(&p, 0x88e7), EDIT_DROP(malformed));
        assert_int_equal(packet_pop_vlan(&p), 0);
        set(&p, OXM_eth_dst, 3);
        assert_int_equal(p.len, n);
    }
    struct packet p = {.data = calloc(1, PACKET_MAX), .len = PACKET_MAX, .pool = pool};
    packet_parse(&p, 1);
    assert_int_equal(packet_push_vlan(&p, 0x8100), EDIT_DROP(too_long));
    free(p.data);
}

/* ------------------------------------------------------------------ TTL */

static void
test_ttl(void **state)
{
    struct packet p;
    load(&p, "tcp");
    assert_int_equal(packet_dec_nw_ttl(&p), 0);
    assert_int_equal(p.data[22], 32);
    check(&p);
    assert_int_equal(packet_set_nw_ttl(&p, 2), 0);
    assert_int_equal(packet_dec_nw_ttl(&p), 0);
    assert_int_equal(packet_dec_nw_ttl(&p), EDIT_DROP(ttl));
    assert_int_equal(p.data[22], 1); /* as it was */
    check(&p);
    assert_int_equal(packet_set_nw_ttl(&p, 0), 0);
    assert_int_equal(packet_dec_nw_ttl(&p), EDIT_DROP(ttl));
    check(&p);
    load(&p, "qinq");
    assert_int_equal(packet_dec_nw_ttl(&p), 0);
    assert_int_equal(p.data[p.l3 + 7], 8);
    load(&p, "mpls");
    assert_int_equal(packet_dec_nw_ttl(&p), 0); /* the IP header is out of reach */
    assert_int_equal(packet_dec_mpls_ttl(&p), 0);
    assert_int_equal(p.data[17], 4);
    assert_int_equal(packet_set_mpls_ttl(&p, 1), 0);
    assert_int_equal(packet_dec_mpls_ttl(&p), EDIT_DROP(ttl));
    assert_int_equal(p.data[17], 1);
}

static void
test_copy_ttl(void **state)
{
    struct packet p;
    load(&p, "mpls"); /* labels with TTL 5, 6; IP 33 */
    assert_int_equal(packet_copy_ttl_out(&p), 0);
    assert_int_equal(p.data[17], 6);
    assert_int_equal(packet_set_mpls_ttl(&p, 77), 0);
    assert_int_equal(packet_copy_ttl_in(&p), 0);
    assert_int_equal(p.data[21], 77);
    assert_int_equal(packet_pop_mpls(&p, 0x8847), 0);
    assert_int_equal(packet_copy_ttl_in(&p), 0);
    assert_int_equal(packet_pop_mpls(&p, 0x800), 0);
    assert_int_equal(p.data[22], 77);
    check(&p);
    assert_int_equal(packet_push_mpls(&p, 0x8847), 0);
    assert_int_equal(packet_set_mpls_ttl(&p, 1), 0);
    assert_int_equal(packet_copy_ttl_out(&p), 0);
    assert_int_equal(p.data[17], 77);
}

static void
test_copy_ttl_ip_in_ip(void **state)
{
    struct packet p;
    uint8_t inner[40], outer[20] = {0x45, 0, 0, 60, 0, 1, 0, 0, 9, 4, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2};
    load(&p, "tcp");
    memcpy(inner, p.data + 14, 40);
    of_set16(outer + 10, (uint16_t)~oracle_sum(0, outer, 20));
    memcpy(p.data + 14, outer, 20);
    memcpy(p.data + 34, inner, 40);
    of_set16(p.data + 36, 40);
    of_set16(p.data + 44, 0);
    of_set16(p.data + 44, (uint16_t)~oracle_sum(0, p.data + 34, 20));
    p.len = 74;
    packet_parse(&p, 1);
    assert_false(p.malformed);
    assert_int_equal(packet_copy_ttl_in(&p), 0);
    assert_int_equal(p.data[42], 9);
    assert_int_equal(oracle_sum(0, p.data + 34, 20), 0xffff);
    assert_int_equal(packet_set_nw_ttl(&p, 100), 0);
    assert_int_equal(packet_copy_ttl_out(&p), 0);
    assert_int_equal(p.data[22], 9);
    check(&p);
}

/* ------------------------------------------------------------------ fields */

static void
test_udp_checksum_zero(void **state)
{
    struct packet p;
    load(&p, "vlan");
    of_set16(p.data + p.l4 + 6, 0); /* none */
    set(&p, OXM_udp_src, 999);
    set(&p, OXM_ipv4_dst, 0x01020304);
    assert_int_equal(of_get16(p.data + p.l4 + 6), 0);
    load(&p, "vlan");
    bool ffff = false;
    for (uint32_t port = 0; port < 65536; port++) { /* one of them sums up to 0 */
        set(&p, OXM_udp_src, port);
        assert_int_not_equal(of_get16(p.data + p.l4 + 6), 0);
        ffff |= of_get16(p.data + p.l4 + 6) == 0xffff;
    }
    assert_true(ffff);
}

static void
test_wrong_checksums_stay_wrong(void **state)
{
    static const char *const names[] = {"tcp", "sctp", "qinq", "icmp"};
    for (unsigned i = 0; i < 4; i++) {
        struct packet p;
        load(&p, names[i]);
        p.data[p.len - 1] ^= 1;
        assert_non_null(check_sums(&p));
        uint8_t v[16] = {1, 2, 3, 4};
        packet_set_field(&p, OXM_ipv4_src, v);
        packet_set_field(&p, OXM_tcp_src, v);
        packet_set_field(&p, OXM_sctp_src, v);
        packet_set_field(&p, OXM_ipv6_dst, v);
        packet_set_field(&p, OXM_icmpv4_type, v);
        assert_none(check_reparse(&p));
        assert_non_null(check_sums(&p));
        p.data[p.len - 1] ^= 1;
        assert_none(check_sums(&p));
    }
}

static void
test_later_fragment(void **state)
{
    struct packet p;
    uint8_t payload[64];
    load(&p, "later fragment");
    memcpy(payload, p.data + 34, p.len - 34);
    set(&p, OXM_ipv4_src, 0x0a000001);
    set(&p, OXM_udp_src, 1);
    assert_memory_equal(p.data + 34, payload, p.len - 34);
    load(&p, "first fragment");
    uint16_t before = of_get16(p.data + p.l4 + 6);
    set(&p, OXM_udp_src, 6); /* one more: the checksum one less */
    assert_int_equal((uint16_t)(before - 1), of_get16(p.data + p.l4 + 6));
}

static void
test_metadata(void **state)
{
    struct packet p;
    uint8_t v[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    load(&p, "tcp");
    p.shared = true;
    assert_int_equal(packet_set_field(&p, OXM_tunnel_id, v), 0);
    assert_int_equal(packet_set_field(&p, OXM_metadata, v), 0);
    assert_memory_equal(p.key.tunnel_id, v, 8);
    assert_memory_equal(p.key.metadata, v, 8);
    assert_true(p.shared); /* no bytes touched */
    assert_int_equal(packet_set_field(&p, OXM_in_port, v), EDIT_DROP(bad_action));
    assert_int_equal(packet_set_field(&p, OXM_ipv6_exthdr, v), EDIT_DROP(bad_action));
    packet_push_mpls(&p, 0x8847);
    assert_memory_equal(p.key.tunnel_id, v, 8);
    assert_int_equal(of_get32(p.key.in_port), 1);
    assert_true(p.data < room || p.data >= room + sizeof room); /* in a copy */
}

static void
test_nd(void **state)
{
    struct packet p;
    uint8_t target[16] = {0xfe, 0x80, [15] = 3};
    load(&p, "nd solicitation");
    set(&p, OXM_ipv6_nd_sll, 0x020304050607);
    assert_memory_equal(p.data + p.nd_sll_at, "\2\3\4\5\6\7", 6);
    assert_int_equal(packet_set_field(&p, OXM_ipv6_nd_target, target), 0);
    check(&p);
    set(&p, OXM_icmpv6_type, 136); /* an advertisement has no source address option */
    assert_int_equal(p.nd_sll_at, 0);
    load(&p, "nd without options");
    uint8_t before[200];
    memcpy(before, p.data, p.len);
    set(&p, OXM_ipv6_nd_sll, 0x020304050607);
    assert_memory_equal(p.data, before, p.len);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_push_vlan),
        cmocka_unit_test(test_push_mpls),
        cmocka_unit_test(test_push_mpls_before_vlan),
        cmocka_unit_test(test_push_pbb),
        cmocka_unit_test(test_snap),
        cmocka_unit_test(test_not_there),
        cmocka_unit_test(test_too_short_or_long),
        cmocka_unit_test(test_ttl),
        cmocka_unit_test(test_copy_ttl),
        cmocka_unit_test(test_copy_ttl_ip_in_ip),
        cmocka_unit_test(test_udp_checksum_zero),
        cmocka_unit_test(test_wrong_checksums_stay_wrong),
        cmocka_unit_test(test_later_fragment),
        cmocka_unit_test(test_metadata),
        cmocka_unit_test(test_nd),
    };
    pool = packet_pool_new(1 << 22);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    packet_pool_free(pool);
    return failed;
}
