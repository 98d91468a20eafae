/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded ring of byte records from one thread to one other.  Full: the record is not taken. */
#ifndef DATAPATH_SPSC_H
#define DATAPATH_SPSC_H

#include <stdbool.h>
#include <stdint.h>

struct spsc;

/* bytes: a power of two */
struct spsc *spsc_new(uint32_t bytes);
void spsc_free(struct spsc *s);

/* Producer: room for a record of n bytes, 8-aligned, or NULL; then publish it. */
void *spsc_reserve(struct spsc *s, uint32_t n);
void spsc_publish(struct spsc *s);

/* Consumer: the oldest record, or NULL; then give it back. */
void *spsc_peek(struct spsc *s, uint32_t *n);
void spsc_release(struct spsc *s);

bool spsc_empty(const struct spsc *s);

#endif
