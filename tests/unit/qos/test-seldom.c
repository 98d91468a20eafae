/* SPDX-License-Identifier: Apache-2.0 */
/* What rtnetlink and ethtool answer seldom: refusals with and without the request, of others, late or never; filters
 * of others beside ours; drivers that know little. */
#include "fake-rtnetlink.c"

#include "away.h"
#include "call.h"
#include "ethtool.h"
#include "steer.h"

#include <oflib/openflow.h>
#include <qos-netlink/away.h>
#include <qos-netlink/kernel.h>
#include <qos-netlink/link.h>
#include <qos/model/model.h>

#include <linux/ethtool.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <net/if.h>
#include <stdio.h>
#include <sys/utsname.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

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
    const struct qos_netlink_away away = {on_leave, on_back, on_silent, NULL};
    struct netlink nl;
    struct netlink_refusal why;
    qos_netlink_set_away(&away);
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
    qos_netlink_set_away(NULL);
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

/* ------------------------------------------------------------------ interfaces */

static size_t
an_object_among_addresses(unsigned n, struct rtnetlink_datagram *d)
{
    const struct tcmsg tc = {.tcm_ifindex = 3};
    struct ifaddrmsg a = {.ifa_family = AF_INET, .ifa_index = 5};
    size_t at = put(d->buf, RTM_NEWQDISC, NLM_F_MULTI, &tc, sizeof tc);
    at += put(d->buf + at, RTM_NEWADDR, NLM_F_MULTI, &a, sizeof a);
    a.ifa_family = AF_INET6;
    a.ifa_scope = RT_SCOPE_LINK;
    at += put(d->buf + at, RTM_NEWADDR, NLM_F_MULTI, &a, sizeof a);
    at += put(d->buf + at, RTM_NEWADDR, NLM_F_MULTI, &a, 2);
    return at + put_end(d->buf + at);
}

static void
sum_up(void *ctx, int ifindex)
{
    *(int *)ctx += ifindex;
}

static void
test_addresses_alone_count(void **state)
{
    struct qos_link *l;
    int sum = 0;
    assert_int_equal(qos_link_open(&l), 0);
    begin(an_object_among_addresses);
    assert_int_equal(qos_link_addresses(l, sum_up, &sum), 0);
    assert_int_equal(sum, 5);
    assert_int_equal(qos_link_set_up(l, 0, true), -ENODEV);
    qos_link_close(l);
}

/* The interfaces with the names of port 7's shaper. */
static struct named {
    int ifindex, peer;
    const char *kind;
} named[2];

static size_t
put_named(uint8_t *buf, const struct named *is)
{
    struct {
        struct ifinfomsg link;
        struct nlattr name_head;
        char name[8];
        struct nlattr peer_head;
        int32_t peer;
        struct nlattr info_head, kind_head;
        char kind[8];
    } m = {.link = {.ifi_index = is->ifindex},
           .name_head = {NLA_HDRLEN + sizeof m.name, IFLA_IFNAME},
           .name = "of-7",
           .peer_head = {NLA_HDRLEN + sizeof m.peer, IFLA_LINK},
           .peer = is->peer,
           .info_head = {2 * NLA_HDRLEN + sizeof m.kind, IFLA_LINKINFO},
           .kind_head = {NLA_HDRLEN + sizeof m.kind, IFLA_INFO_KIND}};
    snprintf(m.kind, sizeof m.kind, "%s", is->kind);
    return put(buf, RTM_NEWLINK, 0, &m, sizeof m);
}

static size_t
named_interfaces(unsigned n, struct rtnetlink_datagram *d)
{
    const struct named *is = &named[n % 2];
    return is->ifindex ? put_named(d->buf, is) : put_error(d->buf, rtnetlink_asked.seq, ENODEV);
}

/* A shaper is two interfaces that lead to each other; whatever else has their names is none. */
static void
test_what_is_no_shaper(void **state)
{
    static const struct {
        struct named is[2];
        int result;
    } cases[] = {
        {{{20, 21, "veth"}, {21, 20, "veth"}}, 0},
        {{{20, 21, "veth"}, {21, 9, "veth"}}, -ENOENT},
        {{{20, 9, "veth"}, {21, 20, "veth"}}, -ENOENT},
        {{{20, 0, "dummy"}, {21, 20, "veth"}}, -ENOENT},
        {{{20, 21, "veth"}, {0, 0, NULL}}, -ENOENT},
    };
    struct qos_kernel *k;
    assert_int_equal(qos_netlink_new(&k), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct qos_shaper s = {0};
        memcpy(named, cases[i].is, sizeof named);
        begin(named_interfaces);
        assert_int_equal(k->ops->shaper_find(k, 7, &s), cases[i].result);
        assert_int_equal(s.tx_ifindex, cases[i].result ? 0 : 20);
    }
    qos_netlink_free(k);
}

static unsigned events;

static void
on_event(void *ctx, const struct qos_link_event *e)
{
    events++;
}

static size_t
not_the_kernels(unsigned n, struct rtnetlink_datagram *d)
{
    const struct ifinfomsg link = {.ifi_index = 7};
    d->from = 99;
    return n ? 0 : put(d->buf, RTM_DELLINK, 0, &link, sizeof link);
}

static size_t
too_short(unsigned n, struct rtnetlink_datagram *d)
{
    static const int zero;
    return n ? 0 : put(d->buf, RTM_NEWQDISC, 0, &zero, sizeof zero);
}

static void
test_events_that_are_none(void **state)
{
    struct qos_link_watch *w;
    assert_int_equal(qos_link_watch_open(&w, on_event, NULL), 0);
    events = 0;
    begin(not_the_kernels);
    assert_int_equal(qos_link_watch_read(w), 0);
    assert_int_equal(events, 0);
    begin(too_short); /* whatever it was, nobody takes it for interface 0's queues */
    assert_int_equal(qos_link_watch_read(w), 0);
    qos_link_watch_close(w);
    qos_link_watch_close(NULL);
}

/* ------------------------------------------------------------------ ethtool */

static struct ethtool_link_settings driver;
static int words; /* of the kernel's masks; 0: it does not say */

FOR_ALL int ioctl(int fd, unsigned long request, ...);

int
ioctl(int fd, unsigned long request, ...)
{
    va_list ap;
    va_start(ap, request);
    struct ifreq *ifr = va_arg(ap, struct ifreq *);
    va_end(ap);
    uint32_t cmd;
    memcpy(&cmd, ifr->ifr_data, sizeof cmd);
    struct ethtool_link_settings *s = (void *)ifr->ifr_data;
    if (cmd != ETHTOOL_GLINKSETTINGS)
        return -1;
    if (s->link_mode_masks_nwords == 0) {
        s->link_mode_masks_nwords = (int8_t)-words;
        return 0;
    }
    uint32_t supported = UINT32_C(1) << ETHTOOL_LINK_MODE_1000baseT_Full_BIT |
                         UINT32_C(1) << ETHTOOL_LINK_MODE_Autoneg_BIT;
    *s = driver;
    s->link_mode_masks_nwords = (int8_t)words;
    memcpy((uint8_t *)s + sizeof *s, &supported, sizeof supported);
    return 0;
}

static void
test_what_drivers_say(void **state)
{
    struct qos_link_info info = {.name = "eth"};
    netlink_ethtool_get(-1, &info); /* nothing at all */
    assert_true(!info.speed && !info.supported && !info.curr);
    words = 3;
    driver = (struct ethtool_link_settings){.speed = (uint32_t)SPEED_UNKNOWN};
    netlink_ethtool_get(-1, &info);
    assert_int_equal(info.supported, OFPPF_1GB_FD | OFPPF_AUTONEG);
    assert_int_equal(info.advertised | info.peer, 0);
    assert_true(!info.speed && !info.curr);
    driver =
        (struct ethtool_link_settings){.speed = 10000, .duplex = DUPLEX_FULL, .port = PORT_FIBRE};
    netlink_ethtool_get(-1, &info);
    assert_true(info.speed == 10000000000 && info.full_duplex);
    assert_int_equal(info.curr, OFPPF_10GB_FD | OFPPF_FIBER);
    driver = (struct ethtool_link_settings){
        .speed = 100, .duplex = DUPLEX_HALF, .port = PORT_TP, .autoneg = AUTONEG_ENABLE};
    netlink_ethtool_get(-1, &info);
    assert_false(info.full_duplex);
    assert_int_equal(info.curr, OFPPF_100MB_HD | OFPPF_COPPER | OFPPF_AUTONEG);
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
        cmocka_unit_test(test_addresses_alone_count),
        cmocka_unit_test(test_what_is_no_shaper),
        cmocka_unit_test(test_events_that_are_none),
        cmocka_unit_test(test_what_drivers_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
