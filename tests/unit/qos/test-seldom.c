/* SPDX-License-Identifier: Apache-2.0 */
/* What rtnetlink answers seldom: refusals with and without the request, of others, late or never; filters of others
 * beside ours; hardware and kernels that lack something. */
#include "answering-rtnetlink.c"

#include "call.h"
#include "steer.h"

#include <qos-netlink/blocking.h>
#include <qos-netlink/kernel.h>
#include <qos/model/model.h>

#include <linux/pkt_sched.h>
#include <stdio.h>
#include <sys/utsname.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct nl_msg *
deletion(void)
{
    const struct tcmsg tc = {.tcm_ifindex = 7};
    return netlink_tc_message(RTM_DELQDISC, 0, &tc);
}

/* ------------------------------------------------------------------ refusals */

#define REQUEST 8 /* bytes after its head */

static bool capped;
static uint32_t request_len;

static size_t
with_text(unsigned n, struct rtnetlink_datagram *d)
{
    struct {
        struct nlmsgerr e;
        uint8_t rest[REQUEST + 64];
    } body = {.e = {.error = -EINVAL,
                    .msg = {.nlmsg_len = request_len, .nlmsg_seq = rtnetlink_asked.seq}}};
    static const char text[] = "no room";
    size_t at = capped ? 0 : REQUEST;
    struct nlattr a = {.nla_len = NLA_HDRLEN + sizeof text, .nla_type = NLMSGERR_ATTR_MSG};
    memcpy(body.rest + at, &a, sizeof a);
    memcpy(body.rest + at + sizeof a, text, sizeof text);
    return put(d->buf, NLMSG_ERROR, (uint16_t)(NLM_F_ACK_TLVS | (capped ? NLM_F_CAPPED : 0)), &body,
               sizeof body.e + at + NLMSG_ALIGN(a.nla_len));
}

static void
test_the_text_of_a_refusal(void **state)
{
    static const struct {
        bool capped;
        uint32_t request;
        const char *text;
    } cases[] = {
        {true, 5000, "no room"}, /* the request is left out, whatever its length */
        {false, NLMSG_HDRLEN + REQUEST, "no room"},
        {false, NLMSG_HDRLEN - 1, ""}, /* and lengths that can't be */
        {false, NLMSG_HDRLEN + REQUEST + 32, ""},
        {false, 5000, ""},
        {false, UINT32_MAX, ""},
    };
    struct netlink nl;
    assert_int_equal(netlink_open(&nl), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct netlink_refusal why;
        capped = cases[i].capped;
        request_len = cases[i].request;
        begin(with_text);
        assert_int_equal(netlink_call(&nl, deletion(), NULL, NULL, &why), -EINVAL);
        assert_string_equal(why.text, cases[i].text);
    }
    netlink_close(&nl);
}

static size_t
another_ones_first(unsigned n, struct rtnetlink_datagram *d)
{
    size_t at = put_error(d->buf, rtnetlink_asked.seq - 9, EINVAL);
    return at + put_error(d->buf + at, rtnetlink_asked.seq, n ? 0 : ENODEV);
}

static size_t
another_ones_then_done(unsigned n, struct rtnetlink_datagram *d)
{
    size_t at = put_error(d->buf, rtnetlink_asked.seq - 9, EINVAL);
    return at + put_error(d->buf + at, rtnetlink_asked.seq, 0);
}

static void
test_refusals_of_earlier_requests(void **state)
{
    struct netlink nl;
    struct netlink_refusal why;
    uint8_t done[2];
    struct nl_msg *two[2] = {deletion(), deletion()};
    assert_int_equal(netlink_open(&nl), 0);
    begin(another_ones_first);
    assert_int_equal(netlink_call(&nl, deletion(), NULL, NULL, &why), -ENODEV);
    begin(another_ones_then_done);
    assert_int_equal(netlink_call_many(&nl, two, 2, done, &why), 0);
    assert_true(done[0] == QOS_OP_DONE && done[1] == QOS_OP_DONE);
    netlink_close(&nl);
}

static unsigned left, silent;

static void
on_leave(void *ctx)
{
    left++;
}

static void
on_back(void *ctx)
{
    left--;
}

static void
on_silent(void *ctx)
{
    assert_int_equal(left, 0);
    silent++;
}

static size_t
nothing(unsigned n, struct rtnetlink_datagram *d)
{
    assert_int_equal(left, 1); /* others are served meanwhile */
    return 0;
}

static size_t
done_at_once(unsigned n, struct rtnetlink_datagram *d)
{
    return put_error(d->buf, rtnetlink_asked.seq, 0);
}

static void
test_a_lost_answer_is_told(void **state)
{
    const struct qos_netlink_blocking away = {on_leave, on_back, on_silent, NULL};
    struct netlink nl;
    struct netlink_refusal why;
    qos_netlink_set_blocking(&away);
    assert_int_equal(netlink_open(&nl), 0);
    begin(nothing);
    assert_int_equal(netlink_call(&nl, deletion(), NULL, NULL, &why), -ETIMEDOUT);
    assert_string_equal(why.text, "the kernel has not answered");
    assert_int_equal(silent, 1);
    assert_true(nl.silent);
    begin(done_at_once);
    assert_int_equal(netlink_call(&nl, deletion(), NULL, NULL, &why), 0);
    assert_false(nl.silent);
    assert_int_equal(left, 0);
    netlink_close(&nl);
    qos_netlink_set_blocking(NULL);
}

/* ------------------------------------------------------------------ GRED's change */

static unsigned changes, refused_one;

/* A gred is there; its change needs several messages. */
static size_t
changing_gred(unsigned n, struct rtnetlink_datagram *d)
{
    struct {
        struct tcmsg tc;
        struct nlattr a;
        char kind[8];
    } is = {.tc = {.tcm_ifindex = 7, .tcm_parent = TC_H_ROOT, .tcm_handle = QOS_HANDLE_ROOT},
            .a = {.nla_len = NLA_HDRLEN + sizeof "gred", .nla_type = TCA_KIND},
            .kind = "gred"};
    if (rtnetlink_asked.type == RTM_GETQDISC) {
        size_t at = put(d->buf, RTM_NEWQDISC, 0, &is, sizeof is);
        return at + put_error(d->buf + at, rtnetlink_asked.seq, 0);
    }
    return put_error(d->buf, rtnetlink_asked.seq, ++changes == refused_one ? EINVAL : 0);
}

static void
test_a_change_refused_half_way_is_taken_back(void **state)
{
    struct qos_kernel *k;
    struct qos_request r;
    char text[512] = "";
    uint8_t done = QOS_OP_UNTRIED;
    struct qos_error e = {0};
    assert_int_equal(qos_request_parse(&r, qos_sched_by_name("gred"),
                                       "cmd=add,port=2,dp1=10kb/30kb/60kb/2%", text, sizeof text),
                     0);
    const struct qos_op op = {.kind = QOS_OP_QDISC_CHANGE,
                              .ifindex = 7,
                              .parent = QOS_PARENT_ROOT,
                              .sched = r.sched,
                              .values = r.values};
    assert_int_equal(qos_netlink_new(&k), 0);
    begin(changing_gred);
    assert_int_equal(k->ops->apply(k, &op, 1, &done, &e), 0);
    assert_int_equal(done, QOS_OP_DONE);
    unsigned whole = changes;
    assert_true(whole > 1);
    for (refused_one = 1; refused_one <= whole; refused_one++) {
        changes = 0;
        assert_int_not_equal(k->ops->apply(k, &op, 1, &done, &e), 0);
        assert_int_equal(e.errnum, EINVAL);
        assert_int_equal(done, refused_one == 1 ? QOS_OP_REFUSED : QOS_OP_HALF);
        assert_int_equal(changes,
                         refused_one + 1); /* and the one that was there, without precedences */
    }
    qos_netlink_free(k);
    qos_netlink_free(NULL);
}

/* ------------------------------------------------------------------ filters of others */

#define EGRESS    TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS)
#define INGRESS   TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)
#define OURS_MADE 0xf54u /* see qos/netlink/steer.c */

static bool filter_there, others_there, clsact_gone;
static uint32_t others_at;

static size_t
put_filter(uint8_t *buf, uint32_t parent, uint32_t handle, uint32_t preference)
{
    struct tcmsg tc = {
        .tcm_ifindex = 7, .tcm_parent = parent, .tcm_handle = handle, .tcm_info = preference << 16};
    return put(buf, RTM_NEWTFILTER, NLM_F_MULTI, &tc, sizeof tc);
}

static size_t
filters(unsigned n, struct rtnetlink_datagram *d)
{
    size_t at = 0;
    uint32_t where = rtnetlink_asked.tc.tcm_parent;
    switch (rtnetlink_asked.type) {
    case RTM_GETTFILTER:
        if (filter_there && where == EGRESS)
            at = put_filter(d->buf, EGRESS, OURS_MADE, 64 + QOS_TREES_MAX - 2);
        if (others_there && where == others_at)
            at += put_filter(d->buf + at, others_at, 1, 3);
        return at + put_end(d->buf + at);
    case RTM_DELTFILTER: filter_there = false; break;
    case RTM_DELQDISC: clsact_gone = true; break;
    default: break;
    }
    return put_error(d->buf, rtnetlink_asked.seq, 0);
}

/* clsact goes with the last filter if it was made for ours, and nobody else has one there. */
static void
test_clsact_goes_with_its_last_filter(void **state)
{
    struct netlink nl;
    assert_int_equal(netlink_open(&nl), 0);
    for (unsigned others = 0; others < 3; others++) {
        others_at = others == 1 ? EGRESS : INGRESS;
        others_there = others;
        filter_there = true;
        clsact_gone = false;
        begin(filters);
        netlink_steer_del(&nl, 7, 2);
        assert_false(filter_there);
        assert_int_equal(clsact_gone, !others);
    }
    netlink_close(&nl);
}

/* How the kernel answers the making of clsact and of the filter, and which one it is. */
static int clsact_errnum, filter_errnum;
static const char *release = "6.1.0";

FOR_ALL int uname(struct utsname *name);

int
uname(struct utsname *name)
{
    memset(name, 0, sizeof *name);
    snprintf(name->release, sizeof name->release, "%s", release);
    return 0;
}

static size_t
steering(unsigned n, struct rtnetlink_datagram *d)
{
    bool tree = strcmp(rtnetlink_asked.kind, "htb") == 0;
    switch (rtnetlink_asked.type) {
    case RTM_GETTFILTER: return put_end(d->buf);
    case RTM_NEWQDISC: return put_error(d->buf, rtnetlink_asked.seq, tree ? 0 : clsact_errnum);
    case RTM_NEWTFILTER:
        filter_there = !filter_errnum;
        return put_error(d->buf, rtnetlink_asked.seq, filter_errnum);
    case RTM_DELQDISC: clsact_gone = true; break;
    default: break;
    }
    return put_error(d->buf, rtnetlink_asked.seq, 0);
}

/* A tree below a transmit queue, whose packets are led there first: whatever is refused, nothing is left of it but
 * what others had. */
static void
test_what_leads_to_a_tree(void **state)
{
    static const struct {
        const char *release;
        int clsact, filter, err;
        bool there, gone;
    } cases[] = {
        {"6.1.0", 0, 0, 0, true, false},
        {"5.19.0", EEXIST, 0, 0, true, false},
        {"6.1.0", 0, ENOENT, QOS_ERR(OFPSFC_UNSUPPORTED), false, true},
        {"6.1.0", EEXIST, ENOENT, QOS_ERR(OFPSFC_UNSUPPORTED), false, false},
        {"6.1.0", EOPNOTSUPP, 0, QOS_ERR(OFPSFC_UNSUPPORTED), false, false},
        {"6.1.0", 0, ENOBUFS, QOS_ERR(OFPSFC_KERNEL), false, true},
        {"5.18.19", 0, 0, QOS_ERR(OFPSFC_UNSUPPORTED), false, false},
    };
    struct qos_op op = {.kind = QOS_OP_QDISC_ADD,
                        .ifindex = 7,
                        .handle = QOS_HANDLE_BAND(2),
                        .parent = QOS_HANDLE_TX_QUEUES | 2,
                        .sched = qos_sched_by_name("htb")};
    struct qos_kernel *k;
    qos_put(&op.values, QOS_DEFAULT, QOS_CLASS_DEFAULT);
    assert_int_equal(qos_netlink_new(&k), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct qos_error e = {0};
        uint8_t done = QOS_OP_UNTRIED;
        release = cases[i].release;
        clsact_errnum = cases[i].clsact;
        filter_errnum = cases[i].filter;
        filter_there = clsact_gone = false;
        begin(steering);
        assert_int_equal(k->ops->apply(k, &op, 1, &done, &e), cases[i].err);
        assert_int_equal(done, cases[i].err ? QOS_OP_REFUSED : QOS_OP_DONE);
        assert_int_equal(filter_there, cases[i].there);
        assert_int_equal(clsact_gone, cases[i].gone);
        assert_int_equal(cases[i].err == QOS_ERR(OFPSFC_UNSUPPORTED),
                         strstr(e.text, "5.19") != NULL);
    }
    qos_netlink_free(k);
}

static size_t
hardware_refuses(unsigned n, struct rtnetlink_datagram *d)
{
    return put_error(d->buf, rtnetlink_asked.seq, EOPNOTSUPP);
}

static void
test_hardware_without_the_scheduler(void **state)
{
    struct qos_op op = {.kind = QOS_OP_QDISC_ADD,
                        .ifindex = 7,
                        .handle = QOS_HANDLE_TREE,
                        .parent = QOS_PARENT_ROOT,
                        .sched = qos_sched_by_name("htb")};
    struct qos_kernel *k;
    struct qos_error e = {0};
    uint8_t done;
    qos_put(&op.values, QOS_DEFAULT, QOS_CLASS_DEFAULT);
    qos_put(&op.values, QOS_OFFLOAD, 1);
    assert_int_equal(qos_netlink_new(&k), 0);
    begin(hardware_refuses);
    assert_int_equal(k->ops->apply(k, &op, 1, &done, &e), QOS_ERR(OFPSFC_UNSUPPORTED));
    assert_non_null(strstr(e.text, "leave out offload=yes"));
    qos_netlink_free(k);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_text_of_a_refusal),
        cmocka_unit_test(test_refusals_of_earlier_requests),
        cmocka_unit_test(test_a_lost_answer_is_told),
        cmocka_unit_test(test_a_change_refused_half_way_is_taken_back),
        cmocka_unit_test(test_clsact_goes_with_its_last_filter),
        cmocka_unit_test(test_what_leads_to_a_tree),
        cmocka_unit_test(test_hardware_without_the_scheduler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
