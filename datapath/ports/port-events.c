/* SPDX-License-Identifier: Apache-2.0 */
/* Events of interfaces, by rtnetlink: links that change, go away and return, and changes to queues
 * by other programs. */
#include "port-attach.h"
#include "port-owner.h"

#include <megaflow/megaflow.h>
#include <ports/ports.h>
#include <queues/port-queues.h>
#include <queues/qos-notify.h>

#include <daemon/log.h>

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#define SYNC_DELAY_NS UINT64_C(100000000)
/* An interface that goes is reported as down first, and 10 to 30 ms later as gone. */
#define REPORT_NS UINT64_C(50000000)
#define LATER_NS  UINT64_C(1000000000) /* if the kernel does not answer, or memory is short */

static struct sw_port *
by_ifindex(const struct sw *sw, int ifindex)
{
    uint32_t no = 0;
    for (struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no)
        if (p->port && !p->link_gone && p->link.ifindex == ifindex)
            return p;
    return NULL;
}

/* The interface of sw_ports_expect. */
static void
has_come(struct sw *sw, struct sw_port *p)
{
    p->expected = false;
    log_notice(PORT, "port %u (%s): the interface has come", p->no, p->name);
    sw_port_queues_adopt(sw, p);
    sw_port_announce(sw, p, OFPPR_MODIFY);
    if (sw->port_has_come)
        sw->port_has_come(sw->config_ctx, p->name, false);
}

static void
is_back(struct sw *sw, struct sw_port *p)
{
    log_notice(PORT, "port %u (%s): the interface is back", p->no, p->name);
    sw_port_announce(sw, p, OFPPR_MODIFY);
}

/* Attaches a port that has lost its interface, if there is one of its name. */
static void
try_return(struct sw *sw, struct sw_port *p)
{
    char why[256];
    int err = sw_port_attach(sw, p, why, sizeof why);
    bool told = p->is_taken;
    p->is_taken = err == -EBUSY; /* who gives it up causes another event */
    if (!err && p->expected)
        has_come(sw, p);
    else if (!err)
        sw_port_queues_back(sw, p, is_back);
    else if (err == -EBUSY && !told)
        log_error(PORT, "port %u (%s): the interface has come, but is not taken: %s", p->no,
                  p->name, why);
    else if (err != -ENODEV && err != -EBUSY)
        log_error(PORT, "port %u (%s): the interface is back, but can't be opened: %s", p->no,
                  p->name, why);
}

/* An interface that no port has: a port that lost its own may wait for this name, or is just taking it. */
static void
new_link(struct sw *sw, const char *name)
{
    uint32_t no = 0;
    for (struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no)
        if (!strcmp(p->name, name)) {
            p->link_event = true;
            p->link_reported = p->port != NULL; /* it has another interface yet */
            p->link_events++;
        }
}

/* The flags decide whether the port is up and live.  What else the event says waits. */
static void
take_flags(struct sw *sw, struct sw_port *p, unsigned flags)
{
    bool was_down = sw_port_is_down(p);
    p->link.flags = flags;
    p->config =
        flags & IFF_UP ? p->config & ~(uint32_t)OFPPC_PORT_DOWN : p->config | OFPPC_PORT_DOWN;
    sw_port_apply_flags(sw, p);
    if (sw_port_is_down(p) != was_down)
        log_notice(PORT, "port %u (%s): the link is %s", p->no, p->name, was_down ? "up" : "down");
}

/* The interface is no more: the port is not live, but keeps its configuration. */
static void
report_loss(struct sw *sw, struct sw_port *p)
{
    p->link.flags = 0;
    sw_port_apply_flags(sw, p);
    sw_port_announce(sw, p, OFPPR_MODIFY);
}

/* While the rest of the event has to wait. */
static void
report(struct sw *sw, struct sw_port *p)
{
    struct of_port before, after;
    p->link_reported = true;
    if (p->link_gone) {
        report_loss(sw, p);
        return;
    }
    sw_ports_describe(p, &before);
    take_flags(sw, p, p->link_flags);
    sw_ports_describe(p, &after);
    if (memcmp(&before, &after, sizeof before))
        sw_port_announce(sw, p, OFPPR_MODIFY);
}

/* -> whether there was anything to report */
static bool
report_all(struct sw *sw)
{
    uint32_t no = 0;
    bool any = false;
    for (struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no) {
        if (!p->link_event || !p->port || p->link_reported || sw_port_queues_returns(sw, p))
            continue;
        report(sw, p);
        any = true;
    }
    return any;
}

static void
report_late(void *ctx)
{
    report_all(ctx);
}

static void
lose(struct sw *sw, struct sw_port *p)
{
    struct queue_snapshot before = sw_queue_snapshot(sw, p->no);
    log_warning(PORT, "port %u (%s): the interface is gone%s", p->no, p->name,
                p->no == OFPP_LOCAL ? "" : "; the port waits for one of this name");
    qos_port_absent(sw->qos, p->no);
    sw_port_detach(sw, p);
    p->link_gone =
        false; /* that event may have come meanwhile; the next interface is another one */
    if (!p->link_reported || p->link.flags)
        report_loss(sw, p);
    sw_qos_notify_interface(sw, &before, false);
}

static void
link_changed(struct sw *sw, struct sw_port *p)
{
    struct qos_link_info l;
    struct of_port before, after;
    int err = qos_link_get_by_index(sw->link, p->link.ifindex, &l);
    if (err == -ENODEV)
        lose(sw, p);
    if (err)
        return;
    sw_ports_describe(p, &before);
    bool qos_changed = l.speed != p->link.speed || l.mtu != p->link.mtu ||
                       l.txqueuelen != p->link.txqueuelen || l.tx_queues != p->link.tx_queues;
    if (l.mtu != p->link.mtu)
        sw_offload_forget_port(sw, p->no);
    sw_port_own_again(sw, p, &l);
    unsigned flags = l.flags;
    l.flags = p->link.flags;
    p->link = l;
    take_flags(sw, p, flags);
    sw_ports_describe(p, &after);
    if (before.state == after.state && before.curr_speed != after.curr_speed)
        log_notice(PORT, "port %u (%s): the link's speed is %u kbit/s, and was %u", p->no, p->name,
                   after.curr_speed, before.curr_speed);
    if (memcmp(&before, &after, sizeof before))
        sw_port_announce(sw, p, OFPPR_MODIFY);
    if (qos_changed)
        sw_port_queues_update(sw, p);
}

/* Events may come while the kernel is asked. */
static void
follow(struct sw *sw, struct sw_port *p)
{
    uint32_t events = p->link_events;
    if (p->port && p->link_gone)
        lose(sw, p);
    p->link_gone = false;
    if (p->port)
        link_changed(sw, p);
    if (!p->port && p->no != OFPP_LOCAL)
        try_return(sw, p);
    p->link_reported &= p->link_events != events;
    p->link_event = p->link_events != events;
}

static bool queue_links(struct sw *sw);

static enum task_progress
run_links(void *ctx, uint64_t deadline)
{
    struct sw *sw = ctx;
    uint32_t no = 0;
    unsigned come = 0;
    for (const struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no)
        come += !p->port && p->link_event;
    port_rings_ahead(come);
    no = 0;
    for (struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no) {
        if (!p->link_event)
            continue;
        if (sw_port_queues_busy(sw) || loop_clock() > deadline)
            return TASK_OVER;
        follow(sw, p);
    }
    return TASK_OVER;
}

/* Opening and closing a port waits for the kernel's RCU, and a thousand interfaces may come or go at once: requests come
 * between two turns. */
static void
links_over(void *ctx)
{
    if (!queue_links(ctx))
        port_rings_ahead(0);
}

static const struct task_kind links_kind = {
    .needs = QUEUES, .locks = QUEUES, .blocks = true, .run = run_links, .end = links_over};

/* -> whether there are events */
static bool
queue_links(struct sw *sw)
{
    uint32_t no = 0;
    for (const struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no)
        if (p->link_event) {
            if (!sw->links_task.tasks)
                loop_timer_set(sw->links_timer, loop_now(sw->loop) + REPORT_NS);
            task_queue(sw->tasks, &sw->links_task, &links_kind, sw);
            return true;
        }
    return false;
}

/* Events were lost: read everything again. */
static void
look_at_all(struct sw *sw)
{
    uint32_t no = 0;
    for (struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no) {
        p->link_event = p->tc_changed = !p->files;
        p->link_reported = true; /* nothing is known of it */
        p->link_events++;
    }
}

static void
on_event(void *ctx, const struct qos_link_event *e)
{
    struct sw *sw = ctx;
    struct sw_port *p = by_ifindex(sw, e->ifindex);
    switch (e->kind) {
    case QOS_LINK_CHANGED:
        if (p) {
            p->link_event = true;
            p->link_reported = false;
            p->link_flags = e->flags;
            p->link_events++;
        } else {
            new_link(sw, e->name);
        }
        break;
    case QOS_LINK_GONE:
        if (p) {
            p->link_event = p->link_gone = true; /* another interface may have its ifindex by now */
            p->link_reported = false;
            p->link_events++;
        } else if ((p = sw_ports_find(sw, qos_port_by_ifindex(sw->qos, e->ifindex)))) {
            p->tc_changed = true; /* it was the port's shaper */
        }
        break;
    case QOS_LINK_TC:
        p = sw_ports_find(sw,
                          qos_port_by_ifindex(sw->qos, e->ifindex)); /* or its shaper's interface */
        if (p && e->portid && e->portid != qos_netlink_portid(sw->kernel))
            p->tc_changed = true;
        break;
    case QOS_LINK_OVERRUN: look_at_all(sw); break;
    }
    if (e->kind == QOS_LINK_OVERRUN || (p && p->tc_changed))
        loop_timer_set(sw->sync_timer, loop_now(sw->loop) + SYNC_DELAY_NS);
}

struct foreign_sum {
    uint32_t port_no;
    uint64_t changed, repaired;
};

static void
add_foreign(void *ctx, const struct qos_tree *t)
{
    struct foreign_sum *sum = ctx;
    if (t->port_no != sum->port_no)
        return;
    sum->changed += t->foreign.changed;
    sum->repaired += t->foreign.repaired;
}

/* Another program changed the port's queues.  -> false: memory was too short to see what */
static bool
sync_port(struct sw *sw, const struct sw_port *p)
{
    static const char *const outcome[] = {[QOS_FOREIGN_ADOPT] = "adopted",
                                          [QOS_FOREIGN_REPORT] =
                                              "left as they are (--qos-foreign=report)",
                                          [QOS_FOREIGN_REPAIR] = "repaired (--qos-foreign=repair)"};
    struct foreign_sum before = {.port_no = p->no}, after = before;
    struct qos_error e = {0};
    struct queue_snapshot view = sw_queue_snapshot(sw, p->no);
    qos_each_tree(sw->qos, add_foreign, &before);
    int err = qos_port_sync(sw->qos, p->no, &e);
    qos_each_tree(sw->qos, add_foreign, &after);
    sw_qos_notify_foreign(sw, &view, after.changed - before.changed,
                          after.repaired - before.repaired);
    if (after.changed != before.changed)
        log_warning(QOS, "port %u (%s): another program changed %llu qdiscs or classes: %s%s",
                    p->no, p->name, (unsigned long long)(after.changed - before.changed),
                    err ? "reading them again failed: " : outcome[sw->opt.qos_foreign],
                    err ? e.text : "");
    return err != -ENOMEM;
}

static enum task_progress
run_sync(void *ctx, uint64_t deadline)
{
    struct sw *sw = ctx;
    uint32_t no = 0;
    bool again = false;
    for (struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no) {
        if (!p->tc_changed)
            continue;
        bool late = loop_clock() > deadline;
        if (late && !again)
            return TASK_MORE;
        if (late)
            break;
        p->tc_changed = p->port && !p->link_gone && !sync_port(sw, p);
        again |= p->tc_changed;
    }
    if (again)
        loop_timer_set(sw->sync_timer, loop_now(sw->loop) + LATER_NS);
    queue_links(sw);
    return TASK_OVER;
}

static void
sync_queues(void *ctx)
{
    static const struct task_kind kind = {
        .needs = QUEUES, .locks = QUEUES, .blocks = true, .run = run_sync};
    struct sw *sw = ctx;
    task_queue(sw->tasks, &sw->sync_task, &kind, sw);
}

void
sw_ports_look_again(struct sw *sw)
{
    if (!sw->sync_timer)
        return;
    look_at_all(sw);
    loop_timer_set(sw->sync_timer, loop_now(sw->loop) + LATER_NS);
}

static void
read_watch(struct sw *sw)
{
    int err = qos_link_monitor_read(sw->watch);
    if (err < 0) { /* the socket is of no more use */
        log_error(PORT, "interfaces are no longer watched: reading rtnetlink events failed: %s",
                  strerror(-err));
        loop_io_del(sw->watch_io);
        sw->watch_io = NULL;
    }
}

static void
watch_ready(void *ctx, uint32_t events)
{
    struct sw *sw = ctx;
    read_watch(sw);
    queue_links(sw);
}

int
sw_ports_watch_fd(const struct sw *sw)
{
    return sw->watch_io ? qos_link_monitor_fd(sw->watch) : -1;
}

void
sw_ports_hear(struct sw *sw)
{
    if (sw->watch_io)
        read_watch(sw);
    queue_links(sw);
    if (report_all(sw))
        channel_flush(sw->channel);
}

int
sw_ports_watch(struct sw *sw)
{
    int err = qos_link_monitor_open(&sw->watch, on_event, sw);
    if (!err)
        qos_link_monitor_ignore(sw->watch, qos_netlink_portid(sw->kernel));
    if (!err)
        err = loop_timer_new(sw->loop, sync_queues, sw, &sw->sync_timer);
    if (!err)
        err = loop_timer_new(sw->loop, report_late, sw, &sw->links_timer);
    if (!err)
        err = loop_io_add(sw->loop, qos_link_monitor_fd(sw->watch), EPOLLIN, watch_ready, sw,
                          &sw->watch_io);
    return err;
}
