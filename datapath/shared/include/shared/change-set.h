/* SPDX-License-Identifier: Apache-2.0 */
/* A change set: changes of tables, groups and meters that take effect together or not at all.
 * A bundle's commit opens one; there is at most one.
 *
 * While it is open, an added object is in its table but marked CHANGE_SET_NEW, and a removed one
 * stays and is marked CHANGE_SET_OLD.  Each worker is on one of two sides: before the set, where it
 * skips new objects, or after it, where it skips old ones.  The commit flips change_set_now.  A
 * worker reads it between two rounds (change_set_enter), so no packet sees a part of the set, and
 * nobody waits.  Once all workers have crossed over (a grace period), the marks are cleared and the
 * old objects freed.  A set that fails is undone before any worker crosses.
 *
 * The control thread, and any thread that never calls change_set_enter, sees the newest state.
 * Apart from the readers' functions, only the control thread calls what is here.
 */
#ifndef SHARED_CHANGE_SET_H
#define SHARED_CHANGE_SET_H

#include <shared/atomics.h>

#include <stdbool.h>
#include <stdint.h>

#define CHANGE_SET_NEW  1
#define CHANGE_SET_OLD  2
#define CHANGE_SET_SIDE 4 /* in a mark: change_set_now as it is after the set */

#define CHANGE_SET_NEWEST 1u

extern uint8_t change_set_now;           /* 0 or CHANGE_SET_SIDE */
extern __thread uint8_t change_set_side; /* this thread's, or CHANGE_SET_NEWEST */

/* Worker, between two rounds.  True: it crossed to the other side, and whatever it cached of
 * tables, groups and meters is stale. */
static inline bool
change_set_enter(void)
{
    uint8_t now = load_acquire(&change_set_now);
    if (now == change_set_side)
        return false;
    change_set_side = now;
    return true;
}

/* Whether the reader is past the set that made this mark. */
static inline bool
change_set_after(uint8_t mark)
{
    return change_set_side == CHANGE_SET_NEWEST || change_set_side == (mark & CHANGE_SET_SIDE);
}

/* Whether the reader sees an object with this mark. */
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

/* Puts every change into effect (waits for a grace period), or undoes every one. */
void change_set_end(bool commit);

/* There was no memory to note a change, which was not made: the set must not be committed. */
bool change_set_failed(void);

void change_set_set(uint8_t *mark, uint8_t what); /* CHANGE_SET_NEW or CHANGE_SET_OLD */
void change_set_clear(uint8_t *mark, uint8_t what);

/* Called for each change at the end.  done true: the change is in effect; calls are in the order of
 * the changes.  done false: undo it; calls are in the reverse order. */
typedef void change_set_settle(void *owner, void *what, void *more, bool done);

/* A function to call once at the end of the open set: before readers cross over, or after the set
 * was undone.  The caller owns it. */
struct change_set_last {
    struct change_set_last *next;
    void (*fn)(void *owner);
    void *owner;
    bool waits;
};

void change_set_at_end(struct change_set_last *l);

/* change_set_reserve makes room for one more note (false: no memory); change_set_note then can't
 * fail. */
bool change_set_reserve(void);
void change_set_note(change_set_settle *settle, void *owner, void *what, void *more);

#endif
