/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded ring of byte records from one thread to one other.  Full: the record is not taken.
 *
 * Records may have sources (a packet's port), numbers below `sources`, so that none of them can
 * take the room of all: a source may have as many bytes waiting as are free.  One alone gets half
 * of the ring, n that flood it get 1/(n+1) each, and as much stays free for who comes next. */
#ifndef DATAPATH_SPSC_H
#define DATAPATH_SPSC_H

#include <stdbool.h>
#include <stdint.h>

struct spsc;

/* bytes: a power of two; sources: 0 where all are alike */
struct spsc *spsc_new(uint32_t bytes, uint32_t sources);
void spsc_free(struct spsc *s);

/* Producer: may this source have a record of n bytes more?  (There may be no room for it still.) */
bool spsc_fair(const struct spsc *s, uint32_t n, uint32_t source);

/* Producer: room for a record of n bytes, 8-aligned, or NULL; then publish it. */
void *spsc_reserve(struct spsc *s, uint32_t n, uint32_t source);
void spsc_publish(struct spsc *s);

/* Consumer: the oldest record, or NULL; then give it back. */
void *spsc_peek(struct spsc *s, uint32_t *n);
void spsc_release(struct spsc *s);

bool spsc_empty(const struct spsc *s);

#endif
