/* SPDX-License-Identifier: Apache-2.0 */
#include <shared/change-set.h>

#include <shared/rcu.h>

#include <stdlib.h>

struct note {
    change_set_settle *settle;
    void *owner, *what, *more;
};

#define BLOCK 1024

struct note_block {
    struct note_block *prev, *next;
    unsigned n;
    struct note note[BLOCK];
};

uint8_t change_set_now;
__thread uint8_t change_set_side = CHANGE_SET_NEWEST;

static struct {
    bool active, failed;
    struct note_block *first, *last;
    struct change_set_last *at_end;
} change_set;

bool
change_set_active(void)
{
    return change_set.active;
}

bool
change_set_failed(void)
{
    return change_set.failed;
}

void
change_set_begin(void)
{
    change_set.active = true;
    change_set.failed = false;
}

bool
change_set_reserve(void)
{
    if (change_set.last && change_set.last->n < BLOCK)
        return true;
    struct note_block *b = malloc(sizeof *b);
    if (!b) {
        change_set.failed = true;
        return false;
    }
    b->n = 0;
    b->next = NULL;
    b->prev = change_set.last;
    *(change_set.last ? &change_set.last->next : &change_set.first) = b;
    change_set.last = b;
    return true;
}

void
change_set_note(change_set_settle *settle, void *owner, void *what, void *more)
{
    struct note_block *b = change_set.last;
    b->note[b->n++] = (struct note){settle, owner, what, more};
}

void
change_set_set(uint8_t *mark, uint8_t what)
{
    store_relaxed(mark, *mark | what | (change_set_now ^ CHANGE_SET_SIDE));
}

void
change_set_clear(uint8_t *mark, uint8_t what)
{
    uint8_t left = *mark & (uint8_t)~what;
    store_relaxed(mark, left & (CHANGE_SET_NEW | CHANGE_SET_OLD) ? left : 0);
}

static void
settle_all(void)
{
    for (struct note_block *b = change_set.first; b; b = b->next)
        for (unsigned i = 0; i < b->n; i++)
            b->note[i].settle(b->note[i].owner, b->note[i].what, b->note[i].more, true);
}

static void
undo_all(void)
{
    for (struct note_block *b = change_set.last; b; b = b->prev)
        for (unsigned i = b->n; i; i--)
            b->note[i - 1].settle(b->note[i - 1].owner, b->note[i - 1].what, b->note[i - 1].more,
                                  false);
}

void
change_set_at_end(struct change_set_last *l)
{
    if (l->waits)
        return;
    l->waits = true;
    l->next = change_set.at_end;
    change_set.at_end = l;
}

static void
run_last(void)
{
    for (struct change_set_last *l; (l = change_set.at_end);) {
        change_set.at_end = l->next;
        l->waits = false;
        l->fn(l->owner);
    }
}

void
change_set_end(bool commit)
{
    change_set.active = false;
    if (commit)
        run_last();
    if (commit && change_set.first) {
        store_release(&change_set_now, change_set_now ^ CHANGE_SET_SIDE);
        rcu_wait();
        settle_all();
    } else {
        undo_all();
        run_last();
    }
    for (struct note_block *b; (b = change_set.first);) {
        change_set.first = b->next;
        free(b);
    }
    change_set.last = NULL;
}
