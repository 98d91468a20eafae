/* SPDX-License-Identifier: Apache-2.0 */
/* What must be true of a packet, checked the plain way. */
#ifndef CHECK_H
#define CHECK_H

#include <packet/packet.h>

/* NULL, or what is different when the packet's bytes are parsed again, at the end of memory that
 * has not one byte more; or what packet_parse and packet_reparse make of them differently. */
const char *check_reparse(const struct packet *p);

/* NULL, or which checksum of the outermost IP packet and its transport header is wrong.  Fragments'
 * transport checksums, and packets cut off, can't be judged. */
const char *check_sums(const struct packet *p);

/* Plain sums, two bytes at a time and bit by bit. */
uint16_t oracle_sum(uint32_t start, const uint8_t *p, size_t n);
uint32_t oracle_crc32c(const uint8_t *p, size_t n);

#endif
