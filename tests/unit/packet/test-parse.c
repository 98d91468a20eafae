/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing: golden frames, frames cut off anywhere, the match of a key and back. */
#include "test.h"

#include "build.h"
#include "check.h"
#include "golden.h"

#include <oflib/text.h>
#include <oflib/wire.h>
#include <packet/headers.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t
unhex(const char *hex, uint8_t *out)
{
    uint32_t n = 0;
    for (; *hex; hex += 2)
        sscanf(hex, "%2hhx", &out[n++]);
    return n;
}

static void
match_text(const struct flow_key *key, char *out, size_t room)
{
    struct of_oxm v[OXM_N];
    struct of_match m = {.v = v};
    struct flow_key mask;
    struct of_wr w = of_wr_fixed(out, room - 1);
    memset(&mask, 0xff, sizeof mask);
    key_to_match(key, &mask, &m);
    assert_int_equal(of_match_check(&m), 0);
    of_print_match(&w, &m);
    out[w.len] = 0;
}

static void
test_golden(void **state)
{
    static uint8_t frame[2048];
    char text[1024];
    for (unsigned i = 0; i < n_golden_frames; i++) {
        const struct golden *g = &golden_frames[i];
        struct packet p = {.data = frame, .len = unhex(g->hex, frame)};
        packet_parse(&p, 1);
        match_text(&p.key, text, sizeof text);
        if (strcmp(text, g->match) != 0)
            fail_msg("%s:\n%s\nexpected\n%s", g->name, text, g->match);
        if (p.malformed)
            fail_msg("%s: malformed", g->name);
        assert_none(check_sums(&p));
    }
}

/* Offsets never point past the end, whatever is cut off or changed, nor is anything read there
 * (the sanitizers would say so). */
static void
check_offsets(const struct packet *p)
{
    assert_true(p->len < 14 || p->eth_type_at + 2 <= p->len);
    assert_true(p->l3 <= p->len && p->l4 <= p->len);
    assert_true(!p->nd_target_at || p->nd_target_at + 16 <= p->len);
    assert_true(!p->nd_sll_at || p->nd_sll_at + 6 <= p->len);
    assert_true(!p->nd_tll_at || p->nd_tll_at + 6 <= p->len);
}

static void
parse_exact(const uint8_t *frame, uint32_t n, uint8_t inside)
{
    uint8_t *copy = malloc(n ? n : 1);
    struct packet p = {.data = copy, .len = n, .inside = inside};
    assert_non_null(copy);
    memcpy(copy, frame, n);
    packet_parse(&p, 1);
    check_offsets(&p);
    assert_none(check_reparse(&p));
    (void)packet_flow_hash(&p);
    free(copy);
}

static void
test_cut_off(void **state)
{
    static uint8_t frame[2048];
    for (unsigned i = 0; i < n_golden_frames; i++)
        for (uint32_t n = unhex(golden_frames[i].hex, frame); n--;)
            parse_exact(frame, n, PACKET_INSIDE_MPLS);
}

/* ------------------------------------------------------------------ packets in sessions and behind labels */

#define AROUND_MAX 24

/* The frame with n bytes of `around` in front of its IP packet, and `type`.  Returns its length; 0: it has no IP
 * packet, or is padded. */
static uint32_t
wrap(const struct packet *p, const uint8_t *around, uint32_t n, uint16_t type, uint8_t *out)
{
    uint16_t was = of_get16(p->key.eth_type);
    if (!p->l3 || p->snap || (was != 0x800 && was != 0x86dd))
        return 0;
    memcpy(out, p->data, p->l3);
    of_set16(out + p->l3 - 2, type);
    memcpy(out + p->l3, around, n);
    memcpy(out + p->l3 + n, p->data + p->l3, p->len - p->l3);
    return p->len + n;
}

static void
check_inside(const struct packet *plain, const uint8_t *around, uint32_t n, uint16_t type,
             uint8_t kind, bool seen)
{
    static uint8_t frame[2048 + AROUND_MAX];
    struct packet p = {.data = frame, .len = wrap(plain, around, n, type, frame), .inside = kind};
    if (!p.len)
        return;
    packet_parse(&p, 1);
    assert_int_equal(of_get16(p.key.eth_type), seen ? of_get16(plain->key.eth_type) : type);
    assert_int_equal(packet_is_inside(&p), seen);
    if (seen) {
        assert_memory_equal(&p.key, &plain->key, sizeof p.key);
        assert_int_equal(p.l3, plain->l3 + n);
        assert_int_equal(p.l4, plain->l4 ? plain->l4 + n : 0);
        assert_int_equal(p.eth_type_at, plain->eth_type_at);
        assert_none(check_sums(&p));
    }
    for (uint32_t len = p.len; len--;)
        parse_exact(frame, len, kind);
}

static void
test_inside(void **state)
{
    static uint8_t frame[2048];
    uint8_t pppoe[8] = {0x11, 0, 0, 7, 0, 0, 0, 0x21}, shims[20] = {0};
    for (unsigned i = 0; i < n_golden_frames; i++) {
        struct packet p = {.data = frame, .len = unhex(golden_frames[i].hex, frame)};
        packet_parse(&p, 1);
        pppoe[7] = of_get16(p.key.eth_type) == 0x800 ? 0x21 : 0x57;
        of_set16(pppoe + 4, (uint16_t)(p.len - p.l3 + 2));
        check_inside(&p, pppoe, 8, 0x8864, PACKET_INSIDE_PPPOE, true);
        check_inside(&p, pppoe, 8, 0x8864, PACKET_INSIDE_MPLS, false);
        check_inside(&p, pppoe, 8, 0x8863, PACKET_INSIDE_PPPOE, false);
        of_set16(pppoe + 4, (uint16_t)(p.len - p.l3 + 3)); /* longer than the frame */
        check_inside(&p, pppoe, 8, 0x8864, PACKET_INSIDE_PPPOE, false);
        for (uint32_t n = 1; n <= 5; n++) {
            memset(shims, 0, sizeof shims);
            shims[n * 4 - 2] = 1;
            check_inside(&p, shims, n * 4, 0x8847, PACKET_INSIDE_MPLS, n <= PACKET_LABELS);
            check_inside(&p, shims, n * 4, 0x8847, PACKET_INSIDE_PPPOE, false);
        }
    }
}

static void
test_mutated(void **state)
{
    static struct build b = {.seed = 4711};
    for (int i = 0; i < 20000; i++) {
        build_packet(&b, BUILD_ANY);
        if (b.n > 400)
            b.n = 400;
        for (uint32_t k = build_random(&b, 8); k--;)
            b.frame[build_random(&b, b.n < 80 ? b.n : 80)] = (uint8_t)build_random(&b, 256);
        parse_exact(b.frame, build_random(&b, 3) ? b.n : build_random(&b, b.n + 1),
                    (uint8_t)build_random(&b, 4));
    }
}

static void
test_many_tags(void **state)
{
    uint32_t n = 65000;
    uint8_t *frame = calloc(1, n);
    struct packet p = {.data = frame, .len = n};
    for (uint32_t at = 12; at + 2 <= n; at += 4)
        of_set16(frame + at, 0x8100);
    packet_parse(&p, 1);
    assert_true(p.malformed);
    assert_int_equal(of_get16(p.key.eth_type), 0x8100);
    check_offsets(&p);
    free(frame);
}

static void
test_tunnel_and_port(void **state)
{
    uint8_t frame[60] = {0};
    struct packet p = {.data = frame, .len = sizeof frame};
    memset(&p.key, 0xff, sizeof p.key);
    packet_parse(&p, 0xfffffffe);
    assert_int_equal(of_get32(p.key.in_port), 0xfffffffe);
    assert_int_equal(of_get32(p.key.in_phy_port), 0xfffffffe);
    assert_int_equal(of_get64(p.key.metadata), 0);
    assert_int_equal(of_get64(p.key.tunnel_id), 0);
    assert_int_equal(of_get16(p.key.eth_type), 0x5ff);
}

/* ------------------------------------------------------------------ matches */

static void
test_match_there_and_back(void **state)
{
    static struct build b = {.seed = 99};
    for (int i = 0; i < 5000; i++) {
        struct packet p;
        struct of_oxm v[OXM_N];
        struct of_match m = {.v = v};
        struct flow_key mask, key2, mask2;
        build_packet(&b, BUILD_ANY);
        build_parse(&b, NULL, &p);
        memset(&mask, 0xff, sizeof mask);
        key_to_match(&p.key, &mask, &m);
        for (uint32_t k = 0; k < m.n; k++) /* masks where there may be some */
            if (v[k].row->maskable && v[k].row->field != OXM_vlan_vid && build_random(&b, 2)) {
                v[k].has_mask = true;
                build_bytes(&b, v[k].mask, v[k].row->bytes);
                if (v[k].row->bits < v[k].row->bytes * 8)
                    oxm_set_number(v[k].row, v[k].mask,
                                   oxm_number(v[k].row, v[k].mask) &
                                       ((UINT64_C(1) << v[k].row->bits) - 1));
                /* No bits: the field would be left away; all: the mask. */
                v[k].mask[v[k].row->bytes - 1] |= 1;
                v[k].mask[v[k].row->bytes - 1] &= 0xfd;
                for (int n = 0; n < v[k].row->bytes; n++)
                    v[k].value[n] &= v[k].mask[n];
            }
        assert_int_equal(of_match_check(&m), 0);
        key_of_match(&m, &key2, &mask2);
        struct of_oxm v2[OXM_N];
        struct of_match m2 = {.v = v2};
        key_to_match(&key2, &mask2, &m2);
        assert_int_equal(m.n, m2.n);
        for (uint32_t k = 0; k < m.n; k++) {
            assert_ptr_equal(v[k].row, v2[k].row);
            assert_int_equal(v[k].has_mask, v2[k].has_mask);
            assert_memory_equal(v[k].value, v2[k].value, v[k].row->bytes);
        }
        for (int w = 0; w < KEY_WORDS; w++) { /* and the packet is what it matches */
            assert_int_equal(key2.w[w] & ~mask2.w[w], 0);
            assert_int_equal(p.key.w[w] & mask2.w[w], key2.w[w]);
        }
    }
}

static void
test_match_vlan(void **state)
{
    struct of_oxm v[2] = {
        {.row = &oxm_rows[OXM_vlan_vid], .has_mask = true, .value = {0x10, 0}, .mask = {0x10, 0}}};
    struct of_oxm w[OXM_N];
    struct of_match m = {.n = 1, .v = v}, back = {.v = w};
    struct flow_key key, mask;
    key_of_match(&m, &key, &mask);
    assert_int_equal(of_get16(key.vlan_vid), 0x1000);
    assert_int_equal(of_get16(mask.vlan_vid), 0x1000);
    v[0] = (struct of_oxm){.row = &oxm_rows[OXM_vlan_vid], .mask = {0xff, 0xff}};
    key_of_match(&m, &key, &mask); /* no tag */
    assert_int_equal(of_get16(key.vlan_vid), 0);
    assert_int_equal(of_get16(mask.vlan_vid), 0x1fff);
    key_to_match(&key, &mask, &back);
    assert_int_equal(back.n, 1);
    assert_false(w[0].has_mask);
}

/* ------------------------------------------------------------------ hash */

static void
test_hash(void **state)
{
    unsigned bucket[16] = {0};
    uint8_t frame[54] = {[12] = 8, [14] = 0x45, [17] = 40, [22] = 64, [23] = 6, [46] = 0x50};
    for (unsigned i = 0; i < 16000; i++) {
        struct packet p = {.data = frame, .len = sizeof frame};
        of_set16(frame + 34, (uint16_t)(1024 + i)); /* one flow after another */
        packet_parse(&p, 1);
        assert_true(p.l4);
        uint32_t h = packet_flow_hash(&p);
        bucket[h >> 28]++;
        packet_parse(&p, 2);
        assert_int_equal(packet_flow_hash(&p), h); /* not of the port it came by */
        frame[0]++;
        packet_parse(&p, 1);
        assert_int_not_equal(packet_flow_hash(&p), h); /* but of the addresses below IP */
        frame[0]--;
    }
    for (int i = 0; i < 16; i++)
        assert_in_range(bucket[i], 850, 1150);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),          cmocka_unit_test(test_cut_off),
        cmocka_unit_test(test_mutated),         cmocka_unit_test(test_many_tags),
        cmocka_unit_test(test_tunnel_and_port), cmocka_unit_test(test_match_there_and_back),
        cmocka_unit_test(test_match_vlan),      cmocka_unit_test(test_hash),
        cmocka_unit_test(test_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
