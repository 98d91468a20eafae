/* SPDX-License-Identifier: Apache-2.0 */
/* The hash of keys: whatever the secret, chosen keys don't collide, and neighbours spread. */
#include <oflib/wire.h>
#include <packet/key-hash.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define SECRETS 1000

static const uint8_t places[KEY_WORDS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static const uint64_t whole[KEY_WORDS] = {
    UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
    UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};

/* A multiplication by a known number keeps bit 63, and a shift by 32 brings it to bit 31 of the
 * next word, whatever the secret is. */
static void
test_chosen_keys(void **state)
{
    for (unsigned i = 0; i < SECRETS; i++) {
        struct flow_key a = {0};
        key_hash_renew();
        for (unsigned w = 0; w + 1 < KEY_WORDS; w++) {
            struct flow_key b = a;
            b.w[w] ^= UINT64_C(1) << 63;
            b.w[w + 1] ^= UINT64_C(1) << 63 | UINT64_C(1) << 31;
            assert_int_not_equal(key_hash(&a), key_hash(&b));
            assert_int_not_equal(key_hash_words(&a, places + w, whole, 2),
                                 key_hash_words(&b, places + w, whole, 2));
        }
    }
}

/* Each bit of the key changes about half of the result's, over many secrets. */
static void
test_every_bit(void **state)
{
    static unsigned changed[KEY_WORDS * 64][32];
    for (unsigned i = 0; i < SECRETS; i++) {
        struct flow_key a;
        key_hash_renew();
        memset(&a, (int)i, sizeof a);
        for (unsigned bit = 0; bit < KEY_WORDS * 64; bit++) {
            struct flow_key b = a;
            b.w[bit / 64] ^= UINT64_C(1) << bit % 64;
            uint32_t diff = key_hash(&a) ^ key_hash(&b);
            for (unsigned k = 0; k < 32; k++)
                changed[bit][k] += diff >> k & 1;
        }
    }
    for (unsigned bit = 0; bit < KEY_WORDS * 64; bit++)
        for (unsigned k = 0; k < 32; k++) /* ten standard deviations */
            assert_in_range(changed[bit][k], SECRETS / 2 - 160, SECRETS / 2 + 160);
}

static void
neighbour(struct flow_key *key, unsigned kind, uint32_t i)
{
    *key = (struct flow_key){0};
    if (kind == 0 || kind == 1)
        of_set32(key->ip_src.v4, 0x0a000000 + i);
    if (kind == 1)
        of_set32(key->ip_dst.v4, 0x0a010000 + i);
    if (kind == 2) {
        of_set16(key->tp_src, (uint16_t)i);
        of_set16(key->tp_dst, (uint16_t)(1000 + i));
    }
    if (kind == 3) {
        of_set32(key->eth_src + 2, i % 256);
        of_set32(key->eth_dst + 2, i / 256);
    }
    if (kind == 4)
        of_set32(key->in_port, i);
}

/* Keys that a network has: a table three quarters full is probed as if they were random. */
static void
test_neighbours(void **state)
{
    static uint8_t taken[1 << 14];
    const uint32_t slots = sizeof taken, n = slots / 4 * 3;
    for (unsigned i = 0; i < 100; i++) {
        uint64_t probes = 0;
        key_hash_renew();
        memset(taken, 0, sizeof taken);
        for (uint32_t k = 0; k < n; k++) {
            struct flow_key key;
            neighbour(&key, i % 5, k);
            uint32_t at = key_hash(&key) % slots;
            for (probes++; taken[at]; at = (at + 1) % slots)
                probes++;
            taken[at] = 1;
        }
        assert_in_range(probes, n * 2, n * 4); /* 2.5 of random hashes */
    }
}

static void
test_masked_words(void **state)
{
    key_hash_init();
    for (unsigned w = 0; w + 1 < KEY_WORDS; w++) {
        struct flow_key a = {0}, b = {0}, low;
        a.w[w] = b.w[w + 1] = 12345;
        low = a;
        assert_int_not_equal(key_hash(&a), key_hash(&b));
        assert_int_not_equal(key_hash_words(&a, places + w, whole, 2),
                             key_hash_words(&b, places + w, whole, 2));
        assert_int_equal(key_hash_words(&a, places, whole, KEY_WORDS), key_hash(&a));
        a.w[w] |= UINT64_C(1) << 40;
        assert_int_equal(key_hash_words(&a, places + w, &(uint64_t){0xffff}, 1),
                         key_hash_words(&low, places + w, whole, 1));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chosen_keys),
        cmocka_unit_test(test_every_bit),
        cmocka_unit_test(test_neighbours),
        cmocka_unit_test(test_masked_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
