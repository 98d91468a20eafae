/* SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

#include "blocking.h"

#include <qos/kernel/kernel.h>

#include <netlink/errno.h>
#include <netlink/handlers.h>
#include <netlink/socket.h>

#include <errno.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>

#define BUFFER    (1 << 20)
#define TRIES     5
#define ANSWER_MS 5000 /* ample: the kernel has answered before sendmsg returns */
#define SILENT_MS 20   /* a request takes many calls, and undoing it as many again */

/* How long the next answers may take. */
static void
set_silent(struct netlink *nl, bool silent)
{
    const long ms = silent ? SILENT_MS : ANSWER_MS;
    const struct timeval t = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    setsockopt(nl_socket_get_fd(nl->sk), SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    nl->silent = silent;
}

/* Limits of one answer.  A dump of 65,535 classes takes about a thousand datagrams; one that is
 * longer than this would never end. */
#define DATAGRAMS_MAX (1u << 14)
#define MESSAGES_MAX  (1u << 20)

/* What is left of these in the present call: libnl passes nothing of ours to its receive
 * function. */
static unsigned datagrams_left, messages_left;

int
netlink_open(struct netlink *nl)
{
    int one = 1;
    nl->sk = nl_socket_alloc();
    if (!nl->sk)
        return -ENOMEM;
    if (nl_connect(nl->sk, NETLINK_ROUTE) < 0) {
        int err = errno ? -errno : -EIO;
        netlink_close(nl);
        return err;
    }
    nl_socket_set_buffer_size(nl->sk, BUFFER, BUFFER);
    socklen_t len = sizeof nl->room;
    if (getsockopt(nl_socket_get_fd(nl->sk), SOL_SOCKET, SO_SNDBUF, &nl->room, &len))
        nl->room = 1 << 16; /* LCOV_EXCL_LINE: reading it never fails */
    nl_socket_set_msg_buf_size(nl->sk, 1 << 16);
    set_silent(nl, false);
    /* The kernel's text, and errors without a copy of our request; since Linux 4.12. */
    setsockopt(nl_socket_get_fd(nl->sk), SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof one);
    setsockopt(nl_socket_get_fd(nl->sk), SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof one);
    return 0;
}

void
netlink_close(struct netlink *nl)
{
    if (nl->sk)
        nl_socket_free(nl->sk);
    nl->sk = NULL;
}

int
netlink_error(int nle)
{
    switch (-nle) {
    case 0: return 0;
    case NLE_INTR: return -EINTR; /* LCOV_EXCL_LINE: libnl repeats the call */
    case NLE_NOMEM: return -ENOBUFS;
    case NLE_DUMP_INTR: return -EAGAIN;
    case NLE_AGAIN: return -ETIMEDOUT;
    case NLE_PERM: return -EPERM;
    case NLE_MSG_TOOSHORT:
    case NLE_MSG_OVERFLOW: return -EBADMSG;
    default: return -EIO;
    }
}

struct nl_msg *
netlink_tc_message(int type, int flags, const struct tcmsg *tc)
{
    struct nl_msg *msg = nlmsg_alloc_simple(type, flags);
    if (msg && nlmsg_append(msg, (void *)tc, sizeof *tc, NLMSG_ALIGNTO)) {
        nlmsg_free(msg);
        return NULL;
    }
    return msg;
}

struct nl_msg *
netlink_kind_message(int type, int flags, const struct tcmsg *tc, const char *kind)
{
    struct nl_msg *msg = netlink_tc_message(type, flags, tc);
    if (msg && nla_put_string(msg, TCA_KIND, kind)) {
        nlmsg_free(msg);
        return NULL;
    }
    return msg;
}

/* The kernel knows it by its place. */
struct nl_msg *
netlink_clsact_message(int type, int flags, int ifindex)
{
    const struct tcmsg tc = {
        .tcm_ifindex = ifindex, .tcm_handle = TC_H_MAKE(TC_H_CLSACT, 0), .tcm_parent = TC_H_CLSACT};
    return netlink_kind_message(type, flags, &tc, "clsact");
}

struct call {
    netlink_fn *fn;
    void *ctx;
    uint32_t seq;
    bool single; /* one message is the whole answer: no acknowledgement follows */
    bool done;
    struct netlink_refusal why;
};

static int
on_seq(struct nl_msg *msg, void *arg)
{
    struct call *call = arg;
    bool stale = nlmsg_hdr(msg)->nlmsg_seq != call->seq; /* the answer to an earlier request */
    return stale ? NL_SKIP : NL_OK;
}

static int
on_valid(struct nl_msg *msg, void *arg)
{
    struct call *call = arg;
    if (call->fn)
        call->fn(call->ctx, msg);
    call->done = call->single;
    return NL_OK;
}

static int
on_end(struct nl_msg *msg, void *arg)
{
    struct call *call = arg;
    call->done = true;
    return NL_STOP;
}

/* The attributes come after the error, and after our request unless that is left out (netlink(7),
 * NETLINK_EXT_ACK). */
static void
take_text(const struct nlmsgerr *err, char *text, size_t n)
{
    const struct nlmsghdr *h = (const struct nlmsghdr *)((const char *)err - NLMSG_HDRLEN);
    size_t skip = sizeof *err;
    if (!(h->nlmsg_flags & NLM_F_ACK_TLVS))
        return;
    if (!(h->nlmsg_flags & NLM_F_CAPPED)) {
        if (err->msg.nlmsg_len < NLMSG_HDRLEN || err->msg.nlmsg_len > h->nlmsg_len)
            return;
        skip += err->msg.nlmsg_len - NLMSG_HDRLEN;
    }
    skip = NLMSG_ALIGN(skip);
    if (h->nlmsg_len < NLMSG_HDRLEN + skip)
        return;
    struct nlattr *attrs = (struct nlattr *)(void *)((char *)NLMSG_DATA(h) + skip);
    struct nlattr *a =
        nla_find(attrs, (int)(h->nlmsg_len - NLMSG_HDRLEN - skip), NLMSGERR_ATTR_MSG);
    if (a)
        snprintf(text, n, "%.*s", nla_len(a), (const char *)nla_data(a));
}

#define ENOTSUPP  524 /* the kernel's own */
#define ERRNO_MAX 4095

/* Some kernel code returns numbers that are meant for the kernel only. */
static int
errnum_of(const struct nlmsgerr *err)
{
    if (err->error > 0 || err->error < -ERRNO_MAX)
        return EBADMSG; /* it would be taken for success, or for an error of OpenFlow */
    return err->error == -ENOTSUPP ? EOPNOTSUPP : -err->error;
}

static int
on_error(struct sockaddr_nl *from, struct nlmsgerr *err, void *arg)
{
    struct call *call = arg;
    if (err->msg.nlmsg_seq != call->seq)
        return NL_SKIP;
    call->done = true;
    call->why.errnum = errnum_of(err);
    take_text(err, call->why.text, sizeof call->why.text);
    return NL_STOP;
}

static int
receive_one(struct nl_sock *sk, struct sockaddr_nl *from, unsigned char **buf, struct ucred **creds)
{
    return datagrams_left-- ? netlink_blocking_recv(sk, from, buf, creds) : -NLE_MSG_OVERFLOW;
}

static int
on_any(struct nl_msg *msg, void *arg)
{
    return messages_left-- ? NL_OK : -NLE_MSG_OVERFLOW;
}

/* -EBADMSG: the answer does not end.  An answer that comes too late does no harm: it has another
 * sequence number than the next request. */
static int
receive_until(struct netlink *nl, struct nl_cb *cb, const bool *done)
{
    datagrams_left = DATAGRAMS_MAX;
    messages_left = MESSAGES_MAX;
    nl_cb_overwrite_recv(cb, receive_one);
    nl_cb_set(cb, NL_CB_MSG_IN, NL_CB_CUSTOM, on_any, NULL);
    while (!*done) {
        int err = nl_recvmsgs(nl->sk, cb);
        bool broken = err < 0 && !*done && err != -NLE_INTR;
        if (broken && err == -NLE_AGAIN) {
            set_silent(nl, true);
            netlink_blocking_silent();
        }
        if (broken || err == -NLE_DUMP_INTR) /* said at the dump's end, which looks like another */
            return netlink_error(err);
    }
    if (nl->silent)
        set_silent(nl, false);
    return 0;
}

static void
lost(struct netlink_refusal *why, int err)
{
    why->errnum = -err;
    if (err == -ETIMEDOUT)
        snprintf(why->text, sizeof why->text, "the kernel has not answered");
}

static void
receive(struct netlink *nl, struct nl_cb *cb, struct call *call)
{
    nl_cb_set(cb, NL_CB_SEQ_CHECK, NL_CB_CUSTOM, on_seq, call);
    nl_cb_set(cb, NL_CB_VALID, NL_CB_CUSTOM, on_valid, call);
    nl_cb_set(cb, NL_CB_ACK, NL_CB_CUSTOM, on_end, call);
    nl_cb_set(cb, NL_CB_FINISH, NL_CB_CUSTOM, on_end, call);
    nl_cb_err(cb, NL_CB_CUSTOM, on_error, call);
    int err = receive_until(nl, cb, &call->done);
    if (err)
        lost(&call->why, err);
}

static int
send_one(struct netlink *nl, struct nl_msg *msg)
{
    struct iovec iov = {nlmsg_hdr(msg), nlmsg_hdr(msg)->nlmsg_len};
    const struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};
    return netlink_blocking_sendmsg(nl_socket_get_fd(nl->sk), &h);
}

static int
carry_out(struct netlink *nl, struct nl_msg *msg, struct call *call)
{
    struct nl_cb *cb = msg ? nl_cb_alloc(NL_CB_DEFAULT) : NULL; /* before the kernel does it */
    if (!cb) {
        call->why.errnum = ENOMEM;
        return -ENOMEM;
    }
    nlmsg_hdr(msg)->nlmsg_seq = NL_AUTO_SEQ;
    nl_complete_msg(nl->sk, msg);
    if (call->single)
        nlmsg_hdr(msg)->nlmsg_flags &= ~NLM_F_ACK;
    call->seq = nlmsg_hdr(msg)->nlmsg_seq;
    call->done = false;
    call->why = (struct netlink_refusal){0};
    int err = send_one(nl, msg);
    if (err)
        call->why.errnum = -err; /* LCOV_EXCL_LINE: tests/faults/run makes it fail */
    else
        receive(nl, cb, call);
    nl_cb_put(cb);
    return -call->why.errnum;
}

int
netlink_call(struct netlink *nl, struct nl_msg *msg, netlink_fn *fn, void *ctx,
             struct netlink_refusal *why)
{
    struct call call = {.fn = fn, .ctx = ctx};
    bool dump = msg && (nlmsg_hdr(msg)->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
    int err = carry_out(nl, msg, &call);
    for (unsigned try = 1; dump && (err == -EAGAIN || err == -ENOBUFS) && try < TRIES; try++)
        err = carry_out(nl, msg, &call);
    nlmsg_free(msg);
    if (why)
        *why = call.why;
    return err;
}

int
netlink_get(struct netlink *nl, struct nl_msg *msg, netlink_fn *fn, void *ctx)
{
    struct call call = {.fn = fn, .ctx = ctx, .single = true};
    int err = carry_out(nl, msg, &call);
    nlmsg_free(msg);
    return err;
}

/* ------------------------------------------------------------------ many at once */

#define AT_ONCE  1024 /* messages; UIO_MAXIOV */
#define OVERHEAD 64   /* bytes of the send buffer that the kernel needs for itself */

struct many {
    uint32_t first, last; /* sequence numbers */
    uint8_t *state;
    bool over;
    struct netlink_refusal why; /* the first one */
};

static int
on_last(struct nl_msg *msg, void *arg)
{
    struct many *m = arg;
    m->over |= nlmsg_hdr(msg)->nlmsg_seq == m->last;
    return NL_OK;
}

static int
on_refusal(struct sockaddr_nl *from, struct nlmsgerr *err, void *arg)
{
    struct many *m = arg;
    uint32_t at = err->msg.nlmsg_seq - m->first;
    if (at > m->last - m->first)
        return NL_SKIP; /* of an earlier call */
    m->state[at] = QOS_OP_REFUSED;
    if (!m->why.errnum) {
        m->why.errnum = errnum_of(err);
        take_text(err, m->why.text, sizeof m->why.text);
    }
    m->over |= err->msg.nlmsg_seq == m->last;
    return NL_OK;
}

static int
skip(struct nl_msg *msg, void *arg)
{
    return NL_OK;
}

/* Only the last message asks for an acknowledgement: the kernel reports a refusal in any case. */
static int
send_some(struct netlink *nl, struct nl_msg **msgs, size_t n, struct many *m)
{
    struct iovec iov[AT_ONCE];
    struct msghdr h = {.msg_iov = iov, .msg_iovlen = n};
    for (size_t i = 0; i < n; i++) {
        struct nlmsghdr *nh = nlmsg_hdr(msgs[i]);
        nh->nlmsg_seq = nl_socket_use_seq(nl->sk);
        nh->nlmsg_pid = nl_socket_get_local_port(nl->sk);
        nh->nlmsg_flags |= NLM_F_REQUEST | (i + 1 == n ? NLM_F_ACK : 0);
        if (i == 0)
            m->first = nh->nlmsg_seq;
        m->last = nh->nlmsg_seq;
        iov[i] = (struct iovec){nh, NLMSG_ALIGN(nh->nlmsg_len)};
    }
    return netlink_blocking_sendmsg(nl_socket_get_fd(nl->sk), &h);
}

static int
call_some(struct netlink *nl, struct nl_msg **msgs, size_t n, uint8_t *state,
          struct netlink_refusal *why)
{
    struct many m = {.state = state};
    struct nl_cb *cb = nl_cb_alloc(NL_CB_DEFAULT);
    int err = cb ? send_some(nl, msgs, n, &m) : -ENOMEM;
    memset(state, err ? 0 : QOS_OP_DONE, n);
    if (!err) {
        nl_cb_set(cb, NL_CB_SEQ_CHECK, NL_CB_CUSTOM, skip, NULL);
        nl_cb_set(cb, NL_CB_VALID, NL_CB_CUSTOM, skip, NULL);
        nl_cb_set(cb, NL_CB_ACK, NL_CB_CUSTOM, on_last, &m);
        nl_cb_err(cb, NL_CB_CUSTOM, on_refusal, &m);
        err = receive_until(nl, cb, &m.over); /* if answers were lost, all count as done */
    }
    if (cb)
        nl_cb_put(cb);
    *why = m.why;
    if (err && !m.why.errnum)
        lost(why, err);
    return -why->errnum;
}

/* How many of the messages fit into one datagram. */
static size_t
fitting(const struct netlink *nl, struct nl_msg **msgs, size_t n)
{
    size_t some = 0, bytes = OVERHEAD;
    while (some < n && some < AT_ONCE &&
           (!some || bytes + nlmsg_hdr(msgs[some])->nlmsg_len < (size_t)nl->room))
        bytes += NLMSG_ALIGN(nlmsg_hdr(msgs[some++])->nlmsg_len);
    return some;
}

int
netlink_call_many(struct netlink *nl, struct nl_msg **msgs, size_t n, uint8_t *state,
                  struct netlink_refusal *why)
{
    int err = 0;
    for (size_t i = 0, some; i < n && !err; i += some) {
        some = fitting(nl, msgs + i, n - i);
        err = call_some(nl, msgs + i, some, state + i, why);
    }
    for (size_t i = 0; i < n; i++)
        nlmsg_free(msgs[i]);
    return err;
}
