/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded ring of byte records from one thread to one other.  A full ring refuses the record.
 *
 * A record may have a source (a packet's port), a number below `sources`.  A source may have at
 * most as many bytes waiting as are free, so that none takes all the room: one alone gets half of
 * the ring, n that flood it get 1/(n+1) each, and as much stays free for the next. */
#ifndef SHARED_RING_H
#define SHARED_RING_H

#include <stdbool.h>
#include <stdint.h>

struct ring;

/* bytes: a power of two; sources: 0 to treat all records alike.  NULL: no memory. */
struct ring *ring_new(uint32_t bytes, uint32_t sources);
void ring_free(struct ring *s);

/* Producer: whether the source's share allows n bytes more.  The ring may be full all the same. */
bool ring_fair(const struct ring *s, uint32_t n, uint32_t source);

/* Producer: room for a record of n bytes, 8-aligned, or NULL: full.  ring_publish then hands the
 * record over. */
void *ring_reserve(struct ring *s, uint32_t n, uint32_t source);
void ring_publish(struct ring *s);

/* Consumer: the oldest record, or NULL: empty.  ring_release then frees its room. */
void *ring_peek(struct ring *s, uint32_t *n);
void ring_release(struct ring *s);

bool ring_empty(const struct ring *s);

#endif
