/* SPDX-License-Identifier: Apache-2.0 */
/* The Internet checksum (RFC 1071, incremental RFC 1624) and SCTP's CRC32c (RFC 9260 app. A).
 *
 * A sum is the ones' complement sum of big-endian 16-bit words, folded to 16 bits and not
 * complemented.  csum_fold(a + b) adds two of them.
 */
#ifndef PACKET_CHECKSUM_H
#define PACKET_CHECKSUM_H

#include <oflib/wire.h>

#include <stddef.h>
#include <stdint.h>

static inline uint16_t
csum_fold(uint64_t sum)
{
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

/* The sum of n bytes; an odd last byte is the high byte of a word. */
uint16_t csum_sum(const void *data, size_t n);

/* The sum after n of its bytes changed (RFC 1624).  n is even, and the bytes are at an even
 * distance from where the sum starts. */
static inline uint16_t
csum_replace(uint16_t sum, const void *before, const void *after, size_t n)
{
    uint64_t s = sum;
    for (size_t i = 0; i < n; i += 2)
        s += (uint16_t)~of_get16((const uint8_t *)before + i) +
             (uint32_t)of_get16((const uint8_t *)after + i);
    return csum_fold(s);
}

/* Updates a checksum field, which holds the complement. */
static inline void
csum_update(uint8_t *field, const void *before, const void *after, size_t n)
{
    of_set16(field, (uint16_t)~csum_replace((uint16_t)~of_get16(field), before, after, n));
}

/* The sum of the pseudo-header of IPv4 (alen 4) or IPv6 (alen 16): addresses, protocol, length. */
uint16_t csum_pseudo(const uint8_t *src, const uint8_t *dst, size_t alen, uint8_t proto,
                     uint32_t len);

/* SCTP's CRC32c: start with CRC32C_START, crc32c_add the bytes (crc32c_zeros for the checksum
 * field, which counts as zeros), then crc32c_end.  The packet has the result least significant byte
 * first. */
#define CRC32C_START 0xffffffffu
uint32_t crc32c_add(uint32_t crc, const void *data, size_t n);
uint32_t crc32c_zeros(uint32_t crc, size_t n);
static inline uint32_t
crc32c_end(uint32_t crc)
{
    return ~crc;
}

/* What to XOR a CRC with when n bytes with `rest` more bytes behind them change.  A CRC is linear,
 * so a wrong one stays wrong. */
uint32_t crc32c_change(const void *before, const void *after, size_t n, size_t rest);

#endif
