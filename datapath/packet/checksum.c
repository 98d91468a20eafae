/* SPDX-License-Identifier: Apache-2.0 */
#include <packet/checksum.h>

#include <endian.h>
#include <string.h>

uint16_t
csum_sum(const void *data, size_t n)
{
    const uint8_t *p = data;
    uint64_t sum = 0, w[4];
    /* 32-bit words in a 64-bit sum lose no carry below 2^32 words.  The sum is in the machine's
     * byte order until the end (RFC 1071, 2(B)). */
    for (; n >= 32; n -= 32, p += 32) {
        memcpy(w, p, 32);
        for (int i = 0; i < 4; i++)
            sum += (w[i] & 0xffffffff) + (w[i] >> 32);
    }
    for (; n >= 4; n -= 4, p += 4) {
        uint32_t v;
        memcpy(&v, p, 4);
        sum += v;
    }
    if (n) {
        uint32_t v = 0;
        memcpy(&v, p, n);
        sum += v;
    }
    return be16toh(csum_fold(sum));
}

uint16_t
csum_pseudo(const uint8_t *src, const uint8_t *dst, size_t alen, uint8_t proto, uint32_t len)
{
    return csum_fold((uint64_t)csum_sum(src, alen) + csum_sum(dst, alen) + proto + len);
}

/* ------------------------------------------------------------------ CRC32c */

#define POLYNOMIAL 0x82f63b78 /* 0x1edc6f41, bits reversed */

/* table[k][b]: byte b followed by k zero bytes */
static uint32_t table[8][256];

__attribute__((constructor)) static void
fill_table(void)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t c = b;
        for (int i = 0; i < 8; i++)
            c = c >> 1 ^ (c & 1 ? POLYNOMIAL : 0);
        table[0][b] = c;
    }
    for (int k = 1; k < 8; k++)
        for (int b = 0; b < 256; b++)
            table[k][b] = table[k - 1][b] >> 8 ^ table[0][table[k - 1][b] & 0xff];
}

/* Eight bytes at once, v the first four (least significant first), w the others. */
static inline uint32_t
crc_8(uint32_t crc, uint32_t v, uint32_t w)
{
    v ^= crc;
    return table[7][v & 0xff] ^ table[6][v >> 8 & 0xff] ^ table[5][v >> 16 & 0xff] ^
           table[4][v >> 24] ^ table[3][w & 0xff] ^ table[2][w >> 8 & 0xff] ^
           table[1][w >> 16 & 0xff] ^ table[0][w >> 24];
}

uint32_t
crc32c_add(uint32_t crc, const void *data, size_t n)
{
    const uint8_t *p = data;
    for (; n >= 8; n -= 8, p += 8) {
        uint32_t w[2];
        memcpy(w, p, 8);
        crc = crc_8(crc, le32toh(w[0]), le32toh(w[1]));
    }
    for (; n; n--)
        crc = crc >> 8 ^ table[0][(crc ^ *p++) & 0xff];
    return crc;
}

uint32_t
crc32c_zeros(uint32_t crc, size_t n)
{
    for (; n >= 8; n -= 8)
        crc = crc_8(crc, 0, 0);
    for (; n; n--)
        crc = crc >> 8 ^ table[0][crc & 0xff];
    return crc;
}

uint32_t
crc32c_change(const void *before, const void *after, size_t n, size_t rest)
{
    uint32_t crc = 0;
    for (size_t i = 0; i < n; i++) {
        uint8_t diff = ((const uint8_t *)before)[i] ^ ((const uint8_t *)after)[i];
        crc = crc >> 8 ^ table[0][(crc ^ diff) & 0xff];
    }
    return crc32c_zeros(crc, rest);
}
