/* SPDX-License-Identifier: Apache-2.0 */
/* A terminal as a full screen: its size, keys, and its state, which is restored at every end.  Escape
 * sequences are those that all terminals of today have (ECMA-48), so no library is needed. */
#ifndef TOP_TERMINAL_H
#define TOP_TERMINAL_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct terminal {
    int rows, columns;
    sigset_t before; /* the signals that were blocked before terminal_hold */
};

/* Letters are themselves. */
enum terminal_key {
    KEY_NONE = 0,
    KEY_ENTER = '\r',
    KEY_ESCAPE = 27,
    KEY_ERASE = 127,
    KEY_LEFT = 256,
    KEY_RIGHT,
    KEY_UP,
    KEY_DOWN,
    KEY_PAGE_UP,
    KEY_PAGE_DOWN,
    KEY_HOME,
};

/* Are stdin and stdout a terminal that understands escape sequences? */
bool terminal_is_there(void);

/* Signals that end the program (SIGINT, ...), resize or stop it then arrive only within ppoll
 * with `before`; with *ending only those that end it. */
void terminal_hold(struct terminal *t, sigset_t *ending);
void terminal_release(struct terminal *t);

/* Takes the screen, and gives it back as it was. */
void terminal_enter(struct terminal *t);
void terminal_leave(void);

void terminal_measure(struct terminal *t);

/* Was the terminal resized since the last call?  Also true after a stop (^Z), when the screen
 * was taken again: draw it. */
bool terminal_resized(struct terminal *t);

/* The next key that was typed; KEY_NONE: there is none.  Does not wait. */
int terminal_key(void);

#endif
