/* SPDX-License-Identifier: Apache-2.0 */
/* What takes frames from interfaces: bridges, bonds, VLANs, macvlans and the like on top of them, packet
 * sockets.  Any thread, one at a time (qos-netlink/blocking.h). */
#ifndef QOS_NETLINK_UPPER_H
#define QOS_NETLINK_UPPER_H

#define QOS_UPPER_ANY  1 /* it may take any frame */
#define QOS_UPPER_VLAN 2 /* it takes frames with a VLAN tag */

struct qos_uppers;

/* What is on top of the interface (0: of any) may have changed. */
typedef void qos_upper_fn(void *ctx, int ifindex);

/* Subscribes to rtnetlink's events, in the present network namespace, and reads what is there.  0 or
 * -errno. */
int qos_uppers_open(struct qos_uppers **u, qos_upper_fn *fn, void *ctx);
void qos_uppers_close(struct qos_uppers *u); /* NULL is allowed */

/* Readable when there are events. */
int qos_uppers_fd(const struct qos_uppers *u);

/* Handles the events that wait, calls fn, and does not block.  1: some were lost; -errno: no more events will come. */
int qos_uppers_read(struct qos_uppers *u);

/* Asks the kernel for all interfaces; those that are there no more are forgotten.  Until it returns, what it has not yet
 * heard of is missing.  -errno. */
int qos_uppers_read_again(struct qos_uppers *u);

/* QOS_UPPER_ of what is on top of the interface. */
unsigned qos_uppers_of(const struct qos_uppers *u, int ifindex);

/* Calls fn for each interface (0: all of them) from which somebody takes any frame of whom no event tells:
 * packet sockets of one protocol, and interfaces in other network namespaces with an address of their
 * own.  0, or -errno: perhaps not for all. */
int qos_uppers_hidden(struct qos_uppers *u, qos_upper_fn *fn, void *ctx);

#endif
