/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of rtnetlink that no kernel should give: without end, without sense, to somebody else.  Each call ends,
 * and the next one is as good as new.  And refusals half way, and answers that are lost: what was there is again. */
#include "fake-rtnetlink.c"

#include "at-once.h"

#include "call.h"

#include <qos-netlink/kernel.h>
#include <qos-netlink/link.h>

#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <net/if.h>
#include <stdio.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define FOREVER 3000000 /* datagrams: whoever takes so many would take all */

enum kind {
    STALE,       /* answers to another request */
    OBJECTS,     /* of a dump, a datagram each */
    CROWDS,      /* of a dump, many in each datagram */
    NOTHING,     /* datagrams without a byte */
    SCRAPS,      /* too short for a message, behind the begin of a dump */
    INTERRUPTED, /* a dump that is over and was interrupted, each time */
    EVENTS,
    LEFT_A_BRIDGE,
    STRANGE_ERROR,
    REAL, /* a kernel that does all but one thing */
};

static enum kind kind;
static int strange;
static unsigned given, left; /* datagrams: given, to be given until EAGAIN */

static size_t
put(uint8_t *buf, uint16_t type, uint16_t flags, uint32_t seq, const void *body, size_t n)
{
    struct nlmsghdr h = {.nlmsg_len = (uint32_t)(NLMSG_HDRLEN + n),
                         .nlmsg_type = type,
                         .nlmsg_flags = flags,
                         .nlmsg_seq = seq};
    memcpy(buf, &h, sizeof h);
    memcpy(buf + NLMSG_HDRLEN, body, n);
    return NLMSG_ALIGN(h.nlmsg_len);
}

static size_t
put_object(uint8_t *buf)
{
    struct tcmsg tc = {.tcm_ifindex = 7};
    return put(buf, RTM_NEWQDISC, NLM_F_MULTI, rtnetlink_asked.seq, &tc, sizeof tc);
}

/* That one thing: messages of this type, with these flags among theirs or, if 0, with no NLM_F_CREATE. */
static struct {
    uint16_t type, flags;
    int errnum; /* 0: their answer is lost */
} hates;

/* "+KIND " and "- " for each qdisc of interface 7 made, changed and deleted, "* " for a deleted filter */
static char sent[256];
static bool steered; /* the filter of the tree below transmit queue 2 is there */

static bool
is_hated(void)
{
    bool flags = hates.flags ? (rtnetlink_asked.flags & hates.flags) == hates.flags
                             : !(rtnetlink_asked.flags & NLM_F_CREATE);
    return rtnetlink_asked.tc.tcm_ifindex == 7 && rtnetlink_asked.type == hates.type && flags;
}

/* See qos/netlink/steer.c. */
static size_t
put_steering(uint8_t *buf)
{
    struct tcmsg tc = {.tcm_ifindex = 7,
                       .tcm_parent = TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS),
                       .tcm_handle = 0xf53,
                       .tcm_info = (64 + QOS_TREES_MAX - 2) << 16};
    return put(buf, RTM_NEWTFILTER, NLM_F_MULTI, rtnetlink_asked.seq, &tc, sizeof tc);
}

static ssize_t
real_answer(uint8_t *buf)
{
    struct nlmsgerr e = {.msg = {.nlmsg_len = sizeof e.msg, .nlmsg_seq = rtnetlink_asked.seq}};
    size_t n = strlen(sent), m = 0;
    bool adds = rtnetlink_asked.type == RTM_NEWQDISC;
    if (rtnetlink_asked.tc.tcm_ifindex == 7 && (adds || rtnetlink_asked.type == RTM_DELQDISC))
        snprintf(sent + n, sizeof sent - n, "%c%s ", adds ? '+' : '-', rtnetlink_asked.kind);
    if (rtnetlink_asked.type == RTM_DELTFILTER)
        snprintf(sent + n, sizeof sent - n, "* ");
    if (rtnetlink_asked.type == RTM_GETTFILTER && steered)
        m = put_steering(buf);
    if (is_hated() && !hates.errnum) {
        errno = EAGAIN;
        return -1;
    }
    bool link = rtnetlink_asked.type == RTM_GETLINK; /* a shaper's */
    e.error = is_hated() ? -hates.errnum : link ? -ENODEV : 0;
    return (ssize_t)(m + put(buf + m, NLMSG_ERROR, 0, e.msg.nlmsg_seq, &e, sizeof e));
}

static ssize_t
rtnetlink_answer(struct rtnetlink_datagram *d)
{
    static const int zero;
    struct ifinfomsg link = {.ifi_index = 7};
    struct nlmsgerr error = {.msg.nlmsg_seq =
                                 rtnetlink_asked.seq}; /* of a request without a length */
    size_t n = 0;
    assert_true(given < FOREVER);
    given++;
    if (!left) {
        errno = EAGAIN;
        return -1;
    }
    left--;
    switch (kind) {
    case STALE: return (ssize_t)put(d->buf, NLMSG_NOOP, 0, rtnetlink_asked.seq + 1, &zero, 4);
    case OBJECTS: return (ssize_t)put_object(d->buf);
    case CROWDS:
        while (n + 64 < d->room)
            n += put_object(d->buf + n);
        return (ssize_t)n;
    case NOTHING: return 0;
    case SCRAPS: return given == 1 ? (ssize_t)put_object(d->buf) : 4;
    case INTERRUPTED:
        return (ssize_t)put(d->buf, NLMSG_DONE, NLM_F_MULTI | NLM_F_DUMP_INTR, rtnetlink_asked.seq,
                            &zero, 4);
    case EVENTS: return (ssize_t)put(d->buf, RTM_NEWLINK, 0, 0, &link, sizeof link);
    case STRANGE_ERROR:
        error.error = strange;
        return (ssize_t)put(d->buf, NLMSG_ERROR, 0x200, error.msg.nlmsg_seq, &error, sizeof error);
    case REAL: return real_answer(d->buf);
    case LEFT_A_BRIDGE:
        link.ifi_family = AF_BRIDGE;
        return (ssize_t)put(d->buf, RTM_DELLINK, 0, 0, &link, sizeof link);
    }
    return -1;
}

static void
begin(enum kind k, unsigned n)
{
    kind = k;
    given = 0;
    left = n;
}

static void
on_object(void *ctx, const struct qos_object *o)
{
    ++*(unsigned *)ctx;
}

static void
test_dumps_end(void **state)
{
    static const enum kind kinds[] = {STALE, OBJECTS, CROWDS, NOTHING, SCRAPS, INTERRUPTED};
    struct qos_kernel *k;
    struct qos_error e;
    unsigned n = 0;
    assert_int_equal(qos_netlink_new(&k), 0);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        begin(kinds[i], UINT32_MAX);
        e = (struct qos_error){0};
        assert_int_not_equal(k->ops->each_qdisc(k, 7, on_object, &n, &e), 0);
        assert_true(e.text[0]);
    }
    assert_true(n);
    qos_netlink_free(k);
}

static void
test_single_requests_end(void **state)
{
    static const enum kind kinds[] = {STALE, OBJECTS, NOTHING, SCRAPS};
    struct qos_kernel *k;
    struct qos_object o;
    struct qos_error e = {0};
    assert_int_equal(qos_netlink_new(&k), 0);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        begin(kinds[i], UINT32_MAX);
        assert_int_not_equal(k->ops->get_class(k, 7, 1, &o, &e), 0);
    }
    qos_netlink_free(k);
}

/* Numbers that are no errno are a failure all the same. */
static void
test_strange_errors(void **state)
{
    static const int numbers[] = {1, 5000, -5000, INT32_MAX, INT32_MIN};
    struct qos_kernel *k;
    struct qos_object o;
    assert_int_equal(qos_netlink_new(&k), 0);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct qos_error e = {0};
        strange = numbers[i];
        begin(STRANGE_ERROR, 1);
        assert_int_not_equal(k->ops->get_class(k, 7, 1, &o, &e), 0);
        assert_int_equal(e.errnum, EBADMSG);
    }
    qos_netlink_free(k);
}

static void
test_many_at_once_end(void **state)
{
    struct netlink nl;
    struct netlink_refusal why = {0};
    struct tcmsg tc = {0};
    uint8_t done[3];
    assert_int_equal(netlink_open(&nl), 0);
    for (enum kind k = STALE; k <= SCRAPS; k++) {
        struct nl_msg *msgs[3];
        for (unsigned i = 0; i < 3; i++)
            msgs[i] = netlink_tc_message(RTM_DELQDISC, 0, &tc);
        begin(k, UINT32_MAX);
        assert_int_not_equal(netlink_call_many(&nl, msgs, 3, done, &why), 0);
        assert_int_not_equal(why.errnum, 0);
    }
    netlink_close(&nl);
}

static unsigned events;
static struct qos_link_event last;

static void
on_event(void *ctx, const struct qos_link_event *e)
{
    events++;
    last = *e;
}

/* More events than can be taken: the caller gets a turn between some of them. */
static void
test_events_without_end(void **state)
{
    struct qos_link_monitor *w;
    events = 0;
    assert_int_equal(qos_link_monitor_open(&w, on_event, NULL), 0);
    begin(EVENTS, UINT32_MAX);
    assert_int_equal(qos_link_monitor_read(w), 0);
    assert_int_equal(events, given);
    assert_in_range(given, 1, 10000);
    left = 3; /* the rest comes with the next calls */
    assert_int_equal(qos_link_monitor_read(w), 0);
    qos_link_monitor_close(w);
}

/* The kernel says so with RTM_DELLINK, but the interface is there. */
static void
test_leaving_a_bridge_is_no_end(void **state)
{
    struct qos_link_monitor *w;
    assert_int_equal(qos_link_monitor_open(&w, on_event, NULL), 0);
    begin(LEFT_A_BRIDGE, 1);
    last = (struct qos_link_event){0};
    assert_int_equal(qos_link_monitor_read(w), 0);
    assert_int_equal(last.kind, QOS_LINK_CHANGED);
    assert_int_equal(last.ifindex, 7);
    qos_link_monitor_close(w);
}

/* An event whose name is missing is one of its interface all the same. */
static void
test_an_event_without_a_name(void **state)
{
    struct qos_link_monitor *w;
    assert_int_equal(qos_link_monitor_open(&w, on_event, NULL), 0);
    begin(EVENTS, 1);
    last = (struct qos_link_event){0};
    assert_int_equal(qos_link_monitor_read(w), 0);
    assert_int_equal(last.kind, QOS_LINK_CHANGED);
    assert_int_equal(last.ifindex, 7);
    assert_string_equal(last.name, "");
    qos_link_monitor_close(w);
}

/* ------------------------------------------------------------------ half done */

#define TX_QUEUE_2 (QOS_HANDLE_TX_QUEUES | 2)
#define GRED       "dp1=10kb/30kb/60kb/2%"

static const unsigned kinds_that_add[] = {QOS_OP_QDISC_ADD, QOS_OP_QDISC_REPLACE};

static void
hate(uint16_t type, uint16_t flags, int errnum)
{
    begin(REAL, UINT32_MAX);
    hates.type = type;
    hates.flags = flags;
    hates.errnum = errnum;
    sent[0] = '\0';
}

static void
request(struct qos_request *r, const char *sched, const char *args)
{
    char why[512] = "";
    if (qos_request_parse(r, qos_sched_by_name(sched), args, why, sizeof why))
        fail_msg("%s", why);
}

/* How it went. */
static enum qos_op_state
apply_one(const char *sched, unsigned op_kind, uint32_t parent, uint32_t handle, const char *args)
{
    struct qos_kernel *k;
    struct qos_request r;
    uint8_t state = QOS_OP_UNTRIED;
    struct qos_error e = {0};
    request(&r, sched, args);
    struct qos_op op = {.kind = (uint8_t)op_kind,
                        .ifindex = 7,
                        .handle = handle,
                        .parent = parent,
                        .sched = r.sched,
                        .values = r.values};
    if (qos_handle_in_tree(handle))
        qos_put(&op.values, QOS_DEFAULT, QOS_CLASS_DEFAULT);
    assert_int_equal(qos_netlink_new(&k), 0);
    assert_int_not_equal(k->ops->apply(k, &op, 1, &state, &e), 0);
    qos_netlink_free(k);
    return (enum qos_op_state)state;
}

/* Below a transmit queue "deleting" would put a pfifo in the place of what is there. */
static void
test_what_is_refused_at_once_is_not_taken_back(void **state)
{
    for (size_t i = 0; i < 2; i++) {
        hate(RTM_NEWQDISC, NLM_F_CREATE, ENOENT);
        assert_int_equal(apply_one("gred", kinds_that_add[i], TX_QUEUE_2, QOS_LEAF_HANDLE(2),
                                   "cmd=add,port=2," GRED),
                         QOS_OP_REFUSED);
        assert_string_equal(sent, "+gred ");
    }
}

/* Of port 2's requests: what they send after `before`. */
static void
refuse(const char *before, uint16_t type, uint16_t flags, int errnum, const char *sched,
       const char *args)
{
    const struct qos_port port = {
        .port_no = 2, .ifindex = 7, .name = "eth", .mtu = 1500, .tx_queues = 1, .txqueuelen = 1000};
    struct qos_kernel *k;
    struct qos_request r;
    struct qos *q;
    struct qos_error e = {0};
    hate(0, 0, 0);
    assert_int_equal(qos_netlink_new(&k), 0);
    assert_int_equal(qos_new(&q, k, NULL), 0);
    assert_int_equal(qos_port_add(q, &port), 0);
    if (before) {
        request(&r, before, "cmd=add,port=2,limit=50");
        assert_int_equal(qos_execute(q, &r, &e), 0);
    }
    hate(type, flags, errnum);
    request(&r, sched, args);
    assert_int_not_equal(qos_execute(q, &r, &e), 0);
    qos_free(q);
    qos_netlink_free(k);
}

static void
test_a_lost_answer_is_not_a_refusal(void **state)
{
    static const int numbers[] = {0, ENOENT};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        enum qos_op_state wanted = numbers[i] == ENOENT ? QOS_OP_REFUSED : QOS_OP_HALF;
        for (size_t k = 0; k < 2; k++) {
            hate(RTM_NEWQDISC, NLM_F_CREATE, numbers[i]);
            assert_int_equal(apply_one("prio", kinds_that_add[k], QOS_PARENT_ROOT, QOS_HANDLE_TREE,
                                       "cmd=add,port=2"),
                             wanted);
            hate(RTM_NEWQDISC, NLM_F_CREATE, numbers[i]);
            assert_int_equal(apply_one("gred", kinds_that_add[k], TX_QUEUE_2, QOS_LEAF_HANDLE(2),
                                       "cmd=add,port=2," GRED),
                             wanted);
            assert_string_equal(sent, "+gred ");
        }
        refuse(NULL, RTM_NEWQDISC, NLM_F_CREATE, numbers[i], "prio", "cmd=add,port=2");
        assert_string_equal(sent, wanted == QOS_OP_HALF ? "+prio - " : "+prio ");
        refuse(NULL, RTM_NEWQDISC, NLM_F_CREATE, numbers[i], "gred", "cmd=add,port=2," GRED);
        assert_string_equal(sent, wanted == QOS_OP_HALF ? "+gred - " : "+gred ");
    }
    refuse(NULL, RTM_NEWQDISC, NLM_F_CREATE, ENOBUFS, "prio", "cmd=add,port=2");
    assert_string_equal(sent, "+prio - ");
}

static void
test_what_was_replaced_half_way_comes_back(void **state)
{
    refuse("pfifo", RTM_NEWTFILTER, NLM_F_CREATE, ENOENT, "drr", "cmd=replace,port=2,object=qdisc");
    assert_string_equal(sent, "+drr - +pfifo ");
    refuse("pfifo", RTM_NEWQDISC, 0, EINVAL, "gred", "cmd=replace,port=2," GRED);
    assert_string_equal(sent, "+gred +gred - +pfifo ");
    refuse("pfifo", RTM_NEWQDISC, NLM_F_CREATE, ENOENT, "drr", "cmd=replace,port=2,object=qdisc");
    assert_string_equal(sent, "+drr ");
}

/* The tree below the transmit queue is there already, and so are its packets. */
static void
test_steering_stays_with_a_tree_that_stays(void **state)
{
    steered = true;
    for (size_t i = 0; i < 2; i++) {
        hate(RTM_NEWQDISC, NLM_F_CREATE, EEXIST);
        assert_int_equal(apply_one("htb", kinds_that_add[i], TX_QUEUE_2, QOS_HANDLE_BAND(2),
                                   "cmd=add,port=2,object=qdisc"),
                         QOS_OP_REFUSED);
        assert_string_equal(sent, "+htb ");
    }
    steered = false;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strange_errors),
        cmocka_unit_test(test_dumps_end),
        cmocka_unit_test(test_single_requests_end),
        cmocka_unit_test(test_many_at_once_end),
        cmocka_unit_test(test_events_without_end),
        cmocka_unit_test(test_an_event_without_a_name),
        cmocka_unit_test(test_leaving_a_bridge_is_no_end),
        cmocka_unit_test(test_what_is_refused_at_once_is_not_taken_back),
        cmocka_unit_test(test_a_lost_answer_is_not_a_refusal),
        cmocka_unit_test(test_what_was_replaced_half_way_comes_back),
        cmocka_unit_test(test_steering_stays_with_a_tree_that_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
