/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of changes of tables, groups and meters that take effect together or not at all (bundles).
 *
 * While a transaction is open, what it adds is there but marked CHANGE_SET_NEW, and what it takes out
 * stays and is marked CHANGE_SET_OLD.  Workers look at things from one of two sides: before the
 * transaction, where nothing is new and nothing has gone yet, or after it.  Closing it turns
 * change_set_now over; a worker takes notice at the beginning of a round (change_set_enter), so no packet sees
 * a mixture, and nobody waits.  When all workers have passed over, the marks go, and what was taken
 * out.  A transaction that fails is undone before anybody has been on its side.
 *
 * The control thread (and whoever never calls change_set_enter) always sees the newest.
 */
#ifndef SHARED_CHANGE_SET_H
#define SHARED_CHANGE_SET_H

#include <shared/atomics.h>

#include <stdbool.h>
#include <stdint.h>

#define CHANGE_SET_NEW  1
#define CHANGE_SET_OLD  2
#define CHANGE_SET_SIDE 4 /* of a mark: the change_set_now of those who are past the transaction */

#define CHANGE_SET_NEWEST 1u

extern uint8_t change_set_now;           /* 0 or CHANGE_SET_SIDE */
extern __thread uint8_t change_set_side; /* this thread's, or CHANGE_SET_NEWEST */

/* Worker, between packets.  True: things may look different from now on, whatever was remembered of
 * them no longer holds. */
static inline bool
change_set_enter(void)
{
    uint8_t now = load_acquire(&change_set_now);
    if (now == change_set_side)
        return false;
    change_set_side = now;
    return true;
}

/* Whether the reader is past the transaction that made this mark. */
static inline bool
change_set_after(uint8_t mark)
{
    return change_set_side == CHANGE_SET_NEWEST || change_set_side == (mark & CHANGE_SET_SIDE);
}

/* Whether something with this mark is there for the reader. */
static inline bool
change_set_sees(uint8_t mark)
{
    return !mark || !(mark & (change_set_after(mark) ? CHANGE_SET_OLD : CHANGE_SET_NEW));
}

static inline uint8_t
change_set_mark_of(const uint8_t *mark)
{
    return load_relaxed(mark);
}

/* ------------------------------------------------------------------ control thread */

bool change_set_active(void);

void change_set_begin(void);

/* Puts everything into effect, or undoes it. */
void change_set_end(bool commit);

/* No memory was left to remember a change, which was not made: the end must not be a commit. */
bool change_set_failed(void);

void change_set_set(uint8_t *mark, uint8_t what); /* CHANGE_SET_NEW or CHANGE_SET_OLD */
void change_set_clear(uint8_t *mark, uint8_t what);

/* Called for each change at the end: in the order in which they were made when they are in effect,
 * in reverse when they are to be undone. */
typedef void change_set_settle(void *owner, void *what, void *more, bool done);

/* Something to be done once, at the end of the open transaction: before readers pass over to it, or
 * after it has been undone. */
struct change_set_last {
    struct change_set_last *next;
    void (*fn)(void *owner);
    void *owner;
    bool waits;
};

void change_set_at_end(struct change_set_last *l);

/* Room for one more note (false: no memory), and the note of a change, for which there must be
 * room. */
bool change_set_reserve(void);
void change_set_note(change_set_settle *settle, void *owner, void *what, void *more);

#endif
