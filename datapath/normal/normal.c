/* SPDX-License-Identifier: Apache-2.0 */
#include <normal/normal.h>

#include <shared/atomics.h>

#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#define INDEX_BITS 13
#define SETS       (1u << INDEX_BITS)
#define WAYS       8 /* of a set: one cache line */
#define AGE_BITS   5
#define AGE_UNIT   16               /* seconds */
#define AGE_MAX    (300 / AGE_UNIT) /* forgotten when not seen for 300 s */
#define AGE_MASK   ((1u << AGE_BITS) - 1)
#define PORT_BITS  12
#define PORT_MASK  ((1u << PORT_BITS) - 1)
#define TAG_SHIFT  (PORT_BITS + AGE_BITS)
#define KEY_BITS   60 /* address and VLAN */
#define KEY_MASK   ((UINT64_C(1) << KEY_BITS) - 1)
#define TAG_BITS   (KEY_BITS - INDEX_BITS)
#define TAG_MASK   ((UINT64_C(1) << TAG_BITS) - 1)
#define LINE       (WAYS * sizeof(uint64_t))

_Static_assert(TAG_BITS + TAG_SHIFT == 64, "an entry is one word");
_Static_assert(NORMAL_SWEEP_S < ((AGE_MASK + 1) * AGE_UNIT - 300) / 2, "no age begins anew");

/* A word is tag (47 bits), port (12), age (5); 0: empty.  On a 32-bit processor two workers may
 * write halves of different entries: the word is then one of an address that nobody has, and ages.
 * */
struct normal {
    uint64_t (*set)[WAYS];
    void *mem;
    uint64_t key[2], odd[3]; /* random: nobody can compute which addresses share a set */
};

struct normal *
normal_new(void)
{
    struct normal *n = calloc(1, sizeof *n);
    uint64_t random[5] = {0};
    if (!n || !(n->mem = calloc(1, SETS * LINE + LINE))) { /* few of its pages may be touched */
        free(n);
        return NULL;
    }
    n->set = (void *)(((uintptr_t)n->mem + LINE - 1) / LINE * LINE);
    if (getrandom(random, sizeof random, GRND_NONBLOCK) < 0) {
        /* LCOV_EXCL_START: luck: a kernel without entropy */
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        for (int i = 0; i < 5; i++)
            random[i] = ((uint64_t)t.tv_nsec << 34 ^ (uintptr_t)n) * (2 * (uint64_t)i + 1);
        /* LCOV_EXCL_STOP */
    }
    for (int i = 0; i < 2; i++)
        n->key[i] = random[i] & KEY_MASK;
    for (int i = 0; i < 3; i++)
        n->odd[i] = (random[2 + i] ^ UINT64_C(0x9e3779b97f4a7c15)) | 1;
    return n;
}

void
normal_free(struct normal *n)
{
    if (n)
        free(n->mem);
    free(n);
}

/* One-to-one on 60 bits, as xor, xor-shifts and multiplications by odd numbers are. */
static uint64_t
mix(const struct normal *n, const uint8_t mac[6], uint16_t vid)
{
    uint64_t k = (uint64_t)(vid & 0xfff) << 48;
    for (int i = 0; i < 6; i++)
        k |= (uint64_t)mac[i] << (8 * i);
    k ^= n->key[0];
    k ^= k >> 31;
    k = k * n->odd[0] & KEY_MASK;
    k ^= k >> 29;
    k = (k ^ n->key[1]) * n->odd[1] & KEY_MASK;
    k ^= k >> 32;
    return k * n->odd[2] & KEY_MASK;
}

static uint32_t
age_now(uint32_t now)
{
    return now / AGE_UNIT & AGE_MASK;
}

static uint64_t
word(uint64_t key, uint16_t port, uint32_t now)
{
    return (key & TAG_MASK) << TAG_SHIFT | (uint64_t)(port & PORT_MASK) << AGE_BITS | age_now(now);
}

/* The workers' clocks differ by a round: an entry that another worker has seen later is new, not
 * very old. */
static uint32_t
age_of(uint64_t w, uint32_t now)
{
    uint32_t age = (age_now(now) - (uint32_t)w) & AGE_MASK;
    return age == AGE_MASK ? 0 : age;
}

static uint16_t
port_of(uint64_t w)
{
    return w >> AGE_BITS & PORT_MASK;
}

/* The entry of this port that was seen longest ago; the set has one. */
static int
oldest_of(const uint64_t *have, uint16_t port, uint32_t now)
{
    int at = -1;
    for (int i = 0; i < WAYS; i++)
        if (port_of(have[i]) == port && (at < 0 || age_of(have[i], now) > age_of(have[at], now)))
            at = i;
    return at;
}

/* Which entry of a full set a new one of this port replaces.  Other ports lose an entry only to one
 * that has at least two fewer in the set, so that whoever floods the switch with addresses
 * displaces his own. */
static int
victim(const uint64_t *have, uint16_t port, uint32_t now)
{
    unsigned own = 0, most = 0;
    uint16_t rich = port;
    for (int i = 0; i < WAYS; i++) {
        unsigned n = 0;
        for (int k = 0; k < WAYS; k++)
            n += port_of(have[k]) == port_of(have[i]);
        if (port_of(have[i]) == port)
            own = n;
        else if (n > most || (n == most && age_of(have[i], now) >
                                               age_of(have[oldest_of(have, rich, now)], now))) {
            most = n;
            rich = port_of(have[i]);
        }
    }
    return oldest_of(have, own && most <= own + 1 ? port : rich, now);
}

void
normal_learn(struct normal *n, const uint8_t mac[6], uint16_t vid, uint16_t port, uint32_t now)
{
    uint64_t key = mix(n, mac, vid), w = word(key, port, now), have[WAYS];
    uint64_t *set = n->set[key >> TAG_BITS];
    int free_at = -1;
    for (int i = 0; i < WAYS; i++) {
        have[i] = halves_load(&set[i]);
        if (have[i] == w)
            return; /* the usual case writes nothing */
        if (have[i] && have[i] >> TAG_SHIFT == (key & TAG_MASK)) {
            halves_store(&set[i], w); /* it moved, or was seen again */
            return;
        }
        if (free_at < 0 && (!have[i] || age_of(have[i], now) > AGE_MAX))
            free_at = i;
    }
    halves_store(&set[free_at < 0 ? victim(have, port, now) : free_at], w);
}

uint16_t
normal_find(const struct normal *n, const uint8_t mac[6], uint16_t vid, uint32_t now)
{
    uint64_t key = mix(n, mac, vid);
    for (int i = 0; i < WAYS; i++) {
        uint64_t have = halves_load(&n->set[key >> TAG_BITS][i]);
        if (have && have >> TAG_SHIFT == (key & TAG_MASK) && age_of(have, now) <= AGE_MAX)
            return port_of(have);
    }
    return 0;
}

/* A worker that learns meanwhile may lose what it learnt, until the next packet. */
void
normal_forget(struct normal *n, uint16_t port)
{
    for (uint32_t s = 0; s < SETS; s++)
        for (int i = 0; i < WAYS; i++) {
            uint64_t have = halves_load(&n->set[s][i]);
            if (have && port_of(have) == port)
                halves_store(&n->set[s][i], 0);
        }
}

void
normal_sweep(struct normal *n, uint32_t now)
{
    for (uint32_t s = 0; s < SETS; s++)
        for (int i = 0; i < WAYS; i++) {
            uint64_t have = halves_load(&n->set[s][i]);
            if (have && age_of(have, now) > AGE_MAX)
                halves_store(&n->set[s][i], 0);
        }
}
