/* SPDX-License-Identifier: Apache-2.0 */
/* Tells the service manager (daemon/notify.h) that the switch is alive, and how it is.  The control
 * loop sends WATCHDOG=1 only if every packet worker has finished a round since the last time, so
 * that a hung worker makes the manager end and restart the switch. */
#ifndef MAIN_WATCHDOG_H
#define MAIN_WATCHDOG_H

#include <switch/switch.h>

struct watchdog;

/* *out is NULL if no manager listens.  -errno. */
int watchdog_start(struct sw *sw, struct watchdog **out);
void watchdog_stop(struct watchdog *w); /* NULL is allowed */

#endif
