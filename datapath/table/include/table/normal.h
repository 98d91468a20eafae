/* SPDX-License-Identifier: Apache-2.0 */
/* OFPP_NORMAL: a learning switch, a VLAN a broadcast domain.
 *
 * What was learnt is one 64-bit word an address, read and written without locks by all workers:
 * address and VLAN (60 bits) are mixed one-to-one, some of the result choose the place, the rest
 * is kept beside port and age, so a word says all and is never half written.
 */
#ifndef TABLE_NORMAL_H
#define TABLE_NORMAL_H

#include <stdint.h>

struct normal;

struct normal *normal_new(void);
void normal_free(struct normal *n);

/* vid: 0 to 4095; port: 1 to 4094 (NORMAL_LOCAL for OFPP_LOCAL); now: seconds */
#define NORMAL_LOCAL 4095
void normal_learn(struct normal *n, const uint8_t mac[6], uint16_t vid, uint16_t port,
                  uint32_t now);

/* The port, or 0: not known (any more). */
uint16_t normal_find(const struct normal *n, const uint8_t mac[6], uint16_t vid, uint32_t now);

#endif
