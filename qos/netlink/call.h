/* SPDX-License-Identifier: Apache-2.0 */
/* Inside qos/netlink/: one request and its answer. */
#ifndef QOS_NETLINK_CALL_H
#define QOS_NETLINK_CALL_H

#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>

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

/* A message about an interface; `name`: it is looked for by that (ifindex 0), or NULL.  `change` are
 * the IFF_ flags that become as in `flags`.  NULL: no memory. */
struct nl_msg *netlink_link_message(int type, int nlm_flags, int ifindex, const char *name,
                                    unsigned flags, unsigned change);

/* Called for each message of the answer. */
typedef void netlink_fn(void *ctx, struct nlmsghdr *h);

/* Sends the message (which it frees), waits for the acknowledgement or the dump's end; a dump
 * that was disturbed is asked for again (fn may see a message twice then).
 * 0; -errno, the kernel's or our own, also in *why (which may be NULL).  msg may be NULL: no
 * memory. */
int netlink_call(struct netlink *nl, struct nl_msg *msg, netlink_fn *fn, void *ctx,
                 struct netlink_refusal *why);

/* Sends n messages (which it frees) at once and waits until all have been done or refused.  state[i]
 * (an enum qos_op_state) tells; the answer and *why are the first refusal's. */
int netlink_call_many(struct netlink *nl, struct nl_msg **msgs, size_t n, uint8_t *state,
                      struct netlink_refusal *why);

#endif
