/* SPDX-License-Identifier: Apache-2.0 */
#include "async-log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HEAD 6 /* kind, reason, and the message's length in four bytes */

static struct async_chunk *
chunk_for(struct async_log *log, size_t n)
{
    struct async_chunk *c = log->last;
    if (c && c->cap - c->n >= n)
        return c;
    size_t cap = n > ASYNC_CHUNK - sizeof *c ? n : ASYNC_CHUNK - sizeof *c;
    if (!(c = malloc(sizeof *c + cap)))
        return NULL;
    *c = (struct async_chunk){.cap = cap};
    *(log->last ? &log->last->next : &log->first) = c;
    log->last = c;
    log->size += sizeof *c + cap;
    return c;
}

int
async_log_add(struct async_log *log, const struct async_entry *e, struct async_reader *place)
{
    size_t n = HEAD + e->message.n;
    struct async_chunk *c = chunk_for(log, n);
    if (!c)
        return -ENOMEM;
    *place = (struct async_reader){c, c->n, log->end};
    uint8_t *p = c->bytes + c->n;
    p[0] = e->kind;
    p[1] = e->reason;
    of_set32(p + 2, (uint32_t)e->message.n);
    memcpy(p + HEAD, e->message.p, e->message.n);
    c->n += n;
    log->end += n;
    return 0;
}

static void
free_read(struct async_log *log)
{
    for (struct async_chunk *c; (c = log->first) && !c->readers;) {
        log->first = c->next;
        log->size -= sizeof *c + c->cap;
        free(c);
    }
    if (!log->first)
        log->last = NULL;
}

void
async_log_begin(struct async_reader *r, const struct async_reader *place)
{
    *r = *place;
    r->chunk->readers++;
}

bool
async_log_entry(const struct async_reader *r, struct async_entry *e)
{
    if (!r->chunk)
        return false;
    const uint8_t *p = r->chunk->bytes + r->at;
    *e = (struct async_entry){p[0], p[1], {p + HEAD, of_get32(p + 2)}};
    return true;
}

void
async_log_pass(struct async_log *log, struct async_reader *r)
{
    struct async_chunk *c = r->chunk;
    size_t n = HEAD + of_get32(c->bytes + r->at + 2);
    r->at += n;
    r->pos += n;
    if (r->at < c->n)
        return;
    c->readers--;
    r->at = 0;
    r->chunk = c->next;
    if (r->chunk)
        r->chunk->readers++;
    free_read(log);
}

void
async_log_end(struct async_log *log, struct async_reader *r)
{
    if (!r->chunk)
        return;
    r->chunk->readers--;
    *r = (struct async_reader){.pos = log->end};
    free_read(log);
}
