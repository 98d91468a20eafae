/* SPDX-License-Identifier: Apache-2.0 */
/* To be included: a fake rtnetlink (fake-rtnetlink.c) whose answers are a function of the test. */
#include "fake-rtnetlink.c"

/* What a test answers to the nth datagram that is asked for: its bytes, 0: none comes. */
static size_t (*answer)(unsigned n, struct rtnetlink_datagram *d);
static unsigned asked_for;

static ssize_t
rtnetlink_answer(struct rtnetlink_datagram *d)
{
    size_t n = answer(asked_for++, d);
    if (n)
        return (ssize_t)n;
    errno = EAGAIN;
    return -1;
}

static void
begin(size_t (*fn)(unsigned n, struct rtnetlink_datagram *d))
{
    answer = fn;
    asked_for = 0;
}

static size_t
put(uint8_t *buf, uint16_t type, uint16_t flags, const void *body, size_t n)
{
    struct nlmsghdr h = {.nlmsg_len = (uint32_t)(NLMSG_HDRLEN + n),
                         .nlmsg_type = type,
                         .nlmsg_flags = flags,
                         .nlmsg_seq = rtnetlink_asked.seq};
    memcpy(buf, &h, sizeof h);
    memcpy(buf + NLMSG_HDRLEN, body, n);
    return NLMSG_ALIGN(h.nlmsg_len);
}

/* The kernel's word about the request with this sequence number. */
static size_t
put_error(uint8_t *buf, uint32_t seq, int errnum)
{
    struct nlmsgerr e = {.error = -errnum, .msg = {.nlmsg_len = sizeof e.msg, .nlmsg_seq = seq}};
    return put(buf, NLMSG_ERROR, 0, &e, sizeof e);
}

static size_t
put_end(uint8_t *buf)
{
    static const int zero;
    return put(buf, NLMSG_DONE, NLM_F_MULTI, &zero, sizeof zero);
}
