/* SPDX-License-Identifier: Apache-2.0 */
#include <queues/kernel-plan.h>
#include <queues/port-queues.h>
#include <queues/qos-notify.h>
#include <switch/switch.h>

#include <oflib/plural.h>

#include <daemon/log.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct port_catch_up {
    struct sw_port *p; /* NULL: none */
    bool back;         /* the interface replaces one that went away */
    struct queue_snapshot before;
    uint32_t n_queues; /* that the port had */
    struct sw_port_follower follower;
    struct kernel_plan plan;
};

static struct qos_port
qos_port_of(const struct sw_port *p)
{
    return (struct qos_port){.port_no = p->no,
                             .ifindex = p->link.ifindex,
                             .name = p->name,
                             .mtu = p->link.mtu,
                             .txqueuelen = p->link.txqueuelen,
                             .tx_queues = p->link.tx_queues,
                             .speed = p->link.speed};
}

struct queue_count {
    uint32_t port_no, n;
};

static void
add_queues(void *ctx, const struct qos_tree *t)
{
    struct queue_count *c = ctx;
    c->n += t->port_no == c->port_no ? t->n_queues : 0;
}

static uint32_t
queues_of(const struct sw *sw, const struct sw_port *p)
{
    struct queue_count c = {.port_no = p->no};
    qos_each_tree(sw->qos, add_queues, &c);
    return c.n;
}

static void
log_queues(const struct sw *sw, const struct sw_port *p, uint32_t had, const char *how, int err,
           const struct qos_error *e)
{
    uint32_t has = queues_of(sw, p);
    if (err)
        log_error(QOS, "port %u (%s): %u of its queues are lost: %s", p->no, p->name,
                  had > has ? had - has : 0, err > 0 ? e->text : strerror(-err));
    if (has)
        log_notice(QOS, "port %u (%s): %u queue%s %s", p->no, p->name, has, OF_S(has), how);
}

void
sw_port_queues_adopt(struct sw *sw, const struct sw_port *p)
{
    struct qos_port q = qos_port_of(p);
    struct qos_error e = {0};
    if (sw->opt.no_slicing || p->no == OFPP_LOCAL)
        return;
    int err = qos_port_add(sw->qos, &q);
    log_queues(sw, p, 0, "of an earlier run adopted", err, &e);
}

/* ------------------------------------------------------------------ at the end */

static void
is_back(struct sw *sw, struct port_catch_up *u, int err, const struct qos_error *e)
{
    bool gone = err == -ENODEV;
    if (gone)
        log_warning(QOS, "port %u (%s): the interface went away again before its queues were made",
                    u->p->no, u->p->name);
    else if (err != -ENOENT)
        log_queues(sw, u->p, u->n_queues, "made anew", err, e);
    u->follower.is_back(sw, u->p);
    if (gone)
        sw_queue_snapshot_free(&u->before);
    else
        sw_qos_notify_interface(sw, &u->before, true);
    if (!gone && sw->port_has_come)
        sw->port_has_come(sw->config_ctx, u->p->name, true);
}

static void
is_updated(struct sw *sw, const struct sw_port *p, int err, const struct qos_error *e)
{
    if (!err || err == -ENOENT)
        return;
    sw->counters.links_not_followed++;
    log_error(QOS, "port %u (%s): its queues can't be adapted to the link's new speed or MTU: %s",
              p->no, p->name, *e->text ? e->text : strerror(err < 0 ? -err : EIO));
}

static void
finish(struct sw *sw, int err, const struct qos_error *e)
{
    struct port_catch_up u = *sw->catch_up;
    *sw->catch_up = (struct port_catch_up){0};
    if (u.back)
        is_back(sw, &u, err, e);
    else
        is_updated(sw, u.p, err, e);
}

/* ------------------------------------------------------------------ one transaction after another
 */

static bool
agreed(void *ctx)
{
    return true;
}

static void over(void *ctx, bool done, unsigned at, const struct qos_error *e);

static void
go_on(struct sw *sw)
{
    static const struct kernel_work work = {.agreed = agreed, .over = over, .onward = true};
    struct qos_error e = {0};
    while (qos_port_plan(sw->qos)) {
        if (sw_kernel_plan_is_long(sw)) {
            sw_kernel_plan_begin(sw, &sw->catch_up->plan, &work, sw);
            return;
        }
        e = (struct qos_error){0};
        int err = qos_commit(sw->qos, NULL, &e);
        qos_port_planned(sw->qos, err, &e);
    }
    int err = qos_port_end(sw->qos, &e);
    finish(sw, err, &e);
}

static void
over(void *ctx, bool done, unsigned at, const struct qos_error *e)
{
    struct sw *sw = ctx;
    const struct qos_error none = {0};
    if (!done && !e) { /* the switch ends */
        sw_queue_snapshot_free(&sw->catch_up->before);
        return;
    }
    qos_port_planned(sw->qos, e ? e->err : 0, e ? e : &none);
    void (*then)(struct sw *) = sw->catch_up->follower.go_on;
    go_on(sw);
    then(sw);
}

static void
begin(struct sw *sw, int err)
{
    const struct qos_error none = {0};
    if (err)
        finish(sw, err, &none);
    else
        go_on(sw);
}

void
sw_port_queues_back(struct sw *sw, struct sw_port *p, struct sw_port_follower follower)
{
    struct qos_port q = qos_port_of(p);
    *sw->catch_up = (struct port_catch_up){.p = p,
                                           .back = true,
                                           .before = sw_queue_snapshot(sw, p->no),
                                           .n_queues = queues_of(sw, p),
                                           .follower = follower};
    begin(sw, qos_port_back_begin(sw->qos, &q));
}

void
sw_port_queues_update(struct sw *sw, struct sw_port *p, struct sw_port_follower follower)
{
    struct qos_port q = qos_port_of(p);
    *sw->catch_up = (struct port_catch_up){.p = p, .follower = follower};
    begin(sw, qos_port_update_begin(sw->qos, &q));
}

int
sw_port_queues_init(struct sw *sw)
{
    sw->catch_up = calloc(1, sizeof *sw->catch_up);
    return sw->catch_up ? 0 : -ENOMEM;
}

void
sw_port_queues_free(struct sw *sw)
{
    free(sw->catch_up);
}
