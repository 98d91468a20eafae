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
    struct task task;
    struct sw *sw;
    struct sw_port *p;
    bool back; /* the interface replaces one that went away */
    struct queue_snapshot before;
    uint32_t n_queues; /* that the port had */
    void (*made)(struct sw *sw, struct sw_port *p);
    struct kernel_plan plan; /* a transaction that is a task of its own */
    bool planned;            /* it is under way */
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
                             .speed = p->link.speed,
                             .queues_only = p->queues_only};
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
    u->made(sw, u->p);
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

/* ------------------------------------------------------------------ one transaction after another */

static const struct task_kind task_kind;

static bool
agreed(void *ctx)
{
    return true;
}

static void
over(void *ctx, bool done, unsigned at, const struct qos_error *e)
{
    struct port_catch_up *u = ctx;
    const struct qos_error none = {0};
    if (!done && !e) { /* the switch ends */
        sw_queue_snapshot_free(&u->before);
        return;
    }
    u->planned = false;
    qos_port_planned(u->sw->qos, e ? e->err : 0, e ? e : &none);
    task_begin(u->sw->tasks, &u->task, &task_kind, u);
}

static enum task_progress
run(void *ctx, uint64_t deadline)
{
    static const struct kernel_work work = {.agreed = agreed, .over = over, .onward = true};
    struct port_catch_up *u = ctx;
    struct qos *qos = u->sw->qos;
    while (qos_port_plan(qos)) {
        if ((u->planned = sw_kernel_plan_is_long(u->sw))) {
            sw_kernel_plan_begin(u->sw, &u->plan, &work, u);
            break;
        }
        struct qos_error e = {0};
        int err = qos_commit(qos, NULL, &e);
        qos_port_planned(qos, err, &e);
        if (loop_clock() >= deadline)
            return TASK_MORE;
    }
    return TASK_OVER;
}

static void
finish(struct port_catch_up *u, int err, const struct qos_error *e)
{
    if (u->back)
        is_back(u->sw, u, err, e);
    else
        is_updated(u->sw, u->p, err, e);
}

static void
end(void *ctx)
{
    struct port_catch_up *u = ctx;
    struct qos_error e = {0};
    if (u->planned)
        return;
    int err = qos_port_end(u->sw->qos, &e);
    finish(u, err, &e);
}

static void
stop(void *ctx)
{
    struct port_catch_up *u = ctx;
    sw_queue_snapshot_free(&u->before);
}

static const struct task_kind task_kind = {
    .needs = QUEUES, .locks = QUEUES, .blocks = true, .run = run, .end = end, .stop = stop};

static void
begin(struct port_catch_up *u, int err)
{
    const struct qos_error none = {0};
    if (err)
        finish(u, err, &none);
    else if (!task_start(u->sw->tasks, &u->task, &task_kind, u))
        end(u);
}

void
sw_port_queues_back(struct sw *sw, struct sw_port *p,
                    void (*made)(struct sw *sw, struct sw_port *p))
{
    struct qos_port q = qos_port_of(p);
    *sw->catch_up = (struct port_catch_up){.sw = sw,
                                           .p = p,
                                           .back = true,
                                           .before = sw_queue_snapshot(sw, p->no),
                                           .n_queues = queues_of(sw, p),
                                           .made = made};
    begin(sw->catch_up, qos_port_back_begin(sw->qos, &q));
}

void
sw_port_queues_update(struct sw *sw, struct sw_port *p)
{
    struct qos_port q = qos_port_of(p);
    *sw->catch_up = (struct port_catch_up){.sw = sw, .p = p};
    begin(sw->catch_up, qos_port_update_begin(sw->qos, &q));
}

bool
sw_port_queues_busy(const struct sw *sw)
{
    return sw->catch_up->task.tasks || sw->catch_up->planned;
}

bool
sw_port_queues_returns(const struct sw *sw, const struct sw_port *p)
{
    return sw_port_queues_busy(sw) && sw->catch_up->back && sw->catch_up->p == p;
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
