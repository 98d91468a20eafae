/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that run until SIGINT, SIGTERM or SIGHUP.  The signals are blocked but while the
 * command waits for messages (remote.sigmask), so that none gets lost between a look at
 * signals_pending() and the wait. */
#ifndef DPCTL_CORE_SIGNALS_H
#define DPCTL_CORE_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

void signals_hold(sigset_t *before);
void signals_release(const sigset_t *before);
bool signals_pending(void);

/* Microseconds of this clock. */
int64_t signals_clock_us(clockid_t clock);

#endif
