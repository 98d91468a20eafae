/* SPDX-License-Identifier: Apache-2.0 */
#include <core/counters.h>

bool
counters_each(struct of_bytes entries, void (*each)(void *to, const char *name, uint64_t value),
              void *to)
{
    for (size_t at = 0; at < entries.n;) {
        const uint8_t *p = entries.p + at;
        size_t left = entries.n - at, n = left >= 24 ? of_get16(p) : 0;
        if (n < 24 || n > left || n % 8 || !memchr(p + 16, '\0', n - 16))
            return false;
        each(to, (const char *)p + 16, of_get64(p + 8));
        at += n;
    }
    return true;
}
