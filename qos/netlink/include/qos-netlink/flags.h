/* SPDX-License-Identifier: Apache-2.0 */
/* Interfaces' flags as they change: of one socket's events nothing else is read, so that whoever needs
 * only to know which interfaces are up learns it within microseconds.
 *
 * A handle stays in the network namespace in which it was opened.  Any thread, one at a time. */
#ifndef QOS_NETLINK_FLAGS_H
#define QOS_NETLINK_FLAGS_H

#include <stdbool.h>

struct qos_flags_watch;

/* The interface's flags (IFF_UP, IFF_RUNNING) now; gone: there is no such interface any more.  ifindex 0: events
 * were lost, ask for each interface again. */
typedef void qos_flags_fn(void *ctx, int ifindex, unsigned flags, bool gone);

/* -errno. */
int qos_flags_watch_open(struct qos_flags_watch **w, qos_flags_fn *fn, void *ctx);
void qos_flags_watch_close(struct qos_flags_watch *w); /* NULL is allowed */
int qos_flags_watch_fd(const struct qos_flags_watch *w);

/* Calls fn for each event that waits, in the kernel's order, and does not block.  -errno: no more events will
 * come. */
int qos_flags_watch_read(struct qos_flags_watch *w);

/* Asks the kernel for an interface's flags.  When it returns 0, the answer waits behind the events before it.
 * -errno. */
int qos_flags_watch_ask(struct qos_flags_watch *w, int ifindex);

#endif
