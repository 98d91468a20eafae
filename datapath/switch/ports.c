/* SPDX-License-Identifier: Apache-2.0 */
/* The switch's ports as the control thread keeps them: made, watched, described, changed. */
#include <shared/rcu.h>
#include <switch/qos-changes.h>

#include <daemon/log.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define ALL_CONFIG    (OFPPC_PORT_DOWN | OFPPC_NO_RECV | OFPPC_NO_FWD | OFPPC_NO_PACKET_IN)
#define SYNC_DELAY_NS UINT64_C(100000000)

struct sw_port *
sw_ports_find(const struct sw *sw, uint32_t no)
{
    if (no == OFPP_LOCAL)
        return sw->local.no ? (struct sw_port *)(uintptr_t)&sw->local : NULL;
    return no && no <= sw->n_ports ? sw->ports[no] : NULL;
}

struct sw_port *
sw_ports_next(const struct sw *sw, uint32_t no)
{
    for (uint64_t i = (uint64_t)no + 1; i <= sw->n_ports; i++)
        if (sw->ports[i])
            return sw->ports[i];
    return no < OFPP_LOCAL ? sw_ports_find(sw, OFPP_LOCAL) : NULL;
}

/* ------------------------------------------------------------------ describing */

static bool
is_down(const struct sw_port *p)
{
    return !p->port || !(p->link.flags & IFF_UP) || !(p->link.flags & IFF_RUNNING);
}

void
sw_ports_describe(const struct sw_port *p, struct of_port *out)
{
    const struct qos_link_info *l = &p->link;
    uint32_t kbps = (uint32_t)(l->speed / 1000 > UINT32_MAX ? UINT32_MAX : l->speed / 1000);
    *out = (struct of_port){.port_no = p->no,
                            .config = p->config,
                            .state = is_down(p) ? OFPPS_LINK_DOWN : OFPPS_LIVE,
                            .curr = l->curr,
                            .advertised = l->advertised,
                            .supported = l->supported,
                            .peer = l->peer,
                            .curr_speed = kbps,
                            .max_speed = kbps};
    memcpy(out->hw_addr, l->mac, sizeof out->hw_addr);
    snprintf(out->name, sizeof out->name, "%s", p->name);
}

static void
announce(struct sw *sw, const struct sw_port *p, uint8_t reason)
{
    struct of_port d;
    sw_ports_describe(p, &d);
    struct of_port_status s = {.reason = reason,
                               .port_no = d.port_no,
                               .config = d.config,
                               .state = d.state,
                               .curr = d.curr,
                               .advertised = d.advertised,
                               .supported = d.supported,
                               .peer = d.peer,
                               .curr_speed = d.curr_speed,
                               .max_speed = d.max_speed};
    memcpy(s.hw_addr, d.hw_addr, sizeof s.hw_addr);
    memcpy(s.name, d.name, sizeof s.name);
    channel_async(sw->channel, ASYNC_PORT_STATUS, reason, OFPT_PORT_STATUS, &s);
}

/* ------------------------------------------------------------------ telling the workers */

/* The ports' descriptors have changed: whoever sleeps on those before looks anew. */
static void
wake_workers(struct sw *sw)
{
    fetch_add(&sw->dp.watch_serial, 1);
    for (unsigned i = 0; i < sw->dp.n_workers; i++)
        if (sw->dp.workers[i])
            worker_wake(sw->dp.workers[i]);
}

/* Publishes the list of all attached ports anew. */
static int
publish(struct sw *sw)
{
    uint32_t n = 0, no = 0;
    for (const struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no)
        n++;
    struct port_list *l = calloc(1, sizeof *l + n * sizeof l->v[0]), *old = sw->dp.ports;
    if (!l)
        return -ENOMEM;
    no = 0;
    for (const struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no)
        if (p->port)
            l->v[l->n++] = p->port;
    rcu_assign_pointer(sw->dp.ports, l);
    if (old)
        rcu_defer_free(old);
    return 0;
}

static void
set_by_number(struct sw *sw, uint32_t no, struct port *port)
{
    if (no == OFPP_LOCAL)
        rcu_assign_pointer(sw->dp.local, port);
    else
        rcu_assign_pointer(sw->dp.by_number[no], port);
}

static void
tell_flags(const struct sw_port *p)
{
    if (p->port)
        port_set_flags(p->port, p->config, is_down(p));
}

/* ------------------------------------------------------------------ shaping what enters */

void
sw_ports_set_shaper(struct sw *sw, uint32_t no, const struct qos_shaper *s)
{
    char why[256];
    struct sw_port *p = sw_ports_find(sw, no);
    if (!p || !p->port)
        return;
    struct port_shaper *old = port_shaper_take(p->port);
    if (old) {
        wake_workers(sw);
        rcu_wait();
        port_shaper_close(old);
    }
    if (!s)
        return;
    if (port_shaper_open(p->port, s->tx_name, s->rx_name, why, sizeof why)) {
        log_line(LOG_ERROR, "port %u (%s): what enters passes by its queues: %s", no, p->name, why);
        return;
    }
    wake_workers(sw);
}

/* ------------------------------------------------------------------ attaching an interface */

static int
attach(struct sw *sw, struct sw_port *p, char *why, size_t why_len)
{
    struct qos_link_info link;
    bool local = p->no == OFPP_LOCAL;
    int err = local ? 0 : qos_link_get_by_name(sw->link, p->name, &link);
    if (err) {
        snprintf(why, why_len, "interface %s: %s", p->name,
                 err == -ENODEV ? "there is no such interface" : strerror(-err));
        return err;
    }
    struct port_config c = {.port_no = p->no,
                            .ifindex = local ? 0 : link.ifindex,
                            .backend = local ? "tap" : sw->opt.backend,
                            .n_workers = sw->dp.n_workers,
                            .fanout = sw->opt.fanout};
    snprintf(c.name, sizeof c.name, "%s", p->name);
    err = port_open(&c, &p->port, why, why_len);
    if (err)
        return err;
    err = qos_link_get_by_name(sw->link, p->name, &p->link); /* opening may have changed it */
    if (!err)
        err = publish(sw);
    if (err) {
        port_close(p->port);
        p->port = NULL;
        snprintf(why, why_len, "interface %s: %s", p->name, strerror(-err));
        return err;
    }
    p->base = p->link.stats;
    p->config = p->link.flags & IFF_UP ? p->config & ~(uint32_t)OFPPC_PORT_DOWN
                                       : p->config | OFPPC_PORT_DOWN;
    set_by_number(sw, p->no, p->port);
    tell_flags(p);
    wake_workers(sw);
    return 0;
}

/* The packet side's part; the queues are the caller's business. */
static void
detach(struct sw *sw, struct sw_port *p)
{
    if (!p->port)
        return;
    struct port *port = p->port;
    p->port = NULL;
    set_by_number(sw, p->no, NULL);
    if (publish(sw)) /* no memory: rather never closed than closed while a worker reads it */
        return;
    wake_workers(sw);
    rcu_wait();
    port_close(port);
}

int
sw_ports_add(struct sw *sw, const char *name, uint32_t no, char *why, size_t why_len)
{
    struct sw_port *p;
    if (!*name || strlen(name) >= IFNAMSIZ) {
        snprintf(why, why_len, "'%s' is no interface name: 1 to %d characters", name, IFNAMSIZ - 1);
        return -EINVAL;
    }
    for (uint32_t i = 0; (p = sw_ports_next(sw, i)); i = p->no)
        if (!strcmp(p->name, name)) {
            snprintf(why, why_len, "interface %s is port %u already", name, p->no);
            return -EEXIST;
        }
    if (sw_ports_find(sw, no)) {
        snprintf(why, why_len, "port %u is %s already", no, sw_ports_find(sw, no)->name);
        return -EEXIST;
    }
    for (uint32_t i = 1; !no && i <= PORT_MAX; i++)
        if (!sw->ports[i])
            no = i;
    if (!no) {
        snprintf(why, why_len, "no more than %d ports", PORT_MAX);
        return -ENOSPC;
    }
    p = no == OFPP_LOCAL ? &sw->local : calloc(1, sizeof *p);
    if (!p)
        return -ENOMEM;
    p->no = no;
    p->created = loop_now(sw->loop);
    snprintf(p->name, sizeof p->name, "%s", name);
    if (no != OFPP_LOCAL)
        sw->ports[no] = p;
    if (no != OFPP_LOCAL && no > sw->n_ports)
        sw->n_ports = no;
    int err = attach(sw, p, why, why_len);
    if (!err) {
        sw_port_queues_adopt(sw, p);
        announce(sw, p, OFPPR_ADD);
        return 0;
    }
    if (no == OFPP_LOCAL) {
        *p = (struct sw_port){0};
    } else {
        sw->ports[no] = NULL;
        free(p);
    }
    return err;
}

int
sw_ports_del(struct sw *sw, uint32_t no)
{
    struct sw_port *p = no == OFPP_LOCAL ? NULL : sw_ports_find(sw, no);
    if (!p)
        return -ENOENT;
    qos_port_remove(sw->qos, no, true);
    detach(sw, p);
    announce(sw, p, OFPPR_DELETE);
    sw->ports[no] = NULL;
    free(p);
    return 0;
}

void
sw_ports_close_all(struct sw *sw)
{
    for (uint32_t no = 1; no <= sw->n_ports; no++) {
        if (!sw->ports[no])
            continue;
        qos_port_remove(sw->qos, no, !sw->opt.qos_keep);
        detach(sw, sw->ports[no]);
        free(sw->ports[no]);
        sw->ports[no] = NULL;
    }
    detach(sw, &sw->local);
    struct port_list *last = sw->dp.ports;
    rcu_assign_pointer(sw->dp.ports, NULL);
    if (last) /* the workers still run */
        rcu_defer_free(last);
}

/* ------------------------------------------------------------------ port-mod (7.3.4.3) */

/* Another process may have taken the interface away, a switch may block its radio, ... */
static int
refused_by_kernel(const struct sw_port *p, int err)
{
    log_line(LOG_WARN, "port %u (%s): the kernel refuses to change OFPPC_PORT_DOWN: %s", p->no,
             p->name, strerror(-err));
    return err == -ENODEV || err == -ENXIO   ? OF_PORT_MOD_FAILED(BAD_PORT)
           : err == -EPERM || err == -EACCES ? OF_PORT_MOD_FAILED(EPERM)
                                             : OF_PORT_MOD_FAILED(BAD_CONFIG);
}

int
sw_ports_mod(struct sw *sw, const struct of_port_mod *m)
{
    struct sw_port *p = sw_ports_find(sw, m->port_no);
    if (!p)
        return OF_PORT_MOD_FAILED(BAD_PORT);
    if (memcmp(m->hw_addr, p->link.mac, sizeof m->hw_addr))
        return OF_PORT_MOD_FAILED(BAD_HW_ADDR);
    if ((m->config | m->mask) & ~(uint32_t)ALL_CONFIG)
        return OF_PORT_MOD_FAILED(BAD_CONFIG);
    if (m->advertise && m->advertise != p->link.advertised) /* what is negotiated stays as it is */
        return OF_PORT_MOD_FAILED(BAD_ADVERTISE);
    uint32_t config = (p->config & ~m->mask) | (m->config & m->mask);
    if ((config ^ p->config) & OFPPC_PORT_DOWN && p->port) {
        int err = qos_link_set_up(sw->link, p->link.ifindex, !(config & OFPPC_PORT_DOWN));
        if (err)
            return refused_by_kernel(p, err);
        qos_link_get_by_index(sw->link, p->link.ifindex, &p->link);
    }
    bool changed = config != p->config;
    p->config = config;
    tell_flags(p);
    if (changed)
        announce(sw, p, OFPPR_MODIFY);
    return 0;
}

/* ------------------------------------------------------------------ news of the interfaces */

static struct sw_port *
by_ifindex(const struct sw *sw, int ifindex)
{
    uint32_t no = 0;
    for (struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no)
        if (p->port && p->link.ifindex == ifindex)
            return p;
    return NULL;
}

/* A port that has lost its interface, when there is one of that name. */
static void
try_return(struct sw *sw, struct sw_port *p)
{
    char why[256];
    int err = attach(sw, p, why, sizeof why);
    if (!err)
        sw_port_queues_back(sw, p);
    else if (err != -ENODEV)
        log_line(LOG_ERROR, "port %u (%s): the interface is back, but: %s", p->no, p->name, why);
}

void
sw_ports_returned(struct sw *sw, const struct sw_port *p)
{
    log_line(LOG_NOTE, "port %u (%s): the interface is back", p->no, p->name);
    announce(sw, p, OFPPR_MODIFY);
}

/* An interface that is no port's: one that a port of this name waits for? */
static void
new_link(struct sw *sw, const char *name)
{
    uint32_t no = 0;
    for (struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no)
        if (!p->port && !strcmp(p->name, name))
            p->look = true;
}

static void
lose(struct sw *sw, struct sw_port *p)
{
    struct queue_snapshot before = sw_queue_snapshot(sw, p->no);
    log_line(LOG_WARN, "port %u (%s): the interface is gone%s", p->no, p->name,
             p->no == OFPP_LOCAL ? "" : "; the port waits for one of this name");
    qos_port_away(sw->qos, p->no);
    detach(sw, p);
    p->link.flags = 0;
    announce(sw, p, OFPPR_MODIFY);
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
    bool qos_changed =
        l.speed != p->link.speed || l.mtu != p->link.mtu || l.txqueuelen != p->link.txqueuelen;
    p->link = l;
    p->config =
        l.flags & IFF_UP ? p->config & ~(uint32_t)OFPPC_PORT_DOWN : p->config | OFPPC_PORT_DOWN;
    tell_flags(p);
    sw_ports_describe(p, &after);
    if (before.state != after.state)
        log_line(LOG_NOTE, "port %u (%s): the link is %s", p->no, p->name,
                 is_down(p) ? "down" : "up");
    if (memcmp(&before, &after, sizeof before))
        announce(sw, p, OFPPR_MODIFY);
    if (qos_changed)
        sw_port_queues_update(sw, p);
}

void
sw_ports_look(struct sw *sw)
{
    uint32_t no = 0;
    for (struct sw_port *p; !sw_commit_under_way(sw) && (p = sw_ports_next(sw, no)); no = p->no) {
        if (!p->look)
            continue;
        p->look = false;
        if (p->port && p->gone)
            lose(sw, p);
        p->gone = false;
        if (p->port)
            link_changed(sw, p);
        if (!p->port && p->no != OFPP_LOCAL)
            try_return(sw, p);
    }
}

/* Events were lost, so nothing is known of any interface. */
static void
look_at_all(struct sw *sw)
{
    uint32_t no = 0;
    for (struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no)
        p->look = p->tc_changed = true;
}

static void
on_event(void *ctx, const struct qos_link_event *e)
{
    struct sw *sw = ctx;
    struct sw_port *p = by_ifindex(sw, e->ifindex);
    switch (e->kind) {
    case QOS_LINK_CHANGED:
        if (p)
            p->look = true;
        else
            new_link(sw, e->name);
        break;
    case QOS_LINK_GONE:
        if (p) {
            p->look = p->gone = true; /* by now another may have its ifindex */
        } else if ((p = sw_ports_find(sw, qos_port_by_ifindex(sw->qos, e->ifindex)))) {
            p->tc_changed = true; /* its shaper */
        }
        break;
    case QOS_LINK_TC:
        p = sw_ports_find(sw, qos_port_by_ifindex(sw->qos, e->ifindex)); /* or its shaper's */
        if (p && e->portid && e->portid != qos_netlink_portid(sw->kernel))
            p->tc_changed = true;
        break;
    case QOS_LINK_OVERRUN: look_at_all(sw); break;
    }
    sw_ports_look(sw);
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

/* Somebody's tc was at work on the port's queues. */
static void
sync_port(struct sw *sw, const struct sw_port *p)
{
    static const char *const outcome[] = {
        [QOS_FOREIGN_ADOPT] = "taken over",
        [QOS_FOREIGN_REPORT] = "left as they are (--qos-foreign=report)",
        [QOS_FOREIGN_REPAIR] = "put right (--qos-foreign=repair)"};
    struct foreign_sum before = {.port_no = p->no}, after = before;
    struct qos_error e = {0};
    struct queue_snapshot view = sw_queue_snapshot(sw, p->no);
    qos_each_tree(sw->qos, add_foreign, &before);
    int err = qos_port_sync(sw->qos, p->no, &e);
    qos_each_tree(sw->qos, add_foreign, &after);
    sw_qos_notify_foreign(sw, &view, after.changed - before.changed,
                          after.repaired - before.repaired);
    if (after.changed != before.changed)
        log_line(LOG_WARN, "port %u (%s): somebody else changed %llu qdiscs or classes: %s%s",
                 p->no, p->name, (unsigned long long)(after.changed - before.changed),
                 err ? "can't be helped: " : outcome[sw->opt.qos_foreign], err ? e.text : "");
}

static void
sync_queues(void *ctx)
{
    struct sw *sw = ctx;
    uint32_t no = 0;
    if (sw_commit_under_way(sw)) {
        loop_timer_set(sw->sync_timer, loop_now(sw->loop) + SYNC_DELAY_NS);
        return;
    }
    for (struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no) {
        if (p->tc_changed && p->port)
            sync_port(sw, p);
        p->tc_changed = false;
    }
}

static void
watch_ready(void *ctx, uint32_t events)
{
    struct sw *sw = ctx;
    if (sw_commit_under_way(sw))
        return; /* till then it waits in the socket */
    int err = qos_link_watch_read(sw->watch);
    if (err < 0) { /* of no more use: links are no longer watched */
        log_line(LOG_ERROR, "there will be no more news of interfaces: %s", strerror(-err));
        loop_io_del(sw->watch_io);
        sw->watch_io = NULL;
    }
}

int
sw_ports_watch(struct sw *sw)
{
    int err = qos_link_watch_open(&sw->watch, on_event, sw);
    if (!err)
        qos_link_watch_ignore(sw->watch, qos_netlink_portid(sw->kernel));
    if (!err)
        err = loop_timer_new(sw->loop, sync_queues, sw, &sw->sync_timer);
    if (!err)
        err = loop_io_add(sw->loop, qos_link_watch_fd(sw->watch), EPOLLIN, watch_ready, sw,
                          &sw->watch_io);
    return err;
}
