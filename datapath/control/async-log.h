/* SPDX-License-Identifier: Apache-2.0 */
/* A list of messages, each kept once for all who still have to read it, each reader at a place of
 * its own.  Control thread.
 *
 * Chunks that no reader is before are freed.  So whoever adds an entry puts a reader before it, or
 * it is gone with the next reader that moves.
 */
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
    struct async_chunk *chunk; /* NULL: nothing waits for it */
    size_t at;
    uint64_t pos; /* that place, as `end` counts */
};

struct async_entry {
    uint8_t kind, reason;
    struct of_bytes message;
};

/* -ENOMEM.  *place, which no reader holds yet, is before the new entry. */
int async_log_add(struct async_log *log, const struct async_entry *e, struct async_reader *place);

void async_log_begin(struct async_reader *r, const struct async_reader *place);
/* The entry that it is before, valid until it moves; false: nothing waits for it. */
bool async_log_entry(const struct async_reader *r, struct async_entry *e);
void async_log_pass(struct async_log *log, struct async_reader *r); /* to behind that entry */
void async_log_end(struct async_log *log, struct async_reader *r);  /* to behind all of them */

#endif
