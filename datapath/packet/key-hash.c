/* SPDX-License-Identifier: Apache-2.0 */
#include <packet/key-hash.h>

#include <sys/random.h>
#include <time.h>

struct key_hash_secret key_hash_secret;

/* Before the kernel has random bytes, early in a boot. */
static void
guess(uint8_t *to, size_t n)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t s = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec + (uintptr_t)&t;
    for (size_t i = 0; i < n; i++) {
        s = s * UINT64_C(6364136223846793005) + 1442695040888963407u;
        to[i] = (uint8_t)(s >> 56);
    }
}

void
key_hash_renew(void)
{
    if (getrandom(&key_hash_secret, sizeof key_hash_secret, GRND_NONBLOCK) !=
        sizeof key_hash_secret)
        guess((uint8_t *)&key_hash_secret, sizeof key_hash_secret);
}

void
key_hash_init(void)
{
    static bool drawn;
    if (!drawn)
        key_hash_renew();
    drawn = true;
}
