/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to the kernel: the kind of a BPF program's qdisc, also from what it reports; what is below a
 * transmit queue; GRED's many. */
#include "message.h"

#include <qos/sched/precedence.h>

#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define IN_CLASS 0x1000au /* queue 10 */

static void
name(struct qos_values *v, const char *text)
{
    qos_name_put(&v->v[QOS_NAME], text, strlen(text));
    for (unsigned i = 0; i < QOS_NAME_SLOTS; i++)
        qos_slots_add(&v->set, QOS_NAME + i);
}

/* The message's kind into buf; "": it has none. */
static void
kind_of(const struct qos_op *op, char *buf, size_t n)
{
    struct nl_msg *msg = netlink_op_message(op);
    assert_non_null(msg);
    struct nlattr *kind = nlmsg_find_attr(nlmsg_hdr(msg), sizeof(struct tcmsg), TCA_KIND);
    *buf = '\0';
    if (kind)
        nla_strlcpy(buf, kind, n);
    assert_null(nlmsg_find_attr(nlmsg_hdr(msg), sizeof(struct tcmsg), TCA_OPTIONS));
    nlmsg_free(msg);
}

static void
test_written(void **state)
{
    char kind[32];
    struct qos_op op = {.kind = QOS_OP_QDISC_ADD,
                        .ifindex = 1,
                        .handle = QOS_LEAF_HANDLE(10),
                        .parent = IN_CLASS,
                        .sched = qos_sched_by_name("bpf")};
    assert_null(netlink_op_message(&op)); /* without a name there is no kind */
    name(&op.values, "fifteen_letters");
    kind_of(&op, kind, sizeof kind);
    assert_string_equal(kind, "fifteen_letters");
    op.kind = QOS_OP_QDISC_REPLACE;
    kind_of(&op, kind, sizeof kind);
    assert_string_equal(kind, "fifteen_letters");
    op.kind = QOS_OP_QDISC_DEL;
    kind_of(&op, kind, sizeof kind);
    assert_string_equal(kind, "");
    op.handle = 0; /* found by its parent: only one of this kind goes */
    kind_of(&op, kind, sizeof kind);
    assert_string_equal(kind, "fifteen_letters");
}

/* What is reported with this kind, handle and parent: the scheduler's name, NULL. */
static const char *
read_as(const char *kind, uint32_t handle, uint32_t parent, bool class)
{
    char buf[QOS_NAME_ROOM];
    struct qos_object o = {.is_class = class, .handle = handle, .parent = parent};
    snprintf(o.kind, sizeof o.kind, "%s", kind);
    netlink_find_sched(&o);
    assert_int_equal(qos_has(&o.values, QOS_NAME), o.sched && o.sched->named);
    if (o.sched && o.sched->named)
        assert_string_equal(qos_sched_kind(o.sched, &o.values, buf), kind);
    return o.sched ? o.sched->name : NULL;
}

static void
test_read(void **state)
{
    assert_string_equal(read_as("bpf_fq", QOS_LEAF_HANDLE(10), IN_CLASS, false), "bpf");
    assert_string_equal(read_as("bpf_fq", QOS_LEAF_HANDLE_2(10), IN_CLASS, false), "bpf");
    assert_string_equal(read_as("bpf_fq", QOS_LEAF_HANDLE(2), QOS_HANDLE_TX_QUEUES | 2, false),
                        "bpf");
    assert_string_equal(read_as("bpf_fq", QOS_LEAF_HANDLE(20), 0x20014, false), "bpf"); /* a tree */
    assert_string_equal(read_as("bpf_fq", 0x80010000, 0x17ff0, false), "bpf");
    assert_string_equal(read_as("bpf_fq", QOS_HANDLE_ROOT, QOS_PARENT_ROOT, false), "bpf");
    assert_string_equal(read_as("bpf_fq", QOS_HANDLE_ROOT_2, QOS_PARENT_ROOT, false), "bpf");
    assert_string_equal(read_as("bpf_fq", QOS_HANDLE_ROOT, 0x20005, false), "bpf"); /* a place */
    assert_string_equal(read_as("fq", 0x50000, IN_CLASS, false), "fq");
    assert_null(read_as("bpf_fq", 0x50000, IN_CLASS, false));
    assert_null(read_as("bpf_fq", QOS_LEAF_HANDLE(20), 0x100014, false));
    assert_null(read_as("bpf_fq", 0, IN_CLASS, false));
    assert_null(read_as("bpf_fq", 0, 0x17ff0, false));
    assert_null(read_as("bpf_fq", QOS_LEAF_HANDLE(11), IN_CLASS, false));
    assert_null(read_as("bpf_fq", 0x80010000, QOS_PARENT_ROOT, false));
    assert_null(read_as("bpf_fq", QOS_LEAF_HANDLE(10), IN_CLASS, true));
    assert_null(read_as("bpf", QOS_LEAF_HANDLE(10), IN_CLASS, false));
    assert_null(read_as("hhf", QOS_LEAF_HANDLE(10), IN_CLASS, false));
    assert_null(read_as("noqueue", QOS_HANDLE_ROOT, QOS_PARENT_ROOT, false));
    assert_null(read_as("", QOS_HANDLE_ROOT, QOS_PARENT_ROOT, false));
}

/* ------------------------------------------------------- below a transmit queue */

#define IN_TX_QUEUE   (QOS_HANDLE_TX_QUEUES | 2)
#define OUR_STAND_IN  0xc0020000u
#define PUT_IN_PLACE  (NLM_F_CREATE | NLM_F_REPLACE | NLM_F_EXCL)
#define KIND_OF_FLAGS (PUT_IN_PLACE | NLM_F_APPEND)

/* The message has this type, these flags, handle and kind; the caller frees it. */
static struct nl_msg *
check_message(const struct qos_op *op, int type, int flags, uint32_t handle, const char *want)
{
    struct nl_msg *msg = netlink_op_message(op);
    assert_non_null(msg);
    struct nlmsghdr *h = nlmsg_hdr(msg);
    const struct tcmsg *tc = nlmsg_data(h);
    assert_int_equal(h->nlmsg_type, type);
    assert_int_equal(h->nlmsg_flags & KIND_OF_FLAGS, flags);
    assert_int_equal(tc->tcm_ifindex, op->ifindex);
    assert_int_equal(tc->tcm_parent, op->parent);
    assert_int_equal(tc->tcm_handle, handle);
    struct nlattr *kind = nlmsg_find_attr(h, sizeof *tc, TCA_KIND);
    if (want)
        assert_string_equal(nla_get_string(kind), want);
    else
        assert_null(kind);
    return msg;
}

/* There is always a qdisc: one that is added takes its place, and a stand-in that of a deleted one. */
static void
test_tx_queue(void **state)
{
    struct qos_op op = {.kind = QOS_OP_QDISC_ADD,
                        .ifindex = 7,
                        .handle = QOS_LEAF_HANDLE(2),
                        .parent = IN_TX_QUEUE,
                        .sched = qos_sched_by_name("bfifo")};
    qos_put(&op.values, QOS_LIMIT, 9000);
    struct nl_msg *msg = check_message(&op, RTM_NEWQDISC, PUT_IN_PLACE, op.handle, "bfifo");
    assert_non_null(nlmsg_find_attr(nlmsg_hdr(msg), sizeof(struct tcmsg), TCA_OPTIONS));
    nlmsg_free(msg);
    op.kind = QOS_OP_QDISC_CHANGE;
    nlmsg_free(check_message(&op, RTM_NEWQDISC, 0, op.handle, "bfifo"));
    op.kind = QOS_OP_QDISC_DEL;
    msg = check_message(&op, RTM_NEWQDISC, PUT_IN_PLACE, OUR_STAND_IN, "pfifo");
    assert_null(nlmsg_find_attr(nlmsg_hdr(msg), sizeof(struct tcmsg), TCA_OPTIONS));
    nlmsg_free(msg);
    op.parent = IN_CLASS;
    nlmsg_free(check_message(&op, RTM_DELQDISC, 0, op.handle, NULL));
}

static void
test_stand_in(void **state)
{
    struct qos_object o = {.kind = "pfifo", .handle = OUR_STAND_IN, .parent = IN_TX_QUEUE};
    assert_true(netlink_is_stand_in(&o));
    o.parent++;
    assert_false(netlink_is_stand_in(&o)); /* its handle is that of another queue */
    o = (struct qos_object){.kind = "bfifo", .handle = OUR_STAND_IN, .parent = IN_TX_QUEUE};
    assert_false(netlink_is_stand_in(&o));
    o = (struct qos_object){.kind = "pfifo", .handle = OUR_STAND_IN, .parent = 0x10002};
    assert_false(netlink_is_stand_in(&o));
}

/* ----------------------------------------------------------- more than one message */

/* The precedence that a step sets. */
static uint32_t
step_of(const struct qos_op *op, unsigned step)
{
    struct tc_gred_qopt opt = {0};
    struct nl_msg *msg = netlink_step_message(op, step);
    assert_non_null(msg);
    struct nlmsghdr *h = nlmsg_hdr(msg);
    const struct tcmsg *tc = nlmsg_data(h);
    assert_int_equal(h->nlmsg_type, RTM_NEWQDISC);
    assert_int_equal(h->nlmsg_flags & KIND_OF_FLAGS, 0);
    assert_int_equal(tc->tcm_handle, op->handle);
    assert_int_equal(tc->tcm_parent, op->parent);
    assert_string_equal(nla_get_string(nlmsg_find_attr(h, sizeof *tc, TCA_KIND)), "gred");
    struct nlattr *options = nlmsg_find_attr(h, sizeof *tc, TCA_OPTIONS);
    struct nlattr *parms = nla_find(nla_data(options), nla_len(options), TCA_GRED_PARMS);
    assert_int_equal(nla_len(parms), sizeof opt);
    memcpy(&opt, nla_data(parms), sizeof opt);
    assert_int_equal(opt.qth_min, 10000 + opt.DP);
    nlmsg_free(msg);
    return opt.DP;
}

static void
put_precedence(struct qos_values *v, unsigned dp, uint32_t min)
{
    uint64_t slots[QOS_PRECEDENCE_SLOTS] = {0};
    struct qos_precedence p = {.min = min, .max = 30000, .limit = 60000, .ppm = 20000};
    qos_precedence_put(slots, &p);
    qos_put_slots(v, QOS_PRECEDENCE_SLOT(dp), slots, QOS_PRECEDENCE_SLOTS);
}

static void
test_steps(void **state)
{
    struct qos_op op = {.kind = QOS_OP_QDISC_ADD,
                        .ifindex = 7,
                        .handle = QOS_LEAF_HANDLE(10),
                        .parent = IN_CLASS,
                        .sched = qos_sched_by_name("gred")};
    qos_put(&op.values, QOS_LIMIT, 100000);
    qos_put(&op.values, QOS_RED_BANDWIDTH, 1000000000);
    assert_int_equal(netlink_op_steps(&op), 0);
    put_precedence(&op.values, 1, 10001);
    put_precedence(&op.values, 3, 10003);
    assert_int_equal(netlink_op_steps(&op), 2);
    assert_int_equal(step_of(&op, 0), 1);
    assert_int_equal(step_of(&op, 1), 3);
    put_precedence(&op.values, 5, 0); /* no average is below it */
    assert_int_equal(netlink_op_steps(&op), 3);
    assert_null(netlink_step_message(&op, 2));
    op.kind = QOS_OP_QDISC_DEL;
    assert_int_equal(netlink_op_steps(&op), 0);
    op.kind = QOS_OP_QDISC_ADD;
    op.sched = qos_sched_by_name("red");
    assert_int_equal(netlink_op_steps(&op), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written),  cmocka_unit_test(test_read),
        cmocka_unit_test(test_tx_queue), cmocka_unit_test(test_stand_in),
        cmocka_unit_test(test_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
