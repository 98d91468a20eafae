/* SPDX-License-Identifier: Apache-2.0 */
/* Requests over rtnetlink and their answers.  A call blocks until the kernel has answered.  If no
 * answer comes within 5 s it fails with -ETIMEDOUT, and so do the following calls, at once, until
 * the kernel answers again.  A request that the kernel is working on can't be cut short; meanwhile
 * others may be served (qos-netlink/blocking.h). */
#ifndef QOS_NETLINK_CALL_H
#define QOS_NETLINK_CALL_H

#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>

#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct netlink {
    struct nl_sock *sk;
    int room;    /* size of the send buffer, bytes */
    bool silent; /* the last answer has not come */
};

/* Why the kernel refused: errno (positive) and its text ("": none). */
struct netlink_refusal {
    int errnum;
    char text[160];
};

/* Opens a NETLINK_ROUTE socket in the current network namespace.  -errno. */
int netlink_open(struct netlink *nl);
void netlink_close(struct netlink *nl);

/* -errno for a libnl code (-NLE_...), -EIO for most: libnl's codes say less than errno. */
int netlink_error(int nle);

/* A message about a qdisc, class or filter; NULL: no memory. */
struct nl_msg *netlink_tc_message(int type, int flags, const struct tcmsg *tc);
/* With its kind, such as "u32". */
struct nl_msg *netlink_kind_message(int type, int flags, const struct tcmsg *tc, const char *kind);
/* About clsact. */
struct nl_msg *netlink_clsact_message(int type, int flags, int ifindex);

/* Called for each message of the answer. */
typedef void netlink_fn(void *ctx, struct nl_msg *msg);

/* Sends the message, frees it, and waits for the acknowledgement or the end of the dump.  A dump
 * that a change interrupted is repeated: fn may see an object twice.  msg NULL: -ENOMEM.
 * 0 or -errno, also in *why, which may be NULL. */
int netlink_call(struct netlink *nl, struct nl_msg *msg, netlink_fn *fn, void *ctx,
                 struct netlink_refusal *why);

/* The same for a request that the kernel always answers with one message or an error: it does
 * without the acknowledgement, which saves a system call. */
int netlink_get(struct netlink *nl, struct nl_msg *msg, netlink_fn *fn, void *ctx);

/* Sends n messages at once, frees them, and waits until each is done or refused: state[i] (enum
 * qos_op_state).  The result and *why are those of the first refusal. */
int netlink_call_many(struct netlink *nl, struct nl_msg **msgs, size_t n, uint8_t *state,
                      struct netlink_refusal *why);

#endif
