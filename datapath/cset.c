/* SPDX-License-Identifier: Apache-2.0 */
#include "cset.h"

#include "rcu.h"

#include <stdlib.h>

struct note {
    cset_settle *settle;
    void *owner, *what, *more;
};

#define BLOCK 1024

struct block {
    struct block *prev, *next;
    unsigned n;
    struct note note[BLOCK];
};

uint8_t cset_now;
__thread uint8_t cset_side = CSET_NEWEST;

static struct {
    bool active, failed;
    struct block *first, *last;
    struct cset_last *at_end;
} cset;

bool
cset_active(void)
{
    return cset.active;
}

bool
cset_failed(void)
{
    return cset.failed;
}

void
cset_begin(void)
{
    cset.active = true;
    cset.failed = false;
}

bool
cset_reserve(void)
{
    if (cset.last && cset.last->n < BLOCK)
        return true;
    struct block *b = malloc(sizeof *b);
    if (!b) {
        cset.failed = true;
        return false;
    }
    b->n = 0;
    b->next = NULL;
    b->prev = cset.last;
    *(cset.last ? &cset.last->next : &cset.first) = b;
    cset.last = b;
    return true;
}

void
cset_note(cset_settle *settle, void *owner, void *what, void *more)
{
    struct block *b = cset.last;
    b->note[b->n++] = (struct note){settle, owner, what, more};
}

void
cset_set(uint8_t *mark, uint8_t what)
{
    store_relaxed(mark, *mark | what | (cset_now ^ CSET_SIDE));
}

void
cset_clear(uint8_t *mark, uint8_t what)
{
    uint8_t left = *mark & (uint8_t)~what;
    store_relaxed(mark, left & (CSET_NEW | CSET_OLD) ? left : 0);
}

static void
settle_all(void)
{
    for (struct block *b = cset.first; b; b = b->next)
        for (unsigned i = 0; i < b->n; i++)
            b->note[i].settle(b->note[i].owner, b->note[i].what, b->note[i].more, true);
}

static void
undo_all(void)
{
    for (struct block *b = cset.last; b; b = b->prev)
        for (unsigned i = b->n; i; i--)
            b->note[i - 1].settle(b->note[i - 1].owner, b->note[i - 1].what, b->note[i - 1].more,
                                  false);
}

void
cset_at_end(struct cset_last *l)
{
    if (l->waits)
        return;
    l->waits = true;
    l->next = cset.at_end;
    cset.at_end = l;
}

static void
run_last(void)
{
    for (struct cset_last *l; (l = cset.at_end);) {
        cset.at_end = l->next;
        l->waits = false;
        l->fn(l->owner);
    }
}

void
cset_end(bool commit)
{
    cset.active = false;
    if (commit)
        run_last();
    if (commit && cset.first) {
        store_release(&cset_now, cset_now ^ CSET_SIDE);
        rcu_wait();
        settle_all();
    } else {
        undo_all();
        run_last();
    }
    for (struct block *b; (b = cset.first);) {
        cset.first = b->next;
        free(b);
    }
    cset.last = NULL;
}
