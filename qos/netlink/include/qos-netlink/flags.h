/* SPDX-License-Identifier: Apache-2.0 */
/* Interfaces' flags as they change: of one socket's events nothing else is read, so that whoever needs
 * only to know which interfaces are up learns it within microseconds.
 *
 * A handle stays in the network namespace in which it was opened.  Any thread, one at a time. */
#ifndef QOS_NETLINK_FLAGS_H
#define QOS_NETLINK_FLAGS_H

#include <stdbool.h>

struct qos_flags_monitor;

/* The interface's flags (IFF_UP, IFF_RUNNING) now; gone: there is no such interface any more.  ifindex 0: events
 * were lost, ask for each interface again. */
typedef void qos_flags_fn(void *ctx, int ifindex, unsigned flags, bool gone);

/* -errno. */
int qos_flags_monitor_open(struct qos_flags_monitor **w, qos_flags_fn *fn, void *ctx);
void qos_flags_monitor_close(struct qos_flags_monitor *w); /* NULL is allowed */
int qos_flags_monitor_fd(const struct qos_flags_monitor *w);

/* Calls fn for each event that waits, in the kernel's order, and does not block.  -errno: no more events will
 * come. */
int qos_flags_monitor_read(struct qos_flags_monitor *w);

/* Asks the kernel for an interface's flags.  When it returns 0, the answer waits behind the events before it.
 * -errno. */
int qos_flags_monitor_ask(struct qos_flags_monitor *w, int ifindex);

#endif
