/* SPDX-License-Identifier: Apache-2.0 */
/* Packets for the controllers (7.4.1), and those kept under a buffer id. */
#ifndef PUNT_PACKET_IN_H
#define PUNT_PACKET_IN_H

#include <stdint.h>

#define SW_BUFFERS 256 /* n_buffers of the features reply */

struct buffers;
struct sw;

struct buffered {
    const uint8_t *data;
    uint32_t len;
    uint32_t in_port;
};

/* A connection has come or gone: are there controllers of 1.0, which want to see misses? */
void sw_misses_update(struct sw *sw);

int sw_packet_in_start(struct sw *sw);
void sw_packet_in_stop(struct sw *sw);

/* Finds the packet kept under this id; it is valid until another is kept or it is dropped.
 * OFPBRC_BUFFER_EMPTY: it was used; OFPBRC_BUFFER_UNKNOWN: it was replaced, or never existed. */
int sw_buffers_find(const struct buffers *b, uint32_t id, const struct buffered **out);
void sw_buffers_drop(struct buffers *b, uint32_t id);

#endif
