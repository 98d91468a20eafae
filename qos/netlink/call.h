/* SPDX-License-Identifier: Apache-2.0 */
/* Inside qos/netlink/: one request and its answer. */
#ifndef QOS_NETLINK_CALL_H
#define QOS_NETLINK_CALL_H

#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>

#include <linux/rtnetlink.h>
#include <stddef.h>
#include <stdint.h>

struct netlink {
    struct nl_sock *sk;
    int room; /* bytes that may be sent at once */
};

/* What the kernel said when it refused: its errno (positive) and its own words ("" where none). */
struct netlink_refusal {
    int errnum;
    char text[160];
};

/* A connected NETLINK_ROUTE socket with large buffers.  -errno. */
int netlink_open(struct netlink *nl);
void netlink_close(struct netlink *nl);

/* -errno of a libnl code (-NLE_...), as far as that tells what is wrong. */
int netlink_error(int nle);

/* A message about a qdisc, class or filter; NULL: no memory. */
struct nl_msg *netlink_tc_message(int type, int flags, const struct tcmsg *tc);

/* Called for each message of the answer. */
typedef void netlink_fn(void *ctx, struct nl_msg *msg);

/* Sends the message (which it frees), waits for the acknowledgement or the dump's end; a dump
 * that was disturbed is asked for again (fn may see a message twice then).
 * 0; -errno, the kernel's or our own, also in *why (which may be NULL).  msg may be NULL: no
 * memory. */
int netlink_call(struct netlink *nl, struct nl_msg *msg, netlink_fn *fn, void *ctx,
                 struct netlink_refusal *why);

/* The same of a request that the kernel answers with one message or an error: without an
 * acknowledgement. */
int netlink_get(struct netlink *nl, struct nl_msg *msg, netlink_fn *fn, void *ctx);

/* Sends n messages (which it frees) at once and waits until all have been done or refused.  state[i]
 * (an enum qos_op_state) tells; the answer and *why are the first refusal's. */
int netlink_call_many(struct netlink *nl, struct nl_msg **msgs, size_t n, uint8_t *state,
                      struct netlink_refusal *why);

#endif
