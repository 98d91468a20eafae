/* SPDX-License-Identifier: Apache-2.0 */
/* The kind of a BPF program's qdisc: in messages to the kernel, and from what it reports. */
#include "message.h"

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

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written),
        cmocka_unit_test(test_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
