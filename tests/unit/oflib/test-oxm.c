/* SPDX-License-Identifier: Apache-2.0 */
/* The 40 match fields, one by one, against the tables of OpenFlow 1.3.5, 7.2.3.7, written down
 * here a second time. */
#include "test.h"

#include <oflib/oxm.h>

#include <stdio.h>

/* Prerequisites as TLVs. */
#define IN_PORT  "80000004 00000001"
#define VLAN     "80000c02 1005"
#define NO_VLAN  "80000c02 0000"
#define ETH(t)   "80000a02 " t
#define PROTO(p) "80001401 " p
#define TYPE6(t) "80003a01 " t
#define IPV4     ETH("0800")
#define IPV6     ETH("86dd")
#define ICMPV6   IPV6 PROTO("3a")

static const struct spec {
    int field;
    const char *name;
    int bytes, bits;
    bool mask, set;
    const char *good[2]; /* what must precede it; "" where nothing must */
    const char *bad;     /* what is not enough; NULL where nothing is needed */
} specs[] = {
    {0, "in_port", 4, 32, 0, 0, {""}, NULL},
    {1, "in_phy_port", 4, 32, 0, 0, {IN_PORT}, ""},
    {2, "metadata", 8, 64, 1, 0, {""}, NULL},
    {3, "eth_dst", 6, 48, 1, 1, {""}, NULL},
    {4, "eth_src", 6, 48, 1, 1, {""}, NULL},
    {5, "eth_type", 2, 16, 0, 1, {""}, NULL},
    {6, "vlan_vid", 2, 13, 1, 1, {""}, NULL},
    {7, "vlan_pcp", 1, 3, 0, 1, {VLAN, "80000d04 1000 1000"}, NO_VLAN},
    {8, "ip_dscp", 1, 6, 0, 1, {IPV4, IPV6}, ETH("0806")},
    {9, "ip_ecn", 1, 2, 0, 1, {IPV4, IPV6}, ETH("0806")},
    {10, "ip_proto", 1, 8, 0, 1, {IPV4, IPV6}, ETH("8847")},
    {11, "ipv4_src", 4, 32, 1, 1, {IPV4}, IPV6},
    {12, "ipv4_dst", 4, 32, 1, 1, {IPV4}, IPV6},
    {13, "tcp_src", 2, 16, 0, 1, {IPV4 PROTO("06"), IPV6 PROTO("06")}, IPV4 PROTO("11")},
    {14, "tcp_dst", 2, 16, 0, 1, {IPV4 PROTO("06"), IPV6 PROTO("06")}, IPV4},
    {15, "udp_src", 2, 16, 0, 1, {IPV4 PROTO("11"), IPV6 PROTO("11")}, IPV4 PROTO("06")},
    {16, "udp_dst", 2, 16, 0, 1, {IPV4 PROTO("11"), IPV6 PROTO("11")}, IPV4},
    {17, "sctp_src", 2, 16, 0, 1, {IPV4 PROTO("84"), IPV6 PROTO("84")}, IPV4 PROTO("06")},
    {18, "sctp_dst", 2, 16, 0, 1, {IPV4 PROTO("84"), IPV6 PROTO("84")}, IPV4},
    {19, "icmpv4_type", 1, 8, 0, 1, {IPV4 PROTO("01")}, IPV4 PROTO("3a")},
    {20, "icmpv4_code", 1, 8, 0, 1, {IPV4 PROTO("01")}, IPV4},
    {21, "arp_op", 2, 16, 0, 1, {ETH("0806")}, IPV4},
    {22, "arp_spa", 4, 32, 1, 1, {ETH("0806")}, IPV4},
    {23, "arp_tpa", 4, 32, 1, 1, {ETH("0806")}, IPV4},
    {24, "arp_sha", 6, 48, 1, 1, {ETH("0806")}, IPV4},
    {25, "arp_tha", 6, 48, 1, 1, {ETH("0806")}, IPV4},
    {26, "ipv6_src", 16, 128, 1, 1, {IPV6}, IPV4},
    {27, "ipv6_dst", 16, 128, 1, 1, {IPV6}, IPV4},
    {28, "ipv6_flabel", 4, 20, 1, 1, {IPV6}, IPV4},
    {29, "icmpv6_type", 1, 8, 0, 1, {ICMPV6}, IPV6 PROTO("01")},
    {30, "icmpv6_code", 1, 8, 0, 1, {ICMPV6}, IPV6},
    {31,
     "ipv6_nd_target",
     16,
     128,
     0,
     1,
     {ICMPV6 TYPE6("87"), ICMPV6 TYPE6("88")},
     ICMPV6 TYPE6("80")},
    {32, "ipv6_nd_sll", 6, 48, 0, 1, {ICMPV6 TYPE6("87")}, ICMPV6 TYPE6("88")},
    {33, "ipv6_nd_tll", 6, 48, 0, 1, {ICMPV6 TYPE6("88")}, ICMPV6 TYPE6("87")},
    {34, "mpls_label", 4, 20, 0, 1, {ETH("8847"), ETH("8848")}, IPV4},
    {35, "mpls_tc", 1, 3, 0, 1, {ETH("8847"), ETH("8848")}, IPV4},
    {36, "mpls_bos", 1, 1, 0, 1, {ETH("8847"), ETH("8848")}, IPV4},
    {37, "pbb_isid", 3, 24, 1, 1, {ETH("88e7")}, ETH("88a8")},
    {38, "tunnel_id", 8, 64, 1, 1, {""}, NULL},
    {39, "ipv6_exthdr", 2, 9, 1, 0, {IPV6}, IPV4},
};
#define N_SPECS (sizeof specs / sizeof specs[0])

static void
put_tlv_header(struct of_wr *w, const struct spec *s, bool mask, int len)
{
    of_wr16(w, 0x8000);
    of_wr8(w, (uint8_t)(s->field << 1 | mask));
    of_wr8(w, (uint8_t)len);
}

/* All ones in the lowest `bits`, big-endian, `bytes` long. */
static void
put_ones(struct of_wr *w, int bytes, int bits)
{
    for (int i = bytes - 1; i >= 0; i--) {
        int here = bits - 8 * i;
        of_wr8(w, here >= 8 ? 0xff : here > 0 ? (uint8_t)((1 << here) - 1) : 0);
    }
}

/* TLVs decoded: `before`, this field with ones in `value_bits` (and a mask of `mask_bits`; -1:
 * none), `after`. */
static int
match_err(const struct spec *s, const char *before, int value_bits, int mask_bits,
          const char *after)
{
    uint8_t buf[256];
    struct of_wr w = of_wr_fixed(buf, sizeof buf);
    struct of_arena arena;
    struct of_match m;
    bool mask = mask_bits >= 0;
    put_hex(&w, before);
    put_tlv_header(&w, s, mask, s->bytes << mask);
    put_ones(&w, s->bytes, value_bits);
    if (mask)
        put_ones(&w, s->bytes, mask_bits);
    put_hex(&w, after);
    of_arena_init(&arena, ARENA_MAX);
    int err = of_match_decode_tlvs((struct of_bytes){buf, w.len}, &arena, &m);
    if (!err) { /* and back again */
        uint8_t again[256];
        struct of_wr w2 = of_wr_fixed(again, sizeof again);
        assert_int_equal(of_match_check(&m), 0);
        for (uint32_t i = 0; i < m.n; i++)
            of_oxm_encode(&w2, &m.v[i]);
        assert_int_equal(w2.len, w.len);
        assert_memory_equal(again, buf, w.len);
    }
    of_arena_free(&arena);
    return err;
}

static void
rows(void **state)
{
    assert_int_equal(N_SPECS, OXM_N);
    for (size_t i = 0; i < N_SPECS; i++) {
        const struct spec *s = &specs[i];
        const struct oxm_row *r = &oxm_rows[s->field];
        assert_string_equal(r->name, s->name);
        assert_int_equal(r->field, s->field);
        assert_int_equal(r->bytes, s->bytes);
        assert_int_equal(r->bits, s->bits);
        assert_int_equal(r->maskable, s->mask);
        assert_int_equal(r->settable, s->set);
        assert_int_equal(OXM_HEADER(s->field, 0, s->bytes),
                         0x80000000u | (unsigned)s->field << 9 | (unsigned)s->bytes);
        assert_int_equal(OXM_HEADER(s->field, 1, s->bytes),
                         0x80000100u | (unsigned)s->field << 9 | 2u * (unsigned)s->bytes);
    }
}

static void
accepted_with_prerequisites(void **state)
{
    for (size_t i = 0; i < N_SPECS; i++)
        for (int k = 0; k < 2 && specs[i].good[k]; k++)
            assert_int_equal(match_err(&specs[i], specs[i].good[k], specs[i].bits, -1, ""), 0);
}

static void
refused_without_prerequisites(void **state)
{
    for (size_t i = 0; i < N_SPECS; i++) {
        const struct spec *s = &specs[i];
        if (!s->bad)
            continue;
        assert_err(match_err(s, "", s->bits, -1, ""), BAD_MATCH, OFPBMC_BAD_PREREQ);
        assert_err(match_err(s, s->bad, s->bits, -1, ""), BAD_MATCH, OFPBMC_BAD_PREREQ);
        /* too late */
        assert_err(match_err(s, "", s->bits, -1, s->good[0]), BAD_MATCH, OFPBMC_BAD_PREREQ);
    }
}

static void
masks(void **state)
{
    for (size_t i = 0; i < N_SPECS; i++) {
        const struct spec *s = &specs[i];
        const char *pre = s->good[0];
        if (!s->mask) {
            assert_err(match_err(s, pre, s->bits, s->bits, ""), BAD_MATCH, OFPBMC_BAD_MASK);
            continue;
        }
        assert_int_equal(match_err(s, pre, s->bits, s->bits, ""), 0);
        assert_int_equal(match_err(s, pre, 1, 3, ""), 0);
        assert_int_equal(match_err(s, pre, 0, 0, ""), 0);
        /* a bit of the value where the mask has none (7.2.3.5) */
        assert_err(match_err(s, pre, 4, 3, ""), BAD_MATCH, OFPBMC_BAD_WILDCARDS);
        if (s->bits < s->bytes * 8)
            assert_err(match_err(s, pre, 0, s->bits + 1, ""), BAD_MATCH, OFPBMC_BAD_MASK);
    }
}

static void
values_in_range(void **state)
{
    for (size_t i = 0; i < N_SPECS; i++) {
        const struct spec *s = &specs[i];
        assert_int_equal(match_err(s, s->good[0], 0, -1, ""), 0);
        if (s->bits < s->bytes * 8)
            assert_err(match_err(s, s->good[0], s->bits + 1, -1, ""), BAD_MATCH, OFPBMC_BAD_VALUE);
    }
}

static void
no_field_twice(void **state)
{
    for (size_t i = 0; i < N_SPECS; i++) {
        const struct spec *s = &specs[i];
        uint8_t buf[64];
        char again[200] = "";
        struct of_wr w = of_wr_fixed(buf, sizeof buf);
        put_tlv_header(&w, s, 0, s->bytes);
        put_ones(&w, s->bytes, 0);
        for (size_t k = 0; k < w.len; k++)
            sprintf(again + 2 * k, "%02x", buf[k]);
        assert_err(match_err(s, s->good[0], 0, -1, again), BAD_MATCH, OFPBMC_DUP_FIELD);
    }
}

static void
lengths(void **state)
{
    struct of_arena arena;
    struct of_match m;
    of_arena_init(&arena, ARENA_MAX);
    for (size_t i = 0; i < N_SPECS; i++)
        for (int mask = 0; mask < 2; mask++)
            for (int len = 0; len < 256; len++) {
                const struct spec *s = &specs[i];
                uint8_t buf[300];
                struct of_wr w = of_wr_fixed(buf, sizeof buf);
                if (len == s->bytes << mask)
                    continue;
                put_tlv_header(&w, s, mask, len);
                of_wr_add(&w, (size_t)len);
                assert_err(of_match_decode_tlvs((struct of_bytes){buf, w.len}, &arena, &m),
                           BAD_MATCH, OFPBMC_BAD_LEN);
            }
    of_arena_free(&arena);
}

/* What the kernel's entries look at may be a part of any field. */
static void
any_mask(void **state)
{
    static const uint8_t tlvs[] = {0x80, 0,    0x0a, 2,    8, 0, 0x80, 0,    0x14, 1,
                                   6,    0x80, 0,    0x1d, 4, 1, 0x80, 0xff, 0xc0};
    struct of_arena arena;
    struct of_match m;
    of_arena_init(&arena, ARENA_MAX);
    const struct of_bytes all = {tlvs, sizeof tlvs};
    assert_err(of_match_decode_tlvs(all, &arena, &m), BAD_MATCH, OFPBMC_BAD_MASK);
    assert_int_equal(of_match_decode_any(all, &arena, &m), 0);
    assert_int_equal(m.n, 3);
    assert_int_equal(m.v[2].row->field, OXM_tcp_dst);
    assert_int_equal(oxm_number(m.v[2].row, m.v[2].mask), 0xffc0);
    of_arena_free(&arena);
}

/* The TLV reaches past the match's end, or its header does. */
static void
truncated(void **state)
{
    struct of_arena arena;
    struct of_match m;
    static const uint8_t tlv[] = {0x80, 0, 0, 4, 0, 0, 0, 1};
    of_arena_init(&arena, ARENA_MAX);
    assert_int_equal(of_match_decode_tlvs((struct of_bytes){tlv, 0}, &arena, &m), 0);
    assert_int_equal(m.n, 0);
    for (size_t n = 1; n < sizeof tlv; n++)
        assert_err(of_match_decode_tlvs((struct of_bytes){tlv, n}, &arena, &m), BAD_MATCH,
                   OFPBMC_BAD_LEN);
    of_arena_free(&arena);
}

static int
set_err(const struct spec *s, int bits, bool mask, int len)
{
    uint8_t buf[300];
    struct of_oxm o;
    struct of_wr w = of_wr_fixed(buf, sizeof buf);
    put_tlv_header(&w, s, mask, len);
    put_ones(&w, len, bits);
    struct of_rd r = of_rd(buf, w.len);
    int err = of_set_field_decode(&r, &o);
    if (!err) {
        uint8_t again[64];
        struct of_wr w2 = of_wr_fixed(again, sizeof again);
        of_oxm_encode(&w2, &o);
        assert_int_equal(w2.len, w.len);
        assert_memory_equal(again, buf, w.len);
    }
    return err;
}

static void
set_field(void **state)
{
    for (size_t i = 0; i < N_SPECS; i++) {
        const struct spec *s = &specs[i];
        if (!s->set) {
            assert_err(set_err(s, 1, 0, s->bytes), BAD_ACTION, OFPBAC_BAD_SET_TYPE);
            continue;
        }
        assert_int_equal(set_err(s, s->bits, 0, s->bytes), 0);
        if (s->field != 6) /* a VID of 0 lacks OFPVID_PRESENT */
            assert_int_equal(set_err(s, 0, 0, s->bytes), 0);
        if (s->bits < s->bytes * 8)
            assert_err(set_err(s, s->bits + 1, 0, s->bytes), BAD_ACTION, OFPBAC_BAD_SET_ARGUMENT);
        assert_err(set_err(s, s->bits, 1, 2 * s->bytes), BAD_ACTION, OFPBAC_BAD_SET_TYPE);
        assert_err(set_err(s, 0, 0, s->bytes + 1), BAD_ACTION, OFPBAC_BAD_SET_LEN);
        assert_err(set_err(s, 0, 0, s->bytes - 1), BAD_ACTION, OFPBAC_BAD_SET_LEN);
        assert_err(set_err(s, 0, 0, 0), BAD_ACTION, OFPBAC_BAD_SET_LEN);
    }
}

/* 7.2.3.7: none, any or a VID with OFPVID_PRESENT. */
static void
vlan_vid(void **state)
{
    static const struct {
        const char *tlv;
        int code; /* -1: accepted */
    } cases[] = {
        {"80000c02 0000", -1},
        {"80000c02 1000", -1},
        {"80000c02 1fff", -1},
        {"80000d04 1000 1000", -1},
        {"80000d04 0005 0fff", -1},
        {"80000d04 0000 1fff", -1},
        {"80000d04 0388 1fff", OFPBMC_BAD_VALUE}, /* VID 904 of a frame without a tag */
        {"80000d04 0005 1005", OFPBMC_BAD_VALUE},
        {"80000c02 0005", OFPBMC_BAD_VALUE},
        {"80000c02 3005", OFPBMC_BAD_VALUE},
        {"80000d04 1005 1000", OFPBMC_BAD_WILDCARDS},
        {"80000d04 1005 3fff", OFPBMC_BAD_MASK},
        /* a priority needs a tag: VID NONE, or one of which only the VID's bits are asked for */
        {NO_VLAN "80000e01 05", OFPBMC_BAD_PREREQ},
        {"80000d04 0005 0fff 80000e01 05", OFPBMC_BAD_PREREQ},
    };
    struct of_arena arena;
    struct of_match m;
    of_arena_init(&arena, ARENA_MAX);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t buf[64];
        struct of_wr w = of_wr_fixed(buf, sizeof buf);
        put_hex(&w, cases[i].tlv);
        int want = cases[i].code < 0 ? 0 : OF_ERR(OFPET_BAD_MATCH, cases[i].code);
        int got = of_match_decode_tlvs((struct of_bytes){buf, w.len}, &arena, &m);
        if (got != want)
            fail_msg("%s: %#x", cases[i].tlv, (unsigned)got);
    }
    of_arena_free(&arena);
}

static void
numbers(void **state)
{
    const struct oxm_row *isid = &oxm_rows[OXM_pbb_isid], *meta = &oxm_rows[OXM_metadata];
    uint8_t v[8];
    oxm_set_number(isid, v, 0x123456);
    assert_memory_equal(v, "\x12\x34\x56", 3);
    assert_int_equal(oxm_number(isid, v), 0x123456);
    oxm_set_number(meta, v, UINT64_C(0x8000000000000001));
    assert_true(oxm_number(meta, v) == UINT64_C(0x8000000000000001));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows),
        cmocka_unit_test(accepted_with_prerequisites),
        cmocka_unit_test(refused_without_prerequisites),
        cmocka_unit_test(masks),
        cmocka_unit_test(values_in_range),
        cmocka_unit_test(no_field_twice),
        cmocka_unit_test(lengths),
        cmocka_unit_test(any_mask),
        cmocka_unit_test(truncated),
        cmocka_unit_test(set_field),
        cmocka_unit_test(vlan_vid),
        cmocka_unit_test(numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
