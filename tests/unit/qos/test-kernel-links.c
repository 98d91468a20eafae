/* SPDX-License-Identifier: Apache-2.0 */
/* Interfaces in the real kernel: links and their events, and those in which what enters waits.  Skipped without root. */
#include "real-kernel.h"

#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

static struct qos_link_event seen[64];
static unsigned n_seen;

static void
on_event(void *ctx, const struct qos_link_event *event)
{
    if (n_seen < 64)
        seen[n_seen++] = *event;
}

static bool
saw(enum qos_link_event_kind kind, uint32_t portid)
{
    for (unsigned i = 0; i < n_seen; i++) {
        if (seen[i].kind == kind && seen[i].ifindex == link1.ifindex && seen[i].portid == portid)
            return true;
    }
    return false;
}

static void
link_and_watch(void **state)
{
    struct qos_link_monitor *w;
    struct qos_link_info info;
    struct qos_link_stats stats;
    assert_string_equal(link1.name, "d1");
    assert_int_equal(link1.mtu, 1500);
    assert_int_equal(link1.txqueuelen, 500);
    assert_int_equal(qos_link_get_by_name(links, "nosuch", &info), -ENODEV);
    assert_int_equal(qos_link_get_by_name(links, "a-name-that-is-too-long", &info), -ENODEV);
    assert_int_equal(qos_link_get_by_index(links, 9999, &info), -ENODEV);
    assert_int_equal(qos_link_get_stats(links, link1.ifindex, &stats), 0);
    assert_int_equal(qos_link_monitor_open(&w, on_event, NULL), 0);
    assert_int_equal(qos_link_set_flag(links, link1.ifindex, IFF_UP, true), 0);
    assert_int_equal(qos_link_get_by_index(links, link1.ifindex, &info), 0);
    assert_true(info.flags & IFF_UP);
    OK("htb", "cmd=add,port=1,class=10,rate=1mbit");
    struct pollfd p = {qos_link_monitor_fd(w), POLLIN, 0};
    assert_int_equal(poll(&p, 1, 1000), 1);
    assert_int_equal(qos_link_monitor_read(w), 0);
    assert_true(saw(QOS_LINK_TC, qos_netlink_portid(kernel)));
    unsigned changed = 0;
    for (unsigned i = 0; i < n_seen; i++)
        changed += seen[i].kind == QOS_LINK_CHANGED && seen[i].ifindex == link1.ifindex &&
                   !strcmp(seen[i].name, "d1");
    assert_true(changed > 0);
    assert_int_equal(qos_link_set_flag(links, link1.ifindex, IFF_UP, false), 0);
    qos_link_monitor_close(w);
}

/* When the socket overflows, one event reports it, and later events come again. */
static void
lost_events(void **state)
{
    struct qos_link_monitor *w;
    unsigned lost = 0;
    assert_int_equal(qos_link_monitor_open(&w, on_event, NULL), 0);
    for (unsigned i = 0; i < 10000; i++)
        assert_int_equal(qos_link_set_flag(links, link1.ifindex, IFF_UP, i % 2 == 0), 0);
    struct pollfd p = {qos_link_monitor_fd(w), POLLIN, 0};
    while (poll(&p, 1, 0) == 1) {
        n_seen = 0;
        assert_int_equal(qos_link_monitor_read(w), 0);
        for (unsigned i = 0; i < n_seen; i++)
            lost += seen[i].kind == QOS_LINK_OVERRUN && !seen[i].ifindex;
    }
    assert_int_equal(lost, 1);
    n_seen = 0;
    assert_int_equal(qos_link_set_flag(links, link1.ifindex, IFF_UP, true), 0);
    assert_int_equal(qos_link_monitor_read(w), 0);
    assert_true(n_seen > 0 && seen[0].kind == QOS_LINK_CHANGED);
    assert_int_equal(qos_link_set_flag(links, link1.ifindex, IFF_UP, false), 0);
    qos_link_monitor_close(w);
}

/* The veth pair is created, found, replaced if it was left behind, and removed. */
static void
shaper(void **state)
{
    struct qos_shaper s, found;
    struct qos_link_info tx, rx;
    const struct qos_kernel_ops *ops = kernel->ops;
    const unsigned want = IFF_UP | IFF_NOARP;
    assert_int_equal(ops->shaper_find(kernel, link1.ifindex, false, &found), -ENOENT);
    if (ops->shaper_add(kernel, link1.ifindex, false, &s, &err)) {
        printf("skipped: %s\n", err.text);
        assert_int_equal(err.err, QOS_ERR(OFPSFC_UNSUPPORTED));
        return;
    }
    assert_int_equal(ops->shaper_add(kernel, link1.ifindex, false, &s, &err), 0);
    assert_int_equal(ops->shaper_find(kernel, link1.ifindex, false, &found), 0);
    assert_memory_equal(&s, &found, sizeof s);
    assert_int_equal(qos_link_get_by_name(links, s.tx_name, &tx), 0);
    assert_int_equal(qos_link_get_by_index(links, s.rx_ifindex, &rx), 0);
    assert_int_equal(tx.ifindex, s.tx_ifindex);
    assert_string_equal(rx.name, s.rx_name);
    assert_int_equal(tx.flags & want, want);
    assert_int_equal(rx.flags & want, want);
    assert_int_equal(tx.mtu, 65535);
    assert_int_equal(rx.mtu, 65535);
    ops->shaper_del(kernel, &s);
    assert_int_equal(ops->shaper_find(kernel, link1.ifindex, false, &found), -ENOENT);
    assert_int_equal(qos_link_get_by_index(links, s.rx_ifindex, &rx), -ENODEV);
}

/* Of an interface that the kernel goes on forwarding by: an IFB, and a filter that leads there. */
static void
shaper_ifb(void **state)
{
    struct qos_shaper s, again, found;
    struct qos_link_info ifb;
    const struct qos_kernel_ops *ops = kernel->ops;
    assert_int_equal(ops->shaper_find(kernel, link1.ifindex, true, &found), -ENOENT);
    if (ops->shaper_add(kernel, link1.ifindex, true, &s, &err)) {
        printf("skipped: %s\n", err.text);
        return;
    }
    assert_int_equal(ops->shaper_add(kernel, link1.ifindex, true, &again, &err), 0);
    assert_int_not_equal(again.tx_ifindex, s.tx_ifindex);
    assert_int_equal(ops->shaper_find(kernel, link1.ifindex, true, &found), 0);
    assert_memory_equal(&again, &found, sizeof found);
    assert_int_equal(ops->shaper_find(kernel, link1.ifindex, false, &found), -ENOENT);
    assert_int_equal(qos_link_get_by_name(links, again.tx_name, &ifb), 0);
    assert_int_equal(ifb.ifindex, again.rx_ifindex);
    assert_int_equal(ifb.txqueuelen, 1000);
    assert_int_equal(ifb.flags & IFF_UP, IFF_UP);
    ops->shaper_del(kernel, &again);
    assert_int_equal(qos_link_get_by_index(links, again.tx_ifindex, &ifb), -ENODEV);
    ops->shaper_del(kernel, &again); /* there is nothing any more */
}

/* The name is taken. */
static void
shaper_refused(void **state)
{
    struct qos_shaper s;
    char name[IFNAMSIZ];
    snprintf(name, sizeof name, "ofqi%d", link1.ifindex);
    if (make_link(name, "dummy") < 0 && make_link(name, "ifb") < 0)
        skip();
    assert_int_equal(kernel->ops->shaper_find(kernel, link1.ifindex, false, &s), -ENOENT);
    assert_int_not_equal(kernel->ops->shaper_add(kernel, link1.ifindex, false, &s, &err), 0);
    assert_int_equal(err.errnum, EEXIST);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(link_and_watch), TEST(lost_events), TEST(shaper),
        TEST(shaper_refused), TEST(shaper_ifb),
    };
    int e = real_kernel_begin();
    if (e)
        return e;
    e = cmocka_run_group_tests(tests, NULL, NULL);
    qos_link_close(links);
    return e;
}
