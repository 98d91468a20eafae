/* SPDX-License-Identifier: Apache-2.0 */
/* What the service manager is told, by systemd's protocol (sd_notify(3)): datagrams to the socket
 * that $NOTIFY_SOCKET names.  Without the variable nothing is sent.  The protocol is a few lines,
 * and OpenWrt has no libsystemd, so that library is not used.  For the control thread. */
#ifndef DAEMON_NOTIFY_H
#define DAEMON_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* Whether anybody listens. */
bool notify_wanted(void);

/* Sends lines of "NAME=value".  A manager that does not read is not waited for. */
__attribute__((format(printf, 1, 2))) void notify_send(const char *format, ...);

/* A reload begins (RELOADING=1); its end is notify_send("READY=1"). */
void notify_reloading(void);

/* How often WATCHDOG=1 must be sent, in ns, or the manager ends this process ($WATCHDOG_USEC).
 * 0: it does not watch. */
uint64_t notify_watchdog_ns(void);

#endif
