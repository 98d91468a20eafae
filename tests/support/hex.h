/* SPDX-License-Identifier: Apache-2.0 */
/* Hexadecimal text to bytes, for tests. */
#ifndef TESTS_HEX_H
#define TESTS_HEX_H

#include <ctype.h>
#include <stddef.h>
#include <stdint.h>

/* Digits with blanks anywhere between bytes; '#' begins a comment up to the line's end.
 * The number of bytes, or -1: a stray character, an odd digit, or more than `max` bytes. */
static inline long
hex_bytes(const char *text, uint8_t *out, size_t max)
{
    size_t n = 0;
    for (const char *s = text; *s;) {
        if (*s == '#') {
            while (*s && *s != '\n')
                s++;
        } else if (isspace((unsigned char)*s)) {
            s++;
        } else {
            unsigned byte = 0;
            for (int i = 0; i < 2; i++, s++) {
                if (!isxdigit((unsigned char)*s))
                    return -1;
                byte = byte << 4 | (unsigned)(*s <= '9' ? *s - '0' : (*s | 0x20) - 'a' + 10);
            }
            if (n == max)
                return -1;
            out[n++] = (uint8_t)byte;
        }
    }
    return (long)n;
}

#endif
