/* SPDX-License-Identifier: Apache-2.0 */
/* OFPP_NORMAL: a learning switch; each VLAN is a broadcast domain.
 *
 * All workers read and write the table without locks, so an entry is one 64-bit word.  Address and
 * VLAN (60 bits) are scrambled one-to-one, by random numbers; 13 bits of the result choose a set of
 * eight places, and the word holds the other 47 beside port and age.  In a full set the ports share
 * the places: one port's new addresses displace its own before they displace the others'.
 */
#ifndef NORMAL_NORMAL_H
#define NORMAL_NORMAL_H

#include <stdint.h>

struct normal;

struct normal *normal_new(void);
void normal_free(struct normal *n);

/* vid: 0 to 4095; port: 1 to 4094 (NORMAL_LOCAL for OFPP_LOCAL); now: seconds */
#define NORMAL_LOCAL 4095
void normal_learn(struct normal *n, const uint8_t mac[6], uint16_t vid, uint16_t port,
                  uint32_t now);

/* The port, or 0: never learnt, or forgotten after 300 s. */
uint16_t normal_find(const struct normal *n, const uint8_t mac[6], uint16_t vid, uint32_t now);

/* Control thread.  Both walk through the whole table (512 KB).
 *
 * forget: everything that was learnt by the port.  sweep: what is too old, at least every
 * NORMAL_SWEEP_S seconds: an entry's age begins anew after 512 s. */
#define NORMAL_SWEEP_S 60
void normal_forget(struct normal *n, uint16_t port);
void normal_sweep(struct normal *n, uint32_t now);

#endif
