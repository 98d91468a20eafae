/* SPDX-License-Identifier: Apache-2.0 */
/* A log of messages with many readers: each message is kept once, until the last reader has passed
 * it. Control thread.
 *
 * A chunk is freed when no reader is in it or before it.  So whoever adds an entry must place a
 * reader before it, or the entry is lost when any reader moves. */
#ifndef CONTROL_ASYNC_LOG_H
#define CONTROL_ASYNC_LOG_H

#include <oflib/wire.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ASYNC_CHUNK (64u << 10) /* bytes; a message that is larger has one of its own */

struct async_chunk {
    struct async_chunk *next;
    unsigned readers;
    size_t n, cap;
    uint8_t bytes[];
};

struct async_log {
    struct async_chunk *first, *last;
    uint64_t end; /* bytes added, ever */
    size_t size;  /* bytes of all chunks */
};

struct async_reader {
    struct async_chunk *chunk; /* NULL: it has read everything */
    size_t at;
    uint64_t pos; /* that place, as `end` counts */
};

struct async_entry {
    uint8_t kind, reason;
    struct of_bytes message;
};

/* *place becomes the place of the new entry, which no reader holds yet.  -ENOMEM. */
int async_log_add(struct async_log *log, const struct async_entry *e, struct async_reader *place);

void async_log_begin(struct async_reader *r, const struct async_reader *place);
/* The next entry of this reader, valid until it moves; false: there is none. */
bool async_log_entry(const struct async_reader *r, struct async_entry *e);
void async_log_pass(struct async_log *log, struct async_reader *r); /* moves behind that entry */
void async_log_end(struct async_log *log, struct async_reader *r);  /* moves behind all */

#endif
