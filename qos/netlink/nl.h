/* SPDX-License-Identifier: Apache-2.0 */
/* Inside qos/netlink/: one request and its answer. */
#ifndef QOS_NL_H
#define QOS_NL_H

#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>

#include <stddef.h>
#include <stdint.h>

struct nl {
    struct nl_sock *sk;
    int room; /* bytes that may be sent at once */
};

/* What the kernel said when it refused: its errno (positive) and its own words ("" where none). */
struct nl_refusal {
    int errnum;
    char text[160];
};

/* A connected NETLINK_ROUTE socket with large buffers.  -errno. */
int nl_open(struct nl *nl);
void nl_shut(struct nl *nl);

/* A message about an interface; `name`: it is looked for by that (ifindex 0), or NULL.  `change` are
 * the IFF_ flags that become as in `flags`.  NULL: no memory. */
struct nl_msg *nl_link_message(int type, int nlm_flags, int ifindex, const char *name,
                               unsigned flags, unsigned change);

/* Called for each message of the answer. */
typedef void nl_fn(void *ctx, struct nlmsghdr *h);

/* Sends the message (which it frees), waits for the acknowledgement or the dump's end; a dump
 * that was disturbed is asked for again (fn may see a message twice then).
 * 0; -errno, the kernel's or our own, also in *why (which may be NULL).  msg may be NULL: no
 * memory. */
int nl_call(struct nl *nl, struct nl_msg *msg, nl_fn *fn, void *ctx, struct nl_refusal *why);

/* Sends n messages (which it frees) at once and waits until all have been done or refused.  state[i]
 * (an enum qos_op_state) tells; the answer and *why are the first refusal's. */
int nl_call_many(struct nl *nl, struct nl_msg **msgs, size_t n, uint8_t *state,
                 struct nl_refusal *why);

#endif
