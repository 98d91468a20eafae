/* SPDX-License-Identifier: Apache-2.0 */
#include <table/normal.h>

#include <shared/atomics.h>

#include <stdlib.h>

#define INDEX_BITS 14
#define WAYS       4
#define AGE_UNIT   8                /* seconds */
#define AGE_MAX    (300 / AGE_UNIT) /* forgotten when not seen for 300 s */
#define KEY_MASK   ((UINT64_C(1) << 60) - 1)
#define TAG_MASK   ((UINT64_C(1) << 46) - 1)

/* A word is tag (46 bits), port (12), age (6); 0: empty.  On a 32-bit processor two workers may
 * write halves of different entries: the word is then one of an address that nobody has, and ages.
 * */
struct normal {
    uint64_t place[1 << INDEX_BITS][WAYS];
};

struct normal *
normal_new(void)
{
    return calloc(1, sizeof(struct normal));
}

void
normal_free(struct normal *n)
{
    free(n);
}

/* One-to-one on 60 bits, as xor-shifts and multiplications by odd numbers are. */
static uint64_t
mix60(const uint8_t mac[6], uint16_t vid)
{
    uint64_t k = (uint64_t)(vid & 0xfff) << 48;
    for (int i = 0; i < 6; i++)
        k |= (uint64_t)mac[i] << (8 * i);
    for (int i = 0; i < 2; i++) {
        k ^= k >> 31;
        k = k * UINT64_C(0x9e3779b97f4a7c15) & KEY_MASK;
    }
    return k ^ k >> 29;
}

static uint8_t
age_now(uint32_t now)
{
    return now / AGE_UNIT & 63;
}

static uint64_t
word(uint64_t key, uint16_t port, uint32_t now)
{
    return (key & TAG_MASK) << 18 | (uint64_t)(port & 0xfff) << 6 | age_now(now);
}

static uint8_t
age_of(uint64_t w, uint32_t now)
{
    return (uint8_t)(age_now(now) - (w & 63)) & 63;
}

void
normal_learn(struct normal *n, const uint8_t mac[6], uint16_t vid, uint16_t port, uint32_t now)
{
    uint64_t key = mix60(mac, vid), w = word(key, port, now);
    uint64_t *place = n->place[key >> 46];
    int to = 0, oldest = -1;
    for (int i = 0; i < WAYS; i++) {
        uint64_t have = halves_load(&place[i]);
        if (have == w)
            return; /* the usual case writes nothing */
        int age = have ? age_of(have, now) : 64;
        if (have && have >> 18 == (key & TAG_MASK))
            age = 65;
        if (age > oldest) {
            oldest = age;
            to = i;
        }
    }
    halves_store(&place[to], w);
}

uint16_t
normal_find(const struct normal *n, const uint8_t mac[6], uint16_t vid, uint32_t now)
{
    uint64_t key = mix60(mac, vid);
    for (int i = 0; i < WAYS; i++) {
        uint64_t have = halves_load(&n->place[key >> 46][i]);
        if (have && have >> 18 == (key & TAG_MASK) && age_of(have, now) <= AGE_MAX)
            return have >> 6 & 0xfff;
    }
    return 0;
}
