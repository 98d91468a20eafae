/* SPDX-License-Identifier: Apache-2.0 */
/* What rtnetlink says of an interface's filters, whole and broken: this program's send() and recv() are those of a
 * fake kernel. */
#include "tc-filters.h"

#include <errno.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum answer { FILTERS, HEADS, NO_FILTER, SHORT, CUT_ATTRIBUTE, REFUSED, NOTHING, NO_BYTES };

static enum answer answer;
static uint32_t asked_parent;
static int asked_ifindex;
static unsigned asked;
static bool ended; /* the end of this dump has been given */

#define FOR_ALL __attribute__((visibility("default")))
FOR_ALL ssize_t send(int fd, const void *bytes, size_t n, int flags);
FOR_ALL ssize_t recv(int fd, void *bytes, size_t n, int flags);

ssize_t
send(int fd, const void *bytes, size_t n, int flags)
{
    struct tcmsg tc;
    assert_true(n >= NLMSG_LENGTH(sizeof tc));
    memcpy(&tc, (const char *)bytes + NLMSG_HDRLEN, sizeof tc);
    asked_parent = tc.tcm_parent;
    asked_ifindex = tc.tcm_ifindex;
    ended = false;
    asked++;
    return (ssize_t)n;
}

static size_t
put(uint8_t *to, uint16_t type, const void *body, size_t n)
{
    const struct nlmsghdr h = {.nlmsg_len = (uint32_t)(NLMSG_HDRLEN + n), .nlmsg_type = type};
    memcpy(to, &h, sizeof h);
    if (n)
        memcpy(to + NLMSG_HDRLEN, body, n);
    return NLMSG_ALIGN(h.nlmsg_len);
}

static size_t
put_filter(uint8_t *to)
{
    struct {
        struct tcmsg tc;
        struct nlattr kind_head;
        char kind[4];
        struct nlattr options, name_head;
        char name[8];
    } m = {.tc = {.tcm_parent = asked_parent, .tcm_handle = 5, .tcm_info = 49 << 16},
           .kind_head = {NLA_HDRLEN + sizeof m.kind, TCA_KIND},
           .kind = "bpf",
           .options = {2 * NLA_HDRLEN + sizeof m.name, TCA_OPTIONS | NLA_F_NESTED},
           .name_head = {NLA_HDRLEN + sizeof m.name, TCA_BPF_NAME},
           .name = "mine"};
    size_t n = sizeof m;
    if (answer == HEADS)
        n = offsetof(__typeof__(m), options);
    if (answer == CUT_ATTRIBUTE) /* says that it is longer than the message */
        m.options.nla_len = UINT16_MAX;
    return put(to, answer == NO_FILTER ? RTM_NEWQDISC : RTM_NEWTFILTER, &m, n);
}

ssize_t
recv(int fd, void *bytes, size_t n, int flags)
{
    static const int zero;
    struct timeval patience = {0};
    socklen_t len = sizeof patience;
    uint8_t *to = bytes;
    size_t at = 0;
    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, &len), 0);
    assert_in_range(patience.tv_sec, 1, 10); /* who asks has others to serve */
    assert_false(ended);
    switch (answer) {
    case NOTHING: errno = EAGAIN; return -1;
    case NO_BYTES: return 0;
    case REFUSED: return (ssize_t)put(to, NLMSG_ERROR, &(int){-EPERM}, sizeof(int));
    case SHORT: at = put(to, RTM_NEWTFILTER, NULL, 0); break;
    case FILTERS:
    case HEADS:
    case NO_FILTER:
    case CUT_ATTRIBUTE: at = put_filter(to); break;
    }
    ended = true;
    return (ssize_t)(at + put(to + at, NLMSG_DONE, &zero, sizeof zero));
}

static unsigned noted;

static void
note(void *ctx, const struct tc_filter *f)
{
    assert_string_equal(f->kind, "bpf");
    assert_string_equal(f->name, "mine");
    assert_int_equal(f->pref, 49);
    assert_int_equal(f->handle, 5);
    noted++;
}

static void
test_whole(void **state)
{
    answer = FILTERS;
    tc_filters_each(7, note, NULL);
    assert_int_equal(asked_ifindex, 7);
    assert_int_equal(asked_parent, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS));
    assert_int_equal(asked, 1); /* it is asked for each port each second */
    assert_int_equal(noted, 1);
    assert_true(tc_filters_there(7));
    assert_int_equal(asked_parent, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS));
}

/* What is no filter, or none that can be read, is none. */
static void
test_no_filters(void **state)
{
    static const enum answer answers[] = {HEADS, NO_FILTER, SHORT, CUT_ATTRIBUTE};
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        answer = answers[i];
        noted = 0;
        tc_filters_each(7, note, NULL);
        assert_int_equal(noted, 0);
        assert_false(tc_filters_there(7));
    }
}

/* Who can't be asked may have filters: clsact stays for them. */
static void
test_no_answer(void **state)
{
    static const enum answer answers[] = {REFUSED, NOTHING, NO_BYTES};
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        answer = answers[i];
        tc_filters_each(7, note, NULL);
        assert_true(tc_filters_there(7));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_no_filters),
        cmocka_unit_test(test_no_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
