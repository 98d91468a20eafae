/* SPDX-License-Identifier: Apache-2.0 */
/* Tells the service manager (daemon/notify.h) and the kernel's programs (megaflow/wire.h) that the switch is alive,
 * and the manager how it is: only if every packet worker has finished a round lately.  So a hung worker, or a hung
 * control thread, makes the manager end and restart the switch, and ports go by their wires. */
#ifndef MAIN_WATCHDOG_H
#define MAIN_WATCHDOG_H

#include <switch/switch.h>

struct watchdog;

/* *out is NULL if no manager listens, and no ports fail to wire.  -errno. */
int watchdog_start(struct sw *sw, struct watchdog **out);
/* From now on workers serve the ports that fail to wire (megaflow/wire.h).  NULL is allowed. */
void watchdog_ready(struct watchdog *w);
void watchdog_stop(struct watchdog *w); /* NULL is allowed */

#endif
