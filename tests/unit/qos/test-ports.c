/* SPDX-License-Identifier: Apache-2.0 */
/* Ports that come, go and return when nobody expects it, and what is asked about them then. */
#include "fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BACK 30 /* the interface that takes port 2's place */

static const struct qos_port returned = {2, BACK, "eth", 1500, 1000, 100000000, 8, false};

static bool
stop_at_once(void *ctx, const struct qos_queue *queue)
{
    ++*(unsigned *)ctx;
    return false;
}

static bool
any_entry(void *ctx, const struct qos_entry *e)
{
    return true;
}

static void
ports_are_in_order(void **state)
{
    struct qos_port port = {.port_no = 3, .ifindex = 13, .name = "eth", .tx_queues = 1};
    assert_int_equal(qos_port_add(qos, &port), 0);
    assert_int_equal(qos_port_add(qos, &port), -EEXIST);
    OK("htb", "cmd=add,port=3,class=1,rate=1mbit");
    OK("htb", "cmd=add,port=1,class=1,rate=1mbit");
    char *text = model_text(), *first = strstr(text, "port=1,"), *last = strstr(text, "port=3,");
    assert_true(first && last && first < last);
    free(text);
}

static void
unknown_ports(void **state)
{
    struct qos_port port = {.port_no = 9, .ifindex = 19, .name = "eth"};
    assert_int_equal(port_update(qos, &port, &err), -ENOENT);
    assert_int_equal(qos_port_sync(qos, 9, &err), -ENOENT);
    assert_int_equal(qos_queue_each(qos, 9, true, stop_at_once, NULL), -ENOENT);
    assert_int_equal(qos_port_remove(qos, 9, true, &err), 0);
}

/* Who dumps in parts sees by it that something has changed in between. */
static void
the_stamp_tells_of_changes(void **state)
{
    uint64_t before = qos_stamp(qos);
    OK("htb", "cmd=add,port=2,class=1,rate=1mbit");
    assert_true(qos_stamp(qos) > before);
    before = qos_stamp(qos);
    assert_int_equal(qos_port_absent(qos, 2), 0);
    assert_true(qos_stamp(qos) > before);
}

/* The switch ends and leaves its queues; the packet side forgets them. */
static void
removed_without_clearing(void **state)
{
    OK("mq", "cmd=add,port=2");
    OK("htb", "cmd=add,port=2,class=100,rate=5mbit,parent=2");
    OK("htb", "cmd=add,port=2,class=10,rate=5mbit,direction=in");
    size_t made = kernel.n;
    assert_int_equal(qos_port_remove(qos, 2, false, &err), 0);
    assert_int_equal(kernel.n, made);
    assert_true(kernel.shaper[IF2]);
    assert_int_equal(present[100] + present[3] + present_in[10] + default_class, 0);
    assert_false(shaped);
}

/* The interface is another one, and nobody told that the first had gone. */
static void
back_without_having_gone(void **state)
{
    OK("mq", "cmd=add,port=2");
    OK("htb", "cmd=add,port=2,class=100,rate=5mbit,parent=2");
    assert_int_equal(port_back(qos, &returned, &err), 0);
    assert_true(present[100] && present[3]);
    assert_non_null(fake_class_of(&kernel, BACK, QOS_HANDLE_BAND(2) | 100));
}

/* Queues that can't come back are forgotten as a whole, those below transmit queues too. */
static void
back_on_somebody_elses_root(void **state)
{
    OK("mq", "cmd=add,port=2");
    OK("htb", "cmd=add,port=2,class=100,rate=5mbit,parent=2");
    fake_forget(&kernel, IF2);
    assert_int_equal(qos_port_absent(qos, 2), 0);
    fake_foreign_root(&kernel, BACK, 0x80010000, "pfifo");
    assert_int_equal(port_back(qos, &returned, &err), QOS_ERR(OFPSFC_BUSY));
    assert_int_equal(queue_count(qos, 2) + present[100] + present[3], 0);
    assert_int_equal(kernel.n, 1);
}

static void
an_mtu_for_later(void **state)
{
    struct qos_port port = {2, IF2, "eth", 9000, 50, 100000000, 8, false};
    assert_int_equal(port_update(qos, &port, &err), 0);
    OK("bfifo", "cmd=add,port=2");
    assert_int_equal(fake_qdisc(&kernel, IF2, QOS_PARENT_ROOT)->values.v[QOS_LIMIT], 50 * 9000);
}

static void
counters(void **state)
{
    struct qos_queue queue;
    unsigned n = 0;
    OK("mq", "cmd=add,port=2");
    assert_int_equal(qos_queue_each(qos, 2, true, stop_at_once, &n), 0);
    assert_int_equal(n, 1);
    assert_int_equal(qos_queue_get(qos, 2, 3, true, &queue), 0);
    OK("none", "port=2");
    OK("htb", "cmd=add,port=2,class=10,rate=1mbit");
    fake_forget(&kernel, IF2); /* the kernel has no answer: neither have we */
    assert_int_not_equal(qos_queue_get(qos, 2, 10, true, &queue), 0);
    assert_int_equal(qos_dump(qos, 2, 10, any_entry, NULL, &err), QOS_ERR(OFPSFC_KERNEL));
    assert_int_equal(qos_queue_get(qos, 2, 10, false, &queue), 0);
    assert_int_equal(qos_port_absent(qos, 2), 0);
    assert_int_equal(qos_queue_get(qos, 2, 10, true, &queue), 0);
    assert_int_equal(queue.counters.packets, 0);
    assert_int_equal(queue.created, UINT64_MAX);
}

/* The root of a scheduler without inner classes is no class. */
static void
no_root_class(void **state)
{
    OK("prio", "cmd=add,port=2");
    assert_int_equal(qos_dump(qos, 2, QOS_CLASS_ROOT, any_entry, NULL, &err),
                     QOS_ERR(OFPSFC_NOT_FOUND));
    assert_int_equal(qos_dump(qos, 2, 0, any_entry, NULL, &err), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ports_are_in_order),
        TEST(unknown_ports),
        TEST(the_stamp_tells_of_changes),
        TEST(removed_without_clearing),
        TEST(back_without_having_gone),
        TEST(back_on_somebody_elses_root),
        TEST(an_mtu_for_later),
        TEST(counters),
        TEST(no_root_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
