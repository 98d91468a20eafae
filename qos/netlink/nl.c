/* SPDX-License-Identifier: Apache-2.0 */
#include "nl.h"

#include <netlink/errno.h>
#include <netlink/handlers.h>
#include <netlink/socket.h>

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define BUFFER (1 << 20)
#define TRIES  5

int
nl_open(struct nl *nl)
{
    int one = 1;
    nl->sk = nl_socket_alloc();
    if (!nl->sk)
        return -ENOMEM;
    if (nl_connect(nl->sk, NETLINK_ROUTE) < 0) {
        int err = errno ? -errno : -EIO;
        nl_shut(nl);
        return err;
    }
    nl_socket_set_buffer_size(nl->sk, BUFFER, 0);
    nl_socket_set_msg_buf_size(nl->sk, 1 << 16);
    /* The kernel's own words, without our request's echo; kernels before 4.12 have neither. */
    setsockopt(nl_socket_get_fd(nl->sk), SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof one);
    setsockopt(nl_socket_get_fd(nl->sk), SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof one);
    return 0;
}

void
nl_shut(struct nl *nl)
{
    if (nl->sk)
        nl_socket_free(nl->sk);
    nl->sk = NULL;
}

/* A request under way. */
struct call {
    nl_fn *fn;
    void *ctx;
    uint32_t seq;
    bool done;
    struct nl_refusal why;
};

static int
on_seq(struct nl_msg *msg, void *arg)
{
    struct call *call = arg;
    return nlmsg_hdr(msg)->nlmsg_seq == call->seq ? NL_OK : NL_SKIP; /* a stale answer */
}

static int
on_valid(struct nl_msg *msg, void *arg)
{
    struct call *call = arg;
    if (call->fn)
        call->fn(call->ctx, nlmsg_hdr(msg));
    return NL_OK;
}

static int
on_end(struct nl_msg *msg, void *arg)
{
    struct call *call = arg;
    call->done = true;
    return NL_STOP;
}

/* NLMSGERR_ATTR_MSG behind the error (netlink(7), NETLINK_EXT_ACK). */
static void
take_text(const struct nlmsgerr *err, char *text, size_t n)
{
    const struct nlmsghdr *h = (const struct nlmsghdr *)((const char *)err - NLMSG_HDRLEN);
    size_t skip = sizeof *err;
    if (!(h->nlmsg_flags & NLM_F_CAPPED))
        skip += err->msg.nlmsg_len - NLMSG_HDRLEN;
    skip = NLMSG_ALIGN(skip);
    if (!(h->nlmsg_flags & NLM_F_ACK_TLVS) || h->nlmsg_len < NLMSG_HDRLEN + skip)
        return;
    struct nlattr *attrs = (struct nlattr *)(void *)((char *)NLMSG_DATA(h) + skip);
    struct nlattr *a = nla_find(attrs, (int)(h->nlmsg_len - NLMSG_HDRLEN - skip),
                                NLMSGERR_ATTR_MSG);
    if (a)
        snprintf(text, n, "%.*s", nla_len(a), (const char *)nla_data(a));
}

static int
on_error(struct sockaddr_nl *from, struct nlmsgerr *err, void *arg)
{
    struct call *call = arg;
    if (err->msg.nlmsg_seq != call->seq)
        return NL_SKIP;
    call->done = true;
    call->why.errnum = -err->error;
    take_text(err, call->why.text, sizeof call->why.text);
    return NL_STOP;
}

/* Our own errors: libnl's, as far as they tell what is wrong. */
static int
own_error(int nle)
{
    switch (-nle) {
    case NLE_INTR:
        return EINTR;
    case NLE_NOMEM:
        return ENOBUFS;
    case NLE_DUMP_INTR:
        return EAGAIN;
    case NLE_PERM:
        return EPERM;
    default:
        return EIO;
    }
}

/* Until the answer has ended. */
static void
receive(struct nl *nl, struct call *call)
{
    struct nl_cb *cb = nl_cb_alloc(NL_CB_DEFAULT);
    if (!cb) {
        call->why.errnum = ENOMEM;
        return;
    }
    nl_cb_set(cb, NL_CB_SEQ_CHECK, NL_CB_CUSTOM, on_seq, call);
    nl_cb_set(cb, NL_CB_VALID, NL_CB_CUSTOM, on_valid, call);
    nl_cb_set(cb, NL_CB_ACK, NL_CB_CUSTOM, on_end, call);
    nl_cb_set(cb, NL_CB_FINISH, NL_CB_CUSTOM, on_end, call);
    nl_cb_err(cb, NL_CB_CUSTOM, on_error, call);
    while (!call->done) {
        int err = nl_recvmsgs(nl->sk, cb);
        if (err >= 0 || call->done || err == -NLE_INTR)
            continue;
        call->why.errnum = own_error(err);
        break;
    }
    nl_cb_put(cb);
}

int
nl_call(struct nl *nl, struct nl_msg *msg, nl_fn *fn, void *ctx, struct nl_refusal *why)
{
    struct call call = {.fn = fn, .ctx = ctx};
    bool dump = msg && (nlmsg_hdr(msg)->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
    if (!msg)
        call.why.errnum = ENOMEM;
    for (unsigned try = 0; msg && try < TRIES; try++) {
        call = (struct call){.fn = fn, .ctx = ctx};
        nlmsg_hdr(msg)->nlmsg_seq = NL_AUTO_SEQ;
        int err = nl_send_auto(nl->sk, msg);
        call.seq = nlmsg_hdr(msg)->nlmsg_seq;
        if (err < 0)
            call.why.errnum = own_error(err);
        else
            receive(nl, &call);
        if (!dump || (call.why.errnum != EAGAIN && call.why.errnum != ENOBUFS))
            break;
    }
    if (msg)
        nlmsg_free(msg);
    if (why)
        *why = call.why;
    return -call.why.errnum;
}
