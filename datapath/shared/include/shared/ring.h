/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded ring of byte records from one thread to one other.  Full: the record is not taken.
 *
 * Records may have sources (a packet's port), numbers below `sources`, so that none of them can
 * take the room of all: a source may have as many bytes waiting as are free.  One alone gets half
 * of the ring, n that flood it get 1/(n+1) each, and as much stays free for who comes next. */
#ifndef SHARED_RING_H
#define SHARED_RING_H

#include <stdbool.h>
#include <stdint.h>

struct ring;

/* bytes: a power of two; sources: 0 where all are alike */
struct ring *ring_new(uint32_t bytes, uint32_t sources);
void ring_free(struct ring *s);

/* Producer: may this source have a record of n bytes more?  (There may be no room for it still.) */
bool ring_fair(const struct ring *s, uint32_t n, uint32_t source);

/* Producer: room for a record of n bytes, 8-aligned, or NULL; then publish it. */
void *ring_reserve(struct ring *s, uint32_t n, uint32_t source);
void ring_publish(struct ring *s);

/* Consumer: the oldest record, or NULL; then give it back. */
void *ring_peek(struct ring *s, uint32_t *n);
void ring_release(struct ring *s);

bool ring_empty(const struct ring *s);

#endif
