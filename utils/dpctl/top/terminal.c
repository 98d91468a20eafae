/* SPDX-License-Identifier: Apache-2.0 */
#include "terminal.h"

#include <core/signals.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct termios saved;
static bool entered;
static volatile sig_atomic_t resized, stopped, continued;

bool
terminal_is_there(void)
{
    const char *term = getenv("TERM");
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && *term &&
           strcmp(term, "dumb") != 0;
}

/* ---------------------------------------------------------------------- signals */

static void
note(int number)
{
    if (number == SIGWINCH)
        resized = 1;
    else if (number == SIGTSTP)
        stopped = 1;
    else
        continued = 1;
}

void
terminal_hold(struct terminal *t, sigset_t *ending)
{
    static const int noted[] = {SIGWINCH, SIGTSTP, SIGCONT};
    const struct sigaction catch = {.sa_handler = note};
    sigset_t block;
    signals_hold(&t->before);
    *ending = t->before;
    sigemptyset(&block);
    for (size_t i = 0; i < sizeof noted / sizeof noted[0]; i++) {
        sigaddset(&block, noted[i]);
        sigaddset(ending, noted[i]);
        sigaction(noted[i], &catch, NULL);
    }
    sigprocmask(SIG_BLOCK, &block, NULL);
}

void
terminal_release(struct terminal *t)
{
    signals_release(&t->before);
}

/* ----------------------------------------------------------------------- screen */

static void
put(const char *text)
{
    fputs(text, stdout);
    fflush(stdout);
}

/* ^\ would end the program at once and leave the terminal as it is: it counts as a key. */
static void
take_screen(void)
{
    struct termios raw = saved;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_iflag &= ~(tcflag_t)ICRNL;
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    raw.c_cc[VQUIT] = _POSIX_VDISABLE;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    put("\033[?1049h\033[?25l\033[2J");
    entered = true;
}

void
terminal_leave(void)
{
    if (!entered)
        return;
    entered = false;
    put("\033[0m\033[?25h\033[?1049l");
    tcsetattr(STDIN_FILENO, TCSADRAIN, &saved);
}

void
terminal_enter(struct terminal *t)
{
    static bool registered;
    if (tcgetattr(STDIN_FILENO, &saved))
        return;
    if (!registered)
        atexit(terminal_leave);
    registered = true;
    take_screen();
    terminal_measure(t);
}

void
terminal_measure(struct terminal *t)
{
    struct winsize size;
    t->rows = 24;
    t->columns = 80;
    if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row && size.ws_col) {
        t->rows = size.ws_row;
        t->columns = size.ws_col;
    }
}

bool
terminal_resized(struct terminal *t)
{
    bool any = resized || stopped || continued;
    if (stopped) {
        terminal_leave();
        stopped = 0;
        raise(SIGSTOP);
    }
    if (!entered)
        tcgetattr(STDIN_FILENO, &saved);
    if (continued || !entered) /* after a SIGSTOP the shell may have changed it */
        take_screen();
    resized = continued = 0;
    if (any)
        terminal_measure(t);
    return any;
}

/* ------------------------------------------------------------------------- keys */

/* A byte that is there already, or comes at once, as the rest of a sequence does; -1. */
static int
next_byte(int wait_ms)
{
    struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
    unsigned char c;
    return poll(&fd, 1, wait_ms) > 0 && read(STDIN_FILENO, &c, 1) == 1 ? c : -1;
}

int
terminal_key(void)
{
    static const struct {
        const char *text;
        int key;
    } sequences[] = {{"A", KEY_UP},       {"B", KEY_DOWN},       {"C", KEY_RIGHT}, {"D", KEY_LEFT},
                     {"5~", KEY_PAGE_UP}, {"6~", KEY_PAGE_DOWN}, {"H", KEY_HOME}};
    char text[8];
    int c = next_byte(0), n = 0;
    if (c < 0)
        return KEY_NONE;
    if (c != KEY_ESCAPE)
        return c == '\n' ? KEY_ENTER : c == '\b' ? KEY_ERASE : c;
    c = next_byte(50);
    if (c != '[' && c != 'O')
        return KEY_ESCAPE;
    while (n < 7 && (c = next_byte(50)) >= 0) {
        text[n++] = (char)c;
        if (c >= '@') /* a letter or '~' */
            break;
    }
    text[n] = '\0';
    for (size_t i = 0; i < sizeof sequences / sizeof sequences[0]; i++)
        if (!strcmp(sequences[i].text, text))
            return sequences[i].key;
    return ' ' - 1; /* a key that means nothing here */
}
