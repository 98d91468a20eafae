/* SPDX-License-Identifier: Apache-2.0 */
#include <core/signals.h>

#include <stddef.h>

static const int held[] = {SIGINT, SIGTERM, SIGHUP};

#define HELD (sizeof held / sizeof held[0])

static volatile sig_atomic_t interrupted;

static void
interrupt(int number)
{
    interrupted = 1;
}

void
signals_hold(sigset_t *before)
{
    const struct sigaction catch = {.sa_handler = interrupt};
    struct sigaction is;
    sigset_t block;
    sigemptyset(&block);
    for (size_t i = 0; i < HELD; i++) {
        if (held[i] == SIGHUP && !sigaction(SIGHUP, NULL, &is) && is.sa_handler == SIG_IGN)
            continue; /* run by nohup */
        sigaddset(&block, held[i]);
        sigaction(held[i], &catch, NULL);
    }
    sigprocmask(SIG_BLOCK, &block, before);
}

void
signals_release(const sigset_t *before)
{
    sigprocmask(SIG_SETMASK, before, NULL);
}

bool
signals_pending(void)
{
    sigset_t pending;
    sigpending(&pending);
    for (size_t i = 0; i < HELD; i++)
        if (sigismember(&pending, held[i]))
            return true;
    return interrupted;
}

int64_t
signals_clock_us(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}
